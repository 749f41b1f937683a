//! One value after the other, each read back.

use std::time::Duration;

use weir_knobs::{KnobName, Value, catalog};

use super::KnobError;
use super::dirty::Descent;
use super::place::Place;
use super::refusal::refused;
use crate::host::Host;

/// The kernel takes a value at once. What it does beyond that in the same call is not waited for: this process may hold the journal's lock.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes one value after the other, and reads each back.
pub(super) fn lead_through(host: &Host, knob: &KnobName, steps: &[Value]) -> Result<(), KnobError> {
    let place = Place::of(&host.tree, knob)?;
    let mut descent = Descent::of(steps.len());
    for value in steps {
        if steps.len() > 1 {
            descent.before(host, value);
        }
        place.write_within(&host.tree, value, PATIENCE).map_err(|error| refused(host, knob, value, error))?;
        accept(knob, value, &place.read(&host.tree)?)?;
    }
    Ok(())
}

/// Whether what reads back is what was written, as far as the kernel keeps it exactly.
pub(super) fn accept(knob: &KnobName, wrote: &Value, reads: &Value) -> Result<(), KnobError> {
    let tolerance = catalog::spec(knob).map_or(0, |spec| spec.tolerance);
    let is_near = match (wrote, reads) {
        (Value::Number(wrote), Value::Number(reads)) => wrote.abs_diff(*reads) <= tolerance.unsigned_abs(),
        _ => wrote == reads,
    };
    if is_near {
        return Ok(());
    }
    Err(KnobError::NotTaken { knob: knob.clone(), wrote: wrote.clone(), reads: reads.clone() })
}
