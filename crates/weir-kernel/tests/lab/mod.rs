//! Loop devices for the tests of this crate.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_core::target::DeviceNumber;
use weir_kernel::probe;

/// A loop device with a file system that goes away with the value.
pub struct Device {
    folder: PathBuf,
    pub number: DeviceNumber,
}

impl Device {
    /// One of 256 MiB, or a plain word of what this machine lacks for it.
    pub fn create(test: &str, fs: &str) -> Option<Device> {
        let report = probe::report();
        let has_python = Command::new("python3").arg("--version").output().is_ok();
        let lacking = if report.attach.is_none() {
            report.refusal.unwrap_or_default()
        } else if !Path::new("/dev/loop-control").exists() {
            "loop devices".to_string()
        } else if !has_python {
            "python3".to_string()
        } else {
            String::new()
        };
        if !lacking.is_empty() {
            let _ = writeln!(io::stderr(), "not run: {test} lacks {lacking}");
            return None;
        }
        let folder =
            lab(&["create", &format!("fs={fs}"), "size=320M", &format!("owner={}", std::process::id())]);
        let folder = PathBuf::from(folder.trim());
        let path = fs::read_to_string(folder.join("dev")).unwrap();
        let rdev = fs::metadata(path.trim()).unwrap().rdev();
        let number = DeviceNumber { major: libc::major(rdev), minor: libc::minor(rdev) };
        Some(Device { folder, number })
    }

    /// Where it is mounted.
    pub fn mount(&self) -> PathBuf {
        self.folder.join("mnt")
    }

    /// Lets the kernel keep so much of it dirty and no more; whether this kernel can (6.2).
    pub fn limit_dirty(&self, bytes: u64) -> bool {
        let bdi = PathBuf::from(format!("/sys/class/bdi/{}", self.number));
        let written = fs::write(bdi.join("max_bytes"), bytes.to_string());
        written.and_then(|()| fs::write(bdi.join("strict_limit"), "1")).is_ok()
    }

    /// Bounds its speed: `write_bps=4000000`.
    pub fn throttle(&self, bound: &str) {
        lab(&["throttle", &self.folder.to_string_lossy(), bound]);
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        lab(&["destroy", &self.folder.to_string_lossy()]);
    }
}

/// A file system that takes no writes until dropped.
pub struct Frozen(PathBuf);

impl Frozen {
    pub fn now(mount: PathBuf) -> Frozen {
        assert!(Command::new("fsfreeze").arg("-f").arg(&mount).status().unwrap().success());
        Frozen(mount)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let thawed = Command::new("fsfreeze").arg("-u").arg(&self.0).status();
        assert!(std::thread::panicking() || thawed.unwrap().success());
    }
}

/// What the script says.
pub fn lab(arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/loop-device");
    let output = Command::new(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
