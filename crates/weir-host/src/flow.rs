//! What one device and its write-back do, from one look to the next; cheap enough for ten looks a second.

use weir_control::DeviceFlow;
use weir_core::target::DeviceNumber;
use weir_core::units::SECTOR_BYTES;

use crate::error::{BadLine, HostError};
use crate::host::Host;
use crate::write_back::OwnBdi;
use crate::{bdi, block, vm};

/// One device, watched.
#[derive(Debug)]
pub struct Flow {
    host: Host,
    number: DeviceNumber,
    name: String,
    sequence: Option<u64>,
    /// File systems that have a bdi of their own.
    own: Vec<OwnBdi>,
    written: Written,
}

/// What a look brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Seen {
    /// Counts since the look before.
    Here(DeviceFlow),
    /// The device is gone, or another one has its name now.
    Gone,
}

/// Counters of writes since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Written {
    requests: u64,
    sectors: u64,
}

impl Host {
    /// Watches a device from now on. A partition's write-back is its disk's, so the disk is watched.
    ///
    /// # Errors
    /// When there is no such device, or its counters cannot be read.
    pub fn flow(&self, number: DeviceNumber) -> Result<Flow, HostError> {
        let name = self.disk_of(number)?;
        let number = block::number_of(&self.tree, &name)?;
        let written = self.written(&name)?;
        let host = self.keeping_open();
        let own = self.write_back(number).own;
        Ok(Flow { host, number, sequence: self.sequence(&name), own, name, written })
    }

    fn disk_of(&self, number: DeviceNumber) -> Result<String, HostError> {
        let link = format!("/sys/dev/block/{number}");
        let absent = || {
            let error = std::io::Error::new(std::io::ErrorKind::NotFound, "no such block device");
            HostError::io(&self.tree.real(&link), error)
        };
        if !self.tree.exists(&format!("{link}/partition")) {
            return block::name_of(&self.tree, number).ok_or_else(absent);
        }
        // …/block/sda/sda1
        let folder = self.tree.link(&link).and_then(|link| Some(link.parent()?.file_name()?.to_owned()));
        folder.map(|name| name.to_string_lossy().into_owned()).ok_or_else(absent)
    }

    fn written(&self, name: &str) -> Result<Written, HostError> {
        self.tree.parsed(&format!("/sys/class/block/{name}/stat"), parse_written)
    }

    fn sequence(&self, name: &str) -> Option<u64> {
        self.tree.value(&format!("/sys/class/block/{name}/diskseq")).ok()
    }
}

impl Flow {
    /// The device's number: of a partition, its disk's.
    pub fn number(&self) -> DeviceNumber {
        self.number
    }

    /// The kernel's name of it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Numbers under which syncs of its file systems are counted, where those are others (btrfs).
    pub fn file_systems(&self) -> Vec<DeviceNumber> {
        self.own.iter().map(|own| own.number).collect()
    }

    /// Its file systems with a bdi of their own, when it began to be watched.
    pub fn own_bdis(&self) -> &[OwnBdi] {
        &self.own
    }

    /// Counts since the look before, or since it is watched. `backlog_bytes` is what is dirty and what is under way, where
    /// that is known already. Else it is this device's where debugfs may be read, and the machine's elsewhere.
    ///
    /// # Errors
    /// When counters are there but cannot be read or understood.
    pub fn look(&mut self, backlog_bytes: Option<(u64, u64)>) -> Result<Seen, HostError> {
        let written = match self.host.written(&self.name) {
            Err(error) if error.is_absent() => return Ok(Seen::Gone),
            written => written?,
        };
        if !self.is_the_same() {
            return Ok(Seen::Gone);
        }
        let before = std::mem::replace(&mut self.written, written);
        let grown =
            written.requests.checked_sub(before.requests).zip(written.sectors.checked_sub(before.sectors));
        let Some((writes, sectors)) = grown else { return Ok(Seen::Gone) };
        let (dirty_bytes, writeback_bytes) = backlog_bytes.map_or_else(|| self.dirty(), Ok)?;
        Ok(Seen::Here(DeviceFlow {
            written_bytes: sectors.saturating_mul(SECTOR_BYTES),
            writes,
            dirty_bytes,
            writeback_bytes,
        }))
    }

    /// No two disks have one sequence number until the next boot; before Linux 5.15 there are none.
    fn is_the_same(&self) -> bool {
        match self.sequence {
            Some(sequence) => self.host.sequence(&self.name) == Some(sequence),
            None => block::number_of(&self.host.tree, &self.name).is_ok_and(|now| now == self.number),
        }
    }

    fn dirty(&self) -> Result<(u64, u64), HostError> {
        let own = self.own.iter().filter_map(|own| own.bdi.clone());
        let bdis = std::iter::once(self.number.to_string()).chain(own);
        let counters = bdis.map(|name| bdi::counters(&self.host.tree, &name));
        let sum = |sum: (u64, u64), one: bdi::Counters| (sum.0 + one.reclaimable, sum.1 + one.writeback);
        let known = counters.collect::<Option<Vec<_>>>().map(|all| all.into_iter().fold((0, 0), sum));
        known.map_or_else(|| self.host.tree.parsed("/proc/meminfo", vm::parse_dirty), Ok)
    }
}

/// The line of a device's `stat`: eleven numbers or more.
fn parse_written(text: &str) -> Result<Written, BadLine> {
    let mut numbers = text.split_whitespace();
    let mut after = |skipped: usize, name: &str| {
        let number = numbers.nth(skipped).unwrap_or("nothing");
        number.parse::<u64>().map_err(|_| BadLine::new(1, name, number))
    };
    let requests = after(4, "writes completed")?;
    Ok(Written { requests, sectors: after(1, "sectors written")? })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::knob::testing::Machine;

    const DISK: DeviceNumber = DeviceNumber { major: 7, minor: 0 };
    const STAT: &str = "/sys/class/block/loop0/stat";

    fn machine() -> Machine {
        let machine = Machine::new();
        machine.set(STAT, "1 2 3 4 100 6 2000 8 9 10 11");
        machine.set("/sys/class/block/loop0/diskseq", "7");
        machine.set("/sys/class/block/loop0/loop0p1/partition", "1");
        fs::create_dir_all(machine.real("/sys/dev/block")).unwrap();
        for (number, folder) in [("7:0", "loop0"), ("259:0", "loop0/loop0p1")] {
            symlink(format!("../../class/block/{folder}"), machine.real("/sys/dev/block").join(number))
                .unwrap();
        }
        machine
    }

    #[test]
    fn counts_are_of_the_time_between_two_looks() {
        let machine = machine();
        let mut flow = machine.host.flow(DISK).unwrap();
        assert_eq!((flow.name(), flow.number()), ("loop0", DISK));
        machine.set(STAT, "1 2 3 4 103 6 2040 8 9 10 11 12 13 14 15 16 17");
        let of_machine =
            DeviceFlow { written_bytes: 20_480, writes: 3, dirty_bytes: 7 << 10, writeback_bytes: 2 << 10 };
        assert_eq!(flow.look(None).unwrap(), Seen::Here(of_machine));
        machine.set("/sys/kernel/debug/bdi/7:0/stats", "BdiWriteback: 8 kB\nBdiReclaimable: 64 kB");
        let still = DeviceFlow { dirty_bytes: 64 << 10, writeback_bytes: 8 << 10, ..DeviceFlow::default() };
        assert_eq!(flow.look(None).unwrap(), Seen::Here(still));
        let told = DeviceFlow { dirty_bytes: 5, writeback_bytes: 6, ..DeviceFlow::default() };
        assert_eq!(flow.look(Some((5, 6))).unwrap(), Seen::Here(told));
        machine.set(STAT, "1 2 3 4 many");
        assert!(flow.look(None).unwrap_err().to_string().contains("writes completed, got `many`"));
    }

    #[test]
    fn a_partition_means_its_disk() {
        let flow = machine().host.flow(DeviceNumber { major: 259, minor: 0 }).unwrap();
        assert_eq!((flow.name(), flow.number()), ("loop0", DISK));
        let error = machine().host.flow(DeviceNumber { major: 8, minor: 0 }).unwrap_err();
        assert!(error.is_absent(), "{error}");
    }

    #[test]
    fn another_device_is_not_mistaken_for_it() {
        type Change = fn(&Machine);
        const SEQUENCE: &str = "/sys/class/block/loop0/diskseq";
        fn remove(machine: &Machine, path: &str) {
            fs::remove_file(machine.real(path)).unwrap();
        }
        // (before it is watched, while it is)
        let changes: [(Change, Change); 4] = [
            (|_| (), |machine| machine.set(SEQUENCE, "8")),
            (|machine| remove(machine, SEQUENCE), |machine| machine.set("/sys/class/block/loop0/dev", "7:9")),
            (|machine| remove(machine, SEQUENCE), |machine| machine.set(STAT, "1 2 3 4 99 6 1990 8 9 10 11")),
            (|_| (), |machine| remove(machine, STAT)),
        ];
        for (before, change) in changes {
            let machine = machine();
            before(&machine);
            let mut flow = machine.host.flow(DISK).unwrap();
            assert!(matches!(flow.look(None).unwrap(), Seen::Here(_)));
            change(&machine);
            assert_eq!(flow.look(None).unwrap(), Seen::Gone);
        }
    }
}
