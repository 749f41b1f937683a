//! The page of an analysed recording.

use super::{Page, note, page};
use crate::report::plot::escape;
use crate::report::trace::text;
use crate::trace::Analysis;

/// Draws an analysis as one HTML document. `name` says where it came from, `notes` what is missing in it.
pub fn trace(analysis: &Analysis, name: &str, notes: &[String]) -> String {
    let notes: String = notes.iter().map(|n| note("Incomplete", n, true)).collect();
    page(&Page {
        title: format!("weir trace: {name}"),
        kind: "trace".to_string(),
        date: String::new(),
        foot: format!("weir trace read · {name}"),
        body: format!("<h1>{}</h1>{notes}<pre>{}</pre>", escape(name), escape(text(analysis))),
    })
}
