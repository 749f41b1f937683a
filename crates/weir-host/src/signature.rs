//! What writing to a block device would destroy. Read directly, because a refusal must not depend on a library
//! being installed. Offsets are those of each format's own on-disk description.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::HostError;
use crate::host::Host;
use crate::mounts::Mount;
use crate::target::split;
use crate::{block, vm};

/// Reasons why writing to this block device would destroy something or hit something in use: mounts, swap, devices
/// built on it, partitions, signatures of file systems and volume managers, an exclusive user. Empty when nothing
/// was found.
///
/// # Errors
/// When the path is not a block device, or cannot be read: what cannot be examined must not be called empty.
pub fn examine_device(path: &Path) -> Result<Vec<String>, HostError> {
    let failed = |error| HostError::io(path, error);
    let meta = path.metadata().map_err(failed)?;
    if !meta.file_type().is_block_device() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "is not a block device")));
    }
    let host = Host::live();
    let number = split(meta.rdev());
    let name = block::name_of(&host.tree, number)
        .ok_or_else(|| failed(io::Error::other(format!("device {number} is not under /sys/dev/block"))))?;
    let mut reasons = uses(&host, &name)?;
    let file = File::open(path).map_err(failed)?;
    let size = device_bytes(&host, &name)?;
    reasons.extend(signatures(&|offset, length| read_at(&file, offset, length), size).map_err(failed)?);
    reasons.extend(exclusive_user(path)?);
    Ok(reasons)
}

fn device_bytes(host: &Host, name: &str) -> Result<u64, HostError> {
    Ok(host.tree.value::<u64>(&format!("/sys/class/block/{name}/size"))?.saturating_mul(512))
}

/// Mounts, swap areas and devices that stand on the device or on its partitions.
fn uses(host: &Host, name: &str) -> Result<Vec<String>, HostError> {
    let mut reasons = Vec::new();
    let inside = host.tree.names(&format!("/sys/class/block/{name}"));
    let is_partition = |child: &String| host.tree.exists(&format!("/sys/class/block/{child}/partition"));
    let partitions: Vec<String> = inside.into_iter().filter(is_partition).collect();
    if !partitions.is_empty() {
        reasons.push(format!("{name} has partitions: {}", partitions.join(", ")));
    }
    let mounts = host.mounts()?;
    let swaps = host.tree.parsed("/proc/swaps", vm::parse_swaps).unwrap_or_default();
    for device in std::iter::once(name.to_string()).chain(partitions) {
        let number = block::number_of(&host.tree, &device)?;
        let holds = |path: &str| is_device(Path::new(path), number);
        let stands_on = |m: &Mount| m.number == number || (!is_anothers(m) && holds(&m.source));
        for mount in mounts.iter().filter(|mount| stands_on(mount)) {
            reasons.push(format!("{device} is mounted on {} ({})", mount.mount_point, mount.kind));
        }
        for swap in swaps.iter().filter(|swap| holds(&swap.path)) {
            reasons.push(format!("{device} is in use as swap ({})", swap.path));
        }
        for holder in host.tree.names(&format!("/sys/class/block/{device}/holders")) {
            reasons.push(format!("{holder} stands on {device}"));
        }
    }
    Ok(reasons)
}

/// Whether another account mounted it, by FUSE: its source is that account's choice, and may never answer.
fn is_anothers(mount: &Mount) -> bool {
    let maker = mount.super_option("user_id").and_then(|account| account.parse::<u32>().ok());
    let own = rustix::process::geteuid().as_raw();
    mount.kind.starts_with("fuse") && maker.is_some_and(|maker| maker != 0 && maker != own)
}

fn is_device(path: &Path, number: weir_core::target::DeviceNumber) -> bool {
    let meta = path.is_absolute().then(|| path.metadata().ok()).flatten();
    meta.is_some_and(|meta| meta.file_type().is_block_device() && split(meta.rdev()) == number)
}

/// On a block device O_EXCL without O_CREAT fails while something else has claimed the device.
fn exclusive_user(path: &Path) -> Result<Option<String>, HostError> {
    match OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(path) {
        Ok(_) => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(Some(format!(
            "{} is claimed by the kernel or another program (exclusive open fails)",
            path.display()
        ))),
        Err(error) => Err(HostError::io(path, error)),
    }
}

/// Reads `length` bytes, fewer at the end of the device.
fn read_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// A format known by bytes at a fixed offset.
struct Magic {
    name: &'static str,
    offset: u64,
    bytes: &'static [u8],
}

const fn magic(name: &'static str, offset: u64, bytes: &'static [u8]) -> Magic {
    Magic { name, offset, bytes }
}

const MAGICS: &[Magic] = &[
    magic("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xef]),
    magic("an xfs file system", 0, b"XFSB"),
    magic("a btrfs file system", 0x1_0040, b"_BHRfS_M"),
    magic("an f2fs file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    magic("an NTFS file system", 3, b"NTFS    "),
    magic("an exFAT file system", 3, b"EXFAT   "),
    magic("a FAT file system", 54, b"FAT12   "),
    magic("a FAT file system", 54, b"FAT16   "),
    magic("a FAT file system", 82, b"FAT32   "),
    magic("an ISO 9660 file system", 32769, b"CD001"),
    magic("a squashfs file system", 0, b"hsqs"),
    magic("an erofs file system", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    magic("a JFS file system", 32768, b"JFS1"),
    magic("a ReiserFS file system", 0x1_0034, b"ReIsEr"),
    // The signature ends the first page, so its offset depends on the page size of the machine that made it.
    magic("a swap area", 4096 - 10, b"SWAPSPACE2"),
    magic("a swap area", 16384 - 10, b"SWAPSPACE2"),
    magic("a swap area", 65536 - 10, b"SWAPSPACE2"),
    // LVM allows its label in any of the first four sectors.
    magic("an LVM2 physical volume", 0, b"LABELONE"),
    magic("an LVM2 physical volume", 512, b"LABELONE"),
    magic("an LVM2 physical volume", 1024, b"LABELONE"),
    magic("an LVM2 physical volume", 1536, b"LABELONE"),
    magic("a LUKS volume", 0, b"LUKS\xba\xbe"),
    magic("a LUKS volume (second header)", 0x4000, b"SKUL\xba\xbe"),
    magic("a member of a Linux RAID (1.1)", 0, &MD_MAGIC),
    magic("a member of a Linux RAID (1.2)", 4096, &MD_MAGIC),
    magic("a bcache device", 4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    magic(
        "a bcachefs file system",
        4096 + 24,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    magic("an Oracle ASM disk", 32, b"ORCLDISK"),
    magic("a Ceph BlueStore device", 0, b"bluestore block device"),
    magic("a GPT partition table", 512, b"EFI PART"),
    magic("a GPT partition table", 4096, b"EFI PART"),
];

/// 0xa92b4efc, little-endian.
const MD_MAGIC: [u8; 4] = [0xfc, 0x4e, 0x2b, 0xa9];

type ReadAt<'a> = dyn Fn(u64, usize) -> io::Result<Vec<u8>> + 'a;

/// Signatures found on a device of `size` bytes, each named once.
fn signatures(read: &ReadAt<'_>, size: u64) -> io::Result<Vec<String>> {
    let mut found: Vec<&str> = Vec::new();
    for magic in MAGICS.iter().chain(&magics_from_the_end(size)) {
        if magic.offset + magic.bytes.len() as u64 <= size
            && read(magic.offset, magic.bytes.len())? == magic.bytes
            && !found.contains(&magic.name)
        {
            found.push(magic.name);
        }
    }
    if has_mbr(&read(0, 512)?) {
        found.push("an MBR partition table");
    }
    if has_zfs_label(read, size)? {
        found.push("a ZFS pool's device");
    }
    Ok(found.into_iter().map(|name| format!("it holds {name}")).collect())
}

/// Formats that keep their mark at the end of the device.
fn magics_from_the_end(size: u64) -> Vec<Magic> {
    const MD_RESERVED: u64 = 65536;
    let mut magics = Vec::new();
    // md 0.90: the last whole 64 KiB that start on such a boundary; md 1.0: 8 KiB before the end, 4 KiB aligned.
    if let Some(offset) = (size & !(MD_RESERVED - 1)).checked_sub(MD_RESERVED) {
        magics.push(magic("a member of a Linux RAID (0.90)", offset, &MD_MAGIC));
    }
    if let Some(offset) = (size / 512).checked_sub(16).map(|sector| (sector & !7) * 512) {
        magics.push(magic("a member of a Linux RAID (1.0)", offset, &MD_MAGIC));
    }
    for block in [512, 4096] {
        if let Some(offset) = size.checked_sub(block) {
            magics.push(magic("a GPT partition table (backup at the end)", offset, b"EFI PART"));
        }
    }
    magics
}

/// 55 AA also ends the boot sector of FAT and NTFS, so at least one entry must look like a partition: a status of
/// 0 or 0x80, a type and a length.
fn has_mbr(sector: &[u8]) -> bool {
    if sector.len() < 512 || sector[510..512] != [0x55, 0xaa] {
        return false;
    }
    let is_partition = |entry: &[u8]| {
        matches!(entry[0], 0 | 0x80) && entry[4] != 0 && entry[8..12] != [0; 4] && entry[12..16] != [0; 4]
    };
    sector[446..510].chunks_exact(16).all(|entry| matches!(entry[0], 0 | 0x80))
        && sector[446..510].chunks_exact(16).any(is_partition)
}

/// ZFS keeps four labels of 256 KiB, two at each end; the second half of each is a ring of uberblocks that begin
/// with 0x00bab10c in the byte order of the machine that wrote them.
fn has_zfs_label(read: &ReadAt<'_>, size: u64) -> io::Result<bool> {
    const LABEL: u64 = 256 << 10;
    let whole = size / LABEL * LABEL;
    let Some(last_two) = whole.checked_sub(2 * LABEL).filter(|start| *start >= 2 * LABEL) else {
        return Ok(false);
    };
    for label in [0, LABEL, last_two, last_two + LABEL] {
        let ring = read(label + LABEL / 2, (LABEL / 2) as usize)?;
        let marks = [0x00ba_b10c_u64.to_le_bytes(), 0x00ba_b10c_u64.to_be_bytes()];
        if ring.chunks_exact(1024).any(|block| marks.iter().any(|mark| block.starts_with(mark))) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const SIZE: usize = 4 << 20;

    fn check(image: &[u8]) -> Vec<String> {
        let read = |offset: u64, length: usize| {
            let from = (offset as usize).min(image.len());
            Ok(image[from..(from + length).min(image.len())].to_vec())
        };
        signatures(&read, image.len() as u64).unwrap()
    }

    #[test]
    fn every_mark_is_found_where_its_format_keeps_it() {
        for magic in MAGICS.iter().chain(&magics_from_the_end(SIZE as u64)) {
            let mut image = vec![0; SIZE];
            image[magic.offset as usize..][..magic.bytes.len()].copy_from_slice(magic.bytes);
            assert_eq!(check(&image), [format!("it holds {}", magic.name)]);
            image[magic.offset as usize] ^= 0xff;
            assert!(check(&image).is_empty(), "{} with a damaged mark", magic.name);
        }
    }

    #[test]
    fn partition_tables_and_pools_are_found_and_noise_is_not() {
        let mut mbr = vec![0; SIZE];
        mbr[510..512].copy_from_slice(&[0x55, 0xaa]);
        assert!(check(&mbr).is_empty(), "a boot mark without partitions");
        mbr[446 + 4] = 0x83;
        mbr[446 + 9] = 8;
        mbr[446 + 13] = 8;
        assert_eq!(check(&mbr), ["it holds an MBR partition table"]);
        let mut zfs = vec![0; SIZE];
        let at = SIZE - (256 << 10) + (128 << 10) + 5 * 1024;
        zfs[at..at + 8].copy_from_slice(&0x00ba_b10c_u64.to_le_bytes());
        assert_eq!(check(&zfs), ["it holds a ZFS pool's device"]);
        for size in [0, 100, 512, 4096, 70_000] {
            assert!(check(&vec![0; size]).is_empty(), "an empty device of {size} bytes");
        }
    }

    #[test]
    fn what_real_tools_make_is_found() {
        let made = |tool: &str, arguments: &[&str], mib: u64, expected: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len(mib << 20).unwrap();
            let output = Command::new(tool).args(arguments).arg(file.path()).output();
            match output {
                Ok(output) if output.status.success() => {
                    let read = |offset, length| read_at(file.as_file(), offset, length);
                    let found = signatures(&read, mib << 20).unwrap();
                    assert!(found.iter().any(|f| f.contains(expected)), "{tool}: {found:?}");
                }
                Ok(output) => panic!("{tool}: {}", String::from_utf8_lossy(&output.stderr)),
                Err(error) => {
                    eprintln!("{tool} is not installed ({error}); its format is checked by its mark only")
                }
            }
        };
        made("mkfs.ext4", &["-q", "-F"], 8, "ext4");
        made("mkfs.xfs", &["-q", "-f"], 320, "xfs");
        made("mkfs.btrfs", &["-q", "-f"], 128, "btrfs");
        made("mkswap", &["-q"], 8, "swap");
    }
}
