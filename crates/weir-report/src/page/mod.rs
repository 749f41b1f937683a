//! Self-contained HTML pages: no script, nothing fetched from anywhere, light, dark, phone and paper from one file.

pub mod distribution;
pub mod merge;
pub mod timeline;

use std::fmt::Display;

use super::plot::{self, BarFigure, Figure, Form, MultiplesFigure, ScatterFigure, StackFigure, escape};
use weir_core::result::record::Note;

/// Everything the page needs stands in it; a browser must neither fetch nor run anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// How every page begins, by which weir knows its own.
pub const OPENING: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"generator\" content=\"weir\">";

/// The frame of a page.
#[derive(Debug, Clone)]
pub struct Page {
    /// Title of the window.
    pub title: String,
    /// What kind of page it is, beside weir's name: `bench`.
    pub kind: String,
    /// When it was measured, as shown.
    pub date: String,
    /// Where and by what, in the foot.
    pub foot: String,
    /// HTML of everything between head and foot.
    pub body: String,
}

/// A table of texts; the first row is its head.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Names of the columns.
    pub head: Vec<String>,
    /// Rows; the first cell of each names it.
    pub rows: Vec<Vec<String>>,
    /// An anchor for each row, where others point at them; else empty.
    pub anchors: Vec<String>,
    /// Whether the last column holds sentences.
    pub says: bool,
}

/// The whole document. Only `body` is HTML already; everything else is escaped here.
pub fn page(page: &Page) -> String {
    format!(
        concat!(
            "{opening}",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">",
            "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">",
            "<meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>",
            "<style>{style}</style></head><body>\n",
            "<header><div class=\"mark\"><span><b>weir</b> {kind}</span><span>{date}</span></div></header>\n",
            "<main>{body}</main>\n<footer>{foot}</footer></body></html>\n"
        ),
        opening = OPENING,
        policy = POLICY,
        title = escape(&page.title),
        style = include_str!("style.css"),
        kind = escape(&page.kind),
        date = escape(&page.date),
        body = page.body,
        foot = escape(&page.foot),
    )
}

/// A part of the page with its heading; `body` is HTML.
pub fn section(id: &str, heading: &str, body: &str) -> String {
    format!("<section id=\"{}\"><h2>{}</h2>\n{body}</section>\n", escape(id), escape(heading))
}

/// A name for an anchor: letters, digits and hyphens.
pub fn slug(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// A paragraph of plain text.
pub fn paragraph(text: impl Display) -> String {
    format!("<p>{}</p>\n", prose(text))
}

/// Plain text in which what stands between backticks, as in a terminal, is a command or what was typed.
pub fn prose(text: impl Display) -> String {
    let escaped = escape(text);
    let parts: Vec<&str> = escaped.split('`').collect();
    let mut out = String::with_capacity(escaped.len());
    for (at, part) in parts.iter().enumerate() {
        match at % 2 {
            1 if at + 1 < parts.len() => out.push_str(&format!("<code>{part}</code>")),
            // One without a partner is itself.
            1 => out.push_str(&format!("`{part}")),
            _ => out.push_str(part),
        }
    }
    out
}

/// The page's headline. Large letters break soon, and a number is not parted from its %.
pub fn headline(text: impl Display) -> String {
    let text = prose(text);
    let mut parts = text.split(" %");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out.push_str(if out.ends_with(|c: char| c.is_ascii_digit()) { "\u{a0}%" } else { " %" });
        out.push_str(part);
    }
    format!("<h1>{out}</h1>\n")
}

/// A plot with its finding above and its numbers folded away beneath.
pub fn figure(figure: &Figure, table: &Table) -> String {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::svg(figure, form)).concat();
    framed(&figure.id, &figure.title, &figure.finding, &drawings, table)
}

/// Bars with their finding above and their numbers folded away beneath.
pub fn bars(figure: &BarFigure, table: &Table) -> String {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::bars_svg(figure, form)).concat();
    framed(&figure.id, &figure.title, &figure.finding, &drawings, table)
}

/// Stacked bars with their finding above and their numbers folded away beneath.
pub fn stacks(figure: &StackFigure, table: &Table) -> String {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::stack_svg(figure, form)).concat();
    framed(&figure.id, &figure.title, &figure.finding, &drawings, table)
}

/// Named points over two axes, likewise.
pub fn scatter(figure: &ScatterFigure, table: &Table) -> String {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::scatter_svg(figure, form)).concat();
    framed(&figure.id, &figure.title, &figure.finding, &drawings, table)
}

/// Small multiples, likewise.
pub fn multiples(figure: &MultiplesFigure, table: &Table) -> String {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::multiples_svg(figure, form)).concat();
    framed(&figure.id, &figure.title, &figure.finding, &drawings, table)
}

fn framed(id: &str, title: &str, finding: &str, drawings: &str, table: &Table) -> String {
    let numbers = if table.rows.is_empty() {
        String::new()
    } else {
        format!("<details><summary>The numbers</summary>{}</details>", data_table(table))
    };
    format!(
        "<figure id=\"{}\"><figcaption><b>{}</b><span>{}</span></figcaption>{drawings}{numbers}</figure>\n",
        escape(id),
        escape(title),
        escape(finding)
    )
}

/// Numbers in columns, in a box that scrolls by itself where they are wider than the page.
pub fn data_table(table: &Table) -> String {
    let head: String = table.head.iter().map(|h| cell("th scope=\"col\"", h)).collect();
    let rows: String = table
        .rows
        .iter()
        .enumerate()
        .map(|(i, row)| {
            let anchor = table.anchors.get(i).map_or(String::new(), |a| format!(" id=\"{}\"", escape(a)));
            let cells: String = row
                .iter()
                .enumerate()
                .map(|(i, text)| cell(if i == 0 { "th scope=\"row\"" } else { "td" }, text))
                .collect();
            format!("<tr{anchor}>{cells}</tr>")
        })
        .collect();
    let tall = if table.rows.len() > ROWS_LOW { " tall" } else { "" };
    let class = if table.says { "data says" } else { "data" };
    // A box that scrolls must be reachable by keyboard.
    format!(
        "<div class=\"scroll{tall}\" tabindex=\"0\"><table class=\"{class}\"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

/// A table of more rows scrolls in a box.
const ROWS_LOW: usize = 14;
/// Figures with their interval stay on one line; what is longer may be broken.
const UNBROKEN_MOST: usize = 28;

fn cell(tag: &str, text: &str) -> String {
    // Where room is scarce, the interval of a figure goes below it.
    if let Some((figure, interval)) = text.split_once(" [") {
        let (figure, interval) = (escape(figure), escape(interval));
        return format!(
            "<{tag} class=\"pair\"><span>{figure}</span> <span>[{interval}</span></{}>",
            &tag[..2]
        );
    }
    let long = if text.chars().count() > UNBROKEN_MOST { " class=\"long\"" } else { "" };
    format!("<{tag}{long}>{}</{}>", escape(text), &tag[..2])
}

/// Names and values in two columns; an optional third part of a row says where the value comes from.
pub fn facts_table(rows: &[(String, String, String)]) -> String {
    let rows: String = rows
        .iter()
        .map(|(name, value, source)| {
            let source =
                if source.is_empty() { String::new() } else { format!("<small>{}</small>", escape(source)) };
            format!("<tr><th scope=\"row\">{}</th><td>{}{source}</td></tr>", escape(name), escape(value))
        })
        .collect();
    format!("<table class=\"facts\"><tbody>{rows}</tbody></table>\n")
}

/// One figure of the head: what it is, its value, and a line beneath.
pub struct Tile {
    /// What it is.
    pub name: String,
    /// The value with its unit.
    pub value: String,
    /// What it stands on, or what goes with it.
    pub detail: String,
}

/// The figures that a reader takes home.
pub fn tiles(tiles: &[Tile]) -> String {
    let body: String = tiles
        .iter()
        .map(|t| {
            let (name, value, detail) = (escape(&t.name), escape(&t.value), escape(&t.detail));
            format!("<div><dt>{name}</dt><dd>{value}<small>{detail}</small></dd></div>")
        })
        .collect();
    format!("<dl class=\"tiles\">{body}</dl>\n")
}

/// What a reader must know before believing a figure.
pub fn remark_note(remark: &Note, bad: bool) -> String {
    note(&capitalised(&remark.key.replace('-', " ")), &capitalised(&remark.text), bad)
}

/// Text that begins a line of its own.
pub fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or(String::new(), |first| first.to_uppercase().chain(rest).collect())
}

/// A time stamp as people read it: RFC 3339 with a space.
pub fn date(started_at: &str) -> String {
    started_at.replacen('T', " ", 1)
}

/// Something that changes how the page must be read.
pub fn note(heading: &str, text: &str, bad: bool) -> String {
    let class = if bad { "note bad" } else { "note" };
    format!("<div class=\"{class}\" role=\"note\"><b>{}</b>{}</div>\n", escape(heading), prose(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_broken_and_figures_may_not() {
        let row = |name: &str| vec![name.to_string(), "12.2 ms [3.06 ms–40.1 ms]".to_string()];
        let table = Table {
            head: row("arm"),
            rows: vec![row("vm.dirty_bytes=15000000 sda/scheduler=none")],
            ..Table::default()
        };
        let html = data_table(&table);
        assert!(html.contains("<th scope=\"row\" class=\"long\">vm.dirty_bytes=15000000 sda/"), "{html}");
        assert!(
            html.contains("<th scope=\"col\">arm</th>")
                && html.contains("<td class=\"pair\"><span>12.2 ms</span> <span>["),
            "{html}"
        );
        assert!(html.starts_with("<div class=\"scroll\" tabindex=\"0\">"), "{html}");
    }

    #[test]
    fn what_stands_between_backticks_is_code_and_stays_harmless() {
        for (text, html) in [
            ("by `max rate` no step", "<p>by <code>max rate</code> no step</p>\n"),
            ("`a` and `<b>`", "<p><code>a</code> and <code>&lt;b&gt;</code></p>\n"),
            ("a file called ` alone", "<p>a file called ` alone</p>\n"),
            ("`one` and ` more", "<p><code>one</code> and ` more</p>\n"),
            ("", "<p></p>\n"),
        ] {
            assert_eq!(paragraph(text), html, "{text}");
        }
    }
}
