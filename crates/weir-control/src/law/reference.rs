//! What syncs do undisturbed, by concurrency: learned online.

use super::decision::Known;
use super::window::View;
use weir_core::stats::CoarseHistogram;

/// Concurrencies closer than half an octave are one.
const SAME_OCTAVES: f64 = 0.5;
/// What is better than was known is averaged over so long, and what is worse: what was done once undisturbed can be done,
/// and who comes less often for a while, or shares the processors, has not become slower.
const BETTER_NS: f64 = 3.0 * 1e9;
const WORSE_NS: f64 = 30.0 * 1e9;
/// Syncs that take less than this share of what they took undisturbed are those of another load.
const ANOTHER: f64 = 0.8;
/// Rates that differ by so many standard errors are not of one load.
const NOISE: f64 = 2.0;
const ENTRIES_MOST: usize = 24;
/// Latencies kept of one concurrency; beyond that older ones count half.
const POOL_MOST: u64 = 20_000;

/// What was seen at one concurrency.
#[derive(Debug, Clone)]
struct Entry {
    concurrency: f64,
    /// Mean duration.
    mean_ns: f64,
    /// Syncs per second, lately.
    per_second: f64,
    /// Time that the mean stands on, up to what it is averaged over.
    weight_ns: f64,
    /// The highest 99th percentile of a window, ageing.
    p99_ns: f64,
    /// The oldest sync ever seen under way, ageing.
    oldest_ns: f64,
    pool: Vec<(u64, u64)>,
    /// Seen while bulk writers were idle; else it is the best that was seen beside them.
    idle: bool,
}

/// What is expected at a concurrency.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub mean_ns: f64,
    /// Syncs per second that the same load did lately. Where syncs are a small part of what their threads wait for, as
    /// beside direct writes, they may take much longer and few are lost.
    pub per_second: f64,
    /// Known only where it was seen undisturbed.
    pub p99_ns: Option<u64>,
    /// The oldest sync that was seen under way undisturbed; 0 where that is not known.
    pub oldest_ns: u64,
    pub known: Known,
}

/// What syncs do undisturbed, by concurrency.
#[derive(Debug, Clone, Default)]
pub(super) struct Reference {
    entries: Vec<Entry>,
}

/// One sync at a time or less is the same: nothing waits for another.
fn octaves(concurrency: f64) -> f64 {
    concurrency.max(1.0).log2()
}

/// How far two concurrencies are apart.
pub(super) fn octaves_between(one: f64, other: f64) -> f64 {
    (octaves(one) - octaves(other)).abs()
}

impl Entry {
    fn distance(&self, concurrency: f64) -> f64 {
        octaves_between(self.concurrency, concurrency)
    }
}

impl Reference {
    /// Learns from a stretch without bulk writers; `tail` is how many samples a 99th percentile takes.
    pub fn learn(&mut self, view: &View, averaged_ns: u64, tail: u64) {
        if view.count == 0 || view.elapsed_ns == 0 {
            return;
        }
        let entry = self.entry(view.concurrency);
        if !entry.idle {
            *entry = Entry {
                idle: true,
                weight_ns: 0.0,
                p99_ns: 0.0,
                oldest_ns: 0.0,
                pool: Vec::new(),
                ..entry.clone()
            };
        }
        let elapsed = view.elapsed_ns as f64;
        entry.weight_ns = (entry.weight_ns + elapsed).min(averaged_ns as f64);
        let share = (elapsed / entry.weight_ns).min(1.0);
        // Slices of a throttle make counts of a second jump: what lies within that is averaged evenly, or the reference
        // would become that of the best seconds. Beyond it the better is believed soon, the worse late.
        let noise = NOISE * view.error;
        let weight = |better: f64| match better {
            _ if share == 1.0 => 1.0,
            better if better > noise => (elapsed / BETTER_NS).min(1.0),
            better if better < -noise => (elapsed / WORSE_NS).min(share),
            _ => share,
        };
        let faster = weight(1.0 - view.mean_ns / entry.mean_ns.max(1.0));
        let more = weight(view.per_second / entry.per_second.max(1e-3) - 1.0);
        entry.mean_ns += (view.mean_ns - entry.mean_ns) * faster;
        entry.per_second += (view.per_second - entry.per_second) * more;
        entry.concurrency += (view.concurrency - entry.concurrency) * share;
        entry.pool(&view.latencies);
        // Windows are judged by their own tail: the reference is what such windows reach when nothing disturbs them.
        let window = if view.count >= tail { view.quantile(0.99) } else { None };
        let pooled = entry.pooled_quantile(0.99, tail);
        let aged = (-elapsed / (averaged_ns as f64 * 10.0)).exp();
        entry.oldest_ns = (entry.oldest_ns * aged).max(view.oldest_ns as f64);
        entry.p99_ns *= aged;
        let seen = window.max(pooled).unwrap_or(0) as f64;
        entry.p99_ns = entry.p99_ns.max(seen);
    }

    /// A stretch beside bulk writers shows that undisturbed syncs are at least as fast.
    pub fn bound(&mut self, view: &View) {
        let mean = view.mean_ns * (1.0 + view.error);
        let entry = self.entry(view.concurrency);
        if !entry.idle && (entry.weight_ns == 0.0 || mean < entry.mean_ns) {
            entry.mean_ns = mean;
            entry.per_second = view.per_second * (1.0 - view.error);
            entry.weight_ns = view.elapsed_ns as f64;
        }
    }

    /// Beside bulk writers, syncs take far less time all along a window and in its last second than they were seen to take
    /// undisturbed: that was another load, as one that writes through the page cache is to one that writes directly. Judged
    /// by the time it took, this one would lose half of its rate unnoticed.
    pub fn outdone(&mut self, window: &View, last: &View) {
        let mean = window.mean_ns.max(last.mean_ns) * (1.0 + window.error.max(last.error));
        let of_it = |entry: &&mut Entry| entry.idle && entry.distance(window.concurrency) < SAME_OCTAVES;
        let Some(entry) = self.entries.iter_mut().find(of_it) else { return };
        if window.count > 0 && last.count > 0 && mean < ANOTHER * entry.mean_ns {
            entry.mean_ns = mean;
        }
    }

    /// What to expect at a concurrency; `None` when nothing was ever seen.
    pub fn at(&self, concurrency: f64) -> Option<Expected> {
        let here = self.seen_near(concurrency);
        if let Some(entry) = here.filter(|entry| entry.idle) {
            return Some(Expected {
                mean_ns: entry.mean_ns
                    * (concurrency.max(1.0) / entry.concurrency.max(1.0)).powf(self.slope()),
                per_second: entry.per_second,
                p99_ns: (entry.p99_ns > 0.0).then_some(entry.p99_ns as u64),
                oldest_ns: entry.oldest_ns as u64,
                known: Known::Seen,
            });
        }
        let others = self.entries.iter().filter(|entry| entry.idle).map(|entry| entry.bound_at(concurrency));
        let mean_ns = others.chain(here.map(|entry| entry.mean_ns)).min_by(f64::total_cmp)?;
        let per_second = self.rate_bound(concurrency).max(here.map_or(0.0, |entry| entry.per_second));
        Some(Expected { mean_ns, per_second, p99_ns: None, oldest_ns: 0, known: Known::Bounded })
    }

    /// The share of undisturbed syncs that took longer than so long; `None` where too few were seen at this concurrency.
    pub fn share_above(&self, concurrency: f64, ns: u64, samples: u64) -> Option<f64> {
        let entry = self.seen_near(concurrency).filter(|entry| entry.idle)?;
        let count = entry.pooled();
        let above: u64 = entry.pool.iter().filter(|bucket| bucket.0 > ns).map(|bucket| bucket.1).sum();
        (count >= samples).then(|| above as f64 / count as f64)
    }

    /// What was seen nearest to a concurrency.
    fn seen_near(&self, concurrency: f64) -> Option<&Entry> {
        let seen = self.entries.iter().filter(|entry| entry.weight_ns > 0.0);
        let near = seen.filter(|entry| entry.distance(concurrency) < SAME_OCTAVES);
        near.min_by(|a, b| a.distance(concurrency).total_cmp(&b.distance(concurrency)))
    }

    /// The rate that a load of this concurrency does at least: that of the next lower one, or in proportion to the
    /// lowest.
    fn rate_bound(&self, concurrency: f64) -> f64 {
        let idle = || self.entries.iter().filter(|entry| entry.idle);
        let below = idle().filter(|entry| octaves(entry.concurrency) <= octaves(concurrency));
        let below = below.max_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
        let lowest = idle().min_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
        below.map(|entry| entry.per_second).unwrap_or_else(|| {
            lowest.map_or(0.0, |entry| entry.per_second * concurrency.max(1.0) / entry.concurrency.max(1.0))
        })
    }

    /// How the mean grows with concurrency, as a power: 0 where syncs do not wait for each other, 1 where the device is
    /// full. From the furthest two that were seen, else 1.
    fn slope(&self) -> f64 {
        let idle = || self.entries.iter().filter(|entry| entry.idle);
        let low = idle().min_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
        let high = idle().max_by(|a, b| a.concurrency.total_cmp(&b.concurrency));
        match (low, high) {
            (Some(low), Some(high)) if high.distance(low.concurrency) > SAME_OCTAVES => {
                let rise = (high.mean_ns / low.mean_ns).log2();
                (rise / high.distance(low.concurrency)).clamp(0.0, 1.0)
            }
            _ => 1.0,
        }
    }

    /// The entry of a concurrency, made if there is none.
    fn entry(&mut self, concurrency: f64) -> &mut Entry {
        let distance = |i: &usize| self.entries[*i].distance(concurrency);
        let near = (0..self.entries.len()).filter(|i| distance(i) < SAME_OCTAVES);
        let found = near.min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let index = found.unwrap_or_else(|| {
            if self.entries.len() >= ENTRIES_MOST {
                self.entries.remove(0);
            }
            self.entries.push(Entry {
                concurrency,
                mean_ns: 0.0,
                per_second: 0.0,
                weight_ns: 0.0,
                p99_ns: 0.0,
                oldest_ns: 0.0,
                pool: Vec::new(),
                idle: false,
            });
            self.entries.len() - 1
        });
        &mut self.entries[index]
    }
}

impl Entry {
    /// The longest mean that is plausible elsewhere. More syncs at once do at least the rate of fewer; fewer take no
    /// longer each than more.
    fn bound_at(&self, concurrency: f64) -> f64 {
        self.mean_ns * (concurrency.max(1.0) / self.concurrency.max(1.0)).max(1.0)
    }

    fn pool(&mut self, latencies: &CoarseHistogram) {
        for (high, n) in latencies.edges() {
            match self.pool.binary_search_by_key(&high, |bucket| bucket.0) {
                Ok(at) => self.pool[at].1 += n,
                Err(at) => self.pool.insert(at, (high, n)),
            }
        }
        if self.pooled() > POOL_MOST {
            self.pool.iter_mut().for_each(|bucket| bucket.1 /= 2);
            self.pool.retain(|bucket| bucket.1 > 0);
        }
    }

    /// How many latencies are kept.
    fn pooled(&self) -> u64 {
        self.pool.iter().map(|bucket| bucket.1).sum()
    }

    fn pooled_quantile(&self, q: f64, samples: u64) -> Option<u64> {
        let count = self.pooled();
        let rank = (q * count as f64).ceil() as u64;
        let mut seen = 0;
        let at = self.pool.iter().find_map(|&(high, n)| {
            seen += n;
            (seen >= rank).then_some(high)
        });
        at.filter(|_| count >= samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(concurrency: f64, mean_ns: f64) -> View {
        let elapsed_ns = 1_000_000_000;
        let count = (concurrency * 1e9 / mean_ns) as u64;
        View { elapsed_ns, count, mean_ns, concurrency, per_second: count as f64, ..View::default() }
    }

    #[test]
    fn undisturbed_syncs_are_known_where_they_were_seen_and_bounded_elsewhere() {
        let mut reference = Reference::default();
        assert!(reference.at(1.0).is_none());
        reference.learn(&view(1.0, 1e6), 60_000_000_000, 300);
        // (concurrency, mean expected, known)
        let cases = [(0.1, 1e6, Known::Seen), (1.0, 1e6, Known::Seen), (8.0, 8e6, Known::Bounded)];
        for (concurrency, mean, known) in cases {
            let expected = reference.at(concurrency).unwrap();
            assert!((expected.mean_ns / mean - 1.0).abs() < 0.01, "{concurrency}: {expected:?}");
            assert_eq!(expected.known, known, "{concurrency}");
        }
        // Beside bulk writers eight at once did better than the bound: undisturbed they do at least that.
        reference.bound(&view(8.0, 2e6));
        reference.bound(&view(8.0, 5e6));
        assert!((reference.at(8.0).unwrap().mean_ns / 2e6 - 1.0).abs() < 0.01);
        assert_eq!(reference.at(8.0).unwrap().known, Known::Bounded);
        reference.learn(&view(8.0, 1.5e6), 60_000_000_000, 300);
        assert_eq!(reference.at(8.0).unwrap().known, Known::Seen);
        assert!((reference.at(8.0).unwrap().mean_ns / 1.5e6 - 1.0).abs() < 0.01);
        // Fewer at once take no longer each than more.
        assert!(reference.at(3.0).unwrap().mean_ns <= 1.5e6);
    }

    #[test]
    fn syncs_that_are_far_faster_beside_bulk_writers_than_alone_are_another_load_s() {
        let (slow, fast) = (view(10.0, 7e6), view(10.0, 3e6));
        let mut reference = Reference::default();
        reference.outdone(&fast, &fast);
        assert!(reference.at(10.0).is_none(), "nothing was seen undisturbed");
        reference.learn(&slow, 60_000_000_000, 300);
        let mean_after = |reference: &Reference, window: &View, last: &View| {
            let mut reference = reference.clone();
            reference.outdone(window, last);
            reference.at(10.0).unwrap().mean_ns / 1e6
        };
        for (window, last, expected) in
            [(&fast, &fast, 3.0), (&fast, &slow, 7.0), (&slow, &fast, 7.0), (&fast, &View::default(), 7.0)]
        {
            assert!((mean_after(&reference, window, last) - expected).abs() < 0.01);
        }
        assert!((mean_after(&reference, &view(10.0, 6e6), &fast) - 7.0).abs() < 0.01, "as noise has it");
    }

    #[test]
    fn seconds_that_jump_are_averaged_and_slower_ones_believed_late() {
        let second = |per_second: f64, error: f64| View {
            count: per_second as u64,
            per_second,
            mean_ns: 1e9 / per_second,
            error,
            ..view(1.0, 1e6)
        };
        let mut reference = Reference::default();
        for i in 0..40 {
            let rate = if i % 2 == 0 { 1400.0 } else { 1600.0 };
            reference.learn(&second(rate, 0.08), 60_000_000_000, 300);
        }
        let jumping = reference.at(1.0).unwrap();
        assert!((jumping.per_second / 1500.0 - 1.0).abs() < 0.02, "{jumping:?}");
        (0..5).for_each(|_| reference.learn(&second(750.0, 0.01), 60_000_000_000, 300));
        let disturbed = reference.at(1.0).unwrap();
        assert!(disturbed.mean_ns < 1.15 * jumping.mean_ns && disturbed.per_second > 0.85 * 1500.0);
        (0..10).for_each(|_| reference.learn(&second(3000.0, 0.01), 60_000_000_000, 300));
        assert!(reference.at(1.0).unwrap().per_second > 2700.0);
    }
}
