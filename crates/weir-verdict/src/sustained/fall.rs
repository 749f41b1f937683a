//! Finds where the rate of a load falls once from one level to a lower one and stays there: what a spent credit and a
//! full write cache look like. Noise, single stalls, slow starts and slow declines are none of these.
//!
//! The cut is the one that explains most of the variance (the single change point of least squares, as binary
//! segmentation takes it: Scott and Knott, Biometrics 30 (1974)); it counts as a fall only if both sides are levels
//! that lie apart and the rate goes from one to the other at once.

use serde::{Deserialize, Serialize};

use super::course::{Done, median, quantile, rates, smooth, spread};

/// What must hold for a fall to be one. Fewer intervals say less, so that they must be clearer.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Fewest intervals before and after.
    before_min: usize,
    after_min: usize,
    /// Least ratio of the levels.
    ratio: f64,
    /// The low end of the level before over the high end of the one after, at least.
    apart: f64,
    /// Largest spread of each level.
    spread_max: f64,
    /// Standard deviations of the rate that the levels lie apart, at least. Noise with a memory makes levels of its own,
    /// but not that far apart.
    deviations: f64,
    /// Share of the fall that happens at once.
    at_once: f64,
    /// Share of the squares left by a straight line that two levels leave at most. A line through two levels leaves a
    /// quarter of the variance at least, two levels through a line as much.
    of_a_line: f64,
}

impl Bounds {
    /// In fewer intervals no fall is found.
    pub fn intervals_min(&self) -> usize {
        self.before_min + self.after_min + 1
    }
}

/// A run of a minute or more that was made to find a fall.
pub const LONG: Bounds = Bounds {
    before_min: 6,
    after_min: 12,
    ratio: 1.3,
    apart: 1.1,
    spread_max: 0.35,
    deviations: 6.0,
    at_once: 0.7,
    of_a_line: 0.5,
};
/// A step of seconds that was made for something else.
pub const SHORT: Bounds = Bounds {
    before_min: 3,
    after_min: 4,
    ratio: 1.8,
    apart: 1.25,
    spread_max: 0.12,
    deviations: 4.0,
    at_once: 0.8,
    of_a_line: 0.25,
};

/// A fall of the rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fall {
    /// The first interval after it. The one before may be mixed.
    #[serde(skip)]
    pub at: usize,
    /// When, since the load began.
    pub at_ns: u64,
    /// Operations per second before: the median.
    pub before: f64,
    /// Operations per second after.
    pub after: f64,
}

/// The fall in a course, if there is one.
pub fn find(course: &[Done], bounds: &Bounds) -> Option<Fall> {
    let rates = rates(course);
    if rates.len() < bounds.intervals_min() {
        return None;
    }
    let clipped = clipped(&rates);
    let at = cut(&clipped, bounds)?;
    let (before, after) = levels(course, at);
    let fall = Fall { at, at_ns: course[at].start_ns, before: median(&before), after: median(&after) };
    // Fewer intervals hold fewer independent values.
    let deviations = bounds.deviations * (1.0 + 40.0 / rates.len() as f64);
    // A level this even is a limit, whatever the load did above it: processors share a machine, a limit does not.
    let is_even = after.len() >= EVEN_MIN && spread(&after) <= EVEN;
    let far = fall.before - fall.after >= deviations * deviation(&before).max(deviation(&after));
    let clear = fall.before >= bounds.ratio * fall.after
        && quantile(&before, 0.1) >= bounds.apart * quantile(&after, 0.9)
        && (is_even || far && spread(&before) <= bounds.spread_max)
        && spread(&after) <= bounds.spread_max;
    (clear && at_once(&rates, &fall, bounds) && stays(course, &fall) && no_decline(&clipped, at, bounds))
        .then_some(fall)
}

/// Spread of a level that is even, and the intervals that show it.
const EVEN: f64 = 0.05;
const EVEN_MIN: usize = 8;

/// By the quartiles, which are 1.349 standard deviations apart in a normal distribution: stalls do not count.
fn deviation(values: &[f64]) -> f64 {
    (quantile(values, 0.75) - quantile(values, 0.25)) / 1.349
}

/// Peaks are cut, so that one of them does not make a level.
fn clipped(rates: &[f64]) -> Vec<f64> {
    let peak = quantile(rates, 0.9) * 1.5;
    rates.iter().map(|rate| rate.min(peak)).collect()
}

/// Where two levels explain most.
fn cut(clipped: &[f64], bounds: &Bounds) -> Option<usize> {
    let (n, total) = (clipped.len(), clipped.iter().sum::<f64>());
    let mut sum = 0.0;
    let mut best: Option<(f64, usize)> = None;
    for at in 1..=n.saturating_sub(bounds.after_min) {
        sum += clipped[at - 1];
        let difference = sum / at as f64 - (total - sum) / (n - at) as f64;
        let gain = (at * (n - at)) as f64 * difference.max(0.0).powi(2);
        if at >= bounds.before_min && gain > best.map_or(0.0, |(gain, _)| gain) {
            best = Some((gain, at));
        }
    }
    best.map(|(_, at)| at)
}

/// Rates on both sides, as they are once the load has started and without the intervals at the cut.
fn levels(course: &[Done], at: usize) -> (Vec<f64>, Vec<f64>) {
    let before = &course[(at / 4).min(8)..at.saturating_sub(1).max(1)];
    let after = &course[(at + 1).min(course.len() - 1)..];
    let level = |part: &[Done]| if part.len() >= 24 { smooth(part) } else { rates(part) };
    (level(before), level(after))
}

/// Most of the fall lies between the few intervals beside the cut: a decline is none.
fn at_once(rates: &[f64], fall: &Fall, bounds: &Bounds) -> bool {
    let few = (rates.len() / 20).clamp(2, 8);
    let from = fall.at.saturating_sub(1 + few);
    let before = median(&rates[from..fall.at.saturating_sub(1).max(from + 1)]);
    let after = median(&rates[fall.at + 1..(fall.at + 1 + few).min(rates.len())]);
    before - after >= bounds.at_once * (fall.before - fall.after)
}

/// Two levels explain the course better than a steady decline does. One interval at the cut is mixed and does not count.
fn no_decline(clipped: &[f64], at: usize, bounds: &Bounds) -> bool {
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let about = |part: &[f64], middle: f64| part.iter().map(|rate| (rate - middle).powi(2)).sum::<f64>();
    let levels: f64 = [&clipped[..at], &clipped[at..]].into_iter().map(|part| about(part, mean(part))).sum();
    let (middle, middle_x) = (mean(clipped), (clipped.len() - 1) as f64 / 2.0);
    let from_middle = || clipped.iter().enumerate().map(|(x, rate)| (x as f64 - middle_x, rate - middle));
    let (xy, xx) = from_middle().fold((0.0, 0.0), |(xy, xx), (x, y)| (xy + x * y, xx + x * x));
    let off = |index: usize, part: &[f64]| (clipped[index] - mean(part)).powi(2);
    let mixed = off(at - 1, &clipped[..at]).max(off(at, &clipped[at..]));
    levels - mixed <= bounds.of_a_line * (about(clipped, middle) - xy * xy / xx)
}

/// Neither a short dip nor a further decline: each third of what follows is at the level. Pairs of intervals, because a
/// limit that the kernel keeps by slices of time alternates in intervals that are no multiple of them.
fn stays(course: &[Done], fall: &Fall) -> bool {
    let after = &course[fall.at + 1..];
    let pairs: Vec<f64> =
        after.chunks_exact(2).map(|pair| f64::midpoint(pair[0].rate(), pair[1].rate())).collect();
    let third = (pairs.len() / 3).max(1);
    pairs.chunks(third).filter(|part| part.len() == third).all(|part| {
        let level = median(part);
        level >= fall.after * 0.8 && level <= fall.after * 1.2
    })
}
