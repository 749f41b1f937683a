//! The kernel's tracefs and debugfs: where they are mounted, or mounted for this process alone and nowhere to be seen.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::Error;

/// FSCONFIG_CMD_CREATE (linux/mount.h).
const CREATE: libc::c_uint = 6;

/// A file system of the kernel's. A mount of our own ends with the value, and with the process in any case.
#[derive(Debug)]
pub struct Mount {
    root: PathBuf,
    _own: Option<OwnedFd>,
}

impl Mount {
    /// Finds or mounts `kind`.
    pub fn open(kind: &'static str) -> Result<Mount, Error> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let place = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let place = fields.next()?;
            (fields.next()? == kind && place.starts_with("/sys/")).then(|| PathBuf::from(place))
        });
        if let Some(root) = place {
            return Ok(Mount { root, _own: None });
        }
        let own = detached(kind).map_err(|source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                Error::Denied { what: "the kernel's tracer", lacking: vec!["CAP_SYS_ADMIN".to_string()] }
            }
            Some(libc::ENODEV) => Error::Unsupported { lacking: kind.to_string() },
            _ => Error::System { what: format!("cannot mount {kind}"), source },
        })?;
        // The link leads into the mount, although no path does.
        Ok(Mount { root: PathBuf::from(format!("/proc/self/fd/{}", own.as_raw_fd())), _own: Some(own) })
    }

    /// Its root.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// A mount that is attached nowhere (fsopen(2), Linux 5.2).
fn detached(kind: &str) -> io::Result<OwnedFd> {
    let kind = CString::new(kind)?;
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
