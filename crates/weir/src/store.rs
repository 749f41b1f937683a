//! The store of records: one JSON file a run in a folder under the XDG state home, written beside and renamed into
//! place, so that a kill at any moment leaves either the whole record or none.

use std::env;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use weir_core::result;
use weir_core::result::record::{SCHEMA, WithExtra};
use weir_core::stats::claims;
use weir_core::units::Bytes;
use weir_fs::Dir;
use weir_record::Record;

use crate::failure::{Lacking, Usage};

/// Ending of the file beside a record to which a guard adds its history.
pub const SECONDS: &str = "seconds";
/// Permission bits of records, less the umask's.
const MODE: u32 = 0o644;
/// The longest record, or what a guard has added to one, that is read: a guard adds 32 MiB at most, and other records have a few.
/// Values of JSON may take a hundred times their bytes.
const LONGEST: Bytes = Bytes(64 << 20);

/// Memory for the histograms of a record, beyond which it is none that weir wrote.
const HISTOGRAMS_MAX_BYTES: u64 = 4 << 30;

/// Of a name that leads to no record.
const WHAT_THERE_IS: &str = "`weir results list` shows the runs; else name the file of a record";

/// What the store keeps: a record, in one of the forms that have it.
pub trait Stored: Serialize {
    /// Its name in the store.
    fn id(&self) -> &str;
}

impl Stored for result::Record {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Stored for Record {
    fn id(&self) -> &str {
        &self.head.id
    }
}

impl<E: Serialize> Stored for WithExtra<'_, E> {
    fn id(&self) -> &str {
        WithExtra::id(self)
    }
}

/// A folder of records. Root may keep its records in a folder of a user's, so all is done from the open folder.
pub struct Store {
    /// Its path, for messages and names.
    pub dir: PathBuf,
    folder: Dir,
}

/// One file of the store.
pub struct Entry {
    /// Name of the record: the file's name without `.json`.
    pub id: String,
    /// What is in it, or why it cannot be read.
    pub record: Result<Record, String>,
}

impl Store {
    /// The store in `$WEIR_STORE`, else `$XDG_STATE_HOME/weir/runs`, else `~/.local/state/weir/runs`. Makes the
    /// folder, and removes what writers that were killed have left behind.
    pub fn open() -> anyhow::Result<Store> {
        Store::at(default_dir()?)
    }

    /// The store in a given folder.
    pub fn at(dir: PathBuf) -> anyhow::Result<Store> {
        let folder = create_owned(&dir).map_err(|error| Lacking {
            what: format!("cannot make the store of runs {}: {error}", dir.display()),
            hint: Some("set WEIR_STORE to a folder you may write to".to_string()),
        })?;
        folder.remove_leftovers();
        Ok(Store { dir, folder })
    }

    /// Where the record of that name lies, or will.
    pub fn path_of(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// Saves a record durably and returns its path. A record of the same name is replaced as a whole.
    pub fn save(&self, record: &impl Stored) -> anyhow::Result<PathBuf> {
        let path = self.path_of(record.id());
        let text = serde_json::to_vec(record).context("cannot write the record as JSON")?;
        self.write(&path, &text).map_err(|error| Lacking {
            what: format!("cannot save the record {}: {error}", path.display()),
            hint: Some("set WEIR_STORE to a folder with room that you may write to".to_string()),
        })?;
        Ok(path)
    }

    fn write(&self, path: &Path, text: &[u8]) -> io::Result<()> {
        let mut fresh = self.folder.beside(name_of(path)?, MODE)?;
        fresh.write_all(text)?;
        own_like(fresh.file(), &self.folder);
        fresh.commit()
    }

    /// Makes a file of the store that is not there yet, to be written from its start.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        let file = self.folder.create_new(name_of(path)?, MODE)?;
        own_like(&file, &self.folder);
        Ok(file)
    }

    /// Removes a file of the store.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        self.folder.remove_file(name_of(path)?)
    }

    /// Reads a file: of the store, or of any other place that the user named.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path.parent() == Some(self.dir.as_path()) {
            return self.folder.read(name_of(path)?, LONGEST.0).map_err(too_long);
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(LONGEST.0 + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST.0 {
            return Err(too_long(io::ErrorKind::FileTooLarge.into()));
        }
        Ok(bytes)
    }

    /// Reads what a guard has added to a record. Nobody named that file, so it leads nowhere else and is waited for by nobody.
    fn read_additions(&self, path: &Path) -> io::Result<Vec<u8>> {
        let folder = Dir::open(path.parent().unwrap_or(Path::new("")))?;
        folder.read(name_of(&path.with_extension(SECONDS))?, LONGEST.0)
    }

    /// Reads a record. Refuses one that a newer weir wrote in another schema.
    pub fn load(&self, path: &Path) -> anyhow::Result<Record> {
        let text = self.read(path).map_err(|error| Lacking {
            what: format!("cannot read the record {}: {error}", path.display()),
            hint: Some(WHAT_THERE_IS.to_string()),
        })?;
        self.decode(&text, path)
    }

    /// Reads a record that is acted on, not only shown: root or the caller alone can have written it and put it there.
    pub fn load_trusted(&self, path: &Path) -> anyhow::Result<Record> {
        let read = || {
            let folder =
                Dir::open(path.parent().filter(|at| !at.as_os_str().is_empty()).unwrap_or(Path::new(".")))?;
            folder.check_trusted()?;
            folder.read_trusted(name_of(path)?, LONGEST.0).map_err(too_long)
        };
        let text = read().map_err(|error| {
            let hint = (error.kind() == io::ErrorKind::PermissionDenied).then(|| {
                "a record is acted on only where no other account can write it or its folder".to_string()
            });
            Lacking { what: format!("cannot act on the record {}: {error}", path.display()), hint }
        })?;
        self.decode(&text, path)
    }

    fn decode(&self, text: &[u8], path: &Path) -> anyhow::Result<Record> {
        self.parse(text, path).map_err(|why| {
            let what = format!("cannot use the record {}: {why}", path.display());
            Lacking { what, hint: Some(WHAT_THERE_IS.to_string()) }.into()
        })
    }

    /// Whether the record of that name is of this kind and was cut short. Nothing else of it is decoded.
    pub fn is_open(&self, id: &str, kind: &str) -> bool {
        #[derive(serde::Deserialize)]
        struct Ending {
            kind: String,
            ended_early: Option<String>,
        }
        let text = self.read(&self.path_of(id)).ok();
        let ending: Option<Ending> = text.and_then(|text| serde_json::from_slice(&text).ok());
        ending.is_some_and(|ending| ending.kind == kind && ending.ended_early.is_some())
    }

    /// The record of that name, or why it cannot be read.
    pub fn entry(&self, id: String) -> Entry {
        let path = self.path_of(&id);
        let text = self.read(&path).map_err(|error| error.to_string());
        let record = text.and_then(|text| self.parse(&text, &path));
        Entry { id, record }
    }

    /// Finds the record that somebody means: the beginning of its name, its last four digits, `last`, `last~N` (N
    /// runs before the last), or the path of a file. A name that fits no run may be that of a file here.
    pub fn resolve(&self, text: &str) -> anyhow::Result<PathBuf> {
        if text.contains('/') || text.ends_with(".json") {
            return Ok(PathBuf::from(text));
        }
        let ids = self.ids()?;
        let found: Vec<&String> = match back(text) {
            Some(back) => ids.iter().rev().skip(back).take(1).collect(),
            None => ids.iter().filter(|id| id.starts_with(text) || is_suffix(id, text)).collect(),
        };
        match found[..] {
            [id] => Ok(self.path_of(id)),
            [] if Path::new(text).is_file() => Ok(PathBuf::from(text)),
            [] => Err(Usage {
                what: format!("no run `{text}` among the {} in {}", ids.len(), self.dir.display()),
                hint: Some(WHAT_THERE_IS.to_string()),
            }
            .into()),
            _ => Err(Usage {
                what: format!("`{text}` fits {} runs", found.len()),
                hint: Some(format!("they begin with {} and end with {}", found[0], found[found.len() - 1])),
            }
            .into()),
        }
    }

    /// Names in order of time.
    pub fn ids(&self) -> anyhow::Result<Vec<String>> {
        let mut ids: Vec<String> = self
            .names()
            .with_context(|| format!("cannot list the store {}", self.dir.display()))?
            .into_iter()
            .filter(|name| !name.starts_with('.'))
            .filter_map(|name| name.strip_suffix(".json").map(String::from))
            .collect();
        ids.sort();
        Ok(ids)
    }

    /// Names of all files of the store.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for name in self.folder.names()? {
            names.extend(name?.into_string());
        }
        Ok(names)
    }

    fn parse(&self, text: &[u8], path: &Path) -> Result<Record, String> {
        #[derive(serde::Deserialize)]
        struct Version {
            schema: String,
        }
        let version: Version =
            serde_json::from_slice(text).map_err(|error| format!("not a record: {error}"))?;
        if version.schema != SCHEMA {
            return Err(format!("its schema is {}, this weir reads {SCHEMA}", version.schema));
        }
        let claims = claims::histogram_bytes(text).map_err(|error| format!("damaged: {error}"))?;
        if claims > HISTOGRAMS_MAX_BYTES {
            return Err(format!("damaged: its histograms would take {}", Bytes(claims)));
        }
        let damaged = |error: serde_json::Error| format!("damaged: {error}");
        let head: result::Record = serde_json::from_slice(text).map_err(damaged)?;
        let additions = self.read_additions(path).ok();
        Record::decode(head, additions.as_deref()).map_err(damaged)
    }
}

/// Names of the runs in the store, in order of time, for a shell to offer. Makes nothing, and finds none where there is no
/// store.
pub fn ids_to_offer() -> Vec<String> {
    let Ok(dir) = default_dir() else { return Vec::new() };
    let names = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let of_record =
        |name: String| name.strip_suffix(".json").filter(|id| !id.starts_with('.')).map(String::from);
    let mut ids: Vec<String> = names.filter_map(of_record).collect();
    ids.sort();
    ids
}

fn default_dir() -> anyhow::Result<PathBuf> {
    if let Some(dir) = set("WEIR_STORE") {
        return Ok(dir);
    }
    let lacking = || Lacking {
        what: "nowhere to keep runs: neither WEIR_STORE, XDG_STATE_HOME nor HOME is set".to_string(),
        hint: Some("set WEIR_STORE to a folder you may write to".to_string()),
    };
    Ok(state_dir().ok_or_else(lacking)?.join("runs"))
}

fn set(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where weir keeps what is a user's own.
pub fn state_dir() -> Option<PathBuf> {
    // The XDG specification has relative paths ignored.
    let state = set("XDG_STATE_HOME").filter(|dir| dir.is_absolute());
    let state = state.or_else(|| set("HOME").map(|home| home.join(".local/state")));
    Some(state?.join("weir"))
}

/// Opens a folder, and makes it and its parents where they are missing, owned by whoever owns the first folder above
/// that was there: root measuring from a user's home leaves the user records that the user can remove.
fn create_owned(path: &Path) -> io::Result<Dir> {
    Dir::open_or_make(path, 0o777, own_like)
}

/// Gives an open file or folder to the owner of a folder. Only root can and needs to; a failure changes nothing that
/// matters.
fn own_like(what: &(impl AsFd + Owned), folder: &Dir) {
    if let (Ok(mine), Ok(owner)) = (what.data(), folder.metadata())
        && mine.uid() != owner.uid()
    {
        let _ = fchown(what, Some(owner.uid()), Some(owner.gid()));
    }
}

trait Owned {
    fn data(&self) -> io::Result<Metadata>;
}

impl Owned for File {
    fn data(&self) -> io::Result<Metadata> {
        self.metadata()
    }
}

impl Owned for Dir {
    fn data(&self) -> io::Result<Metadata> {
        self.metadata()
    }
}

/// An error of reading, in words where the file is too long.
fn too_long(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::FileTooLarge => {
            let what = format!("it is longer than {LONGEST}, and no record of weir's is");
            io::Error::new(error.kind(), what)
        }
        _ => error,
    }
}

/// The last part of a path.
fn name_of(path: &Path) -> io::Result<&OsStr> {
    path.file_name().ok_or_else(|| io::Error::other("it names no file"))
}

/// `last` is 0 back, `last~2` is 2.
fn back(text: &str) -> Option<usize> {
    match text.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

fn is_suffix(id: &str, text: &str) -> bool {
    id.rsplit_once('-').is_some_and(|(_, suffix)| suffix == text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use weir_record::Body;

    use super::*;

    fn record(id: &str) -> result::Record {
        result::Record {
            schema: SCHEMA.to_string(),
            id: id.to_string(),
            weir_version: "0.1.0".to_string(),
            command: vec!["weir".to_string()],
            kind: "bench".to_string(),
            started_at: "2026-11-21T08:00:00Z".to_string(),
            conditions: serde_json::Value::Null,
            jobs: Vec::new(),
            floods: Vec::new(),
            notes: Vec::new(),
            ended_early: None,
            extra: serde_json::Value::Null,
        }
    }

    fn store_with(ids: &[&str]) -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path().join("weir/runs")).unwrap();
        ids.iter().for_each(|id| assert!(store.save(&record(id)).unwrap().exists()));
        (dir, store)
    }

    #[test]
    fn finds_what_is_meant() {
        let (_dir, store) = store_with(&["20261120-1-aaaa", "20261121-2-bbbb", "20261121-3-cccc"]);
        for (text, expected) in [
            ("last", Ok("20261121-3-cccc")),
            ("last~1", Ok("20261121-2-bbbb")),
            ("last~3", Err("no run `last~3` among the 3")),
            ("20261120", Ok("20261120-1-aaaa")),
            ("bbbb", Ok("20261121-2-bbbb")),
            ("20261121", Err("fits 2 runs")),
            ("lasting", Err("no run")),
        ] {
            match (store.resolve(text), expected) {
                (Ok(path), Ok(id)) => assert_eq!(store.load(&path).unwrap().head.id, id, "{text}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{text}: {error}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        assert_eq!(store.resolve("/x/y.json").unwrap(), PathBuf::from("/x/y.json"));
    }

    #[test]
    fn what_is_no_record_is_refused_by_its_own_name_with_a_hint() {
        let (_dir, store) = store_with(&["20261120-1-aaaa"]);
        // Tests run in the folder of their crate.
        for (name, why) in [
            ("Cargo.toml", "cannot use the record Cargo.toml: not a record"),
            ("/etc/passwd", "cannot use the record /etc/passwd: not a record"),
            ("/", "cannot read the record /: "),
            ("/nonexist", "cannot read the record /nonexist: "),
        ] {
            let error = store.load(&store.resolve(name).unwrap()).unwrap_err();
            assert!(format!("{error:#}").starts_with(why), "{error:#}");
            assert_eq!(weir_cli::failure::hint_of(&error).as_deref(), Some(WHAT_THERE_IS), "{name}");
        }
    }

    #[test]
    fn a_record_that_would_fill_the_memory_is_refused() {
        let (_dir, store) = store_with(&[]);
        let wide =
            r#"{"precision_bits":10,"count":2,"sum_ns":1,"min_ns":0,"max_ns":9,"buckets":[[0,1],[56000,1]]}"#;
        let mut whole = serde_json::to_value(record("1-aaaa")).unwrap();
        whole["extra"] = serde_json::Value::Array(vec![serde_json::from_str(wide).unwrap(); 20_000]);
        let path = store.path_of("1-aaaa");
        fs::write(&path, serde_json::to_vec(&whole).unwrap()).unwrap();
        let why = store.load(&path).unwrap_err().to_string();
        assert!(why.contains("its histograms would take"), "{why}");
    }

    #[test]
    fn what_a_guard_added_is_read_from_a_file_and_nothing_else() {
        let (dir, store) = store_with(&[]);
        let mut whole = record("1-aaaa");
        whole.kind = weir_control::history::KIND.to_string();
        whole.extra = serde_json::json!({
            "schema": weir_control::history::SCHEMA, "target": weir_control::Target::default(), "protect": "all", "devices": [], "decisions": [],
        });
        let named = dir.path().join("named.json");
        fs::write(&named, serde_json::to_vec(&whole).unwrap()).unwrap();
        let load = || {
            let Body::Guard(history) = store.load(&named).unwrap().body else { panic!("it is a guard's") };
            history.left_out
        };
        let (beside, elsewhere) = (named.with_extension(SECONDS), dir.path().join("elsewhere"));
        fs::write(&elsewhere, "{\"decisions\":{\"decisions\":[],\"left_out\":7}}\n").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &beside).unwrap();
        assert_eq!(load(), 0, "a link");
        fs::remove_file(&beside).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&beside).status().unwrap().success());
        assert_eq!(load(), 0, "a pipe that nobody writes to");
        fs::rename(&elsewhere, &beside).unwrap();
        assert_eq!(load(), 7);
    }

    #[test]
    fn leftovers_of_the_dead_go_and_unreadable_records_stay_visible() {
        let (_dir, store) = store_with(&["1-aaaa"]);
        let random = "0123456789abcdef0123456789abcdef";
        let dead = store.dir.join(format!(".2-bbbb.json.4194305.{random}.tmp"));
        let alive = store.dir.join(format!(".3-cccc.json.{}.{random}.tmp", std::process::id()));
        for file in [&dead, &alive] {
            fs::write(file, "{\"schema\":").unwrap();
        }
        fs::write(store.path_of("4-dddd"), "{\"schema\":\"weir.record/1\"").unwrap();
        fs::write(store.path_of("5-eeee"), "{\"schema\":\"weir.record/9\",\"new\":1}").unwrap();
        let store = Store::at(store.dir).unwrap();
        assert!(!dead.exists() && alive.exists());
        let entries = store.ids().unwrap().into_iter().map(|id| store.entry(id));
        let listed: Vec<(String, String)> =
            entries.map(|e| (e.id, e.record.map_or_else(|why| why, |r| r.head.kind))).collect();
        assert_eq!(listed[0], ("1-aaaa".into(), "bench".into()));
        assert!(listed[1].1.contains("not a record"), "{listed:?}");
        assert!(listed[2].1.contains("weir.record/9"), "{listed:?}");
        assert_eq!(listed.len(), 3);
    }

    /// In a child of the test below: saves records until it is killed.
    fn save_forever(dir: PathBuf) {
        let store = Store::at(dir).unwrap();
        let mut long = record("");
        long.command = vec!["x".repeat(1 << 20)];
        for n in 0.. {
            long.id = format!("{:04}-{n:06}", std::process::id());
            store.save(&long).unwrap();
        }
    }

    #[test]
    fn a_kill_at_any_moment_leaves_whole_records() {
        const CHILD: &str = "WEIR_TEST_SAVES_FOREVER_IN";
        if let Some(dir) = env::var_os(CHILD) {
            return save_forever(dir.into());
        }
        let (_dir, store) = store_with(&[]);
        let mut saved = 0;
        for delay_ms in [20, 35, 50, 65, 80, 95, 110, 125] {
            let mut child = std::process::Command::new(env::current_exe().unwrap())
                .args(["--exact", "store::tests::a_kill_at_any_moment_leaves_whole_records"])
                .env(CHILD, &store.dir)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            // The first record shows that it is at work; the delay after it picks the moment.
            while store.ids().unwrap().len() == saved {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            std::thread::sleep(std::time::Duration::from_millis(delay_ms));
            child.kill().unwrap();
            child.wait().unwrap();
            let store = Store::at(store.dir.clone()).unwrap();
            saved = store.ids().unwrap().len();
            let entries = store.ids().unwrap().into_iter().map(|id| store.entry(id));
            let damaged = entries.filter_map(|e| e.record.err());
            assert_eq!(damaged.collect::<Vec<_>>(), Vec::<String>::new());
            assert_eq!(store.names().unwrap().len(), saved, "leftovers: {:?}", store.names());
        }
    }

    #[test]
    fn a_record_longer_than_weir_writes_is_refused_with_the_bound() {
        let (_dir, store) = store_with(&["1-aaaa"]);
        let path = store.path_of("1-aaaa");
        for path in [path.clone(), path.with_file_name("../elsewhere.json")] {
            let file = File::create(&path).unwrap();
            file.set_len(65 << 20).unwrap();
            let why = format!("{:#}", store.load(&path).unwrap_err());
            assert!(why.contains("64 MiB"), "{why}");
        }
    }
}
