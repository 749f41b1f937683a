//! Files of pages and of reports for CI.

pub use weir_cli::page::{Form, check, write};
use weir_report::html;

/// A page of weir's.
pub const PAGE: Form = Form { name: "page", opening: html::OPENING };
/// A report for tools that read test results.
pub const JUNIT: Form = Form {
    name: "JUnit report",
    opening: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"weir fleet\"",
};
