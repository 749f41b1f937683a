//! Two runs side by side: the effect with its interval, what else differs, and why not to believe it.
//!
//! Intervals come from a moving-block bootstrap over the runs' intervals ([`crate::stats::bootstrap`]), at the levels of
//! Holm's procedure ([`crate::stats::holm`]) over all effects of the comparison: of twenty comparisons of runs without
//! any difference one makes a claim, however many classes and measures each has.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::result::derive::derive;
use crate::result::difference::{self, Difference};
use crate::result::record::{Class, JobRecord, Note, Record};
use crate::result::run_result::{ClassResult, JobResult};
use crate::result::series::Series;
use crate::stats::bca::Estimate;
use crate::stats::bootstrap::{self, RatioInterval, Side};
use crate::stats::holm;

/// Value of [`Comparison::schema`] that this version writes.
pub const SCHEMA: &str = "weir.comparison/1";
/// Long runs are resampled in at most this many units: more would cost time and change nothing.
const UNITS_MAX: usize = 300;
/// Notes of a run that cast doubt on any comparison with it.
const DOUBTS: [&str; 9] = [
    "io-error",
    "wrong-data",
    "little-violated",
    "never-settled",
    "regimes",
    "unsteady",
    "stall",
    "busy-machine",
    "depth-without-effect",
];

/// A comparison of run A with run B.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// The first run.
    pub a: RunName,
    /// The second.
    pub b: RunName,
    /// Jobs, paired in order.
    pub jobs: Vec<JobComparison>,
    /// What differs in what was asked for.
    pub workload_differences: Vec<Difference>,
    /// What differs in kernel, device, settings and engine.
    pub condition_differences: Vec<Difference>,
    /// Why the comparison may not hold.
    pub warnings: Vec<Note>,
}

/// Which run it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunName {
    /// Its name in the store.
    pub id: String,
    /// Start, RFC 3339 with offset.
    pub started_at: String,
}

/// One pair of jobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobComparison {
    /// Name of A's job.
    pub a: String,
    /// Name of B's job.
    pub b: String,
    /// Effects, class by class.
    pub effects: Vec<Effect>,
}

/// How B differs from A in one measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Class of operations.
    pub class: Class,
    /// What is compared.
    pub measure: Measure,
    /// A's figure: operations per second, or nanoseconds. `null` with too few samples.
    pub a: Option<f64>,
    /// B's figure.
    pub b: Option<f64>,
    /// B / A.
    pub ratio: Option<f64>,
    /// Interval of the ratio, at Holm's level: 95 % or more, so that all of a comparison together hold at 95 %; `null`
    /// with fewer than five intervals in either run.
    pub interval: Option<RatioInterval>,
    /// What follows.
    pub verdict: Verdict,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Operations per second: more is better.
    Throughput,
    /// Median latency: less is better.
    P50,
    /// 99th percentile of latency: less is better.
    P99,
}

impl Measure {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Throughput => "throughput",
            Measure::P50 => "p50",
            Measure::P99 => "p99",
        }
    }

    fn quantile(self) -> Option<f64> {
        match self {
            Measure::Throughput => None,
            Measure::P50 => Some(0.5),
            Measure::P99 => Some(0.99),
        }
    }

    fn of(self, class: &ClassResult) -> Option<f64> {
        match self {
            Measure::Throughput => Some(class.iops).filter(|rate| *rate > 0.0),
            Measure::P50 => class.p50.ns().map(|ns| ns as f64),
            Measure::P99 => class.p99.ns().map(|ns| ns as f64),
        }
    }
}

/// What an interval says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval excludes 1, in B's favour.
    Better,
    /// The interval excludes 1, in A's favour.
    Worse,
    /// The interval covers 1: no difference that this data can show.
    NoDifference,
    /// There is no interval.
    Unknown,
}

/// Compares B with A. `seed` drives the resamples: the same seed gives the same intervals.
pub fn compare(a: &Record, b: &Record, seed: u64) -> Comparison {
    let (result_a, result_b) = (derive(a), derive(b));
    let pairs = a.jobs.iter().zip(&result_a.jobs).zip(b.jobs.iter().zip(&result_b.jobs));
    let (mut jobs, estimates): (Vec<JobComparison>, Vec<Vec<Option<Estimate>>>) =
        pairs.map(|(a, b)| compare_jobs(a, b, seed)).unzip();
    judge(&mut jobs, &estimates.concat());
    let workload_differences = workload_differences(a, b);
    let mut warnings = warnings(a, b, &workload_differences);
    for (name, result) in [("A", &result_a), ("B", &result_b)] {
        let notes = result.jobs.iter().flat_map(|job| &job.notes).chain(&result.notes);
        let doubts = notes.filter(|n| DOUBTS.contains(&n.key.as_str()) || n.key == "ended-early");
        warnings.extend(doubts.map(|n| Note { key: n.key.clone(), text: format!("{name}: {}", n.text) }));
    }
    Comparison {
        schema: SCHEMA.to_string(),
        a: RunName { id: a.id.clone(), started_at: a.started_at.clone() },
        b: RunName { id: b.id.clone(), started_at: b.started_at.clone() },
        jobs,
        workload_differences,
        condition_differences: condition_differences(a, b),
        warnings,
    }
}

type Job<'a> = (&'a JobRecord, &'a JobResult);

/// Effects without intervals as yet, and what the intervals are to be cut from.
fn compare_jobs(a: Job<'_>, b: Job<'_>, seed: u64) -> (JobComparison, Vec<Option<Estimate>>) {
    let (mut effects, mut estimates) = (Vec::new(), Vec::new());
    for (class, of_a) in a.1.classes.iter().filter(|(_, c)| c.count > 0) {
        let Some(of_b) = b.1.classes.get(class).filter(|c| c.count > 0) else { continue };
        let series = [a.0, b.0].map(|job| Series::of(job, *class).in_at_most(UNITS_MAX));
        for measure in [Measure::Throughput, Measure::P50, Measure::P99] {
            let effect = effect(*class, measure, of_a, of_b);
            estimates.push(effect.ratio.and_then(|_| estimate(measure, &series[0], &series[1], seed)));
            effects.push(effect);
        }
    }
    (JobComparison { a: a.1.name.clone(), b: b.1.name.clone(), effects }, estimates)
}

fn effect(class: Class, measure: Measure, of_a: &ClassResult, of_b: &ClassResult) -> Effect {
    let (a, b) = (measure.of(of_a), measure.of(of_b));
    let ratio = a.zip(b).map(|(a, b)| b / a);
    Effect { class, measure, a, b, ratio, interval: None, verdict: Verdict::Unknown }
}

/// Intervals and verdicts of all effects, which are one family. The interval is that of the coarse statistic, moved to
/// the exact ratio: its width is what the resamples are for.
fn judge(jobs: &mut [JobComparison], estimates: &[Option<Estimate>]) {
    let effects = jobs.iter_mut().flat_map(|job| &mut job.effects);
    for (effect, coarse) in effects.zip(holm::intervals(estimates)) {
        effect.interval = effect.ratio.zip(coarse).map(|(ratio, coarse)| {
            let shift = ratio / coarse.ratio;
            RatioInterval { ratio, low: coarse.low * shift, high: coarse.high * shift }
        });
        effect.verdict = verdict(effect.measure, effect.interval);
    }
}

fn verdict(measure: Measure, interval: Option<RatioInterval>) -> Verdict {
    match interval {
        None => Verdict::Unknown,
        Some(interval) if interval.covers_one() => Verdict::NoDifference,
        Some(interval) if (interval.ratio > 1.0) == (measure == Measure::Throughput) => Verdict::Better,
        Some(_) => Verdict::Worse,
    }
}

fn estimate(measure: Measure, a: &Series, b: &Series, seed: u64) -> Option<Estimate> {
    let (values_a, values_b) = (values(measure, a), values(measure, b));
    let (of_a, of_b) = (statistic(measure, a), statistic(measure, b));
    let a = Side { series: &values_a, statistic: &of_a };
    let b = Side { series: &values_b, statistic: &of_b };
    bootstrap::estimate_unpaired(&a, &b, seed)
}

/// One value per interval, which shows how neighbours depend on each other.
fn values(measure: Measure, series: &Series) -> Vec<f64> {
    let of_one = |i: usize, q: f64| series.latencies.quantiles([i], [q]).map_or(0.0, |[value]| value);
    match measure.quantile() {
        None => series.rates(),
        Some(q) => (0..series.len()).map(|i| of_one(i, q)).collect(),
    }
}

fn statistic(measure: Measure, series: &Series) -> impl Fn(&[usize]) -> Option<f64> + '_ {
    move |chosen| match measure.quantile() {
        None => Some(series.rate(chosen.iter().copied())),
        Some(q) => series.latencies.quantiles(chosen.iter().copied(), [q]).map(|[value]| value),
    }
}

fn workload_differences(a: &Record, b: &Record) -> Vec<Difference> {
    let workload = |record: &Record| {
        let jobs = record.jobs.iter().map(|job| serde_json::to_value(&job.job).unwrap_or_default());
        let floods = record.floods.iter().map(|flood| Value::from(flood.spec.clone()));
        serde_json::json!({ "job": jobs.collect::<Value>(), "flood": floods.collect::<Value>() })
    };
    // Names say nothing about what was done, and another seed is the same workload.
    difference::between(&workload(a), &workload(b), &["name", "seed", "prefix"])
}

fn condition_differences(a: &Record, b: &Record) -> Vec<Difference> {
    let conditions = |record: &Record| {
        let engines = record.jobs.iter().map(|job| {
            serde_json::json!({ "granted": job.engine.granted.clone(), "refused": job.engine.refused.clone() })
        });
        let mut all = record.conditions.clone();
        // A login makes a cgroup of its own; what it limits is what counts.
        let cgroups = all.get_mut("cgroups").and_then(Value::as_array_mut).into_iter().flatten();
        for cgroup in cgroups.filter_map(Value::as_object_mut) {
            cgroup.remove("path");
        }
        if let Some(all) = all.as_object_mut() {
            all.insert("engine".to_string(), engines.collect());
            all.insert("weir".to_string(), record.weir_version.clone().into());
        }
        all
    };
    difference::between(&conditions(a), &conditions(b), &difference::VOLATILE)
}

fn warnings(a: &Record, b: &Record, workload: &[Difference]) -> Vec<Note> {
    let mut warnings = Vec::new();
    let mut warn =
        |key: &str, text: &str| warnings.push(Note { key: key.to_string(), text: text.to_string() });
    if !workload.is_empty() {
        warn(
            "workloads-differ",
            "not the same workload: the ratios mix the effect of what was asked for with that of the conditions",
        );
    }
    if a.kind != b.kind {
        warn("kinds-differ", "the runs are of different kinds");
    }
    if a.jobs.len() != b.jobs.len() {
        warn("jobs-differ", "the runs have different numbers of jobs; the surplus is left out");
    }
    if a.jobs.iter().chain(&b.jobs).any(|job| job.job.rate.is_some()) {
        warn("open-loop", "throughput was set by the rate asked for; compare the latencies");
    }
    let few = |record: &Record| record.jobs.iter().any(|job| job.intervals.len() < bootstrap::UNITS_MIN);
    if few(a) || few(b) {
        warn(
            "few-intervals",
            "fewer than five intervals in a run: there is no interval to judge by; run longer",
        );
    }
    warnings
}
