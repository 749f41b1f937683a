//! A folder held by its descriptor.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use crate::owner::{caller, served, trusted};
use crate::resolve::{check_name, open_below, open_same_mount};

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Reading and writing, from its start; nothing is cut off.
    ReadWrite,
    /// Writing at its end.
    Append,
}

impl Access {
    fn flags(self) -> OFlags {
        match self {
            Access::Read => OFlags::RDONLY,
            Access::ReadWrite => OFlags::RDWR,
            Access::Append => OFlags::WRONLY | OFlags::APPEND,
        }
    }
}

/// A folder, held by a descriptor: it stays the same folder whatever happens to its path.
///
/// Names and paths given to its methods are relative, and hold neither links nor `..`; a link on the way is an error
/// (`ELOOP`, or `ENOTDIR` for the last part where a folder was asked for), as is leaving the folder.
#[derive(Debug)]
pub struct Dir {
    file: File,
    path: PathBuf,
}

impl Dir {
    /// Opens the folder that the user named. Links on the way are followed: this is the one time a path is believed.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(path: &Path) -> io::Result<Dir> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let open =
            |access| rustix::fs::open(path, access | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        // A folder that may be passed through but not listed.
        let opened = open(OFlags::RDONLY).or_else(|error| match error {
            Errno::ACCESS => open(OFlags::PATH),
            other => Err(other),
        });
        Ok(Dir { file: File::from(opened?), path: path.to_path_buf() })
    }

    /// The same for a folder that root or the caller alone controls.
    ///
    /// # Errors
    /// Those of open(2), and [`crate::Distrust`] as `PermissionDenied`.
    pub fn open_trusted(path: &Path) -> io::Result<Dir> {
        let dir = Dir::open(path)?;
        dir.check_trusted()?;
        Ok(dir)
    }

    /// Opens a folder, and makes it and the folders above it where they are missing (`mode` less the umask's bits).
    /// `made` is told of each that was made, from above, with the folder it lies in.
    ///
    /// # Errors
    /// Those of open(2) and mkdirat(2).
    pub fn open_or_make(path: &Path, mode: u32, made: impl FnMut(&Dir, &Dir)) -> io::Result<Dir> {
        match Dir::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let there = path.ancestors().skip(1).find(|above| above.as_os_str().is_empty() || above.exists());
        let there = there.unwrap_or(Path::new("/"));
        Dir::open(there)?.make_below(path.strip_prefix(there).unwrap_or(path), mode, made)
    }

    /// The same of folders below this one, without following a link.
    ///
    /// # Errors
    /// Those of open(2) and mkdirat(2); see [`Dir`].
    pub fn make_below(self, path: &Path, mode: u32, mut made: impl FnMut(&Dir, &Dir)) -> io::Result<Dir> {
        let mut folder = self;
        for part in path {
            folder = match folder.subdir(part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match folder.make_and_open(part, mode) {
                        Ok((new, true)) => {
                            made(&new, &folder);
                            new
                        }
                        // Another thread or process of this account has put something into it already.
                        Ok((new, false)) => new,
                        // By another process at the same time.
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => folder.subdir(part)?,
                        Err(error) => return Err(error),
                    }
                }
                opened => opened?,
            };
        }
        Ok(folder)
    }

    /// The path it was opened by, for messages and for programs that want paths.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another descriptor of the same folder.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn try_clone(&self) -> io::Result<Dir> {
        Ok(Dir { file: self.file.try_clone()?, path: self.path.clone() })
    }

    /// Owner, mode, device and inode of the folder itself.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }

    /// Whether root or the caller alone controls what is in it, see [`trusted`].
    ///
    /// # Errors
    /// [`crate::Distrust`] as `PermissionDenied`.
    pub fn check_trusted(&self) -> io::Result<()> {
        trusted(&self.file)
    }

    /// Bytes that this account may still write on its file system.
    ///
    /// # Errors
    /// Those of fstatvfs(3).
    pub fn free_bytes(&self) -> io::Result<u64> {
        let answer = rustix::fs::fstatvfs(&self.file)?;
        Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
    }

    /// Opens a folder below.
    ///
    /// # Errors
    /// Those of open(2); see [`Dir`].
    pub fn subdir(&self, path: impl AsRef<Path>) -> io::Result<Dir> {
        let path = path.as_ref();
        let file = open_below(&self.file, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Dir { file, path: self.path.join(path) })
    }

    /// The same of one name, and not across a mount: what another account mounted there need not answer.
    ///
    /// # Errors
    /// As [`Dir::subdir`]; `CrossesDevices` where something is mounted there.
    pub fn subdir_here(&self, name: impl AsRef<OsStr>) -> io::Result<Dir> {
        let name = name.as_ref();
        let file = open_same_mount(&self.file, name, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Dir { file, path: self.path.join(name) })
    }

    /// Makes a folder with exactly these permission bits and opens it.
    ///
    /// # Errors
    /// `AlreadyExists`; `PermissionDenied` when another account put something else in its place meanwhile.
    pub fn make_dir(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Dir> {
        let dir = self.make_dir_as_umask_says(name, mode & 0o700)?;
        dir.chmod(mode)?;
        Ok(dir)
    }

    /// Makes a folder with these permission bits less the umask's and opens it.
    ///
    /// # Errors
    /// As [`Dir::make_dir`].
    pub fn make_dir_as_umask_says(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<Dir> {
        let (dir, is_empty) = self.make_and_open(name.as_ref(), mode)?;
        // A folder that was ours and is moved here in its place would show itself by what is in it.
        if is_empty { Ok(dir) } else { Err(dir.was_changed()) }
    }

    fn was_changed(&self) -> io::Error {
        let what = format!("{} was changed by another account while it was made", self.path.display());
        io::Error::new(io::ErrorKind::PermissionDenied, what)
    }

    /// Makes a folder and opens what has its name then, if it is the caller's. Whether it is empty.
    fn make_and_open(&self, name: &OsStr, mode: u32) -> io::Result<(Dir, bool)> {
        check_name(name)?;
        rustix::fs::mkdirat(&self.file, name, Mode::from_raw_mode(mode))?;
        let dir = self.subdir(name)?;
        served(&dir.file)?;
        if dir.metadata()?.uid() != caller() {
            return Err(dir.was_changed());
        }
        let is_empty = dir.names()?.next().is_none();
        Ok((dir, is_empty))
    }

    /// Makes a file that was not there, for reading and writing.
    ///
    /// # Errors
    /// `AlreadyExists`, also for a link or anything else of that name.
    pub fn create_new(&self, path: impl AsRef<Path>, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        open_below(&self.file, path.as_ref(), flags, Mode::from_raw_mode(mode))
    }

    /// Opens a regular file, whoever owns it. Does not wait for anything, as a FIFO's open would.
    ///
    /// # Errors
    /// Those of open(2); `InvalidInput` for what is not a regular file.
    pub fn open_file(&self, path: impl AsRef<Path>, access: Access) -> io::Result<File> {
        let path = path.as_ref();
        let flags = access.flags() | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open_below(&self.file, path, flags, Mode::empty()).map_err(|error| {
            // What open(2) says of a FIFO without a reader, and of a socket.
            if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) {
                irregular(&self.path.join(path))
            } else {
                error
            }
        })?;
        if !file.metadata()?.is_file() {
            return Err(irregular(&self.path.join(path)));
        }
        // io_uring and preadv2 heed the flag on regular files too.
        rustix::fs::fcntl_setfl(&file, access.flags() & OFlags::APPEND)?;
        Ok(file)
    }

    /// The same for a file that has no other name, under a name that weir chose: whoever owns the folder may have linked a
    /// file of somebody else's there.
    ///
    /// # Errors
    /// Also `TooManyLinks`.
    pub fn open_sole_file(&self, name: impl AsRef<OsStr>, access: Access) -> io::Result<File> {
        let name = name.as_ref();
        check_name(name)?;
        let file = self.open_file(name, access)?;
        self.check_sole(name, &file)?;
        Ok(file)
    }

    /// Whether a name in this folder is the only one of an open file.
    ///
    /// # Errors
    /// `TooManyLinks` when it is not.
    pub(crate) fn check_sole(&self, name: &OsStr, file: &File) -> io::Result<()> {
        // Does nothing, but waits until nobody is half through making or removing a name in the folder.
        // In a folder that nobody else writes to there is nobody to wait for.
        let is_own = self.check_trusted().is_ok();
        let settle =
            || if is_own { Ok(()) } else { rustix::fs::renameat(&self.file, name, &self.file, name) };
        for _ in 0..16 {
            // A name that is taken away and put back between these looks shows in the time of the last change. So does
            // another writer, who is no reason to refuse.
            let before = file.metadata()?;
            settle()?;
            let named = rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?;
            settle()?;
            let after = file.metadata()?;
            let changed = |data: &Metadata| (data.ctime(), data.ctime_nsec());
            if (named.st_dev, named.st_ino) != (before.dev(), before.ino()) || after.nlink() > 1 {
                break;
            }
            if before.nlink() == 1 && changed(&before) == changed(&after) {
                return Ok(());
            }
        }
        let what = match file.metadata()?.nlink() {
            0 | 1 => "was renamed or linked while it was opened".to_string(),
            names => format!("is a file that has {names} names, and would be written over"),
        };
        Err(io::Error::new(io::ErrorKind::TooManyLinks, format!("{} {what}", self.path.join(name).display())))
    }

    /// The same as [`Dir::open_file`] for a file that root or the caller alone controls.
    ///
    /// # Errors
    /// Also [`crate::Distrust`] as `PermissionDenied`.
    pub fn open_trusted_file(&self, path: impl AsRef<Path>, access: Access) -> io::Result<File> {
        let file = self.open_file(path, access)?;
        trusted(&file)?;
        Ok(file)
    }

    /// Opens a file of ours, or makes it: for locks and logs.
    ///
    /// # Errors
    /// As [`Dir::open_trusted_file`].
    pub fn open_or_create(&self, name: impl AsRef<Path>, access: Access, mode: u32) -> io::Result<File> {
        let name = name.as_ref();
        for _ in 0..16 {
            match self.open_trusted_file(name, access) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => return result,
            }
            let flags = access.flags() | OFlags::CREATE | OFlags::EXCL;
            match open_below(&self.file, name, flags, Mode::from_raw_mode(mode)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                result => return result,
            }
        }
        Err(io::Error::other(format!("{} comes and goes", self.path.join(name).display())))
    }

    /// Reads a regular file of at most `most` bytes whole.
    ///
    /// # Errors
    /// As [`Dir::open_file`]; `FileTooLarge` for a longer one.
    pub fn read(&self, path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
        let path = path.as_ref();
        whole(self.open_file(path, Access::Read)?, &self.path.join(path), most)
    }

    /// The same for a file that root or the caller alone controls.
    ///
    /// # Errors
    /// Also [`crate::Distrust`] as `PermissionDenied`.
    pub fn read_trusted(&self, path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
        let path = path.as_ref();
        whole(self.open_trusted_file(path, Access::Read)?, &self.path.join(path), most)
    }

    /// Names of what is in it, in no order.
    ///
    /// # Errors
    /// Those of getdents(2).
    pub fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
        let entries = rustix::fs::Dir::read_from(&self.file)?;
        Ok(entries
            .map(|entry| Ok(OsString::from_vec(entry?.file_name().to_bytes().to_vec())))
            .filter(|name| !name.as_ref().is_ok_and(|name: &OsString| name == "." || name == "..")))
    }

    /// Lengths of the regular files in it and in folders below, together. Links are left out, and folders so many levels
    /// down that somebody must have made them for whoever counts are an error.
    ///
    /// # Errors
    /// Those of open(2) and stat(2); what vanishes meanwhile is none.
    pub fn bytes(&self, levels: u32) -> io::Result<u64> {
        if levels == 0 {
            return Err(io::Error::other(format!("{} lies too deep", self.path.display())));
        }
        let measured = |name: &OsStr| -> io::Result<u64> {
            let found = rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => self.subdir(name)?.bytes(levels - 1),
                FileType::RegularFile => Ok(u64::try_from(found.st_size).unwrap_or(0)),
                _ => Ok(0),
            }
        };
        let mut sum = 0_u64;
        for name in self.names()? {
            match measured(&name?) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                bytes => sum = sum.saturating_add(bytes?),
            }
        }
        Ok(sum)
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// `AlreadyExists`; those of symlinkat(2).
    pub fn make_link(&self, name: impl AsRef<OsStr>, to: impl AsRef<Path>) -> io::Result<()> {
        check_name(name.as_ref())?;
        Ok(rustix::fs::symlinkat(to.as_ref(), &self.file, name.as_ref())?)
    }

    /// Removes a name that is not a folder's. A link goes, not what it points to.
    ///
    /// # Errors
    /// Those of unlinkat(2).
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        check_name(name.as_ref())?;
        Ok(rustix::fs::unlinkat(&self.file, name.as_ref(), AtFlags::empty())?)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// Those of unlinkat(2).
    pub fn remove_dir(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        check_name(name.as_ref())?;
        Ok(rustix::fs::unlinkat(&self.file, name.as_ref(), AtFlags::REMOVEDIR)?)
    }

    /// Renames within the folder, over what may bear the new name.
    ///
    /// # Errors
    /// Those of renameat(2).
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        check_name(from.as_ref())?;
        check_name(to.as_ref())?;
        Ok(rustix::fs::renameat(&self.file, from.as_ref(), &self.file, to.as_ref())?)
    }

    /// Renames within the folder, unless something bears the new name.
    ///
    /// # Errors
    /// `AlreadyExists`; those of renameat2(2). A file system without that is looked at before.
    pub fn rename_new(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        check_name(from)?;
        check_name(to)?;
        match rustix::fs::renameat_with(&self.file, from, &self.file, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS) => {}
            done => return Ok(done?),
        }
        match rustix::fs::statat(&self.file, to, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => self.rename(from, to),
            Err(error) => Err(error.into()),
            Ok(_) => Err(Errno::EXIST.into()),
        }
    }

    /// Moves something into another folder of the file system, over what may bear the new name there.
    ///
    /// # Errors
    /// Those of renameat(2).
    pub fn move_into(&self, from: impl AsRef<OsStr>, folder: &Dir, to: impl AsRef<OsStr>) -> io::Result<()> {
        check_name(from.as_ref())?;
        check_name(to.as_ref())?;
        Ok(rustix::fs::renameat(&self.file, from.as_ref(), &folder.file, to.as_ref())?)
    }

    /// Sets the permission bits.
    ///
    /// # Errors
    /// Those of fchmod(2).
    pub fn chmod(&self, mode: u32) -> io::Result<()> {
        Ok(rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode))?)
    }

    /// Gives the folder to an account and a group.
    ///
    /// # Errors
    /// Those of fchown(2).
    pub fn chown(&self, uid: u32, gid: u32) -> io::Result<()> {
        Ok(rustix::fs::fchown(&self.file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?)
    }

    /// Makes renames and removals in it durable.
    ///
    /// # Errors
    /// Those of fsync(2).
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn from_parts(file: File, path: PathBuf) -> Dir {
        Dir { file, path }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn whole(file: File, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let what = format!("{} has more than {most} bytes", path.display());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

fn irregular(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not a regular file", path.display()))
}

/// Takes an exclusive lock on an open file without waiting; it ends with the last descriptor of the file.
///
/// # Errors
/// `WouldBlock` when another process has it.
pub fn lock(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Opens the very file again that a descriptor holds, with a position and flags of its own. Its name may mean something
/// else by now.
///
/// # Errors
/// Those of open(2); the rights to the file are checked anew.
pub fn reopen(file: &impl AsRawFd, options: &OpenOptions) -> io::Result<File> {
    options.open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
