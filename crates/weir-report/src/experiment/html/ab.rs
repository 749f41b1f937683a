//! Two arms: both over the pairs, their ratio pair by pair, and the stages of the device's requests.

use super::{arms, axis_title, unit};
use crate::experiment::stages;
use crate::experiment::words;
use crate::page::{Table, bars, capitalised, data_table, figure, paragraph};
use crate::plot::{At, Axis, Bar, BarFigure, Figure, Join, Panel, Reference, Scale, Series, Unit};
use maud::{Markup, html};
use weir_core::units::grouped;
use weir_experiment::{Metric, Study};

/// Looks of A and B.
const SIDES: [usize; 2] = [0, 1];
/// Look of their ratio.
const RATIO: usize = 2;

/// Pairs, effects, stages.
pub fn html(study: &Study<'_>) -> Markup {
    let pairs = pairs(study);
    html! {
        @for (letter, arm) in ["A", "B"].into_iter().zip(0..study.arms.len()) {
            (paragraph(format!("{letter}: {}", words::arm(study, arm))))
        }
        @if !pairs.is_empty() { (figure(&paired(study, &pairs), &arms(study))) }
        @if !study.finding.effects.is_empty() { (data_table(&effects(study))) }
        (stages_html(study))
    }
}

/// Number of the pair, A and B; only pairs of which both ran to their end.
fn pairs(study: &Study<'_>) -> Vec<(f64, f64, f64)> {
    let main = study.main_metric();
    let value = |block: u32, arm: usize| {
        let mut trials = study.experiment.trials.iter().map(|t| &t.observation);
        trials.find_map(|o| {
            let same = o.proposal.block == block && o.proposal.arm == arm;
            o.outcome.measured().filter(|_| same)?.get(&main)
        })
    };
    let mut blocks: Vec<u32> = study.experiment.trials.iter().map(|t| t.proposal().block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks
        .into_iter()
        .enumerate()
        .filter_map(|(i, block)| Some(((i + 1) as f64, value(block, 0)?, value(block, 1)?)))
        .collect()
}

fn paired(study: &Study<'_>, pairs: &[(f64, f64, f64)]) -> Figure {
    let main = study.main_metric();
    let side = |name: &str, look: usize, value: fn(&(f64, f64, f64)) -> f64| Series {
        join: Join::Line,
        ..Series::line(name, look, pairs.iter().map(|p| (p.0, value(p))).collect())
    };
    let rates = vec![side("A", SIDES[0], |p| p.1), side("B", SIDES[1], |p| p.2)];
    let change = |p: &(f64, f64, f64)| (p.0, (p.2 / p.1 - 1.0) * 100.0);
    let changes: Vec<(f64, f64)> = pairs.iter().filter(|p| p.1 > 0.0).map(change).collect();
    let effect = study.effect(0, 1, &main).and_then(|e| e.ratio);
    let last = pairs.last().map_or(1.0, |p| p.0);
    let band = effect.map_or(Vec::new(), |r| {
        [1.0, last].map(|x| (x, (r.low - 1.0) * 100.0, (r.high - 1.0) * 100.0)).to_vec()
    });
    let ratio = Series { join: Join::None, band, ..Series::line("B against A", RATIO, changes) };
    let mut below = Panel::of(
        Axis::y("B against A, with the mean's 95 % interval", Unit::Percent, Scale::Linear),
        vec![ratio],
        0.5,
    );
    below.references.push(Reference { at: At::Y(0.0), label: "no difference".to_string() });
    Figure {
        id: "pairs".to_string(),
        title: capitalised(&format!("{} of A and B in each pair", axis_title(study, &main))),
        finding: effect
            .map_or("No interval.".to_string(), |r| format!("B against A: {}.", words::change(&r))),
        x: Axis::x("pair", Unit::Count(""), Scale::Linear),
        panels: vec![
            Panel::of(Axis::y(axis_title(study, &main), unit(&main), Scale::Linear), rates, 0.7),
            below,
        ],
        regions: Vec::new(),
    }
}

fn effects(study: &Study<'_>) -> Table {
    let head = ["", "A", "B", "B against A, 95 % interval", "n", ""].map(str::to_string).to_vec();
    let rows = study.finding.effects.iter().map(|effect| {
        let value = |arm| {
            study.value(arm, &effect.metric).map_or("–".to_string(), |v| words::figure(&effect.metric, v))
        };
        vec![
            words::title(study, &effect.metric),
            value(effect.from),
            value(effect.to),
            effect.ratio.as_ref().map_or("–".to_string(), words::change),
            effect.units.to_string(),
            words::judgement(effect).to_string(),
        ]
    });
    Table { head, rows: rows.collect(), ..Table::default() }
}

fn stages_html(study: &Study<'_>) -> Markup {
    let rows = stages::rows(study, &[0, 1]);
    if rows.is_empty() {
        return Markup::default();
    }
    let bar = |(i, side): (usize, &stages::Side)| Bar {
        label: ["A", "B"][i % 2].to_string(),
        value: side.mean_ns,
        interval: None,
        note: side
            .p99_ns
            .map_or(String::new(), |ns| format!("p99 {}", words::figure(&Metric::P99, ns as f64))),
        look: SIDES[i % 2],
    };
    let groups = rows.iter().map(|row| (row.name.clone(), row.sides.iter().enumerate().map(bar).collect()));
    let figure = BarFigure {
        id: "stages".to_string(),
        title: "Where the device's requests spent their time".to_string(),
        finding: "Means of each stage over all trials.".to_string(),
        axis: Axis::y("time", Unit::Latency, Scale::Linear),
        groups: groups.collect(),
    };
    let head = ["stage", "A requests", "B requests"].map(str::to_string).to_vec();
    let counts = rows.iter().map(|row| {
        std::iter::once(row.name.clone()).chain(row.sides.iter().map(|side| grouped(side.count))).collect()
    });
    bars(&figure, &Table { head, rows: counts.collect(), ..Table::default() })
}
