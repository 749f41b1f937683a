//! The plan of designs whose arms are all known from the start and all run equally often: ladder, scale, beside.

use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::goal::Goal;
use crate::schedule::{Schedule, shuffled};
use weir_core::stats::random::Random;

/// Arms, and how they are tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmsPlan {
    /// In the order that the design gives a meaning to.
    pub arms: Vec<Arm>,
    /// How often each is run; percentiles have intervals from five on.
    pub repeats: u32,
    /// Measured time of a trial.
    pub duration_ns: u64,
    /// Abort a trial when an operation is outstanding longer than this.
    #[serde(default)]
    pub abort_age_ns: Option<u64>,
    /// Seed of the order of trials and of the resamples.
    pub seed: u64,
    /// What is to improve.
    pub goal: Goal,
}

impl ArmsPlan {
    /// Refuses a plan by which nothing is measured; `what` is its design in the sentence.
    pub(super) fn check(&self, what: &str) -> Result<(), String> {
        if self.repeats == 0 || self.duration_ns == 0 {
            return Err(format!("{what} needs at least one repeat, and trials that last"));
        }
        Ok(())
    }

    /// Trials in these blocks of arms.
    pub(super) fn schedule(&self, blocks: Vec<Vec<usize>>) -> Schedule {
        Schedule::new(blocks, self.duration_ns, self.abort_age_ns)
    }

    /// Trials in blocks of all arms, each block in an order of its own.
    pub(super) fn shuffled(&self) -> Schedule {
        let mut random = Random::new(self.seed);
        let all: Vec<usize> = (0..self.arms.len()).collect();
        self.schedule((0..self.repeats).map(|_| shuffled(&mut random, all.clone())).collect())
    }
}
