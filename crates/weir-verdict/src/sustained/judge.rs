//! From the courses of one kind of writes to what limits them, and how sure that is.

use super::course::{
    Done, excess, median, operations, quantile, rates, seconds as seconds_of, smooth, spread,
};
use super::fall::{self, Fall, LONG, SHORT};
use super::{Courses, Endurance, Figure, Kind, LimitUnit, Pressure, Sure};
use crate::mean_interval::half_width;
use weir_core::units::Bytes;

/// How far a rate may lie from the sustained one and still be the same level.
const SAME: f64 = 0.15;
/// The same where two measurements that do not depend on each other confirm a conclusion.
const CONFIRMED: f64 = 0.2;
/// Shares of what the sustained rate would have brought back in the idle time: less is nothing, more is a refill.
const NOTHING: f64 = 0.15;
const REFILLED: f64 = 0.3;
/// Rate of reads over the sustained one up to which reads are limited too.
const READS_LIMITED: f64 = 1.3;
/// A rate this even over seconds is more like a limit than like a device.
const EVEN: f64 = 0.02;
/// Time at the start of a run in which what a bucket has regained since the last one is spent.
const SPENT_S: f64 = 0.75;
/// Points of a course in a report.
const POINTS_MOST: usize = 480;

/// Says what the writes of one kind can keep up.
pub fn judge(pressure: Pressure, courses: &Courses) -> Endurance {
    let drain = &courses.drain;
    let fall = fall::find(drain, &LONG);
    let sustained = match &fall {
        Some(fall) => level(&drain[(fall.at + 1).min(drain.len())..]),
        None => level(drain),
    };
    let low = sustained.value;
    let reads = steady_rate(&courses.reads).map(|rate| rate <= low * READS_LIMITED);
    let idle_ns = if reads == Some(false) { courses.idle_of_writes_ns } else { courses.idle_ns };
    let back = Back::of(&courses.again, low, fall.map(|fall| fall.before), idle_ns);
    let (kind, sure) = conclude(fall.as_ref(), back.as_ref(), low, reads);
    let limited = kind != Kind::Steady || spread(&smooth(drain)) <= EVEN;
    let unit = limited.then(|| unit(pressure, &courses.other, low)).flatten();
    let found = Found { fall, back, sustained, kind, sure, unit, reads, idle_ns };
    found.endurance(pressure, courses)
}

/// What was concluded, with rates still in operations.
struct Found {
    fall: Option<Fall>,
    back: Option<Back>,
    sustained: Figure,
    kind: Kind,
    sure: Sure,
    unit: Option<LimitUnit>,
    reads: Option<bool>,
    idle_ns: u64,
}

impl Found {
    fn endurance(self, pressure: Pressure, courses: &Courses) -> Endurance {
        let (block, _) = pressure.blocks();
        let factor = if self.unit == Some(LimitUnit::Bytes) { block as f64 } else { 1.0 };
        let drain = &courses.drain;
        let until = self.fall.map_or(drain.len(), |fall| fall.at);
        let is_bucket = self.kind == Kind::TokenBucket;
        let back = self.back.filter(|_| is_bucket);
        let burst = match self.fall {
            Some(fall) => Some(burst(drain, &fall)),
            None => back.as_ref().map(|back| Figure { value: back.high, low: back.high, high: back.high }),
        };
        let idle_s = self.idle_ns as f64 / 1e9;
        let refill = back.as_ref().filter(|_| idle_s > 0.0).map(|back| {
            let margin = self.half() * back.seconds / idle_s;
            around(back.excess / idle_s, margin).times(factor)
        });
        let credit = (is_bucket || self.kind == Kind::Fell && self.fall.is_some())
            .then(|| self.credit(courses, block));
        Endurance {
            pressure,
            block: Bytes(block),
            measurement: format!("sustained-{}", pressure.name()),
            kind: self.kind,
            sure: self.sure,
            unit: self.unit,
            burst: burst.map(|burst| burst.times(factor)),
            sustained: self.sustained.times(factor),
            refilled_whole: back.is_some_and(|back| whole(&back, self.fall.as_ref(), drain, &self.sustained)),
            credit: credit.map(|credit| credit.times(factor)),
            refill,
            burst_ns: self.fall.map(|fall| fall.at_ns),
            written: Bytes(operations(&drain[..until]) * block),
            elapsed_ns: drain.iter().map(|done| done.len_ns).sum(),
            idle_ns: self.idle_ns,
            p50_ns: self.fall.map(|fall| (p50(&drain[..fall.at]), p50(&drain[fall.at..]))),
            reads_limited: self.reads.filter(|_| self.kind != Kind::Steady),
            course: points(drain),
            course_again: points(&courses.again),
        }
    }

    /// Half of the interval of the sustained rate.
    fn half(&self) -> f64 {
        (self.sustained.high - self.sustained.low) / 2.0
    }

    /// The credit when weir began: what was done beyond the sustained rate, the test file's writing included. An
    /// interval after the cut belongs to it, for the one at the cut is mixed.
    fn credit(&self, courses: &Courses, block: u64) -> Figure {
        let burst = self
            .fall
            .map_or(&courses.drain[..0], |fall| &courses.drain[..(fall.at + 2).min(courses.drain.len())]);
        let (bytes, time_s) = courses.written_before;
        let (written, time_s) = match self.unit {
            Some(LimitUnit::Bytes) => (bytes as f64 / block as f64, time_s),
            Some(LimitUnit::Operations) => (bytes as f64 / f64::from(1 << 20), time_s),
            None => (0.0, 0.0),
        };
        let before = (written - self.sustained.value * time_s).max(0.0);
        let spent = excess(burst, self.sustained.value) + before;
        let time_s = seconds_of(burst) + if before > 0.0 { time_s } else { 0.0 };
        around(spent, self.half() * time_s)
    }
}

/// The run after the idle time.
#[derive(Debug, Clone, Copy)]
struct Back {
    /// Rate at its start.
    high: f64,
    /// Operations beyond the sustained rate until it fell back.
    excess: f64,
    /// How long that took.
    seconds: f64,
    /// The rate after it fell back; absent where it did not.
    low: Option<f64>,
    /// Whether the course itself has a clear fall.
    clear: bool,
    /// What the sustained rate would have done in the idle time.
    expected: f64,
}

impl Back {
    fn of(again: &[Done], low: f64, burst: Option<f64>, idle_ns: u64) -> Option<Back> {
        let rates = rates(again);
        if rates.len() < 6 || idle_ns == 0 || low <= 0.0 {
            return None;
        }
        let found = fall::find(again, &SHORT);
        let first = median(&rates[..3]);
        let high = found.map_or(first, |fall| fall.before);
        let between = (burst.unwrap_or(high).max(low * 1.3) * low).sqrt();
        let fell = rates.windows(3).position(|three| median(three) < between);
        let part = &again[..fell.map_or(again.len(), |at| (at + 2).min(again.len()))];
        let after = fell.map(|at| &again[(at + 1).min(again.len())..]).filter(|rest| rest.len() >= 3);
        Some(Back {
            high,
            excess: excess(part, low),
            seconds: seconds_of(part),
            low: after.map(|rest| operations(rest) as f64 / seconds_of(rest).max(1e-9)),
            clear: found.is_some(),
            expected: low * idle_ns as f64 / 1e9,
        })
    }

    fn is_at(&self, level: f64, within: f64) -> bool {
        self.low.is_some_and(|low| (low / level - 1.0).abs() <= within)
    }
}

fn conclude(fall: Option<&Fall>, back: Option<&Back>, low: f64, reads: Option<bool>) -> (Kind, Sure) {
    let returned = back.filter(|back| {
        back.excess >= REFILLED * back.expected
            && back.is_at(low, SAME)
            && (fall.is_some() || back.clear && back.high >= low * LONG_RATIO)
    });
    let nothing = back.is_some_and(|back| back.excess < NOTHING * back.expected && back.is_at(low, 0.5));
    match (fall, returned) {
        (_, Some(back)) => {
            let agrees = (back.excess / back.expected - 1.0).abs() <= CONFIRMED;
            (
                Kind::TokenBucket,
                if agrees && back.is_at(low, CONFIRMED / 2.0) { Sure::Certain } else { Sure::Likely },
            )
        }
        (Some(_), None) if nothing && reads == Some(false) => (Kind::WriteCache, Sure::Likely),
        (Some(_), None) => (Kind::Fell, Sure::Unexplained),
        (None, None) => {
            let same = back.is_some_and(|back| (back.high / low - 1.0).abs() <= SAME);
            (Kind::Steady, if same { Sure::Certain } else { Sure::Likely })
        }
    }
}

/// Least ratio of burst and sustained rate, as in a drain.
const LONG_RATIO: f64 = 1.3;

/// Whether the idle time brought back all there can be: then it says no more than how much.
fn whole(back: &Back, fall: Option<&Fall>, drain: &[Done], sustained: &Figure) -> bool {
    let Some(fall) = fall else { return false };
    let credit = excess(&drain[..(fall.at + 2).min(drain.len())], sustained.value);
    back.excess >= 0.9 * credit && back.excess < 0.85 * back.expected
}

/// Which of two limits it is: with operations of the other size, the same operations per second or the same bytes.
fn unit(pressure: Pressure, other: &[Done], low: f64) -> Option<LimitUnit> {
    let (block, other_block) = pressure.blocks();
    let ratio = steady_rate(other).filter(|rate| *rate > 0.0)? / low;
    // 0 where operations stay the same, 1 where bytes do.
    let place = ratio.ln() / (block as f64 / other_block as f64).ln();
    match place {
        p if p.abs() <= 0.2 => Some(LimitUnit::Operations),
        p if (p - 1.0).abs() <= 0.2 => Some(LimitUnit::Bytes),
        _ => None,
    }
}

/// The rate of a short run once it has spent what came back before it.
fn steady_rate(course: &[Done]) -> Option<f64> {
    let len = course.first()?.seconds().max(1e-3);
    let rest = course.get((SPENT_S / len).ceil() as usize..)?;
    (rest.len() >= 2).then(|| operations(rest) as f64 / seconds_of(rest).max(1e-9))
}

/// A level: the mean, with the interval of its seconds.
fn level(course: &[Done]) -> Figure {
    let mean = operations(course) as f64 / seconds_of(course).max(1e-9);
    around(mean, half_width(&smooth(course)).unwrap_or(0.0))
}

/// The level before a fall: the mean of the intervals near their median, for a start or a stall is not the limit.
fn burst(drain: &[Done], fall: &Fall) -> Figure {
    let all = rates(&drain[..fall.at.saturating_sub(1).max(1)]);
    let near: Vec<f64> = all.into_iter().filter(|rate| (rate / fall.before - 1.0).abs() <= 0.1).collect();
    let mean = near.iter().sum::<f64>() / near.len().max(1) as f64;
    around(mean, half_width(&near).unwrap_or(0.0))
}

fn around(value: f64, half: f64) -> Figure {
    Figure { value, low: (value - half).max(0.0), high: value + half }
}

fn p50(course: &[Done]) -> u64 {
    let all: Vec<f64> = course.iter().map(|done| done.p50_ns as f64).filter(|ns| *ns > 0.0).collect();
    quantile(&all, 0.5) as u64
}

fn points(course: &[Done]) -> Vec<(f64, f64)> {
    let together = course.len().div_ceil(POINTS_MOST).max(1);
    let point =
        |part: &[Done]| (part[0].start_ns as f64 / 1e9, operations(part) as f64 / seconds_of(part).max(1e-9));
    course.chunks(together).map(point).collect()
}
