//! A made-up device that is mapped as the doctor would: for tests.

use std::collections::BTreeMap;

use super::cost::{CostModel, Sharing};
use super::sampler::{Plan, next};
use super::{Ask, BLOCK, COMMIT, MapNotes, PAGE, Part, Seen, derive};
use crate::notes::{StepKind, StepNote};
use crate::synthetic::Lab;
use weir_core::result::record::{Class, ClassRecord, CpuRecord, JobRecord};
use weir_core::stats::Histogram;
use weir_core::target::DeviceNumber;
use weir_core::units::Bytes;
use weir_core::workload::Job;
use weir_core::workload::spec::{Access, Arrival, BlockSize, Rate};

/// Latency of an operation on an idle device.
const IDLE_NS: f64 = 200_000.0;

/// A device with a limit each for reads and writes.
pub fn each(reads: f64, writes: f64) -> CostModel {
    CostModel { reads, writes, sharing: Sharing::LimitEach, error: 0.0, error_linear: 0.0, points: 0 }
}

/// A device with one budget.
pub fn one_budget(reads: f64, writes: f64, interference: f64) -> CostModel {
    CostModel { sharing: Sharing::OneBudget { interference }, ..each(reads, writes) }
}

/// A whole map of it.
pub fn mapped(device: &CostModel) -> Lab {
    let mut lab = Lab::new();
    lab.notes.mode = "map".into();
    lab.notes.map = Some(MapNotes { points_max: 20 });
    if let Some(target) = &mut lab.conditions.target {
        target.stack[0].number = DeviceNumber { major: 253, minor: 16 };
    }
    let mut run = Run { device, lab };
    run.commits(Part::Commits, "map-commit-alone", 0.0);
    while let Some(ask) = next(&Plan { points_max: 20, ..Plan::default() }, &run.seen()) {
        match ask {
            Ask::Edge { share } => run.load(Part::Edge, share, None),
            Ask::Inside { share, reads, writes, .. } => run.load(Part::Inside, share, Some(reads + writes)),
        }
    }
    for (share, load) in [(0.0, 0.3), (0.0, 0.6), (0.5, 0.3), (0.5, 0.6), (1.0, 0.3), (1.0, 0.6)] {
        run.load(Part::Beside, share, Some(device.edge(share) * load));
        run.commits(Part::Commits, "map-commit", load);
    }
    run.pages();
    run.in_order();
    for share in [0.0, 1.0] {
        run.load(Part::Again, share, None);
    }
    run.commits(Part::CommitsAgain, "map-commit-again", 0.0);
    run.lab
}

struct Run<'a> {
    device: &'a CostModel,
    lab: Lab,
}

impl Run<'_> {
    fn seen(&self) -> Vec<Seen> {
        derive::seen(&self.lab.notes, self.lab.jobs())
    }

    fn load(&mut self, part: Part, share: f64, rate: Option<f64>) {
        let total = rate.unwrap_or(self.device.edge(share));
        let used = (total / self.device.edge(share)).min(0.98);
        let latency_ns = IDLE_NS / (1.0 - used);
        let job = Job { block: BlockSize::Fixed(Bytes(BLOCK)), ..of(share, rate) };
        let done = [(Class::Read, total * (1.0 - share)), (Class::Write, total * share)];
        self.push(part, &format!("map-{part:?}-{share}-{used:.2}").to_lowercase(), job, &done, latency_ns);
    }

    fn commits(&mut self, part: Part, id: &str, load: f64) {
        let job = Job { block: BlockSize::Fixed(Bytes(COMMIT)), ..of(1.0, None) };
        let latency_ns = 2.0 * IDLE_NS / (1.0 - load);
        let id = format!("{id}-{}", self.lab.jobs().len());
        self.push(part, &id, job, &[(Class::Commit, 1e9 / latency_ns)], latency_ns);
    }

    fn pages(&mut self) {
        let edge = self.device.writes;
        for load in [1.0, 0.25, 0.5, 0.75] {
            let part = if load < 1.0 { Part::Pages } else { Part::PagesEdge };
            let rate = (load < 1.0).then_some(edge * load);
            let job = Job { block: BlockSize::Fixed(Bytes(PAGE)), ..of(1.0, rate) };
            self.push(part, &format!("map-pages-{load}"), job, &[(Class::Write, edge * load)], IDLE_NS);
            if load < 1.0 {
                self.commits(Part::Commits, "map-pages-commit", load);
            }
        }
    }

    fn in_order(&mut self) {
        for (part, block) in [(Part::Bulk, 1 << 20), (Part::InOrder, BLOCK)] {
            for (share, class, rate) in
                [(0.0, Class::Read, self.device.reads), (1.0, Class::Write, self.device.writes)]
            {
                let rate = if part == Part::Bulk { rate / 10.0 } else { rate * 1.5 };
                let block = BlockSize::Fixed(Bytes(block));
                let job = Job { block, access: Access::Sequential, ..of(share, None) };
                self.push(
                    part,
                    &format!("map-{part:?}-{share}").to_lowercase(),
                    job,
                    &[(class, rate)],
                    IDLE_NS,
                );
            }
        }
    }

    /// Two seconds of it; a slowest operation in every hundred and one.
    fn push(&mut self, part: Part, id: &str, job: Job, done: &[(Class, f64)], latency_ns: f64) {
        let class = |(class, rate): &(Class, f64)| {
            let count = (rate * 2.0).round() as u64;
            let mut latency = Histogram::new();
            latency.record_many(latency_ns as u64, count - count / 50);
            latency.record_many(latency_ns as u64 * 3, count / 50);
            (*class, ClassRecord { bytes: count * job.block.largest(), errors: 0, latency })
        };
        let classes: BTreeMap<Class, ClassRecord> =
            done.iter().filter(|(_, rate)| *rate > 0.0).map(class).collect();
        let cpu = CpuRecord { processors: 8, machine_busy_ns: 1_000_000_000, ..CpuRecord::default() };
        let kind = StepKind::Map(part);
        let note = StepNote {
            id: id.into(),
            kind,
            utilization: None,
            stages: None,
            copies: None,
            writes_above: None,
        };
        self.lab
            .push(note, JobRecord { job, classes, cpu, elapsed_ns: 2_000_000_000, ..JobRecord::default() });
    }
}

fn of(share: f64, rate: Option<f64>) -> Job {
    Job {
        read_percent: (1.0 - share) * 100.0,
        depth: 128,
        direct: true,
        rate: rate.map(|iops| Rate { iops, arrival: Arrival::Poisson }),
        ..Job::default()
    }
}
