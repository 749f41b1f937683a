//! Experiments: which trials to make, in which order, and what follows from them.
//!
//! A [`Design`] proposes one trial at a time, is told what came of it, and states a [`Finding`] at any moment. It is
//! pure: the same plan and the same outcomes give the same proposals, so that an experiment that was killed goes on
//! from its record, and an old one can be judged anew.
#![forbid(unsafe_code)]

pub mod ab;
pub mod arm;
pub mod beside;
pub mod derive;
pub mod design;
pub mod effects;
pub mod finding;
pub mod goal;
pub mod ladder;
pub mod log;
pub mod measures;
pub mod plan;
#[cfg(test)]
mod properties;
pub mod prune;
pub mod race;
pub mod replay;
pub mod scale;
mod schedule;
pub mod simulate;
pub mod space;
pub mod study;
pub mod sweep;
#[cfg(any(test, feature = "samples"))]
pub mod synthetic;
mod words;

pub use ab::{Ab, AbPlan, Claim};
pub use arm::{Arm, CommandSpec, Counted, Transactions, Workload};
pub use beside::Beside;
pub use design::{Design, Observation, Outcome, Phase, Proposal};
pub use finding::{ArmSummary, Effect, Finding, Judgement, Recommendation};
pub use goal::{BadGoal, Base, Bases, Bound, Goal, Limit};
pub use ladder::Ladder;
pub use log::{Conduct, Experiment, TrialLog, Washout};
pub use measures::{Figures, Measures, Metric, Second};
pub use plan::ArmsPlan;
pub use race::{Race, RacePlan};
pub use replay::{build, count_alike, replay};
pub use scale::{ScalabilityLaw, Scale};
pub use study::{Role, Study, TimeUsed};
pub use sweep::{Sweep, SweepPlan};
