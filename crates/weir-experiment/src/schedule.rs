//! Blocks of trials in a fixed order, within the time there is: what sweep, ladder and A/B have in common.

use crate::design::{Observation, Phase, Proposal};
use weir_core::stats::random::Random;

/// A block of these arms in an order of its own, so that what drifts with time falls on no arm in particular.
pub(super) fn shuffled(random: &mut Random, mut arms: Vec<usize>) -> Vec<usize> {
    random.shuffle(&mut arms);
    arms
}

/// A fixed order of trials, and how far it came.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    /// Arms of each block, in the order of their trials.
    blocks: Vec<Vec<usize>>,
    /// Measured time of each trial.
    duration_ns: u64,
    /// When a trial is aborted.
    abort_age_ns: Option<u64>,
    /// The next trial: its block and its place there.
    next: (usize, usize),
    /// Proposed and not yet observed, with the time that was left then.
    outstanding: Option<(Proposal, u64)>,
    /// The arm that ran last and the time that was left before it: the time left after it says what it took.
    last: Option<(usize, u64)>,
    /// The longest that a trial of each arm took, washout included.
    longest_ns: Vec<u64>,
    /// Whether the last answer was that there is no time for more.
    out_of_time: bool,
    /// What came of the trials.
    pub(super) observations: Vec<Observation>,
}

impl Schedule {
    pub(super) fn new(blocks: Vec<Vec<usize>>, duration_ns: u64, abort_age_ns: Option<u64>) -> Schedule {
        let arms = blocks.iter().flatten().max().map_or(0, |last| last + 1);
        Schedule {
            blocks,
            duration_ns,
            abort_age_ns,
            next: (0, 0),
            outstanding: None,
            last: None,
            longest_ns: vec![0; arms],
            out_of_time: false,
            observations: Vec::new(),
        }
    }

    /// The next trial. A block is begun only if there is time for all of it, by what its trials took before.
    pub(super) fn propose(&mut self, left_ns: u64) -> Option<Proposal> {
        if let Some((proposal, _)) = &self.outstanding {
            return (left_ns >= self.duration_ns).then(|| proposal.clone());
        }
        if let Some((arm, before_ns)) = self.last.take() {
            self.longest_ns[arm] = self.longest_ns[arm].max(before_ns.saturating_sub(left_ns));
        }
        let (block, place) = self.next;
        let order = self.blocks.get(block)?;
        let needed_ns = if place == 0 { self.expected_ns(order) } else { self.duration_ns };
        self.out_of_time = left_ns < needed_ns;
        if self.out_of_time {
            return None;
        }
        let proposal = Proposal {
            arm: order[place],
            block: block as u32,
            phase: Phase::Measure,
            duration_ns: self.duration_ns,
            abort_age_ns: self.abort_age_ns,
        };
        self.outstanding = Some((proposal.clone(), left_ns));
        Some(proposal)
    }

    /// Takes what came of the trial proposed last; anything else is not its own and is left out.
    pub(super) fn observe(&mut self, observation: &Observation) {
        match self.outstanding.take() {
            Some((proposal, left_ns)) if proposal == observation.proposal => {
                self.last = Some((proposal.arm, left_ns));
                self.observations.push(observation.clone());
                let (block, place) = self.next;
                let at_the_end = place + 1 == self.blocks[block].len();
                self.next = if at_the_end { (block + 1, 0) } else { (block, place + 1) };
            }
            other => self.outstanding = other,
        }
    }

    pub(super) fn remaining(&self) -> usize {
        let (block, place) = self.next;
        let left: usize = self.blocks.iter().skip(block).map(Vec::len).sum();
        if self.out_of_time { 0 } else { left - place.min(left) }
    }

    /// Blocks of which every trial was made.
    pub(super) fn whole_blocks(&self) -> usize {
        self.next.0
    }

    /// Blocks that were planned.
    pub(super) fn planned_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Ends the schedule with the block that it stands at the beginning of.
    pub(super) fn end_here(&mut self) {
        self.blocks.truncate(self.next.0);
    }

    /// Makes other blocks of what is not begun yet. Arms without a trial so far are taken to last as long as `like`.
    pub(super) fn go_on_with(&mut self, blocks: Vec<Vec<usize>>, like: usize) {
        self.blocks.truncate(self.next.0);
        self.blocks.extend(blocks);
        let arms = self.blocks.iter().flatten().max().map_or(0, |last| last + 1);
        if arms > self.longest_ns.len() {
            let longest_ns = self.longest_ns.get(like).copied().unwrap_or(0);
            self.longest_ns.resize(arms, longest_ns);
        }
    }

    /// Whether the next trial begins a block.
    pub(super) fn between_blocks(&self) -> bool {
        self.next.1 == 0 && self.outstanding.is_none()
    }

    fn expected_ns(&self, order: &[usize]) -> u64 {
        order.iter().map(|arm| self.longest_ns[*arm].max(self.duration_ns)).fold(0, u64::saturating_add)
    }
}
