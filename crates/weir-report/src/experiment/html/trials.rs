//! Every trial: its course in small, and its figures in the order they were made.

use super::{axis_title, unit};
use crate::experiment::words;
use crate::page::{Table, data_table, multiples, paragraph};
use crate::plot::{Axis, Cell, MultiplesFigure, Scale, Strip, Unit};
use maud::{Markup, html};
use weir_core::units::{Bytes, Nanos};
use weir_experiment::{Measures, Metric, Outcome, Phase, Second, Study, TrialLog};

/// Rates that differ by more than this factor are shown on a logarithmic scale.
const COLLAPSE: f64 = 30.0;

/// Small multiples by arm, then a table by time.
pub fn html(study: &Study<'_>) -> Markup {
    let courses = figure(study);
    html! {
        (paragraph(words::time_used(study) + "."))
        @if !courses.groups.is_empty() && !courses.strips.is_empty() {
            (multiples(&courses, &Table::default()))
        }
        details open { summary { "In the order they were made" } (data_table(&table(study))) }
    }
}

/// Whole or until it was aborted.
fn measures(trial: &TrialLog) -> Option<&Measures> {
    match &trial.observation.outcome {
        Outcome::Measured(measures) | Outcome::Aborted { measures, .. } => Some(measures),
        Outcome::Failed { .. } => None,
    }
}

/// A second's figures, in the order of the strips.
type Pick = fn(&Second) -> Option<f64>;

/// What of a second is worth a strip: what any trial has.
fn strips(study: &Study<'_>) -> Vec<(Strip, Pick)> {
    let seconds = || study.experiment.trials.iter().filter_map(measures).flat_map(|m| &m.seconds);
    let (low, high) = seconds().map(|s| s.rate).fold((f64::INFINITY, 0f64), |(l, h), r| (l.min(r), h.max(r)));
    let by_rate = if low * COLLAPSE < high { Scale::LogOrZero } else { Scale::Linear };
    let strip = |title: String, unit: Unit, scale: Scale, look: usize| Strip {
        axis: Axis::y(title, unit, scale),
        look,
    };
    let all: [(Strip, Pick); 4] = [
        (strip(axis_title(study, &Metric::Rate), unit(&Metric::Rate), by_rate, 0), |s| Some(s.rate)),
        (strip("p99".to_string(), Unit::Latency, Scale::Log, 3), |s| s.p99_ns.map(|ns| ns as f64)),
        (strip("bulk".to_string(), Unit::BytesPerSecond, Scale::Linear, 1), |s| s.bulk),
        (strip("dirty".to_string(), Unit::Bytes, Scale::LogOrZero, 2), |s| Some(s.dirty_bytes as f64)),
    ];
    let worth = |pick: Pick| seconds().filter_map(pick).any(|value| value > 0.0);
    all.into_iter().filter(|(_, pick)| worth(*pick)).collect()
}

fn figure(study: &Study<'_>) -> MultiplesFigure {
    let strips = strips(study);
    let cell = |(i, trial): (usize, &TrialLog)| {
        let course = |pick: &Pick| {
            let seconds = measures(trial).map_or(&[][..], |m| &m.seconds);
            let middle = |s: &Second| (s.at_ns as f64 + s.len_ns as f64 / 2.0) / 1e9;
            seconds.iter().map(|s| (middle(s), pick(s).unwrap_or(f64::NAN))).collect()
        };
        Cell {
            label: format!("#{}", i + 1),
            remark: Some(outcome(trial)).filter(|word| *word != "measured").unwrap_or_default().to_string(),
            courses: strips.iter().map(|(_, pick)| course(pick)).collect(),
        }
    };
    let of_arm = |arm: usize| -> (String, Vec<Cell>) {
        let trials = study.experiment.trials.iter().enumerate().filter(|(_, t)| t.proposal().arm == arm);
        (words::arm(study, arm), trials.map(cell).collect())
    };
    let arms = study.experiment.trials.iter().map(|t| t.proposal().arm + 1).max().unwrap_or(0);
    let ends = study.experiment.trials.iter().filter_map(measures).filter_map(|m| m.seconds.last());
    MultiplesFigure {
        id: "courses".to_string(),
        title: "The course of every trial".to_string(),
        finding:
            "One cell for each trial, numbered in the order they were made; all cells share their scales."
                .to_string(),
        seconds: ends.map(|s| (s.at_ns + s.len_ns) as f64 / 1e9).fold(0.0, f64::max),
        groups: (0..arms).map(of_arm).filter(|group| !group.1.is_empty()).collect(),
        strips: strips.into_iter().map(|(strip, _)| strip).collect(),
    }
}

fn outcome(trial: &TrialLog) -> &'static str {
    match &trial.observation.outcome {
        Outcome::Measured(_) => "measured",
        Outcome::Aborted { .. } => "aborted",
        Outcome::Failed { .. } => "failed",
    }
}

fn table(study: &Study<'_>) -> Table {
    let metrics = super::shown_metrics(study);
    let phased = study.experiment.trials.iter().any(|t| t.proposal().phase != Phase::Measure);
    let mut head: Vec<String> =
        ["trial", "arm", "block", "started", "took", "washout", "left dirty"].map(str::to_string).to_vec();
    if phased {
        head.push("for".to_string());
    }
    head.extend(metrics.iter().map(|metric| words::title(study, metric)));
    head.push("outcome".to_string());
    let row = |(i, trial): (usize, &TrialLog)| {
        let proposal = trial.proposal();
        let mut row = vec![
            format!("#{}", i + 1),
            words::arm(study, proposal.arm),
            (proposal.block + 1).to_string(),
            Nanos(trial.start_ns).to_string(),
            Nanos(trial.took_ns).to_string(),
            Nanos(trial.washout.took_ns).to_string() + if trial.washout.timed_out { ", gave up" } else { "" },
            Bytes(trial.washout.left_bytes).to_string(),
        ];
        if phased {
            row.push(proposal.phase.name().to_string());
        }
        let value = |metric: &Metric| measures(trial).and_then(|m| m.get(metric));
        row.extend(metrics.iter().map(|m| value(m).map_or("–".to_string(), |v| words::figure(m, v))));
        row.push(outcome(trial).to_string());
        row
    };
    Table { head, rows: study.experiment.trials.iter().enumerate().map(row).collect(), ..Table::default() }
}
