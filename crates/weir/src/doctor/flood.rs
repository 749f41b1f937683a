//! Survival under a flood: commits alone, under a bulk writer with the machine's own limits, and, where that is
//! allowed and needed, with the dirty limit lowered for the time of a trial.

use std::time::{Duration, Instant};

use weir_core::target::DirtyLimit;
use weir_core::units::Bytes;
use weir_host::knob::{self, Journal};
use weir_io::IoError;
use weir_io::flood::{Flood, FloodSpec};
use weir_knobs::{KnobName, Setting, Value};
use weir_verdict::doctor::PhaseKind;
use weir_verdict::notes::StepKind;
use weir_verdict::view::{limit, threads as threads_of};

use super::examine::Examination;
use super::jobs;
use super::plan::FloodPlan;
use super::timeline::{Timeline, Watching};
use crate::guard::acting;
use crate::quiet;

const TICK: Duration = Duration::from_millis(500);
/// Commits that keep this share of their idle rate need no rescue.
const NO_RESCUE_NEEDED: f64 = 0.8;
/// A limit's worth of writing: how long the device may take to write what is dirty. 15 MB at 200 MB/s, as the field
/// reports found it.
const LIMIT_SECONDS: f64 = 0.075;
const LIMIT_STEP: u64 = 5_000_000;
/// Shortest run under a lowered limit that shows a rate.
const RESCUE_LEAST_NS: u64 = 2_000_000_000;
/// Room that no flood takes.
const ROOM_LEFT: u64 = 512 << 20;

/// Whether limits may be lowered for a trial; if not, why.
pub type Consent = Result<Quiet, String>;

/// What the trial asks of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quiet {
    /// They must be writing little.
    Needed,
    /// The user has said that they may be throttled.
    Waived,
}

/// The flood and its trial.
pub struct FloodTrial<'e, 'a> {
    exam: &'e mut Examination<'a>,
    plan: FloodPlan,
    size: Bytes,
    timeline: Timeline,
    idle_iops: Vec<f64>,
    flood_iops: Vec<f64>,
}

impl<'e, 'a> FloodTrial<'e, 'a> {
    /// A flood whose file may take so much room.
    pub fn new(exam: &'e mut Examination<'a>, plan: FloodPlan, size: Bytes) -> Self {
        let timeline = Timeline::new(&exam.host, &exam.target);
        FloodTrial { exam, plan, size, timeline, idle_iops: Vec::new(), flood_iops: Vec::new() }
    }

    /// All phases. The examination's notes have afterwards what was seen, also when it ended early.
    pub fn run(mut self, consent: Consent) -> Result<(), IoError> {
        let result = self.phases(consent);
        self.timeline.stop_flood();
        let notes = &mut self.exam.notes.flood;
        notes.phases = std::mem::take(&mut self.timeline.phases);
        notes.samples = std::mem::take(&mut self.timeline.samples);
        self.exam.floods.append(&mut self.timeline.ended);
        result
    }

    fn phases(&mut self, consent: Consent) -> Result<(), IoError> {
        self.note_limits();
        for threads in self.plan.threads.clone() {
            let iops = self.commits(PhaseKind::Idle, threads, None, self.plan.idle_ns)?;
            self.idle_iops.extend(iops);
        }
        for threads in self.plan.threads.clone() {
            if self.exam.stopped() {
                return Ok(());
            }
            self.ensure_flood()?;
            let iops = self.commits(PhaseKind::Flood, threads, None, self.plan.flood_ns)?;
            self.flood_iops.extend(iops);
        }
        self.drain();
        match consent {
            _ if self.exam.stopped() => Ok(()),
            Err(why) => self.remark(format!("No trial of a lower dirty limit: {why}.")),
            Ok(_) if !self.collapsed() => self.no_rescue("commits kept their pace under the bulk writer"),
            Ok(_) if Instant::now() >= self.exam.deadline => self.no_rescue("the time was up"),
            Ok(quiet) => self.rescue(quiet),
        }
    }

    fn no_rescue(&mut self, why: &str) -> Result<(), IoError> {
        self.exam.progress.drop_steps(self.plan.steps_of_rescue());
        self.remark(format!("No trial of a lower dirty limit: {why}."))
    }

    fn remark(&mut self, sentence: String) -> Result<(), IoError> {
        self.exam.notes.flood.remarks.push(sentence);
        Ok(())
    }

    fn collapsed(&self) -> bool {
        let pairs = self.idle_iops.iter().zip(&self.flood_iops);
        pairs.into_iter().any(|(idle, flood)| *flood < idle * NO_RESCUE_NEEDED)
    }

    /// Limits as they are before anything is flooded, and a guard that sets others meanwhile.
    fn note_limits(&mut self) {
        let vm = self.exam.host.conditions(None).vm;
        let notes = &mut self.exam.notes.flood;
        notes.dirty_limit = Bytes(vm.dirty_threshold_bytes.unwrap_or(0));
        notes.background_limit = Bytes(vm.dirty_background_threshold_bytes.unwrap_or(0));
        notes.limits_found = [("vm.dirty", vm.dirty), ("vm.dirty_background", vm.dirty_background)]
            .into_iter()
            .filter_map(|(name, pair)| in_force(name, pair))
            .collect();
        notes.remarks.extend(acting().map(|acting| {
            format!(
                "Before the bulk writer began, {acting}: commits beside it are those under the guard's limits, not \
                 under the kernel's."
            )
        }));
    }

    /// Starts the flood if it does not run, and lets dirty pages build up.
    fn ensure_flood(&mut self) -> Result<(), IoError> {
        if self.timeline.is_flooding() {
            return Ok(());
        }
        self.exam.progress.next("a bulk writer fills the page cache");
        self.note_others_dirty();
        self.start_flood()?;
        self.timeline.begin(PhaseKind::BuildUp, "bulk writer alone".to_string(), 0, None);
        self.build_up();
        self.timeline.end(None);
        Ok(())
    }

    /// Pages that were dirty before the first flood are not its own, and blur what it does.
    fn note_others_dirty(&mut self) {
        let sample = self.timeline.sample(None);
        let dirty = sample.dirty_bytes + sample.writeback_bytes;
        let background = self.exam.notes.flood.background_limit.0;
        if self.flood_iops.is_empty() && background > 0 && dirty > background / 4 {
            self.exam.notes.flood.remarks.push(format!(
                "{} were dirty before the bulk writer began: others write too, and the flood's effect is theirs in part.",
                Bytes(dirty >> 20 << 20)
            ));
        }
    }

    fn start_flood(&mut self) -> Result<(), IoError> {
        let size = self.room_now();
        let spec =
            FloodSpec { size, ..FloodSpec::parse(&format!("dd:size={}", size.0), self.exam.folder.path())? };
        self.timeline.start_flood(Flood::start_in(self.exam.folder, spec)?);
        Ok(())
    }

    /// File systems give the room of a deleted file back late; what is not there after a while, the next flood does
    /// without.
    fn room_now(&mut self) -> Bytes {
        let until = Instant::now() + Duration::from_nanos(self.plan.drain_ns);
        loop {
            let space = self.exam.host.free_space(self.exam.folder.path());
            let there = space.map_or(0, |space| space.free_bytes.saturating_sub(ROOM_LEFT));
            if there >= self.size.0 || Instant::now() >= until || !self.exam.wait(TICK) {
                return Bytes(self.size.0.min(there) >> 20 << 20);
            }
            self.timeline.sample(None);
        }
    }

    /// Until writers begin to be throttled, which is halfway between the two limits (mm/page-writeback.c,
    /// dirty_freerun_ceiling), or the time is up. A third of it passes in any case: write-back has to get under way,
    /// and the device's queue to fill.
    fn build_up(&mut self) {
        let limits = &self.exam.notes.flood;
        let enough = quiet::enough_to_hold_back([limits.dirty_limit.0, limits.background_limit.0]);
        let begun = Instant::now();
        let least = begun + Duration::from_nanos(self.plan.build_up_ns / 3);
        let until = begun + Duration::from_nanos(self.plan.build_up_ns);
        while Instant::now() < until && self.exam.wait(TICK) {
            let sample = self.timeline.sample(None);
            let dirty = sample.dirty_bytes + sample.writeback_bytes;
            self.exam.progress.detail(&format!(": {} dirty", Bytes(dirty >> 20 << 20)));
            if enough > 0 && dirty >= enough && Instant::now() >= least {
                return;
            }
        }
    }

    /// Commits in a phase; their rate, unless nothing could be measured.
    fn commits(
        &mut self,
        kind: PhaseKind,
        threads: u32,
        dirty_bytes: Option<Bytes>,
        duration_ns: u64,
    ) -> Result<Option<f64>, IoError> {
        if self.exam.stopped() {
            return Ok(None);
        }
        let (id, label) = names(kind, threads, dirty_bytes);
        self.exam.progress.next(&format!("commits 16 KiB (write + fsync), {}, {label}", threads_of(threads)));
        let job =
            jobs::beside_flood(&label, self.exam.file.path(), self.exam.file_size, threads, duration_ns);
        self.timeline.begin(kind, label, threads, dirty_bytes);
        let result = self.measure(&id, kind, job);
        self.timeline.end(Some(id));
        result.map(Some)
    }

    fn measure(&mut self, id: &str, kind: PhaseKind, job: weir_core::workload::Job) -> Result<f64, IoError> {
        // The examination lends its progress line for the time of the run.
        let idle_progress = super::progress::Steps::new(0, Duration::ZERO);
        let mut progress = std::mem::replace(&mut self.exam.progress, idle_progress);
        let mut watching = Watching { timeline: &mut self.timeline, progress: &mut progress };
        // Six intervals at least, so that a short phase has a confidence interval too.
        let tick_ns = (TICK.as_nanos() as u64).min(job.duration.0 / 6);
        let result = self.exam.measure(id, StepKind::Flood(kind), job, Some(&mut watching), tick_ns);
        self.exam.progress = progress;
        result?;
        let record = self.exam.jobs.last();
        let commits = record.and_then(|job| job.classes.get(&weir_core::result::record::Class::Commit));
        let elapsed_ns = record.map_or(1, |job| job.elapsed_ns.max(1));
        Ok(commits.map_or(0, |c| c.latency.count()) as f64 * 1e9 / elapsed_ns as f64)
    }

    /// Ends the flood and waits, not for ever, until what it left is written or gone.
    fn drain(&mut self) {
        self.exam.progress.next("waiting for write-back");
        self.timeline.begin(PhaseKind::Drain, "write-back drains".to_string(), 0, None);
        self.timeline.stop_flood();
        let until = self.end_of_wait();
        loop {
            let sample = self.timeline.sample(None);
            let left = sample.dirty_bytes + sample.writeback_bytes;
            // Others' pages may stay above this for ever, hence the time limit.
            if left < 64 << 20 || Instant::now() >= until || !self.exam.wait(TICK) {
                break;
            }
        }
        self.timeline.end(None);
    }

    /// Nothing waits for write-back past the time of the whole examination.
    fn end_of_wait(&self) -> Instant {
        (Instant::now() + Duration::from_nanos(self.plan.drain_ns)).min(self.exam.deadline)
    }

    /// The device's own write rate: what direct writes got, or less if the flood's best seconds stayed below that, as
    /// they do once a write cache is full. Its mean would not do: a flood that fits the page cache hardly writes.
    fn device_rate(&self) -> Option<f64> {
        let under_flood = self.timeline.phases.iter().filter(|p| p.kind == PhaseKind::Flood);
        let within = |at_ns: u64| under_flood.clone().any(|p| at_ns > p.start_ns && at_ns <= p.end_ns);
        let samples = self.timeline.samples.iter().filter(|s| within(s.at_ns));
        let mut rates: Vec<f64> = samples.filter_map(|s| s.device_bytes_per_second).collect();
        rates.sort_by(f64::total_cmp);
        let best = rates.get(rates.len() * 9 / 10).copied();
        let direct = self.exam.bulk_write_rate();
        best.into_iter().chain(direct).filter(|rate| *rate > 1e6).reduce(f64::min)
    }

    fn rescue(&mut self, quiet: Quiet) -> Result<(), IoError> {
        match quiet {
            Quiet::Waived => self.exam.progress.drop_steps(1),
            Quiet::Needed => {
                if let Some(why) = self.wait_for_quiet() {
                    return self.no_rescue(&why);
                }
            }
        }
        let base = self.device_rate().map_or(15_000_000, limit_for);
        let mut limits: Vec<u64> = self.plan.limits.iter().map(|part| rounded(base as f64 * part)).collect();
        limits.dedup();
        // One that is no lower would let the flood take more memory than it may now.
        let in_force = self.exam.notes.flood.dirty_limit;
        limits.retain(|bytes| in_force == Bytes(0) || Bytes(*bytes) < in_force);
        if limits.is_empty() {
            return self.no_rescue(&format!("{in_force} is in force, and no more would be tried"));
        }
        let dropped = self.plan.limits.len() - limits.len();
        self.exam.progress.drop_steps(dropped * self.plan.steps_of_limit());
        self.fit_rescue(limits.len() as u64);
        for bytes in limits {
            if self.exam.stopped() {
                break;
            }
            self.rescue_with(Bytes(bytes))?;
        }
        Ok(())
    }

    /// Shortens the runs to the time that is left, though not below what shows a rate.
    fn fit_rescue(&mut self, limits: u64) {
        let left_ns = self.exam.deadline.saturating_duration_since(Instant::now()).as_nanos() as u64;
        let runs = limits * self.plan.threads.len() as u64;
        let for_runs = left_ns.saturating_sub(limits * self.plan.settle_ns);
        self.plan.rescue_ns = self.plan.rescue_ns.min(for_runs / runs.max(1)).max(RESCUE_LEAST_NS);
    }

    /// Waits for a second in which others hardly write, since a lowered limit would hold them back too. Says why
    /// not, if none comes in the time that write-back may take.
    fn wait_for_quiet(&mut self) -> Option<String> {
        self.exam.progress.next("waiting for a second in which others write little");
        let until = self.end_of_wait();
        loop {
            let why = self.unquiet()?;
            if Instant::now() >= until || self.exam.stopped() {
                return Some(why);
            }
        }
    }

    /// Why others would suffer, if they would.
    fn unquiet(&mut self) -> Option<String> {
        let exam = &*self.exam;
        let why = quiet::unquiet(&exam.host, &exam.target, |time| exam.wait(time));
        self.timeline.sample(None);
        why
    }

    /// One lowered limit: set, flood, commits, flood's end, back.
    fn rescue_with(&mut self, bytes: Bytes) -> Result<(), IoError> {
        let runs = self.plan.threads.len() as u64;
        let seconds = (self.plan.settle_ns + runs * self.plan.rescue_ns) / 1_000_000_000 + 1;
        let found = found_text(&self.exam.notes.flood.limits_found);
        self.exam.progress.say(&format!(
            "setting vm.dirty_bytes = {} (was {found}) for about {seconds} s; a guardian puts it back whatever happens",
            bytes.0
        ));
        let before = self.exam.host.conditions(None).vm.dirty;
        let cap = Setting::new(KnobName::machine("vm.dirty"), Value::Bytes(bytes.0));
        let applied = match knob::trial(&self.exam.host, &Journal::of_root(), &[cap]) {
            Ok(applied) => applied,
            Err(error) => {
                return self.remark(format!("No trial of vm.dirty_bytes = {}: {error}.", limit(bytes)));
            }
        };
        let measured = self.commits_with(bytes);
        self.timeline.stop_flood();
        let restored = applied.restore();
        self.check_restored(before, restored)?;
        self.drain();
        measured
    }

    fn commits_with(&mut self, bytes: Bytes) -> Result<(), IoError> {
        for threads in self.plan.threads.clone() {
            if self.exam.stopped() {
                break;
            }
            if !self.timeline.is_flooding() {
                self.start_flood()?;
                let label = format!("bulk writer alone, vm.dirty_bytes = {}", limit(bytes));
                self.exam.progress.next(&label);
                self.timeline.begin(PhaseKind::BuildUp, label, 0, Some(bytes));
                let until = Instant::now() + Duration::from_nanos(self.plan.settle_ns);
                while Instant::now() < until && self.exam.wait(TICK) {
                    self.timeline.sample(None);
                }
                self.timeline.end(None);
            }
            self.commits(PhaseKind::Rescue, threads, Some(bytes), self.plan.rescue_ns)?;
        }
        Ok(())
    }

    /// A limit that did not come back is said loudly, in the report too.
    fn check_restored(
        &mut self,
        before: DirtyLimit,
        restored: Result<Vec<String>, weir_host::knob::KnobError>,
    ) -> Result<(), IoError> {
        let now = self.exam.host.conditions(None).vm.dirty;
        if let Err(error) = restored {
            self.exam.progress.say(&format!("warning: {error}"));
            self.remark(format!("The dirty limit could not be put back: {error}."))?;
        }
        if now == before {
            self.exam.progress.say("the dirty limit is as it was");
            return Ok(());
        }
        let sentence = format!("The dirty limit is not as weir found it: it was {before:?} and is {now:?}.");
        self.exam.progress.say(&format!("warning: {sentence}"));
        self.remark(sentence)
    }
}

/// The one of a pair that is in force, by its sysctl's name.
fn in_force(name: &str, pair: DirtyLimit) -> Option<(String, u64)> {
    match (pair.bytes.filter(|bytes| *bytes > 0), pair.ratio_percent) {
        (Some(bytes), _) => Some((format!("{name}_bytes"), bytes)),
        (None, Some(ratio)) => Some((format!("{name}_ratio"), ratio)),
        (None, None) => None,
    }
}

fn found_text(limits: &[(String, u64)]) -> String {
    limits.first().map_or("unknown".to_string(), |(name, value)| format!("{name} = {value}"))
}

/// The limit for a device of this rate.
fn limit_for(bytes_per_second: f64) -> u64 {
    rounded(bytes_per_second * LIMIT_SECONDS)
}

fn rounded(bytes: f64) -> u64 {
    ((bytes / LIMIT_STEP as f64).round() as u64).max(1) * LIMIT_STEP
}

/// Id and label of a phase's commits.
fn names(kind: PhaseKind, threads: u32, dirty_bytes: Option<Bytes>) -> (String, String) {
    match (kind, dirty_bytes) {
        (PhaseKind::Idle, _) => (format!("idle-t{threads}"), "no bulk writer".to_string()),
        (_, Some(bytes)) => (
            format!("flood-{}-t{threads}", limit(bytes).replace(' ', "").to_lowercase()),
            format!("bulk writer, vm.dirty_bytes = {}", limit(bytes)),
        ),
        _ => (format!("flood-t{threads}"), "bulk writer, baseline limits".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_devices_rate() {
        for (rate, bytes) in [(200e6, 15_000_000), (1e6, 5_000_000), (2e9, 150_000_000), (251e6, 20_000_000)]
        {
            assert_eq!(limit_for(rate), bytes, "{rate}");
        }
    }

    #[test]
    fn the_limit_in_force_is_named() {
        let pair = |bytes, ratio| DirtyLimit { bytes: Some(bytes), ratio_percent: Some(ratio) };
        assert_eq!(in_force("vm.dirty", pair(0, 20)), Some(("vm.dirty_ratio".into(), 20)));
        assert_eq!(in_force("vm.dirty", pair(4096, 0)), Some(("vm.dirty_bytes".into(), 4096)));
    }
}
