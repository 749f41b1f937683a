//! A run of transactions, and what limited it.

pub mod html;
pub mod text;

use crate::bench::csv::{HEADER, append};
use weir_oltp::{Kind, OltpRecord, OltpResult};

/// A run as JSON, indented, with a newline at the end.
pub fn json(result: &OltpResult) -> serde_json::Result<String> {
    serde_json::to_string_pretty(result).map(|text| text + "\n")
}

/// All intervals of a run of transactions, in the same columns: kinds are classes, and what is moved are rows.
pub fn csv(raw: &OltpRecord) -> String {
    let mut out = format!("{}\n", HEADER.replace("bytes_per_s", "rows_per_s"));
    let name = raw.script_path.clone().unwrap_or_else(|| raw.spec.script.to_string());
    append(&mut out, &name, &raw.intervals, raw.kinds.keys().copied(), Kind::name);
    out
}
