//! The verdict for programs.

use serde::Serialize;
use weir_archive::verdict::Verdict;

/// Version of the document.
const SCHEMA: &str = "weir.recorder.verdict/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    verdict: &'a Verdict,
    /// Sentences on files that could not be read.
    unread: &'a [String],
}

/// The verdict as JSON.
///
/// # Errors
/// When it cannot be written as JSON.
pub fn verdict(verdict: &Verdict, unread: &[String]) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(&Document { schema: SCHEMA, verdict, unread })? + "\n")
}
