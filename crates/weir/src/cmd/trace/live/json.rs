//! Intervals and the whole time as JSON, one object a line.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use weir_blocktrace::{SlowIo, Stage};
use weir_report as report;
use weir_report::text::trace_live::About;

use crate::live::{Taken, Whole};

/// One interval.
pub fn interval(about: &About, taken: &Taken) -> anyhow::Result<String> {
    let mut object = object(about, "interval", serde_json::to_value(&taken.frame)?);
    object.insert("slow".to_string(), taken.slow.iter().map(slow).collect());
    line(object)
}

/// The whole time: the object of a recording's analysis, and what the source cost and lost.
pub fn summary(about: &About, whole: &Whole) -> anyhow::Result<String> {
    let mut analysis: Value = serde_json::from_str(&report::trace::json(&whole.analysis)?)?;
    analysis["live"] = serde_json::to_value(&whole.frame)?;
    line(object(about, "summary", analysis))
}

fn object(about: &About, kind: &str, figures: Value) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("type".to_string(), kind.into());
    object.insert("at".to_string(), Timestamp::now().to_string().into());
    object.insert("source".to_string(), about.source.name().into());
    if let Value::Object(figures) = figures {
        object.extend(figures);
    }
    object
}

fn line(object: Map<String, Value>) -> anyhow::Result<String> {
    Ok(serde_json::to_string(&object)? + "\n")
}

fn slow(io: &SlowIo) -> Value {
    let piece = &io.piece;
    let stages: Map<String, Value> = Stage::ALL
        .into_iter()
        .filter_map(|stage| {
            Some((format!("{}_ns", stage.name().to_lowercase()), piece.times.stage(stage)?.into()))
        })
        .collect();
    json!({
        "at_ns": io.at_ns,
        "device": piece.device.to_string(),
        "flags": piece.flags.0,
        "sector": piece.sector,
        "bytes": piece.bytes,
        "pid": piece.pid,
        "sender": io.sender,
        "cgroup": piece.cgroup,
        "error": piece.error,
        "requeues": piece.requeues,
        "stages": stages,
    })
}
