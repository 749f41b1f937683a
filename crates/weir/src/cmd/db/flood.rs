//! `weir db flood`.

use weir_cli::signals::stop_on_signals;
use weir_experiment::{Arm, ArmsPlan};
use weir_host::Host;
use weir_oltp::Script;

use super::experiment::{arm, asked, carry_out, goal, ground};
use crate::cli::db::flood::Args;
use crate::experiments::{planned, refuse_another_guard};
use crate::failure::{Lacking, Outcome, Usage};

const REPEATS: u32 = 3;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    if args.flood_dir.is_none() && args.common.sandbox.sandbox.is_none() {
        let what = "a bulk copy beside a live server slows every process on its device".to_string();
        let hint = "name its folder with --flood-dir, or use a server of its own: --sandbox mariadb --dir \
            DIR";
        return Err(Usage { what, hint: Some(hint.to_string()) }.into());
    }
    if !args.no_guard && !Host::live().conditions(None).limits.root {
        let hint = Some("run it as root, or leave the guard out: --no-guard".to_string());
        return Err(Lacking { what: "the guard takes root".to_string(), hint }.into());
    }
    // Before a server is made.
    refuse_another_guard(!args.no_guard)?;
    let stop = stop_on_signals()?;
    let mut ground = ground(&args.common, Script::Commit, &stop)?;
    if let Some(dir) = args.flood_dir {
        ground.place = dir;
    }
    let trials = &args.common.trials;
    let asked = asked(&ground, trials, vec![args.flood.clone()]);
    let alone = arm("alone", &ground.transactions);
    let beside = Arm { floods: asked.floods.clone(), ..arm("beside the copy", &ground.transactions) };
    let guarded = Arm { guarded: true, label: "with the guard".to_string(), ..beside.clone() };
    let mut arms = vec![alone, beside];
    arms.extend((!args.no_guard).then_some(guarded));
    let plan = ArmsPlan {
        arms,
        repeats: asked.repeats.unwrap_or(REPEATS),
        duration_ns: asked.duration_ns,
        abort_age_ns: None,
        seed: asked.seed,
        goal: goal(trials),
    };
    let planned = planned("beside", &plan, plan.arms.clone(), plan.goal.clone())?;
    carry_out(ground, trials, &asked, &planned, command, &stop)
}
