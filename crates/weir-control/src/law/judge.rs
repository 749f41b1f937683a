//! Whether a window holds the target.

use super::constants::{MEAN_SYNCS, SURE, TAIL_SYNCS};
use super::decision::Known;
use super::reference::{Expected, Reference};
use super::window::View;
use crate::{LatencyTarget, Target};

/// One in a hundred may be over the target of the 99th percentile.
const TAIL_SHARE: f64 = 0.01;
/// From this share of undisturbed syncs over the target on, the 99th percentile lies on a cliff: a few more of them turn it from a
/// fraction of the target into a multiple of it, and say nothing about all others. There three times as many may be over it.
const CLIFF_SHARE: f64 = 0.3 * TAIL_SHARE;
const CLIFF_TIMES: f64 = 3.0;

/// Own pauses that account for so much of a loss are its cause: who waits for one who is throttled waits as well, and is not counted.
const OWN: f64 = 0.3;

/// A window against the target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    /// Share of their undisturbed rate, where enough syncs came.
    pub kept: Option<f64>,
    /// Standard error of `kept`.
    pub error: f64,
    pub known: Known,
    pub p99_ns: Option<u64>,
    pub target_ns: Option<u64>,
    /// The tail against its target: above 1 it is over, and that is no chance.
    pub tail: Option<f64>,
    /// Each sync takes as long as ever: what is lost is lost elsewhere.
    pub is_fast: bool,
    /// What the protected processes lost, they lost waiting for their own pages.
    pub own: bool,
}

/// The tail that is to be held, where it is known.
pub(super) fn target_ns(expected: Option<Expected>, target: &Target) -> Option<u64> {
    match target.p99 {
        LatencyTarget::Absolute(ns) => Some(ns.0),
        LatencyTarget::TimesIdle(times) => {
            expected.and_then(|expected| expected.p99_ns).map(|ns| (ns as f64 * times) as u64)
        }
    }
}

/// Judges a window: by the rate of syncs, since who waits in a write or for a lock of one who does loses by syncs that are as fast as
/// ever.
pub(super) fn judge(view: &View, reference: &Reference, target: &Target) -> Verdict {
    let expected = reference.at(view.concurrency);
    let enough = view.count >= MEAN_SYNCS;
    let rate = expected.filter(|expected| enough && expected.per_second > 0.0);
    let kept = rate.map(|expected| view.per_second / expected.per_second);
    let fast = expected.is_some_and(|expected| view.mean_ns <= expected.mean_ns / target.keep.max(0.1));
    let tail_ns = target_ns(expected, target);
    let p99 = if view.count >= TAIL_SYNCS { view.quantile(0.99) } else { None };
    let lost = expected.map_or(0.0, |expected| view.mean_ns - expected.mean_ns);
    // Who waits for another's lock neither syncs nor is throttled: what was throttled has to account for the rate, too.
    let explains = kept.is_none_or(|kept| view.own_share > OWN * (1.0 - kept));
    Verdict {
        kept,
        error: kept.unwrap_or(1.0) * view.error.max((view.count.max(1) as f64).sqrt().recip()),
        known: expected.map_or(Known::Unknown, |expected| expected.known),
        p99_ns: p99,
        target_ns: tail_ns,
        tail: tail(view, reference, target, expected),
        is_fast: fast && view.own_share < 0.05,
        own: lost > 0.0 && view.held_mean_ns > OWN * lost && explains,
    }
}

fn tail(view: &View, reference: &Reference, target: &Target, expected: Option<Expected>) -> Option<f64> {
    let bound = target_ns(expected, target);
    if view.count < TAIL_SYNCS {
        // Too few for a percentile: the oldest against the target, or against the oldest that was seen undisturbed.
        let oldest = expected.map_or(0, |expected| expected.oldest_ns.max(expected.p99_ns.unwrap_or(0)));
        let bound = match target.p99 {
            LatencyTarget::Absolute(ns) => ns.0 as f64,
            LatencyTarget::TimesIdle(times) => oldest as f64 * times,
        };
        return (bound > 0.0 && view.oldest_ns > 0).then(|| view.oldest_ns as f64 / bound);
    }
    let bound = bound?;
    if matches!(target.p99, LatencyTarget::Absolute(_)) {
        // A percentile that somebody has set is meant as it was said.
        return ratio(view, bound, None);
    }
    let usual = reference.share_above(view.concurrency, bound).filter(|usual| *usual >= CLIFF_SHARE);
    ratio(view, bound, usual.map(|usual| TAIL_SHARE.max(CLIFF_TIMES * usual)))
}

/// By duration, or where a cliff lies there by how many are over it.
fn ratio(view: &View, bound_ns: u64, allowed: Option<f64>) -> Option<f64> {
    let p99 = view.quantile(0.99).filter(|_| view.count >= TAIL_SYNCS)?;
    let above = view.above(bound_ns);
    let ratio = match allowed {
        Some(allowed) => above as f64 / view.count as f64 / allowed,
        None => p99 as f64 / bound_ns.max(1) as f64,
    };
    let is_sure = wilson_low(above, view.count) > allowed.unwrap_or(TAIL_SHARE);
    Some(if is_sure { ratio } else { ratio.min(1.0) })
}

/// Lower end of Wilson's interval of a share `k` of `n`.
fn wilson_low(k: u64, n: u64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let (n, p) = (n as f64, k as f64 / n as f64);
    let middle = p + SURE * SURE / (2.0 * n);
    let spread = SURE * (p * (1.0 - p) / n + SURE * SURE / (4.0 * n * n)).sqrt();
    ((middle - spread) / (1.0 + SURE * SURE / n)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::stats::CoarseHistogram;
    use weir_core::units::Nanos;

    const MS: u64 = 1_000_000;

    /// Syncs of a tenth of a millisecond, and so many in 10,000 that waited for a throttle's next slice.
    fn sliced(waited: u64) -> View {
        let mut latencies = CoarseHistogram::new();
        latencies.record_many(MS / 10, 10_000 - waited);
        latencies.record_many(80 * MS, waited);
        View {
            elapsed_ns: 5_000_000_000,
            count: 10_000,
            per_second: 2_000.0,
            mean_ns: (MS / 10) as f64,
            concurrency: 1.0,
            latencies,
            ..View::default()
        }
    }

    #[test]
    fn a_percentile_on_a_cliff_is_judged_by_how_many_fell_off() {
        let relative = Target::default();
        let absolute = Target { p99: LatencyTarget::Absolute(Nanos(MS / 2)), ..relative };
        // (of 10,000 undisturbed, of 10,000 now, missed by the idle percentile, by one that somebody set)
        let cases = [
            (70, 70, false, false),
            (70, 180, false, true),
            (70, 300, true, true),
            // Nothing waits undisturbed: what does now was made to.
            (0, 120, true, true),
        ];
        for (undisturbed, now, by_idle, as_set) in cases {
            let mut reference = Reference::default();
            reference.learn(&sliced(undisturbed));
            let missed = |target| judge(&sliced(now), &reference, target).tail.is_some_and(|tail| tail > 1.0);
            assert_eq!((missed(&relative), missed(&absolute)), (by_idle, as_set), "{undisturbed} {now}");
        }
    }

    #[test]
    fn fewer_syncs_that_are_as_fast_are_a_loss() {
        let mut reference = Reference::default();
        reference.learn(&sliced(0));
        let view = View { per_second: 1000.0, mean_ns: 0.9 * (MS / 10) as f64, ..sliced(0) };
        let verdict = judge(&view, &reference, &Target::default());
        assert_eq!((verdict.kept, verdict.is_fast, verdict.own), (Some(0.5), true, false));
    }

    #[test]
    fn too_few_for_a_percentile_are_judged_by_the_oldest() {
        let mut reference = Reference::default();
        let few = |oldest_ns| {
            let mut latencies = CoarseHistogram::new();
            latencies.record_many(MS, 15);
            View { count: 15, per_second: 3.0, mean_ns: MS as f64, oldest_ns, latencies, ..sliced(0) }
        };
        reference.learn(&few(2 * MS));
        let tail = |oldest_ns| judge(&few(oldest_ns), &reference, &Target::default()).tail;
        assert_eq!((tail(2 * MS), tail(40 * MS)), (Some(0.2), Some(4.0)));
    }

    #[test]
    fn a_share_is_as_sure_as_its_samples() {
        // (of, all, lower end at 1.28 standard deviations): textbook values, and that nothing is certain of nothing.
        for (k, n, low) in [(0, 0, 0.0), (5, 300, 0.0095)] {
            assert!((wilson_low(k, n) - low).abs() < 2e-4, "{k}/{n}: {}", wilson_low(k, n));
        }
    }
}
