//! A run of `bench` or `fileio`, a recording played among them: text, page, JSON of fio's shape, CSV; and two runs compared.

pub mod compare;
pub mod csv;
pub mod fio_json;
mod fio_options;
pub mod html;
pub mod replay;
pub mod text;
pub mod workload;

#[cfg(test)]
pub mod tests;

use weir_core::result::RunResult;

/// A run as JSON, indented, with a newline at the end.
pub fn json(result: &RunResult) -> serde_json::Result<String> {
    serde_json::to_string_pretty(result).map(|text| text + "\n")
}
