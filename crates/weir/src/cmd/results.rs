//! `weir results`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;
use weir_fs::Output;
use weir_report::narrow;
use weir_report::text::{self, ListRow};

use crate::cli::results::{Args, Command};
use crate::failure::{Lacking, Outcome, Usage};
use crate::output::{Format, print_for, render};
use crate::store::{Entry, SECONDS, Store};

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let store = Store::open()?;
    match args.command.unwrap_or(Command::List { limit: 20, json: false }) {
        Command::List { limit, json } => print_for(!json, &list(&store, limit, json)?)?,
        Command::Show { run, format } | Command::Export { run, format, output: None } => {
            print_for(format == Format::Text, &exported(&store, &run, format)?)?;
        }
        Command::Export { run, format, output: Some(file) } => {
            // A file is no terminal: its text is as wide as in a pipe.
            write_new(&file, &narrow::within(usize::MAX, || exported(&store, &run, format))?)?;
        }
        Command::Rm { runs } => remove(&store, &runs)?,
    }
    Ok(Outcome::Done)
}

fn exported(store: &Store, run: &str, format: Format) -> anyhow::Result<String> {
    let path = store.resolve(run)?;
    render(&store.load(&path)?, Some(&path), format)
}

fn write_new(file: &Path, text: &str) -> anyhow::Result<()> {
    let mut out = Output::create_new(file, 0o666).map_err(|error| {
        let exists = error.kind() == io::ErrorKind::AlreadyExists;
        let hint = exists.then(|| "name another file, or remove this one".to_string());
        Lacking { what: format!("cannot make {}: {error}", file.display()), hint }
    })?;
    let written = out.write_all(text.as_bytes()).and_then(|()| out.commit());
    written.with_context(|| format!("cannot write {}", file.display()))
}

fn remove(store: &Store, runs: &[String]) -> anyhow::Result<()> {
    // All names are resolved before anything goes: a slip in one of them removes nothing.
    let paths: Vec<PathBuf> = runs.iter().map(|run| store.resolve(run)).collect::<anyhow::Result<_>>()?;
    if let Some(path) = paths.iter().find(|path| path.parent() != Some(store.dir.as_path())) {
        let what = format!("{} is not in the store {}", path.display(), store.dir.display());
        return Err(Usage { what, hint: Some("weir removes only runs of its store".to_string()) }.into());
    }
    for path in &paths {
        store.remove(path).with_context(|| format!("cannot remove {}", path.display()))?;
        // What a guard has added to it.
        let _ = store.remove(&path.with_extension(SECONDS));
        say!("removed {}", path.display());
    }
    Ok(())
}

fn list(store: &Store, limit: usize, as_json: bool) -> anyhow::Result<String> {
    let ids = store.ids()?;
    let hidden = if limit == 0 { 0 } else { ids.len().saturating_sub(limit) };
    if hidden > 0 {
        say!("the newest {limit} of {} runs; `--limit 0` lists all", ids.len());
    }
    // One after the other: a row is small, and a record may be anything.
    let rows = |start: fn(&str) -> String| -> Vec<ListRow> {
        ids[hidden..].iter().map(|id| row(&store.entry(id.clone()), start)).collect()
    };
    if as_json {
        let runs = json!({ "schema": "weir.runs/1", "runs": rows(str::to_string) });
        return Ok(serde_json::to_string_pretty(&runs)? + "\n");
    }
    if ids.is_empty() {
        say!("no runs in {} yet; `weir bench` makes one", store.dir.display());
        return Ok(String::new());
    }
    Ok(text::list(&rows(local_time)))
}

fn row(entry: &Entry, start: fn(&str) -> String) -> ListRow {
    match &entry.record {
        Ok(record) => ListRow::of(record, start(&record.head.started_at)),
        Err(why) => ListRow::unreadable(&entry.id, why),
    }
}

/// A start as people of this machine read it, to the minute.
fn local_time(started_at: &str) -> String {
    match started_at.parse::<Timestamp>() {
        Ok(start) => start.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => started_at.to_string(),
    }
}
