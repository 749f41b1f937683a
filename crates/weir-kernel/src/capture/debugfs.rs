//! The kernel's debugfs: where it is mounted, or mounted for this process alone and nowhere to be seen.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::tracefs::detached;

/// A debugfs. A mount of our own ends with the value, and with the process in any case.
#[derive(Debug)]
pub struct Debugfs {
    root: PathBuf,
    _own: Option<OwnedFd>,
}

impl Debugfs {
    /// Finds or mounts it.
    pub fn open() -> Result<Debugfs, Error> {
        let mounts = weir_fs::read_lossily("/proc/self/mounts").unwrap_or_default();
        let place = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let place = fields.next()?;
            (fields.next()? == "debugfs" && place.starts_with("/sys/")).then(|| PathBuf::from(place))
        });
        if let Some(root) = place {
            return Ok(Debugfs { root, _own: None });
        }
        let own = detached(c"debugfs").map_err(|source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                Error::Denied { what: "blktrace's relay", lacking: vec!["CAP_SYS_ADMIN".to_string()] }
            }
            Some(libc::ENODEV) => Error::Unsupported { lacking: "debugfs (CONFIG_DEBUG_FS)".to_string() },
            _ => Error::System { what: "cannot mount debugfs".to_string(), source },
        })?;
        // The link leads into the mount, although no path does.
        Ok(Debugfs { root: PathBuf::from(format!("/proc/self/fd/{}", own.as_raw_fd())), _own: Some(own) })
    }

    /// Its root.
    pub fn root(&self) -> &Path {
        &self.root
    }
}
