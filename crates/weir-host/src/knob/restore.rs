//! The way back, from the journal alone.

use std::path::Path;

use super::journal::{Entry, Journal, Written, boot_id, read_entry};
use super::{KnobError, Value};
use crate::error::{BadLine, HostError};
use crate::host::Host;
use crate::tree::Tree;

/// Restores what runs left behind that are no longer alive; called at the start of every run that may change
/// knobs. The sentences tell what was done, and what could not be.
pub fn recover_stale(folder: &Path) -> Vec<String> {
    recover_in(&Host::live().tree, &Journal::at(folder))
}

fn recover_in(tree: &Tree, journal: &Journal) -> Vec<String> {
    let mut sentences = Vec::new();
    for file in journal.files() {
        match read_entry(&file) {
            Ok(entry) if is_alive(tree, &entry) => {}
            Ok(entry) => {
                sentences.push(format!(
                    "an earlier run (process {}) ended without putting its settings back",
                    entry.pid
                ));
                match from_file(tree, journal, &file) {
                    Ok(more) => sentences.extend(more),
                    Err(error) => sentences.push(format!("{}: not led back: {error}", file.display())),
                }
            }
            // Its guardian may have finished with it in the meantime.
            Err(error) if error.is_absent() => {}
            Err(error) => {
                sentences.push(format!("{error}; remove the file after checking the settings by hand"))
            }
        }
    }
    sentences
}

/// Restores one entry and takes it out of the journal. An entry that is gone has been restored already.
pub(super) fn from_file(tree: &Tree, journal: &Journal, file: &Path) -> Result<Vec<String>, KnobError> {
    let _lock = match journal.lock() {
        // The whole folder is gone: so is every entry.
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        lock => lock?,
    };
    let entry = match read_entry(file) {
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        entry => entry?,
    };
    let mut sentences = Vec::new();
    if boot_id(tree)? == entry.boot_id {
        for change in entry.changes.iter().rev() {
            sentences.extend(lead_back(tree, change)?);
        }
    } else {
        sentences
            .push("the settings in the journal belong to an earlier boot; nothing to put back".to_string());
    }
    journal.remove(file)?;
    Ok(sentences)
}

/// Compare and set: only a value that weir wrote is replaced.
fn lead_back(tree: &Tree, change: &Written) -> Result<Option<String>, KnobError> {
    let Written { knob, old, new } = change;
    match knob.read(tree)? {
        now if now == *old => Ok(None),
        now if new.contains(&now) => {
            knob.write(tree, *old)?;
            Ok(Some(format!("{knob} is back at {old}")))
        }
        now => Ok(Some(stood_down(change, now))),
    }
}

fn stood_down(change: &Written, now: Value) -> String {
    let (knob, old) = (change.knob, change.old);
    let wrote = change.new.last().map(Value::to_string).unwrap_or_default();
    format!("{knob} is {now}, which weir did not write (it wrote {wrote}, over {old}): left alone")
}

/// Whether the process that wrote the entry still runs: the same id with another start is another process.
pub(super) fn is_alive(tree: &Tree, entry: &Entry) -> bool {
    boot_id(tree).is_ok_and(|boot| boot == entry.boot_id)
        && started_ticks(tree, entry.pid).is_ok_and(|ticks| ticks == entry.pid_started_ticks)
}

/// Field 22 of `/proc/PID/stat`. A process that has ended but was not waited for is no longer alive, and an error.
pub(super) fn started_ticks(tree: &Tree, pid: u32) -> Result<u64, HostError> {
    tree.parsed(&format!("/proc/{pid}/stat"), parse_started_ticks)
}

fn parse_started_ticks(text: &str) -> Result<u64, BadLine> {
    // The command name in parentheses may hold spaces and parentheses itself.
    let bad = || BadLine::new(1, "a running process with its start in field 22", text.trim());
    let mut fields = text.rsplit_once(')').ok_or_else(bad)?.1.split_whitespace();
    if fields.next().is_none_or(|state| ["Z", "X", "x"].contains(&state)) {
        return Err(bad());
    }
    fields.nth(18).and_then(|ticks| ticks.parse().ok()).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::Knob;
    use crate::knob::journal::SCHEMA;
    use std::fs;

    const STAT: &str =
        "17 (a) b) S 1 17 17 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 5555 1 1 18446744073709551615";

    /// A machine of four files, with `vm.dirty` at the given value and process 17 running.
    fn machine(folder: &Path, bytes: u64) -> Tree {
        for (path, text) in [
            ("proc/sys/kernel/random/boot_id", "this-boot\n".to_string()),
            ("proc/sys/vm/dirty_bytes", format!("{bytes}\n")),
            ("proc/sys/vm/dirty_ratio", "0\n".to_string()),
            ("proc/17/stat", STAT.to_string()),
        ] {
            let file = folder.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Tree::new(folder)
    }

    /// What a recovery says, whether the entry is gone after it, and the value it leaves.
    fn check(entry: Entry, bytes: u64) -> (String, bool, String) {
        let folder = tempfile::tempdir().unwrap();
        let tree = machine(folder.path(), bytes);
        let journal = Journal::at(&folder.path().join("journal"));
        fs::create_dir(journal.folder()).unwrap();
        let file = journal.folder().join("1.json");
        fs::write(&file, serde_json::to_vec(&entry).unwrap()).unwrap();
        let said = recover_in(&tree, &journal).join("; ");
        let value = fs::read_to_string(folder.path().join("proc/sys/vm/dirty_bytes")).unwrap();
        (said, !file.exists(), value.trim().to_string())
    }

    fn entry() -> Entry {
        Entry {
            schema: SCHEMA.into(),
            boot_id: "this-boot".into(),
            pid: 99,
            pid_started_ticks: 1,
            changes: vec![Written {
                knob: Knob::Dirty,
                old: Value::Bytes(4000),
                new: vec![Value::Bytes(2000), Value::Bytes(1000)],
            }],
        }
    }

    #[test]
    fn a_dead_runs_values_are_led_back_and_others_are_left_alone() {
        for (entry, bytes, says, gone, left) in [
            (entry(), 1000, "back at bytes=4000", true, "4000"),
            // Killed in the middle of the ramp.
            (entry(), 2000, "back at bytes=4000", true, "4000"),
            (entry(), 4000, "ended without", true, "4000"),
            (entry(), 7777, "vm.dirty is bytes=7777, which weir did not write", true, "7777"),
            (Entry { boot_id: "earlier".into(), ..entry() }, 1000, "earlier boot", true, "1000"),
            // Still running: not ours to touch.
            (Entry { pid: 17, pid_started_ticks: 5555, ..entry() }, 1000, "", false, "1000"),
            // The id was given to another process.
            (Entry { pid: 17, pid_started_ticks: 5554, ..entry() }, 1000, "back at", true, "4000"),
            (
                Entry { schema: "weir.journal/9".into(), ..entry() },
                1000,
                "expected the schema",
                false,
                "1000",
            ),
        ] {
            let (said, removed, value) = check(entry.clone(), bytes);
            assert!(said.contains(says) && (says.is_empty() == said.is_empty()), "{entry:?} {bytes}: {said}");
            assert_eq!((removed, value.as_str()), (gone, left), "{entry:?} {bytes}");
        }
    }

    #[test]
    fn starts_of_processes_parse() {
        assert_eq!(parse_started_ticks(STAT), Ok(5555));
        assert!(parse_started_ticks(&STAT.replace(" S ", " Z ")).is_err());
        assert!(parse_started_ticks("17 (sh) S 1").is_err());
    }
}
