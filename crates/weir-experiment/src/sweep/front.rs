//! The trade-off between two axes: which arms are worth a thought, and where the curve bends.

use crate::effects::{EffectJudge, Wanted};
use crate::finding::{ArmSummary, Judgement};
use crate::goal::Goal;
use crate::measures::Metric;

/// A curve that spans less than this share of its best on an axis does not bend: what is left is noise.
const SPAN_MIN: f64 = 0.09;
/// A height above the chord, of a curve that is 1 high and wide, below which there is no bend.
const BEND_MIN: f64 = 0.05;
/// Neighbours that lie this near the knee's distance from the chord belong to it.
const PLATEAU: f64 = 0.95;

/// Arms that no other arm beats on every axis by more than noise, in the order given.
pub(super) fn front(
    judge: &EffectJudge<'_>,
    goal: &Goal,
    arms: &[ArmSummary],
    candidates: &[usize],
    axes: &[Metric],
) -> Vec<usize> {
    let measured: Vec<usize> = candidates
        .iter()
        .copied()
        .filter(|arm| axes.iter().all(|axis| arms[*arm].values.contains_key(axis)))
        .collect();
    let better_by_points = |arm: usize, than: usize| {
        axes.iter().all(|axis| {
            let gain = goal.gain(axis, &arms[arm].values, &arms[than].values);
            gain.is_some_and(|gain| gain > 0.0)
        })
    };
    let rivals = |than: usize| measured.iter().copied().filter(move |arm| better_by_points(*arm, than));
    let wanted: Vec<Wanted> = measured
        .iter()
        .flat_map(|from| rivals(*from).map(|to| (*from, to)))
        .flat_map(|(from, to)| axes.iter().map(move |metric| Wanted { from, to, metric: metric.clone() }))
        .collect();
    let effects = judge.each(&wanted);
    let beaten = |arm: usize| {
        let duels = effects.chunks(axes.len().max(1)).filter(|duel| duel[0].from == arm);
        duels.into_iter().any(|duel| duel.iter().all(|effect| effect.judgement == Judgement::Better))
    };
    measured.iter().copied().filter(|arm| !beaten(*arm)).collect()
}

/// The arm of the front farthest from the chord between the front's ends; of neighbours about as far the middle one.
/// Each axis is the share of the best on it, scaled to the same length: logarithms would let arms that are starved
/// anyway decide where those that matter bend. `None` without two axes and two arms.
pub(super) fn knee(goal: &Goal, arms: &[ArmSummary], front: &[usize], axes: &[Metric]) -> Option<usize> {
    let [x, y] = axes else { return None };
    if front.len() < 2 {
        return None;
    }
    let along = |axis: &Metric| -> Option<Vec<f64>> {
        let values: Vec<f64> =
            front.iter().map(|arm| arms[*arm].values.get(axis).copied()).collect::<Option<_>>()?;
        let more = goal.more_is_better(axis);
        // Not by gains over an arm: those of arms many times better than it end at one limit and look alike.
        let merits: Vec<f64> =
            values.iter().map(|v| if more { *v } else { 1.0 / v.max(f64::MIN_POSITIVE) }).collect();
        let best = merits[greatest(&merits)?];
        (best > 0.0).then(|| merits.iter().map(|merit| merit / best).collect())
    };
    let (x, y) = (unit_span(&along(x)?), unit_span(&along(y)?));
    let heights: Vec<f64> = match (x, y) {
        (Some(x), Some(y)) => above_chord(&x, &y)?,
        // Where one axis hardly changes, the other alone decides.
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => return None,
    };
    let top = greatest(&heights)?;
    (heights[top] > BEND_MIN).then(|| front[plateau_centre(&heights, top)])
}

/// How far each point lies above the line between the best in `y` and the best in `x`; where one point is the best in
/// both, that one does.
fn above_chord(x: &[f64], y: &[f64]) -> Option<Vec<f64>> {
    let (a, b) = (greatest(y)?, greatest(x)?);
    if a == b {
        return Some((0..x.len()).map(|i| if i == a { 1.0 } else { 0.0 }).collect());
    }
    let (dx, dy) = (x[b] - x[a], y[b] - y[a]);
    let height = |i: usize| (dx * (y[i] - y[a]) - dy * (x[i] - x[a])) / dx.hypot(dy);
    Some((0..x.len()).map(height).collect())
}

/// The middle of the neighbours about as high as the top, itself included.
fn plateau_centre(heights: &[f64], top: usize) -> usize {
    let high = |i: &usize| heights[*i] >= PLATEAU * heights[top];
    let first = (0..=top).rev().take_while(high).last().unwrap_or(top);
    let last = (top..heights.len()).take_while(high).last().unwrap_or(top);
    let (low, up) = ((first + last) / 2, (first + last).div_ceil(2));
    if heights[up] > heights[low] { up } else { low }
}

/// Values moved and scaled to 0..1; `None` where they span too little to say anything.
fn unit_span(values: &[f64]) -> Option<Vec<f64>> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let span = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least;
    (span >= SPAN_MIN).then(|| values.iter().map(|value| (value - least) / span).collect())
}

fn greatest(values: &[f64]) -> Option<usize> {
    (0..values.len()).max_by(|i, j| values[*i].total_cmp(&values[*j]))
}
