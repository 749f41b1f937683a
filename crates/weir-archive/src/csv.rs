//! Rows as CSV (RFC 4180).

use crate::batch::{Batch, Column};
use crate::tables::Table;

/// The head: names of the columns.
pub fn head(table: &Table) -> String {
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    names.join(",") + "\n"
}

/// Some rows of a batch.
pub fn rows(batch: &Batch, wanted: impl Iterator<Item = usize>) -> String {
    let mut text = String::new();
    for row in wanted {
        for (nth, column) in batch.columns().iter().enumerate() {
            if nth > 0 {
                text.push(',');
            }
            match column {
                Column::Integers(_) => text.push_str(&column.integer(row).to_string()),
                Column::Texts(texts) => text.push_str(&quoted(texts.get(row))),
            }
        }
        text.push('\n');
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Counter, Row};

    #[test]
    fn what_would_break_a_line_is_quoted() {
        let row = Counter { device: "a\"b,c".into(), name: "n\nm".into(), value: -1, ..Counter::default() };
        assert_eq!(head(Counter::TABLE), "ts_ms,span_ms,device,name,value\n");
        assert_eq!(rows(&Counter::batch(&[row]), 0..1), "0,0,\"a\"\"b,c\",\"n\nm\",-1\n");
    }
}
