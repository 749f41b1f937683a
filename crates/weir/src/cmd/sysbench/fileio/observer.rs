//! What a run prints while it is under way: interval lines and checkpoint reports.

use weir_core::result::record::ThreadRecord;
use weir_core::sysbench::report::{self, Counts, Cumulative, Share};
use weir_core::sysbench::{Log, Settings, legacy};
use weir_core::units::Nanos;
use weir_core::workload::Job;
use weir_io::runner::{Observer, Tick};

/// An operation in flight for as long as this is told of while it lasts: the interval lines of a closed loop show
/// nothing but low rates then, and the latencies of what finished before.
const STALL_NS: u64 = 500_000_000;

/// Prints to the log, and counts what happened since the last checkpoint.
pub struct Reports<'a, 'b> {
    /// Where it prints.
    pub log: &'a mut Log<'b>,
    settings: &'a Settings,
    /// Since the last interval line.
    interval: Stretch,
    /// Since the start or the last checkpoint.
    checkpoint: Stretch,
    /// Threads' totals at the last checkpoint.
    shares_before: Vec<Share>,
    next_line_s: u64,
    checkpoints_left: Vec<u32>,
    checkpoints_done: bool,
}

/// What happened in a stretch of time.
#[derive(Default)]
struct Stretch {
    counts: Counts,
    len_ns: u64,
}

impl Stretch {
    fn add(&mut self, counts: &Counts, len_ns: u64) {
        self.counts.merge(counts);
        self.len_ns += len_ns;
    }

    fn seconds(&self) -> f64 {
        self.len_ns as f64 / 1e9
    }
}

impl<'a, 'b> Reports<'a, 'b> {
    /// Nothing printed yet.
    pub fn new(settings: &'a Settings, log: &'a mut Log<'b>) -> Self {
        let general = &settings.general;
        Reports {
            log,
            settings,
            interval: Stretch::default(),
            checkpoint: Stretch::default(),
            shares_before: Vec::new(),
            next_line_s: u64::from(general.report_interval_s),
            checkpoints_left: general.checkpoints_s.iter().copied().filter(|second| *second > 0).collect(),
            checkpoints_done: false,
        }
    }

    /// The last report: of the whole run, or of what came after the last checkpoint.
    pub fn print_last(&mut self, all: &Counts, elapsed_s: f64, threads: &[ThreadRecord], unfinished: u64) {
        let shares = shares(threads, self.settings.fileio.fsync.all);
        if !self.checkpoints_done {
            self.print_cumulative(all, elapsed_s, elapsed_s, &shares, unfinished);
        } else {
            let since = std::mem::take(&mut self.checkpoint);
            let mine = Share::since(&shares, &self.shares_before);
            self.print_cumulative(&since.counts, since.seconds(), elapsed_s, &mine, unfinished);
        }
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
            report::print(&cumulative, self.log);
        }
        if general.debug {
            report::print_threads(shares, self.log);
        }
    }

    fn print_checkpoint(&mut self, tick: &Tick<'_>) {
        let shares = shares(&(tick.threads)(), self.settings.fileio.fsync.all);
        let since = std::mem::take(&mut self.checkpoint);
        let mine = Share::since(&shares, &self.shares_before);
        let at_s = tick.at_ns as f64 / 1e9;
        self.log.stamped(at_s, "Checkpoint report:");
        self.print_cumulative(&since.counts, since.seconds(), at_s, &mine, 0);
        self.shares_before = shares;
        self.checkpoints_done = true;
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
        self.interval.add(&counts, tick.interval.len_ns);
        self.checkpoint.add(&counts, tick.interval.len_ns);
        // Ticks lie on whole seconds, give or take the time it takes to wake up.
        let second = (tick.at_ns.max(0) as u64 + 500_000_000) / 1_000_000_000;
        let is_whole = tick.interval.len_ns >= 500_000_000;
        if self.next_line_s > 0 && is_whole && second >= self.next_line_s {
            let since = std::mem::take(&mut self.interval);
            let percentile = self.settings.general.percentile;
            let line = report::interval_line(&since.counts, since.seconds(), percentile);
            self.log.stamped(tick.at_ns as f64 / 1e9, &line);
            self.next_line_s += u64::from(self.settings.general.report_interval_s);
        }
        while is_whole && self.checkpoints_left.first().is_some_and(|due| u64::from(*due) <= second) {
            self.checkpoints_left.remove(0);
            self.print_checkpoint(tick);
        }
    }
}

/// Each thread's events.
fn shares(threads: &[ThreadRecord], fsync_all: bool) -> Vec<Share> {
    threads.iter().map(|thread| Share::of_thread(thread, fsync_all)).collect()
}
