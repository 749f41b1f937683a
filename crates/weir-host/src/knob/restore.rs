//! The way back, from the journal alone.

use std::path::Path;

use weir_core::knob::{Setting, Value};

use super::entry::{Entry, State, Written};
use super::journal::Journal;
use super::{KnobError, apply, dirty, order, read};
use crate::host::Host;

/// What a file says once weir has marked it as set by hand.
const BY_HAND: &str = "wbt_lat_usec";

/// Leads one entry back and takes it out of the journal, if it is `due` when its turn comes. An entry that is gone
/// has been led back already.
pub(super) fn from_file(
    host: &Host,
    journal: &Journal,
    file: &Path,
    due: impl Fn(&Entry) -> bool,
) -> Result<Vec<String>, KnobError> {
    let _lock = match journal.lock() {
        // The whole folder is gone: so is every entry.
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        lock => lock?,
    };
    match journal.read(file) {
        Err(KnobError::Host(error)) if error.is_absent() => Ok(Vec::new()),
        Ok(entry) if !due(&entry) => Ok(Vec::new()),
        entry => with_lock(host, journal, file, entry?),
    }
}

/// The same for an entry just read, with the lock held.
pub(super) fn with_lock(
    host: &Host,
    journal: &Journal,
    file: &Path,
    mut entry: Entry,
) -> Result<Vec<String>, KnobError> {
    if !entry.is_of_this_boot(&host.tree) {
        journal.remove(file)?;
        return Ok(vec![
            "the settings in the journal belong to an earlier boot; nothing to put back".to_string(),
        ]);
    }
    let mut way = Way { host, said: Vec::new(), failed: Vec::new() };
    way.decide(&mut entry);
    if entry.changes.iter().any(|change| change.touched) {
        // From here on what the kernel resets reads neither old nor new, should this process be killed. Without
        // room for the note the way back is still better than none.
        entry.state = State::LeadingBack;
        let _ = journal.write(file, &entry);
    }
    way.go(&mut entry.changes);
    if way.failed.is_empty() {
        journal.remove(file)?;
        return Ok(way.said);
    }
    Err(KnobError::NotLedBack { said: way.said, failed: way.failed })
}

/// The way back of one entry.
struct Way<'a> {
    host: &'a Host,
    said: Vec<String>,
    failed: Vec<String>,
}

impl Way<'_> {
    /// What each knob is to be led back to: compare and set, so that only a value that weir wrote is replaced.
    fn decide(&mut self, entry: &mut Entry) {
        let state = entry.state;
        for change in &mut entry.changes {
            if state == State::LeadingBack {
                continue;
            }
            change.target = if order::device_sequence(&self.host.tree, &change.knob) == change.device_sequence
            {
                self.target(change, state)
            } else {
                self.said.push(format!("{}: the device is another one now: left alone", change.knob));
                None
            };
        }
    }

    fn target(&mut self, change: &Written, state: State) -> Option<Value> {
        let old = Some(change.old.clone());
        match read::value(&self.host.tree, &change.knob) {
            // A scheduler's own knobs come back with the scheduler.
            Err(_) if change.touched => old,
            Err(error) if error.is_absent() => {
                self.said.push(format!("{} is gone: nothing to put back", change.knob));
                None
            }
            Err(error) => {
                self.failed.push(error.to_string());
                None
            }
            Ok(_) if state == State::Applying => old,
            Ok(now) if now == change.old || change.new.contains(&now) => old,
            Ok(now) => {
                self.said.push(stood_down(change, &now));
                // Somebody else's value is kept even if the way back of another knob resets it.
                change.touched.then_some(now)
            }
        }
    }

    /// In the order in which a change is made, for the same reasons. Of two limits that bound each other the first may
    /// only go back after the second, so what fails has another turn.
    fn go(&mut self, changes: &mut [Written]) {
        let target = |change: &Written| change.target.clone().unwrap_or_else(|| change.old.clone());
        order::sort(self.host, changes, |change| (change.knob.clone(), target(change)));
        let refused: Vec<&Written> = changes.iter().filter(|change| self.lead(change).is_err()).collect();
        for change in refused {
            if let Err(error) = self.lead(change) {
                self.failed.push(error.to_string());
            }
        }
    }

    fn lead(&mut self, change: &Written) -> Result<(), KnobError> {
        let Some(target) = &change.target else { return Ok(()) };
        let now = match read::value(&self.host.tree, &change.knob) {
            // The scheduler it belongs to is not the one in force, so it has gone with its scheduler.
            Err(error) if error.is_absent() && change.touched => return Ok(()),
            now => now?,
        };
        if now != *target {
            let steps = dirty::ramp(self.host, &change.knob, target);
            apply::lead_through(self.host, &change.knob, &steps)?;
            self.said.push(came_back(change, target));
        }
        Ok(())
    }
}

fn came_back(change: &Written, target: &Value) -> String {
    let setting = Setting::new(change.knob.clone(), target.clone());
    let (name, value) = (setting.written_name(), setting.written_value());
    let by_hand = if change.knob.setting == BY_HAND {
        "; the kernel now takes it as set by hand, and bfq or io.cost no longer turn it off: only a restart clears that"
    } else {
        ""
    };
    format!("{name} is back at {value}{by_hand}")
}

fn stood_down(change: &Written, now: &Value) -> String {
    let (knob, old) = (&change.knob, &change.old);
    match change.new.last() {
        Some(wrote) => {
            format!("{knob} is {now}, which weir did not write (it wrote {wrote}, over {old}): left alone")
        }
        None => format!("{knob} is {now}, which weir did not cause (it was {old}): left alone"),
    }
}
