//! A sample and a decision in which nothing happens, and what /proc says of a process.

use weir_control::{
    Action, Branch, Bulk, Decision, DeviceFlow, Inputs, Limits, Mood, Sample, Sensor, SensorSource, Syncs,
};
use weir_core::target::DeviceNumber;

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
