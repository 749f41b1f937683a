//! What stands in the journal: listed, confirmed, rolled back, and recovered when nobody answers for it any more.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use weir_knobs::{Became, KnobName, Value};

use super::entry::{Entry, State, Term, Written, boot_clock_ns};
use super::journal::{Journal, Sync};
use super::{KnobError, restore};
use crate::host::Host;
use crate::tree::Tree;

/// Which changes to roll back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The newest.
    Last,
    /// All, the newest first.
    All,
}

/// What a rollback did, in sentences, and what it could not do.
#[derive(Debug, Default)]
pub struct LedBack {
    /// A sentence a value, and what was left alone.
    pub said: Vec<String>,
    /// What could not be restored, or not be read.
    pub failed: Vec<KnobError>,
}

impl LedBack {
    /// Puts in what became of an entry. Whether it is restored.
    fn add(&mut self, done: Result<Option<Vec<String>>, KnobError>) -> bool {
        match done {
            Ok(said) => {
                self.said.extend(said.into_iter().flatten());
                true
            }
            Err(error) => {
                if let KnobError::NotLedBack { said, .. } = &error {
                    self.said.extend(said.iter().cloned());
                }
                self.failed.push(error);
                false
            }
        }
    }
}

/// A change in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its file.
    pub file: PathBuf,
    /// The process that made it.
    pub pid: u32,
    /// Whether that still runs.
    pub alive: bool,
    /// How long ago it was made.
    pub age: Duration,
    /// Until when it holds.
    pub until: Until,
    /// Whether a guard made it, which turns its knobs for as long as it runs.
    pub by_guard: bool,
    /// Knobs with the value before, and what became of it.
    pub changes: Vec<(KnobName, Value, Became)>,
}

/// Until when a change holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Its process ends.
    End,
    /// So much time has passed, unless it is confirmed.
    Deadline(Duration),
    /// A rollback.
    Rollback,
    /// Nobody answers for it: the next weir restores it.
    Stale,
    /// It belongs to an earlier boot and means nothing.
    Void,
}

type Read = (PathBuf, Entry);

/// The entries, newest first, and what could not be read.
fn all(tree: &Tree, journal: &Journal) -> (Vec<Read>, Vec<KnobError>) {
    let (mut entries, mut failed) = (Vec::new(), Vec::new());
    let files = journal.files().unwrap_or_else(|error| {
        failed.push(KnobError::Host(error));
        Vec::new()
    });
    for file in files {
        match journal.read(&file) {
            Ok(entry) => entries.push((file, entry)),
            // Its guardian may have finished with it in the meantime.
            Err(KnobError::Host(error)) if error.is_absent() => {}
            Err(error) => failed.push(error),
        }
    }
    entries.sort_by_cached_key(|(file, entry)| {
        // The clocks of two boots do not compare.
        let is_past = entry.is_of_another_boot(tree).unwrap_or(false);
        (is_past, is_past.then(|| Reverse(written_at(file))), Reverse(entry.since_ns))
    });
    (entries, failed)
}

fn written_at(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|data| data.modified()).ok()
}

/// What is in the journal, newest first, and what of it cannot be read.
pub fn entries(journal: &Journal) -> (Vec<Listed>, Vec<KnobError>) {
    let host = Host::live();
    let (entries, failed) = all(&host.tree, journal);
    (entries.into_iter().map(|(file, entry)| listed(&host, file, &entry)).collect(), failed)
}

pub(super) fn listed(host: &Host, file: PathBuf, entry: &Entry) -> Listed {
    let tree = &host.tree;
    let (alive, now_ns) = (entry.is_alive(tree), boot_clock_ns());
    let is_past = entry.is_of_another_boot(tree).unwrap_or(false);
    let is_void = is_past && !entry.outlives_boot();
    let until = match entry.hold {
        _ if is_void => Until::Void,
        _ if entry.is_abandoned(tree).unwrap_or(false) => Until::Stale,
        _ if entry.state != State::InForce => Until::End,
        Term::WhileAlive => Until::End,
        Term::UntilConfirmed { deadline_ns } => {
            Until::Deadline(Duration::from_nanos(deadline_ns.saturating_sub(now_ns)))
        }
        Term::Kept => Until::Rollback,
    };
    let stands = |change: &&Written| !is_past || is_void || change.knob.is_of_server();
    let changes = entry.changes.iter().filter(stands);
    let changes = changes.map(|c| (c.knob.clone(), c.old.clone(), became(c))).collect();
    let age = match is_past {
        true => written_at(&file).and_then(|time| time.elapsed().ok()).unwrap_or_default(),
        false => entry.age(),
    };
    let by_guard = entry.silence_ns.is_some();
    Listed { file, pid: entry.pid, alive, age, until, by_guard, changes }
}

fn became(change: &Written) -> Became {
    let band = change.band.map(|band| band.ends(&change.old));
    match (band, change.new.last()) {
        (Some((least, most)), _) if least == most => Became::Value(least),
        (Some((least, most)), _) => Became::Governed { least, most },
        (None, Some(value)) => Became::Value(value.clone()),
        (None, None) => Became::Reset,
    }
}

/// Takes changes back, from the journal alone. Changes of a running weir are left to it; values that somebody
/// else has changed since are left alone.
pub fn rollback(host: &Host, journal: &Journal, which: Which) -> LedBack {
    let (entries, mut done) = to_restore(host, journal);
    // Knobs of newer changes that stay: what lies beneath them must not be pulled out.
    let mut covered: Vec<KnobName> = Vec::new();
    for (file, entry) in entries {
        if let Some(why) = why_not(host, &entry, &covered) {
            done.said.push(why);
            covered.extend(entry.changes.into_iter().map(|change| change.knob));
            continue;
        }
        if !done.add(restore::from_file(host, journal, &file, |_| true)) {
            covered.extend(entry.changes.into_iter().map(|change| change.knob));
        }
        if which == Which::Last {
            break;
        }
    }
    if done.said.is_empty() && done.failed.is_empty() {
        done.said.push("nothing to restore: every value is the baseline".to_string());
    }
    done
}

fn why_not(host: &Host, entry: &Entry, covered: &[KnobName]) -> Option<String> {
    let until_its_end = entry.state != State::InForce || entry.hold == Term::WhileAlive;
    if until_its_end && entry.is_alive(&host.tree) {
        let knob = entry.changes.first().map(|change| change.knob.to_string()).unwrap_or_default();
        return Some(format!("{knob} is in use by a running weir (process {}): left to it", entry.pid));
    }
    let below = entry.changes.iter().find(|change| covered.contains(&change.knob))?;
    Some(format!("{}: an earlier change of it waits until the later one is restored", below.knob))
}

/// Keeps what waits for confirmation, until a rollback: what the process `of` changed, else everybody's. The sentences
/// tell what is kept.
///
/// # Errors
/// When two processes had that number, and when the journal cannot be written; a change then goes back at its deadline.
pub fn confirm(journal: &Journal, of: Option<u32>) -> Result<Vec<String>, KnobError> {
    confirm_all(journal, of, |entry| of.is_none_or(|pid| pid == entry.pid))
}

/// The same of the changes that are `meant`, which are those of one process where `of` names one.
pub(super) fn confirm_all(
    journal: &Journal,
    of: Option<u32>,
    meant: impl Fn(&Entry) -> bool,
) -> Result<Vec<String>, KnobError> {
    let nothing_waits = match of {
        Some(pid) => format!("nothing of process {pid} waits for confirmation"),
        None => "nothing waits for confirmation".to_string(),
    };
    let _lock = match journal.lock() {
        Err(error) if error.is_absent() => return Ok(vec![nothing_waits]),
        lock => lock.map_err(KnobError::Journal)?,
    };
    let tree = &Host::live().tree;
    let (mut entries, damaged) = all(tree, journal);
    let mut said: Vec<String> = damaged.iter().map(with_hint).collect();
    entries.retain(|(_, entry)| {
        let waits = entry.state == State::InForce && matches!(entry.hold, Term::UntilConfirmed { .. });
        waits && meant(entry) && !entry.is_of_another_boot(tree).unwrap_or(true)
    });
    // The number of a process that has ended is given to another one.
    let starts: BTreeSet<u64> = entries.iter().map(|(_, entry)| entry.pid_started_ticks).collect();
    if let Some(pid) = of.filter(|_| starts.len() > 1) {
        return Err(KnobError::SeveralProcesses { pid });
    }
    for (file, mut entry) in entries {
        let Term::UntilConfirmed { deadline_ns } = entry.hold else { continue };
        let knobs: Vec<String> = entry.changes.iter().map(|change| change.knob.to_string()).collect();
        let knobs = knobs.join(", ");
        if boot_clock_ns() >= deadline_ns {
            said.push(format!("{knobs}: too late, the time has passed and weir restores it"));
            continue;
        }
        entry.hold = Term::Kept;
        journal.rewrite(&file, &entry, Sync::Waits).map_err(KnobError::Journal)?;
        let boot = if entry.changes.iter().all(|change| change.knob.is_of_server()) {
            ""
        } else {
            " or the next boot"
        };
        said.push(format!("{knobs}: kept until `weir knobs rollback`{boot}"));
    }
    if said.is_empty() {
        said.push(nothing_waits);
    }
    Ok(said)
}

/// Restores what nobody answers for any more: changes of processes that ended without doing it, and changes whose
/// time to be confirmed has passed. Called at the start of every run that may change knobs. The sentences tell what
/// was done, and what could not be.
pub fn recover_stale(host: &Host, journal: &Journal) -> Vec<String> {
    let done = recover(host, journal);
    done.said.into_iter().chain(done.failed.iter().map(with_hint)).collect()
}

/// The same for one who has to know what could not be restored.
pub fn recover(host: &Host, journal: &Journal) -> LedBack {
    let (entries, mut done) = to_restore(host, journal);
    // Where the kernel does not say which boot this is, the restoration fails and says so.
    let is_abandoned = |entry: &Entry| entry.is_abandoned(&host.tree).unwrap_or(true);
    for (file, entry) in entries.iter().filter(|(_, entry)| is_abandoned(entry)) {
        // What was to stay ends with its boot.
        if entry.state != State::InForce || entry.hold != Term::Kept {
            let pid = entry.pid;
            done.said.push(format!("an earlier run (process {pid}) ended without restoring its settings"));
        }
        done.add(restore::from_file(host, journal, file, is_abandoned));
    }
    done
}

/// The entries, newest first, for one who restores them; what is damaged is put out of the way.
fn to_restore(host: &Host, journal: &Journal) -> (Vec<Read>, LedBack) {
    let (entries, failed) = all(&host.tree, journal);
    let failed = failed.into_iter().map(|error| set_aside(host, journal, error)).collect();
    (entries, LedBack { said: Vec::new(), failed })
}

/// Puts a damaged file out of the way, so that it is told of once.
fn set_aside(host: &Host, journal: &Journal, error: KnobError) -> KnobError {
    let KnobError::Damaged { file, .. } = &error else { return error };
    let Ok(_lock) = journal.lock() else { return error };
    journal.read_or_set_aside(host, file).err().unwrap_or(error)
}

fn with_hint(error: &KnobError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}
