//! When interval lines and checkpoint reports of a run are due, and what was counted since the last of each.

use super::General;
use super::fileio_report::{Counts, Share};
use super::oltp_report::SqlCounts;

/// A tick shorter than this is what was left at the end of a run, and ends nothing.
const WHOLE_NS: u64 = 500_000_000;

/// What is counted in a stretch of time.
pub trait Tally: Default {
    /// Adds what another stretch counted.
    fn merge(&mut self, other: &Self);
}

impl Tally for Counts {
    fn merge(&mut self, other: &Counts) {
        Counts::merge(self, other);
    }
}

impl Tally for SqlCounts {
    fn merge(&mut self, other: &SqlCounts) {
        SqlCounts::merge(self, other);
    }
}

/// What happened in a stretch of time.
#[derive(Debug, Default)]
pub struct Stretch<C> {
    /// What was counted.
    pub counts: C,
    len_ns: u64,
}

impl<C: Tally> Stretch<C> {
    fn add(&mut self, counts: &C, len_ns: u64) {
        self.counts.merge(counts);
        self.len_ns += len_ns;
    }

    /// Its length.
    pub fn seconds(&self) -> f64 {
        self.len_ns as f64 / 1e9
    }
}

/// What is to be printed after a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// An interval line.
    pub line: bool,
    /// So many checkpoint reports.
    pub checkpoints: usize,
}

/// The stretches of a run.
#[derive(Debug)]
pub struct Stretches<C> {
    interval: Stretch<C>,
    interval_s: u64,
    next_line_s: u64,
    checkpoint: Stretch<C>,
    checkpoints_left: Vec<u32>,
    /// Threads' totals at the last checkpoint.
    shares_before: Vec<Share>,
    checkpoints_done: bool,
}

impl<C: Tally> Stretches<C> {
    /// Nothing counted yet.
    pub fn new(general: &General) -> Self {
        let interval_s = u64::from(general.report_interval_s);
        Stretches {
            interval: Stretch::default(),
            interval_s,
            next_line_s: interval_s,
            checkpoint: Stretch::default(),
            checkpoints_left: general.checkpoints_s.iter().copied().filter(|second| *second > 0).collect(),
            shares_before: Vec::new(),
            checkpoints_done: false,
        }
    }

    /// Adds what a tick counted, and says what it makes due.
    pub fn add(&mut self, counts: &C, at_ns: i64, len_ns: u64) -> Due {
        self.interval.add(counts, len_ns);
        self.checkpoint.add(counts, len_ns);
        if len_ns < WHOLE_NS {
            return Due { line: false, checkpoints: 0 };
        }
        // Ticks lie on whole seconds, give or take the time it takes to wake up.
        let second = (at_ns.max(0) as u64 + 500_000_000) / 1_000_000_000;
        let line = self.next_line_s > 0 && second >= self.next_line_s;
        // Lines that were missed, as the process was stopped, are not made up for.
        while line && self.next_line_s <= second {
            self.next_line_s += self.interval_s;
        }
        let checkpoints = self.checkpoints_left.iter().take_while(|due| u64::from(**due) <= second).count();
        self.checkpoints_left.drain(..checkpoints);
        Due { line, checkpoints }
    }

    /// What happened since the last interval line.
    pub fn line(&mut self) -> Stretch<C> {
        std::mem::take(&mut self.interval)
    }

    /// What happened since the last checkpoint, to all and to each thread, whose totals are `now` these.
    pub fn checkpoint(&mut self, now: Vec<Share>) -> (Stretch<C>, Vec<Share>) {
        let since = Share::since(&now, &self.shares_before);
        self.shares_before = now;
        self.checkpoints_done = true;
        (std::mem::take(&mut self.checkpoint), since)
    }

    /// The same at the end of the run; without checkpoints there is no stretch but the whole run.
    pub fn rest(&mut self, now: &[Share]) -> (Option<Stretch<C>>, Vec<Share>) {
        let rest = self.checkpoints_done.then(|| std::mem::take(&mut self.checkpoint));
        (rest, Share::since(now, &self.shares_before))
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::{Request, parse};
    use super::super::log::{Kept, Log};
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Events(u64);

    impl Tally for Events {
        fn merge(&mut self, other: &Events) {
            self.0 += other.0;
        }
    }

    fn stretches(options: &str) -> Stretches<Events> {
        let words: Vec<String> = format!("{options} --file-test-mode=rndwr fileio run")
            .split_whitespace()
            .map(String::from)
            .collect();
        let mut kept = Kept::default();
        match parse(&words, &|_| Err(String::new()), &mut Log::new(&mut kept)) {
            Ok(Request::Run(settings)) => Stretches::new(&settings.general),
            other => panic!("{other:?}"),
        }
    }

    /// After each of five ticks of a second, each of which counts one event: is a line due, how many checkpoints.
    fn due(options: &str) -> Vec<(bool, usize)> {
        let mut stretches = stretches(options);
        let tick = |second: i64| stretches.add(&Events(1), second * 1_000_000_000 + 40_000, 1_000_000_000);
        (1..=5).map(tick).map(|due| (due.line, due.checkpoints)).collect()
    }

    #[test]
    fn lines_and_checkpoints_come_when_they_are_due() {
        let (no, line) = ((false, 0), (true, 0));
        for (options, expected) in [
            ("", [no; 5]),
            ("--report-interval=2", [no, line, no, line, no]),
            ("--report-checkpoints=2,3,9", [no, (false, 1), (false, 1), no, no]),
            ("--report-checkpoints=0,5 --report-interval=5", [no, no, no, no, (true, 1)]),
        ] {
            assert_eq!(due(options), expected, "{options}");
        }
        // A tick that comes late makes up for what it missed; what is left of a second at the end ends nothing.
        let mut late = stretches("--report-checkpoints=1,2 --report-interval=1");
        assert_eq!(late.add(&Events(1), 2_100_000_000, 2_100_000_000), Due { line: true, checkpoints: 2 });
        assert_eq!(late.add(&Events(1), 2_400_000_000, 300_000_000), Due { line: false, checkpoints: 0 });
        // One that was stopped for a while goes on where its lines were due anyway.
        let mut stopped = stretches("--report-interval=10");
        let mut tick = |second: i64, len_s: u64| {
            stopped.add(&Events(1), second * 1_000_000_000, len_s * 1_000_000_000).line
        };
        let ticks = [(10, 10), (47, 37), (48, 1), (49, 1), (50, 1), (51, 1)];
        assert_eq!(ticks.map(|(at, len)| tick(at, len)), [true, true, false, false, true, false]);
    }

    #[test]
    fn each_report_counts_from_the_one_before() {
        let share = |events: u64| Share { events, ..Share::default() };
        let mut stretches = stretches("--report-interval=1 --report-checkpoints=2");
        assert!(stretches.rest(&[share(3)]).0.is_none(), "without checkpoints it is the whole run");
        stretches.add(&Events(5), 1_000_000_000, 1_000_000_000);
        assert_eq!(stretches.line().counts, Events(5));
        stretches.add(&Events(7), 2_000_000_000, 1_000_000_000);
        assert_eq!(stretches.line().counts, Events(7));
        let (since, shares) = stretches.checkpoint(vec![share(12)]);
        assert_eq!((since.counts, since.len_ns, shares[0].events), (Events(12), 2_000_000_000, 12));
        stretches.add(&Events(1), 2_500_000_000, 500_000_000);
        let (rest, shares) = stretches.rest(&[share(13)]);
        assert_eq!((rest.unwrap().counts, shares[0].events), (Events(1), 1));
    }
}
