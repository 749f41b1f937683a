//! What lies in a sandbox's folder.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Flavour, SandboxError};

const IDENTITY: &str = "weir-sandbox.json";
const DATA: &str = "data";
const TEMPORARY: &str = "tmp";
const LOG: &str = "server.log";
const CONFIGURATION: &str = "server.conf";
const LOCK: &str = "lock";

/// Everything that a sandbox puts into its folder; nothing else in it is ever removed.
pub(super) const NAMES: [&str; 7] =
    [DATA, TEMPORARY, LOG, CONFIGURATION, LOCK, "weir-sandbox.json.new", IDENTITY];

/// Says that a folder is a sandbox, whose data lie in it, and whether they are whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub schema: String,
    pub flavour: Flavour,
    /// What the server that made the data calls itself.
    pub version: String,
    /// The data directory has been made.
    pub initialised: bool,
}

/// Value of [`Identity::schema`].
pub(super) const SCHEMA: &str = "weir.sandbox/1";

/// The paths in a sandbox's folder.
#[derive(Debug, Clone)]
pub(super) struct Layout(PathBuf);

impl Layout {
    pub fn of(dir: &Path) -> Layout {
        Layout(dir.to_path_buf())
    }

    pub fn dir(&self) -> &Path {
        &self.0
    }

    pub fn data(&self) -> PathBuf {
        self.0.join(DATA)
    }

    pub fn temporary(&self) -> PathBuf {
        self.0.join(TEMPORARY)
    }

    pub fn log(&self) -> PathBuf {
        self.0.join(LOG)
    }

    pub fn configuration(&self) -> PathBuf {
        self.0.join(CONFIGURATION)
    }

    pub fn lock(&self) -> PathBuf {
        self.0.join(LOCK)
    }

    pub fn identity(&self) -> Option<Identity> {
        weir_core::json::parse(&fs::read_to_string(self.0.join(IDENTITY)).ok()?).ok()
    }

    pub fn write_identity(&self, identity: &Identity) -> Result<(), SandboxError> {
        let path = self.0.join(IDENTITY);
        let beside = self.0.join(NAMES[5]);
        let text = serde_json::to_string_pretty(identity).unwrap_or_default();
        fs::write(&beside, text)
            .and_then(|()| fs::rename(&beside, &path))
            .map_err(SandboxError::io("write", &path))
    }
}

/// Whether weir made it.
pub(super) fn is_sandbox(dir: &Path) -> bool {
    Layout::of(dir).identity().is_some()
}

/// Removes what a sandbox put into its folder, and the folder itself where it was made for it.
pub(super) fn remove(dir: &Path, made_dir: bool) {
    let mut problems = Vec::new();
    for name in NAMES {
        let path = dir.join(name);
        let removed = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&path),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        problems.extend(removed.err().filter(|error| error.kind() != io::ErrorKind::NotFound));
    }
    if made_dir {
        problems.extend(fs::remove_dir(dir).err().filter(|error| error.kind() != io::ErrorKind::NotFound));
    }
    for problem in problems {
        // Not eprintln: it panics when nobody reads, and this may run while a panic unwinds.
        let line = format!("weir: could not remove all of {}: {problem}\n", dir.display());
        let _ = io::Write::write_all(&mut io::stderr(), line.as_bytes());
    }
}

/// Copies a data directory, owners and modes included; holes stay holes where the file system shares blocks.
pub(super) fn copy_tree(from: &Path, to: &Path, stopped: &dyn Fn() -> bool) -> Result<(), SandboxError> {
    fs::create_dir_all(to).map_err(SandboxError::io("create", to))?;
    for entry in fs::read_dir(from).map_err(SandboxError::io("read", from))? {
        let source = entry.map_err(SandboxError::io("read", from))?.path();
        let Some(name) = source.file_name() else { continue };
        let target = to.join(name);
        let found = fs::symlink_metadata(&source).map_err(SandboxError::io("read", &source))?;
        if stopped() {
            return Err(SandboxError::Stopped);
        }
        if found.is_dir() {
            copy_tree(&source, &target, stopped)?;
        } else if found.is_file() {
            fs::copy(&source, &target).map_err(SandboxError::io("copy to", &target))?;
            chown(&target, Some(found.uid()), Some(found.gid()))
                .map_err(SandboxError::io("hand over", &target))?;
        }
    }
    let found = fs::metadata(from).map_err(SandboxError::io("read", from))?;
    fs::set_permissions(to, found.permissions()).map_err(SandboxError::io("set the mode of", to))?;
    chown(to, Some(found.uid()), Some(found.gid())).map_err(SandboxError::io("hand over", to))
}
