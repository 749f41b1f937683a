//! The journal: a folder with one file for each change in force.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_fs::{Access, Dir};
use weir_knobs::KnobName;

use super::alive::Alive;
use super::entry::{self, Entry, Term, Written};
use super::stderr::say;
use super::{KnobError, order, restore};
use crate::error::HostError;
use crate::host::Host;

/// The longest file of a journal: hundreds of knobs.
const LONGEST_BYTES: u64 = 1 << 20;

/// Whether a write waits for the disk. After another boot an entry has nothing but variables of servers to restore, and
/// what a process has written outlives the process. A sync may wait for whoever floods the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    /// It does, where nobody waits for more than a command.
    Waits,
    /// It does not: in a guard's loop, which is there for the flood.
    Not,
}

/// An entry that was just put into the journal.
#[derive(Debug)]
pub(super) struct Entered {
    pub file: PathBuf,
    pub entry: Entry,
    /// To be kept for as long as this process answers for it.
    pub alive: Option<Alive>,
}

/// A folder of changes in force. It is root's, or the caller's, alone: what stands in it is written to the kernel.
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

    /// Puts a change of these knobs into the journal, as soon as nobody else uses one of them. The entry is
    /// made when it is our turn: what was there before belongs to whoever had it.
    pub(super) fn enter(
        &self,
        host: &Host,
        knobs: &[KnobName],
        patience: Duration,
        entry: impl Fn() -> Result<Entry, KnobError>,
    ) -> Result<Entered, KnobError> {
        const POLL: Duration = Duration::from_millis(100);
        let until = Instant::now() + patience;
        loop {
            match self.try_enter(host, knobs, Self::lock, Sync::Waits, &entry) {
                Err(KnobError::Held { .. }) if Instant::now() < until => {}
                done => return done,
            }
            sleep(POLL.min(until.saturating_duration_since(Instant::now())));
        }
    }

    /// The same for a guard's loop: if nobody else uses one of them, and nobody has the journal for longer than this.
    pub(super) fn enter_at_once(
        &self,
        host: &Host,
        knobs: &[KnobName],
        patience: Duration,
        entry: impl Fn() -> Result<Entry, KnobError>,
    ) -> Result<Entered, KnobError> {
        self.try_enter(host, knobs, |journal| journal.lock_within(patience), Sync::Not, &entry)
    }

    fn try_enter(
        &self,
        host: &Host,
        knobs: &[KnobName],
        lock: impl Fn(&Self) -> Result<File, HostError>,
        sync: Sync,
        entry: &impl Fn() -> Result<Entry, KnobError>,
    ) -> Result<Entered, KnobError> {
        self.make_folder().map_err(KnobError::Journal)?;
        let _lock = lock(self).map_err(KnobError::Journal)?;
        if let Some(held) = self.in_other_hands(host, knobs)? {
            return Err(held);
        }
        self.sweep();
        let (file, entry) = self.named(entry()?);
        let alive = self.dir().and_then(|dir| {
            Alive::give(dir, entry.since_ns).map_err(|error| HostError::io(&self.folder, error))
        });
        self.rewrite(&file, &entry, sync).map_err(KnobError::Journal)?;
        Ok(Entered { file, entry, alive: alive.ok() })
    }

    /// The user of one of the knobs, if there is one. A change that nobody answers for any more is restored first: its
    /// values are not the baseline. With the lock held.
    fn in_other_hands(&self, host: &Host, knobs: &[KnobName]) -> Result<Option<KnobError>, KnobError> {
        for file in self.files()? {
            let other = match self.read_or_set_aside(host, &file) {
                Err(KnobError::Host(error)) if error.is_absent() => continue,
                // It must not keep everybody from their knobs for ever.
                Err(error @ KnobError::Damaged { aside: Some(_), .. }) => {
                    say(&format!("weir: warning: {error}; {}", error.hint().unwrap_or_default()));
                    continue;
                }
                other => other?,
            };
            // Earlier versions kept the names that were typed.
            let is_shared = |change: &&Written| knobs.contains(&order::one_name(&host.tree, &change.knob));
            let Some(shared) = other.changes.iter().find(is_shared) else { continue };
            if other.is_abandoned(&host.tree)? {
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
        // On a file system that is read-only by now its own file stays.
        let is_other = |other: &Entry| !other.is_same(entry);
        let shares = |other: &Entry| {
            other.changes.iter().any(|change| entry.changes.iter().any(|own| own.knob == change.knob))
        };
        let files = self.files().unwrap_or_default();
        !files.iter().filter_map(|file| self.read(file).ok()).any(|other| is_other(&other) && shares(&other))
    }

    /// Drafts of processes that were killed while they wrote.
    fn sweep(&self) {
        if let Ok(dir) = self.dir() {
            dir.remove_leftovers();
        }
    }

    fn make_folder(&self) -> Result<(), HostError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.map_err(|error| HostError::io(&self.folder, error))?;
        self.dir().map(drop)
    }

    /// The open folder. Another account that could write to it could have anything written to the kernel.
    fn dir(&self) -> Result<Dir, HostError> {
        Dir::open_trusted(&self.folder).map_err(|error| HostError::io(&self.folder, error))
    }

    /// Only one process at a time looks at the journal and writes to it, or restores from it.
    pub(super) fn lock(&self) -> Result<File, HostError> {
        self.locked(libc::LOCK_EX)
    }

    /// The same, if nobody has it for longer than this.
    ///
    /// # Errors
    /// When somebody has it for longer, or its file cannot be opened.
    pub(super) fn lock_within(&self, patience: Duration) -> Result<File, HostError> {
        const POLL: Duration = Duration::from_millis(10);
        let until = Instant::now() + patience;
        loop {
            match self.locked(libc::LOCK_EX | libc::LOCK_NB) {
                Err(HostError::Io { path, error }) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() >= until {
                        let why = format!("another weir has had it for {} ms", patience.as_millis());
                        return Err(HostError::io(&path, io::Error::new(io::ErrorKind::WouldBlock, why)));
                    }
                }
                done => return done,
            }
            sleep(POLL);
        }
    }

    fn locked(&self, how: libc::c_int) -> Result<File, HostError> {
        let path = self.folder.join("lock");
        let failed = |error| HostError::io(&path, error);
        let dir = self.dir()?;
        let open = |access| dir.open_or_create("lock", access, 0o600);
        // A file system may become read-only with a change in force. A lock takes no more than reading, but on NFS.
        let file = open(Access::ReadWrite).or_else(|error| match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => open(Access::Read),
            _ => Err(error),
        });
        let file = file.map_err(failed)?;
        // SAFETY: the descriptor is open for as long as `file` lives, and flock touches no memory of ours.
        while unsafe { libc::flock(file.as_raw_fd(), how) } != 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(failed(error));
            }
        }
        Ok(file)
    }

    /// An entry's file: `PID-START.SINCE.json`. No later entry gets that name, so a file that is gone, or another one that is
    /// there, tells what became of the entry. Of earlier boots there may be one of the same name.
    fn named(&self, mut entry: Entry) -> (PathBuf, Entry) {
        loop {
            let (pid, start, since) = (entry.pid, entry.pid_started_ticks, entry.since_ns);
            let file = self.folder.join(format!("{pid}-{start}.{since}.json"));
            if !file.exists() {
                return (file, entry);
            }
            entry.since_ns += 1;
        }
    }

    /// Written under another name and renamed: the file is whole at every moment, whatever ends this process.
    pub(super) fn rewrite(&self, file: &Path, entry: &Entry, sync: Sync) -> Result<(), HostError> {
        let dir = self.dir()?;
        let written = || -> io::Result<()> {
            let mut fresh = dir.beside(name_of(file), 0o600)?;
            fresh.write_all(&entry.text()?)?;
            match sync {
                Sync::Waits => fresh.commit(),
                Sync::Not => fresh.commit_unsynced(),
            }
        };
        written().map_err(|error| HostError::io(file, error))
    }

    /// Takes an entry out. Not synced: that would wait for whoever floods the disk, and an entry that comes back has nothing
    /// left to restore.
    pub(super) fn remove(&self, file: &Path) -> Result<(), HostError> {
        let removed = match self.dir() {
            Err(error) if error.is_absent() => return Ok(()),
            dir => dir?.remove_file(name_of(file)),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(HostError::io(file, error)),
            _ => Ok(()),
        }
    }

    pub(super) fn read(&self, file: &Path) -> Result<Entry, KnobError> {
        let dir = self.dir()?;
        let text = dir.read(name_of(file), LONGEST_BYTES).map_err(|error| {
            let strange = matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge);
            if strange || error.raw_os_error() == Some(libc::ELOOP) {
                return KnobError::Damaged { file: file.to_path_buf(), why: error.to_string(), aside: None };
            }
            HostError::io(file, error).into()
        })?;
        let mut entry = Entry::parse(&text, file)?;
        entry.gives_sign = Alive::is_given(&dir, entry.since_ns);
        Ok(entry)
    }

    /// Whether the process that made an entry that cannot be read still runs.
    fn maker_lives(&self, host: &Host, file: &Path) -> bool {
        let Some((pid, start, since)) = entry::maker(file) else { return false };
        let gives_sign = || self.dir().is_ok_and(|dir| Alive::is_given(&dir, since));
        entry::runs(&host.tree, pid, start).unwrap_or_else(gives_sign)
    }

    /// Reads an entry. One that is damaged is put aside under another name, where it blocks nobody, unless the process
    /// that made it still runs, which restores its values itself, or the file system is read-only. With the lock held.
    pub(super) fn read_or_set_aside(&self, host: &Host, file: &Path) -> Result<Entry, KnobError> {
        match self.read(file) {
            Err(KnobError::Damaged { file, why, aside: None }) if !self.maker_lives(host, &file) => {
                let aside = self.set_aside(&file).ok();
                Err(KnobError::Damaged { file, why, aside })
            }
            other => other,
        }
    }

    fn set_aside(&self, file: &Path) -> Result<PathBuf, HostError> {
        let mut name = name_of(file).to_os_string();
        let id = weir_fs::unguessable().map_err(|error| HostError::io(file, error))?;
        name.push(OsString::from(format!(".{}.damaged", &id[..8])));
        self.dir()?.rename(name_of(file), &name).map_err(|error| HostError::io(file, error))?;
        Ok(self.folder.join(name))
    }

    fn names(&self) -> Result<Vec<OsString>, HostError> {
        let names = self.dir()?.names().and_then(Iterator::collect);
        names.map_err(|error| HostError::io(&self.folder, error))
    }

    /// Whether a plain user may not look into it, as into root's.
    pub fn is_closed(&self) -> bool {
        self.names().is_err_and(|error| is_denied(&error))
    }

    /// The entries' files, sorted by name; none where there is no journal. Nor has a plain user an entry in one that is closed to them.
    pub(super) fn files(&self) -> Result<Vec<PathBuf>, HostError> {
        let names = match self.names() {
            Err(error) if error.is_absent() || is_denied(&error) => return Ok(Vec::new()),
            names => names?,
        };
        let mut files: Vec<PathBuf> = names.into_iter().map(|name| self.folder.join(name)).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        Ok(files)
    }
}

/// Whether the kernel itself refuses a plain user: a folder that weir does not believe is refused with the same kind of error.
fn is_denied(error: &HostError) -> bool {
    let denied = matches!(error, HostError::Io { error, .. } if error.raw_os_error() == Some(libc::EACCES));
    denied && !rustix::process::geteuid().is_root()
}

fn name_of(file: &Path) -> &OsStr {
    file.file_name().unwrap_or_default()
}
