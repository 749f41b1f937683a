//! The order of a transaction.

use super::conflict::{LOW_HIGH, comparable};
use super::{Step, sibling};
use crate::{Value, catalog};

/// Steps by rank, and within a rank as they were asked for; of two limits, whichever first keeps the lower below
/// the upper at every moment.
pub fn ordered(mut steps: Vec<Step>) -> Vec<Step> {
    steps.sort_by_key(|step| catalog::spec(&step.knob).map_or(0, |spec| spec.rank));
    for (low, high) in LOW_HIGH {
        for index in 0..steps.len() {
            if catalog::spec(&steps[index].knob).is_none_or(|spec| spec.setting != high) {
                continue;
            }
            let low = sibling(&steps[index].knob, low);
            let Some(other) = steps.iter().position(|step| step.knob == low) else { continue };
            if (other < index) != is_lowered(&steps[index]) {
                steps.swap(index, other);
            }
        }
    }
    steps
}

/// Whether a limit goes down. From a share of memory to bytes it is taken to: that way writers are spared.
fn is_lowered(step: &Step) -> bool {
    match comparable(&step.from, &step.to) {
        Some((from, to)) => to < from,
        None => matches!(step.to, Value::Bytes(_)),
    }
}
