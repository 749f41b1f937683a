//! How latencies are distributed, with a scale on which each further nine takes the same room.

use super::Table;
use crate::report::plot::{Axis, Figure, Panel, Scale, Series, Unit};
use crate::stats::Histogram;

/// Steps of the curve for each nine.
const STEPS_PER_NINE: u32 = 16;

/// Samples that must lie beyond a quantile before it is worth drawing as such.
const SAMPLES_BEYOND: f64 = 3.0;

/// Latencies of one kind, for a curve.
pub struct Sample<'a> {
    /// Name of the curve.
    pub name: String,
    /// Its look.
    pub look: usize,
    /// The latencies.
    pub latency: &'a Histogram,
}

/// The curve of every sample, up to its longest operation; dotted where fewer than three samples lie beyond.
pub fn figure(id: &str, title: &str, finding: &str, samples: &[Sample<'_>]) -> Figure {
    let series = samples.iter().filter(|s| s.latency.count() > 0).map(curve).collect();
    Figure {
        id: id.to_string(),
        title: title.to_string(),
        finding: finding.to_string(),
        x: Axis::x("percentile of operations", Unit::Quantile, Scale::Nines),
        panels: vec![Panel::of(Axis::y("latency", Unit::Latency, Scale::Log), series, 1.0)],
        regions: Vec::new(),
    }
}

fn curve(sample: &Sample<'_>) -> Series {
    let n = sample.latency.count() as f64;
    let nines_sure = (n / SAMPLES_BEYOND).log10().max(0.0);
    let value = |q: f64| sample.latency.quantile(q).unwrap_or(0) as f64;
    let at = |nines: f64| 1.0 - 10f64.powf(-nines);
    let steps = (nines_sure * f64::from(STEPS_PER_NINE)).ceil() as u32;
    let mut points: Vec<(f64, f64)> = (0..=steps)
        .map(|i| at(nines_sure * f64::from(i) / f64::from(steps.max(1))))
        .map(|q| (q, value(q)))
        .collect();
    let sure = points.len();
    if let Some(longest) = sample.latency.max() {
        points.push((1.0 - 1.0 / n.max(2.0), longest as f64));
    }
    let mut series = Series::line(sample.name.clone(), sample.look, points);
    series.doubtful_from = Some(sure);
    series
}

/// The percentiles that people quote, of each sample; too few operations are said to be too few.
pub fn table(samples: &[Sample<'_>]) -> Table {
    const QUANTILES: [(f64, &str); 6] =
        [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];
    let head = ["", "operations", "mean"].into_iter().chain(QUANTILES.map(|q| q.1)).chain(["longest"]);
    let rows = samples.iter().map(|sample| {
        let h = sample.latency;
        let quantiles = QUANTILES.map(|(q, _)| quantile_text(h, q));
        let mut row = vec![sample.name.clone(), crate::units::grouped(h.count())];
        row.push(h.mean().map_or("–".to_string(), |m| Unit::Latency.value(m)));
        row.extend(quantiles);
        row.push(h.max().map_or("–".to_string(), |m| Unit::Latency.value(m as f64)));
        row
    });
    Table { head: head.map(str::to_string).collect(), rows: rows.collect() }
}

/// A quantile, or that too few operations stand behind it.
pub fn quantile_text(latency: &Histogram, q: f64) -> String {
    let enough = latency.count() as f64 * (1.0 - q) >= SAMPLES_BEYOND * 0.999_999;
    match latency.quantile(q) {
        Some(ns) if enough => Unit::Latency.value(ns as f64),
        Some(_) => "too few".to_string(),
        None => "–".to_string(),
    }
}
