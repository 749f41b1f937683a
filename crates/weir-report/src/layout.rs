//! Labels and wrapped lines. A name in them that somebody else chose is of one line, whatever it holds.

use weir_core::printable;

pub use crate::narrow::COLUMNS;
use crate::narrow::columns;
pub use crate::table::table;

/// Width of the label column.
const LABEL: usize = 9;
/// Least room for prose; on anything narrower the terminal breaks lines itself.
const PROSE_MIN: usize = 30;

/// Appends `label   text`, wrapped at the width of [`crate::narrow`] with the text's left edge kept.
pub fn labelled(out: &mut String, label: &str, text: &str) {
    labelled_at(out, label, LABEL, text);
}

/// The same with a label column of another width.
pub fn labelled_at(out: &mut String, label: &str, edge: usize, text: &str) {
    append(out, label, edge, wrap(text, columns().saturating_sub(edge).max(PROSE_MIN)));
}

/// Appends a command, wrapped at [`COLUMNS`] alone: what a narrower terminal breaks by itself is copied as one line.
pub fn labelled_command(out: &mut String, label: &str, command: &str) {
    append(out, label, LABEL, wrap(command, COLUMNS - LABEL));
}

fn append(out: &mut String, label: &str, edge: usize, lines: Vec<String>) {
    let mut label = label;
    for line in lines {
        out.push_str(format!("{label:<edge$}{line}").trim_end());
        out.push('\n');
        label = "";
    }
}

/// Units stay on the line of their number.
const UNITS: [&str; 16] =
    ["ns", "µs", "ms", "s", "min", "%", "B", "KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB", "KB/s", "MB/s"];

/// Whether no line may begin with this word.
fn is_unit(word: &str) -> bool {
    UNITS.contains(&word.trim_end_matches([',', ';', '.', ')', ':']))
}

/// Breaks at spaces; a word longer than a line (a path) keeps a line of its own.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(&printable::line(text)) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The words of a text, numbers together with their units.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|w| !w.is_empty()) {
        match words.last_mut() {
            Some(number) if is_unit(word) && number.ends_with(|c: char| c.is_ascii_digit()) => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_string()),
        }
    }
    words
}

/// A command as one can paste it into a shell.
pub fn shell(command: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    let quote = |argument: &String| {
        if !argument.is_empty() && argument.chars().all(plain) {
            argument.clone()
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    command.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// A field of CSV as RFC 4180 wants it.
pub fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap() {
        let mut out = String::new();
        labelled(&mut out, "warning", &"word ".repeat(40));
        assert!(out.lines().all(|l| l.chars().count() <= COLUMNS) && out.lines().count() == 3, "{out}");
        assert!(out.lines().nth(1).is_some_and(|l| l.starts_with("         word")), "{out}");
        let mut out = String::new();
        labelled(&mut out, "checks", &format!("{} 142 µs, then", "x".repeat(86)));
        assert_eq!(out.lines().nth(1), Some("         142 µs, then"));
    }

    #[test]
    fn commands_survive_a_shell() {
        let command = ["weir", "bench", "a b", "it's", ""].map(String::from);
        assert_eq!(shell(&command), r"weir bench 'a b' 'it'\''s' ''");
    }
}
