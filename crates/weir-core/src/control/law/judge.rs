//! Whether a window holds the target.

use super::decision::Known;
use super::reference::{Expected, Reference};
use super::window::View;
use crate::control::{LatencyTarget, Parameters};

/// From this share of their time on that the protected processes were held back, their rate alone says what they lost.
const OWN_TRACE: f64 = 0.03;

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
    /// Standard error of `kept`.
    pub error: f64,
    pub known: Known,
    pub p99_ns: Option<u64>,
    pub target_ns: Option<u64>,
    pub share: State,
    pub tail: State,
    /// How far off, as a logarithm: 0 at the target, above it missed.
    pub off: f64,
    /// What the protected processes lost, they lost waiting for their own pages.
    pub own: bool,
}

impl Verdict {
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

/// Judges a window. A tail that no limit can hold is held to what was found to be in reach, `relaxed_ns`, instead.
pub(super) fn judge(
    view: &View,
    reference: &Reference,
    parameters: &Parameters,
    relaxed_ns: Option<u64>,
) -> Verdict {
    let expected = reference.at(view.concurrency);
    let keep = parameters.target.keep;
    // Who comes less often loses nothing while syncs are fast; who waits longer elsewhere loses little by slow syncs.
    let kept = expected.filter(|_| view.count > 0 && view.mean_ns > 0.0).map(|expected| {
        let lately = if expected.per_second > 0.0 { view.per_second / expected.per_second } else { 0.0 };
        // Who is held back for pages of its own, or waits for a lock of one who is, loses before its syncs begin.
        if view.own_share > OWN_TRACE { lately } else { (expected.mean_ns / view.mean_ns).max(lately) }
    });
    let error = kept.map_or(1.0, |kept| kept * view.error);
    let enough = view.count >= parameters.mean_samples;
    let margin = parameters.confidence * error;
    let full = view.elapsed_ns + parameters.look_ns >= parameters.window_ns;
    let share = match kept {
        Some(kept) if enough && kept - margin.min(0.5 * (1.0 - keep)) >= keep => State::Good,
        Some(kept) if enough && kept + margin < keep => State::Bad,
        // A whole window decides: noise may not excuse a small loss for ever.
        Some(kept) if enough && full && kept < keep => State::Bad,
        Some(_) if enough => State::Close,
        _ => State::Unknown,
    };
    let target = target_ns(expected, parameters).map(|target| target.max(relaxed_ns.unwrap_or(0)));
    let p99 = if view.count >= parameters.tail_samples { view.quantile(0.99) } else { None };
    let tail = match (p99, target) {
        (Some(_), Some(target))
            if wilson_low(view.above(target), view.count, parameters.confidence) > 0.01 =>
        {
            State::Bad
        }
        (Some(p99), Some(target)) if (p99 as f64) < parameters.tail_room * target as f64 => State::Good,
        (Some(_), Some(_)) => State::Close,
        _ => State::Unknown,
    };
    let share_off = kept.filter(|_| enough).map(|kept| (keep / kept.max(1e-3)).ln());
    let tail_off = p99.zip(target).map(|(p99, target)| (p99 as f64 / target.max(1) as f64).ln());
    let off = share_off.into_iter().chain(tail_off).fold(f64::NEG_INFINITY, f64::max);
    let lost = expected.map_or(0.0, |expected| view.mean_ns - expected.mean_ns);
    Verdict {
        kept,
        error,
        known: expected.map_or(Known::Unknown, |expected| expected.known),
        p99_ns: p99,
        target_ns: target,
        share,
        tail,
        off: if off.is_finite() { off } else { 0.0 },
        own: lost > 0.0 && view.held_mean_ns > parameters.own_share * lost,
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
    use super::wilson_low;

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
