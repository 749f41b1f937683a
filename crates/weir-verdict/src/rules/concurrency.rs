//! How commits scale from one thread to several: whether the storage (or the file system's journal) takes several
//! commits at once, or one after the other.

use crate::doctor::{Finding, Measurement, Statement, Topic};
use crate::notes::SyncPath;
use crate::view::{View, mean_time, rate_of, times};
use weir_core::units::{Bytes, per_second};

/// Gains that count as scaling well, and as not at all.
const SCALES: f64 = 3.0;
const DOES_NOT: f64 = 1.25;
/// Threads that do not wait for each other commit as often as one alone, each. Far more is another machine.
const ANOTHER_MACHINE: f64 = 1.5;

/// Compares the same commits by one thread and by several.
pub fn judge(view: &View) -> Option<Finding> {
    let pair = |block| {
        let of = |several| view.commits(SyncPath::Buffered, Bytes(block), several);
        of(false).zip(of(true))
    };
    let (one, many) = pair(16 << 10).or_else(|| pair(4 << 10))?;
    if one.iops.mean <= 0.0 {
        return None;
    }
    let gain = many.iops.mean / one.iops.mean;
    let text = format!(
        "{} threads commit {}/s together where one commits {} ({}): {}.",
        many.threads,
        per_second(many.iops.mean),
        per_second(one.iops.mean),
        times(gain),
        meaning(gain, one, many),
    );
    let summary = format!("{} from 1 to {} threads", times(gain), many.threads);
    let statements = vec![Statement::new(text, vec![rate_of(one), rate_of(many)])];
    Some(Finding { topic: Topic::GroupCommit, grade: None, summary, statements })
}

fn meaning(gain: f64, one: &Measurement, many: &Measurement) -> String {
    let wait = format!("mean {} → {}", mean_time(one.latency.mean_ns), mean_time(many.latency.mean_ns));
    if gain > ANOTHER_MACHINE * f64::from(many.threads) {
        format!("more than possible, so the machine changed in between, and nothing follows ({wait})")
    } else if gain >= SCALES {
        format!("commits proceed side by side, so more connections bring more ({wait})")
    } else if gain < DOES_NOT {
        format!("they queue one behind the other ({wait}); only the database's group commit can bring more")
    } else {
        format!("they share syncs only in part ({wait}); group commit in the database helps")
    }
}
