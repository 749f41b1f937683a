//! From the jobs of a map and what each was for to the map.

use super::cost::CostModel;
use super::{Ask, BLOCK, Commits, Drift, InOrder, LoadMap, Pages, Part, Point, Seen, lines, share};
use crate::measurement::sufficient;
use crate::notes::{DoctorNotes, StepKind};
use weir_core::result::record::{Class, JobRecord};
use weir_core::stats::Histogram;
use weir_core::target::Conditions;
use weir_core::units::Bytes;

/// A generator or machine this busy may be the limit, not the device.
pub const PROCESSORS_LIMIT: f64 = 0.9;
/// Share of the operations due below which their rate was not kept.
const KEPT: f64 = 0.95;

/// A job of the map: what for, its name, its record.
struct Ran<'a> {
    part: Part,
    id: &'a str,
    job: &'a JobRecord,
}

fn ran<'a>(notes: &'a DoctorNotes, jobs: &'a [JobRecord]) -> Vec<Ran<'a>> {
    let pairs = notes.steps.iter().zip(jobs);
    let of_map = pairs.filter_map(|(step, job)| match step.kind {
        StepKind::Map(part) => Some(Ran { part, id: &step.id, job }),
        _ => None,
    });
    of_map.filter(|ran| ran.job.error.is_none()).collect()
}

/// The map of an examination; nothing where it was none.
pub fn derive(notes: &DoctorNotes, jobs: &[JobRecord], conditions: &Conditions) -> Option<LoadMap> {
    notes.map.as_ref()?;
    let ran = ran(notes, jobs);
    let (edges, inside) = (points(&ran, Part::Edge), points(&ran, Part::Inside));
    let capped = edges.iter().filter(|point| point.processors >= PROCESSORS_LIMIT).map(|point| point.share);
    let map = LoadMap {
        block: Bytes(BLOCK),
        capped: capped.collect(),
        commits: commits(&ran, Part::Beside, &edges),
        pages: pages(&ran),
        in_order: in_order(&ran),
        model: CostModel::fit(&seen_of(&ran, true)),
        drift: drift(&ran),
        points: ran.iter().filter(|ran| !matches!(ran.part, Part::Commits)).count(),
        lines: Vec::new(),
        edges,
        inside,
    };
    let lines = lines::all(&map, conditions);
    Some(LoadMap { lines, ..map })
}

/// What the sampler is told: edges and points inside, without repeats.
pub fn seen(notes: &DoctorNotes, jobs: &[JobRecord]) -> Vec<Seen> {
    seen_of(&ran(notes, jobs), false)
}

fn seen_of(ran: &[Ran<'_>], repeats: bool) -> Vec<Seen> {
    let edge = |share: f64| edge_rate(ran, share);
    let one = |ran: &Ran<'_>| {
        let (reads, writes) = rates(ran.job);
        let share = share(ran.job);
        let ask = match (ran.part, ran.job.job.rate) {
            (Part::Edge, _) => Ask::Edge { share },
            (Part::Again, _) if repeats => Ask::Edge { share },
            (Part::Inside, Some(rate)) => Ask::Inside {
                share,
                load: rate.iops / edge(share).max(1e-9),
                reads: rate.iops * (1.0 - share),
                writes: rate.iops * share,
            },
            _ => return None,
        };
        let p99_ns = both(ran.job).quantile(0.99).unwrap_or(0) as f64;
        Some(Seen { ask, reads, writes, p99_ns })
    };
    ran.iter().filter_map(one).collect()
}

/// Operations a second on the measured edge at a share; 0 where it was not measured.
fn edge_rate(ran: &[Ran<'_>], wanted: f64) -> f64 {
    let at = ran.iter().find(|ran| ran.part == Part::Edge && (share(ran.job) - wanted).abs() < 1e-9);
    at.map_or(0.0, |ran| total(rates(ran.job)))
}

fn total((reads, writes): (f64, f64)) -> f64 {
    reads + writes
}

/// Reads and writes a second that finished.
pub fn rates(job: &JobRecord) -> (f64, f64) {
    (rate(job, Class::Read), rate(job, Class::Write))
}

fn rate(job: &JobRecord, class: Class) -> f64 {
    let count = job.classes.get(&class).map_or(0, |done| done.latency.count());
    count as f64 * 1e9 / job.elapsed_ns.max(1) as f64
}

fn both(job: &JobRecord) -> Histogram {
    let mut all = Histogram::new();
    let of = [Class::Read, Class::Write].into_iter().filter_map(|class| job.classes.get(&class));
    of.for_each(|done| all.merge(&done.latency));
    all
}

/// How busy the busier was of the generator's threads and the machine.
fn processors(job: &JobRecord) -> f64 {
    let generator = job.cpu.process_share(job.elapsed_ns, job.job.threads);
    generator.max(job.cpu.machine_share(job.elapsed_ns))
}

/// Operations a second that came due. Arrivals at random are more or fewer than the rate asks for.
fn due(job: &JobRecord, asked: f64) -> f64 {
    let lasted_ns = job.job.duration.0.min(job.elapsed_ns).max(1);
    job.lateness.as_ref().map_or(asked, |lateness| lateness.intended as f64 * 1e9 / lasted_ns as f64)
}

fn points(ran: &[Ran<'_>], part: Part) -> Vec<Point> {
    let here = ran.iter().filter(|ran| ran.part == part);
    let mut all: Vec<Point> = here.map(|one| point(one, edge_rate(ran, share(one.job)))).collect();
    all.sort_by(|a, b| {
        (a.share, a.load).partial_cmp(&(b.share, b.load)).unwrap_or(std::cmp::Ordering::Equal)
    });
    all
}

fn point(ran: &Ran<'_>, edge: f64) -> Point {
    let (job, all) = (ran.job, both(ran.job));
    let (reads, writes) = rates(job);
    let asked = job.job.rate.map(|rate| rate.iops);
    let p95 = |class: Class| job.classes.get(&class).and_then(|done| sufficient(&done.latency, 0.95));
    Point {
        share: share(job),
        load: asked.map_or(1.0, |asked| asked / edge.max(1e-9)),
        reads,
        writes,
        n: all.count(),
        p50_ns: sufficient(&all, 0.5),
        p99_ns: sufficient(&all, 0.99),
        read_p95_ns: p95(Class::Read),
        write_p95_ns: p95(Class::Write),
        kept: asked.is_none_or(|asked| reads + writes >= KEPT * due(job, asked)),
        processors: processors(job),
        measurement: ran.id.to_string(),
    }
}

/// Commits beside jobs of one kind; those alone stand with [`Part::Beside`].
fn commits(ran: &[Ran<'_>], beside: Part, edges: &[Point]) -> Vec<Commits> {
    let mut all = Vec::new();
    for (index, one) in ran.iter().enumerate().filter(|(_, one)| one.part == Part::Commits) {
        let before = index.checked_sub(1).and_then(|i| ran.get(i));
        let load = before.filter(|before| matches!(before.part, Part::Beside | Part::Pages));
        match load {
            Some(load) if load.part == beside => {
                let edge = edges.iter().find(|point| (point.share - share(load.job)).abs() < 1e-9);
                let edge = edge.map_or(0.0, |point| point.reads + point.writes);
                all.push(commits_of(one, Some(load.job), edge));
            }
            None if beside == Part::Beside => all.push(commits_of(one, None, 0.0)),
            _ => {}
        }
    }
    all.sort_by(|a, b| {
        (a.share, a.load).partial_cmp(&(b.share, b.load)).unwrap_or(std::cmp::Ordering::Equal)
    });
    all
}

fn commits_of(ran: &Ran<'_>, load: Option<&JobRecord>, edge: f64) -> Commits {
    let empty = Histogram::new();
    let latency = ran.job.classes.get(&Class::Commit).map_or(&empty, |done| &done.latency);
    let asked = load.and_then(|job| job.job.rate).map_or(0.0, |rate| rate.iops);
    let (reads, writes) = load.map_or((0.0, 0.0), rates);
    Commits {
        share: load.map_or(0.0, share),
        load: if edge > 0.0 { asked / edge } else { 0.0 },
        reads,
        writes,
        rate: rate(ran.job, Class::Commit),
        n: latency.count(),
        p50_ns: sufficient(latency, 0.5),
        p99_ns: sufficient(latency, 0.99),
        max_ns: latency.max().unwrap_or(0),
        measurement: ran.id.to_string(),
    }
}

fn pages(ran: &[Ran<'_>]) -> Pages {
    let edges = points(ran, Part::PagesEdge);
    let edge = edges.first().map(|point| point.writes).filter(|rate| *rate > 0.0);
    Pages { edge, beside: commits(ran, Part::Pages, &edges) }
}

fn in_order(ran: &[Ran<'_>]) -> InOrder {
    let find = |part: Part, writes: bool| {
        let at = ran.iter().find(|ran| ran.part == part && ran.job.job.writes() == writes)?;
        Some(at.job).filter(|job| total(rates(job)) > 0.0)
    };
    let bytes = |job: &JobRecord| total(rates(job)) * job.job.block.largest() as f64;
    InOrder {
        read_bytes: find(Part::Bulk, false).map(bytes),
        write_bytes: find(Part::Bulk, true).map(bytes),
        reads: find(Part::InOrder, false).map(|job| total(rates(job))),
        writes: find(Part::InOrder, true).map(|job| total(rates(job))),
    }
}

fn drift(ran: &[Ran<'_>]) -> Drift {
    let off = |first: f64, again: f64| (first > 0.0).then(|| (again / first - 1.0).abs());
    let edges = ran.iter().filter(|ran| ran.part == Part::Again);
    let edge = edges.filter_map(|again| off(edge_rate(ran, share(again.job)), total(rates(again.job))));
    let alone = commits(ran, Part::Beside, &[]).into_iter().find(|one| one.writes + one.reads == 0.0);
    let again = ran.iter().find(|ran| ran.part == Part::CommitsAgain);
    Drift {
        edge: edge.max_by(f64::total_cmp),
        commits: alone.zip(again).and_then(|(first, again)| off(first.rate, rate(again.job, Class::Commit))),
    }
}
