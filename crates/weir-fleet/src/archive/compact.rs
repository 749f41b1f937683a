//! Compaction: the small files of a week, one for each host and day, become few. Either all of them count or all that they became,
//! whenever a process is killed: a journal says which, written before the new files get their names and removed after the old
//! ones.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use weir_archive::Batch;
use weir_archive::parquet::{Writer, fills_group};
use weir_archive::segment::stamp;
use weir_fs::{Access, Dir, Fresh};
use weir_store::layout::{MANY, PART_ROWS, Place, monday_s};
use weir_store::merge::Merger;

use super::{Locked, Stored, writer};

const JOURNAL: &str = "compaction.json";

/// The longest journal that is read.
const JOURNAL_MAX: u64 = 256 << 20;

/// Row groups of a file after which the next one begins, too: a reader takes some 1,700.
const PART_GROUPS: usize = 512;

/// Files that take the place of others.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    made: Vec<String>,
    replaced: Vec<String>,
}

impl Journal {
    /// The one of a compaction that was killed.
    pub fn read(root: &Dir) -> anyhow::Result<Option<Journal>> {
        match root.read(JOURNAL, JOURNAL_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => Ok(Some(serde_json::from_slice(&read?)?)),
        }
    }

    fn is_made(&self, root: &Dir) -> bool {
        self.made.iter().all(|file| root.open_file(file, Access::Read).is_ok())
    }

    /// Whether a file does not count.
    pub fn ignores(&self, root: &Dir, below: &str) -> bool {
        let ignored = if self.is_made(root) { &self.replaced } else { &self.made };
        ignored.iter().any(|file| file == below)
    }
}

/// What a compaction did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// Files before.
    pub from: usize,
    /// Files after.
    pub to: usize,
    /// Files that cannot be read, left where they are.
    pub damaged: usize,
}

impl Locked<'_> {
    /// Ends what a killed process began.
    pub(super) fn recover(&self) -> anyhow::Result<()> {
        let root = self.archive.open()?;
        let Some(journal) = Journal::read(&root)? else { return Ok(()) };
        let gone = if journal.is_made(&root) { &journal.replaced } else { &journal.made };
        for file in gone {
            self.remove(file)?;
        }
        Ok(root.remove_file(JOURNAL)?)
    }

    /// Compacts every week of every table that has more than one small file.
    ///
    /// # Errors
    /// Those of writing. Damaged files are said and left.
    pub fn compact(&self) -> anyhow::Result<Compacted> {
        let mut weeks: BTreeMap<Place, Vec<Stored>> = BTreeMap::new();
        for file in self.archive.files()?.into_iter().filter(|file| file.place.host != MANY) {
            let week =
                Place { day_s: monday_s(file.place.day_s), host: MANY.to_string(), ..file.place.clone() };
            weeks.entry(week).or_default().push(file);
        }
        let mut sum = Compacted::default();
        for (week, files) in weeks.into_iter().filter(|(_, files)| files.len() > 1) {
            self.week(&week, files, &mut sum)?;
        }
        Ok(sum)
    }

    fn week(&self, week: &Place, files: Vec<Stored>, sum: &mut Compacted) -> anyhow::Result<()> {
        let (fresh, journal) = match self.made(week, files, sum) {
            // What nobody could read takes no other's place.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                say!("{}: stays as it is: {error}", self.archive.root.join(week.folder()).display());
                sum.damaged += 1;
                return Ok(());
            }
            made => made?,
        };
        sum.from += journal.replaced.len();
        sum.to += journal.made.len();
        let root = self.archive.open()?;
        root.replace(JOURNAL, 0o600, &serde_json::to_vec(&journal)?)?;
        for file in fresh {
            file.commit()?;
        }
        self.recover()
    }

    /// The files of a week as few, which nobody sees yet.
    fn made(
        &self,
        week: &Place,
        files: Vec<Stored>,
        sum: &mut Compacted,
    ) -> io::Result<(Vec<Fresh>, Journal)> {
        let mut hosts: BTreeMap<String, Vec<Stored>> = BTreeMap::new();
        files.into_iter().for_each(|file| hosts.entry(file.place.host.clone()).or_default().push(file));
        let mut parts =
            Parts { locked: self, week, waiting: None, open: None, done: Vec::new(), names: Vec::new() };
        let mut replaced = Vec::new();
        for files in hosts.values() {
            let mut merger = Merger::default();
            for file in files {
                match self.archive.rows(file) {
                    Ok(rows) => {
                        let mut merged = rows.into_iter().filter_map(|batch| merger.add(batch));
                        merged.try_for_each(|batch| parts.add(&batch))?;
                        replaced.push(file.below());
                    }
                    Err(why) => {
                        say!("{}: {why}", self.archive.root.join(file.below()).display());
                        sum.damaged += 1;
                    }
                }
            }
            if let Some(batch) = merger.finish() {
                parts.add(&batch)?;
            }
        }
        let (fresh, made) = parts.finish()?;
        Ok((fresh, Journal { made, replaced }))
    }
}

/// Files in the making. Rows of small hosts share a row group.
struct Parts<'a> {
    locked: &'a Locked<'a>,
    week: &'a Place,
    waiting: Option<Batch>,
    open: Option<(Writer<Fresh>, usize)>,
    done: Vec<Fresh>,
    names: Vec<String>,
}

impl Parts<'_> {
    fn add(&mut self, batch: &Batch) -> io::Result<()> {
        let waiting = self.waiting.get_or_insert_with(|| Batch::new(batch.table()));
        waiting.append(batch);
        if fills_group(waiting) { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(batch) = self.waiting.take() else { return Ok(()) };
        let (mut file, rows) = match self.open.take() {
            Some(open) => open,
            None => {
                // Of a week that is compacted again, the earlier files stay.
                let name = format!("{}-{}.parquet", stamp(self.week.day_s), weir_fs::unguessable()?);
                self.names.push(format!("{}/{name}", self.week.folder()));
                (writer(self.locked.fresh(self.week, &name)?, batch.table())?, 0)
            }
        };
        file.group(&batch)?;
        let rows = rows + batch.rows();
        if rows < PART_ROWS && file.groups() < PART_GROUPS {
            self.open = Some((file, rows));
        } else {
            self.done.push(file.finish()?);
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<(Vec<Fresh>, Vec<String>)> {
        self.flush()?;
        if let Some((file, _)) = self.open.take() {
            self.done.push(file.finish()?);
        }
        Ok((self.done, self.names))
    }
}
