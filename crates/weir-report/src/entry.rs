//! What the list of stored runs says of each kind of run.

use serde_json::Value;

use crate::guard::Story;
use weir_control::History;
use weir_core::result::derive::{class_result, headline};
use weir_core::result::record::Record;
use weir_core::units::{Nanos, megabytes_per_second, per_second};
use weir_core::workload::Job;
use weir_core::workload::spec::Target;
use weir_experiment::Study;
use weir_oltp::{OltpRecord, OltpResult};
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
pub fn first_words(text: &str) -> String {
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
    if let Target::Null { .. } = job.target {
        return "null".to_string();
    }
    let typed = job.target.place();
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
    match result.latency.p99.ns() {
        Some(ns) => parts.push(format!("p99 {}", Nanos(ns))),
        None => parts.push(format!("mean {}", Nanos(result.latency.mean_ns.round() as u64))),
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
