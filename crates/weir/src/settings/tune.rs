//! What `weir tune` is to try: the workload, the arms, and how each trial is made.

mod grid;
mod steps;
mod workload;

use weir_core::units::Nanos;
use weir_experiment::{Arm, Conduct, Goal};
use weir_knobs::{KnobName, Setting};

use crate::cli::tune::{AbArgs, CommonArgs, LadderArgs};
use crate::experiments::{Asked, Measured};
use crate::failure::Usage;

pub use grid::{default_values, dirty_values};
pub use workload::{Base, Origin, db_line};

/// Word for the machine as it is.
const FOUND: &str = "found";
/// The bulk writer beside workloads whose knob only matters with one.
const FLOOD: &str = "dd";
/// Shortest trial that shows a rate.
const DURATION_MIN: Nanos = Nanos::from_millis(200);
/// Longest time for a bulk writer to fill memory up to a limit of some gigabytes.
const BUILD_UP: Nanos = Nanos::from_secs(12);
const WARMUP_MAX_NS: u64 = 1_000_000_000;
/// What stands for the target's device in the name of a knob.
const DEVICE: &str = "@";

/// What all experiments share. `wants_flood`: the knob means nothing without one.
pub fn common(args: &mut CommonArgs, base: Base, wants_flood: bool, origin: Origin) -> anyhow::Result<Asked> {
    let mut notes = Vec::new();
    if args.workload.course.operations.is_some() {
        let what = "a trial ends after its time, not after --operations".to_string();
        return Err(Usage { what, hint: Some("give its length with --duration".to_string()) }.into());
    }
    let (duration, warmup) = (args.workload.course.duration.take(), args.workload.course.warmup.take());
    let measured = workload::read(args, base, origin, &mut notes)?;
    let duration = duration.or(measured.duration()).unwrap_or(Nanos::from_secs(10));
    if duration < DURATION_MIN {
        let what = format!("a trial of {duration} shows nothing");
        return Err(Usage { what, hint: Some(format!("--duration takes at least {DURATION_MIN}")) }.into());
    }
    let mut floods = args.workload.course.flood.clone();
    if floods.is_empty() && wants_flood {
        notes.push(format!("--flood {FLOOD}: without a bulk writer the knob has no effect"));
        floods.push(FLOOD.to_string());
    }
    floods.retain(|flood| flood != "none");
    let goal = goal(args, &measured)?;
    let conduct = Conduct {
        place: measured.place.display().to_string(),
        warmup_ns: warmup.map_or((duration.0 / 5).min(WARMUP_MAX_NS), |warmup| warmup.0),
        settle_ns: 0,
        build_up_ns: args.build_up.unwrap_or(BUILD_UP).0,
        washout_ns: args.washout.0,
        stages: !args.no_trace,
        even_if_busy: args.even_if_busy,
    };
    Ok(Asked {
        measured,
        floods,
        goal,
        duration_ns: duration.0,
        repeats: args.repeats,
        pairs: args.pairs,
        seed: args.workload.pattern.seed.unwrap_or(1),
        budget_ns: args.budget.0,
        conduct,
        logins: Default::default(),
        destroys: args.workload.place.i_know_this_destroys.clone(),
        notes,
    })
}

/// What was typed; a command's first figure where nothing was.
fn goal(args: &CommonArgs, measured: &Measured) -> anyhow::Result<Option<Goal>> {
    let named: Vec<&str> = measured.figures();
    let Some(text) = args.goal.clone().or(named.first().map(|name| format!("max {name}"))) else {
        return Ok(None);
    };
    let usage = |error: weir_experiment::BadGoal| Usage {
        what: format!("goal `{}`: {}", error.text, error.why),
        hint: Some(error.hint),
    };
    let goal: Goal = text.parse().map_err(usage)?;
    goal.check(&named).map_err(usage)?;
    Ok(Some(goal))
}

/// The arms of a sweep: one for each value.
pub fn sweep_arms(
    asked: &Asked,
    knob: &str,
    values: &[String],
    device: Option<&str>,
) -> anyhow::Result<Vec<Arm>> {
    values
        .iter()
        .map(|value| {
            let setting = setting(&format!("{knob}={value}"), device)?;
            Ok(asked.arm(&setting.to_string(), vec![setting]))
        })
        .collect()
}

/// The knob's name without its unit, its device filled in.
pub fn knob(text: &str, device: Option<&str>) -> anyhow::Result<KnobName> {
    let named = with_device(text, device)?;
    named.parse().map_err(|error: weir_knobs::name::BadName| {
        Usage { what: error.to_string(), hint: Some("`weir knobs list` shows what there is".to_string()) }
            .into()
    })
}

/// `NAME=VALUE` with the device filled in.
pub fn setting(text: &str, device: Option<&str>) -> anyhow::Result<Setting> {
    let usage = |what: String| Usage { what, hint: Some("for example vm.dirty_bytes=15MB".to_string()) };
    let named = with_device(text, device)?;
    named.parse().map_err(|error: weir_knobs::value::BadSetting| usage(error.to_string()).into())
}

fn with_device(text: &str, device: Option<&str>) -> anyhow::Result<String> {
    let Some(rest) = text.trim().strip_prefix(DEVICE) else { return Ok(text.trim().to_string()) };
    let lacking = || Usage {
        what: format!("`{text}`: no single block device stands behind the target"),
        hint: Some("name the device itself, such as sda/nr_requests".to_string()),
    };
    Ok(format!("{}{rest}", device.ok_or_else(lacking)?))
}

/// The arms of a ladder, the base first.
pub fn ladder_arms(asked: &Asked, args: &LadderArgs, device: Option<&str>) -> anyhow::Result<Vec<Arm>> {
    if args.steps.is_empty() {
        return steps::source_ladder(asked);
    }
    steps::ladder(asked, &args.steps, device)
}

/// The two arms of an A/B.
pub fn ab_arms(asked: &Asked, args: &AbArgs, device: Option<&str>) -> anyhow::Result<[Arm; 2]> {
    if let (Some(a), Some(b)) = (&args.a_command, &args.b_command) {
        return Ok([a, b].map(|command| asked.command_arm(command)));
    }
    let side = |text: &Option<String>| -> anyhow::Result<Arm> {
        let text = text.as_deref().unwrap_or(FOUND);
        if text == FOUND { Ok(asked.found()) } else { steps::side(asked, text, device) }
    };
    Ok([side(&args.a)?, side(&args.b)?])
}

/// Whether a knob only shows beside a bulk writer: the limits of dirty pages.
pub fn wants_flood(knob: &str) -> bool {
    knob.starts_with("vm.dirty") || knob.contains("/bdi/")
}

#[cfg(test)]
mod tests;
