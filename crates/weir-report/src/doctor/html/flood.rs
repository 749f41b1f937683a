//! Commits while a bulk writer runs beside them: the collapse and the rescue over time.

use super::plots::{curve_of, interval, interval_text};
use crate::page::distribution;
use crate::page::{Table, bars, figure, note};
use crate::plot::{
    At, Axis, Bar, BarFigure, Figure, Join, Panel, Part, Reference, Region, Scale, Series, Tint, Unit,
};
use maud::{Markup, html};
use weir_core::units::{Bytes, Nanos, megabytes_per_second, per_second};
use weir_verdict::doctor::{
    DoctorReport, EffectSide, FloodEffect, FloodPhase, FloodSample, FloodStory, PhaseKind,
};
use weir_verdict::view::longest;

/// Anchor of the timeline.
pub const TIMELINE: &str = "flood-timeline";

/// Looks of idle, flood and rescue wherever they stand side by side.
const LOOKS: [usize; 3] = [0, 1, 2];

/// Timeline, rates side by side, and distributions.
pub fn html(story: &FloodStory, report: &DoctorReport) -> Markup {
    html! {
        @for remark in &story.remarks { (note("Note", remark, false)) }
        @if story.samples.len() >= 2 { (figure(&timeline(story), &table(story))) }
        @if !story.effects.is_empty() { (bars(&effects(story), &effects_table(story))) }
        (distributions(story, report))
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A decimal size, as `vm.dirty_bytes` is usually given: `15 MB`.
fn decimal(bytes: Bytes) -> String {
    let text = Unit::Bytes.value(bytes.0 as f64);
    text.replace(".0 ", " ")
}

/// The flood goes on while it builds up and while commits run beside it: one region for both, named after the
/// phase that it builds up to.
fn region_of(phases: &[&FloodPhase], i: usize) -> (String, Tint) {
    let ahead = phases[i..].iter().copied().find(|p| p.kind != PhaseKind::BuildUp);
    // An examination that was cut short may never have come to it.
    let reached = ahead.filter(|p| phases[i].kind != PhaseKind::BuildUp || p.threads > 0);
    let phase = reached.unwrap_or(phases[i]);
    match (phase.kind, phase.dirty_bytes) {
        (PhaseKind::Idle, _) => ("idle".to_string(), Tint::Plain),
        (PhaseKind::BuildUp | PhaseKind::Flood, _) => ("flood".to_string(), Tint::Disturbed),
        (PhaseKind::Rescue, Some(bytes)) => (format!("flood + dirty_bytes {}", decimal(bytes)), Tint::Eased),
        (PhaseKind::Rescue, None) => (phase.label.clone(), Tint::Eased),
        (PhaseKind::Drain, _) => ("drain".to_string(), Tint::Plain),
    }
}

fn part_of(phase: &FloodPhase) -> Part {
    let (label, short) = match (phase.threads, phase.kind) {
        (0, PhaseKind::BuildUp) => ("builds up".to_string(), String::new()),
        (0, _) => (String::new(), String::new()),
        (1, _) => ("1 thread".to_string(), "1 t".to_string()),
        (n, _) => (format!("{n} threads"), format!("{n} t")),
    };
    Part { from: seconds(phase.start_ns), to: seconds(phase.end_ns), label, short }
}

/// Phases as regions; neighbours of one kind become one region with parts.
fn regions(story: &FloodStory) -> Vec<Region> {
    let mut out: Vec<Region> = Vec::new();
    let phases: Vec<&FloodPhase> = story.phases.iter().filter(|p| p.end_ns > p.start_ns).collect();
    for (i, phase) in phases.iter().enumerate() {
        let (label, tint) = region_of(&phases, i);
        let part = part_of(phase);
        match out.last_mut().filter(|last| last.label == label) {
            Some(last) => {
                last.to = part.to;
                last.parts.push(part);
            }
            None => out.push(Region {
                from: part.from,
                to: part.to,
                label,
                tint,
                optional: phase.kind == PhaseKind::Drain,
                parts: vec![part],
            }),
        }
    }
    out
}

/// Samples are taken twice a second.
const GAP_SECONDS: f64 = 2.0;

fn series(name: &str, look: usize, story: &FloodStory, value: fn(&FloodSample) -> Option<f64>) -> Series {
    let mut points: Vec<(f64, f64)> = Vec::with_capacity(story.samples.len());
    for sample in &story.samples {
        let at = seconds(sample.at_ns);
        // A line across seconds that nobody looked at would claim what was not seen.
        if let Some((before, _)) = points.last().copied().filter(|(before, _)| at - before > GAP_SECONDS) {
            points.push((f64::midpoint(before, at), f64::NAN));
        }
        points.push((at, value(sample).unwrap_or(f64::NAN)));
    }
    Series::line(name, look, points)
}

/// A series that has anything to show.
fn seen(series: &Series) -> bool {
    series.points.iter().any(|p| p.1.is_finite())
}

fn timeline(story: &FloodStory) -> Figure {
    let commits = series("commits", 2, story, |s| s.commit_iops);
    let oldest =
        series("oldest commit in flight", 5, story, |s| s.oldest_ns.filter(|ns| *ns > 0).map(|ns| ns as f64));
    let flood = Series { area: true, ..series("flood", 1, story, |s| Some(s.flood_bytes_per_second)) };
    let device = series("device", 5, story, |s| s.device_bytes_per_second);
    let dirty = series("dirty + write-back", 3, story, |s| Some((s.dirty_bytes + s.writeback_bytes) as f64));
    let mut panels = vec![Panel::of(Axis::y("commits", Unit::Iops, Scale::LogOrZero), vec![commits], 0.6)];
    if seen(&oldest) {
        let axis = Axis::y("age of the oldest commit in flight", Unit::Latency, Scale::Log);
        panels.push(Panel::of(axis, vec![oldest], 0.4));
    }
    let rates = [flood, device].into_iter().filter(seen).collect();
    panels.push(Panel::of(Axis::y("written", Unit::BytesPerSecond, Scale::Linear), rates, 0.42));
    let mut memory = Panel::of(
        Axis::y("dirty and write-back pages", Unit::Bytes, Scale::LogOrZero),
        vec![Series { area: true, join: Join::Line, ..dirty }],
        0.5,
    );
    memory.references = limits(story);
    panels.push(memory);
    Figure {
        id: TIMELINE.to_string(),
        title: "What a bulk writer does to commits".to_string(),
        finding: finding(story),
        x: Axis { include: vec![0.0], ..Axis::x("time", Unit::Seconds, Scale::Linear) },
        panels,
        regions: regions(story),
    }
}

/// The limits that were tried, as lines to read the dirty pages against.
fn limits(story: &FloodStory) -> Vec<Reference> {
    let mut tried: Vec<Bytes> = story.phases.iter().filter_map(|p| p.dirty_bytes).collect();
    tried.sort();
    tried.dedup();
    let line =
        |b: Bytes| Reference { at: At::Y(b.0 as f64), label: format!("vm.dirty_bytes {}", decimal(b)) };
    tried.into_iter().map(line).collect()
}

/// Idle, flood and the best rescue of the most telling number of threads, in one sentence.
fn finding(story: &FloodStory) -> String {
    let Some(effect) = story.effects.iter().max_by_key(|e| e.threads) else {
        return "Commits were not measured under a flood.".to_string();
    };
    let rate = |side: &EffectSide| per_second(side.iops.mean);
    let who =
        if effect.threads == 1 { "1 thread".to_string() } else { format!("{} threads", effect.threads) };
    let start = format!(
        "{who}: {} commits a second idle, {} under the flood",
        rate(&effect.idle),
        rate(&effect.flood)
    );
    match effect.rescues.iter().max_by(|a, b| a.iops.mean.total_cmp(&b.iops.mean)) {
        Some(best) => {
            let limit = best
                .dirty_bytes
                .map_or("the lowered limit".to_string(), |b| format!("vm.dirty_bytes at {}", decimal(b)));
            format!("{start}, {} with {limit} under the same flood.", rate(best))
        }
        None => format!("{start}."),
    }
}

fn table(story: &FloodStory) -> Table {
    let head = ["at", "commits/s", "oldest commit", "flood", "device", "dirty", "write-back"];
    let row = |s: &FloodSample| {
        let or_dash = |text: Option<String>| text.unwrap_or("–".to_string());
        vec![
            Unit::Seconds.value((seconds(s.at_ns) * 10.0).round() / 10.0),
            or_dash(s.commit_iops.map(per_second)),
            or_dash(s.oldest_ns.map(|ns| Nanos(ns).to_string())),
            megabytes_per_second(s.flood_bytes_per_second),
            or_dash(s.device_bytes_per_second.map(megabytes_per_second)),
            Unit::Bytes.value(s.dirty_bytes as f64),
            Unit::Bytes.value(s.writeback_bytes as f64),
        ]
    };
    let rows = story.samples.iter().map(row).collect();
    Table { head: head.map(str::to_string).to_vec(), rows, ..Table::default() }
}

/// Sides of a comparison with name and look.
fn sides(effect: &FloodEffect) -> Vec<(String, usize, &EffectSide)> {
    let mut out =
        vec![("idle".to_string(), LOOKS[0], &effect.idle), ("flood".to_string(), LOOKS[1], &effect.flood)];
    for rescue in &effect.rescues {
        let limit =
            rescue.dirty_bytes.map_or("limit lowered".to_string(), |b| format!("dirty_bytes {}", decimal(b)));
        out.push((format!("flood + {limit}"), LOOKS[2], rescue));
    }
    out
}

fn effects(story: &FloodStory) -> BarFigure {
    let group = |effect: &FloodEffect| {
        let name =
            if effect.threads == 1 { "1 thread".to_string() } else { format!("{} threads", effect.threads) };
        let bar = |(label, look, side): (String, usize, &EffectSide)| Bar {
            label,
            value: side.iops.mean,
            interval: interval(&side.iops),
            note: format!("longest {}", longest(side)),
            look,
        };
        (name, sides(effect).into_iter().map(bar).collect())
    };
    BarFigure {
        id: "flood-effects".to_string(),
        title: "Commits a second, side by side".to_string(),
        finding:
            "Longest: the longest commit, or the age of one that never finished. Whiskers: 95 % interval."
                .to_string(),
        axis: Axis::y("commits", Unit::Iops, Scale::Linear),
        groups: story.effects.iter().map(group).collect(),
    }
}

fn effects_table(story: &FloodStory) -> Table {
    let head = ["", "threads", "commits/s", "95 % interval", "n", "mean", "p99", "longest", "flood"];
    let optional = |rate: Option<f64>| rate.map_or("–".to_string(), megabytes_per_second);
    let rows = story.effects.iter().flat_map(|effect| {
        sides(effect).into_iter().map(move |(name, _, side)| {
            vec![
                name,
                effect.threads.to_string(),
                per_second(side.iops.mean),
                interval_text(&side.iops),
                side.n.to_string(),
                Nanos(side.mean_ns as u64).to_string(),
                side.p99_ns.map_or("too few".to_string(), |ns| Nanos(ns).to_string()),
                longest(side),
                optional(side.flood_bytes_per_second),
            ]
        })
    });
    Table { head: head.map(str::to_string).to_vec(), rows: rows.collect(), ..Table::default() }
}

/// Latencies of idle, flood and rescue at the largest number of threads.
fn distributions(story: &FloodStory, report: &DoctorReport) -> Markup {
    let Some(effect) = story.effects.iter().max_by_key(|e| e.threads) else { return Markup::default() };
    let curves: Vec<Series> = sides(effect)
        .into_iter()
        .filter_map(|(name, look, side)| {
            let measurement = report.measurements.iter().find(|m| m.id == side.measurement)?;
            (!measurement.distribution.is_empty()).then(|| curve_of(name, look, measurement))
        })
        .collect();
    if curves.is_empty() {
        return Markup::default();
    }
    let finding = "Only commits that finished are counted: under a stall the curve looks better than it was.";
    let plot =
        distribution::of_series("flood-latency", "How long a commit takes beside a flood", finding, curves);
    figure(&plot, &Table::default())
}
