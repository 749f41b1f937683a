//! The way down to a lower limit, one step at a time, taken whenever somebody looks.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::super::dirty;

/// What a whole way down may take; at its end the limit is set whatever is dirty.
const MOST: Duration = Duration::from_secs(2);
/// So much over a limit is written before anybody minds.
const SURPLUS_BYTES: u64 = 32 << 20;

/// Limits still to be set. Each is due when no more is dirty than it lets writers pass, or when its share of the time
/// is over: lowering a limit far below what is dirty stalls every writer under it until the surplus is written.
#[derive(Debug, Clone)]
pub(super) struct Descent {
    pub goal: u64,
    steps: VecDeque<u64>,
    until: Instant,
    next_until: Instant,
}

impl Descent {
    /// From one limit to another, which is one step where it is not lower. A way down that is under way keeps its end.
    pub fn new(from: u64, goal: u64, now: Instant, under_way: Option<&Descent>) -> Descent {
        let until = under_way.map_or(now + MOST, |descent| descent.until);
        let steps = dirty::halves(from, goal).into_iter().chain([goal]).collect();
        let mut descent = Descent { goal, steps, until, next_until: now };
        descent.share_out(now);
        descent
    }

    fn share_out(&mut self, now: Instant) {
        let left = u32::try_from(self.steps.len()).unwrap_or(u32::MAX).max(1);
        self.next_until = now + self.until.saturating_duration_since(now) / left;
    }

    /// The limit that is due, if any is. `backlog` is what is dirty or being written; where nobody knows, there is
    /// nothing to wait for.
    pub fn due(&mut self, now: Instant, backlog: Option<u64>) -> Option<u64> {
        let mut due = None;
        while let Some(step) = self.steps.front() {
            let fits = backlog.is_none_or(|backlog| backlog <= step.saturating_add(SURPLUS_BYTES));
            if !fits && now < self.next_until {
                break;
            }
            due = self.steps.pop_front();
            self.share_out(now);
        }
        due
    }

    pub fn is_over(&self) -> bool {
        self.steps.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    #[test]
    fn it_goes_down_with_what_is_dirty_or_with_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut descent = Descent::new(4000 * MB, 600 * MB, start, None);
        assert_eq!(descent.due(at(0), Some(2100 * MB)), None);
        assert_eq!(descent.due(at(100), Some(2010 * MB)), Some(2000 * MB));
        // A third of the time for each of the steps; after the first, half of what is left.
        assert_eq!(descent.due(at(900), Some(2000 * MB)), None);
        assert_eq!(descent.due(at(1200), Some(2000 * MB)), Some(1000 * MB));
        assert!(!descent.is_over());
        // Another goal on the way does not put the end off.
        let mut other = Descent::new(1000 * MB, 400 * MB, at(1300), Some(&descent));
        assert_eq!(other.due(at(2100), Some(2000 * MB)), Some(400 * MB));
        assert!(other.is_over());
    }

    #[test]
    fn without_a_backlog_it_takes_one_step() {
        let start = Instant::now();
        for (from, to, backlog) in [
            (4000 * MB, 15 * MB, Some(10 * MB)),
            (4000 * MB, 15 * MB, None),
            (30 * MB, 15 * MB, Some(30 * MB)),
            (15 * MB, 30 * MB, Some(15 * MB)),
        ] {
            let mut descent = Descent::new(from, to, start, None);
            assert_eq!((descent.due(start, backlog), descent.is_over()), (Some(to), true), "{from} → {to}");
        }
        // Raising waits for nobody.
        let mut up = Descent::new(15 * MB, 4000 * MB, start, None);
        assert_eq!(up.due(start, Some(200 * MB)), Some(4000 * MB));
    }
}
