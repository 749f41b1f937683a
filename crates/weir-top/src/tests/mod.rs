//! The model and its frames, with made-up samples.

mod frames;
mod keys;

use std::collections::BTreeMap;

use weir_blocktrace::fsync::{
    Anatomy, Call, Cause, Culprit, Latency, Phase, Process as Who, Row as PhaseRow, Site, SlowSync, Way,
};
use weir_blocktrace::{Class, Cost, DeviceFrame, Frame, Row, Spread, Stage};
use weir_core::target::{DeviceLoad, DeviceNumber, MemoryLoad, PressureLoad};

use crate::{About, Model, Process, Sample, Syncs};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
/// When the first of the samples began.
const BEGUN_MS: i64 = 1_795_576_320_000;
/// Length of a recorded interval.
const RECORDED_MS: i64 = 10_000;

fn device(minor: u32) -> DeviceNumber {
    DeviceNumber { major: 254, minor }
}

fn spread(count: u64, mean_ns: u64) -> Option<Spread> {
    let times = |factor: u64| Some(mean_ns * factor / 2);
    Some(Spread { count, mean_ns: mean_ns as f64, p50_ns: times(1), p99_ns: times(8), max_ns: times(20) })
}

fn class(class: Class, ios: u64, mean_ns: u64) -> Row {
    let stages = [(Stage::G2D, mean_ns / 4), (Stage::D2C, mean_ns * 3 / 4)];
    Row {
        class,
        ios,
        iops: ios as f64,
        bytes_per_second: ios as f64 * 16_384.0,
        errors: 0,
        total: spread(ios, mean_ns),
        queue: spread(ios, mean_ns / 4),
        device: spread(ios, mean_ns * 3 / 4),
        queue_share: Some(0.25),
        stages: stages.into_iter().filter_map(|(stage, ns)| Some((stage, spread(ios, ns)?))).collect(),
    }
}

fn disk(name: &str, minor: u32, ios: u64, mean_ns: u64) -> DeviceFrame {
    let load = DeviceLoad {
        util_percent: 96.0,
        reads_per_second: ios as f64 / 4.0,
        writes_per_second: ios as f64 * 3.0 / 4.0,
        write_bytes_per_second: ios as f64 * 16_384.0,
        queue_mean: 3.25,
        in_flight: 4,
        ..DeviceLoad::default()
    };
    let rows = vec![
        class(Class::All, ios, mean_ns),
        class(Class::Read, ios / 4, mean_ns / 2),
        class(Class::Write, ios * 3 / 4, mean_ns),
        class(Class::SyncWrite, ios / 2, mean_ns),
        class(Class::Flush, 40, mean_ns * 2),
    ];
    DeviceFrame { number: device(minor), name: name.to_string(), load, limits: Vec::new(), rows }
}

fn who(pid: u32, comm: &str) -> Who {
    Who::new(Some(pid), comm)
}

fn phases() -> Vec<PhaseRow> {
    vec![
        PhaseRow {
            phase: Phase::Journal,
            share: 0.8,
            causes: vec![(Cause::Held, 0.001), (Cause::Device, 0.2), (Cause::Others, 0.6)],
        },
        PhaseRow { phase: Phase::OwnData, share: 0.15, causes: vec![(Cause::Device, 0.15)] },
        PhaseRow { phase: Phase::Cpu, share: 0.05, causes: Vec::new() },
    ]
}

fn culprits() -> Vec<Culprit> {
    vec![Culprit {
        process: who(4711, "dd"),
        processes: 1,
        way: Way::Writeback,
        share: 0.6,
        bytes: 1 << 30,
        ios: 1 << 10,
    }]
}

fn anatomy(process: Option<Who>, syncs: u64, p99_ns: u64) -> Anatomy {
    Anatomy {
        process,
        calls: vec![(Call::Fdatasync, syncs)],
        syncs,
        short: 0,
        skimmed: 0,
        latency: Latency {
            mean_ns: p99_ns as f64 / 4.0,
            p50_ns: p99_ns / 5,
            p95_ns: p99_ns / 2,
            p99_ns,
            max_ns: p99_ns * 2,
        },
        wall_ns: syncs * p99_ns / 4,
        explained: 1.0,
        phases: phases(),
        causes: vec![(Cause::Others, 0.6), (Cause::Device, 0.35)],
        culprits: culprits(),
        sites: vec![Site {
            functions: "jbd2_log_wait_commit < ext4_sync_file".to_string(),
            phase: Phase::Journal,
            share: 0.8,
            waits: 9.0,
        }],
    }
}

fn process(pid: u32, name: &str, written: f64, syncs: Option<(u64, u64)>) -> Process {
    Process {
        pid: Some(pid),
        name: name.to_string(),
        unit: Some(format!("{name}.service")),
        read: Some(0.0),
        written: Some(written),
        syncs: syncs.map(|(count, p99_ns)| anatomy(Some(who(pid, name)), count, p99_ns)),
    }
}

fn slow(start_ns: u64, took_ns: u64, comm: &str) -> SlowSync {
    SlowSync {
        start_ns,
        took_ns,
        process: who(812, comm),
        tid: 813,
        thread: None,
        call: Call::Fdatasync,
        device: Some(device(0)),
        phases: phases(),
        culprits: culprits(),
    }
}

/// The n-th second: a database that commits beside a `dd`, whose pages are written back from the tenth second on.
fn sample(n: u64) -> Sample {
    let p99_ns = if n >= 10 { 90 * MS } else { 2 * MS };
    Sample {
        clock: format!("03:12:{:02}", n % 60),
        at_ms: BEGUN_MS + (n as i64 + 1) * 1000,
        is_recorded: false,
        frame: Frame {
            at_ns: n * SECOND,
            length_ns: SECOND,
            devices: vec![disk("vda", 0, 1_200, p99_ns / 8), disk("vdb", 1, 30, MS / 2)],
            memory: MemoryLoad { dirty_bytes: 310 << 20, writeback_bytes: 40 << 20, ..MemoryLoad::default() },
            lost: BTreeMap::new(),
            cost: Cost { weir_cpu_share: 0.006, kernel_cpu_share: Some(0.002) },
        },
        pressure: BTreeMap::from([(
            "io".to_string(),
            PressureLoad { some_percent: 41.5, full_percent: 30.0 },
        )]),
        processes: vec![
            process(812, "mariadbd", 3e6, Some((220, p99_ns))),
            process(4711, "dd", 412e6, None),
            process(99, "a\x1b[2Jb\n漢字", 1e3, Some((1, MS))),
        ],
        syncs: Some(Syncs { per_second: 221.0, under_way: 2, anatomy: anatomy(None, 221, p99_ns) }),
        slow: if n >= 10 { vec![slow(n * SECOND, p99_ns * 2, "mariadbd")] } else { Vec::new() },
    }
}

fn about() -> About {
    About {
        host: "db1".to_string(),
        source: "programs in the kernel".to_string(),
        remarks: vec!["not shown: waits before Q, as in cgroup throttling".to_string()],
        interval_ns: SECOND,
        slow_ns: 10 * MS,
    }
}

/// A model that has seen so many seconds.
fn model(seconds: u64) -> Model {
    let mut model = Model::new(about(), 300);
    (0..seconds).for_each(|n| model.push(sample(n)));
    model
}

/// A recorder's interval that ended so many of them before the first sample: `dd` was there from the third to the last.
fn recorded(before: i64) -> Sample {
    let of_then = sample(if before == 3 { 10 } else { 0 });
    let of_day = 3 * 3600 + 12 * 60 - before * RECORDED_MS / 1000;
    let clock = format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60);
    let mut processes = of_then.processes;
    processes.iter_mut().for_each(|process| process.pid = None);
    Sample {
        clock,
        at_ms: BEGUN_MS - before * RECORDED_MS,
        is_recorded: true,
        frame: Frame { length_ns: RECORDED_MS as u64 * MS, ..of_then.frame },
        processes,
        ..of_then
    }
}

/// A recorder's archive of so many intervals, with a hole in it; fetched in small pieces.
struct Archive {
    intervals: i64,
    hole: std::ops::Range<i64>,
    fetched: Vec<crate::Wish>,
}

impl Archive {
    fn of(intervals: i64) -> Archive {
        Archive { intervals, hole: 0..0, fetched: Vec::new() }
    }
}

impl crate::Samples for Archive {
    type Error = std::convert::Infallible;

    fn about(&self) -> &About {
        unreachable!("the model has it")
    }

    fn drain(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn take(&mut self) -> Result<Option<Sample>, Self::Error> {
        Ok(None)
    }

    fn recorded(&mut self, wish: crate::Wish) -> Vec<Sample> {
        self.fetched.push(wish);
        let all = (0..self.intervals).rev().filter(|before| !self.hole.contains(before)).map(recorded);
        match wish {
            crate::Wish::Before(ms) => {
                let found: Vec<Sample> = all.filter(|sample| sample.at_ms <= ms).collect();
                found[found.len().saturating_sub(7)..].to_vec()
            }
            crate::Wish::After(ms) => all.filter(|sample| sample.at_ms > ms).take(7).collect(),
        }
    }
}
