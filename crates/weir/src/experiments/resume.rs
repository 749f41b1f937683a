//! `weir tune resume`: an experiment that was cut short goes on from its record, as long as it is still the same
//! machine and the same device.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_core::result;
use weir_experiment::{Arm, Experiment, Workload, replay, study};
use weir_io::runner::Stop;
use weir_knobs::{KnobName, Setting};
use weir_record::{Body, Record};

use super::execution::Execution;
use super::trial::Lab;
use super::{
    Ended, announce, finish, guard_beside, knobs, make_files, recover, refuse_another_guard,
    refuse_floods_nowhere, refuse_if_busy, seen, usage,
};
use crate::devices::refuse_devices_in_use;
use crate::failure::Lacking;
use crate::machine;
use crate::servers::Logins;
use crate::store::Store;

/// Goes on with a run, or with the last experiment that was cut short. Block devices in `allowed` may be written to.
///
/// # Errors
/// When there is none, or the machine is another one by now.
pub fn resume(run: Option<&str>, allowed: &[PathBuf], stop: &Stop) -> anyhow::Result<Ended> {
    let (record, mut experiment) = find(run)?;
    refuse_throw_away(&record)?;
    let design = replay(&experiment).map_err(|why| Lacking {
        what: format!("run {} cannot be continued: {why}", record.id),
        hint: Some("begin a new one: the record stays".to_string()),
    })?;
    let host = machine::host();
    let place = PathBuf::from(&experiment.conduct.place);
    let examined = |place: &Path| {
        let what = |error| format!("{} cannot be examined: {error}", place.display());
        host.target(place).map_err(|error| Lacking { what: what(error), hint: None })
    };
    let target = seen(&place).map(examined).transpose()?;
    let arms = design.arms().to_vec();
    let knobs: Vec<KnobName> = experiment.found.iter().map(|setting| setting.knob.clone()).collect();
    knobs::check_values(&host, &arms)?;
    knobs::check_privileges(&host, &arms, &knobs)?;
    recover(&host, seen(&place), &knobs);
    let now = serde_json::to_value(host.conditions(target.as_ref()))?;
    experiment.remarks.extend(compare(&record.conditions, &now)?);
    refuse_other_settings(&experiment.found, &knobs::found(&host, &knobs))?;
    let mut lab =
        Lab::new(host, target.unwrap_or_default(), experiment.conduct.clone(), Logins::default(), stop);
    refuse_unreached(&lab, &arms)?;
    refuse_floods_nowhere(&place, &arms)?;
    refuse_another_guard(arms.iter().any(|arm| arm.guarded))?;
    if !experiment.conduct.even_if_busy && knobs::any_of_machine(&knobs) {
        refuse_if_busy(&lab, stop)?;
    }
    refuse_unsafe_writes(&arms, allowed)?;
    let made = experiment.trials.len();
    say!("weir: continues {} after {made} trials", record.id);
    announce(&experiment, &arms);
    workloads(&arms).iter().for_each(|line| say!("weir: {line}"));
    make_files(&mut lab, &arms)?;
    experiment.remarks.push(format!("The experiment was interrupted after {made} trials, and continued."));
    experiment.remarks.extend(guard_beside(&arms));
    finish(Execution::new(lab, design, experiment, record, stop))
}

/// A password that was typed then is not known now: no trial has to fail for it.
fn refuse_unreached(lab: &Lab<'_>, arms: &[Arm]) -> anyhow::Result<()> {
    let servers: BTreeSet<&str> = arms
        .iter()
        .filter_map(|arm| match &arm.workload {
            Workload::Transactions(of) => Some(of.server.as_str()),
            Workload::Job(_) | Workload::Command(_) => None,
        })
        .collect();
    let hint = "resume logs in as files and the environment say: ~/.my.cnf, ~/.pgpass, MYSQL_PWD, PGPASSWORD";
    servers
        .into_iter()
        .find_map(|server| lab.unreached(server))
        .map_or(Ok(()), |what| Err(Lacking { what, hint: Some(hint.to_string()) }.into()))
}

/// A server that was made for the experiment went away with it, and so did its data.
fn refuse_throw_away(record: &result::Record) -> anyhow::Result<()> {
    if study::is_throw_away(record) {
        let what = format!("run {} cannot be continued: its server was a throw-away one", record.id);
        return Err(Lacking { what, hint: Some("begin a new one: the record stays".to_string()) }.into());
    }
    Ok(())
}

/// The run that is meant, or the last experiment that was cut short.
fn find(run: Option<&str>) -> anyhow::Result<(result::Record, Experiment)> {
    let store = Store::open()?;
    if let Some(run) = run {
        let Record { head, body } = store.load_trusted(&store.resolve(run)?)?;
        let experiment = match body {
            Body::Experiment(experiment) => *experiment,
            Body::Unread(why) => {
                let what = format!("run {} cannot be continued: {why}", head.id);
                return Err(Lacking { what, hint: None }.into());
            }
            _ => {
                let what = format!("run {} is not an experiment but a {}", head.id, head.kind);
                return Err(usage(what, "`weir results` lists what there is"));
            }
        };
        if head.ended_early.is_none() {
            let what = format!("run {} is complete", head.id);
            return Err(usage(what, "`weir results show` prints it"));
        }
        return Ok((head, experiment));
    }
    let open = store.ids()?.into_iter().rev().filter(|id| store.is_open(id, study::KIND));
    // A file that another account can write is passed over: its commands would run as this one.
    let trusted = open.filter_map(|id| {
        store.load_trusted(&store.path_of(&id)).map_err(|error| say!("note: skips {id}: {error:#}")).ok()
    });
    let found = trusted.filter_map(interrupted).next();
    found.ok_or_else(|| usage("no interrupted experiment", "`weir results` lists what there is"))
}

/// The experiment of a record, if it was cut short and can go on.
fn interrupted(Record { head, body }: Record) -> Option<(result::Record, Experiment)> {
    match body {
        Body::Experiment(experiment) if head.ended_early.is_some() && !study::is_throw_away(&head) => {
            Some((head, *experiment))
        }
        _ => None,
    }
}

/// Refuses another kernel or device, on which earlier trials say nothing; remarks on what matters less.
fn compare(then: &Value, now: &Value) -> anyhow::Result<Vec<String>> {
    let differs = |path: &str| then.pointer(path) != now.pointer(path);
    for (path, what) in [
        ("/kernel", "the kernel"),
        ("/target/device", "the device"),
        ("/target/file_system/kind", "the file system"),
        ("/target/file_system/source", "what is mounted there"),
    ] {
        if differs(path) {
            let shown = |from: &Value| from.pointer(path).map_or("nothing".to_string(), Value::to_string);
            let what = format!("{what} is another one now: it was {}, and is {}", shown(then), shown(now));
            let hint = Some("begin a new experiment: the earlier measurements do not apply here".to_string());
            return Err(Lacking { what, hint }.into());
        }
    }
    let mut remarks = Vec::new();
    if differs("/memory/total_bytes") {
        remarks.push("The machine has another amount of memory than in the earlier trials.".to_string());
    }
    Ok(remarks)
}

/// The arm "baseline" must mean the same in all trials.
fn refuse_other_settings(then: &[Setting], now: &[Setting]) -> anyhow::Result<()> {
    let changed = then.iter().find(|setting| !now.contains(setting));
    changed.map_or(Ok(()), |setting| {
        let is = now.iter().find(|other| other.knob == setting.knob);
        let is = is.map_or("cannot be read".to_string(), |is| format!("is {is}"));
        let what = format!("another program has changed a setting since: it was {setting}, and {is}");
        Err(Lacking { what, hint: Some("restore it, or begin a new experiment".to_string()) }.into())
    })
}

/// What the trials run and use: nobody has typed it this time.
fn workloads(arms: &[Arm]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |line: String| {
        if !lines.contains(&line) {
            lines.push(line);
        }
    };
    for arm in arms {
        match &arm.workload {
            Workload::Job(job) if job.writes() => {
                add(format!("trials write to {}", job.target.place().display()));
            }
            Workload::Job(job) => add(format!("trials read from {}", job.target.place().display())),
            Workload::Transactions(of) => add(format!("trials use the server {}", of.server)),
            Workload::Command(of) => add(format!("trials run `{}`", of.command)),
        }
        arm.floods.iter().for_each(|flood| add(format!("trials run beside the flood {flood}")));
    }
    lines
}

/// The device of that consent may hold something else by now.
fn refuse_unsafe_writes(arms: &[Arm], allowed: &[PathBuf]) -> anyhow::Result<()> {
    let jobs: Vec<_> = arms
        .iter()
        .filter_map(|arm| match &arm.workload {
            Workload::Job(job) => Some((**job).clone()),
            Workload::Transactions(_) | Workload::Command(_) => None,
        })
        .collect();
    refuse_devices_in_use(&jobs, allowed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_kernel_or_device_is_refused_and_other_memory_remarked() {
        let machine = |kernel: &str, device: &str, memory: u64| json!({"kernel": kernel, "target": {"device": device}, "memory": {"total_bytes": memory}});
        let then = machine("6.1", "sda", 5);
        for (now, expected) in [
            (machine("6.1", "sda", 5), Ok(0)),
            (machine("6.1", "sda", 6), Ok(1)),
            (machine("6.2", "sda", 5), Err("the kernel")),
            (machine("6.1", "sdb", 5), Err("the device is another one now: it was \"sda\"")),
        ] {
            match (compare(&then, &now), expected) {
                (Ok(remarks), Ok(count)) => assert_eq!(remarks.len(), count, "{now}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (other, _) => panic!("{now}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_nobody_typed_this_time_is_announced_once() {
        let command = weir_experiment::CommandSpec { command: "id".to_string(), metrics: Vec::new() };
        let arm = |workload| Arm {
            label: String::new(),
            settings: Vec::new(),
            workload,
            floods: vec!["/f".to_string()],
            guarded: false,
        };
        let arms = [
            arm(Workload::Command(command.clone())),
            arm(Workload::Command(command)),
            arm(Workload::Job(Box::default())),
        ];
        let lines = workloads(&arms);
        assert_eq!(lines, ["trials run `id`", "trials run beside the flood /f", "trials read from ."]);
        // Beside a server of another machine there is no place for a flood.
        assert!(refuse_floods_nowhere(Path::new(""), &arms).is_err());
        assert!(refuse_floods_nowhere(Path::new("."), &arms).is_ok());
        let dry = arms.map(|arm| Arm { floods: Vec::new(), ..arm });
        assert!(refuse_floods_nowhere(Path::new(""), &dry).is_ok());
    }

    #[test]
    fn settings_must_be_as_they_were() {
        let settings = |text: &str| vec![text.parse::<Setting>().unwrap()];
        let then = settings("vm.swappiness=60");
        assert!(refuse_other_settings(&then, &settings("vm.swappiness=60")).is_ok());
        let error = refuse_other_settings(&then, &settings("vm.swappiness=1")).unwrap_err();
        assert!(error.to_string().contains("is vm.swappiness=1"), "{error}");
        assert!(refuse_other_settings(&then, &[]).is_err());
    }
}
