//! Where running sandboxes are written down, so that the next weir finds what a killed one left.
//!
//! Each has a folder of its own under `$WEIR_RUN`, `/run/weir` (root), `$XDG_RUNTIME_DIR/weir` or `/tmp/weir-UID`: it
//! holds the socket, whose path has to be short, and a marker. Whether its weir lives, a lock in the sandbox's own
//! folder tells.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::process::{self, ProcessId};
use super::{Flavour, SandboxError, layout, shared_memory};

const MARKER: &str = "sandbox.json";
/// `sun_path` of sockaddr_un has 108 bytes, one of them the end.
const SOCKET_PATH_MAX: usize = 107;
/// PostgreSQL's lock beside its socket is the longest name in such a folder.
const LONGEST_NAME: &str = ".s.PGSQL.65535.lock";

/// A sandbox as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// Whose server.
    pub flavour: Flavour,
    /// The sandbox's folder.
    pub dir: PathBuf,
    /// Whether the folder itself is weir's.
    pub made_dir: bool,
    /// Whether its data are to stay.
    pub keep: bool,
    /// The server, once it has been started.
    pub server: Option<ProcessId>,
    /// The weir it belongs to.
    pub owner: Option<ProcessId>,
}

/// One entry of the list of sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What is written down.
    pub marker: Marker,
    /// Its folder for socket and marker.
    pub run: PathBuf,
    /// Its weir was killed, and something was left.
    pub abandoned: bool,
}

/// A sandbox's own folder for socket and marker; dropping it does not remove it.
#[derive(Debug, Clone)]
pub(super) struct RunFolder(PathBuf);

impl RunFolder {
    /// Makes one.
    pub fn create() -> Result<RunFolder, SandboxError> {
        let base = base();
        make_base(&base).map_err(SandboxError::io("create", &base))?;
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("{:x}-{:x}", std::process::id(), since_epoch.as_nanos() & 0xffff_ffff);
        let path = base.join(name);
        let longest = path.join(LONGEST_NAME);
        if longest.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(SandboxError::SocketPath(longest));
        }
        DirBuilder::new().mode(0o700).create(&path).map_err(SandboxError::io("create", &path))?;
        Ok(RunFolder(path))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes it down, whole or not at all.
    pub fn mark(&self, marker: &Marker) -> Result<(), SandboxError> {
        let path = self.0.join(MARKER);
        let beside = self.0.join(format!("{MARKER}.new"));
        let text = serde_json::to_string_pretty(marker).unwrap_or_default();
        fs::write(&beside, text)
            .and_then(|()| fs::rename(&beside, &path))
            .map_err(SandboxError::io("write", &path))
    }

    /// Removes it.
    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All sandboxes of this user that run, or were left by a weir that was killed.
pub fn list() -> Vec<Listed> {
    list_in(&base())
}

fn list_in(base: &Path) -> Vec<Listed> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let listed = |entry: fs::DirEntry| {
        let run = entry.path();
        let text = fs::read_to_string(run.join(MARKER)).ok()?;
        let marker: Marker = weir_core::json::parse(&text).ok()?;
        let abandoned = !marker.owner.as_ref().is_some_and(ProcessId::is_alive);
        Some(Listed { marker, run, abandoned })
    };
    let mut list: Vec<Listed> = entries.filter_map(listed).collect();
    list.sort_by(|a, b| a.run.cmp(&b.run));
    list
}

/// Ends and removes what a killed weir left; data that were to be kept stay. `false` where a server would not end.
pub fn clean(left: &Listed) -> bool {
    let marker = &left.marker;
    if !left.abandoned {
        return false;
    }
    if let Some(server) = &marker.server
        && !process::end_stranger(server, Signal::QUIT, Duration::from_secs(10))
    {
        return false;
    }
    shared_memory::release(&Layout::of(&marker.dir).data());
    if !marker.keep && layout::is_sandbox(&marker.dir) {
        layout::remove(&marker.dir, marker.made_dir);
    }
    fs::remove_dir_all(&left.run).is_ok()
}

/// Takes the lock of a sandbox's folder without waiting; the kernel lets go of it when this process ends.
pub(super) fn lock(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    // SAFETY: flock takes a descriptor and a number.
    let status = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    if status == 0 { Ok(file) } else { Err(io::Error::last_os_error()) }
}

/// The folder of all run folders.
fn base() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // SAFETY: takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    let run = variable("WEIR_RUN")
        .or_else(|| (uid == 0).then(|| PathBuf::from("/run/weir")))
        .or_else(|| variable("XDG_RUNTIME_DIR").map(|folder| folder.join("weir")))
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/weir-{uid}")));
    run.join("sandbox")
}

/// Makes the folder, or sees that it is this user's: in /tmp anybody may have made one of that name.
fn make_base(base: &Path) -> io::Result<()> {
    // SAFETY: takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    for folder in [base.parent().unwrap_or(base), base] {
        match DirBuilder::new().mode(0o755).create(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    let found = fs::symlink_metadata(base)?;
    let ours = found.is_dir() && found.uid() == uid && found.permissions().mode() & 0o022 == 0;
    if ours { Ok(()) } else { Err(io::Error::other("it is somebody else's, or others may write to it")) }
}
