//! Designs from their plans, and back to where an experiment stopped.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::ab::Ab;
use crate::beside::Beside;
use crate::design::Design;
use crate::ladder::Ladder;
use crate::log::Experiment;
use crate::race::Race;
use crate::scale::Scale;
use crate::sweep::Sweep;

/// The design of that name with that plan.
///
/// # Errors
/// A sentence where there is no such design, or the plan is not one of its own or cannot be carried out.
pub fn build(design: &str, plan: &Value) -> Result<Box<dyn Design>, String> {
    match design {
        "ab" => Ok(Box::new(Ab::new(read(design, plan)?)?)),
        "beside" => Ok(Box::new(Beside::new(read(design, plan)?)?)),
        "ladder" => Ok(Box::new(Ladder::new(read(design, plan)?)?)),
        "race" => Ok(Box::new(Race::new(read(design, plan)?)?)),
        "scale" => Ok(Box::new(Scale::new(read(design, plan)?)?)),
        "sweep" => Ok(Box::new(Sweep::new(read(design, plan)?)?)),
        other => Err(format!("no such design: `{other}`")),
    }
}

fn read<T: DeserializeOwned>(design: &str, plan: &Value) -> Result<T, String> {
    T::deserialize(plan).map_err(|error| format!("not a plan of a {design}: {error}"))
}

/// The design of a logged experiment after the trials that were made: ready to go on, or to state its finding.
///
/// # Errors
/// A sentence where [`build`] fails, or where the log names a trial that the plan does not lead to.
pub fn replay(experiment: &Experiment) -> Result<Box<dyn Design>, String> {
    let mut design = build(&experiment.design, &experiment.plan)?;
    for (place, trial) in experiment.trials.iter().enumerate() {
        let proposed = design.propose(trial.left_ns);
        if proposed.as_ref() != Some(trial.proposal()) {
            let planned = proposed.map_or("none".to_string(), |proposal| {
                format!("arm {} in block {}", proposal.arm, proposal.block)
            });
            return Err(format!(
                "the log does not follow the plan: trial {} was arm {} in block {}, the plan has {planned}",
                place + 1,
                trial.proposal().arm,
                trial.proposal().block,
            ));
        }
        design.observe(&trial.observation);
    }
    Ok(design)
}
