//! The last looks, and what they come to over a stretch of time.

use std::collections::VecDeque;

use crate::Sample;
use weir_core::stats::CoarseHistogram;

/// One look, as far as windows need it.
#[derive(Debug, Clone)]
struct Look {
    from_ns: u64,
    elapsed_ns: u64,
    held_ns: f64,
    oldest_ns: u64,
    under_way: u32,
    threads: u32,
    latencies: CoarseHistogram,
    bulk_held: bool,
    written_bytes: u64,
    dirtied_bytes: u64,
    protected_bytes: u64,
    /// Backlog as a share of the limit.
    filled: f64,
}

/// Looks of the last so many nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Window {
    longest_ns: u64,
    looks: VecDeque<Look>,
}

/// What a stretch of looks comes to.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    pub elapsed_ns: u64,
    pub count: u64,
    pub per_second: f64,
    /// Mean of a sync and what its process was held back for it.
    pub mean_ns: f64,
    /// Relative standard error of that mean.
    pub error: f64,
    pub min_ns: Option<u64>,
    /// Age of the oldest sync seen under way, or that ended.
    pub oldest_ns: u64,
    pub concurrency: f64,
    /// Mean time that a sync's process was held back for its own pages.
    pub held_mean_ns: f64,
    pub own_share: f64,
    pub delivered: f64,
    /// Bytes per second that bulk writers are known to have made dirty.
    pub dirtied: f64,
    /// Bulk writers felt the limit.
    pub bound: bool,
    /// Dirty pages and those under way, as a share of the limit.
    pub filled: f64,
    /// Share of dirtied bytes that are the protected processes'.
    pub protected_share: Option<f64>,
    /// All latencies, where they were asked for.
    pub latencies: CoarseHistogram,
}

impl Window {
    pub fn new(longest_ns: u64) -> Window {
        Window { longest_ns, looks: VecDeque::new() }
    }

    /// Takes in a look and forgets what is too old.
    pub fn push(&mut self, sample: &Sample) {
        self.looks.push_back(Look {
            from_ns: sample.at_ns.saturating_sub(sample.elapsed_ns),
            elapsed_ns: sample.elapsed_ns,
            held_ns: sample.syncs.held_back_ns as f64,
            oldest_ns: sample.syncs.oldest_ns,
            under_way: sample.syncs.under_way,
            threads: sample.syncs.threads,
            latencies: sample.syncs.ended.clone(),
            bulk_held: sample.bulk.held_back_ns > 0 || sample.bulk.held_back > 0,
            written_bytes: sample.flow.written_bytes,
            dirtied_bytes: sample.bulk.dirtied_bytes,
            protected_bytes: sample.bulk.protected_bytes,
            filled: sample.backlog_bytes() as f64 / sample.limits.now_bytes.max(1) as f64,
        });
        let from = sample.at_ns.saturating_sub(self.longest_ns + sample.elapsed_ns);
        while self.looks.len() > 1 && self.looks.front().is_some_and(|look| look.from_ns < from) {
            self.looks.pop_front();
        }
    }

    /// What looks that began at `since_ns` or later come to, with all latencies.
    pub fn tail_since(&self, since_ns: u64) -> View {
        let mut view = self.since(since_ns);
        let first = self.looks.partition_point(|look| look.from_ns < since_ns);
        self.looks.iter().skip(first).for_each(|look| view.latencies.merge(&look.latencies));
        view
    }

    /// The same without single latencies: a tail costs more than all the rest.
    pub fn since(&self, since_ns: u64) -> View {
        let first = self.looks.partition_point(|look| look.from_ns < since_ns);
        let looks: Vec<&Look> = self.looks.iter().skip(first).collect();
        let mut view = View::default();
        let (mut sum, mut held, mut written, mut filled, mut under_way) = (0.0, 0.0, 0, 0.0, 0.0);
        let (mut protected, mut dirtied) = (0, 0);
        for look in &looks {
            view.elapsed_ns += look.elapsed_ns;
            view.count += look.latencies.count();
            view.min_ns = view.min_ns.into_iter().chain(look.latencies.min()).min();
            view.oldest_ns = view.oldest_ns.max(look.oldest_ns).max(look.latencies.max().unwrap_or(0));
            view.bound |= look.bulk_held;
            sum += look.latencies.sum() as f64;
            held += look.held_ns;
            written += look.written_bytes;
            filled += look.filled;
            under_way += f64::from(look.under_way);
            protected += look.protected_bytes;
            dirtied += look.dirtied_bytes;
        }
        if view.elapsed_ns == 0 {
            return view;
        }
        let (elapsed, n) = (view.elapsed_ns as f64, looks.len() as f64);
        view.per_second = view.count as f64 / elapsed * 1e9;
        view.delivered = written as f64 / elapsed * 1e9;
        view.dirtied = dirtied as f64 / elapsed * 1e9;
        // The kernel begins to hold writers back halfway between its background limit, half of ours, and ours.
        view.filled = filled / n;
        view.bound |= view.filled > 0.7;
        view.own_share = if sum + held > 0.0 { held / (sum + held) } else { 0.0 };
        let known = dirtied + protected;
        view.protected_share = (known > 0).then(|| protected as f64 / known as f64);
        if view.count > 0 {
            view.mean_ns = (sum + held) / view.count as f64;
            view.held_mean_ns = held / view.count as f64;
            view.error = error_of_mean(&looks);
        }
        // A stall ends all at once, or not in this window: then what is under way at each look says more.
        let stalled = looks.last().is_some_and(|look| look.oldest_ns > view.elapsed_ns / 4);
        let by_time = if stalled { under_way / n + held / elapsed } else { (sum + held) / elapsed };
        // Who waits for another's lock, as writers of one file do, neither syncs nor is held back: where threads are told
        // apart, their number says better what load this is.
        let threads = looks.iter().map(|look| look.threads).max().unwrap_or(0);
        view.concurrency = if threads > 0 { f64::from(threads) } else { by_time };
        view
    }
}

impl View {
    /// Quantile `q` of all latencies: the highest value of its bucket.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        self.latencies.quantile(q)
    }

    /// How many took longer than so long, to the width of a bucket.
    pub fn above(&self, ns: u64) -> u64 {
        self.latencies.edges().filter(|(high, _)| *high > ns).map(|(_, n)| n).sum()
    }
}

/// Relative error of a mean from looks that are not independent. A device that works in slices serves syncs in bursts,
/// which makes looks differ and windows not: neighbours then vary against each other, and that is taken off
/// (Newey and West, two lags).
fn error_of_mean(looks: &[&Look]) -> f64 {
    let n = looks.len() as f64;
    let count: u64 = looks.iter().map(|look| look.latencies.count()).sum();
    let poisson = 1.0 / (count.max(1) as f64).sqrt();
    let mean = count as f64 / n;
    if looks.len() < 4 || mean <= 0.0 {
        return poisson.max(1.0 / n);
    }
    let off: Vec<f64> = looks.iter().map(|look| look.latencies.count() as f64 / mean - 1.0).collect();
    let lag = |k: usize| off.iter().zip(&off[k..]).map(|(a, b)| a * b).sum::<f64>() / n;
    let variance = lag(0) + 2.0 * (2.0 / 3.0 * lag(1) + 1.0 / 3.0 * lag(2));
    // At best the bursts are periodic and one of them is cut off.
    let least = lag(0) / n;
    (variance.max(least) / n).sqrt().max(poisson.min(0.1) * 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bulk, DeviceFlow, Limits, Sensor, SensorSource, Syncs};
    use weir_core::target::DeviceNumber;

    fn sample(at_ns: u64, ended: CoarseHistogram) -> Sample {
        Sample {
            device: DeviceNumber::default(),
            at_ns,
            elapsed_ns: 1,
            sensor: Sensor { source: SensorSource::Syscalls, silent_ns: 0, lost: 0 },
            syncs: Syncs { ended, ..Syncs::default() },
            bulk: Bulk::default(),
            flow: DeviceFlow::default(),
            limits: Limits::default(),
        }
    }

    #[test]
    fn latencies_of_several_looks_are_those_of_all_their_syncs() {
        let looks: [&[u64]; 5] =
            [&[], &[3, 1_000_000, 1_000_001], &[], &[1_010_000, 70_000_000], &[u64::MAX, 40, 1_500, 3]];
        let (mut window, mut all) = (Window::new(100), CoarseHistogram::new());
        for (at_ns, latencies_ns) in (1..).zip(looks) {
            let mut ended = CoarseHistogram::new();
            latencies_ns.iter().for_each(|ns| ended.record(*ns));
            all.merge(&ended);
            window.push(&sample(at_ns, ended));
        }
        let view = window.tail_since(0);
        let edges = |latencies: &CoarseHistogram| latencies.edges().collect::<Vec<_>>();
        assert_eq!((edges(&view.latencies), view.count), (edges(&all), 9));
        assert_eq!(
            window.tail_since(3).latencies.edges().count(),
            6,
            "those of a look that began earlier are left out"
        );
        assert_eq!(Window::new(1).tail_since(0).latencies.count(), 0);
    }
}
