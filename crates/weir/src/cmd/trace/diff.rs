//! `weir trace diff`.

use std::io::{Read, Seek};
use std::path::Path;

use anyhow::Context;
use weir_blocktrace::Analysis;
use weir_blocktrace::diff::{self, Error, Options};
use weir_cli::signals::stop_on_signals;
use weir_core::target::DeviceNumber;
use weir_io::runner::Stop;
use weir_report::trace as report;

use crate::cli::trace::diff::{Args, Format};
use crate::failure::{Lacking, Outcome, Usage};
use crate::output::{print, print_exact};
use crate::progress::Progress;
use crate::trace_input::{self, Filter, Reader};

/// A device as typed: `A`, or `A,B`.
type Wanted<'a> = [Option<&'a str>; 2];

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let stop = stop_on_signals()?;
    let a = load(&args.a, args.keep_going, &stop)?;
    let b = load(&args.b, args.keep_going, &stop)?;
    if let Some(signal) = stop.requested() {
        say!("interrupted: nothing is compared, since only a part was read");
        return Ok(Outcome::Interrupted(signal));
    }
    let wanted: Wanted<'_> =
        match args.device.as_deref().map(|typed| typed.split_once(',').unwrap_or((typed, typed))) {
            Some((of_a, of_b)) => [Some(of_a.trim()), Some(of_b.trim())],
            None => [None, None],
        };
    let devices = [find_device(&a, wanted[0], 'A')?, find_device(&b, wanted[1], 'B')?];
    let options = Options { devices, margin: args.margin.0, seed: args.seed };
    let diff = diff::diff(&a, &b, &options).map_err(refuse)?;
    let names = [args.a.display().to_string(), args.b.display().to_string()];
    let names = [names[0].as_str(), names[1].as_str()];
    match args.format {
        Format::Text => print(&report::diff(&diff, names))?,
        Format::Json => print_exact(&report::diff_json(&diff, names)?)?,
    }
    Ok(Outcome::Done)
}

fn refuse(error: Error) -> anyhow::Error {
    match error {
        Error::Empty(_) => Lacking { what: error.to_string(), hint: None }.into(),
        Error::NoDevice { .. } => Usage { what: error.to_string(), hint: None }.into(),
    }
}

/// The number of a device that was named by number or by name.
fn find_device(
    analysis: &Analysis,
    wanted: Option<&str>,
    side: char,
) -> anyhow::Result<Option<DeviceNumber>> {
    let Some(wanted) = wanted else { return Ok(None) };
    let of_name = wanted.strip_prefix("/dev/").unwrap_or(wanted);
    let found = analysis
        .devices
        .iter()
        .find(|device| device.device.to_string() == wanted || device.name.as_deref() == Some(of_name));
    match found {
        Some(device) => Ok(Some(device.device)),
        None => {
            let has: Vec<String> = analysis.devices.iter().map(|device| device.label()).collect();
            let what = format!("{side} has no device {wanted}; it has {}", has.join(", "));
            Err(Usage { what, hint: None }.into())
        }
    }
}

/// A saved analysis, or a recording, analysed now: what was read of it by the time of a signal.
fn load(path: &Path, keep_going: bool, stop: &Stop) -> anyhow::Result<Analysis> {
    if let Some(text) = saved(path)? {
        return parse(&text).ok_or_else(|| {
            let what = format!("{} is JSON, but not an analysis of a recording", path.display());
            let hint =
                "`weir trace read --format json` and `weir trace live --json` save what can be compared";
            Lacking { what, hint: Some(hint.to_string()) }.into()
        });
    }
    let recordings = trace_input::find(&[path.to_path_buf()])?;
    let [recording] = recordings.as_slice() else {
        let found: Vec<&str> = recordings.iter().map(|recording| recording.name.as_str()).collect();
        let what = format!("{} holds {} recordings: {}", path.display(), found.len(), found.join(", "));
        return Err(Usage { what, hint: Some("name one of them".to_string()) }.into());
    };
    let mut progress = Progress::new();
    let filter = Filter::default();
    let mut reader =
        Reader { filter: &filter, keep_going, stop, progress: &mut progress, rows: None, events: None };
    let analysed = trace_input::analyse(recording, &mut reader)?;
    progress.clear();
    for note in &analysed.notes {
        say!("note: {}: {note}", analysed.name);
    }
    Ok(analysed.analysis)
}

/// The text of a file that begins as JSON does; nothing where it is something else, or no plain file.
fn saved(path: &Path) -> anyhow::Result<Option<String>> {
    let Ok(mut file) = weir_fs::regular_file(path) else { return Ok(None) };
    let mut first = [0; 1];
    let is_json = file.read(&mut first).is_ok_and(|n| n == 1) && first[0] == b'{';
    if !is_json {
        return Ok(None);
    }
    let mut text = String::new();
    file.rewind()
        .and_then(|()| file.read_to_string(&mut text))
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Some(text))
}

/// One document, or lines of which the last holds the whole time.
fn parse(text: &str) -> Option<Analysis> {
    let last = || text.lines().rev().find(|line| !line.trim().is_empty());
    report::read_json(text).ok().or_else(|| report::read_json(last()?).ok())
}
