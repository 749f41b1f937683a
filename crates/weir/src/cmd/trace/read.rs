//! `weir trace read`.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, IntoInnerError, IsTerminal, Stdout, Write};

use anyhow::Context;
use weir_blocktrace::{Both, Sink};
use weir_cli::signals::stop_on_signals;
use weir_core::printable;
use weir_fs::Output;
use weir_report::trace::perfetto::{IOS_MAX, Recording as Perfetto};
use weir_report::trace::{self as report, RowFormat, Rows};

use crate::cli::trace::read::{Args, FilterArgs, Format, PerRequest, RowUnit};
use crate::failure::{Outcome, Usage};
use crate::output::{create, place, print_for};
use crate::page;
use crate::progress::Progress;
use crate::trace_input::{self, Analysed, Filter, Reader, Recording};

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    if let Some(path) = &args.output.html {
        page::check(path)?;
    }
    let recordings = trace_input::find(&args.files)?;
    let one_only =
        [(args.output.html.is_some(), "a page"), (args.output.perfetto.is_some(), "a trace for Perfetto")];
    if let Some((_, what)) = one_only.iter().find(|(asked, _)| *asked).filter(|_| recordings.len() > 1) {
        let what = format!("{what} shows one recording, and these are {}", recordings.len());
        let hint =
            Some("per-CPU files of one folder are one recording; others are read one by one".to_string());
        return Err(Usage { what, hint }.into());
    }
    let filter = filter_of(&args.filter)?;
    let mut rows = open_rows(&args)?;
    let mut perfetto = open_perfetto(&args)?;
    let mut analysed = Vec::new();
    let stop = stop_on_signals()?;
    for recording in &recordings {
        let mut progress = Progress::new();
        let mut both;
        let takers: Option<&mut dyn Sink> = match (rows.as_mut(), perfetto.as_mut()) {
            (Some(rows), Some(perfetto)) => {
                both = Both(rows, perfetto);
                Some(&mut both)
            }
            (Some(rows), None) => Some(rows),
            (None, Some(perfetto)) => Some(perfetto),
            (None, None) => None,
        };
        let mut reader = Reader {
            filter: &filter,
            keep_going: args.keep_going,
            stop: &stop,
            progress: &mut progress,
            rows: takers,
            events: None,
        };
        let one = trace_input::analyse(recording, &mut reader)?;
        progress.clear();
        say_notes(&one, &recordings, &filter);
        analysed.push(one);
        if stop.requested().is_some() {
            break;
        }
    }
    let rows_on_stdout = rows.is_some() && args.output.out.is_none();
    if let Some(rows) = rows {
        rows.finish().end().context("cannot write the rows")?;
    }
    if let (Some(perfetto), Some(path)) = (perfetto, &args.output.perfetto) {
        let failed = || format!("cannot write {}", path.display());
        let written = perfetto.finish().with_context(failed)?;
        place(written.out).with_context(failed)?;
        if written.left_out > 0 {
            let why = format!("a trace for Perfetto holds {IOS_MAX}; --from, --to and --device choose which");
            say!("note: {} I/Os are not in {}: {why}", written.left_out, path.display());
        }
        say!("wrote {} ({} I/Os)", path.display(), written.ios);
    }
    if !rows_on_stdout {
        let people = args.output.btt || args.output.format == Format::Text;
        print_for(people, &rendered(&analysed, &args)?)?;
    }
    if let (Some(path), [one]) = (&args.output.html, analysed.as_slice()) {
        page::write(
            path,
            &weir_report::html::trace(&one.analysis, &one.name, &one.notes),
            page::OF_PROCESSES,
        )?;
        say!("wrote {}", path.display());
    }
    Ok(stop.requested().map_or(Outcome::Done, Outcome::Interrupted))
}

fn filter_of(args: &FilterArgs) -> anyhow::Result<Filter> {
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        let what = format!("--from {from} is not before --to {to}");
        return Err(Usage { what, hint: None }.into());
    }
    let name = |typed: &String| typed.strip_prefix("/dev/").unwrap_or(typed).to_string();
    Ok(Filter {
        from_ns: args.from.map(|t| t.0),
        to_ns: args.to.map(|t| t.0),
        devices: args.device.iter().map(name).collect(),
        processes: args.process.clone(),
        classes: args.class.clone(),
        bytes: args.size.map(|range| (range.0, range.1)),
        sectors: args.sector.map(|range| (range.0, range.1)),
    })
}

fn say_notes(one: &Analysed, recordings: &[Recording], filter: &Filter) {
    let several = if recordings.len() > 1 { format!("{}: ", one.name) } else { String::new() };
    for note in &one.notes {
        say!("note: {several}{note}");
    }
    if one.analysis.events == 0 && one.interrupted.is_none() {
        let threads = if filter.processes.is_empty() {
            ""
        } else {
            "; recordings of blktrace and ftrace, and older ones of weir, hold names of threads alone"
        };
        say!("note: {several}none of its events belongs to the requested I/Os{threads}");
    }
    if one.interrupted.is_some() {
        say!("note: {several}interrupted; the figures cover the part that was read");
    }
}

/// All recordings in the form asked for.
fn rendered(analysed: &[Analysed], args: &Args) -> anyhow::Result<String> {
    let mut out = String::new();
    if args.output.format == Format::Json && analysed.len() > 1 {
        let parts = analysed.iter().map(|one| {
            let name = serde_json::to_string(&one.name)?;
            Ok(format!("{{\"recording\":{name},\"analysis\":{}}}", report::json(&one.analysis)?.trim_end()))
        });
        return Ok(format!("[{}]\n", parts.collect::<anyhow::Result<Vec<_>>>()?.join(",\n")));
    }
    for (nth, one) in analysed.iter().enumerate() {
        if analysed.len() > 1 {
            let gap = if nth > 0 { "\n" } else { "" };
            out.push_str(&format!(
                "{gap}{}{}\n",
                if args.output.format == Format::Csv { "# " } else { "" },
                one.name
            ));
        }
        out.push_str(&match args.output.format {
            _ if args.output.btt => report::btt(&one.analysis),
            Format::Text => report::text(&one.analysis),
            Format::Json => report::json(&one.analysis)?,
            Format::Csv => report::csv(&one.analysis),
        });
    }
    Ok(out)
}

/// A trace for Perfetto on its way to a file.
fn open_perfetto(args: &Args) -> anyhow::Result<Option<Perfetto<BufWriter<Output>>>> {
    let Some(path) = &args.output.perfetto else { return Ok(None) };
    Ok(Some(Perfetto::new(BufWriter::with_capacity(1 << 18, create(path, "--perfetto")?))))
}

/// Rows on their way to a file or to standard output.
fn open_rows(args: &Args) -> anyhow::Result<Option<Rows<Text>>> {
    let Some(form) = args.output.per_request else { return Ok(None) };
    let file = args.output.out.as_ref().filter(|path| path.as_os_str() != "-");
    let out = match file {
        Some(path) => RowsTo::File(create(path, "--out")?),
        None => RowsTo::Stdout(io::stdout()),
    };
    let safe: Safe = match file {
        Some(_) => unchanged,
        None => made_safe(form, io::stdout().is_terminal()),
    };
    let format = match form {
        PerRequest::Csv => RowFormat::Csv,
        PerRequest::Jsonl => RowFormat::JsonLines,
    };
    let unit = match args.output.unit {
        RowUnit::Request => report::RowUnit::Request,
        RowUnit::Io => report::RowUnit::Io,
        RowUnit::Bio => report::RowUnit::Bio,
    };
    let text = Text { out: BufWriter::with_capacity(1 << 18, out), safe, failed: None };
    Ok(Some(Rows::new(text, format, unit)))
}

/// What becomes of names that others chose.
type Safe = fn(&str) -> Cow<'_, str>;

/// On standard output JSON says by numbers what a terminal would obey; CSV, which cannot, goes without it to a terminal.
fn made_safe(form: PerRequest, on_terminal: bool) -> Safe {
    match form {
        PerRequest::Jsonl => printable::escaped,
        PerRequest::Csv if on_terminal => printable::lines,
        PerRequest::Csv => unchanged,
    }
}

fn unchanged(text: &str) -> Cow<'_, str> {
    text.into()
}

/// Where rows go.
enum RowsTo {
    File(Output),
    Stdout(Stdout),
}

impl Write for RowsTo {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            RowsTo::File(output) => output.write(bytes),
            RowsTo::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            RowsTo::File(output) => output.flush(),
            RowsTo::Stdout(stdout) => stdout.flush(),
        }
    }
}

/// Text to a writer of bytes, which remembers how it failed.
struct Text {
    out: BufWriter<RowsTo>,
    safe: Safe,
    failed: Option<io::Error>,
}

impl Text {
    /// Writes what is left and puts a file in its place, or says how it failed.
    fn end(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)?;
        match self.out.into_inner().map_err(IntoInnerError::into_error)? {
            RowsTo::File(output) => output.commit(),
            RowsTo::Stdout(mut stdout) => stdout.flush(),
        }
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_all((self.safe)(text).as_bytes()).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_nothing_that_a_terminal_obeys() {
        for (form, on_terminal, expected) in [
            (PerRequest::Jsonl, false, "a\\u009b2J\n"),
            (PerRequest::Jsonl, true, "a\\u009b2J\n"),
            (PerRequest::Csv, true, "a\u{fffd}2J\n"),
            (PerRequest::Csv, false, "a\u{9b}2J\n"),
        ] {
            assert_eq!(made_safe(form, on_terminal)("a\u{9b}2J\n"), expected);
        }
    }
}
