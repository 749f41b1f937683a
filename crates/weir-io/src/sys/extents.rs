//! What of a file was ever written. Holes and extents that were only allocated read as zeros, without the device.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// _IOWR('f', 11, struct fiemap), from linux/fs.h.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
/// Write dirty data first: until then the extent that it goes to counts as unwritten.
const FIEMAP_FLAG_SYNC: u32 = 1;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;
/// Extents that one call asks for.
const EXTENTS: usize = 256;

/// From linux/fiemap.h, with its extents behind it.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_more: [u32; 3],
}

/// How many bytes of a range of a file were ever written; `None` where the file system does not say, or it is a device.
pub fn written_bytes(file: &File, range: Range<u64>) -> Option<u64> {
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    by_extents(file, range.clone()).or_else(|_| by_seeking(file, range)).ok()
}

fn by_extents(file: &File, range: Range<u64>) -> io::Result<u64> {
    let (mut at, mut written) = (range.start, 0);
    loop {
        let mut map = Fiemap {
            start: at,
            length: range.end - at,
            flags: FIEMAP_FLAG_SYNC,
            mapped_extents: 0,
            extent_count: EXTENTS as u32,
            reserved: 0,
            extents: [Extent::default(); EXTENTS],
        };
        // SAFETY: FS_IOC_FIEMAP fills the extents behind the header, of which there are `extent_count`.
        if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let found = &map.extents[..map.mapped_extents as usize];
        for extent in found {
            let end = extent.logical.saturating_add(extent.length).min(range.end);
            if extent.flags & FIEMAP_EXTENT_UNWRITTEN == 0 {
                written += end.saturating_sub(extent.logical.max(at));
            }
            at = end.max(at);
        }
        if found.len() < EXTENTS || at >= range.end {
            return Ok(written);
        }
    }
}

/// By data and holes. Pages of an unwritten extent that are in memory count as data here.
fn by_seeking(file: &File, range: Range<u64>) -> io::Result<u64> {
    let seek = |from: u64, whence| {
        // SAFETY: lseek takes numbers; nothing here reads or writes at the file's position.
        let at = unsafe { libc::lseek(file.as_raw_fd(), from as libc::off_t, whence) };
        u64::try_from(at).map_err(|_| io::Error::last_os_error())
    };
    let (mut at, mut written) = (range.start, 0);
    while at < range.end {
        let data = match seek(at, libc::SEEK_DATA) {
            // A hole up to the end.
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break,
            data => data?.min(range.end),
        };
        at = seek(data, libc::SEEK_HOLE)?.min(range.end);
        written += at - data;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const SIZE: u64 = 8 << 20;

    #[test]
    fn holes_and_allocated_extents_are_not_written() {
        let write = |file: &File| {
            let mut file = file;
            file.write_all(&vec![7; SIZE as usize]).unwrap();
        };
        let extend = |file: &File| file.set_len(SIZE).unwrap();
        let half = |file: &File| {
            extend(file);
            std::os::unix::fs::FileExt::write_all_at(file, &vec![7; SIZE as usize / 2], SIZE / 2).unwrap();
        };
        let allocate = |file: &File| {
            // SAFETY: fallocate takes a descriptor and numbers.
            assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, SIZE as i64) }, 0);
        };
        for (what, expected) in [("written", SIZE), ("longer", 0), ("half", SIZE / 2), ("allocated", 0)] {
            let file = tempfile::tempfile().unwrap();
            match what {
                "written" => write(&file),
                "longer" => extend(&file),
                "half" => half(&file),
                _ => allocate(&file),
            }
            assert_eq!(written_bytes(&file, 0..SIZE), Some(expected), "{what}");
            assert_eq!(written_bytes(&file, SIZE - 4096..SIZE), Some(expected.min(4096)), "{what}: its end");
        }
    }

    #[test]
    fn a_file_system_without_extents_tells_by_seeking() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 4096], 1 << 20).unwrap();
        assert_eq!(by_seeking(&file, 0..SIZE).unwrap(), 4096);
        assert_eq!(by_seeking(&file, 2 << 20..SIZE).unwrap(), 0);
    }
}
