//! The conditions under which something was measured.

mod html;
pub mod text;

use crate::page::{facts_table, section};
use weir_core::result::Record;

/// The conditions that matter most in a few lines, and all of them folded away.
pub fn under_which_conditions(record: &Record) -> String {
    let all = html::rows(&record.conditions);
    if all.is_empty() {
        return String::new();
    }
    let lines = text::lines(&record.conditions);
    let lines: Vec<(String, String, String)> =
        lines.into_iter().map(|(label, text)| (label.to_string(), text, String::new())).collect();
    let folded =
        format!("<details><summary>Everything that was recorded</summary>{}</details>", facts_table(&all));
    section("conditions", "Conditions", &(facts_table(&lines) + &folded))
}
