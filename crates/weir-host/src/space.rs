//! Room in a file system, and what O_DIRECT has to be aligned to.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::HostError;
use crate::host::Host;

/// Room in a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Size.
    pub size_bytes: u64,
    /// Free for an unprivileged writer (reserved blocks left out).
    pub free_bytes: u64,
    /// Unit of allocation.
    pub block_bytes: u64,
    /// Inodes still free; `None` where the file system does not count them.
    pub inodes_free: Option<u64>,
}

/// What O_DIRECT needs on a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Memory addresses are multiples of this, bytes.
    pub memory_bytes: u64,
    /// File offsets and lengths are multiples of this, bytes.
    pub offset_bytes: u64,
    /// Where this is known from: `statx` or `logical block size of NAME`.
    pub source: String,
}

impl Host {
    /// Room in the file system that holds `path`, by statvfs.
    ///
    /// # Errors
    /// When the kernel refuses, mostly because the path does not exist.
    pub fn free_space(&self, path: &Path) -> Result<Space, HostError> {
        let c_path = c_path(path)?;
        let mut stat = MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: the path is a NUL-terminated string and `stat` has room for the structure the kernel fills.
        if unsafe { libc::statvfs(c_path.as_ptr(), stat.as_mut_ptr()) } != 0 {
            return Err(HostError::io(path, io::Error::last_os_error()));
        }
        // SAFETY: statvfs returned 0, so it filled the structure.
        let stat = unsafe { stat.assume_init() };
        Ok(Space {
            size_bytes: stat.f_blocks * stat.f_frsize,
            free_bytes: stat.f_bavail * stat.f_frsize,
            block_bytes: stat.f_frsize,
            inodes_free: (stat.f_files > 0).then_some(stat.f_favail),
        })
    }

    /// What O_DIRECT has to be aligned to on a file or block device: as statx tells (Linux 6.1 and later), else the
    /// logical block size of the device beneath. `None` where the file system takes no O_DIRECT, or nothing tells.
    ///
    /// # Errors
    /// When the path cannot be resolved.
    pub fn direct_alignment(&self, path: &Path) -> Result<Option<DirectAlignment>, HostError> {
        if let Some(told) = self.live.then(|| statx_alignment(path)).flatten() {
            return Ok(told);
        }
        let facts = self.target(path)?;
        let largest = facts
            .stack
            .iter()
            .filter(|layer| layer.beneath_loop.is_none())
            .filter_map(|layer| Some((layer.queue.as_ref()?.logical_block_bytes?, &layer.name)))
            .max();
        Ok(largest.map(|(bytes, name)| DirectAlignment {
            memory_bytes: bytes,
            offset_bytes: bytes,
            source: format!("logical block size of {name}"),
        }))
    }
}

/// `None` where statx does not tell; `Some(None)` where it tells that O_DIRECT does not work.
fn statx_alignment(path: &Path) -> Option<Option<DirectAlignment>> {
    let c_path = c_path(path).ok()?;
    let mut stat = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is a NUL-terminated string and `stat` has room for the structure the kernel fills.
    let result =
        unsafe { libc::statx(libc::AT_FDCWD, c_path.as_ptr(), 0, libc::STATX_DIOALIGN, stat.as_mut_ptr()) };
    if result != 0 {
        return None;
    }
    // SAFETY: the structure was zeroed and consists of integers only; statx returned 0 and filled it.
    let stat = unsafe { stat.assume_init() };
    if stat.stx_mask & libc::STATX_DIOALIGN == 0 {
        return None;
    }
    Some((stat.stx_dio_offset_align > 0).then(|| DirectAlignment {
        memory_bytes: u64::from(stat.stx_dio_mem_align),
        offset_bytes: u64::from(stat.stx_dio_offset_align),
        source: "statx".to_string(),
    }))
}

fn c_path(path: &Path) -> Result<CString, HostError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| HostError::io(path, io::Error::from(io::ErrorKind::InvalidInput)))
}
