//! Writes until the rate has fallen or the time is up, what the fall is about, and the same again after an idle time.

use std::time::{Duration, Instant};

use weir_core::result::record::Class;
use weir_core::units::{Nanos, per_second};
use weir_core::workload::Job;
use weir_core::workload::spec::{Access, BlockSize, Distribution};
use weir_io::IoError;
use weir_io::runner::{Observer, Stop, Tick};
use weir_verdict::notes::StepKind;
use weir_verdict::sustained::course::{self, Done};
use weir_verdict::sustained::fall::{self, Fall, LONG};
use weir_verdict::sustained::{Endurance, Kind, LimitUnit, Part, Pressure, Stretch, SustainedNotes};

use super::examine::Examination;
use super::jobs;
use super::progress::Steps;

/// Twice the slice of time by which the kernel keeps a limit, a tenth of a second (block/blk-throttle.c): else rates
/// alternate.
const TICK_NS: u64 = 200_000_000;
const SECOND: u64 = 1_000_000_000;
/// Shares of a pressure's time: writing until it falls, the run after the idle time, the idle time at most.
const DRAIN_SHARE: f64 = 0.6;
const AGAIN_SHARE: f64 = 0.2;
const IDLE_SHARE: f64 = 0.12;
/// Writing this long shows the rate of a bucket whose credit is spent.
const SPENT_NS: u64 = 12 * SECOND;
/// The time in which all steps have their full length.
const FULL_NS: f64 = 60e9;
/// Seconds of burst that the idle time should bring back: enough to be seen in intervals of a fifth of a second.
const WANTED_BURST_S: f64 = 3.0;
/// Idle time where nothing is known of a burst.
const IDLE_UNKNOWN_S: f64 = 8.0;

/// Steps that the progress line expects: each kind of writes has four runs and an idle time.
pub const STEPS: usize = 10;

/// Runs both kinds of writes, as far as the time allows. The test file was begun at `zero`.
pub fn run(exam: &mut Examination<'_>, zero: Instant) -> Result<(), IoError> {
    let layout_ns = exam.jobs.first().map_or(0, |job| job.elapsed_ns);
    exam.notes.sustained = Some(SustainedNotes {
        stretches: vec![Stretch { start_ns: 0, end_ns: layout_ns }],
        counters_before: exam.host.device_counters(&exam.target),
        ..SustainedNotes::default()
    });
    for (index, pressure) in Pressure::ALL.into_iter().enumerate() {
        let left = exam.deadline.saturating_duration_since(Instant::now());
        let share_ns = left.as_nanos() as u64 / (Pressure::ALL.len() - index) as u64;
        if exam.stopped() {
            break;
        }
        let drain_ns = if is_spent(exam) { SPENT_NS } else { (share_ns as f64 * DRAIN_SHARE) as u64 };
        if let Err(error) = (Course { exam, pressure, share_ns, drain_ns, zero }).run() {
            exam.skip(&format!("sustained-{}", pressure.name()), &error.to_string());
        }
    }
    let after = exam.host.device_counters(&exam.target);
    if let Some(notes) = &mut exam.notes.sustained {
        notes.counters_after = after;
    }
    Ok(())
}

/// Whether small writes have spent a credit of bytes: then large ones begin without any.
fn is_spent(exam: &Examination<'_>) -> bool {
    let found = weir_verdict::endurance::derive(&exam.notes, &exam.jobs);
    let of_bytes = |one: &Endurance| one.kind == Kind::TokenBucket && one.unit == Some(LimitUnit::Bytes);
    found.is_some_and(|found| found.pressures.iter().any(of_bytes))
}

/// The steps of one kind of writes.
struct Course<'a, 'b> {
    exam: &'a mut Examination<'b>,
    pressure: Pressure,
    share_ns: u64,
    drain_ns: u64,
    zero: Instant,
}

impl Course<'_, '_> {
    fn run(&mut self) -> Result<(), IoError> {
        let (block, other) = self.pressure.blocks();
        let scale = (self.share_ns as f64 / FULL_NS).clamp(0.3, 1.0);
        let length = |seconds: f64| (seconds * scale * 1e9) as u64;
        self.step(
            Part::Drain,
            block,
            self.drain_ns.min(self.share_ns),
            Until::Fallen { at_least_ns: length(5.0) },
        )?;
        self.step(Part::Other, other, length(4.0), Until::Over)?;
        self.step(Part::Reads, block, length(3.0), Until::Over)?;
        if self.exam.stopped() {
            return Ok(());
        }
        let (fall, low) = self.seen();
        let idle = Duration::from_secs_f64(self.idle_s(fall.as_ref()));
        self.exam
            .progress
            .next(&format!("idle for {}: does credit come back?", Nanos(idle.as_nanos() as u64)));
        if !self.exam.wait(idle) {
            return Ok(());
        }
        let until = Until::Back {
            low,
            burst: fall.map(|fall| fall.before),
            at_least_ns: length(3.0).max(SECOND * 3 / 2),
        };
        self.step(Part::Again, block, ((self.share_ns as f64 * AGAIN_SHARE) as u64).max(6 * SECOND), until)
    }

    /// The fall of the drain, and the rate after it or throughout.
    fn seen(&self) -> (Option<Fall>, f64) {
        let kind = StepKind::Sustained(self.pressure, Part::Drain);
        let index = self.exam.notes.steps.iter().position(|step| step.kind == kind);
        let Some(job) = index.and_then(|index| self.exam.jobs.get(index)) else { return (None, 0.0) };
        let course = course::of_record(job);
        let fall = fall::find(&course, &LONG);
        let low = fall.map_or_else(|| course::median(&course::rates(&course)), |fall| fall.after);
        (fall, low)
    }

    /// Long enough for a burst that is well seen, and too short for the credit to be full again.
    fn idle_s(&self, fall: Option<&Fall>) -> f64 {
        let most = (self.share_ns as f64 * IDLE_SHARE / 1e9).clamp(2.0, 60.0);
        let Some(fall) = fall.filter(|fall| fall.after > 0.0) else { return IDLE_UNKNOWN_S.min(most) };
        let wanted = WANTED_BURST_S * (fall.before - fall.after) / fall.after;
        let credit = (fall.before - fall.after) * fall.at_ns as f64 / 1e9;
        wanted.min(credit / fall.after * 0.6).clamp(2.0, most)
    }

    /// Runs one step, if its time is left, and notes when its measured part began and ended.
    fn step(&mut self, part: Part, block: u64, longest_ns: u64, until: Until) -> Result<(), IoError> {
        let left = self.exam.deadline.saturating_duration_since(Instant::now()).as_nanos() as u64;
        let longest_ns = longest_ns.min(left);
        if self.exam.stopped() || longest_ns < SECOND / 2 {
            return Ok(());
        }
        let id = format!("sustained-{}{}", self.pressure.name(), part.suffix());
        let job = self.job(part, block, longest_ns);
        self.exam.progress.next(&title(self.pressure, part, block));
        let own = self.exam.stop.of_one_run();
        let mut progress = std::mem::replace(&mut self.exam.progress, Steps::new(0, Duration::ZERO));
        let mut watch = Watch {
            progress: &mut progress,
            own: own.clone(),
            until,
            seen: Vec::new(),
            fall: None,
            began: None,
        };
        let kind = StepKind::Sustained(self.pressure, part);
        let result =
            self.exam.measure_until(&id, kind, Job { name: id.clone(), ..job }, &mut watch, TICK_NS, &own);
        let began = watch.began;
        self.exam.progress = progress;
        result?;
        self.note(began);
        Ok(())
    }

    fn job(&self, part: Part, block: u64, longest_ns: u64) -> Job {
        let exam = &self.exam;
        let (file, size, engine) = (exam.file.path(), exam.file_size, exam.engine());
        let base = jobs::saturating(file, size, engine, self.pressure, longest_ns);
        let access = match self.pressure {
            Pressure::Small => Access::Random(Distribution::Uniform),
            Pressure::Bulk => Access::Sequential,
        };
        Job {
            access,
            read_percent: if part == Part::Reads { 100.0 } else { 0.0 },
            block: BlockSize::Fixed(weir_core::units::Bytes(block)),
            ..base
        }
    }

    fn note(&mut self, began: Option<Instant>) {
        let elapsed_ns = self.exam.jobs.last().map_or(0, |job| job.elapsed_ns);
        let began = began.unwrap_or_else(Instant::now);
        let start_ns = began.saturating_duration_since(self.zero).as_nanos() as u64;
        let steps = self.exam.notes.steps.len();
        if let Some(notes) = &mut self.exam.notes.sustained {
            // In the order of the jobs, whatever else was noted before.
            notes.stretches.resize(steps.saturating_sub(1), Stretch::default());
            notes.stretches.push(Stretch { start_ns, end_ns: start_ns + elapsed_ns });
        }
    }
}

fn title(pressure: Pressure, part: Part, block: u64) -> String {
    let block = weir_core::units::Bytes(block);
    match (part, pressure) {
        (Part::Drain, Pressure::Small) => format!("random writes {block} until the rate has fallen"),
        (Part::Drain, Pressure::Bulk) => format!("sequential writes {block} until the rate has fallen"),
        (Part::Other, _) => format!("writes {block}: operations or bytes?"),
        (Part::Reads, _) => format!("reads {block}: are they limited, too?"),
        (Part::Again, _) => format!("writes {block} after the idle time"),
    }
}

/// When a step may end before its time.
#[derive(Debug, Clone, Copy)]
enum Until {
    /// Not.
    Over,
    /// When the rate has fallen and has stayed so for this long.
    Fallen { at_least_ns: u64 },
    /// When it is back at the low rate for this long.
    Back { low: f64, burst: Option<f64>, at_least_ns: u64 },
}

/// Watches a step, tells how it fares, and ends it when nothing more is to be seen.
struct Watch<'a> {
    progress: &'a mut Steps,
    own: Stop,
    until: Until,
    seen: Vec<Done>,
    /// The fall in it, when it was last looked for.
    fall: Option<Fall>,
    began: Option<Instant>,
}

impl Watch<'_> {
    fn enough(&self) -> bool {
        match self.until {
            Until::Over => false,
            Until::Fallen { at_least_ns } => self.fall.is_some_and(|fall| {
                // A level that is measured for a quarter of the burst's time is known well enough for the credit.
                let after_ns = course::seconds(&self.seen[fall.at..]) * 1e9;
                after_ns >= (at_least_ns as f64).max(fall.at_ns as f64 * 0.25).min(20e9)
            }),
            Until::Back { low, burst, at_least_ns } => {
                let high = burst.unwrap_or(low * 1.3).max(low * 1.3);
                let rates = course::rates(&self.seen);
                let is_low = |rate: &&f64| **rate < (high * low).sqrt();
                let at_end = rates.iter().rev().take_while(is_low).count() as u64;
                at_end * TICK_NS >= at_least_ns
            }
        }
    }
}

impl Observer for Watch<'_> {
    fn tick(&mut self, tick: &Tick<'_>) {
        let interval = tick.interval;
        let class = if tick.job.writes() { Class::Write } else { Class::Read };
        let operations = interval.classes.get(&class).map_or(0, |done| done.count);
        let ago = Duration::from_nanos(tick.at_ns.max(0) as u64);
        let begun = || Instant::now().checked_sub(ago).unwrap_or_else(Instant::now);
        self.began.get_or_insert_with(begun);
        let done = Done { start_ns: interval.start_ns, len_ns: interval.len_ns, operations, p50_ns: 0 };
        let fell = self.fall.map_or(String::new(), |fall| {
            format!(", after {} fell from {}/s", Nanos(fall.at_ns), per_second(fall.before))
        });
        self.progress.detail(&format!(": {}/s{fell}", per_second(done.rate())));
        // What is left after the last tick is no interval.
        if done.len_ns * 2 >= TICK_NS {
            self.seen.push(done);
        }
        // Looking takes as long as what was seen: hours are looked at less often, so that the load has the processor.
        if self.seen.len().is_multiple_of((self.seen.len() / 64).max(4)) {
            self.fall = fall::find(&self.seen, &LONG);
            if self.enough() {
                self.own.request(1);
            }
        }
    }
}
