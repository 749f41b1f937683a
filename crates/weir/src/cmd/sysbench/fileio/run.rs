//! `run`: facts first, then the workload, then a record in the store, then the report.

use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use weir_core::printable;
use weir_core::result::record::JobRecord;
use weir_core::workload::op::{Op, OpKind, OpSource};
use weir_io::IoError;
use weir_io::place::Place;
use weir_io::runner::{self, JobPlan, RunOptions, Stop};
use weir_sysbench::fileio_report::{self, Counts};
use weir_sysbench::stream::Stream;
use weir_sysbench::{Log, Quit, Settings, fileio_extra, job, legacy, mode};

use super::files;
use super::observer::Reports;
use crate::failure::Outcome;
use crate::session::{self, Ran, Session};

/// sysbench's exit code of a forced shutdown.
const FORCED_SHUTDOWN: u8 = 2;
/// Threads that are not stuck get this long to end: 5 % of a short run is no time at all.
const GRACE_NS: u64 = 200_000_000;

/// Runs the test and prints sysbench's report, then weir's.
pub fn run(settings: &Settings, log: &mut Log<'_>, stop: &Stop) -> Result<Outcome, Quit> {
    if settings.general.legacy_report {
        legacy::print_mode(settings, log);
    } else {
        mode::print(settings, log);
    }
    files::check_sealable(settings, log)?;
    let places = files::for_run(settings, log)?;
    if !settings.general.legacy_report {
        log.notice("Initializing worker threads...\n");
    }
    let command: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let session = Session::begin("fileio", &command, Path::new("."));
    let mut reports = Reports::new(settings, log);
    let measured = measure(settings, places, &mut reports, stop);
    let record = match measured {
        Ok(record) => record,
        Err(error) => return Err(refuse(&error, reports.log)),
    };
    session::save(&session.record(Ran { jobs: vec![record.clone()], ..Ran::default() }, stop));
    Ok(print(settings, &record, &mut reports, stop))
}

fn measure(
    settings: &Settings,
    places: Vec<Place>,
    reports: &mut Reports<'_, '_>,
    stop: &Stop,
) -> Result<JobRecord, IoError> {
    let seed = match settings.general.seed {
        0 => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64),
        seed => seed as u64,
    };
    let stream = Stream::new(settings, seed);
    let source: Box<dyn OpSource> =
        if settings.general.debug { Box::new(Echo(stream)) } else { Box::new(stream) };
    let options = RunOptions {
        abandon_after_ns: settings
            .general
            .forced_shutdown_s
            .map(|s| s.saturating_mul(1_000_000_000).max(GRACE_NS)),
        ..session::run_options()
    };
    let plan = JobPlan { job: job::job(settings, seed), source, places };
    let mut records = runner::run(vec![plan], &options, reports, stop)?;
    records.pop().ok_or_else(|| IoError::environment("the runner returned no record"))
}

/// The run could not start.
fn refuse(error: &IoError, log: &mut Log<'_>) -> Quit {
    let quit = log.fatal(error.to_string());
    if let Some(hint) = &error.hint {
        log.console.err(&format!("hint: {hint}\n"));
    }
    quit
}

/// Prints what was measured and decides how the program ends.
fn print(settings: &Settings, record: &JobRecord, reports: &mut Reports<'_, '_>, stop: &Stop) -> Outcome {
    let counts = Counts::of_record(record, settings.fileio.fsync.all);
    let abandoned = record.notes.iter().any(|note| note.key == "abandoned");
    print_end(settings, &counts, abandoned, stop, reports.log);
    let sync_failure = record.final_sync.as_ref().and_then(|sync| sync.error.as_ref());
    if let Some(error) = &record.error {
        reports.log.fatal(error);
    }
    // sysbench prints no report after an error; a failed final sync takes nothing from what was measured before it.
    if record.error.is_none() || sync_failure.is_some() {
        if settings.general.histogram {
            reports.log.notice("Latency histogram (values are in milliseconds)");
            reports.log.raw(&fileio_report::histogram(&counts.events));
            reports.log.notice(" ");
        }
        let stuck =
            if abandoned { record.intervals.last().map_or(0, |last| u64::from(last.in_flight)) } else { 0 };
        reports.print_last(&counts, record.elapsed_ns as f64 / 1e9, &record.threads, stuck);
    }
    if settings.general.extra {
        reports.log.notice(fileio_extra::blocks(settings, record).trim_end());
    }
    let corrupt = print_corruption(record, reports.log);
    if abandoned {
        Outcome::Code(FORCED_SHUTDOWN)
    } else if record.error.is_some() || corrupt {
        Outcome::Code(1)
    } else {
        stop.requested().map_or(Outcome::Done, Outcome::Interrupted)
    }
}

/// Why the threads ended.
fn print_end(settings: &Settings, counts: &Counts, abandoned: bool, stop: &Stop, log: &mut Log<'_>) {
    if abandoned {
        log.fatal("The --max-time limit has expired, forcing shutdown...");
        return;
    }
    let limit = settings.general.events;
    let reason = if stop.requested().is_some() {
        "Interrupted, exiting..."
    } else if limit > 0 && counts.events.count() >= limit {
        "Event limit exceeded, exiting..."
    } else {
        "Time limit exceeded, exiting..."
    };
    for _ in 0..settings.general.threads {
        log.info(reason);
    }
    log.info("Done.\n");
}

/// What `--validate` found wrong.
fn print_corruption(record: &JobRecord, log: &mut Log<'_>) -> bool {
    let Some(verify) = &record.verify else { return false };
    for example in &verify.examples {
        log.fatal(format!("Validation failed on {example}"));
    }
    verify.stale + verify.torn + verify.misplaced > 0
}

/// `--debug`: says each request as a thread takes it. Threads take one at a time, so a larger helping goes to nobody.
struct Echo(Stream);

impl OpSource for Echo {
    fn fill(&mut self, out: &mut Vec<Op>, n: usize) {
        let before = out.len();
        self.0.fill(out, n);
        if n > 1 {
            return;
        }
        for op in &out[before..] {
            let number = match op.kind {
                OpKind::Read => 1,
                OpKind::Write => 2,
                OpKind::Sync(_) => 3,
            };
            let line = format!(
                "DEBUG: Executing request, operation: {number}, file_id: {}, pos: {}, size: {}\n",
                op.file, op.offset, op.len
            );
            // A reader that went away is noticed where the report is printed.
            let _ = io::stdout().write_all(printable::lines(&line).as_bytes());
        }
    }
}
