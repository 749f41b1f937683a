//! From what was typed and what the machine says to a design with its plan.

use std::path::Path;

use serde_json::Value;
use weir_core::experiment::{Arm, Design, Goal, Study, SweepPlan};
use weir_core::knob::KnobName;
use weir_core::report::{json, text};
use weir_core::units::Bytes;
use weir_io::runner::Stop;

use super::course::Course;
use super::trial::Lab;
use super::{knobs, rate, usage};
use crate::cli::tune::{Command, CommonArgs, Format, SweepArgs};
use crate::settings::tune::{self as settings, Asked, Base};

/// What a dry run takes the device to write: it measures nothing.
const DRY_RATE: f64 = 200e6;
const REPEATS: u32 = 3;

/// What was typed, looked at as far as that goes without the machine.
pub struct Typed {
    /// What all experiments share.
    pub asked: Asked,
    /// Run nothing.
    pub dry_run: bool,
    /// Form of the results.
    pub format: Format,
    kind: Kind,
}

enum Kind {
    Sweep(Box<SweepArgs>),
}

/// An experiment ready to begin.
pub struct Planned {
    /// `sweep`, `ladder`, `ab` or `race`.
    pub name: &'static str,
    /// The design's own plan.
    pub plan: Value,
    /// Its arms as far as they are known.
    pub arms: Vec<Arm>,
    /// The knobs that it turns.
    pub knobs: Vec<KnobName>,
    /// What it is to improve.
    pub goal: Goal,
    /// What a reader must know from the start.
    pub remarks: Vec<String>,
}

/// Reads what was typed.
pub fn read(command: Command) -> anyhow::Result<Typed> {
    let typed = |common: &mut CommonArgs, base: Base, wants_flood: bool| -> anyhow::Result<_> {
        Ok((settings::common(common, base, wants_flood)?, common.dry_run, common.format))
    };
    let ((asked, dry_run, format), kind) = match command {
        Command::Sweep(mut args) => {
            let wants_flood = settings::wants_flood(&args.knob);
            (typed(&mut args.common, Base::Commits, wants_flood)?, Kind::Sweep(args))
        }
        Command::Resume(_) => {
            return Err(usage("an experiment goes on by its record", "weir tune resume RUN"));
        }
    };
    Ok(Typed { asked, dry_run, format, kind })
}

/// Makes the plan; ranges and grids that nobody typed follow from the machine.
pub fn plan(typed: &Typed, lab: &mut Lab<'_>, stop: &Stop) -> anyhow::Result<Planned> {
    match &typed.kind {
        Kind::Sweep(args) => sweep(typed, args, lab, stop),
    }
}

fn sweep(typed: &Typed, args: &SweepArgs, lab: &mut Lab<'_>, stop: &Stop) -> anyhow::Result<Planned> {
    let asked = &typed.asked;
    let device = lab.target.device.clone();
    let knob = settings::knob(&args.knob, device.as_deref())?;
    let values = if args.grid.is_empty() { grid(typed, args, lab, stop)? } else { args.grid.clone() };
    let mut arms = if asked.floods.is_empty() { Vec::new() } else { vec![asked.idle()] };
    arms.push(asked.found());
    arms.extend(settings::sweep_arms(asked, &args.knob, &values, device.as_deref())?);
    let flooded = !asked.floods.is_empty();
    let goal = asked.goal.clone().unwrap_or_else(|| SweepPlan::default_goal(flooded));
    let plan = SweepPlan {
        knob: knob.to_string(),
        arms,
        repeats: asked.repeats.unwrap_or(REPEATS),
        duration_ns: asked.duration_ns,
        abort_age_ns: None,
        seed: asked.seed,
        goal,
    };
    planned("sweep", &plan, plan.arms.clone(), plan.goal.clone())
}

/// Values for a knob of which none were typed.
fn grid(typed: &Typed, args: &SweepArgs, lab: &mut Lab<'_>, stop: &Stop) -> anyhow::Result<Vec<String>> {
    if args.knob == "vm.dirty_bytes" {
        let found = lab.host.vm_settings().dirty_threshold_bytes.unwrap_or(0);
        let rate = write_rate(typed, lab, stop)?;
        return Ok(settings::dirty_values(rate, Bytes(found)));
    }
    let knob = settings::knob(&args.knob, lab.target.device.as_deref())?;
    let values = settings::default_values(&knobs::read(&lab.host, &knob)?);
    if values.is_empty() {
        return Err(usage(
            format!("{knob}: no values follow from the one that is found"),
            "state them with --grid",
        ));
    }
    Ok(values)
}

/// What the device writes.
fn write_rate(typed: &Typed, lab: &mut Lab<'_>, stop: &Stop) -> anyhow::Result<f64> {
    if typed.dry_run {
        say!("note: a dry run measures nothing: the values are those for a device of 200 MB/s");
        return Ok(DRY_RATE);
    }
    rate::measure(lab, typed.asked.measured.job(), &typed.asked.place(), stop)
}

fn planned(
    name: &'static str,
    plan: &impl serde::Serialize,
    arms: Vec<Arm>,
    goal: Goal,
) -> anyhow::Result<Planned> {
    let (plan, knobs) = (serde_json::to_value(plan)?, knobs::of_arms(&arms));
    let planned = Planned { name, plan, arms, knobs, goal, remarks: Vec::new() };
    build(&planned)?;
    Ok(planned)
}

/// The design of a plan, nothing tried yet.
pub fn build(planned: &Planned) -> anyhow::Result<Box<dyn Design>> {
    weir_core::experiment::build(planned.name, &planned.plan)
        .map_err(|why| usage(why, "see `weir tune --help`"))
}

/// The results of a course in a given form.
pub fn report(course: Course<'_>, path: Option<&Path>, format: Format) -> anyhow::Result<String> {
    if format == Format::Record {
        return Ok(serde_json::to_string(&course.record)? + "\n");
    }
    let study = Study {
        path: path.map(|path| path.display().to_string()),
        arms: course.design.arms().to_vec(),
        finding: course.finding(),
        record: &course.record,
        experiment: course.experiment,
    };
    Ok(match format {
        Format::Json => json::experiment(&study)?,
        _ => text::experiment(&study),
    })
}
