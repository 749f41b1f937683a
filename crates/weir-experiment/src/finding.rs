//! What an experiment found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measures::Metric;
use crate::scale::ScalabilityLaw;
use weir_core::stats::bootstrap::RatioInterval;
use weir_knobs::Setting;
use weir_oltp::limits::Tested;

/// What an experiment found. Derived from its log, and can be derived again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The answer in a sentence.
    pub headline: String,
    /// What to do, if anything.
    pub recommendation: Recommendation,
    /// Each arm in figures, in the order of the arms.
    pub arms: Vec<ArmSummary>,
    /// Comparisons made, with intervals adjusted for their number (Holm).
    pub effects: Vec<Effect>,
    /// Sweep: indices of arms that no other arm beats on both axes, in the knob's order.
    pub front: Vec<usize>,
    /// Sweep: the arm at the knee of the front. Scale: the arm with the fewest connections that do nearly as well as the best.
    pub knee: Option<usize>,
    /// Scale: the law that the rates per second follow, where one describes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<ScalabilityLaw>,
    /// A/B: what a verdict had said of the change, and what the change did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<Tested>,
    /// Sentences: costs, what was not found, doubts, how each step of a ladder is to be read.
    pub remarks: Vec<String>,
}

/// What to do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Recommendation {
    /// Not enough was measured to say anything.
    #[default]
    None,
    /// The baseline settings are as good as any that was tried, or better.
    Keep {
        /// Why.
        why: String,
    },
    /// These settings are better, by the interval of the headline effect.
    Change {
        /// Index of the arm.
        arm: usize,
        /// Its settings.
        settings: Vec<Setting>,
        /// What it costs on the other axis, in a sentence.
        cost: String,
        /// What it means for durability, in a sentence.
        durability: String,
        /// How exactly the settings are restored, in a sentence.
        reversibility: String,
    },
    /// No arm meets the goal's bounds.
    Infeasible {
        /// What the best of them reaches.
        why: String,
    },
}

/// One arm in figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// Its label.
    pub label: String,
    /// Trials that ran to their end.
    pub trials: u32,
    /// Trials aborted or failed.
    pub spoilt: u32,
    /// Mean over trials.
    pub values: BTreeMap<Metric, f64>,
    /// 95 % intervals of those means; absent with too few units.
    pub intervals: BTreeMap<Metric, (f64, f64)>,
}

/// How one arm differs from another in one figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Index of the arm compared with.
    pub from: usize,
    /// Index of the arm.
    pub to: usize,
    /// The figure.
    pub metric: Metric,
    /// `to / from` with its 95 % interval, adjusted for the number of comparisons; `null` with too few units.
    pub ratio: Option<RatioInterval>,
    /// Pairs or units it stands on.
    pub units: u32,
    /// What it says.
    pub judgement: Judgement,
}

/// What an effect says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The interval excludes 1, in favour of `to`.
    Better,
    /// The interval excludes 1, in favour of `from`.
    Worse,
    /// The interval covers 1: no difference that this data can show.
    NoDifference,
    /// There is no interval.
    Unknown,
}

/// The comparison of two arms in a figure, where it was made.
pub(crate) fn effect_of<'a>(
    effects: &'a [Effect],
    from: usize,
    to: usize,
    metric: &Metric,
) -> Option<&'a Effect> {
    effects.iter().find(|e| e.from == from && e.to == to && e.metric == *metric)
}
