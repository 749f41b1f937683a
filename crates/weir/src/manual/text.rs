//! Blocks of a document as lines of a terminal.

use weir_cli::manual::markdown::{Block, Span, spans};
use weir_report::text::wrap;

/// The longest term beside which its text stands; below a longer one it is indented.
const TERM: usize = 22;

/// Lines of at most so many columns, but for code and words that are longer.
pub fn text(blocks: &[Block], columns: usize) -> String {
    let mut out = String::new();
    let edge = |rows: &[Block]| {
        let widths = rows.iter().map_while(|block| match block {
            Block::Term { term, .. } => Some(shown(term).chars().count()),
            _ => None,
        });
        widths.filter(|width| *width <= TERM).max().unwrap_or(0)
    };
    let mut edge_of_rows = 0;
    for (at, block) in blocks.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &blocks[before]);
        let follows = before.is_some_and(|before| is_row(before) && is_row(block));
        if at > 0 && !follows {
            out.push('\n');
        }
        match block {
            Block::Heading { text, .. } => out.push_str(&format!("{}\n", shown(text))),
            Block::Paragraph(text) => indented(&mut out, "", 0, text, columns),
            Block::Item { mark, text } => indented(&mut out, mark, mark.chars().count() + 1, text, columns),
            Block::Term { term, text } => {
                if !follows {
                    edge_of_rows = edge(&blocks[at..]);
                }
                row(&mut out, &shown(term), text, edge_of_rows, columns);
            }
            Block::Code(lines) => lines.iter().for_each(|line| {
                out.push_str(format!("    {line}").trim_end());
                out.push('\n');
            }),
        }
    }
    out
}

fn is_row(block: &Block) -> bool {
    matches!(block, Block::Term { .. } | Block::Item { .. })
}

fn row(out: &mut String, term: &str, text: &str, edge: usize, columns: usize) {
    if term.chars().count() <= edge {
        return indented(out, &format!("  {term}"), edge + 4, text, columns);
    }
    out.push_str(&format!("  {term}\n"));
    indented(out, "", 6, text, columns);
}

/// A label, and beside it the text, wrapped with its left edge kept.
fn indented(out: &mut String, label: &str, edge: usize, text: &str, columns: usize) {
    let mut label = label;
    for line in wrap(&shown(text), columns.saturating_sub(edge).max(20)) {
        out.push_str(format!("{label:<edge$}{line}").trim_end());
        out.push('\n');
        label = "";
    }
}

/// Without marks, but for the backquotes of what is typed.
fn shown(text: &str) -> String {
    let shown = |span: Span| match span {
        Span::Plain(text) | Span::Strong(text) => text,
        Span::Code(text) => format!("`{text}`"),
    };
    spans(text).into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_cli::manual::markdown::blocks;

    #[test]
    fn rows_are_aligned_and_long_terms_have_a_line_of_their_own() {
        let document = "# A\nOne two three four.\n\n| a | b |\n|---|---|\n| 0 | done |\n| `a term that is much longer` | so it is |\n| 128 + n | a **signal** |\n";
        let expected = "A\n\nOne two three four.\n\n  0        done\n  `a term that is much longer`\n      so it is\n  128 + n  a signal\n";
        assert_eq!(text(&blocks(document), 40), expected);
    }
}
