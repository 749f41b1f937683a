//! Experiments with the machine's settings. The machine is looked at, the user is told what will be changed, and then a
//! sequence of trials is made, of which each is in the store before the next begins.

mod asked;
mod beside;
mod command;
mod execution;
mod guarded;
pub mod knobs;
mod plan;
mod progress;
pub mod rate;
pub mod rehearsal;
mod resume;
mod scene;
mod trial;
mod washout;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_core::printable;
use weir_core::result::Record;
use weir_core::target::TargetFacts;
use weir_core::units::Nanos;
use weir_experiment::{Arm, Counted, Experiment, Transactions, Workload};
use weir_host::Host;
use weir_host::knob::recover_stale;
use weir_io::runner::{Stop, pause};
use weir_io::scratch::remove_abandoned;
use weir_knobs::{KnobName, Scope, Setting};

pub use self::asked::{Asked, Entry, Measured};
pub use self::beside::settle;
pub use self::command::check as check_command;
use self::execution::Execution;
pub use self::guarded::refuse_another as refuse_another_guard;
pub use self::plan::{Planned, build, planned};
pub use self::resume::resume;
pub use self::trial::Lab;
use crate::change_journal::the_journal;
use crate::databases::{Premises, admit};
use crate::devices::{folder_of, refuse_devices_in_use};
use crate::failure::{Lacking, Usage};
use crate::guard::acting;
use crate::machine;
use crate::quiet::unquiet;
use crate::servers::Logins;
use crate::session::{Ran, Session};

/// How long an experiment waits for others to be quiet before it refuses.
const QUIET_PATIENCE: u32 = 5;

/// An experiment that has come to an end.
pub struct Ended {
    /// Its record.
    pub record: Record,
    /// What the record holds.
    pub experiment: Experiment,
    /// Where it is kept, if it is.
    pub path: Option<PathBuf>,
    /// The signal that ended it before its time.
    pub signal: Option<u8>,
}

/// Enters the database that is measured, so that no trial has to fail for it.
///
/// # Errors
/// When it cannot be reached, or must not be written to.
pub fn enter(asked: &mut Asked) -> anyhow::Result<()> {
    let (Some(entry), Workload::Transactions(of)) =
        (asked.measured.database.take(), &asked.measured.workload)
    else {
        return Ok(());
    };
    let Transactions { spec, .. } = of.as_ref();
    let mut premises = Premises::enter(entry.named)?;
    admit(&mut premises, spec, entry.any_maker)?;
    asked.logins = Logins::of(&premises.login.servers);
    if entry.at_data
        && let Some(place) = premises.data_here()?
    {
        asked.measured.place = place.canonicalize().unwrap_or(place);
        asked.conduct.place = asked.measured.place.display().to_string();
    }
    Ok(())
}

/// Where the trials of an experiment are made.
///
/// # Errors
/// When the place is not there, or is a device that must not be written to.
pub fn lab<'a>(asked: &Asked, stop: &'a Stop) -> anyhow::Result<Lab<'a>> {
    if let Some(job) = asked.measured.job() {
        refuse_devices_in_use(std::slice::from_ref(job), &asked.destroys)?;
    }
    let host = machine::host();
    let target = target_of(&host, asked)?;
    Ok(Lab::new(host, target, asked.conduct.clone(), asked.logins.clone(), stop))
}

/// Makes the trials of a plan, each of which is in the store before the next begins.
///
/// # Errors
/// When a setting cannot be turned, the machine is busy, or no trial can be made.
pub fn carry_out(
    mut lab: Lab<'_>,
    planned: &Planned,
    asked: &Asked,
    command: &[String],
    stop: &Stop,
) -> anyhow::Result<Ended> {
    knobs::check_privileges(&lab.host, &planned.arms, &planned.knobs)?;
    refuse_floods_nowhere(&asked.place(), &planned.arms)?;
    refuse_another_guard(planned.arms.iter().any(|arm| arm.guarded))?;
    recover(&lab.host, seen(&asked.place()), &planned.knobs);
    if !asked.conduct.even_if_busy && knobs::any_of_machine(&planned.knobs) {
        refuse_if_busy(&lab, stop)?;
    }
    let mut experiment = experiment(asked, planned, knobs::found(&lab.host, &planned.knobs));
    announce(&experiment, &planned.arms);
    experiment.remarks.extend(guard_beside(&planned.arms));
    if let Some(unfolds) = &planned.unfolds {
        say!("weir: {unfolds}");
    }
    make_files(&mut lab, &planned.arms)?;
    let session = Session::begin_at("tune", command, seen(&asked.place()));
    let record = session.record(Ran::default(), stop);
    finish(Execution::new(lab, build(planned)?, experiment, record, stop))
}

/// A place, where there is one: the storage of a server on another machine is not seen from here.
fn seen(place: &Path) -> Option<&Path> {
    (!place.as_os_str().is_empty()).then_some(place)
}

/// A flood on this machine is none beside a server on another one.
fn refuse_floods_nowhere(place: &Path, arms: &[Arm]) -> anyhow::Result<()> {
    if seen(place).is_some() || arms.iter().all(|arm| arm.floods.is_empty()) {
        return Ok(());
    }
    let what = "there is no folder for the flood: the server's data are not seen from this machine";
    Err(usage(what, "name a folder on their device with --dir"))
}

/// A guard acts on floods: what trials say of them is said of its limits. Told before the first trial.
fn guard_beside(arms: &[Arm]) -> Option<String> {
    let flooded = arms.iter().any(|arm| !arm.floods.is_empty());
    let acting = flooded.then(acting)??;
    let remark = format!(
        "when the trials began, {acting}: those beside a flood say what is left under the guard's limits, not under the kernel's"
    );
    say!("note: {remark}");
    Some(remark)
}

fn target_of(host: &Host, asked: &Asked) -> anyhow::Result<TargetFacts> {
    let place = asked.place();
    if seen(&place).is_none() {
        return Ok(TargetFacts::default());
    }
    if !place.exists() {
        let what = format!("{} does not exist", place.display());
        return Err(Lacking { what, hint: Some("give an existing folder with --dir".to_string()) }.into());
    }
    host.target(&place).map_err(|error| {
        let what = format!("cannot find the device of {}: {error}", place.display());
        Lacking { what, hint: Some("give an existing folder with --dir".to_string()) }.into()
    })
}

/// Puts right what a killed run may have left: its folders here, and settings.
fn recover(host: &Host, place: Option<&Path>, knobs: &[KnobName]) {
    for folder in place.map(|place| remove_abandoned(folder_of(place))).unwrap_or_default() {
        say!("weir: {folder}");
    }
    if !knobs.is_empty() {
        for sentence in recover_stale(host, &the_journal()) {
            say!("weir: {sentence}");
        }
    }
}

/// A limit of the whole machine holds others back, too.
fn refuse_if_busy(lab: &Lab<'_>, stop: &Stop) -> anyhow::Result<()> {
    let mut why = None;
    for _ in 0..QUIET_PATIENCE {
        why = unquiet(&lab.host, &lab.target, |time: Duration| pause(stop, time));
        if why.is_none() || stop.requested().is_some() {
            break;
        }
    }
    why.map_or(Ok(()), |why| {
        let what = format!("the machine is too busy to change machine-wide settings: {why}");
        Err(Lacking { what, hint: Some("wait for a quieter time, or add --even-if-busy".to_string()) }.into())
    })
}

fn experiment(asked: &Asked, planned: &Planned, found: Vec<Setting>) -> Experiment {
    Experiment {
        schema: weir_experiment::log::SCHEMA.to_string(),
        design: planned.name.to_string(),
        plan: planned.plan.clone(),
        goal: planned.goal.clone(),
        seed: asked.seed,
        budget_ns: asked.budget_ns,
        conduct: asked.conduct.clone(),
        found,
        counted: Some(Counted::of(&planned.arms)),
        trials: Vec::new(),
        notes: planned.notes.clone(),
        remarks: planned.remarks.clone(),
    }
}

/// Says what will be changed before anything is.
fn announce(experiment: &Experiment, arms: &[Arm]) {
    let budget = Nanos(experiment.budget_ns);
    let place = match experiment.conduct.place.as_str() {
        "" => "on storage that is not seen from here".into(),
        place => format!("in {}", printable::line(place)),
    };
    say!("weir: {}, goal {}, at most {budget}, {place}", experiment.design, experiment.goal);
    for found in &experiment.found {
        let settings = arms.iter().flat_map(|arm| &arm.settings);
        let mut values: Vec<String> =
            settings.filter(|setting| setting.knob == found.knob).map(Setting::written_value).collect();
        values.dedup();
        let values = if values.is_empty() { "values of its range".to_string() } else { values.join(", ") };
        let (knob, found) = match found.knob.scope {
            Scope::Server(_) => (found.short_name(), found.written_value()),
            _ => (found.knob.to_string(), found.to_string()),
        };
        say!("weir: for the time of trials, {knob} is set to {values} (baseline: {found})");
    }
    if !experiment.found.is_empty() {
        say!("weir: a guardian restores every setting, whatever happens");
    }
}

/// All files before the first trial: writing them is part of none.
fn make_files(lab: &mut Lab<'_>, arms: &[Arm]) -> anyhow::Result<()> {
    for arm in arms {
        if let Workload::Job(job) = &arm.workload {
            lab.plan((**job).clone())?;
        }
    }
    Ok(())
}

/// Makes the trials, and keeps what was measured also of an execution that was cut short.
fn finish(mut execution: Execution<'_>) -> anyhow::Result<Ended> {
    let ran = execution.run();
    let signal = execution.stop.requested();
    let ended_early = signal.map(crate::session::signal_name).or(ran.as_ref().err().map(ToString::to_string));
    let path = execution.save(ended_early);
    ran?;
    Ok(Ended { record: execution.record, experiment: execution.experiment, path, signal })
}

/// A mistake that clap cannot see.
pub fn usage(what: impl Into<String>, hint: &str) -> anyhow::Error {
    Usage { what: what.into(), hint: Some(hint.to_string()) }.into()
}
