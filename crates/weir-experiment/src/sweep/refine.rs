//! Where the goal's bound lies between two values of the grid: values between them, and what is not worth more time.

use super::SweepPlan;
use crate::Arm;
use crate::design::Observation;
use crate::finding::ArmSummary;
use crate::goal::Bases;
use weir_knobs::{Setting, Value};

/// Neighbours nearer than this factor need nothing between them.
const NEAR: f64 = 1.2;
/// Most values put between two neighbours after the first block, after the second, and after the third: means of few
/// trials move, and with them the neighbours that the bound lies between.
pub(super) const ADDED: [usize; 3] = [2, 1, 1];
/// All together.
pub(super) const ADDED_MAX: usize = ADDED[0] + ADDED[1] + ADDED[2];
/// What it was where a plan does not say: its record must lead to the same trials again.
const ADDED_UNSAID: [usize; 2] = [2, 1];
/// Trials of an arm that must all miss a bound by far before it is left out.
const TRIALS_MIN: usize = 2;
/// By far: half of what the bound asks for, or twice what it allows.
const FAR: f64 = std::f64::consts::LN_2;

/// Values to add after so many whole blocks, between the neighbours on either side of the goal's bounds; of several
/// such pairs, those where the eligible one is the best. With the index of the neighbour that misses the bounds.
pub(super) fn added(plan: &SweepPlan, arms: &[ArmSummary], blocks: usize) -> Option<(usize, Vec<Arm>)> {
    let most = *plan.added.get(blocks.checked_sub(1)?)?;
    let bases = bases(plan, arms);
    let found = &arms[plan.found()?].values;
    let eligible = |arm: usize| arms[arm].spoilt == 0 && plan.goal.eligible(&arms[arm].values, &bases);
    let score = |arm: usize| plan.goal.score(&arms[arm].values, found).unwrap_or(f64::NEG_INFINITY);
    let grid = plan.grid();
    let across = grid.windows(2).filter_map(|pair| match (eligible(pair[0]), eligible(pair[1])) {
        (true, false) => Some((pair[0], pair[1])),
        (false, true) => Some((pair[1], pair[0])),
        _ => None,
    });
    let (keeps, misses) = across.max_by(|a, b| score(a.0).total_cmp(&score(b.0)))?;
    let (a, b) = (limit(&plan.arms[keeps])?, limit(&plan.arms[misses])?);
    let arms =
        between(a.min(b), a.max(b), most).into_iter().map(|bytes| with_limit(&plan.arms[keeps], bytes));
    let arms: Vec<Arm> = arms.collect();
    (!arms.is_empty()).then_some((misses, arms))
}

/// For plans of records that do not say how many values may be added.
pub(super) fn unsaid() -> Vec<usize> {
    ADDED_UNSAID.to_vec()
}

/// Values of the grid that missed a bound by far in every trial, of which there must be two at least.
pub(super) fn hopeless(plan: &SweepPlan, arms: &[ArmSummary], trials: &[Observation]) -> Vec<usize> {
    let bases = bases(plan, arms);
    let far = |trial: &&Observation| {
        let measures = trial.outcome.measured();
        let margin = |bound: &crate::Bound| bound.margin(&measures?.values, &bases);
        plan.goal.bounds.iter().filter_map(margin).any(|margin| margin < -FAR)
    };
    let hopeless = |arm: &usize| {
        let of_arm: Vec<&Observation> = trials.iter().filter(|trial| trial.proposal.arm == *arm).collect();
        of_arm.len() >= TRIALS_MIN && of_arm.iter().all(far)
    };
    plan.grid().into_iter().filter(hopeless).collect()
}

fn bases<'a>(plan: &SweepPlan, arms: &'a [ArmSummary]) -> Bases<'a> {
    let of = |arm: Option<usize>| arm.map(|arm| &arms[arm].values);
    Bases { idle: of(plan.idle()), found: of(plan.found()) }
}

/// Bytes that an arm of one setting sets.
pub(super) fn limit(arm: &Arm) -> Option<u64> {
    match arm.settings.as_slice() {
        [Setting { value: Value::Bytes(bytes), .. }] => Some(*bytes),
        _ => None,
    }
}

fn with_limit(like: &Arm, bytes: u64) -> Arm {
    let mut arm = like.clone();
    arm.settings.iter_mut().for_each(|setting| setting.value = Value::Bytes(bytes));
    arm.label = arm.settings.iter().map(ToString::to_string).collect();
    arm
}

/// At most so many values at equal factors between two, of two digits, none nearer to a neighbour than it needs to be.
fn between(low: u64, high: u64, most: usize) -> Vec<u64> {
    let factor = high as f64 / (low.max(1)) as f64;
    let wanted = (1..=most).rev().find(|n| factor.powf(1.0 / *n as f64) > NEAR).unwrap_or(0);
    let values = (1..=wanted).map(|i| low as f64 * factor.powf(i as f64 / (wanted + 1) as f64));
    let mut values: Vec<u64> = values.map(two_digits).filter(|value| low < *value && *value < high).collect();
    values.dedup();
    values
}

/// A number of bytes to two digits.
fn two_digits(bytes: f64) -> u64 {
    let unit = 10f64.powf(bytes.max(1.0).log10().floor() - 1.0);
    ((bytes / unit).round() * unit).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_between_are_round_and_apart() {
        assert_eq!(between(7_900_000, 16_000_000, 2), [10_000_000, 13_000_000]);
        assert_eq!(between(10_000_000, 13_000_000, 2), [11_000_000]);
        assert_eq!(between(13_000_000, 16_000_000, 1), [14_000_000]);
        assert_eq!(between(13_000_000, 15_000_000, 1), [] as [u64; 0]);
        assert_eq!(between(1, 2, 2), [] as [u64; 0]);
    }
}
