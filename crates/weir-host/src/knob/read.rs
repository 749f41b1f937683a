//! Knobs as this machine has them, with the bounds that only the machine knows.

use weir_core::target::{DeviceNumber, TargetFacts};
use weir_knobs::catalog::{self, CATALOG};
use weir_knobs::{
    Kind, KnobName, Plan, Reading, Refusal, Scope, ScopeKind, Setting, Value, plan as core_plan,
};

use super::dirty;
use super::place::{self, Place};
use crate::error::HostError;
use crate::host::Host;
use crate::tree::Tree;
use crate::{block, cgroup};

/// A knob now. The reading of a knob that is there but cannot be read says so.
///
/// # Errors
/// Only where there is no such knob here: weir does not know it, the kernel or the device does not have it.
pub fn read(host: &Host, knob: &KnobName) -> Result<Reading, HostError> {
    let tree = &host.tree;
    let place = Place::of(tree, knob)?;
    let is_action = catalog::spec(knob).is_some_and(|spec| spec.kind == Kind::Action);
    let (value, unreadable) = match place.read(tree) {
        // What an action's file holds, if it can be read at all, is no state of anything.
        _ if is_action && tree.exists(place.file(&Value::Number(0))) => (None, None),
        Ok(value) => (Some(value), None),
        Err(error) if error.is_absent() => return Err(error),
        Err(error) => (None, Some(error.to_string())),
    };
    let as_written = value.clone().unwrap_or(Value::Number(0));
    let file = place.file(&as_written).to_string();
    let choices = tree.text(&file).ok().filter(|_| !is_action);
    let bounds = Bounds { host, knob };
    Ok(Reading {
        knob: knob.clone(),
        choices: choices.and_then(|text| place::parse_choices(&text)).unwrap_or_default(),
        min: bounds.min(),
        max: bounds.max(),
        writable: place.is_writable(tree, &as_written),
        path: file,
        value,
        unreadable,
        owners: Vec::new(),
    })
}

/// Names and values of all knobs that can be read, without what else is to be known of them: cheap enough for several times
/// a minute.
pub fn values(host: &Host) -> Vec<(KnobName, Value)> {
    let is_state = |knob: &KnobName| catalog::spec(knob).is_some_and(|spec| spec.kind != Kind::Action);
    let names = names(&host.tree, None).into_iter().filter(is_state);
    names.filter_map(|knob| place::value(&host.tree, &knob).ok().map(|value| (knob, value))).collect()
}

/// From wanted settings to an ordered transaction, read on this machine.
///
/// # Errors
/// Every reason why not, for every setting; nothing has been changed.
pub fn plan(host: &Host, wanted: &[Setting], allow_durability: bool) -> Result<Plan, Vec<Refusal>> {
    core_plan::plan(wanted, &|knob| read(host, knob).ok(), allow_durability)
}

/// Names of all knobs that may be there.
pub(super) fn names(tree: &Tree, target: Option<&TargetFacts>) -> Vec<KnobName> {
    let devices = target.map_or_else(|| devices_in_use(tree), devices_of);
    let anonymous = target.and_then(|target| anonymous_bdi(tree, target));
    let of_spec = |spec: &catalog::Spec| -> Vec<KnobName> {
        let setting = spec.setting;
        let of_devices = |setting: &str| devices.iter().map(|d| KnobName::device(d, setting)).collect();
        match spec.scope {
            ScopeKind::Machine => vec![KnobName::machine(setting)],
            ScopeKind::Device => of_devices(setting),
            ScopeKind::Bdi => match &anonymous {
                Some(bdi) => vec![KnobName { scope: Scope::Bdi(bdi.clone()), setting: setting.to_string() }],
                None => {
                    let acts = |device: &&String| target.is_none_or(|target| writes_back(target, device));
                    let devices = devices.iter().filter(acts);
                    devices.map(|device| KnobName::device(device, &format!("bdi/{setting}"))).collect()
                }
            },
            ScopeKind::Cgroup => {
                let controller = if setting.starts_with("blkio.") { cgroup::BLKIO } else { "" };
                let cgroups = own_cgroups(tree, controller);
                cgroups.iter().flat_map(|path| in_cgroup(tree, path, setting, &devices)).collect()
            }
            // A server is there when it is named.
            ScopeKind::MySql | ScopeKind::Postgres => Vec::new(),
        }
    };
    CATALOG.iter().flat_map(of_spec).collect()
}

/// Devices of a target that have a queue.
fn devices_of(target: &TargetFacts) -> Vec<String> {
    target.stack.iter().filter(|layer| layer.queue.is_some()).map(|layer| layer.name.clone()).collect()
}

/// Whole devices that hold something: a loop or RAM disk that nobody has set up has size 0.
fn devices_in_use(tree: &Tree) -> Vec<String> {
    let sectors = |name: &String| tree.value::<u64>(&format!("/sys/block/{name}/size")).unwrap_or(0);
    tree.names("/sys/block").into_iter().filter(|name| sectors(name) > 0).collect()
}

/// Whether pages of the target's files are written back by this device's bdi: the one that the file system lies on, not
/// those that it is mapped over. Beneath a loop lies another file system.
fn writes_back(target: &TargetFacts, device: &str) -> bool {
    let Some(layer) = target.layer(device) else { return false };
    let is_bdi = |number: DeviceNumber| target.bdi.as_ref().is_none_or(|bdi| bdi.name == number.to_string());
    layer.beneath_loop.is_some() || is_bdi(layer.number)
}

/// The target's bdi, where it belongs to none of its devices (btrfs, NFS).
fn anonymous_bdi(tree: &Tree, target: &TargetFacts) -> Option<String> {
    let name = &target.bdi.as_ref()?.name;
    let of_a_device = target.stack.iter().any(|layer| layer.number.to_string() == *name);
    (!of_a_device && tree.exists(&format!("/sys/class/bdi/{name}"))).then(|| name.clone())
}

/// The cgroup of this process that has this controller (none: of version 2) and those above it, the root left out.
fn own_cgroups(tree: &Tree, controller: &str) -> Vec<String> {
    let lines = tree.parsed("/proc/self/cgroup", cgroup::parse).unwrap_or_default();
    let has = |controllers: &str| controllers.split(',').any(|name| name == controller);
    let own = lines.into_iter().find(|(controllers, _)| has(controllers)).map(|(_, path)| path);
    let above = |path: &String| path.rsplit_once('/').map(|(above, _)| above.to_string());
    std::iter::successors(own, above).filter(|path| !path.is_empty() && path != "/").collect()
}

fn in_cgroup(tree: &Tree, path: &str, setting: &str, devices: &[String]) -> Vec<KnobName> {
    let knob = |setting: String| KnobName { scope: Scope::Cgroup(path.to_string()), setting };
    let Some((file, key)) = setting.split_once("/DEV") else { return vec![knob(setting.to_string())] };
    let numbers = devices.iter().filter_map(|device| block::number_of(tree, device).ok());
    numbers.map(|number| knob(format!("{file}/{number}{key}"))).collect()
}

/// Bounds that are narrower on this machine than in the catalog.
struct Bounds<'a> {
    host: &'a Host,
    knob: &'a KnobName,
}

impl Bounds<'_> {
    fn min(&self) -> Option<i64> {
        let beside = |file: &str| self.beside(file);
        match (&self.knob.scope, self.knob.setting.as_str()) {
            // The kernel wants two pages at least.
            (Scope::Machine, dirty::LIMIT) => i64::try_from(2 * self.host.page_bytes()).ok(),
            (Scope::Device(_), "max_sectors_kb") => i64::try_from(self.host.page_bytes() / 1024).ok(),
            (Scope::Device(_), "bdi/max_ratio") => beside("min_ratio"),
            (Scope::Device(_), "bdi/max_ratio_fine") => beside("min_ratio_fine"),
            _ => None,
        }
    }

    fn max(&self) -> Option<i64> {
        let Scope::Device(device) = &self.knob.scope else { return None };
        let tree = &self.host.tree;
        match self.knob.setting.as_str() {
            "max_sectors_kb" => tree.value(&format!("/sys/block/{device}/queue/max_hw_sectors_kb")).ok(),
            "nr_requests" => self.hardware_tags(device),
            "bdi/min_ratio" => self.beside("max_ratio"),
            "bdi/min_ratio_fine" => self.beside("max_ratio_fine"),
            "bdi/max_bytes" | "bdi/min_bytes" => {
                dirty::threshold_bytes(self.host).ok().and_then(|bytes| i64::try_from(bytes).ok())
            }
            _ => None,
        }
    }

    /// Without a scheduler a queue holds no more requests than this.
    fn hardware_tags(&self, device: &str) -> Option<i64> {
        let (tree, folder) = (&self.host.tree, format!("/sys/block/{device}/mq"));
        let tags = |queue: &String| tree.value(&format!("{folder}/{queue}/nr_tags")).ok();
        tree.names(&folder).iter().filter_map(tags).min()
    }

    /// Another file of the same bdi.
    fn beside(&self, setting: &str) -> Option<i64> {
        let knob = KnobName { scope: self.knob.scope.clone(), setting: format!("bdi/{setting}") };
        place::value(&self.host.tree, &knob).ok()?.number()
    }
}

#[cfg(test)]
mod tests {
    use weir_core::target::{Bdi, Layer, Queue};

    use super::*;
    use crate::knob::readings;
    use crate::knob::testing::Machine;

    fn name(text: &str) -> KnobName {
        text.parse().unwrap()
    }

    #[test]
    fn knobs_of_every_kind_are_read() {
        let machine = Machine::new();
        for (knob, path, value, max) in [
            ("vm.dirty", "/proc/sys/vm/dirty_ratio", "ratio=20", None),
            ("vm.swappiness", "/proc/sys/vm/swappiness", "60", None),
            ("loop0/scheduler", "/sys/block/loop0/queue/scheduler", "mq-deadline", None),
            ("loop0/nr_requests", "/sys/block/loop0/queue/nr_requests", "64", Some(128)),
            ("loop0/max_sectors_kb", "/sys/block/loop0/queue/max_sectors_kb", "1280", Some(2560)),
            ("loop0/iosched/fifo_batch", "/sys/block/loop0/queue/iosched/fifo_batch", "16", None),
            ("loop0/write_cache", "/sys/block/loop0/queue/write_cache", "write back", None),
            ("loop0/bdi/max_ratio", "/sys/class/bdi/7:0/max_ratio", "100", None),
            ("loop0/bdi/max_bytes", "/sys/class/bdi/7:0/max_bytes", "4096000", Some(4_096_000)),
            ("loop0/bdi/min_ratio", "/sys/class/bdi/7:0/min_ratio", "0", Some(100)),
            (
                "loop0/device_write_cache",
                "/sys/block/loop0/device/scsi_disk/0:0:0:0/cache_type",
                "write through",
                None,
            ),
            ("bdi:0:44/max_ratio", "/sys/class/bdi/0:44/max_ratio", "100", None),
            ("cgroup:/db.slice/memory.high", "/sys/fs/cgroup/unified/db.slice/memory.high", "max", None),
            ("cgroup:/db.slice/io.max/7:0/wbps", "/sys/fs/cgroup/unified/db.slice/io.max", "2097152", None),
            ("cgroup:/db.slice/io.max/loop0/rbps", "/sys/fs/cgroup/unified/db.slice/io.max", "max", None),
            ("cgroup:/db.slice/io.max/9:0/wbps", "/sys/fs/cgroup/unified/db.slice/io.max", "max", None),
            (
                "cgroup:/db.slice/io.latency/7:0/target",
                "/sys/fs/cgroup/unified/db.slice/io.latency",
                "50000",
                None,
            ),
            (
                "cgroup:/db.slice/io.latency/8:0/target",
                "/sys/fs/cgroup/unified/db.slice/io.latency",
                "0",
                None,
            ),
            ("cgroup:/db.slice/io.weight", "/sys/fs/cgroup/unified/db.slice/io.weight", "100", None),
            (
                "cgroup:/a/blkio.throttle.write_bps_device/loop0",
                "/sys/fs/cgroup/blkio/a/blkio.throttle.write_bps_device",
                "1048576",
                None,
            ),
            (
                "cgroup:/a/blkio.throttle.write_bps_device/9:0",
                "/sys/fs/cgroup/blkio/a/blkio.throttle.write_bps_device",
                "max",
                None,
            ),
        ] {
            let reading = read(&machine.host, &name(knob)).unwrap_or_else(|error| panic!("{knob}: {error}"));
            let read = reading.value.map(|value| value.to_string());
            assert_eq!(
                (reading.path.as_str(), read.as_deref(), reading.max),
                (path, Some(value), max),
                "{knob}"
            );
            assert!(reading.writable, "{knob}");
        }
        for absent in ["loop0/nonsense", "loop9/scheduler", "vm.nonsense", "loop0/iosched/read_lat_nsec"] {
            assert!(read(&machine.host, &name(absent)).unwrap_err().is_absent(), "{absent}");
        }
    }

    #[test]
    fn the_bdi_is_that_of_the_device_the_file_system_lies_on() {
        let machine = Machine::new();
        let layer = |name: &str, minor, over: &[&str]| Layer {
            name: name.into(),
            number: DeviceNumber { major: 7, minor },
            over: over.iter().map(ToString::to_string).collect(),
            queue: Some(Queue::default()),
            ..Layer::default()
        };
        for (minor, text) in [(0, "100"), (5, "100")] {
            machine.set(&format!("/sys/class/bdi/7:{minor}/max_ratio"), text);
        }
        for name in ["dm-5", "loop0"] {
            machine.set(&format!("/sys/class/block/{name}/dev"), if name == "dm-5" { "7:5" } else { "7:0" });
        }
        let mut target = TargetFacts {
            stack: vec![layer("dm-5", 5, &["loop0"]), layer("loop0", 0, &[])],
            bdi: Some(Bdi { name: "7:5".into(), ..Bdi::default() }),
            ..TargetFacts::default()
        };
        let ratios = |target: &TargetFacts| -> Vec<String> {
            let all = readings(&machine.host, Some(target)).into_iter().map(|r| r.knob.to_string());
            all.filter(|name| name.ends_with("/max_ratio")).collect()
        };
        assert_eq!(ratios(&target), ["dm-5/bdi/max_ratio"]);
        target.stack[1].beneath_loop = Some("dm-5".into());
        assert_eq!(ratios(&target), ["dm-5/bdi/max_ratio", "loop0/bdi/max_ratio"]);
    }

    #[test]
    fn a_device_that_passes_bios_on_has_no_knobs_of_requests() {
        let machine = Machine::new();
        for (device, kind) in [("dm-0", "dm/name"), ("md0", "md/level")] {
            machine.set(&format!("/sys/block/{device}/size"), "131072");
            machine.set(&format!("/sys/class/block/{device}/dev"), "252:0");
            machine.set(&format!("/sys/class/block/{device}/{kind}"), "raid1");
            // Up to Linux 6.10 they have the files; what is written there is lost.
            for (file, text) in [
                ("scheduler", "none"),
                ("nr_requests", "128"),
                ("nomerges", "0"),
                ("rq_affinity", "0"),
                ("read_ahead_kb", "128"),
                ("max_sectors_kb", "512"),
            ] {
                machine.set(&format!("/sys/block/{device}/queue/{file}"), text);
            }
            let names: Vec<String> = readings(&machine.host, None)
                .iter()
                .map(|reading| reading.knob.to_string())
                .filter(|name| name.starts_with(device))
                .collect();
            let [ahead, largest] = ["read_ahead_kb", "max_sectors_kb"].map(|knob| format!("{device}/{knob}"));
            assert_eq!(names, [largest, ahead]);
            let error = read(&machine.host, &name(&format!("{device}/scheduler"))).unwrap_err();
            assert!(error.is_absent() && error.to_string().contains("passes I/O on"), "{error}");
            // Multipath has requests.
            machine.set(&format!("/sys/class/block/{device}/mq/0/nr_tags"), "128");
            assert!(read(&machine.host, &name(&format!("{device}/scheduler"))).is_ok());
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let machine = Machine::new();
        for (knob, path, text) in [
            ("vm.dirty", "/proc/sys/vm/dirty_bytes", "many"),
            ("loop0/scheduler", "/sys/block/loop0/queue/scheduler", "[none"),
            ("loop0/nr_requests", "/sys/block/loop0/queue/nr_requests", ""),
            ("cgroup:/db.slice/io.max/7:0/wbps", "/sys/fs/cgroup/unified/db.slice/io.max", "7:0 wbps"),
            ("cgroup:/db.slice/io.weight", "/sys/fs/cgroup/unified/db.slice/io.weight", "100"),
        ] {
            machine.set(path, text);
            let reading = read(&machine.host, &name(knob)).unwrap();
            let why = reading.unreadable.unwrap_or_default();
            assert!(reading.value.is_none() && why.contains(path), "{knob}: {why}");
        }
        assert_eq!(read(&machine.host, &name("vm.drop_caches")).unwrap().value, None);
    }

    #[test]
    fn everything_is_listed_with_its_owners() {
        let machine = Machine::new();
        machine.set("/etc/sysctl.d/50-db.conf", "# of the database\nvm.swappiness = 1");
        machine.set("/etc/udev/rules.d/60-io.rules", r#"KERNEL=="loop*", ATTR{queue/scheduler}="none""#);
        machine.set("/etc/tuned/active_profile", "own");
        machine.set("/etc/tuned/own/tuned.conf", "[vm]\ndirty_ratio = 40");
        let readings = readings(&machine.host, None);
        let owners = |knob: &str| {
            let reading = readings.iter().find(|reading| reading.knob == name(knob)).unwrap();
            reading.owners.iter().map(|owner| owner.kind.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(owners("vm.swappiness"), ["sysctl.d"]);
        assert_eq!(owners("loop0/scheduler"), ["udev"]);
        assert_eq!(owners("vm.dirty"), ["TuneD"]);
        assert!(owners("loop0/nr_requests").is_empty());
        let names: Vec<String> = readings.iter().map(|reading| reading.knob.to_string()).collect();
        for expected in [
            "cgroup:/db.slice/memory.high",
            "cgroup:/db.slice/io.max/7:0/wbps",
            "cgroup:/a/blkio.throttle.write_bps_device/7:0",
            "loop0/bdi/max_ratio",
        ] {
            assert!(names.contains(&expected.to_string()), "{expected} is not in {names:?}");
        }
        assert!(names.iter().all(|name| !name.starts_with("loop1")), "nothing is set up there: {names:?}");
    }
}
