//! Results to stdout, in the form that was asked for; nothing else goes there.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use weir_control::History;
use weir_core::printable;
use weir_core::result::{self, Record};
use weir_experiment::Study;
use weir_experiment::study::KIND;
use weir_oltp::{OltpRecord, OltpResult, is_oltp};
use weir_report::{csv, json, narrow, text};

use crate::failure::{Lacking, Usage};
use crate::terminal;

/// Form of a run's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// A report for people, at most 100 columns wide
    #[default]
    Text,
    /// The result as JSON: figures with their sufficiency and self-checks
    Json,
    /// JSON as fio writes it
    FioJson,
    /// The intervals as CSV
    Csv,
    /// The raw record as JSON: histograms, intervals and conditions
    Record,
}

/// What is said where standard output takes no more.
pub const CANNOT_WRITE: &str = "cannot write the results to standard output";

/// Writes a result for people to standard output; a reader that went away is an error of kind `BrokenPipe`, which
/// `failure` takes as success. Of names that others chose, what a terminal would obey is replaced.
pub fn print(text: &str) -> anyhow::Result<()> {
    let text = printable::lines(text);
    match terminal::columns() {
        Some(columns) => print_exact(&narrow::fitted(&text, columns)),
        None => print_exact(&text),
    }
}

/// The same with a text that either people read or a program.
pub fn print_for(people: bool, text: &str) -> anyhow::Result<()> {
    if people { print(text) } else { print_exact(text) }
}

/// The same for programs: every character as it is.
pub fn print_exact(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(CANNOT_WRITE)
}

/// A record in a given shape. `path` is where it lies, if it does.
pub fn render(record: &Record, path: Option<&Path>, format: Format) -> anyhow::Result<String> {
    let result = || {
        let mut result = result::derive(record);
        result.record_path = path.map(|path| path.display().to_string());
        result
    };
    // The doctor's record holds a verdict; its raw measurements are in every other format.
    let verdict = || weir_verdict::from_record(record);
    Ok(match format {
        Format::Text if record.kind == "doctor" => text::doctor(&verdict()?),
        Format::Json if record.kind == "doctor" => serde_json::to_string_pretty(&verdict()?)? + "\n",
        Format::Text if is_experiment(record) => text::experiment(&study(record, path)?),
        Format::Json if is_experiment(record) => json::experiment(&study(record, path)?)?,
        Format::Text if is_oltp(record) => text::oltp(&transactions(record, path)?.1, record),
        Format::Json if is_oltp(record) => json::oltp(&transactions(record, path)?.1)?,
        Format::Csv if is_oltp(record) => csv::oltp(&transactions(record, path)?.0),
        Format::FioJson if is_oltp(record) => {
            let what = format!("{} ran transactions, which fio's JSON has no words for", record.id);
            return Err(Usage { what, hint: Some("--format json is weir's own".to_string()) }.into());
        }
        Format::Text if is_guard(record) => {
            let path = path.map(|path| path.display().to_string());
            text::guard(record, &history(record)?, path.as_deref())
        }
        Format::Json if is_guard(record) => serde_json::to_string_pretty(&history(record)?)? + "\n",
        Format::Text => text::run(&result(), record),
        Format::Json => json::run(&result())?,
        Format::FioJson => {
            let start: Timestamp = record.started_at.parse().unwrap_or_default();
            let time = start.to_zoned(TimeZone::system()).strftime("%a %b %e %H:%M:%S %Y").to_string();
            json::fio(record, start.as_millisecond(), &time)?
        }
        Format::Csv => csv::intervals(record),
        Format::Record => serde_json::to_string(record)? + "\n",
    })
}

/// The history of a guard's record.
///
/// # Errors
/// When the record holds none that this weir reads.
pub fn history(record: &Record) -> anyhow::Result<History> {
    History::from_record(&record.extra).map_err(|why| {
        let what = format!("cannot use the record {}: {why}", record.id);
        Lacking { what, hint: None }.into()
    })
}

/// What a record of transactions holds, and what follows from it.
///
/// # Errors
/// When the record holds none that this weir reads.
pub fn transactions(record: &Record, path: Option<&Path>) -> anyhow::Result<(OltpRecord, OltpResult)> {
    let raw = OltpRecord::from_record(record).map_err(|why| {
        let what = format!("cannot use the record {}: {why}", record.id);
        Lacking { what, hint: None }
    })?;
    let record_path = path.map(|path| path.display().to_string());
    let result = OltpResult { record_path, ..weir_oltp::derive(record, &raw) };
    Ok((raw, result))
}

/// Whether a record holds a guard's history.
pub fn is_guard(record: &Record) -> bool {
    record.kind == weir_control::history::KIND
}

/// Whether a record holds an experiment.
pub fn is_experiment(record: &Record) -> bool {
    record.kind == KIND
}

fn study<'a>(record: &'a Record, path: Option<&Path>) -> anyhow::Result<Study<'a>> {
    Ok(Study::of(record, path.map(|path| path.display().to_string()))?)
}
