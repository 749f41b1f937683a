//! Text that others chose (names of processes, files, units and groups, messages of servers) made safe to print: a terminal
//! obeys control characters, and direction marks let a text read as another one. Every way to a terminal goes through
//! here; what programs read stays as it is.

use std::borrow::Cow;

/// What stands for a character that is not printed.
pub const REPLACEMENT: char = '\u{fffd}';

/// Whether a character does something else than stand where it is: controls (C0, DEL, C1), marks and overrides of
/// direction, separators of lines and paragraphs, and what has no width at all (Unicode 15, classes Cc, Cf, Zl, Zp).
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text of one line: nothing in it ends the line or moves the cursor.
pub fn line(text: &str) -> Cow<'_, str> {
    replaced(text, |_| false)
}

/// A text of many lines: line ends and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c == '\n' || c == '\t')
}

/// Words to a user: what follows a line end that somebody put into a name is indented, so that it passes for no line of
/// weir's own.
pub fn message(text: &str) -> String {
    lines(text).replace('\n', "\n  ")
}

fn replaced(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let goes = |c: char| is_hidden(c) && !stays(c);
    if text.chars().any(goes) {
        text.chars().map(|c| if goes(c) { REPLACEMENT } else { c }).collect::<String>().into()
    } else {
        text.into()
    }
}

/// JSON, or a part of it, in which what a terminal would obey stands as `\u009b`, which says the same (RFC 8259, 7).
/// serde_json does so below U+0020 alone.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let goes = |c: char| is_hidden(c) && c != '\n';
    if !text.chars().any(goes) {
        return text.into();
    }
    let mut safe = String::new();
    for c in text.chars() {
        if goes(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}")));
        } else {
            safe.push(c);
        }
    }
    safe.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for (text, expected_line, expected_lines) in [
            ("plain – ö µs █", "plain – ö µs █", "plain – ö µs █"),
            ("a\x1b[31mb\x07", "a\u{fffd}[31mb\u{fffd}", "a\u{fffd}[31mb\u{fffd}"),
            ("a\nb\tc\r", "a\u{fffd}b\u{fffd}c\u{fffd}", "a\nb\tc\u{fffd}"),
            // CSI as one C1 control, and as UTF-8 that a terminal may take for one.
            ("a\u{9b}2Jb\u{7f}", "a\u{fffd}2Jb\u{fffd}", "a\u{fffd}2Jb\u{fffd}"),
            ("x\u{202e}gpj.exe\u{2066}", "x\u{fffd}gpj.exe\u{fffd}", "x\u{fffd}gpj.exe\u{fffd}"),
            ("a\u{2028}b\u{200b}c", "a\u{fffd}b\u{fffd}c", "a\u{fffd}b\u{fffd}c"),
        ] {
            assert_eq!((line(text).as_ref(), lines(text).as_ref()), (expected_line, expected_lines));
        }
        assert_eq!(message("a\nerror: forged\x1b"), "a\n  error: forged\u{fffd}");
        assert!(matches!(line("plain"), Cow::Borrowed(_)));
    }
}
