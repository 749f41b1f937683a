//! Whether a throttle of their cgroup is to hold a device's bulk writers in place of a limit of dirty pages: where they go
//! past the page cache, no such limit does.

use std::collections::HashMap;

use weir_control::bypass::{Lodging, Throttled, Watch, alone};
use weir_control::{Life, Limits, Writer};
use weir_core::target::DeviceNumber;
use weir_host::knob::Actuator;
use weir_host::{Host, IoCgroup};
use weir_knobs::KnobName;

use super::exempt::{Exempt, account_of, accounts_of, shared_with};
use super::sampler::{Seen, Time};
use super::writers::Writers;

/// It is judged so often: who writes is told no more often than that.
const JUDGE_EVERY_NS: u64 = 1_000_000_000;
/// A cgroup that has written nothing for so long gets its limit back, and is found anew when it writes again.
const IDLE_NS: u64 = 30_000_000_000;
/// A cgroup that a throttle does not hold is left alone for so long.
const SPARED_NS: u64 = 600_000_000_000;

/// What follows from a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Switch {
    /// From now on this limit of a cgroup is turned.
    Cgroup {
        /// It.
        actuator: Actuator,
        /// What speaks for it, as a part of a sentence.
        why: String,
    },
    /// From now on the limit of dirty pages is turned again.
    Back {
        /// Why.
        why: String,
    },
    /// Bulk writers go past the page cache, and the limit of dirty pages is turned all the same.
    Not {
        /// Why.
        why: String,
    },
}

/// What chooses between the limits of a device.
pub trait Choose {
    /// Takes in a sample at the device `at`, adds to it what a throttle does to bulk writers, and says what follows.
    /// `writers` are its bulk writers, `limits` of the limit that is turned now, `exempt` tells who must not be throttled.
    fn sample(
        &mut self,
        at: usize,
        seen: &mut Seen,
        writers: &Writers,
        limits: Limits,
        time: Time,
        exempt: &dyn Fn() -> Exempt,
    ) -> Option<Switch>;

    /// The limit of dirty pages is turned again, whatever was said last.
    fn is_back(&mut self, at: usize);

    /// The cgroup's limit that was to be turned cannot be taken over; says why.
    fn is_refused(&mut self, at: usize, why: &str);

    /// Why bulk writers that go past the page cache are not throttled, if that is so.
    fn why_not(&self, at: usize) -> Option<&str>;
}

/// Chooses by what the kernel says of devices, processes and cgroups.
pub struct Throttles {
    host: Host,
    devices: Vec<Device>,
}

#[derive(Default)]
struct Device {
    judged_ns: u64,
    held: Option<Held>,
    why_not: Option<String>,
    spared: Option<Spared>,
}

/// A cgroup that is left alone.
struct Spared {
    group: IoCgroup,
    until_ns: u64,
    why: String,
}

/// A cgroup whose limit is turned.
struct Held {
    group: IoCgroup,
    /// Whose processes it may hold.
    accounts: Vec<u32>,
    /// Whether a process is in it: those that wrote in the last seconds.
    members: HashMap<Life, bool>,
    throttled: Throttled,
}

impl Throttles {
    /// For so many devices.
    pub fn new(host: &Host, devices: usize) -> Throttles {
        Throttles { host: host.clone(), devices: (0..devices).map(|_| Device::default()).collect() }
    }
}

impl Choose for Throttles {
    fn sample(
        &mut self,
        at: usize,
        seen: &mut Seen,
        writers: &Writers,
        limits: Limits,
        time: Time,
        exempt: &dyn Fn() -> Exempt,
    ) -> Option<Switch> {
        let (host, device) = (&self.host, &mut self.devices[at]);
        if let Some(held) = &mut device.held {
            held.sample(host, seen, limits, time.elapsed_ns);
        }
        if time.now_ns < device.judged_ns + JUDGE_EVERY_NS {
            return None;
        }
        device.judged_ns = time.now_ns;
        let watch = &writers.watch;
        if device.held.is_some() {
            device.stay(host, watch, exempt)
        } else {
            device.find(host, seen.number, watch, exempt)
        }
    }

    fn is_back(&mut self, at: usize) {
        self.devices[at].held = None;
    }

    fn is_refused(&mut self, at: usize, why: &str) {
        self.devices[at].spare(why);
    }

    fn why_not(&self, at: usize) -> Option<&str> {
        self.devices[at].why_not.as_deref()
    }
}

impl Device {
    /// Looks for a cgroup to throttle.
    fn find(
        &mut self,
        host: &Host,
        number: DeviceNumber,
        watch: &Watch,
        exempt: &dyn Fn() -> Exempt,
    ) -> Option<Switch> {
        if !watch.is_past_the_page_cache() {
            self.why_not = None;
            return None;
        }
        let now_ns = self.judged_ns;
        self.spared = self.spared.take().filter(|spared| now_ns < spared.until_ns);
        match self.choose(host, number, watch, &exempt()) {
            Ok((comm, held, knob)) => {
                self.held = Some(held);
                self.why_not = None;
                let why = format!("{comm} writes past the page cache, and no limit of dirty pages holds it");
                Some(Switch::Cgroup { actuator: Actuator::Cgroup(knob), why })
            }
            Err(why) if self.why_not.as_ref() == Some(&why) => None,
            Err(why) => {
                self.why_not = Some(why.clone());
                Some(Switch::Not { why })
            }
        }
    }

    /// The cgroup of the bulk writers to hold, with the name of one and the limit to turn; or why there is none.
    fn choose(
        &self,
        host: &Host,
        number: DeviceNumber,
        watch: &Watch,
        exempt: &Exempt,
    ) -> Result<(String, Held, KnobName), String> {
        let writers = watch.writers().into_iter();
        let found: Vec<(Writer, Option<(IoCgroup, KnobName)>)> = writers
            .filter_map(|writer| {
                // A limit that could not be journaled is none.
                let limit = |group: IoCgroup| group.write_limit(number).map(|knob| (group, knob));
                let with_limit = host.asked_of(writer.life(), |pid| host.io_cgroup_of(pid).and_then(limit));
                with_limit.map(|with_limit| (writer, with_limit))
            })
            .collect();
        let accounts =
            accounts_of(found.iter().map(|(writer, _)| (account_of(host, writer.life()), writer.bytes)));
        let lodging = |(group, _): &(IoCgroup, KnobName)| Lodging {
            path: group.path().to_string(),
            is_root: group.is_root(),
            // Of the root nothing more has to be known.
            shared_with: (!group.is_root()).then(|| shared_with(host, group, exempt, &accounts)).flatten(),
        };
        let lodgings: Vec<(Writer, Option<Lodging>)> =
            found.iter().map(|(writer, group)| (writer.clone(), group.as_ref().map(lodging))).collect();
        alone(&lodgings)?;
        let Some((Writer { comm, .. }, Some((group, knob)))) = found.into_iter().next() else {
            return Err("the writer has ended".to_string());
        };
        match self.spared.as_ref().filter(|spared| spared.group == group) {
            Some(spared) => Err(spared.why.clone()),
            None => {
                let (members, throttled) = (HashMap::new(), Throttled::default());
                Ok((comm, Held { group, accounts, members, throttled }, knob))
            }
        }
    }

    /// Leaves the cgroup that is held, or was to be, alone for a time.
    fn spare(&mut self, why: &str) {
        let until_ns = self.judged_ns + SPARED_NS;
        self.spared =
            self.held.take().map(|held| Spared { group: held.group, until_ns, why: why.to_string() });
    }

    /// Whether the cgroup is to be throttled on.
    fn stay(&mut self, host: &Host, watch: &Watch, exempt: &dyn Fn() -> Exempt) -> Option<Switch> {
        let held = self.held.as_mut()?;
        let path = held.group.path();
        let is_member = |life: Life| held.members.get(&life).copied().unwrap_or(false);
        let why = if let Some(other) = shared_with(host, &held.group, &exempt(), &held.accounts) {
            format!("{other}, is in the cgroup {path} now")
        } else if held.throttled.escapes() {
            let why = format!("no throttle of the cgroup {path} holds them");
            self.spare(&why);
            return Some(Switch::Back { why });
        } else if held.throttled.idle_ns() >= IDLE_NS {
            format!("the cgroup {path} writes no more")
        } else if watch.is_flooded_by_others(is_member) {
            format!("others than the cgroup {path} write more now")
        } else {
            let writers = watch.writers();
            held.members.retain(|life, _| writers.iter().any(|writer| writer.life() == *life));
            return None;
        };
        Some(Switch::Back { why })
    }
}

impl Held {
    fn sample(&mut self, host: &Host, seen: &mut Seen, limits: Limits, elapsed_ns: u64) {
        let group = &self.group;
        let mut is_member = |life: Life| {
            let home = || host.asked_of(life, |pid| host.io_cgroup_of(pid)).flatten();
            let ask = || home().is_some_and(|other| other == *group);
            *self.members.entry(life).or_insert_with(ask)
        };
        let sent = seen
            .bulk
            .writers
            .iter()
            .filter(|writer| is_member(writer.life()))
            .map(|writer| writer.bytes)
            .sum();
        let in_force = (limits.now_bytes < limits.saved_bytes).then_some(limits.now_bytes);
        self.throttled.push(elapsed_ns, sent, in_force);
        self.throttled.tell(&mut seen.bulk, elapsed_ns);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use weir_control::{Bulk, DeviceFlow, Sensor, SensorSource, Syncs};

    use super::*;
    use crate::guard::testing::{ids, stat};

    const LOOK_NS: u64 = 100_000_000;
    const MB: u64 = 1_000_000;
    /// Flags of open(2), in octal: O_WRONLY, and with O_DIRECT.
    const BUFFERED: &str = "0100001";
    const DIRECT: &str = "0140001";
    const SAVED: u64 = 1000 * MB;
    /// Processes: a writer, a database, another writer.
    const DD: u32 = 4_000_007;
    const DATABASE: u32 = 4_000_008;
    const CP: u32 = 4_000_009;

    /// A machine of a few files, with a device and what looks at it.
    struct Stage {
        folder: tempfile::TempDir,
        throttles: Throttles,
        writers: Writers,
        now_ns: u64,
        limit_bytes: u64,
    }

    impl Stage {
        /// With cgroup version 1, or 2.
        fn new(version: u8) -> Stage {
            let folder = tempfile::tempdir().unwrap();
            let host = Host::at(folder.path());
            let throttles = Throttles::new(&host, 1);
            let writers = Writers::new(&host);
            let stage = Stage { folder, throttles, writers, now_ns: 0, limit_bytes: SAVED };
            let mount = match version {
                1 => "38 31 0:35 / /sys/fs/cgroup rw - cgroup cgroup rw,blkio",
                _ => "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
            };
            stage.set("/proc/self/mountinfo", mount);
            for (pid, comm, group) in [(DD, "dd", "backup"), (DATABASE, "mariadbd", "db"), (CP, "cp", "copy")]
            {
                stage.set(&format!("/proc/{pid}/comm"), comm);
                stage.set(&format!("/proc/{pid}/stat"), &stat(pid, 0));
                stage.set(&format!("/proc/{pid}/status"), &ids([rustix::process::geteuid().as_raw(); 4]));
                let line = if version == 1 { format!("7:blkio:/{group}") } else { format!("0::/{group}") };
                stage.set(&format!("/proc/{pid}/cgroup"), &line);
                stage.set(&format!("/sys/fs/cgroup/{group}/cgroup.procs"), &pid.to_string());
                stage.set(&format!("/sys/fs/cgroup/{group}/io.max"), "");
                stage.open(pid, DIRECT);
            }
            stage
        }

        /// Has a process a file open with these flags.
        fn open(&self, pid: u32, flags: &str) {
            self.set(&format!("/proc/{pid}/fdinfo/5"), &format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t9\n"));
        }

        fn set(&self, path: &str, text: &str) {
            let file = self.folder.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }

        /// Looks for so many seconds, with bytes a sample of each writer; what was said.
        fn sample(&mut self, seconds: u64, writers: &[(u32, u64)]) -> Vec<Switch> {
            let mut said = Vec::new();
            for _ in 0..10 * seconds {
                self.now_ns += LOOK_NS;
                let writer = |(pid, bytes): &(u32, u64)| {
                    let comm = if *pid == DD { "dd" } else { "cp" };
                    Writer { pid: *pid, comm: comm.to_string(), bytes: *bytes, start_ns: 0 }
                };
                let mut seen = Seen {
                    number: DeviceNumber { major: 7, minor: 0 },
                    sensor: Sensor { source: SensorSource::Syscalls, silent_ns: 0, lost: 0 },
                    syncs: Syncs::default(),
                    bulk: Bulk { writers: writers.iter().map(writer).collect(), ..Bulk::default() },
                    flow: DeviceFlow { written_bytes: 20 * MB, ..DeviceFlow::default() },
                };
                let limits = Limits { now_bytes: self.limit_bytes, saved_bytes: SAVED, floor_bytes: MB / 10 };
                let time = Time { now_ns: self.now_ns, elapsed_ns: LOOK_NS };
                self.writers.push(&seen, time);
                let writers = &self.writers;
                let exempt = || Exempt { processes: [DATABASE].into(), are_not_all: false };
                said.extend(self.throttles.sample(0, &mut seen, writers, limits, time, &exempt));
                // What the control loop does with it.
                if matches!(said.last(), Some(Switch::Back { .. })) {
                    self.throttles.is_back(0);
                    self.limit_bytes = SAVED;
                }
            }
            said
        }

        /// A machine whose writer is throttled to a megabyte in a tenth of a second.
        fn throttled() -> Stage {
            let mut stage = Stage::new(1);
            assert!(matches!(stage.sample(4, &[(DD, 20 * MB)])[..], [Switch::Cgroup { .. }]));
            stage.limit_bytes = MB;
            stage
        }
    }

    /// Why what was said last was said.
    fn why(said: &[Switch]) -> &str {
        match said {
            [Switch::Cgroup { why, .. } | Switch::Back { why } | Switch::Not { why }] => why,
            _ => panic!("{said:?}"),
        }
    }

    #[test]
    fn the_cgroup_of_a_writer_past_the_page_cache_is_found_in_both_hierarchies() {
        for (version, knob) in
            [(1, "cgroup:/backup/blkio.throttle.write_bps_device/7:0"), (2, "cgroup:/backup/io.max/7:0/wbps")]
        {
            let mut stage = Stage::new(version);
            stage.open(DD, BUFFERED);
            assert_eq!(stage.sample(10, &[(DD, 20 * MB)]), [], "into the page cache");
            stage.open(DD, DIRECT);
            let said = stage.sample(5, &[(DD, 20 * MB)]);
            assert!(why(&said).contains("dd writes past the page cache"), "{said:?}");
            let [Switch::Cgroup { actuator, .. }] = &said[..] else { panic!("{said:?}") };
            assert_eq!(*actuator, Actuator::Cgroup(knob.parse().unwrap()));
        }
    }

    #[test]
    fn who_cannot_be_throttled_alone_is_left_alone_and_that_is_said_once() {
        for (files, writers, says) in [
            (
                &[("/sys/fs/cgroup/backup/cgroup.procs", format!("{DD}\n{DATABASE}"))][..],
                &[(DD, 20 * MB)][..],
                "dd shares its cgroup /backup with mariadbd (4000008), which is protected: it cannot be throttled alone",
            ),
            (
                &[("/sys/fs/cgroup/backup/cgroup.procs", std::process::id().to_string())],
                &[(DD, 20 * MB)],
                "dd shares its cgroup /backup with a process (",
            ),
            (&[], &[(DD, 10 * MB), (CP, 10 * MB)], "dd and cp are not in one cgroup"),
            (&[("/proc/4000007/cgroup", "7:blkio:/".to_string())], &[(DD, 20 * MB)], "is in the root cgroup"),
            (&[("/proc/4000007/cgroup", "7:blkio:/a b".to_string())], &[(DD, 20 * MB)], "offers no limit"),
        ] {
            let mut stage = Stage::new(1);
            files.iter().for_each(|(path, text)| stage.set(path, text));
            let said = stage.sample(9, writers);
            assert!(matches!(said[..], [Switch::Not { .. }]) && why(&said).contains(says), "{said:?}");
            assert_eq!(stage.throttles.why_not(0), Some(why(&said)));
            [DD, CP].iter().for_each(|pid| stage.open(*pid, BUFFERED));
            stage.sample(5, writers);
            assert_eq!(stage.throttles.why_not(0), None, "nobody goes past the page cache any more");
        }
    }

    #[test]
    fn who_hides_behind_a_thousand_groups_is_left_alone() {
        let mut stage = Stage::new(2);
        (0..1024).for_each(|nth| stage.set(&format!("/sys/fs/cgroup/backup/{nth}/cgroup.procs"), ""));
        let said = stage.sample(9, &[(DD, 20 * MB)]);
        assert!(why(&said).contains("with more groups than can be looked into"), "{said:?}");
    }

    #[test]
    fn a_throttle_ends_when_it_is_not_the_right_one_any_more() {
        let held = &[(DD, MB)][..];
        assert_eq!(Stage::throttled().sample(60, held), [], "it is held");
        let mut stage = Stage::throttled();
        let said = stage.sample(30, &[(DD, 20 * MB)]);
        assert_eq!(said.len(), 2, "it is not tried again: {said:?}");
        assert!(why(&said[..1]).contains("no throttle of the cgroup /backup holds them"), "{said:?}");
        assert!(matches!(said[1], Switch::Not { .. }) && why(&said[1..]) == why(&said[..1]), "{said:?}");
        let mut stage = Stage::throttled();
        stage.throttles.is_refused(0, "another program changed");
        assert_eq!(why(&stage.sample(30, &[(DD, 20 * MB)])), "another program changed", "said once");
        let mut stage = Stage::throttled();
        assert_eq!(stage.sample(25, &[]), [], "it may come back");
        assert!(why(&stage.sample(10, &[])).contains("/backup writes no more"));
        let mut stage = Stage::throttled();
        stage.sample(5, held);
        stage.open(CP, BUFFERED);
        assert!(why(&stage.sample(4, &[(DD, MB), (CP, 20 * MB)])).contains("others than the cgroup"));
        let mut stage = Stage::throttled();
        stage.sample(5, held);
        stage.set("/sys/fs/cgroup/backup/cgroup.procs", &format!("{DD}\n{DATABASE}"));
        assert!(why(&stage.sample(1, held)).contains(", which is protected, is in the cgroup /backup now"));
    }
}
