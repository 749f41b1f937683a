//! Redo log, WAL and checkpoints: does the log hold enough for flushing to take its time?

use super::{DbAdvice, Judged, View};
use crate::doctor::{Evidence, Grade, Statement};
use crate::view::{fact, percent};
use weir_core::units::Bytes;

/// From this age of the checkpoint on, a server flushes hard (InnoDB's async flush point is at 7/8 of its limit).
const AGE_HIGH: f64 = 0.75;
/// The log should hold what an hour of writing makes.
const HOLD_SECONDS: f64 = 3600.0;
/// No log is proposed beyond this: recovery after a crash reads it all.
const LOG_MAX: f64 = 32.0 * 1_073_741_824.0;

/// The size of one of the log's files, before MySQL 8.0.30 and in MariaDB.
const LOG_FILE: &str = "innodb_log_file_size";

pub(super) fn judge(view: &View) -> Option<Judged> {
    let (variable, capacity) = capacity(view)?;
    let age = view.vitals.checkpoint_age;
    let forced = view.counters.forced_checkpoints.unwrap_or(0);
    let waits = view.counters.log_waits.unwrap_or(0);
    let per_second = view.rate(view.counters.log_bytes);
    let hour = per_second * HOLD_SECONDS;
    let is_small = view.is_loaded() && hour > capacity as f64;
    let is_full = age.is_some_and(|age| age >= AGE_HIGH) || (view.is_postgres() && forced > 0);

    let mut statements = Vec::new();
    let grade = if is_full && is_small {
        let seen = if view.is_postgres() && forced > 0 {
            format!("{forced} checkpoints began because the log was full")
        } else {
            format!("the oldest checkpoint reached {} of what the log holds", percent(age.unwrap_or(0.0)))
        };
        let text = format!("The log is too small for this load: {seen}, and sessions pay for the flushing.");
        statements.push(Statement::new(text, evidence(view, variable, capacity)));
        Grade::Poor
    } else if is_small {
        let text = format!(
            "The log holds {:.0} minutes of this load; an hour leaves flushing its time.",
            capacity as f64 / per_second / 60.0
        );
        statements.push(Statement::new(text, evidence(view, variable, capacity)));
        Grade::Fair
    } else {
        let aged =
            age.map_or(String::new(), |age| format!("; the oldest checkpoint was at {} of it", percent(age)));
        let text = format!("The log of {} is large enough{aged}.", Bytes(capacity));
        statements.push(Statement::new(text, evidence(view, variable, capacity)));
        Grade::Good
    };
    if waits > 0 {
        let text = format!("Sessions waited {waits} times for space in the log's buffer.");
        statements.push(Statement::new(text, Vec::new()));
    }
    let larger = larger(view, variable, capacity, hour).filter(|_| is_small);
    let buffer = if waits > 0 { buffer(view, waits) } else { None };
    Some(Judged::new("Log", Some(grade), statements).with(larger).with(buffer))
}

/// The variable that says how much the log holds, and how much that is.
fn capacity(view: &View) -> Option<(&'static str, u64)> {
    if view.is_postgres() {
        return Some(("max_wal_size", view.size("max_wal_size")?));
    }
    if let Some(capacity) = view.size("innodb_redo_log_capacity") {
        return Some(("innodb_redo_log_capacity", capacity));
    }
    Some((LOG_FILE, view.size(LOG_FILE)? * files(view, LOG_FILE)))
}

/// How many files of the variable's size the log is made of.
fn files(view: &View, variable: &str) -> u64 {
    let in_group = || view.size("innodb_log_files_in_group").unwrap_or(1).max(1);
    if variable == LOG_FILE { in_group() } else { 1 }
}

fn evidence(view: &View, variable: &str, capacity: u64) -> Vec<Evidence> {
    let size = match files(view, variable) {
        1 => Bytes(capacity).to_string(),
        files => format!("{} × {files} files", Bytes(capacity / files)),
    };
    vec![fact(variable, size)]
}

fn larger(view: &View, variable: &str, capacity: u64, hour: f64) -> Option<DbAdvice> {
    let wanted = hour.min(LOG_MAX);
    let gib = ((wanted / 1_073_741_824.0).ceil() as u64).max(1);
    if gib << 30 <= capacity {
        return None;
    }
    // MariaDB resizes its log at run time from 10.9 on; before, and in MySQL before 8.0.30, the file is made at a start.
    let restart = variable == LOG_FILE && !(view.is_mariadb() && is_at_least(&view.vitals.version, 10, 9));
    let each = (gib << 30) / files(view, variable);
    let value = if view.is_postgres() { format!("{gib}GB") } else { each.to_string() };
    let why = format!(
        "an hour of this load writes {} of log; checkpoints then come by time, and pages are written once instead of \
         often",
        Bytes(hour as u64)
    );
    view.advise(variable, &value, restart, why, "space on the disk, and a longer recovery after a crash")
}

fn buffer(view: &View, waits: u64) -> Option<DbAdvice> {
    let (variable, doubled) = if view.is_postgres() {
        ("wal_buffers", format!("{}kB", 2 * view.size("wal_buffers")? / 1024))
    } else {
        ("innodb_log_buffer_size", (2 * view.size("innodb_log_buffer_size")?).to_string())
    };
    // MySQL 8.0 sets it at run time, its older versions, MariaDB and PostgreSQL at a start.
    let restart = view.is_postgres() || view.is_mariadb() || !is_at_least(&view.vitals.version, 8, 0);
    let why = format!("sessions waited {waits} times for space in it");
    view.advise(variable, &doubled, restart, why, "that much memory")
}

/// Whether `10.11.14-MariaDB` is 10.9 or later.
fn is_at_least(version: &str, major: u32, minor: u32) -> bool {
    let mut numbers =
        version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse::<u32>().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    found >= (major, minor)
}
