//! What was changed of the kernel's tracers, on disk before it is changed, so that whoever comes after a killed run
//! can put it back.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use weir_fs::Dir;

use super::blktrace;
use crate::Error;
use crate::tracefs::Tracefs;

/// Where it is. /run does not outlive the boot, and neither do the tracers' settings.
pub(super) const PATH: &str = "/run/weir-trace-record";
/// The longest journal: a line for each setting of each device.
const LONGEST_BYTES: u64 = 1 << 20;
/// Of a line that names a device whose relay was set up.
const RELAY: &str = "relay";
/// Before a setting whose path is in tracefs.
const TRACEFS: &str = "tracefs:";

/// An open journal. Dropping it puts everything back and removes it.
#[derive(Debug)]
pub struct TracerJournal {
    folder: Dir,
    name: OsString,
    file: File,
    changes: Vec<Change>,
}

/// A file with a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// By its path.
    File(PathBuf),
    /// By its path in tracefs, wherever that is.
    Tracefs(String),
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Setting::File(path) => write!(f, "{}", path.display()),
            Setting::Tracefs(name) => write!(f, "{TRACEFS}{name}"),
        }
    }
}

impl Setting {
    fn parse(text: &str) -> Setting {
        match text.strip_prefix(TRACEFS) {
            Some(name) => Setting::Tracefs(name.to_string()),
            None => Setting::File(PathBuf::from(text)),
        }
    }

    /// Does something with its path, which is only there while this runs.
    fn with<T>(&self, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        match self {
            Setting::File(path) => act(path),
            Setting::Tracefs(name) => {
                let mount = Tracefs::open().map_err(|error| io::Error::other(error.to_string()))?;
                act(&mount.root().join(name))
            }
        }
    }
}

/// Something to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// A setting had this value.
    Setting { setting: Setting, value: String },
    /// A relay was set up on this device node.
    Relay { node: PathBuf },
}

/// Why there is no journal to be had.
#[derive(Debug)]
pub enum Refusal {
    /// Another run of weir holds it.
    Held(u32),
    /// It cannot be made.
    Failed(io::Error),
}

impl TracerJournal {
    /// Takes the journal; restores what a dead run left changed.
    pub fn open() -> Result<TracerJournal, Refusal> {
        TracerJournal::open_at(Path::new(PATH))
    }

    /// Its values are written to the files that it names: it has to be root's, in a folder that root alone may write to. In
    /// containers /run may be open to everybody.
    fn open_at(path: &Path) -> Result<TracerJournal, Refusal> {
        let name = path.file_name().unwrap_or_default().to_os_string();
        let folder = Dir::open_trusted(path.parent().unwrap_or(Path::new("/"))).map_err(Refusal::Failed)?;
        match folder.read_trusted(&name, LONGEST_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            bytes => {
                let text = String::from_utf8_lossy(&bytes.map_err(Refusal::Failed)?).into_owned();
                match owner(&text) {
                    Some((pid, started)) if started_at(pid) == Some(started) => {
                        return Err(Refusal::Held(pid));
                    }
                    _ => {
                        changes(&text).iter().rev().for_each(put_back);
                        folder.remove_file(&name).map_err(Refusal::Failed)?;
                    }
                }
            }
        }
        let file = folder.create_new(&name, 0o600).map_err(Refusal::Failed)?;
        let mut journal = TracerJournal { folder, name, file, changes: Vec::new() };
        let pid = std::process::id();
        journal.line(&format!("{pid} {}", started_at(pid).unwrap_or(0))).map_err(Refusal::Failed)?;
        Ok(journal)
    }

    /// Writes a value to a file of settings, whose old value is kept first. Files that select one of several values
    /// mark it with brackets. A file that already has the value is left alone.
    pub fn set(&mut self, setting: Setting, value: &str) -> io::Result<()> {
        let old = selected(&setting.with(|path| fs::read_to_string(path))?);
        if old == value {
            return Ok(());
        }
        self.line(&format!("{setting}\t{old}"))?;
        self.changes.push(Change::Setting { setting: setting.clone(), value: old });
        setting.with(|path| fs::write(path, value))
    }

    /// Says that the last change did not happen.
    pub fn forget_last(&mut self) {
        self.changes.pop();
    }

    /// Says that a relay is about to be set up.
    pub fn relay(&mut self, node: &Path) -> io::Result<()> {
        self.line(&format!("{RELAY}\t{}", node.display()))?;
        self.changes.push(Change::Relay { node: node.to_path_buf() });
        Ok(())
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(format!("{text}\n").as_bytes())?;
        self.file.sync_data()
    }
}

impl Drop for TracerJournal {
    fn drop(&mut self) {
        self.changes.iter().rev().for_each(put_back);
        let _ = self.folder.remove_file(&self.name);
    }
}

fn put_back(change: &Change) {
    match change {
        // A setting that went away with its device or its tracer needs nothing.
        Change::Setting { setting, value } => drop(setting.with(|path| fs::write(path, value))),
        Change::Relay { node } => blktrace::take_down(node),
    }
}

/// The journal, or why there is none.
pub fn opened(journal: Result<TracerJournal, Refusal>) -> Result<TracerJournal, Error> {
    journal.map_err(|loading| match loading {
        Refusal::Held(pid) => in_use(format!("process {pid}, a weir too, has the kernel's tracer")),
        // What the kernel says; that others may write there is told as it is.
        Refusal::Failed(source)
            if source.kind() == io::ErrorKind::PermissionDenied && source.raw_os_error().is_some() =>
        {
            Error::Denied { what: "the kernel's tracer", lacking: vec!["root".to_string()] }
        }
        Refusal::Failed(source) => {
            Error::System { what: format!("the journal of settings to restore, {}", PATH), source }
        }
    })
}

/// Somebody else uses the tracer.
pub fn in_use(what: String) -> Error {
    Error::Busy { what }
}

/// Process and start time on the first line.
fn owner(text: &str) -> Option<(u32, u64)> {
    let (pid, started) = text.lines().next()?.split_once(' ')?;
    Some((pid.parse().ok()?, started.parse().ok()?))
}

fn changes(text: &str) -> Vec<Change> {
    let lines = text.lines().skip(1).filter_map(|line| line.split_once('\t'));
    lines
        .map(|(first, second)| match first {
            RELAY => Change::Relay { node: PathBuf::from(second) },
            setting => Change::Setting { setting: Setting::parse(setting), value: second.to_string() },
        })
        .collect()
}

/// The value of a file, or the one in brackets where the file lists several.
fn selected(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    // Buffers that were never used say `7 (expanded: 1408)`.
    let whole = || text.split_whitespace().next().unwrap_or_default();
    inside.map_or_else(whole, |(value, _)| value).to_string()
}

/// When a process started, in clock ticks since boot: numbers of processes are used again.
fn started_at(pid: u32) -> Option<u64> {
    let stat = weir_fs::read_lossily(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; the start is the 20th field after it.
    let fields = stat.rsplit_once(')')?.1;
    // One that has ended may not have been waited for.
    let has_ended = fields.trim_start().starts_with(['Z', 'X', 'x']);
    if has_ended { None } else { fields.split_whitespace().nth(19)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An account that could write there could have root write anything anywhere.
    #[test]
    fn a_journal_that_others_may_have_written_is_not_obeyed() {
        use std::os::unix::fs::PermissionsExt;
        let own = tempfile::tempdir().unwrap();
        let (folder, victim) = (own.path().join("run"), own.path().join("victim"));
        let path = folder.join("journal");
        let set_up = |mode_of_folder: u32, mode: u32| {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir(&folder).unwrap();
            fs::write(&victim, "mine").unwrap();
            fs::write(&path, format!("1 1\n{}\ttheirs\n", victim.display())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode_of_folder)).unwrap();
        };
        for (mode_of_folder, mode) in [(0o1777, 0o600), (0o775, 0o600), (0o755, 0o666)] {
            set_up(mode_of_folder, mode);
            assert!(
                matches!(TracerJournal::open_at(&path), Err(Refusal::Failed(_))),
                "{mode_of_folder:o} {mode:o}"
            );
            assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "{mode_of_folder:o} {mode:o}");
        }
        set_up(0o755, 0o600);
        std::os::unix::fs::symlink(&path, folder.join("link")).unwrap();
        assert!(TracerJournal::open_at(&folder.join("link")).is_err(), "a link");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        drop(TracerJournal::open_at(&path).unwrap());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "theirs", "what a killed run has left");
    }

    #[test]
    fn what_was_changed_is_put_back_by_drop_and_by_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let [path, setting, other] = ["journal", "clock", "size"].map(|name| folder.path().join(name));
        let reset = || {
            fs::write(&setting, "[local] global mono\n").unwrap();
            fs::write(&other, "1408\n").unwrap();
        };
        let read = || (fs::read_to_string(&setting).unwrap(), fs::read_to_string(&other).unwrap());
        let change = |journal: &mut TracerJournal| {
            journal.set(Setting::File(setting.clone()), "mono").unwrap();
            journal.set(Setting::File(other.clone()), "1408").unwrap();
            journal.set(Setting::File(other.clone()), "4096").unwrap();
            journal.set(Setting::File(other.clone()), "8192").unwrap();
            assert_eq!(read(), ("mono".to_string(), "8192".to_string()));
        };
        reset();
        let mut journal = TracerJournal::open_at(&path).unwrap();
        change(&mut journal);
        assert!(
            matches!(TracerJournal::open_at(&path), Err(Refusal::Held(pid)) if pid == std::process::id())
        );
        drop(journal);
        assert_eq!(read(), ("local".to_string(), "1408".to_string()));
        assert!(!path.exists());

        reset();
        let mut journal = TracerJournal::open_at(&path).unwrap();
        change(&mut journal);
        std::mem::forget(journal);
        // The same process, had it died and its number been taken by another.
        let text = fs::read_to_string(&path).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        fs::write(&path, format!("{} 1\n{rest}", first.split_once(' ').unwrap().0)).unwrap();
        drop(TracerJournal::open_at(&path).unwrap());
        assert_eq!(read(), ("local".to_string(), "1408".to_string()));
    }
}
