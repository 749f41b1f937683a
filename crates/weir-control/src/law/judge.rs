//! Whether a window holds the target.

use super::decision::Known;
use super::reference::{Expected, Reference};
use super::window::View;
use crate::{LatencyTarget, Parameters};

/// From this share of their time on that the protected processes were held back, their rate alone says what they lost.
const OWN_TRACE: f64 = 0.03;

/// One in a hundred may be over the target of the 99th percentile.
const TAIL_SHARE: f64 = 0.01;
/// So many syncs over the target are a tail.
const OVER_LEAST: u64 = 2;
/// From this share of undisturbed syncs over the target on, the 99th percentile lies on a cliff: a device that serves in
/// slices, as throttled ones do, lets one sync in each slice wait for the next. A few more of them turn the percentile
/// from a fraction of the target into a multiple of it, and say nothing about all others.
const CLIFF_SHARE: f64 = 0.3 * TAIL_SHARE;
/// There, so many times as many may be over it: what that costs them shows in their rate, which is held all the same.
const CLIFF_TIMES: f64 = 3.0;

/// Below this share of what they are to keep, syncs lose steeply.
pub(super) const STEEP: f64 = 0.8;

/// How one half of the target stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Too little is known.
    Unknown,
    /// Held, with room.
    Good,
    /// Held or nearly, without room.
    Close,
    /// Missed.
    Bad,
}

/// A window against the target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    pub kept: Option<f64>,
    /// Standard error of `kept`, by durations or by their count, whichever is larger.
    pub error: f64,
    pub known: Known,
    pub p99_ns: Option<u64>,
    pub target_ns: Option<u64>,
    pub share: State,
    pub tail: State,
    /// The tail against its target: above 1 it is over. By duration, or where a cliff lies there by how many are over it.
    pub tail_ratio: Option<f64>,
    /// What the protected processes lost, they lost waiting for their own pages.
    pub own: bool,
}

impl Verdict {
    /// Whether syncs lose next to nothing.
    pub fn has_spare(&self, parameters: &Parameters) -> bool {
        self.kept.is_some_and(|kept| kept > 0.5 * (1.0 + parameters.target.keep))
    }

    /// Both halves.
    pub fn state(&self) -> State {
        match (self.share, self.tail) {
            (State::Bad, _) | (_, State::Bad) => State::Bad,
            (State::Unknown, _) => State::Unknown,
            (State::Close, _) | (_, State::Close) => State::Close,
            _ => State::Good,
        }
    }
}

/// The tail that is to be held, where it is known.
pub(super) fn target_ns(expected: Option<Expected>, parameters: &Parameters) -> Option<u64> {
    match parameters.target.p99 {
        LatencyTarget::Absolute(ns) => Some(ns.0),
        LatencyTarget::TimesIdle(times) => {
            expected.and_then(|expected| expected.p99_ns).map(|ns| (ns as f64 * times) as u64)
        }
    }
}

/// Judges a window.
///
/// By their rate, where that was seen undisturbed: who waits for the device elsewhere, as in direct writes or for a lock of
/// one who does, loses by syncs that are as fast as ever. A load that comes less often by itself looks alike.
pub(super) fn judge(view: &View, reference: &Reference, parameters: &Parameters) -> Verdict {
    let expected = reference.at(view.concurrency);
    let keep = parameters.target.keep;
    // Where none ended, somebody who waits tells a loss from a load that pauses by itself.
    let is_stuck = view.count == 0 && (view.own_share > 0.0 || view.oldest_ns >= view.elapsed_ns.max(1));
    let seen = expected.filter(|_| is_stuck || (view.count > 0 && view.mean_ns > 0.0));
    let kept = seen.map(|expected| {
        if is_stuck {
            return 0.0;
        }
        let by_time = expected.mean_ns / view.mean_ns;
        let lately = if expected.per_second > 0.0 { view.per_second / expected.per_second } else { 0.0 };
        // Who is held back for pages of its own, or waits for a lock of one who is, loses before its syncs begin.
        let by_rate = view.own_share > OWN_TRACE || expected.known == Known::Seen;
        if by_rate { lately } else { by_time.max(lately) }
    });
    let sure = kept.map_or(1.0, |kept| kept * view.error);
    // That fewer came is no surer than a count is, of a load that comes by chance.
    let error = kept.map_or(1.0, |kept| kept * view.error.max((view.count.max(1) as f64).sqrt().recip()));
    let enough = view.count >= parameters.mean_samples;
    let margin = parameters.confidence * sure;
    let full = view.elapsed_ns + parameters.look_ns >= parameters.window_ns;
    let share = match kept {
        Some(kept) if enough && kept - margin.min(0.5 * (1.0 - keep)) >= keep => State::Good,
        // A whole window in which hardly anything ended says enough.
        Some(kept) if (enough || full) && kept + parameters.confidence * error < keep => State::Bad,
        // A whole window decides: noise may not excuse a small loss for ever.
        Some(kept) if enough && full && kept < keep => State::Bad,
        Some(_) if enough => State::Close,
        _ => State::Unknown,
    };
    let target = target_ns(expected, parameters);
    let p99 = if view.count >= parameters.tail_samples { view.quantile(0.99) } else { None };
    // A percentile that somebody has set is meant as it was said.
    let is_relative = matches!(parameters.target.p99, LatencyTarget::TimesIdle(_));
    let usual = target
        .filter(|_| is_relative)
        .and_then(|target| reference.share_above(view.concurrency, target, parameters.tail_samples));
    let allowed =
        usual.filter(|usual| *usual >= CLIFF_SHARE).map(|usual| TAIL_SHARE.max(CLIFF_TIMES * usual));
    let above = target.map_or(0, |target| view.above(target));
    let tail_ratio = p99.zip(target).map(|(p99, target)| match allowed {
        Some(allowed) => above as f64 / view.count.max(1) as f64 / allowed,
        None => p99 as f64 / target.max(1) as f64,
    });
    // That it is over is sure with fewer syncs than where it lies. One slow sync is no tail.
    let is_over = above >= OVER_LEAST
        && wilson_low(above, view.count, parameters.confidence) > allowed.unwrap_or(TAIL_SHARE);
    let tail = match tail_ratio {
        _ if is_over => State::Bad,
        Some(ratio) if ratio < parameters.tail_room => State::Good,
        Some(_) => State::Close,
        None => State::Unknown,
    };
    // Who waits for another's lock neither syncs nor is held back, and loses all the same: what was held back has to account
    // for the rate, too.
    let explains = kept.is_none_or(|kept| view.own_share > parameters.own_share * (1.0 - kept));
    let lost = expected.map_or(0.0, |expected| view.mean_ns - expected.mean_ns);
    Verdict {
        kept,
        error,
        known: expected.map_or(Known::Unknown, |expected| expected.known),
        p99_ns: p99,
        target_ns: target,
        share,
        tail,
        tail_ratio,
        own: explains
            && if is_stuck {
                view.own_share > parameters.own_share
            } else {
                lost > 0.0 && view.held_mean_ns > parameters.own_share * lost
            },
    }
}

/// Lower end of Wilson's interval of a share `k` of `n`, at `z` standard deviations.
fn wilson_low(k: u64, n: u64, z: f64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let (n, p) = (n as f64, k as f64 / n as f64);
    let middle = p + z * z / (2.0 * n);
    let spread = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    ((middle - spread) / (1.0 + z * z / n)).max(0.0)
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

    /// That, undisturbed.
    fn learned(waited: u64, parameters: &Parameters) -> Reference {
        let mut reference = Reference::default();
        reference.learn(&sliced(waited), parameters.reference_ns, parameters.tail_samples);
        reference
    }

    #[test]
    fn a_percentile_on_a_cliff_is_judged_by_how_many_fell_off() {
        let relative = Parameters::default();
        let mut absolute = Parameters::default();
        absolute.target.p99 = LatencyTarget::Absolute(Nanos(MS / 2));
        // (of 10,000 undisturbed, of 10,000 now, by the idle percentile, by one that somebody set)
        let cases = [
            (70, 70, State::Good, State::Good),
            (70, 180, State::Close, State::Bad),
            (70, 300, State::Bad, State::Bad),
            // Nothing waits undisturbed: what does now was made to.
            (0, 120, State::Bad, State::Bad),
        ];
        for (undisturbed, now, by_idle, as_set) in cases {
            let reference = learned(undisturbed, &relative);
            let tail = |parameters| judge(&sliced(now), &reference, parameters).tail;
            assert_eq!((tail(&relative), tail(&absolute)), (by_idle, as_set), "{undisturbed} {now}");
        }
    }

    #[test]
    fn fewer_syncs_that_are_as_fast_are_a_loss() {
        let parameters = Parameters::default();
        let reference = learned(0, &parameters);
        let kept = |per_second| {
            let view = View { per_second, mean_ns: 0.9 * (MS / 10) as f64, ..sliced(0) };
            let verdict = judge(&view, &reference, &parameters);
            (verdict.kept.map(|kept| (kept * 100.0).round()), verdict.share)
        };
        assert_eq!(kept(1000.0), (Some(50.0), State::Bad));
        assert_eq!(kept(2000.0), (Some(100.0), State::Good));
    }

    #[test]
    fn few_syncs_show_that_a_tail_is_over_and_not_that_it_is_held() {
        let parameters = Parameters::default();
        let reference = learned(0, &parameters);
        for (waited, tail) in [(0, State::Unknown), (1, State::Unknown), (6, State::Bad)] {
            let mut latencies = CoarseHistogram::new();
            latencies.record_many(MS / 10, 100 - waited);
            latencies.record_many(80 * MS, waited);
            let view = View { count: 100, elapsed_ns: 1_000_000_000, latencies, ..sliced(0) };
            assert_eq!(judge(&view, &reference, &parameters).tail, tail, "{waited}");
        }
    }

    #[test]
    fn a_whole_window_in_which_hardly_anything_ended_is_a_loss() {
        let parameters = Parameters::default();
        let reference = learned(0, &parameters);
        for (elapsed_s, share) in [(1, State::Unknown), (5, State::Bad)] {
            let elapsed_ns = elapsed_s * 1_000_000_000;
            let per_second = 10.0 / elapsed_s as f64;
            let view = View { count: 10, elapsed_ns, per_second, ..sliced(0) };
            assert_eq!(judge(&view, &reference, &parameters).share, share, "{elapsed_s} s");
        }
    }

    #[test]
    fn nothing_that_ends_is_a_loss_where_somebody_waits() {
        let parameters = Parameters::default();
        let reference = learned(0, &parameters);
        // (share held back, age of the oldest sync in seconds, judged, by its own pages)
        let cases = [
            (0.0, 0, State::Unknown, false),
            (0.0, 3, State::Unknown, false),
            (0.0, 5, State::Bad, false),
            (1.0, 0, State::Bad, true),
        ];
        for (own_share, oldest_s, share, own) in cases {
            let oldest_ns = oldest_s * 1_000_000_000;
            let view =
                View { elapsed_ns: 5_000_000_000, own_share, oldest_ns, concurrency: 1.0, ..View::default() };
            let verdict = judge(&view, &reference, &parameters);
            assert_eq!((verdict.share, verdict.own), (share, own), "{own_share} {oldest_s}");
        }
    }

    #[test]
    fn a_share_is_as_sure_as_its_samples() {
        // (of, all, z, lower end): textbook values, and that nothing is certain of nothing.
        let cases =
            [(0, 0, 1.96, 0.0), (10, 100, 1.96, 0.0552), (1, 10, 1.96, 0.0179), (5, 300, 1.28, 0.0095)];
        for (k, n, z, low) in cases {
            assert!((wilson_low(k, n, z) - low).abs() < 2e-4, "{k}/{n}: {}", wilson_low(k, n, z));
        }
    }
}
