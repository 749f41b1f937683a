//! What a run of a script prints while it is under way: interval lines and checkpoint reports, or what the script's
//! own hooks make of them.

use weir_core::units::Nanos;
use weir_db::runner::{Observer, Tick};
use weir_db::script::{Events, State};
use weir_io::runner::Stop;
use weir_oltp::record::{ConnectionRecord, ServerRecord};
use weir_sysbench::fileio_report::{Rest, Share, histogram, print_threads};
use weir_sysbench::oltp_report::{self, SqlCounts};
use weir_sysbench::stretches::Stretches;
use weir_sysbench::{General, Log};

/// From here on a statement in flight is told of while it lasts.
const STALL_NS: u64 = 500_000_000;

/// Prints to the log.
pub struct Reports<'a, 'b> {
    /// Where it prints.
    pub log: &'a mut Log<'b>,
    general: &'a General,
    state: &'a State,
    events: &'a Events,
    stop: &'a Stop,
    stretches: Stretches<SqlCounts>,
}

/// A whole report.
struct Whole<'a> {
    counts: &'a SqlCounts,
    interval_s: f64,
    total_s: f64,
    shares: &'a [Share],
    unfinished: u64,
}

impl<'a, 'b> Reports<'a, 'b> {
    /// Nothing printed yet.
    pub fn new(
        general: &'a General,
        state: &'a State,
        events: &'a Events,
        stop: &'a Stop,
        log: &'a mut Log<'b>,
    ) -> Self {
        Reports { log, general, state, events, stop, stretches: Stretches::new(general) }
    }

    /// The last report: of the whole run, or of what came after the last checkpoint.
    pub fn print_last(
        &mut self,
        all: &SqlCounts,
        total_s: f64,
        threads: &[ConnectionRecord],
        unfinished: u64,
    ) {
        if self.general.histogram {
            self.log.notice("Latency histogram (values are in milliseconds)");
            self.log.raw(&histogram(&all.events));
            self.log.notice(" ");
        }
        let (since, shares) = self.stretches.rest(&shares(threads));
        let (counts, interval_s) =
            since.as_ref().map_or((all, total_s), |since| (&since.counts, since.seconds()));
        self.print_whole(&Whole { counts, interval_s, total_s, shares: &shares, unfinished });
    }

    fn print_whole(&mut self, whole: &Whole<'_>) {
        if self.state.has_hook("report_cumulative") {
            let events = &whole.counts.events;
            let seconds = |ns: f64| ns / 1e9;
            let mut figures = self.figures(whole.counts, whole.interval_s, whole.total_s);
            figures.extend([
                ("latency_min", seconds(events.min().unwrap_or(0) as f64)),
                ("latency_max", seconds(events.max().unwrap_or(0) as f64)),
                ("latency_avg", seconds(events.mean().unwrap_or(0.0))),
                ("latency_sum", seconds(events.sum() as f64)),
            ]);
            self.report("report_cumulative", &figures);
            return;
        }
        let rest = Rest {
            events: &whole.counts.events,
            total_s: whole.total_s,
            shares: whole.shares,
            percentile: self.general.percentile,
            unfinished: whole.unfinished,
        };
        oltp_report::print(whole.counts, whole.interval_s, self.events.used_sql(), &rest, self.log);
        if self.general.debug {
            print_threads(whole.shares, self.log);
        }
    }

    fn report(&mut self, hook: &str, figures: &[(&str, f64)]) {
        if let Err(error) = self.state.report(hook, figures) {
            self.log.fatal(error.to_string());
        }
    }

    /// What hooks are told, in sysbench's names and units: times in seconds.
    fn figures(&self, counts: &SqlCounts, interval_s: f64, total_s: f64) -> Vec<(&'static str, f64)> {
        let percentile = f64::from(self.general.percentile) / 100.0;
        let latency_ns = counts.events.quantile(percentile).filter(|_| percentile > 0.0).unwrap_or(0);
        vec![
            ("threads_running", f64::from(self.general.threads)),
            ("time_interval", interval_s),
            ("time_total", total_s),
            ("latency_pct", latency_ns as f64 / 1e9),
            ("events", counts.events.count() as f64),
            ("reads", counts.reads as f64),
            ("writes", counts.writes as f64),
            ("other", counts.other as f64),
            ("errors", counts.errors as f64),
            ("reconnects", counts.reconnects as f64),
        ]
    }

    fn print_interval(&mut self, tick: &Tick<'_>) {
        let since = self.stretches.line();
        let (at_s, seconds, running) = (tick.at_ns as f64 / 1e9, since.seconds(), tick.interval.in_flight);
        if self.state.has_hook("report_intermediate") {
            let mut figures = self.figures(&since.counts, seconds, at_s);
            figures.extend([("queue_length", tick.queued as f64), ("concurrency", f64::from(running))]);
            self.report("report_intermediate", &figures);
            return;
        }
        let line = match self.events.used_sql() {
            true => oltp_report::interval_line,
            false => oltp_report::interval_line_without_sql,
        };
        let general = self.general;
        self.log.stamped(at_s, &line(&since.counts, general.threads, seconds, general.percentile));
        if general.rate > 0 {
            self.log.stamped(at_s, &oltp_report::queue_line(tick.queued, u64::from(running)));
        }
    }

    fn print_checkpoint(&mut self, at_s: f64, threads: &[ConnectionRecord]) {
        let (since, shares) = self.stretches.checkpoint(shares(threads));
        self.log.stamped(at_s, "Checkpoint report:");
        self.print_whole(&Whole {
            counts: &since.counts,
            interval_s: since.seconds(),
            total_s: at_s,
            shares: &shares,
            unfinished: 0,
        });
    }
}

fn shares(threads: &[ConnectionRecord]) -> Vec<Share> {
    threads.iter().map(oltp_report::share).collect()
}

impl Observer for Reports<'_, '_> {
    fn started(&mut self, _server: &ServerRecord) {
        self.log.notice("Threads started!\n");
    }

    fn tick(&mut self, tick: &Tick<'_>) {
        if self.general.extra && tick.interval.oldest_ns >= STALL_NS && self.stop.requested().is_none() {
            let (at_s, age) = (tick.at_ns as f64 / 1e9, Nanos(tick.interval.oldest_ns));
            self.log.console.err(&format!("weir: [ {at_s:.0}s ] an event has been under way for {age}\n"));
        }
        let counts = SqlCounts::of_tick(tick.latencies, tick.ignored_errors, tick.reconnects);
        let due = self.stretches.add(&counts, tick.at_ns, tick.interval.len_ns);
        if due.line {
            self.print_interval(tick);
        }
        for _ in 0..due.checkpoints {
            self.print_checkpoint(tick.at_ns as f64 / 1e9, &(tick.threads)());
        }
    }
}
