//! What trials take beside their measured time: the wait for a clean start after the one before, and setting up.

use std::collections::BTreeMap;

/// Learns from the time that is left at each proposal.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// The trial proposed last: the time left then, its arm, its duration, and the arm before it.
    last: Option<(u64, usize, u64, Option<usize>)>,
    /// What came on top after a trial of an arm: times and their sum.
    after: BTreeMap<usize, Taken>,
    all: Taken,
}

#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    count: u64,
    sum_ns: u64,
    most_ns: u64,
}

impl Taken {
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum_ns += ns;
        self.most_ns = self.most_ns.max(ns);
    }
}

impl Ledger {
    /// A trial is to be made now; the difference to the last time is what that one took.
    pub fn asked(&mut self, left_ns: u64) {
        let Some((before_ns, arm, duration_ns, previous)) = self.last else { return };
        let extra_ns = before_ns.saturating_sub(left_ns).saturating_sub(duration_ns);
        if let Some(previous) = previous {
            self.after.entry(previous).or_default().add(extra_ns);
            self.all.add(extra_ns);
        }
        self.last = Some((left_ns, arm, 0, None));
    }

    /// This trial was proposed.
    pub fn proposed(&mut self, left_ns: u64, arm: usize, duration_ns: u64) {
        let previous = self.last.map(|(_, arm, ..)| arm);
        self.last = Some((left_ns, arm, duration_ns, previous));
    }

    /// What to expect on top after a trial of an arm, ns: its own mean, of an arm not seen yet the mean of all.
    pub fn after_ns(&self, arm: usize) -> u64 {
        let seen = self.after.get(&arm).copied().unwrap_or(self.all);
        seen.sum_ns / seen.count.max(1)
    }

    /// The mean over all trials. Where only one arm was seen, which is the baseline, half of it: candidates
    /// have lower limits, and leave less behind to wait for.
    pub fn typical_ns(&self) -> u64 {
        let mean_ns = self.all.sum_ns / self.all.count.max(1);
        if self.after.len() <= 1 { mean_ns / 2 } else { mean_ns }
    }

    /// What the next trial may take at worst, ns.
    pub fn worst_ns(&self, duration_ns: u64) -> u64 {
        let seen = self.last.and_then(|(_, arm, ..)| self.after.get(&arm)).copied().unwrap_or(self.all);
        duration_ns.saturating_add(seen.most_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_trial_costs_is_learned_from_the_time_left() {
        let mut ledger = Ledger::default();
        // Arm 0 leaves 15 behind, arm 1 leaves 2; trials of 10 measured.
        for (left, arm) in [(1000, 0), (988, 1), (963, 1), (951, 0), (939, 1)] {
            ledger.asked(left);
            ledger.proposed(left, arm, 10);
        }
        ledger.asked(914);
        assert_eq!((ledger.after_ns(0), ledger.after_ns(1)), (15, 2));
        assert_eq!((ledger.after_ns(7), ledger.typical_ns()), (8, 8));
        assert_eq!(ledger.worst_ns(10), 12);
        // Asked again without a trial in between: nothing is learned.
        ledger.asked(900);
        assert_eq!(ledger.typical_ns(), 8);
    }
}
