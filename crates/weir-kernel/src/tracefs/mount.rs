//! Where the kernel's tracer is: mounted already, or mounted for this process alone and nowhere to be seen.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::Error;

/// The second is where kernels before 4.1, and people's habits, have it.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// TRACEFS_MAGIC (linux/magic.h).
const MAGIC: libc::c_long = 0x7472_6163;
/// FSCONFIG_CMD_CREATE (linux/mount.h).
const CREATE: libc::c_uint = 6;

/// A tracefs that can be used. A mount of our own ends with the value, and with the process in any case.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Finds the tracer, or mounts it where no other process sees it.
    ///
    /// # Errors
    /// What is missing: the privilege, or the tracer itself.
    pub fn open() -> Result<Tracefs, Error> {
        if let Some(root) = PLACES.iter().map(Path::new).find(|place| is_tracefs(place)) {
            std::fs::read_dir(root.join("instances")).map_err(|source| denied(source, root))?;
            return Ok(Tracefs { root: root.to_path_buf(), _mount: None });
        }
        let mount = detached(c"tracefs").map_err(|source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                Error::Denied { what: "mounting tracefs", lacking: vec!["CAP_SYS_ADMIN".to_string()] }
            }
            Some(libc::ENODEV) => Error::Unsupported { lacking: "tracefs (CONFIG_FTRACE)".to_string() },
            _ => Error::System { what: "cannot mount tracefs".to_string(), source },
        })?;
        // The link leads into the mount, although no path does.
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Tracefs { root, _mount: Some(mount) })
    }

    /// Its root.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

fn denied(source: io::Error, root: &Path) -> Error {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            Error::Denied { what: "the kernel's tracer", lacking: vec!["root".to_string()] }
        }
        _ => Error::System { what: format!("cannot read {}", root.display()), source },
    }
}

fn is_tracefs(place: &Path) -> bool {
    let Ok(path) = CString::new(place.as_os_str().as_bytes()) else { return false };
    // SAFETY: statfs is plain data, for which zeros are a value.
    let mut answer: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends with a zero byte, and the kernel writes one statfs where it is told to.
    let done = unsafe { libc::statfs(path.as_ptr(), &mut answer) };
    done == 0 && answer.f_type as libc::c_long == MAGIC
}

/// A mount that is attached nowhere (fsopen(2), Linux 5.2), of this kind of file system.
pub(crate) fn detached(kind: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: `kind` ends with a zero byte; the kernel reads no further.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), 1) })?;
    let null = std::ptr::null::<libc::c_char>();
    // SAFETY: this command takes no key and no value.
    let made = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), CREATE, null, null, 0) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no pointers are passed.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1, 0) })
}

fn owned(answer: libc::c_long) -> io::Result<OwnedFd> {
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just returned this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(answer as i32) })
}
