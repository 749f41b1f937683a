//! The tables of the fleet in a folder beside the results of runs. Only weir writes there: what hosts send is read by weir's own
//! reader, which bounds it, and written anew.

mod compact;
mod import;

pub use import::{Imported, pulled, sources};

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use weir_archive::parquet::{self, FOOTER_MAX, Writer};
use weir_archive::{Batch, Row, Table};
use weir_cli::failure::lacking;
use weir_fs::{Access, Dir, Fresh};
use weir_store::layout::{self, Place};
use weir_store::tables::Fact;
use weir_store::{SCHEMA, SCHEMA_KEY};

use crate::store::folder;
use compact::Journal;

/// The folder, below that of results.
const FOLDER: &str = "store";

/// Whose lock a writer has.
const LOCK: &str = "lock";

/// The most of a file that is read.
#[derive(Clone, Copy)]
struct Most {
    /// Its length.
    bytes: u64,
    /// Rows.
    rows: usize,
    /// Bytes of the names of a column, each as often as it stands there: a dictionary makes much of little.
    names: usize,
}

/// Of a host's: twice the rows of a day of ten-second intervals of four devices.
const OF_A_HOST: Most = Most { bytes: 256 << 20, rows: 8 << 20, names: 512 << 20 };

/// Of weir's own.
const OWN: Most = Most { bytes: u64::MAX >> 1, rows: usize::MAX, names: usize::MAX };

/// How often the folders are listed where they change meanwhile.
const LISTED_AGAIN: usize = 100;

/// The tables.
pub struct Archive {
    results: PathBuf,
    root: PathBuf,
}

/// A file of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stored {
    /// Where it lies.
    pub place: Place,
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

impl Stored {
    /// Its path below the archive's folder.
    pub fn below(&self) -> String {
        format!("{}/{}", self.place.folder(), self.name)
    }
}

/// The right to write, until it is dropped.
pub struct Locked<'a> {
    archive: &'a Archive,
    _lock: std::fs::File,
}

impl Archive {
    /// Below a folder of results.
    pub fn below(results: &Path) -> Archive {
        Archive { results: results.to_path_buf(), root: results.join(FOLDER) }
    }

    /// Opens its folder.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(&self) -> io::Result<Dir> {
        Dir::open(&self.results)?.subdir(FOLDER)
    }

    /// Opens a folder in it, and makes it where it is missing.
    ///
    /// # Errors
    /// Those of open(2) and mkdirat(2).
    pub fn make(&self, below: &str) -> io::Result<Dir> {
        folder(&self.results, &format!("{FOLDER}/{below}"))
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Waits for nobody: one writer at a time.
    ///
    /// # Errors
    /// Where the folder cannot be made, or another process writes.
    pub fn lock(&self) -> anyhow::Result<Locked<'_>> {
        let folder = self.make("");
        let locked = folder.and_then(|folder| {
            folder.remove_leftovers();
            let file = folder.open_or_create(LOCK, Access::ReadWrite, 0o600)?;
            weir_fs::lock(&file).map(|()| file)
        });
        let lock = locked.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => lacking(
                format!("another process writes to {}", self.root.display()),
                "wait until it has ended",
            ),
            _ => lacking(
                format!("cannot write to {}: {error}", self.root.display()),
                "name a folder with --into",
            ),
        })?;
        let locked = Locked { archive: self, _lock: lock };
        locked.recover()?;
        locked.undo_import()?;
        Ok(locked)
    }

    /// The files that count, in order; none where there is no folder.
    ///
    /// # Errors
    /// Those of reading folders.
    pub fn files(&self) -> anyhow::Result<Vec<Stored>> {
        let root = match self.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        // A compaction meanwhile could show neither the files of a week nor those that take their place.
        let mut left = LISTED_AGAIN;
        loop {
            let before = Journal::read(&root)?;
            let (mut files, gone) = listed(&root)?;
            left -= 1;
            if left > 0 && (gone || Journal::read(&root)? != before) {
                continue;
            }
            let counts =
                |file: &Stored| before.as_ref().is_none_or(|journal| !journal.ignores(&root, &file.below()));
            files.retain(counts);
            files.sort();
            return Ok(files);
        }
    }

    /// Whether a file is whole, of this schema, and of its length: by its footer alone.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, file: &Stored) -> Result<i64, String> {
        let end = self.end(file).map_err(|error| error.to_string())?;
        let (rows, schema) = parquet::about(&end, SCHEMA_KEY).map_err(|damaged| damaged.to_string())?;
        match schema.as_deref() {
            Some(SCHEMA) => Ok(rows),
            Some(other) => Err(format!("schema {other}, which this weir does not know")),
            None => Err("not one of weir's tables".to_string()),
        }
    }

    fn end(&self, file: &Stored) -> io::Result<Vec<u8>> {
        let mut open = self.open()?.open_file(file.below(), Access::Read)?;
        let mut last = |bytes: u64| -> io::Result<Vec<u8>> {
            open.seek(SeekFrom::Start(file.bytes.saturating_sub(bytes)))?;
            let mut end = Vec::new();
            Read::by_ref(&mut open).take(bytes).read_to_end(&mut end)?;
            Ok(end)
        };
        // Its length, and PAR1.
        let length = last(8)?.first_chunk().map_or(0, |length| u64::from(u32::from_le_bytes(*length)));
        last(length.min(FOOTER_MAX as u64) + 8)
    }

    /// Says that a file is left out.
    pub fn left_out(&self, file: &Stored, why: &str) {
        say!("{}: left out: {why}", self.root.join(file.below()).display());
    }

    /// The rows of a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn rows(&self, file: &Stored) -> Result<Vec<Batch>, String> {
        let table = layout::table(&file.place.kind).ok_or("of no table")?;
        let root = self.open().map_err(|error| error.to_string())?;
        rows(&root, &file.below(), table, OWN)
    }
}

/// The files in the folders of tables, and whether one went meanwhile.
fn listed(root: &Dir) -> io::Result<(Vec<Stored>, bool)> {
    let (mut files, mut file_gone) = (Vec::new(), false);
    let folder_gone = partitions(root, &mut |[kind, day, host], folder| {
        let Some(place) = Place::parse(kind, day, host) else { return Ok(()) };
        for name in names(folder)?.into_iter().filter(|name| name.ends_with(".parquet")) {
            match folder.open_file(&name, Access::Read).and_then(|file| file.metadata()) {
                Ok(length) => files.push(Stored { place: place.clone(), name, bytes: length.len() }),
                Err(error) if is_short_of_files(&error) => return Err(error),
                Err(error) => file_gone |= error.kind() == io::ErrorKind::NotFound,
            }
        }
        Ok(())
    })?;
    Ok((files, file_gone || folder_gone))
}

/// Gives each folder three levels down, such as `kind=…/date=…/host=…`, with its names; whether one went meanwhile. Links, and what
/// is no folder, do not count. Few are open at a time, since there may be many thousand.
fn partitions(root: &Dir, each: &mut dyn FnMut([&str; 3], &Dir) -> io::Result<()>) -> io::Result<bool> {
    let mut gone = false;
    let mut below = |folder: &Dir, name: &str| match folder.subdir(name) {
        Ok(dir) => Ok(Some(dir)),
        Err(error) if is_short_of_files(&error) => Err(error),
        Err(error) => {
            gone |= error.kind() == io::ErrorKind::NotFound;
            Ok(None)
        }
    };
    for kind in names(root)? {
        let Some(kinds) = below(root, &kind)? else { continue };
        for day in names(&kinds)? {
            let Some(days) = below(&kinds, &day)? else { continue };
            for host in names(&days)? {
                if let Some(folder) = below(&days, &host)? {
                    each([&kind, &day, &host], &folder)?;
                }
            }
        }
    }
    Ok(gone)
}

/// Then what is there would be left out without a word.
fn is_short_of_files(error: &io::Error) -> bool {
    [Errno::MFILE, Errno::NFILE, Errno::NOMEM]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Names in a folder, those of files in the making left out.
fn names(folder: &Dir) -> io::Result<Vec<String>> {
    let mut all = Vec::new();
    for name in folder.names()? {
        all.extend(name?.into_string().ok().filter(|name| !name.starts_with('.')));
    }
    all.sort();
    Ok(all)
}

/// The rows of a Parquet file that anybody may have made.
fn rows(folder: &Dir, path: &str, table: &'static Table, most: Most) -> Result<Vec<Batch>, String> {
    let bytes = folder.read(path, most.bytes).map_err(|error| error.to_string())?;
    let (mut batches, mut rows, mut names) = (Vec::new(), 0_usize, 0_usize);
    let mut too_much = None;
    let read = parquet::read(&bytes, table, |batch| {
        rows += batch.rows();
        names = names.saturating_add(batch.names_bytes());
        if rows > most.rows {
            too_much = Some(format!("more than {} rows", most.rows));
        } else if names > most.names {
            too_much = Some(format!("more than {} MiB of names", most.names >> 20));
        } else {
            batches.push(batch);
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(())
    });
    read.map_err(|damaged| damaged.to_string())?;
    too_much.map_or(Ok(batches), Err)
}

impl Locked<'_> {
    /// A file in the making.
    fn fresh(&self, place: &Place, name: &str) -> io::Result<Fresh> {
        self.archive.make(&place.folder())?.beside(name, 0o600)
    }

    /// Writes rows to a file, in place of one of the same name.
    fn write(&self, place: &Place, name: &str, batch: &Batch) -> io::Result<()> {
        let mut writer = writer(self.fresh(place, name)?, batch.table())?;
        writer.group(batch)?;
        writer.finish()?.commit()
    }

    /// Removes files that ended before a time, but for facts, which hold until they change. Returns how many, and their bytes.
    ///
    /// # Errors
    /// Those of removing.
    pub fn prune(&self, before_s: i64) -> anyhow::Result<(usize, u64)> {
        let is_old = |file: &Stored| file.place.end_s() <= before_s && file.place.kind != Fact::TABLE.name;
        let old: Vec<Stored> = self.archive.files()?.into_iter().filter(is_old).collect();
        for file in &old {
            self.remove(&file.below())?;
        }
        Ok((old.len(), old.iter().map(|file| file.bytes).sum()))
    }

    /// Removes a file, and its folders as far as they are empty.
    fn remove(&self, below: &str) -> io::Result<()> {
        let root = self.archive.open()?;
        let parts: Vec<&str> = below.split('/').collect();
        let [kind, day, host, name] = parts[..] else { return Err(io::ErrorKind::InvalidInput.into()) };
        let folder = match root.subdir(format!("{kind}/{day}/{host}")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        match folder.remove_file(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        let emptied = root.subdir(format!("{kind}/{day}")).and_then(|days| days.remove_dir(host));
        if emptied.is_ok() {
            let _ = root.subdir(kind).and_then(|days| days.remove_dir(day));
        }
        Ok(())
    }
}

/// Begins a file of a table.
pub fn writer<W: Write>(to: W, table: &'static Table) -> io::Result<Writer<W>> {
    Ok(Writer::new(to, table, vec![(SCHEMA_KEY.to_string(), SCHEMA.to_string())])?.without_compression())
}
