//! The list of stored runs.

use serde::Serialize;

use crate::entry::{Entry, first_words, of_run};
use crate::layout::table;
use crate::record::report;
use weir_record::Record as Typed;

/// One run of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListRow {
    id: String,
    started_at: Option<String>,
    kind: Option<String>,
    target: Option<String>,
    headline: Option<String>,
    /// Why there is nothing but the id.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl ListRow {
    /// The row of a record; `started_at` is its start as it shall be shown.
    pub fn of(record: &Typed, started_at: String) -> ListRow {
        let entry = match report(record, None) {
            Ok(report) => report.entry(),
            Err(unread) => Entry { headline: first_words(&unread.why), ..of_run(&record.head) },
        };
        ListRow {
            id: record.head.id.clone(),
            started_at: Some(started_at),
            kind: Some(entry.kind),
            target: Some(entry.target),
            headline: Some(entry.headline),
            error: None,
        }
    }

    /// The row of a file that cannot be used.
    pub fn unreadable(id: &str, why: &str) -> ListRow {
        ListRow {
            id: id.to_string(),
            started_at: None,
            kind: None,
            target: None,
            headline: None,
            error: Some(why.to_string()),
        }
    }

    fn cells(&self) -> Vec<String> {
        let known = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "-".to_string());
        let headline = match &self.error {
            Some(why) => format!("unreadable: {why}"),
            None => known(&self.headline),
        };
        vec![self.id.clone(), known(&self.started_at), known(&self.kind), known(&self.target), headline]
    }
}

/// The table, oldest first.
pub fn list(rows: &[ListRow]) -> String {
    let mut cells = vec![["id", "started", "kind", "target", "headline"].map(String::from).to_vec()];
    cells.extend(rows.iter().map(ListRow::cells));
    let mut out = String::new();
    table(&mut out, &cells, 5);
    out
}
