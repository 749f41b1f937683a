//! What a target is made of, and the machine around it, as plain data: weir-host reads it, weir-core reasons on it.
//!
//! The field names are those of the JSON under `conditions` in a record. Sizes are bytes unless a name says
//! otherwise; `null` means that the kernel does not have the value or that it could not be read, and
//! [`Conditions::unreadable`] or [`TargetFacts::blind`] say which.

mod cgroup;
mod conditions;
mod counters;
mod load;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use cgroup::groups_in_slices;
pub use conditions::{
    Cgroup, Conditions, Cpu, DirtyLimit, LoadAtStart, Memory, ProcessLimits, Swap, VmSettings,
};
pub use counters::{CounterSource, DeviceCounters};
pub use load::{CpuLoad, DeviceLoad, Load, MemoryLoad, Pressure, PressureLoad, ProcessLoad, WritebackLoad};

/// A path resolved to its file system and to every block device beneath it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetFacts {
    /// The path asked for, without symbolic links; its nearest existing folder where it does not exist yet.
    pub path: String,
    /// The file system that holds the path. `null` where the target is a block device itself.
    pub file_system: Option<FileSystem>,
    /// Block devices from the file system downwards, each once, a layer before the layers it stands on.
    pub stack: Vec<Layer>,
    /// Name of the device whose statistics stand for the target: the lowest one that all its I/O passes. That is
    /// the disk where the stack is a single line (a partition's disk, an LV's only disk), and the layer that
    /// spreads where it is not (md, dm over several disks). A loop device is never passed through: beneath it lies
    /// another file system, which others use too. `null` where no block device is visible.
    pub device: Option<String>,
    /// The writeback domain of the file system: dirty limits of a single device act here.
    pub bdi: Option<Bdi>,
    /// Limits that cgroups put on the devices of the stack, for this process or for writeback.
    pub throttles: Vec<Throttle>,
    /// Sentences: what could not be seen through, and why.
    pub blind: Vec<String>,
}

/// A mounted file system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileSystem {
    /// The kernel's name: `ext4`, `xfs`, `btrfs`, `overlay`, `tmpfs`, `nfs4`…
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// The folder inside the file system that is mounted there: `/` unless it is a bind mount or subvolume.
    pub root: String,
    /// What was mounted: a device path, `server:/export`, a pool's name.
    pub source: String,
    /// Device number as `stat` reports it; major 0 means that no single block device stands behind it.
    pub device_number: DeviceNumber,
    /// Mount options, of the mount point first, then those of the file system; no duplicates.
    pub options: Vec<String>,
    /// Whether mount point or file system is read-only.
    pub read_only: bool,
    /// Size.
    pub size_bytes: Option<u64>,
    /// Free for an unprivileged writer (reserved blocks left out).
    pub free_bytes: Option<u64>,
    /// Unit of allocation.
    pub block_bytes: Option<u64>,
    /// Inodes still free; `null` too where the file system does not count them.
    pub inodes_free: Option<u64>,
}

/// Major and minor number of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// Driver.
    pub major: u32,
    /// Instance.
    pub minor: u32,
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl DeviceNumber {
    /// `8:1` as the kernel writes it in many files.
    pub fn parse(text: &str) -> Option<DeviceNumber> {
        let (major, minor) = text.trim().split_once(':')?;
        Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }

    /// Numbers without a driver: file systems that stand on no single block device (btrfs, NFS, tmpfs, overlay).
    pub fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

/// One block device of the stack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Layer {
    /// The kernel's name: `sda1`, `dm-0`, `md0`, `nvme0n1`.
    pub name: String,
    /// Device number.
    pub number: DeviceNumber,
    /// What it is, with what only that kind has.
    pub kind: LayerKind,
    /// Names of the devices it stands on; all of them are in the stack too.
    pub over: Vec<String>,
    /// Name of the loop device whose backing file this layer holds, where it is such a layer.
    pub beneath_loop: Option<String>,
    /// Size.
    pub size_bytes: u64,
    /// Whether the kernel refuses writes.
    pub read_only: bool,
    /// Vendor and model as the device tells them.
    pub model: Option<String>,
    /// The device's firmware revision.
    pub firmware: Option<String>,
    /// Bus the driver sits on: `scsi`, `nvme`, `virtio`, `mmc`, `xen`.
    pub bus: Option<String>,
    /// Its queue. A partition has none of its own: its disk's counts.
    pub queue: Option<Queue>,
}

/// What a block device is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum LayerKind {
    /// A device the kernel drives itself, as far as this machine can tell (a virtual disk looks like one).
    #[default]
    Disk,
    /// A part of a disk.
    Partition {
        /// The disk.
        disk: String,
        /// Its number in the table.
        number: u32,
        /// Where it starts on the disk.
        start_bytes: u64,
    },
    /// A device-mapper device.
    Dm {
        /// Name under `/dev/mapper`.
        dm_name: String,
        /// Prefix of its uuid: `LVM`, `CRYPT`, `mpath`, `part1`…; empty where it has none.
        dm_type: String,
    },
    /// A software RAID.
    Md {
        /// `raid0`, `raid1`, `raid5`, `raid10`, `linear`…
        level: String,
        /// Member devices as configured.
        raid_disks: u32,
        /// Members missing.
        degraded: u32,
        /// Stripe unit; 0 where the level has none.
        chunk_bytes: u64,
        /// `clean`, `active`, `readonly`…
        state: String,
        /// `idle`, `resync`, `recover`, `check`…: a running one takes part of the speed.
        sync_action: String,
    },
    /// A loop device over a file.
    Loop {
        /// The backing file.
        backing_file: String,
        /// The file system that holds the backing file; `null` where it cannot be found.
        file_system: Option<Box<FileSystem>>,
        /// Whether it passes by the page cache beneath. Without it, dirty pages are counted twice.
        direct_io: bool,
        /// Start within the file.
        offset_bytes: u64,
    },
    /// A disk in this machine's memory: zram, brd, pmem in its block mode.
    Memory,
    /// A device served by another machine, a hypervisor's user space or a driver that shows nothing beneath:
    /// nbd, rbd, drbd, ublk…
    Remote,
    /// A fast device that caches a slow one (bcache).
    Cache,
}

impl LayerKind {
    /// One word for reports.
    pub fn word(&self) -> &'static str {
        match self {
            LayerKind::Disk => "disk",
            LayerKind::Partition { .. } => "partition",
            LayerKind::Dm { .. } => "dm",
            LayerKind::Md { .. } => "md",
            LayerKind::Loop { .. } => "loop",
            LayerKind::Memory => "memory",
            LayerKind::Remote => "remote",
            LayerKind::Cache => "cache",
        }
    }
}

/// Settings and limits of a request queue, as under `/sys/block/*/queue`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// What the kernel believes; virtual disks often claim to rotate.
    pub rotational: Option<bool>,
    /// The kernel's view only: `write back` (it sends flushes) or `write through` (it does not).
    pub write_cache: Option<String>,
    /// Whether the device takes forced-unit-access writes.
    pub fua: Option<bool>,
    /// The scheduler in use; `none` where there is none.
    pub scheduler: Option<String>,
    /// Schedulers that could be chosen.
    pub schedulers: Vec<String>,
    /// Requests the scheduler holds at most.
    pub nr_requests: Option<u64>,
    /// Largest request, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Largest request the hardware takes, KiB.
    pub max_hw_sectors_kb: Option<u64>,
    /// Smallest unit of I/O; O_DIRECT is aligned to it.
    pub logical_block_bytes: Option<u64>,
    /// Unit the device writes without reading first.
    pub physical_block_bytes: Option<u64>,
    /// Preferred smallest I/O (a RAID's chunk).
    pub minimum_io_bytes: Option<u64>,
    /// Preferred I/O (a RAID's stripe); 0 where unknown.
    pub optimal_io_bytes: Option<u64>,
    /// Read-ahead, KiB.
    pub read_ahead_kb: Option<u64>,
    /// Target of writeback throttling, µs; 0 is off. It looks at read latency only.
    pub wbt_lat_usec: Option<i64>,
    /// 0 merges, 1 only simple merges, 2 none.
    pub nomerges: Option<u64>,
    /// Which processor completes a request: 0 any, 1 one of the issuer's group, 2 the issuer's.
    pub rq_affinity: Option<u64>,
    /// Whether statistics are kept; without them there is no load to report.
    pub iostats: Option<bool>,
    /// Whether the kernel polls for completions here.
    pub io_poll: Option<bool>,
    /// Whether memory can be mapped directly.
    pub dax: Option<bool>,
    /// `none`, `host-aware` or `host-managed`.
    pub zoned: Option<String>,
    /// Largest discard; 0 where the device takes none.
    pub discard_max_bytes: Option<u64>,
    /// Hardware queues.
    pub hardware_queues: Option<u64>,
}

/// A writeback domain ("backing device info").
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bdi {
    /// Its name under `/sys/class/bdi`.
    pub name: String,
    /// Guaranteed share of the dirty limit, percent.
    pub min_ratio_percent: Option<u64>,
    /// Largest share of the dirty limit, percent.
    pub max_ratio_percent: Option<u64>,
    /// The same in parts per million (Linux 6.2 and later): what to save and restore.
    pub max_ratio_ppm: Option<u64>,
    /// Whether the share is a hard limit; without effect at 100 %.
    pub strict_limit: Option<bool>,
    /// The share in bytes of today's dirty limit (Linux 6.2 and later).
    pub max_bytes: Option<u64>,
    /// Read-ahead, KiB.
    pub read_ahead_kb: Option<u64>,
}

/// A limit a cgroup puts on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttle {
    /// Path of the cgroup within its hierarchy.
    pub cgroup: String,
    /// Hierarchy: 1 or 2.
    pub version: u8,
    /// Name of the device in the stack.
    pub device: String,
    /// What is limited, in the words of cgroup v2: `rbps`, `wbps` (bytes/s), `riops`, `wiops` (operations/s),
    /// `latency_us` (io.latency target).
    pub limits: BTreeMap<String, u64>,
}

impl LayerKind {
    /// Whether it passes bios on, unless it has hardware queues: what is mapped over others (dm but for multipath, md), and memory.
    pub fn passes_on(&self) -> bool {
        matches!(
            self,
            LayerKind::Partition { .. }
                | LayerKind::Dm { .. }
                | LayerKind::Md { .. }
                | LayerKind::Memory
                | LayerKind::Cache
        )
    }
}

impl Layer {
    /// Whether I/O waits here in requests of its own: only there do scheduler, merging and depth of a queue mean
    /// anything, whatever the queue of another says.
    pub fn has_requests(&self) -> bool {
        let has_hardware_queues = self.queue.as_ref().is_some_and(|queue| queue.hardware_queues.is_some());
        has_hardware_queues || !self.kind.passes_on()
    }
}

impl TargetFacts {
    /// The layer of that name.
    pub fn layer(&self, name: &str) -> Option<&Layer> {
        self.stack.iter().find(|layer| layer.name == name)
    }

    /// The layer whose statistics stand for the target, see [`TargetFacts::device`].
    pub fn device_layer(&self) -> Option<&Layer> {
        self.layer(self.device.as_deref()?)
    }

    /// The queue of that layer.
    pub fn device_queue(&self) -> Option<&Queue> {
        self.device_layer()?.queue.as_ref()
    }

    /// Where the target's I/O becomes requests: the device that stands for it, or where that passes bios on, or there is
    /// none, the next ones beneath; each once.
    pub fn request_layers(&self) -> Vec<&Layer> {
        let is_top = |layer: &&Layer| {
            layer.beneath_loop.is_none() && !self.stack.iter().any(|above| above.over.contains(&layer.name))
        };
        let mut to_look_at: Vec<&Layer> = match self.device_layer() {
            Some(device) => vec![device],
            None => self.stack.iter().filter(is_top).collect(),
        };
        let mut found: Vec<&Layer> = Vec::new();
        while let Some(layer) = to_look_at.pop() {
            if !layer.has_requests() {
                to_look_at.extend(layer.over.iter().rev().filter_map(|name| self.layer(name)));
            } else if !found.iter().any(|known| known.name == layer.name) {
                found.push(layer);
            }
        }
        found
    }

    /// The devices at the bottom: those that stand on nothing visible.
    pub fn disks(&self) -> impl Iterator<Item = &Layer> {
        self.stack.iter().filter(|layer| layer.over.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All keys of a JSON value, at any depth.
    fn keys(value: &serde_json::Value, into: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(map) => {
                for (key, inner) in map {
                    into.push(key.clone());
                    keys(inner, into);
                }
            }
            serde_json::Value::Array(list) => list.iter().for_each(|inner| keys(inner, into)),
            _ => {}
        }
    }

    #[test]
    fn every_field_is_in_the_documentation() {
        let layer = |kind| Layer { kind, queue: Some(Queue::default()), ..Layer::default() };
        let text = String::new;
        let kinds = [
            LayerKind::Partition { disk: text(), number: 1, start_bytes: 0 },
            LayerKind::Dm { dm_name: text(), dm_type: text() },
            LayerKind::Md {
                level: text(),
                raid_disks: 0,
                degraded: 0,
                chunk_bytes: 0,
                state: text(),
                sync_action: text(),
            },
            LayerKind::Loop { backing_file: text(), file_system: None, direct_io: true, offset_bytes: 0 },
        ];
        let (cgroup, limits) = (text(), BTreeMap::new());
        let target = TargetFacts {
            file_system: Some(FileSystem::default()),
            stack: kinds.map(layer).into(),
            bdi: Some(Bdi::default()),
            throttles: vec![Throttle { cgroup, version: 2, device: text(), limits }],
            ..TargetFacts::default()
        };
        let conditions = Conditions {
            target: Some(target),
            cgroups: vec![Cgroup::default()],
            memory: Memory { swaps: vec![Swap::default()], ..Memory::default() },
            load_at_start: LoadAtStart {
                loadavg: None,
                pressure: BTreeMap::from([("cpu".into(), Pressure::default())]),
            },
            ..Conditions::default()
        };
        let load = Load {
            devices: BTreeMap::from([("device".into(), DeviceLoad::default())]),
            pressure: BTreeMap::from([("cpu".into(), PressureLoad::default())]),
            writeback: Some(WritebackLoad::default()),
            ..Load::default()
        };
        let mut all = Vec::new();
        keys(&serde_json::to_value(conditions).unwrap(), &mut all);
        keys(&serde_json::to_value(load).unwrap(), &mut all);
        let documented = include_str!("../../../docs/reference/conditions.md");
        let is_missing = |key: &&String| {
            [format!("`{key}`"), format!(".{key}`"), format!("`{key}.")]
                .iter()
                .all(|as_in| !documented.contains(as_in))
        };
        let missing: Vec<&String> = all.iter().filter(is_missing).collect();
        assert!(all.len() > 100 && missing.is_empty(), "not in docs/reference/conditions.md: {missing:?}");
    }

    #[test]
    fn requests_are_where_bios_are_not_passed_on() {
        let layer = |name: &str, kind, over: &[&str]| Layer {
            name: name.into(),
            kind,
            over: over.iter().map(ToString::to_string).collect(),
            queue: Some(Queue::default()),
            ..Layer::default()
        };
        let dm = || LayerKind::Dm { dm_name: "x".into(), dm_type: "LVM".into() };
        let md = LayerKind::Md {
            level: "raid1".into(),
            raid_disks: 2,
            degraded: 0,
            chunk_bytes: 0,
            state: "clean".into(),
            sync_action: "idle".into(),
        };
        let part = |disk: &str| LayerKind::Partition { disk: disk.into(), number: 1, start_bytes: 0 };
        let mut multipath = layer("dm-9", dm(), &["sda", "sdb"]);
        multipath.queue = Some(Queue { hardware_queues: Some(1), ..Queue::default() });
        let stack = vec![
            layer("dm-0", dm(), &["md0"]),
            layer("md0", md, &["sda1", "sdb1"]),
            layer("sda1", part("sda"), &["sda"]),
            layer("sda", LayerKind::Disk, &[]),
            layer("sdb1", part("sdb"), &["sdb"]),
            layer("sdb", LayerKind::Disk, &[]),
            multipath,
            layer("zram0", LayerKind::Memory, &[]),
        ];
        for (device, expected) in [
            (Some("md0"), vec!["sda", "sdb"]),
            (Some("dm-0"), vec!["sda", "sdb"]),
            (Some("sda"), vec!["sda"]),
            (Some("dm-9"), vec!["dm-9"]),
            (Some("zram0"), vec![]),
            (None, vec!["dm-9", "sda", "sdb"]),
        ] {
            let device = device.map(str::to_string);
            let target = TargetFacts { stack: stack.clone(), device, ..TargetFacts::default() };
            let mut found: Vec<&str> = target.request_layers().iter().map(|l| l.name.as_str()).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{:?}", target.device);
        }
    }

    #[test]
    fn facts_survive_json_and_tolerate_missing_fields() {
        let facts = TargetFacts {
            path: "/srv/db".into(),
            stack: vec![
                Layer {
                    name: "sda1".into(),
                    kind: LayerKind::Partition { disk: "sda".into(), number: 1, start_bytes: 1 << 20 },
                    over: vec!["sda".into()],
                    ..Layer::default()
                },
                Layer { name: "sda".into(), queue: Some(Queue::default()), ..Layer::default() },
            ],
            device: Some("sda".into()),
            ..TargetFacts::default()
        };
        let json = serde_json::to_value(&facts).unwrap();
        assert_eq!(json["stack"][0]["kind"]["type"], "partition");
        assert_eq!(serde_json::from_value::<TargetFacts>(json).unwrap(), facts);
        assert_eq!(facts.device_queue(), Some(&Queue::default()));
        assert_eq!(facts.disks().map(|d| d.name.as_str()).collect::<Vec<_>>(), ["sda"]);
        assert!(serde_json::from_str::<TargetFacts>("{\"path\": \"/\"}").is_ok());
    }
}
