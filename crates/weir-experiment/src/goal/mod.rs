//! What an experiment is to improve, and what must not get worse.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::measures::{Figures, Metric};
use crate::words;

mod parse;
mod print;

pub use parse::BadGoal;

/// One figure is at most this many times better or worse than another: what never finished an operation is not
/// infinitely bad, and two such trials are alike.
const RATIO_MAX: f64 = 1000.0;

/// `max rate`, `min p99`, `max bulk with p99 <= 10ms`, `max 0.7*rate + 0.3*bulk with rate >= 85% of idle`,
/// `max rate keep p99 within 10%`. Prints and parses as people write it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Goal {
    /// Figures with their weights, positive and summing to 1. A score is the weighted sum of the logarithms of each
    /// figure's ratio to the baseline, turned so that more is better: units cancel, and 0 is "baseline".
    pub weights: Vec<(Metric, f64)>,
    /// What must hold for an arm to be eligible at all.
    pub bounds: Vec<Bound>,
    /// Figures that may not be worse than the baseline by more than this share of it (0.1: a tenth), beside the goal.
    pub guardrails: Vec<(Metric, f64)>,
    /// Figures of a command of which less is better (`min latency_ms`); of weir's own figures it is known.
    pub less: Vec<Metric>,
}

/// A limit on one figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The figure.
    pub metric: Metric,
    /// Whether it may not exceed the limit (else: may not fall below).
    pub at_most: bool,
    /// The limit.
    pub limit: Limit,
}

/// What a figure is held against.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// In its own unit: ns for latencies, bytes per second for bulk and device.
    Value(f64),
    /// A share (0.85: 85 %) of what the same figure was somewhere else.
    Share {
        /// The share.
        share: f64,
        /// Of what.
        of: Base,
    },
}

/// Where the figure comes from that a share refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// The same workload without floods, under the baseline settings.
    Idle,
    /// The same workload under the same floods, with the baseline settings.
    Found,
}

/// Figures that a goal's shares refer to, as far as they were measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bases<'a> {
    /// Without floods.
    pub idle: Option<&'a Figures>,
    /// With floods, baseline settings.
    pub found: Option<&'a Figures>,
}

impl<'a> Bases<'a> {
    fn of(&self, base: Base) -> Option<&'a Figures> {
        match base {
            Base::Idle => self.idle,
            Base::Found => self.found,
        }
    }
}

impl Goal {
    /// One figure to improve, in the direction that is better for it.
    pub fn of(metric: Metric) -> Goal {
        Goal { weights: vec![(metric, 1.0)], ..Goal::default() }
    }

    /// Whether more of a figure is better.
    pub fn more_is_better(&self, metric: &Metric) -> bool {
        metric.more_is_better() && !self.less.contains(metric)
    }

    /// The figure with the greatest weight; `None` only of an empty goal.
    pub fn headline(&self) -> Option<&Metric> {
        self.weights.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(metric, _)| metric)
    }

    /// Every figure that it speaks of, once.
    pub fn metrics(&self) -> Vec<Metric> {
        let weighted = self.weights.iter().map(|(metric, _)| metric);
        let guarded = self.guardrails.iter().map(|(metric, _)| metric);
        let mut all: Vec<Metric> = Vec::new();
        for metric in weighted.chain(self.bounds.iter().map(|bound| &bound.metric)).chain(guarded) {
            if !all.contains(metric) {
                all.push(metric.clone());
            }
        }
        all
    }

    /// Whether any bound refers to the idle machine, which then has to be measured too.
    pub fn needs_idle(&self) -> bool {
        self.bounds.iter().any(|bound| matches!(bound.limit, Limit::Share { of: Base::Idle, .. }))
    }

    /// How much better than `found` it is: the logarithm of a ratio, 0 for "alike". `None` where a figure is missing;
    /// where a percentile lacks samples on either side, the next figure below it that both have stands in.
    pub fn score(&self, figures: &Figures, found: &Figures) -> Option<f64> {
        self.weights.iter().map(|(metric, weight)| Some(weight * self.gain(metric, figures, found)?)).sum()
    }

    /// [`Goal::score`] of one figure alone.
    pub fn gain(&self, metric: &Metric, figures: &Figures, found: &Figures) -> Option<f64> {
        let (to, from) = stand_ins(metric).iter().find_map(|m| figures.get(m).zip(found.get(m)))?;
        let log = log_ratio(*to, *from);
        Some(if self.more_is_better(metric) { log } else { -log })
    }

    /// What of its bounds and guardrails does not hold, in sentences. A condition that was not measured does not hold.
    pub fn breaches(&self, figures: &Figures, bases: &Bases<'_>) -> Vec<String> {
        let bounds = self.bounds.iter().filter_map(|bound| breach(bound, figures, bases).err());
        let guardrails = self.guardrails.iter().filter_map(|(metric, share)| {
            let Some(gain) = bases.found.and_then(|found| self.gain(metric, figures, found)) else {
                return Some(format!("{metric} was not measured"));
            };
            let change = words::change(if self.more_is_better(metric) { gain } else { -gain }.exp());
            let allowed = print::percent(*share);
            (-gain > share.ln_1p())
                .then(|| format!("{metric}: {change} against the baseline, {allowed} % worse is allowed"))
        });
        bounds.chain(guardrails).collect()
    }

    /// By how much bounds and guardrails are missed, as the sum of logarithms of ratios: 0 where all hold.
    pub fn excess(&self, figures: &Figures, bases: &Bases<'_>) -> f64 {
        let most = RATIO_MAX.ln();
        let bounds =
            self.bounds.iter().map(|bound| bound.margin(figures, bases).map_or(most, |m| (-m).max(0.0)));
        let guardrails = self.guardrails.iter().map(|(metric, share)| {
            let gain = bases.found.and_then(|found| self.gain(metric, figures, found));
            gain.map_or(most, |gain| (-gain - share.ln_1p()).max(0.0))
        });
        bounds.chain(guardrails).sum()
    }

    /// Whether all its bounds and guardrails hold.
    pub fn eligible(&self, figures: &Figures, bases: &Bases<'_>) -> bool {
        self.breaches(figures, bases).is_empty()
    }

    /// Complains about a figure that neither weir nor the command has (`named`: the command's).
    pub fn check(&self, named: &[&str]) -> Result<(), BadGoal> {
        for metric in self.metrics() {
            if let Metric::Named(name) = &metric
                && !named.contains(&name.as_str())
            {
                return Err(parse::unknown_figure(self, name, named));
            }
        }
        Ok(())
    }
}

impl Bound {
    /// How far on the right side of its limit a figure is: the logarithm of a ratio, negative on the wrong side.
    /// `None` where the figure, or what the limit refers to, was not measured.
    pub fn margin(&self, figures: &Figures, bases: &Bases<'_>) -> Option<f64> {
        let limit = match self.limit {
            Limit::Value(limit) => limit,
            Limit::Share { share, of } => share * bases.of(of)?.get(&self.metric)?,
        };
        let above = log_ratio(*figures.get(&self.metric)?, limit);
        Some(if self.at_most { -above } else { above })
    }
}

/// Figures to look at for one of them, best first.
fn stand_ins(metric: &Metric) -> &[Metric] {
    const TAIL: [Metric; 5] = [Metric::P999, Metric::P99, Metric::P95, Metric::P50, Metric::Mean];
    match TAIL.iter().position(|m| m == metric) {
        Some(at) => &TAIL[at..],
        None => std::slice::from_ref(metric),
    }
}

fn log_ratio(to: f64, from: f64) -> f64 {
    if to <= 0.0 && from <= 0.0 {
        return 0.0;
    }
    let most = RATIO_MAX.ln();
    (to.max(f64::MIN_POSITIVE) / from.max(f64::MIN_POSITIVE)).ln().clamp(-most, most)
}

fn breach(bound: &Bound, figures: &Figures, bases: &Bases<'_>) -> Result<(), String> {
    let metric = &bound.metric;
    let value =
        figures.get(metric).ok_or_else(|| format!("{metric} was not measured, or on too few samples"))?;
    let limit = match bound.limit {
        Limit::Value(limit) => limit,
        Limit::Share { share, of } => {
            let base = bases.of(of).and_then(|figures| figures.get(metric));
            share * base.ok_or_else(|| format!("{metric} of {of} was not measured"))?
        }
    };
    let holds = if bound.at_most { *value <= limit } else { *value >= limit };
    holds
        .then_some(())
        .ok_or_else(|| format!("{metric} is {}, not {bound}: {}", metric.shown(*value), metric.shown(limit)))
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Base::Idle => "idle",
            Base::Found => "found",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(pairs: &[(&str, f64)]) -> Figures {
        pairs.iter().map(|(name, value)| (Metric::from((*name).to_string()), *value)).collect()
    }

    #[test]
    fn a_score_is_the_weighted_logarithm_of_ratios_turned_so_that_more_is_better() {
        let found = figures(&[("rate", 100.0), ("p99", 8e6), ("mean", 4e6), ("bulk", 200e6), ("lag", 3.0)]);
        for (goal, with, expected) in [
            ("max rate", figures(&[("rate", 200.0)]), Some(2f64.ln())),
            ("min p99", figures(&[("p99", 4e6)]), Some(2f64.ln())),
            ("min lag", figures(&[("lag", 6.0)]), Some(-2f64.ln())),
            ("max 3*rate + bulk", figures(&[("rate", 200.0), ("bulk", 100e6)]), Some(0.5 * 2f64.ln())),
            ("max 0.5*rate - 0.5*p99", figures(&[("rate", 200.0), ("p99", 16e6)]), Some(0.0)),
            // Too few samples for a p99: both have a mean.
            ("min p99", figures(&[("mean", 8e6)]), Some(-2f64.ln())),
            ("max rate", figures(&[("rate", 0.0)]), Some(-RATIO_MAX.ln())),
            ("max rate", figures(&[("bulk", 1.0)]), None),
        ] {
            let goal: Goal = goal.parse().unwrap();
            let score = goal.score(&with, &found);
            let near = score.zip(expected).is_none_or(|(a, b)| (a - b).abs() < 1e-9);
            assert!(near && score.is_some() == expected.is_some(), "{goal}: {score:?}, not {expected:?}");
        }
        assert_eq!(
            Goal::of(Metric::Rate).score(&figures(&[("rate", 0.0)]), &figures(&[("rate", 0.0)])),
            Some(0.0)
        );
    }

    #[test]
    fn bounds_and_guardrails_say_what_does_not_hold() {
        let found = figures(&[("rate", 50.0), ("p99", 2e9), ("bulk", 250e6), ("lag", 100.0)]);
        let idle = figures(&[("rate", 1500.0)]);
        let trial = figures(&[("rate", 1200.0), ("p99", 12e6), ("bulk", 205e6), ("lag", 82.0)]);
        for (goal, expected) in [
            ("max rate", vec![]),
            ("max rate with p99 <= 12ms", vec![]),
            ("max bulk with p99 <= 10ms", vec!["p99 is 12.0 ms, not p99 <= 10ms: 10.0 ms"]),
            ("max bulk with rate >= 85% of idle", vec!["rate is 1,200/s, not rate >= 85% of idle: 1,275/s"]),
            ("max rate with bulk >= 80% of found", vec![]),
            (
                "max rate keep bulk within 10%",
                vec!["bulk: -18 % against the baseline, 10 % worse is allowed"],
            ),
            // 250 is 22 % more than 205.
            ("max rate keep bulk within 22%", vec![]),
            ("max rate keep bulk within 120%", vec![]),
            ("max rate keep p99 within 0%", vec![]),
            (
                "max rate keep lag within 21.9%",
                vec!["lag: -18 % against the baseline, 21.9 % worse is allowed"],
            ),
            ("min lag keep lag within 17.9%", vec![]),
            ("max rate with p99.9 <= 1s", vec!["p99.9 was not measured, or on too few samples"]),
            ("max rate with bulk >= 80% of idle", vec!["bulk of idle was not measured"]),
        ] {
            let goal: Goal = goal.parse().unwrap();
            let bases = Bases { idle: Some(&idle), found: Some(&found) };
            assert_eq!(goal.breaches(&trial, &bases), expected, "{goal}");
            assert_eq!(goal.eligible(&trial, &bases), expected.is_empty(), "{goal}");
            assert_eq!(goal.excess(&trial, &bases) <= 0.0, expected.is_empty(), "{goal}");
        }
    }

    #[test]
    fn figures_that_nobody_measures_are_found_out() {
        let goal: Goal = "max rte".parse().unwrap();
        let told = goal.check(&[]).unwrap_err().to_string();
        assert!(told.contains("`rte`") && told.contains("did you mean `rate`"), "{told}");
        assert_eq!("max tps with rate >= 5".parse::<Goal>().unwrap().check(&["tps"]), Ok(()));
    }
}
