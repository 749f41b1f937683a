//! Reports on a terminal that is narrower than they are: prose is broken anew, tables stay whole.

use crate::layout::{COLUMNS, wrap};

/// Least room for prose; on anything narrower the terminal breaks lines itself.
const PROSE_MIN: usize = 30;

/// A report whose lines have at most 100 columns, for a terminal of so many.
pub fn fitted(text: &str, columns: usize) -> String {
    if columns >= COLUMNS {
        return text.to_string();
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < lines.len() {
        let paragraph = paragraph(&lines[at..]);
        let block = &lines[at..at + paragraph.lines];
        at += paragraph.lines;
        match broken(block, &paragraph, columns) {
            Some(anew) => out.push_str(&anew),
            None => block.iter().for_each(|line| {
                out.push_str(line);
                out.push('\n');
            }),
        }
    }
    out
}

/// Lines that were one text.
struct Paragraph {
    lines: usize,
    /// Where its text begins, after a label or an indentation; `None` where it is a row of a table.
    edge: Option<usize>,
}

/// The paragraph that begins here. A line belongs to the one above where it begins at the text's edge with a word that had
/// no room above.
fn paragraph(lines: &[&str]) -> Paragraph {
    let Some(edge) = edge(lines[0]) else { return Paragraph { lines: 1, edge: None } };
    let goes_on = |pair: &[&str]| {
        let (above, below) = (pair[0].chars().count(), pair[1]);
        let indented = below.chars().take_while(|&c| c == ' ').count();
        let word = below.split_whitespace().next().map_or(0, |word| word.chars().count());
        indented == edge && !has_gap(below.trim_start()) && above + 1 + word > COLUMNS
    };
    Paragraph { lines: 1 + lines.windows(2).take_while(|pair| goes_on(pair)).count(), edge: Some(edge) }
}

/// Where the text of a line begins: after its label, which a gap of two blanks ends, else after its indentation.
fn edge(line: &str) -> Option<usize> {
    let indentation = line.chars().take_while(|&c| c == ' ').count();
    let rest = &line[indentation..];
    let Some(gap) = rest.find("  ") else { return Some(indentation) };
    let text = rest[gap..].trim_start();
    (!has_gap(text)).then(|| line.chars().count() - text.chars().count())
}

/// Columns of a table have gaps between them; words of prose have none.
fn has_gap(text: &str) -> bool {
    text.contains("  ")
}

/// A paragraph with lines of at most so many columns; `None` where it fits, or cannot.
fn broken(lines: &[&str], paragraph: &Paragraph, columns: usize) -> Option<String> {
    let edge = paragraph.edge?;
    if columns < edge + PROSE_MIN || lines.iter().all(|line| line.chars().count() <= columns) {
        return None;
    }
    let start = lines[0].char_indices().nth(edge).map_or(lines[0].len(), |(at, _)| at);
    let (label, first) = lines[0].split_at(start);
    let text: Vec<&str> = std::iter::once(first).chain(lines[1..].iter().copied()).map(str::trim).collect();
    let has_room = |word: &str| word.chars().count() <= columns - edge;
    if !text.iter().flat_map(|line| line.split(' ')).all(has_room) {
        return None;
    }
    let indentation = " ".repeat(edge);
    let mut out = String::new();
    for (at, line) in wrap(&text.join(" "), columns - edge).iter().enumerate() {
        out.push_str(if at == 0 { label } else { &indentation });
        out.push_str(line);
        out.push('\n');
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{labelled, labelled_at};

    const TEXT: &str = "A volume throttled to 1,500 write IOPS. Idle, commits are poor (p99 84.1 ms, 749/s by one \
        thread); a bulk writer leaves 0.02 % of one thread's commits. vm.dirty_bytes = 15 MB helped in a trial.";

    #[test]
    fn prose_is_broken_as_if_it_had_been_made_so_wide() {
        for columns in [60, 72, 80, 99] {
            let (mut wide, mut narrow) = (String::new(), String::new());
            labelled(&mut wide, "verdict", TEXT);
            labelled(&mut wide, "next", "short");
            for (at, line) in wrap(TEXT, columns - 9).iter().enumerate() {
                narrow.push_str(&format!("{:<9}{line}\n", if at == 0 { "verdict" } else { "" }));
            }
            narrow.push_str("next     short\n");
            assert_eq!(fitted(&wide, columns), narrow, "{columns}");
        }
        let mut wide = String::new();
        labelled_at(&mut wide, "", 5, TEXT);
        let narrow = fitted(&wide, 70);
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 70 && line.starts_with("     ")),
            "{narrow}"
        );
    }

    #[test]
    fn tables_lists_and_what_fits_stay() {
        let table = "class   count  IOPS  MB/s     mean      p50      p95      p99    p99.9      max\n\
                     write   5,249   420  6.88  41.0 µs  6.96 µs   103 µs   439 µs  4.25 ms  10.5 ms\n";
        let list = "  1. one\n  2. two\n\n  a line of its own\n  another\n";
        let path = format!("wrote /{}\n", "x".repeat(80));
        for text in [table, list, &path, ""] {
            assert_eq!(fitted(text, 60), text);
            assert_eq!(fitted(text, 100), text);
        }
        let mut wide = String::new();
        labelled(&mut wide, "verdict", TEXT);
        assert_eq!(fitted(&wide, 200), wide);
        assert_eq!(fitted(&wide, 20), wide);
    }
}
