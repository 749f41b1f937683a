//! Counterfactuals: what a change really did, run in turns with runs without it, against what the verdict says of it.
//!
//! Utilisation says what is used, an elasticity what would help; only the second is evidence of a limit.

use super::diagnosis::{Diagnosis, Limit};
use super::profile::percent;
use super::tested::{Change, Tested};
use weir_core::stats::bca::{ALPHA, Kin, clustered};
use weir_core::stats::bootstrap::{RatioInterval, Side};

/// What a verdict says of a change: the ratio will be above, or below.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Says {
    Above(f64),
    Below(f64),
}

/// A bound is kept where the interval ends at most so far above it. The real gain may lie right at it, and then no number
/// of runs has an interval that ends below.
const BOUND_SLACK: f64 = 1.1;

/// Rates, per second of a pair of runs: without the change and with it.
pub type Pair = (Vec<f64>, Vec<f64>);

impl Change {
    /// What a verdict says that this change does. A limit that is removed gives room, one that is not touched does not.
    fn prediction(self, limit: Limit) -> Option<Says> {
        // Half of a resource that limits takes at most half of the rate; a part of that is enough to tell.
        let (felt, not_felt, gains) = (Says::Below(0.85), Says::Above(0.85), Says::Above(1.1));
        let stays = Says::Below(1.25);
        match (self, limit) {
            (Change::FlushOff | Change::InMemory, Limit::CommitLatency) => Some(gains),
            (Change::InMemory, Limit::ReadIo | Limit::WriteBack) => Some(gains),
            (Change::FlushOff, Limit::ReadIo) => Some(stays),
            (Change::HalfProcessors, Limit::ServerCpu) => Some(felt),
            (Change::HalfProcessors, Limit::ReadIo | Limit::WriteBack | Limit::LoadGenerator) => {
                Some(not_felt)
            }
            (Change::TwiceThreads, Limit::ServerCpu | Limit::Locks) => Some(stays),
            (Change::TwiceThreads, Limit::LoadGenerator) => Some(gains),
            (Change::HalfThreads, Limit::Locks) => Some(Says::Above(0.7)),
            _ => None,
        }
    }
}

/// Judges changes by their pairs, all with the same number of them: what trials differ from each other by chance is
/// known better from all than from one alone. Where the verdict bounds what a change can give, the bound is held
/// against it as well.
pub fn tested(changes: &[(Change, Vec<Pair>)], verdict: &Diagnosis, seed: u64) -> Vec<Tested> {
    let logs: Vec<Vec<f64>> = changes.iter().map(|(_, pairs)| logs(pairs)).collect();
    let fewest = logs.iter().map(Vec::len).min().unwrap_or(0);
    let kin = Kin::of(&logs.iter().map(Vec::as_slice).collect::<Vec<_>>(), fewest);
    let one = |((change, pairs), logs): (&(Change, Vec<Pair>), &Vec<f64>)| {
        held(*change, pairs.len() as u32, ratio(logs, pairs, kin, seed), verdict)
    };
    changes.iter().zip(&logs).map(one).collect()
}

/// What a change did, held against what a verdict says of it.
pub fn held(change: Change, pairs: u32, ratio: Option<RatioInterval>, verdict: &Diagnosis) -> Tested {
    let bound = match change {
        Change::FlushOff | Change::InMemory => verdict.bounds.faster_disk,
        _ => None,
    };
    let says = change.prediction(verdict.limit);
    let within = ratio.zip(bound).and_then(|(ratio, bound)| is_within(ratio, bound));
    let as_said = ratio.zip(says).and_then(|(ratio, says)| holds(ratio, says));
    let confirms = match (as_said, within) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (None, within) if says.is_none() => within,
        (as_said, _) => as_said,
    };
    let is_said = says.is_some() || bound.is_some();
    let sentence = sentence(change, ratio, bound, is_said.then_some(confirms));
    Tested { change, ratio, bound, pairs, confirms, sentence }
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

fn logs(pairs: &[Pair]) -> Vec<f64> {
    pairs.iter().map(|(without, with)| (mean(with) / mean(without)).ln()).collect()
}

/// Rates of pairs of runs with seconds as units.
fn ratio(logs: &[f64], pairs: &[Pair], kin: Kin, seed: u64) -> Option<RatioInterval> {
    let of = |rates: &[f64], chosen: &[usize]| {
        (!chosen.is_empty()).then(|| chosen.iter().map(|i| rates[*i]).sum::<f64>() / chosen.len() as f64)
    };
    let statistics: Vec<_> = pairs
        .iter()
        .map(|(without, with)| (move |c: &[usize]| of(without, c), move |c: &[usize]| of(with, c)))
        .collect();
    let sides: Vec<(Side<'_>, Side<'_>)> = pairs
        .iter()
        .zip(&statistics)
        .map(|((without, with), (a, b))| {
            (Side { series: without, statistic: a }, Side { series: with, statistic: b })
        })
        .collect();
    Some(clustered(logs, &sides, kin, seed)?.interval(ALPHA))
}

/// Whether the interval is that of a ratio within the bound; `None` where it is too wide to say.
fn is_within(ratio: RatioInterval, bound: f64) -> Option<bool> {
    if ratio.low > bound { Some(false) } else { (ratio.high <= bound * BOUND_SLACK).then_some(true) }
}

/// Whether the interval lies on the side that was said; `None` where it lies on both.
fn holds(ratio: RatioInterval, says: Says) -> Option<bool> {
    match says {
        Says::Above(least) if ratio.low >= least => Some(true),
        Says::Above(least) if ratio.high < least => Some(false),
        Says::Below(most) if ratio.high <= most => Some(true),
        Says::Below(most) if ratio.low > most => Some(false),
        _ => None,
    }
}

fn sentence(
    change: Change,
    ratio: Option<RatioInterval>,
    bound: Option<f64>,
    confirms: Option<Option<bool>>,
) -> String {
    let Some(ratio) = ratio else {
        return format!("{}: not enough runs or seconds for an interval", change.name());
    };
    let change_percent = |ratio: f64| format!("{:+.0} %", (ratio - 1.0) * 100.0);
    let mut text = format!(
        "{}: {} ({} to {})",
        change.name(),
        change_percent(ratio.ratio),
        change_percent(ratio.low),
        change_percent(ratio.high)
    );
    if let Some(bound) = bound {
        text += &format!(", at most {} by the verdict", percent(bound - 1.0));
    }
    text += match confirms {
        Some(Some(true)) => "; as the verdict says",
        Some(Some(false)) => "; AGAINST the verdict",
        Some(None) => "; not enough to tell whether that is as the verdict says",
        None => "",
    };
    text
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::super::synthetic::Scene;
    use super::super::waits::Wait;
    use super::*;

    fn pairs(without: f64, with: f64) -> Vec<Pair> {
        let wave = |mean: f64, phase: usize| {
            (0..6).map(|i| mean * (1.0 + 0.01 * ((i + phase) % 3) as f64)).collect()
        };
        (0..3).map(|nth| (wave(without, nth), wave(with, nth + 1))).collect()
    }

    #[test]
    fn what_is_measured_is_held_against_the_verdict() {
        let commit = Scene {
            rate: 375,
            server: (0.08, 0.05),
            waits: &[(Wait::Commit, 0.85)],
            idle: 1.56,
            syncs: 0.5,
            ..Scene::default()
        };
        let cpu = Scene { server: (0.4, 0.5), waits: &[], idle: 0.05, ..Scene::default() };
        for (scene, change, rates, confirms) in [
            (&commit, Change::FlushOff, (375.0, 1817.0), Some(true)),
            (&commit, Change::FlushOff, (375.0, 376.0), Some(false)),
            (&commit, Change::HalfProcessors, (375.0, 300.0), None),
            (&cpu, Change::HalfProcessors, (1000.0, 520.0), Some(true)),
            (&cpu, Change::HalfProcessors, (1000.0, 990.0), Some(false)),
            (&cpu, Change::TwiceThreads, (1000.0, 1010.0), Some(true)),
            // More than the bound allows.
            (&cpu, Change::FlushOff, (1000.0, 3000.0), Some(false)),
            (&cpu, Change::FlushOff, (1000.0, 1005.0), Some(true)),
        ] {
            let verdict = judge(&scene.evidence());
            let found = tested(&[(change, pairs(rates.0, rates.1))], &verdict, 1).remove(0);
            assert_eq!(found.confirms, confirms, "{change:?} {rates:?}: {found:?}");
            let ratio = found.ratio.unwrap();
            assert!((ratio.ratio - rates.1 / rates.0).abs() < 0.1 * rates.1 / rates.0, "{ratio:?}");
        }
        let lone = [(Change::FlushOff, pairs(1.0, 2.0)[..1].to_vec())];
        let found = tested(&lone, &judge(&cpu.evidence()), 1).remove(0);
        assert_eq!((found.ratio, found.confirms), (None, None));
    }

    #[test]
    fn an_interval_that_could_be_anything_confirms_nothing() {
        let cpu = Scene { server: (0.4, 0.5), waits: &[], idle: 0.05, ..Scene::default() };
        let verdict = judge(&cpu.evidence());
        let bound = verdict.bounds.faster_disk.unwrap();
        for (low, high, confirms) in [
            (bound * 0.9, bound * 1.05, Some(true)),
            (bound * 0.5, bound * 2.0, None),
            (bound * 1.01, bound * 1.2, Some(false)),
        ] {
            let ratio = RatioInterval { ratio: (low * high).sqrt(), low, high };
            let found = held(Change::InMemory, 5, Some(ratio), &verdict);
            assert_eq!(found.confirms, confirms, "{found:?}");
            assert_eq!(found.sentence.contains("not enough to tell"), confirms.is_none(), "{found:?}");
        }
        // Of what nothing was said nothing is missing.
        let ratio = RatioInterval { ratio: 1.0, low: 0.5, high: 2.0 };
        let found = held(Change::HalfThreads, 5, Some(ratio), &verdict);
        assert!(!found.sentence.contains("verdict"), "{found:?}");
    }
}
