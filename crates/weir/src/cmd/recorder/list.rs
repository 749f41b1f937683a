//! `weir recorder list`.

use std::collections::BTreeMap;

use jiff::Zoned;
use serde_json::json;
use weir_archive::segment::Name;
use weir_core::units::Bytes;
use weir_report::text::table;

use super::show::local;
use crate::cli::recorder::ListArgs;
use crate::failure::Outcome;
use crate::inputs::recorder::dir;
use crate::output::{print, print_exact};
use crate::recorder::archive::Archive;

/// A segment: its end, if it has one, and its length in bytes.
type Segments = BTreeMap<i64, (Option<i64>, u64)>;

/// Runs the command.
pub fn run(args: &ListArgs) -> anyhow::Result<Outcome> {
    let archive = Archive::to_read(&dir(args.dir.clone())?)?;
    let (files, foreign) = archive.files()?;
    let mut segments = Segments::new();
    for file in &files {
        let segment = segments.entry(file.name.begin_s()).or_default();
        segment.0 = segment.0.max(file.name.end_s());
        segment.1 += file.bytes;
    }
    let aside: Vec<String> = files
        .iter()
        .filter(|file| matches!(file.name, Name::Aside { .. }))
        .map(|file| file.name.to_string())
        .collect();
    let open = files.iter().any(|file| matches!(file.name, Name::Journal { .. }));
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    if args.json {
        let listed: Vec<_> = segments
            .iter()
            .map(|(begin_s, (end_s, bytes))| json!({ "begin_s": begin_s, "end_s": end_s, "bytes": bytes }))
            .collect();
        let document = json!({
            "schema": "weir.recorder.list/1",
            "dir": archive.path().display().to_string(),
            "bytes": bytes,
            "segments": listed,
            "aside": aside,
            "foreign": foreign,
        });
        print_exact(&(serde_json::to_string_pretty(&document)? + "\n"))?;
        return Ok(Outcome::Done);
    }
    let now = Zoned::now();
    let mut rows = vec![["from", "until", "size"].map(String::from).to_vec()];
    for (begin_s, (end_s, bytes)) in &segments {
        let until = end_s.map_or("open".to_string(), |end_s| local(end_s * 1000, &now));
        rows.push(vec![local(begin_s * 1000, &now), until, Bytes(*bytes).to_string()]);
    }
    let counted =
        if segments.len() == 1 { "1 segment".to_string() } else { format!("{} segments", segments.len()) };
    let mut out = format!("{}: {}, {}\n", archive.path().display(), counted, Bytes(bytes));
    table(&mut out, &rows, 2);
    if !open && !segments.is_empty() {
        out.push_str("No recorder writes to it, or its segment has just been closed.\n");
    }
    for name in aside {
        out.push_str(&format!("set aside: {name} could not be closed whole, and is not read\n"));
    }
    for name in foreign {
        out.push_str(&format!("left alone: {name} is not the recorder's\n"));
    }
    print(&out)?;
    Ok(Outcome::Done)
}
