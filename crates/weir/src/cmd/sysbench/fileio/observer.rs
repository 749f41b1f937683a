//! What a run prints while it is under way: interval lines and checkpoint reports.

use weir_core::result::record::ThreadRecord;
use weir_core::units::Nanos;
use weir_core::workload::Job;
use weir_io::runner::{Observer, Tick};
use weir_sysbench::fileio_report::{self, Counts, Cumulative, Share};
use weir_sysbench::stretches::Stretches;
use weir_sysbench::{Log, Settings, legacy};

/// An operation in flight for as long as this is told of while it lasts: the interval lines of a closed loop show
/// nothing but low rates then, and the latencies of what finished before.
const STALL_NS: u64 = 500_000_000;

/// Prints to the log.
pub struct Reports<'a, 'b> {
    /// Where it prints.
    pub log: &'a mut Log<'b>,
    settings: &'a Settings,
    stretches: Stretches<Counts>,
}

impl<'a, 'b> Reports<'a, 'b> {
    /// Nothing printed yet.
    pub fn new(settings: &'a Settings, log: &'a mut Log<'b>) -> Self {
        Reports { log, settings, stretches: Stretches::new(&settings.general) }
    }

    /// The last report: of the whole run, or of what came after the last checkpoint.
    pub fn print_last(&mut self, all: &Counts, elapsed_s: f64, threads: &[ThreadRecord], unfinished: u64) {
        let (since, shares) = self.stretches.rest(&shares(threads, self.settings.fileio.fsync.all));
        let (counts, seconds) =
            since.as_ref().map_or((all, elapsed_s), |since| (&since.counts, since.seconds()));
        self.print_cumulative(counts, seconds, elapsed_s, &shares, unfinished);
    }

    fn print_cumulative(
        &mut self,
        counts: &Counts,
        interval_s: f64,
        total_s: f64,
        shares: &[Share],
        unfinished: u64,
    ) {
        let general = &self.settings.general;
        let cumulative =
            Cumulative { counts, interval_s, total_s, shares, percentile: general.percentile, unfinished };
        if general.legacy_report {
            legacy::print(&cumulative, self.log);
        } else {
            fileio_report::print(&cumulative, self.log);
        }
        if general.debug {
            fileio_report::print_threads(shares, self.log);
        }
    }

    fn print_checkpoint(&mut self, tick: &Tick<'_>) {
        let now = shares(&(tick.threads)(), self.settings.fileio.fsync.all);
        let (since, shares) = self.stretches.checkpoint(now);
        let at_s = tick.at_ns as f64 / 1e9;
        self.log.stamped(at_s, "Checkpoint report:");
        self.print_cumulative(&since.counts, since.seconds(), at_s, &shares, 0);
    }
}

impl Observer for Reports<'_, '_> {
    fn started(&mut self, _job: &Job) {
        for index in 0..self.settings.general.threads {
            self.log.debug(format!("Worker thread (#{index}) started"));
            self.log.debug(format!("Worker thread (#{index}) initialized"));
        }
        let legacy = self.settings.general.legacy_report;
        self.log.notice(if legacy { "Threads started!" } else { "Threads started!\n" });
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        if self.settings.general.extra && tick.interval.oldest_ns >= STALL_NS {
            let (at_s, age) = (tick.at_ns as f64 / 1e9, Nanos(tick.interval.oldest_ns));
            self.log
                .console
                .err(&format!("weir: [ {at_s:.0}s ] an operation has been in flight for {age}\n"));
        }
        let bytes = |class| tick.interval.classes.get(&class).map_or(0, |measured| measured.bytes);
        let counts = Counts::of_tick(tick.latencies, &bytes, self.settings.fileio.fsync.all);
        let due = self.stretches.add(&counts, tick.at_ns, tick.interval.len_ns);
        if due.line {
            let since = self.stretches.line();
            let percentile = self.settings.general.percentile;
            let line = fileio_report::interval_line(&since.counts, since.seconds(), percentile);
            self.log.stamped(tick.at_ns as f64 / 1e9, &line);
        }
        for _ in 0..due.checkpoints {
            self.print_checkpoint(tick);
        }
    }
}

/// Each thread's events.
fn shares(threads: &[ThreadRecord], fsync_all: bool) -> Vec<Share> {
    threads.iter().map(|thread| Share::of_thread(thread, fsync_all)).collect()
}
