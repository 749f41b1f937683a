//! Results to stdout, in the form that was asked for; nothing else goes there.

use std::borrow::Cow;
use std::io::{self, BufWriter, IntoInnerError, IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use weir_core::printable;
use weir_fs::Output;
use weir_record::Record;
use weir_report::record::report;

use crate::failure::{CANNOT_WRITE, Usage};

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
    print_exact(&printable::lines(text))
}

/// The same with a text that either people read or a program.
pub fn print_for(people: bool, text: &str) -> anyhow::Result<()> {
    if people { print(text) } else { print_exact(text) }
}

/// The same for programs: what it says stays as it is, but nothing in JSON, and nothing on a terminal, is what a terminal
/// would obey.
pub fn print_exact(text: &str) -> anyhow::Result<()> {
    let text = exact(text, io::stdout().is_terminal());
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context(CANNOT_WRITE)
}

fn exact(text: &str, on_terminal: bool) -> Cow<'_, str> {
    // TOML may begin with a table: `[name]`, `[[name]]`.
    let is_json = ["{", "[]", "[{", "[\n"].iter().any(|begin| text.starts_with(begin));
    match () {
        () if is_json => printable::escaped(text),
        () if on_terminal => printable::lines(text),
        () => text.into(),
    }
}

/// A new file for what a trace found, which names processes of all accounts: its owner's alone, and there when [`place`] puts it
/// there. Replaces nothing: a recording may be what was named by mistake.
pub fn create(path: &Path, option: &str) -> anyhow::Result<Output> {
    Output::create_new(path, 0o600).map_err(|error| {
        let hint = (error.kind() == io::ErrorKind::AlreadyExists)
            .then(|| format!("name another file for {option}, or remove this one"));
        Usage { what: format!("cannot write {}: {error}", path.display()), hint }.into()
    })
}

/// Puts a file that is whole in its place.
///
/// # Errors
/// Those of writing what is left, and of [`Output::commit`].
pub fn place(out: BufWriter<Output>) -> io::Result<()> {
    out.into_inner().map_err(IntoInnerError::into_error)?.commit()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_printed_for_programs() {
        let hostile = "a\u{9b}2J\u{7f}\u{1b}\u{202e}\u{e0041}\n";
        let pretty = serde_json::to_string_pretty(&[hostile]).unwrap();
        for json in [serde_json::to_string(hostile).unwrap(), pretty] {
            let document = format!("{{\"name\":{json}}}\n");
            let printed = exact(&document, false);
            assert!(!printed.chars().any(|c| printable::is_hidden(c) && c != '\n'), "{printed:?}");
            assert!(printed.contains("a\\u009b2J\\u007f"), "{printed}");
            let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(same(&printed), same(&document));
        }
        let csv = "device\n\u{9b}2J\n";
        assert_eq!(exact(csv, false), csv);
        assert_eq!(exact(csv, true), "device\n\u{fffd}2J\n");
        // A job file is no JSON.
        assert_eq!(exact("[[job]]\nname = '\u{9b}'\n", false), "[[job]]\nname = '\u{9b}'\n");
    }
}
