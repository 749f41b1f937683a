//! What trials say of arms: figures with intervals, and effects between arms that count how many are looked at.
//!
//! Arms are compared within blocks, where they share the time they ran in. With five pairs or more a pair is the unit
//! ([`bca::paired`]); with fewer the seconds within trials are ([`bca::clustered`]). All effects of one call are a
//! family: their intervals are cut at Holm's levels, so that whatever it claims, the chance of any false claim is 5 %.
//! A trial that was aborted or failed counts as twice as bad as the worst that was measured.

use std::collections::BTreeMap;

use crate::Arm;
use crate::design::{Observation, Outcome};
use crate::finding::{ArmSummary, Effect, Judgement};
use crate::goal::{Bases, Goal};
use crate::measures::{Measures, Metric, Second};
use crate::words;
use weir_core::stats::bca::{self, Estimate, Kin};
use weir_core::stats::bootstrap::{RatioInterval, Side, UNITS_MIN};
use weir_core::stats::{holm, quantile};

/// How much worse a spoilt trial is than the worst measured.
const SPOILT: f64 = 2.0;
/// Arms are at most this many times better or worse than each other: what finished nothing is not infinitely bad.
const RATIO_MAX: f64 = 1e4;

/// A comparison to make: arm `to` against arm `from` in a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// The arm compared with.
    pub from: usize,
    /// The arm.
    pub to: usize,
    /// The figure.
    pub metric: Metric,
}

/// Trials of an experiment, and how they are judged.
pub struct EffectJudge<'a> {
    trials: Vec<&'a Observation>,
    goal: &'a Goal,
    seed: u64,
    worst: BTreeMap<Metric, f64>,
}

/// A weighted product of figures: a figure itself, or a goal's score.
type Terms = [(Metric, f64)];

/// A comparison in such a product.
struct Contrast {
    from: usize,
    to: usize,
    terms: Vec<(Metric, f64)>,
}

impl Contrast {
    fn of(wanted: &Wanted) -> Contrast {
        Contrast { from: wanted.from, to: wanted.to, terms: vec![(wanted.metric.clone(), 1.0)] }
    }
}

/// What stands against an arm: a spoilt trial, a bound, a guardrail.
pub(crate) fn against(arm: &ArmSummary, goal: &Goal, bases: &Bases<'_>) -> Vec<String> {
    words::spoilt(arm).into_iter().chain(goal.breaches(&arm.values, bases)).collect()
}

impl<'a> EffectJudge<'a> {
    /// Judges these trials. The goal says of which of a command's figures less is better.
    pub fn new(
        trials: impl IntoIterator<Item = &'a Observation>,
        goal: &'a Goal,
        seed: u64,
    ) -> EffectJudge<'a> {
        let mut judge =
            EffectJudge { trials: trials.into_iter().collect(), goal, seed, worst: BTreeMap::new() };
        for metric in judge.metrics() {
            let measured =
                judge.trials.iter().filter_map(|trial| measured(trial.outcome.measured()?, &metric));
            let worst = if goal.more_is_better(&metric) {
                measured.filter(|value| *value > 0.0).min_by(f64::total_cmp)
            } else {
                measured.max_by(f64::total_cmp)
            };
            judge.worst.extend(worst.map(|worst| (metric.clone(), worst)));
        }
        judge
    }

    /// Every figure that any trial measured.
    pub fn metrics(&self) -> Vec<Metric> {
        let measures = self.trials.iter().filter_map(|trial| trial.outcome.measured());
        let mut metrics: Vec<Metric> =
            measures.flat_map(|measures| measures.values.keys().cloned()).collect();
        metrics.sort();
        metrics.dedup();
        metrics
    }

    /// The arms in figures, with an interval for each figure that stands for itself.
    pub fn summaries(&self, arms: &[Arm]) -> Vec<ArmSummary> {
        let metrics = self.metrics();
        let mut summaries: Vec<ArmSummary> =
            arms.iter().enumerate().map(|(i, arm)| self.counted(i, arm)).collect();
        for metric in &metrics {
            let series: Vec<_> = (0..arms.len()).map(|arm| self.alone(arm, metric)).collect();
            for (summary, trials) in summaries.iter_mut().zip(&series) {
                let values: Vec<f64> = trials.iter().map(|(value, _)| *value).collect();
                if values.is_empty() {
                    continue;
                }
                let mean = typical(&values);
                summary.values.insert(metric.clone(), mean);
                let interval = self.interval_alone(trials, &series, metric);
                summary.intervals.extend(
                    interval.map(|i| (metric.clone(), (mean * i.low / i.ratio, mean * i.high / i.ratio))),
                );
            }
        }
        summaries
    }

    fn counted(&self, index: usize, arm: &Arm) -> ArmSummary {
        let trials = || self.trials.iter().filter(|trial| trial.proposal.arm == index);
        let whole = trials().filter(|trial| trial.outcome.measured().is_some()).count();
        let spoilt = (trials().count() - whole) as u32;
        ArmSummary { label: arm.label.clone(), trials: whole as u32, spoilt, ..ArmSummary::default() }
    }

    /// An arm's measured values of a figure, with their seconds.
    fn alone(&self, arm: usize, metric: &Metric) -> Vec<(f64, &'a [Second])> {
        let of_arm = self.trials.iter().filter(|trial| trial.proposal.arm == arm);
        of_arm
            .filter_map(|trial| {
                let measures = trial.outcome.measured()?;
                Some((measured(measures, metric)?, measures.seconds.as_slice()))
            })
            .collect()
    }

    fn interval_alone(
        &self,
        trials: &[(f64, &[Second])],
        all: &[Vec<(f64, &[Second])>],
        metric: &Metric,
    ) -> Option<RatioInterval> {
        let logs_of =
            |trials: &[(f64, &[Second])]| trials.iter().map(|(value, _)| value.ln()).collect::<Vec<f64>>();
        let logs = logs_of(trials);
        let estimate = if logs.len() >= UNITS_MIN {
            bca::paired(&logs, self.seed)
        } else {
            let kin: Vec<Vec<f64>> = all.iter().map(|trials| logs_of(trials)).collect();
            let kin = Kin::of(&kin.iter().map(Vec::as_slice).collect::<Vec<_>>(), logs.len());
            let terms = [(metric.clone(), 1.0)];
            let of_one = Series { seconds: &[], terms: &[] };
            let courses: Vec<_> =
                trials.iter().map(|(_, seconds)| (of_one, Series { seconds, terms: &terms })).collect();
            over_seconds(&logs, &courses, kin, self.seed)
        };
        Some(estimate?.interval(bca::ALPHA))
    }

    /// The effects wanted, as one family.
    pub fn effects(&self, wanted: &[Wanted]) -> Vec<Effect> {
        self.effects_at(wanted, bca::ALPHA)
    }

    /// As [`EffectJudge::effects`], where the family may make a false claim with chance `alpha`.
    pub fn effects_at(&self, wanted: &[Wanted], alpha: f64) -> Vec<Effect> {
        self.cut(wanted, |estimates| holm::intervals_at(estimates, alpha))
    }

    /// Effects of which each stands for itself: of twenty without any difference, one will exclude 1.
    pub fn each(&self, wanted: &[Wanted]) -> Vec<Effect> {
        let cut = |estimate: &Option<Estimate>| Some(estimate.as_ref()?.interval(bca::ALPHA));
        self.cut(wanted, |estimates| estimates.iter().map(cut).collect())
    }

    fn cut(
        &self,
        wanted: &[Wanted],
        intervals: impl Fn(&[Option<Estimate>]) -> Vec<Option<RatioInterval>>,
    ) -> Vec<Effect> {
        let contrasts: Vec<Contrast> = wanted.iter().map(Contrast::of).collect();
        let (estimates, units): (Vec<Option<Estimate>>, Vec<u32>) =
            self.estimates(&contrasts).into_iter().unzip();
        let intervals = intervals(&estimates);
        wanted
            .iter()
            .zip(intervals)
            .zip(units)
            .map(|((w, ratio), units)| Effect {
                from: w.from,
                to: w.to,
                metric: w.metric.clone(),
                ratio,
                units,
                judgement: judgement(ratio.as_ref(), self.goal.more_is_better(&w.metric)),
            })
            .collect()
    }

    /// How much better by the goal each of `arms` is than `from`: the exponential of the goal's score, with the
    /// intervals of one family.
    pub fn gains(&self, from: usize, arms: &[usize]) -> Vec<(Option<RatioInterval>, Judgement)> {
        self.gains_at(from, arms, bca::ALPHA)
    }

    /// As [`EffectJudge::gains`], where the family may make a false claim with chance `alpha`.
    pub fn gains_at(
        &self,
        from: usize,
        arms: &[usize],
        alpha: f64,
    ) -> Vec<(Option<RatioInterval>, Judgement)> {
        let contrasts: Vec<Contrast> = arms.iter().map(|to| self.by_goal(from, *to)).collect();
        let estimates: Vec<_> =
            self.estimates(&contrasts).into_iter().map(|(estimate, _)| estimate).collect();
        let intervals = holm::intervals_at(&estimates, alpha).into_iter();
        intervals.map(|interval| (interval, judgement(interval.as_ref(), true))).collect()
    }

    /// The goal's score of `to` over `from`, pair by pair.
    pub fn scores(&self, from: usize, to: usize) -> Vec<f64> {
        self.pairs(&self.by_goal(from, to)).into_iter().map(|pair| pair.log).collect()
    }

    fn by_goal(&self, from: usize, to: usize) -> Contrast {
        let sign = |metric: &Metric| if self.goal.more_is_better(metric) { 1.0 } else { -1.0 };
        let terms = self.goal.weights.iter().map(|(m, weight)| (m.clone(), sign(m) * weight));
        Contrast { from, to, terms: terms.collect() }
    }

    /// One effect for itself, from which an interval of any level can be cut.
    pub fn estimate(&self, wanted: &Wanted) -> Option<Estimate> {
        self.estimates(&[Contrast::of(wanted)]).pop()?.0
    }

    /// Estimates, and the units that each stands on.
    fn estimates(&self, wanted: &[Contrast]) -> Vec<(Option<Estimate>, u32)> {
        let pairs: Vec<Vec<Pair<'_>>> = wanted.iter().map(|contrast| self.pairs(contrast)).collect();
        let logs: Vec<Vec<f64>> =
            pairs.iter().map(|pairs| pairs.iter().map(|pair| pair.log).collect()).collect();
        let all = wanted.iter().zip(&pairs).zip(&logs).map(|((contrast, pairs), own)| {
            if own.is_empty() {
                return self.unpaired(contrast);
            }
            if own.len() >= UNITS_MIN {
                return (bca::paired(own, self.seed), own.len());
            }
            let like = logs.iter().zip(wanted).filter(|(_, other)| other.terms == contrast.terms);
            let kin = Kin::of(&like.map(|(logs, _)| logs.as_slice()).collect::<Vec<_>>(), own.len());
            let courses: Vec<_> = pairs.iter().map(|pair| pair.courses(&contrast.terms)).collect();
            let seconds = courses.iter().map(|(a, b)| a.seconds.len().min(b.seconds.len())).sum();
            (over_seconds(own, &courses, kin, self.seed), seconds)
        });
        all.map(|(estimate, units)| (estimate, units as u32)).collect()
    }

    /// For arms that never ran in the same block.
    fn unpaired(&self, contrast: &Contrast) -> (Option<Estimate>, usize) {
        let logs = |arm: usize| -> Vec<f64> {
            let trials = self.trials.iter().filter(|trial| trial.proposal.arm == arm);
            let of =
                |(metric, exponent): &(Metric, f64), trial| Some(exponent * self.figure(trial, metric)?.ln());
            trials.filter_map(|trial| contrast.terms.iter().map(|term| of(term, trial)).sum()).collect()
        };
        let (a, b) = (logs(contrast.from), logs(contrast.to));
        (bca::unpaired(&a, &b, self.seed), a.len().min(b.len()))
    }

    /// Trials of both arms that ran in the same block, the first with the first and so on.
    fn pairs(&self, contrast: &Contrast) -> Vec<Pair<'a>> {
        let mut blocks: BTreeMap<u32, [Vec<&Observation>; 2]> = BTreeMap::new();
        for trial in &self.trials {
            let sides = blocks.entry(trial.proposal.block).or_default();
            for (side, _) in
                [contrast.from, contrast.to].iter().enumerate().filter(|(_, arm)| **arm == trial.proposal.arm)
            {
                sides[side].push(trial);
            }
        }
        let together = blocks.into_values().flat_map(|[a, b]| a.into_iter().zip(b));
        together
            .filter_map(|(a, b)| Some(Pair { a, b, log: self.log_ratio(a, b, &contrast.terms)? }))
            .collect()
    }

    fn log_ratio(&self, a: &Observation, b: &Observation, terms: &Terms) -> Option<f64> {
        let of = |(metric, exponent): &(Metric, f64)| {
            let ratio = self.figure(b, metric)?.ln() - self.figure(a, metric)?.ln();
            Some(exponent * ratio.clamp(-RATIO_MAX.ln(), RATIO_MAX.ln()))
        };
        terms.iter().map(of).sum::<Option<f64>>().filter(|log| log.is_finite())
    }

    /// A trial's figure, greater than 0; for a spoilt trial a bad one.
    fn figure(&self, trial: &Observation, metric: &Metric) -> Option<f64> {
        let more = self.goal.more_is_better(metric);
        let bad = self.worst.get(metric).map(|worst| if more { worst / SPOILT } else { worst * SPOILT });
        match &trial.outcome {
            Outcome::Measured(measures) => {
                let value = measured(measures, metric)?;
                // Nothing at all, where more would be better: as bad as a spoilt trial.
                if value > 0.0 { Some(value) } else { bad.filter(|_| more) }
            }
            Outcome::Aborted { measures, .. } => {
                let partial = measured(measures, metric).filter(|value| *value > 0.0);
                match (partial, bad) {
                    (Some(partial), Some(bad)) => {
                        Some(if more { partial.min(bad) } else { partial.max(bad) })
                    }
                    (_, bad) => bad,
                }
            }
            Outcome::Failed { .. } => bad,
        }
    }
}

/// Two trials that belong together.
struct Pair<'a> {
    a: &'a Observation,
    b: &'a Observation,
    log: f64,
}

impl<'a> Pair<'a> {
    fn courses<'t>(&self, terms: &'t Terms) -> (Series<'a, 't>, Series<'a, 't>) {
        let of = |trial: &'a Observation| {
            let seconds = trial.outcome.measured().map_or(&[][..], |measures| &measures.seconds);
            Series { seconds, terms }
        };
        (of(self.a), of(self.b))
    }
}

/// The seconds of a trial, and the product of figures that is wanted of any choice of them.
#[derive(Clone, Copy)]
struct Series<'a, 't> {
    seconds: &'a [Second],
    terms: &'t Terms,
}

impl Series<'_, '_> {
    /// The first figure's course, which shows how neighbours depend on each other.
    fn series(&self) -> Vec<f64> {
        let first = |second: &Second| self.terms.first().and_then(|(m, _)| of_second(second, m));
        self.seconds.iter().map(|second| first(second).unwrap_or(0.0)).collect()
    }

    fn of(&self, chosen: &[usize]) -> Option<f64> {
        let term = |(metric, exponent): &(Metric, f64)| Some(self.mean(chosen, metric)?.powf(*exponent));
        self.terms.iter().map(term).product()
    }

    /// The mean of a figure over chosen seconds, each as long as it was. Where nothing happened it is half a unit
    /// in all the time, so that a ratio exists.
    fn mean(&self, chosen: &[usize], metric: &Metric) -> Option<f64> {
        let known = chosen.iter().filter_map(|i| {
            let second = self.seconds.get(*i)?;
            Some((of_second(second, metric)?, second.len_ns as f64))
        });
        let (sum, time) = known.fold((0.0, 0.0), |(sum, time), (value, len)| (sum + value * len, time + len));
        (time > 0.0).then(|| (sum / time).max(0.5e9 / time))
    }
}

/// A figure of one second; only these are known second by second.
fn of_second(second: &Second, metric: &Metric) -> Option<f64> {
    match metric {
        Metric::Rate => Some(second.rate),
        Metric::P99 => second.p99_ns.map(|ns| ns as f64),
        Metric::Bulk => second.bulk,
        Metric::Device => second.device,
        _ => None,
    }
}

/// An estimate by seconds within few trials. A course without terms is the number 1.
fn over_seconds(
    logs: &[f64],
    courses: &[(Series<'_, '_>, Series<'_, '_>)],
    kin: Kin,
    seed: u64,
) -> Option<Estimate> {
    const ONE: [f64; UNITS_MIN] = [1.0; UNITS_MIN];
    let series: Vec<[Vec<f64>; 2]> = courses
        .iter()
        .map(|(a, b)| [a, b].map(|c| if c.terms.is_empty() { ONE.to_vec() } else { c.series() }))
        .collect();
    let statistics: Vec<_> = courses
        .iter()
        .map(|(a, b)| (|chosen: &[usize]| a.of(chosen), |chosen: &[usize]| b.of(chosen)))
        .collect();
    let trials: Vec<(Side<'_>, Side<'_>)> = series
        .iter()
        .zip(&statistics)
        .map(|([a, b], (of_a, of_b))| {
            (Side { series: a, statistic: of_a }, Side { series: b, statistic: of_b })
        })
        .collect();
    bca::clustered(logs, &trials, kin, seed)
}

/// A figure of a trial, if enough operations stand behind it.
fn measured(measures: &Measures, metric: &Metric) -> Option<f64> {
    let needed = match metric {
        Metric::P50 => quantile::needed(0.5),
        Metric::P95 | Metric::SubmitP95 => quantile::needed(0.95),
        Metric::P99 => quantile::needed(0.99),
        Metric::P999 => quantile::needed(0.999),
        _ => 0,
    };
    measures.get(metric).filter(|value| value.is_finite() && measures.operations >= needed)
}

/// The geometric mean, because arms are compared by ratios: with it, the ratio of two arms is the ratio of their
/// values. Where a trial gave nothing, the ordinary mean.
fn typical(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    if values.iter().all(|value| *value > 0.0) {
        (values.iter().map(|value| value.ln()).sum::<f64>() / count).exp()
    } else {
        values.iter().sum::<f64>() / count
    }
}

fn judgement(ratio: Option<&RatioInterval>, more_is_better: bool) -> Judgement {
    match ratio {
        None => Judgement::Unknown,
        Some(ratio) if ratio.covers_one() => Judgement::NoDifference,
        Some(ratio) if (ratio.ratio > 1.0) == more_is_better => Judgement::Better,
        Some(_) => Judgement::Worse,
    }
}
