//! `weir db disk-vs-ram`.

use weir_cli::signals::stop_on_signals;
use weir_core::stop::Stop;
use weir_core::units::Nanos;
use weir_experiment::{AbPlan, Claim, Transactions};
use weir_oltp::limits::{Change, Evidence, judge};
use weir_oltp::{OltpSpec, Script, size};

use super::experiment::{arm, asked, carry_out, folder_of, goal, sandbox_spec, spec};
use crate::cli::db::disk_vs_ram::Args;
use crate::databases::explain::Trials;
use crate::databases::ground::{Ground, MadeFolder, filled, name_of, refuse_without_room};
use crate::databases::own::server_of;
use crate::databases::sandbox::failed;
use crate::experiments::{Asked, planned};
use crate::failure::{Outcome, Usage};

const PAIRS: u32 = 6;
/// Longest look at what limits the server before the pairs.
const LOOK: Nanos = Nanos::from_secs(10);
/// Redo, system tables and an empty server's own files.
const SERVER_BYTES: u64 = 300 << 20;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let common = &args.common;
    let Some(flavour) = common.sandbox.sandbox else {
        let what = "the data of a server that is in use are not copied".to_string();
        let hint = Some(
            "name a server to start: --sandbox mysql|mariadb|postgres, and --dir on the disk".to_string(),
        );
        return Err(Usage { what, hint }.into());
    };
    let spec = spec(common, Script::ReadWrite)?;
    let stop = stop_on_signals()?;
    let stopped = || stop.requested().is_some();
    refuse_without_room(&args.ram, size::tables_bytes(&spec, flavour.dialect()) + SERVER_BYTES)?;
    let dir = folder_of(&common.sandbox);
    let made = MadeFolder::at(&dir)?;
    let name = name_of(flavour)?;
    let mut sandbox = sandbox_spec(&common.sandbox, flavour, &dir.join(&name))?;
    sandbox.above_id = made.as_ref().map(MadeFolder::id);
    let mut disk = filled(&sandbox, &spec, &stop)?;
    disk.stop().map_err(failed)?;
    say!("weir: copies its data to {}", args.ram.display());
    let mut ram = disk.clone_to(&args.ram.join(format!("{name}-ram")), &stopped).map_err(failed)?;
    disk.run(&stopped).map_err(failed)?;
    ram.run(&stopped).map_err(failed)?;
    let ram_server = server_of(&ram);
    let ground = Ground { made, ..Ground::of_sandbox(disk, &spec, dir) };
    let in_ram = Transactions {
        server: crate::servers::name(std::slice::from_ref(&ram_server)),
        ..ground.transactions.clone()
    };
    let trials = &common.trials;
    let asked = asked(&ground, trials, Vec::new());
    let claim = if trials.dry_run { None } else { claim(&ground, &asked, &stop)? };
    let plan = AbPlan {
        a: arm("on the disk", &ground.transactions),
        b: arm("in memory", &in_ram),
        pairs: asked.pairs.unwrap_or(PAIRS),
        duration_ns: asked.duration_ns,
        abort_age_ns: None,
        first_look: None,
        seed: asked.seed,
        goal: goal(trials),
        claim: claim.map(Box::new),
    };
    let mut planned = planned("ab", &plan, vec![plan.a.clone(), plan.b.clone()], plan.goal.clone())?;
    planned.notes.push(
        "The gain of the copy in memory is the most that a faster disk could give this workload: it syncs in \
         no time, and still takes the processor time of every commit."
            .to_string(),
    );
    let outcome = carry_out(ground, trials, &asked, &planned, command, &stop);
    drop(ram);
    outcome
}

/// Looks at what limits the server on the disk, and what a faster disk could give by that: the pairs will tell.
fn claim(ground: &Ground, asked: &Asked, stop: &Stop) -> anyhow::Result<Option<Claim>> {
    say!("weir: determines its limit on the disk");
    let spec = OltpSpec {
        warmup: Nanos(asked.conduct.warmup_ns),
        duration: Nanos(asked.duration_ns).min(LOOK),
        ..ground.transactions.spec.clone()
    };
    let trials = Trials { stop, trace: asked.conduct.stages };
    let record = trials.watched(&spec, &ground.server)?;
    if let Some(error) = &record.error {
        anyhow::bail!("determining its limit on the disk: {error}");
    }
    Ok(Evidence::of(&record).map(|evidence| {
        let verdict = judge(&evidence);
        say!("weir: {}", verdict.headline);
        Claim { change: Change::InMemory, verdict }
    }))
}
