//! What one step of a ladder gained, in words.

use crate::Arm;
use crate::arm::{Counted, Workload};
use crate::finding::{ArmSummary, Effect, Judgement, effect_of};
use crate::measures::Metric;
use crate::words;
use weir_core::stats::bca::ALPHA;
use weir_core::units::grouped;

/// A change of a p95 by less than this factor is not what people call a gain or a loss.
const NOTABLE: f64 = 1.5;
/// How near to each other both sides of Little's law are where they agree.
const AGREES: f64 = 0.1;
/// A figure that got worse by less than this share is no cost worth a word.
const COST_MIN: f64 = 0.05;

/// All steps in a sentence: which raised the rate, which lowered it.
pub(super) fn summary(arms: &[Arm], effects: &[Effect]) -> String {
    let steps: Vec<&Effect> =
        (1..arms.len()).filter_map(|to| effect_of(effects, to - 1, to, &Metric::Rate)).collect();
    let with = |judgement: Judgement| {
        let those = steps.iter().filter(|effect| effect.judgement == judgement);
        let change = |effect: &Effect| effect.ratio.map_or(String::new(), |r| words::change(r.ratio));
        those.map(|e| format!("{} ({})", arms[e.to].label, change(e))).collect::<Vec<_>>()
    };
    let (up, down) = (with(Judgement::Better), with(Judgement::Worse));
    if steps.iter().all(|effect| effect.judgement == Judgement::Unknown) {
        return "too little was measured to distinguish the steps".to_string();
    }
    let mut parts = Vec::new();
    if !up.is_empty() {
        parts.push(format!("the rate rose with {}", words::list(&up)));
    }
    if !down.is_empty() {
        parts.push(format!("it fell with {}", words::list(&down)));
    }
    if parts.is_empty() {
        return format!(
            "none of {} changed the rate by more than noise",
            words::count(arms.len() - 1, "step")
        );
    }
    let others = steps.len() - up.len() - down.len();
    if others > 0 {
        parts.push(format!("{} showed no difference", words::count(others, "step")));
    }
    parts.join("; ")
}

/// What got worse from one arm to another, by their means.
pub(super) fn cost(from: &ArmSummary, to: &ArmSummary) -> String {
    let worse = |metric: &Metric| {
        let (a, b) = (from.values.get(metric)?, to.values.get(metric)?);
        let lost = if metric.more_is_better() { a / b } else { b / a };
        let (a, b) = (metric.shown(*a), metric.shown(*b));
        (lost > 1.0 + COST_MIN).then(|| format!("{} goes from {a} to {b}", words::figure(metric)))
    };
    let figures = [Metric::Rate, Metric::Mean, Metric::P50, Metric::P95, Metric::P99, Metric::Bulk];
    let costs: Vec<String> = figures.iter().filter_map(worse).collect();
    if costs.is_empty() { "costs nothing in the measured figures".to_string() } else { words::list(&costs) }
}

/// Sentences on the step to arm `to`.
pub(super) fn remarks(arms: &[Arm], summaries: &[ArmSummary], effects: &[Effect], to: usize) -> Vec<String> {
    let (before, after) = (&summaries[to - 1], &summaries[to]);
    let step = Step { before, after, arm: &arms[to], counted: Counted::of(arms), effects, to };
    let told = [Some(step.gained()), step.artefact(), step.little(), words::spoilt(after)];
    told.into_iter().flatten().map(|sentence| format!("{}: {sentence}", arms[to].label)).collect()
}

struct Step<'a> {
    before: &'a ArmSummary,
    after: &'a ArmSummary,
    arm: &'a Arm,
    counted: Counted,
    effects: &'a [Effect],
    to: usize,
}

impl Step<'_> {
    fn effect(&self, metric: &Metric) -> Option<&Effect> {
        effect_of(self.effects, self.to - 1, self.to, metric)
    }

    /// Throughput, true latency, tail, each a sentence; the first one follows the name of the step.
    fn gained(&self) -> String {
        let parts = [
            ("throughput", &[Metric::Rate][..]),
            ("True latency", &[Metric::P50, Metric::P95]),
            ("Tail", &[Metric::P99]),
        ];
        let told = parts.iter().filter_map(|(name, metrics)| {
            let each: Vec<String> = metrics.iter().filter_map(|metric| self.figure(metric)).collect();
            (!each.is_empty()).then(|| format!("{name}: {}", each.join("; ")))
        });
        let told: Vec<String> = told.collect();
        if told.is_empty() { "nothing was measured".to_string() } else { told.join(". ") }
    }

    /// `p95 29.2 ms, worse, +48 % (95 %: …)`.
    fn figure(&self, metric: &Metric) -> Option<String> {
        let value = metric.shown(*self.after.values.get(metric)?);
        let name = if *metric == Metric::Rate { String::new() } else { format!("{metric} ") };
        let effect = self.effect(metric)?;
        if effect.ratio.is_none() {
            let before = self.before.values.get(metric).map(|before| metric.shown(*before));
            let before = before.map_or(String::new(), |before| format!(", {before} before"));
            return Some(format!("{name}{value}{before} (no interval)"));
        }
        let word = match effect.judgement {
            Judgement::Better => "better, ",
            Judgement::Worse => "worse, ",
            Judgement::NoDifference | Judgement::Unknown => "",
        };
        Some(format!("{name}{value}, {word}{}", words::effect(effect, ALPHA)))
    }

    /// Where what sysbench prints for its p95 goes another way than the operations' own.
    fn artefact(&self) -> Option<String> {
        let (shown_before, shown) = (printed_p95(self.before)?, printed_p95(self.after)?);
        let (true_before, true_p95) =
            (self.before.values.get(&Metric::P95)?, *self.after.values.get(&Metric::P95)?);
        let asynchronous = self.after.values.contains_key(&Metric::SubmitP95);
        let (shown_gain, true_gain) = (shown_before / shown, true_before / true_p95);
        let truly_better = self.effect(&Metric::P95).is_some_and(|e| e.judgement == Judgement::Better);
        let (submit, whole) = (ms(shown), ms(true_p95));
        if asynchronous && shown_gain > NOTABLE && !(truly_better && true_gain > NOTABLE) {
            let as_well = if truly_better {
                format!(", {} only", words::change(1.0 / true_gain))
            } else {
                String::new()
            };
            return Some(format!(
                "the gain in p95 is an artefact: sysbench's asynchronous p95 ({submit}) is the cost of submitting; \
                 operations really take {whole} (p95){as_well}"
            ));
        }
        let truly_worse = self.effect(&Metric::P95).is_some_and(|e| e.judgement == Judgement::Worse);
        if asynchronous && shown_gain < 1.0 / NOTABLE && !truly_worse {
            return Some(format!(
                "the loss in p95 is an artefact: sysbench's asynchronous p95 ({submit}) is the cost of submitting, \
                 which waits here because few may be in flight; operations really take {whole} (p95)"
            ));
        }
        (asynchronous && shown * NOTABLE < true_p95).then(|| {
            format!(
                "sysbench would print {submit} for the p95, which is the cost of submitting; operations really take \
                 {whole}"
            )
        })
    }

    /// What must be in flight for the rate there is, against what is: the evidence for the latency.
    fn little(&self) -> Option<String> {
        let Workload::Job(job) = &self.arm.workload else { return None };
        // Where commits alone are counted, what a job reads is in flight too.
        let counts_all = self.counted == Counted::Operations || !job.reads();
        if !job.engine.is_async() || !counts_all || job.rate.is_some() {
            return None;
        }
        let (rate, mean) = (self.after.values.get(&Metric::Rate)?, self.after.values.get(&Metric::Mean)?);
        let in_flight = u64::from(job.threads) * u64::from(job.depth);
        let expected = in_flight as f64 / rate * 1e9;
        let verdict = match mean / expected {
            ratio if ratio < 1.0 - AGREES => ", so fewer were in flight than requested",
            ratio if ratio > 1.0 + AGREES => ", which is more than fits: doubt this step",
            _ => "",
        };
        Some(format!(
            "{} in flight at {} mean {} each by Little's law; measured on average: {}{}",
            grouped(in_flight),
            Metric::Rate.shown(*rate),
            ms(expected),
            ms(*mean),
            verdict
        ))
    }
}

/// What sysbench prints: of asynchronous I/O the cost of submitting, else the latency.
fn printed_p95(arm: &ArmSummary) -> Option<f64> {
    arm.values.get(&Metric::SubmitP95).or(arm.values.get(&Metric::P95)).copied().filter(|ns| *ns > 0.0)
}

/// Milliseconds as sysbench prints them, up to a second: `0.04 ms`, `48 ms`, `9.0 s`.
fn ms(ns: f64) -> String {
    match ns / 1e6 {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}
