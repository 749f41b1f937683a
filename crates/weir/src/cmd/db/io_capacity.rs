//! `weir db io-capacity`.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_cli::signals::stop_on_signals;
use weir_core::stop::Stop;
use weir_core::units::{Nanos, significant};
use weir_db::runner::{self, RunOptions, Silent};
use weir_db::vitals::{Unseen, snapshot, variables_that_matter};
use weir_db::{Connection, Server};
use weir_experiment::{Arm, SweepPlan};
use weir_host::knob;
use weir_knobs::{KnobName, Setting, Value};
use weir_oltp::vitals::{LOG_FULL, Snapshot};
use weir_oltp::{Dialect, OltpSpec, Script};

use super::experiment::{arm, asked, carry_out, goal, ground};
use crate::cli::db::io_capacity::Args;
use crate::databases::ground::Ground;
use crate::databases::server;
use crate::experiments::{Asked, planned, settle};
use crate::failure::{Lacking, Outcome, Usage};
use crate::machine;
use crate::servers::name_of;

const CAPACITY: &str = "innodb_io_capacity";
const CAPACITY_MAX: &str = "innodb_io_capacity_max";
/// The server's count of data pages written.
const FLUSHED: &str = "Innodb_buffer_pool_pages_flushed";
const REPEATS: u32 = 3;
/// Longest time before a trial until the server flushes at the pace of the value that is tried.
const SETTLE: Nanos = Nanos::from_secs(60);
/// How long the workload is looked at as it is found.
const LOOK: Nanos = Nanos::from_secs(5);
/// Flushing has to keep up with more than the mean.
const HEADROOM: f64 = 1.25;
/// The least that the server takes.
const LEAST: f64 = 100.0;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let stop = stop_on_signals()?;
    let ground = ground(&args.common, Script::ReadWrite, &stop)?;
    if ground.server.dialect != Dialect::MySql {
        let what = "innodb_io_capacity is a variable of MySQL and MariaDB".to_string();
        let hint = "PostgreSQL's own are checkpoint_flush_after, bgwriter_lru_maxpages, max_wal_size: try them with \
                    `weir tune sweep postgres:USER@PLACE/checkpoint_flush_after --db '…'`";
        return Err(Usage { what, hint: Some(hint.to_string()) }.into());
    }
    let named = |name| variable(&ground.server, name);
    let (capacity, capacity_max) = (named(CAPACITY)?, named(CAPACITY_MAX)?);
    let (found, found_max) = (value(&capacity)?, value(&capacity_max)?);
    let mut grid = args.grid;
    grid.retain(|value| *value != found);
    grid.sort_unstable();
    grid.dedup();
    let trials = &args.common.trials;
    let mut asked = asked(&ground, trials, Vec::new());
    // A user who says how long to warm up knows what there is to wait for.
    let typed = ground.transactions.spec.warmup.0 > 0;
    asked.conduct.settle_ns = if typed { 0 } else { SETTLE.0 };
    let tried = grid.iter().map(|value| {
        let set = |knob: &KnobName, value: i64| Setting { knob: knob.clone(), value: Value::Number(value) };
        let raised = (found_max < 2 * value).then(|| set(&capacity_max, 2 * value));
        let settings = raised.into_iter().chain([set(&capacity, *value)]).collect();
        Arm { settings, ..arm(&value.to_string(), &ground.transactions) }
    });
    let as_found = arm(&format!("baseline ({found})"), &ground.transactions);
    let plan = SweepPlan {
        knob: CAPACITY.to_string(),
        arms: [as_found].into_iter().chain(tried).collect(),
        repeats: asked.repeats.unwrap_or(REPEATS),
        duration_ns: asked.duration_ns,
        abort_age_ns: None,
        seed: asked.seed,
        goal: goal(trials),
        refine: false,
        added: SweepPlan::ADDED.to_vec(),
    };
    let mut planned = planned("sweep", &plan, plan.arms.clone(), plan.goal.clone())?;
    if !trials.dry_run {
        planned.notes = what_is_needed(&ground, &asked, &stop)?;
    }
    carry_out(ground, trials, &asked, &planned, command, &stop)
}

/// What follows from the workload as it runs now: pages that become dirty have to be flushed, and no more of them; and whether
/// trials see a log that is full.
fn what_is_needed(ground: &Ground, asked: &Asked, stop: &Stop) -> anyhow::Result<Vec<String>> {
    let failed = |error| server::failed(error, "cannot read the server's counters", &ground.server);
    let mut connection = Connection::open(&ground.server).map_err(failed)?;
    let longest = Duration::from_nanos(asked.conduct.settle_ns);
    if !longest.is_zero() {
        say!("weir: runs the transactions at the baseline until the server flushes at its own pace");
        let settled = settle(&ground.transactions, &ground.logins, 0, longest, stop);
        settled.map_err(|what| Lacking { what, hint: None })?;
    }
    let spec =
        OltpSpec { warmup: Nanos(0), duration: LOOK, transactions: 0, ..ground.transactions.spec.clone() };
    let mut unseen = Unseen::default();
    let before = snapshot(&mut connection, &mut unseen).map_err(failed)?;
    let servers = ground.logins.named(&ground.transactions.server)?;
    let ran = runner::run(&spec, &servers, &RunOptions::default(), &mut Silent, stop)
        .map_err(|error| server::not_started(error, &ground.server))?;
    let after = snapshot(&mut connection, &mut unseen).map_err(failed)?;
    let variables = variables_that_matter(&mut connection).map_err(failed)?;
    let look = Look { before, after, seconds: (ran.elapsed_ns as f64 / 1e9).max(f64::MIN_POSITIVE) };
    let trial_ns = asked.conduct.settle_ns + asked.conduct.warmup_ns + asked.duration_ns;
    Ok([Some(look.pages()), look.log(&variables, Nanos(trial_ns))].into_iter().flatten().collect())
}

/// The server before and after some seconds of the workload at the baseline.
struct Look {
    before: Snapshot,
    after: Snapshot,
    seconds: f64,
}

impl Look {
    /// Growth of the sum of some figures, a second.
    fn growth(&self, names: &[&str]) -> f64 {
        let sum = |counted: &Snapshot| names.iter().filter_map(|name| counted.get(name)).sum::<f64>();
        (sum(&self.after) - sum(&self.before)).max(0.0) / self.seconds
    }

    /// Which value keeps up.
    fn pages(&self) -> String {
        let flushed = self.growth(&[FLUSHED]);
        let dirtied = self.growth(&[FLUSHED, "Innodb_buffer_pool_pages_dirty"]);
        let syncs = self.growth(&["Innodb_data_fsyncs"]);
        let enough = ((dirtied * HEADROOM / 50.0).ceil() * 50.0).max(LEAST);
        format!(
            "At the baseline {} pages/s became dirty, {} were flushed, beside {} syncs/s: {CAPACITY} = \
             {enough:.0} ({HEADROOM} \
             times the first) keeps up with that. Where the same pages become dirty again and again, a lower value writes \
             each less often.",
            significant(dirtied),
            significant(flushed),
            significant(syncs),
        )
    }

    /// That trials end long before the log is full, if they do: a full log makes the server flush whatever the variable says.
    fn log(&self, variables: &BTreeMap<String, String>, trial: Nanos) -> Option<String> {
        let (age, most) = self.after.log_held(variables)?;
        let written = self.growth(&["Innodb_os_log_written"]);
        let filled_s = (most * LOG_FULL - age) / written.max(1.0);
        (filled_s > trial.0 as f64 / 1e9).then(|| {
            format!(
                "The log was {:.0} % full and takes {} of this workload to fill: trials show how it runs before that. \
                 Once it is full, pages are flushed as fast as they must be, whatever {CAPACITY} says.",
                100.0 * age / most,
                Nanos((filled_s * 1e9) as u64),
            )
        })
    }
}

/// A variable of the server as a knob, whose name has to be read again from records and journals.
fn variable(server: &Server, name: &str) -> anyhow::Result<KnobName> {
    let parsed = format!("{}/{name}", name_of(server)).parse::<KnobName>();
    parsed.map_err(|error| {
        let hint =
            "name the server by a user and a socket without spaces and `..`; a link may have such a path";
        Usage { what: error.to_string(), hint: Some(hint.to_string()) }.into()
    })
}

fn value(knob: &KnobName) -> anyhow::Result<i64> {
    let reading = knob::read(&machine::host(), knob);
    let value = reading.map_err(|error| Lacking { what: error.to_string(), hint: None })?.value;
    value.and_then(|value| value.number()).ok_or_else(|| {
        let what = format!("{} cannot be read as a number", knob.setting);
        Lacking { what, hint: None }.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers;

    #[test]
    fn a_server_that_no_knob_can_name_is_refused_at_once() {
        let knob = |url: &str| variable(&servers::named(url).unwrap()[0], CAPACITY);
        let good = knob("mysql://root@/weir?socket=/run/db.sock").unwrap();
        assert_eq!(good.to_string(), "mysql:root@/run/db.sock/innodb_io_capacity");
        let refused = knob("mysql://root@/weir?socket=/run/a%20b/db.sock").unwrap_err();
        assert!(refused.is::<Usage>() && refused.to_string().contains("/run/a b/db.sock"), "{refused}");
    }
}
