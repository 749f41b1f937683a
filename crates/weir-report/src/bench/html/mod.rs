//! The page of a run of `bench` or `fileio`.

pub mod job;

use crate::conditions::under_which_conditions;
use crate::layout::shell;
use crate::page::{Page, date, facts_table, headline, lede, page, paragraph, remark_note, section, typed};
use job::View;
use maud::{Markup, html};
use weir_blocktrace::replay::ReplayRecord;
use weir_core::result::record::FloodRecord;
use weir_core::result::{Record, RunResult, derive};
use weir_core::units::{Bytes, Nanos};

/// Draws a whole run as one HTML document.
pub fn run(record: &Record) -> String {
    run_with(record, &Markup::default())
}

/// Draws a recording that was played.
pub fn replay(record: &Record, replay: &ReplayRecord) -> String {
    run_with(record, &super::replay::html(record, replay))
}

/// A run with more about its jobs.
fn run_with(record: &Record, more: &Markup) -> String {
    let result = derive(record);
    let views: Vec<View<'_>> =
        record.jobs.iter().zip(&result.jobs).map(|(raw, result)| View { raw, result }).collect();
    let body = html! {
        (opening(record, &result))
        @for (i, view) in views.iter().enumerate() { (measured(i, *view, &record.floods, views.len())) }
        (more)
        @if !record.floods.is_empty() {
            (section("flood", "Flood", facts_table(&floods(&record.floods))))
        }
        (under_which_conditions(record))
        (section("again", "How to run it again", again(record)))
    };
    page(&Page {
        title: format!("weir {}: {}", record.kind, title(record)),
        kind: record.kind.clone(),
        date: date(&record.started_at),
        foot: format!("weir {} · record {}", record.weir_version, record.id),
        body,
    })
}

/// One of so many jobs.
fn measured(i: usize, view: View<'_>, floods: &[FloodRecord], jobs: usize) -> Markup {
    let id = format!("job-{}", i + 1);
    let shown = job::html(&id, view, floods, jobs);
    if jobs == 1 {
        return section(&id, "What was measured", shown);
    }
    let heading = format!("{}: {}", view.raw.job.name, job::what(view.raw));
    section(&id, &heading, html! { (paragraph(job::sentence(view.result))) (shown) })
}

fn title(record: &Record) -> String {
    match record.jobs.as_slice() {
        [] => "Nothing was measured".to_string(),
        [only] => job::what(only),
        [first, rest @ ..] => format!("{}, and {} more jobs", job::what(first), rest.len()),
    }
}

fn opening(record: &Record, result: &RunResult) -> Markup {
    html! {
        (headline(title(record)))
        @if let [only] = result.jobs.as_slice() { (lede(job::sentence(only))) }
        @for remark in &result.notes { (remark_note(remark, true)) }
    }
}

fn floods(floods: &[FloodRecord]) -> Vec<(String, String, String)> {
    let row = |flood: &FloodRecord| {
        let rate = flood.bytes as f64 * 1e9 / flood.elapsed_ns.max(1) as f64;
        let (size, time) = (Bytes(flood.bytes), Nanos(flood.elapsed_ns));
        let rate = job::bytes_rate(rate);
        let text = format!("{size} handed to the page cache in {time}, {rate}; {}", flood.ended);
        (flood.spec.clone(), text, String::new())
    };
    floods.iter().map(row).collect()
}

fn again(record: &Record) -> Markup {
    // A job that TOML cannot express still has its command line above.
    let jobs = record.jobs.iter().filter_map(|each| Some((&each.job.name, toml::to_string(&each.job).ok()?)));
    html! {
        (typed(shell(&record.command)))
        @for (name, text) in jobs {
            details { summary { "Job " (name) ", all defaults filled in" } (typed(text)) }
        }
    }
}

#[cfg(test)]
pub mod tests;
