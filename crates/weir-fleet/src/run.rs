//! `weir fleet run`.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::Context;
use jiff::civil::Time;
use jiff::{Timestamp, ToSpan, Zoned};
use serde::Serialize;
use weir_cli::failure::{CANNOT_WRITE, usage};
use weir_cli::signals::stop_on_signals;
use weir_core::printable;
use weir_core::units::Nanos;

use crate::binary::Payloads;
use crate::cli::RunArgs;
use crate::course::{self, Plan, Start};
use crate::guardrail;
use crate::inventory::{self, Sources};
use crate::page::{self, JUNIT, PAGE};
use crate::report::{self, PEERS, Report, SCHEMA, SlowHosts};
use crate::rollout::{self, Rules};
use crate::store::{self, Store};
use crate::wire::Ssh;

/// The program that is called instead of `ssh`, with the same arguments.
const SSH: &str = "WEIR_FLEET_SSH";

/// Commands with figures that hosts are compared by; they are asked for JSON.
const WITH_FIGURES: [&str; 2] = ["doctor", "bench"];

/// Runs the command.
pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let sources = Sources {
        hosts: args.hosts.clone(),
        inventory: args.inventory.clone(),
        ssh_config: args.ssh_config.clone(),
    };
    let hosts = inventory::hosts(&sources)?;
    let rules = args.canary.as_ref().map(|steps| rules(args, steps, hosts.len())).transpose()?;
    let begun = Timestamp::now();
    let plan = plan(args, rules.as_ref(), begun)?;
    // Said before minutes of work, not after.
    if args.junit.is_some() && args.junit == args.html {
        return Err(usage("--junit and --html name the same file", ""));
    }
    args.junit.iter().try_for_each(|path| page::check(path, JUNIT))?;
    args.html.iter().try_for_each(|path| page::check(path, PAGE))?;
    say!("{}: {} hosts", plan.id, hosts.len());
    let clock = Instant::now();
    let reports = match &rules {
        Some(rules) => rollout::carry(&plan, &hosts, rules),
        None => course::everywhere(&plan, &hosts),
    };
    let report = Report {
        schema: SCHEMA.to_string(),
        id: plan.id.clone(),
        started_at: begun.to_string(),
        command: args.command.clone(),
        kind: plan.kind.clone(),
        elapsed_ns: u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX),
        interrupted: plan.stop.requested(),
        start_spread_ns: (plan.start != Start::Ready).then(|| spread(&reports)),
        hosts: reports,
    };
    let kept = plan.store.save(&report)?;
    let files = files(args, &report, &plan);
    let printed = print(&if args.json { json(&report)? } else { report::text(&report) });
    say!("summary: {}", kept.display());
    files.and(printed)?;
    Ok(report.code())
}

/// Reports in files, each whatever becomes of the other.
fn files(args: &RunArgs, report: &Report, plan: &Plan) -> anyhow::Result<()> {
    let junit = args.junit.iter().try_for_each(|path| page::write(path, &report::junit(report), JUNIT));
    let html = args
        .html
        .iter()
        .try_for_each(|path| page::of_run(path, report, &SlowHosts::of(report, PEERS), plan.store.root()));
    junit.and(html)
}

/// A value as JSON for that, in which names that hosts chose stand as no terminal obeys them.
pub fn json(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(printable::escaped(&serde_json::to_string_pretty(value)?).into_owned() + "\n")
}

/// Writes to standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(CANNOT_WRITE)
}

fn plan(args: &RunArgs, rules: Option<&Rules>, begun: Timestamp) -> anyhow::Result<Plan> {
    if args.command.first().is_some_and(|word| word == "fleet") {
        return Err(usage("a fleet's hosts run no fleet of their own", "name another command of weir's"));
    }
    let mut arguments = args.command.clone();
    let has_form = arguments.iter().any(|word| word == "--json" || word.starts_with("--format"));
    if WITH_FIGURES.contains(&arguments[0].as_str()) && !has_form {
        arguments.extend(["--format", "json"].map(String::from));
    }
    if let Some(rules) = rules {
        arguments.push(format!("--confirm-within={}s", rules.confirm_within().as_secs()));
    }
    crate::agent::run(&arguments).map_err(|why| usage(why, ""))?;
    Ok(Plan {
        ssh: Ssh {
            program: std::env::var_os(SSH)
                .filter(|program| !program.is_empty())
                .unwrap_or_else(|| "ssh".into()),
            config: args.ssh_config.clone(),
            connect_timeout: duration(args.connect_timeout),
        },
        sudo: args.sudo,
        payloads: Payloads::read(&args.binary)?,
        arguments,
        timeout: duration(args.timeout),
        parallel: args.parallel as usize,
        start: start(args)?,
        store: Store::new(args.into.as_deref())?,
        id: weir_cli::new_id(begun),
        kind: store::kind(&args.command),
        date: begun.strftime("%Y-%m-%d").to_string(),
        stop: stop_on_signals().context("cannot handle signals")?,
    })
}

/// The rules of a rollout. Only a change that takes itself back can be rolled out.
fn rules(args: &RunArgs, steps: &str, hosts: usize) -> anyhow::Result<Rules> {
    let words: Vec<&str> = args.command.iter().map(String::as_str).collect();
    if !words.starts_with(&["knobs", "apply"]) {
        return Err(usage(
            "--canary goes with `knobs apply`",
            "other commands change nothing that could be taken back",
        ));
    }
    let other = ["--dry-run", "--print", "--persist", "--confirm-within", "--write"];
    if let Some(word) = words.iter().find(|word| other.iter().any(|other| word.starts_with(other))) {
        return Err(usage(
            format!("--canary does not go with {word}"),
            "the change is confirmed when every step held",
        ));
    }
    if !(args.worse.is_finite() && args.worse >= 0.0) {
        return Err(usage(format!("expected a percentage, got --worse {}", args.worse), ""));
    }
    let steps = guardrail::steps(steps, hosts).map_err(|why| usage(why, ""))?;
    let probe = args.probe.clone().unwrap_or_default();
    let parallel = args.parallel as usize;
    Ok(Rules { steps, parallel, probe, probe_time: duration(args.probe_time), worse_percent: args.worse })
}

fn duration(time: Nanos) -> Duration {
    Duration::from_nanos(time.0)
}

fn start(args: &RunArgs) -> anyhow::Result<Start> {
    match &args.at {
        None if args.together => Ok(Start::Together),
        None => Ok(Start::Ready),
        Some(text) => Ok(Start::At(time(text, &Zoned::now())?)),
    }
}

/// A time of day, the next such; or one with a date.
fn time(text: &str, now: &Zoned) -> anyhow::Result<Timestamp> {
    let wrong = || usage(format!("expected a time such as 02:30 or 2026-11-25T02:30:00Z, got `{text}`"), "");
    let at = match text.parse::<Time>() {
        Ok(time) if text.len() <= 8 && text.contains(':') => {
            let today = now.with().time(time).build().map_err(|_| wrong())?;
            if today > *now {
                today.timestamp()
            } else {
                today.checked_add(1.day()).map_err(|_| wrong())?.timestamp()
            }
        }
        _ => text.parse::<Timestamp>().map_err(|_| wrong())?,
    };
    if at < now.timestamp() {
        return Err(usage(format!("{text} is over"), ""));
    }
    Ok(at)
}

/// Between the first start and the last.
fn spread(reports: &[report::HostReport]) -> i64 {
    let began = || reports.iter().filter_map(|host| host.began_ns);
    began().max().unwrap_or(0).saturating_sub(began().min().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_the_next_such() {
        let now: Zoned = "2026-11-25T12:00:00+00:00[+00:00]".parse().unwrap();
        for (text, expected) in [
            ("12:30", "2026-11-25T12:30:00Z"),
            ("02:30:15", "2026-11-26T02:30:15Z"),
            ("2026-11-25T15:00:00+01:00", "2026-11-25T14:00:00Z"),
        ] {
            assert_eq!(time(text, &now).unwrap().to_string(), expected);
        }
        for bad in ["soon", "25:00", "2020-01-01T00:00:00Z", "12"] {
            assert!(time(bad, &now).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_in_json_is_what_no_terminal_obeys() {
        let name = "6.12\u{9b}31m\u{7f}\u{202e}\u{1b}[2J";
        let text = json(&name).unwrap();
        assert!(text.trim_end().chars().all(|c| c.is_ascii_graphic()), "{text:?}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
    }
}
