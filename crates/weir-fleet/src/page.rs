//! Files of pages and of reports for CI.

use std::path::Path;

pub use weir_cli::page::{Form, check, write};
use weir_report::html;

use crate::report::{self, Report, SlowHosts};

/// A page of weir's.
pub const PAGE: Form = Form { name: "page", opening: html::OPENING };
/// A report for tools that read test results.
pub const JUNIT: Form = Form {
    name: "JUnit report",
    opening: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"weir fleet\"",
};

/// The page of a run, whose results lie in the folder.
pub fn of_run(path: &Path, report: &Report, slow: &SlowHosts, folder: &Path) -> anyhow::Result<()> {
    write(path, &report::page(report, slow, folder), PAGE, 0o644)
}
