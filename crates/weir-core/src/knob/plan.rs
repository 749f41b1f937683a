//! From wanted settings to an ordered transaction, or to all the reasons why not.

use serde::{Deserialize, Serialize};

use crate::knob::{KnobName, Setting, Value};

/// A transaction: writes in order, and what else they touch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// In the order of writing.
    pub steps: Vec<Step>,
    /// Knobs that a step resets without being asked to, with the values they have now: journaled and restored too.
    pub touched: Vec<Setting>,
}

/// One knob led from its value to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The knob.
    pub knob: KnobName,
    /// Its value now.
    pub from: Value,
    /// The value wanted.
    pub to: Value,
}

/// Why a setting cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{setting}: {why}")]
pub struct Refusal {
    /// What was asked for.
    pub setting: String,
    /// The reason, with path, value and allowed range.
    pub why: String,
    /// What may help.
    pub hint: Option<String>,
}
