//! A sandbox's folder and what lies in it. It may stand among folders of other accounts, and the server's account owns
//! what the server writes: everything is reached from the folder's descriptor.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom;
use serde::{Deserialize, Serialize};
use weir_fs::{Access, Dir};

use super::account::Account;
use super::{Flavour, SandboxError};

const IDENTITY: &str = "weir-sandbox.json";
const DATA: &str = "data";
const TEMPORARY: &str = "tmp";
const LOG: &str = "server.log";
const LOCK: &str = "lock";

/// Everything that a sandbox puts into its folder; nothing else in it is ever removed, but what a weir that was killed
/// while it wrote one of them left beside it.
pub(super) const NAMES: [&str; 5] = [DATA, TEMPORARY, LOG, LOCK, IDENTITY];

/// Such files are small.
const IDENTITY_MOST: u64 = 64 << 10;
/// Folders of a data directory are nested so deep at most.
const DEPTH_MOST: u32 = 32;

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

/// The paths in a sandbox's folder, as a server is told them.
#[derive(Debug, Clone)]
pub(super) struct Paths(PathBuf);

impl Paths {
    pub fn below(dir: &Path) -> Paths {
        Paths(dir.to_path_buf())
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
}

/// A sandbox's folder.
#[derive(Debug)]
pub(super) struct Layout {
    dir: Dir,
    /// Its path without links.
    path: PathBuf,
    /// What it was made in, and its name there.
    made: Option<(Dir, OsString)>,
}

impl Layout {
    /// Makes the folder, or opens one that is there, which nobody but root and this user may write to.
    pub fn make_or_open(path: &Path) -> Result<Layout, SandboxError> {
        let io = |action| SandboxError::io(action, path);
        let (Some(name), Some(above)) = (path.file_name(), path.parent()) else { return Layout::open(path) };
        let parent = Dir::open(above).map_err(io("create"))?;
        real_path(&parent).and_then(|_| fits_a_line(Path::new(name))).map_err(io("use"))?;
        match parent.make_dir(name, 0o755) {
            Ok(dir) => {
                let made = Some((parent, name.to_os_string()));
                Layout::of(dir, made).map_err(io("find"))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if parent.check_trusted().is_ok() {
                    return Layout::open(path);
                }
                // A link there may be anybody's.
                let dir = parent.subdir(name).map_err(io("open"))?;
                dir.check_trusted().map_err(io("use"))?;
                Layout::of(dir, None).map_err(io("find"))
            }
            Err(error) => Err(io("create")(error)),
        }
    }

    /// Opens one that is there.
    pub fn open(path: &Path) -> Result<Layout, SandboxError> {
        let dir = Dir::open(path).map_err(SandboxError::io("open", path))?;
        dir.check_trusted().map_err(SandboxError::io("use", path))?;
        Layout::of(dir, None).map_err(SandboxError::io("find", path))
    }

    fn of(dir: Dir, made: Option<(Dir, OsString)>) -> io::Result<Layout> {
        let path = real_path(&dir)?;
        Ok(Layout { dir, path, made })
    }

    /// Whether no other account decides where the path of the folder leads: servers reach their data by it.
    pub fn check_above(&self) -> Result<(), SandboxError> {
        let above = self.path.parent().unwrap_or(&self.path);
        weir_fs::owned_chain(above).map_err(SandboxError::io("use", &self.path))
    }

    /// The folder.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Its path without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its device and inode.
    pub fn id(&self) -> io::Result<(u64, u64)> {
        id_of(&self.dir)
    }

    /// Whether it was made for this sandbox.
    pub fn is_made(&self) -> bool {
        self.made.is_some()
    }

    pub fn paths(&self) -> Paths {
        Paths::below(&self.path)
    }

    /// Whose data lie in it, if weir says so.
    pub fn identity(&self) -> Option<Identity> {
        let file = self.dir.open_trusted_file(IDENTITY, Access::Read).ok()?;
        let text = io::read_to_string(io::Read::take(file, IDENTITY_MOST)).ok()?;
        weir_core::json::parse(&text).ok()
    }

    pub fn write_identity(&self, identity: &Identity) -> Result<(), SandboxError> {
        let text = serde_json::to_string_pretty(identity).unwrap_or_default();
        let path = self.path.join(IDENTITY);
        self.dir.replace(IDENTITY, 0o644, text.as_bytes()).map_err(SandboxError::io("write", &path))
    }

    /// The log, to write at its end.
    pub fn open_log(&self) -> io::Result<File> {
        self.dir.open_or_create(LOG, Access::Append, 0o644)
    }

    /// The log, to read.
    pub fn read_log(&self) -> io::Result<File> {
        self.dir.open_file(LOG, Access::Read)
    }

    /// Takes the folder's lock without waiting; the kernel lets go of it when this process ends.
    pub fn lock(&self) -> io::Result<File> {
        let file = self.dir.open_or_create(LOCK, Access::ReadWrite, 0o600)?;
        weir_fs::lock(&file)?;
        Ok(file)
    }

    /// Whether there is nothing in it but a lock, which alone is a sandbox that is being made, or one that never was.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.dir.names()?.all(|name| name.is_ok_and(|name| name == LOCK)))
    }

    /// Makes the folders that the server writes to, and hands them over.
    pub fn make_folders(&self, account: Account) -> Result<(), SandboxError> {
        for name in [DATA, TEMPORARY] {
            let path = self.path.join(name);
            let made = match self.dir.make_dir(name, 0o700) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.dir.subdir(name),
                made => made,
            };
            let folder = made.map_err(SandboxError::io("create", &path))?;
            account.give(rustix::fd::AsFd::as_fd(&folder)).map_err(SandboxError::io("hand over", &path))?;
        }
        Ok(())
    }

    /// The folders that the server writes to. The sandbox's own may be closed to its account.
    pub fn folders(&self) -> Result<Vec<(PathBuf, Dir)>, SandboxError> {
        let open = |name: &str| {
            let path = self.path.join(name);
            let folder = self.dir.subdir(name).map_err(SandboxError::io("open", &path))?;
            Ok((path, folder))
        };
        [DATA, TEMPORARY].into_iter().map(open).collect()
    }

    /// Hands over data that are there: kept, or copied from another sandbox.
    pub fn hand_over(&self, account: Account) -> Result<(), SandboxError> {
        for (path, folder) in self.folders()? {
            let give = || {
                let owner = folder.metadata()?.uid();
                if account.is_other() { give(&folder, owner, account, DEPTH_MOST) } else { Ok(()) }
            };
            give().map_err(SandboxError::io("hand over", &path))?;
        }
        Ok(())
    }

    /// Removes a data directory that was not finished.
    pub fn remove_data(&self) -> Result<(), SandboxError> {
        let path = self.path.join(DATA);
        remove(&self.dir, OsStr::new(DATA)).map_err(SandboxError::io("remove", &path))
    }

    /// Copies the data directory of another sandbox, modes and holes included. Links are left out.
    pub fn copy_data(
        &self,
        from: &Layout,
        account: Account,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), SandboxError> {
        let path = self.path.join(DATA);
        let io = || SandboxError::io("copy to", &path);
        let from = from.dir.subdir(DATA).map_err(io())?;
        let to = self.dir.subdir(DATA).map_err(io())?;
        let copying = Copying { owner: from.metadata().map_err(io())?.uid(), account, stopped };
        if copying.copy(&from, &to, DEPTH_MOST).map_err(io())? { Ok(()) } else { Err(SandboxError::Stopped) }
    }

    /// Removes what a sandbox put into it, and the folder itself where it was made for it. Says what could not go.
    pub fn remove(&self) {
        let mut problems: Vec<io::Error> =
            NAMES.iter().filter_map(|name| remove(&self.dir, OsStr::new(name)).err()).collect();
        self.dir.remove_leftovers();
        if let Some((parent, name)) = &self.made {
            // An account that may rename in there can have put another empty folder in its place; no more than that is lost.
            problems.extend(absent_is_done(parent.remove_dir(name)).err());
        }
        for problem in problems {
            // Not eprintln: it panics when nobody reads, and this may run while a panic unwinds.
            let line = format!("weir: could not remove all of {}: {problem}\n", self.path.display());
            let _ = io::Write::write_all(&mut io::stderr(), line.as_bytes());
        }
    }

    /// The same for a folder that another weir made or found.
    pub fn remove_as(mut self, made: bool) {
        if let (true, Some(name), Some(above)) = (made, self.path.file_name(), self.path.parent()) {
            let own = self.id().ok();
            let is_it =
                |parent: &Dir| own.is_some() && parent.subdir(name).and_then(|dir| id_of(&dir)).ok() == own;
            let parent = Dir::open(above).ok().filter(is_it);
            self.made = parent.map(|parent| (parent, name.to_os_string()));
        }
        self.remove();
    }
}

/// Removes a file, or a folder with all that is in it but folders of other accounts: the server may have let others write
/// there.
fn remove(dir: &Dir, name: &OsStr) -> io::Result<()> {
    match dir.subdir_here(name) {
        Ok(folder) => {
            folder.remove_contents_of(folder.metadata()?.uid())?;
            dir.remove_dir(name)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) => absent_is_done(dir.remove_file(name)),
    }
}

fn id_of(dir: &Dir) -> io::Result<(u64, u64)> {
    dir.metadata().map(|found| (found.dev(), found.ino()))
}

/// Without links.
fn real_path(dir: &Dir) -> io::Result<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd()))?;
    fits_a_line(&path).map(|()| path)
}

/// The path stands in the server's configuration file: whoever named a folder above it must not write lines of that.
fn fits_a_line(path: &Path) -> io::Result<()> {
    let has_odd = path.to_string_lossy().contains(|c: char| c.is_control() || c == '"');
    let why = "a path with control characters or quotes does not fit a server's configuration file";
    if has_odd { Err(io::Error::new(io::ErrorKind::InvalidInput, why)) } else { Ok(()) }
}

fn absent_is_done(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Data on their way to another sandbox.
struct Copying<'a> {
    /// Whose they are.
    owner: u32,
    /// Whose the copies are to be.
    account: Account,
    stopped: &'a dyn Fn() -> bool,
}

impl Copying<'_> {
    /// `false` where somebody asked to stop.
    fn copy(&self, from: &Dir, to: &Dir, depth: u32) -> io::Result<bool> {
        close(from, self.owner, depth)?;
        self.account.give(to.as_fd())?;
        for name in from.names()? {
            let name = name?;
            if (self.stopped)() {
                return Ok(false);
            }
            if let Ok(inner) = from.subdir(&name) {
                if !self.copy(&inner, &to.make_dir(&name, 0o700)?, depth - 1)? {
                    return Ok(false);
                }
            } else if let Ok(mut source) = from.open_file(&name, Access::Read) {
                check_owner(&source, self.owner, &from.path().join(&name))?;
                let mut target = to.create_new(&name, 0o600)?;
                self.account.give(target.as_fd())?;
                copy_file(&mut source, &mut target)?;
                let mode = source.metadata()?.mode() & 0o777;
                target.set_permissions(fs::Permissions::from_mode(mode))?;
            }
        }
        Ok(true)
    }
}

/// Closes a folder of data to all but its account, which has no process any more, so that nobody can change what is in it.
fn close(folder: &Dir, owner: u32, depth: u32) -> io::Result<()> {
    if depth == 0 {
        return Err(io::Error::other(format!("{} is too deep", folder.path().display())));
    }
    let found = folder.metadata()?.uid();
    if found != owner {
        return Err(not_of_the_data(folder.path(), found));
    }
    folder.chmod(0o700)
}

/// The server may have let others write among its data; what they put there is not its own, nor is a file that has another
/// name elsewhere.
fn check_owner(file: &File, owner: u32, path: &Path) -> io::Result<()> {
    let found = file.metadata()?;
    if found.uid() != owner {
        return Err(not_of_the_data(path, found.uid()));
    }
    if found.nlink() != 1 {
        return Err(io::Error::other(format!("{} has another name elsewhere", path.display())));
    }
    Ok(())
}

fn not_of_the_data(path: &Path, owner: u32) -> io::Error {
    let why = format!("{} belongs to account {owner}, not to the server that made the data", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Copies what a file holds between its holes.
fn copy_file(source: &mut File, target: &mut File) -> io::Result<()> {
    target.set_len(source.metadata()?.len())?;
    let mut end = 0;
    loop {
        let begin = match rustix::fs::seek(&*source, SeekFrom::Data(end)) {
            Ok(begin) => begin,
            Err(rustix::io::Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        end = rustix::fs::seek(&*source, SeekFrom::Hole(begin))?;
        source.seek(io::SeekFrom::Start(begin))?;
        target.seek(io::SeekFrom::Start(begin))?;
        io::copy(&mut (&*source).take(end - begin), target)?;
    }
}

/// Hands over a folder and what is in it.
fn give(folder: &Dir, owner: u32, account: Account, depth: u32) -> io::Result<()> {
    close(folder, owner, depth)?;
    for name in folder.names()? {
        let name = name?;
        if let Ok(inner) = folder.subdir(&name) {
            give(&inner, owner, account, depth - 1)?;
        } else if let Ok(file) = folder.open_file(&name, Access::Read) {
            check_owner(&file, owner, &folder.path().join(&name))?;
            account.give(file.as_fd())?;
        }
    }
    account.give(folder.as_fd())
}
