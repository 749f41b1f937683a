//! How far each candidate of a race came.

use weir_experiment::{Phase, Role, Study, TrialLog};

/// One candidate.
pub struct Candidate {
    /// Index of its arm.
    pub arm: usize,
    /// Blocks of the race that it ran in.
    pub blocks: u32,
    /// Trials that it ran when the winner was held against the baseline.
    pub confirming: u32,
}

/// Candidates of the race, the longest survivor first; those that were never raced are left out.
pub fn candidates(study: &Study<'_>) -> Vec<Candidate> {
    let count = |arm: usize, phase: Phase| {
        study.of_phase(phase).filter(|t: &&TrialLog| t.proposal().arm == arm).count() as u32
    };
    let all = (0..study.arms.len()).map(|arm| Candidate {
        arm,
        blocks: count(arm, Phase::Race),
        confirming: count(arm, Phase::Confirm),
    });
    let mut raced: Vec<Candidate> = all.filter(|c| c.blocks + c.confirming > 0).collect();
    raced.sort_by_key(|c| std::cmp::Reverse((c.confirming, c.blocks)));
    raced
}

/// What became of a candidate, in words.
pub fn fate(study: &Study<'_>, candidate: &Candidate) -> String {
    let longest = candidates(study).iter().map(|c| c.blocks).max().unwrap_or(0);
    match candidate {
        c if study.role(c.arm) == Role::AsFound => "the yardstick".to_string(),
        c if study.role(c.arm) == Role::Idle => "what the goal refers to".to_string(),
        c if c.confirming > 0 => format!("confirmed in {} trials", c.confirming),
        c if c.blocks < longest => format!("out after block {}", c.blocks),
        _ => "survived".to_string(),
    }
}
