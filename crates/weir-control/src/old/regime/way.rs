//! Where to go from a limit that misses the target.

use super::{NOTICEABLE, Point, Regime, same};
use crate::Parameters;
use crate::old::judge::{State, Verdict};

/// From this share of the target on, a miss is a near one.
const NEAR_MISS: f64 = 0.93;
/// And of two near misses, differences smaller than this.
const NOTHING: f64 = 0.015;

/// Threads that have next to no pages of their own.
pub(super) const FEW: f64 = 2.0;

/// Where to go from a limit that misses the target.
#[derive(Debug, Clone, Copy)]
pub(in crate::old) enum Way {
    /// To a limit.
    To(u64),
    /// Nowhere: this one is the best, and it is not good enough.
    Stuck,
    /// Back to where this was measured and no further: less let through gained nothing.
    Back(Point),
}

impl Regime {
    /// Where to go from a limit that misses the target, as measured there.
    pub(in crate::old) fn leave(
        &mut self,
        now: &Point,
        verdict: &Verdict,
        bounds: (u64, u64),
        parameters: &Parameters,
    ) -> Way {
        let best = self.best().unwrap_or(*now);
        let helped = now.off < best.off + NOTICEABLE;
        let (bytes, up) = if verdict.own && now.off > NOTICEABLE {
            ((now.bytes as f64 * parameters.raise_most) as u64, true)
        } else {
            ((now.bytes as f64 * self.cut(verdict, parameters)) as u64, false)
        };
        let to = bytes.clamp(bounds.0, bounds.1);
        if let Some(before) = self.in_vain(now).filter(|_| !up) {
            return Way::Back(before);
        }
        let beyond = |point: &&Point| {
            !same(point.bytes, now.bytes)
                && ((up && point.bytes > now.bytes) || (!up && point.bytes < now.bytes))
        };
        let held = self.points.iter().filter(beyond).filter(|point| point.off <= 0.0);
        if let Some(nearest) = held.min_by_key(|point| point.bytes.abs_diff(now.bytes)) {
            // A steep loss outlasts a small step.
            let steep = now.off > NOTICEABLE && !up;
            return Way::To(if steep { nearest.bytes.min(to) } else { nearest.bytes });
        }
        let known = self.points.iter().filter(beyond).min_by(|a, b| a.off.total_cmp(&b.off));
        match known {
            // That way was tried: it is better there, or it is not.
            Some(point) if point.off < now.off - NOTICEABLE => return Way::To(point.bytes),
            Some(_) => return self.settle(now, &best, up, bounds),
            None => {}
        }
        if same(to, now.bytes) {
            return self.settle(now, &best, up, bounds);
        }
        if now.off < NOTICEABLE {
            return Way::To(to);
        }
        self.fruitless =
            if helped && best.at_ns == now.at_ns && self.improves(now) { 0 } else { self.fruitless + 1 };
        // A plateau may be crossed in a few steps; where none of them helped it is the end of it.
        if self.fruitless > 3 {
            return self.settle(now, &best, up, bounds);
        }
        Way::To(to)
    }

    /// Whether syncs that are held back for their own pages here want a higher limit. A thread or two have next to none: what
    /// holds them back is how long a slow device takes for the rest, and of that a lower limit leaves less.
    pub(in crate::old) fn needs_more(&self, now: &Point, floor: u64) -> bool {
        if self.has_many() || same(now.bytes, floor) {
            return true;
        }
        let mut lower = self
            .points
            .iter()
            .filter(|point| point.bytes < now.bytes && !same(point.bytes, now.bytes))
            .peekable();
        lower.peek().is_some() && lower.all(|point| point.off > now.off)
    }

    /// Where a near miss was as near at a higher limit: which of those let most through.
    fn in_vain(&self, now: &Point) -> Option<Point> {
        let as_near = |point: &&Point| {
            point.bytes > now.bytes && !same(point.bytes, now.bytes) && point.off < now.off + NOTHING
        };
        let higher = self.points.iter().filter(as_near).filter(|_| now.off < NOTICEABLE / 2.0);
        higher.max_by(|a, b| a.delivered.total_cmp(&b.delivered)).copied()
    }

    /// Whether a measurement is noticeably better than every other.
    fn improves(&self, now: &Point) -> bool {
        self.points
            .iter()
            .filter(|point| point.at_ns != now.at_ns)
            .all(|point| now.off < point.off - NOTICEABLE)
    }

    /// To the best there is; where that is here, once the other way; then nowhere.
    fn settle(&self, now: &Point, best: &Point, up: bool, bounds: (u64, u64)) -> Way {
        if !same(best.bytes, now.bytes) {
            return Way::To(best.bytes);
        }
        // A near miss is not worth an excursion.
        if now.off < NOTICEABLE {
            return Way::Stuck;
        }
        let other = if up { now.bytes / 2 } else { now.bytes * 2 }.clamp(bounds.0, bounds.1);
        let tried =
            |point: &Point| !same(point.bytes, now.bytes) && (point.bytes < now.bytes) == (other < now.bytes);
        if same(other, now.bytes) || self.points.iter().any(tried) { Way::Stuck } else { Way::To(other) }
    }

    /// Factor of a cut.
    fn cut(&self, verdict: &Verdict, parameters: &Parameters) -> f64 {
        let keep = parameters.target.keep;
        let mut factor: f64 = 1.0;
        if let Some(kept) = verdict.kept.filter(|kept| *kept < keep) {
            // A little below the edge, or the next window is a toss-up.
            let short = keep - kept + 0.25 * (1.0 - keep);
            let least = match kept / keep {
                ratio if ratio < 1.0 / 3.0 => parameters.cut_most,
                // A near miss may be noise, and a deep cut holds back the protected themselves.
                ratio if ratio > NEAR_MISS => 0.85,
                _ => parameters.cut_most.sqrt(),
            };
            factor = factor.min((-short / self.gain).exp().max(least));
        }
        if let (State::Bad, Some(ratio)) = (verdict.tail, verdict.tail_ratio) {
            let wanted = parameters.tail_room / ratio;
            factor = factor.min(wanted.max(parameters.cut_most.sqrt()));
        }
        factor.min(0.95)
    }
}
