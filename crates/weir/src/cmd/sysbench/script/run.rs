//! `run`: events in all threads, then a record in the store, then the report.

use std::sync::Arc;

use weir_cli::signals::raise_on_signals;
use weir_core::units::Nanos;
use weir_core::workload::spec::{Arrival, Rate};
use weir_db::DbError;
use weir_db::runner::{RunOptions, run_workload};
use weir_db::script::Events;
use weir_host::Host;
use weir_io::runner::Stop;
use weir_oltp::record::KIND;
use weir_oltp::{OltpRecord, OltpSpec};
use weir_record::Body;
use weir_sysbench::database::LOST;
use weir_sysbench::oltp_report::SqlCounts;
use weir_sysbench::{General, Log, Quit, mode, oltp_extra};

use super::reports::Reports;
use super::{Script, fatal};
use crate::cmd::sysbench::errno::words;
use crate::failure::Outcome;
use crate::session::{Session, save};

/// sysbench's exit code of a forced shutdown.
const FORCED_SHUTDOWN: u8 = 2;
/// Threads that are not stuck get this long to end: 5 % of a short run is no time at all.
const GRACE_NS: u64 = 200_000_000;
/// Without `--forced-shutdown` sysbench waits for ever; here a statement that hangs so long is cancelled, and sooner after
/// Ctrl-C.
const PATIENCE_NS: u64 = 60_000_000_000;

/// Runs the script's events and prints sysbench's report, then weir's.
pub fn run(script: &Script, log: &mut Log<'_>, stop: &Stop) -> Result<Outcome, Quit> {
    let ready = script.state.export().and_then(|()| script.state.call("init", None));
    ready.map_err(|error| fatal(&error, log))?;
    if !script.state.defines("event") {
        let name = script.shared.source.short_name();
        return Err(log.fatal(format!("cannot find the event() function in {name}")));
    }
    raise_on_signals(stop).map_err(|error| log.fatal(words(&error)))?;
    mode::print_general(&script.general, log);
    log.notice("");
    log.notice("Initializing worker threads...\n");
    let command: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let session = Session::begin_at(KIND, &command, None);
    let events = Arc::new(Events::new(script.shared.clone()));
    let mut reports = Reports::new(&script.general, &script.state, &events, stop, log);
    let options = RunOptions {
        grace_ns: grace_ns(&script.general),
        machine_busy_ns: Some(|| Host::live().busy_ns().ok()),
        ..RunOptions::default()
    };
    let ended = run_workload(&spec(script), events.clone(), &options, &mut reports, stop);
    let mut record = match ended {
        Ok(record) => record,
        Err(DbError::Stopped) => return Ok(stop.requested().map_or(Outcome::Code(1), Outcome::Interrupted)),
        Err(error) => {
            if events.failure().is_none() {
                reports.log.fatal(error.to_string());
            }
            return Err(reports.log.fatal("Thread initialization failed!"));
        }
    };
    record.script_path = Some(script.shared.source.name.clone());
    record.error = events.failure().or(record.error);
    save(&session.record_of(Body::Oltp(Box::new(record.clone())), stop));
    Ok(print(script, &record, events.failure(), &mut reports, stop))
}

fn grace_ns(general: &General) -> u64 {
    general.forced_shutdown_s.map_or(PATIENCE_NS, |s| s.saturating_mul(500_000_000).max(GRACE_NS))
}

/// What concerns every workload; the rest is the script's business.
fn spec(script: &Script) -> OltpSpec {
    let general = &script.general;
    let rate = f64::from(general.rate);
    OltpSpec {
        threads: general.threads,
        duration: Nanos(general.time_s.saturating_mul(1_000_000_000)),
        transactions: general.events,
        rate: (general.rate > 0).then_some(Rate { iops: rate, arrival: Arrival::Poisson }),
        seed: script.shared.seed,
        prepared: script.shared.prepared,
        reconnect: LOST.iter().any(|number| script.database.ignored.holds(*number)),
        ..OltpSpec::default()
    }
}

/// Prints what was measured and decides how the program ends.
fn print(
    script: &Script,
    record: &OltpRecord,
    script_failure: Option<String>,
    reports: &mut Reports<'_, '_>,
    stop: &Stop,
) -> Outcome {
    let counts = SqlCounts::of_record(record);
    let abandoned = record.notes.iter().any(|note| note.key == "abandoned");
    // A user who has asked to stop knows why.
    let is_forced = abandoned && stop.requested().is_none();
    print_end(&script.general, record, &counts, is_forced, stop, reports.log);
    if let Some(error) = record.error.as_ref().filter(|_| script_failure.is_none()) {
        reports.log.fatal(error);
    }
    let failed = record.error.is_some() || script_failure.is_some();
    // sysbench prints no report after an error.
    if !failed {
        let stuck =
            if abandoned { record.intervals.last().map_or(0, |last| u64::from(last.in_flight)) } else { 0 };
        reports.print_last(&counts, record.elapsed_ns as f64 / 1e9, &record.threads, stuck);
    }
    let done = script.state.done();
    if script.general.extra {
        let remarks = oltp_extra::blocks(&script.general, &script.database, record);
        reports.log.notice(remarks.trim_end());
    }
    if let Err(error) = &done {
        fatal(error, reports.log);
    }
    if is_forced && script.general.forced_shutdown_s.is_some() {
        Outcome::Code(FORCED_SHUTDOWN)
    } else if failed || done.is_err() {
        Outcome::Code(1)
    } else {
        stop.requested().map_or(Outcome::Done, Outcome::Interrupted)
    }
}

/// Why the threads ended; sysbench says nothing of a script that ended itself.
fn print_end(
    general: &General,
    record: &OltpRecord,
    counts: &SqlCounts,
    is_forced: bool,
    stop: &Stop,
    log: &mut Log<'_>,
) {
    if is_forced {
        log.fatal("The --max-time limit has expired, forcing shutdown...");
        return;
    }
    let reason = if stop.requested().is_some() {
        Some("Interrupted, exiting...")
    } else if general.events > 0 && counts.events.count() >= general.events {
        Some("Event limit exceeded, exiting...")
    } else if general.time_s > 0 && record.elapsed_ns >= general.time_s.saturating_mul(1_000_000_000) {
        Some("Time limit exceeded, exiting...")
    } else {
        None
    };
    if let Some(reason) = reason {
        (0..general.threads).for_each(|_| log.info(reason));
    }
    log.info("Done.\n");
}
