//! The journal: a folder with one file for each change in force.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_core::knob::KnobName;

use super::entry::{Entry, Term, boot_clock_ns};
use super::{KnobError, restore};
use crate::error::HostError;
use crate::host::Host;

/// A folder of changes in force.
#[derive(Debug, Clone)]
pub struct Journal {
    folder: PathBuf,
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

    /// Puts a change of these knobs into the journal, as soon as nobody else has one of them in hand. The entry is
    /// made when it is our turn: what was there before belongs to whoever had it.
    pub(super) fn enter(
        &self,
        host: &Host,
        knobs: &[KnobName],
        patience: Duration,
        entry: impl Fn() -> Result<Entry, KnobError>,
    ) -> Result<(PathBuf, Entry), KnobError> {
        const POLL: Duration = Duration::from_millis(100);
        let until = Instant::now() + patience;
        self.make_folder().map_err(KnobError::Journal)?;
        loop {
            let lock = self.lock().map_err(KnobError::Journal)?;
            match self.in_other_hands(host, knobs)? {
                None => {
                    self.sweep();
                    let entry = entry()?;
                    let file = self.new_file(&entry);
                    self.write(&file, &entry).map_err(KnobError::Journal)?;
                    return Ok((file, entry));
                }
                Some(held) if Instant::now() >= until => return Err(held),
                Some(_) => drop(lock),
            }
            sleep(POLL.min(until.saturating_duration_since(Instant::now())));
        }
    }

    /// Who has one of the knobs in hand, if anybody has. What nobody answers for any more is led back first: its
    /// values are not what was there before. With the lock held.
    fn in_other_hands(&self, host: &Host, knobs: &[KnobName]) -> Result<Option<KnobError>, KnobError> {
        for file in self.files() {
            let other = match self.read(&file) {
                Err(KnobError::Host(error)) if error.is_absent() => continue,
                other => other?,
            };
            let Some(shared) = other.changes.iter().find(|c| knobs.contains(&c.knob)) else { continue };
            if !other.is_of_this_boot(&host.tree)
                || other.is_stale(other.is_alive(&host.tree), boot_clock_ns())
            {
                restore::with_lock(host, self, &file, other)?;
            } else if other.holds() {
                let (knob, pid, since) = (shared.knob.clone(), other.pid, other.age());
                let unconfirmed = matches!(other.hold, Term::UntilConfirmed { .. });
                return Ok(Some(KnobError::Held { knob, pid, since, unconfirmed }));
            }
        }
        Ok(None)
    }

    /// Whether nobody else has a change of this one's knobs in the journal. With the lock held.
    pub(super) fn is_free(&self, entry: &Entry) -> bool {
        let shares = |other: &Entry| {
            other.changes.iter().any(|change| entry.changes.iter().any(|own| own.knob == change.knob))
        };
        !self.files().iter().filter_map(|file| self.read(file).ok()).any(|other| shares(&other))
    }

    /// Drafts of processes that were killed while they wrote: with the lock held, nobody is at them any more.
    fn sweep(&self) {
        for draft in self.with_ending("draft") {
            let _ = fs::remove_file(draft);
        }
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
        while unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } != 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(failed(error));
            }
        }
        Ok(file)
    }

    fn new_file(&self, entry: &Entry) -> PathBuf {
        let name = |n: u32| self.folder.join(format!("{}-{}.{n}.json", entry.pid, entry.pid_started_ticks));
        (0..).map(name).find(|candidate| !candidate.exists()).unwrap_or_else(|| name(0))
    }

    /// A new entry: after this returns it is there whole, whatever happens.
    fn write(&self, file: &Path, entry: &Entry) -> Result<(), HostError> {
        self.rewrite(file, entry)?;
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| HostError::io(file, error))
    }

    /// Written under another name, fsynced and renamed: the file is whole at every moment. Whether the old or the new
    /// one is there after a power failure does not matter, since another boot voids both.
    pub(super) fn rewrite(&self, file: &Path, entry: &Entry) -> Result<(), HostError> {
        let draft = file.with_extension("draft");
        let written = || -> io::Result<()> {
            let mut out =
                OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
            out.write_all(&entry.text()?)?;
            out.sync_all()?;
            fs::rename(&draft, file)
        };
        written().map_err(|error| {
            // Room may be what was lacking.
            let _ = fs::remove_file(&draft);
            HostError::io(file, error)
        })
    }

    /// Takes an entry out. Not fsynced, for the same reason: a sync would wait for whoever floods the disk.
    pub(super) fn remove(&self, file: &Path) -> Result<(), HostError> {
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HostError::io(file, error)),
            _ => Ok(()),
        }
    }

    pub(super) fn read(&self, file: &Path) -> Result<Entry, KnobError> {
        let text = fs::read(file).map_err(|error| HostError::io(file, error))?;
        Entry::parse(&text, file)
    }

    /// The entries' files, sorted by name.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.with_ending("json")
    }

    fn with_ending(&self, ending: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == ending));
        files.sort();
        files
    }
}
