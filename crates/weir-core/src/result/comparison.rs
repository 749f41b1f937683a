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
use crate::result::series::{self, Series};
use crate::stats::bca::Estimate;
use crate::stats::bootstrap::{self, RatioInterval, Side};
use crate::stats::{Quantile, holm};

/// Value of [`Comparison::schema`] that this version writes.
pub const SCHEMA: &str = "weir.comparison/1";
/// Long runs are resampled in at most this many units: more would cost time and change nothing.
const UNITS_MAX: usize = 300;
/// Notes of a run that cast doubt on any comparison with it.
const DOUBTS: [&str; 11] = [
    "io-error",
    "wrong-data",
    "little-violated",
    "never-settled",
    "regimes",
    "unsteady",
    "stall",
    "busy-machine",
    "depth-without-effect",
    "served-from-cache",
    "unwritten-extents",
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
    /// Jobs, paired by their names.
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
    /// Class of operations, by its name; `transaction` or a kind of statement where a database ran.
    pub class: String,
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
    pub verdict: Significance,
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

    fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Measure::Throughput => figures.throughput.filter(|rate| *rate > 0.0),
            Measure::P50 => figures.p50,
            Measure::P99 => figures.p99,
        }
    }
}

/// What a comparison needs of one class or kind of one run.
pub struct Figures {
    /// Per second.
    pub throughput: Option<f64>,
    /// Median, ns.
    pub p50: Option<f64>,
    /// 99th percentile, ns.
    pub p99: Option<f64>,
    /// Interval by interval.
    pub series: Series,
}

impl Figures {
    fn of(job: Job<'_>, class: Class, of: &ClassResult) -> Figures {
        let ns = |quantile: Quantile| quantile.ns().map(|ns| ns as f64);
        let series = Series::of(job.0, class);
        Figures { throughput: Some(of.iops), p50: ns(of.latency.p50), p99: ns(of.latency.p99), series }
    }
}

/// What an interval says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Significance {
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
    let compared = |(of_a, of_b): (usize, usize)| {
        compare_jobs((&a.jobs[of_a], &result_a.jobs[of_a]), (&b.jobs[of_b], &result_b.jobs[of_b]), seed)
    };
    let (mut jobs, estimates): (Vec<JobComparison>, Vec<Vec<Option<Estimate>>>) =
        pairs(a, b).into_iter().map(compared).unzip();
    judge(&mut jobs, &estimates.concat());
    let workload_differences = workload_differences(a, b);
    let mut warnings = warnings(a, b, jobs.len(), &workload_differences);
    for (name, result) in [("A", &result_a), ("B", &result_b)] {
        let notes = result.jobs.iter().flat_map(|job| &job.notes).chain(&result.notes);
        let doubts = notes.filter(|n| DOUBTS.contains(&n.key.as_str()) || n.key == "ended-early");
        warnings.extend(doubts.map(|n| Note { key: n.key.clone(), text: format!("{name}: {}", n.text) }));
    }
    Comparison::of([a, b], jobs, workload_differences, condition_differences(a, b), warnings)
}

impl Comparison {
    /// A comparison of two runs from its parts.
    pub fn of(
        runs: [&Record; 2],
        jobs: Vec<JobComparison>,
        workload_differences: Vec<Difference>,
        condition_differences: Vec<Difference>,
        warnings: Vec<Note>,
    ) -> Comparison {
        let [a, b] = runs.map(|run| RunName { id: run.id.clone(), started_at: run.started_at.clone() });
        let schema = SCHEMA.to_string();
        Comparison { schema, a, b, jobs, workload_differences, condition_differences, warnings }
    }
}

/// Which job of A is held against which of B: those of one name in order; where no name is in both, all in order.
fn pairs(a: &Record, b: &Record) -> Vec<(usize, usize)> {
    let mut free: Vec<Option<&str>> = b.jobs.iter().map(|job| Some(job.job.name.as_str())).collect();
    let mut of_b = |name: &str| {
        let at = free.iter().position(|free| *free == Some(name))?;
        free[at] = None;
        Some(at)
    };
    let named = a.jobs.iter().enumerate().filter_map(|(at, job)| Some((at, of_b(&job.job.name)?)));
    let named: Vec<(usize, usize)> = named.collect();
    if named.is_empty() { (0..a.jobs.len().min(b.jobs.len())).map(|at| (at, at)).collect() } else { named }
}

type Job<'a> = (&'a JobRecord, &'a JobResult);

/// Effects without intervals as yet, and what the intervals are to be cut from.
fn compare_jobs(a: Job<'_>, b: Job<'_>, seed: u64) -> (JobComparison, Vec<Option<Estimate>>) {
    let pairs = a.1.classes.iter().filter(|(_, c)| c.count > 0).filter_map(|(class, of_a)| {
        let of_b = b.1.classes.get(class).filter(|c| c.count > 0)?;
        Some((class.name(), Figures::of(a, *class, of_a), Figures::of(b, *class, of_b)))
    });
    let (effects, estimates) = effects(pairs, seed);
    (JobComparison { a: a.1.name.clone(), b: b.1.name.clone(), effects }, estimates)
}

/// The comparison of one pair of runs whose kinds are given by name, judged as a family of its own.
pub fn job<'a>(
    a: String,
    b: String,
    kinds: impl Iterator<Item = (&'a str, Figures, Figures)>,
    seed: u64,
) -> JobComparison {
    let (effects, estimates) = effects(kinds, seed);
    let mut job = JobComparison { a, b, effects };
    judge(std::slice::from_mut(&mut job), &estimates);
    job
}

fn effects<'a>(
    kinds: impl Iterator<Item = (&'a str, Figures, Figures)>,
    seed: u64,
) -> (Vec<Effect>, Vec<Option<Estimate>>) {
    let (mut effects, mut estimates) = (Vec::new(), Vec::new());
    for (name, of_a, of_b) in kinds {
        let measures = [Measure::Throughput, Measure::P50, Measure::P99];
        let of_this = measures.map(|measure| effect(name, measure, &of_a, &of_b));
        let series = [of_a, of_b].map(|figures| figures.series.in_at_most(UNITS_MAX));
        for effect in of_this {
            let has_ratio = effect.ratio.is_some();
            estimates.push(if has_ratio {
                estimate(effect.measure, &series[0], &series[1], seed)
            } else {
                None
            });
            effects.push(effect);
        }
    }
    (effects, estimates)
}

fn effect(class: &str, measure: Measure, of_a: &Figures, of_b: &Figures) -> Effect {
    let (a, b) = (measure.of(of_a), measure.of(of_b));
    let ratio = a.zip(b).map(|(a, b)| b / a);
    let class = class.to_string();
    Effect { class, measure, a, b, ratio, interval: None, verdict: Significance::Unknown }
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

fn verdict(measure: Measure, interval: Option<RatioInterval>) -> Significance {
    match interval {
        None => Significance::Unknown,
        Some(interval) if interval.covers_one() => Significance::NoDifference,
        Some(interval) if (interval.ratio > 1.0) == (measure == Measure::Throughput) => Significance::Better,
        Some(_) => Significance::Worse,
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
    let all = |record: &Record| {
        let engines = record.jobs.iter().map(|job| {
            serde_json::json!({ "granted": job.engine.granted.clone(), "refused": job.engine.refused.clone() })
        });
        conditions(record, ("engine", engines.collect()))
    };
    difference::between(&all(a), &all(b), &difference::VOLATILE)
}

/// The conditions of a run as they are compared, with something more under a name.
pub fn conditions(record: &Record, (name, more): (&str, Value)) -> Value {
    let mut all = record.conditions.clone();
    // A login makes a cgroup of its own; what it limits is what counts.
    let cgroups = all.get_mut("cgroups").and_then(Value::as_array_mut).into_iter().flatten();
    for cgroup in cgroups.filter_map(Value::as_object_mut) {
        cgroup.remove("path");
    }
    if let Some(all) = all.as_object_mut() {
        all.insert(name.to_string(), more);
        all.insert("weir".to_string(), record.weir_version.clone().into());
    }
    all
}

/// Said where a run is too short to compare.
pub const FEW_INTERVALS: &str =
    "a run has fewer than five intervals, so there is no confidence interval; run longer";

/// What other work means for a comparison.
pub fn workload_warnings(differences: &[Difference]) -> Vec<Note> {
    let text = "the workloads differ: the ratios mix their effect with that of the conditions";
    let differ = !differences.is_empty();
    differ.then(|| Note { key: "workloads-differ".to_string(), text: text.to_string() }).into_iter().collect()
}

fn warnings(a: &Record, b: &Record, paired: usize, workload: &[Difference]) -> Vec<Note> {
    let mut warnings = workload_warnings(workload);
    let mut warn =
        |key: &str, text: &str| warnings.push(Note { key: key.to_string(), text: text.to_string() });
    if a.kind != b.kind {
        warn("kinds-differ", "the runs are of different kinds");
    }
    if paired < a.jobs.len().max(b.jobs.len()) {
        warn(
            "jobs-differ",
            "the runs have different jobs; the comparison omits those that the other run lacks",
        );
    }
    if a.jobs.iter().chain(&b.jobs).any(|job| job.job.is_open_loop()) {
        warn("open-loop", "the requested rate set the throughput; compare the latencies");
    }
    let few = |record: &Record| {
        record.jobs.iter().any(|job| series::whole(&job.intervals).len() < bootstrap::UNITS_MIN)
    };
    if few(a) || few(b) {
        warn("few-intervals", FEW_INTERVALS);
    }
    warnings
}
