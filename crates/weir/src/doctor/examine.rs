//! Carries out the plan: writes the test file, runs each step, stops curves that have saturated, and keeps what was
//! measured whatever happens.

use std::time::{Duration, Instant};

use weir_core::result::record::{Class, FloodRecord, JobRecord};
use weir_core::target::TargetFacts;
use weir_core::units::Bytes;
use weir_core::workload::spec::EngineKind;
use weir_core::workload::stream::Layout;
use weir_core::workload::{Job, stream::JobStream};
use weir_fs::Dir;
use weir_host::Host;
use weir_io::IoError;
use weir_io::error::Fault;
use weir_io::place::Place;
use weir_io::runner::{JobPlan, Observer, RunOptions, Stop, pause, run};
use weir_verdict::notes::{DoctorNotes, Skipped, StepKind, StepNote};
use weir_verdict::view::threads as threads_of;

use super::jobs;
use super::plan::{Plan, Step, What};
use super::progress::Steps;
use crate::session;
use crate::stages::StageWatch;

/// Engines for depth, best first.
const ENGINES: [EngineKind; 3] = [EngineKind::IoUring, EngineKind::Libaio, EngineKind::Psync];
/// Intervals short enough for a confidence interval within a short step.
const TICK_NS: u64 = 250_000_000;
/// A doubling of depth that gains less than this, twice in a row, ends a curve, but not before this depth: noise can
/// look flat.
const GAIN_WORTH_GOING_ON: f64 = 1.04;
const DEPTH_LEAST: u32 = 8;

/// An examination under way.
pub struct Examination<'a> {
    /// This machine.
    pub host: Host,
    /// What is examined.
    pub target: TargetFacts,
    /// The folder that is ours.
    pub folder: &'a Dir,
    /// The test file.
    pub file: Place,
    /// Its size as written.
    pub file_size: Bytes,
    /// Ends everything early.
    pub stop: &'a Stop,
    /// What is shown meanwhile.
    pub progress: Steps,
    /// What was measured, in the order of the notes' steps.
    pub jobs: Vec<JobRecord>,
    /// Floods that ran.
    pub floods: Vec<FloodRecord>,
    /// The doctor's notes.
    pub notes: DoctorNotes,
    /// When it must be over.
    pub deadline: Instant,
    /// Stages of the target's I/O.
    pub stages: StageWatch,
    engine: Option<EngineKind>,
    direct_refused: Option<String>,
}

impl<'a> Examination<'a> {
    /// Nothing measured yet.
    pub fn new(
        host: Host,
        target: TargetFacts,
        folder: &'a Dir,
        stop: &'a Stop,
        progress: Steps,
    ) -> Result<Self, IoError> {
        let stages = StageWatch::begin(&target, false);
        let path = folder.path().join("test");
        let file = folder.create_new("test", 0o600).map_err(|e| IoError::io("cannot create", &path, e))?;
        Ok(Examination {
            host,
            target,
            file: Place::of(file, &path),
            folder,
            file_size: Bytes(0),
            stop,
            progress,
            jobs: Vec::new(),
            floods: Vec::new(),
            notes: DoctorNotes::default(),
            deadline: Instant::now(),
            stages,
            engine: None,
            direct_refused: None,
        })
    }

    /// From now on, stages are watched too, where that is wanted and possible.
    pub fn watch_stages(&mut self, wanted: bool) {
        self.stages = StageWatch::begin(&self.target, wanted);
    }

    /// The engine that wrote the test file, or the simplest.
    pub fn engine(&self) -> EngineKind {
        self.engine.unwrap_or(EngineKind::Psync)
    }

    /// Why there is no O_DIRECT here, where there is none.
    pub fn direct_refused(&self) -> Option<String> {
        self.direct_refused.clone()
    }

    /// Whether the user has asked to end.
    pub fn stopped(&self) -> bool {
        self.stop.requested().is_some()
    }

    /// Writes the test file and runs all steps before the flood, keeping `reserve_ns` for what comes after them.
    pub fn run_steps(&mut self, plan: &Plan, reserve_ns: u64) -> Result<(), IoError> {
        self.lay_out(plan)?;
        let mut curve = CurveWatch::default();
        for step in &plan.steps {
            if self.stopped() {
                break;
            }
            if let Some(why) = self.reason_to_skip(step, reserve_ns) {
                self.progress.drop_steps(1);
                self.skip(&name(&step.what), &why);
            } else if curve.has_ended(&step.what) {
                self.progress.drop_steps(1);
            } else {
                self.run_step(step, &mut curve)?;
            }
        }
        Ok(())
    }

    fn reason_to_skip(&self, step: &Step, reserve_ns: u64) -> Option<String> {
        let needs_direct =
            !matches!(step.what, What::Commit { path: weir_verdict::notes::SyncPath::Buffered, .. });
        if let Some(why) = self.direct_refused.as_ref().filter(|_| needs_direct) {
            return Some(why.clone());
        }
        let left_ns = self.deadline.saturating_duration_since(Instant::now()).as_nanos() as u64;
        // A step that is not optional may eat into the reserve: the flood gets shorter then.
        let reserve_ns = if step.optional { reserve_ns } else { reserve_ns / 2 };
        (left_ns < step.duration_ns + reserve_ns).then(|| "the time was up".to_string())
    }

    /// Notes a step that is left out; the steps of a curve share one note.
    pub fn skip(&mut self, what: &str, why: &str) {
        let skipped = Skipped { what: what.to_string(), why: why.to_string() };
        if !self.notes.skipped.contains(&skipped) {
            self.notes.skipped.push(skipped);
        }
    }

    /// Writes the file once, sequentially: a measurement in itself. Then cuts it to what was written, so that no
    /// later read hits a hole.
    fn lay_out(&mut self, plan: &Plan) -> Result<(), IoError> {
        self.progress.next(&format!("writing the test file of {}", plan.file_size));
        let file = self.file.clone();
        let failed = |what: &str, error| IoError::io(what, file.path(), error);
        file.held().set_len(plan.file_size.0).map_err(|e| failed("cannot size", e))?;
        self.file_size = plan.file_size;
        for engine in ENGINES {
            let job = jobs::layout(self.file.path(), plan.file_size, engine, plan.layout_ns);
            match self.measure("layout-1m", StepKind::Layout, job, None, TICK_NS) {
                Ok(()) => {
                    self.engine = Some(engine);
                    break;
                }
                Err(error) => self.refused_engine(engine, &error),
            }
        }
        if let Some(error) = self.jobs.last().and_then(|job| job.error.clone()) {
            let what = format!("the test file could not be written: {error}");
            return Err(IoError { fault: Fault::Io, what, hint: None, cause: None });
        }
        let written = match self.engine {
            Some(_) => self.written(),
            None => self.lay_out_buffered(plan)?,
        };
        self.file_size = Bytes(written);
        self.notes.file_size = self.file_size;
        if written < 16 << 20 && !self.stopped() {
            return Err(IoError::environment(format!(
                "only {} of the test file could be written in {} s",
                Bytes(written),
                plan.layout_ns / 1_000_000_000
            ))
            .hint("give it more time: --thorough"));
        }
        file.held().set_len(written).map_err(|e| failed("cannot cut", e))?;
        file.held().sync_all().map_err(|e| failed("cannot sync", e))
    }

    /// What the layout surely wrote: all of it, or less by what may have been in flight at the end.
    fn written(&self) -> u64 {
        let bytes = self.jobs.last().and_then(|j| j.classes.get(&Class::Write)).map_or(0, |c| c.bytes);
        if bytes >= self.file_size.0 >> 20 << 20 {
            return bytes;
        }
        bytes.saturating_sub(16 << 20) >> 20 << 20
    }

    fn refused_engine(&mut self, engine: EngineKind, error: &IoError) {
        self.skip(&format!("engine {}", engine.name()), &error.to_string());
        if engine == EngineKind::Psync {
            self.direct_refused = Some(format!("O_DIRECT is not possible here: {error}"));
        }
    }

    /// Without O_DIRECT the file is written through the page cache, and the depth curves are left out.
    fn lay_out_buffered(&mut self, plan: &Plan) -> Result<u64, IoError> {
        let size = plan.file_size.0.min(512 << 20);
        let data = weir_core::workload::spec::Data::Random;
        weir_io::files::fill(&self.file, 0, size, data, false, self.stop, &mut |_| {})?;
        Ok(size)
    }

    fn run_step(&mut self, step: &Step, curve: &mut CurveWatch) -> Result<(), IoError> {
        let engine = self.engine();
        let (id, kind, job) =
            jobs::of_step(&step.what, self.file.path(), self.file_size, engine, step.duration_ns);
        self.progress.next(&describe(&step.what));
        if let Err(error) = self.measure(&id, kind, job, None, TICK_NS) {
            self.skip(&id, &error.to_string());
            return Ok(());
        }
        if let Some((skipped, why)) = curve.saw(&step.what, self.last_iops()) {
            self.skip(&skipped, &why);
        }
        Ok(())
    }

    fn last_iops(&self) -> f64 {
        let Some(job) = self.jobs.last() else { return 0.0 };
        let count: u64 = job.classes.values().map(|c| c.latency.count()).sum();
        count as f64 * 1e9 / job.elapsed_ns.max(1) as f64
    }

    /// Bytes per second of direct sequential writes, the last time they were measured.
    pub fn bulk_write_rate(&self) -> Option<f64> {
        let is_bulk = |step: &StepNote| matches!(step.kind, StepKind::Layout | StepKind::SequentialWrite);
        let mut steps = self.notes.steps.iter().zip(&self.jobs).filter(|(step, _)| is_bulk(step));
        let (_, job) = steps.next_back()?;
        Some(job.classes.get(&Class::Write)?.bytes as f64 * 1e9 / job.elapsed_ns.max(1) as f64)
    }

    /// Runs one job and keeps its record under a name.
    pub fn measure(
        &mut self,
        id: &str,
        kind: StepKind,
        job: Job,
        observer: Option<&mut dyn Observer>,
        tick_ns: u64,
    ) -> Result<(), IoError> {
        let plan = self.plan(job)?;
        self.measure_plans(&[(id, kind)], vec![plan], observer, tick_ns)
    }

    /// The same, ended by a request of its own.
    pub fn measure_until(
        &mut self,
        id: &str,
        kind: StepKind,
        job: Job,
        observer: &mut dyn Observer,
        tick_ns: u64,
        stop: &Stop,
    ) -> Result<(), IoError> {
        let plan = self.plan(job)?;
        self.measure_and_note(&[(id, kind)], vec![plan], Some(observer), tick_ns, stop)
    }

    /// A job on the test file, ready to run.
    pub fn plan(&self, job: Job) -> Result<JobPlan, IoError> {
        // Each step has its own offsets: a cache must not learn them from the step before.
        let job = Job { seed: self.jobs.len() as u64 + 1, ..job };
        let layout = Layout { file_bytes: vec![self.file_size.0] };
        let source = JobStream::new(&job, &layout).map_err(|e| IoError::usage(e.to_string()))?;
        Ok(JobPlan { job, source: Box::new(source), places: vec![self.file.clone()] })
    }

    /// Runs jobs side by side and keeps their records, each under its name.
    pub fn measure_plans(
        &mut self,
        named: &[(&str, StepKind)],
        plans: Vec<JobPlan>,
        observer: Option<&mut dyn Observer>,
        tick_ns: u64,
    ) -> Result<(), IoError> {
        let stop = self.stop;
        self.measure_and_note(named, plans, observer, tick_ns, stop)
    }

    fn measure_and_note(
        &mut self,
        named: &[(&str, StepKind)],
        plans: Vec<JobPlan>,
        observer: Option<&mut dyn Observer>,
        tick_ns: u64,
        stop: &Stop,
    ) -> Result<(), IoError> {
        let options = RunOptions { tick_ns, ..session::run_options() };
        self.stages.step();
        let before = self.host.sample(&self.target);
        let records = match observer {
            Some(observer) => run(plans, &options, observer, stop)?,
            None => run(plans, &options, &mut self.progress, stop)?,
        };
        let load = self.host.sample(&self.target).since(&before);
        let stages = self.stages.taken();
        let device = self.target.device.as_ref().and_then(|name| load.devices.get(name));
        let utilization = device.map(|d| d.util_percent / 100.0);
        let (copies, writes_above) = (load.copies(&self.target), load.writes_above(&self.target));
        for ((id, kind), record) in named.iter().zip(records) {
            self.notes.steps.push(StepNote {
                id: id.to_string(),
                kind: *kind,
                utilization,
                stages: stages.clone(),
                copies,
                writes_above,
            });
            self.jobs.push(record);
        }
        Ok(())
    }

    /// Sleeps, but wakes when the user asks to end. `false`: asked.
    pub fn wait(&self, time: Duration) -> bool {
        pause(self.stop, time)
    }
}

/// Follows the curve that is being measured, to stop it once it has clearly saturated.
#[derive(Default)]
struct CurveWatch {
    curve: Option<String>,
    last_iops: f64,
    flat: u32,
    ended: bool,
}

impl CurveWatch {
    /// Notes a depth's rate; says what need not be measured any more, and why.
    fn saw(&mut self, what: &What, iops: f64) -> Option<(String, String)> {
        let (name, depth) = curve_of(what)?;
        if self.curve.as_ref() != Some(&name) {
            *self = CurveWatch { curve: Some(name), last_iops: iops, flat: 0, ended: false };
            return None;
        }
        self.flat = if iops < self.last_iops * GAIN_WORTH_GOING_ON { self.flat + 1 } else { 0 };
        self.last_iops = self.last_iops.max(iops);
        self.ended = self.flat >= 2 && depth >= DEPTH_LEAST;
        self.ended.then(|| (format!("{name} beyond {depth} in flight"), "the curve is flat".to_string()))
    }

    fn has_ended(&self, what: &What) -> bool {
        self.ended && curve_of(what).is_some_and(|(name, _)| self.curve.as_ref() == Some(&name))
    }
}

fn curve_of(what: &What) -> Option<(String, u32)> {
    match what {
        What::Read(depth) => Some(("read-4k".to_string(), *depth)),
        What::Write(depth, block) => Some((format!("write-{}k", block >> 10), *depth)),
        _ => None,
    }
}

/// The name of a step in a note: a curve as a whole, anything else by itself.
fn name(what: &What) -> String {
    curve_of(what).map_or_else(|| describe(what), |(curve, _)| format!("{curve}, some depths"))
}

fn describe(what: &What) -> String {
    match what {
        What::Read(depth) => format!("random reads 4 KiB, {depth} in flight"),
        What::Write(depth, block) => format!("random writes {}, {depth} in flight", Bytes(*block)),
        What::Commit { path, block, threads } => {
            format!("commits {} ({}), {}", Bytes(*block), path.title(), threads_of(*threads))
        }
        What::BulkRead => "sequential reads".to_string(),
        What::BulkWrite => "sequential writes".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_after_two_flat_doublings_and_the_next_begins_afresh() {
        let mut watch = CurveWatch::default();
        let rates = [(1, 100.0, false), (2, 100.0, false), (4, 100.0, false), (8, 400.0, false)];
        for (depth, iops, ended) in rates.into_iter().chain([(16, 401.0, false), (32, 399.0, true)]) {
            assert_eq!(watch.saw(&What::Read(depth), iops).is_some(), ended, "{depth}");
        }
        assert!(watch.has_ended(&What::Read(64)) && !watch.has_ended(&What::Write(1, 4096)));
        assert!(watch.saw(&What::Write(1, 4096), 5.0).is_none());
        assert!(!watch.has_ended(&What::Write(2, 4096)) && !watch.has_ended(&What::BulkRead));
    }
}
