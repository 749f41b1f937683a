//! `weir recorder export`.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use jiff::Zoned;
use weir_archive::parquet::{Writer, fills_group};
use weir_archive::{Batch, SCHEMA, TABLES, csv, tables};
use weir_core::printable;
use weir_fs::Output;

use crate::cli::recorder::ExportArgs;
use crate::failure::{CANNOT_WRITE, Outcome, Usage};
use crate::inputs::recorder::dir;
use crate::recorder::archive::Archive;
use crate::settings::recorder::stretch;

/// Runs the command.
pub fn run(args: &ExportArgs) -> anyhow::Result<Outcome> {
    let Some(table) = tables::named(&args.table) else {
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        let what = format!("no table is called `{}`", args.table);
        return Err(Usage { what, hint: Some(format!("name one of {}", names.join(", "))) }.into());
    };
    if args.parquet && args.to.is_none() && io::stdout().is_terminal() {
        let hint = "name a file with --to, or leave --parquet out".to_string();
        return Err(Usage { what: "a terminal cannot show Parquet".to_string(), hint: Some(hint) }.into());
    }
    let (since_ms, until_ms) = stretch(&args.since, args.until.as_deref(), &Zoned::now())?;
    let archive = Archive::to_read(&dir(args.dir.clone())?)?;
    let mut file = match &args.to {
        Some(path) => {
            let output = Output::create(path, 0o600);
            Some(output.with_context(|| format!("cannot write {}", path.display()))?)
        }
        None => None,
    };
    let mut stdout = io::stdout().lock();
    let to: &mut dyn Write = match &mut file {
        Some(output) => output,
        None => &mut stdout,
    };
    let form = match args.parquet {
        true => Form::Parquet,
        false if args.to.is_none() && io::stdout().is_terminal() => Form::Shown,
        false => Form::Csv,
    };
    let mut rows = Rows::begin(to, table, form).context(CANNOT_WRITE)?;
    let mut failed = None;
    let unread = archive.read(since_ms, until_ms, &[table.name], |batch| {
        if failed.is_none() {
            failed = rows.put(&wanted(&batch, since_ms, until_ms)).err();
        }
    })?;
    let ended = failed.map_or(Ok(()), Err).and_then(|()| rows.end());
    ended.context(CANNOT_WRITE)?;
    if let (Some(output), Some(path)) = (file, &args.to) {
        output.commit().with_context(|| format!("cannot write {}", path.display()))?;
    }
    unread.iter().for_each(|sentence| say!("weir: not read: {sentence}"));
    Ok(Outcome::Done)
}

/// The rows of a batch that lie in time.
fn wanted(batch: &Batch, since_ms: i64, until_ms: i64) -> Batch {
    let Some(times) = batch.column("ts_ms") else { return batch.clone() };
    let mut columns: Vec<_> =
        batch.columns().iter().map(|column| weir_archive::Column::new(column.kind())).collect();
    for row in (0..batch.rows()).filter(|row| (since_ms..until_ms).contains(&times.integer(*row))) {
        for (to, from) in columns.iter_mut().zip(batch.columns()) {
            match from {
                weir_archive::Column::Integers(_) => to.push_integer(from.integer(row)),
                weir_archive::Column::Texts(_) => to.push_text(from.text(row)),
            }
        }
    }
    Batch::of_columns(batch.table(), columns).unwrap_or_else(|| batch.clone())
}

/// What rows become.
#[derive(Clone, Copy)]
enum Form {
    Csv,
    /// CSV on a terminal, which obeys control characters in names.
    Shown,
    Parquet,
}

/// Rows on their way out.
enum Rows<'a> {
    Csv(&'a mut dyn Write, Form),
    Parquet(Box<Writer<&'a mut dyn Write>>, Batch),
}

impl<'a> Rows<'a> {
    fn begin(to: &'a mut dyn Write, table: &'static tables::Table, form: Form) -> io::Result<Rows<'a>> {
        Ok(match form {
            Form::Csv | Form::Shown => {
                to.write_all(csv::head(table).as_bytes())?;
                Rows::Csv(to, form)
            }
            Form::Parquet => {
                let keys = vec![("weir.archive".to_string(), SCHEMA.to_string())];
                Rows::Parquet(Box::new(Writer::new(to, table, keys)?), Batch::new(table))
            }
        })
    }

    fn put(&mut self, batch: &Batch) -> io::Result<()> {
        match self {
            Rows::Csv(to, form) => {
                let text = csv::rows(batch, 0..batch.rows());
                match form {
                    Form::Shown => to.write_all(printable::lines(&text).as_bytes()),
                    _ => to.write_all(text.as_bytes()),
                }
            }
            Rows::Parquet(writer, held) => {
                held.append(batch);
                if fills_group(held) {
                    let table = held.table();
                    writer.group(&std::mem::replace(held, Batch::new(table)))?;
                }
                Ok(())
            }
        }
    }

    fn end(self) -> io::Result<()> {
        match self {
            Rows::Csv(to, _) => to.flush(),
            Rows::Parquet(mut writer, held) => {
                writer.group(&held)?;
                writer.finish().map(drop)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_archive::tables::{Counter, Row};

    use super::*;

    #[test]
    fn a_terminal_gets_nothing_that_it_obeys() {
        let row = Counter { device: "a\u{1b}[2J\u{9b}1mb".into(), ..Counter::default() };
        for (form, cell) in [(Form::Shown, "a\u{fffd}[2J\u{fffd}1mb"), (Form::Csv, "a\u{1b}[2J\u{9b}1mb")] {
            let mut out = Vec::new();
            let mut rows = Rows::begin(&mut out, Counter::TABLE, form).unwrap();
            rows.put(&Counter::batch(std::slice::from_ref(&row))).unwrap();
            rows.end().unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text, format!("ts_ms,span_ms,device,name,value\n0,0,{cell},,0\n"));
        }
    }
}
