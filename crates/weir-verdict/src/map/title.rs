//! Steps of a map, for people.

use super::{Part, share};
use weir_core::result::record::JobRecord;
use weir_core::units::{Bytes, per_second};

/// What a step does.
pub fn of_step(part: Part, record: &JobRecord) -> String {
    let job = &record.job;
    let in_flight = u64::from(job.depth) * u64::from(job.threads);
    let rate = job.rate.map_or(0.0, |rate| rate.iops);
    of(part, share(record), Bytes(job.block.largest()), rate, in_flight)
}

/// The same of what is known before a step runs.
pub fn of(part: Part, share: f64, block: Bytes, rate: f64, in_flight: u64) -> String {
    let what = mixture(share, block);
    match part {
        Part::Edge | Part::PagesEdge => format!("{what}, {in_flight} in flight"),
        Part::Again => format!("{what}, {in_flight} in flight, once more"),
        Part::Inside => format!("{what}, {}/s", per_second(rate)),
        Part::Beside | Part::Pages => format!("{what}, {}/s, with commits beside", per_second(rate)),
        Part::Commits => format!("commits {block} (write + fdatasync), 1 thread"),
        Part::CommitsAgain => format!("commits {block} (write + fdatasync), 1 thread, once more"),
        Part::Bulk | Part::InOrder => format!("{what}, in order, {in_flight} in flight"),
    }
}

fn mixture(share: f64, block: Bytes) -> String {
    match share {
        share if share <= 0.0 => format!("reads {block}"),
        share if share >= 1.0 => format!("writes {block}"),
        share => format!("reads and {:.0} % writes {block}", share * 100.0),
    }
}
