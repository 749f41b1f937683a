//! From what was typed and what the machine says to a design with its plan.

use weir_core::units::Bytes;
use weir_experiment::prune::{Facts, space};
use weir_experiment::race::RacePlan;
use weir_experiment::{AbPlan, Arm, ArmsPlan, Goal, Metric, SweepPlan};
use weir_io::runner::Stop;
use weir_knobs::{KnobName, Setting};

use crate::cli::tune::{AbArgs, Command, CommonArgs, Format, LadderArgs, RaceArgs, SweepArgs};
use crate::experiments::{Asked, Lab, Planned, knobs, planned, rate, usage};
use crate::inputs;
use crate::settings::tune::{self as settings, Base};

/// What a dry run takes the device to write: it measures nothing.
const DRY_RATE: f64 = 200e6;
/// The knob whose values follow from what the device writes.
const DIRTY_BYTES: &str = "vm.dirty_bytes";
const REPEATS: u32 = 3;
const PAIRS: u32 = 10;

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
    Ladder(Box<LadderArgs>),
    Ab(Box<AbArgs>),
    Race(Box<RaceArgs>),
}

/// Reads what was typed.
pub fn read(command: Command) -> anyhow::Result<Typed> {
    let typed = |common: &mut CommonArgs, base: Base, wants_flood: bool| -> anyhow::Result<_> {
        Ok((inputs::tune::common(common, base, wants_flood)?, common.dry_run, common.format))
    };
    let ((asked, dry_run, format), kind) = match command {
        Command::Sweep(mut args) => {
            let wants_flood = settings::wants_flood(&args.knob);
            (typed(&mut args.common, Base::Commits, wants_flood)?, Kind::Sweep(args))
        }
        Command::Ladder(mut args) => (typed(&mut args.common, Base::Mixed, false)?, Kind::Ladder(args)),
        Command::Ab(mut args) => {
            args.common.command = args.a_command.clone().or(args.common.command.take());
            (typed(&mut args.common, Base::Commits, false)?, Kind::Ab(args))
        }
        Command::Race(mut args) => {
            args.knobs.append(&mut args.positional);
            let wants_flood = args.knobs.iter().any(|knob| settings::wants_flood(knob));
            (typed(&mut args.common, Base::Commits, wants_flood)?, Kind::Race(args))
        }
        Command::Resume(_) => {
            return Err(usage("an experiment continues from its record", "weir tune resume RUN"));
        }
    };
    Ok(Typed { asked, dry_run, format, kind })
}

/// Makes the plan; ranges and grids that nobody typed follow from the machine.
pub fn plan(typed: &Typed, lab: &mut Lab<'_>, stop: &Stop) -> anyhow::Result<Planned> {
    match &typed.kind {
        Kind::Sweep(args) => sweep(typed, args, lab, stop),
        Kind::Ladder(args) => ladder(&typed.asked, args, lab),
        Kind::Ab(args) => ab(&typed.asked, args, lab),
        Kind::Race(args) => race(typed, args, lab, stop),
    }
}

fn ladder(asked: &Asked, args: &LadderArgs, lab: &Lab<'_>) -> anyhow::Result<Planned> {
    let arms = settings::ladder_arms(asked, args, lab.target.device.as_deref())?;
    let plan = ArmsPlan {
        arms: arms.clone(),
        repeats: asked.repeats.unwrap_or(REPEATS),
        duration_ns: asked.duration_ns,
        abort_age_ns: None,
        seed: asked.seed,
        goal: asked.goal.clone().unwrap_or_else(|| Goal::of(Metric::Rate)),
    };
    let mut planned = planned("ladder", &plan, arms, plan.goal.clone())?;
    if args.steps.is_empty() {
        planned.remarks.extend(write_cache(lab));
    }
    Ok(planned)
}

/// The field report's last step but one, which decides over what a power failure leaves: shown, and never taken.
fn write_cache(lab: &Lab<'_>) -> Option<String> {
    let device = lab.target.device.as_ref()?;
    let knob = settings::knob(&format!("{device}/write_cache"), None).ok()?;
    let now = knobs::read(&lab.host, &knob).ok().and_then(|reading| reading.value);
    let now = now.map_or("not supported by the device".to_string(), |value| format!("`{value}`"));
    Some(format!(
        "The device's write cache ({knob}): {now}. It decides what survives a power failure, so no step changes it."
    ))
}

fn ab(asked: &Asked, args: &AbArgs, lab: &Lab<'_>) -> anyhow::Result<Planned> {
    let [a, b] = settings::ab_arms(asked, args, lab.target.device.as_deref())?;
    let arms = vec![a.clone(), b.clone()];
    let plan = AbPlan {
        a,
        b,
        pairs: asked.pairs.or(asked.repeats).unwrap_or(PAIRS),
        duration_ns: asked.duration_ns,
        abort_age_ns: None,
        first_look: None,
        seed: asked.seed,
        goal: asked.goal.clone().unwrap_or_else(|| Goal::of(Metric::Rate)),
        claim: None,
    };
    planned("ab", &plan, arms, plan.goal.clone())
}

fn race(typed: &Typed, args: &RaceArgs, lab: &mut Lab<'_>, stop: &Stop) -> anyhow::Result<Planned> {
    let (asked, device) = (&typed.asked, lab.target.device.clone());
    let names = args.knobs.iter().map(|text| settings::knob(text, device.as_deref()));
    let names = names.collect::<anyhow::Result<Vec<KnobName>>>()?;
    let readings =
        names.iter().map(|knob| knobs::read(&lab.host, knob)).collect::<anyhow::Result<Vec<_>>>()?;
    let vm = lab.host.vm_settings();
    let facts = Facts {
        write_bps: write_rate(typed, lab, &names, stop)?,
        dirty_threshold: vm.dirty_threshold_bytes.unwrap_or(0),
        background_threshold: vm.dirty_background_threshold_bytes.unwrap_or(0),
    };
    let given = |text: &String| -> anyhow::Result<Vec<Setting>> {
        text.split(',').map(|part| settings::setting(part, device.as_deref())).collect()
    };
    let flooded = !asked.floods.is_empty();
    let goal = asked.goal.clone().unwrap_or_else(|| SweepPlan::default_goal(flooded));
    let (workload, floods) = (asked.measured.workload.clone(), asked.floods.clone());
    let mut plan = RacePlan::new(workload, floods, space(&readings, &facts), goal, asked.seed);
    plan.duration_ns = asked.duration_ns;
    plan.given = args.candidate.iter().map(given).collect::<anyhow::Result<_>>()?;
    if let Some(pairs) = asked.pairs {
        plan.rules.pairs = pairs as usize;
    }
    let arms = plan.given.iter().map(|settings| asked.arm("given", settings.clone()));
    let mut planned = planned("race", &plan, arms.chain([asked.found()]).collect(), plan.goal.clone())?;
    planned.knobs.extend(plan.dimensions.iter().map(|dimension| dimension.knob.clone()));
    planned.knobs.sort();
    planned.knobs.dedup();
    planned.remarks.extend(plan.left_out);
    planned.unfolds = Some("which candidates go on depends on what is measured".to_string());
    Ok(planned)
}

fn sweep(typed: &Typed, args: &SweepArgs, lab: &mut Lab<'_>, stop: &Stop) -> anyhow::Result<Planned> {
    let asked = &typed.asked;
    let device = lab.target.device.clone();
    let knob = settings::knob(&args.knob, device.as_deref())?;
    let values = if args.grid.is_empty() { grid(typed, args, lab, stop)? } else { args.grid.clone() };
    let mut arms = if asked.floods.is_empty() { Vec::new() } else { vec![asked.idle()] };
    arms.push(asked.found());
    let found = knobs::found(&lab.host, std::slice::from_ref(&knob));
    let typed_arms = settings::sweep_arms(asked, &args.knob, &values, device.as_deref())?;
    let (same, others): (Vec<Arm>, Vec<Arm>) = typed_arms.into_iter().partition(|arm| arm.settings == found);
    arms.extend(others);
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
        refine: refines(args),
        added: SweepPlan::ADDED.to_vec(),
    };
    let mut planned = planned("sweep", &plan, plan.arms.clone(), plan.goal.clone())?;
    planned.notes.extend(
        same.iter().map(|arm| format!("{} equals the baseline: one arm stands for both.", arm.label)),
    );
    let more = SweepPlan::ADDED_MAX;
    planned.unfolds = plan
        .refine
        .then(|| format!("and up to {more} more between, where the bound of the goal turns out to lie"));
    Ok(planned)
}

/// Whether values may be added between those of the grid: where nobody typed them, and any number of bytes will do.
fn refines(args: &SweepArgs) -> bool {
    args.grid.is_empty() && args.knob == DIRTY_BYTES
}

/// Values for a knob of which none were typed.
fn grid(typed: &Typed, args: &SweepArgs, lab: &mut Lab<'_>, stop: &Stop) -> anyhow::Result<Vec<String>> {
    if args.knob == DIRTY_BYTES {
        let found = lab.host.vm_settings().dirty_threshold_bytes.unwrap_or(0);
        let rate = write_rate(typed, lab, &[settings::knob(DIRTY_BYTES, None)?], stop)?;
        return Ok(settings::dirty_values(rate, Bytes(found)));
    }
    let knob = settings::knob(&args.knob, lab.target.device.as_deref())?;
    let values = settings::default_values(&knobs::read(&lab.host, &knob)?);
    if values.is_empty() {
        return Err(usage(format!("{knob}: no values follow from its baseline"), "state them with --grid"));
    }
    Ok(values)
}

/// What the device writes: nothing is written where the knobs cannot be turned afterwards.
fn write_rate(typed: &Typed, lab: &mut Lab<'_>, turned: &[KnobName], stop: &Stop) -> anyhow::Result<f64> {
    if typed.dry_run {
        say!("note: a dry run measures nothing: the values are those for a device of 200 MB/s");
        return Ok(DRY_RATE);
    }
    knobs::check_privileges(&lab.host, &[], turned)?;
    rate::measure(lab, typed.asked.measured.job(), &typed.asked.place(), stop)
}
