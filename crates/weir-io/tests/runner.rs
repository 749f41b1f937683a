//! The runner on real files and on the null engine: what was asked for is what was done and what was recorded.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use weir_core::result::record::{Class, JobRecord};
use weir_core::units::{Bytes, Nanos};
use weir_core::workload::Job;
use weir_core::workload::spec::{
    Access, Arrival, BlockSize, EngineKind, OpenSync, Rate, SyncMode, SyncPolicy, Target,
};
use weir_core::workload::stream::{JobStream, Layout};
use weir_io::place::Place;
use weir_io::runner::{JobPlan, Observer, RunOptions, Silent, Stop, Tick, run};

const BLOCKS: u64 = 64;

struct Fixture {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![3u8; 4096 * BLOCKS as usize]).unwrap();
    Fixture { _dir: dir, path }
}

fn job(engine: EngineKind, path: &Path) -> Job {
    let target = match engine {
        EngineKind::Null => Target::Null { size: Bytes(4096 * BLOCKS) },
        _ => Target::File { path: path.to_path_buf(), size: Bytes(0) },
    };
    Job {
        engine,
        target,
        block: BlockSize::Fixed(Bytes(4096)),
        read_percent: 50.0,
        operations: 1000,
        duration: Nanos(0),
        sync: SyncPolicy { every: 0, mode: SyncMode::Fdatasync, at_end: false },
        ..Job::default()
    }
}

fn plan(job: Job, path: &Path) -> JobPlan {
    plan_over(job, path, 4096 * BLOCKS)
}

fn plan_over(job: Job, path: &Path, bytes: u64) -> JobPlan {
    let layout = Layout { file_bytes: vec![bytes] };
    let source = Box::new(JobStream::new(&job, &layout).unwrap());
    let places = if job.engine == EngineKind::Null { Vec::new() } else { vec![Place::named(path).unwrap()] };
    JobPlan { job, source, places }
}

fn run_one(job: Job, path: &Path, observer: &mut dyn Observer) -> JobRecord {
    let options = RunOptions { tick_ns: 50_000_000, ..RunOptions::default() };
    run(vec![plan(job, path)], &options, observer, &Stop::default()).unwrap().remove(0)
}

fn count(record: &JobRecord, class: Class) -> u64 {
    record.classes.get(&class).map_or(0, |c| c.latency.count())
}

#[test]
fn every_engine_does_exactly_the_operations_asked_for() {
    let fixture = fixture();
    for (engine, depth, threads) in [
        (EngineKind::Psync, 1, 1),
        (EngineKind::Psync, 1, 4),
        (EngineKind::Libaio, 1, 1),
        (EngineKind::Libaio, 32, 3),
        (EngineKind::IoUring, 1, 1),
        (EngineKind::IoUring, 32, 3),
        (EngineKind::Mmap, 1, 2),
        (EngineKind::Null, 16, 2),
    ] {
        let record =
            run_one(Job { depth, threads, ..job(engine, &fixture.path) }, &fixture.path, &mut Silent);
        let what = format!("{} depth {depth}, {threads} threads", engine.name());
        assert_eq!(record.error, None, "{what}");
        assert_eq!(count(&record, Class::Read) + count(&record, Class::Write), 1000, "{what}");
        assert_eq!(count(&record, Class::Read), 500, "{what}");
        let bytes: u64 = record.classes.values().map(|c| c.bytes).sum();
        assert_eq!(bytes, 1000 * 4096, "{what}");
        assert!(record.engine.in_flight_max <= depth, "{what}");
        let in_intervals: u64 =
            record.intervals.iter().flat_map(|i| i.classes.values()).map(|c| c.count).sum();
        assert_eq!(in_intervals, 1000, "{what}: intervals add up");
        assert_eq!(record.threads.iter().map(|t| t.operations).sum::<u64>(), 1000, "{what}");
    }
}

#[test]
fn a_commit_is_the_write_and_the_sync_that_makes_it_durable() {
    let fixture = fixture();
    for (engine, mode, depth) in [
        (EngineKind::Psync, SyncMode::Fsync, 1),
        (EngineKind::IoUring, SyncMode::Fdatasync, 4),
        (EngineKind::Libaio, SyncMode::Fdatasync, 4),
        (EngineKind::Mmap, SyncMode::Fsync, 1),
    ] {
        let sync = SyncPolicy { every: 2, mode, at_end: true };
        let spec = Job { sync, depth, read_percent: 0.0, operations: 40, ..job(engine, &fixture.path) };
        let record = run_one(spec, &fixture.path, &mut Silent);
        let what = engine.name();
        assert_eq!(record.error, None, "{what}");
        let counts = [Class::Write, Class::Sync, Class::Commit].map(|class| count(&record, class));
        assert_eq!(counts, [40, 20, 20], "{what}");
        let final_sync = record.final_sync.unwrap();
        assert_eq!((final_sync.files, final_sync.error), (1, None), "{what}");
        let (commit, sync) = (&record.classes[&Class::Commit].latency, &record.classes[&Class::Sync].latency);
        assert!(commit.sum() >= sync.sum(), "{what}: a commit holds its sync");
    }
}

#[test]
fn durable_writes_are_commits_without_a_sync() {
    let fixture = fixture();
    let rwf = SyncPolicy { every: 1, mode: SyncMode::RwfDsync, at_end: false };
    let base = Job { read_percent: 0.0, operations: 20, ..job(EngineKind::Psync, &fixture.path) };
    for spec in [Job { sync: rwf, ..base.clone() }, Job { open_sync: OpenSync::Dsync, ..base }] {
        let record = run_one(spec, &fixture.path, &mut Silent);
        let counts = [Class::Write, Class::Sync, Class::Commit].map(|class| count(&record, class));
        assert_eq!(counts, [20, 0, 20]);
    }
}

#[test]
fn latency_and_operations_in_flight_agree_by_littles_law() {
    let fixture = fixture();
    let spec = Job {
        depth: 128,
        read_percent: 100.0,
        operations: 50_000,
        ..job(EngineKind::IoUring, &fixture.path)
    };
    let record = run_one(spec, &fixture.path, &mut Silent);
    let by_latency = record.classes[&Class::Read].latency.sum() as f64 / record.elapsed_ns as f64;
    let ratio = by_latency / record.engine.in_flight_mean;
    assert!((0.95..1.05).contains(&ratio), "{by_latency} against {}", record.engine.in_flight_mean);
}

#[test]
fn warm_up_is_run_but_not_counted() {
    let fixture = fixture();
    let spec = Job {
        operations: 0,
        duration: Nanos::from_millis(200),
        warmup: Nanos::from_millis(200),
        ..job(EngineKind::Psync, &fixture.path)
    };
    let record = run_one(spec.clone(), &fixture.path, &mut Silent);
    let done: u64 = record.threads.iter().map(|t| t.operations).sum();
    let counted: u64 = record.classes.values().map(|c| c.latency.count()).sum();
    assert!(counted > 0 && counted < done, "{counted} of {done}");
    assert!(record.elapsed_ns < 390_000_000, "{}", record.elapsed_ns);
    let rate = Some(Rate { iops: 2000.0, arrival: Arrival::Constant });
    let lateness = run_one(Job { rate, ..spec }, &fixture.path, &mut Silent).lateness.unwrap();
    let starts = lateness.start_delay.as_ref().unwrap();
    // As many as in the warm-up; a few may start between the readings of two counters.
    assert!(starts.count() < lateness.intended + 100, "{} of {}", starts.count(), lateness.intended);
    assert_eq!(starts.max(), Some(lateness.start_delay_max_ns));
}

#[test]
fn an_open_loop_counts_what_it_intended() {
    let fixture = fixture();
    let rate = Some(Rate { iops: 2000.0, arrival: Arrival::Constant });
    let spec = Job {
        rate,
        operations: 0,
        duration: Nanos::from_millis(500),
        ..job(EngineKind::Psync, &fixture.path)
    };
    let record = run_one(spec, &fixture.path, &mut Silent);
    let lateness = record.lateness.clone().unwrap();
    assert_eq!(lateness.intended, 1000, "{lateness:?}");
    let done: u64 = record.classes.values().map(|c| c.latency.count()).sum();
    assert_eq!(done + lateness.not_started, 1000, "{lateness:?}");
}

#[test]
fn an_open_loop_that_ends_before_its_time_takes_what_passed() {
    let fixture = fixture();
    let of = |iops, operations, duration| Job {
        rate: Some(Rate { iops, arrival: Arrival::Constant }),
        operations,
        duration,
        ..job(EngineKind::Psync, &fixture.path)
    };
    let limited = run_one(of(1000.0, 100, Nanos::from_secs(60)), &fixture.path, &mut Silent);
    assert_eq!(limited.lateness.as_ref().unwrap().intended, 100);
    assert!((99_000_000..30_000_000_000).contains(&limited.elapsed_ns), "{}", limited.elapsed_ns);
    // The last one is due at 200 ms: the rest of the time asked for passed as well.
    let idle_at_end = run_one(of(5.0, 0, Nanos::from_millis(300)), &fixture.path, &mut Silent);
    assert_eq!(idle_at_end.lateness.as_ref().unwrap().intended, 2);
    assert!(idle_at_end.elapsed_ns >= 300_000_000, "{}", idle_at_end.elapsed_ns);
    let path = fixture.path.clone();
    let mut meddler = Meddler(Some(move || {
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
    }));
    let reads = Job { read_percent: 100.0, ..of(1000.0, 0, Nanos::from_secs(60)) };
    let failed = run_one(reads, &fixture.path, &mut meddler);
    assert!(failed.error.is_some() && failed.elapsed_ns < 30_000_000_000, "{}", failed.elapsed_ns);
}

/// Does something to the file at the first tick.
struct Meddler<F: FnMut()>(Option<F>);

impl<F: FnMut()> Observer for Meddler<F> {
    fn tick(&mut self, _tick: &Tick<'_>) {
        if let Some(mut act) = self.0.take() {
            act();
        }
    }
}

#[test]
fn a_file_that_shrinks_under_the_run_is_an_error_that_keeps_what_was_measured() {
    for engine in [EngineKind::Psync, EngineKind::Libaio, EngineKind::IoUring, EngineKind::Mmap] {
        let fixture = fixture();
        let path = fixture.path.clone();
        let mut meddler = Meddler(Some(move || {
            std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
        }));
        let spec = Job {
            read_percent: 100.0,
            operations: 0,
            duration: Nanos::from_secs(20),
            ..job(engine, &fixture.path)
        };
        let record = run_one(spec, &fixture.path, &mut meddler);
        let error = record.error.clone().unwrap_or_else(|| panic!("{} did not notice", engine.name()));
        assert!(
            error.starts_with("read of ") && error.contains("data at offset"),
            "{}: {error}",
            engine.name()
        );
        assert!(count(&record, Class::Read) > 0, "{}", engine.name());
        assert_eq!(record.classes[&Class::Read].errors, 1, "{}", engine.name());
        assert!(record.elapsed_ns < 10_000_000_000, "{}: the job ended early", engine.name());
    }
}

#[test]
fn verification_finds_blocks_that_were_meddled_with() {
    let fixture = fixture();
    let spec =
        Job { verify: true, read_percent: 30.0, operations: 4000, ..job(EngineKind::Psync, &fixture.path) };
    let clean = run_one(spec.clone(), &fixture.path, &mut Silent).verify.unwrap();
    assert!(clean.checked >= 1000, "{clean:?}");
    assert_eq!((clean.stale, clean.torn, clean.misplaced), (0, 0, 0), "{clean:?}");

    let path = fixture.path.clone();
    let swap_neighbours = move || {
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        for pair in 0..BLOCKS / 2 {
            let mut blocks = vec![0; 8192];
            file.read_exact_at(&mut blocks, pair * 8192).unwrap();
            blocks.rotate_left(4096);
            file.write_all_at(&blocks, pair * 8192).unwrap();
        }
    };
    let slow = Some(Rate { iops: 2000.0, arrival: Arrival::Constant });
    let spec = Job { rate: slow, operations: 600, ..spec };
    let found = run_one(spec, &fixture.path, &mut Meddler(Some(swap_neighbours))).verify.unwrap();
    assert!(found.misplaced > 0, "{found:?}");
    assert!(found.examples.iter().any(|e| e.contains("misplaced")), "{found:?}");
}

#[test]
fn a_stop_request_ends_the_run_and_keeps_it() {
    let fixture = fixture();
    let stop = Stop::default();
    let asked = stop.clone();
    let mut meddler = Meddler(Some(move || asked.request(2)));
    let spec =
        Job { operations: 0, duration: Nanos::from_secs(60), ..job(EngineKind::IoUring, &fixture.path) };
    let options = RunOptions { tick_ns: 20_000_000, ..RunOptions::default() };
    let records = run(vec![plan(spec, &fixture.path)], &options, &mut meddler, &stop).unwrap();
    assert!(records[0].elapsed_ns < 30_000_000_000);
    assert!(count(&records[0], Class::Read) > 0);
}

#[test]
fn jobs_run_side_by_side_or_in_sequence() {
    let fixture = fixture();
    let first = job(EngineKind::Psync, &fixture.path);
    let second = Job { name: "then".to_string(), after_previous: true, ..first.clone() };
    let plans = [&first, &first, &second].map(|job| plan(job.clone(), &fixture.path));
    let records = run(plans.into(), &RunOptions::default(), &mut Silent, &Stop::default()).unwrap();
    let names: Vec<_> = records.iter().map(|r| r.job.name.as_str()).collect();
    assert_eq!(names, ["job", "job", "then"]);
}

#[test]
fn time_submitting_is_measured_where_it_is_asked_for_and_is_a_call_of_its_own() {
    let fixture = fixture();
    for (engine, asked, timed) in [
        (EngineKind::Libaio, true, true),
        (EngineKind::IoUring, true, true),
        (EngineKind::Libaio, false, false),
        (EngineKind::Psync, true, false),
    ] {
        let spec = Job { depth: 8, threads: 2, ..job(engine, &fixture.path) };
        let spec = if engine == EngineKind::Psync { Job { depth: 1, ..spec } } else { spec };
        let options = RunOptions { time_submits: asked, ..RunOptions::default() };
        let plans = vec![plan(spec, &fixture.path)];
        let record = run(plans, &options, &mut Silent, &Stop::default()).unwrap().remove(0);
        let submits = record.engine.submits.map(|submits| submits.count());
        // Each operation is handed over once, whatever the number of calls.
        assert_eq!(submits, timed.then_some(1000), "{} asked: {asked}", engine.name());
        assert_eq!(record.error, None);
    }
}

/// statfs(2)'s number of the file system under a file.
fn magic_of(path: &Path) -> u32 {
    let file = std::fs::File::open(path).unwrap();
    // SAFETY: statfs is plain numbers, for which zero is a valid value.
    let mut answer: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `answer` is valid for the call to fill.
    assert_eq!(unsafe { libc::fstatfs(std::os::fd::AsRawFd::as_raw_fd(&file), &mut answer) }, 0);
    answer.f_type as u32
}

#[test]
fn buffered_reads_come_from_the_storage_unless_the_cache_is_kept() {
    const BYTES: u64 = 16 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![3u8; BYTES as usize]).unwrap();
    // On tmpfs nothing can be dropped, and others do not count reads byte for byte.
    let kind = magic_of(&path);
    if ![0xef53, 0x5846_5342, 0x794c_7630].contains(&kind) {
        eprintln!("skipped: {} is not on ext4, XFS or overlay ({kind:#x})", path.display());
        return;
    }
    let keys = |spec: Job| {
        let plan = plan_over(spec, &path, BYTES);
        let record =
            run(vec![plan], &RunOptions::default(), &mut Silent, &Stop::default()).unwrap().remove(0);
        record.notes.into_iter().map(|note| note.key).collect::<Vec<_>>()
    };
    for engine in [EngineKind::Psync, EngineKind::IoUring, EngineKind::Mmap] {
        let once = Job {
            access: Access::Sequential,
            read_percent: 100.0,
            block: BlockSize::Fixed(Bytes(1 << 20)),
            operations: 16,
            ..job(engine, &path)
        };
        // What was just written, and what the first pass has read, is in memory.
        assert_eq!(keys(Job { invalidate: true, ..once.clone() }), [""; 0], "{engine}: dropped");
        assert_eq!(keys(once), ["served-from-cache"], "{engine}: kept");
    }
}

#[test]
fn reads_of_what_was_never_written_are_no_reads_of_the_device() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let bytes = 4096 * BLOCKS;
    let allocate = |path: &Path| {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        weir_io::files::allocate(&Place::of(file, path), bytes).unwrap();
    };
    let extend = |path: &Path| std::fs::File::create(path).unwrap().set_len(bytes).unwrap();
    let write = |path: &Path| std::fs::write(path, vec![3u8; bytes as usize]).unwrap();
    let half = |path: &Path| std::fs::write(path, vec![3u8; bytes as usize / 2]).unwrap();
    type Make<'a> = &'a dyn Fn(&Path);
    let cases: [(&str, &[Make<'_>], Option<&str>); 4] = [
        ("written", &[&write], None),
        ("set_len", &[&extend], Some("100 % of the 256 KiB")),
        ("fallocate", &[&extend, &allocate], Some("100 % of the 256 KiB")),
        ("half", &[&half, &allocate], Some("50 % of the 256 KiB")),
    ];
    for (what, steps, share) in cases {
        steps.iter().for_each(|step| step(&path));
        let note = |read_percent, invalidate| {
            let spec = Job { read_percent, invalidate, operations: 1, ..job(EngineKind::Psync, &path) };
            let notes = run_one(spec, &path, &mut Silent).notes;
            notes.into_iter().find(|note| note.key == "unwritten-extents").map(|note| note.text)
        };
        let text = note(100.0, true);
        assert_eq!(text.is_some(), share.is_some(), "{what}: {text:?}");
        assert!(text.is_none_or(|text| text.starts_with(share.unwrap())), "{what}");
        assert_eq!(note(0.0, true), None, "{what}: only reads meet a hole");
        assert_eq!(note(100.0, false), None, "{what}: finding holes would write what is dirty");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn verified_writes_to_fewer_blocks_than_the_depth_go_on() {
    const FILE_BLOCKS: u64 = 8;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    std::fs::write(&path, vec![3u8; 4096 * FILE_BLOCKS as usize]).unwrap();
    let rate = Some(Rate { iops: 1e5, arrival: Arrival::Constant });
    for (engine, depth, threads, rate) in [
        (EngineKind::IoUring, 32, 1, None),
        (EngineKind::Libaio, 32, 2, None),
        (EngineKind::Psync, 1, 16, None),
        (EngineKind::IoUring, 32, 1, rate),
    ] {
        let spec = Job {
            depth,
            threads,
            rate,
            read_percent: 0.0,
            verify: true,
            operations: 0,
            duration: Nanos::from_millis(200),
            ..job(engine, &path)
        };
        let plan = plan_over(spec, &path, 4096 * FILE_BLOCKS);
        let record =
            run(vec![plan], &RunOptions::default(), &mut Silent, &Stop::default()).unwrap().remove(0);
        let verify = record.verify.as_ref().unwrap();
        assert!(count(&record, Class::Write) > 0, "{engine}");
        assert!(verify.skipped > 0 || depth == 1, "{engine}: no write met another one of its block");
        assert_eq!((verify.stale, verify.torn, record.error.as_ref()), (0, 0, None), "{engine}");
    }
}

/// Storage that deduplicates would keep one of two equal sectors.
#[test]
fn jobs_and_runs_write_data_of_their_own() {
    let mut seen = std::collections::HashSet::new();
    for run in 0..2 {
        let fixture = fixture();
        let spec = Job {
            access: Access::Sequential,
            read_percent: 0.0,
            operations: BLOCKS,
            ..job(EngineKind::Psync, &fixture.path)
        };
        run_one(spec, &fixture.path, &mut Silent);
        for sector in std::fs::read(&fixture.path).unwrap().chunks(512) {
            assert!(seen.insert(sector.to_vec()), "run {run} repeats a sector");
        }
    }
}
