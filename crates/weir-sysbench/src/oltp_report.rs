//! sysbench's report of a database run.

use std::collections::BTreeMap;

use super::fileio_report::{Rest, Share, percentile_ms, print_rest};
use super::log::Log;
use weir_core::stats::Histogram;
use weir_oltp::kind::Tally;
use weir_oltp::record::ConnectionRecord;
use weir_oltp::{Kind, OltpRecord};

/// What was done in a stretch of time.
#[derive(Debug, Clone, Default)]
pub struct SqlCounts {
    /// Statements that returned rows.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// All other statements.
    pub other: u64,
    /// Errors after which an event ran again.
    pub errors: u64,
    /// Connections made again.
    pub reconnects: u64,
    /// Latency of every event.
    pub events: Histogram,
}

impl SqlCounts {
    /// Adds the latencies of a kind.
    pub fn add(&mut self, kind: Kind, latency: &Histogram) {
        let count = latency.count();
        match kind.tally() {
            None => self.events.merge(latency),
            Some(Tally::Read) => self.reads += count,
            Some(Tally::Write) => self.writes += count,
            Some(Tally::Other) => self.other += count,
        }
    }

    /// Adds what another stretch counted.
    pub fn merge(&mut self, other: &SqlCounts) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.other += other.other;
        self.errors += other.errors;
        self.reconnects += other.reconnects;
        self.events.merge(&other.events);
    }

    /// What one tick measured. `errors` holds those that led to a new connection, which sysbench counts apart.
    pub fn of_tick(latencies: &BTreeMap<Kind, Histogram>, errors: u64, reconnects: u64) -> SqlCounts {
        let errors = errors.saturating_sub(reconnects);
        let mut counts = SqlCounts { errors, reconnects, ..SqlCounts::default() };
        for (kind, latency) in latencies {
            counts.add(*kind, latency);
        }
        counts
    }

    /// All that a run measured.
    pub fn of_record(record: &OltpRecord) -> SqlCounts {
        let errors: u64 = record.ignored_errors.values().sum();
        let errors = errors.saturating_sub(record.reconnects);
        let mut counts = SqlCounts { errors, reconnects: record.reconnects, ..SqlCounts::default() };
        for (kind, measured) in &record.kinds {
            counts.add(*kind, &measured.latency);
        }
        counts
    }

    /// Statements.
    pub fn queries(&self) -> u64 {
        self.reads + self.writes + self.other
    }
}

/// One connection's events; its shortest and longest are not known apart.
pub fn share(connection: &ConnectionRecord) -> Share {
    Share { events: connection.transactions, event_time_ns: connection.busy_ns, ..Share::default() }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// The line of `--report-interval`.
pub fn interval_line(counts: &SqlCounts, threads: u32, seconds: f64, percentile: u32) -> String {
    let rate = |count| per_second(count, seconds);
    format!(
        "thds: {threads} tps: {:4.2} qps: {:4.2} (r/w/o: {:4.2}/{:4.2}/{:4.2}) lat (ms,{percentile}%): {:4.2} err/s: \
         {:4.2} reconn/s: {:4.2}",
        rate(counts.events.count()),
        rate(counts.queries()),
        rate(counts.reads),
        rate(counts.writes),
        rate(counts.other),
        percentile_ms(&counts.events, percentile),
        rate(counts.errors),
        rate(counts.reconnects),
    )
}

/// The line of `--report-interval` of a script that uses no database.
pub fn interval_line_without_sql(counts: &SqlCounts, threads: u32, seconds: f64, percentile: u32) -> String {
    format!(
        "thds: {threads} eps: {:4.2} lat (ms,{percentile}%): {:4.2}",
        per_second(counts.events.count(), seconds),
        percentile_ms(&counts.events, percentile),
    )
}

/// The second line of `--report-interval` with `--rate`.
pub fn queue_line(queued: u64, running: u64) -> String {
    format!("queue length: {queued}, concurrency: {running}")
}

/// The block `SQL statistics`.
pub fn print_statistics(counts: &SqlCounts, seconds: f64, log: &mut Log<'_>) {
    log.notice("SQL statistics:");
    log.notice("    queries performed:");
    for (name, count) in [("read:", counts.reads), ("write:", counts.writes), ("other:", counts.other)] {
        log.notice(format!("        {name:<33}{count}"));
    }
    log.notice(format!("        {:<33}{}", "total:", counts.queries()));
    for (name, count) in [
        ("transactions:", counts.events.count()),
        ("queries:", counts.queries()),
        ("ignored errors:", counts.errors),
        ("reconnects:", counts.reconnects),
    ] {
        log.notice(format!("    {name:<37}{count:<6} ({:.2} per sec.)", per_second(count, seconds)));
    }
}

/// The report's blocks; a script that uses no database has no `SQL statistics`.
pub fn print(counts: &SqlCounts, seconds: f64, has_sql: bool, rest: &Rest<'_>, log: &mut Log<'_>) {
    if has_sql {
        print_statistics(counts, seconds, log);
    }
    print_rest(rest, log);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Kept;

    /// Two transactions of `oltp_read_write` in half a second.
    fn counts() -> SqlCounts {
        let histogram = |n: u64| {
            let mut histogram = Histogram::new();
            (0..n).for_each(|_| histogram.record(1_000_000));
            histogram
        };
        let mut counts = SqlCounts { errors: 1, ..SqlCounts::default() };
        for (kind, n) in [
            (Kind::Transaction, 2),
            (Kind::PointSelect, 20),
            (Kind::Read, 8),
            (Kind::IndexUpdate, 2),
            (Kind::Write, 6),
            (Kind::Begin, 2),
            (Kind::Other, 2),
        ] {
            counts.add(kind, &histogram(n));
        }
        counts
    }

    #[test]
    fn the_report_reads_as_sysbenchs() {
        let counts = counts();
        let mut kept = Kept::default();
        let rest = Rest { events: &counts.events, total_s: 0.5, shares: &[], percentile: 0, unfinished: 0 };
        print(&counts, 0.5, true, &rest, &mut Log::new(&mut kept));
        let expected = "SQL statistics:\n    queries performed:\n        read:                            28\n        \
                        write:                           8\n        other:                           4\n        \
                        total:                           40\n    transactions:                        2      \
                        (4.00 per sec.)\n    queries:                             40     (80.00 per sec.)\n    \
                        ignored errors:                      1      (2.00 per sec.)\n    \
                        reconnects:                          0      (0.00 per sec.)\n\nGeneral statistics:\n";
        assert!(kept.out.starts_with(expected), "{}", kept.out);
        assert!(kept.out.contains("    total number of events:              2\n"), "{}", kept.out);
    }

    #[test]
    fn interval_lines_read_as_sysbenchs() {
        assert_eq!(
            interval_line(&counts(), 4, 0.5, 0),
            "thds: 4 tps: 4.00 qps: 80.00 (r/w/o: 56.00/16.00/8.00) lat (ms,0%): 0.00 err/s: 2.00 reconn/s: 0.00"
        );
        assert_eq!(interval_line_without_sql(&counts(), 4, 0.5, 0), "thds: 4 eps: 4.00 lat (ms,0%): 0.00");
        assert_eq!(queue_line(3, 1), "queue length: 3, concurrency: 1");
    }
}
