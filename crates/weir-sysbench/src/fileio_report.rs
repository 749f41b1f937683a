//! sysbench 1.0.20's report, from what was measured.

use std::collections::BTreeMap;

use super::log::Log;
use weir_core::result::record::{Class, JobRecord, ThreadClass, ThreadRecord};
use weir_core::stats::Histogram;
use weir_core::stats::histogram::{bucket_high, bucket_low};

/// One MiB, sysbench's unit of throughput.
const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// sysbench's histogram: 1024 logarithmic slots from 0.001 ms to 100 s.
const SLOTS: f64 = 1023.0;
const SLOT_FIRST_MS: f64 = 1e-3;
const SLOT_LAST_MS: f64 = 1e5;
/// Widest bar of a printed histogram.
const BAR: usize = 40;

/// What was done in a stretch of time.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Reads, writes and syncs finished.
    pub reads: u64,
    /// Writes, those of commits included.
    pub writes: u64,
    /// Syncs, those of commits included.
    pub fsyncs: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Latency of every event.
    pub events: Histogram,
}

/// What sysbench calls an event: a read, a write, or one file's sync; a write with `--file-fsync-all` includes its
/// sync.
impl Counts {
    /// Adds the operations of a class.
    pub fn add(&mut self, class: Class, bytes: u64, latency: &Histogram, fsync_all: bool) {
        let count = latency.count();
        match class {
            Class::Read => {
                self.reads += count;
                self.bytes_read += bytes;
            }
            Class::Write => {
                self.writes += count;
                self.bytes_written += bytes;
            }
            Class::Sync => self.fsyncs += count,
            Class::Commit => {}
        }
        if is_event(class, fsync_all) {
            self.events.merge(latency);
        }
    }

    /// Adds what another stretch counted.
    pub fn merge(&mut self, other: &Counts) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.fsyncs += other.fsyncs;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.events.merge(&other.events);
    }

    /// All that a job measured.
    pub fn of_record(record: &JobRecord, fsync_all: bool) -> Counts {
        let mut counts = Counts::default();
        for (class, measured) in &record.classes {
            counts.add(*class, measured.bytes, &measured.latency, fsync_all);
        }
        counts
    }

    /// What one tick measured: latencies by class, and bytes by class.
    pub fn of_tick(
        latencies: &BTreeMap<Class, Histogram>,
        bytes: &dyn Fn(Class) -> u64,
        fsync_all: bool,
    ) -> Counts {
        let mut counts = Counts::default();
        for (class, latency) in latencies {
            counts.add(*class, bytes(*class), latency, fsync_all);
        }
        counts
    }
}

/// Whether operations of a class are events of their own.
fn is_event(class: Class, fsync_all: bool) -> bool {
    match class {
        Class::Read => true,
        Class::Write | Class::Sync => !fsync_all,
        Class::Commit => fsync_all,
    }
}

/// One thread's events.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Share {
    /// Events finished.
    pub events: u64,
    /// Sum of their latencies, in ns.
    pub event_time_ns: u64,
    /// Shortest and longest event, in ns, where they are known.
    pub extremes_ns: Option<(u64, u64)>,
}

impl Share {
    /// What each thread did after a moment at which these were its totals. The extremes of that time cannot be known from
    /// those of the whole.
    pub fn since(now: &[Share], before: &[Share]) -> Vec<Share> {
        let since = |(index, share): (usize, &Share)| {
            let Some(before) = before.get(index) else { return *share };
            Share {
                events: share.events - before.events,
                event_time_ns: share.event_time_ns - before.event_time_ns,
                extremes_ns: None,
            }
        };
        now.iter().enumerate().map(since).collect()
    }

    /// What a thread did, in events.
    pub fn of_thread(thread: &ThreadRecord, fsync_all: bool) -> Share {
        let mut share = Share::default();
        let is_part = |(class, done): &(&Class, &ThreadClass)| is_event(**class, fsync_all) && done.count > 0;
        for (_, done) in thread.classes.iter().filter(is_part) {
            let (min_ns, max_ns) = share.extremes_ns.unwrap_or((done.min_ns, done.max_ns));
            share = Share {
                events: share.events + done.count,
                event_time_ns: share.event_time_ns + done.sum_ns,
                extremes_ns: Some((min_ns.min(done.min_ns), max_ns.max(done.max_ns))),
            };
        }
        share
    }
}

/// What a report says of every test.
#[derive(Debug, Clone)]
pub struct Rest<'a> {
    /// Latency of every event since the start or the last checkpoint.
    pub events: &'a Histogram,
    /// Time since the start.
    pub total_s: f64,
    /// Each thread's part.
    pub shares: &'a [Share],
    /// Percentile; 0: none.
    pub percentile: u32,
    /// Threads still at an event when the run was cut off.
    pub unfinished: u64,
}

/// A whole report, at the end or at a checkpoint.
#[derive(Debug, Clone)]
pub struct Cumulative<'a> {
    /// What was done since the start or the last checkpoint.
    pub counts: &'a Counts,
    /// Length of that stretch.
    pub interval_s: f64,
    /// Time since the start.
    pub total_s: f64,
    /// Each thread's part.
    pub shares: &'a [Share],
    /// Percentile; 0: none.
    pub percentile: u32,
    /// Threads still at an operation when the run was cut off.
    pub unfinished: u64,
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The percentile of `events` in milliseconds; 0 where there are none.
pub fn percentile_ms(events: &Histogram, percentile: u32) -> f64 {
    match percentile {
        0 => 0.0,
        percentile => milliseconds(events.quantile(f64::from(percentile) / 100.0).unwrap_or(0)),
    }
}

/// The line of `--report-interval`.
pub fn interval_line(counts: &Counts, seconds: f64, percentile: u32) -> String {
    format!(
        "reads: {:4.2} MiB/s writes: {:4.2} MiB/s fsyncs: {:4.2}/s latency (ms,{percentile}%): {:4.3}",
        per_second(counts.bytes_read, seconds) / MEBIBYTE,
        per_second(counts.bytes_written, seconds) / MEBIBYTE,
        per_second(counts.fsyncs, seconds),
        percentile_ms(&counts.events, percentile),
    )
}

/// The report's blocks, from `File operations` to `Threads fairness`.
pub fn print(report: &Cumulative<'_>, log: &mut Log<'_>) {
    let (counts, seconds) = (report.counts, report.interval_s);
    log.notice(format!(
        "\nFile operations:\n    reads/s:                      {:4.2}\n    writes/s:                     {:4.2}\n    \
         fsyncs/s:                     {:4.2}\n\nThroughput:\n    read, MiB/s:                  {:4.2}\n    \
         written, MiB/s:               {:4.2}",
        per_second(counts.reads, seconds),
        per_second(counts.writes, seconds),
        per_second(counts.fsyncs, seconds),
        per_second(counts.bytes_read, seconds) / MEBIBYTE,
        per_second(counts.bytes_written, seconds) / MEBIBYTE,
    ));
    let rest = Rest {
        events: &counts.events,
        total_s: report.total_s,
        shares: report.shares,
        percentile: report.percentile,
        unfinished: report.unfinished,
    };
    print_rest(&rest, log);
}

/// The blocks that every test has, from `General statistics` to `Threads fairness`.
pub fn print_rest(rest: &Rest<'_>, log: &mut Log<'_>) {
    if rest.unfinished > 0 {
        log.notice("");
        log.notice(format!("Number of unfinished transactions on forced shutdown: {}", rest.unfinished));
    }
    log.notice("");
    log.notice("General statistics:");
    log.notice(format!("    total time:                          {:.4}s", rest.total_s));
    log.notice(format!("    total number of events:              {}", rest.events.count()));
    log.notice("");
    print_latency(rest.events, rest.percentile, log);
    print_fairness(rest.shares, log);
}

fn print_latency(events: &Histogram, percentile: u32, log: &mut Log<'_>) {
    log.notice("Latency (ms):");
    log.notice(format!("         min: {:39.2}", milliseconds(events.min().unwrap_or(0))));
    log.notice(format!("         avg: {:39.2}", events.mean().unwrap_or(0.0) / 1e6));
    log.notice(format!("         max: {:39.2}", milliseconds(events.max().unwrap_or(0))));
    match percentile {
        0 => log.notice("         percentile stats:               disabled"),
        _ => log.notice(format!(
            "        {percentile:3}th percentile: {:27.2}",
            percentile_ms(events, percentile)
        )),
    }
    log.notice(format!("         sum: {:39.2}", events.sum() as f64 / 1e6));
    log.notice("");
}

/// Mean and deviation over the threads, around the mean of all (n, not n - 1, in the divisor).
fn spread(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

/// The last block, which 0.4.12 has too.
pub fn print_fairness(shares: &[Share], log: &mut Log<'_>) {
    let (events, events_deviation) = spread(&shares.iter().map(|s| s.events as f64).collect::<Vec<_>>());
    let times: Vec<f64> = shares.iter().map(|s| s.event_time_ns as f64 / 1e9).collect();
    let (time, time_deviation) = spread(&times);
    log.notice("Threads fairness:");
    log.notice(format!("    events (avg/stddev):           {events:.4}/{events_deviation:3.2}"));
    log.notice(format!("    execution time (avg/stddev):   {time:.4}/{time_deviation:3.2}"));
    log.notice("");
}

/// `--debug`: each thread's events.
pub fn print_threads(shares: &[Share], log: &mut Log<'_>) {
    log.debug("Verbose per-thread statistics:\n");
    for (index, share) in shares.iter().enumerate() {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let mean = seconds(share.event_time_ns.checked_div(share.events).unwrap_or(0));
        let latency = match share.extremes_ns {
            Some((min_ns, max_ns)) => {
                format!("min: {:.4}s  avg: {mean:.4}s  max: {:.4}s", seconds(min_ns), seconds(max_ns))
            }
            None => format!("avg: {mean:.4}s"),
        };
        log.debug(format!("    thread #{index:3}: {latency}  events: {}", share.events));
        log.debug(format!(
            "                 total time taken by event execution: {:.4}s",
            seconds(share.event_time_ns)
        ));
    }
    log.notice("");
}

/// `--histogram`: sysbench's slots, but without its clamp at 100 s.
pub fn histogram(events: &Histogram) -> String {
    let per_log = SLOTS / (SLOT_LAST_MS.ln() - SLOT_FIRST_MS.ln());
    let mut slots: BTreeMap<i64, u64> = BTreeMap::new();
    for (bucket, count) in events.nonzero() {
        let middle_ms = (bucket_low(bucket) as f64 + bucket_high(bucket) as f64) / 2e6;
        let slot = ((middle_ms.ln() - SLOT_FIRST_MS.ln()) * per_log).round().max(0.0) as i64;
        *slots.entry(slot).or_default() += count;
    }
    let Some(most) = slots.values().max().copied() else { return String::new() };
    let mut text = String::from("       value  ------------- distribution ------------- count\n");
    for (slot, count) in slots {
        let value_ms = (slot as f64 / per_log + SLOT_FIRST_MS.ln()).exp();
        let stars = "*".repeat((count as f64 * BAR as f64 / most as f64).round() as usize);
        text.push_str(&format!("{value_ms:12.3} |{stars:<BAR$} {count}\n"));
    }
    text
}
