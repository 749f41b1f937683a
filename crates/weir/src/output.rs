//! Results to stdout, in the form that was asked for; nothing else goes there.

use std::io::Write;

use clap::ValueEnum;
use weir_core::report::{csv, json, text};
use weir_core::result::{Record, derive};

/// Form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// weir's own result, versioned
    Json,
    /// Intervals, one a line
    Csv,
}

/// Prints a run. A reader that went away is an error that `failure` knows to pass over.
pub fn print_run(record: &Record, format: Format) -> anyhow::Result<()> {
    let shown = match format {
        Format::Text => text::run(&derive(record), record),
        Format::Json => json::run(&derive(record))?,
        Format::Csv => csv::intervals(record),
    };
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(shown.as_bytes())?;
    stdout.flush()?;
    Ok(())
}
