//! The folder of an archive: one recorder writes there, anybody who may reads. Readers need no lock: a file is whole from the
//! moment it has its name, and a journal is read as far as it is whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use jiff::{Timestamp, Zoned};
use weir_archive::journal::{Cut, Frames, MAGIC};
use weir_archive::parquet::{self, GROUP_ROWS, Writer};
use weir_archive::segment::{Name, too_many};
use weir_archive::snapshot::{self, Budget, day_of};
use weir_archive::tables::{Event, Row};
use weir_archive::{Batch, SCHEMA};
use weir_fs::{Access, Dir, Fresh, lock};

use crate::failure::{Lacking, Usage};

/// Permission bits of the folder and of its files: names of processes and units are nobody else's business.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The file that says that somebody writes.
const LOCK: &str = "lock";
/// The file that says, a line for each try, which journal is being closed: it stays where that ended the recorder.
const CLOSING: &str = "closing";
/// So often a closing may end the recorder, as a machine that is switched off does; then its journal is set aside.
const TRIES_MAX: usize = 3;
/// Where the recorder listens.
pub(super) const CONTROL: &str = "control";
/// Rows of each table that are in memory while a segment is closed, ...
const HELD_ROWS: usize = 1 << 13;
/// ... and bytes of the names of a column: what events say of themselves may be long.
const HELD_NAMES: usize = 1 << 20;
/// From so many row groups on they are larger, ...
const SMALL_GROUPS: usize = 512;
/// ... since no reader takes a footer of more than some 1,300.
const LARGE_NAMES: usize = 4 * HELD_NAMES;
/// The longest file that is read.
const LONGEST_BYTES: u64 = 512 << 20;

/// An archive.
pub struct Archive {
    dir: Dir,
    _lock: Option<File>,
}

/// The machine, as every file names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
}

impl About {
    /// This machine.
    pub fn here() -> About {
        let read =
            |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
        About { host: read("hostname").trim().to_string(), kernel: read("osrelease").trim().to_string() }
    }
}

/// A file of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: Name,
    /// Its length.
    pub bytes: u64,
}

/// Lets nobody else into the folder, where it is a recorder's or empty: what else lies in one, others may need.
fn close_to_others(dir: &Dir) -> io::Result<()> {
    let mode = dir.metadata()?.mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let is_ours = dir.names()?.next().is_none() || dir.open_trusted_file(LOCK, Access::Read).is_ok();
    if is_ours {
        return dir.chmod(FOLDER_MODE);
    }
    let why =
        format!("other accounts may enter it (mode {mode:04o}), and it holds other files than a recorder's");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

impl Archive {
    /// The one to write to, made where it is missing.
    ///
    /// # Errors
    /// Where it cannot be made, others may write to it, or another recorder does.
    pub fn to_write(path: &Path) -> anyhow::Result<Archive> {
        let lacking = |error: io::Error| Lacking {
            what: format!("cannot keep an archive in {}: {error}", path.display()),
            hint: Some("name a folder of yours with --dir, or run it as root".to_string()),
        };
        let opened = || -> io::Result<(Dir, File)> {
            let dir = Dir::open_or_make(path, FOLDER_MODE, |_, _| {})?;
            dir.check_trusted()?;
            close_to_others(&dir)?;
            let file = dir.open_or_create(LOCK, Access::ReadWrite, FILE_MODE)?;
            Ok((dir, file))
        };
        let (dir, file) = opened().map_err(lacking)?;
        if let Err(error) = lock(&file) {
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(lacking(error).into());
            }
            let what = format!("another recorder writes to {}", path.display());
            let hint = "one recorder watches all devices; --dir names another folder".to_string();
            return Err(Usage { what, hint: Some(hint) }.into());
        }
        dir.remove_all_leftovers();
        // It may not be there yet.
        let _ = dir.subdir(SNAPSHOTS).map(|snapshots| snapshots.remove_all_leftovers());
        Ok(Archive { dir, _lock: Some(file) })
    }

    /// The one to read.
    ///
    /// # Errors
    /// Where it is not there, may not be read, or others may write to it.
    pub fn to_read(path: &Path) -> anyhow::Result<Archive> {
        let dir = Dir::open_trusted(path).map_err(|error| Lacking {
            what: format!("cannot read the archive {}: {error}", path.display()),
            hint: Some(match error.kind() {
                io::ErrorKind::NotFound => "`weir recorder run` makes one; --dir names another".to_string(),
                _ => "run it as root, or name another folder with --dir".to_string(),
            }),
        })?;
        Ok(Archive { dir, _lock: None })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Its folder.
    pub(super) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Its files in order of time, and names of those that are not the recorder's.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn files(&self) -> io::Result<(Vec<Listed>, Vec<String>)> {
        let (mut files, mut foreign) = (Vec::new(), Vec::new());
        for name in self.dir.names()? {
            let text = name?.to_string_lossy().into_owned();
            match Name::parse(&text) {
                Some(name) => {
                    match self.dir.open_file(&text, Access::Read).and_then(|file| file.metadata()) {
                        Ok(data) => files.push(Listed { name, bytes: data.len() }),
                        // It went away meanwhile.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                        Err(error) => foreign.push(format!("{text} ({error})")),
                    }
                }
                None if [LOCK, CLOSING, CONTROL, SNAPSHOTS].contains(&text.as_str())
                    || text.starts_with('.') => {}
                None => foreign.push(text),
            }
        }
        files.sort_by_key(|file| (file.name.begin_s(), file.name.to_string()));
        foreign.sort();
        Ok((files, foreign))
    }

    /// Hands over the rows of some tables that may lie between two times, Unix time, ms. Returns sentences on what could not
    /// be read.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn read(
        &self,
        since_ms: i64,
        until_ms: i64,
        tables: &[&str],
        mut each: impl FnMut(Batch),
    ) -> io::Result<Vec<String>> {
        let (files, _) = self.files()?;
        let open: BTreeSet<i64> = files
            .iter()
            .filter(|file| matches!(file.name, Name::Journal { .. }))
            .map(|file| file.name.begin_s())
            .collect();
        let is_before_until = |begin_s: i64| begin_s.saturating_mul(1000) < until_ms;
        let begins = files.iter().map(|file| file.name.begin_s());
        let following = begins.filter(|begin_s| !is_before_until(*begin_s)).min();
        let is_wanted = |name: &Name| {
            let is_after_since = name.end_s().is_none_or(|end_s| end_s.saturating_mul(1000) >= since_ms);
            let (is_of_table, has_events) = match name {
                // While its journal is there, a table may not be whole.
                Name::Table { table, begin_s, .. } => {
                    (tables.contains(&table.name) && !open.contains(begin_s), table.name == Event::TABLE.name)
                }
                Name::Journal { .. } => (true, tables.contains(&Event::TABLE.name)),
                Name::Aside { .. } => (false, false),
            };
            // An event has the time of its beginning, and lies in the segment in which it ended.
            let may_begin_before = has_events && Some(name.begin_s()) == following;
            (is_before_until(name.begin_s()) || may_begin_before) && is_after_since && is_of_table
        };
        let mut left: Vec<Name> = files.into_iter().map(|file| file.name).filter(is_wanted).collect();
        left.reverse();
        let mut remarks = Vec::new();
        while let Some(name) = left.pop() {
            match self.one(&name, tables, &mut each) {
                Ok(None) => {}
                Ok(Some(damage)) => remarks.push(format!("{name}: {damage}")),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // The journal became tables meanwhile.
                    if let Name::Journal { begin_s } = name {
                        let of_it = |file: &Listed| matches!(file.name, Name::Table { table, begin_s: begin, .. } if begin == begin_s && tables.contains(&table.name));
                        left.extend(self.files()?.0.into_iter().filter(of_it).map(|file| file.name));
                    }
                }
                Err(error) => remarks.push(format!("{name}: {error}")),
            }
        }
        Ok(remarks)
    }

    /// Reads one file; says what was damaged.
    fn one(&self, name: &Name, tables: &[&str], each: &mut impl FnMut(Batch)) -> io::Result<Option<String>> {
        match name {
            Name::Table { table, .. } => {
                let bytes = self.dir.read(name.to_string(), LONGEST_BYTES)?;
                let read = parquet::read(&bytes, table, |batch| {
                    each(batch);
                    ControlFlow::Continue(())
                });
                Ok(read.err().map(|damage| damage.to_string()))
            }
            Name::Journal { .. } | Name::Aside { .. } => {
                let file = self.dir.open_file(name.to_string(), Access::Read)?;
                let mut frames = Frames::new(BufReader::new(file));
                loop {
                    match frames.next() {
                        Ok(Some(batches)) => batches
                            .into_iter()
                            .filter(|batch| tables.contains(&batch.table().name))
                            .for_each(&mut *each),
                        Ok(None) => return Ok(None),
                        Err(damage) => return Ok(Some(damage.to_string())),
                    }
                }
            }
        }
    }

    /// Begins a journal; its name says a time at which no other segment begins, and before which none of its rows lies.
    pub(super) fn begin_journal(&self, unix_s: i64) -> io::Result<File> {
        let (files, _) = self.files()?;
        let taken: BTreeSet<i64> = files.iter().map(|file| file.name.begin_s()).collect();
        let begin_s = (0..=unix_s).rev().find(|begin_s| !taken.contains(begin_s)).unwrap_or(unix_s);
        let name = Name::Journal { begin_s }.to_string();
        let mut file = self.dir.create_new(&name, FILE_MODE)?;
        if let Err(error) = file.write_all(MAGIC) {
            // The next interval would leave another one.
            let _ = self.dir.remove_file(&name);
            return Err(error);
        }
        Ok(file)
    }

    /// Makes tables of a journal and removes it; says what was damaged. A journal that says more than could be understood is set aside. So is
    /// one whose closing has ended recorders, so that it ends no more of them.
    pub(super) fn close_journal(&self, begin_s: i64, about: &About) -> io::Result<Option<String>> {
        let line = format!("{begin_s}\n");
        let tries = self.dir.read(CLOSING, 4096).unwrap_or_default();
        let tries = String::from_utf8_lossy(&tries).split_inclusive('\n').filter(|it| *it == line).count();
        if tries >= TRIES_MAX {
            let (journal, aside) = self.set_aside(begin_s)?;
            self.dir.remove_file(CLOSING)?;
            return Ok(Some(format!(
                "{journal} is set aside as {aside}: its closing ended {tries} recorders"
            )));
        }
        self.dir.replace(CLOSING, FILE_MODE, line.repeat(tries + 1).as_bytes())?;
        let journal = self.dir.open_file(Name::Journal { begin_s }.to_string(), Access::Read);
        let closed = journal.and_then(|file| {
            // A failure of the power before it is removed must not leave less of it than its tables have: those that the next closing
            // makes would end sooner, have other names, and stand beside these.
            file.sync_all()?;
            self.close(begin_s, about, BufReader::new(file))
        });
        self.dir.remove_file(CLOSING)?;
        closed
    }

    fn close(&self, begin_s: i64, about: &About, from: impl Read) -> io::Result<Option<String>> {
        let journal = Name::Journal { begin_s }.to_string();
        match self.tables_of(begin_s, about, from)? {
            None => self.dir.remove_file(journal).map(|()| None),
            Some(Cut::Torn(damage)) => {
                self.dir.remove_file(&journal)?;
                Ok(Some(format!("{journal}: {damage}; what came before is kept")))
            }
            Some(Cut::Damaged(damage)) => {
                let (_, aside) = self.set_aside(begin_s)?;
                Ok(Some(format!("{journal}: {damage}; what came before is kept, and all of it as {aside}")))
            }
            Some(Cut::Foreign(damage)) => Ok(Some(format!("{journal} is left alone: {damage}"))),
            Some(Cut::Io(error)) => Err(error),
        }
    }

    /// Makes tables of a journal, as far as it can be understood; says why no further. There are none where it could not be read.
    fn tables_of(&self, begin_s: i64, about: &About, from: impl Read) -> io::Result<Option<Cut>> {
        let mut frames = Frames::new(from);
        let mut tables =
            Tables { dir: &self.dir, begin_s, about, open: BTreeMap::new(), end_ms: begin_s * 1000 };
        let cut = loop {
            match frames.next() {
                Ok(Some(batches)) => batches.iter().try_for_each(|batch| tables.put(batch))?,
                Ok(None) => break None,
                Err(cut) => break Some(cut),
            }
        };
        if !matches!(cut, Some(Cut::Io(_))) {
            tables.end()?;
        }
        Ok(cut)
    }

    /// Gives a journal the name of one that nobody closes; returns both names.
    fn set_aside(&self, begin_s: i64) -> io::Result<(String, String)> {
        let (journal, aside) = (Name::Journal { begin_s }.to_string(), Name::Aside { begin_s }.to_string());
        self.dir.rename(&journal, &aside)?;
        Ok((journal, aside))
    }

    /// Up to when closed segments go, Unix time, s.
    pub(super) fn newest_s(&self) -> io::Result<Option<i64>> {
        let (files, _) = self.files()?;
        Ok(files.iter().filter_map(|file| file.name.end_s()).max())
    }

    /// Journals that no recorder writes to any more but perhaps this one.
    pub(super) fn journals(&self) -> io::Result<Vec<i64>> {
        let (files, _) = self.files()?;
        let is_journal = |file: &&Listed| matches!(file.name, Name::Journal { .. });
        Ok(files.iter().filter(is_journal).map(|file| file.name.begin_s()).collect())
    }

    /// Removes what is too old or too much.
    pub(super) fn thin_out(&self, oldest_s: i64, most_bytes: u64) -> io::Result<usize> {
        let (files, _) = self.files()?;
        let files: Vec<(Name, u64)> = files.into_iter().map(|file| (file.name, file.bytes)).collect();
        let gone = too_many(&files, oldest_s, most_bytes);
        gone.iter().try_for_each(|name| self.dir.remove_file(name.to_string()))?;
        Ok(gone.len())
    }
}

/// The folder of snapshots, in the archive's.
const SNAPSHOTS: &str = "snapshots";

/// The path of a snapshot, from the archive's folder.
pub fn snapshot_name(at_ms: i64) -> String {
    format!("{SNAPSHOTS}/{}", snapshot::file_name(at_ms))
}

impl Archive {
    /// Keeps a snapshot. It is not synced: it is written just when the disk is slow.
    pub(super) fn keep_snapshot(&self, at_ms: i64, bytes: &[u8]) -> io::Result<()> {
        let folder = match self.dir.subdir(SNAPSHOTS) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.dir.make_dir(SNAPSHOTS, FOLDER_MODE)?
            }
            opened => opened?,
        };
        let mut fresh = folder.beside(snapshot::file_name(at_ms), FILE_MODE)?;
        fresh.write_all(bytes)?;
        fresh.commit_unsynced()
    }

    /// Removes snapshots that were taken before a time.
    pub(super) fn thin_out_snapshots(&self, oldest_s: i64) -> io::Result<()> {
        let is_old = |at_ms: i64| at_ms < oldest_s.saturating_mul(1000);
        self.each_snapshot(is_old, |folder, at_ms| folder.remove_file(snapshot::file_name(at_ms)))
    }

    /// What snapshots of the day have taken so far.
    pub(super) fn snapshot_budget(&self, now_ms: i64) -> io::Result<Budget> {
        let mut budget = Budget::resumed(now_ms);
        let is_of_today = |at_ms: i64| day_of(at_ms) == day_of(now_ms);
        self.each_snapshot(is_of_today, |folder, at_ms| {
            let file = folder.open_file(snapshot::file_name(at_ms), Access::Read)?;
            let length = file.metadata()?.len();
            let mut head = Vec::new();
            file.take(snapshot::HEAD_BYTES as u64).read_to_end(&mut head)?;
            budget.found(&head, length);
            Ok(())
        })?;
        Ok(budget)
    }

    /// The snapshots of some times. Other files that lie there are none.
    fn each_snapshot(
        &self,
        is_wanted: impl Fn(i64) -> bool,
        mut each: impl FnMut(&Dir, i64) -> io::Result<()>,
    ) -> io::Result<()> {
        let folder = match self.dir.subdir(SNAPSHOTS) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        for name in folder.names()? {
            let at_ms = name?.to_str().and_then(snapshot::taken_at_ms);
            at_ms.filter(|at_ms| is_wanted(*at_ms)).map_or(Ok(()), |at_ms| each(&folder, at_ms))?;
        }
        Ok(())
    }
}

/// Parquet files in the making: all tables of a segment at once, each with the rows of one row group in memory.
struct Tables<'a> {
    dir: &'a Dir,
    begin_s: i64,
    about: &'a About,
    open: BTreeMap<&'static str, (Writer<Fresh>, Batch)>,
    end_ms: i64,
}

impl Tables<'_> {
    fn put(&mut self, batch: &Batch) -> io::Result<()> {
        let table = batch.table();
        let times = batch
            .column("ts_ms")
            .into_iter()
            .flat_map(|column| (0..column.len()).map(move |row| column.integer(row)));
        let ends = times.zip(0..).map(|(ts_ms, row)| {
            ts_ms.saturating_add(batch.column("span_ms").map_or(0, |span| span.integer(row)))
        });
        self.end_ms = ends.max().unwrap_or(self.end_ms).max(self.end_ms);
        let (writer, held) = match self.open.entry(table.name) {
            std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::btree_map::Entry::Vacant(new) => {
                let keys = [
                    ("weir.archive", SCHEMA.to_string()),
                    ("weir.host", self.about.host.clone()),
                    ("weir.kernel", self.about.kernel.clone()),
                ];
                let keys = keys.map(|(key, value)| (key.to_string(), value)).into();
                let fresh = self.dir.beside(table.name, FILE_MODE)?;
                new.insert((Writer::new(fresh, table, keys)?, Batch::new(table)))
            }
        };
        held.append(batch);
        if is_group(writer.groups(), held) {
            writer.group(held)?;
            *held = Batch::new(table);
        }
        Ok(())
    }

    fn end(self) -> io::Result<()> {
        let end_s = self.end_ms.div_euclid(1000) + i64::from(self.end_ms.rem_euclid(1000) > 0);
        for (name, (mut writer, held)) in self.open {
            writer.group(&held)?;
            let fresh = writer.finish()?;
            let Some(table) = weir_archive::tables::named(name) else { continue };
            let name = Name::Table { table, begin_s: self.begin_s, end_s: end_s.max(self.begin_s) };
            fresh.commit_as(name.to_string())?;
        }
        Ok(())
    }
}

/// Whether rows are enough for the next row group of a file that has so many.
fn is_group(groups: usize, held: &Batch) -> bool {
    let is_small = groups < SMALL_GROUPS;
    let (rows, names) = if is_small { (HELD_ROWS, HELD_NAMES) } else { (GROUP_ROWS, LARGE_NAMES) };
    held.rows() >= rows || held.names_bytes() >= names
}

/// A time of an archive as the clock on the wall shows it, with the date where it is another day. `None` where no calendar has it.
pub fn wall_clock(unix_ms: i64, now: &Zoned) -> Option<String> {
    let at = Timestamp::from_millisecond(unix_ms).ok()?.to_zoned(now.time_zone().clone());
    let form = if at.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    Some(at.strftime(form).to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use weir_archive::journal::frame;
    use weir_archive::tables::Counter;

    use super::*;

    const BEGIN_S: i64 = 1_795_576_200;

    fn interval(at: i64) -> Vec<Batch> {
        let ts_ms = (BEGIN_S + at) * 1000;
        let counter = Counter { ts_ms, span_ms: 1000, name: "reads".into(), value: at, ..Counter::default() };
        let event = Event { ts_ms, kind: "start".into(), ..Event::default() };
        vec![Counter::batch(&[counter]), Event::batch(&[event])]
    }

    /// An archive with a journal of so many intervals.
    fn with_journal(path: &Path, count: i64) -> Archive {
        let archive = Archive::to_write(path).unwrap();
        let mut file = archive.begin_journal(BEGIN_S).unwrap();
        (0..count).for_each(|at| file.write_all(&frame(&interval(at)).unwrap()).unwrap());
        archive
    }

    fn values(archive: &Archive) -> (Vec<i64>, Vec<String>) {
        let mut values = Vec::new();
        let take = |batch: Batch| values.extend(Counter::all(&batch).iter().map(|row| row.value));
        let remarks = archive.read(0, i64::MAX, &["counters"], take).unwrap();
        (values, remarks)
    }

    #[test]
    fn a_folder_of_others_is_not_shut() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared");
        fs::create_dir(&path).unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let open = || fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        open();
        fs::write(path.join("theirs"), "x").unwrap();
        assert!(Archive::to_write(&path).is_err());
        assert_eq!((mode(), fs::read_dir(&path).unwrap().count()), (0o755, 1));
        fs::remove_file(path.join("theirs")).unwrap();
        drop(Archive::to_write(&path).unwrap());
        assert_eq!(mode(), 0o700, "an empty one is taken");
        open();
        drop(Archive::to_write(&path).unwrap());
        assert_eq!(mode(), 0o700, "so is one that a recorder had");
    }

    #[test]
    fn an_event_is_found_that_ended_in_the_segment_after() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::to_write(&folder.path().join("archive")).unwrap();
        let stall = Event { ts_ms: (BEGIN_S - 12) * 1000, kind: "stall".into(), ..Event::default() };
        for (begin_s, events) in [(BEGIN_S - 60, vec![]), (BEGIN_S, vec![stall]), (BEGIN_S + 60, vec![])] {
            let mut file = archive.begin_journal(begin_s).unwrap();
            file.write_all(&frame(&[Event::batch(&events)]).unwrap()).unwrap();
            archive.close_journal(begin_s, &About::default()).unwrap();
        }
        let mut found = Vec::new();
        let take = |batch: Batch| found.extend(Event::all(&batch).into_iter().map(|event| event.kind));
        archive.read((BEGIN_S - 20) * 1000, (BEGIN_S - 5) * 1000, &["events"], take).unwrap();
        assert_eq!(found, ["stall"]);
    }

    #[test]
    fn rows_are_read_once_before_while_and_after_a_segment_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        let archive = with_journal(&path, 3);
        let all = (vec![0, 1, 2], Vec::new());
        assert_eq!(values(&archive), all);
        let journal = path.join(Name::Journal { begin_s: BEGIN_S }.to_string());
        let kept = fs::read(&journal).unwrap();
        assert_eq!(archive.close_journal(BEGIN_S, &About::here()).unwrap(), None);
        assert_eq!(values(&archive), all);
        assert!(!journal.exists());
        // Killed between the tables and the journal's end: it is closed again, to the same.
        fs::write(&journal, kept).unwrap();
        assert_eq!(values(&archive), all);
        assert_eq!(archive.journals().unwrap(), [BEGIN_S]);
        archive.close_journal(BEGIN_S, &About::here()).unwrap();
        assert_eq!(values(&archive), all);
        // Another one that begins in the same second has a name of its own.
        archive.begin_journal(BEGIN_S).unwrap();
        assert_eq!(archive.journals().unwrap(), [BEGIN_S - 1]);
    }

    #[test]
    fn what_is_torn_or_foreign_is_said_and_costs_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        let archive = with_journal(&path, 3);
        let journal = path.join(Name::Journal { begin_s: BEGIN_S }.to_string());
        let whole = fs::read(&journal).unwrap();
        fs::write(&journal, &whole[..whole.len() - 5]).unwrap();
        fs::write(path.join("counters-20190101T000000Z-20990101T000000Z.parquet"), "PAR1").unwrap();
        fs::write(path.join("open-20200101T000000Z.journal"), "somebody else's").unwrap();
        fs::write(path.join("mine.txt"), "").unwrap();
        let (read, remarks) = values(&archive);
        assert_eq!((read, remarks.len()), (vec![0, 1], 3), "{remarks:?}");
        assert_eq!(archive.files().unwrap().1, ["mine.txt"]);
        for begin_s in archive.journals().unwrap() {
            assert!(archive.close_journal(begin_s, &About::here()).unwrap().is_some());
        }
        assert_eq!(values(&archive).0, [0, 1]);
        assert!(!journal.exists() && path.join("open-20200101T000000Z.journal").exists());
    }

    weir_archive::table! {
        /// As a later version may have it.
        Later = "counters" {
            ts_ms: i64, span_ms: i64, device: String, name: String, value: i64, more: i64,
        }
    }

    #[test]
    fn a_journal_that_is_not_understood_or_cannot_be_read_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        let archive = with_journal(&path, 2);
        let journal = path.join(Name::Journal { begin_s: BEGIN_S }.to_string());
        let whole = fs::read(&journal).unwrap();
        // It fails once, in the second frame.
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::InvalidData.into())
            }
        }
        let fails = whole[..whole.len() - 5].chain(Fails);
        assert!(archive.close(BEGIN_S, &About::here(), fails).is_err());
        assert_eq!(fs::read(&journal).unwrap(), whole);
        assert_eq!(archive.files().unwrap().0.len(), 1, "no table of half of it");
        assert_eq!(values(&archive).0, [0, 1]);
        // A later version wrote on.
        let later = frame(&[Later::batch(&[Later::default()])]).unwrap();
        let (of_later, only_later) = ([&whole[..], &later, &later].concat(), [&MAGIC[..], &later].concat());
        for (bytes, left) in [(of_later, vec![0, 1]), (only_later, vec![])] {
            fs::write(&journal, &bytes).unwrap();
            let said = archive.close_journal(BEGIN_S, &About::here()).unwrap().unwrap();
            assert!(said.contains("a later version of weir") && said.contains("aside-"), "{said}");
            let aside = path.join(Name::Aside { begin_s: BEGIN_S }.to_string());
            assert!(fs::read(&aside).unwrap() == bytes && !journal.exists());
            assert_eq!(values(&archive).0, left);
            archive.thin_out(0, 0).unwrap();
        }
    }

    #[test]
    fn a_segment_of_very_many_rows_has_row_groups_that_a_reader_takes() {
        let rows = |count| Counter::batch(&vec![Counter::default(); count]);
        let names = |count| {
            let detail = "x".repeat(1 << 20);
            Event::batch(&vec![Event { detail, ..Event::default() }; count])
        };
        for (groups, held, is_enough) in [
            (0, rows(HELD_ROWS), true),
            (0, rows(HELD_ROWS - 1), false),
            (0, names(1), true),
            (SMALL_GROUPS, rows(HELD_ROWS), false),
            (SMALL_GROUPS, rows(GROUP_ROWS), true),
            (SMALL_GROUPS, names(1), false),
            (SMALL_GROUPS, names(4), true),
        ] {
            assert_eq!(is_group(groups, &held), is_enough, "{groups} and {}", held.rows());
        }
    }

    #[test]
    fn one_writes_and_nobody_else_may_have_written() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        let first = Archive::to_write(&path).unwrap();
        let second = Archive::to_write(&path).err().unwrap();
        assert!(second.to_string().contains("another recorder writes"), "{second}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(first);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        for refused in [Archive::to_write(&path).err(), Archive::to_read(&path).err()] {
            assert!(refused.unwrap().to_string().contains("other accounts may write"));
        }
    }

    #[test]
    fn old_segments_and_snapshots_go() {
        let folder = tempfile::tempdir().unwrap();
        let archive = with_journal(&folder.path().join("archive"), 1);
        archive.close_journal(BEGIN_S, &About::here()).unwrap();
        for at_ms in [1_000, BEGIN_S * 1000] {
            archive.keep_snapshot(at_ms, b"{}").unwrap();
        }
        let snapshots = archive.path().join(SNAPSHOTS);
        for theirs in ["1.json", "0-notes.json"] {
            fs::write(snapshots.join(theirs), "").unwrap();
        }
        assert_eq!(archive.thin_out(0, u64::MAX).unwrap(), 0);
        archive.thin_out_snapshots(BEGIN_S - 1).unwrap();
        let left = fs::read_dir(snapshots).unwrap().count();
        assert_eq!(left, 3, "one snapshot, and what is not the recorder's");
        assert_eq!(archive.thin_out(0, 0).unwrap(), 2);
        assert!(values(&archive).0.is_empty());
    }

    #[test]
    fn a_recorder_that_starts_anew_has_what_is_left_of_the_day() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::to_write(&folder.path().join("archive")).unwrap();
        let now_ms = BEGIN_S * 1000;
        let stall = snapshot::Cause::Stall("sda".to_string());
        let mut budget = archive.snapshot_budget(now_ms).unwrap();
        assert!(budget.takes(now_ms, &stall) && budget.takes_asked(now_ms));
        let of = |trigger: &str, bytes: usize| {
            let mut document =
                format!("{{\"schema\":\"x\",\"at_ms\":1,\"trigger\":\"{trigger}\"").into_bytes();
            document.resize(bytes, b' ');
            document
        };
        archive.keep_snapshot(now_ms - 86_400_000, &of("asked", 65 << 20)).unwrap();
        archive.keep_snapshot(now_ms - 1, &of("stall", 17 << 20)).unwrap();
        let mut budget = archive.snapshot_budget(now_ms).unwrap();
        assert!(!budget.takes(now_ms, &stall) && budget.takes_asked(now_ms));
        archive.keep_snapshot(now_ms - 2, &of("asked", 65 << 20)).unwrap();
        assert!(!archive.snapshot_budget(now_ms).unwrap().takes_asked(now_ms));
    }

    #[test]
    fn names_do_not_add_up_in_memory_until_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::to_write(&folder.path().join("archive")).unwrap();
        let about = About::default();
        let mut tables =
            Tables { dir: &archive.dir, begin_s: BEGIN_S, about: &about, open: BTreeMap::new(), end_ms: 0 };
        for n in 0..64 {
            let detail = format!("{n}{}", "x".repeat(1 << 20));
            tables.put(&Event::batch(&[Event { ts_ms: n, detail, ..Event::default() }])).unwrap();
            let held = tables.open["events"].1.column("detail").unwrap();
            let held: usize = (0..held.len()).map(|row| held.text(row).len()).sum();
            assert!(held <= HELD_NAMES, "{held} bytes after {n}");
        }
        tables.end().unwrap();
        let mut count = 0;
        let remarks = archive.read(0, i64::MAX, &["events"], |batch| count += batch.rows()).unwrap();
        assert_eq!((count, remarks), (64, Vec::new()));
    }

    #[test]
    fn a_journal_whose_closing_ended_the_recorder_again_and_again_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        let archive = with_journal(&path, 3);
        let journal = path.join(Name::Journal { begin_s: BEGIN_S }.to_string());
        let kept = fs::read(&journal).unwrap();
        let closing = path.join("closing");
        let tries = |count| fs::write(&closing, format!("{BEGIN_S}\n").repeat(count)).unwrap();
        // As many as a machine that is switched off in that second may cause.
        tries(2);
        assert_eq!(archive.close_journal(BEGIN_S, &About::here()).unwrap(), None);
        assert!(!closing.exists(), "it went well");
        fs::write(&journal, &kept).unwrap();
        tries(3);
        let said = archive.close_journal(BEGIN_S, &About::here()).unwrap().unwrap();
        assert!(said.contains("set aside") && !journal.exists(), "{said}");
        assert_eq!(archive.journals().unwrap(), [] as [i64; 0]);
        let aside = "aside-20261125T031000Z.journal";
        assert_eq!(fs::read(path.join(aside)).unwrap(), kept);
        let (files, foreign) = archive.files().unwrap();
        assert!(files.iter().any(|file| file.name.to_string() == aside) && foreign.is_empty(), "{foreign:?}");
        assert_eq!(archive.thin_out(0, 0).unwrap(), 3, "the tables of before, and it");
    }

    #[test]
    fn a_time_beyond_all_times_ends_no_recorder() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::to_write(&folder.path().join("archive")).unwrap();
        let mut file = archive.begin_journal(BEGIN_S).unwrap();
        let counter = Counter { ts_ms: i64::MAX - 1, span_ms: 1000, ..Counter::default() };
        file.write_all(&frame(&[Counter::batch(&[counter])]).unwrap()).unwrap();
        archive.close_journal(BEGIN_S, &About::here()).unwrap();
    }
}
