//! Knobs as text: what there is, one of them in full, what a transaction does, what is in force by weir, what is
//! kept for the next boot.

mod kept;
mod list;
mod one;
mod transaction;

pub use kept::{persisted, removed};
pub use list::list;
pub use one::{known, one};
pub use transaction::{Change, changes, plan};

use crate::knobs::json::scheduler;
use weir_knobs::plan::range;
use weir_knobs::{Kind, Owner, Reading, Spec, Value};

/// Where explanations begin under the row of a knob.
const EDGE: usize = 6;

/// A value with its unit.
fn value(spec: &Spec, value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => format!("{bytes} bytes"),
        Value::Ratio(percent) => format!("{percent} %"),
        Value::Number(number) if !spec.unit.is_empty() => format!("{number} {}", spec.unit),
        other => other.to_string(),
    }
}

/// What a reading found.
fn found(spec: &Spec, reading: &Reading) -> String {
    match (&reading.value, &reading.unreadable) {
        (Some(held), _) => value(spec, held),
        (None, _) if spec.kind == Kind::Action => "-".to_string(),
        (None, _) => "unreadable".to_string(),
    }
}

/// What a knob takes, of a pair in both units.
fn takes(spec: &Spec, reading: Option<&Reading>, scheduler: Option<&str>) -> String {
    let in_one = |ratio| range(spec, reading, scheduler, ratio);
    match spec.kind {
        Kind::DirtyPair => format!("{}, or {}", in_one(true), in_one(false)),
        _ => in_one(false),
    }
}

/// An owner in words: `sysctl.d, /etc/sysctl.d/99-db.conf:3 sets bytes=15000000`.
fn owner(owner: &Owner) -> String {
    let verb = if owner.kind == Owner::GUARD { "holds it" } else { "sets" };
    let value = if owner.value.is_empty() { String::new() } else { format!(" {verb} {}", owner.value) };
    format!("{}, {}{value}", owner.kind, owner.place)
}

#[cfg(test)]
mod tests;
