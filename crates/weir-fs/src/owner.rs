//! The rule of owners: whose files and folders may be believed.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

/// Why a file or folder is not believed: another account can change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distrust {
    /// It belongs to this account, which is neither root nor the caller.
    Owner(u32),
    /// Its group or everybody may write to it; these are its permission bits.
    Writable(u32),
    /// A program of this account serves its file system, and says of it what it likes.
    Served(u32),
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distrust::Owner(uid) => {
                write!(f, "it belongs to account {uid}, which may change it at any moment")
            }
            Distrust::Served(uid) => write!(f, "a program of account {uid} serves its file system"),
            Distrust::Writable(mode) => write!(f, "other accounts may write to it (mode {mode:04o})"),
        }
    }
}

impl std::error::Error for Distrust {}

impl From<Distrust> for io::Error {
    fn from(why: Distrust) -> io::Error {
        io::Error::new(io::ErrorKind::PermissionDenied, why)
    }
}

/// Whether a file or folder is under the control of root or the caller alone: one of them owns it, and neither group
/// nor others may write to it. (An ACL that lets others write shows in the bits of the group.)
///
/// Of a link it says nothing.
///
/// # Errors
/// Why not, as `PermissionDenied`; or what the kernel said.
pub fn trusted(file: &File) -> io::Result<()> {
    served(file)?;
    Ok(judged(&file.metadata()?)?)
}

/// Whether root or the caller owns a file or folder, whoever else may write to it.
///
/// # Errors
/// As [`trusted`].
pub fn owned(file: &File) -> io::Result<()> {
    served(file)?;
    match judged(&file.metadata()?) {
        Err(why @ (Distrust::Owner(_) | Distrust::Served(_))) => Err(why.into()),
        Err(Distrust::Writable(_)) | Ok(()) => Ok(()),
    }
}

/// The same of a name: a link itself, or where it leads.
///
/// # Errors
/// As [`trusted`].
pub fn owned_at(path: &Path, follows: bool) -> io::Result<()> {
    let more = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
    owned(&File::from(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC | more, Mode::empty())?))
}

fn judged(data: &Metadata) -> Result<(), Distrust> {
    judge(data.uid(), data.mode(), caller())
}

/// Whether owner and mode of an open file, or of a place that was found, are the kernel's word, or root's or the caller's: not those
/// of a FUSE mount that another account made for all (`allow_other`). Asks the file system nothing but where the mount is in no table any
/// more, and then does not wait for an answer for long.
///
/// # Errors
/// Whose it is, or that it is not known.
pub(crate) fn served(file: &File) -> io::Result<()> {
    // Where there is no /proc there are no accounts beside this one either: a chroot, the first moments of a boot.
    let about = match fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        about => about?,
    };
    let mount = about.lines().find_map(|line| line.strip_prefix("mnt_id:")).unwrap_or_default();
    let mounts = crate::read_lossily("/proc/self/mountinfo")?;
    let server = match server_of(&mounts, mount.trim()) {
        Mounted::Kernel => return Ok(()),
        Mounted::Program(account) => account,
        // Its owner may have detached it since it was opened. A chroot's root is not there either.
        Mounted::Nowhere if is_the_kernel_s(file)? => return Ok(()),
        Mounted::Nowhere => u32::MAX,
    };
    if server == 0 || server == caller() { Ok(()) } else { Err(Distrust::Served(server).into()) }
}

/// fs/fuse/inode.c.
const FUSE_MAGIC: u64 = 0x6573_5546;
/// The kernel's own file systems answer at once.
const PATIENCE: Duration = Duration::from_millis(250);

/// So many threads may be left behind: beyond that nothing is asked until one of them returns.
const STUCK_MAX: usize = 8;
static ASKING: AtomicUsize = AtomicUsize::new(0);

/// Whether a file system says that it is not FUSE. The server of one may never answer: then a thread is left behind, which has
/// nothing open but this file.
fn is_the_kernel_s(file: &File) -> io::Result<bool> {
    if ASKING.fetch_add(1, Ordering::Relaxed) >= STUCK_MAX {
        ASKING.fetch_sub(1, Ordering::Relaxed);
        return Ok(false);
    }
    let (number, (tell, told)) = (file.as_raw_fd(), mpsc::channel());
    let ask = move || {
        let of_this = number.unsigned_abs();
        // SAFETY: both take numbers; from here on this thread has descriptors of its own, and uses the one that stays. Where
        // nobody waits for the answer any more that may be another file's, whose answer nobody hears.
        let file = unsafe {
            let own = libc::CLOSE_RANGE_UNSHARE;
            let above = of_this.saturating_add(1);
            let is_apart = libc::syscall(libc::SYS_close_range, above, libc::c_uint::MAX, own) == 0;
            let first: libc::c_uint = 3;
            if is_apart && of_this > first {
                libc::syscall(libc::SYS_close_range, first, of_this - 1, 0);
            }
            BorrowedFd::borrow_raw(number)
        };
        let kind = rustix::fs::fstatfs(file).map(|found| found.f_type as u64);
        ASKING.fetch_sub(1, Ordering::Relaxed);
        kind
    };
    let spawned = thread::Builder::new().spawn(move || tell.send(ask()));
    spawned.inspect_err(|_| {
        ASKING.fetch_sub(1, Ordering::Relaxed);
    })?;
    let kind = told.recv_timeout(PATIENCE).ok().transpose()?;
    Ok(kind.is_some_and(|kind| kind != FUSE_MAGIC))
}

/// Who serves a mount.
#[derive(Debug, PartialEq, Eq)]
enum Mounted {
    Kernel,
    /// A program of this account.
    Program(u32),
    /// It is not in the table.
    Nowhere,
}

/// What a table of mounts says of one. (virtiofs is the hypervisor's.)
fn server_of(mounts: &str, mount: &str) -> Mounted {
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(mount));
    let Some((_, system)) = line.and_then(|line| line.split_once(" - ")) else { return Mounted::Nowhere };
    let mut system = system.split(' ');
    let is_fuse = system.next().is_some_and(|kind| kind.starts_with("fuse"));
    let mut options = system.nth(1).unwrap_or_default().split(',');
    let account = options.find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
    if is_fuse { Mounted::Program(account.unwrap_or(u32::MAX)) } else { Mounted::Kernel }
}

/// The account whose rights this process acts with.
pub(crate) fn caller() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn judge(owner: u32, mode: u32, caller: u32) -> Result<(), Distrust> {
    if owner != 0 && owner != caller {
        return Err(Distrust::Owner(owner));
    }
    if mode & 0o022 != 0 {
        return Err(Distrust::Writable(mode & 0o7777));
    }
    Ok(())
}

/// Whether a path leads to the same file for as long as root and the caller leave it alone: the file and every folder
/// above it, up to the root, are [`trusted`]. Returns the path without links.
///
/// # Errors
/// The first file or folder that another account can change, or that cannot be opened.
pub fn trusted_chain(path: &Path) -> io::Result<PathBuf> {
    chain(path, judged)
}

/// The same of a folder in which others may make files, and of folders above it in which they may (`/tmp`): they do not rename or
/// remove what is root's or the caller's there (the sticky bit).
///
/// # Errors
/// As [`trusted_chain`].
pub fn lasting_chain(path: &Path) -> io::Result<PathBuf> {
    chain(path, |data| judge_lasting(data.uid(), data.mode(), caller()))
}

/// The same where a group may write, too: no other account owns the folders, and not everybody may put another one in the place of
/// one of them.
///
/// # Errors
/// As [`trusted_chain`].
pub fn owned_chain(path: &Path) -> io::Result<()> {
    let judge = |data: &Metadata| judge_lasting(data.uid(), data.mode() & !0o020, caller());
    chain(path, judge).map(drop)
}

/// Opens the folder that a path leads to, if no other account decides where it leads: the folders above it, those in which
/// links on the way lie, and these links are as [`lasting_chain`] wants them. Whose the folder itself is, it does not ask.
///
/// # Errors
/// As [`trusted_chain`].
pub fn steady_folder(path: &Path) -> io::Result<File> {
    /// As the kernel follows (path_resolution(7)).
    const LINKS_MAX: usize = 40;
    let judged = |file: &File, at: &Path| {
        served(file)?;
        let data = file.metadata()?;
        let mode = if data.is_symlink() { 0 } else { data.mode() };
        judge_lasting(data.uid(), mode, caller()).map_err(|why| refused(at, why))
    };
    let open = |above: Option<&File>, name: &OsStr| {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match above {
            Some(above) => rustix::fs::openat(above, name, flags, Mode::empty()),
            None => rustix::fs::open(name, flags, Mode::empty()),
        };
        file.map(File::from)
    };
    let parts = |path: &Path| path.iter().rev().map(OsStr::to_os_string).collect::<Vec<_>>();
    let mut left = parts(&std::path::absolute(path)?);
    let mut at = open(None, OsStr::new("/"))?;
    let mut links = 0;
    while let Some(part) = left.pop() {
        judged(&at, path)?;
        if part == "/" {
            at = open(None, &part)?;
            continue;
        }
        let next = open(Some(&at), &part)?;
        if !next.metadata()?.is_symlink() {
            at = next;
            continue;
        }
        judged(&next, &path.join(&part))?;
        links += 1;
        if links > LINKS_MAX {
            return Err(rustix::io::Errno::LOOP.into());
        }
        let target = rustix::fs::readlinkat(&next, "", Vec::new())?;
        left.extend(parts(Path::new(OsStr::from_bytes(target.to_bytes()))));
    }
    served(&at)?;
    Ok(at)
}

fn refused(at: &Path, why: Distrust) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{}: {why}", at.display()))
}

fn judge_lasting(owner: u32, mode: u32, caller: u32) -> Result<(), Distrust> {
    judge(owner, if mode & 0o1000 != 0 { mode & !0o022 } else { mode }, caller)
}

fn chain(path: &Path, judge: impl Fn(&Metadata) -> Result<(), Distrust>) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    let mut at = PathBuf::new();
    let mut above: Option<File> = None;
    for part in real.components() {
        at.push(part);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match (&above, part) {
            (Some(folder), Component::Normal(name)) => rustix::fs::openat(folder, name, flags, Mode::empty()),
            _ => rustix::fs::open("/", flags, Mode::empty()),
        };
        let file = File::from(file?);
        served(&file)?;
        let data = file.metadata()?;
        if data.is_symlink() {
            return Err(io::Error::other(format!("{} became a link meanwhile", at.display())));
        }
        judge(&data).map_err(|why| refused(&at, why))?;
        above = Some(file);
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_and_the_caller_are_believed() {
        for (owner, mode, caller, expected) in [
            (0, 0o100_644, 1000, Ok(())),
            (1000, 0o100_600, 1000, Ok(())),
            (0, 0o040_755, 0, Ok(())),
            (1000, 0o100_600, 0, Err(Distrust::Owner(1000))),
            (1000, 0o100_600, 1001, Err(Distrust::Owner(1000))),
            (0, 0o100_664, 0, Err(Distrust::Writable(0o664))),
            (0, 0o100_646, 0, Err(Distrust::Writable(0o646))),
            (0, 0o041_777, 0, Err(Distrust::Writable(0o1777))),
        ] {
            assert_eq!(judge(owner, mode, caller), expected, "{owner} {mode:o} {caller}");
        }
        // Where everybody may make files, nobody removes what is another's.
        assert_eq!(judge_lasting(0, 0o041_777, 0), Ok(()));
        assert_eq!(judge_lasting(0, 0o040_777, 0), Err(Distrust::Writable(0o777)));
        assert_eq!(judge_lasting(1000, 0o041_777, 0), Err(Distrust::Owner(1000)));
    }

    #[test]
    fn a_program_of_another_account_is_no_witness() {
        let mounts = "43 30 0:39 / / rw - ext4 /dev/sda rw\n\
                      44 43 0:41 / /home/eve/trap rw - fuse.trap trap rw,user_id=1234,group_id=1234,allow_other\n\
                      45 43 0:42 / /mnt/s3 rw - fuse.s3fs s3fs rw,user_id=0,group_id=0\n\
                      46 43 0:43 / /share rw - virtiofs share rw\n\
                      47 43 0:44 / /odd rw - fuse odd rw\n";
        for (mount, expected) in [
            ("43", Mounted::Kernel),
            ("44", Mounted::Program(1234)),
            ("45", Mounted::Program(0)),
            ("46", Mounted::Kernel),
            ("47", Mounted::Program(u32::MAX)),
            ("4", Mounted::Nowhere),
            ("", Mounted::Nowhere),
        ] {
            assert_eq!(server_of(mounts, mount), expected, "{mount}");
        }
    }

    #[test]
    fn a_chain_is_as_good_as_its_weakest_folder() {
        assert_eq!(trusted_chain(Path::new("/usr/..")).unwrap(), Path::new("/"));
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("program"), "").unwrap();
        let why = trusted_chain(&dir.path().join("program")).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::PermissionDenied, "{why}");
        assert!(why.to_string().contains("may write to it"), "{why}");
    }
}
