//! What a race is to do.

use serde::{Deserialize, Serialize};

use crate::arm::{Arm, Workload};
use crate::goal::Goal;
use crate::prune::Space;
use crate::space::Dimension;
use weir_knobs::Setting;

/// A race over some knobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RacePlan {
    /// What every trial runs.
    pub workload: Workload,
    /// Floods beside it, as typed.
    pub floods: Vec<String>,
    /// The knobs with their ranges.
    pub dimensions: Vec<Dimension>,
    /// Sentences on knobs that were left out.
    pub left_out: Vec<String>,
    /// Candidates of the user's own, beside those that the race makes.
    pub given: Vec<Vec<Setting>>,
    /// What is better.
    pub goal: Goal,
    /// Whether a goal that refers to the idle machine has it measured as often as the baseline, and in each turn of the
    /// confirmation. Logs of earlier versions have it once, before all else.
    #[serde(default)]
    pub idle_in_turn: bool,
    /// Seed of every random choice.
    pub seed: u64,
    /// Measured time of a trial; it is halved where the budget is short.
    pub duration_ns: u64,
    /// Sizes and bars.
    pub rules: Rules,
}

/// Sizes and bars of a race.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// Candidates of the first block, the baseline and those given included.
    pub candidates: usize,
    /// Knobs that go into the race; where there are more, they are screened first.
    pub knobs: usize,
    /// Generations of new candidates near the best ones.
    pub generations: usize,
    /// Pairs of trials that confirm the winner.
    pub pairs: usize,
    /// How much better the winner must be at least (0.05: 5 %), by the lower end of its interval.
    pub gain: f64,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { candidates: 16, knobs: 4, generations: 10, pairs: 10, gain: 0.05 }
    }
}

impl RacePlan {
    /// A race with the usual rules over a pruned space.
    pub fn new(workload: Workload, floods: Vec<String>, space: Space, goal: Goal, seed: u64) -> RacePlan {
        RacePlan {
            workload,
            floods,
            dimensions: space.dimensions,
            left_out: space.left_out,
            given: Vec::new(),
            goal,
            idle_in_turn: true,
            seed,
            duration_ns: 10_000_000_000,
            rules: Rules::default(),
        }
    }

    /// What is wrong with it.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.dimensions.is_empty() {
            let why = self.left_out.join("; ");
            return Err(format!("a race needs a knob that may be changed here: {why}"));
        }
        if self.goal.weights.is_empty() {
            return Err("a race needs a goal, such as `max rate`".to_string());
        }
        if self.goal.needs_idle() && self.floods.is_empty() {
            return Err("the goal refers to the idle machine, but the plan has no flood".to_string());
        }
        let rules = self.rules;
        if rules.candidates < 4 || rules.pairs < 5 || rules.knobs == 0 || self.duration_ns == 0 {
            return Err("a race needs 4 candidates, 5 pairs, a knob and a duration at least".to_string());
        }
        Ok(())
    }

    /// The workload under some settings.
    pub(super) fn arm(&self, settings: Vec<Setting>) -> Arm {
        let names: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let label = if names.is_empty() { "baseline".to_string() } else { names.join(" ") };
        let (workload, floods) = (self.workload.clone(), self.floods.clone());
        Arm { label, settings, workload, floods, guarded: false }
    }

    /// The workload without floods.
    pub(super) fn idle(&self) -> Arm {
        Arm { label: "idle".to_string(), floods: Vec::new(), ..self.arm(Vec::new()) }
    }
}
