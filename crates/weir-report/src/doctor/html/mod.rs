//! The doctor's page: the verdict first, then the plots that it rests on.

mod flood;
mod map;
mod measured;
mod plots;
mod signs;
mod stages;
mod sustained;
mod verdict;

use crate::layout::shell;
use crate::page::{Page, date, facts_table, headline, lede, note, page, paragraph, section, slug, typed};
use maud::{Markup, html};
use weir_core::units::Nanos;
use weir_verdict::doctor::DoctorReport;

/// Draws an examination as one HTML document.
pub fn doctor(report: &DoctorReport) -> String {
    let links = Links::of(report);
    let body = html! {
        (opening(report))
        (section("verdict", "Findings", verdict::findings(report, &links)))
        (section("change", "What to change", verdict::advice(report, &links)))
        @if !report.next.is_empty() { (section("next", "What to try next", verdict::next(report))) }
        @if !report.bars.is_empty() { (section("bars", "Bars", verdict::bars(report, &links))) }
        (evidence(report, &links))
        @if !report.caveats.is_empty() {
            (section("caveats", "What weakens this", verdict::caveats(report, &links)))
        }
        @if !report.measurements.is_empty() {
            (section("measured", "Everything measured", measured::html(report)))
        }
        (section("again", "How to run it again", again(report)))
    };
    page(&Page {
        title: format!("weir doctor: {}", report.headline.text),
        kind: "doctor".to_string(),
        date: date(&report.started_at),
        foot: format!("weir {} · record {}", report.weir_version, report.record_id),
        body,
    })
}

/// Plots and sentences by topic.
fn evidence(report: &DoctorReport, links: &Links) -> Markup {
    let flood = report.flood.as_ref().map_or(Markup::default(), |story| flood::html(story, report));
    let commits = html! { (plots::commits(report)) (map::commits(report)) (stages::html(report)) };
    let parts = [
        ("map", "Reads and writes together", map::html(report)),
        ("lines", "For other programs", map::lines(report)),
        ("sustained", "How long a burst lasts", sustained::html(report)),
        ("under-flood", "Under a flood", flood),
        ("commits", "What a commit costs", commits),
        ("depth", "How deep a queue it takes", plots::depth(report)),
        ("bulk", "Bulk throughput", plots::bulk(report)),
        ("facts", "The storage and the machine", facts(report)),
    ];
    html! {
        @for (id, heading, shown) in parts {
            @let body = html! { (shown) (verdict::further(id, report, links)) };
            // A finding's link must lead somewhere even where there was nothing to draw.
            @if !body.0.is_empty() || verdict::points_at(id, report) { (section(id, heading, body)) }
        }
    }
}

fn opening(report: &DoctorReport) -> Markup {
    let (first, rest) = first_sentence(&report.headline.text);
    html! {
        div.verdict {
            (signs::grade(report.headline.grade))
            div {
                (headline(first))
                (lede(rest))
                p.soft { (report.path) " · " (report.mode) " examination, " (Nanos(report.elapsed_ns).to_string()) }
            }
        }
        @if let Some(reason) = &report.ended_early { (note("The examination ended early", reason, true)) }
    }
}

/// A headline of several sentences: the first is the title.
fn first_sentence(text: &str) -> (&str, &str) {
    match text.find(". ") {
        Some(end) => (&text[..end], text[end + 1..].trim_start()),
        None => (text.trim_end_matches('.'), ""),
    }
}

fn facts(report: &DoctorReport) -> Markup {
    let rows: Vec<(String, String, String)> =
        report.facts.iter().map(|f| (f.label.clone(), f.value.clone(), f.source.clone())).collect();
    facts_table(&rows)
}

fn again(report: &DoctorReport) -> Markup {
    let words = "The record keeps every histogram, interval and condition; this page is derived from it and can be \
                 derived again.";
    html! { (typed(shell(&report.command))) (paragraph(words)) }
}

/// Where the evidence of a sentence is shown.
struct Links {
    /// Id of a measurement and the anchor of the plot that shows it.
    plots: Vec<(String, String)>,
    /// Ids of all measurements.
    rows: Vec<String>,
}

impl Links {
    fn of(report: &DoctorReport) -> Links {
        let mut plots = Vec::new();
        let points = report.curves.iter().flat_map(|c| &c.points);
        plots.extend(points.map(|p| (p.measurement.clone(), plots::DEPTH.to_string())));
        let phases = report.flood.iter().flat_map(|f| &f.phases).filter_map(|p| p.measurement.clone());
        plots.extend(phases.map(|id| (id, flood::TIMELINE.to_string())));
        let commits = report.measurements.iter().filter(|m| plots::is_commit(report, m));
        plots.extend(commits.map(|m| (m.id.clone(), plots::COMMITS.to_string())));
        Links { plots, rows: report.measurements.iter().map(|m| m.id.clone()).collect() }
    }

    /// The anchor for the source of an evidence, if the page shows it.
    fn anchor(&self, source: &str) -> Option<String> {
        if source.starts_with("fact:") {
            return Some("facts".to_string());
        }
        if source == "flood timeline" {
            return self.plots.iter().find(|(_, anchor)| anchor == flood::TIMELINE).map(|(_, a)| a.clone());
        }
        let plot = self.plots.iter().find(|(id, _)| id == source).map(|(_, anchor)| anchor.clone());
        plot.or_else(|| self.rows.iter().find(|id| *id == source).map(|id| row_anchor(id)))
    }
}

/// The anchor of a measurement's row in the table of everything.
fn row_anchor(id: &str) -> String {
    format!("m-{}", slug(id))
}

#[cfg(test)]
pub mod tests;
