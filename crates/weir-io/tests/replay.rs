//! A recording played on a file: every I/O of it, at its time or said to be late, whatever the engine.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use weir_core::result::record::{Class, JobRecord};
use weir_core::units::{Bytes, Nanos};
use weir_core::workload::Job;
use weir_core::workload::replay::{Ground, Plan, Recorded, Rules};
use weir_core::workload::spec::{EngineKind, Replay, Target};
use weir_io::files::block_bytes;
use weir_io::place::Place;
use weir_io::runner::{JobPlan, RunOptions, Silent, Stop, run};

const FILE_BYTES: u64 = 1 << 20;

fn io(at_ns: u64, offset: u64, bytes: u32, is_write: bool) -> Recorded {
    Recorded { at_ns, offset, bytes, is_write, ..Recorded::default() }
}

fn played(path: &Path, how: Job, depth: u32, ios: Vec<Recorded>) -> JobRecord {
    std::fs::write(path, vec![3u8; FILE_BYTES as usize]).unwrap();
    let place = Place::named(path).unwrap();
    let block = block_bytes(&place, false).unwrap();
    let rules = Rules { speed: 1.0, space: None, gap_ns_max: 1_000_000_000 };
    let plan = Plan::new(ios, &rules, &Ground { bytes: FILE_BYTES, base: 0, block }).unwrap();
    let target = Target::File { path: path.to_path_buf(), size: Bytes(0) };
    let job = plan.job(Job { target, duration: Nanos(0), ..how }, Replay::default(), Some(depth), 1);
    let plans = vec![JobPlan { job, source: Box::new(plan.source()), places: vec![place] }];
    run(plans, &RunOptions::default(), &mut Silent, &Stop::default()).unwrap().remove(0)
}

#[test]
fn every_io_is_done_and_its_start_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mut ios: Vec<Recorded> =
        (0..400).map(|i| io(i * 50_000, i * 4096 % FILE_BYTES, 4096, i % 2 == 0)).collect();
    ios.push(Recorded { is_durable: true, ..io(20_000_000, 8192, 8192, true) });
    ios.push(io(20_000_001, 0, 0, true));
    for (engine, depth) in [(EngineKind::IoUring, 8), (EngineKind::Libaio, 8), (EngineKind::IoUring, 1)] {
        let how = Job { engine, ..Job::default() };
        let record = played(&folder.path().join("data"), how, depth, ios.clone());
        let count = |class: Class| record.classes.get(&class).map_or(0, |c| c.latency.count());
        let what = format!("{} depth {depth}: {:?}", engine.name(), record.error);
        assert_eq!(record.error, None, "{what}");
        let counts = [Class::Read, Class::Write, Class::Sync, Class::Commit].map(count);
        assert_eq!(counts, [200, 201, 1, 1], "{what}");
        assert_eq!(record.classes[&Class::Write].bytes, 200 * 4096 + 8192, "{what}");
        let lateness = record.lateness.unwrap();
        assert_eq!((lateness.intended, lateness.not_started), (402, 0), "{what}");
        let delays = lateness.start_delay.unwrap();
        assert_eq!((delays.count(), delays.max()), (402, Some(lateness.start_delay_max_ns)), "{what}");
        assert!(record.elapsed_ns >= 20_000_001, "{what}: the last one's time is the earliest end");
    }
}

#[test]
fn a_burst_in_the_warm_up_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut ios = vec![io(0, 0, 4096, false); 8];
    ios.extend([1_500_000_000, 1_600_000_000].map(|at_ns| io(at_ns, 0, 4096, false)));
    let how = Job { engine: EngineKind::Null, warmup: Nanos::from_millis(100), ..Job::default() };
    let record = played(&folder.path().join("data"), how, 8, ios);
    assert_eq!(record.error, None);
    assert!(record.engine.in_flight_max <= 2, "{}", record.engine.in_flight_max);
    assert_eq!(record.lateness.unwrap().start_delay.unwrap().count(), 2);
}

#[test]
fn a_replay_that_is_cut_short_says_what_did_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let how = Job { engine: EngineKind::IoUring, ..Job::default() };
    let ios = vec![io(0, 0, 4096, false), io(10_000_000, 0, 4096, false), io(1_000_000_000, 0, 4096, false)];
    let path = folder.path().join("data");
    std::fs::write(&path, vec![3u8; FILE_BYTES as usize]).unwrap();
    let place = Place::named(&path).unwrap();
    let rules = Rules { speed: 1.0, space: None, gap_ns_max: u64::MAX };
    let plan = Plan::new(ios, &rules, &Ground { bytes: FILE_BYTES, base: 0, block: 512 }).unwrap();
    let target = Target::File { path, size: Bytes(0) };
    let how = Job { target, duration: Nanos::from_millis(50), ..how };
    let job = plan.job(how, Replay::default(), None, 1);
    let plans = vec![JobPlan { job, source: Box::new(plan.source()), places: vec![place] }];
    let record = run(plans, &RunOptions::default(), &mut Silent, &Stop::default()).unwrap().remove(0);
    // The one after the end was not due: neither played nor late.
    assert_eq!(record.lateness.as_ref().unwrap().intended, 2);
    assert_eq!(record.classes[&Class::Read].latency.count(), 2);
}
