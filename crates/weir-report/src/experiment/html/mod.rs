//! The page of an experiment: the answer and what to do first, then the plots that it rests on, then every trial.

mod ab;
mod advice;
mod ladder;
mod race;
mod scale;
mod sweep;
mod trials;

use crate::conditions::under_which_conditions;
use crate::experiment::words;
use crate::layout::shell;
use crate::page::{
    Page, Table, Tile, data_table, date, headline, note, page, paragraph, prose, section, tiles, typed,
};
use crate::plot::{Axis, Scale, Series, Unit};
use maud::{Markup, html};
use weir_core::units::Nanos;
use weir_experiment::{Metric, Recommendation, Role, Study};
use weir_verdict::view::percent;

/// Draws an experiment as one HTML document.
pub fn experiment(study: &Study<'_>) -> String {
    let record = study.record;
    // Steps that are compared with each other need not lead to a setting.
    let leads = study.experiment.design != "ladder" || study.finding.recommendation != Recommendation::None;
    let (heading, figures) = match study.experiment.design.as_str() {
        "sweep" => ("What is traded for what", sweep::html(study)),
        "ladder" => ("Step by step", ladder::html(study)),
        "ab" => ("Pair by pair", ab::html(study)),
        "race" => ("How far each candidate came", race::html(study)),
        "scale" => ("From more and more connections", scale::html(study)),
        _ => ("The arms", data_table(&arms(study))),
    };
    let doubts = words::doubts(study);
    let body = html! {
        (opening(study))
        @if leads { (section("change", "What to change", advice::html(study))) }
        (section("figures", heading, html! { (remarks(study)) (figures) }))
        @if !study.experiment.trials.is_empty() { (section("trials", "Every trial", trials::html(study))) }
        @if !doubts.is_empty() {
            (section("doubts", "What weakens this", html! { @for doubt in &doubts { (paragraph(doubt)) } }))
        }
        (under_which_conditions(record))
        (section("again", "How to run it again", again(study)))
    };
    page(&Page {
        title: format!("{}: {}", study.title(), study.finding.headline),
        kind: study.title().trim_start_matches("weir ").to_string(),
        date: date(&record.started_at),
        foot: format!("weir {} · record {}", record.weir_version, record.id),
        body,
    })
}

fn opening(study: &Study<'_>) -> Markup {
    let said = words::sentence(&study.finding.headline);
    let (first, rest) = said.split_once(". ").unwrap_or((said.trim_end_matches('.'), ""));
    html! {
        (headline(first))
        @if !rest.is_empty() { p.lede { (prose(rest)) } }
        (tiles(&head_tiles(study)))
        @if let Some(reason) = &study.record.ended_early { (note("The experiment ended early", reason, true)) }
    }
}

/// What is recommended, the main figure and the other axis, and what it took to know.
fn head_tiles(study: &Study<'_>) -> Vec<Tile> {
    let mut out = Vec::new();
    let shown = words::recommended(study);
    if let Some(arm) = shown.filter(|_| study.experiment.design == "sweep") {
        out.push(Tile {
            name: words::swept_name(study).unwrap_or_default(),
            value: words::arm(study, arm),
            detail: "recommended".to_string(),
        });
    }
    let metrics = [study.main_metric(), Metric::Bulk];
    for metric in metrics.iter().take(if study.has(&Metric::Bulk) { 2 } else { 1 }) {
        out.extend(shown.and_then(|arm| figure_tile(study, arm, metric)));
    }
    let used = study.time_used();
    out.push(Tile {
        name: "time".to_string(),
        value: Nanos(used.total_ns()).to_string(),
        detail: format!("{} trials, {} of washout", study.experiment.trials.len(), Nanos(used.washouts_ns)),
    });
    out
}

fn figure_tile(study: &Study<'_>, arm: usize, metric: &Metric) -> Option<Tile> {
    let value = study.value(arm, metric)?;
    let found = study.arm_of(Role::AsFound).filter(|found| *found != arm);
    let before = found.and_then(|found| study.value(found, metric));
    let mut detail: Vec<String> =
        before.map(|b| format!("baseline {}", words::figure(metric, b))).into_iter().collect();
    if *metric == Metric::Rate {
        detail.extend(words::of_idle(study, arm).map(|share| format!("{} of idle", percent(share))));
    }
    Some(Tile {
        name: words::title(study, metric),
        value: words::figure(metric, value),
        detail: detail.join(", "),
    })
}

fn remarks(study: &Study<'_>) -> Markup {
    html! { @for remark in &study.finding.remarks { (paragraph(words::sentence(remark))) } }
}

fn again(study: &Study<'_>) -> Markup {
    let words = "The record keeps every second of every trial; this page is derived from it and can be derived again.";
    html! { (typed(shell(&study.record.command))) (paragraph(words)) }
}

/// What the numbers of a figure mean on an axis.
fn unit(metric: &Metric) -> Unit {
    match metric {
        Metric::Rate => Unit::Iops,
        Metric::Bulk | Metric::Device => Unit::BytesPerSecond,
        Metric::Named(_) => Unit::Count(""),
        _ => Unit::Latency,
    }
}

/// A figure's name on an axis, where the unit stands behind it.
fn axis_title(study: &Study<'_>, metric: &Metric) -> String {
    match metric {
        Metric::Rate => study.operations().to_string(),
        Metric::Bulk => "bulk writing".to_string(),
        Metric::Device => "device writes".to_string(),
        latency if latency.is_latency() => format!("{} latency", words::title(study, latency)),
        other => other.to_string(),
    }
}

/// Rates from zero; latencies by their logarithm.
fn axis(study: &Study<'_>, metric: &Metric) -> Axis {
    let scale = if metric.is_latency() { Scale::Log } else { Scale::Linear };
    Axis::y(axis_title(study, metric), unit(metric), scale)
}

/// What points of arms are.
const MEANS: &str = "Means over trials with 95 % intervals.";

/// A figure of arms at their places on an axis, with intervals.
fn over(study: &Study<'_>, places: &[(usize, f64)], metric: &Metric, look: usize) -> Series {
    let at = |arm: usize| study.value(arm, metric).unwrap_or(f64::NAN);
    let points = places.iter().map(|(arm, place)| (*place, at(*arm))).collect();
    let interval =
        |(arm, place): &(usize, f64)| study.interval(*arm, metric).map(|(low, high)| (*place, low, high));
    let whiskers = places.iter().filter_map(interval).collect();
    Series { whiskers, ..Series::line(axis_title(study, metric), look, points) }
}

/// The figures that tables of arms show.
fn shown_metrics(study: &Study<'_>) -> Vec<Metric> {
    let mut out = vec![study.main_metric()];
    for metric in
        [Metric::Rate, Metric::Bulk, Metric::Mean, Metric::P95, Metric::P99, Metric::Max, Metric::SubmitP95]
    {
        if !out.contains(&metric) && study.has(&metric) {
            out.push(metric);
        }
    }
    out
}

/// Each arm that was tried in figures, with intervals.
fn arms(study: &Study<'_>) -> Table {
    let metrics = shown_metrics(study);
    let mut head = vec!["".to_string(), "trials".to_string()];
    head.extend(metrics.iter().map(|metric| words::title(study, metric)));
    let row = |arm: usize| {
        let summary = &study.finding.arms[arm];
        let mut row = vec![words::arm(study, arm), words::trials(summary)];
        row.extend(metrics.iter().map(|metric| figure_cell(study, arm, metric)));
        row
    };
    Table { head, rows: study.tried().map(row).collect(), ..Table::default() }
}

/// A figure with its interval.
fn figure_cell(study: &Study<'_>, arm: usize, metric: &Metric) -> String {
    let Some(value) = study.value(arm, metric) else { return "–".to_string() };
    let interval =
        study.interval(arm, metric).map_or(String::new(), |i| format!(" [{}]", words::interval(metric, i)));
    format!("{}{interval}", words::figure(metric, value))
}

#[cfg(test)]
mod tests;
