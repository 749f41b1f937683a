//! The execution of an experiment: the design proposes, a trial is made, the design is told, and the record is saved,
//! until the design has enough, the time is up, or the user asks to end.

use std::time::{Duration, Instant};

use weir_core::result::Record;
use weir_core::units::Nanos;
use weir_experiment::{
    Arm, Counted, Design, Experiment, Observation, Outcome, Proposal, TrialLog, Workload, study,
};
use weir_io::runner::{Stop, pause};

use super::trial::{JobFigures, Lab, Made};
use crate::failure::Lacking;
use crate::store::Store;

/// Where none of the first trials could be made, the rest cannot either.
const FAILURES_MAX: usize = 3;
/// A server that a trial has brought down may come back by itself within this time.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);
/// The design that tells what submitting costs from what an operation takes. It has io_uring submit in calls of their
/// own, which is not what a comparison of anything else is about.
const TIMES_SUBMITS: &str = "ladder";
/// Why a record has ended early while its experiment goes on: all that a kill leaves.
pub const UNFINISHED: &str = "not finished";

/// An experiment under way.
pub struct Execution<'a> {
    /// Where trials are made.
    pub lab: Lab<'a>,
    /// What to try next.
    pub design: Box<dyn Design>,
    /// The log so far.
    pub experiment: Experiment,
    /// The record so far, without the log.
    pub record: Record,
    /// Where it is saved.
    pub store: Option<Store>,
    /// Ends it.
    pub stop: &'a Stop,
    figures: JobFigures,
    begun: Instant,
    before: Duration,
}

impl<'a> Execution<'a> {
    /// Ready for the next trial.
    pub fn new(
        lab: Lab<'a>,
        design: Box<dyn Design>,
        experiment: Experiment,
        record: Record,
        stop: &'a Stop,
    ) -> Self {
        let before = experiment.trials.last().map_or(0, |trial| trial.start_ns + trial.took_ns);
        let figures = JobFigures {
            time_submits: experiment.design == TIMES_SUBMITS && design.arms().iter().any(queues),
            counted: experiment.counted.unwrap_or_else(|| Counted::of(design.arms())),
        };
        Execution {
            figures,
            store: open_store(),
            lab,
            design,
            experiment,
            record,
            stop,
            begun: Instant::now(),
            before: Duration::from_nanos(before),
        }
    }

    /// Makes trials until there is no next one. The record has what was measured, whatever ends it.
    pub fn run(&mut self) -> anyhow::Result<()> {
        while self.stop.requested().is_none() {
            let left_ns = self.left_ns();
            let Some(proposal) = self.design.propose(left_ns) else { break };
            let Some(arm) = self.design.arms().get(proposal.arm).cloned() else { break };
            if !self.fits(&arm, &proposal, left_ns) {
                break;
            }
            self.announce(&arm, proposal.duration_ns, left_ns);
            let start_ns = self.spent().as_nanos() as u64;
            let number = self.experiment.trials.len() as u64;
            let made = self.lab.trial(&arm, &proposal, number, self.figures);
            if self.stop.requested().is_some() {
                break;
            }
            self.refuse_without_guard(&made)?;
            self.refuse_without_server(&arm, &made)?;
            if self.stop.requested().is_some() {
                break;
            }
            self.keep(proposal, made, left_ns, start_ns);
            self.save(Some(UNFINISHED.to_string()));
            self.refuse_to_go_on()?;
        }
        self.lab.progress.clear();
        Ok(())
    }

    fn spent(&self) -> Duration {
        self.before + self.begun.elapsed()
    }

    fn left_ns(&self) -> u64 {
        self.experiment.budget_ns.saturating_sub(self.spent().as_nanos() as u64)
    }

    /// A trial that would overrun the budget is not begun.
    fn fits(&mut self, arm: &Arm, proposal: &Proposal, left_ns: u64) -> bool {
        let fits = self.lab.expected_ns(arm, proposal.duration_ns).0 <= left_ns;
        if !fits {
            let budget = Nanos(self.experiment.budget_ns);
            let remark = format!("The time of {budget} was up before all trials were made.");
            self.experiment.remarks.push(remark);
        }
        fits
    }

    fn announce(&mut self, arm: &Arm, duration_ns: u64, left_ns: u64) {
        let made = self.experiment.trials.len();
        let first_ns = self.lab.expected_ns(arm, duration_ns).0;
        let coming = self.design.remaining().max(1);
        let mean_ns = (self.spent().as_nanos() as u64).checked_div(made as u64).unwrap_or(first_ns);
        let expected_ns = (coming as u64).saturating_mul(mean_ns);
        let left = Duration::from_nanos(expected_ns.min(left_ns));
        self.lab.progress.trial(made + 1, made + coming, left, &arm.label);
    }

    fn keep(&mut self, proposal: Proposal, made: Made, left_ns: u64, start_ns: u64) {
        self.say_what_went_wrong(&made);
        let job = made.job.map(|job| {
            self.record.jobs.push(job);
            self.record.jobs.len() - 1
        });
        self.record.floods.extend(made.floods);
        let observation = Observation { proposal, outcome: made.outcome };
        self.design.observe(&observation);
        self.experiment.trials.push(TrialLog {
            left_ns,
            start_ns: start_ns + made.washout.took_ns,
            took_ns: made.took_ns,
            washout: made.washout,
            observation,
            job,
            transactions: made.transactions,
            stages: made.stages,
            remarks: made.remarks,
        });
    }

    fn say_what_went_wrong(&mut self, made: &Made) {
        if let Outcome::Aborted { why, .. } | Outcome::Failed { why } = &made.outcome {
            self.lab.progress.say(&format!("this trial counts as the worst: {why}"));
        }
        for remark in &made.remarks {
            self.lab.progress.say(&format!("note: {remark}"));
        }
    }

    /// Saves the record durably. `ended_early`: why it holds less than was planned.
    pub fn save(&mut self, ended_early: Option<String>) -> Option<std::path::PathBuf> {
        self.record.ended_early = ended_early;
        match self.store.as_ref()?.save(&self.record.with_extra(&self.experiment)) {
            Ok(path) => Some(path),
            Err(error) => {
                self.lab.progress.say(&format!("warning: this experiment is not kept: {error:#}"));
                self.store = None;
                None
            }
        }
    }

    /// Ends an experiment whose guard does not start: such a trial says nothing of what a guard does.
    fn refuse_without_guard(&mut self, made: &Made) -> anyhow::Result<()> {
        let Some(error) = &made.unguarded else { return Ok(()) };
        self.lab.progress.clear();
        let kept = self.experiment.trials.len();
        let what = format!("the experiment ends after {kept} trials: {error:#}");
        Err(Lacking { what, hint: weir_cli::failure::hint_of(error) }.into())
    }

    /// Ends an experiment whose server has gone: trials that failed for that say nothing of what they tried.
    fn refuse_without_server(&mut self, arm: &Arm, made: &Made) -> anyhow::Result<()> {
        let (Outcome::Failed { .. }, Workload::Transactions(of)) = (&made.outcome, &arm.workload) else {
            return Ok(());
        };
        let until = Instant::now() + SERVER_PATIENCE;
        while let Some(why) = self.lab.unreached(&of.server) {
            if !pause(self.stop, Duration::from_secs(1)) {
                break;
            }
            if Instant::now() >= until {
                self.lab.progress.clear();
                let kept = self.experiment.trials.len();
                let what = format!(
                    "the server cannot be used any more: the experiment ends after {kept} trials: {why}"
                );
                let hint = (!study::is_throw_away(&self.record))
                    .then(|| format!("`weir tune resume {}` continues once it is back", self.record.id));
                return Err(Lacking { what, hint }.into());
            }
        }
        Ok(())
    }

    /// Ends an experiment of which nothing can be measured.
    fn refuse_to_go_on(&mut self) -> anyhow::Result<()> {
        let reasons: Vec<&String> = self.experiment.trials.iter().map_while(|trial| failure(trial)).collect();
        if reasons.len() < FAILURES_MAX || reasons.len() < self.experiment.trials.len() {
            return Ok(());
        }
        let what = format!(
            "none of {} trials could be made; the last: {}",
            reasons.len(),
            reasons[reasons.len() - 1]
        );
        self.lab.progress.clear();
        Err(Lacking { what, hint: Some("try the workload alone first, with weir bench".to_string()) }.into())
    }
}

fn failure(trial: &TrialLog) -> Option<&String> {
    match &trial.observation.outcome {
        Outcome::Failed { why } => Some(why),
        Outcome::Measured(_) | Outcome::Aborted { .. } => None,
    }
}

/// Whether an arm hands operations to the kernel without waiting for them.
fn queues(arm: &Arm) -> bool {
    match &arm.workload {
        Workload::Job(job) => job.engine.is_async(),
        Workload::Transactions(_) | Workload::Command(_) => false,
    }
}

fn open_store() -> Option<Store> {
    match Store::open() {
        Ok(store) => Some(store),
        Err(error) => {
            say!("warning: this experiment is not kept: {error:#}");
            None
        }
    }
}
