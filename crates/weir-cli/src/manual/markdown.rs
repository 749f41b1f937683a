//! As much of Markdown as the documents use: headings, paragraphs, lists, tables and code. A table is read as a list of
//! terms: its first column, and what stands beside it.

/// A piece of a document, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// A heading; the document's own has level 1.
    Heading {
        /// How deep.
        level: usize,
        /// Its words.
        text: String,
    },
    /// Lines that belong together.
    Paragraph(String),
    /// A point of a list, with its mark: `-` or `1.`.
    Item {
        /// The mark.
        mark: String,
        /// Its words.
        text: String,
    },
    /// A row of a table.
    Term {
        /// The first cell.
        term: String,
        /// The other cells.
        text: String,
    },
    /// Lines to be left as they are.
    Code(Vec<String>),
}

/// Words of one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// As the rest.
    Plain(String),
    /// Between `**`.
    Strong(String),
    /// Between backquotes.
    Code(String),
}

/// The blocks of a document, links taken for their words.
pub fn blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = document.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with("<!--") {
            blocks.push(None);
        } else if trimmed.starts_with("```") {
            // What an item holds is indented as the item is.
            let indent = line.len() - line.trim_start().len();
            let inside = lines.by_ref().take_while(|line| !line.trim().starts_with("```"));
            blocks.push(Some(Block::Code(
                inside.map(|line| line.get(indent..).unwrap_or_default().to_string()).collect(),
            )));
        } else if let Some(heading) = line.strip_prefix('#') {
            let more = heading.chars().take_while(|c| *c == '#').count();
            blocks.push(Some(Block::Heading { level: more + 1, text: unlinked(heading[more..].trim()) }));
        } else if trimmed.starts_with('|') {
            // The first row says what the columns are, which the rows below show.
            let is_head = lines.peek().is_some_and(|next| next.trim().starts_with("|--"));
            if !is_head && !trimmed.starts_with("|--") {
                blocks.push(Some(row(trimmed)));
            }
        } else {
            push_words(&mut blocks, line, trimmed);
        }
    }
    blocks.into_iter().flatten().collect()
}

/// A line of words: it begins a block, or goes on with the last one, if no empty line is between.
fn push_words(blocks: &mut Vec<Option<Block>>, line: &str, trimmed: &str) {
    let words = unlinked(trimmed);
    if let Some((mark, text)) = point(&words) {
        blocks.push(Some(Block::Item { mark: mark.to_string(), text: text.to_string() }));
        return;
    }
    match blocks.last_mut() {
        Some(Some(Block::Paragraph(text))) => *text = format!("{text} {words}"),
        Some(Some(Block::Item { text, .. })) if line.starts_with(' ') => *text = format!("{text} {words}"),
        _ => blocks.push(Some(Block::Paragraph(words))),
    }
}

/// Mark and words of a point of a list.
fn point(words: &str) -> Option<(&str, &str)> {
    let (mark, text) = words.split_once(' ')?;
    let numbered =
        mark.strip_suffix('.').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    (mark == "-" || numbered).then_some((mark, text))
}

fn row(line: &str) -> Block {
    let mut cells = line.trim_matches('|').split(" | ").map(|cell| unlinked(cell.trim()));
    let term = cells.next().unwrap_or_default();
    let rest: Vec<String> = cells.filter(|cell| !cell.is_empty()).collect();
    Block::Term { term, text: rest.join("; ") }
}

/// `[words](place)` as its words; the place of another document means nothing here.
fn unlinked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let link = rest[open..].find("](").and_then(|middle| {
            let end = rest[open + middle..].find(')')?;
            Some((open + middle, open + middle + end))
        });
        let Some((middle, end)) = link.filter(|(middle, _)| !rest[open + 1..*middle].contains('[')) else {
            out.push_str(&rest[..=open]);
            rest = &rest[open + 1..];
            continue;
        };
        out.push_str(&rest[..open]);
        out.push_str(&rest[open + 1..middle]);
        rest = &rest[end + 1..];
    }
    out + rest
}

/// A text by the looks of its words.
pub fn spans(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    for (nth, outside) in text.split('`').enumerate() {
        if nth % 2 == 1 {
            spans.push(Span::Code(outside.to_string()));
            continue;
        }
        for (nth, words) in outside.split("**").enumerate() {
            let span = if nth % 2 == 1 { Span::Strong } else { Span::Plain };
            if !words.is_empty() {
                // Words between single stars are only said with weight.
                spans.push(span(words.replace('*', "")));
            }
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        text.to_string()
    }

    #[test]
    fn documents_are_read_block_by_block() {
        let document = "# A\n\nOne [two](b.md#c)\nthree.\n- **first**\n  goes on\n- second\n\n| a | b |\n|---|---|\n| `x` | y |\n\n```\n$ a\n```\n";
        let expected = [
            Block::Heading { level: 1, text: words("A") },
            Block::Paragraph(words("One two three.")),
            Block::Item { mark: words("-"), text: words("**first** goes on") },
            Block::Item { mark: words("-"), text: words("second") },
            Block::Term { term: words("`x`"), text: words("y") },
            Block::Code(vec![words("$ a")]),
        ];
        assert_eq!(blocks(document), expected);
    }

    #[test]
    fn brackets_that_are_no_link_stay() {
        for (text, expected) in [
            ("[default: 1] and [a](b)", "[default: 1] and a"),
            ("`weir knobs rollback [--all]` (all)", "`weir knobs rollback [--all]` (all)"),
            ("[a](b), [c](d)", "a, c"),
        ] {
            assert_eq!(unlinked(text), expected);
        }
    }

    #[test]
    fn looks_of_words() {
        let expected = [
            Span::Plain(words("a ")),
            Span::Strong(words("b")),
            Span::Plain(words(" ")),
            Span::Code(words("c**d")),
        ];
        assert_eq!(spans("*a* **b** `c**d`"), expected);
    }
}
