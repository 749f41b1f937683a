//! `weir tune`: the workload and the arms are read, the trials are made, and what follows from them is printed.

mod designs;

use weir_cli::signals::stop_on_signals;
use weir_experiment::{Study, study};
use weir_io::runner::Stop;
use weir_report::{json, text};

use crate::cli::tune::{Args, Command, Format};
use crate::experiments::{self, Asked, Ended, Lab, Planned, rehearsal};
use crate::failure::{Lacking, Outcome};
use crate::output;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    let stop = stop_on_signals()?;
    if let Command::Resume(args) = &args.command {
        let ended = experiments::resume(args.run.as_deref(), &args.i_know_this_destroys, &stop)?;
        return print(&ended, args.format);
    }
    let mut typed = designs::read(args.command)?;
    for note in &typed.asked.notes {
        say!("note: {note}");
    }
    experiments::enter(&mut typed.asked)?;
    let mut lab = experiments::lab(&typed.asked, &stop)?;
    let planned = designs::plan(&typed, &mut lab, &stop)?;
    carry_out(lab, &planned, &typed.asked, (typed.dry_run, typed.format), command, &stop)
}

/// Makes the trials of a plan and prints what follows; says what would be done where nothing shall be run.
pub fn carry_out(
    lab: Lab<'_>,
    planned: &Planned,
    asked: &Asked,
    (dry_run, format): (bool, Format),
    command: &[String],
    stop: &Stop,
) -> anyhow::Result<Outcome> {
    experiments::knobs::check_values(&lab.host, &planned.arms)?;
    if dry_run {
        output::print(&rehearsal::text(planned, asked, &lab)?)?;
        return Ok(Outcome::Done);
    }
    print(&experiments::carry_out(lab, planned, asked, command, stop)?, format)
}

/// What follows from the trials, also of a course that was cut short.
fn print(ended: &Ended, format: Format) -> anyhow::Result<Outcome> {
    output::print_for(format == Format::Text, &report(ended, format)?)?;
    if let Some(path) = &ended.path {
        say!("record: {}", path.display());
    }
    match ended.signal {
        Some(signal) => {
            match study::is_throw_away(&ended.record) {
                true => say!("weir: interrupted"),
                false => say!("weir: interrupted; `weir tune resume {}` continues", ended.record.id),
            }
            Ok(Outcome::Interrupted(signal))
        }
        None => Ok(Outcome::Done),
    }
}

fn report(ended: &Ended, format: Format) -> anyhow::Result<String> {
    if format == Format::Record {
        return Ok(serde_json::to_string(&ended.record.with_extra(&ended.experiment))? + "\n");
    }
    let path = ended.path.as_ref().map(|path| path.display().to_string());
    let study = Study::of(&ended.record, &ended.experiment, path).map_err(|why| Lacking {
        what: format!("cannot use the record {}: {why}", ended.record.id),
        hint: None,
    })?;
    Ok(match format {
        Format::Json => json::experiment(&study)?,
        _ => text::experiment(&study),
    })
}
