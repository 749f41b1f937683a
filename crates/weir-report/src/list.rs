//! The list of stored runs.

use serde::Serialize;
use serde_json::Value;

use crate::guard::Story;
use crate::layout::table;
use crate::record::report;
use weir_control::History;
use weir_core::result::derive::{class_result, headline};
use weir_core::result::record::Record;
use weir_core::units::{Nanos, megabytes_per_second, per_second};
use weir_core::workload::Job;
use weir_core::workload::spec::Target;
use weir_experiment::Study;
use weir_oltp::{OltpRecord, OltpResult};
use weir_record::Record as Typed;
use weir_verdict::DoctorReport;

/// What a row says of a run.
pub struct Entry {
    /// Its kind, with the design or script where there is one.
    pub kind: String,
    /// What it was about: a path, devices, a server.
    pub target: String,
    /// What came out.
    pub headline: String,
}

/// One run of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListRow {
    id: String,
    started_at: Option<String>,
    kind: Option<String>,
    target: Option<String>,
    headline: Option<String>,
    /// Why there is nothing but the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl ListRow {
    /// The row of a record; `started_at` is its start as it shall be shown.
    pub fn of(record: &Typed, started_at: String) -> ListRow {
        let entry = match report(record, None) {
            Ok(report) => report.entry(),
            Err(unread) => Entry { headline: first_words(&unread.why), ..of_run(&record.head) },
        };
        ListRow {
            id: record.head.id.clone(),
            started_at: Some(started_at),
            kind: Some(entry.kind),
            target: Some(entry.target),
            headline: Some(entry.headline),
            error: None,
        }
    }

    /// The row of a file that cannot be used.
    pub fn unreadable(id: &str, why: &str) -> ListRow {
        ListRow {
            id: id.to_string(),
            started_at: None,
            kind: None,
            target: None,
            headline: None,
            error: Some(why.to_string()),
        }
    }

    fn cells(&self) -> Vec<String> {
        let known = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "-".to_string());
        let headline = match &self.error {
            Some(why) => format!("unreadable: {why}"),
            None => known(&self.headline),
        };
        vec![self.id.clone(), known(&self.started_at), known(&self.kind), known(&self.target), headline]
    }
}

/// The table, oldest first.
pub fn list(rows: &[ListRow]) -> String {
    let mut cells = vec![["id", "started", "kind", "target", "headline"].map(String::from).to_vec()];
    cells.extend(rows.iter().map(ListRow::cells));
    let mut out = String::new();
    table(&mut out, &cells, 5);
    out
}

/// Of plain jobs.
pub fn of_run(record: &Record) -> Entry {
    Entry { kind: record.kind.clone(), target: target_of(record), headline: headline_of(record) }
}

/// Of an examination by the doctor.
pub fn of_doctor(record: &Record, report: &DoctorReport) -> Entry {
    let headline = format!("{}: {}", report.headline.grade.name(), report.headline.text);
    Entry { kind: record.kind.clone(), target: report.path.clone(), headline: first_words(&headline) }
}

/// Of an experiment: kind with the design.
pub fn of_experiment(study: &Study<'_>) -> Entry {
    let (record, experiment) = (study.record, &study.experiment);
    let place = experiment.conduct.place.clone();
    let early = if record.ended_early.is_some() { "ended early: " } else { "" };
    Entry {
        kind: format!("{} {}", record.kind, experiment.design),
        target: if place.is_empty() { target_of(record) } else { place },
        headline: first_words(&format!("{early}{}", study.finding.headline)),
    }
}

/// Of a guard's history: its devices.
pub fn of_guard(record: &Record, history: &History) -> Entry {
    let devices: Vec<&str> = history.devices.iter().map(|device| device.name.as_str()).collect();
    let headline = first_words(&Story::of(history).headline());
    Entry { kind: record.kind.clone(), target: devices.join(", "), headline }
}

/// Of a run of transactions: kind with the script, and the server.
pub fn of_oltp(record: &Record, raw: &OltpRecord, result: &OltpResult) -> Entry {
    let name = raw.script_path.clone().unwrap_or_else(|| raw.spec.script.to_string());
    Entry {
        kind: format!("{} {name}", record.kind),
        target: weir_oltp::text::family(&raw.server),
        headline: crate::oltp::text::headline(result),
    }
}

/// As many words as a row of the list has room for.
fn first_words(text: &str) -> String {
    const ROOM: usize = 50;
    let mut out = String::new();
    for word in text.split(' ') {
        if out.chars().count() + 1 + word.chars().count() > ROOM {
            return out + " …";
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

fn target_of(record: &Record) -> String {
    record.jobs.first().map_or(String::new(), |job| target(&job.job, &record.conditions))
}

/// Where the I/O went; where that was typed relative to a folder, the path that was found there.
fn target(job: &Job, conditions: &Value) -> String {
    let typed = match &job.target {
        Target::Files { dir, .. } => dir,
        Target::File { path, .. } | Target::Device { path, .. } => path,
        Target::Null { .. } => return "null".to_string(),
    };
    let found = conditions.pointer("/target/path").and_then(Value::as_str).filter(|_| typed.is_relative());
    found.map_or(typed.display().to_string(), String::from)
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
