//! What a law was worth: its history against the one of the same machine without a flood.

use serde::{Deserialize, Serialize};

use crate::LatencyTarget;
use weir_core::stats::Histogram;

use super::event::{Event, Script};
use super::history::{History, Second};
use super::run::{Law, simulate};
use super::spec::PlantSpec;

/// Seconds in a row within the target that count as recovered.
const SETTLED: usize = 3;

/// A stretch of time in which the same threads and bulk writers were at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Its first second.
    pub from: usize,
    /// The second after its last.
    pub to: usize,
    /// Sync threads.
    pub threads: u32,
    /// Bulk writers.
    pub writers: u32,
}

/// What a law was worth in a phase, or in several together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Seconds with syncs and a flood.
    pub seconds: u64,
    /// Commits in them.
    pub commits: u64,
    /// Commits in them without the flood.
    pub commits_idle: u64,
    /// The 99th percentile of commits in nanoseconds, where there were any.
    pub p99_ns: Option<u64>,
    /// The longest commit, ended or not, in nanoseconds.
    pub max_ns: u64,
    /// Seconds whose 99th percentile, or oldest commit, was beyond the target.
    pub seconds_over: u64,
    /// Longest time in a phase from the first second over the target, in seconds, until `SETTLED` seconds in a row
    /// were within it; to the end of the phase where it never came to that.
    pub recovered_after: u64,
    /// Bytes of bulk writers that reached the device, with syncs and without.
    pub bulk_bytes: u64,
    /// Bytes that were left to them: what the device accepts, less what syncs wrote, and no more than they wanted.
    pub left_bytes: f64,
    /// Durations of the commits.
    #[serde(skip)]
    pub durations: Histogram,
}

impl Score {
    /// Commits as a share of those without the flood, where there were any.
    pub fn kept(&self) -> Option<f64> {
        (self.commits_idle > 0).then(|| self.commits as f64 / self.commits_idle as f64)
    }

    /// Bulk bytes as a share of what was left.
    pub fn used(&self) -> Option<f64> {
        (self.left_bytes > 0.0).then(|| self.bulk_bytes as f64 / self.left_bytes)
    }

    /// Seconds over the target as a share.
    pub fn over(&self) -> Option<f64> {
        (self.seconds > 0).then(|| self.seconds_over as f64 / self.seconds as f64)
    }

    /// Takes in another phase or run.
    pub fn merge(&mut self, other: &Score) {
        self.seconds += other.seconds;
        self.commits += other.commits;
        self.commits_idle += other.commits_idle;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.seconds_over += other.seconds_over;
        self.recovered_after = self.recovered_after.max(other.recovered_after);
        self.bulk_bytes += other.bulk_bytes;
        self.left_bytes += other.left_bytes;
        self.durations.merge(&other.durations);
        self.p99_ns = self.durations.quantile(0.99);
    }
}

/// The same machine and script without a flood, at the baseline: what laws are held against.
pub fn undisturbed(spec: &PlantSpec, script: &Script, seed: u64) -> History {
    let mut spec = spec.clone();
    spec.bulk.writers = 0;
    let mut script = script.clone();
    script.events.retain(|event| !matches!(event.event, Event::Flood(_)));
    simulate(&spec, &script, Law::AsFound, seed)
}

/// The phases of a history.
pub fn phases(history: &History) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    for (i, second) in history.seconds.iter().enumerate() {
        let (threads, writers) = (second.threads, second.writers);
        match phases.last_mut() {
            Some(phase) if (phase.threads, phase.writers) == (threads, writers) => phase.to = i + 1,
            _ => phases.push(Phase { from: i, to: i + 1, threads, writers }),
        }
    }
    phases
}

/// What a law was worth in a phase; `idle` is the same machine's history without the flood.
pub fn score(history: &History, idle: &History, phase: Phase, target: LatencyTarget) -> Score {
    let mut score = Score::default();
    if phase.writers == 0 {
        return score;
    }
    let seconds = history.between(phase.from, phase.to);
    for second in seconds {
        score.bulk_bytes += second.bulk_bytes;
        let of_syncs = second.bytes - second.bulk_bytes;
        score.left_bytes += (second.accepted_bytes - of_syncs as f64).min(second.wanted_bytes).max(0.0);
    }
    let Some(p99) = idle.durations(phase.from, phase.to).quantile(0.99).filter(|_| phase.threads > 0) else {
        return score;
    };
    let target = match target {
        LatencyTarget::Absolute(ns) => ns.0 as f64,
        LatencyTarget::TimesIdle(times) => p99 as f64 * times,
    };
    score.seconds = seconds.len() as u64;
    score.commits = seconds.iter().map(|second| second.commits).sum();
    score.commits_idle = idle.between(phase.from, phase.to).iter().map(|second| second.commits).sum();
    score.durations = history.durations(phase.from, phase.to);
    score.p99_ns = score.durations.quantile(0.99);
    score.max_ns = seconds.iter().map(|s| s.oldest_ns.max(s.durations.max().unwrap_or(0))).max().unwrap_or(0);
    let over: Vec<bool> = seconds.iter().map(|second| is_over(second, target)).collect();
    score.seconds_over = over.iter().filter(|over| **over).count() as u64;
    let bad = &over[over.iter().position(|over| *over).unwrap_or(over.len())..];
    let settled = bad.windows(SETTLED).position(|window| window.iter().all(|over| !over));
    score.recovered_after = settled.unwrap_or(bad.len()) as u64;
    score
}

/// Whether more than a hundredth of a second's commits took longer than the target; the oldest one that is still under
/// way counts as one of them.
fn is_over(second: &Second, target: f64) -> bool {
    let late = second.durations.count_above(target as u64) + u64::from(second.oldest_ns as f64 > target);
    let all = second.durations.count() + u64::from(second.oldest_ns > 0);
    late as f64 > all as f64 / 100.0 && all > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: LatencyTarget = LatencyTarget::TimesIdle(5.0);

    fn gauntlet(law: Law) -> Vec<Score> {
        let (spec, script) = (PlantSpec::device_a(), Script::gauntlet(8, false));
        let idle = undisturbed(&spec, &script, 1);
        assert!(idle.seconds.iter().all(|second| second.bulk_bytes == 0 && second.writers == 0));
        let history = simulate(&spec, &script, law, 1);
        let phases = phases(&history);
        assert_eq!(
            phases.iter().map(|phase| (phase.threads, phase.writers)).collect::<Vec<_>>(),
            [(10, 0), (1, 0), (1, 1), (10, 1), (1, 1), (0, 1), (10, 0)]
        );
        phases.into_iter().map(|phase| score(&history, &idle, phase, TARGET)).collect()
    }

    #[test]
    fn a_small_limit_keeps_commits_and_costs_bulk_and_the_one_found_the_other_way_round() {
        let found = gauntlet(Law::AsFound);
        let small = gauntlet(Law::Static(8_000_000));
        assert!(found[3].kept().unwrap() < 0.1 && small[3].kept().unwrap() > 0.9, "{found:?} {small:?}");
        assert!(found[3].used().unwrap() > 0.95 && small[3].used().unwrap() < 0.8, "{found:?} {small:?}");
        assert_eq!((found[3].over(), small[3].over()), (Some(1.0), Some(0.0)));
        assert_eq!((found[3].recovered_after, small[3].recovered_after), (8, 0));
        assert!(found[3].max_ns > 5_000_000_000, "{found:?}");
        // Bulk alone gets all, and there is nobody to lose anything.
        assert_eq!((small[5].seconds, small[5].kept()), (0, None));
        assert!(small[5].used().unwrap() > 0.97, "{small:?}");
        assert_eq!(found[0], Score::default());
        let mut both = small[2].clone();
        both.merge(&small[3]);
        assert_eq!((both.seconds, both.commits), (16, small[2].commits + small[3].commits));
        assert_eq!(both.p99_ns, both.durations.quantile(0.99));
    }
}
