//! The page of a run of `bench` or `fileio`.

pub mod job;

use crate::conditions::under_which_conditions;
use crate::layout::shell;
use crate::page::{Page, date, facts_table, headline, page, remark_note, section};
use crate::plot::escape;
use job::View;
use weir_core::result::record::FloodRecord;
use weir_core::result::{Record, RunResult, derive};
use weir_core::units::{Bytes, Nanos};

/// Draws a whole run as one HTML document.
pub fn run(record: &Record) -> String {
    let result = derive(record);
    let views: Vec<View<'_>> =
        record.jobs.iter().zip(&result.jobs).map(|(raw, result)| View { raw, result }).collect();
    let mut body = opening(record, &result);
    for (i, view) in views.iter().enumerate() {
        let id = format!("job-{}", i + 1);
        let shown = job::html(&id, *view, &record.floods, views.len());
        let part = if views.len() == 1 {
            section(&id, "What was measured", &shown)
        } else {
            let heading = format!("{}: {}", view.raw.job.name, job::what(view.raw));
            section(&id, &heading, &(crate::page::paragraph(job::sentence(view.result)) + &shown))
        };
        body.push_str(&part);
    }
    if !record.floods.is_empty() {
        body.push_str(&section("flood", "Flood", &facts_table(&floods(&record.floods))));
    }
    body.push_str(&under_which_conditions(record));
    body.push_str(&section("again", "How to run it again", &again(record)));
    page(&Page {
        title: format!("weir {}: {}", record.kind, title(record)),
        kind: record.kind.clone(),
        date: date(&record.started_at),
        foot: format!("weir {} · record {}", record.weir_version, record.id),
        body,
    })
}

fn title(record: &Record) -> String {
    match record.jobs.as_slice() {
        [] => "Nothing was measured".to_string(),
        [only] => job::what(only),
        [first, rest @ ..] => format!("{}, and {} more jobs", job::what(first), rest.len()),
    }
}

fn opening(record: &Record, result: &RunResult) -> String {
    let mut out = headline(title(record));
    if let [only] = result.jobs.as_slice() {
        out.push_str(&format!("<p class=\"lede\">{}</p>\n", escape(job::sentence(only))));
    }
    for remark in &result.notes {
        out.push_str(&remark_note(remark, true));
    }
    out
}

fn floods(floods: &[FloodRecord]) -> Vec<(String, String, String)> {
    let row = |flood: &FloodRecord| {
        let rate = flood.bytes as f64 * 1e9 / flood.elapsed_ns.max(1) as f64;
        let (size, time) = (Bytes(flood.bytes), Nanos(flood.elapsed_ns));
        let text = format!("{size} in {time}, {}; {}", job::bytes_rate(rate), flood.ended);
        (flood.spec.clone(), text, String::new())
    };
    floods.iter().map(row).collect()
}

fn again(record: &Record) -> String {
    let mut out = format!("<pre>{}</pre>\n", escape(shell(&record.command)));
    for each in &record.jobs {
        // A job that TOML cannot express still has its command line above.
        if let Ok(text) = toml::to_string(&each.job) {
            let name = escape(&each.job.name);
            out.push_str(&format!("<details><summary>Job {name}, all defaults filled in</summary>"));
            out.push_str(&format!("<pre>{}</pre></details>\n", escape(text)));
        }
    }
    out
}

#[cfg(test)]
pub mod tests;
