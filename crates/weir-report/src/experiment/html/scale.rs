//! A scale: rates over numbers of connections with the law that they follow and where they are highest, and latencies.

use super::{MEANS, arms, axis, over};
use crate::experiment::words;
use crate::page::{capitalised, figure};
use crate::plot::{At, Axis, Figure, Join, Panel, Reference, Scale, Series, Unit};
use maud::Markup;
use weir_experiment::scale::connections;
use weir_experiment::{Metric, ScalabilityLaw, Study};

/// Looks of rates, of the law, of the median and of the tail.
const RATES: usize = 0;
const LAW: usize = 1;
const MEDIAN: usize = 2;
const TAIL: usize = 3;
/// Straight pieces that the law's line is made of.
const PIECES: i32 = 48;

/// Both panels, with every number of connections in figures.
pub fn html(study: &Study<'_>) -> Markup {
    if study.finding.arms.is_empty() {
        return Markup::default();
    }
    let number = |(arm, of): (usize, _)| (arm, f64::from(connections(of)));
    let numbers: Vec<(usize, f64)> = study.arms.iter().enumerate().map(number).collect();
    let latency = |(metric, look): (Metric, usize)| {
        let named = Series { name: metric.to_string(), ..over(study, &numbers, &metric, look) };
        study.has(&metric).then_some(named)
    };
    let latencies = [(Metric::P50, MEDIAN), (Metric::P99, TAIL)].into_iter().filter_map(latency);
    let latencies = Panel::of(Axis::y("latency", Unit::Latency, Scale::Log), latencies.collect(), 0.6);
    let law =
        study.finding.law.map_or("", |_| " The line is the Universal Scalability Law, fitted to the rates.");
    let mut panels = vec![rates(study, &numbers), latencies];
    panels.retain(|panel| !panel.series.is_empty());
    let drawn = Figure {
        id: "over-connections".to_string(),
        title: capitalised(&format!("{} and latency over connections", study.operations())),
        finding: format!("{MEANS}{law}"),
        x: Axis::x("connections", Unit::Count(""), Scale::Log2),
        panels,
        regions: Vec::new(),
    };
    figure(&drawn, &arms(study))
}

/// Rates, the law through them where one describes them, the highest of both, and the fewest connections that do nearly
/// as well.
fn rates(study: &Study<'_>, numbers: &[(usize, f64)]) -> Panel {
    let measured = Series { name: "measured".to_string(), ..over(study, numbers, &Metric::Rate, RATES) };
    let rate = |arm: &usize| study.value(*arm, &Metric::Rate);
    let highest = (0..numbers.len())
        .filter(|arm| rate(arm).is_some())
        .max_by(|a, b| rate(a).unwrap_or(0.0).total_cmp(&rate(b).unwrap_or(0.0)));
    let fewest = study.finding.knee.filter(|knee| Some(*knee) != highest);
    let named = [("highest", highest), ("nearly as high", fewest)];
    let of_arm = |(what, arm): (&str, Option<usize>)| {
        let arm = arm?;
        Some((numbers.get(arm)?.1, format!("{what}: {}", words::arm(study, arm))))
    };
    let mut marks: Vec<(f64, String)> = named.into_iter().filter_map(of_arm).collect();
    let mut series = vec![measured];
    if let (Some(law), [(_, least), .., (_, most)]) = (study.finding.law, numbers) {
        series[0].join = Join::None;
        series.push(curve(law, *least, *most));
        let peak = law.peak().map(f64::round).filter(|peak| (*least..=*most).contains(peak));
        marks.extend(peak.map(|peak| (peak, format!("highest by the law: {peak}"))));
    }
    let mut panel = Panel::of(axis(study, &Metric::Rate), series, 0.8);
    panel.references = marks.into_iter().map(|(x, label)| Reference { at: At::X(x), label }).collect();
    panel
}

/// The law between two numbers of connections, in even steps of a logarithmic axis.
fn curve(law: ScalabilityLaw, least: f64, most: f64) -> Series {
    let at = |i: i32| least * (most / least).powf(f64::from(i) / f64::from(PIECES));
    let points = (0..=PIECES).map(|i| (at(i), law.at(at(i)))).collect();
    Series { join: Join::Curve, ..Series::line("fitted law", LAW, points) }
}
