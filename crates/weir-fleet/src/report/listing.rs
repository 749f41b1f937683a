//! Tables as text and on pages.

use weir_report::html::FleetListing;
use weir_report::text::listing;

/// A table: columns, which of them hold figures, rows.
#[derive(Default)]
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
    let head: Vec<String> = head.iter().map(|name| name.to_string()).collect();
    listing(&[&[head], rows].concat(), right)
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
