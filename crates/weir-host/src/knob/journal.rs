//! The journal: a folder with one file for each change in force.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::guardian::{Guardian, say};
use super::{Knob, KnobError, Value, restore};
use crate::error::HostError;
use crate::host::Host;
use crate::tree::Tree;

/// Value of [`Entry::schema`].
pub(super) const SCHEMA: &str = "weir.journal/1";

/// A folder of changes in force.
#[derive(Debug, Clone)]
pub struct Journal {
    folder: PathBuf,
}

/// One knob and the values it is led through; the last one stays until the restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The knob.
    pub knob: Knob,
    /// At least one value.
    pub steps: Vec<Value>,
}

/// A file of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub schema: String,
    /// The boot it belongs to. After another boot the kernel has forgotten every value weir wrote.
    pub boot_id: String,
    /// The process that made the change.
    pub pid: u32,
    /// Its start, in ticks since boot: tells it from a later process of the same id.
    pub pid_started_ticks: u64,
    /// In the order of writing; restored in reverse.
    pub changes: Vec<Written>,
}

/// One knob in an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    pub knob: Knob,
    pub old: Value,
    /// Every value weir may have left there.
    pub new: Vec<Value>,
}

/// Changes in force. They end with [`Applied::restore`], or when this is dropped, or when the process ends in
/// whatever way.
#[derive(Debug)]
pub struct Applied {
    tree: Tree,
    journal: Journal,
    file: PathBuf,
    changes: Vec<Written>,
    /// Its pipe closes after the restore, or with the process.
    _guardian: Guardian,
}

impl Journal {
    /// A journal in this folder, which is made at the first change.
    pub fn at(folder: &Path) -> Self {
        // The guardian works in another folder.
        Journal { folder: std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf()) }
    }

    /// Root's journal: `/var/lib/weir/journal`.
    pub fn of_root() -> Self {
        Journal::at(Path::new("/var/lib/weir/journal"))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Puts the changes into the journal and starts the guardian, but writes no knob yet; [`Applied::step`] does.
    ///
    /// # Errors
    /// When a knob cannot be read, another run holds it, the journal cannot be written, or no guardian starts. No
    /// knob has been touched then.
    pub fn begin(&self, changes: &[Change]) -> Result<Applied, KnobError> {
        let tree = Host::live().tree;
        let changes = changes
            .iter()
            .map(|c| Ok(Written { knob: c.knob, old: c.knob.read(&tree)?, new: c.steps.clone() }))
            .collect::<Result<Vec<_>, HostError>>()?;
        let pid = std::process::id();
        let entry = Entry {
            schema: SCHEMA.to_string(),
            boot_id: boot_id(&tree)?,
            pid,
            pid_started_ticks: restore::started_ticks(&tree, pid)?,
            changes: changes.clone(),
        };
        self.make_folder()?;
        let lock = self.lock()?;
        self.refuse_if_held(&tree, &entry)?;
        let file = self.write_entry(&entry)?;
        drop(lock);
        match Guardian::start(&file) {
            Ok(guardian) => Ok(Applied { tree, journal: self.clone(), file, changes, _guardian: guardian }),
            Err(error) => {
                self.remove(&file)?;
                Err(KnobError::NoGuardian(error))
            }
        }
    }

    fn refuse_if_held(&self, tree: &Tree, entry: &Entry) -> Result<(), KnobError> {
        for file in self.files() {
            // A file that cannot be read says nothing about who holds what; recover_stale reports it.
            let Ok(other) = read_entry(&file) else { continue };
            let shared = entry.changes.iter().find(|c| other.changes.iter().any(|o| o.knob == c.knob));
            if let Some(change) = shared.filter(|_| restore::is_alive(tree, &other)) {
                return Err(KnobError::Held { knob: change.knob, pid: other.pid });
            }
        }
        Ok(())
    }

    fn make_folder(&self) -> Result<(), HostError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|error| HostError::io(&self.folder, error))
    }

    /// Only one process at a time looks at the journal and writes to it, or restores from it.
    pub(super) fn lock(&self) -> Result<File, HostError> {
        let path = self.folder.join("lock");
        let failed = |error| HostError::io(&path, error);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.map_err(failed)?;
        // SAFETY: the descriptor is open for as long as `file` lives, and flock touches no memory of ours.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        Ok(file)
    }

    /// Written under another name, fsynced, renamed, and the folder fsynced: after this returns, the entry is there
    /// whole, whatever happens.
    fn write_entry(&self, entry: &Entry) -> Result<PathBuf, HostError> {
        let file = self.folder.join(format!("{}-{}.json", entry.pid, entry.pid_started_ticks));
        let file = (0..).map(|n| with_number(&file, n)).find(|candidate| !candidate.exists()).unwrap_or(file);
        let draft = file.with_extension("draft");
        let written = || -> io::Result<()> {
            let mut out =
                OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
            out.write_all(&serde_json::to_vec_pretty(entry)?)?;
            out.sync_all()?;
            fs::rename(&draft, &file)?;
            File::open(&self.folder)?.sync_all()
        };
        written().map_err(|error| HostError::io(&file, error))?;
        Ok(file)
    }

    /// Takes an entry out, durably: a restored value must not be restored again over somebody else's.
    pub(super) fn remove(&self, file: &Path) -> Result<(), HostError> {
        let removed = match fs::remove_file(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        let synced = removed.and_then(|()| File::open(&self.folder)?.sync_all());
        synced.map_err(|error| HostError::io(file, error))
    }

    /// The entries' files, sorted.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        files
    }
}

fn with_number(file: &Path, number: u32) -> PathBuf {
    if number == 0 { file.to_path_buf() } else { file.with_extension(format!("{number}.json")) }
}

impl Applied {
    /// Writes one of the journaled values and reads it back.
    ///
    /// # Errors
    /// When the value is not in the journal, the kernel refuses it, or has another value afterwards. What was
    /// written before stays in force until the restore.
    pub fn step(&self, knob: Knob, value: Value) -> Result<(), KnobError> {
        let journaled = self.changes.iter().any(|c| c.knob == knob && c.new.contains(&value));
        if !journaled {
            let why = format!("{knob}={value} is not in the journal");
            return Err(HostError::io(&self.file, io::Error::new(io::ErrorKind::InvalidInput, why)).into());
        }
        knob.write(&self.tree, value)
    }

    /// The values before the change.
    pub fn old(&self) -> impl Iterator<Item = (Knob, Value)> + '_ {
        self.changes.iter().map(|change| (change.knob, change.old))
    }

    /// Leads back. The sentences tell of values that somebody else has changed since, which are left alone.
    ///
    /// # Errors
    /// When a value cannot be written; the journal then keeps its entry, and the next run tries again.
    pub fn restore(self) -> Result<Vec<String>, KnobError> {
        self.lead_back()
    }

    fn lead_back(&self) -> Result<Vec<String>, KnobError> {
        restore::from_file(&self.tree, &self.journal, &self.file)
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        // After `restore` the entry is gone and there is nothing left to do. A panic here could be a second one.
        match self.lead_back() {
            Ok(sentences) => sentences.iter().for_each(|sentence| say(&format!("weir: {sentence}"))),
            Err(error) => say(&format!("weir: a setting could not be led back: {error}")),
        }
    }
}

/// Reads one file of the journal.
pub(super) fn read_entry(file: &Path) -> Result<Entry, HostError> {
    let bytes = fs::read(file).map_err(|error| HostError::io(file, error))?;
    let entry: Entry = serde_json::from_slice(&bytes).map_err(|error| HostError::Parse {
        path: file.to_path_buf(),
        line: error.line(),
        item: error.to_string(),
    })?;
    if entry.schema == SCHEMA {
        return Ok(entry);
    }
    let item = format!("expected the schema {SCHEMA}, found `{}`", entry.schema);
    Err(HostError::Parse { path: file.to_path_buf(), line: 1, item })
}

/// A name for this boot.
pub(super) fn boot_id(tree: &Tree) -> Result<String, HostError> {
    tree.value::<String>("/proc/sys/kernel/random/boot_id")
}
