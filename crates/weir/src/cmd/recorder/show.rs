//! `weir recorder show`.

use anyhow::Context;
use jiff::Zoned;
use weir_archive::series::{SLOT_BYTES_MAX, Series, Wanted};
use weir_archive::verdict::judge;
use weir_core::units::Bytes;
use weir_report::html::{self, RecorderSource as Source};
use weir_report::{json, text};

use crate::cli::recorder::ShowArgs;
use crate::failure::{Outcome, Usage};
use crate::inputs::recorder::dir;
use crate::output::{print, print_exact};
use crate::page;
use crate::recorder::archive::{About, Archive, wall_clock};
use crate::settings::recorder::stretch;

/// What a verdict is made of; stages of requests are for other questions, and by far the most rows.
const TABLES: [&str; 6] = ["syncs", "waits", "behind", "processes", "counters", "events"];

/// Runs the command.
pub fn run(args: &ShowArgs) -> anyhow::Result<Outcome> {
    let now = Zoned::now();
    args.html.iter().try_for_each(|path| page::check(path))?;
    let (since_ms, until_ms) = stretch(&args.since, args.until.as_deref(), &now)?;
    // Of what has not passed nothing can be recorded.
    let until_ms = until_ms.min(now.timestamp().as_millisecond()).max(since_ms);
    let archive = Archive::to_read(&dir(args.dir.clone())?)?;
    let wanted = Wanted {
        since_ms: since_ms.saturating_sub((args.before.0 / 1_000_000) as i64),
        until_ms,
        device: args.device.as_deref().map(|name| name.strip_prefix("/dev/").unwrap_or(name).to_string()),
        unit: args.unit.clone(),
    };
    let mut series = Series::default();
    let unread = archive
        .read(wanted.since_ms, until_ms, &TABLES, |batch| series.take(&batch, &wanted))
        .with_context(|| format!("cannot read the archive {}", archive.path().display()))?;
    if series.is_cut {
        let what = format!(
            "the archive holds more of that time than fits into {} of memory",
            Bytes(SLOT_BYTES_MAX as u64)
        );
        let hint = "ask for less time, learn from less time with --before, or name one --unit or --device";
        return Err(Usage { what, hint: Some(hint.to_string()) }.into());
    }
    series.sort();
    let verdict = judge(&series, since_ms, until_ms);
    if let Some(path) = &args.html {
        let source = Source {
            host: About::here().host,
            archive: archive.path().display().to_string(),
            weir_version: env!("CARGO_PKG_VERSION").to_string(),
        };
        page::write(
            path,
            &html::verdict(&verdict, &series, &source, &unread, &|ms| local(ms, &now)),
            page::OF_PROCESSES,
        )?;
    }
    match args.json {
        true => print_exact(&json::verdict(&verdict, &unread)?)?,
        false => print(&text::verdict(&verdict, &unread, &|ms| local(ms, &now)))?,
    }
    Ok(Outcome::Done)
}

/// A time as the clock on the wall says it.
pub fn local(unix_ms: i64, now: &Zoned) -> String {
    wall_clock(unix_ms, now).unwrap_or_else(|| unix_ms.to_string())
}
