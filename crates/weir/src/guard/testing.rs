//! A sample and a decision in which nothing happens, a guard's state, what /proc says of a process, and a machine with some
//! disks.

use weir_control::{
    Action, Branch, Bulk, Cost, Decision, DeviceFlow, DeviceState, Inputs, Limits, Mood, Sample, Second,
    Sensor, SensorSource, Standing, State, Syncs, Target, Totals, state as of_guard,
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

/// A guarded device.
pub fn device(name: &str, standing: Standing) -> DeviceState {
    let mut totals = Totals::default();
    totals.count(Branch::OldestSync, false);
    totals.count(Branch::Raise, true);
    let second = Second {
        private_dirty_bytes: Some(8_000_000),
        private_pace: Some(33_000_000),
        p50_us: Some(400),
        p99_us: Some(92_000),
        max_us: Some(100_000),
        limit_bytes: 8_000_000,
        target_us: Some(460_000),
        kept: Some(0.97),
        holding: true,
        ..Default::default()
    };
    DeviceState {
        private_cgroups: 2,
        private_actuator: None,
        name: name.to_string(),
        number: Default::default(),
        standing,
        sensor: Sensor { source: SensorSource::Syscalls, silent_ns: 100_000_000, lost: 0 },
        actuator: "vm.dirty_bytes".to_string(),
        saved_bytes: 3_900_000_000,
        floor_bytes: 4 << 20,
        second,
        decision: decision(0),
        writers: Vec::new(),
        totals,
    }
}

/// A guard of two devices, one of which it has yielded.
pub fn state() -> State {
    State {
        schema: of_guard::SCHEMA.to_string(),
        weir_version: "0.1.0".to_string(),
        pid: 1,
        since: String::new(),
        at: String::new(),
        at_ms: 0,
        shadow: false,
        target: Target::default(),
        protect: "all".to_string(),
        devices: vec![
            device("sda", Standing::Guarding),
            // No name of the kernel's, but nothing may break the page.
            device("a\"b\\c\nd", Standing::StoodDown { why: String::new() }),
        ],
        decisions: Vec::new(),
        cost: Cost { cpu_ns: 1_500_000_000, cpu_share: 0.002, rss_bytes: 9 << 20, late_looks: 3 },
        remarks: Vec::new(),
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

    /// Where a file of theirs lies.
    pub fn path(&self, file: &str) -> std::path::PathBuf {
        self.0.path().join(file)
    }

    /// Writes a file, and makes its folder.
    pub fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
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
