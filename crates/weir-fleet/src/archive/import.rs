//! Import: what hosts sent, or a recorder's folder, into the tables. A file that cannot be read costs one line, and the rest goes on.

use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_archive::segment::{Name, stamp};
use weir_archive::tables::{Event, named};
use weir_archive::{Batch, Row, Table};
use weir_cli::failure::usage;
use weir_fs::Dir;
use weir_store::covered::Covered;
use weir_store::facts::{self, Newest};
use weir_store::hours::{Hours, times};
use weir_store::layout::minute;

use super::{LISTED_AGAIN, Locked, OF_A_HOST, names, partitions, rows};

/// The folder with what was imported, a file for each host.
const KEPT: &str = "imported";

/// The longest such file.
const KEPT_MAX: u64 = 16 << 20;

/// What to do where a recorder has not closed its segment.
const OPEN_HINT: &str = "import again when its recorder has closed it, as a rule an hour after it began, or import what `weir recorder export` \
                         writes now";

/// The longest record that is read. weir's own have a megabyte or two, and values of JSON may take a hundred times their bytes.
const RECORD_MAX: u64 = 8 << 20;

/// The most days that a source may have: each makes a folder and some files.
const DAYS_MAX: usize = 400;

/// What an import says of a host: the machine that has the name, the times that it has, and the newest facts.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    machine: Option<String>,
    covered: Covered,
    #[serde(default)]
    facts: Newest,
    /// The name of the files of the last import.
    #[serde(default)]
    last: Option<String>,
}

/// The file that says which import has begun. It goes when its host's file says the same.
const BEGUN: &str = "import.json";

/// An import that has begun.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    host: String,
    name: String,
    made: Vec<String>,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Table(&'static Table),
    Record,
}

/// The files of one host in one folder.
#[derive(Debug)]
pub struct Source {
    host: String,
    /// The folder that was named.
    named: PathBuf,
    /// Its place below that, reached without following a link.
    below: String,
    held: Held,
}

/// What a folder holds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Held {
    files: Vec<(String, Holds)>,
    /// When the oldest segment began that its recorder has not closed, s since 1970.
    open_since_s: Option<i64>,
}

impl Source {
    fn folder(&self) -> PathBuf {
        if self.below.is_empty() { self.named.clone() } else { self.named.join(&self.below) }
    }

    fn open(&self) -> io::Result<Dir> {
        let named = Dir::open(&self.named)?;
        if self.below.is_empty() { Ok(named) } else { named.subdir(&self.below) }
    }
}

/// What an import brought.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// Hosts with something new.
    pub hosts: usize,
    /// Rows that were written.
    pub rows: usize,
    /// Files that were read.
    pub files: usize,
    /// Files that could not be.
    pub damaged: usize,
}

/// What a file of a recorder's, or one that `weir fleet run` pulled, holds by its name.
fn holds(name: &str) -> Option<Holds> {
    if let Some(Name::Table { table, .. }) = Name::parse(name) {
        return Some(Holds::Table(table));
    }
    // Behind the id of a run: 20261125-120000-000-aaaa-.
    let called = name.get(25..).filter(|_| name.as_bytes()[24] == b'-').unwrap_or(name);
    match called.strip_suffix(".parquet") {
        Some(stem) => match Name::parse(called) {
            Some(Name::Table { table, .. }) => Some(Holds::Table(table)),
            _ => named(stem).map(Holds::Table),
        },
        None => (called.starts_with("record") && called.ends_with(".json")).then_some(Holds::Record),
    }
}

fn held(folder: &Dir) -> io::Result<Held> {
    let mut listed = names(folder)?;
    // A recorder that closes a segment meanwhile could show neither its journal nor all of its tables.
    for _ in 0..LISTED_AGAIN {
        let before = std::mem::replace(&mut listed, names(folder)?);
        if before == listed {
            break;
        }
    }
    Ok(held_of(listed))
}

/// While its journal is there, the tables of a segment may not be all that there will be.
fn held_of(names: Vec<String>) -> Held {
    let journal = |name: &String| match Name::parse(name) {
        Some(Name::Journal { begin_s }) => Some(begin_s),
        _ => None,
    };
    let open: BTreeSet<i64> = names.iter().filter_map(journal).collect();
    let is_open = |name: &str| {
        let begin_s = Name::parse(name).map(|name| name.begin_s());
        begin_s.is_some_and(|begin_s| open.contains(&begin_s))
    };
    let closed = names.into_iter().filter(|name| !is_open(name));
    let files = closed.filter_map(|name| holds(&name).map(|holds| (name, holds))).collect();
    Held { files, open_since_s: open.first().copied() }
}

/// Folders of recorders, and single files of theirs, of one host.
///
/// # Errors
/// Where one is not there, or is none.
pub fn sources(host: &str, paths: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(String::from);
    let mut all = Vec::new();
    for path in paths {
        let cannot = |error: io::Error| usage(format!("cannot read {}: {error}", path.display()), "");
        let (folder, held) = if std::fs::metadata(path).map_err(cannot)?.is_dir() {
            (path.as_path(), Dir::open(path).and_then(|folder| held(&folder)).map_err(cannot)?)
        } else {
            let folder =
                path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            (folder, held_of(name(path).into_iter().collect()))
        };
        if let (true, Some(since_s)) = (held.files.is_empty(), held.open_since_s) {
            return Err(usage(
                format!("{} holds only a segment that is open since {} UTC", path.display(), minute(since_s)),
                OPEN_HINT,
            ));
        }
        if held.files.is_empty() {
            return Err(usage(
                format!("{} holds nothing of weir recorder's", path.display()),
                "expected its archive, or files called TABLE.parquet from `weir recorder export`",
            ));
        }
        let (host, named) = (host.to_string(), folder.to_path_buf());
        all.push(Source { host, named, below: String::new(), held });
    }
    Ok(all)
}

/// All that `weir fleet run` pulled from hosts into a folder of results.
///
/// # Errors
/// Those of reading folders.
pub fn pulled(results: &Path) -> anyhow::Result<Vec<Source>> {
    let root = match Dir::open(results) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut all = Vec::new();
    partitions(&root, &mut |[kind, day, host], folder| {
        let are_keys = kind.starts_with("kind=") && day.starts_with("date=");
        let Some(name) = host.strip_prefix("host=").filter(|_| are_keys) else { return Ok(()) };
        let held = held(folder)?;
        if held != Held::default() {
            let below = format!("{kind}/{day}/{host}");
            all.push(Source { host: name.to_string(), named: results.to_path_buf(), below, held });
        }
        Ok(())
    })?;
    Ok(all)
}

impl Locked<'_> {
    /// Takes sources in, host by host.
    ///
    /// # Errors
    /// Where nothing can be written at all. A source that cannot be taken in is said, and the next one goes on.
    pub fn import(&self, sources: &[Source]) -> anyhow::Result<Imported> {
        let kept = self.archive.make(KEPT)?;
        let mut sum = Imported::default();
        for source in sources {
            if let Err(error) = self.source(source, &kept, &mut sum) {
                say!("{}: cannot be imported: {error:#}", source.folder().display());
                sum.damaged += source.held.files.len();
                self.undo_import()?;
            }
        }
        Ok(sum)
    }

    fn source(&self, source: &Source, kept: &Dir, sum: &mut Imported) -> anyhow::Result<()> {
        let folder = source.open()?;
        let read = |name: &str, table| rows(&folder, name, table, OF_A_HOST);
        let machine = source.held.files.iter().filter(|(_, holds)| *holds == Holds::Table(Event::TABLE));
        let machine = machine.filter_map(|(name, _)| machine_of(&read(name, Event::TABLE).ok()?)).next();
        let (host, mut known) = host(kept, &source.host, machine)?;
        let can_be = times(Timestamp::now().as_millisecond());
        let mut hours = Hours::new(&host, can_be.clone());
        let (mut times, mut files) = (Vec::new(), 0);
        for (name, holds) in &source.held.files {
            let taken = match holds {
                Holds::Record if known.covered.has(name, 0) => Ok(None),
                Holds::Record => match record(&folder, name, &host, &can_be) {
                    Ok(facts) => hours.take_facts(facts).map(|()| Ok(Some((name.as_str(), 0, 1))))?,
                    Err(why) => Err(why),
                },
                Holds::Table(table) => match read(name, table) {
                    Ok(batches) => {
                        let span = hours.take(&batches, &known.covered)?;
                        Ok(span.map(|(begin, end)| (table.name, begin, end)))
                    }
                    Err(why) => Err(why),
                },
            };
            match taken {
                Ok(taken) => {
                    files += 1;
                    // At once: two files of a source may overlap, too.
                    if let Some((of, begin, end)) = taken {
                        known.covered.add(of, begin, end);
                        times.push((of.to_string(), begin, end));
                    }
                }
                Err(why) => {
                    say!("{}: {why}", source.folder().join(name).display());
                    sum.damaged += 1;
                }
            }
        }
        if hours.left_out() > 0 {
            let left_out = hours.left_out();
            say!(
                "{}: {left_out} rows left out, whose counts are below zero, whose times cannot be, or whose names are too long",
                source.folder().display()
            );
        }
        if let Some(since_s) = source.held.open_since_s {
            let folder = source.folder();
            say!("{}: left out: the segment that is open since {} UTC", folder.display(), minute(since_s));
            say!("hint: {OPEN_HINT}");
        }
        sum.files += files;
        let (Some(begin), Some(end)) =
            (times.iter().map(|time| time.1).min(), times.iter().map(|time| time.2).max())
        else {
            return Ok(());
        };
        let name = file_name(&times, begin, end);
        hours.only_news(&mut known.facts);
        let written = hours.finish();
        let days: BTreeSet<i64> = written.iter().map(|(place, _)| place.day_s).collect();
        if days.len() > DAYS_MAX {
            anyhow::bail!("rows of {} days, {DAYS_MAX} at most: import fewer files at a time", days.len());
        }
        let root = self.archive.open()?;
        let made = written.iter().map(|(place, _)| format!("{}/{name}", place.folder())).collect();
        let begun = Begun { host: host.clone(), name: name.clone(), made };
        root.replace(BEGUN, 0o600, &serde_json::to_vec(&begun)?)?;
        for (place, batch) in &written {
            self.write(place, &name, batch)?;
        }
        known.last = Some(name);
        kept.replace(format!("{host}.json"), 0o600, &serde_json::to_vec(&known)?)?;
        root.remove_file(BEGUN)?;
        sum.rows += written.iter().map(|(_, batch)| batch.rows()).sum::<usize>();
        sum.hosts += usize::from(!written.is_empty());
        Ok(())
    }

    /// Removes what an import wrote that came to no end: the next one writes it again, perhaps with more and under another name.
    ///
    /// # Errors
    /// Those of reading and removing.
    pub(super) fn undo_import(&self) -> anyhow::Result<()> {
        let root = self.archive.open()?;
        let begun: Begun = match root.read(BEGUN, KEPT_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => serde_json::from_slice(&read?)?,
        };
        if known(&self.archive.make(KEPT)?, &begun.host)?.last != Some(begun.name) {
            begun.made.iter().try_for_each(|file| self.remove(file))?;
        }
        Ok(root.remove_file(BEGUN)?)
    }
}

/// The name is that of the times of all that was read.
fn file_name(times: &[(String, i64, i64)], begin_ms: i64, end_ms: i64) -> String {
    use sha2::Digest;
    let mut hash = sha2::Sha256::new();
    for (table, begin, end) in times {
        hash.update(format!("{table} {begin} {end}\n"));
    }
    let hash: String = hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{hash}.parquet", stamp(begin_ms.div_euclid(1000)), stamp(end_ms.div_euclid(1000)))
}

/// What is known of a host. Another machine of the same name is a host of its own, called by the beginning of its machine's mark, too.
fn host(kept: &Dir, name: &str, machine: Option<String>) -> anyhow::Result<(String, Known)> {
    let mut of_name = known(kept, name)?;
    let Some(machine) = machine else { return Ok((name.to_string(), of_name)) };
    if of_name.machine.as_ref().is_none_or(|other| *other == machine) {
        of_name.machine = Some(machine);
        return Ok((name.to_string(), of_name));
    }
    let name = format!("{name}~{}", machine.get(..6).unwrap_or(&machine));
    let mut of_machine = known(kept, &name)?;
    of_machine.machine = Some(machine);
    Ok((name, of_machine))
}

/// What imports before said of a host.
fn known(kept: &Dir, host: &str) -> anyhow::Result<Known> {
    match kept.read(format!("{host}.json"), KEPT_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Known::default()),
        read => Ok(serde_json::from_slice(&read?)?),
    }
}

/// The machine's mark, as the recorder says it at its start and in each segment.
fn machine_of(batches: &[Batch]) -> Option<String> {
    let events = batches.iter().flat_map(Event::all);
    let that_say = events.filter(|event| matches!(event.kind.as_str(), "start" | "facts"));
    let mut marks = that_say.filter_map(|event| {
        let detail = facts::detail(&event)?;
        let mark = detail["machine"].as_str()?.to_string();
        let plain = (6..=64).contains(&mark.len()) && mark.bytes().all(|byte| byte.is_ascii_hexdigit());
        plain.then_some(mark)
    });
    marks.next()
}

fn record(
    folder: &Dir,
    name: &str,
    host: &str,
    can_be: &RangeInclusive<i64>,
) -> Result<Vec<weir_store::tables::Fact>, String> {
    let bytes = folder.read(name, RECORD_MAX).map_err(|error| error.to_string())?;
    let record: Value = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
    let started = record["started_at"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
    let started = started.ok_or("no record of weir's: it does not say when it started")?;
    if !can_be.contains(&started.as_millisecond()) {
        return Err(format!("it started at {started}, which cannot be"));
    }
    Ok(facts::of_record(host, started.as_second(), &record))
}

#[cfg(test)]
mod tests {
    use weir_archive::tables::{Stage, Sync};

    use super::*;

    #[test]
    fn what_a_recorder_has_not_closed_is_not_held() {
        let name = |text: &str| text.to_string();
        let [whole, partly] = [("02", "03"), ("03", "04")]
            .map(|(from, to)| format!("stages-20261125T{from}1000Z-20261125T{to}1000Z.parquet"));
        let journal = name("open-20261125T031000Z.journal");
        let table = Holds::Table(Stage::TABLE);
        for (names, files, open_since_s) in [
            (vec![whole.clone()], vec![whole.clone()], None),
            (vec![journal.clone(), partly.clone(), whole.clone()], vec![whole], Some(1_795_576_200)),
            (vec![journal, partly], vec![], Some(1_795_576_200)),
        ] {
            let files = files.into_iter().map(|name| (name, table)).collect();
            assert_eq!(held_of(names), Held { files, open_since_s });
        }
    }

    #[test]
    fn names_say_what_a_file_holds() {
        for (name, expected) in [
            ("stages-20261125T031000Z-20261125T041000Z.parquet", Some(Holds::Table(Stage::TABLE))),
            (
                "20261125-120000-000-aaaa-stages-20261125T031000Z-20261125T041000Z.parquet",
                Some(Holds::Table(Stage::TABLE)),
            ),
            ("20261125-120000-000-aaaa-syncs.parquet", Some(Holds::Table(Sync::TABLE))),
            ("syncs.parquet", Some(Holds::Table(Sync::TABLE))),
            ("20261125-120000-000-aaaa-record.json", Some(Holds::Record)),
            ("20261125-120000-000-aaaa-record-2.json", Some(Holds::Record)),
            ("20261125-120000-000-aaaa-stdout.json", None),
            ("20261125-120000-000-aaaa-other.parquet", None),
            ("open-20261125T031000Z.journal", None),
            ("", None),
        ] {
            assert_eq!(holds(name), expected, "{name}");
        }
    }
}
