//! Results to stdout, in the form that was asked for; nothing else goes there.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use weir_core::printable;
use weir_record::Record;
use weir_report::narrow;
use weir_report::record::report;

use crate::failure::{CANNOT_WRITE, Usage};
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

/// A new file for results. Replaces nothing: a recording may be what was named by mistake.
pub fn create(path: &Path, option: &str) -> anyhow::Result<File> {
    File::create_new(path).map_err(|error| {
        let hint = (error.kind() == io::ErrorKind::AlreadyExists)
            .then(|| format!("name another file for {option}, or remove this one"));
        Usage { what: format!("cannot write {}: {error}", path.display()), hint }.into()
    })
}

/// A record in a given shape. `path` is where it lies, if it does.
pub fn render(record: &Record, path: Option<&Path>, format: Format) -> anyhow::Result<String> {
    let report = || report(record, path.map(|path| path.display().to_string()));
    Ok(match format {
        // A stored record can be had even where it cannot be read.
        Format::Record => serde_json::to_string(record)? + "\n",
        Format::Text => report()?.text(),
        Format::Json => report()?.json()?,
        Format::Csv => report()?.csv(),
        Format::FioJson => {
            let start: Timestamp = record.head.started_at.parse().unwrap_or_default();
            let time = start.to_zoned(TimeZone::system()).strftime("%a %b %e %H:%M:%S %Y").to_string();
            report()?.fio_json(start.as_millisecond(), &time)?.ok_or_else(|| {
                let what = format!("{} ran transactions, which fio's JSON has no words for", record.head.id);
                Usage { what, hint: Some("--format json is weir's own".to_string()) }
            })?
        }
    })
}
