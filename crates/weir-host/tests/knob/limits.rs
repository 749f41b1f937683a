//! The machine's dirty limits: every exit restores. The limits used here are large, so that other work on the
//! machine hardly notices them.

use std::fs;
use std::path::Path;

use weir_host::Host;
use weir_host::knob::{self, Applied, Journal, KnobError};

use super::runs::{Run, entries, settings, signal, until};

const DIRTY_BYTES: u64 = 3 << 30;
const BACKGROUND_BYTES: u64 = 1 << 30;

pub fn wanted() -> [String; 2] {
    [format!("vm.dirty_bytes={DIRTY_BYTES}"), format!("vm.dirty_background_bytes={BACKGROUND_BYTES}")]
}

fn cap(journal: &Journal) -> Result<Applied, KnobError> {
    knob::trial(&Host::live(), journal, &settings(&wanted()))
}

fn sysctl(name: &str) -> String {
    fs::read_to_string(format!("/proc/sys/vm/{name}")).unwrap().trim().to_string()
}

/// The four values that belong together.
pub fn limits() -> [String; 4] {
    ["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"].map(sysctl)
}

/// The machine's own values, put back whatever a check does.
pub struct Original(pub [String; 4]);

impl Original {
    pub fn keep() -> Self {
        Original(limits())
    }
}

impl Drop for Original {
    fn drop(&mut self) {
        let names = ["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"];
        for (name, value) in names.iter().zip(&self.0).filter(|(_, value)| *value != "0") {
            if sysctl(name) != *value {
                fs::write(format!("/proc/sys/vm/{name}"), value).unwrap();
            }
        }
    }
}

/// A run that holds the limits and does nothing, for ever.
fn holder(journal: &Path) -> Run {
    let run = Run::start("__hold", journal, &wanted());
    assert_eq!(sysctl("dirty_bytes"), DIRTY_BYTES.to_string());
    run
}

pub fn root_restore_leads_back() {
    let (original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let journal = Journal::at(folder.path());
    let applied = cap(&journal).unwrap();
    let (dirty, background) = (DIRTY_BYTES.to_string(), BACKGROUND_BYTES.to_string());
    assert_eq!(limits(), [&dirty, "0", &background, "0"]);
    let settings = Host::live().conditions(None).vm;
    assert_eq!(settings.dirty.bytes, Some(DIRTY_BYTES));
    let second = cap(&journal);
    assert!(matches!(second, Err(KnobError::Held { pid, .. }) if pid == std::process::id()), "{second:?}");
    assert_eq!(entries(folder.path()), 1);
    let said = applied.restore().unwrap();
    assert_eq!((said.len(), limits()), (2, original.0.clone()), "{said:?}");
    assert_eq!(entries(folder.path()), 0);
    drop(cap(&journal).unwrap());
    assert_eq!(limits(), original.0);
}

pub fn root_a_killed_run_is_led_back() {
    let (original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let mut holder = holder(folder.path());
    holder.kill();
    until("the guardian restores", || limits() == original.0 && entries(folder.path()) == 0);
}

pub fn root_signals_do_not_reach_the_guardian() {
    let (original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let mut holder = holder(folder.path());
    let session = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_string()
    };
    assert_eq!(
        session(&holder.guardian().to_string()),
        holder.guardian().to_string(),
        "a session of its own"
    );
    assert_ne!(session(&holder.id().to_string()), holder.guardian().to_string());
    for name in ["-INT", "-TERM", "-HUP"] {
        signal(holder.guardian(), name);
    }
    assert_eq!(sysctl("dirty_bytes"), DIRTY_BYTES.to_string());
    holder.kill();
    until("the guardian restores", || limits() == original.0);
}

pub fn root_the_next_run_recovers() {
    let (original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let mut holder = holder(folder.path());
    assert!(
        knob::recover_stale(&Host::live(), &Journal::at(folder.path())).is_empty(),
        "a living run's entry is not stale"
    );
    signal(holder.guardian(), "-KILL");
    holder.kill();
    assert_eq!(sysctl("dirty_bytes"), DIRTY_BYTES.to_string(), "nobody is left to restore");
    let said = knob::recover_stale(&Host::live(), &Journal::at(folder.path()));
    assert!(said.iter().any(|sentence| sentence.starts_with("vm.dirty_")), "{said:?}");
    assert_eq!((limits(), entries(folder.path())), (original.0.clone(), 0));
    assert!(knob::recover_stale(&Host::live(), &Journal::at(folder.path())).is_empty());
}

pub fn root_a_foreign_value_is_left_alone() {
    let (_original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let mut holder = holder(folder.path());
    let foreign = (DIRTY_BYTES + 4096).to_string();
    fs::write("/proc/sys/vm/dirty_bytes", &foreign).unwrap();
    holder.kill();
    until("the guardian ends", || entries(folder.path()) == 0);
    assert_eq!(sysctl("dirty_bytes"), foreign);
    assert_ne!(sysctl("dirty_background_bytes"), BACKGROUND_BYTES.to_string(), "the other is restored");
}
