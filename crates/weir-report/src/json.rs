//! Results as JSON, versioned by their `schema`: [`RunResult`] as it stands, comparisons, experiments.

use weir_core::result::RunResult;
use weir_core::result::comparison::Comparison;
use weir_core::target::FileSystem;
use weir_experiment::Study;
use weir_knobs::Reading;
use weir_oltp::OltpResult;

/// A run, indented, with a newline at the end.
pub fn run(result: &RunResult) -> serde_json::Result<String> {
    serde_json::to_string_pretty(result).map(|text| text + "\n")
}

/// A run of transactions, likewise.
pub fn oltp(result: &OltpResult) -> serde_json::Result<String> {
    serde_json::to_string_pretty(result).map(|text| text + "\n")
}

/// A comparison, likewise.
pub fn comparison(comparison: &Comparison) -> serde_json::Result<String> {
    serde_json::to_string_pretty(comparison).map(|text| text + "\n")
}

/// Knobs with what is known of them, likewise.
pub fn knobs(readings: &[Reading], file_system: Option<&FileSystem>) -> serde_json::Result<String> {
    let document = super::knobs::document(readings, file_system);
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

/// An experiment, likewise: see `docs/reference/tune-json.md`.
pub fn experiment(study: &Study<'_>) -> serde_json::Result<String> {
    super::experiment::json::document(study)
}
