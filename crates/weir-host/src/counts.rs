//! Raw counters of the machine and its devices, for one who keeps them: whole numbers, and what they grew by.

use std::collections::{BTreeMap, BTreeSet};

use weir_core::target::DeviceNumber;
use weir_core::units::SECTOR_BYTES;

use crate::host::Host;
use crate::{bdi, block, cgroup, diskstats, psi, vm};

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It grows; what counts is by how much.
    Counter,
    /// It says how things are.
    Gauge,
}

/// A name of a device, empty for the machine, and of what is counted.
type Key = (String, &'static str);

/// Counters at one time.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// All but the counters of `disks`.
    values: BTreeMap<Key, (Kind, u64)>,
    disks: BTreeMap<String, diskstats::Counters>,
    numbers: BTreeMap<DeviceNumber, String>,
}

/// What a counter grew by, or what a gauge says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The kernel's name of the device; empty for the machine.
    pub device: String,
    /// What was counted.
    pub name: &'static str,
    /// How much.
    pub value: u64,
}

impl Host {
    /// The counters now: of whole devices that have done anything, and of the machine. Files that cannot be read are left out.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        let devices = self.tree.parsed("/proc/diskstats", diskstats::parse).unwrap_or_default();
        for (number, counters) in devices {
            let idle = counters == diskstats::Counters::default();
            let Some(name) = block::name_of(&self.tree, number).filter(|_| !idle) else { continue };
            if !self.tree.exists(&format!("/sys/class/block/{name}/partition")) {
                counts.disks.insert(name.clone(), counters);
                if let Some(of_bdi) = bdi::counters(&self.tree, &number.to_string()) {
                    counts.writeback(&name, &of_bdi);
                }
                counts.numbers.insert(number, name);
            }
        }
        self.machine(&mut counts);
        counts
    }

    /// The same of devices that are known already and of memory, without what takes a file for each device: cheap enough for
    /// once a second.
    pub fn counts_in_short(&self, known: &BTreeMap<DeviceNumber, String>) -> Counts {
        let mut counts = Counts::default();
        let devices = self.tree.parsed("/proc/diskstats", diskstats::parse).unwrap_or_default();
        for (number, name) in known {
            if let Some(counters) = devices.get(number) {
                counts.disks.insert(name.clone(), *counters);
                counts.numbers.insert(*number, name.clone());
            }
        }
        self.memory(&mut counts);
        counts
    }

    fn memory(&self, counts: &mut Counts) {
        let page_bytes = self.page_bytes();
        let vmstat = self.tree.parsed("/proc/vmstat", vm::parse_vmstat).unwrap_or_default();
        for (key, name, kind) in [
            ("nr_dirty", "dirty_bytes", Kind::Gauge),
            ("nr_writeback", "writeback_bytes", Kind::Gauge),
            ("nr_dirty_threshold", "dirty_threshold_bytes", Kind::Gauge),
            ("nr_dirtied", "dirtied_bytes", Kind::Counter),
            ("nr_written", "written_bytes", Kind::Counter),
            ("pswpin", "swap_in_bytes", Kind::Counter),
            ("pswpout", "swap_out_bytes", Kind::Counter),
        ] {
            if let Some(pages) = vmstat.get(key) {
                counts.put("", name, kind, pages.saturating_mul(page_bytes));
            }
        }
    }

    fn machine(&self, counts: &mut Counts) {
        self.memory(counts);
        if let Ok(bytes) = self.available_memory_bytes() {
            counts.put("", "available_bytes", Kind::Gauge, bytes);
        }
        if let Ok(busy_ns) = self.busy_ns() {
            counts.put("", "processors_busy_ns", Kind::Counter, busy_ns);
        }
        let pressure = psi::read(&self.tree, &mut Vec::new());
        for (resource, some, full) in [
            ("cpu", "pressure_cpu_some_us", "pressure_cpu_full_us"),
            ("io", "pressure_io_some_us", "pressure_io_full_us"),
            ("memory", "pressure_memory_some_us", "pressure_memory_full_us"),
        ] {
            if let Some(pressure) = pressure.get(resource) {
                counts.put("", some, Kind::Counter, pressure.some_total_us);
                counts.put("", full, Kind::Counter, pressure.full_total_us);
            }
        }
    }

    /// The path of the cgroup that a process is in: of version 2, else of systemd's hierarchy of version 1. `None` where the
    /// process is gone.
    pub fn cgroup_path_of(&self, process: u32) -> Option<String> {
        let lines = self.tree.parsed(&format!("/proc/{process}/cgroup"), cgroup::parse).ok()?;
        let of = |wanted: &str| lines.iter().find(|(controllers, _)| controllers == wanted);
        let (_, path) =
            of("").filter(|(_, path)| path != "/").or_else(|| of("name=systemd")).or_else(|| of(""))?;
        Some(path.clone())
    }
}

impl Counts {
    fn put(&mut self, device: &str, name: &'static str, kind: Kind, value: u64) {
        self.values.insert((device.to_string(), name), (kind, value));
    }

    fn writeback(&mut self, device: &str, counters: &bdi::Counters) {
        self.put(device, "dirty_bytes", Kind::Gauge, counters.reclaimable);
        self.put(device, "writeback_bytes", Kind::Gauge, counters.writeback);
        self.put(device, "dirty_threshold_bytes", Kind::Gauge, counters.threshold);
        self.put(device, "dirtied_bytes", Kind::Counter, counters.dirtied);
        self.put(device, "written_bytes", Kind::Counter, counters.written);
    }

    /// Of each device, the requests in flight and those completed since boot, flushes and discards included.
    pub fn requests(&self) -> Vec<(&str, u64, u64)> {
        let completed = |disk: &diskstats::Counters| {
            [disk.reads, disk.writes, disk.discards, disk.flushes].into_iter().fold(0, u64::saturating_add)
        };
        self.disks.iter().map(|(name, disk)| (name.as_str(), disk.in_flight, completed(disk))).collect()
    }

    /// Names of the devices by number.
    pub fn devices(&self) -> &BTreeMap<DeviceNumber, String> {
        &self.numbers
    }

    /// Whether a device came, went, or has become another one under the name of one since an earlier time.
    pub fn has_other_devices(&self, earlier: &Counts) -> bool {
        let is_other = |(name, disk): (&String, &diskstats::Counters)| {
            earlier.disks.get(name).is_some_and(|before| disk.since(before).is_none())
        };
        self.numbers != earlier.numbers || self.disks.iter().any(is_other)
    }

    /// What counters grew by since an earlier time, and what gauges say; 0 is left out. A device that was not there before,
    /// or is another one now, begins with what it says next time.
    pub fn since(&self, earlier: &Counts) -> Vec<Counted> {
        let (mut counted, mut others) = (BTreeMap::new(), BTreeSet::new());
        for (name, disk) in &self.disks {
            let grown = earlier.disks.get(name).and_then(|before| disk.since(before));
            if grown.is_none() {
                others.insert(name.as_str());
            }
            let idle = diskstats::Counters { in_flight: disk.in_flight, ..diskstats::Counters::default() };
            let of_disk = named(&grown.unwrap_or(idle));
            counted.extend(of_disk.map(|(what, value)| ((name.clone(), what), value)));
        }
        for (key, (kind, value)) in &self.values {
            let before = earlier.values.get(key).map_or(*value, |(_, before)| *before);
            let is_other = others.contains(key.0.as_str());
            match kind {
                Kind::Gauge => counted.insert(key.clone(), *value),
                Kind::Counter if is_other => None,
                Kind::Counter => counted.insert(key.clone(), value.saturating_sub(before)),
            };
        }
        let counted = counted.into_iter().filter(|(_, value)| *value > 0);
        counted.map(|((device, name), value)| Counted { device, name, value }).collect()
    }
}

/// Names of a device's counters.
fn named(counters: &diskstats::Counters) -> [(&'static str, u64); 14] {
    [
        ("reads", counters.reads),
        ("read_bytes", counters.read_sectors.saturating_mul(SECTOR_BYTES)),
        ("read_ms", counters.read_ms),
        ("writes", counters.writes),
        ("write_bytes", counters.write_sectors.saturating_mul(SECTOR_BYTES)),
        ("write_ms", counters.write_ms),
        ("in_flight", counters.in_flight),
        ("busy_ms", counters.busy_ms),
        ("queue_ms", counters.queue_ms),
        ("discards", counters.discards),
        ("discard_bytes", counters.discard_sectors.saturating_mul(SECTOR_BYTES)),
        ("discard_ms", counters.discard_ms),
        ("flushes", counters.flushes),
        ("flush_ms", counters.flush_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::testing::Machine;

    fn counted(later: &Counts, earlier: &Counts) -> Vec<(String, &'static str, u64)> {
        later.since(earlier).into_iter().map(|c| (c.device, c.name, c.value)).collect()
    }

    #[test]
    fn what_grew_is_told_and_a_device_that_is_another_begins_anew() {
        let machine = Machine::new();
        std::fs::create_dir_all(machine.real("/sys/dev/block")).unwrap();
        for (number, name) in [("7:0", "loop0"), ("259:0", "loop0/loop0p1")] {
            std::os::unix::fs::symlink(
                format!("../../class/block/{name}"),
                machine.real("/sys/dev/block").join(number),
            )
            .unwrap();
        }
        machine.set("/sys/class/block/loop0p1/partition", "1");
        machine.set("/proc/vmstat", "nr_dirty 2\nnr_dirtied 10\n");
        let stats = |writes: u64| {
            machine.set(
                "/proc/diskstats",
                &format!(" 7 0 loop0 0 0 0 0 {writes} 0 16 3 1 5 6\n 259 0 loop0p1 1 0 8 1 1 0 8 1 0 1 1\n"),
            );
            machine.host.counts()
        };
        let first = stats(100);
        assert_eq!(first.devices().values().collect::<Vec<_>>(), ["loop0"]);
        machine.set("/proc/vmstat", "nr_dirty 3\nnr_dirtied 12\n");
        let second = stats(104);
        let of_machine = [(String::new(), "dirtied_bytes", 8192), (String::new(), "dirty_bytes", 12288)];
        let told = counted(&second, &first);
        assert!(of_machine.iter().all(|counted| told.contains(counted)), "{told:?}");
        assert!(told.contains(&("loop0".to_string(), "writes", 4)), "{told:?}");
        assert!(told.contains(&("loop0".to_string(), "in_flight", 1)), "{told:?}");
        let short = machine.host.counts_in_short(second.devices());
        assert_eq!(short.requests(), [("loop0", 1, 104)]);
        assert!(counted(&short, &first).contains(&("loop0".to_string(), "writes", 4)));
        assert!(!second.has_other_devices(&first) && stats(1).has_other_devices(&second));
        assert!(second.has_other_devices(&Counts::default()));
        let other = counted(&stats(1), &second);
        assert!(other.iter().all(|(device, name, _)| device.is_empty() || *name == "in_flight"), "{other:?}");
    }

    #[test]
    fn a_device_whose_milliseconds_begin_anew_is_the_same_one() {
        let disk = |writes, write_ms| {
            let counters = diskstats::Counters { writes, write_ms, ..diskstats::Counters::default() };
            Counts { disks: BTreeMap::from([("sda".to_string(), counters)]), ..Counts::default() }
        };
        let told = counted(&disk(9, 3), &disk(7, u64::from(u32::MAX)));
        let device = "sda".to_string();
        assert_eq!(told, [(device.clone(), "write_ms", 4), (device, "writes", 2)]);
    }

    #[test]
    fn the_cgroup_is_that_of_version_2_or_of_systemd() {
        let machine = Machine::new();
        for (text, path) in [
            ("0::/system.slice/a.service\n", "/system.slice/a.service"),
            ("4:memory:/x\n1:name=systemd:/b.service\n0::/\n", "/b.service"),
            ("0::/\n", "/"),
        ] {
            machine.set("/proc/42/cgroup", text);
            assert_eq!(machine.host.cgroup_path_of(42).as_deref(), Some(path));
        }
        assert_eq!(machine.host.cgroup_path_of(43), None);
    }
}
