//! The conditions under which something was measured.

mod table;
pub mod text;

use crate::page::{facts_table, section};
use maud::{Markup, html};
use weir_core::result::Record;

/// The conditions that matter most in a few lines, and all of them folded away.
pub fn under_which_conditions(record: &Record) -> Markup {
    let all = table::rows(&record.conditions);
    if all.is_empty() {
        return Markup::default();
    }
    let lines = text::lines(&record.conditions);
    let lines: Vec<(String, String, String)> =
        lines.into_iter().map(|(label, text)| (label.to_string(), text, String::new())).collect();
    let body = html! {
        (facts_table(&lines))
        details { summary { "Everything that was recorded" } (facts_table(&all)) }
    };
    section("conditions", "Conditions", body)
}
