//! Redo log, WAL and checkpoints: does the log hold enough for flushing to take its time?

use super::{DbAdvice, Judged, View};
use crate::doctor::{Evidence, Grade, Statement};
use crate::view::{fact, percent};
use weir_core::units::Bytes;
use weir_oltp::vitals;

/// From this age of the checkpoint on, a server flushes hard (InnoDB's async flush point is at 7/8 of its limit).
const AGE_HIGH: f64 = 0.75;
/// InnoDB's log should hold what an hour of writing makes.
const HOLD_SECONDS: f64 = 3600.0;
/// No log is proposed beyond this: recovery after a crash reads it all.
const LOG_MAX: f64 = 32.0 * 1_073_741_824.0;

/// A larger log takes at most this share of the free space: a server may write it beside the old one, and the data grow.
const OF_FREE: f64 = 0.5;
/// Such a size is a multiple of this.
const STEP: u64 = 256 << 20;
/// Fewer page writes a second than this are nothing that sessions pay for.
const FLUSHES: f64 = 1.0;

/// The size of one of the log's files, before MySQL 8.0.30 and in MariaDB.
const LOG_FILE: &str = "innodb_log_file_size";

pub(super) fn judge(view: &View) -> Option<Judged> {
    let (variable, capacity) = capacity(view)?;
    let waits = view.counters.log_waits.unwrap_or(0);
    let seconds = if view.is_postgres() { between_checkpoints(view) } else { HOLD_SECONDS };
    let wanted = view.rate(view.counters.log_bytes) * seconds;
    let is_small = view.is_loaded() && wanted > capacity as f64;
    // The part of the time wanted that the log holds.
    let part = capacity as f64 / wanted;
    let rule = if view.is_postgres() { postgres } else { innodb };
    let (grade, text) = rule(view, is_small, part);
    let text = text.unwrap_or_else(|| {
        let aged = view.vitals.checkpoint_age.map(percent);
        let aged = aged.map_or(String::new(), |age| format!("; the oldest checkpoint was at {age} of it"));
        format!("The log of {} is large enough{aged}.", Bytes(capacity))
    });
    let mut statements = vec![Statement::new(text, evidence(view, variable, capacity))];
    if waits > 0 {
        let text = format!("Sessions waited {waits} times for space in the log's buffer.");
        statements.push(Statement::new(text, Vec::new()));
    }
    if let Some((free, _)) = space(view).filter(|(_, most)| is_small && *most <= capacity) {
        let text = format!(
            "No larger log is advised: {} of free space{} would be too little beside it.",
            Bytes(free),
            place(view)
        );
        statements.push(Statement::new(text, Vec::new()));
    }
    let larger = larger(view, variable, capacity, wanted).filter(|_| is_small);
    let buffer = if waits > 0 { buffer(view, waits) } else { None };
    Some(Judged::new("Log", Some(grade), statements).with(larger).with(buffer))
}

/// The free space of the file system of the log, and the largest log that is advised there.
fn space(view: &View) -> Option<(u64, u64)> {
    let of_data = || view.exam.conditions.as_ref()?.target.as_ref()?.file_system.as_ref()?.free_bytes;
    let free = view.exam.log.as_ref().map(|log| log.free_bytes).or_else(of_data)?;
    Some((free, (free as f64 * OF_FREE) as u64 / STEP * STEP))
}

/// Where that is, unless it is with the data.
fn place(view: &View) -> String {
    view.exam.log.as_ref().map_or(String::new(), |log| format!(" in {}", log.dir))
}

/// Whether pages are written that sessions may pay for, as far as it is known.
fn flushes(view: &View) -> bool {
    view.counters.page_writes.is_none_or(|pages| view.vitals.per_second(pages) >= FLUSHES)
}

/// The grade, and why where it is not good. The age of the checkpoint tells when InnoDB flushes hard.
fn innodb(view: &View, is_small: bool, part: f64) -> (Grade, Option<String>) {
    let age = view.vitals.checkpoint_age.filter(|age| *age >= AGE_HIGH && flushes(view));
    let text = match age {
        _ if !is_small => return (Grade::Good, None),
        Some(age) => format!(
            "The log is too small for this load: the oldest checkpoint reached {} of what the log holds, and sessions pay \
             for the flushing.",
            percent(age)
        ),
        None => format!(
            "The log holds {:.0} minutes of this load; an hour leaves flushing its time.",
            part * HOLD_SECONDS / 60.0
        ),
    };
    (if age.is_some() { Grade::Poor } else { Grade::Fair }, Some(text))
}

/// PostgreSQL's checkpoints by time begin at any age. It counts those that a command or a base backup requests with those
/// that the log requests.
fn postgres(view: &View, is_small: bool, part: f64) -> (Grade, Option<String>) {
    let requested = match view.counters.forced_checkpoints.unwrap_or(0) {
        0 => None,
        1 => Some("1 checkpoint was requested, by the log or by a command".to_string()),
        n => Some(format!("{n} checkpoints were requested, by the log or by a command")),
    };
    match (is_small, requested) {
        (false, None) => (Grade::Good, None),
        (false, Some(requested)) => {
            (Grade::Fair, Some(format!("{requested}; at the present rate the log requests none.")))
        }
        (true, Some(requested)) if flushes(view) => {
            let text = format!(
                "The log is too small for this load: {requested}, and sessions pay for the flushing."
            );
            (Grade::Poor, Some(text))
        }
        (true, _) => {
            let text = format!(
                "At this rate the log requests a checkpoint after {} of checkpoint_timeout.",
                percent(part)
            );
            (Grade::Fair, Some(text))
        }
    }
}

/// Seconds of writing that PostgreSQL's log has to hold for checkpoints to come by time; 0 where that is not known. It
/// requests one at max_wal_size / (1 + checkpoint_completion_target) since the last (xlog.c, CalculateCheckpointSegments,
/// from 11 on).
fn between_checkpoints(view: &View) -> f64 {
    let target = view.variable("checkpoint_completion_target").and_then(|target| target.parse::<f64>().ok());
    let timeout = view.variable("checkpoint_timeout").and_then(vitals::seconds);
    target.zip(timeout).map_or(0.0, |(target, timeout)| timeout as f64 * (1.0 + target))
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

fn larger(view: &View, variable: &str, capacity: u64, wanted: f64) -> Option<DbAdvice> {
    let gib = ((wanted.min(LOG_MAX) / 1_073_741_824.0).ceil() as u64).max(1);
    let size = space(view).map_or(gib << 30, |(_, most)| most.min(gib << 30));
    if size <= capacity {
        return None;
    }
    // MariaDB resizes its log at run time from 10.9 on; before, and in MySQL before 8.0.30, the file is made at a start.
    let restart = variable == LOG_FILE && !(view.is_mariadb() && is_at_least(&view.vitals.version, 10, 9));
    let value = match (view.is_postgres(), size.trailing_zeros()) {
        (true, 30..) => format!("{}GB", size >> 30),
        (true, _) => format!("{}MB", size >> 20),
        (false, _) => (size / files(view, variable)).to_string(),
    };
    let span =
        if view.is_postgres() { "from one checkpoint by time to the end of the next" } else { "in an hour" };
    let holds = match size as f64 / wanted {
        part if part < 1.0 => {
            format!("this holds {} of it, so that checkpoints come less often", percent(part))
        }
        _ => "checkpoints then come by time, and pages are written once instead of often".to_string(),
    };
    let why = format!("{span} this load writes {} of log; {holds}", Bytes(wanted as u64));
    let free =
        space(view).map_or(String::new(), |(free, _)| format!(" ({} are free{})", Bytes(free), place(view)));
    let cost = format!("space on the disk{free}, and a longer recovery after a crash");
    view.advise(variable, &value, restart, why, &cost)
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
