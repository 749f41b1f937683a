//! What a machine did between two moments.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::TargetFacts;

/// Load between two samples. Everything is counted for the whole machine, weir's own work included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// Time between the samples.
    pub elapsed_ns: u64,
    /// The devices of the target's stack, by name.
    pub devices: BTreeMap<String, DeviceLoad>,
    /// Share of the time in which tasks waited, by resource (`cpu`, `io`, `memory`); empty where the kernel keeps
    /// no pressure.
    pub pressure: BTreeMap<String, PressureLoad>,
    /// Processors.
    pub cpu: CpuLoad,
    /// Dirty pages and swap traffic.
    pub memory: MemoryLoad,
    /// Writeback of the target's bdi; `null` without debugfs or without permission.
    pub writeback: Option<WritebackLoad>,
    /// Load averages over 1, 5 and 15 minutes at the later sample.
    pub loadavg: Option<[f64; 3]>,
}

impl Load {
    /// Bytes written on the disks beneath for each byte written to the target's device; `None` where the device has requests
    /// of its own, or nothing was written. Bytes, because the counters of writes count flushes on disks and not on md.
    pub fn copies(&self, target: &TargetFacts) -> Option<f64> {
        let device = target.device_layer().filter(|device| !device.has_requests())?;
        let writes = |name: &str| self.devices.get(name).map_or(0.0, |load| load.write_bytes_per_second);
        let beneath: f64 = target.request_layers().iter().map(|layer| writes(&layer.name)).sum();
        let above = writes(&device.name);
        // A copy that was under way at either end has no share.
        (above > 0.0 && beneath > 0.0).then(|| (beneath / above).max(1.0))
    }

    /// Writes that the target's device took; `None` where it has requests of its own.
    pub fn writes_above(&self, target: &TargetFacts) -> Option<f64> {
        let device = target.device_layer().filter(|device| !device.has_requests())?;
        let rate = self.devices.get(&device.name)?.writes_per_second;
        Some(rate * self.elapsed_ns as f64 / 1e9)
    }
}

/// What one block device did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceLoad {
    /// Share of the time with at least one request in flight, percent. Says nothing about how much more a device
    /// with parallelism could do.
    pub util_percent: f64,
    /// Reads per second.
    pub reads_per_second: f64,
    /// Writes per second.
    pub writes_per_second: f64,
    /// Flushes per second (Linux 5.5 and later).
    pub flushes_per_second: f64,
    /// Discards per second (Linux 4.18 and later).
    pub discards_per_second: f64,
    /// Bytes read per second.
    pub read_bytes_per_second: f64,
    /// Bytes written per second.
    pub write_bytes_per_second: f64,
    /// Bytes discarded per second.
    pub discard_bytes_per_second: f64,
    /// Mean time of a read from queue to completion, ms (iostat's r_await); 0 without reads.
    pub read_wait_ms: f64,
    /// Mean time of a write from queue to completion, ms (iostat's w_await); 0 without writes.
    pub write_wait_ms: f64,
    /// Mean time of a discard, ms; 0 without discards.
    pub discard_wait_ms: f64,
    /// Mean time of a flush, ms; 0 without flushes.
    pub flush_wait_ms: f64,
    /// Mean number of requests queued or in flight; iostat's aqu-sz counts a flush twice.
    pub queue_mean: f64,
    /// Requests in flight at the later sample.
    pub in_flight: u64,
}

/// Pressure as the kernel reports it at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pressure {
    /// Share of the last 10 s in which some task waited, percent.
    pub some_avg10_percent: f64,
    /// Share of the last 10 s in which all tasks waited, percent.
    pub full_avg10_percent: f64,
    /// Time in which some task waited, since boot, µs.
    pub some_total_us: u64,
    /// Time in which all tasks waited, since boot, µs.
    pub full_total_us: u64,
}

/// Pressure between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PressureLoad {
    /// Share of the time in which some task waited, percent.
    pub some_percent: f64,
    /// Share of the time in which all tasks waited, percent.
    pub full_percent: f64,
}

/// What the processors did, percent of all of them together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuLoad {
    /// Neither idle nor waiting for I/O, percent.
    pub busy_percent: f64,
    /// Idle while a task of that processor waited for I/O, percent; a hint, no measure.
    pub iowait_percent: f64,
    /// Taken by the hypervisor for others, percent.
    pub steal_percent: f64,
}

/// Dirty pages at the later sample, swap traffic between the two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryLoad {
    /// Changed, not yet being written.
    pub dirty_bytes: u64,
    /// Being written.
    pub writeback_bytes: u64,
    /// Less than this, the kernel's sums of the two may not know: every processor counts for itself up to a threshold.
    pub unknown_below_bytes: u64,
    /// Page cache, shared memory left out.
    pub page_cache_bytes: u64,
    /// Swapped in, bytes per second.
    pub swap_in_bytes_per_second: f64,
    /// Swapped out, bytes per second.
    pub swap_out_bytes_per_second: f64,
}

/// Writeback of one bdi, from debugfs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WritebackLoad {
    /// Bytes made dirty per second.
    pub dirtied_bytes_per_second: f64,
    /// Bytes written back per second.
    pub written_bytes_per_second: f64,
    /// Dirty now, or to be reclaimed.
    pub reclaimable_bytes: u64,
    /// Being written now.
    pub writeback_bytes: u64,
    /// The kernel's own estimate of the device's rate, bytes per second.
    pub bandwidth_bytes_per_second: u64,
}

/// I/O of one other process between two samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessLoad {
    /// Process id.
    pub pid: u32,
    /// Its command name, at most 15 characters.
    pub name: String,
    /// Bytes it made the storage read, per second.
    pub read_bytes_per_second: f64,
    /// Bytes it made dirty or wrote directly, per second.
    pub write_bytes_per_second: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{Layer, LayerKind};

    #[test]
    fn a_mirror_writes_everything_twice() {
        let layer = |name: &str, kind, over: &[&str]| Layer {
            name: name.into(),
            kind,
            over: over.iter().map(ToString::to_string).collect(),
            ..Layer::default()
        };
        let mapped = LayerKind::Dm { dm_name: "x".into(), dm_type: String::new() };
        let stack = vec![
            layer("dm-0", mapped, &["sda", "sdb"]),
            layer("sda", LayerKind::Disk, &[]),
            layer("sdb", LayerKind::Disk, &[]),
        ];
        let target = |device: &str| TargetFacts {
            stack: stack.clone(),
            device: Some(device.into()),
            ..TargetFacts::default()
        };
        let load = |rates: [f64; 3]| {
            let device = |rate| DeviceLoad { write_bytes_per_second: rate, ..DeviceLoad::default() };
            let names = ["dm-0", "sda", "sdb"].map(str::to_string);
            Load { devices: names.into_iter().zip(rates.map(device)).collect(), ..Load::default() }
        };
        for (device, rates, expected) in [
            ("dm-0", [100.0, 100.0, 102.0], Some(2.02)),
            ("dm-0", [100.0, 40.0, 50.0], Some(1.0)),
            ("dm-0", [0.0, 1.0, 1.0], None),
            ("dm-0", [100.0, 0.0, 0.0], None),
            ("sda", [100.0, 100.0, 0.0], None),
        ] {
            assert_eq!(load(rates).copies(&target(device)), expected, "{device} {rates:?}");
        }
        let mut load = load([100.0; 3]);
        load.elapsed_ns = 2_000_000_000;
        load.devices.values_mut().for_each(|device| device.writes_per_second = 40.0);
        assert_eq!(load.writes_above(&target("dm-0")), Some(80.0));
        assert_eq!(load.writes_above(&target("sda")), None);
    }
}
