//! What syncs do undisturbed, by the number of threads: learned online.

use serde::{Deserialize, Serialize};

use super::constants::{SECOND_NS, SURE, TAIL_SYNCS};
use super::decision::Known;
use super::window::View;
use weir_core::stats::CoarseHistogram;

/// Threads closer than half an octave are as many.
const SAME_OCTAVES: f64 = 0.5;
/// What is better than was known is averaged over so long, and what is worse: what was done once undisturbed can be done, and who comes
/// less often for a while has not become slower.
const BETTER_NS: f64 = 3.0 * SECOND_NS as f64;
const WORSE_NS: f64 = 30.0 * SECOND_NS as f64;
/// What lies within noise is averaged over so long, and a tail is forgotten in ten times that.
const AVERAGED_NS: f64 = 60.0 * SECOND_NS as f64;
const ENTRIES_MOST: usize = 24;
/// Latencies kept of one entry; beyond that older ones count half.
const POOL_MOST: u64 = 20_000;

/// What was seen of so many threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// Threads.
    pub threads: f64,
    /// Mean duration of a sync, in nanoseconds.
    pub mean_ns: f64,
    /// Syncs a second.
    pub per_second: f64,
    /// Time that this stands on, in nanoseconds.
    pub weight_ns: f64,
    /// The highest 99th percentile of a window, ageing, in nanoseconds.
    pub p99_ns: f64,
    /// The oldest sync under way, ageing, in nanoseconds.
    pub oldest_ns: f64,
    /// Latencies: upper edges of buckets in nanoseconds, and how many.
    pub pool: Vec<(u64, u64)>,
    /// Seen while bulk writers were idle; else it is the best that was seen beside them.
    pub idle: bool,
}

/// What is expected of so many threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub mean_ns: f64,
    pub per_second: f64,
    /// Known only where it was seen undisturbed.
    pub p99_ns: Option<u64>,
    pub oldest_ns: u64,
    pub known: Known,
}

/// What syncs do undisturbed.
#[derive(Debug, Clone, Default)]
pub(super) struct Reference {
    pub entries: Vec<Entry>,
}

/// One sync at a time or less is the same: nothing waits for another.
fn octaves(threads: f64) -> f64 {
    threads.max(1.0).log2()
}

fn distance(entry: &Entry, threads: f64) -> f64 {
    (octaves(entry.threads) - octaves(threads)).abs()
}

impl Reference {
    /// Learns from a stretch without bulk writers.
    pub fn learn(&mut self, view: &View) {
        if view.count == 0 || view.elapsed_ns == 0 {
            return;
        }
        let entry = self.entry(view.concurrency);
        if !entry.idle {
            *entry = Entry { threads: view.concurrency, idle: true, ..Entry::default() };
        }
        let elapsed = view.elapsed_ns as f64;
        entry.weight_ns = (entry.weight_ns + elapsed).min(AVERAGED_NS);
        let share = (elapsed / entry.weight_ns).min(1.0);
        // Counts of a second jump where a device serves in bursts: what lies within that is averaged evenly, or the reference would
        // become that of the best seconds.
        let noise = 2.0 * view.error;
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
        entry.threads += (view.concurrency - entry.threads) * share;
        entry.pool(&view.latencies);
        let window = if view.count >= TAIL_SYNCS { view.quantile(0.99) } else { None };
        let seen = window.max(entry.pooled_quantile(0.99)).unwrap_or(0) as f64;
        let aged = (-elapsed / (AVERAGED_NS * 10.0)).exp();
        entry.oldest_ns = (entry.oldest_ns * aged).max(view.oldest_ns as f64);
        entry.p99_ns = (entry.p99_ns * aged).max(seen);
    }

    /// Syncs beside bulk writers that do more than was known of them undisturbed: they do at least that. By how much more.
    pub fn outdone(&mut self, view: &View) -> f64 {
        if view.count == 0 || view.elapsed_ns == 0 {
            return 1.0;
        }
        let before = self.at(view.concurrency).map_or(0.0, |expected| expected.per_second);
        let entry = self.entry(view.concurrency);
        let sure = 1.0 - SURE * view.error;
        let (rate, mean) = (view.per_second * sure, view.mean_ns / sure.max(0.1));
        if !entry.idle {
            if rate > entry.per_second {
                (entry.per_second, entry.mean_ns) = (rate, mean);
                entry.weight_ns = view.elapsed_ns as f64;
            }
        } else if rate > entry.per_second {
            // Believed as soon as in quiet times; what they take is then that of this load, too.
            let share = (view.elapsed_ns as f64 / BETTER_NS).min(1.0);
            entry.per_second += (rate - entry.per_second) * share;
            entry.mean_ns += (mean.min(entry.mean_ns) - entry.mean_ns) * share;
        }
        let now = self.at(view.concurrency).map_or(0.0, |expected| expected.per_second);
        if before > 0.0 { (now / before).max(1.0) } else { 1.0 }
    }

    /// What to expect of so many threads; `None` when nothing was ever seen. More threads than were seen do at least the rate of
    /// fewer.
    pub fn at(&self, threads: f64) -> Option<Expected> {
        let here = self.near(threads);
        if let Some(entry) = here.filter(|entry| entry.idle) {
            return Some(Expected {
                mean_ns: entry.mean_ns,
                per_second: entry.per_second,
                p99_ns: (entry.p99_ns > 0.0).then_some(entry.p99_ns as u64),
                oldest_ns: entry.oldest_ns as u64,
                known: Known::Seen,
            });
        }
        let fewer = self.entries.iter().filter(|entry| entry.idle && entry.threads <= threads);
        let bound = fewer.max_by(|a, b| a.threads.total_cmp(&b.threads));
        let bound = bound.map(|entry| (entry.per_second, entry.mean_ns * threads / entry.threads.max(1.0)));
        let own = here.map(|entry| (entry.per_second, entry.mean_ns));
        let best = bound.into_iter().chain(own).max_by(|a, b| a.0.total_cmp(&b.0));
        best.map(|(per_second, mean_ns)| Expected {
            mean_ns,
            per_second,
            p99_ns: None,
            oldest_ns: 0,
            known: Known::Bounded,
        })
    }

    /// The share of undisturbed syncs that took longer than so long; `None` where too few were seen.
    pub fn share_above(&self, threads: f64, ns: u64) -> Option<f64> {
        let entry = self.near(threads).filter(|entry| entry.idle)?;
        let count = entry.pooled();
        let above: u64 = entry.pool.iter().filter(|bucket| bucket.0 > ns).map(|bucket| bucket.1).sum();
        (count >= TAIL_SYNCS).then(|| above as f64 / count as f64)
    }

    fn near(&self, threads: f64) -> Option<&Entry> {
        let near = self.entries.iter().filter(|entry| entry.weight_ns > 0.0);
        let near = near.filter(|entry| distance(entry, threads) < SAME_OCTAVES);
        near.min_by(|a, b| distance(a, threads).total_cmp(&distance(b, threads)))
    }

    fn entry(&mut self, threads: f64) -> &mut Entry {
        let all = 0..self.entries.len();
        let near = all.filter(|at| distance(&self.entries[*at], threads) < SAME_OCTAVES);
        let near = near.min_by(|a, b| {
            distance(&self.entries[*a], threads).total_cmp(&distance(&self.entries[*b], threads))
        });
        let at = near.unwrap_or_else(|| {
            if self.entries.len() >= ENTRIES_MOST {
                self.entries.remove(0);
            }
            self.entries.push(Entry { threads, ..Entry::default() });
            self.entries.len() - 1
        });
        &mut self.entries[at]
    }
}

impl Entry {
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

    fn pooled(&self) -> u64 {
        self.pool.iter().map(|bucket| bucket.1).sum()
    }

    fn pooled_quantile(&self, q: f64) -> Option<u64> {
        let count = self.pooled();
        let rank = (q * count as f64).ceil() as u64;
        let mut seen = 0;
        let at = self.pool.iter().find_map(|&(high, n)| {
            seen += n;
            (seen >= rank).then_some(high)
        });
        at.filter(|_| count >= TAIL_SYNCS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(threads: f64, mean_ns: f64) -> View {
        let elapsed_ns = 1_000_000_000;
        let per_second = threads * 1e9 / mean_ns;
        View {
            elapsed_ns,
            count: per_second as u64,
            mean_ns,
            concurrency: threads,
            per_second,
            ..View::default()
        }
    }

    #[test]
    fn undisturbed_syncs_are_known_where_they_were_seen_and_bounded_elsewhere() {
        let mut reference = Reference::default();
        assert!(reference.at(1.0).is_none());
        reference.learn(&view(1.0, 1e6));
        // (threads, syncs a second expected, known)
        for (threads, rate, known) in
            [(0.1, 1000.0, Known::Seen), (1.0, 1000.0, Known::Seen), (8.0, 1000.0, Known::Bounded)]
        {
            let expected = reference.at(threads).unwrap();
            assert!((expected.per_second / rate - 1.0).abs() < 0.01, "{threads}: {expected:?}");
            assert_eq!(expected.known, known, "{threads}");
        }
        // Beside bulk writers eight at once did better than the bound: undisturbed they do at least that.
        reference.outdone(&view(8.0, 2e6));
        reference.outdone(&view(8.0, 5e6));
        assert!((reference.at(8.0).unwrap().per_second / 4000.0 - 1.0).abs() < 0.01);
        reference.learn(&view(8.0, 1.5e6));
        assert_eq!(reference.at(8.0).unwrap().known, Known::Seen);
        assert!((reference.at(8.0).unwrap().mean_ns / 1.5e6 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_load_that_does_more_beside_bulk_writers_raises_rate_and_mean() {
        let mut reference = Reference::default();
        reference.learn(&view(10.0, 7e6));
        let noisy = View { error: 0.1, ..view(10.0, 6.6e6) };
        assert_eq!(reference.outdone(&noisy), 1.0, "as noise has it");
        let raised: f64 = (0..20).map(|_| reference.outdone(&view(10.0, 3.5e6))).product();
        let expected = reference.at(10.0).unwrap();
        assert!((raised - 2.0).abs() < 0.02, "{raised}");
        assert!((expected.per_second / (10.0 * 1e9 / 3.5e6) - 1.0).abs() < 0.02, "{expected:?}");
        assert!((expected.mean_ns / 3.5e6 - 1.0).abs() < 0.02, "{expected:?}");
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
            reference.learn(&second(if i % 2 == 0 { 1400.0 } else { 1600.0 }, 0.08));
        }
        let jumping = reference.at(1.0).unwrap();
        assert!((jumping.per_second / 1500.0 - 1.0).abs() < 0.02, "{jumping:?}");
        (0..5).for_each(|_| reference.learn(&second(750.0, 0.01)));
        let disturbed = reference.at(1.0).unwrap();
        assert!(disturbed.mean_ns < 1.15 * jumping.mean_ns && disturbed.per_second > 0.85 * 1500.0);
        (0..10).for_each(|_| reference.learn(&second(3000.0, 0.01)));
        assert!(reference.at(1.0).unwrap().per_second > 2700.0);
    }
}
