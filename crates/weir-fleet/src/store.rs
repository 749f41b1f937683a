//! Where results lie: `kind=KIND/date=DATE/host=HOST/` in a folder of the user's, as tools for tables read partitions; and
//! `runs/ID.json`, one summary for each run. No name in it is chosen by a host.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use weir_fs::{Access, Dir, Fresh};

use crate::report::Report;
use weir_cli::failure::{lacking, usage};

/// The longest summary that is read.
const LONGEST_BYTES: u64 = 256 << 20;

/// Folder for summaries.
const RUNS: &str = "runs";

/// The folder of results.
pub struct Store {
    root: PathBuf,
}

/// The kind of results that a command leaves: its name, with the one below it where commands of that name do different things.
pub fn kind(command: &[String]) -> String {
    let plain = |word: &&String| {
        word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-') && word.len() < 20
    };
    let first = command.first().filter(plain).map_or("other", String::as_str);
    let has_more = ["db", "guard", "knobs", "recorder", "results", "trace", "tune"].contains(&first);
    match command.get(1).filter(plain).filter(|_| has_more) {
        Some(second) => format!("{first}-{second}"),
        None => first.to_string(),
    }
}

impl Store {
    /// In the folder that was named, in `$WEIR_FLEET`, or in the user's folder for state.
    ///
    /// # Errors
    /// Where none of them is known.
    pub fn new(named: Option<&Path>) -> anyhow::Result<Store> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let state = || {
            set("XDG_STATE_HOME")
                .filter(|dir| dir.is_absolute())
                .or_else(|| Some(set("HOME")?.join(".local/state")))
        };
        let root = named
            .map(Path::to_path_buf)
            .or_else(|| set("WEIR_FLEET"))
            .or_else(|| Some(state()?.join("weir/fleet")));
        let root = root.ok_or_else(|| {
            lacking(
                "nowhere to keep results: neither WEIR_FLEET, XDG_STATE_HOME nor HOME is set",
                "name a folder with --into",
            )
        })?;
        Ok(Store { root })
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the files of a host go.
    pub fn shelf(&self, kind: &str, date: &str, host: &str, id: &str) -> Shelf {
        Shelf {
            root: self.root.clone(),
            below: format!("kind={kind}/date={date}/host={host}"),
            id: id.to_string(),
            files: Vec::new(),
        }
    }

    /// Keeps the summary of a run. Returns its path.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn save(&self, report: &Report) -> anyhow::Result<PathBuf> {
        let path = self.root.join(RUNS).join(format!("{}.json", report.id));
        let text = serde_json::to_vec_pretty(report)?;
        let saved = folder(&self.root, RUNS)
            .and_then(|folder| folder.replace(format!("{}.json", report.id), 0o600, &text));
        saved.map_err(|error| {
            lacking(format!("cannot save {}: {error}", path.display()), "name a folder with --into")
        })?;
        Ok(path)
    }

    /// The summary that is meant: `last`, or the beginning or end of its name; and only of these kinds, where there are any.
    ///
    /// # Errors
    /// Where there is none, or several.
    pub fn load(&self, meant: &str, with: impl Fn(&Report) -> bool) -> anyhow::Result<Report> {
        let folder = self.root.join(RUNS);
        let nothing = || {
            usage(
                format!("no run `{meant}` in {}", folder.display()),
                "`weir fleet run` makes one; --into names another folder",
            )
        };
        let dir = Dir::open(&self.root).and_then(|root| root.subdir(RUNS)).map_err(|_| nothing())?;
        let mut ids = Vec::new();
        for name in dir.names()? {
            ids.extend(
                name?.into_string().ok().and_then(|name| name.strip_suffix(".json").map(String::from)),
            );
        }
        ids.sort();
        let read = |id: &str| -> anyhow::Result<Report> {
            let bytes = dir.read(format!("{id}.json"), LONGEST_BYTES)?;
            serde_json::from_slice(&bytes)
                .map_err(|error| lacking(format!("{id}.json is damaged: {error}"), ""))
        };
        if meant == "last" {
            // A run of another kind since then does not hide it.
            let other = || {
                usage(
                    format!("none of the {} runs in {} has what is asked for", ids.len(), folder.display()),
                    "`weir fleet show` shows the last one, and why its hosts failed if they did",
                )
            };
            let mut runs = ids.iter().rev().filter_map(|id| read(id).ok());
            return runs.find(with).ok_or_else(|| if ids.is_empty() { nothing() } else { other() });
        }
        let fits: Vec<&String> =
            ids.iter().filter(|id| id.starts_with(meant) || id.rsplit('-').next() == Some(meant)).collect();
        match fits[..] {
            [id] => read(id),
            [] => Err(nothing()),
            _ => Err(usage(format!("`{meant}` fits {} runs", fits.len()), "name more of it")),
        }
    }
}

/// A folder below that of results, which is for the user's eyes as what hosts hold is. The folder of results itself was named, and
/// may lie in one of another account; no link of that account's leads further.
pub fn folder(results: &Path, below: &str) -> io::Result<Dir> {
    let made = |_: &Dir, _: &Dir| {};
    Dir::open_or_make(results, 0o700, made)?.make_below(Path::new(below), 0o700, made)
}

/// The files of one host.
pub struct Shelf {
    root: PathBuf,
    below: String,
    id: String,
    files: Vec<String>,
}

impl Shelf {
    /// A new file for what a host calls so; its name here is the run's, and of the host's only what is a plain name.
    ///
    /// # Errors
    /// Where the name is none, or the file cannot be made.
    pub fn place(&mut self, called: &str) -> Result<Fresh, String> {
        let plain = called.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        if !plain || called.is_empty() || called.starts_with('.') || called.len() > 100 {
            return Err(format!("it calls a file {}", crate::session::short(called)));
        }
        let mut name = if called == "record" {
            format!("{}-record.json", self.id)
        } else {
            format!("{}-{called}", self.id)
        };
        let mut nth = 1;
        while self.files.iter().any(|file| file.ends_with(&format!("/{name}"))) {
            nth += 1;
            name = if called == "record" {
                format!("{}-record-{nth}.json", self.id)
            } else {
                format!("{}-{nth}-{called}", self.id)
            };
        }
        let fresh = folder(&self.root, &self.below).and_then(|folder| folder.beside(&name, 0o600));
        let fresh =
            fresh.map_err(|error| format!("cannot write {name} below {}: {error}", self.root.display()))?;
        self.files.push(format!("{}/{name}", self.below));
        Ok(fresh)
    }

    /// Keeps a text.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn keep(&mut self, called: &str, text: &str) -> Result<(), String> {
        let mut fresh = self.place(called)?;
        fresh
            .write_all(text.as_bytes())
            .and_then(|()| fresh.commit_unsynced())
            .map_err(|error| format!("cannot write {called}: {error}"))
    }

    /// The paths below the folder of results, of files that came as a whole.
    pub fn files(self) -> Vec<String> {
        let Shelf { root, files, .. } = self;
        let Ok(root) = Dir::open(&root) else { return Vec::new() };
        files.into_iter().filter(|file| root.open_file(file, Access::Read).is_ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another account's, where the folder lies in one of that account's: it decides where the folder is, and no more.
    #[test]
    fn a_link_below_the_folder_is_not_followed() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let way = tempfile::tempdir().unwrap().path().join("way");
        std::fs::create_dir_all(way.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(folder.path(), &way).unwrap();
        let parts = ["kind=doctor", "date=2026-11-25", "host=db1"];
        for linked in 0..=parts.len() {
            let above = folder.path().join(parts[..linked].join("/"));
            std::fs::create_dir_all(&above).unwrap();
            let link = parts.get(linked).map(|part| above.join(part));
            link.iter().for_each(|link| std::os::unix::fs::symlink(other.path(), link).unwrap());
            let store = Store::new(Some(&way)).unwrap();
            let mut shelf = store.shelf("doctor", "2026-11-25", "db1", "20261125-1-aaaa");
            assert_eq!(shelf.keep("record", "{}").is_err(), link.is_some(), "{linked}");
            link.iter().for_each(|link| std::fs::remove_file(link).unwrap());
        }
        assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
        std::fs::remove_dir_all(way.parent().unwrap()).unwrap();
    }

    #[test]
    fn a_host_chooses_no_path() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Some(folder.path())).unwrap();
        let mut shelf = store.shelf("doctor", "2026-11-25", "db1", "20261125-1-aaaa");
        for bad in ["../x", "a/b", "", ".hidden", "a b", "a\u{1b}", "..", &"x".repeat(101)] {
            assert!(shelf.place(bad).is_err(), "{bad}");
        }
        for _ in 0..2 {
            shelf.keep("record", "{}").unwrap();
            shelf.place("a.csv").unwrap().commit_unsynced().unwrap();
        }
        shelf.keep("stdout.txt", "x").unwrap();
        drop(shelf.place("cut.csv").unwrap());
        let files = shelf.files();
        let below = "kind=doctor/date=2026-11-25/host=db1/20261125-1-aaaa";
        assert_eq!(
            files,
            ["-record.json", "-a.csv", "-record-2.json", "-2-a.csv", "-stdout.txt"]
                .map(|end| format!("{below}{end}"))
        );
        assert!(files.iter().all(|file| folder.path().join(file).is_file()));
    }

    #[test]
    fn kinds_are_names_of_commands() {
        let kind =
            |words: &[&str]| super::kind(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>());
        assert_eq!(kind(&["doctor", "--quick", "/x"]), "doctor");
        assert_eq!(kind(&["trace", "fsync"]), "trace-fsync");
        assert_eq!(kind(&["knobs", "apply", "x=1"]), "knobs-apply");
        assert_eq!(kind(&["../x"]), "other");
        assert_eq!(kind(&["tune", "../x"]), "tune");
    }
}
