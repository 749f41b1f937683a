//! A sample and a decision in which nothing happens.

use weir_control::{
    Action, Bulk, Decision, DeviceFlow, Inputs, Limits, Mood, Reason, Sample, Sensor, SensorSource, Syncs,
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
        branch: Reason::Steady,
        inputs: Inputs::default(),
        mood: Mood::Released,
    }
}
