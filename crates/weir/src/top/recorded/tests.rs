//! Archives of made-up intervals, as the screen asks for them.

use std::fs;
use std::path::Path;

use weir_archive::journal::{MAGIC, frame};
use weir_archive::segment::Name;
use weir_archive::tables::{Behind, Counter, Process, Sync, Wait};
use weir_blocktrace::Class;

use super::*;

const BEGIN_MS: i64 = 1_764_040_200_000;
const SPAN_MS: i64 = 10_000;

/// The interval of a database that commits; from the second on behind a `dd`.
fn interval(n: i64) -> Vec<Batch> {
    let ts_ms = BEGIN_MS + n * SPAN_MS;
    let (comm, unit) = ("mariadbd".to_string(), "mariadb.service".to_string());
    let counter = |device: &str, name: &str, value| Counter {
        ts_ms,
        span_ms: SPAN_MS,
        device: device.into(),
        name: name.into(),
        value,
    };
    let stage = |class: &str, stage: &str, bucket_low_ns| Stage {
        ts_ms,
        span_ms: SPAN_MS,
        device: "no-such-disk".into(),
        class: class.into(),
        stage: stage.into(),
        bucket_low_ns,
        count: 100,
    };
    let wait = |part: &str, cause: &str, ns| Wait {
        ts_ms,
        span_ms: SPAN_MS,
        comm: comm.clone(),
        unit: unit.clone(),
        cgroup: String::new(),
        part: part.into(),
        cause: cause.into(),
        ns,
    };
    let sync = Sync {
        ts_ms,
        span_ms: SPAN_MS,
        comm: comm.clone(),
        unit: unit.clone(),
        cgroup: String::new(),
        bucket_low_ns: 1 << 20,
        count: 50,
    };
    let behind = Behind {
        ts_ms,
        span_ms: SPAN_MS,
        comm: comm.clone(),
        unit: unit.clone(),
        culprit: "dd".into(),
        way: "writeback".into(),
        ns: 3_000_000_000,
        ..Behind::default()
    };
    let dd = Process {
        ts_ms,
        span_ms: SPAN_MS,
        comm: "dd".into(),
        written_bytes: 1_000_000_000,
        ..Process::default()
    };
    let slow = Event {
        ts_ms: ts_ms + 1_000,
        kind: "slow_sync".into(),
        device: "no-such-disk".into(),
        comm: comm.clone(),
        unit: unit.clone(),
        pid: 812,
        took_ns: 200_000_000,
        detail: r#"{"call":"fdatasync","tid":813,"phases":[{"phase":"journal","share":1.0,"causes":[["others",1.0]]}],
            "culprits":[{"process":{"pid":4711,"comm":"dd"},"way":"writeback","share":1.0,"bytes":4096,"ios":1}]}"#
            .into(),
    };
    vec![
        Counter::batch(&[
            counter("no-such-disk", "writes", 200),
            counter("no-such-disk", "write_bytes", 819_200),
            counter("no-such-disk", "busy_ms", 5_000),
            counter("", "pressure_io_some_us", 2_500_000),
            counter("", "dirty_bytes", 4096),
        ]),
        Stage::batch(&[
            stage("write", "g2c", 2_000),
            stage("write", "d2c", 1_000),
            stage("sync_write", "g2c", 2_000),
        ]),
        Sync::batch(&[sync]),
        Wait::batch(&[wait("journal", "others", 3_000_000_000), wait("cpu", "", 1_000_000_000)]),
        Behind::batch(&[behind]),
        Process::batch(&[dd]),
        Event::batch(&[slow]),
    ]
}

fn recorded(folder: &Path, intervals: impl Iterator<Item = i64>) -> Recorded {
    let archive = Archive::to_write(folder).unwrap();
    let mut journal = MAGIC.to_vec();
    intervals.for_each(|n| journal.extend(frame(&interval(n)).unwrap()));
    fs::write(folder.join(Name::Journal { begin_s: BEGIN_MS / 1000 }.to_string()), journal).unwrap();
    Recorded::new(archive, Vec::new(), Nanos(10_000_000))
}

fn numbers(samples: &[Sample]) -> Vec<i64> {
    samples.iter().map(|sample| (sample.begin_ms() - BEGIN_MS) / SPAN_MS).collect()
}

#[test]
fn intervals_are_fetched_on_both_sides_of_a_time_over_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorded = recorded(&folder.path().join("archive"), (0..100).chain(5_000..5_010));
    let at = |n: i64| BEGIN_MS + n * SPAN_MS;
    for (wish, expected) in [
        (Wish::Before(at(100)), 40..100),
        (Wish::Before(at(3)), 0..3),
        (Wish::Before(at(0)), 0..0),
        (Wish::Before(at(5_000)), 40..100),
        (Wish::After(at(0)), 0..60),
        (Wish::After(at(3) + 1), 3..63),
        (Wish::After(at(100)), 5_000..5_010),
        (Wish::After(at(5_010)), 0..0),
    ] {
        assert_eq!(numbers(&recorded.fetch(wish)), expected.collect::<Vec<_>>(), "{wish:?}");
    }
}

#[test]
fn a_slow_sync_that_began_before_what_is_fetched_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    let mut recorded = recorded(&archive, 0..100);
    let slow = Event {
        ts_ms: BEGIN_MS + 40 * SPAN_MS - 1_000,
        kind: "slow_sync".into(),
        comm: "postgres".into(),
        took_ns: 2_000_000_000,
        ..Event::default()
    };
    let journal = archive.join(Name::Journal { begin_s: BEGIN_MS / 1000 }.to_string());
    let lines = [fs::read(&journal).unwrap(), frame(&[Event::batch(&[slow])]).unwrap()].concat();
    fs::write(journal, lines).unwrap();
    let samples = recorded.fetch(Wish::Before(BEGIN_MS + 100 * SPAN_MS));
    assert_eq!(numbers(&samples), (40..100).collect::<Vec<_>>());
    let processes: Vec<&str> = samples[0].slow.iter().map(|slow| slow.process.comm.as_str()).collect();
    assert_eq!(processes, ["postgres", "mariadbd"]);
}

#[test]
fn an_interval_is_shown_as_one_that_was_watched() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorded = recorded(&folder.path().join("archive"), 0..1);
    let [sample] = &recorded.fetch(Wish::After(0))[..] else { panic!("one") };
    assert!(sample.is_recorded);
    let [device] = &sample.frame.devices[..] else { panic!("{:?}", sample.frame.devices) };
    assert_eq!((device.iops(), device.load.util_percent), (20.0, 50.0));
    let classes: Vec<_> = device.rows.iter().map(|row| (row.class, row.iops, row.bytes_per_second)).collect();
    assert_eq!(
        classes,
        [(Class::All, 10.0, 81_920.0), (Class::Write, 10.0, 81_920.0), (Class::SyncWrite, 10.0, 0.0)]
    );
    assert_eq!(device.row(Class::Write).unwrap().total.unwrap().p99_ns, Some(2_000));
    assert_eq!((sample.pressure["io"].some_percent, sample.frame.memory.dirty_bytes), (25.0, 4096));
    let names: Vec<&str> = sample.processes.iter().map(|process| process.name.as_str()).collect();
    assert_eq!(names, ["dd", "mariadbd"]);
    assert_eq!(sample.processes[0].written, Some(1e8));
    let syncs = sample.processes[1].syncs.as_ref().unwrap();
    assert_eq!((syncs.syncs, syncs.wall_ns, syncs.latency.p99_ns), (50, 4_000_000_000, 1 << 20));
    assert_eq!((syncs.phases[0].share, syncs.culprits[0].share), (0.75, 0.75));
    assert_eq!(sample.syncs.as_ref().unwrap().per_second, 5.0);
    let [slow] = &sample.slow[..] else { panic!("{:?}", sample.slow) };
    assert_eq!((slow.tid, slow.call, slow.culprits[0].process.comm.as_str()), (813, Call::Fdatasync, "dd"));
    // Devices that were named, and syncs as long as was wished.
    recorded.devices = vec!["sdq".to_string()];
    recorded.slow_ns = 1_000_000_000;
    let sample = recorded.fetch(Wish::After(0)).remove(0);
    assert!(sample.frame.devices.is_empty() && sample.slow.is_empty());
}

#[test]
fn what_others_wrote_into_an_archive_breaks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorded = recorded(&folder.path().join("archive"), 0..0);
    let event = Event {
        kind: "slow_sync".into(),
        took_ns: i64::MAX,
        pid: -1,
        detail: "[".into(),
        device: "../x".into(),
        ..Event::default()
    };
    let counter = Counter {
        device: "..".into(),
        name: "reads".into(),
        value: i64::MIN,
        ts_ms: i64::MAX,
        span_ms: i64::MIN,
    };
    let mut series = Series::default();
    let wanted = Wanted { since_ms: i64::MIN, until_ms: i64::MAX, device: None, unit: None };
    series.take(&Event::batch(&[event]), &wanted);
    series.take(
        &Counter::batch(&[
            Counter { ts_ms: i64::MAX - 1, ..counter.clone() },
            Counter { ts_ms: i64::MIN, ..counter },
        ]),
        &wanted,
    );
    assert_eq!(recorded.samples(&series, &Stages::new()).len(), 2);
}
