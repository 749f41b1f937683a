//! Sessions against the truth: what this process did to a loop device of its own, and what the kernel counted of it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use weir_core::target::DeviceNumber;
use weir_core::trace::{Cell, Class, Moment, Stage};
use weir_trace::live::{Detail, Options, Session, Snapshot};
use weir_trace::probe;

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
        let report = probe::report();
        if report.attach.is_none() || !Path::new("/dev/loop-control").exists() {
            let lacking = report.refusal.unwrap_or_else(|| "loop devices".into());
            let _ = writeln!(io::stderr(), "not run: {test} lacks BPF programs and loop devices: {lacking}");
            return None;
        }
        let folder = lab(&["create", "fs=none", "size=64M", &format!("owner={}", std::process::id())]);
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

fn lab(arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/loop-device");
    let output = Command::new(script).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
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
        let mut session = Session::start(&device.options(detail)).unwrap();
        let before = device.counted();
        let elapsed_ns = load(&device, 3000, 500, 20);
        let after = device.counted();
        let snapshot = session.snapshot();
        let [reads, sectors_read, writes, sectors_written, flushes] =
            std::array::from_fn(|at| after[at] - before[at]);
        let [read, write, flush] =
            [Class::Read, Class::SyncWrite, Class::Flush].map(|class| device.class(&snapshot, class));

        assert!(snapshot.losses.is_none(), "{detail:?}: {:?}", snapshot.losses);
        assert_eq!((read.ios, read.bytes), (3000, 3000 * 4096), "{detail:?}");
        assert_eq!((read.ios, read.bytes), (reads, sectors_read * 512), "{detail:?}");
        assert_eq!((write.ios, write.bytes), (500, 500 * 16384), "{detail:?}");
        assert_eq!(write.bytes, sectors_written * 512, "{detail:?}");
        assert!(writes == write.ios || writes == write.ios + flush.ios, "{detail:?}: {writes}");
        assert_eq!((flush.ios, flush.bytes, flushes), (20, 0, 20), "{detail:?}");
        let total = if detail == Detail::Full { Stage::Q2C } else { Stage::G2C };
        let mut sum_ns = 0;
        for (cell, class) in [(&read, "read"), (&write, "write"), (&flush, "flush")] {
            for stage in [Stage::D2C, total] {
                assert_eq!(cell.stage(stage).count(), cell.ios, "{detail:?} {class} {}", stage.name());
            }
            assert!(cell.stage(Stage::D2C).sum_ns() <= cell.stage(total).sum_ns(), "{detail:?} {class}");
            assert_eq!(cell.errors, 0);
            sum_ns += cell.stage(total).sum_ns();
        }
        assert!(
            sum_ns > 0 && sum_ns <= elapsed_ns,
            "{detail:?}: {sum_ns} ns in {elapsed_ns} ns, one at a time"
        );
    }
}

#[test]
fn root_pieces_of_a_split_keep_their_queue_time_and_all_bytes() {
    let Some(device) = Device::create("root_pieces_of_a_split_keep_their_queue_time_and_all_bytes") else {
        return;
    };
    let mut session = Session::start(&device.options(Detail::Full)).unwrap();
    let before = device.counted();
    (0..4).for_each(|n| read(&device.node, 8 << 20, n * (8 << 20)).unwrap());
    let requests = device.counted()[0] - before[0];
    let snapshot = session.snapshot();
    let read = device.class(&snapshot, Class::Read);
    assert!(snapshot.losses.is_none(), "{:?}", snapshot.losses);
    assert_eq!(read.bytes, 4 * (8 << 20));
    assert!(requests >= 8, "{requests}: nothing was split");
    let merged = read.stage(Stage::Q2M).count();
    assert_eq!((read.ios, read.stage(Stage::Q2C).count()), (requests + merged, requests + merged));
    assert_eq!(read.stage(Stage::Q2G).count() + merged, read.ios);
}

#[test]
fn root_slow_requests_tell_all_and_errors_are_counted() {
    let Some(device) = Device::create("root_slow_requests_tell_all_and_errors_are_counted") else { return };
    lab(&["fail", &device.folder.to_string_lossy(), "reads"]);
    for detail in BOTH {
        let mut session = Session::start(&Options { slow_ns: Some(1), ..device.options(detail) }).unwrap();
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
        let mut session = Session::start(&options).unwrap();
        load(&device, 100, 0, 0);
        let found = device.class(&session.snapshot(), Class::Read).ios;
        assert_eq!(found, expected, "{name}");
    }
    let nowhere = Options { cgroup: Some(u64::MAX), ..all };
    assert!(Session::start(&nowhere).is_err());
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
    match Session::start(&Options::default()) {
        Ok(_) => assert!(report.lacking.is_empty() && report.attach.is_some(), "{report:?}"),
        Err(error) => {
            let text = error.to_string();
            assert!(report.lacking.iter().all(|capability| text.contains(capability)), "{text}: {report:?}");
        }
    }
}
