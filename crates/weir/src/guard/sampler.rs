//! What a sample brings, of every device under guard.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use weir_control::{Bulk, DeviceFlow, Sensor, SensorSource, Syncs};
use weir_core::target::DeviceNumber;

use weir_host::{self as host, Flow, Host, HostError};

use super::block_device::{self, BlockDevice};
use super::exempt::Exempt;
use super::sensor::{self, Senses, Sight};
use crate::clock::Moment;
use crate::guard::settings::Protected;

/// What was seen of a device since the sample before.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its number now: a device that was away may come back with another.
    pub number: DeviceNumber,
    /// Where latencies come from.
    pub sensor: Sensor,
    /// Syncs that are to be protected.
    pub syncs: Syncs,
    /// Everybody else.
    pub bulk: Bulk,
    /// What the device did.
    pub flow: DeviceFlow,
}

/// When a sample was, and how long after the one before.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    /// Of the clock that is never set.
    pub now_ns: u64,
    /// Since the sample before.
    pub elapsed_ns: u64,
}

/// What samples.
pub trait Sampler {
    /// A sample of every device, in the order in which they were named; `None` for one that is gone.
    fn sample(&mut self, now: Moment) -> Vec<Option<Seen>>;

    /// The kernel's name of a device: one that was away may come back under another.
    fn name(&self, at: usize) -> String;

    /// Whether other file systems of a device are mounted since this was asked last.
    fn is_remounted(&mut self, at: usize) -> bool;

    /// Other devices that stand on the same disk.
    fn neighbours(&self, at: usize) -> &[usize];

    /// Who must not be held, as far as that is known.
    fn exempt(&self) -> Exempt;

    /// What is lacking, and what is lost by it, in sentences.
    fn remarks(&self) -> Vec<String>;
}

/// This machine's devices.
pub struct Machine {
    host: Host,
    watched: Vec<Watched>,
    /// Of each, whether other file systems are mounted, until that is asked.
    remounted: Vec<bool>,
    /// Of each, those that stand on the same disk.
    neighbours: Vec<Vec<usize>>,
    senses: Senses,
    /// Where file systems were mounted when that was asked last.
    mounts: Vec<String>,
    samples: u64,
}

/// A device, found again whenever it comes back.
struct Watched {
    block_device: BlockDevice,
    flow: Option<Flow>,
}

/// Looks between two searches for a device that is gone.
const SEARCH_EVERY: u64 = 10;
/// Samples between two readings of the mounts.
const MOUNTS_EVERY: u64 = 100;

impl Machine {
    /// Watches these from now on, and the syncs of those that are to be protected, from this source or the best there
    /// is.
    ///
    /// # Errors
    /// When the counters of one cannot be read, or the source that was asked for cannot be had.
    pub fn watch(
        host: &Host,
        block_devices: &[BlockDevice],
        protect: &[Protected],
        source: Option<SensorSource>,
    ) -> anyhow::Result<Machine> {
        let watched = |block_device: &BlockDevice| {
            Ok(Watched { block_device: block_device.clone(), flow: Some(host.flow(block_device.number)?) })
        };
        let watched: Vec<Watched> = block_devices.iter().map(watched).collect::<Result<_, HostError>>()?;
        let devices = block_devices.iter().map(|block_device| sensed(host, block_device));
        let options = sensor::Options { protect: protect.to_vec(), devices: devices.collect(), source };
        let senses = Senses::start(host, &options)?;
        let (neighbours, remounted) = (neighbours(&watched), vec![false; watched.len()]);
        Ok(Machine {
            host: host.clone(),
            watched,
            remounted,
            neighbours,
            senses,
            mounts: Vec::new(),
            samples: 0,
        })
    }
}

impl Machine {
    /// Looks for devices that are gone, and now and then for other file systems, and for what is mounted by now where a device was named.
    fn search(&mut self) {
        let asks_mounts = self.samples.is_multiple_of(MOUNTS_EVERY);
        let mut is_remounted = false;
        if asks_mounts {
            let mounts = self.host.mounts_for_writing();
            is_remounted = mounts != self.mounts;
            self.mounts = mounts;
        }
        for at in 0..self.watched.len() {
            // The number of one that is gone may be another device's by now.
            let others = self.watched.iter().enumerate();
            let others = others.filter(|(other, watched)| *other != at && watched.flow.is_some());
            let others: Vec<DeviceNumber> = others.map(|(_, other)| other.block_device.number).collect();
            let (watched, host) = (&mut self.watched[at], &self.host);
            let has_moved = match watched.flow {
                None => watched.find(host, &others),
                Some(_) if is_remounted && watched.is_another(host, &others) => {
                    // It is gone for a sample, and found as the other one.
                    watched.flow = None;
                    false
                }
                Some(_) => asks_mounts && watched.mounts_changed(host),
            };
            if has_moved {
                self.senses.moved(host, at, sensed(host, &watched.block_device));
                self.neighbours = neighbours(&self.watched);
                self.remounted[at] = true;
            }
        }
    }
}

impl Sampler for Machine {
    fn sample(&mut self, now: Moment) -> Vec<Option<Seen>> {
        self.samples += 1;
        if self.samples.is_multiple_of(SEARCH_EVERY) {
            self.search();
        }
        let sights = self.senses.sample(now.awake_ns);
        let seen = |(watched, sight): (&mut Watched, Sight)| {
            let flow = watched.sample(sight.backlog_bytes)?;
            let number = watched.block_device.number;
            Some(Seen { number, sensor: sight.sensor, syncs: sight.syncs, bulk: sight.bulk, flow })
        };
        self.watched.iter_mut().zip(sights).map(seen).collect()
    }

    fn name(&self, at: usize) -> String {
        self.watched[at].block_device.name.clone()
    }

    fn is_remounted(&mut self, at: usize) -> bool {
        std::mem::take(&mut self.remounted[at])
    }

    fn neighbours(&self, at: usize) -> &[usize] {
        &self.neighbours[at]
    }

    fn exempt(&self) -> Exempt {
        self.senses.exempt()
    }

    fn remarks(&self) -> Vec<String> {
        self.senses.remarks()
    }
}

fn neighbours(watched: &[Watched]) -> Vec<Vec<usize>> {
    let of = |(at, one): (usize, &Watched)| {
        let others = watched.iter().enumerate().filter(|(other, _)| *other != at);
        let shares = |(_, other): &(usize, &Watched)| one.block_device.shares_with(&other.block_device);
        others.filter(shares).map(|(other, _)| other).collect()
    };
    watched.iter().enumerate().map(of).collect()
}

/// A device, as the sensor is to see it.
fn sensed(host: &Host, block_device: &BlockDevice) -> sensor::Watched {
    sensor::Watched {
        number: block_device.number,
        file_systems: block_device.file_systems.clone(),
        folder: folder(host, block_device),
    }
}

/// A folder on the device for a canary: the one that was named, or another one, where this process may write.
fn folder(host: &Host, block_device: &BlockDevice) -> Option<PathBuf> {
    let named = Path::new(&block_device.asked);
    let named = named.is_dir().then(|| named.to_path_buf());
    let is_there = |mount: &String| {
        block_device::find(host, mount)
            .ok()
            .flatten()
            .is_some_and(|found| found.number == block_device.number)
    };
    let others = host.mounts_that_take_writes().into_iter().filter(is_there).map(PathBuf::from);
    let takes_folders = |folder: &PathBuf| folder.is_dir() && access(folder, Access::WRITE_OK).is_ok();
    // Where no folder will do, the one that was named says why.
    named.clone().into_iter().chain(others).find(takes_folders).or(named)
}

impl Watched {
    /// What is to be guarded by now, where it is none of the others.
    fn meant(&self, host: &Host, others: &[DeviceNumber]) -> Option<BlockDevice> {
        // What was mounted over it need not answer.
        let asked = &self.block_device.asked;
        if host.is_served(Path::new(asked)) {
            return None;
        }
        let found = block_device::find(host, asked).ok().flatten()?;
        (self.block_device.gives_way_to(&found) && !others.contains(&found.number)).then_some(found)
    }

    fn is_another(&self, host: &Host, others: &[DeviceNumber]) -> bool {
        self.meant(host, others).is_some_and(|found| found.number != self.block_device.number)
    }

    /// Looks for a device that is gone; whether it has come back, under whatever name.
    fn find(&mut self, host: &Host, others: &[DeviceNumber]) -> bool {
        if let Some(found) = self.meant(host, others) {
            self.flow = host.flow(found.number).ok();
            self.block_device = found;
        }
        self.flow.is_some()
    }

    fn mounts_changed(&mut self, host: &Host) -> bool {
        let Ok(flow) = host.flow(self.block_device.number) else { return false };
        // One that is mounted again may have its number again, but no bdi's name comes twice.
        let changed = self.flow.as_ref().is_some_and(|before| before.own_bdis() != flow.own_bdis());
        if changed {
            (self.block_device.file_systems, self.flow) = (flow.file_systems(), Some(flow));
        }
        changed
    }

    /// What it did; `backlog_bytes` as of [`Flow::look`].
    fn sample(&mut self, backlog_bytes: Option<(u64, u64)>) -> Option<DeviceFlow> {
        match self.flow.as_mut()?.look(backlog_bytes) {
            Ok(host::Seen::Here(flow)) => Some(flow),
            _ => {
                self.flow = None;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::testing::Disks;

    #[test]
    fn a_device_may_come_back_with_the_number_of_one_that_is_gone() {
        let disks = Disks::of(&["sda", "sdb", "sdc"]);
        disks.mount(&[("/", "sda"), ("/srv/b", "sdb"), ("/srv/c", "sdc")]);
        let named = ["/srv/b", "/srv/c"].map(String::from);
        let host = disks.host();
        let (block_devices, _) = block_device::find_all(&host, &named).unwrap();
        let counters = Some(SensorSource::Diskstats);
        let mut machine = Machine::watch(&host, &block_devices, &[], counters).unwrap();
        let mut minors_after = |samples| {
            let mut seen = Vec::new();
            for _ in 0..samples {
                seen = machine.sample(Moment::now());
            }
            seen.into_iter().map(|seen| seen.map(|seen| seen.number.minor)).collect::<Vec<_>>()
        };
        assert_eq!(minors_after(1), [Some(16), Some(32)]);
        disks.unplug("sdb");
        disks.unplug("sdc");
        disks.mount(&[("/", "sda")]);
        assert_eq!(minors_after(SEARCH_EVERY), [None, None]);
        // What was sdc is sdb now.
        disks.plug("sdb");
        disks.mount(&[("/", "sda"), ("/srv/c", "sdb")]);
        assert_eq!(minors_after(SEARCH_EVERY), [None, Some(16)]);
        // And it keeps its number, whatever the other name means.
        disks.mount(&[("/", "sda"), ("/srv/c", "sdb"), ("/srv/b", "sdb")]);
        assert_eq!(minors_after(SEARCH_EVERY), [None, Some(16)]);
        disks.plug("sdd");
        disks.mount(&[("/", "sda"), ("/srv/c", "sdb"), ("/srv/b", "sdd")]);
        assert_eq!(minors_after(SEARCH_EVERY), [Some(48), Some(16)]);
    }

    #[test]
    fn other_file_systems_of_a_device_are_told_once() {
        let (disks, root) = (Disks::of(&["sda"]), "30 1 8:0 / / rw - ext4 /dev/sda rw\n");
        let mount = |more: &str| disks.write("proc/self/mountinfo", &format!("{root}{more}"));
        mount("");
        let host = disks.host();
        let (block_devices, _) = block_device::find_all(&host, &[]).unwrap();
        let mut machine = Machine::watch(&host, &block_devices, &[], Some(SensorSource::Diskstats)).unwrap();
        let btrfs = "31 30 0:39 / /srv rw - btrfs /dev/sda rw\n";
        let usb = "32 30 8:32 / /usb rw - ext4 /dev/sdc rw\n";
        for (more, bdi, is_remounted) in [
            ("", "btrfs-27", false),
            (btrfs, "btrfs-27", true),
            (btrfs, "btrfs-27", false),
            (btrfs, "btrfs-28", true),
            ("", "btrfs-28", true),
            (usb, "btrfs-28", false),
        ] {
            mount(more);
            let _ = std::fs::remove_dir_all(disks.path("sys/class/bdi"));
            disks.write(&format!("sys/class/bdi/{bdi}/read_ahead_kb"), "128");
            (0..MOUNTS_EVERY).for_each(|_| drop(machine.sample(Moment::now())));
            assert_eq!([0, 0].map(|at| machine.is_remounted(at)), [is_remounted, false], "{more}");
        }
    }
}
