//! Where sandboxes are written down for as long as the machine is up: their sockets, and a pointer to each one's folder.
//!
//! Each has a folder of its own in `$WEIR_RUN/sandbox`, `/run/weir-sandbox` (root), `$XDG_RUNTIME_DIR/weir/sandbox` or
//! `/tmp/weir-UID/sandbox`: it holds a marker, a lock that its weir and then its minder have, and a folder that is the server's for the socket, whose
//! path has to be short. A marker leads to processes and folders: only one that nobody but root and this user can have
//! written is read.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use weir_fs::{Access, Dir};

use super::SandboxError;
use super::account::Account;
use super::identity::Identity;
use super::layout::{is_lock_or_draft, is_locked, take_lock};
use crate::throwaway::{MARKER, SOCKETS};

/// Root's sandboxes. `/run/weir` is the guard's: systemd removes it with all that is in it when the service stops.
const OF_ROOT: &str = "/run/weir-sandbox";
/// Where earlier versions had them.
const OF_ROOT_EARLIER: &str = "/run/weir/sandbox";
/// A marker is small.
const MARKER_MOST: u64 = 64 << 10;
/// A folder without a marker that is younger may be one that is being made.
const SETTLING: Duration = Duration::from_secs(60);
/// The server's configuration file.
const CONFIGURATION: &str = "server.conf";
const STATEMENTS: &str = "first.sql";
/// `sun_path` of sockaddr_un has 108 bytes, one of them the end.
const SOCKET_PATH_MAX: usize = 107;
/// PostgreSQL's lock beside its socket is the longest name in such a folder.
const LONGEST_NAME: &str = ".s.PGSQL.65535.lock";

/// A pointer to a sandbox's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    pub dir: PathBuf,
    /// Its device and inode there: by its path alone whoever owns the folder above could put another one in its place.
    pub folder: (u64, u64),
    /// A copy of what the folder says, for a list that waits for no file system, and for where it cannot be read any more.
    pub identity: Identity,
}

/// One entry of the list of sandboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its folder.
    pub dir: PathBuf,
    /// What that says, as it was last written.
    pub identity: Identity,
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
    lock: File,
}

impl RunFolder {
    /// Makes one. Those of weirs that were killed while they made one go.
    pub fn create(account: Account) -> Result<RunFolder, SandboxError> {
        let base_path = base();
        let base = make_base(&base_path).map_err(SandboxError::io("create", &base_path))?;
        // Without links: servers and the minder go there by path.
        let base_path = base.path().to_path_buf();
        sweep(&base);
        let random = weir_fs::unguessable().map_err(SandboxError::io("name a folder in", &base_path))?;
        let name = format!("{:x}-{}", std::process::id(), &random[..8]);
        let path = base_path.join(&name);
        let longest = path.join(SOCKETS).join(LONGEST_NAME);
        if longest.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(SandboxError::SocketPath(longest));
        }
        // The server passes through it to its own.
        let dir = base.make_dir(&name, 0o755).map_err(SandboxError::io("create", &path))?;
        match take_lock(&dir).and_then(|lock| Ok((lock, dir.make_dir(SOCKETS, 0o700)?))) {
            Ok((lock, sockets)) => Ok(RunFolder { base, dir, sockets, path, account, lock }),
            Err(error) => {
                let _ = remove(&base, &dir, OsStr::new(&name), &[]);
                Err(SandboxError::io("create", &path)(error))
            }
        }
    }

    /// Lets a server make its socket, where none runs.
    pub fn open(&self) -> Result<(), SandboxError> {
        let (sockets, account) = (&self.sockets, self.account);
        let open =
            || sockets.remove_contents_of(&[account.ids().0]).and_then(|()| account.give(sockets.as_fd()));
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

    /// Its lock.
    pub fn lock(&self) -> &File {
        &self.lock
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
        let _ = remove(&self.base, &self.dir, name, &[self.account.ids().0]);
    }
}

/// Removes a sandbox's folder, and what these accounts put where they may write.
fn remove(base: &Dir, dir: &Dir, name: &OsStr, accounts: &[u32]) -> io::Result<()> {
    if let Ok(sockets) = dir.subdir(SOCKETS) {
        sockets.remove_contents_of(accounts)?;
    }
    dir.remove_contents()?;
    base.remove_dir(name)
}

/// A folder for socket and marker that another weir made.
#[derive(Debug)]
pub(super) struct Left {
    base: Dir,
    dir: Dir,
    path: PathBuf,
    /// What it says.
    pub marker: Marker,
    _lock: Option<File>,
}

impl Left {
    /// One whose weir and minder are dead; until the end of this value nobody else has it.
    ///
    /// # Errors
    /// `WouldBlock` where one of them, or another cleaner, lives.
    pub fn take(path: &Path) -> io::Result<Left> {
        let mut left = Left::open(path)?;
        left._lock = Some(take_lock(&left.dir)?);
        left.marker = read_marker(&left.dir)?;
        Ok(left)
    }

    /// One whose lock this process has inherited.
    pub fn open(path: &Path) -> io::Result<Left> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let base = Dir::open_trusted(above)?;
        let dir = open_run(&base, name)?;
        let marker = read_marker(&dir)?;
        Ok(Left { base, dir, path: path.to_path_buf(), marker, _lock: None })
    }

    /// Removes it.
    pub fn remove(&self) -> Result<(), SandboxError> {
        let name = self.path.file_name().unwrap_or_default();
        let removed = remove(&self.base, &self.dir, name, &self.marker.identity.accounts);
        removed.map_err(SandboxError::io("remove", &self.path))
    }
}

/// All sandboxes of this user that run, or were left by a weir that was killed.
pub fn list() -> Vec<Listed> {
    let base = base();
    let mut list = list_in(&base);
    if base == Path::new(OF_ROOT) {
        list.extend(list_in(Path::new(OF_ROOT_EARLIER)));
    }
    list
}

fn list_in(path: &Path) -> Vec<Listed> {
    let Ok(base) = Dir::open_trusted(path) else { return Vec::new() };
    let Ok(names) = base.names() else { return Vec::new() };
    let listed = |name: std::ffi::OsString| {
        let run = open_run(&base, &name).ok()?;
        let Marker { dir, identity, .. } = read_marker(&run).ok()?;
        Some(Listed { dir, identity, run: path.join(name), abandoned: !is_locked(&run) })
    };
    let mut list: Vec<Listed> = names.flatten().filter_map(listed).collect();
    list.sort_by(|a, b| a.run.cmp(&b.run));
    list
}

/// Forgets what killed weirs wrote down of a folder, which the caller has taken.
pub(super) fn forget(dir: &Path, folder: (u64, u64)) {
    for listed in list().iter().filter(|listed| listed.abandoned && listed.dir == dir) {
        if let Ok(left) = Left::take(&listed.run)
            && left.marker.folder == folder
        {
            let _ = left.remove();
        }
    }
}

/// Whether a folder's name is of the form that [`RunFolder::create`] gives.
fn is_of_weirs_form(name: &OsStr) -> bool {
    let hex = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts = name.to_str().and_then(|name| name.split_once('-'));
    parts.is_some_and(|(process, random)| hex(process) && hex(random) && random.len() == 8)
}

/// Removes folders without a marker: of weirs that were killed while they made one. One that holds anything else than
/// what lies there before the marker does is not weir's, and stays.
fn sweep(base: &Dir) {
    let Ok(names) = base.names() else { return };
    for name in names.flatten().filter(|name| is_of_weirs_form(name)) {
        let unmarked = || {
            let run = open_run(base, &name)?;
            let is_old = run.metadata()?.modified()?.elapsed().is_ok_and(|age| age > SETTLING);
            let is_unmarked =
                run.open_file(MARKER, Access::Read).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
            match is_old && is_unmarked {
                true => take_lock(&run).and_then(|_lock| remove_unmarked(base, &run, &name)),
                false => Ok(()),
            }
        };
        let _ = unmarked();
    }
}

fn remove_unmarked(base: &Dir, run: &Dir, name: &OsStr) -> io::Result<()> {
    let found: Vec<_> = run.names()?.collect::<Result<_, _>>()?;
    if !found.iter().all(|name| name == SOCKETS || is_lock_or_draft(name, MARKER)) {
        return Ok(());
    }
    if found.iter().any(|name| name == SOCKETS) {
        run.remove_dir(SOCKETS)?;
    }
    for name in found.iter().filter(|name| *name != SOCKETS) {
        run.remove_file(name)?;
    }
    base.remove_dir(name)
}

fn open_run(base: &Dir, name: &OsStr) -> io::Result<Dir> {
    let run = base.subdir(name)?;
    run.check_trusted()?;
    Ok(run)
}

fn read_marker(run: &Dir) -> io::Result<Marker> {
    let text = run.read_trusted(MARKER, MARKER_MOST)?;
    weir_core::json::parse(&String::from_utf8_lossy(&text)).map_err(io::Error::from)
}

/// The folder of all run folders.
fn base() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    let run = match variable("WEIR_RUN") {
        None if uid == 0 => return PathBuf::from(OF_ROOT),
        None => variable("XDG_RUNTIME_DIR").map(|folder| folder.join("weir")),
        named => named,
    };
    run.unwrap_or_else(|| PathBuf::from(format!("/tmp/weir-{uid}"))).join("sandbox")
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
    fn folders_of_weirs_that_were_killed_while_they_made_one_go() {
        let here = tempfile::tempdir().unwrap();
        let base = Dir::open(here.path()).unwrap();
        let [old, locked, marked, young] = ["a0-00000000", "a1-11111111", "a2-22222222", "a3-33333333"];
        // Not weir's: another name, another content.
        let (named, holds) = ("project", "a4-44444444");
        for name in [old, locked, marked, young, named, holds] {
            let run = base.make_dir(name, 0o755).unwrap();
            run.make_dir(SOCKETS, 0o700).unwrap();
            if name == holds {
                std::fs::write(here.path().join(name).join("work"), "of somebody").unwrap();
            }
            if name == marked {
                std::fs::write(here.path().join(name).join(MARKER), "of another version").unwrap();
            }
        }
        let _lock = take_lock(&base.subdir(locked).unwrap()).unwrap();
        for name in [old, locked, marked, named, holds] {
            let folder = File::open(here.path().join(name)).unwrap();
            folder.set_modified(std::time::SystemTime::now() - 2 * SETTLING).unwrap();
        }
        sweep(&base);
        let mut left: Vec<_> = base.names().unwrap().map(Result::unwrap).collect();
        left.sort();
        assert_eq!(left, [locked, marked, young, holds, named]);
    }

    #[test]
    fn a_held_socket_is_the_servers_whatever_takes_its_place() {
        let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let base = Dir::open(here.path()).unwrap();
        let dir = base.make_dir("run", 0o700).unwrap();
        let sockets = dir.make_dir(SOCKETS, 0o700).unwrap();
        let own = rustix::process::geteuid().as_raw() != 0;
        let account = Account::unused().unwrap();
        let lock = take_lock(&dir).unwrap();
        let run = RunFolder { base, dir, sockets, path: here.path().join("run"), account, lock };
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
