//! Records made up for tests: a device with given rates and latencies, examined as the doctor would.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::new_without_default, reason = "made for tests")]

use std::collections::BTreeMap;

use serde_json::json;

use super::doctor::{FloodPhase, FloodSample, PhaseKind};
use super::from_record;
use super::notes::{Bar, DoctorNotes, FloodNotes, Others, StepKind, StepNote, SyncPath};
use super::sustained::course::Done;
use super::sustained::made::{Device, Made};
use super::sustained::{Part, Pressure, Stretch};
use weir_blocktrace::{Cell, ClassSet, Flags, Key, SizeClass, Stage, StageTable};
use weir_core::result::Record;
use weir_core::result::record::{
    Class, ClassRecord, CpuRecord, EngineRecord, Interval, IntervalClass, JobRecord, SCHEMA,
};
use weir_core::stats::Histogram;
use weir_core::target::{Conditions, FileSystem, Layer, LayerKind, Queue, TargetFacts, Throttle};
use weir_core::units::Bytes;
use weir_core::workload::Job;
use weir_core::workload::spec::BlockSize;

/// A record in the making.
pub struct Lab {
    jobs: Vec<JobRecord>,
    /// What the doctor notes beside its jobs.
    pub notes: DoctorNotes,
    /// The machine.
    pub conditions: Conditions,
}

/// How one step behaved: operations a second, their latency, and a slowest one in every hundred and one.
pub struct Behaviour {
    /// Operations a second.
    pub iops: f64,
    /// Latency of most, ns.
    pub usual_ns: u64,
    /// Latency of the slowest, ns.
    pub slow_ns: u64,
}

impl Lab {
    /// Nothing measured yet; an xfs on a quiet machine, seen as root.
    pub fn new() -> Lab {
        let mut conditions = Conditions { kernel: "6.1.0".into(), ..Conditions::default() };
        conditions.limits.root = true;
        conditions.cpu.processors = 8;
        conditions.target = Some(TargetFacts {
            path: "/srv/db".into(),
            file_system: Some(FileSystem {
                kind: "xfs".into(),
                mount_point: "/srv".into(),
                ..FileSystem::default()
            }),
            stack: vec![Layer {
                name: "vdb".into(),
                kind: LayerKind::Disk,
                queue: Some(Queue { write_cache: Some("write back".into()), ..Queue::default() }),
                ..Layer::default()
            }],
            device: Some("vdb".into()),
            ..TargetFacts::default()
        });
        let others = Others { observed_ns: 1_000_000_000, cpu_busy: 0.02, ..Others::default() };
        let notes =
            DoctorNotes { path: "/srv/db".into(), mode: "default".into(), others, ..DoctorNotes::default() };
        Lab { jobs: Vec::new(), notes, conditions }
    }

    /// Limits that a cgroup sets.
    pub fn throttle(&mut self, key: &str, limit: u64) {
        let limits = BTreeMap::from([(key.to_string(), limit)]);
        let throttle = Throttle { cgroup: "/".into(), version: 1, device: "vdb".into(), limits };
        self.conditions.target.as_mut().unwrap().throttles.push(throttle);
    }

    /// Runs a step for four seconds.
    pub fn step(&mut self, id: &str, kind: StepKind, class: Class, shape: (u64, u32, u32), how: &Behaviour) {
        let (block, depth, threads) = shape;
        let count = (how.iops * 4.0).round() as u64;
        let mut latency = Histogram::new();
        (0..count).for_each(|i| latency.record(if i % 101 == 100 { how.slow_ns } else { how.usual_ns }));
        let sum = latency.sum() as f64;
        let job = Job { block: BlockSize::Fixed(Bytes(block)), depth, threads, ..Job::default() };
        let mut classes = BTreeMap::from([(class, ClassRecord { bytes: count * block, errors: 0, latency })]);
        if class == Class::Commit {
            let mut sync = Histogram::new();
            (0..count.max(10)).for_each(|_| sync.record(how.usual_ns / 2));
            classes.insert(Class::Sync, ClassRecord { latency: sync, ..ClassRecord::default() });
            classes.insert(Class::Write, ClassRecord { bytes: count * block, ..ClassRecord::default() });
        }
        let interval = |i: u64| {
            let wobble = [count / 16, count / 16 + count / 640][i as usize % 2];
            let done = IntervalClass { count: wobble, ..IntervalClass::default() };
            let classes = BTreeMap::from([(class, done)]);
            Interval { start_ns: i * 250_000_000, len_ns: 250_000_000, classes, ..Interval::default() }
        };
        let engine =
            EngineRecord { name: "io_uring".into(), in_flight_mean: sum / 4e9, ..EngineRecord::default() };
        self.notes.steps.push(StepNote {
            id: id.into(),
            kind,
            utilization: None,
            stages: None,
            copies: None,
            writes_above: None,
        });
        self.jobs.push(JobRecord {
            job,
            engine,
            elapsed_ns: 4_000_000_000,
            classes,
            intervals: (0..16).map(interval).collect(),
            cpu: CpuRecord { processors: 8, machine_busy_ns: 1_000_000_000, ..CpuRecord::default() },
            ..JobRecord::default()
        });
    }

    /// A random-read or random-write curve of 4 KiB.
    pub fn curve(&mut self, kind: StepKind, rates: &[(u32, f64)]) {
        let (word, class) =
            if kind == StepKind::ReadDepth { ("read", Class::Read) } else { ("write", Class::Write) };
        for (depth, iops) in rates {
            let usual_ns = (f64::from(*depth) / iops * 1e9) as u64;
            let how = Behaviour { iops: *iops, usual_ns, slow_ns: usual_ns * 2 };
            self.step(&format!("{word}-4k-d{depth}"), kind, class, (4096, *depth, 1), &how);
        }
    }

    /// Commits of 16 KiB.
    pub fn commits(&mut self, path: SyncPath, threads: u32, how: &Behaviour) {
        let id = format!("commit-16k-t{threads}-{path:?}").to_lowercase();
        self.step(&id, StepKind::Commit(path), Class::Commit, (16384, 1, threads), how);
    }

    /// A phase of the flood in which commits were measured.
    pub fn phase(&mut self, kind: PhaseKind, threads: u32, dirty_bytes: Option<u64>, how: &Behaviour) {
        let tried =
            dirty_bytes.filter(|bytes| *bytes != 15_000_000).map_or(String::new(), |b| format!("-{b}"));
        let id = format!("flood-{kind:?}{tried}-t{threads}").to_lowercase();
        self.step(&id, StepKind::Flood(kind), Class::Commit, (16384, 1, threads), how);
        let start_ns = self.notes.flood.phases.len() as u64 * 4_000_000_000;
        let flooded = kind != PhaseKind::Idle;
        self.notes.flood.phases.push(FloodPhase {
            kind,
            label: format!("{kind:?}"),
            threads,
            dirty_bytes: dirty_bytes.map(Bytes),
            start_ns,
            end_ns: start_ns + 4_000_000_000,
            measurement: Some(id),
            flood_bytes_per_second: flooded.then_some(2e8),
            cut_short: false,
        });
        self.notes.flood.samples.push(FloodSample {
            at_ns: start_ns + 2_000_000_000,
            dirty_bytes: if flooded && dirty_bytes.is_none() { 4 << 30 } else { 8 << 20 },
            device_bytes_per_second: Some(if dirty_bytes.is_some() { 1.8e8 } else { 2e8 }),
            ..FloodSample::default()
        });
    }

    /// Limits as a machine with 24 GB has them.
    pub fn limits(&mut self) {
        self.notes.flood = FloodNotes {
            background_limit: Bytes(2 << 30),
            dirty_limit: Bytes(4 << 30),
            limits_found: vec![("vm.dirty_ratio".into(), 20), ("vm.dirty_background_ratio".into(), 10)],
            ..FloodNotes::default()
        };
    }

    /// A sustained examination of a made-up device: both kinds of writes, each for so many quarters of a second.
    pub fn sustained(&mut self, device: Device, ticks: usize) {
        let mut made = Made::new(device, 0.02, 5);
        let notes = self.notes.sustained.get_or_insert_default();
        notes.stretches = vec![Stretch::default()];
        let plain = Behaviour { iops: 0.0, usual_ns: 1, slow_ns: 1 };
        self.step("layout-1m", StepKind::Layout, Class::Write, (1 << 20, 8, 1), &plain);
        let mut now_ns = 1_000_000_000;
        for pressure in Pressure::ALL {
            let courses = made.examine(pressure, ticks, 9.0);
            let parts = [
                (Part::Drain, &courses.drain),
                (Part::Other, &courses.other),
                (Part::Reads, &courses.reads),
                (Part::Again, &courses.again),
            ];
            for (part, course) in parts {
                now_ns += if part == Part::Again { courses.idle_ns } else { 0 };
                self.course(pressure, part, course, &mut now_ns);
            }
            made.idle(60.0);
        }
    }

    fn course(&mut self, pressure: Pressure, part: Part, course: &[Done], now_ns: &mut u64) {
        let id = format!("sustained-{}{}", pressure.name(), part.suffix());
        let (block, other) = pressure.blocks();
        let block = if part == Part::Other { other } else { block };
        let class = if part == Part::Reads { Class::Read } else { Class::Write };
        let plain = Behaviour { iops: 0.0, usual_ns: 1, slow_ns: 1 };
        self.step(&id, StepKind::Sustained(pressure, part), class, (block, 32, 1), &plain);
        let Some(job) = self.jobs.last_mut() else { return };
        job.job.read_percent = if part == Part::Reads { 100.0 } else { 0.0 };
        let count: u64 = course.iter().map(|done| done.operations).sum();
        let mut latency = Histogram::new();
        (0..count.min(1000)).for_each(|_| latency.record(1_000_000));
        job.classes = BTreeMap::from([(class, ClassRecord { bytes: count * block, errors: 0, latency })]);
        job.intervals = course
            .iter()
            .map(|done| {
                let class_done =
                    IntervalClass { count: done.operations, p50_ns: done.p50_ns, ..IntervalClass::default() };
                let classes = BTreeMap::from([(class, class_done)]);
                Interval { start_ns: done.start_ns, len_ns: done.len_ns, classes, ..Interval::default() }
            })
            .collect();
        job.elapsed_ns = course.iter().map(|done| done.len_ns).sum();
        let start_ns = *now_ns;
        *now_ns += job.elapsed_ns;
        if let Some(notes) = &mut self.notes.sustained {
            notes.stretches.push(Stretch { start_ns, end_ns: *now_ns });
        }
    }

    /// A step that somebody else made up.
    pub fn push(&mut self, note: StepNote, job: JobRecord) {
        self.notes.steps.push(note);
        self.jobs.push(job);
    }

    /// What was measured so far.
    pub fn jobs(&self) -> &[JobRecord] {
        &self.jobs
    }

    /// As if it had been ended after so many steps.
    pub fn keep(&mut self, steps: usize) {
        self.notes.steps.truncate(steps);
        self.jobs.truncate(steps);
    }

    /// The record as it would lie in the store.
    pub fn record(self, bars: Vec<Bar>) -> Record {
        let notes = DoctorNotes { schema: super::notes::SCHEMA.into(), bars, ..self.notes };
        let text = serde_json::to_string(&Record {
            schema: SCHEMA.into(),
            id: "20260101-000000-abcdef".into(),
            weir_version: "0.1.0".into(),
            command: vec!["weir".into(), "doctor".into()],
            kind: "doctor".into(),
            started_at: "2026-01-01T00:00:00+00:00".into(),
            conditions: json!(self.conditions),
            jobs: self.jobs,
            floods: Vec::new(),
            notes: Vec::new(),
            ended_early: None,
            extra: json!(notes),
        })
        .unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

/// The field reports' device: 1,500 write IOPS, commits that need two each, a flood that starves them, and a
/// dirty limit of 15 MB that brings them back.
pub fn throttled_and_flooded() -> Lab {
    let mut lab = Lab::new();
    lab.throttle("wiops", 1500);
    lab.limits();
    lab.curve(StepKind::ReadDepth, &[(1, 7_000.0), (4, 26_000.0), (16, 60_000.0), (64, 61_000.0)]);
    lab.curve(StepKind::WriteDepth, &[(1, 1_490.0), (4, 1_500.0), (16, 1_500.0)]);
    lab.commits(SyncPath::Buffered, 1, &Behaviour { iops: 753.0, usual_ns: 1_300_000, slow_ns: 90_000_000 });
    lab.commits(
        SyncPath::Buffered,
        10,
        &Behaviour { iops: 758.0, usual_ns: 13_000_000, slow_ns: 92_000_000 },
    );
    lab.phase(PhaseKind::Idle, 10, None, &quick(758.0));
    lab.phase(PhaseKind::Flood, 10, None, &quick(33.7));
    lab.phase(PhaseKind::Rescue, 10, Some(15_000_000), &quick(703.0));
    lab
}

/// A sustained examination of a volume with a credit of operations.
pub fn bucket_of_operations() -> Lab {
    let mut lab = Lab::new();
    lab.notes.mode = "sustained".into();
    let device =
        Device::Bucket { bytes: false, burst: 4000.0, base: 1000.0, credit: 30_000.0, writes_only: false };
    lab.sustained(device, 100);
    lab
}

fn quick(iops: f64) -> Behaviour {
    Behaviour { iops, usual_ns: (1e10 / iops) as u64, slow_ns: (1.5e10 / iops) as u64 }
}

fn count(table: &mut StageTable, flags: Flags, bytes: u32, ios: u64, stages: [(Stage, u64); 3]) {
    let classes = ClassSet::of(flags, bytes);
    let key = Key { device: Default::default(), classes, size: SizeClass::of(bytes) };
    let cell: &mut Cell = table.cell_mut(key);
    for _ in 0..ios {
        stages.iter().for_each(|&(stage, ns)| cell.stage_mut(stage).record(ns));
        cell.ios += 1;
    }
}

/// A record with the stages of its first idle commits: a fifth in the queue, three tenths in the device, a tenth in
/// the flush.
pub fn with_stages() -> Record {
    let mut record = throttled_and_flooded().record(Vec::new());
    let report = from_record(&record).unwrap();
    let idle = report.flood.as_ref().unwrap().effects[0].idle.clone();
    let mut table = StageTable::default();
    let (n, part) = (idle.n, (idle.mean_ns / 10.0) as u64);
    let stages = |queue, device| [(Stage::G2DAll, queue), (Stage::D2C, device), (Stage::G2C, queue + device)];
    let sync_write = Flags(Flags::WRITE.0 | Flags::SYNC.0);
    count(&mut table, sync_write, 16 << 10, n, stages(2 * part, 3 * part));
    count(&mut table, Flags::FLUSH, 0, n, stages(0, part));
    // A flood's own writes, which no commit waits for.
    count(&mut table, Flags::WRITE, 1 << 20, n, stages(1 << 40, 1 << 40));
    let steps = record.extra["steps"].as_array_mut().unwrap();
    let step = steps.iter_mut().find(|step| step["id"] == idle.measurement.as_str()).unwrap();
    step["stages"] = serde_json::to_value(&table).unwrap();
    record
}
