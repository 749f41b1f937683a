//! How latencies are distributed, with a scale on which each further nine takes the same room.

use crate::plot::{Axis, Figure, Panel, Scale, Series, Unit};
use weir_core::stats::Histogram;

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
    of_series(id, title, finding, series)
}

/// Curves over percentiles in one figure.
pub fn of_series(id: &str, title: &str, finding: &str, series: Vec<Series>) -> Figure {
    Figure {
        id: id.to_string(),
        title: title.to_string(),
        finding: finding.to_string(),
        x: Axis::x("percentile of operations", Unit::Quantile, Scale::Nines),
        panels: vec![Panel::of(Axis::y("latency", Unit::Latency, Scale::Log), series, 1.0)],
        regions: Vec::new(),
    }
}

/// A curve from coarse buckets (low ns, high ns, count), whose upper edges bound the values.
pub fn coarse_curve(name: String, look: usize, buckets: &[(u64, u64, u64)], longest_ns: u64) -> Series {
    let n = buckets.iter().map(|b| b.2).sum::<u64>().max(1) as f64;
    let mut points: Vec<(f64, f64)> = buckets.first().map(|b| (0.0, b.0.max(1) as f64)).into_iter().collect();
    let mut seen = 0u64;
    for (_, high, count) in buckets {
        seen += count;
        let q = seen as f64 / n;
        if (1.0 - q) * n >= SAMPLES_BEYOND - 1e-6 {
            points.push((q, (*high).min(longest_ns) as f64));
        }
    }
    let sure = points.len();
    points.push((1.0 - 1.0 / n.max(2.0), longest_ns as f64));
    Series { doubtful_from: Some(sure), ..Series::line(name, look, points) }
}

fn curve(sample: &Sample<'_>) -> Series {
    let value = |q: f64| sample.latency.quantile(q).unwrap_or(0);
    curve_of(sample.name.clone(), sample.look, sample.latency.count(), sample.latency.max(), value)
}

/// The curve of `count` durations whose quantiles `value` tells, dotted where fewer than three lie beyond.
pub fn curve_of(
    name: String,
    look: usize,
    count: u64,
    longest_ns: Option<u64>,
    value: impl Fn(f64) -> u64,
) -> Series {
    let n = count as f64;
    let nines_sure = (n / SAMPLES_BEYOND).log10().max(0.0);
    let at = |nines: f64| 1.0 - 10f64.powf(-nines);
    let steps = (nines_sure * f64::from(STEPS_PER_NINE)).ceil() as u32;
    let mut points: Vec<(f64, f64)> = (0..=steps)
        .map(|i| at(nines_sure * f64::from(i) / f64::from(steps.max(1))))
        .map(|q| (q, value(q) as f64))
        .collect();
    let sure = points.len();
    if let Some(longest_ns) = longest_ns {
        points.push((1.0 - 1.0 / n.max(2.0), longest_ns as f64));
    }
    let mut series = Series::line(name, look, points);
    series.doubtful_from = Some(sure);
    series
}
