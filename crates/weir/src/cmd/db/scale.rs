//! `weir db scale`.

use weir_cli::signals::stop_on_signals;
use weir_experiment::{ArmsPlan, Transactions};
use weir_oltp::{OltpSpec, Script};

use super::experiment::{arm, asked, carry_out, goal, ground};
use crate::cli::db::scale::Args;
use crate::experiments::planned;
use crate::failure::{Outcome, Usage};

const REPEATS: u32 = 3;

/// Runs the command.
pub fn run(mut args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let mut ladder = args.ladder;
    ladder.sort_unstable();
    ladder.dedup();
    if args.common.workload.course.threads.is_some() {
        let what = "scale tries several numbers of connections, but --threads gives one".to_string();
        return Err(Usage { what, hint: Some("name them with --ladder 1,2,4,8".to_string()) }.into());
    }
    // Some workloads have a table for each connection: the server and its tables are made for the most of them.
    args.common.workload.course.threads = ladder.last().copied();
    let stop = stop_on_signals()?;
    let ground = ground(&args.common, Script::ReadWrite, &stop)?;
    let trials = &args.common.trials;
    let asked = asked(&ground, trials, Vec::new());
    let of = |threads: &u32| {
        let spec = OltpSpec { threads: *threads, ..ground.transactions.spec.clone() };
        let label = if *threads == 1 { "1 connection".to_string() } else { format!("{threads} connections") };
        arm(&label, &Transactions { spec, ..ground.transactions.clone() })
    };
    let plan = ArmsPlan {
        arms: ladder.iter().map(of).collect(),
        repeats: asked.repeats.unwrap_or(REPEATS),
        duration_ns: asked.duration_ns,
        abort_age_ns: None,
        seed: asked.seed,
        goal: goal(trials),
    };
    let planned = planned("scale", &plan, plan.arms.clone(), plan.goal.clone())?;
    carry_out(ground, trials, &asked, &planned, command, &stop)
}
