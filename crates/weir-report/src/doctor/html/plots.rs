//! Depth curves, commits and bulk throughput.

use crate::page::distribution::{self, coarse_curve};
use crate::page::{Table, bars, figure};
use crate::plot::{At, Axis, Bar, BarFigure, Figure, Panel, Reference, Scale, Series, Unit};
use maud::{Markup, html};
use weir_core::result::record::Class;
use weir_core::units::{Nanos, grouped, per_second};
use weir_verdict::doctor::{Curve, DoctorReport, Estimate, Measurement};

/// Anchor of the depth curves.
pub const DEPTH: &str = "depth-curves";
/// Anchor of the bars of commits.
pub const COMMITS: &str = "commit-rates";
/// Curves whose highest rates differ by more than this factor share a log axis.
const FAR_APART: f64 = 6.0;
/// As many distributions as looks can distinguish.
const CURVES_MOST: usize = crate::plot::LOOKS;

/// Whether a measurement belongs to the commits without a flood.
pub fn is_commit(report: &DoctorReport, measurement: &Measurement) -> bool {
    let in_flood = report.flood.iter().flat_map(|f| &f.phases);
    let of_flood = in_flood.filter_map(|p| p.measurement.as_ref()).any(|id| *id == measurement.id);
    measurement.class == Class::Commit && !of_flood && report.map.is_none()
}

fn of_curve(report: &DoctorReport, measurement: &Measurement) -> bool {
    report.curves.iter().flat_map(|c| &c.points).any(|p| p.measurement == measurement.id)
}

/// A confidence interval worth drawing.
pub fn interval(estimate: &Estimate) -> Option<(f64, f64)> {
    (estimate.high > estimate.low).then_some((estimate.low, estimate.high))
}

/// How rate and tail follow depth, and how latencies are distributed along the way.
pub fn depth(report: &DoctorReport) -> Markup {
    if report.curves.is_empty() {
        return Markup::default();
    }
    let plot = depth_figure(&report.curves);
    let first_of = |class: Class| report.curves.iter().find(|c| c.class == class);
    let ends = [Class::Read, Class::Write].into_iter().filter_map(first_of).flat_map(|curve| {
        let (first, knee) = (curve.points.first(), curve.points.iter().find(|p| p.depth == curve.knee_depth));
        let both = [first, knee.filter(|k| first.is_none_or(|f| f.depth != k.depth))];
        both.into_iter()
            .flatten()
            .map(move |p| (format!("{}, depth {}", short(curve), p.depth), &p.measurement))
    });
    let series = distributions(report, ends);
    let finding = "Alone in flight, and at the depth that first reaches 90 % of the highest rate.";
    html! {
        (figure(&plot, &depth_table(&report.curves)))
        @if !series.is_empty() {
            @let plot = distribution::of_series("depth-latency", "How long they took", finding, series);
            (figure(&plot, &Table::default()))
        }
    }
}

/// Curves of measurements, where they exist.
fn distributions<'a>(
    report: &DoctorReport,
    names: impl Iterator<Item = (String, &'a String)>,
) -> Vec<Series> {
    let found = names.filter_map(|(name, id)| {
        let measurement = report.measurements.iter().find(|m| m.id == *id)?;
        (!measurement.distribution.is_empty()).then_some((name, measurement))
    });
    found.take(CURVES_MOST).enumerate().map(|(i, (name, m))| curve_of(name, i, m)).collect()
}

/// The distribution of one measurement as a curve.
pub fn curve_of(name: String, look: usize, m: &Measurement) -> Series {
    coarse_curve(name, look, &m.distribution, m.latency.max_ns)
}

fn short(curve: &Curve) -> String {
    format!("{} {}", curve.class.name(), curve.block)
}

fn depth_figure(curves: &[Curve]) -> Figure {
    let (most, least) = curves
        .iter()
        .fold((0.0f64, f64::INFINITY), |(most, least), c| (most.max(c.max_iops), least.min(c.max_iops)));
    let scale = if most > least * FAR_APART { Scale::Log } else { Scale::Linear };
    let depths = |c: &Curve, y: fn(&weir_verdict::doctor::CurvePoint) -> f64| -> Vec<(f64, f64)> {
        c.points.iter().map(|p| (f64::from(p.depth), y(p))).collect()
    };
    let rates = curves.iter().enumerate().map(|(i, c)| {
        let band = c.points.iter().map(|p| (f64::from(p.depth), p.iops.low, p.iops.high)).collect();
        Series { band, ..Series::line(short(c), look(i), depths(c, |p| p.iops.mean)) }
    });
    let tail = |p: &weir_verdict::doctor::CurvePoint| p.p99_ns.map_or(f64::NAN, |ns| ns as f64);
    let tails = curves.iter().enumerate().map(|(i, c)| Series::line(short(c), look(i), depths(c, tail)));
    let mut rates = Panel::of(Axis::y("rate", Unit::Iops, scale), rates.collect(), 0.85);
    rates.references = curves.iter().map(knee).collect();
    let tails =
        Panel::of(Axis::y("99th percentile of latency", Unit::Latency, Scale::Log), tails.collect(), 0.75);
    let seen = tails.series.iter().any(|s| s.points.iter().any(|p| p.1.is_finite()));
    Figure {
        id: DEPTH.to_string(),
        title: "Rate and tail against depth".to_string(),
        finding: depth_finding(curves),
        x: Axis::x("depth", Unit::Count("operations in flight"), Scale::Log2),
        panels: if seen { vec![rates, tails] } else { vec![rates] },
        regions: Vec::new(),
    }
}

/// Reads blue, the writes that follow in their own colours.
fn look(i: usize) -> usize {
    [0, 1, 4, 3, 2, 5][i % 6]
}

fn knee(curve: &Curve) -> Reference {
    let word = if curve.saturated { "saturated from" } else { "90 % of its best at" };
    Reference {
        at: At::X(f64::from(curve.knee_depth)),
        label: format!("{}: {word} {}", short(curve), curve.knee_depth),
    }
}

fn depth_finding(curves: &[Curve]) -> String {
    let each = curves.iter().map(|c| {
        let (best, depth, block) = (per_second(c.max_iops), c.knee_depth, c.block);
        let kind = if c.class == Class::Read { "Reads" } else { "Writes" };
        if c.saturated {
            format!("{kind} of {block}: {best} IOPS at most, 90 % of it from depth {depth} on.")
        } else {
            format!("{kind} of {block}: {best} IOPS at best, and not seen to flatten.")
        }
    });
    each.collect::<Vec<_>>().join(" ")
}

fn depth_table(curves: &[Curve]) -> Table {
    let head =
        ["workload", "depth", "IOPS", "95 % interval", "mean", "median", "p99"].map(str::to_string).to_vec();
    let latency = |ns: Option<u64>| ns.map_or("too few".to_string(), |ns| Nanos(ns).to_string());
    let rows = curves.iter().flat_map(|c| {
        c.points.iter().map(move |p| {
            vec![
                short(c),
                p.depth.to_string(),
                per_second(p.iops.mean),
                interval_text(&p.iops),
                Nanos(p.mean_ns as u64).to_string(),
                latency(p.p50_ns),
                latency(p.p99_ns),
            ]
        })
    });
    Table { head, rows: rows.collect(), ..Table::default() }
}

/// An interval as people write it.
pub fn interval_text(estimate: &Estimate) -> String {
    match interval(estimate) {
        Some((low, high)) => format!("{} … {}", per_second(low), per_second(high)),
        None => "–".to_string(),
    }
}

/// Small writes made durable, alone and together, on each way to the device.
pub fn commits(report: &DoctorReport) -> Markup {
    let commits: Vec<&Measurement> = report.measurements.iter().filter(|m| is_commit(report, m)).collect();
    let measured: Vec<&Measurement> = commits.iter().copied().filter(|m| m.latency.n > 0).collect();
    if measured.is_empty() {
        return Markup::default();
    }
    let axis = Axis::y("commits", Unit::Iops, Scale::Linear);
    let finding = "A commit is a small write that has reached stable storage. Whiskers: 95 % interval.";
    let plot = BarFigure {
        id: COMMITS.to_string(),
        title: "Commits a second, by threads and way to the device".to_string(),
        finding: finding.to_string(),
        axis,
        groups: grouped_by_shape(&measured),
    };
    let series: Vec<Series> = measured
        .iter()
        .filter(|m| !m.distribution.is_empty())
        .take(CURVES_MOST)
        .enumerate()
        .map(|(i, m)| curve_of(format!("{}, {}, {}", m.block, threads(m), way(m)), i, m))
        .collect();
    let finding =
        "Each further nine to the right is ten times rarer. Dotted: fewer than three commits lie beyond.";
    html! {
        (bars(&plot, &Table::default()))
        @if !series.is_empty() {
            @let plot = distribution::of_series("commit-latency", "How long a commit takes", finding, series);
            (figure(&plot, &Table::default()))
        }
    }
}

fn threads(m: &Measurement) -> String {
    if m.threads == 1 { "1 thread".to_string() } else { format!("{} threads", m.threads) }
}

/// The way to the device, which the title names in brackets.
fn way(m: &Measurement) -> String {
    let inner = m.title.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(inner, _)| inner);
    inner.map_or_else(|| m.title.clone(), str::to_string)
}

/// One group for each block size and number of threads, in the order measured.
fn grouped_by_shape(commits: &[&Measurement]) -> Vec<(String, Vec<Bar>)> {
    let mut groups: Vec<(String, Vec<Bar>)> = Vec::new();
    for m in commits {
        let name = format!("{}, {}", m.block, threads(m));
        let p99 = m.latency.p99_ns.map_or("too few for a p99".to_string(), |ns| format!("p99 {}", Nanos(ns)));
        let bar = Bar {
            label: way(m),
            value: m.iops.mean,
            interval: interval(&m.iops),
            note: p99,
            look: if m.direct { 0 } else { 2 },
        };
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, bars)) => bars.push(bar),
            None => groups.push((name, vec![bar])),
        }
    }
    groups
}

/// Everything else that moved bytes in order.
pub fn bulk(report: &DoctorReport) -> Markup {
    let flooded = |m: &Measurement| m.class == Class::Commit;
    if report.sustained.is_some() || report.map.is_some() {
        return Markup::default();
    }
    let bulk = report.measurements.iter().filter(|m| !flooded(m) && !of_curve(report, m) && m.latency.n > 0);
    let bars_of: Vec<Bar> = bulk
        .map(|m| Bar {
            label: m.title.clone(),
            value: m.bytes_per_second,
            interval: None,
            note: format!("n = {}", grouped(m.latency.n)),
            look: if m.class == Class::Read { 0 } else { 1 },
        })
        .collect();
    if bars_of.is_empty() {
        return Markup::default();
    }
    let plot = BarFigure {
        id: "bulk-rates".to_string(),
        title: "Large transfers in order".to_string(),
        finding: "What backups, scans and the layout of the test file can expect.".to_string(),
        axis: Axis::y("throughput", Unit::BytesPerSecond, Scale::Linear),
        groups: vec![(String::new(), bars_of)],
    };
    bars(&plot, &Table::default())
}
