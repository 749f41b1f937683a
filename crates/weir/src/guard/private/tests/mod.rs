//! Private limits on a machine of a few files: whose cgroups are taken over, and when they are let go of.

mod processors;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use weir_control::private::{Kept, Need};
use weir_control::{Bulk, DeviceFlow, Sensor, SensorSource, Syncs, Writer};
use weir_core::target::DeviceNumber;
use weir_host::Host;
use weir_host::knob::{Actuator, KnobError, PrivateLimits};

use super::pair::{End, Pair, Restored};
use super::*;
use crate::guard::testing::{ids, root_or_say, stat};

const LOOK_NS: u64 = 100_000_000;
const MB: u64 = 1_000_000;
const DD: u32 = 4_000_007;
const DATABASE: u32 = 4_000_008;
const JOB: u32 = 4_000_077;

/// What was asked of each actuator, and how the next one that is asked ends.
#[derive(Default)]
struct Done {
    taken: Vec<String>,
    limits: PrivateLimits,
    stopped: usize,
    /// How many were asked to restore when one was waited for.
    stopped_when_waited: Vec<usize>,
    ends: Option<End>,
    /// The kernel takes its time over the last write.
    is_slow: bool,
}

struct TestPair(Rc<RefCell<Done>>);

impl Pair for TestPair {
    fn set(&mut self, limits: PrivateLimits) {
        self.0.borrow_mut().limits = limits;
    }

    fn ended(&mut self) -> Option<End> {
        self.0.borrow_mut().ends.take()
    }

    fn release(&mut self) {
        let mut done = self.0.borrow_mut();
        (done.limits, done.stopped) = (PrivateLimits::default(), done.stopped + 1);
    }

    fn released(&mut self, patience: Duration) -> Option<Restored> {
        if !patience.is_zero() {
            let mut done = self.0.borrow_mut();
            let stopped = done.stopped;
            done.stopped_when_waited.push(stopped);
        }
        (!self.0.borrow().is_slow).then(|| Ok(Vec::new()))
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// A machine whose dd, in a cgroup of its own, floods a device beside a database.
struct Stage {
    folder: tempfile::TempDir,
    done: Rc<RefCell<Done>>,
    privates: Privates,
    writers: Writers,
    now_ns: u64,
    are_not_all: bool,
    need: Need,
    kept: Kept,
    wants_probe: bool,
    /// Of dd, a sample.
    bytes: u64,
    /// What others write in a sample.
    others: Vec<(u32, u64)>,
    /// What all write in a sample who are not named, or of whom it is not known where.
    unnamed: u64,
    /// In which cgroup each is.
    homes: RefCell<BTreeMap<u32, String>>,
    /// What each cgroup has written to each device.
    written: BTreeMap<String, [u64; 2]>,
    /// Of a hundred bytes, so many count for the cgroup; and the device that they go to.
    counted: u64,
    to: usize,
}

impl Stage {
    fn new(spare: &[&str]) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let set = |path: &str, text: &str| write(folder.path(), path, text);
        set("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
        set("/proc/sys/vm/dirty_ratio", "20");
        let (host, done) = (Host::at(folder.path()), Rc::new(RefCell::new(Done::default())));
        let actuators = done.clone();
        let take = Box::new(move |actuator: &Actuator| -> Result<Box<dyn Pair>, KnobError> {
            actuators.borrow_mut().taken.push(actuator.to_string());
            Ok(Box::new(TestPair(actuators.clone())))
        });
        let spare: Vec<Protected> = spare.iter().map(|who| who.parse().unwrap()).collect();
        let privates = Privates::new(&host, take, &spare, false, 0.93, &["sda", "nvme0n1"]);
        let writers = Writers::new(&host);
        let (need, others) = (Need::Here, Vec::new());
        let stage = Stage {
            folder,
            done,
            privates,
            writers,
            now_ns: 0,
            are_not_all: false,
            need,
            kept: Kept::Unknown,
            wants_probe: false,
            bytes: 20 * MB,
            others,
            unnamed: 0,
            homes: RefCell::default(),
            written: BTreeMap::new(),
            counted: 100,
            to: 0,
        };
        for (pid, comm, group) in [(DD, "dd", "backup.service"), (DATABASE, "mariadbd", "db.service")] {
            stage.put(pid, comm, group);
        }
        stage
    }

    /// A process in a cgroup of its own.
    fn put(&self, pid: u32, comm: &str, group: &str) {
        self.homes.borrow_mut().insert(pid, group.to_string());
        self.set(&format!("/proc/{pid}/comm"), comm);
        self.set(&format!("/proc/{pid}/cgroup"), &format!("0::/{group}"));
        self.begins(pid, 0);
        let account = rustix::process::geteuid().as_raw();
        self.set(&format!("/proc/{pid}/status"), &format!("Name:\t{comm}\n{}", ids([account; 4])));
        for (file, text) in [
            ("cgroup.procs", pid.to_string().as_str()),
            ("memory.current", "63000000"),
            ("memory.stat", "anon 1000000\nkernel 2000000\nfile 60000000\nfile_dirty 30000000"),
            ("memory.high", "max"),
            ("memory.pressure", "full avg10=0 avg60=0 avg300=0 total=0"),
            ("io.max", ""),
            ("io.stat", ""),
        ] {
            self.set(&format!("/sys/fs/cgroup/{group}/{file}"), text);
        }
    }

    fn begins(&self, pid: u32, ticks: u64) {
        self.set(&format!("/proc/{pid}/stat"), &stat(pid, ticks));
    }

    /// With a job of somebody's in the cgroup of dd.
    fn beside_a_job(group: &str) -> Stage {
        let stage = Stage::new(&[]);
        stage.put(DD, "dd", group);
        stage.set(&format!("/sys/fs/cgroup/{group}/cgroup.procs"), &format!("{DD}\n{JOB}"));
        stage.set(&format!("/proc/{JOB}/comm"), "job");
        stage
    }

    fn owns(&self, pid: u32, account: u32) {
        let process = self.folder.path().join(format!("proc/{pid}"));
        std::os::unix::fs::chown(process, Some(account), None).unwrap();
    }

    fn set(&self, path: &str, text: &str) {
        write(self.folder.path(), path, text);
    }

    /// What a writer writes shows in its cgroup.
    fn count(&mut self, pid: u32, bytes: u64) {
        let Some(group) = self.homes.borrow().get(&pid).cloned() else { return };
        let file = format!("/sys/fs/cgroup/{group}/io.stat");
        if bytes == 0 || !self.folder.path().join(file.trim_start_matches('/')).exists() {
            return;
        }
        let written = self.written.entry(group).or_default();
        written[self.to] += bytes * self.counted / 100;
        let text = format!("7:0 rbytes=0 wbytes={}\n7:1 rbytes=0 wbytes={}", written[0], written[1]);
        self.set(&file, &text);
    }

    /// Looks for so many seconds; what was told.
    fn sample(&mut self, seconds: u64) -> Vec<String> {
        self.sample_all(seconds, 1)
    }

    fn sample_tenth(&mut self) -> Vec<String> {
        self.sample_tenths(1, 1)
    }

    /// The same of so many devices.
    fn sample_all(&mut self, seconds: u64, devices: u32) -> Vec<String> {
        self.sample_tenths(10 * seconds, devices)
    }

    fn sample_tenths(&mut self, tenths: u64, devices: u32) -> Vec<String> {
        let mut said = Vec::new();
        for _ in 0..tenths {
            self.now_ns += LOOK_NS;
            let writes: Vec<(u32, u64)> =
                std::iter::once((DD, self.bytes)).chain(self.others.iter().copied()).collect();
            writes.iter().for_each(|(pid, bytes)| self.count(*pid, *bytes));
            let writer = |(pid, bytes): &(u32, u64)| Writer {
                pid: *pid,
                comm: "dd".to_string(),
                bytes: *bytes,
                start_ns: 0,
            };
            let writers: Vec<Writer> = writes.iter().map(writer).collect();
            let dirtied_bytes = self.unnamed / 2 + writers.iter().map(|writer| writer.bytes).sum::<u64>();
            let unlocated_bytes = self.unnamed - self.unnamed / 2;
            let seen = Seen {
                number: DeviceNumber { major: 7, minor: 0 },
                sensor: Sensor { source: SensorSource::Syscalls, silent_ns: 0, lost: 0 },
                syncs: Syncs::default(),
                bulk: Bulk { writers, dirtied_bytes, unlocated_bytes, ..Bulk::default() },
                flow: DeviceFlow { written_bytes: 20 * MB, ..DeviceFlow::default() },
            };
            let time = Time { now_ns: self.now_ns, elapsed_ns: LOOK_NS };
            let (kept, need, wants_probe) = (self.kept, self.need, self.wants_probe);
            let judged = Judged { kept, need, oldest_ns: 0, wants_probe };
            self.writers.push(&seen, time);
            let exempt = || Exempt { processes: [DATABASE].into(), are_not_all: self.are_not_all };
            for minor in 0..devices {
                let seen = Seen { number: DeviceNumber { major: 7, minor }, ..seen.clone() };
                let now = Now { seen: &seen, writers: &self.writers, time, exempt: &exempt };
                said.extend(self.privates.sample(minor as usize, &now, judged));
            }
        }
        said
    }
}

/// Other limits stay: a second without any fills memory.
#[test]
fn whose_pages_count_for_others_is_not_covered() {
    let mut stage = Stage::new(&[]);
    stage.counted = 1;
    stage.set("/sys/fs/cgroup/backup.service/memory.stat", "anon 1000000\nkernel 2000000\nfile 60000000");
    stage.sample(2);
    assert_eq!((stage.done.borrow().taken.len(), stage.privates.hold(0).covers), (1, false));
    stage.set("/sys/fs/cgroup/backup.service/memory.stat", "file 600000000\nfile_dirty 300000000");
    stage.sample(1);
    assert!(stage.privates.hold(0).covers);
}

#[test]
fn the_bulk_writers_own_cgroup_is_held_and_let_go_of() {
    let mut stage = Stage::new(&[]);
    let said = stage.sample(2);
    assert!(said[0].starts_with("/backup.service is held to 20 MB dirty"), "{said:?}");
    let actuator = "cgroup:/backup.service/memory.high and cgroup:/backup.service/io.max/7:0/wbps";
    assert_eq!((stage.done.borrow().taken.as_slice(), said.len()), (&[actuator.to_string()][..], 1));
    let high = stage.done.borrow().limits.high.unwrap();
    assert!((107 * MB..118 * MB).contains(&high), "{high}: what it holds, a margin, and five times 20 MB");
    assert_eq!(stage.privates.hold(0), Hold { covers: true, is_at_work: true, probed_from_ns: None });
    // It grows: the limit goes up at once.
    stage.set("/sys/fs/cgroup/backup.service/memory.stat", "anon 500000000");
    stage.set("/sys/fs/cgroup/backup.service/memory.current", "500000000");
    stage.sample(1);
    assert!(stage.done.borrow().limits.high.unwrap() > 600 * MB);
    (stage.need, stage.bytes) = (Need::Nobody, 0);
    let said = stage.sample(1);
    assert!(said[0].contains("at the baseline (unneeded)"), "{said:?}");
    assert!(!stage.privates.hold(0).covers);
    assert_eq!((stage.done.borrow().limits, stage.done.borrow().stopped), (PrivateLimits::default(), 1));
}

/// As after a start during a flood.
#[test]
fn a_probe_is_told_and_leaves_no_limit() {
    let mut stage = Stage::new(&[]);
    stage.wants_probe = true;
    let said = stage.sample(3);
    assert!(said.last().unwrap().contains(" (probe): a second with the least"), "{said:?}");
    assert!(stage.done.borrow().limits.pace.is_some() && stage.privates.hold(0).probed_from_ns.is_some());
    stage.wants_probe = false;
    let said = stage.sample(2);
    assert!(said.len() == 1 && said[0].contains(" (probed): "), "{said:?}");
    assert_eq!((stage.done.borrow().limits.pace, stage.privates.hold(0).probed_from_ns), (None, None));
}

/// As on kernels that are started with psi=0.
#[test]
fn that_harm_by_waiting_for_memory_is_not_seen_is_told() {
    let mut stage = Stage::new(&[]);
    let pressure = "sys/fs/cgroup/backup.service/memory.pressure";
    fs::remove_file(stage.folder.path().join(pressure)).unwrap();
    let said = stage.sample(2);
    let tells =
        |said: &[String]| said.iter().filter(|line| line.contains("/backup.service waits for")).count();
    assert_eq!((tells(&said), tells(&stage.privates.remarks(0))), (1, 1), "{said:?}");
    assert_eq!(tells(&Stage::new(&[]).sample(2)), 0);
}

/// Who has files open on two devices writes in bulk to one of them, and may be done with that.
#[test]
fn a_cgroup_is_held_for_the_device_that_it_floods() {
    let mut stage = Stage::new(&[]);
    stage.to = 1;
    stage.sample_all(5, 2);
    let taken = |stage: &Stage, device: u32| {
        let done = stage.done.borrow();
        done.taken.iter().filter(|actuator| actuator.contains(&format!("/7:{device}/"))).count()
    };
    assert_eq!((taken(&stage, 0), taken(&stage, 1)), (0, 1));
    assert!(!stage.privates.hold(0).covers && stage.privates.hold(1).covers);
    assert!(stage.privates.remarks(0).is_empty(), "it does not flood this one");
    // It goes on to the other device.
    stage.to = 0;
    stage.sample_all(2, 2);
    let why = stage.privates.remarks(0).join("; ");
    assert!(why.contains("the cgroup of dd is held for nvme0n1"), "{why}");
    stage.sample_all(60, 2);
    assert_eq!((taken(&stage, 0), taken(&stage, 1)), (1, 1));
    assert!(stage.privates.hold(0).covers && !stage.privates.hold(1).covers);
}

/// However many devices there are, and however long the kernel takes.
#[test]
fn the_end_waits_for_the_cgroups_of_all_devices_together() {
    let mut stage = Stage::new(&[]);
    stage.to = 1;
    stage.sample_all(5, 2);
    stage.put(5, "cp", "second.service");
    (stage.to, stage.others) = (0, vec![(5, 20 * MB)]);
    stage.sample_all(2, 2);
    assert_eq!((stage.privates.held(0), stage.privates.held(1)), (1, 1));
    stage.done.borrow_mut().is_slow = true;
    let (said, failed) = stage.privates.end();
    assert!(said.len() == 2 && said[0].contains("restored by the guardian process"), "{said:?}");
    assert_eq!((failed.len(), stage.done.borrow().stopped_when_waited.as_slice()), (0, &[2, 2][..]));
}

/// The kernel takes its time over the last write of a device that is gone by then.
#[test]
fn a_cgroup_of_a_device_that_is_gone_is_held_for_another_one_once_it_is_restored() {
    let mut stage = Stage::new(&[]);
    stage.to = 1;
    stage.sample_all(5, 2);
    assert_eq!((stage.privates.held(1), stage.done.borrow().taken.len()), (1, 1));
    stage.done.borrow_mut().is_slow = true;
    assert!(stage.privates.forget(1).is_empty());
    stage.to = 0;
    stage.sample(5);
    assert!(stage.privates.remarks(0).join("; ").contains("is held for nvme0n1"));
    stage.done.borrow_mut().is_slow = false;
    stage.privates.left(1);
    stage.sample(5);
    assert_eq!((stage.privates.held(0), stage.done.borrow().taken.len()), (1, 2));
}

/// Nobody has anything to lose, or the law leaves them alone.
#[test]
fn no_cgroup_is_taken_or_kept_that_would_not_be_held() {
    let mut stage = Stage::new(&[]);
    stage.need = Need::Nobody;
    stage.sample(3);
    assert!(stage.done.borrow().taken.is_empty());
    stage.need = Need::Here;
    stage.sample(1);
    assert_eq!(stage.done.borrow().taken.len(), 1);
    // Its pages count for others: it is spared.
    (stage.counted, stage.bytes) = (1, 60 * MB);
    stage.set("/sys/fs/cgroup/backup.service/memory.stat", "anon 1000000");
    let said = stage.sample(10).join("; ");
    assert!(said.contains("(escapes)"), "{said}");
    assert_eq!((stage.done.borrow().taken.len(), stage.done.borrow().stopped), (1, 1));
}

/// As of a script that starts a copy for each file.
#[test]
fn a_cgroup_whose_writer_has_just_ended_is_held_for_the_next_one() {
    let mut stage = Stage::new(&[]);
    // Its account is asked for a moment later than its cgroup.
    stage.set(&format!("/proc/{DD}/status"), "");
    stage.set("/sys/fs/cgroup/backup.service/cgroup.procs", "");
    assert!(stage.sample(1).is_empty() && stage.done.borrow().taken.is_empty());
    stage.put(DD, "dd", "backup.service");
    let said = stage.sample(1).join("; ");
    assert!(said.contains("(arm)") && !said.contains("of account"), "{said}");
    assert_eq!((stage.done.borrow().taken.len(), stage.privates.held(0)), (1, 1));
}

#[test]
fn who_writes_pages_of_others_is_held_by_processor_time_where_that_can_be_limited() {
    for (cpu_max, is_held) in [("max 100000", true), ("50000 100000", false)] {
        let mut stage = Stage::new(&[]);
        (stage.counted, stage.bytes, stage.kept) = (1, 100 * MB, Kept::Bad(0.1));
        stage.set("/sys/fs/cgroup/backup.service/cpu.max", cpu_max);
        let mut said = Vec::new();
        for tenth in 1..100 {
            // A gigabyte for a second of a processor.
            stage.set("/sys/fs/cgroup/backup.service/cpu.stat", &format!("usage_usec {}", tenth * 100_000));
            stage.set("/sys/fs/cgroup/backup.service/memory.stat", "anon 1000000");
            said.extend(stage.sample_tenth());
        }
        let (said, limits) = (said.join("; "), stage.done.borrow().limits);
        assert_eq!(said.contains("(quota)"), is_held, "{said}");
        assert_eq!(said.contains("(escapes)"), !is_held, "{said}");
        assert_eq!((limits.quota.is_some(), limits.pace), (is_held, None), "{limits:?}");
        assert_eq!(stage.privates.hold(0).covers, is_held);
        if is_held {
            assert_eq!((limits.quota, limits.high), (Some(0), None));
            assert!(
                said.contains(
                    "is held to the least by processor time (cpu.max 0.1 % of a processor) (quota)"
                ),
                "{said}"
            );
            assert!(stage.done.borrow().taken[0].ends_with("cgroup:/backup.service/cpu.max"));
        }
    }
}

#[test]
fn whose_cgroup_is_not_theirs_alone_is_left_alone_and_that_is_said_once() {
    type Change = fn(&Stage);
    let cases: [(Change, &[&str], &str); 8] = [
        (|_| {}, &["backup.service"], "is to be left alone (--spare)"),
        (|_| {}, &["cgroup:/backup.service/"], "is to be left alone (--spare)"),
        (|_| {}, &["cgroup:backup.service"], "is to be left alone (--spare)"),
        (|_| {}, &["cgroup:/sys/fs/cgroup/backup.service"], "is to be left alone (--spare)"),
        (
            |stage| stage.put(DD, "dd", "a.slice/backup.service/payload"),
            &["backup.service"],
            "is to be left alone (--spare)",
        ),
        (|stage| stage.set(&format!("/proc/{DD}/cgroup"), "0::/"), &[], "it is in the root cgroup"),
        (
            |stage| stage.set("/sys/fs/cgroup/backup.service/cgroup.procs", &format!("{DD}\n{DATABASE}")),
            &["other.service", "cgroup:/back"],
            "it shares its cgroup with mariadbd (4000008), which is protected",
        ),
        (
            |stage| stage.set("/sys/fs/cgroup/backup.service/inner/memory.max", "1000000"),
            &[],
            "/backup.service/inner below its own has limits already",
        ),
    ];
    for (change, spare, why) in cases {
        let mut stage = Stage::new(spare);
        change(&stage);
        let said = stage.sample(5);
        assert!(
            said.len() == 1 && said[0].contains(why) && said[0].contains("weir guard exec"),
            "{why}: {said:?}"
        );
        assert!(stage.privates.remarks(0)[0].contains(why) && !stage.privates.hold(0).covers);
        assert!(stage.done.borrow().taken.is_empty());
    }
}

#[test]
fn a_cgroup_that_goes_is_no_error_and_one_in_other_hands_is_left_to_them() {
    let mut stage = Stage::new(&[]);
    stage.sample(2);
    fs::remove_dir_all(stage.folder.path().join("sys/fs/cgroup/backup.service")).unwrap();
    fs::remove_file(stage.folder.path().join(format!("proc/{DD}/cgroup"))).unwrap();
    stage.bytes = 0;
    let said = stage.sample(1);
    assert!(said.len() == 1 && said[0].contains("(gone)"), "{said:?}");

    for (end, again_s, says) in
        [(End::Reset, 6, "were reset"), (End::Lost("it is 5 now".into()), 601, "it is 5 now")]
    {
        let mut stage = Stage::new(&[]);
        stage.sample(2);
        stage.done.borrow_mut().ends = Some(end);
        let said = stage.sample(1);
        assert!(said[0].contains(says), "{said:?}");
        assert!(!stage.privates.hold(0).covers);
        stage.sample(again_s - 3);
        assert_eq!(stage.done.borrow().taken.len(), 1, "{says}");
        stage.sample(4);
        assert_eq!(stage.done.borrow().taken.len(), 2, "{says}");
    }
}

#[test]
fn who_is_protected_and_comes_into_a_held_cgroup_ends_it() {
    let mut stage = Stage::new(&[]);
    stage.sample(2);
    stage.set("/sys/fs/cgroup/backup.service/cgroup.procs", &format!("{DD}\n{DATABASE}"));
    let said = stage.sample(2);
    assert!(
        said[0].contains("mariadbd (4000008), which is protected, is in the cgroup /backup.service now"),
        "{said:?}"
    );
    assert_eq!(stage.done.borrow().stopped, 1);
}

/// As where another account runs more processes that sync than there are places for.
#[test]
fn where_not_all_who_sync_are_known_no_cgroup_is_held() {
    let mut stage = Stage::new(&[]);
    stage.sample(2);
    assert_eq!(stage.done.borrow().taken.len(), 1);
    stage.are_not_all = true;
    let said = stage.sample(2);
    assert!(said[0].contains("more than can be followed"), "{said:?}");
    assert_eq!(stage.done.borrow().stopped, 1);
    stage.sample(20);
    assert_eq!(stage.done.borrow().taken.len(), 1, "taken again");
}

/// A job of cron's beside another account's or root's, in the service's cgroup; in a session of its own, and in another's.
#[test]
fn root_a_cgroup_of_several_accounts_is_left_alone() {
    if !root_or_say("root_a_cgroup_of_several_accounts_is_left_alone") {
        return;
    }
    for (account, group, is_held) in [
        (1001, "backup.service", false),
        (0, "backup.service", false),
        (1000, "backup.service", true),
        (0, "user.slice/user-1000.slice/session-3.scope", true),
        (0, "user.slice/user-1001.slice/session-4.scope", false),
        (1001, "user.slice/user-1001.slice/session-4.scope", false),
    ] {
        let mut stage = Stage::beside_a_job(group);
        stage.set(&format!("/proc/{DD}/status"), &ids([1000; 4]));
        stage.owns(DD, 1000);
        stage.owns(JOB, account);
        stage.sample(3);
        assert_eq!(stage.done.borrow().taken.len() == 1, is_held, "{account} {group}");
        let why = stage.privates.remarks(0).join("; ");
        assert_eq!(why.contains("it shares its cgroup with job"), !is_held, "{why}");
    }
}

/// A flood of many small writers, or of those whose files are closed, beside one that may be held.
#[test]
fn who_is_not_named_is_not_held() {
    let mut stage = Stage::new(&[]);
    stage.sample(2);
    assert!(stage.privates.hold(0).covers);
    stage.unnamed = 10 * MB;
    stage.sample(1);
    assert_eq!((stage.done.borrow().taken.len(), stage.privates.hold(0).covers), (1, false));
    let mut stage = Stage::new(&[]);
    stage.unnamed = MB;
    stage.sample(2);
    assert!(stage.privates.hold(0).covers, "a twentieth");
}

/// What an account wrote before it ran su, or sudo: bytes of a process of root's by now, in a cgroup with others of root's.
#[test]
fn root_bulk_of_a_process_that_became_another_s_holds_nobody() {
    if !root_or_say("root_bulk_of_a_process_that_became_another_s_holds_nobody") {
        return;
    }
    for (accounts, login, is_held) in [
        ([0, 0, 0, 0], None, true),
        ([0, 0, 0, 0], Some("0"), true),
        ([0, 0, 0, 0], Some("4294967295"), true),
        ([1000, 0, 0, 0], None, false),
        ([0, 0, 0, 0], Some("1000"), false),
    ] {
        let mut stage = Stage::beside_a_job("cron.service");
        stage.set(&format!("/proc/{DD}/status"), &ids(accounts));
        login.into_iter().for_each(|login| stage.set(&format!("/proc/{DD}/loginuid"), login));
        stage.sample(3);
        assert_eq!(stage.done.borrow().taken.len() == 1, is_held, "{accounts:?} {login:?}");
    }
}

/// Whose bytes they were has ended, and another's process has its number.
#[test]
fn who_gets_the_number_of_a_bulk_writer_is_not_held_for_it() {
    for (began, is_held) in [(0, true), (7, false)] {
        let mut stage = Stage::new(&[]);
        stage.begins(DD, began);
        stage.sample(3);
        assert_eq!(stage.done.borrow().taken.len() == 1, is_held, "began at {began}");
    }
}

#[test]
fn very_many_cgroups_are_neither_all_held_nor_waited_for() {
    let mut stage = Stage::new(&[]);
    // A writer each: about as many as count by their share.
    stage.bytes = 0;
    stage.others = (0..18).map(|nth| (DD + 100 + nth, MB)).collect();
    for (pid, _) in stage.others.clone() {
        stage.put(pid, "dd", &format!("many/{pid}"));
    }
    stage.sample(3);
    let taken = stage.done.borrow().taken.len();
    assert_eq!(taken, 8, "held at a time");
    let why = stage.privates.remarks(0).join("; ");
    assert!(why.contains("no more than 8 cgroups"), "{why}");
    stage.done.borrow_mut().is_slow = true;
    stage.need = Need::Nobody;
    stage.sample(1);
    assert_eq!(stage.done.borrow().stopped, 8, "asked to restore, and not waited for");
    (stage.need, stage.bytes, stage.others) = (Need::Here, 20 * MB, Vec::new());
    stage.sample(3);
    assert_eq!(stage.done.borrow().taken.len(), 8, "none before those are restored");
    stage.done.borrow_mut().is_slow = false;
    stage.sample(3);
    assert_eq!(stage.done.borrow().taken.len(), 9);
}

/// A user's manager, or a container, lets whoever runs there name the groups.
#[test]
fn nobody_calls_a_cgroup_of_his_like_one_that_is_spared() {
    for group in [
        "user.slice/user-1000.slice/user@1000.service/app.slice/backup.service",
        "machine.slice/libpod-1.scope/backup.service",
        "x/backup.service",
        "system.slice/other.service/backup.service",
    ] {
        let mut stage = Stage::new(&["backup.service", "app.slice"]);
        stage.put(DD, "dd", group);
        stage.sample(2);
        assert_eq!(stage.done.borrow().taken.len(), 1, "{group}");
    }
}

/// Others that cannot be held, or are too many to be asked, are not covered for that.
#[test]
fn a_flood_beside_the_held_ones_is_seen_wherever_it_lies() {
    type Change = fn(&mut Stage);
    let small = |stage: &mut Stage| stage.others = (1..=60).map(|pid| (pid, MB)).collect();
    let cases: [(&str, Change); 6] = [
        ("nobody", |stage| stage.others.clear()),
        ("who has ended", |stage| fs::remove_dir_all(stage.folder.path().join("proc/5")).unwrap()),
        ("beside what is mounted here", |stage| stage.set("/proc/5/cgroup", "0::/../elsewhere")),
        ("of a name that is none", |stage| stage.put(5, "dd", "a b")),
        ("of a name that is read as another's", |stage| stage.put(5, "dd", "a\u{fffd}")),
        ("of many that are small", small),
    ];
    for (name, change) in cases {
        let mut stage = Stage::new(&[]);
        stage.sample(2);
        assert!(stage.privates.hold(0).covers);
        stage.set("/proc/5/comm", "dd");
        stage.begins(5, 0);
        stage.others = vec![(5, 20 * MB)];
        change(&mut stage);
        for (pid, _) in stage.others.iter().filter(|(pid, _)| *pid != 5) {
            stage.begins(*pid, 0);
            stage.set(&format!("/proc/{pid}/comm"), "dd");
            stage.set(&format!("/proc/{pid}/cgroup"), "0::/");
        }
        stage.sample(1);
        assert_eq!(stage.privates.hold(0).covers, name == "nobody", "{name}");
        assert_eq!(stage.done.borrow().taken.len(), 1, "{name}");
    }
    let mut stage = Stage::new(&[]);
    stage.put(5, "dd", "backup.service");
    stage.others = vec![(5, 20 * MB)];
    stage.sample(2);
    fs::remove_dir_all(stage.folder.path().join("proc/5")).unwrap();
    stage.sample(1);
    assert!(stage.privates.hold(0).covers, "it was in the held cgroup");
}

/// As a user's, whose manager has no io controller, beside a backup.
#[test]
fn only_those_that_can_be_paced_have_a_part_of_the_pace() {
    let mut stage = Stage::new(&[]);
    stage.kept = Kept::Bad(0.5);
    stage.sample(2);
    let limits = |stage: &Stage, path: &str| {
        let held = &stage.privates.devices[0].groups.held;
        held.iter().find(|held| held.group.path() == path).map(|held| held.limits)
    };
    let alone = limits(&stage, "/backup.service").unwrap().pace;
    assert!(alone.is_some(), "{:?}", stage.privates.remarks(0));
    stage.put(5, "cp", "user.service");
    for file in ["io.max", "io.stat"] {
        fs::remove_file(stage.folder.path().join(format!("sys/fs/cgroup/user.service/{file}"))).unwrap();
    }
    (stage.kept, stage.others) = (Kept::Close(0.93), vec![(5, 20 * MB)]);
    stage.sample(1);
    assert_eq!(limits(&stage, "/backup.service").unwrap().pace, alone);
    assert_eq!(limits(&stage, "/user.service").unwrap().pace, None);
    let standing = stage.privates.remarks(0).remove(0);
    assert!(standing.starts_with("/backup.service and /user.service are held to "), "{standing}");
    assert!(standing.contains(" dirty (memory.high "), "{standing}");
    assert!(standing.contains("), /backup.service to ") && standing.ends_with(" MB/s"), "{standing}");
}

/// Another account could leave any number of cgroups behind that wrote once.
#[test]
fn who_writes_no_more_has_no_part_and_is_let_go_of() {
    let mut stage = Stage::new(&[]);
    stage.put(5, "dd", "second.service");
    stage.others = vec![(5, 20 * MB)];
    stage.sample(2);
    let high = |stage: &Stage| {
        let held = stage.privates.devices[0].groups.held.iter();
        held.filter(|held| held.group.path() == "/backup.service").find_map(|held| held.limits.high)
    };
    let (halved, held) = (high(&stage), stage.privates.held(0));
    stage.others.clear();
    stage.set("/sys/fs/cgroup/second.service/memory.stat", "anon 1000000");
    stage.sample(4);
    assert!(held == 2 && high(&stage) > halved, "{halved:?} {:?}", high(&stage));
    assert_eq!(stage.done.borrow().stopped, 0);
    stage.sample(30);
    assert_eq!((stage.privates.held(0), stage.done.borrow().stopped), (1, 1));
    assert!(stage.privates.hold(0).covers);
}

/// As a service that goes on with a little after it copied its data.
#[test]
fn who_writes_a_little_for_ever_is_let_go_of() {
    let mut stage = Stage::new(&[]);
    stage.sample(5);
    assert_eq!(stage.privates.held(0), 1);
    stage.set("/sys/fs/cgroup/backup.service/memory.stat", "anon 1000000\nfile_dirty 200000");
    stage.bytes = 10_000;
    let said = stage.sample(60).join("; ");
    assert_eq!((stage.privates.held(0), stage.done.borrow().stopped), (0, 1), "{said}");
    assert!(said.contains("at the baseline (ended)"), "{said}");
    assert_eq!(stage.done.borrow().taken.len(), 1);
}

/// Processes that come and go, each with a byte, are not remembered for ever.
#[test]
fn who_is_gone_is_forgotten() {
    let mut stage = Stage::new(&[]);
    stage.sample(1);
    stage.bytes = 1;
    for round in 0..40 {
        stage.others = (0..30).map(|nth| (1000 + 100 * round + nth, 1)).collect();
        stage.sample(1);
    }
    let known = stage.privates.devices[0].groups.homes_len();
    assert!(known < 1000, "{known} homes are remembered");
}

/// Each that is held takes a thread and a guardian.
#[test]
fn only_some_of_very_many_cgroups_are_held_or_looked_through() {
    let mut stage = Stage::new(&[]);
    for nth in 0..15 {
        stage.put(100 + nth, "dd", &format!("user.slice/{nth}"));
        stage.others.push((100 + nth, 20 * MB));
    }
    let said = stage.sample(1);
    let taken = stage.done.borrow().taken.len();
    assert!((2..=8).contains(&taken), "{taken} were looked through at once");
    let said: Vec<String> = said.into_iter().chain(stage.sample(15)).collect();
    assert_eq!(stage.done.borrow().taken.len(), 8);
    let told = said.iter().filter(|line| line.contains("no more than 8 cgroups")).count();
    assert!(told == 1 && !stage.privates.hold(0).covers, "{said:?}");
}
