//! Tables as text and on pages.

use std::fmt::Write;

use weir_core::printable;
use weir_report::html::FleetListing;

/// A table: columns, which of them hold figures, rows.
pub struct Listing {
    /// Names of the columns.
    pub head: &'static [&'static str],
    /// Which stand at the right.
    pub right: &'static [bool],
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

impl Listing {
    /// With a row for each.
    pub fn of<T>(
        head: &'static [&'static str],
        right: &'static [bool],
        all: impl IntoIterator<Item = T>,
        row: impl FnMut(T) -> Vec<String>,
    ) -> Listing {
        Listing { head, right, rows: all.into_iter().map(row).collect() }
    }

    /// For people; nothing where there is no row.
    pub fn text(&self) -> String {
        if self.rows.is_empty() { String::new() } else { table(self.head, self.right, &self.rows) }
    }

    /// For a page.
    pub fn on_a_page(&self) -> FleetListing {
        FleetListing {
            head: self.head.iter().map(ToString::to_string).collect(),
            words: self.right.iter().map(|right| !right).collect(),
            rows: self.rows.clone(),
        }
    }
}

/// A table of columns as wide as what stands in them, numbers to the right.
pub fn table(head: &[&str], right: &[bool], rows: &[Vec<String>]) -> String {
    // What stands in a cell is anybody's, and makes no line of its own.
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| printable::line(cell).into_owned()).collect()).collect();
    let width = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..head.len())
        .map(|n| rows.iter().map(|row| width(&row[n])).chain([width(head[n])]).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    let head: Vec<String> = head.iter().map(|name| name.to_string()).collect();
    for row in std::iter::once(&head).chain(&rows) {
        let mut line = String::new();
        for (n, cell) in row.iter().enumerate() {
            let gap = " ".repeat(widths[n] - width(cell));
            let _ = if right[n] { write!(line, "{gap}{cell}  ") } else { write!(line, "{cell}{gap}  ") };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_makes_no_line_of_its_own() {
        let rows = [vec!["x\ndb7  nvme0n1".to_string(), "5".to_string()]];
        assert_eq!(table(&["host", "n"], &[false, true], &rows).lines().count(), 2);
    }
}
