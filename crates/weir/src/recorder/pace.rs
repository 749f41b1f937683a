//! How much is watched at which rate of requests: what runs with each request of a device that completes a hundred thousand a second is not
//! free.

use std::time::{Duration, Instant};

use weir_core::stats::random::Random;

/// Of a fast device so many requests a second are counted at the least: 40,000 in an interval.
pub(super) const SAMPLED: u32 = 4096;
/// Requests a second from which on some stand for others.
const FAST: u64 = 2 * SAMPLED as u64;
/// Requests a second that take a good part of a processor. Their issue is watched in a tenth of each interval, but for a second or longer.
const VERY_FAST: u64 = 16 * SAMPLED as u64;
const ISSUES_EACH: u64 = 10;
const SECOND_NS: u64 = 1_000_000_000;

/// What the last interval showed, and what is watched in this one.
pub(super) struct Pace {
    /// Some requests stand for others.
    pub are_fast: bool,
    are_very_fast: bool,
    each: u32,
    part_ns: u64,
    /// When the part begins. Not always at the same place: what comes at regular times must not always be in it, or never.
    from_ns: u64,
    interval_ns: u64,
    begun: Instant,
    random: Random,
}

impl Pace {
    pub(super) fn new(interval_ns: u64, seed: u64) -> Pace {
        let each = (interval_ns / SECOND_NS).clamp(1, ISSUES_EACH);
        Pace {
            are_fast: false,
            are_very_fast: false,
            each: each as u32,
            part_ns: interval_ns / each,
            from_ns: 0,
            interval_ns,
            begun: Instant::now(),
            random: Random::new(seed),
        }
    }

    /// An interval of `span_ms` has ended, with so many requests.
    pub(super) fn next(&mut self, requests: u64, span_ms: i64) {
        self.are_fast = are_faster(FAST, self.are_fast, requests, span_ms);
        self.are_very_fast = are_faster(VERY_FAST, self.are_very_fast, requests, span_ms);
        self.begun = Instant::now();
        let free_ns = self.interval_ns - self.part_ns;
        self.from_ns = self.random.below(usize::try_from(free_ns).unwrap_or(usize::MAX)) as u64;
    }

    /// How many issues each stands for, and whether they are watched now.
    pub(super) fn issues(&self) -> (u32, bool) {
        self.issues_after(self.begun.elapsed())
    }

    fn issues_after(&self, passed: Duration) -> (u32, bool) {
        if !self.are_very_fast {
            return (1, true);
        }
        let passed_ns = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        (self.each, (self.from_ns..self.from_ns + self.part_ns).contains(&passed_ns))
    }
}

/// Whether devices complete so many requests a second. Who did, does until half as many complete: programs are not to come and go with
/// a rate beside the limit.
fn are_faster(limit: u64, were: bool, requests: u64, span_ms: i64) -> bool {
    let limit = if were { limit / 2 } else { limit };
    requests.saturating_mul(1000) >= limit * u64::try_from(span_ms).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_beside_the_limit_changes_nothing() {
        for (were, requests, are) in
            [(false, 81_919, false), (false, 81_920, true), (true, 40_960, true), (true, 40_959, false)]
        {
            assert_eq!(are_faster(8192, were, requests, 10_000), are, "{requests}");
        }
    }

    #[test]
    fn issues_are_watched_in_a_part_of_each_interval_anywhere_in_it() {
        for (interval_ms, each) in [(1_000, 1), (2_000, 2), (2_900, 2), (10_000, 10), (60_000, 10)] {
            let mut pace = Pace::new(interval_ms * 1_000_000, 1);
            assert_eq!(pace.issues(), (1, true));
            let mut begins = Vec::new();
            for _ in 0..200 {
                pace.next(100 * interval_ms, interval_ms as i64);
                let watched: Vec<u64> = (0..interval_ms)
                    .step_by(10)
                    .filter(|ms| pace.issues_after(Duration::from_millis(*ms)) == (each, true))
                    .collect();
                let expected = interval_ms / u64::from(each) / 10;
                assert!(watched.len().abs_diff(expected as usize) <= 1, "{interval_ms}: {}", watched.len());
                begins.push(watched[0]);
            }
            let (first, last) = (begins.iter().min().unwrap(), begins.iter().max().unwrap());
            let free_ms = interval_ms - interval_ms / u64::from(each);
            assert!(*last - *first >= free_ms * 9 / 10, "{interval_ms}: {first} to {last}");
            pace.next(1, interval_ms as i64);
            assert_eq!(pace.issues(), (1, true), "it is slow again");
        }
    }
}
