//! The intervals of a run as CSV: one line per job, interval and class, units in the header.

use std::fmt::Write as _;

use crate::layout::csv_field;
use weir_core::result::record::{Class, Interval, IntervalClass, Record};
use weir_core::result::series::per_second;

/// The first line.
pub const HEADER: &str = "job,start_s,length_s,class,count,iops,bytes_per_s,mean_us,p50_us,p95_us,p99_us,max_us,\
                          oldest_in_flight_us,in_flight";

/// All intervals. A class that finished nothing in an interval has a line of zeros, so that stalls are visible.
pub fn intervals(record: &Record) -> String {
    let mut out = format!("{HEADER}\n");
    for job in &record.jobs {
        append(&mut out, &job.job.name, &job.intervals, job.classes.keys().copied(), Class::name);
    }
    out
}

/// Appends lines: one an interval and class.
pub fn append<K: Ord + Copy>(
    out: &mut String,
    job: &str,
    intervals: &[Interval<K>],
    classes: impl Iterator<Item = K> + Clone,
    name: impl Fn(K) -> &'static str,
) {
    let job = csv_field(job);
    for interval in intervals {
        for class in classes.clone() {
            let cell = interval.classes.get(&class).cloned().unwrap_or_default();
            line(out, &job, interval, name(class), &cell);
        }
    }
}

fn line<K>(out: &mut String, job: &str, interval: &Interval<K>, class: &str, cell: &IntervalClass) {
    let us = |ns: u64| ns as f64 / 1e3;
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{job},{:.3},{:.3},{},{},{:.2},{:.0},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3},{}",
        interval.start_ns as f64 / 1e9,
        interval.len_ns as f64 / 1e9,
        class,
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
