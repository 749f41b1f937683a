//! An experiment ready to begin.

use serde_json::Value;
use weir_experiment::{Arm, Design, Goal};
use weir_knobs::KnobName;

use super::{knobs, usage};

/// An experiment ready to begin.
pub struct Planned {
    /// `sweep`, `ladder`, `ab` or `race`.
    pub name: &'static str,
    /// The design's own plan.
    pub plan: Value,
    /// Its arms as far as they are known.
    pub arms: Vec<Arm>,
    /// The knobs that it turns.
    pub knobs: Vec<KnobName>,
    /// What it is to improve.
    pub goal: Goal,
    /// What is known from the start, and helps to read what will be found.
    pub notes: Vec<String>,
    /// What weakens it from the start.
    pub remarks: Vec<String>,
    /// What is decided only by what is measured.
    pub unfolds: Option<String>,
}

/// The plan of a design, once that design has taken it.
pub fn planned(
    name: &'static str,
    plan: &impl serde::Serialize,
    arms: Vec<Arm>,
    goal: Goal,
) -> anyhow::Result<Planned> {
    let (plan, knobs) = (serde_json::to_value(plan)?, knobs::of_arms(&arms));
    let planned =
        Planned { name, plan, arms, knobs, goal, notes: Vec::new(), remarks: Vec::new(), unfolds: None };
    build(&planned)?;
    Ok(planned)
}

/// The design of a plan, nothing tried yet.
pub fn build(planned: &Planned) -> anyhow::Result<Box<dyn Design>> {
    weir_experiment::build(planned.name, &planned.plan).map_err(|why| usage(why, "see `weir tune --help`"))
}
