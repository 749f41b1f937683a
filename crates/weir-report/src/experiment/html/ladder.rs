//! A ladder: each step's throughput against the step before, and its true latency beside what submitting takes.

use super::{arms, axis_title, unit};
use crate::experiment::words;
use crate::page::{Table, bars, capitalised, data_table, paragraph};
use crate::plot::{Axis, Bar, BarFigure, Scale, Unit};
use maud::{Markup, html};
use weir_experiment::{Effect, Judgement, Metric, Study};

/// Looks: a step that gained, one that lost, one that did neither, the first.
const GAINED: usize = 2;
const LOST: usize = 1;
const NEITHER: usize = 5;
const FIRST: usize = 0;
/// Looks of the true latency and of the time that submitting takes.
const TRUE: usize = 0;
const SUBMIT: usize = 1;

/// Throughput, latency, then every step in numbers.
pub fn html(study: &Study<'_>) -> Markup {
    if study.finding.arms.is_empty() {
        return Markup::default();
    }
    html! {
        (bars(&throughput(study), &arms(study)))
        @if study.has(&Metric::P95) { (bars(&latency(study), &Table::default())) }
        (paragraph("Each step against the step before:"))
        (data_table(&steps(study)))
    }
}

fn main_effect<'a>(study: &'a Study<'_>, arm: usize) -> Option<&'a Effect> {
    study.effect(arm.checked_sub(1)?, arm, &study.main_metric())
}

fn step(study: &Study<'_>, arm: usize) -> String {
    format!("{}. {}", arm + 1, words::arm(study, arm))
}

fn throughput(study: &Study<'_>) -> BarFigure {
    let main = study.main_metric();
    let bar = |arm: usize| {
        let effect = main_effect(study, arm);
        let look = match effect.map(|e| e.judgement) {
            None => FIRST,
            Some(Judgement::Better) => GAINED,
            Some(Judgement::Worse) => LOST,
            Some(Judgement::NoDifference | Judgement::Unknown) => NEITHER,
        };
        Bar {
            label: step(study, arm),
            value: study.value(arm, &main).unwrap_or(f64::NAN),
            interval: study.interval(arm, &main),
            note: effect.map_or(String::new(), short),
            look,
        }
    };
    BarFigure {
        id: "steps".to_string(),
        title: capitalised(&format!("{} of each step", axis_title(study, &main))),
        finding:
            "Bars are means over trials with 95 % intervals; the words say what became of the step before it."
                .to_string(),
        axis: Axis::y(axis_title(study, &main), unit(&main), Scale::Linear),
        groups: vec![(String::new(), (0..study.finding.arms.len()).map(bar).collect())],
    }
}

/// `3.2×, better`: a bar has no room for the interval, which the table has.
fn short(effect: &Effect) -> String {
    match effect.ratio.as_ref().map(words::change) {
        Some(change) => {
            let amount = change.split(" [").next().unwrap_or_default().to_string();
            format!("{amount}, {}", words::judgement(effect))
        }
        None => words::judgement(effect).to_string(),
    }
}

/// Latencies further apart than this are shown on a logarithmic axis.
const FAR_APART: f64 = 50.0;
/// A submission this much shorter than the true latency is told beside it.
const TELLING: f64 = 2.0;

fn latency(study: &Study<'_>) -> BarFigure {
    let group = |arm: usize| {
        let (p95, submit) = (study.value(arm, &Metric::P95), study.value(arm, &Metric::SubmitP95));
        let mut bars = vec![Bar {
            label: "from start to completion".to_string(),
            value: p95.unwrap_or(f64::NAN),
            interval: study.interval(arm, &Metric::P95),
            note: String::new(),
            look: TRUE,
        }];
        let telling = submit.filter(|ns| p95.is_none_or(|p95| ns * TELLING < p95));
        bars.extend(telling.map(|ns| Bar {
            label: "submitting alone: what sysbench prints".to_string(),
            value: ns,
            interval: None,
            note: String::new(),
            look: SUBMIT,
        }));
        (step(study, arm), bars)
    };
    let groups: Vec<(String, Vec<Bar>)> = (0..study.finding.arms.len()).map(group).collect();
    let values = || groups.iter().flat_map(|g| &g.1).map(|b| b.value).filter(|v| *v > 0.0);
    let (least, most) = values().fold((f64::INFINITY, 0f64), |(l, m), v| (l.min(v), m.max(v)));
    let scale = if most > least * FAR_APART { Scale::Log } else { Scale::Linear };
    BarFigure {
        id: "latency".to_string(),
        title: "The 95th percentile of latency, and what passes for it".to_string(),
        finding: "Asynchronous I/O is handed over in microseconds and completes later: the time of handing over says \
                  nothing about how long an operation takes."
            .to_string(),
        axis: Axis::y("latency", Unit::Latency, scale),
        groups,
    }
}

fn steps(study: &Study<'_>) -> Table {
    let head = ["step", "figure", "value", "change [95 %]", ""].map(str::to_string).to_vec();
    let row = |effect: &Effect| {
        let value = study.value(effect.to, &effect.metric);
        vec![
            (effect.to + 1).to_string(),
            words::title(study, &effect.metric),
            value.map_or("–".to_string(), |v| words::figure(&effect.metric, v)),
            effect.ratio.as_ref().map_or("–".to_string(), words::change),
            words::judgement(effect).to_string(),
        ]
    };
    Table { head, rows: study.finding.effects.iter().map(row).collect(), ..Table::default() }
}
