//! Files of pages and of reports for CI.

use std::path::Path;

pub use weir_cli::page::{Form, check};
use weir_report::html;

use crate::report::{self, Report, SlowHosts};

/// A page of weir's.
pub const PAGE: Form = Form { name: "page", opening: html::OPENING };
/// A report for tools that read test results.
pub const JUNIT: Form = Form {
    name: "JUnit report",
    opening: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"weir fleet\"",
};

/// Permission bits of a new file: the names of hosts and what they say are the caller's alone, as the results are.
const MODE: u32 = 0o600;

/// Writes a file of a form, in place of one of the same form.
pub fn write(path: &Path, text: &str, form: Form) -> anyhow::Result<()> {
    weir_cli::page::write(path, text, form, MODE)
}

/// The page of a run, whose results lie in the folder.
pub fn of_run(path: &Path, report: &Report, slow: &SlowHosts, folder: &Path) -> anyhow::Result<()> {
    write(path, &report::page(report, slow, folder), PAGE)
}
