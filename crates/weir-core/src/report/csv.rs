//! The intervals of a run as CSV: one line per job, interval and class, units in the header.

use std::fmt::Write as _;

use crate::result::record::{Class, Interval, IntervalClass, JobRecord, Record};
use crate::result::series::per_second;

/// The first line.
pub const HEADER: &str = "job,start_s,length_s,class,count,iops,bytes_per_s,mean_us,p50_us,p95_us,p99_us,max_us,\
                          oldest_in_flight_us,in_flight";

/// All intervals. A class that finished nothing in an interval has a line of zeros, so that stalls are visible.
pub fn intervals(record: &Record) -> String {
    let mut out = format!("{HEADER}\n");
    for job in &record.jobs {
        let name = field(&job.job.name);
        for interval in &job.intervals {
            classes(job, interval).for_each(|(class, cell)| line(&mut out, &name, interval, class, &cell));
        }
    }
    out
}

fn classes<'a>(
    job: &'a JobRecord,
    interval: &'a Interval,
) -> impl Iterator<Item = (Class, IntervalClass)> + 'a {
    job.classes.keys().map(|class| (*class, interval.classes.get(class).cloned().unwrap_or_default()))
}

fn line(out: &mut String, job: &str, interval: &Interval, class: Class, cell: &IntervalClass) {
    let us = |ns: u64| ns as f64 / 1e3;
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{job},{:.3},{:.3},{},{},{:.2},{:.0},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3},{}",
        interval.start_ns as f64 / 1e9,
        interval.len_ns as f64 / 1e9,
        class.name(),
        cell.count,
        per_second(cell.count, interval.len_ns),
        per_second(cell.bytes, interval.len_ns),
        cell.mean_ns / 1e3,
        us(cell.p50_ns),
        us(cell.p95_ns),
        us(cell.p99_ns),
        us(cell.max_ns),
        us(interval.oldest_ns),
        interval.in_flight
    );
}

/// A field as RFC 4180 wants it.
pub(super) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}
