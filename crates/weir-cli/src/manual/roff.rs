//! Blocks of a document as the requests of a manual page (man(7)).

use super::markdown::{Block, Span, spans};

/// The blocks below a heading of the page.
pub fn body(blocks: &[Block]) -> String {
    let mut out = String::new();
    // A paragraph after a heading needs no request, and mandoc minds one.
    let mut fresh = true;
    for block in blocks {
        let paragraph = if fresh { "" } else { ".PP\n" };
        match block {
            Block::Heading { text, .. } => {
                out.push_str(&format!(".SS \"{}\"\n", plain(text).replace('"', "")))
            }
            Block::Paragraph(text) => out.push_str(&format!("{paragraph}{}\n", words(text))),
            Block::Item { mark, text } => {
                let mark = if mark == "-" { "\\(bu" } else { mark };
                out.push_str(&format!(".IP {mark} 3\n{}\n", words(text)));
            }
            Block::Term { term, text } => out.push_str(&format!(".TP\n{}\n{}\n", words(term), words(text))),
            Block::Code(lines) => out.push_str(&format!("{paragraph}{}", code(lines))),
        }
        fresh = matches!(block, Block::Heading { .. });
    }
    out
}

/// Lines as they are.
pub fn code(lines: &[impl AsRef<str>]) -> String {
    let lines: String = lines.iter().map(|line| format!("{}\n", typed(line.as_ref()))).collect();
    format!(".nf\n{lines}.fi\n")
}

/// Words of a text, what is typed in bold.
pub fn words(text: &str) -> String {
    let looks = |span: Span| match span {
        Span::Plain(text) => escaped(&text),
        Span::Strong(text) => format!("\\fB{}\\fR", escaped(&text)),
        Span::Code(text) => format!("\\fB{}\\fR", dashes(&escaped(&text))),
    };
    let words: String = spans(text).into_iter().map(looks).collect();
    guarded(&words)
}

/// What is typed: each hyphen is one that can be copied.
fn typed(line: &str) -> String {
    guarded(&dashes(&escaped(line)))
}

fn plain(text: &str) -> String {
    let plain = |span: Span| match span {
        Span::Plain(text) | Span::Strong(text) | Span::Code(text) => text,
    };
    escaped(&spans(text).into_iter().map(plain).collect::<String>())
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\(rs")
}

fn dashes(text: &str) -> String {
    text.replace('-', "\\-")
}

/// A line that begins with a control character is no request.
fn guarded(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manual::markdown::blocks;

    #[test]
    fn blocks_become_requests() {
        let document = "## A \"b\"\n`--x` is\n\nmore\n- one\n1. two\n\n| a | b |\n|---|---|\n| `x` | y\\z |\n\n```\n.x -y\n```\n";
        let expected = ".SS \"A b\"\n\\fB\\-\\-x\\fR is\n.PP\nmore\n.IP \\(bu 3\none\n.IP 1. 3\ntwo\n.TP\n\\fBx\\fR\ny\\(rsz\n.PP\n.nf\n\\&.x \\-y\n.fi\n";
        assert_eq!(body(&blocks(document)), expected);
    }
}
