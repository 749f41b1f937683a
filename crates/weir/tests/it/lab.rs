//! Loop devices that are throttled, frozen or failing on demand, through `lab/loop-device`, which says how.
//! Everything is put back when the value is dropped, also while a test panics; what a killed test leaves behind,
//! the next one removes, since its owner is dead.

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder `lab/` of the repository.
pub fn lab() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab").canonicalize().unwrap()
}

/// The kernel's dirty limits, both ways of saying each.
pub fn dirty_limits() -> [String; 4] {
    ["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"]
        .map(|name| fs::read_to_string(format!("/proc/sys/vm/{name}")).unwrap())
}

/// The kernel's dirty limits as they were, which come back when the value is dropped.
pub struct DirtyLimits([String; 4]);

impl DirtyLimits {
    /// Writers wait from so many dirty bytes on, and write-back starts at half of them.
    pub fn set(bytes: u64) -> DirtyLimits {
        let before = DirtyLimits(dirty_limits());
        fs::write("/proc/sys/vm/dirty_bytes", bytes.to_string()).unwrap();
        fs::write("/proc/sys/vm/dirty_background_bytes", (bytes / 2).to_string()).unwrap();
        before
    }
}

impl Drop for DirtyLimits {
    fn drop(&mut self) {
        // Writing one way of saying a limit clears the other.
        for (pair, names) in
            self.0.chunks(2).zip([["bytes", "ratio"], ["background_bytes", "background_ratio"]])
        {
            let said = usize::from(pair[0].trim() == "0");
            let file = format!("/proc/sys/vm/dirty_{}", names[said]);
            if let Err(error) = fs::write(&file, pair[said].trim()) {
                let _ = writeln!(io::stderr(), "{file} could not be put back: {error}");
            }
        }
    }
}

/// CAP_SYS_ADMIN, as a bit of `CapEff` (capability.h): containers take it from root.
const SYS_ADMIN: u64 = 1 << 21;

/// The types that the kernel describes, without which no program can be fitted to it: a need like a command.
pub const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Whether the test may run: as root, with these commands there. If not, it says what it lacks, past the capture of
/// the test harness, in the words that `make test` counts.
pub fn root_or_say(test: &str, commands: &[&str]) -> bool {
    let lacking = if !is_root() {
        Some("root")
    } else if capabilities() & SYS_ADMIN == 0 {
        Some("CAP_SYS_ADMIN")
    } else if !Path::new("/dev/loop-control").exists() {
        Some("loop devices")
    } else {
        commands.iter().find(|command| !is_here(command)).copied()
    };
    if let Some(lacking) = lacking {
        let _ = writeln!(io::stderr(), "not run: {test} lacks {lacking}");
    }
    lacking.is_none()
}

/// How many of so many I/Os programs in the kernel have to see. Some virtual machines keep them out of their supervisor,
/// process 1, whose executable even root may not see: a completion that interrupts it is not told.
pub fn seen_of(ios: u64) -> RangeInclusive<u64> {
    let hidden = if fs::read_link("/proc/1/exe").is_err() { 3 } else { 0 };
    ios - hidden..=ios
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// Also of a whole path, which stays one behind every folder.
fn is_here(command: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').any(|folder| Path::new(folder).join(command).exists())
}

/// A loop device of this test's own.
pub struct LoopDevice {
    folder: PathBuf,
}

impl LoopDevice {
    /// Makes one; the options are those of `lab/loop-device create`, such as `fs=xfs` or `write_iops=500`.
    pub fn create(options: &[&str]) -> LoopDevice {
        call(&["clean"]);
        let owner = format!("owner={}", std::process::id());
        let mut arguments = vec!["create", &owner];
        arguments.extend(options);
        LoopDevice { folder: PathBuf::from(call(&arguments).trim()) }
    }

    /// Where its file system is mounted.
    pub fn mount(&self) -> PathBuf {
        self.folder.join("mnt")
    }

    /// The device node.
    pub fn device(&self) -> PathBuf {
        PathBuf::from(fs::read_to_string(self.folder.join("dev")).unwrap().trim())
    }

    /// From now on `reads` of the second half, `writes`, or `all` fail with EIO.
    pub fn fail(&self, what: &str) {
        call(&["fail", &self.folder.to_string_lossy(), what]);
    }

    /// Takes its file system off the tree, and leaves it on the device.
    pub fn unmount(&self) {
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        if mounts.contains(&*self.mount().to_string_lossy()) {
            assert!(Command::new("umount").arg(self.mount()).status().unwrap().success());
        }
    }

    /// Puts it there again.
    pub fn mount_again(&self) {
        let mounted = Command::new("mount").arg(self.device()).arg(self.mount()).status().unwrap();
        assert!(mounted.success());
    }

    /// An empty table with the signature of a master boot record (UEFI specification, 5.2.1).
    pub fn write_partition_table(&self) {
        let mut sector = [0; 512];
        // One entry: type 0x83, from sector 2048, 8192 sectors.
        sector[446..462].copy_from_slice(&[0, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 32, 0, 0]);
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        let node = File::options().write(true).open(self.device()).unwrap();
        node.write_all_at(&sector, 0).unwrap();
        node.sync_all().unwrap();
    }

    /// Everything on it, as the backing file has it.
    pub fn content(&self) -> Vec<u8> {
        fs::read(self.folder.join("disk")).unwrap()
    }

    /// Stops all writes to the file system until the value is dropped.
    pub fn freeze(&self) -> Frozen {
        let mount = self.mount();
        assert!(Command::new("fsfreeze").arg("--freeze").arg(&mount).status().unwrap().success());
        Frozen { mount }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let status = Command::new(lab().join("loop-device")).arg("destroy").arg(&self.folder).status();
        if !status.is_ok_and(|s| s.success()) {
            let _ = writeln!(io::stderr(), "{} could not be taken down", self.folder.display());
        }
    }
}

/// A frozen file system.
pub struct Frozen {
    mount: PathBuf,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("--unfreeze").arg(&self.mount).status();
    }
}

/// Runs `lab/loop-device` and returns what it printed.
fn call(arguments: &[&str]) -> String {
    let output = Command::new(lab().join("loop-device")).args(arguments).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "lab/loop-device {arguments:?}: {complaint}");
    String::from_utf8(output.stdout).unwrap()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    #[test]
    fn root_a_device_goes_away_when_a_test_panics() {
        if !root_or_say("root_a_device_goes_away_when_a_test_panics", &["mkfs.ext4"]) {
            return;
        }
        let left = std::sync::Mutex::new(None);
        let ended = std::panic::catch_unwind(|| {
            let device = LoopDevice::create(&["fs=ext4", "size=16M", "write_iops=50"]);
            let _frozen = device.freeze();
            *left.lock().unwrap() = Some((device.mount(), device.device()));
            panic!("on purpose");
        });
        assert!(ended.is_err());
        let (mount, node) = left.into_inner().unwrap().unwrap();
        assert!(!mount.exists(), "{} is left", mount.display());
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        assert!(!mounts.contains(&*mount.to_string_lossy()), "{} is still mounted", mount.display());
        let backing = Path::new("/sys/block").join(node.file_name().unwrap()).join("loop/backing_file");
        let backing = fs::read_to_string(backing).unwrap_or_default();
        assert!(!backing.contains(&*mount.parent().unwrap().to_string_lossy()), "still attached: {backing}");
    }

    #[test]
    fn root_a_device_fails_where_it_is_told_to() {
        if !root_or_say("root_a_device_fails_where_it_is_told_to", &["chattr"]) {
            return;
        }
        // (told to fail, read of the first half, read of the second half, write): EIO or not.
        let cases =
            [("reads", false, true, false), ("writes", false, false, true), ("all", true, true, true)];
        for (what, first, second, writes) in cases {
            let device = LoopDevice::create(&["fs=none", "size=8M"]);
            let size = 8 << 20;
            let file = File::options()
                .read(true)
                .write(true)
                .custom_flags(libc::O_SYNC)
                .open(device.device())
                .unwrap();
            file.write_all_at(&[7; 4096], 4096).unwrap();
            device.fail(what);
            let fails = |result: io::Result<()>| match result {
                Ok(()) => false,
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(libc::EIO), "{what}");
                    true
                }
            };
            let mut buffer = [0; 4096];
            assert_eq!(fails(file.write_all_at(&buffer, 8192)), writes, "{what}: write");
            assert_eq!(fails(file.read_exact_at(&mut buffer, 1 << 20)), first, "{what}: first half");
            assert_eq!(fails(file.read_exact_at(&mut buffer, size - 4096)), second, "{what}: second half");
        }
    }
}
