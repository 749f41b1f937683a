//! The list of stored runs.

use super::layout::table;
use crate::result::derive::{class_result, headline};
use crate::result::record::Record;
use crate::units::{Nanos, megabytes_per_second, per_second};
use crate::workload::Job;
use crate::workload::spec::Target;

/// One run of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListRow {
    id: String,
    when: String,
    kind: String,
    target: String,
    headline: String,
}

impl ListRow {
    /// The row of a record; `when` is its start as it shall be shown.
    pub fn of(record: &Record, when: &str) -> ListRow {
        ListRow {
            id: record.id.clone(),
            when: when.to_string(),
            kind: record.kind.clone(),
            target: record.jobs.first().map_or(String::new(), |job| target(&job.job)),
            headline: headline_of(record),
        }
    }

    /// The row of a file that cannot be used.
    pub fn unreadable(id: &str, why: &str) -> ListRow {
        ListRow {
            id: id.to_string(),
            when: "-".to_string(),
            kind: "-".to_string(),
            target: "-".to_string(),
            headline: format!("unreadable: {why}"),
        }
    }
}

/// The table, oldest first.
pub fn list(rows: &[ListRow]) -> String {
    let mut cells = vec![["id", "started", "kind", "target", "headline"].map(String::from).to_vec()];
    cells.extend(rows.iter().cloned().map(|r| vec![r.id, r.when, r.kind, r.target, r.headline]));
    let mut out = String::new();
    table(&mut out, &cells, 5);
    out
}

fn target(job: &Job) -> String {
    match &job.target {
        Target::Files { dir, .. } => dir.display().to_string(),
        Target::File { path, .. } | Target::Device { path, .. } => path.display().to_string(),
        Target::Null { .. } => "null".to_string(),
    }
}

/// The first job's most telling class: how many, how much, and p99.
fn headline_of(record: &Record) -> String {
    let Some(job) = record.jobs.first() else { return "no measurement".to_string() };
    let Some((class, of)) = headline(job).and_then(|class| Some((class, job.classes.get(&class)?))) else {
        return "nothing finished".to_string();
    };
    let result = class_result(of, job.elapsed_ns);
    let mut parts = vec![format!("{} {}/s", class.name(), per_second(result.iops))];
    if result.bytes_per_second > 0.0 {
        parts.push(megabytes_per_second(result.bytes_per_second));
    }
    match result.p99.ns() {
        Some(ns) => parts.push(format!("p99 {}", Nanos(ns))),
        None => parts.push(format!("mean {}", Nanos(result.mean_ns.round() as u64))),
    }
    match record.jobs.len() {
        0 | 1 => {}
        2 => parts.push("and 1 more job".to_string()),
        n => parts.push(format!("and {} more jobs", n - 1)),
    }
    if record.ended_early.is_some() {
        parts.push("ended early".to_string());
    }
    parts.join(", ")
}
