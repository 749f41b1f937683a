//! Completions that no program was called for: the kernel's own counters hold them, and the tables do not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use weir_core::target::DeviceNumber;

/// I/Os by device.
pub type Counts = BTreeMap<DeviceNumber, u64>;

/// Holds what programs saw against what the kernel counted.
///
/// The kernel counts a completion after it called the programs, and its counters are read after a session began to count
/// and before its tables are read. So what they gained and the tables lack was missed, however much is in flight. Where
/// completions come while both are read, fewer are told than were missed, until a later, quieter reading.
///
/// Where requests stood for others, the tables are an estimate, and nothing is told of the time since the reading before.
pub struct Unseen {
    before: BTreeMap<DeviceNumber, i64>,
    most: Counts,
    for_others: Counts,
}

/// What the tables hold, by device.
pub struct Seen {
    /// I/Os.
    pub ios: Counts,
    /// Of them, those that were not looked at.
    pub for_others: Counts,
}

impl Unseen {
    /// `before`: the counters when the session had begun.
    pub fn since(before: Counts) -> Unseen {
        let before = before.into_iter().map(|(device, count)| (device, count.cast_signed())).collect();
        Unseen { before, most: Counts::new(), for_others: Counts::new() }
    }

    /// How many were missed so far, at least. `counted` was read before the tables, `after` reads it again; `beside` is what the
    /// programs could not put into a table, of whatever device.
    pub fn so_far(
        &mut self,
        counted: &Counts,
        seen: &Seen,
        beside: u64,
        after: impl FnOnce() -> Counts,
    ) -> u64 {
        let of =
            |counts: &Counts, device: &DeviceNumber| counts.get(device).copied().unwrap_or(0).cast_signed();
        let is_estimate =
            |device: &&DeviceNumber| of(&seen.for_others, device) != of(&self.for_others, device);
        let estimated: Vec<DeviceNumber> = seen.for_others.keys().filter(is_estimate).copied().collect();
        for (device, now) in counted.iter().filter(|(device, _)| !estimated.contains(device)) {
            let gained = now.cast_signed() - self.before.get(device).copied().unwrap_or(0);
            let missed = gained - of(&seen.ios, device) - beside.cast_signed();
            let most = self.most.entry(*device).or_default();
            *most = u64::try_from(missed).unwrap_or(0).max(*most);
        }
        // Anew, from what was counted when the tables had been read, so that nothing is told that was not missed.
        let after = if estimated.is_empty() { Counts::new() } else { after() };
        for device in &estimated {
            let known = of(&seen.ios, device) + beside.cast_signed() + of(&self.most, device);
            self.before.insert(*device, of(&after, device) - known);
        }
        self.for_others.clone_from(&seen.for_others);
        self.most.values().sum()
    }
}

/// Reads, writes and discards that disks with requests have finished since boot, as the kernel counts them; `devices` empty
/// means all. Devices without requests (device-mapper, md) complete bios, which are counted elsewhere.
pub fn counted(devices: &[DeviceNumber]) -> Counts {
    let text = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    let disks = text.lines().filter_map(finished);
    let has_requests = |name: &str| Path::new("/sys/block").join(name).join("mq").exists();
    let watched = |device: &DeviceNumber| devices.is_empty() || devices.contains(device);
    disks
        .filter(|(device, name, _)| watched(device) && has_requests(name))
        .map(|(device, _, count)| (device, count))
        .collect()
}

/// A line of /proc/diskstats (Documentation/admin-guide/iostats.rst): reads, writes and, since 4.18, discards completed.
fn finished(line: &str) -> Option<(DeviceNumber, &str, u64)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let device = DeviceNumber { major: number(0)? as u32, minor: number(1)? as u32 };
    Some((device, fields.get(2)?, number(3)? + number(7)? + number(14).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: DeviceNumber = DeviceNumber { major: 254, minor: 0 };

    #[test]
    fn only_what_must_have_been_missed_is_told_and_stays_told() {
        let of = |count| Counts::from([(DISK, count)]);
        let seen_of = |ios| Seen { ios: of(ios), for_others: Counts::new() };
        let mut unseen = Unseen::since(of(100));
        let steps = [(150, 50, 0, 0), (160, 58, 0, 2), (170, 75, 0, 2)];
        for (step, (counted, seen, beside, missed)) in steps.into_iter().enumerate() {
            let told = unseen.so_far(&of(counted), &seen_of(seen), beside, Counts::new);
            assert_eq!(told, missed, "step {step}");
        }
        assert_eq!(unseen.so_far(&of(190), &seen_of(75), 10, Counts::new), 5);
        assert_eq!(Unseen::since(Counts::new()).so_far(&of(7), &seen_of(0), 0, Counts::new), 7);
        assert_eq!(unseen.so_far(&of(3), &seen_of(80), 0, Counts::new), 5, "a device that was made anew");
    }

    #[test]
    fn an_estimate_tells_of_nothing_missed_but_what_comes_after_it_does() {
        let of = |count| Counts::from([(DISK, count)]);
        let mut unseen = Unseen::since(of(0));
        let mut so_far = |counted, ios, others, after| {
            unseen.so_far(&of(counted), &Seen { ios: of(ios), for_others: of(others) }, 0, || of(after))
        };
        assert_eq!(so_far(100, 98, 0, 0), 2);
        assert_eq!(so_far(200_000, 199_000, 180_000, 200_007), 2, "an estimate");
        assert_eq!(so_far(200_100, 199_100, 180_000, 0), 2, "seven came while both were read");
        assert_eq!(so_far(200_200, 199_190, 180_000, 0), 5, "ten more are missing");
        assert_eq!(so_far(400_000, 401_000, 380_000, 400_000), 5, "an estimate that is too high");
        assert_eq!(so_far(400_100, 401_100, 380_000, 0), 5);
        assert_eq!(so_far(400_200, 401_199, 380_000, 0), 6);
    }

    #[test]
    fn a_line_of_the_counters_is_read() {
        let line = " 254       0 vda 100 3 800 50 200 4 16000 400 0 500 450 7 35 496336 299 10 50";
        assert_eq!(finished(line), Some((DISK, "vda", 307)));
        assert_eq!(finished("   8       0 sda 1 2 3 4 5 6 7 8 9 10 11").map(|found| found.2), Some(6));
        assert_eq!(finished("8 x sdb"), None);
    }
}
