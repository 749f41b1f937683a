//! One trial: a clean start, settings, floods, the workload under watch, and the restoration, which happens however
//! the trial ends.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use weir_blocktrace::StageTable;
use weir_core::result::record::{FloodRecord, JobRecord};
use weir_core::target::TargetFacts;
use weir_core::units::Nanos;
use weir_core::workload::Job;
use weir_core::workload::spec::SyncPolicy;
use weir_db::runner::{self, READY_WITHIN};
use weir_db::{Connection, Server};
use weir_experiment::{
    Arm, CommandSpec, Conduct, Counted, Measures, Outcome, Proposal, Transactions, Washout, Workload, derive,
};
use weir_host::Host;
use weir_io::IoError;
use weir_io::files::Files;
use weir_io::runner::{JobPlan, RunOptions, Stop, pause, run};
use weir_oltp::{OltpRecord, OltpSpec};

use super::beside::{beside, settle};
use super::command::{self, Ended};
use super::guarded::Guarded;
use super::progress::Steps;
use super::scene::{BUILD_UP_LEAST, Scene};
use super::watch::Watch;
use super::{knobs, washout};
use crate::progress::Progress;
use crate::servers::Logins;
use crate::session;
use crate::stages::StageWatch;

/// Intervals of a trial: a second, or so many in a short one, so that it has a course too.
const TICK_MAX_NS: u64 = 1_000_000_000;
const TICKS_LEAST: u64 = 6;
/// How long a guard sees a workload before the flood begins.
const ACQUAINTANCE: Duration = Duration::from_secs(8);
/// A server is looked at for so long before it can count as settled.
const SETTLING_LEAST_NS: u64 = 10_000_000_000;
/// Longest time for a flood to start.
const FLOOD_PATIENCE: Duration = Duration::from_secs(60);
/// What is said of a trial whose latencies are cut short.
const LET_GO: &str =
    "its longest operations ended only because the flood was ended for them: latencies are at least these";

/// Where trials are made.
pub struct Lab<'a> {
    /// This machine.
    pub host: Host,
    /// What is measured.
    pub target: TargetFacts,
    /// What is shown meanwhile.
    pub progress: Steps,
    /// Stages of the target's I/O.
    pub stages: StageWatch,
    /// The test files.
    files: Files,
    /// How trials log in to servers.
    pub logins: Logins,
    conduct: Conduct,
    clean_bytes: u64,
    stop: &'a Stop,
}

/// What is measured of jobs, the same in all trials of an experiment.
#[derive(Clone, Copy)]
pub struct JobFigures {
    /// As the runner's option.
    pub time_submits: bool,
    /// What rates and latencies count.
    pub counted: Counted,
}

/// A trial that was made.
pub struct Made {
    /// The wait before it.
    pub washout: Washout,
    /// The trial without that wait.
    pub took_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its job's record, if it had one.
    pub job: Option<JobRecord>,
    /// Its transactions, if it had any.
    pub transactions: Option<Box<OltpRecord>>,
    /// The floods that ran.
    pub floods: Vec<FloodRecord>,
    /// Stages while it measured.
    pub stages: Option<StageTable>,
    /// What the trial noticed.
    pub remarks: Vec<String>,
    /// Why its guard did not start, if it was to have one.
    pub unguarded: Option<anyhow::Error>,
}

/// What a workload gave.
struct Ran {
    outcome: Outcome,
    job: Option<JobRecord>,
    transactions: Option<Box<OltpRecord>>,
    /// As [`Watch::let_go`].
    let_go: bool,
    /// As [`Made::unguarded`].
    unguarded: Option<anyhow::Error>,
}

impl Ran {
    fn of(outcome: Outcome) -> Ran {
        Ran { outcome, job: None, transactions: None, let_go: false, unguarded: None }
    }

    fn unguarded(error: anyhow::Error) -> Ran {
        Ran { unguarded: Some(error), ..Ran::failed("it had no guard") }
    }

    fn failed(why: impl ToString) -> Ran {
        Ran::of(Outcome::Failed { why: why.to_string() })
    }
}

impl<'a> Lab<'a> {
    /// Looks at the machine as it is before the first trial.
    pub fn new(host: Host, target: TargetFacts, conduct: Conduct, logins: Logins, stop: &'a Stop) -> Lab<'a> {
        Lab {
            clean_bytes: washout::clean_bytes(&host, &target),
            stages: StageWatch::begin(&target, conduct.stages),
            progress: Steps::new(),
            files: Files::default(),
            host,
            target,
            logins,
            conduct,
            stop,
        }
    }

    /// A job over its files, which are made once for all trials.
    pub fn plan(&mut self, job: Job) -> Result<JobPlan, IoError> {
        let mut progress = Progress::new();
        self.files.plan(job, self.stop, &mut |done, all| progress.filling(done, all))
    }

    /// Why a server cannot be used, if it cannot: it does not answer, starts, stops, or refuses to log in.
    pub fn unreached(&self, server: &str) -> Option<String> {
        let servers = match self.logins.named(server) {
            Ok(servers) => servers,
            Err(error) => return Some(error.to_string()),
        };
        let reached = |server: &Server| Connection::open(&server.answering_within(READY_WITHIN));
        servers.iter().find_map(|server| reached(server).err()).map(|error| error.to_string())
    }

    /// What a trial takes at least and at most where nothing is stuck: build-up, warm-up and measuring.
    pub fn expected_ns(&self, arm: &Arm, duration_ns: u64) -> (u64, u64) {
        let most_ns = if arm.floods.is_empty() { 0 } else { self.conduct.build_up_ns };
        let rest_ns = self.conduct.warmup_ns + duration_ns;
        let settling_ns = self.conduct.settle_ns;
        let least_ns = most_ns / u64::from(BUILD_UP_LEAST) + settling_ns.min(SETTLING_LEAST_NS);
        (rest_ns + least_ns, rest_ns + most_ns + settling_ns)
    }

    /// Makes one trial, the `number`th of the experiment.
    pub fn trial(&mut self, arm: &Arm, proposal: &Proposal, number: u64, figures: JobFigures) -> Made {
        let longest = Duration::from_nanos(self.conduct.washout_ns);
        let washout = washout::wait(&self.host, &self.target, self.clean_bytes, longest, self.stop);
        let begun = Instant::now();
        let mut remarks = Vec::new();
        if washout.timed_out {
            let left = weir_core::units::Bytes(washout.left_bytes >> 20 << 20);
            remarks.push(format!("{left} were still dirty when it began: other processes write"));
        }
        let stop = self.stop.of_one_run();
        // Owned, so that the lab itself stays free for the workload.
        let (host, target) = (self.host.clone(), self.target.clone());
        let mut scene = Scene::new(&host, &target, &stop);
        let (ran, stages) = match knobs::apply(&host, &arm.settings) {
            Err(error) => (Ran::failed(error), None),
            Ok(applied) => {
                let ran = match self.settled(arm, number) {
                    Err(why) => (Ran::failed(why), None),
                    Ok(unsettled) => {
                        remarks.extend(unsettled);
                        self.under_floods(arm, proposal, number, figures, &mut scene, &stop)
                    }
                };
                scene.end_floods();
                remarks.extend(applied.restore(&host));
                ran
            }
        };
        let floods = scene.floods();
        let took_ns = begun.elapsed().as_nanos() as u64;
        let Ran { outcome, job, transactions, let_go, unguarded } = ran;
        remarks.extend(let_go.then(|| LET_GO.to_string()));
        Made { washout, took_ns, outcome, job, transactions, floods, stages, remarks, unguarded }
    }

    /// Runs an arm's transactions until their server flushes at its own pace, where that is asked for. A sentence where it
    /// does not come to one.
    fn settled(&self, arm: &Arm, number: u64) -> Result<Option<String>, String> {
        let longest = Duration::from_nanos(self.conduct.settle_ns);
        match &arm.workload {
            Workload::Transactions(transactions) if !longest.is_zero() => {
                settle(transactions, &self.logins, number, longest, self.stop)
            }
            _ => Ok(None),
        }
    }

    fn under_floods(
        &mut self,
        arm: &Arm,
        proposal: &Proposal,
        number: u64,
        figures: JobFigures,
        scene: &mut Scene<'_>,
        stop: &Stop,
    ) -> (Ran, Option<StageTable>) {
        let build_up = Duration::from_nanos(self.conduct.build_up_ns);
        let _guard = match self.guarded(arm, proposal) {
            Ok(guard) => guard,
            Err(error) => return (Ran::unguarded(error), None),
        };
        let place = PathBuf::from(&self.conduct.place);
        let flood = |scene: &mut Scene<'_>| {
            scene.flood(&arm.floods, &place, build_up).map_err(|error| error.to_string())
        };
        let flooded = match &arm.workload {
            Workload::Transactions(transactions) if arm.guarded => {
                self.acquainted(transactions, number, stop, || flood(scene))
            }
            _ => flood(scene),
        };
        if let Err(why) = flooded {
            return (Ran::failed(why), None);
        }
        self.stages.step();
        let ran = match &arm.workload {
            Workload::Job(job) => {
                let job = self.job_of(job, proposal, number);
                self.run_job(job, proposal, figures, scene, stop)
            }
            Workload::Transactions(transactions) => {
                self.run_transactions(transactions, proposal, number, scene, stop)
            }
            Workload::Command(spec) => run_command(spec, proposal, scene, stop),
        };
        (ran, self.stages.taken())
    }

    /// A guard, where the arm has one.
    fn guarded(&self, arm: &Arm, proposal: &Proposal) -> anyhow::Result<Option<Guarded>> {
        if !arm.guarded {
            return Ok(None);
        }
        let place = PathBuf::from(&self.conduct.place);
        let lasting = self.conduct.build_up_ns + self.conduct.warmup_ns + proposal.duration_ns;
        Guarded::start(&place, ACQUAINTANCE + Duration::from_nanos(lasting)).map(Some)
    }

    /// Begins a flood beside transactions that a guard has seen undisturbed for a while, as a daemon would have. They go on
    /// until the flood is there: where nobody commits a guard has nothing to protect, and lets the flood fill memory.
    fn acquainted(
        &self,
        transactions: &Transactions,
        number: u64,
        stop: &Stop,
        flood: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        let longest = ACQUAINTANCE + Duration::from_nanos(self.conduct.build_up_ns) + FLOOD_PATIENCE;
        beside(transactions, &self.logins, number, longest, self.stop, || {
            pause(stop, ACQUAINTANCE);
            flood()
        })
    }

    /// The job of a trial. Each has its own offsets: a cache must not learn them from the trial before. No sync at
    /// the end: what is left dirty is waited for before the next trial.
    fn job_of(&self, job: &Job, proposal: &Proposal, number: u64) -> Job {
        Job {
            seed: job.seed.wrapping_add(number),
            warmup: Nanos(self.conduct.warmup_ns),
            duration: Nanos(proposal.duration_ns),
            operations: 0,
            sync: SyncPolicy { at_end: false, ..job.sync },
            ..job.clone()
        }
    }

    fn run_job(
        &mut self,
        job: Job,
        proposal: &Proposal,
        JobFigures { time_submits, counted }: JobFigures,
        scene: &mut Scene<'_>,
        stop: &Stop,
    ) -> Ran {
        let plan = match self.plan(job) {
            Ok(plan) => plan,
            Err(error) => return Ran::failed(error),
        };
        let options = RunOptions { tick_ns: tick_ns(proposal), time_submits, ..session::run_options() };
        let progress = &mut self.progress;
        let abort_age_ns = proposal.abort_age_ns;
        let mut watch = Watch::new(scene, progress, stop, abort_age_ns);
        let records = run(vec![plan], &options, &mut watch, stop);
        let Watch { aborted, let_go, .. } = watch;
        let job = match records.map(|mut records| records.pop()) {
            Ok(Some(job)) => job,
            Ok(None) => return Ran::failed("the runner returned no record"),
            Err(error) => return Ran::failed(error),
        };
        let measures = derive::of_job(&job, counted, scene.moments());
        let outcome = outcome(job.error.clone(), aborted, measures);
        Ran { job: Some(job), let_go, ..Ran::of(outcome) }
    }

    /// Transactions of a trial, with keys of their own.
    fn run_transactions(
        &mut self,
        transactions: &Transactions,
        proposal: &Proposal,
        number: u64,
        scene: &mut Scene<'_>,
        stop: &Stop,
    ) -> Ran {
        let servers = match self.logins.named(&transactions.server) {
            Ok(servers) => servers,
            Err(error) => return Ran::failed(error),
        };
        let spec = OltpSpec {
            seed: transactions.spec.seed.wrapping_add(number),
            warmup: Nanos(self.conduct.warmup_ns),
            duration: Nanos(proposal.duration_ns),
            transactions: 0,
            ..transactions.spec.clone()
        };
        let options = runner::RunOptions {
            tick_ns: tick_ns(proposal),
            machine_busy_ns: Some(|| Host::live().busy_ns().ok()),
            ..runner::RunOptions::default()
        };
        let (progress, abort_age_ns) = (&mut self.progress, proposal.abort_age_ns);
        let mut watch = Watch::new(scene, progress, stop, abort_age_ns);
        let record = runner::run(&spec, &servers, &options, &mut watch, stop);
        let Watch { aborted, let_go, .. } = watch;
        let record = match record {
            Ok(record) => record,
            Err(error) => return Ran::failed(error),
        };
        let measures = derive::of_transactions(&record, scene.moments());
        let outcome = outcome(record.error.clone(), aborted, measures);
        Ran { transactions: Some(Box::new(record)), let_go, ..Ran::of(outcome) }
    }
}

fn tick_ns(proposal: &Proposal) -> u64 {
    TICK_MAX_NS.min(proposal.duration_ns / TICKS_LEAST).max(1)
}

/// The reason for an early end counts for more than what was measured until then.
fn outcome(error: Option<String>, aborted: Option<String>, measures: Measures) -> Outcome {
    match (error, aborted) {
        (Some(why), _) => Outcome::Failed { why },
        (None, Some(why)) => Outcome::Aborted { why, measures },
        (None, None) => Outcome::Measured(measures),
    }
}

fn run_command(spec: &CommandSpec, proposal: &Proposal, scene: &mut Scene<'_>, stop: &Stop) -> Ran {
    scene.begin();
    let mut noted = Instant::now();
    let mut tick = || {
        if noted.elapsed().as_nanos() as u64 >= TICK_MAX_NS {
            noted = Instant::now();
            scene.note();
        }
    };
    let ended = command::run(spec, Duration::from_nanos(proposal.duration_ns), stop, &mut tick);
    scene.note();
    let outcome = match ended {
        Ended::Figures(figures) => Outcome::Measured(derive::of_command(&figures, scene.moments())),
        Ended::Failed(why) => Outcome::Failed { why },
        Ended::Stopped => Outcome::Failed { why: "it was ended early".to_string() },
    };
    Ran::of(outcome)
}
