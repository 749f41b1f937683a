//! `weir guard simulate`: the guard and static limits on a simulated machine.

use std::path::Path;

use anyhow::Context;
use serde_json::json;
use weir_control::plant::score::{self, Score};
use weir_control::plant::{Event, Law, PlantSpec, Script, scenario, simulate};
use weir_control::{Guard, Parameters};
use weir_report::text;
use weir_report::text::Simulated;

use crate::cli::guard::simulate::{Args, FormatArg, LimitArg};
use crate::failure::{Outcome, Usage};
use crate::output::print;

/// An hour, in nanoseconds.
const HOUR_NS: u64 = 3_600_000_000_000;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let limits = match args.limit.is_empty() {
        true => vec![
            LimitArg::AsFound,
            LimitArg::Static(15_000_000),
            LimitArg::Static(4_000_000),
            LimitArg::Guard,
        ],
        false => args.limit.clone(),
    };
    let simulated = match args.random {
        Some(seed) => hours(seed, args.hours, &limits),
        None => scripted(&args, &limits)?,
    };
    let out = match args.format {
        FormatArg::Text => text::simulation(&simulated, &Parameters::default().target),
        FormatArg::Json => {
            let document = json!({ "schema": "weir.guard.simulation/1", "rows": simulated });
            serde_json::to_string_pretty(&document)? + "\n"
        }
    };
    print(&out)?;
    Ok(Outcome::Done)
}

/// One machine, phase by phase.
fn scripted(args: &Args, limits: &[LimitArg]) -> anyhow::Result<Vec<Simulated>> {
    let machine = args.device.as_ref().unwrap_or(&args.machine);
    let mut spec = match PlantSpec::preset(machine) {
        Some(spec) => spec,
        None => parsed(machine, PlantSpec::from_toml(&read(machine, "one of the machines a, b, c, d")?))?,
    };
    if let Some(flood) = args.flood {
        spec.bulk.kind = flood.into();
    }
    spec.syncs.direct |= args.direct;
    let script = match args.script.as_str() {
        "gauntlet" => Script::gauntlet(args.seconds, machine == "d"),
        "flood" => flood(args.seconds),
        file => parsed(file, Script::from_toml(&read(file, "one of the scripts gauntlet, flood")?))?,
    };
    let target = Parameters::default().target.p99;
    let idle = score::undisturbed(&spec, &script, args.seed);
    let mut rows = Vec::new();
    for limit in limits {
        let history = simulate(&spec, &script, law(*limit), args.seed);
        for phase in score::phases(&history).into_iter().filter(|phase| phase.writers > 0) {
            let score = score::score(&history, &idle, phase, target);
            rows.push(Simulated { law: name(*limit), phase: Some(phase), score });
        }
    }
    Ok(rows)
}

/// Many machines, an hour each, all hours of a law together.
fn hours(seed: u64, hours: u64, limits: &[LimitArg]) -> Vec<Simulated> {
    let target = Parameters::default().target.p99;
    let mut scores = vec![Score::default(); limits.len()];
    for seed in seed..seed.saturating_add(hours) {
        let case = scenario::scenario(seed, HOUR_NS);
        let idle = score::undisturbed(&case.spec, &case.script, seed);
        for (limit, total) in limits.iter().zip(&mut scores) {
            let history = simulate(&case.spec, &case.script, law(*limit), seed);
            for phase in score::phases(&history) {
                total.merge(&score::score(&history, &idle, phase, target));
            }
        }
    }
    let rows = limits.iter().zip(scores);
    rows.map(|(limit, score)| Simulated { law: name(*limit), phase: None, score }).collect()
}

/// Syncs alone, then a flood, then syncs alone again.
fn flood(seconds: u64) -> Script {
    let phase = seconds as f64;
    Script::of_seconds(3 * seconds)
        .and(0.0, Event::Flood(0))
        .and(phase, Event::Flood(1))
        .and(phase * 2.0, Event::Flood(0))
}

fn law(limit: LimitArg) -> Law {
    match limit {
        LimitArg::AsFound => Law::AsFound,
        LimitArg::Static(bytes) => Law::Static(bytes),
        LimitArg::Guard => Law::Guard(Box::new(Guard::new(Parameters::default()))),
    }
}

fn name(limit: LimitArg) -> String {
    match limit {
        LimitArg::AsFound => "default".to_string(),
        LimitArg::Static(bytes) => weir_core::units::limit(weir_core::units::Bytes(bytes)),
        LimitArg::Guard => "guard".to_string(),
    }
}

/// Reads a file that stands where a name could.
fn read(path: &str, names: &str) -> anyhow::Result<String> {
    if !Path::new(path).exists() {
        let what = format!("`{path}` is neither {names} nor a file");
        let hint = Some("weir guard simulate --help".to_string());
        return Err(Usage { what, hint }.into());
    }
    std::fs::read_to_string(path).with_context(|| format!("reading {path}"))
}

fn parsed<T>(path: &str, read: Result<T, String>) -> anyhow::Result<T> {
    read.map_err(|error| Usage { what: format!("{path}: {error}"), hint: None }.into())
}
