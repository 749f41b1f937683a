//! `weir db explain`: what limits a throw-away server, verified by changes.

use weir_cli::signals::stop_on_signals;
use weir_core::units::Nanos;
use weir_db::sandbox::SandboxSpec;
use weir_oltp::limits::{Change, Evidence, Pair, Tested, judge, tested};
use weir_oltp::record::KIND;
use weir_oltp::{OltpRecord, OltpSpec};
use weir_record::Body;

use crate::cli::db::explain::Args;
use crate::databases::explain::{Place, Trials, Wanted, seconds};
use crate::failure::{Outcome, Usage};
use crate::output::{Format, print_for, render};
use crate::progress::StepLine;
use crate::session::{Session, save};
use crate::settings::bench::usage;
use crate::settings::db::workload::spec;

/// The first second of every trial is run and not counted.
const TRIAL_WARMUP: Nanos = Nanos(1_000_000_000);
/// The first run, unless its length was given.
const FIRST_RUN: Nanos = Nanos(10_000_000_000);
/// Fewest pairs of runs that give an interval, fewest that give one worth having, and more than which tell little more.
const PAIRS_MIN: u32 = 2;
const PAIRS_FEW: u32 = 4;
const PAIRS_MOST: u32 = 10;
/// Connecting and preparing statements, for each run.
const AROUND_TRIAL: Nanos = Nanos(500_000_000);
/// The shortest trial that gives an interval.
const TRIAL_MIN: Nanos = Nanos(5_000_000_000);

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let spec = checked(&args)?;
    let stop = stop_on_signals()?;
    let mut line = StepLine::new();
    let changes = wanted(&args);
    let mut place = Place::start(&to_start(&args, &changes), &spec, &stop, &mut line)?;
    let session = Session::begin(KIND, command, &args.dir);
    line.begin("transactions as they are");
    let trials = Trials { stop: &stop, trace: !args.no_trace };
    let variables = place.variables();
    let mut record = trials.watched(&spec, &place.server())?;
    record.server.variables = variables;
    let mut refused = None;
    if !changes.is_empty() && record.error.is_none() && stop.requested().is_none() {
        let (found, ended) = test(&args, &spec, &changes, &trials, &mut place, &mut line, &record);
        if let Some(watched) = &mut record.watched {
            watched.tested = found;
        }
        refused = ended.err();
    }
    line.clear();
    let whole = session.record_of(Body::Oltp(Box::new(record)), &stop);
    let path = save(&whole);
    print_for(args.format == Format::Text, &render(&whole, path.as_deref(), args.format)?)?;
    if let Some(error) = whole.body.failure() {
        say!("error: {error}");
        return Ok(Outcome::WorkloadFailed);
    }
    if let Some(error) = refused {
        return Err(error.context("the changes were not tested to the end"));
    }
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}

/// The server to start, and where its copy goes if one is to be tried.
fn to_start(args: &Args, changes: &[Change]) -> Wanted {
    let mut sandbox = SandboxSpec::new(args.flavour, &args.dir);
    sandbox.memory = args.memory;
    sandbox.root.clone_from(&args.root);
    sandbox.variables.extend(args.set.iter().cloned());
    Wanted { sandbox, memory_dir: changes.contains(&Change::InMemory).then(|| args.memory_dir.clone()) }
}

/// Changes to try.
fn wanted(args: &Args) -> Vec<Change> {
    match args.change.as_slice() {
        _ if args.no_tests => Vec::new(),
        [] => Change::ALL.to_vec(),
        named => named.to_vec(),
    }
}

/// The first run, as it was typed.
fn checked(args: &Args) -> anyhow::Result<OltpSpec> {
    let mut spec = spec(args.script, &args.workload);
    if args.workload.course.duration.is_none() {
        spec.duration = FIRST_RUN;
    }
    if args.workload.course.warmup.is_none() {
        spec.warmup = TRIAL_WARMUP;
    }
    let wrong = |what: String, hint: &str| Usage { what, hint: Some(hint.to_string()) };
    if let Some(pairs) = args.pairs.filter(|pairs| *pairs < PAIRS_MIN) {
        let what = format!("--pairs {pairs}: an interval needs {PAIRS_MIN}");
        return Err(wrong(what, "more pairs make it narrower").into());
    }
    if args.trial < TRIAL_MIN {
        let what = format!("--trial {}: an interval needs {TRIAL_MIN}", args.trial);
        return Err(wrong(what, "seconds are what it stands on").into());
    }
    weir_oltp::validate::spec(&spec).map_err(usage)?;
    Ok(spec)
}

/// As many rounds as were asked for, or as fit the time.
fn rounds(args: &Args, changes: usize) -> u32 {
    let round_ns = (args.trial.0 + TRIAL_WARMUP.0 + AROUND_TRIAL.0) * (changes as u64 + 1);
    let fit = u32::try_from(args.budget.0 / round_ns).unwrap_or(u32::MAX);
    args.pairs.unwrap_or(fit.clamp(PAIRS_MIN, PAIRS_MOST))
}

/// Runs with each change, and those without that belong to them.
type Tries = Vec<(Change, Vec<Pair>)>;

/// Tests changes in rounds, and judges what there is of them: also where the user, or an error, ends it before its time.
fn test(
    args: &Args,
    spec: &OltpSpec,
    changes: &[Change],
    trials: &Trials<'_>,
    place: &mut Place,
    line: &mut StepLine,
    first: &OltpRecord,
) -> (Vec<Tested>, anyhow::Result<()>) {
    let Some(evidence) = Evidence::of(first) else { return (Vec::new(), Ok(())) };
    let offered = changes.iter().copied().filter(|change| place.offers(*change, spec, line));
    let mut tries: Tries = offered.map(|change| (change, Vec::new())).collect();
    let ended = in_rounds(args, spec, trials, place, line, &mut tries);
    let is_enough = tries.first().is_some_and(|(_, pairs)| pairs.len() >= PAIRS_MIN as usize);
    (if is_enough { tested(&tries, &judge(&evidence), spec.seed) } else { Vec::new() }, ended)
}

/// Runs in rounds: one without a change and one with each. The first place in a round goes around, so that a drift falls
/// on all alike, and on what they are compared with. A round that is cut short gives no pairs.
fn in_rounds(
    args: &Args,
    spec: &OltpSpec,
    trials: &Trials<'_>,
    place: &mut Place,
    line: &mut StepLine,
    tries: &mut Tries,
) -> anyhow::Result<()> {
    let short = OltpSpec { duration: args.trial, warmup: TRIAL_WARMUP, transactions: 0, ..spec.clone() };
    let rounds = rounds(args, tries.len());
    if rounds < PAIRS_FEW {
        line.say(&format!(
            "note: {rounds} pairs of runs with each change are few, and may not be enough to tell: a longer --budget, or \
             fewer changes with --change, give more"
        ));
    }
    for round in 0..rounds {
        let mut ran = vec![Vec::new(); tries.len() + 1];
        for at in in_turn(ran.len(), round) {
            let change = at.checked_sub(1).map(|change| tries[change].0);
            let name = change.map_or("as it is", Change::name);
            line.begin(&format!("round {} of {rounds}: {name}", round + 1));
            let record = match change {
                None => trials.plain(&short, &place.server())?,
                Some(change) => place.with(change, &short, trials)?,
            };
            if trials.stop.requested().is_some() {
                return Ok(());
            }
            ran[at] = seconds(&record);
        }
        let without = ran.remove(0);
        for ((_, pairs), with) in tries.iter_mut().zip(ran) {
            pairs.push((without.clone(), with));
        }
    }
    Ok(())
}

/// The order of a round's runs, of which 0 is the one without a change: each comes first in its turn.
fn in_turn(runs: usize, round: u32) -> impl Iterator<Item = usize> {
    (0..runs).map(move |nth| (nth + round as usize) % runs)
}

#[cfg(test)]
mod tests {
    use super::in_turn;

    #[test]
    fn a_drift_falls_on_runs_without_a_change_as_on_those_with_one() {
        for runs in 2..7 {
            let mut places = vec![0; runs];
            for round in 0..runs as u32 {
                in_turn(runs, round).enumerate().for_each(|(place, at)| places[at] += place);
            }
            let alike: usize = (0..runs).sum();
            assert!(places.iter().all(|sum| *sum == alike), "{places:?}");
        }
    }
}
