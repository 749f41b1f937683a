//! `weir doctor`.

use std::path::Path;

use weir_cli::signals::stop_on_signals;
use weir_io::runner::Stop;
use weir_report::{html, junit, text};
use weir_verdict::DoctorReport;
use weir_verdict::notes::{Bar, BarRule};

use crate::cli::doctor::{Args, Format};
use crate::doctor::{Mode, Request, examine};
use crate::failure::{Lacking, Outcome, Usage};
use crate::output;
use crate::page;

/// A second shortest and longest examination that means anything.
const SECONDS_MIN: u64 = 20;
const SECONDS_MAX: u64 = 3600;
/// The same of a sustained one. Credits of cloud volumes last up to hours at the burst rate.
const SUSTAINED_MIN: u64 = 30;
const SUSTAINED_MAX: u64 = 6 * 3600;

/// Runs the command.
pub fn run(args: Args, command: &[String]) -> anyhow::Result<Outcome> {
    unmeasured(&args)?;
    let request = Request {
        path: args.path.clone(),
        mode: mode(&args)?,
        size: args.size,
        bars: args.require.clone(),
        flood: !args.no_flood && args.sustained.is_none() && !args.map,
        knobs: !args.no_knobs && args.sustained.is_none() && !args.map,
        even_if_busy: args.even_if_busy,
        stages: !args.no_trace,
        product: args.product,
        sustained: args.sustained.is_some(),
        map: args.map,
    };
    // Said before minutes of measuring, not after.
    args.html.as_deref().map_or(Ok(()), page::check)?;
    if let Some(file) = &args.junit {
        no_bars(&args)?;
        page::check_form(file, junit::OPENING)?;
    }
    let stop = stop_on_signals()?;
    let (report, path) = examine(&request, command, &stop)?;
    print(&report, path.as_deref(), &args)?;
    Ok(outcome(&report, &stop))
}

/// A bar that no step of this examination measures would never be met, however good the storage is. The test file that every
/// examination writes is measured.
fn unmeasured(args: &Args) -> Result<(), Usage> {
    let left_out = |bar: &&Bar| match bar.rule {
        BarRule::WriteRate(_) => false,
        BarRule::FloodPercent(_) if args.no_flood => true,
        _ => args.product.is_some(),
    };
    let Some(Bar { text, .. }) = args.require.iter().find(left_out) else { return Ok(()) };
    let (option, hint) = match args.product {
        None => ("--no-flood".to_string(), format!("leave out --no-flood or --require {text}")),
        Some(product) => (
            format!("--for {}", product.name()),
            format!(
                "leave out --require {text}, as --for has bars of its own, or examine the storage without --for"
            ),
        ),
    };
    Err(Usage { what: format!("{option} leaves out what the bar `{text}` is about"), hint: Some(hint) })
}

/// A file of test cases without a case says nothing, and would pass.
fn no_bars(args: &Args) -> Result<(), Usage> {
    if args.product.is_some() || !args.require.is_empty() {
        return Ok(());
    }
    let what = "--junit has no test case to write: neither --for nor --require was given".to_string();
    Err(Usage { what, hint: Some("add --for PRODUCT, or --require BAR".to_string()) })
}

fn mode(args: &Args) -> anyhow::Result<Mode> {
    if let Some(longest) = args.sustained {
        if !(SUSTAINED_MIN..=SUSTAINED_MAX).contains(&(longest.0 / 1_000_000_000)) {
            let what = format!("a sustained examination cannot take {longest}");
            let hint = format!("--sustained takes {SUSTAINED_MIN}s to {}h", SUSTAINED_MAX / 3600);
            return Err(Usage { what, hint: Some(hint) }.into());
        }
        return Ok(Mode::sustained(longest));
    }
    if args.map {
        return Ok(if args.quick { Mode::MAP_QUICK } else { Mode::MAP });
    }
    let Some(duration) = args.duration else {
        return Ok(match (args.quick, args.thorough) {
            (true, _) => Mode::QUICK,
            (_, true) => Mode::THOROUGH,
            _ => Mode::DEFAULT,
        });
    };
    if !(SECONDS_MIN..=SECONDS_MAX).contains(&(duration.0 / 1_000_000_000)) {
        let what = format!("an examination cannot take {duration}");
        let hint = Some(format!("--duration takes {SECONDS_MIN}s to {}m", SECONDS_MAX / 60));
        return Err(Usage { what, hint }.into());
    }
    Ok(Mode::of(duration))
}

/// The verdict to stdout, the page to its file, and where everything lies to stderr.
fn print(report: &DoctorReport, path: Option<&Path>, args: &Args) -> anyhow::Result<()> {
    match args.format {
        Format::Text => output::print(&text::doctor(report))?,
        Format::Json => output::print_exact(&(serde_json::to_string_pretty(report)? + "\n"))?,
    }
    if let Some(path) = path {
        say!("record: {}", path.display());
    }
    if let Some(file) = &args.junit {
        page::write_form(file, &junit::doctor(report), junit::OPENING, page::OF_FIGURES).map_err(
            |error| Lacking {
                what: format!("the JUnit file is not written: {error:#}"),
                hint: Some("name another file with --junit; the record is kept all the same".to_string()),
            },
        )?;
    }
    write_page(report, args, path)
}

/// The page goes where it was asked for; else beside the record, if there is one.
fn write_page(examined: &DoctorReport, args: &Args, record: Option<&Path>) -> anyhow::Result<()> {
    let Some(file) = args.html.clone().or_else(|| Some(record?.with_extension("html"))) else {
        return Ok(());
    };
    page::write(&file, &html::doctor(examined), page::OF_FIGURES).map_err(|error| Lacking {
        what: format!("the HTML report is not written: {error:#}"),
        hint: Some("name another file with --html; the record is kept all the same".to_string()),
    })?;
    say!("HTML report: {}", file.display());
    Ok(())
}

fn outcome(report: &DoctorReport, stop: &Stop) -> Outcome {
    match stop.requested() {
        Some(signal) => Outcome::Interrupted(signal),
        None if report.measurements.iter().any(|m| m.error.is_some()) => Outcome::WorkloadFailed,
        None if report.bars.iter().any(|bar| bar.met != Some(true)) => Outcome::BelowBar,
        None => Outcome::Done,
    }
}
