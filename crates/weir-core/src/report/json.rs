//! The result as JSON: [`RunResult`] as it stands, versioned by its `schema`.

use crate::result::RunResult;
use crate::result::comparison::Comparison;

/// A run, indented, with a newline at the end.
pub fn run(result: &RunResult) -> serde_json::Result<String> {
    serde_json::to_string_pretty(result).map(|text| text + "\n")
}

/// A comparison, likewise.
pub fn comparison(comparison: &Comparison) -> serde_json::Result<String> {
    serde_json::to_string_pretty(comparison).map(|text| text + "\n")
}
