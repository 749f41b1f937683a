//! A sample and a decision in which nothing happens, what /proc says of a process, and a machine with some disks.

use weir_control::{
    Action, Branch, Bulk, Decision, DeviceFlow, Inputs, Limits, Mood, Sample, Sensor, SensorSource, Syncs,
};
use weir_core::target::DeviceNumber;
use weir_host::Host;

/// Of device 7:0.
pub fn sample(at_ns: u64) -> Sample {
    Sample {
        device: DeviceNumber { major: 7, minor: 0 },
        at_ns,
        elapsed_ns: 100_000_000,
        sensor: Sensor { source: SensorSource::Syscalls, silent_ns: 0, lost: 0 },
        syncs: Syncs::default(),
        bulk: Bulk::default(),
        flow: DeviceFlow::default(),
        limits: Limits::default(),
    }
}

/// To do nothing.
pub fn decision(at_ns: u64) -> Decision {
    Decision {
        at_ns,
        action: Action::Keep,
        branch: Branch::Steady,
        inputs: Inputs::default(),
        mood: Mood::Released,
    }
}

/// `/proc/PID/stat` of a process that began so many ticks after the boot.
pub fn stat(pid: u32, ticks: u64) -> String {
    format!("{pid} (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {ticks} 0 0")
}

/// Of its `status` the line of accounts.
pub fn ids([real, effective, saved, of_files]: [u32; 4]) -> String {
    format!("Uid:\t{real}\t{effective}\t{saved}\t{of_files}\n")
}

/// Whether this is root; says where not.
pub fn root_or_say(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        say!("not run: {test} lacks root");
    }
    is_root
}

/// The files of a machine with some disks, of which each has a number as the kernel gives: sda 8:0, sdb 8:16.
pub struct Disks(tempfile::TempDir);

impl Disks {
    /// With these disks.
    pub fn of(names: &[&str]) -> Disks {
        let disks = Disks(tempfile::tempdir().unwrap());
        for folder in ["sys/dev/block", "proc/self"] {
            std::fs::create_dir_all(disks.0.path().join(folder)).unwrap();
        }
        std::fs::write(disks.0.path().join("proc/meminfo"), "Dirty: 0 kB\nWriteback: 0 kB\n").unwrap();
        names.iter().for_each(|name| disks.plug(name));
        disks
    }

    /// As weir reads it.
    pub fn host(&self) -> Host {
        Host::at(self.0.path())
    }

    /// A disk is there from now on.
    pub fn plug(&self, name: &str) {
        let (folder, number) = (self.folder(name), number(name));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("dev"), &number).unwrap();
        std::fs::write(folder.join("stat"), "0 0 0 0 0 0 0 0 0 0 0").unwrap();
        let link = self.0.path().join("sys/dev/block").join(number);
        std::os::unix::fs::symlink(format!("../../class/block/{name}"), link).unwrap();
    }

    /// A disk is gone.
    pub fn unplug(&self, name: &str) {
        std::fs::remove_dir_all(self.folder(name)).unwrap();
        std::fs::remove_file(self.0.path().join("sys/dev/block").join(number(name))).unwrap();
    }

    /// These file systems are mounted: where, and on which disk.
    pub fn mount(&self, mounts: &[(&str, &str)]) {
        let line = |(at, (place, disk)): (usize, &(&str, &str))| {
            format!("{} 1 {} / {place} rw - ext4 /dev/{disk} rw\n", 30 + at, number(disk))
        };
        let text: String = mounts.iter().enumerate().map(line).collect();
        std::fs::write(self.0.path().join("proc/self/mountinfo"), text).unwrap();
    }

    fn folder(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join("sys/class/block").join(name)
    }
}

fn number(disk: &str) -> String {
    let letter = disk.bytes().last().unwrap();
    format!("8:{}", u32::from(letter - b'a') * 16)
}
