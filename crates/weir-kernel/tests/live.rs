//! Sessions against the truth: what this process did to a loop device of its own, and what the kernel counted of it.

#![allow(clippy::unwrap_used)] // test code throughout; clippy knows that only of functions under #[test]

#[allow(dead_code)] // its devices have file systems; those here are raw
mod lab;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lab::{Frozen, lab};
use weir_blocktrace::{Cell, Class, Moment, Stage};
use weir_core::target::DeviceNumber;
use weir_kernel::live::{Detail, IssueStamp, Losses, Options, Snapshot, StageSession};
use weir_kernel::probe;
use weir_kernel::tracefs::{self, TracerSession};

const BOTH: [Detail; 2] = [Detail::Default, Detail::Full];

/// A loop device that goes away with the value.
struct Device {
    folder: PathBuf,
    node: File,
    number: DeviceNumber,
    counters: PathBuf,
}

impl Device {
    /// One of 64 MiB, or a plain word of what this machine lacks for it.
    fn create(test: &str) -> Option<Device> {
        Device::with(test, &["fs=none", "size=64M"])
    }

    fn with(test: &str, settings: &[&str]) -> Option<Device> {
        let report = probe::report();
        if report.attach.is_none() || !Path::new("/dev/loop-control").exists() {
            let lacking = report.refusal.unwrap_or_else(|| "loop devices".into());
            let _ = writeln!(io::stderr(), "not run: {test} lacks BPF programs and loop devices: {lacking}");
            return None;
        }
        let folder = lab(&[&["create", &format!("owner={}", std::process::id())], settings].concat());
        let folder = PathBuf::from(folder.trim());
        let path = fs::read_to_string(folder.join("dev")).unwrap();
        let path = Path::new(path.trim());
        let node = File::options().read(true).write(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
        let rdev = node.metadata().unwrap().rdev();
        let number = DeviceNumber { major: libc::major(rdev), minor: libc::minor(rdev) };
        let counters = Path::new("/sys/block").join(path.file_name().unwrap()).join("stat");
        Some(Device { folder, node, number, counters })
    }

    fn options(&self, detail: Detail) -> Options {
        Options { devices: vec![self.number], detail, ..Options::default() }
    }

    /// The kernel's counters (Documentation/block/stat.rst): reads, sectors read, writes, sectors written, flushes.
    fn counted(&self) -> [u64; 5] {
        let text = fs::read_to_string(&self.counters).unwrap();
        let fields: Vec<u64> = text.split_whitespace().map(|field| field.parse().unwrap()).collect();
        [fields[0], fields[2], fields[4], fields[6], fields[15]]
    }

    fn class(&self, snapshot: &Snapshot, class: Class) -> Cell {
        snapshot.table.of_class(self.number, class)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        lab(&["destroy", &self.folder.to_string_lossy()]);
    }
}

/// Calls `act` with a buffer that O_DIRECT takes.
fn with_buffer<R>(bytes: usize, act: impl FnOnce(&mut [u8]) -> R) -> R {
    let mut room = vec![7_u8; bytes + 4096];
    let start = room.as_ptr().align_offset(4096);
    act(&mut room[start..start + bytes])
}

fn read(node: &File, bytes: usize, at: u64) -> io::Result<()> {
    with_buffer(bytes, |buffer| node.read_exact_at(buffer, at))
}

/// Reads, writes and flushes, one after the other; how long all of it took, ns.
fn load(device: &Device, reads: u64, writes: u64, flushes: u64) -> u128 {
    let begun = Instant::now();
    (0..reads).for_each(|n| read(&device.node, 4096, (n * 7919 % 8192) * 4096).unwrap());
    with_buffer(16384, |buffer| {
        (0..writes).for_each(|n| device.node.write_all_at(buffer, n * 16384).unwrap())
    });
    (0..flushes).for_each(|_| device.node.sync_data().unwrap());
    begun.elapsed().as_nanos()
}

#[test]
fn root_counts_and_bytes_are_those_of_the_load_and_of_the_kernel() {
    let Some(device) = Device::create("root_counts_and_bytes_are_those_of_the_load_and_of_the_kernel") else {
        return;
    };
    for detail in BOTH {
        // The kernel may leave out a session for single events while another tracer comes or goes. Of an I/O's issue
        // nobody knows then, so one of a few attempts has to be exact, and none may count too much.
        let is_exact = (0..5).any(|_| counts_as_the_kernel_does(&device, detail));
        assert!(is_exact, "{detail:?}: five times something was missing");
    }
}

/// Whether what is missing was told, and nothing else was; what is there agrees in any case.
fn counts_as_the_kernel_does(device: &Device, detail: Detail) -> bool {
    let mut session = StageSession::start(&device.options(detail)).unwrap();
    let before = device.counted();
    let elapsed_ns = load(device, 3000, 500, 20);
    let after = device.counted();
    let snapshot = session.snapshot();
    let [reads, sectors_read, writes, sectors_written, flushes] =
        std::array::from_fn(|at| after[at] - before[at]);
    let [read, write, flush] =
        [Class::Read, Class::SyncWrite, Class::Flush].map(|class| device.class(&snapshot, class));
    assert_eq!((reads, sectors_read, sectors_written, flushes), (3000, 3000 * 8, 500 * 32, 20));
    // Some kernels count the senders' flushes as writes too.
    assert!([500, 520].contains(&writes), "{writes}");

    let seen = read.ios + write.ios + flush.ios;
    assert_eq!(snapshot.losses.unseen, (reads + writes).saturating_sub(seen), "{detail:?}: {seen} seen");
    let mut sum_ns = 0;
    let total = if detail == Detail::Full { Stage::Q2C } else { Stage::G2C };
    for (cell, ios, bytes) in [(&read, 3000, 4096), (&write, 500, 16384), (&flush, 20, 0)] {
        assert!(cell.ios <= ios && cell.ios + 10 >= ios, "{detail:?}: {} of {ios} I/Os", cell.ios);
        assert_eq!((cell.bytes, cell.errors), (cell.ios * bytes, 0), "{detail:?}");
        assert!(
            cell.stage(Stage::D2C).sum_ns() <= cell.stage(total).sum_ns() || cell.ios < ios,
            "{detail:?}"
        );
        sum_ns += cell.stage(total).sum_ns();
    }
    assert!(sum_ns > 0 && sum_ns <= elapsed_ns, "{detail:?}: {sum_ns} ns in {elapsed_ns} ns, one at a time");
    let told = Losses { unseen: 3520 - seen, ..Losses::default() };
    let is_complete = |cell: &Cell| [Stage::D2C, total].iter().all(|at| cell.stage(*at).count() == cell.ios);
    snapshot.losses == told && [read, write, flush].iter().all(is_complete)
}

/// The tracer tells of the device's own flush commands too, which are nobody's I/O.
#[test]
fn root_the_tracer_counts_the_flushes_that_were_sent() {
    let Some(device) = Device::create("root_the_tracer_counts_the_flushes_that_were_sent") else { return };
    let options = tracefs::Options { devices: vec![device.number], slow_ns: Some(1), ..Default::default() };
    let mut session = TracerSession::start(&options).unwrap();
    let before = device.counted();
    load(&device, 0, 5, 20);
    assert_eq!(device.counted()[4] - before[4], 20);
    session.drain().unwrap();
    assert_eq!(session.losses(), BTreeMap::new());
    let [write, flush] =
        [Class::SyncWrite, Class::Flush].map(|class| session.table().of_class(device.number, class));
    assert_eq!((write.ios, write.bytes, flush.ios, flush.bytes), (5, 5 * 16384, 20, 0));
    for cell in [&write, &flush] {
        let counts = [Stage::D2C, Stage::Q2C].map(|stage| cell.stage(stage).count());
        assert_eq!(counts, [cell.ios; 2]);
    }
    let slow = session.slow();
    assert_eq!(slow.iter().filter(|io| io.piece.bytes == 0).count(), 20, "{slow:?}");
}

#[test]
fn root_pieces_of_a_split_keep_their_queue_time_and_all_bytes() {
    let Some(device) = Device::create("root_pieces_of_a_split_keep_their_queue_time_and_all_bytes") else {
        return;
    };
    let is_exact = (0..5).any(|_| {
        let mut session = StageSession::start(&device.options(Detail::Full)).unwrap();
        let before = device.counted();
        (0..4).for_each(|n| read(&device.node, 8 << 20, n * (8 << 20)).unwrap());
        let requests = device.counted()[0] - before[0];
        assert!(requests >= 8, "{requests}: nothing was split");
        let snapshot = session.snapshot();
        let read = device.class(&snapshot, Class::Read);
        let [merged, got, done] = [Stage::Q2M, Stage::Q2G, Stage::Q2C].map(|stage| read.stage(stage).count());
        assert!(read.bytes <= 4 * (8 << 20) && read.ios <= requests + merged, "{} bytes", read.bytes);
        snapshot.losses.is_none()
            && (read.bytes, read.ios, done, got + merged)
                == (4 * (8 << 20), requests + merged, read.ios, read.ios)
            && read.stage(Stage::Q2D).count() == read.ios
    });
    assert!(is_exact, "five times something was missing");
}

#[test]
fn root_slow_requests_tell_all_and_errors_are_counted() {
    let Some(device) = Device::create("root_slow_requests_tell_all_and_errors_are_counted") else { return };
    lab(&["fail", &device.folder.to_string_lossy(), "reads"]);
    for detail in BOTH {
        let mut session =
            StageSession::start(&Options { slow_ns: Some(1), ..device.options(detail) }).unwrap();
        (0..10).for_each(|n| read(&device.node, 4096, n * 4096).unwrap());
        assert!(read(&device.node, 4096, 48 << 20).is_err());
        let (snapshot, slow) = (session.snapshot(), session.slow());
        let cell = device.class(&snapshot, Class::Read);
        assert_eq!((cell.ios, cell.errors, slow.len()), (11, 1, 11), "{detail:?}: {:?}", snapshot.losses);
        for (n, slow) in slow.iter().enumerate() {
            let sector = if n < 10 { n as u64 * 8 } else { 48 << 11 };
            let error = if n < 10 { 0 } else { -libc::EIO };
            assert_eq!(
                (slow.device, slow.sector, slow.bytes, slow.error),
                (device.number, sector, 4096, error),
                "{n}"
            );
            assert!(slow.classes.has(Class::Read) && slow.times.stage(Stage::D2C).is_some(), "{slow:?}");
            if detail == Detail::Full {
                let times = [Moment::Queue, Moment::GetRequest, Moment::Issue, Moment::Complete]
                    .map(|at| slow.times.get(at));
                assert!(times.is_sorted() && times[0] > Some(snapshot.started_ns), "{slow:?}");
                assert!(
                    slow.pid.is_some_and(|pid| Path::new(&format!("/proc/self/task/{pid}")).exists()),
                    "{slow:?}"
                );
                assert!(slow.comm.is_some() && slow.cgroup.is_some(), "{slow:?}");
            }
        }
        assert_eq!(session.slow(), [], "each is told once");
    }
}

#[test]
fn root_only_what_was_asked_for_counts() {
    let Some(device) = Device::create("root_only_what_was_asked_for_counts") else { return };
    let own = std::process::id();
    let all = device.options(Detail::Default);
    let other_device = DeviceNumber { major: 259, minor: 4_000 };
    let cases = [
        ("this process", Options { pids: vec![own], ..all.clone() }, 100),
        ("another process", Options { pids: vec![1, own + 1], ..all.clone() }, 0),
        ("another device", Options { devices: vec![other_device], ..all.clone() }, 0),
        ("every cgroup", Options { cgroup: root_cgroup(), ..all.clone() }, 100),
    ];
    for (name, options, expected) in cases {
        let mut session = StageSession::start(&options).unwrap();
        load(&device, 100, 0, 0);
        let found = device.class(&session.snapshot(), Class::Read).ios;
        assert_eq!(found, expected, "{name}");
    }
    let nowhere = Options { cgroup: Some(u64::MAX), ..all };
    assert!(StageSession::start(&nowhere).is_err());
}

#[test]
fn root_lengths_are_told_apart_only_where_that_is_wanted() {
    let Some(device) = Device::create("root_lengths_are_told_apart_only_where_that_is_wanted") else {
        return;
    };
    for detail in BOTH {
        for (any_size, sizes) in [(false, vec![12, 14]), (true, vec![0])] {
            let options = Options { any_size, ..device.options(detail) };
            let mut session = StageSession::start(&options).unwrap();
            load(&device, 100, 50, 0);
            let table = session.snapshot().table;
            let found: BTreeSet<u8> = table.cells().map(|(key, _)| key.size.0).collect();
            assert_eq!(found.into_iter().collect::<Vec<_>>(), sizes, "{detail:?}");
            let all = table.of_class(device.number, Class::All);
            assert!((140..=150).contains(&all.ios), "{detail:?}: {} of 150", all.ios);
            assert_eq!(all.stage(Stage::D2C).count(), all.ios, "{detail:?}");
        }
    }
}

#[test]
fn root_of_a_fast_queue_some_requests_stand_for_all() {
    let Some(device) = Device::create("root_of_a_fast_queue_some_requests_stand_for_all") else { return };
    lab(&["fail", &device.folder.to_string_lossy(), "reads"]);
    let options = Options { sampled: Some(100), ..device.options(Detail::Default) };
    let mut session = StageSession::start(&options).unwrap();
    // Slower devices need longer, but for some windows of 0.1 s the rate has to be above twice the hundred in any case.
    let begun = Instant::now();
    let mut reads = 0;
    while begun.elapsed() < Duration::from_secs(1) || reads < 10_000 {
        (0..100).for_each(|n| read(&device.node, 4096, (n * 7919 % 8192) * 4096).unwrap());
        reads += 100;
    }
    (0..7).for_each(|_| assert!(read(&device.node, 4096, 48 << 20).is_err()));
    let snapshot = session.snapshot();
    let cell = device.class(&snapshot, Class::Read);
    let (counted, estimated) = (cell.ios as f64, snapshot.estimated[&device.number] as f64);
    assert!(estimated > 0.5 * counted, "{estimated} of {counted}");
    // One of 2^n is drawn; 100 a second are at least some 100 in all, of which five standard deviations are half.
    assert!((counted / reads as f64 - 1.0).abs() < 0.5, "{counted} for {reads}");
    // The kernel may leave out a session for single events while another tracer comes or goes.
    assert!((4..=7).contains(&cell.errors), "{} of 7 errors", cell.errors);
    assert_eq!(cell.bytes, cell.ios * 4096);
    assert_eq!(cell.stage(Stage::G2C).count(), cell.ios);
    let timed = cell.stage(Stage::D2C).count() as f64;
    assert!(
        (timed / counted - 1.0).abs() < 0.5 && timed == cell.stage(Stage::G2DAll).count() as f64,
        "{timed}"
    );
}

#[test]
fn root_issues_watched_for_a_part_of_the_time_stand_for_the_rest() {
    let Some(device) = Device::create("root_issues_watched_for_a_part_of_the_time_stand_for_the_rest") else {
        return;
    };
    for keeps_times in ["1", "0"] {
        let _iostats = Setting::new(&device, "iostats", keeps_times);
        // Throttling of writes is another reason to keep them.
        let wbt = device.counters.with_file_name("queue/wbt_lat_usec");
        let _wbt = wbt.exists().then(|| Setting::new(&device, "wbt_lat_usec", "0"));
        watched_for_a_part(&device, keeps_times == "1");
    }
}

fn watched_for_a_part(device: &Device, keeps_times: bool) {
    let options = Options { sampled: Some(1 << 20), ..device.options(Detail::Default) };
    let mut session = StageSession::start(&options).unwrap();
    if session.snapshot().issue_stamp != IssueStamp::Program {
        _ = writeln!(io::stderr(), "not run: requests tell their issue themselves here");
        return;
    }
    let mut before = (0, 0, 0);
    for (each, are_watched, hooks, timed_each) in
        [(1, true, 2, 1), (10, false, 1, 0), (10, true, 2, 10), (1, true, 2, 1)]
    {
        session.watch_issues(each, are_watched).unwrap();
        assert_eq!(session.hooks(), hooks);
        let unwatched_ns = session.snapshot().issues_unwatched_ns;
        load(device, 50, 0, 0);
        let snapshot = session.snapshot();
        let cell = device.class(&snapshot, Class::Read);
        let now = (cell.ios, cell.stage(Stage::D2C).count(), cell.stage(Stage::G2DAll).count());
        let (ios, timed, queued) = (now.0 - before.0, now.1 - before.1, now.2 - before.2);
        let which = format!("{each} {are_watched}: {ios} {timed} {queued}");
        // The kernel may leave out a session for single events while another tracer comes or goes.
        assert!((48..=50).contains(&ios), "{which}");
        assert!(
            timed % timed_each.max(1) == 0 && (46 * timed_each..=50 * timed_each).contains(&timed),
            "{which}"
        );
        assert!(queued == timed || queued == 0 && !keeps_times, "{which}");
        assert!(cell.stage(Stage::D2C).max_ns() < 1_000_000_000, "{which}");
        assert_eq!(snapshot.issues_unwatched_ns > unwatched_ns, !are_watched, "{which}");
        before = now;
    }
}

#[test]
fn root_requests_that_outlast_the_watched_part_count_as_it() {
    let test = "root_requests_that_outlast_the_watched_part_count_as_it";
    let Some(below) = Device::with(test, &["fs=ext4", "size=128M"]) else { return };
    let mount = below.folder.join("mnt");
    let Some(device) = Device::with(test, &["fs=none", "size=16M", &format!("dir={}", mount.display())])
    else {
        return;
    };
    // One that is issued in the part stands for ten; of one from before, others do not know how many it stands for.
    for (each, count) in [(10, 10), (1, 0)] {
        let options = Options { sampled: Some(1 << 20), ..device.options(Detail::Default) };
        let mut session = StageSession::start(&options).unwrap();
        if session.snapshot().issue_stamp != IssueStamp::Program {
            _ = writeln!(io::stderr(), "not run: requests tell their issue themselves here");
            return;
        }
        session.watch_issues(each, true).unwrap();
        let frozen = Frozen::now(mount.clone());
        let in_flight = || fs::read_to_string(device.counters.with_file_name("inflight")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| load(&device, 0, 1, 0));
            let begun = Instant::now();
            while in_flight().split_whitespace().all(|count| count == "0") {
                assert!(begun.elapsed() < Duration::from_secs(20), "nothing was sent");
                std::thread::sleep(Duration::from_millis(5));
            }
            session.watch_issues(10, false).unwrap();
            std::thread::sleep(Duration::from_millis(50));
            drop(frozen);
        });
        load(&device, 0, 5, 0);
        let write = device.class(&session.snapshot(), Class::SyncWrite);
        let slow = write.stage(Stage::D2C);
        assert_eq!((write.ios, slow.count()), (6, count));
        assert!(slow.count() == 0 || slow.min_ns() > 25_000_000, "{slow:?}");
    }
}

/// Sets a value of the device's queue until dropped.
struct Setting {
    path: PathBuf,
    before: String,
}

impl Setting {
    fn new(device: &Device, name: &str, value: &str) -> Setting {
        let path = device.counters.with_file_name("queue").join(name);
        let before = fs::read_to_string(&path).unwrap();
        fs::write(&path, value).unwrap();
        Setting { path, before }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        fs::write(&self.path, &self.before).unwrap();
    }
}

#[test]
fn root_queues_that_keep_no_times_are_told_of() {
    let Some(device) = Device::create("root_queues_that_keep_no_times_are_told_of") else { return };
    let _without = Setting::new(&device, "iostats", "0");
    let mut session = StageSession::start(&device.options(Detail::Default)).unwrap();
    load(&device, 50, 0, 0);
    let snapshot = session.snapshot();
    let read = device.class(&snapshot, Class::Read);
    // Some kernels stamp requests for other reasons too.
    assert_eq!((read.ios, read.stage(Stage::G2C).count() + snapshot.losses.untimed), (50, 50));
    if snapshot.issue_stamp == IssueStamp::Program {
        assert_eq!(read.stage(Stage::D2C).count(), 50);
    }
}

/// The id of the root of cgroup v2, if it is mounted; `None` asks for everything, which is the same.
fn root_cgroup() -> Option<u64> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let place = mounts
        .lines()
        .find_map(|line| line.split_once(" cgroup2 ").and_then(|(before, _)| before.split_once(' ')))?
        .1;
    Some(fs::metadata(place).ok()?.ino())
}

#[test]
fn without_privilege_the_error_names_what_is_missing() {
    let report = probe::report();
    match StageSession::start(&Options::default()) {
        Ok(_) => assert!(report.lacking.is_empty() && report.attach.is_some(), "{report:?}"),
        Err(error) => {
            let text = error.to_string();
            assert!(report.lacking.iter().all(|capability| text.contains(capability)), "{text}: {report:?}");
        }
    }
}
