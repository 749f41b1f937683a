//! Opening targets: flags, alignment for O_DIRECT, sizes of files and devices.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use weir_core::workload::spec::{Job, OpenSync};

use crate::IoError;
use crate::place::Place;

/// Opens one file or device of a job with the flags it asks for.
pub fn open(job: &Job, place: &Place) -> Result<File, IoError> {
    let path = place.path();
    let mut flags = libc::O_CLOEXEC;
    if job.direct {
        flags |= libc::O_DIRECT;
    }
    flags |= match job.open_sync {
        OpenSync::None => 0,
        OpenSync::Sync => libc::O_SYNC,
        OpenSync::Dsync => libc::O_DSYNC,
    };
    let open = |flags| place.open(OpenOptions::new().read(true).write(job.writes()).custom_flags(flags));
    // Reads are not to change the file, nor to be charged for it; only its owner may ask for that.
    let file =
        open(flags | libc::O_NOATIME).or_else(|_| open(flags)).map_err(|e| open_error(job, path, e))?;
    if job.direct {
        check_alignment(job, path, &file)?;
    }
    Ok(file)
}

/// Opens a file for reading past the page cache where it takes O_DIRECT with this block size, else through it.
pub fn open_to_read_back(place: &Place, block_bytes: u64) -> io::Result<File> {
    let direct = place.open(OpenOptions::new().read(true).custom_flags(libc::O_DIRECT));
    match direct {
        Ok(file) if direct_alignment(&file).is_none_or(|align| block_bytes.is_multiple_of(align)) => Ok(file),
        _ => place.open(OpenOptions::new().read(true)),
    }
}

fn open_error(job: &Job, path: &Path, error: io::Error) -> IoError {
    let kind = error.raw_os_error();
    let failure = IoError::io("cannot open", path, error);
    match kind {
        Some(libc::EINVAL) if job.direct => IoError { fault: crate::error::Fault::Environment, ..failure }
            .hint(
                "this file system does not take O_DIRECT (tmpfs and some FUSE ones do not): add \
                --direct=false",
            ),
        Some(libc::EROFS) => IoError { fault: crate::error::Fault::Environment, ..failure }
            .hint("the file system is mounted read-only: choose another folder, or a read-only workload"),
        Some(libc::EACCES | libc::EPERM) => IoError { fault: crate::error::Fault::Environment, ..failure }
            .hint(
                "this user may not open it \
                in that mode",
            ),
        _ => failure,
    }
}

/// Refuses block sizes that the device under an O_DIRECT file cannot take.
fn check_alignment(job: &Job, path: &Path, file: &File) -> Result<(), IoError> {
    let Some(alignment) = direct_alignment(file) else { return Ok(()) };
    let Some(block) = job.block.sizes().find(|size| !size.is_multiple_of(alignment)) else { return Ok(()) };
    Err(IoError::usage(format!(
        "{}: O_DIRECT needs multiples of {alignment} bytes here, and a block has {block} bytes",
        path.display()
    ))
    .hint(format!("use --block {alignment} or a multiple of it, or add --direct=false")))
}

/// The alignment in bytes that O_DIRECT needs on this file: what statx says (Linux 6.1), else the logical block
/// size of a block device, else nothing known.
pub fn direct_alignment(file: &File) -> Option<u64> {
    // SAFETY: statx is plain numbers, for which zero is a valid value.
    let mut answer: libc::statx = unsafe { std::mem::zeroed() };
    const STATX_DIOALIGN: u32 = 0x2000;
    // SAFETY: an empty path with AT_EMPTY_PATH names the open descriptor; `answer` is valid to fill.
    let status = unsafe {
        libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, STATX_DIOALIGN, &mut answer)
    };
    if status == 0 && answer.stx_mask & STATX_DIOALIGN != 0 && answer.stx_dio_offset_align > 0 {
        return Some(u64::from(answer.stx_dio_offset_align));
    }
    let mut size: libc::c_int = 0;
    // SAFETY: BLKSSZGET fills one int; on anything but a block device it fails and changes nothing.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), libc::BLKSSZGET, &mut size) };
    (status == 0 && size > 0).then_some(size as u64)
}

/// Size in bytes of an open file or block device.
pub fn size_bytes(file: &File, path: &Path) -> Result<u64, IoError> {
    let metadata = file.metadata().map_err(|e| IoError::io("cannot examine", path, e))?;
    if !metadata.file_type().is_block_device() {
        return Ok(metadata.len());
    }
    let mut bytes: u64 = 0;
    // SAFETY: BLKGETSIZE64 fills one u64.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), BLKGETSIZE64, &mut bytes) };
    if status == 0 {
        Ok(bytes)
    } else {
        Err(IoError::io("cannot read the size of", path, io::Error::last_os_error()))
    }
}

/// _IOR(0x12, 114, size_t), from linux/fs.h.
const BLKGETSIZE64: libc::c_ulong = 0x8008_1272;

/// Takes a file out of the page cache. Only clean pages go, so what is dirty is written first.
pub fn invalidate(file: &File, path: &Path) -> Result<(), IoError> {
    file.sync_data().or_else(|error| match error.raw_os_error() {
        // squashfs, EROFS and ISO 9660 have no fsync, and nothing on them is dirty.
        Some(libc::EINVAL | libc::EROFS | libc::EOPNOTSUPP) => Ok(()),
        _ => Err(IoError::io("cannot sync", path, error)),
    })?;
    // SAFETY: posix_fadvise takes a descriptor and numbers; it is advice, and what stays in memory is seen after the run.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    Ok(())
}

/// Magic numbers of file systems (linux/magic.h, xfs_super.c): ext4, XFS, tmpfs (also devtmpfs, where block devices are),
/// overlay, NFS.
const COUNTING: [u32; 5] = [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630, 0x6969];

/// Whether the kernel counts all that is read from the storage to the process that reads, byte for byte. On FUSE, virtiofs,
/// 9p, SMB and Ceph, other threads fetch; a file system that compresses fetches less than it hands over.
pub fn counts_reads(file: &File) -> bool {
    // SAFETY: statfs is plain numbers, for which zero is a valid value.
    let mut answer: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `answer` is valid for the call to fill.
    let status = unsafe { libc::fstatfs(file.as_raw_fd(), &mut answer) };
    status == 0 && COUNTING.contains(&(answer.f_type as u32))
}

/// fsync(2) or fdatasync(2), through a descriptor that may belong to another thread's engine.
pub fn sync(file: &File, data_only: bool) -> io::Result<()> {
    if data_only { file.sync_data() } else { file.sync_all() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of procfs has no fsync, as those of squashfs and EROFS: EINVAL. O_PATH gives EBADF.
    #[test]
    fn only_a_file_without_fsync_need_not_be_synced() {
        let path = Path::new("/proc/version");
        let opened = |flags| OpenOptions::new().read(true).custom_flags(flags).open(path).unwrap();
        let without = opened(0);
        assert_eq!(without.sync_data().unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert!(invalidate(&without, path).is_ok());
        assert!(invalidate(&opened(libc::O_PATH), path).is_err());
    }

    #[test]
    fn reads_are_counted_on_known_file_systems_only() {
        let counted = |path| counts_reads(&File::open(path).unwrap());
        assert!(!counted("/proc/version") && !counted("/sys/kernel"));
        // /dev is devtmpfs, or a container's tmpfs.
        assert!(counted("/dev/null"));
    }
}
