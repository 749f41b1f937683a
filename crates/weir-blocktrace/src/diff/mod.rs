//! Two recordings compared, stage by stage and class by class, like with like.
//!
//! I/Os are compared within kinds (the exact classes) and sizes that both recordings have, weighted to a common mix:
//! a recording with more large writes is not slower for that. Intervals are a block bootstrap over stretches of time,
//! since an I/O's latency depends on that of the ones before it.

mod conclusion;
mod mix;
#[cfg(test)]
mod tests;

use mix::{Mix, Ratio, Weighted};
use serde::Serialize;

use super::analysis::{Analysis, Device};
use super::{Class, Extent, Stage};
use weir_core::stats::Distribution;
use weir_core::target::DeviceNumber;

/// Less of either recording in common than this, and the mixes cannot be compared.
const COMMON_MIN: f64 = 0.5;

/// What is compared, and how strictly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// A device of A, and one of B; without them, the same device of both, or the busiest of each.
    pub devices: [Option<DeviceNumber>; 2],
    /// What is near enough to be the same, as a share: 0.05.
    pub margin: f64,
    /// Of the resamples: the same seed gives the same intervals.
    pub seed: u64,
}

/// Why two recordings cannot be compared at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A recording holds no I/O.
    #[error("{0} holds no I/O that was followed to its end")]
    Empty(char),
    /// A device was named that is not in the recording.
    #[error("{side} has no device {device}; it has {has}")]
    NoDevice {
        /// A or B.
        side: char,
        /// As named.
        device: DeviceNumber,
        /// What there is.
        has: String,
    },
}

/// One recording's device, for the comparison.
struct Side<'a> {
    analysis: &'a Analysis,
    device: &'a Device,
}

/// The comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// What follows, in words, the most important first.
    pub verdict: Vec<String>,
    /// Near enough to be the same, as a share.
    pub margin: f64,
    /// The two devices, A and B.
    pub devices: [DeviceSide; 2],
    /// By class; those without I/O on both sides are left out.
    pub classes: Vec<ClassDiff>,
}

/// One of the two devices and what it was asked to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceSide {
    /// `8:0`, or `sda (8:0)`.
    pub device: String,
    /// How long it was recorded, ns; see [`Device::recorded_ns`].
    pub span_ns: u64,
    /// When its recording began and ended, where that is known.
    pub extent: Extent,
    /// Pieces done.
    pub ios: u64,
    /// Pieces a second.
    pub ios_per_second: f64,
    /// Mean number of requests between D and C; of I/Os, where a live session counted these. Absent where no D was seen.
    pub depth_at_driver: Option<f64>,
    /// The same while there were any. Absent in a live session, which follows no depth.
    pub depth_at_work: Option<f64>,
    /// Share of the data's I/Os that were inserted into a scheduler; absent where nothing tells, as in a live session of
    /// requests.
    pub inserted_share: Option<f64>,
    /// Pieces that ended with an error.
    pub errors: u64,
    /// Events that may be missing.
    pub events_dropped: u64,
}

/// One class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassDiff {
    /// The class.
    pub class: Class,
    /// I/Os of A and B.
    pub ios: [u64; 2],
    /// Share of them whose kind and size both recordings have.
    pub common: [f64; 2],
    /// Whether that is enough of both.
    pub comparable: bool,
    /// The stages, in the order of an I/O's life; empty where not comparable.
    pub stages: Vec<StageDiff>,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageDiff {
    /// The stage.
    #[serde(serialize_with = "key_of_stage")]
    pub stage: Stage,
    /// How often it occurs in what is compared, in A and B.
    pub counts: [u64; 2],
    /// Means over the common mix; absent where one side does not have the stage.
    pub mean: Option<Effect>,
    /// Medians.
    pub p50: Option<Effect>,
    /// 99th percentiles.
    pub p99: Option<Effect>,
    /// What the means say.
    pub judgement: LatencyChange,
}

/// A figure of A and of B.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effect {
    /// A's, ns.
    pub a_ns: f64,
    /// B's, ns.
    pub b_ns: f64,
    /// B's by A's.
    pub ratio: f64,
    /// 95 % interval of the ratio; absent where the recordings are too short for one.
    pub interval: Option<[f64; 2]>,
}

/// What an interval says, given the margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyChange {
    /// All of the interval is within the margin.
    Same,
    /// B takes longer.
    Longer,
    /// B takes less long.
    Shorter,
    /// The interval covers 1 and more than the margin.
    Undecided,
    /// There is no interval.
    NoInterval,
    /// Only A has the stage.
    OnlyA,
    /// Only B has the stage.
    OnlyB,
}

/// Compares B with A.
pub fn diff(a: &Analysis, b: &Analysis, options: &Options) -> Result<Diff, Error> {
    let [a, b] = sides(a, b, options.devices)?;
    let sides = [&a, &b];
    let mut classes: Vec<ClassDiff> = Vec::new();
    let mut mixes: Vec<Mix<'_>> = Vec::new();
    for class in Class::ALL {
        let mix = Mix::of(sides, class);
        // Classes overlap: where one has the I/Os of another, it has its figures, too.
        let twin = mixes.iter().position(|other| other.has_same_cells(&mix)).map(|at| classes[at].clone());
        let found =
            twin.map(|twin| ClassDiff { class, ..twin }).or_else(|| class_diff(&mix, sides, class, options));
        if let Some(found) = found {
            classes.push(found);
            mixes.push(mix);
        }
    }
    let mut diff =
        Diff { verdict: Vec::new(), margin: options.margin, devices: sides.map(device_side), classes };
    diff.verdict = conclusion::verdict(&diff);
    Ok(diff)
}

/// The devices asked for; else one that both recordings have, the busiest of them; else the busiest of each.
fn sides<'a>(
    a: &'a Analysis,
    b: &'a Analysis,
    wanted: [Option<DeviceNumber>; 2],
) -> Result<[Side<'a>; 2], Error> {
    let busy = |analysis: &'a Analysis| analysis.devices.iter().filter(|device| device.pieces > 0);
    let same = |device: &&Device| busy(b).any(|other| other.device == device.device);
    let shared = busy(a).filter(same).max_by_key(|device| device.pieces).map(|device| device.device);
    let shared = shared.filter(|_| wanted == [None, None]);
    let find = |name: char, analysis: &'a Analysis, wanted: Option<DeviceNumber>| {
        let found = match wanted.or(shared) {
            Some(number) => busy(analysis).find(|device| device.device == number).ok_or_else(|| {
                let has: Vec<String> = busy(analysis).map(Device::label).collect();
                Error::NoDevice { side: name, device: number, has: has.join(", ") }
            }),
            None => busy(analysis).max_by_key(|device| device.pieces).ok_or(Error::Empty(name)),
        };
        found.map(|device| Side { analysis, device })
    };
    for (name, analysis) in [('A', a), ('B', b)] {
        if busy(analysis).next().is_none() {
            return Err(Error::Empty(name));
        }
    }
    Ok([find('A', a, wanted[0])?, find('B', b, wanted[1])?])
}

fn device_side(side: &Side<'_>) -> DeviceSide {
    let device = side.device;
    let table = &side.analysis.table;
    let all = table.of_class(device.device, Class::All);
    let whole = table.sum(|key| key.device == device.device);
    let [inserted, direct] = [Stage::I2D, Stage::G2D].map(|stage| all.stage(stage).count() as f64);
    let span_ns = device.recorded_ns();
    let span_s = span_ns as f64 / 1e9;
    let (depth, active_ns) = (&device.depth_issue, device.depth_issue.active_ns());
    DeviceSide {
        device: device.label(),
        span_ns,
        extent: device.extent,
        ios: device.pieces,
        ios_per_second: if span_s > 0.0 { device.pieces as f64 / span_s } else { 0.0 },
        depth_at_driver: depth_at_driver(device, whole.stage(Stage::D2C)),
        depth_at_work: (active_ns > 0).then(|| depth.area_ns as f64 / active_ns as f64),
        inserted_share: (inserted + direct > 0.0).then(|| inserted / (inserted + direct)),
        errors: whole.errors,
        events_dropped: side.analysis.events_dropped_of(device),
    }
}

/// A live session follows no depth; there it is the rate times the latency (Little's law).
fn depth_at_driver(device: &Device, d2c: &Distribution) -> Option<f64> {
    if device.depth_issue.arrivals > 0 {
        return Some(device.depth_issue.mean());
    }
    let is_known = !d2c.is_empty() && device.recorded_ns() > 0;
    is_known.then(|| d2c.sum_ns() as f64 / device.recorded_ns() as f64)
}

fn class_diff(mix: &Mix<'_>, sides: [&Side<'_>; 2], class: Class, options: &Options) -> Option<ClassDiff> {
    if mix.ios.contains(&0) {
        return None;
    }
    let common = [0, 1].map(|side| mix.ios_common[side] as f64 / mix.ios[side] as f64);
    let comparable = common.iter().all(|&share| share >= COMMON_MIN);
    let stages = Stage::ALL.into_iter().filter_map(|stage| stage_diff(mix, sides, stage, options));
    let stages = if comparable { stages.collect() } else { Vec::new() };
    Some(ClassDiff { class, ios: mix.ios, common, comparable, stages })
}

fn stage_diff(mix: &Mix<'_>, sides: [&Side<'_>; 2], stage: Stage, options: &Options) -> Option<StageDiff> {
    let counts = mix.counts(stage);
    let none = |judgement| StageDiff { stage, counts, mean: None, p50: None, p99: None, judgement };
    match (counts, mix.stage(stage)) {
        ([0, 0], _) => None,
        ([_, 0], _) => Some(none(LatencyChange::OnlyA)),
        ([0, _], _) => Some(none(LatencyChange::OnlyB)),
        (_, None) => None,
        (_, Some(weighted)) => Some(both_have(stage, &weighted, sides, options)),
    }
}

fn both_have(stage: Stage, weighted: &Weighted<'_>, sides: [&Side<'_>; 2], options: &Options) -> StageDiff {
    let mean = effect(weighted.mean(sides, options.seed));
    let quantile = |q: f64| weighted.quantile(sides, q, options.seed).map(effect);
    StageDiff {
        stage,
        counts: weighted.samples,
        mean: Some(mean),
        p50: quantile(0.5),
        p99: quantile(0.99),
        judgement: mean.judgement(options.margin),
    }
}

fn effect(ratio: Ratio) -> Effect {
    let [a_ns, b_ns] = ratio.ns;
    Effect { a_ns, b_ns, ratio: b_ns / a_ns, interval: ratio.interval.map(|i| [i.low, i.high]) }
}

impl Effect {
    /// What it says, given what is near enough to be the same.
    pub fn judgement(&self, margin: f64) -> LatencyChange {
        let Some([low, high]) = self.interval else { return LatencyChange::NoInterval };
        if low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin {
            LatencyChange::Same
        } else if low > 1.0 {
            LatencyChange::Longer
        } else if high < 1.0 {
            LatencyChange::Shorter
        } else {
            LatencyChange::Undecided
        }
    }
}

/// As in an analysis' JSON: `d2c`, `g2d_all`.
pub(crate) fn key_of_stage<S: serde::Serializer>(stage: &Stage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&stage.name().to_ascii_lowercase().replace('*', "_all"))
}

impl Diff {
    /// A class, if both recordings have I/Os of it.
    pub fn class(&self, class: Class) -> Option<&ClassDiff> {
        self.classes.iter().find(|of| of.class == class)
    }
}

impl ClassDiff {
    /// A stage, if it occurs.
    pub fn stage(&self, stage: Stage) -> Option<&StageDiff> {
        self.stages.iter().find(|of| of.stage == stage)
    }
}
