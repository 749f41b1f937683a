//! Where running sandboxes are written down, so that the next weir finds what a killed one left.
//!
//! Each has a folder of its own under `$WEIR_RUN`, `/run/weir` (root), `$XDG_RUNTIME_DIR/weir` or `/tmp/weir-UID`: it
//! holds a marker, and a folder that is the server's for the socket, whose path has to be short. Whether its weir lives,
//! a lock in the sandbox's own folder tells. A marker says which process is ended and which folder is removed: only one
//! that nobody but root and this user can have written is read.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use weir_fs::{Access, Dir};

use super::account::Account;
use super::layout::Layout;
use super::process::{self, ProcessId};
use super::{Flavour, SandboxError};
use crate::throwaway::{MARKER, SOCKETS};

/// No account has this number (chown(2)).
const NOBODYS: u32 = u32::MAX;
/// A marker is small.
const MARKER_MOST: u64 = 64 << 10;
/// The server's configuration file.
const CONFIGURATION: &str = "server.conf";
const STATEMENTS: &str = "first.sql";
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
    /// Its device and inode there: by its path alone whoever owns the folder above could put another one in its place.
    #[serde(default)]
    pub folder: Option<(u64, u64)>,
    /// Whether the folder itself is weir's.
    pub made_dir: bool,
    /// Whether its data are to stay.
    pub keep: bool,
    /// The account that it runs as.
    #[serde(default)]
    pub account: Option<u32>,
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
#[derive(Debug)]
pub(super) struct RunFolder {
    base: Dir,
    dir: Dir,
    /// The server's own folder in it, while it starts.
    sockets: Dir,
    path: PathBuf,
    account: Account,
}

impl RunFolder {
    /// Makes one.
    pub fn create(account: Account) -> Result<RunFolder, SandboxError> {
        let base_path = base();
        let base = make_base(&base_path).map_err(SandboxError::io("create", &base_path))?;
        // Without links: servers and the minder go there by path.
        let base_path = base.path().to_path_buf();
        let random = weir_fs::unguessable().map_err(SandboxError::io("name a folder in", &base_path))?;
        let name = format!("{:x}-{}", std::process::id(), &random[..8]);
        let path = base_path.join(&name);
        let longest = path.join(SOCKETS).join(LONGEST_NAME);
        if longest.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(SandboxError::SocketPath(longest));
        }
        // The server passes through it to its own.
        let dir = base.make_dir(&name, 0o755).map_err(SandboxError::io("create", &path))?;
        match dir.make_dir(SOCKETS, 0o700) {
            Ok(sockets) => Ok(RunFolder { base, dir, sockets, path, account }),
            Err(error) => {
                let _ = base.remove_dir(&name);
                Err(SandboxError::io("create", &path)(error))
            }
        }
    }

    /// Lets a server make its socket, where none runs.
    pub fn open(&self) -> Result<(), SandboxError> {
        let (sockets, account) = (&self.sockets, self.account);
        let open =
            || sockets.remove_contents_of(account.ids().0).and_then(|()| account.give(sockets.as_fd()));
        open().map_err(SandboxError::io("hand over", &self.path))
    }

    /// Closes that folder to the server's account once it listens: from here on the name leads to the socket that lies
    /// there now, which is the account's own. A link would lead whoever trusts this server to another one.
    pub fn seal(&self, name: &str) -> Result<(), SandboxError> {
        let path = self.path.join(SOCKETS).join(name);
        let seal = || {
            if self.account.is_other() {
                self.sockets.chown(0, 0)?;
                // As long as it was the server's own, it may have let everybody write there, itself too.
                self.sockets.chmod(0o700)?;
            }
            if self.has_socket(name) {
                return Ok(());
            }
            Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "something else took the place of the socket",
            ))
        };
        seal().map_err(SandboxError::io("use", &path))
    }

    /// Whether a socket of the server's account lies there.
    pub fn has_socket(&self, name: &str) -> bool {
        self.socket(name).is_ok()
    }

    /// That socket, held as a place to connect to.
    pub fn socket(&self, name: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(&self.sockets, name, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&held)?;
        let is_socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
        if is_socket && found.st_uid == self.account.ids().0 {
            Ok(held)
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The server's own folder in it.
    pub fn sockets(&self) -> PathBuf {
        self.path.join(SOCKETS)
    }

    /// The server's configuration file.
    pub fn configuration(&self) -> PathBuf {
        self.path.join(CONFIGURATION)
    }

    /// The statements that a server runs when it starts.
    pub fn statements(&self) -> PathBuf {
        self.path.join(STATEMENTS)
    }

    /// Writes both.
    pub fn configure(&self, configuration: &str, statements: &str) -> Result<(), SandboxError> {
        let write = |name: &str, text: &str| {
            let mut fresh = self.dir.beside(name, 0o644)?;
            // Whatever the umask: the server has to read it.
            fresh.chmod(0o644)?;
            io::Write::write_all(&mut fresh, text.as_bytes())?;
            fresh.commit()
        };
        write(STATEMENTS, statements).map_err(SandboxError::io("write", &self.statements()))?;
        write(CONFIGURATION, configuration).map_err(SandboxError::io("write", &self.configuration()))
    }

    /// Writes it down, whole or not at all.
    pub fn mark(&self, marker: &Marker) -> Result<(), SandboxError> {
        let path = self.path.join(MARKER);
        let text = serde_json::to_string_pretty(marker).unwrap_or_default();
        self.dir.replace(MARKER, 0o600, text.as_bytes()).map_err(SandboxError::io("write", &path))
    }

    /// Removes it.
    pub fn remove(&self) {
        let name = self.path.file_name().unwrap_or_default();
        let _ = remove(&self.base, &self.dir, name, Some(self.account.ids().0));
    }
}

/// Removes a sandbox's folder, and what the account put where it may write.
fn remove(base: &Dir, dir: &Dir, name: &OsStr, account: Option<u32>) -> io::Result<()> {
    if let Ok(sockets) = dir.subdir(SOCKETS) {
        // Where an earlier weir has not written down the account, no folder in it is anybody's to remove.
        sockets.remove_contents_of(account.unwrap_or(NOBODYS))?;
    }
    dir.remove_contents()?;
    base.remove_dir(name)
}

/// All sandboxes of this user that run, or were left by a weir that was killed.
pub fn list() -> Vec<Listed> {
    list_in(&base())
}

fn list_in(path: &Path) -> Vec<Listed> {
    let Ok(base) = Dir::open_trusted(path) else { return Vec::new() };
    let Ok(names) = base.names() else { return Vec::new() };
    let listed = |name: std::ffi::OsString| {
        let marker = read_marker(&open_run(&base, &name).ok()?)?;
        let abandoned = !marker.owner.as_ref().is_some_and(ProcessId::is_alive);
        Some(Listed { marker, run: path.join(name), abandoned })
    };
    let mut list: Vec<Listed> = names.flatten().filter_map(listed).collect();
    list.sort_by(|a, b| a.run.cmp(&b.run));
    list
}

fn open_run(base: &Dir, name: &OsStr) -> io::Result<Dir> {
    let run = base.subdir(name)?;
    run.check_trusted()?;
    Ok(run)
}

fn read_marker(run: &Dir) -> Option<Marker> {
    let mut text = String::new();
    let file = run.open_trusted_file(MARKER, Access::Read).ok()?;
    file.take(MARKER_MOST).read_to_string(&mut text).ok()?;
    weir_core::json::parse(&text).ok()
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
    if !marker.keep
        && let Ok(layout) = Layout::open(&marker.dir)
        && layout.path() == marker.dir
        && marker.folder.is_none_or(|folder| layout.id().is_ok_and(|id| id == folder))
        && layout.identity().is_some()
    {
        layout.remove_as(marker.made_dir);
    }
    let (Some(above), Some(name)) = (left.run.parent(), left.run.file_name()) else { return false };
    let removed = Dir::open_trusted(above)
        .and_then(|base| remove(&base, &open_run(&base, name)?, name, marker.account));
    removed.is_ok()
}

/// The folder of all run folders.
fn base() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    let run = variable("WEIR_RUN")
        .or_else(|| (uid == 0).then(|| PathBuf::from("/run/weir")))
        .or_else(|| variable("XDG_RUNTIME_DIR").map(|folder| folder.join("weir")))
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/weir-{uid}")));
    run.join("sandbox")
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Makes the folder, or sees that nobody else may write to it: in /tmp anybody may have made one of that name. The environment
/// may name any folder, such as /tmp itself: nothing is made below one that another account can replace.
fn make_base(base: &Path) -> io::Result<Dir> {
    let above = base.parent().unwrap_or(base);
    let there = if above.exists() { above } else { above.parent().unwrap_or(above) };
    let mut folder = Dir::open(&weir_fs::lasting_chain(there)?)?;
    for part in base.strip_prefix(there).unwrap_or(base) {
        match rustix::fs::mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
            // By another weir at the same time, or by somebody else.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        folder = folder.subdir(part)?;
        folder.check_trusted()?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;
    use crate::as_root::root_or_say;

    #[test]
    fn root_runs_no_server_below_a_folder_that_another_account_can_replace() {
        if !root_or_say("root_runs_no_server_below_a_folder_that_another_account_can_replace") {
            return;
        }
        let here = tempfile::tempdir().unwrap();
        let theirs = here.path().join("theirs");
        std::fs::create_dir(&theirs).unwrap();
        make_base(&here.path().join("sandbox")).unwrap();
        std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
        for refused in ["sandbox", "new/sandbox"] {
            let why = make_base(&theirs.join(refused)).unwrap_err().to_string();
            assert!(why.contains("belongs to account 65534"), "{why}");
        }
        assert_eq!(
            std::fs::read_dir(&theirs).unwrap().count(),
            0,
            "nothing is made before it is asked whose it is"
        );
    }

    #[test]
    fn servers_run_where_no_link_leads() {
        let here = tempfile::tempdir().unwrap();
        let real = here.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("run")).unwrap();
        symlink(real.join("run"), real.join("link")).unwrap();
        for (named, path) in [("link/sandbox", "run/sandbox"), ("new/sandbox", "new/sandbox")] {
            let base = make_base(&real.join(named)).unwrap();
            assert_eq!(base.path(), real.join(path));
            assert!(real.join(path).is_dir());
        }
        symlink(real.join("run"), real.join("run/sandbox-link")).unwrap();
        assert!(make_base(&real.join("run/sandbox-link")).is_err(), "a link in its place");
    }

    #[test]
    fn a_held_socket_is_the_servers_whatever_takes_its_place() {
        let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let base = Dir::open(here.path()).unwrap();
        let dir = base.make_dir("run", 0o700).unwrap();
        let sockets = dir.make_dir(SOCKETS, 0o700).unwrap();
        let own = rustix::process::geteuid().as_raw() != 0;
        let account = Account::unused().unwrap();
        let run = RunFolder { base, dir, sockets, path: here.path().join("run"), account };
        let path = run.sockets().join("sock");
        let (server, other) =
            (UnixListener::bind(&path).unwrap(), UnixListener::bind(elsewhere.path().join("sock")).unwrap());
        if !own {
            assert!(run.socket("sock").is_err(), "it is root's");
            std::os::unix::fs::chown(&path, Some(account.ids().0), None).unwrap();
        }
        let held = run.socket("sock").unwrap();
        std::fs::remove_file(&path).unwrap();
        symlink(elsewhere.path().join("sock"), &path).unwrap();
        assert!(run.socket("sock").is_err(), "a link");
        UnixStream::connect(format!("/proc/self/fd/{}", held.as_raw_fd())).unwrap();
        [&server, &other].iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
        assert!(server.accept().is_ok() && other.accept().is_err());
    }
}
