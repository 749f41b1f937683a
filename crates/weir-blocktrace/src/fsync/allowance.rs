//! Work that has a bound in each second, however often somebody looks.

const SECOND_NS: u64 = 1_000_000_000;

/// So much work a second.
#[derive(Debug, Clone)]
pub struct Allowance {
    most: usize,
    left: usize,
    at_ns: u64,
}

impl Allowance {
    /// All of a second's is there at first.
    pub fn a_second(most: usize) -> Allowance {
        Allowance { most, left: most, at_ns: 0 }
    }

    /// It is now so late: what has passed since the last call allows its part.
    pub fn pass(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.at_ns).min(SECOND_NS);
        let more = self.most as u128 * u128::from(passed_ns) / u128::from(SECOND_NS);
        self.left = self.most.min(self.left + more as usize);
        self.at_ns = now_ns;
    }

    /// Takes so much of it; false, and nothing, where there is less.
    pub fn take(&mut self, work: usize) -> bool {
        let left = self.left.checked_sub(work);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_brings_all_of_it_and_a_part_its_part() {
        let mut allowance = Allowance::a_second(100);
        assert!(allowance.take(60) && !allowance.take(60) && allowance.take(40));
        allowance.pass(5 * SECOND_NS);
        assert!(allowance.take(100), "more than a second is one");
        for at in 1..=10 {
            allowance.pass(5 * SECOND_NS + at * SECOND_NS / 10);
            assert!(allowance.take(10) && !allowance.take(1));
        }
    }
}
