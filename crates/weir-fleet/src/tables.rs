//! `weir fleet sql`, `import`, `export`, `compact` and `prune`.

use std::io::Read;

use anyhow::Context;
use jiff::Timestamp;
use serde_json::Value;
use weir_archive::tables::Kind;
use weir_archive::{Batch, Column};
use weir_cli::failure::{lacking, usage};
use weir_core::printable;
use weir_core::units::significant;
use weir_fs::Output;
use weir_store::layout;

use crate::archive::{self, Archive, Imported};
use crate::ask::{Asker, seconds};
use crate::bucket::Bucket;
use crate::cells::Answer;
use crate::cli::{ExportArgs, FolderArgs, ImportArgs, PruneArgs, PushArgs, SqlArgs};
use crate::inventory;
use crate::origin;
use crate::report::table;
use crate::run::{json, print};
use crate::store::Store;

/// The longest question that is read from standard input.
const SQL_MAX: u64 = 1 << 20;

/// `weir fleet sql`.
pub fn sql(args: &SqlArgs) -> anyhow::Result<u8> {
    let mut sql = args.sql.clone();
    if sql == "-" {
        sql.clear();
        std::io::stdin().take(SQL_MAX).read_to_string(&mut sql).context("cannot read standard input")?;
    }
    let results = Store::new(args.engine.folder.into.as_deref())?;
    let answer = Asker::open(results.root(), &args.engine)?.ask(&sql)?;
    print(&if args.json { json(&answer.objects())? } else { text(&answer) })?;
    Ok(0)
}

fn text(answer: &Answer) -> String {
    let number = |cell: &Value| cell.is_number();
    let right: Vec<bool> =
        (0..answer.columns.len()).map(|n| answer.rows.iter().any(|row| number(&row[n]))).collect();
    let cell = |cell: &Value| match cell {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_string(),
        other => other.to_string(),
    };
    let rows: Vec<Vec<String>> = answer.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let head: Vec<&str> = answer.columns.iter().map(String::as_str).collect();
    printable::lines(&table(&head, &right, &rows)).into_owned()
}

/// `weir fleet import`.
pub fn import(args: &ImportArgs) -> anyhow::Result<u8> {
    let results = Store::new(args.folder.into.as_deref())?;
    let sources = match &args.host {
        Some(host) => {
            inventory::check_name(host)
                .map_err(|why| usage(why, "letters, digits, `.`, `_`, `-` and `:`"))?;
            archive::sources(host, &args.paths)?
        }
        None => archive::pulled(results.root())?,
    };
    if sources.is_empty() {
        return Err(usage(
            format!("nothing to import in {}", results.root().display()),
            "name a recorder's archive: weir fleet import --host NAME PATH",
        ));
    }
    let archive = Archive::below(results.root());
    let imported = archive.lock()?.import(&sources)?;
    print(&(said(&imported) + "\n"))?;
    Ok(if imported.damaged > 0 { 3 } else { 0 })
}

/// What an import brought, in words.
fn said(imported: &Imported) -> String {
    let counted = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
    let files = counted(imported.files, "file");
    let brought = match imported.hosts {
        0 => format!("nothing new in {files}"),
        hosts => format!("{} from {files} of {}", counted(imported.rows, "row"), counted(hosts, "host")),
    };
    match imported.damaged {
        0 => brought,
        damaged => format!("{brought}; {} could not be read", counted(damaged, "file")),
    }
}

/// `weir fleet compact`.
pub fn compact(args: &FolderArgs) -> anyhow::Result<u8> {
    let results = Store::new(args.into.as_deref())?;
    let compacted = Archive::below(results.root()).lock()?.compact()?;
    print(&format!("{} files became {}\n", compacted.from, compacted.to))?;
    Ok(if compacted.damaged > 0 { 3 } else { 0 })
}

/// `weir fleet push`.
pub fn push(args: &PushArgs) -> anyhow::Result<u8> {
    let results = Store::new(args.folder.into.as_deref())?;
    let bucket = Bucket::new(&args.bucket)?;
    let archive = Archive::below(results.root());
    // A compaction meanwhile would take files away.
    let _lock = archive.lock()?;
    let (whole, damaged) = origin::parted(&archive)?;
    let pushed = bucket.push(&archive, &whole, &damaged)?;
    print(&format!(
        "{} files sent, {} MB; {} superseded ones removed there\n",
        pushed.files,
        significant(pushed.bytes as f64 / 1e6),
        pushed.removed
    ))?;
    Ok(if damaged.is_empty() { 0 } else { 3 })
}

/// `weir fleet prune`.
pub fn prune(args: &PruneArgs) -> anyhow::Result<u8> {
    let results = Store::new(args.folder.into.as_deref())?;
    let keep_s = i64::try_from(args.keep.0 / 1_000_000_000).unwrap_or(i64::MAX);
    let (files, bytes) =
        Archive::below(results.root()).lock()?.prune(Timestamp::now().as_second().saturating_sub(keep_s))?;
    print(&format!("{files} files removed, {} MB\n", significant(bytes as f64 / 1e6)))?;
    Ok(0)
}

/// `weir fleet export`.
pub fn export(args: &ExportArgs) -> anyhow::Result<u8> {
    let from_s = args.since.as_deref().map(seconds).transpose()?.unwrap_or(i64::MIN);
    let until_s = args.until.as_deref().map(seconds).transpose()?.unwrap_or(i64::MAX);
    let results = Store::new(args.folder.into.as_deref())?;
    let archive = Archive::below(results.root());
    let table = layout::table(&args.table).context("no such table")?;
    let cannot = |error: std::io::Error| {
        lacking(format!("cannot write {}: {error}", args.out.display()), "name another file with --out")
    };
    let out = Output::create(&args.out, 0o600).map_err(cannot)?;
    let mut writer = archive::writer(out, table).map_err(cannot)?;
    let (mut rows, mut damaged) = (0, 0);
    for file in archive.files()?.iter().filter(|file| file.place.kind == table.name) {
        if file.place.day_s >= until_s || file.place.end_s() <= from_s {
            continue;
        }
        match archive.rows(file) {
            Ok(batches) => {
                for batch in batches {
                    let batch = within(&batch, from_s, until_s);
                    rows += batch.rows();
                    writer.group(&batch).map_err(cannot)?;
                }
            }
            Err(why) => {
                archive.left_out(file, &why);
                damaged += 1;
            }
        }
    }
    writer.finish().and_then(Output::commit).map_err(cannot)?;
    print(&format!("{rows} rows\n"))?;
    Ok(if damaged > 0 { 3 } else { 0 })
}

/// The rows of a time.
fn within(batch: &Batch, from_s: i64, until_s: i64) -> Batch {
    let keep: Vec<usize> = match batch.column("ts") {
        Some(Column::Integers(times)) => {
            (0..times.len()).filter(|row| (from_s..until_s).contains(&times[*row])).collect()
        }
        _ => Vec::new(),
    };
    if keep.len() == batch.rows() {
        return batch.clone();
    }
    let mut part = Batch::new(batch.table());
    for (to, from) in part.columns_mut().iter_mut().zip(batch.columns()) {
        for row in &keep {
            match from.kind() {
                Kind::Integer => to.push_integer(from.integer(*row)),
                Kind::Text => to.push_text(from.text(*row)),
            }
        }
    }
    part
}
