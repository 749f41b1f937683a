//! `weir bench`: run a workload and report it honestly.

mod replay;

use std::path::Path;

use weir_cli::signals::stop_on_signals;
use weir_core::result::Record;
use weir_core::result::record::Note;
use weir_io::files::Files;
use weir_io::flood::FloodSpec;
use weir_io::runner::{JobPlan, Stop};
use weir_io::scratch;
use weir_record::Body;

use crate::cli::bench::Args;
use crate::devices::{folder_of, refuse_devices_in_use};
use crate::failure::Outcome;
use crate::guard::acting;
use crate::inputs;
use crate::output::{Format, print_exact, print_for, render};
use crate::progress::Progress;
use crate::session::{Ran, Session, run_jobs, run_options, save};
use crate::settings::BenchSettings;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let settings = inputs::bench::settings(args)?;
    for note in &settings.notes {
        say!("note: {note}");
    }
    if settings.print_job {
        print_exact(&weir_core::workload::jobfile::print(&settings.jobs))?;
        return Ok(Outcome::Done);
    }
    let stop = stop_on_signals()?;
    let record = match &settings.replay {
        Some(asked) => replay::play(asked, &settings, command, &stop)?,
        None => {
            refuse_devices_in_use(&settings.jobs, &settings.destroys)?;
            weir_record::Record { head: measure(&settings, command, &stop)?, body: Body::Jobs }
        }
    };
    let path = save(&record);
    print_for(settings.format == Format::Text, &render(&record, path.as_deref(), settings.format)?)?;
    complain(&record.head);
    Ok(outcome(&record.head, &stop))
}

/// A failed operation is said on stderr, too: stdout may go to a program.
fn complain(record: &Record) {
    let failed: Vec<_> =
        record.jobs.iter().filter_map(|job| Some((&job.job.name, job.error.as_ref()?))).collect();
    for (name, error) in &failed {
        say!("error: job `{name}`: {error}");
    }
    if !failed.is_empty() {
        say!("hint: the measurements until then are kept; the kernel's log (dmesg) may say more");
    }
}

/// Makes the files, runs the jobs, and removes what was made.
fn measure(settings: &BenchSettings, command: &[String], stop: &Stop) -> anyhow::Result<Record> {
    let place = settings.jobs.first().map_or(Path::new("."), |job| job.target.place());
    let floods = floods(settings, place)?;
    for folder in scratch::remove_abandoned(folder_of(place)) {
        say!("weir: {folder}");
    }
    let mut progress = Progress::new();
    let mut plans = Vec::with_capacity(settings.jobs.len());
    let mut files = Files::default();
    for job in &settings.jobs {
        plans.push(files.plan(job.clone(), stop, &mut |done, all| progress.filling(done, all))?);
    }
    // After the files are there, so that the conditions are those of the run.
    let session = Session::begin("bench", command, place);
    let ran = run_beside(plans, floods, &mut progress, stop)?;
    progress.clear();
    drop(files);
    Ok(session.record(ran, stop))
}

/// Runs jobs with floods beside them. A guard that acts on the floods is noted: the figures are those under its limits.
fn run_beside(
    plans: Vec<JobPlan>,
    floods: Vec<FloodSpec>,
    progress: &mut Progress,
    stop: &Stop,
) -> anyhow::Result<Ran> {
    let acting = if floods.is_empty() { None } else { acting() };
    let mut ran = run_jobs(plans, floods, &run_options(), progress, stop)?;
    ran.notes.extend(acting.map(|acting| Note {
        key: "guard-acting".to_string(),
        text: format!("{acting}: the figures beside the flood are those under the guard's limits"),
    }));
    Ok(ran)
}

/// The floods that were asked for, in the folder of a place.
fn floods(settings: &BenchSettings, place: &Path) -> anyhow::Result<Vec<FloodSpec>> {
    let specs = settings.floods.iter().map(|text| FloodSpec::parse(text, folder_of(place)));
    Ok(specs.collect::<Result<Vec<_>, _>>()?)
}

/// How the run ended: a failure of the workload counts more than the signal that ended it.
fn outcome(record: &Record, stop: &Stop) -> Outcome {
    let damaged = record
        .jobs
        .iter()
        .filter_map(|job| job.verify.as_ref())
        .any(|verify| verify.stale + verify.torn + verify.misplaced > 0);
    if damaged || record.jobs.iter().any(|job| job.error.is_some()) {
        return Outcome::WorkloadFailed;
    }
    stop.requested().map_or(Outcome::Done, Outcome::Interrupted)
}
