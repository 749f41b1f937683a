//! What experiments with databases have in common: the server they run on, and the way into `weir tune`'s course.

use std::path::{Path, PathBuf};

use weir_core::stop::Stop;
use weir_core::units::{Bytes, Nanos};
use weir_db::Server;
use weir_db::sandbox::{Flavour, Sandbox, SandboxSpec};
use weir_experiment::{Arm, Conduct, Goal, Metric, Transactions, Workload};
use weir_oltp::{OltpSpec, Script, validate};

use crate::cli::db::experiment::{ExperimentArgs, SandboxArgs, TrialArgs};
use crate::cmd::tune;
use crate::databases::progress::Loading;
use crate::databases::sandbox::{failed, mention_account};
use crate::databases::{Premises, admit, own};
use crate::experiments::{self, Asked, Measured, Planned};
use crate::failure::{Lacking, Outcome, Usage};
use crate::servers;
use crate::settings::bench::usage;
use crate::settings::db::{servers as named, workload};

/// Time for everything where nobody says.
const BUDGET: Nanos = Nanos::from_secs(40 * 60);
/// Longest wait for a clean start.
const WASHOUT: Nanos = Nanos::from_secs(30);
/// Longest time for a bulk writer to fill memory.
const BUILD_UP: Nanos = Nanos::from_secs(12);
/// Share of a trial's time that is run before measuring, and at most so long.
const WARMUP_SHARE: u64 = 5;
const WARMUP_MAX: Nanos = Nanos::from_secs(2);

/// Where an experiment is made. A throw-away server goes away with it.
pub struct Ground {
    /// The transactions, ready to run.
    pub transactions: Transactions,
    /// Where the data lie, if that is on this machine, else here.
    pub place: PathBuf,
    /// The first server.
    pub server: Server,
    /// The throw-away server.
    pub sandbox: Option<Sandbox>,
}

/// The server that was named, looked at; or a throw-away one, made and filled.
pub fn ground(args: &ExperimentArgs, script: Script, stop: &Stop) -> anyhow::Result<Ground> {
    let spec = spec(args, script)?;
    match args.sandbox.sandbox {
        Some(flavour) => {
            let dir = folder_of(&args.sandbox);
            let spec_of = sandbox_spec(&args.sandbox, flavour, &dir.join(name_of(flavour)?))?;
            let sandbox = filled(&spec_of, &spec, stop)?;
            Ok(of_sandbox(sandbox, &spec, dir))
        }
        None => {
            refuse_without_sandbox(&args.sandbox)?;
            let mut premises = Premises::enter(named(&args.connect)?)?;
            admit(&mut premises, &spec, args.workload.tables.sysbench_tables)?;
            let transactions = Transactions { spec, server: servers::name(&premises.login.servers) };
            let place = premises.data_here().unwrap_or_else(|| PathBuf::from("."));
            Ok(Ground { transactions, place, server: premises.server()?.clone(), sandbox: None })
        }
    }
}

/// A throw-away server as the place of an experiment.
pub fn of_sandbox(sandbox: Sandbox, spec: &OltpSpec, place: PathBuf) -> Ground {
    let server = own::server_of(&sandbox);
    let name = servers::name(std::slice::from_ref(&server));
    let transactions = Transactions { spec: spec.clone(), server: name };
    Ground { transactions, place, server, sandbox: Some(sandbox) }
}

/// The transactions that were typed.
pub fn spec(args: &ExperimentArgs, script: Script) -> anyhow::Result<OltpSpec> {
    let spec = workload::spec(Some(args.script.unwrap_or(script)), &args.workload);
    if spec.transactions > 0 {
        let what = "a trial ends after its time, not after --transactions".to_string();
        return Err(Usage { what, hint: Some("give its length with --time".to_string()) }.into());
    }
    validate::spec(&spec).map_err(usage)?;
    Ok(spec)
}

/// The folder of a throw-away server.
pub fn folder_of(args: &SandboxArgs) -> PathBuf {
    args.dir.clone().unwrap_or_else(|| PathBuf::from("."))
}

/// The server's own folder in it: nobody can have made one of that name.
pub fn name_of(flavour: Flavour) -> anyhow::Result<String> {
    Ok(format!("weir-{}-{}", flavour.word(), weir_fs::unguessable()?))
}

/// A throw-away server as typed.
pub fn sandbox_spec(args: &SandboxArgs, flavour: Flavour, dir: &Path) -> anyhow::Result<SandboxSpec> {
    let mut spec = SandboxSpec::new(flavour, dir);
    spec.memory = args.memory.unwrap_or(spec.memory);
    spec.root.clone_from(&args.root);
    for text in &args.set {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
            let hint = Some("such as --set innodb_io_capacity=200".to_string());
            return Err(Usage { what: format!("expected NAME=VALUE, got `{text}`"), hint }.into());
        };
        spec = spec.set(name.trim(), value.trim());
    }
    Ok(spec)
}

fn refuse_without_sandbox(args: &SandboxArgs) -> anyhow::Result<()> {
    let typed = [
        ("--dir", args.dir.is_some()),
        ("--root", args.root.is_some()),
        ("--set", !args.set.is_empty()),
        ("--memory", args.memory.is_some()),
    ];
    match typed.iter().find(|(_, typed)| *typed) {
        Some((option, _)) => {
            let what = format!("{option} is for a throw-away server");
            Err(Usage { what, hint: Some("start one with --sandbox mysql|mariadb|postgres".to_string()) }
                .into())
        }
        None => Ok(()),
    }
}

/// A throw-away server with the tables of a workload.
pub fn filled(sandbox: &SandboxSpec, spec: &OltpSpec, stop: &Stop) -> anyhow::Result<Sandbox> {
    say!("weir: starts a {} of its own in {}", sandbox.flavour, sandbox.dir.display());
    let stopped = || stop.requested().is_some();
    let running = Sandbox::start(sandbox, &stopped).map_err(failed)?;
    mention_account(&running);
    let loading = Loading::of(spec, "filling");
    let filled = own::fill(&running, spec, &|event| loading.event(event), stop);
    loading.end();
    filled.map(|()| running)
}

/// A way to run: these transactions on the machine as it is.
pub fn arm(label: &str, transactions: &Transactions) -> Arm {
    Arm {
        label: label.to_string(),
        settings: Vec::new(),
        workload: Workload::Transactions(Box::new(transactions.clone())),
        floods: Vec::new(),
        guarded: false,
    }
}

/// What is to improve.
pub fn goal(trials: &TrialArgs) -> Goal {
    trials.goal.clone().unwrap_or_else(|| Goal::of(Metric::Rate))
}

/// The experiment as `weir tune` wants it.
pub fn asked(ground: &Ground, trials: &TrialArgs, floods: Vec<String>) -> Asked {
    let spec = &ground.transactions.spec;
    let warmup =
        if spec.warmup.0 > 0 { spec.warmup } else { Nanos(spec.duration.0 / WARMUP_SHARE).min(WARMUP_MAX) };
    Asked {
        measured: Measured {
            workload: Workload::Transactions(Box::new(ground.transactions.clone())),
            place: ground.place.clone(),
            database: None,
        },
        floods,
        goal: trials.goal.clone(),
        duration_ns: spec.duration.0,
        repeats: trials.repeats,
        pairs: trials.repeats,
        seed: spec.seed,
        budget_ns: trials.budget.unwrap_or(BUDGET).0,
        conduct: Conduct {
            place: ground.place.display().to_string(),
            warmup_ns: warmup.0,
            settle_ns: 0,
            build_up_ns: BUILD_UP.0,
            washout_ns: trials.washout.unwrap_or(WASHOUT).0,
            stages: !trials.no_trace,
            even_if_busy: true,
        },
        destroys: Vec::new(),
        notes: Vec::new(),
    }
}

/// Makes the trials and reports; a throw-away server stops and goes when this returns.
pub fn carry_out(
    ground: Ground,
    trials: &TrialArgs,
    asked: &Asked,
    planned: &Planned,
    command: &[String],
    stop: &Stop,
) -> anyhow::Result<Outcome> {
    let lab = experiments::lab(asked, stop)?;
    let outcome = tune::carry_out(lab, planned, asked, (trials.dry_run, trials.format), command, stop);
    drop(ground.sandbox);
    outcome
}

/// The room a copy in memory takes, and what stays free beside it.
pub fn refuse_without_room(dir: &Path, bytes: u64) -> anyhow::Result<()> {
    let Ok(space) = weir_host::Host::live().free_space(dir) else { return Ok(()) };
    let needed = bytes + bytes / 4 + (64 << 20);
    if space.free_bytes >= needed {
        return Ok(());
    }
    let what = format!(
        "not enough free space in {}: {} are free, {} are needed",
        dir.display(),
        Bytes(space.free_bytes),
        Bytes(needed)
    );
    let hint = Some("fewer --tables or a smaller --table-size, or another folder".to_string());
    Err(Lacking { what, hint }.into())
}
