//! The commands of blktrace (kernel/trace/blktrace.c) to a device node, and a disk's settings of the tracer.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// linux/fs.h.
pub(super) const BLKTRACESETUP: libc::c_ulong = 0xc048_1273;
pub(super) const BLKTRACESTART: libc::c_ulong = 0x1274;
pub(super) const BLKTRACESTOP: libc::c_ulong = 0x1275;
pub(super) const BLKTRACETEARDOWN: libc::c_ulong = 0x1276;

/// A mark by which a trace is known again: its last sector (`end_lba`), beyond all that there are. The kernel says of no trace
/// which process set it up.
pub(super) fn mark() -> io::Result<u64> {
    Ok(weir_fs::random()? | 1 << 63)
}

/// Ends the trace that was set up with this mark, if it is still there; another's is left alone.
pub fn take_down(disk: &str, mark: u64) -> io::Result<()> {
    let setting = settings_of(disk).join("end_lba");
    let _device = kept_open(&setting);
    if fs::read_to_string(setting)?.trim() != mark.to_string() {
        return Ok(());
    }
    let node = open(disk)?;
    // One that was never started cannot be stopped.
    let _ = command(&node, BLKTRACESTOP);
    command(&node, BLKTRACETEARDOWN)
}

/// Opens a disk, by sysfs's name of it, without an effect on it.
pub fn open(disk: &str) -> io::Result<File> {
    let path = Path::new("/dev").join(disk.replace('!', "/"));
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

/// The folder of a disk's settings of the tracer.
pub fn settings_of(disk: &str) -> PathBuf {
    Path::new("/sys/block").join(disk).join("trace")
}

/// Old kernels (5.10) know of a disk's settings of the tracer only while somebody has the disk open: then it is, for this one of
/// them.
pub fn kept_open(setting: &Path) -> Option<File> {
    if fs::read(setting).err()?.raw_os_error() != Some(libc::ENXIO) {
        return None;
    }
    let disk = setting.parent()?.parent()?;
    let file = open(disk.file_name()?.to_str()?).ok()?;
    let number = file.metadata().ok()?.rdev();
    let said = fs::read_to_string(disk.join("dev")).ok()?;
    (said.trim() == format!("{}:{}", libc::major(number), libc::minor(number))).then_some(file)
}

/// Gives a command that takes no argument.
pub(super) fn command(node: &File, request: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these commands take no argument.
    if unsafe { libc::ioctl(node.as_raw_fd(), request as _) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
