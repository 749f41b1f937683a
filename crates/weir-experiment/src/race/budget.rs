//! What there is time for: the confirmation is set aside from the start, the race takes what is left.

use super::{End, FOUND, Race, Step};

impl Race {
    /// A typical trial, ns.
    pub(super) fn trial_ns(&self) -> u64 {
        self.duration_ns.saturating_add(self.ledger.typical_ns())
    }

    /// What the confirmation takes, with a tenth to spare and room for one slow trial, without which the last pair is
    /// not begun, ns.
    pub(super) fn reserve_ns(&self) -> u64 {
        let winner_ns = self.winner.map_or(self.ledger.typical_ns(), |arm| self.ledger.after_ns(arm));
        let idle = self.idle_in_turn();
        let candidates = self.confirming() as u64 - 1 - u64::from(idle.is_some());
        let turn_ns = self.confirming() as u64 * self.duration_ns
            + self.ledger.after_ns(FOUND)
            + idle.map_or(0, |arm| self.ledger.after_ns(arm))
            + candidates * winner_ns;
        let pairs_ns = (self.plan.rules.pairs as u64).saturating_mul(turn_ns).saturating_mul(11) / 10;
        pairs_ns.saturating_add(self.ledger.worst_ns(self.duration_ns))
    }

    /// Trials for which there is time beside the confirmation.
    pub(super) fn affordable(&self, left_ns: u64) -> usize {
        (left_ns.saturating_sub(self.reserve_ns()) / self.trial_ns().max(1)) as usize
    }

    /// Ends what there is no time for: a race makes way for its confirmation, a confirmation just ends.
    pub(super) fn keep_to_the_budget(&mut self, left_ns: u64) {
        let next_ns = self.ledger.worst_ns(self.duration_ns);
        match self.step {
            Step::Race { .. } | Step::Final { .. } if left_ns < self.reserve_ns().saturating_add(next_ns) => {
                self.block += 1;
                self.pick();
            }
            _ => {}
        }
        if left_ns < next_ns {
            self.queue.clear();
            if self.step == Step::Confirm {
                self.step = Step::Done(End::Confirmed);
            } else if !matches!(self.step, Step::Done(_)) {
                self.step = Step::Done(End::TooShort { needed_ns: self.reserve_ns() * 2 });
            }
        }
    }
}
