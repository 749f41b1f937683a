//! The doctor's page of a made-up examination that resembles the field reports' device.

use std::collections::BTreeMap;

use super::doctor;
use weir_core::result::Record;
use weir_core::result::record::{
    Class, ClassRecord, CpuRecord, EngineRecord, Interval, IntervalClass, JobRecord, Note, SCHEMA,
};
use weir_core::stats::Histogram;
use weir_core::target::{Conditions, FileSystem, Layer, Queue, TargetFacts};
use weir_core::units::Bytes;
use weir_core::workload::Job;
use weir_core::workload::spec::BlockSize;
use weir_verdict::doctor::{DoctorReport, FloodPhase, FloodSample, PhaseKind};
use weir_verdict::from_record;
use weir_verdict::notes::{DoctorNotes, FloodNotes, StepKind, StepNote, SyncPath};

/// A deterministic scatter in 0..1.
fn noise(i: u64) -> f64 {
    let mixed = (i ^ (i >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64
}

/// An examination in the making.
pub struct Made {
    jobs: Vec<JobRecord>,
    notes: DoctorNotes,
}

impl Made {
    /// Five seconds of a step at a rate, with latencies that spread and have a tail.
    fn step(&mut self, id: &str, kind: StepKind, class: Class, shape: (u64, u32, u32), iops: f64) {
        let (block, depth, threads) = shape;
        let count = ((iops * 5.0).round() as u64).max(1);
        let mean_ns = f64::from(depth * threads) / iops * 1e9;
        let mut latency = Histogram::new();
        for i in 0..count {
            let tail = if noise(i * 31 + 7) > 0.985 { 6.0 } else { 1.0 };
            latency.record((mean_ns * tail * (0.55 - 0.4 * noise(i + count).max(1e-9).ln())) as u64);
        }
        let in_flight_mean = latency.sum() as f64 / 5e9;
        let interval = |i: u64| {
            let share = (count as f64 / 5.0 * (0.96 + 0.08 * noise(i + block))) as u64;
            let classes = BTreeMap::from([(class, IntervalClass { count: share, ..Default::default() })]);
            Interval { start_ns: i * 1_000_000_000, len_ns: 1_000_000_000, classes, ..Default::default() }
        };
        let job = Job {
            block: BlockSize::Fixed(Bytes(block)),
            depth,
            threads,
            direct: !matches!(kind, StepKind::Commit(SyncPath::Buffered) | StepKind::Flood(_)),
            ..Job::default()
        };
        self.notes.steps.push(StepNote {
            id: id.to_string(),
            kind,
            utilization: Some(0.97),
            stages: None,
            copies: None,
            writes_above: None,
        });
        self.jobs.push(JobRecord {
            job,
            engine: EngineRecord { name: "io_uring".into(), in_flight_mean, ..EngineRecord::default() },
            elapsed_ns: 5_000_000_000,
            classes: BTreeMap::from([(class, ClassRecord { bytes: count * block, errors: 0, latency })]),
            intervals: (0..5).map(interval).collect(),
            threads: Vec::new(),
            final_sync: None,
            lateness: None,
            cpu: CpuRecord { processors: 8, machine_busy_ns: 2_000_000_000, ..CpuRecord::default() },
            notes: Vec::new(),
            error: None,
            verify: None,
            flood_ages_ns: Vec::new(),
        });
    }

    /// A phase of the flood with a sample a second.
    fn phase(&mut self, kind: PhaseKind, threads: u32, dirty_bytes: Option<u64>, iops: f64, seconds: u64) {
        let from = self.notes.flood.phases.last().map_or(0, |p| p.end_ns / 1_000_000_000);
        let limit = dirty_bytes.unwrap_or(4_400_000_000) as f64;
        let measurement = (threads > 0).then(|| format!("flood-{kind:?}-t{threads}").to_lowercase());
        if let Some(id) = &measurement {
            self.step(id, StepKind::Flood(kind), Class::Commit, (16384, 1, threads), iops);
        }
        let flooded = !matches!(kind, PhaseKind::Idle | PhaseKind::Drain);
        for second in 0..seconds {
            let before = self.notes.flood.samples.last().map_or(3e6, |s| s.dirty_bytes as f64);
            let dirty = match kind {
                PhaseKind::Idle => 3e6 + 2e6 * noise(second),
                PhaseKind::Drain => before * 0.5,
                _ => (before + 900e6).min(limit * (0.9 + 0.1 * noise(second))),
            };
            let rate = if flooded {
                if before < limit * 0.9 { 1.1e9 } else { 1.9e8 + 3e7 * noise(second + 5) }
            } else {
                0.0
            };
            self.notes.flood.samples.push(FloodSample {
                at_ns: (from + second) * 1_000_000_000 + 900_000_000,
                dirty_bytes: dirty as u64,
                writeback_bytes: if flooded { 12_000_000 } else { 0 },
                flood_bytes_per_second: rate,
                device_bytes_per_second: Some(if flooded { 2e8 } else { iops * 16384.0 }),
                commit_iops: (threads > 0).then(|| (iops * (0.8 + 0.4 * noise(second * 3 + from))).floor()),
                oldest_ns: (threads > 0)
                    .then(|| (1.4e9 * f64::from(threads) / iops * (0.5 + noise(second))) as u64),
            });
        }
        self.notes.flood.phases.push(FloodPhase {
            kind,
            label: format!("{kind:?}"),
            threads,
            dirty_bytes: dirty_bytes.map(Bytes),
            start_ns: from * 1_000_000_000,
            end_ns: (from + seconds) * 1_000_000_000,
            measurement,
            flood_bytes_per_second: flooded.then_some(2e8),
            cut_short: false,
        });
    }

    fn record(self, conditions: Conditions) -> Record {
        Record {
            schema: SCHEMA.to_string(),
            id: "20260101-120000-1a2b".to_string(),
            weir_version: "0.1.0".to_string(),
            command: ["weir", "doctor", "/srv/db"].map(String::from).to_vec(),
            kind: "doctor".to_string(),
            started_at: "2026-01-01T12:00:00+00:00".to_string(),
            conditions: serde_json::to_value(conditions).unwrap(),
            jobs: self.jobs,
            floods: Vec::new(),
            notes: Vec::new(),
            ended_early: None,
            extra: serde_json::to_value(self.notes).unwrap(),
        }
    }
}

fn conditions() -> Conditions {
    let queue = Queue {
        scheduler: Some("mq-deadline".into()),
        rotational: Some(true),
        nr_requests: Some(256),
        write_cache: Some("write back".into()),
        ..Queue::default()
    };
    let layer = Layer { name: "vdb".into(), size_bytes: 1 << 40, queue: Some(queue), ..Layer::default() };
    let file_system = FileSystem { kind: "xfs".into(), mount_point: "/srv".into(), ..FileSystem::default() };
    let mut conditions = Conditions { kernel: "6.1.0".into(), ..Conditions::default() };
    conditions.cpu.processors = 8;
    conditions.limits.root = true;
    conditions.target = Some(TargetFacts {
        path: "/srv/db".into(),
        file_system: Some(file_system),
        stack: vec![layer],
        device: Some("vdb".into()),
        ..TargetFacts::default()
    });
    conditions
}

/// A device of 1,500 write IOPS and 200 MB/s, whose commits a flood starves and a dirty limit of 15 MB brings back.
pub fn starved() -> Record {
    let notes = DoctorNotes {
        path: "/srv/db".into(),
        mode: "default".into(),
        elapsed_ns: 171_000_000_000,
        flood: FloodNotes {
            background_limit: Bytes(2 << 30),
            dirty_limit: Bytes(4 << 30),
            ..Default::default()
        },
        ..DoctorNotes::default()
    };
    let mut made = Made { jobs: Vec::new(), notes };
    made.step("layout", StepKind::Layout, Class::Write, (1 << 20, 4, 1), 195.0);
    for (depth, iops) in [
        (1, 7_000.0),
        (2, 13_500.0),
        (4, 26_000.0),
        (8, 44_000.0),
        (16, 60_000.0),
        (32, 61_000.0),
        (64, 61_200.0),
    ] {
        made.step(&format!("read-4k-d{depth}"), StepKind::ReadDepth, Class::Read, (4096, depth, 1), iops);
    }
    for (depth, iops) in [(1, 1_200.0), (2, 1_490.0), (4, 1_500.0), (8, 1_500.0), (16, 1_502.0)] {
        made.step(&format!("write-4k-d{depth}"), StepKind::WriteDepth, Class::Write, (4096, depth, 1), iops);
        made.step(
            &format!("write-16k-d{depth}"),
            StepKind::WriteDepth,
            Class::Write,
            (16384, depth, 1),
            iops * 0.9,
        );
    }
    made.step("seq-read", StepKind::SequentialRead, Class::Read, (1 << 20, 8, 1), 1_900.0);
    made.step("seq-write", StepKind::SequentialWrite, Class::Write, (1 << 20, 8, 1), 198.0);
    for (block, threads, path, iops) in [
        (16384, 1, SyncPath::Buffered, 753.0),
        (16384, 10, SyncPath::Buffered, 758.0),
        (16384, 1, SyncPath::Direct, 760.0),
        (16384, 1, SyncPath::DirectDsync, 1_480.0),
        (4096, 1, SyncPath::Buffered, 756.0),
        (4096, 10, SyncPath::Buffered, 761.0),
    ] {
        let id = format!("commit-{}k-t{threads}-{path:?}", block / 1024).to_lowercase();
        made.step(&id, StepKind::Commit(path), Class::Commit, (block, 1, threads), iops);
    }
    made.phase(PhaseKind::Idle, 10, None, 758.0, 8);
    made.phase(PhaseKind::Idle, 1, None, 753.0, 6);
    made.phase(PhaseKind::BuildUp, 0, None, 0.0, 5);
    made.phase(PhaseKind::Flood, 10, None, 33.7, 12);
    made.phase(PhaseKind::Flood, 1, None, 0.7, 10);
    made.phase(PhaseKind::BuildUp, 0, None, 0.0, 2);
    made.phase(PhaseKind::Rescue, 10, Some(15_000_000), 703.0, 10);
    made.phase(PhaseKind::Rescue, 1, Some(15_000_000), 312.0, 8);
    made.phase(PhaseKind::Drain, 0, None, 0.0, 4);
    made.record(conditions())
}

fn report() -> DoctorReport {
    from_record(&starved()).unwrap()
}

#[test]
fn every_link_of_the_evidence_leads_somewhere() {
    let html = doctor(&report());
    let links: Vec<&str> = html.split("href=\"#").skip(1).filter_map(|r| r.split('"').next()).collect();
    assert!(links.len() > 5, "{links:?}");
    for link in links {
        assert!(html.contains(&format!("id=\"{link}\"")), "{link} leads nowhere");
    }
    let mut ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|r| r.split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an anchor stands twice");
}

#[test]
fn collapse_and_rescue_are_drawn_and_said() {
    let mut report = report();
    report.flood.as_mut().unwrap().effects[0].flood.cut_short = true;
    let html = doctor(&report);
    for part in [
        "id=\"flood-timeline\"",
        "longest at least ",
        ">at least ",
        "id=\"depth-curves\"",
        "id=\"commit-rates\"",
        "flood + dirty_bytes 15 MB",
        "vm.dirty_bytes",
    ] {
        assert!(html.contains(part), "{part} is missing");
    }
    // Per drawing, four panels: one region for each flood with what it builds up from.
    for region in ["class=\"disturbed\"", "class=\"eased\""] {
        assert_eq!(html.matches(region).count(), 2 * 4, "{region}");
    }
    assert!(
        html.len() < 1_000_000
            && !html.contains("NaN")
            && !html.contains("http:")
            && !html.contains("https:")
    );
    for drawing in html.split("role=\"img\"").skip(1).filter_map(|s| s.split_once("</svg>").map(|p| p.0)) {
        let units = ["operations/s", "MB/s", "(MB", "(GB", "(s)", "operations in flight", " ms<", " %<"];
        assert!(units.iter().filter(|u| drawing.contains(**u)).count() >= 1, "{drawing:.300}");
    }
}

#[test]
fn hostile_storage_stays_text() {
    let bad = "\"><img src=x onerror=alert(1)></title></style><script>'";
    let mut record = starved();
    record.jobs[0].notes.push(Note { key: bad.into(), text: bad.into() });
    record.jobs[1].error = Some(bad.into());
    record.command.push(bad.into());
    record.ended_early = Some(bad.into());
    let mut report = from_record(&record).unwrap();
    report.path = bad.into();
    report.headline.text = bad.into();
    for fact in &mut report.facts {
        (fact.label, fact.value, fact.source) = (bad.into(), bad.into(), bad.into());
    }
    for finding in &mut report.findings {
        finding.summary = bad.into();
        for statement in &mut finding.statements {
            statement.text = bad.into();
            for evidence in &mut statement.evidence {
                (evidence.figure, evidence.source, evidence.interval) =
                    (bad.into(), bad.into(), Some(bad.into()));
            }
        }
    }
    for advice in &mut report.advice {
        (advice.knob, advice.command, advice.undo) = (bad.into(), bad.into(), bad.into());
        (advice.current, advice.proposed, advice.durability) = (bad.into(), bad.into(), bad.into());
    }
    for curve in &mut report.curves {
        (curve.id, curve.title) = (bad.into(), bad.into());
    }
    for measurement in &mut report.measurements {
        (measurement.id, measurement.title) = (bad.into(), bad.into());
    }
    if let Some(story) = &mut report.flood {
        story.remarks.push(bad.into());
        story.phases.iter_mut().for_each(|p| p.label = bad.into());
    }
    let html = doctor(&report);
    assert!(html.contains("&lt;img src=x"));
    for tag in ["<img", "<script"] {
        assert!(!html.contains(tag), "{tag}");
    }
    assert_eq!(html.matches("</style>").count(), 1);
}

#[test]
fn an_examination_that_measured_nothing_still_makes_a_page() {
    let empty = DoctorReport {
        measurements: Vec::new(),
        curves: Vec::new(),
        flood: None,
        advice: Vec::new(),
        findings: Vec::new(),
        ..report()
    };
    assert!(doctor(&empty).contains(&empty.closing) && !empty.closing.is_empty());
}
