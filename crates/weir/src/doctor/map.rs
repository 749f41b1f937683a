//! Runs a map: commits alone, the points that the sampler asks for, commits beside some of them, pages, operations in
//! order, and the ends once more.

use std::time::{Duration, Instant};

use weir_core::result::record::Class;
use weir_core::units::{Bytes, Nanos};
use weir_core::workload::spec::Data;
use weir_core::workload::stream::Layout;
use weir_core::workload::{Job, JobStream};
use weir_io::place::Place;
use weir_io::runner::JobPlan;
use weir_io::{IoError, files};
use weir_verdict::map::sampler::{Plan, next};
use weir_verdict::map::{Ask, BLOCK, COMMIT, MapNotes, PAGE, Part, derive, share, title};
use weir_verdict::notes::StepKind;

use super::examine::Examination;
use super::jobs::{self, Mixture};
use super::plan::Mode;

/// What commits write to: as large as a small log.
pub const LOG_BYTES: u64 = 16 << 20;
const TICK_NS: u64 = 250_000_000;
const SECOND: u64 = 1_000_000_000;
/// Uncounted lead of each point: longer than the tenth of a second in which blk-throttle hands out a first slice whole.
const RAMP_NS: u64 = 300_000_000;
/// What a step takes beside its own time: rings and threads are set up.
const SET_UP_NS: u64 = 150_000_000;
/// Operations that a point should have: a p99 takes 300.
const WANTED: f64 = 400.0;
/// In order: large and small blocks.
const BULK: u64 = 1 << 20;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extent {
    /// Points of edge and inside at most.
    points_max: usize,
    /// Counted time of a point; longer where few operations finish.
    point_ns: u64,
    /// The same at most.
    longest_ns: u64,
    /// Where commits run beside: shares of writes and parts of the edge.
    commits: (&'static [f64], &'static [f64]),
    /// Parts of the edge of pages beside which commits run.
    pages: &'static [f64],
    /// Shares of writes whose edge is repeated.
    again: &'static [f64],
}

impl Extent {
    /// That of a mode.
    pub fn of(mode: Mode) -> Extent {
        match mode.name {
            "map-quick" => Extent {
                points_max: 12,
                point_ns: SECOND * 4 / 5,
                longest_ns: 2 * SECOND,
                commits: (&[0.0, 0.5, 1.0], &[0.6]),
                pages: &[0.25, 0.5, 0.75],
                again: &[0.0, 1.0],
            },
            _ => Extent {
                points_max: 28,
                point_ns: SECOND * 3 / 2,
                longest_ns: 5 * SECOND,
                commits: (&[0.0, 0.5, 1.0], &[0.3, 0.6, 0.9]),
                pages: &[0.25, 0.5, 0.75],
                again: &[0.0, 0.5, 1.0],
            },
        }
    }

    /// Steps after the points that the sampler asks for.
    fn rest(&self) -> usize {
        self.commits.0.len() * self.commits.1.len() + 1 + self.pages.len() + 4 + self.again.len() + 1
    }

    /// All steps at most.
    pub fn steps(&self) -> usize {
        1 + self.points_max + self.rest()
    }

    /// Time that all of it takes where operations are many.
    pub fn expected_ns(&self) -> u64 {
        self.steps() as u64 * self.step_ns()
    }

    fn step_ns(&self) -> u64 {
        self.point_ns + RAMP_NS + SET_UP_NS
    }
}

/// Measures all of it, as far as time and user let it.
pub fn run(exam: &mut Examination<'_>, extent: Extent) -> Result<(), IoError> {
    exam.notes.map = Some(MapNotes { points_max: extent.points_max });
    if let Some(why) = exam.direct_refused() {
        exam.skip("the map", &why);
        return Ok(());
    }
    let log = match log(exam) {
        Err(_) if exam.stopped() => return Ok(()),
        made => made?,
    };
    let mut map = Map { exam, extent, log, commits_per_second: 0.0 };
    map.commits(Part::Commits, "map-commit-alone");
    map.points();
    map.commits_beside();
    map.pages();
    map.in_order();
    map.again();
    Ok(())
}

/// The file that commits write to. It has no name: it ends with the examination, whatever ends that.
fn log(exam: &Examination<'_>) -> Result<Place, IoError> {
    let path = exam.folder.path().join("log");
    let failed = |error| IoError::io("cannot create", &path, error);
    let file = exam.folder.create_new("log", 0o600).map_err(failed)?;
    exam.folder.remove_file("log").map_err(failed)?;
    let place = Place::of(file, &path);
    files::fill(&place, 0, LOG_BYTES, Data::Random, false, exam.stop, &mut |_| {})?;
    Ok(place)
}

struct Map<'a, 'b> {
    exam: &'a mut Examination<'b>,
    extent: Extent,
    log: Place,
    /// Alone.
    commits_per_second: f64,
}

impl Map<'_, '_> {
    /// Edge and inside, until the sampler has enough or the time for all else begins.
    fn points(&mut self) {
        let plan = Plan { points_max: self.extent.points_max, ..Plan::default() };
        let reserve_ns = self.extent.rest() as u64 * self.extent.step_ns();
        let mut asked = 0;
        while let Some(ask) = next(&plan, &derive::seen(&self.exam.notes, &self.exam.jobs)) {
            let (part, rate) = match ask {
                Ask::Edge { .. } => (Part::Edge, None),
                Ask::Inside { reads, writes, .. } => (Part::Inside, Some(reads + writes)),
            };
            let mix = Mixture { share: ask.share(), block: BLOCK, rate, in_order: false };
            let id = match ask {
                Ask::Edge { share } => format!("map-edge-w{}", percent(share)),
                Ask::Inside { share, load, .. } => format!("map-w{}-l{:.0}", percent(share), load * 100.0),
            };
            if !self.step(part, &id, mix, self.length(rate), reserve_ns) {
                break;
            }
            asked += 1;
        }
        self.exam.progress.drop_steps(self.extent.points_max - asked);
    }

    fn commits_beside(&mut self) {
        let (shares, loads) = self.extent.commits;
        for share in shares {
            let Some(edge) = self.edge(*share, Part::Edge) else { continue };
            for load in loads {
                let mix = Mixture { share: *share, block: BLOCK, rate: Some(edge * load), in_order: false };
                self.beside(Part::Beside, &format!("w{}-l{:.0}", percent(*share), load * 100.0), mix);
            }
        }
    }

    fn pages(&mut self) {
        let all = Mixture { share: 1.0, block: PAGE, rate: None, in_order: false };
        self.step(Part::PagesEdge, "map-pages-edge", all, self.extent.point_ns, 0);
        let Some(edge) = self.edge(1.0, Part::PagesEdge) else { return };
        for load in self.extent.pages {
            let mix = Mixture { rate: Some(edge * load), ..all };
            self.beside(Part::Pages, &format!("pages-l{:.0}", load * 100.0), mix);
        }
    }

    fn in_order(&mut self) {
        for (part, block, word) in [(Part::Bulk, BULK, "1m"), (Part::InOrder, BLOCK, "4k-in-order")] {
            for (share, what) in [(0.0, "read"), (1.0, "write")] {
                let mix = Mixture { share, block, rate: None, in_order: true };
                self.step(part, &format!("map-{what}-{word}"), mix, self.extent.point_ns, 0);
            }
        }
    }

    /// What was measured first, once more: what has changed meanwhile weakens all of it.
    fn again(&mut self) {
        for share in self.extent.again {
            let mix = Mixture { share: *share, block: BLOCK, rate: None, in_order: false };
            let id = format!("map-edge-w{}-again", percent(*share));
            self.step(Part::Again, &id, mix, self.length(None), 0);
        }
        self.commits(Part::CommitsAgain, "map-commit-alone-again");
    }

    /// Counted time of a point of so many operations a second.
    fn length(&self, rate: Option<f64>) -> u64 {
        let wanted = rate.map_or(0.0, |rate| WANTED / rate.max(1e-9) * 1e9);
        (wanted.min(1e12) as u64).clamp(self.extent.point_ns, self.extent.longest_ns)
    }

    /// Operations a second of an edge that was measured.
    fn edge(&self, wanted: f64, part: Part) -> Option<f64> {
        let mut steps = self.exam.notes.steps.iter().zip(&self.exam.jobs);
        let fits = steps.find(|(step, job)| step.kind == StepKind::Map(part) && share(job) == wanted);
        let (reads, writes) = derive::rates(fits?.1);
        Some(reads + writes).filter(|rate| *rate > 0.0)
    }

    /// Whether a step of this counted time may begin, with so much left after it.
    fn may_begin(&mut self, id: &str, counted_ns: u64, reserve_ns: u64) -> bool {
        let left = self.exam.deadline.saturating_duration_since(Instant::now());
        let needed = Duration::from_nanos(counted_ns + RAMP_NS + SET_UP_NS + reserve_ns);
        let may = !self.exam.stopped() && left >= needed;
        if !may && reserve_ns == 0 {
            self.exam.progress.drop_steps(1);
            if !self.exam.stopped() {
                self.exam.skip(id, "the time was up");
            }
        }
        may
    }

    /// One load by itself; `false` where it did not run, or failed.
    fn step(&mut self, part: Part, id: &str, mix: Mixture, counted_ns: u64, reserve_ns: u64) -> bool {
        if !self.may_begin(id, counted_ns, reserve_ns) {
            return false;
        }
        let job = self.job(id, mix, counted_ns);
        self.say(part, &job);
        match self.exam.measure(id, StepKind::Map(part), job, None, TICK_NS) {
            Ok(()) => self.exam.jobs.last().is_some_and(|job| job.error.is_none()),
            Err(error) => {
                self.exam.skip(id, &error.to_string());
                false
            }
        }
    }

    /// Commits alone.
    fn commits(&mut self, part: Part, id: &str) {
        let counted_ns = self.extent.point_ns;
        if !self.may_begin(id, counted_ns, 0) {
            return;
        }
        let job = self.commit_job(id, counted_ns);
        self.say(part, &job);
        let ran = self.commit_plan(job).and_then(|plan| {
            self.exam.measure_plans(&[(id, StepKind::Map(part))], vec![plan], None, TICK_NS)
        });
        match ran {
            Ok(()) => self.commits_per_second = self.last_commits(),
            Err(error) => self.exam.skip(id, &error.to_string()),
        }
    }

    fn last_commits(&self) -> f64 {
        let Some(job) = self.exam.jobs.last() else { return 0.0 };
        let done = job.classes.get(&Class::Commit);
        done.map_or(0.0, |done| done.latency.count() as f64 * 1e9 / job.elapsed_ns.max(1) as f64)
    }

    /// A load with commits beside it, for as long as half of what commits do alone gives a p99.
    fn beside(&mut self, part: Part, name: &str, mix: Mixture) {
        let (load_id, id) = (format!("map-beside-{name}"), format!("map-commit-{name}"));
        let counted_ns = self.length(Some(self.commits_per_second / 2.0));
        if !self.may_begin(&id, counted_ns, 0) {
            return;
        }
        let job = self.job(&load_id, mix, counted_ns);
        self.say(part, &job);
        let notes = [(load_id.as_str(), StepKind::Map(part)), (id.as_str(), StepKind::Map(Part::Commits))];
        let commit = self.commit_job(&id, counted_ns);
        let plans = self.exam.plan(job).and_then(|load| Ok(vec![load, self.commit_plan(commit)?]));
        if let Err(error) = plans.and_then(|plans| self.exam.measure_plans(&notes, plans, None, TICK_NS)) {
            self.exam.skip(&id, &error.to_string());
        }
    }

    fn job(&self, id: &str, mix: Mixture, counted_ns: u64) -> Job {
        let (file, size, engine) = (self.exam.file.path(), self.exam.file_size, self.exam.engine());
        let job = jobs::mixture(file, size, engine, mix);
        Job { name: id.to_string(), warmup: Nanos(RAMP_NS), duration: Nanos(counted_ns), ..job }
    }

    fn commit_job(&self, id: &str, counted_ns: u64) -> Job {
        let job = jobs::commits(self.log.path(), Bytes(LOG_BYTES), COMMIT);
        Job { name: id.to_string(), warmup: Nanos(RAMP_NS), duration: Nanos(counted_ns), ..job }
    }

    fn commit_plan(&self, job: Job) -> Result<JobPlan, IoError> {
        let layout = Layout { file_bytes: vec![LOG_BYTES] };
        let source = JobStream::new(&job, &layout).map_err(|e| IoError::usage(e.to_string()))?;
        Ok(JobPlan { job, source: Box::new(source), places: vec![self.log.clone()] })
    }

    fn say(&mut self, part: Part, job: &Job) {
        let in_flight = u64::from(job.depth) * u64::from(job.threads);
        let rate = job.rate.map_or(0.0, |rate| rate.iops);
        let share = 1.0 - job.read_percent / 100.0;
        let what = title::of(part, share, Bytes(job.block.largest()), rate, in_flight);
        self.exam.progress.next(&what);
    }
}

/// `50` or `12.5`.
fn percent(share: f64) -> String {
    format!("{:.3}", share * 100.0).trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_with_all_its_points_takes_its_time_at_most() {
        for mode in [Mode::MAP, Mode::MAP_QUICK] {
            let (extent, plan) = (Extent::of(mode), super::super::plan::of_map(mode, None));
            let whole = extent.expected_ns() + plan.layout_ns + plan.watch_ns;
            assert!(whole <= mode.budget_ns, "{mode:?}: {whole}");
            assert!(whole * 2 >= mode.budget_ns, "{mode:?} wastes time: {whole}");
        }
    }

    #[test]
    fn shares_are_named_without_zeros_at_their_end() {
        assert_eq!([0.0, 0.5, 0.125, 1.0, 0.1].map(percent), ["0", "50", "12.5", "100", "10"]);
    }
}
