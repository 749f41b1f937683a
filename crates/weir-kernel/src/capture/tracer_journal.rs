//! What was changed of the kernel's tracers, on disk before it is changed, so that whoever comes after a killed run
//! can put it back.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_fs::{Access, Dir};

use super::blktrace;
use crate::Error;
use crate::tracefs::Tracefs;

/// Where it is. /run does not outlive the boot, and neither do the tracers' settings.
pub(super) const PATH: &str = "/run/weir-trace-record";
/// The longest journal: a line for each setting of each device.
const LONGEST_BYTES: u64 = 1 << 20;
/// Of a line that names a disk whose relay was set up.
const RELAY: &str = "relay";
/// Before a setting whose path is in tracefs.
const TRACEFS: &str = "tracefs:";
/// What the kernel says of the rings of all CPUs where their sizes differ (tracing_entries_read of kernel/trace/trace.c). It does
/// not take it back.
const SIZES_DIFFER: &str = "X";

/// An open journal. Dropping it puts everything back and removes it; what the kernel refuses stays in it.
#[derive(Debug)]
pub struct TracerJournal {
    folder: Dir,
    name: OsString,
    /// Locked until it is removed: only its holder changes or removes it.
    file: File,
    changes: Vec<Change>,
}

/// A file with a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// By its path.
    File(PathBuf),
    /// By its path in tracefs, wherever that is.
    Tracefs(PathBuf),
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Setting::File(path) => write!(f, "{}", path.display()),
            Setting::Tracefs(path) => write!(f, "{TRACEFS}{}", path.display()),
        }
    }
}

impl Setting {
    fn parse(text: &str) -> Setting {
        match text.strip_prefix(TRACEFS) {
            Some(path) => Setting::Tracefs(path.into()),
            None => Setting::File(text.into()),
        }
    }

    /// Does something with its path, which is only there while this runs.
    fn with<T>(&self, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        match self {
            Setting::File(path) => {
                let _device = blktrace::kept_open(path);
                act(path)
            }
            Setting::Tracefs(path) => {
                let mount = Tracefs::open().map_err(|error| io::Error::other(error.to_string()))?;
                act(&mount.root().join(path))
            }
        }
    }

    /// Files that select one of several values mark it with brackets.
    fn value(&self) -> io::Result<String> {
        Ok(selected(&self.with(|path| fs::read_to_string(path))?))
    }

    fn write(&self, value: &str) -> io::Result<()> {
        self.with(|path| {
            OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
        })
    }

    /// The same setting of each CPU.
    fn by_cpu(&self) -> io::Result<Vec<Setting>> {
        let (Setting::File(all) | Setting::Tracefs(all)) = self;
        let folders =
            self.with(|path| fs::read_dir(path.with_file_name("per_cpu"))?.collect::<io::Result<Vec<_>>>())?;
        let of = |cpu: fs::DirEntry| {
            let path =
                all.with_file_name("per_cpu").join(cpu.file_name()).join(all.file_name().unwrap_or_default());
            if matches!(self, Setting::File(_)) { Setting::File(path) } else { Setting::Tracefs(path) }
        };
        Ok(folders.into_iter().map(of).collect())
    }
}

/// Something to restore.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    /// A setting had this value.
    Setting { setting: Setting, value: String },
    /// A relay was set up on this disk, with this mark.
    Relay { disk: String, mark: u64 },
}

impl Change {
    fn parse(line: &str) -> Option<Change> {
        let (first, second) = line.split_once('\t')?;
        if first != RELAY {
            return Some(Change::Setting { setting: Setting::parse(first), value: second.to_string() });
        }
        let (disk, mark) = second.split_once('\t')?;
        Some(Change::Relay { disk: disk.to_string(), mark: mark.parse().ok()? })
    }

    fn line(&self) -> String {
        match self {
            Change::Setting { setting, value } => format!("{setting}\t{value}"),
            Change::Relay { disk, mark } => format!("{RELAY}\t{disk}\t{mark}"),
        }
    }

    fn put_back(&self) -> io::Result<()> {
        let done = match self {
            Change::Setting { setting, value } => setting.write(value),
            Change::Relay { disk, mark } => blktrace::take_down(disk, *mark),
        };
        match done {
            // What went away with its device or its tracer needs nothing.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => Ok(()),
            done => done,
        }
    }

    /// What is said where it cannot be put back.
    fn stays(&self, error: &io::Error) -> String {
        match self {
            Change::Setting { setting, value } => format!("cannot restore {setting} to {value}: {error}"),
            Change::Relay { disk, .. } => format!("cannot end the trace of {disk}: {error}"),
        }
    }
}

/// Why there is no journal to be had.
#[derive(Debug)]
pub enum Refusal {
    /// Another run of weir holds it; its process, where that is in it already.
    Held(Option<u32>),
    /// What a dead run left changed cannot be restored, for these reasons.
    Stays(Vec<String>),
    /// It cannot be made.
    Failed(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal::Failed(error)
    }
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
        let folder = Dir::open_trusted(path.parent().unwrap_or(Path::new("/")))?;
        let file = locked(&folder, &name)?;
        let text = folder.read_trusted(&name, LONGEST_BYTES)?;
        let reasons = put_back(&changes(&String::from_utf8_lossy(&text)), &folder, &name);
        if !reasons.is_empty() {
            return Err(Refusal::Stays(reasons));
        }
        file.set_len(0)?;
        let mut journal = TracerJournal { folder, name, file, changes: Vec::new() };
        journal.line(&std::process::id().to_string())?;
        Ok(journal)
    }

    /// Writes a value to a file of settings, whose old value is kept first. A file that already has the value is left alone.
    pub fn set(&mut self, setting: Setting, value: &str) -> io::Result<()> {
        let old = setting.value()?;
        if old == value {
            return Ok(());
        }
        if old == SIZES_DIFFER {
            for setting in setting.by_cpu()? {
                let value = setting.value()?;
                self.keep(Change::Setting { setting, value })?;
            }
        } else {
            self.keep(Change::Setting { setting: setting.clone(), value: old })?;
        }
        setting.write(value)
    }

    /// Says that a relay is about to be set up; the mark that it has to have.
    pub fn relay(&mut self, disk: &str) -> io::Result<u64> {
        let mark = blktrace::mark()?;
        self.keep(Change::Relay { disk: disk.to_string(), mark })?;
        Ok(mark)
    }

    /// Of each setting the first value counts.
    fn keep(&mut self, change: Change) -> io::Result<()> {
        let is_same = |kept: &Change| match (kept, &change) {
            (Change::Setting { setting, .. }, Change::Setting { setting: other, .. }) => setting == other,
            _ => false,
        };
        if !self.changes.iter().any(is_same) {
            self.line(&change.line())?;
            self.changes.push(change);
        }
        Ok(())
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(format!("{text}\n").as_bytes())?;
        self.file.sync_data()
    }
}

impl Drop for TracerJournal {
    fn drop(&mut self) {
        let reasons = put_back(&self.changes, &self.folder, &self.name);
        for reason in &reasons {
            // Not eprintln: it panics when nobody reads, and this may run while a panic unwinds.
            let _ =
                writeln!(io::stderr(), "weir: {reason}; the next recording by ftrace or relay tries again");
        }
        if reasons.is_empty() {
            let _ = self.folder.remove_file(&self.name);
        }
    }
}

/// The journal's file, empty where there was none, locked until this process ends.
fn locked(folder: &Dir, name: &OsStr) -> Result<File, Refusal> {
    loop {
        let file = folder.open_or_create(name, Access::ReadWrite, 0o600)?;
        match weir_fs::lock(&file) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let text = folder.read(name, LONGEST_BYTES).unwrap_or_default();
                let process =
                    String::from_utf8_lossy(&text).lines().next().and_then(|line| line.parse().ok());
                return Err(Refusal::Held(process));
            }
            locked => locked?,
        }
        // Its holder may have removed or replaced it since it was opened.
        if file.metadata()?.nlink() > 0 {
            return Ok(file);
        }
    }
}

/// Puts everything back, the last first. What cannot be takes the place of the journal; the reasons.
fn put_back(changes: &[Change], folder: &Dir, name: &OsStr) -> Vec<String> {
    let (mut lines, mut reasons) = (Vec::new(), Vec::new());
    for change in changes.iter().rev() {
        if let Err(error) = change.put_back() {
            lines.insert(0, change.line());
            reasons.push(change.stays(&error));
        }
    }
    if !lines.is_empty() {
        let text = format!("{}\n{}\n", std::process::id(), lines.join("\n"));
        // Where that fails the whole journal stays, which has these lines too.
        let _ = folder.replace(name, 0o600, text.as_bytes());
    }
    reasons
}

/// The journal, or why there is none.
pub fn opened(journal: Result<TracerJournal, Refusal>) -> Result<TracerJournal, Error> {
    journal.map_err(|loading| match loading {
        Refusal::Held(process) => {
            let process =
                process.map_or("another process".to_string(), |process| format!("process {process}"));
            in_use(format!("{process}, a weir too, has the kernel's tracer"))
        }
        Refusal::Stays(reasons) => {
            in_use(format!("the kernel's tracer is as an earlier recording left it: {}", reasons.join("; ")))
        }
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

/// What a journal's lines say, but for the first, which names the process. Nothing was changed yet by a line that is not whole.
fn changes(text: &str) -> Vec<Change> {
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.skip(1).filter_map(Change::parse).collect()
}

/// The value of a file, or the one in brackets where the file lists several.
fn selected(text: &str) -> String {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    // Buffers that were never used say `7 (expanded: 1408)`.
    let whole = || text.split_whitespace().next().unwrap_or_default();
    inside.map_or_else(whole, |(value, _)| value).to_string()
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
        let own = Some(std::process::id());
        assert!(matches!(TracerJournal::open_at(&path), Err(Refusal::Held(process)) if process == own));
        drop(journal);
        assert_eq!(read(), ("local".to_string(), "1408".to_string()));
        assert!(!path.exists());

        reset();
        let mut journal = TracerJournal::open_at(&path).unwrap();
        change(&mut journal);
        killed(journal, &path);
        drop(TracerJournal::open_at(&path).unwrap());
        assert_eq!(read(), ("local".to_string(), "1408".to_string()));
    }

    /// As a kill leaves a journal: nobody holds it.
    fn killed(journal: TracerJournal, path: &Path) {
        std::mem::forget(journal);
        let text = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_setting_that_cannot_be_restored_stays_in_the_journal_until_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let [path, busy, other, gone] =
            ["journal", "current_tracer", "size", "gone"].map(|name| folder.path().join(name));
        for setting in [&busy, &other, &gone] {
            fs::write(setting, "before").unwrap();
        }
        let mut journal = TracerJournal::open_at(&path).unwrap();
        for setting in [&busy, &other, &gone] {
            journal.set(Setting::File(setting.clone()), "ours").unwrap();
        }
        fs::remove_file(&gone).unwrap();
        // No file can be written there.
        fs::remove_file(&busy).unwrap();
        fs::create_dir(&busy).unwrap();
        drop(journal);
        assert_eq!((fs::read_to_string(&other).unwrap().as_str(), gone.exists()), ("before", false));
        let left = changes(&fs::read_to_string(&path).unwrap());
        let expected = Change::Setting { setting: Setting::File(busy.clone()), value: "before".to_string() };
        assert_eq!(left, [expected]);

        fs::write(&other, "theirs").unwrap();
        for _ in 0..2 {
            let refused = TracerJournal::open_at(&path).unwrap_err();
            assert!(
                matches!(&refused, Refusal::Stays(why) if why.len() == 1 && why[0].contains("current_tracer to before")),
                "{refused:?}"
            );
        }
        fs::remove_dir(&busy).unwrap();
        fs::write(&busy, "ours").unwrap();
        drop(TracerJournal::open_at(&path).unwrap());
        assert_eq!([&busy, &other].map(|setting| fs::read_to_string(setting).unwrap()), ["before", "theirs"]);
        assert!(!path.exists());
    }

    /// The kernel says `X` of rings of several sizes, and takes no `X`.
    #[test]
    fn sizes_that_differ_between_cpus_are_restored_each() {
        let folder = tempfile::tempdir().unwrap();
        let [path, all] = ["journal", "buffer_size_kb"].map(|name| folder.path().join(name));
        let of_cpus =
            ["cpu0", "cpu1"].map(|cpu| folder.path().join("per_cpu").join(cpu).join("buffer_size_kb"));
        let write = |all_cpus: &str, sizes: [&str; 2]| {
            fs::write(&all, all_cpus).unwrap();
            for (of_cpu, size) in of_cpus.iter().zip(sizes) {
                fs::create_dir_all(of_cpu.parent().unwrap()).unwrap();
                fs::write(of_cpu, size).unwrap();
            }
        };
        write("X\n", ["64\n", "1408\n"]);
        let mut journal = TracerJournal::open_at(&path).unwrap();
        journal.set(Setting::File(all.clone()), "1024").unwrap();
        assert_eq!(fs::read_to_string(&all).unwrap(), "1024");
        write("1024\n", ["1024\n"; 2]);
        drop(journal);
        assert_eq!(of_cpus.map(|of_cpu| fs::read_to_string(of_cpu).unwrap()), ["64", "1408"]);
        assert_eq!(fs::read_to_string(&all).unwrap(), "1024\n");
    }

    #[test]
    fn a_journal_that_has_no_line_yet_is_its_makers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let made = File::create(&path).unwrap();
        weir_fs::lock(&made).unwrap();
        assert!(matches!(TracerJournal::open_at(&path), Err(Refusal::Held(None))));
        assert_eq!(fs::metadata(&path).unwrap().ino(), made.metadata().unwrap().ino());
    }

    #[test]
    fn lines_say_what_was_changed() {
        let changed = [
            Change::Setting { setting: Setting::Tracefs("options/bin".into()), value: "0".to_string() },
            Change::Setting {
                setting: Setting::File("/sys/block/sda/trace/enable".into()),
                value: "0".to_string(),
            },
            Change::Relay { disk: "cciss!c0d0".to_string(), mark: u64::MAX },
        ];
        let lines = changed.each_ref().map(Change::line).join("\n");
        assert_eq!(changes(&format!("7\n{lines}\n")), changed);
        // A kill left the end of a line away: what it says was not done yet.
        assert_eq!(changes(&format!("7\n{lines}")), changed[..2]);
        assert_eq!(changes("7\nrelay\t/dev/sda\n"), []);
    }
}
