//! What the experiments with databases have in common: options as plain values, and the way into `weir tune`.

use std::path::{Path, PathBuf};

use weir_core::stop::Stop;
use weir_core::units::Nanos;
use weir_db::sandbox::{Flavour, SandboxSpec};
use weir_experiment::{Arm, Conduct, Goal, Metric, Transactions, Workload};
use weir_oltp::{OltpSpec, Script, validate};

use crate::cli::db::experiment::{ExperimentArgs, SandboxArgs, TrialArgs};
use crate::cmd::tune;
use crate::databases::ground::{Ground, MadeFolder, name_of};
use crate::experiments::{self, Asked, Measured, Planned};
use crate::failure::{Outcome, Usage};
use crate::inputs::db::servers as named;
use crate::settings::bench::usage;
use crate::settings::db::workload;

/// Time for everything where nobody says.
const BUDGET: Nanos = Nanos::from_secs(40 * 60);
/// Longest wait for a clean start.
const WASHOUT: Nanos = Nanos::from_secs(30);
/// Longest time for a bulk writer to fill memory.
const BUILD_UP: Nanos = Nanos::from_secs(12);
/// Share of a trial's time that is run before measuring, and at most so long.
const WARMUP_SHARE: u64 = 5;
const WARMUP_MAX: Nanos = Nanos::from_secs(2);

/// The server that was named; or a throw-away one, made and filled.
pub fn ground(args: &ExperimentArgs, script: Script, stop: &Stop) -> anyhow::Result<Ground> {
    let spec = spec(args, script)?;
    match args.sandbox.sandbox {
        Some(flavour) => {
            let dir = folder_of(&args.sandbox);
            let made = MadeFolder::at(&dir)?;
            let mut sandbox = sandbox_spec(&args.sandbox, flavour, &dir.join(name_of(flavour)?))?;
            sandbox.above_id = made.as_ref().map(MadeFolder::id);
            Ok(Ground { made, ..Ground::made(&sandbox, &spec, dir, stop)? })
        }
        None => {
            refuse_without_sandbox(&args.sandbox)?;
            Ground::named(named(&args.connect)?, spec, args.workload.tables.sysbench_tables)
        }
    }
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
        logins: ground.logins.clone(),
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
    drop(ground.made);
    outcome
}
