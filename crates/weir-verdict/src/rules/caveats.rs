//! What could not be seen or measured, and what weakens the findings: said before anybody has to ask.

use crate::doctor::{Measurement, Statement};
use crate::rules::settings;
use crate::view::{View, fact, percent};
use weir_core::units::{megabytes_per_second, per_second};

/// Others' load above which figures are called weakened.
const BUSY_CPU: f64 = 0.25;
const BUSY_IOPS: f64 = 50.0;
const BUSY_BYTES: f64 = 5e6;
/// Processors this busy during a step may be its limit.
const CPU_LIMIT: f64 = 0.9;
/// Deviation from Little's law beyond which a step contradicts itself.
const LITTLE: f64 = 0.05;

/// All of them.
pub fn list(view: &View, ended_early: Option<&str>) -> Vec<Statement> {
    let mut all = Vec::new();
    all.extend(ended_early.map(|why| Statement::new(format!("Ended early: {why}."), Vec::new())));
    all.extend(settings::barriers(view));
    all.extend(settings::arrays(view));
    all.extend(others(view));
    all.extend(failed(view));
    all.extend(cpu_bound(view));
    all.extend(inconsistent(view));
    all.extend(in_memory(view));
    all.extend(unseen(view));
    all.extend(flood_remarks(view));
    all.extend(skipped(view));
    all.extend(notes(view));
    all.extend(stages_unseen(view));
    all
}

/// What watching stages would have added.
fn stages_unseen(view: &View) -> Option<Statement> {
    let why = view.notes.stages_unseen.as_ref()?;
    let text = format!(
        "Stages of the I/O were not seen ({why}). With them, this report says how a commit's time divides into the \
         device's queue, the device and its flush."
    );
    Some(Statement::new(text, Vec::new()))
}

fn others(view: &View) -> Option<Statement> {
    let others = &view.notes.others;
    let iops = others.read_iops.unwrap_or(0.0) + others.write_iops.unwrap_or(0.0);
    let bytes = others.bytes_per_second.unwrap_or(0.0);
    if others.observed_ns == 0 {
        return Some(Statement::new("The load of other processes could not be seen.", Vec::new()));
    }
    if others.cpu_busy < BUSY_CPU && iops < BUSY_IOPS && bytes < BUSY_BYTES {
        return None;
    }
    let text = format!(
        "Other processes were busy before weir began: {} of the processors, {} IOPS and {} on the device. \
         Figures are \
         those of shared storage; the quiet ones may be better.",
        percent(others.cpu_busy),
        per_second(iops),
        megabytes_per_second(bytes)
    );
    Some(Statement::new(
        text,
        vec![fact("/proc/stat, diskstats", format!("{:.1} s", others.observed_ns as f64 / 1e9))],
    ))
}

/// Lists the ids of measurements for which something holds.
fn ids<'a>(view: &View<'a>, holds: impl Fn(&Measurement) -> bool) -> Vec<&'a str> {
    view.measurements.iter().filter(|m| holds(m)).map(|m| m.id.as_str()).collect()
}

fn failed(view: &View) -> Vec<Statement> {
    let failed = view.measurements.iter().filter_map(|m| m.error.as_ref().map(|e| (m, e)));
    failed
        .map(|(m, e)| Statement::new(format!("{} failed: {e}.", m.title), vec![fact(&m.id, "error")]))
        .collect()
}

fn cpu_bound(view: &View) -> Option<Statement> {
    let busy = ids(view, |m| m.cpu_busy.is_some_and(|share| share > CPU_LIMIT));
    if busy.is_empty() {
        return None;
    }
    let text = format!(
        "The processors were more than {} busy during {}: there the machine may be the limit, not the storage.",
        percent(CPU_LIMIT),
        few(&busy)
    );
    Some(Statement::new(text, busy.iter().map(|id| fact(id, "processors busy")).collect()))
}

fn inconsistent(view: &View) -> Option<Statement> {
    // An operation that begins before and ends after a short step weighs too much there for the law to be held against it.
    let long = |m: &Measurement| m.elapsed_ns as f64 > 50.0 * m.latency.mean_ns && m.latency.n >= 300;
    let off = ids(view, |m| long(m) && m.little_ratio.is_some_and(|r| (r - 1.0).abs() > LITTLE));
    if off.is_empty() {
        return None;
    }
    let text = format!(
        "Rate × latency differs from the operations in flight by more than {} in {} (Little's law): these \
         figures are doubtful.",
        percent(LITTLE),
        few(&off)
    );
    Some(Statement::new(text, off.iter().map(|id| fact(id, "Little's law")).collect()))
}

fn few(ids: &[&str]) -> String {
    match ids {
        [a, b, _, rest @ ..] if !rest.is_empty() => format!("{a}, {b} and {} more steps", ids.len() - 2),
        few => few.join(", "),
    }
}

fn in_memory(view: &View) -> Option<Statement> {
    ["tmpfs", "ramfs"].contains(&view.file_system_kind()).then(|| {
        let text = "The folder is in memory: these figures say nothing about a disk.";
        Statement::new(text, vec![fact("mountinfo", view.file_system_kind())])
    })
}

fn unseen(view: &View) -> Vec<Statement> {
    let blind = view.target().into_iter().flat_map(|t| &t.blind);
    let unreadable = &view.conditions.unreadable;
    let mut all: Vec<Statement> =
        blind.chain(unreadable).map(|text| Statement::new(text.clone(), Vec::new())).collect();
    if !view.conditions.limits.root {
        let text = "Run without root: no rescue trial, and only files that every user may read.";
        all.push(Statement::new(text, Vec::new()));
    }
    all
}

fn flood_remarks(view: &View) -> Vec<Statement> {
    let remarks = view.flood.into_iter().flat_map(|f| &f.remarks);
    remarks.map(|text| Statement::new(text.clone(), Vec::new())).collect()
}

/// Curves that stopped at their knee are no loss; they say so themselves.
fn skipped(view: &View) -> Vec<Statement> {
    let is_curve = |what: &str| view.curves.iter().any(|c| what.starts_with(&c.id));
    let left_out = view.notes.skipped.iter().filter(|s| !is_curve(&s.what));
    left_out.map(|s| Statement::new(format!("Not measured: {} ({}).", s.what, s.why), Vec::new())).collect()
}

/// What engines noticed, each sentence once, whatever the figures in it.
fn notes(view: &View) -> Vec<Statement> {
    let words = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    let mut seen: Vec<(&str, Vec<&str>)> = Vec::new();
    for m in view.measurements {
        for note in &m.notes {
            match seen.iter_mut().find(|(text, _)| words(text) == words(note)) {
                Some(entry) => entry.1.push(&m.id),
                None => seen.push((note, vec![&m.id])),
            }
        }
    }
    let evidence = |ids: &[&str]| ids.iter().map(|id| fact(id, "engine's note")).collect();
    seen.iter().map(|(text, ids)| Statement::new(format!("{text} ({})", few(ids)), evidence(ids))).collect()
}
