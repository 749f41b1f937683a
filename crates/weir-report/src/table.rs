//! Aligned tables, and how they fit a terminal that is narrower than they are.
//!
//! Nothing is left out. Words wrap in their column. Figures that still have no space follow below, under the same names. A table
//! of words alone keeps a row's cells together: its last ones stand beneath the row. A name that is longer than its column has a
//! line to itself, so that it can be copied.

use weir_core::printable;

use crate::layout::wrap;
use crate::narrow::terminal;

/// Blanks between columns.
const GAP: usize = 2;
/// Words wrap in no column narrower than this.
const WORDS_MIN: usize = 24;
/// Before cells beneath their row.
const INDENT: usize = 4;

/// Appends rows with the first `left` columns flush left, the others flush right, two spaces between.
pub fn table(out: &mut String, rows: &[Vec<String>], left: usize) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    out.push_str(&listing(rows, &(0..columns).map(|column| column >= left).collect::<Vec<_>>()));
}

/// A table whose columns stand at the right where `right` says so.
pub fn listing(rows: &[Vec<String>], right: &[bool]) -> String {
    Table::of(rows, right).text(terminal())
}

/// Rows of words, each as its lines, within so many columns.
pub(crate) fn rows_of_words(rows: &[Vec<String>], width: usize) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    Table::of(rows, &vec![false; columns]).in_rows(width)
}

/// A column of a table as it is laid out.
#[derive(Clone, Copy)]
struct Column {
    at: usize,
    width: usize,
}

struct Table<'a> {
    rows: Vec<Vec<String>>,
    right: &'a [bool],
}

impl<'a> Table<'a> {
    fn of(rows: &[Vec<String>], right: &'a [bool]) -> Table<'a> {
        let line = |cell: &String| printable::line(cell).into_owned();
        Table { rows: rows.iter().map(|row| row.iter().map(line).collect()).collect(), right }
    }

    fn text(&self, width: usize) -> String {
        let whole: Vec<usize> = (0..self.right.len()).collect();
        if !self.right.contains(&true) || span(&self.shrunk(&whole, width)) <= width {
            self.in_rows(width).concat()
        } else {
            self.in_parts(width)
        }
    }

    /// With as many columns beside each other as have space; the others beneath.
    fn in_rows(&self, width: usize) -> Vec<String> {
        let mut columns: Vec<usize> = (0..self.right.len()).collect();
        while columns.len() > 1 && span(&self.shrunk(&columns, width)) > width {
            columns.pop();
        }
        let shown = self.shrunk(&columns, width);
        let row = |row: &Vec<String>| {
            let mut text = self.row(row, &shown);
            let beneath = row.iter().skip(shown.len());
            for line in beneath.flat_map(|cell| wrap(cell, width.saturating_sub(INDENT))) {
                text.push_str(&format!("{:INDENT$}{line}\n", ""));
            }
            text
        };
        self.rows.iter().map(row).collect()
    }

    /// As tables below each other. Each begins with the names of the rows, which take half of the width at most.
    fn in_parts(&self, width: usize) -> String {
        let natural = |column: usize| Column { at: column, width: self.width(column) };
        let mut names = vec![Column { width: self.width(0).min(width / 2), at: 0 }];
        for column in (1..self.right.len()).map(natural) {
            let wider = [&names[..], &[column]].concat();
            if self.right[column.at] || span(&wider) > width / 2 {
                break;
            }
            names = wider;
        }
        let mut parts: Vec<Vec<Column>> = Vec::new();
        for mut column in (names.len()..self.right.len()).map(natural) {
            if !self.right[column.at] {
                column.width = column.width.min(width.saturating_sub(span(&names) + GAP));
            }
            match parts.last_mut() {
                Some(part) if span(part) + GAP + column.width <= width => part.push(column),
                _ => parts.push([&names[..], &[column]].concat()),
            }
        }
        let part = |part: &Vec<Column>| self.rows.iter().map(|row| self.row(row, part)).collect::<String>();
        parts.iter().map(part).collect::<Vec<_>>().join("\n")
    }

    /// These columns with the widest words wrapped, as far as it takes or can be done.
    fn shrunk(&self, columns: &[usize], width: usize) -> Vec<Column> {
        let mut shrunk: Vec<Column> =
            columns.iter().map(|at| Column { at: *at, width: self.width(*at) }).collect();
        loop {
            let excess = span(&shrunk).saturating_sub(width);
            let can = shrunk.iter_mut().filter(|column| column.width > self.least(column.at));
            match can.max_by_key(|column| column.width) {
                Some(widest) if excess > 0 => {
                    widest.width = self.least(widest.at).max(widest.width.saturating_sub(excess));
                }
                _ => return shrunk,
            }
        }
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &String> {
        self.rows.iter().filter_map(move |row| row.get(column))
    }

    fn width(&self, column: usize) -> usize {
        self.cells(column).map(|cell| chars(cell)).max().unwrap_or(0)
    }

    /// Width of a column in which no word is broken.
    fn least(&self, column: usize) -> usize {
        let width = self.width(column);
        let longest = || self.cells(column).flat_map(|cell| cell.split(' ')).map(chars).max().unwrap_or(0);
        if self.right[column] { width } else { longest().max(WORDS_MIN).min(width) }
    }

    /// These cells of a row.
    fn row(&self, row: &[String], columns: &[Column]) -> String {
        let cell = |column: &Column| lines(row.get(column.at).map_or("", String::as_str), column.width);
        let cells: Vec<Vec<String>> = columns.iter().map(cell).collect();
        let mut out = String::new();
        for nth in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            let (mut line, mut edge) = (String::new(), 0);
            for (cell, column) in cells.iter().zip(columns) {
                let text = cell.get(nth).map_or("", String::as_str);
                if !text.is_empty() {
                    if edge > 0 && chars(&line) + GAP > edge {
                        out.push_str(&format!("{}\n", line.trim_end()));
                        line.clear();
                    }
                    let blank =
                        if self.right[column.at] { column.width.saturating_sub(chars(text)) } else { 0 };
                    line.push_str(&" ".repeat((edge + blank).saturating_sub(chars(&line))));
                    line.push_str(text);
                }
                edge += column.width + GAP;
            }
            out.push_str(&format!("{}\n", line.trim_end()));
        }
        out
    }
}

/// Columns that a line of these takes.
fn span(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width).sum::<usize>() + GAP * columns.len().saturating_sub(1)
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// The lines of a cell, all with its indentation.
fn lines(cell: &str, width: usize) -> Vec<String> {
    if chars(cell) <= width {
        return vec![cell.to_string()];
    }
    let indent = cell.len() - cell.trim_start_matches(' ').len();
    wrap(cell, width.saturating_sub(indent)).iter().map(|line| " ".repeat(indent) + line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::narrow::within;

    fn rows<const N: usize>(rows: &[[&str; N]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.map(String::from).to_vec()).collect()
    }

    fn check(columns: usize, rows: &[Vec<String>], right: &[bool], expected: &str) {
        let shown = within(columns, || listing(rows, right));
        assert_eq!(shown, expected, "{columns} columns:\n{shown}");
    }

    #[test]
    fn columns_align() {
        let all = rows(&[["class", "mean"], ["read", "1.23 µs"], ["commit", "12 ms"]]);
        check(80, &all, &[false, true], "class      mean\nread    1.23 µs\ncommit    12 ms\n");
    }

    #[test]
    fn figures_without_space_follow_under_the_same_names() {
        let all = rows(&[["class", "count", "mean", "max"], ["read", "7", "1.23 µs", "12 ms"]]);
        let whole = "class  count     mean    max\nread       7  1.23 µs  12 ms\n";
        for columns in [28, 100, usize::MAX] {
            check(columns, &all, &[false, true, true, true], whole);
        }
        let parts = "class  count     mean\nread       7  1.23 µs\n\nclass    max\nread   12 ms\n";
        check(27, &all, &[false, true, true, true], parts);
        let short = rows(&[["class", "stage", "mean"], ["read", "Q2C", "1 ms"], ["write", "as read", ""]]);
        let short: Vec<Vec<String>> =
            short.iter().map(|row| row[..2 + usize::from(!row[2].is_empty())].to_vec()).collect();
        let parts = "class  stage    mean\nread   Q2C      1 ms\nwrite  as read\n";
        check(80, &short, &[false, false, true], parts);
    }

    #[test]
    fn words_wrap_before_figures_leave_their_row() {
        let words = "unreachable: no answer came in time";
        let all = rows(&[["host", "p99", "verdict"], ["db1", "3 ms", words], ["db2", "2 ms", "GOOD"]]);
        let expected = "host   p99  verdict\ndb1   3 ms  unreachable: no answer\n            came in time\ndb2   2 ms  GOOD\n";
        check(36, &all, &[false, true, false], expected);
    }

    /// A path is one word: the terminal may break it, and it is copied as it is.
    #[test]
    fn a_long_name_has_a_line_to_itself() {
        let path = "/system.slice/docker-0123456789abcdef.scope";
        let all = rows(&[["cgroup", "read", "written"], [path, "1 MB", "2 MB"], ["/", "3 MB", "4 MB"]]);
        let expected = format!(
            "cgroup            read  written\n{path}\n                  1 MB     2 MB\n/                 3 MB     4 MB\n"
        );
        check(33, &all, &[false, true, true], &expected);
    }

    #[test]
    fn words_alone_keep_their_rows_together() {
        let all = rows(&[
            ["id", "kind", "headline"],
            ["20261130-180432-042-0007", "bench", "1,234 tps, p99 3 ms, commit 2 ms"],
        ]);
        let beside = "id                        kind   headline\n20261130-180432-042-0007  bench  1,234 tps, p99 3 ms,\n                                 commit 2 ms\n";
        check(57, &all, &[false; 3], beside);
        let beneath = "id                        kind\n    headline\n20261130-180432-042-0007  bench\n    1,234 tps, p99 3 ms, commit 2 ms\n";
        check(56, &all, &[false; 3], beneath);
    }

    #[test]
    fn lines_of_a_cell_keep_its_indentation() {
        let all = rows(&[["knobs"], ["  vm.dirty_bytes=15000000 and sda/nr_requests=32"]]);
        check(30, &all, &[false], "knobs\n  vm.dirty_bytes=15000000 and\n  sda/nr_requests=32\n");
    }
}
