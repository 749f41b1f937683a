//! Self-contained HTML pages: no script, nothing fetched from anywhere, light, dark, phone and paper from one file.

pub mod distribution;
pub mod merge;
pub mod timeline;

use std::fmt::Display;

use super::plot::{
    self, BarFigure, CellFigure, Figure, Form, MapFigure, MultiplesFigure, ScatterFigure, StackFigure,
};
use maud::{Markup, PreEscaped, html};
use weir_core::printable::{REPLACEMENT, is_hidden};
use weir_core::result::record::Note;

/// Everything the page needs stands in it; a browser must neither fetch nor run anything.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// How every page begins, by which weir knows its own; what follows is still in the head.
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
    /// Everything between head and foot.
    pub body: Markup,
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
    /// An anchor in the page that the name of each row leads to; else empty.
    pub links: Vec<String>,
    /// Which columns hold words, and so begin at the left; else empty.
    pub words: Vec<bool>,
    /// Whether the last column holds sentences.
    pub says: bool,
}

/// The whole document.
pub fn page(page: &Page) -> String {
    let document = html! {
        (PreEscaped(OPENING))
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta http-equiv="Content-Security-Policy" content=(POLICY);
        meta name="color-scheme" content="light dark";
        title { (page.title) }
        style { (PreEscaped(include_str!("style.css"))) }
        (PreEscaped("</head><body>\n"))
        header { div.mark { span { b { "weir" } " " (page.kind) } span { (page.date) } } }
        main { (page.body) }
        footer { (page.foot) }
        (PreEscaped("</body></html>\n"))
    };
    visible(&document.into_string())
}

/// Characters that could hide or turn round what follows them become a visible replacement.
fn visible(document: &str) -> String {
    let shown = |c: char| if is_hidden(c) && !matches!(c, '\n' | '\t') { REPLACEMENT } else { c };
    document.chars().map(shown).collect()
}

/// A part of the page with its heading.
pub fn section(id: &str, heading: &str, body: Markup) -> Markup {
    html! { section id=(id) { h2 { (heading) } (body) } }
}

/// A name for an anchor: letters, digits and hyphens.
pub fn slug(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// A paragraph of plain text.
pub fn paragraph(text: impl Display) -> Markup {
    html! { p { (prose(text)) } }
}

/// Plain text in which what stands between backticks, as in a terminal, is a command or what was typed.
pub fn prose(text: impl Display) -> Markup {
    let text = text.to_string();
    let parts: Vec<&str> = text.split('`').collect();
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at % 2 == 0 { (part) }
            @else if at + 1 < parts.len() { code { (part) } }
            // One without a partner is itself.
            @else { "`" (part) }
        }
    }
}

/// The page's headline. Large letters break soon, and a number is not parted from its %.
pub fn headline(text: impl Display) -> Markup {
    let text = text.to_string();
    let mut parts = text.split(" %");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        out.push_str(if out.ends_with(|c: char| c.is_ascii_digit()) { "\u{a0}%" } else { " %" });
        out.push_str(part);
    }
    html! { h1 { (prose(out)) } }
}

/// A plot with its finding above and its numbers folded away beneath.
pub fn figure(figure: &Figure, table: &Table) -> Markup {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::svg(figure, form));
    framed([&figure.id, &figure.title, &figure.finding], &drawings, table)
}

/// Bars with their finding above and their numbers folded away beneath.
pub fn bars(figure: &BarFigure, table: &Table) -> Markup {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::bars_svg(figure, form));
    framed([&figure.id, &figure.title, &figure.finding], &drawings, table)
}

/// A heat map of cells, likewise.
pub fn cells(figure: &CellFigure, table: &Table) -> Markup {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::cells_svg(figure, form));
    framed([&figure.id, &figure.title, &figure.finding], &drawings, table)
}

/// A heat map of rows over time, likewise.
pub fn map(figure: &MapFigure, table: &Table) -> Markup {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::map_svg(figure, form));
    framed([&figure.id, &figure.title, &figure.finding], &drawings, table)
}

/// Stacked bars with their finding above and their numbers folded away beneath.
pub fn stacks(figure: &StackFigure, table: &Table) -> Markup {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::stack_svg(figure, form));
    framed([&figure.id, &figure.title, &figure.finding], &drawings, table)
}

/// Named points over two axes, likewise.
pub fn scatter(figure: &ScatterFigure, table: &Table) -> Markup {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::scatter_svg(figure, form));
    framed([&figure.id, &figure.title, &figure.finding], &drawings, table)
}

/// Small multiples, likewise.
pub fn multiples(figure: &MultiplesFigure, table: &Table) -> Markup {
    let drawings = [Form::Wide, Form::Narrow].map(|form| plot::multiples_svg(figure, form));
    framed([&figure.id, &figure.title, &figure.finding], &drawings, table)
}

fn framed([id, title, finding]: [&str; 3], drawings: &[Markup], table: &Table) -> Markup {
    html! {
        figure id=(id) {
            figcaption { b { (title) } span { (finding) } }
            @for drawing in drawings { (drawing) }
            @if !table.rows.is_empty() {
                details { summary { "The numbers" } (data_table(table)) }
            }
        }
    }
}

/// Numbers in columns, in a box that scrolls by itself where they are wider than the page.
pub fn data_table(table: &Table) -> Markup {
    let tall = table.rows.len() > ROWS_LOW;
    html! {
        // A box that scrolls must be reachable by keyboard.
        div.scroll.tall[tall] tabindex="0" {
            table.data.says[table.says] {
                thead { tr { @for (column, text) in table.head.iter().enumerate() { th class=[class(table, column, text)] scope="col" { (cell(text)) } } } }
                tbody {
                    @for (i, row) in table.rows.iter().enumerate() {
                        tr id=[table.anchors.get(i)] {
                            @for (column, text) in row.iter().enumerate() {
                                @if column == 0 { th class=[long(text)] scope="row" { (linked(text, table.links.get(i))) } }
                                @else { td class=[class(table, column, text)] { (cell(text)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A table of more rows scrolls in a box.
const ROWS_LOW: usize = 14;
/// Text that is longer may be broken; figures are not.
const UNBROKEN_MOST: usize = 28;

/// A figure and its interval, as in `12 ms [11 ms–13 ms]`.
fn pair(text: &str) -> Option<(&str, &str)> {
    let at = text.find(" [")?;
    Some((&text[..at], &text[at + 1..]))
}

/// The class of a cell whose text may be broken.
fn long(text: &str) -> Option<&'static str> {
    (pair(text).is_none() && text.chars().count() > UNBROKEN_MOST).then_some("long")
}

/// A cell that leads somewhere.
fn linked(text: &str, anchor: Option<&String>) -> Markup {
    html! {
        @match anchor.filter(|anchor| !anchor.is_empty()) {
            Some(anchor) => { a href={ "#" (anchor) } { (text) } }
            None => { (cell(text)) }
        }
    }
}

/// The class of a cell behind the first.
fn class(table: &Table, column: usize, text: &str) -> Option<&'static str> {
    match (table.words.get(column), long(text)) {
        (Some(true), None) => Some("words"),
        (Some(true), Some(_)) => Some("words long"),
        (_, long) => long,
    }
}

/// Where room is scarce, the interval of a figure goes below it.
fn cell(text: &str) -> Markup {
    html! {
        @match pair(text) {
            Some((figure, interval)) => { span { (figure) } " " span { (interval) } }
            None => { (text) }
        }
    }
}

/// Names and values in two columns; an optional third part of a row says where the value comes from.
pub fn facts_table(rows: &[(String, String, String)]) -> Markup {
    html! {
        table.facts {
            tbody {
                @for (name, value, source) in rows {
                    tr {
                        th scope="row" { (name) }
                        td { (value) @if !source.is_empty() { small { (source) } } }
                    }
                }
            }
        }
    }
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
pub fn tiles(tiles: &[Tile]) -> Markup {
    html! {
        dl.tiles {
            @for Tile { name, value, detail } in tiles {
                div { dt { (name) } dd { (value) small { (detail) } } }
            }
        }
    }
}

/// What a reader must know before believing a figure.
pub fn remark_note(remark: &Note, bad: bool) -> Markup {
    note(&capitalised(&remark.key.replace('-', " ")), &capitalised(&remark.text), bad)
}

/// Text that begins a line of its own.
pub fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or(String::new(), |first| first.to_uppercase().chain(rest).collect())
}

/// A time stamp as people read it: RFC 3339 with a space.
pub fn date(started_at: &str) -> String {
    let (seconds, fraction) = started_at.split_once('.').unwrap_or((started_at, ""));
    let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    seconds.replacen('T', " ", 1) + zone
}

/// Something that changes how the page must be read.
pub fn note(heading: &str, text: &str, bad: bool) -> Markup {
    html! { div.note.bad[bad] role="note" { b { (heading) } (prose(text)) } }
}

/// A finding in larger letters.
pub fn lede(text: impl Display) -> Markup {
    html! { p.lede { (text.to_string()) } }
}

/// What was typed, or can be.
pub fn typed(text: impl Display) -> Markup {
    html! { pre { (text.to_string()) } }
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
        let html = data_table(&table).into_string();
        assert!(html.contains("<th class=\"long\" scope=\"row\">vm.dirty_bytes=15000000 sda/"), "{html}");
        assert!(
            html.contains("<th scope=\"col\">arm</th>") && html.contains("<td><span>12.2 ms</span> <span>["),
            "{html}"
        );
        assert!(html.starts_with("<div class=\"scroll\" tabindex=\"0\">"), "{html}");
    }

    #[test]
    fn what_stands_between_backticks_is_code_and_stays_harmless() {
        for (text, html) in [
            ("by `max rate` no step", "<p>by <code>max rate</code> no step</p>"),
            ("`a` and `<b>`", "<p><code>a</code> and <code>&lt;b&gt;</code></p>"),
            ("a file called ` alone", "<p>a file called ` alone</p>"),
            ("`one` and ` more", "<p><code>one</code> and ` more</p>"),
            ("", "<p></p>"),
        ] {
            assert_eq!(paragraph(text).into_string(), html, "{text}");
        }
    }

    #[test]
    fn hostile_text_is_inert() {
        let hostile = "</title></style><script>alert(\"x\")</script>&'\u{0}\u{1b}[31m\u{202e}gpj";
        let text = || hostile.to_string();
        let body = section(hostile, hostile, paragraph(hostile));
        let shown = page(&Page { title: text(), kind: text(), date: text(), foot: text(), body });
        assert!(!shown.contains("<script") && !shown.contains(['\u{0}', '\u{1b}', '\u{202e}']), "{shown}");
        assert!(
            shown.contains("<section id=\"&lt;/title&gt;") && shown.contains("(&quot;x&quot;)"),
            "{shown}"
        );
        assert_eq!(visible("/var/lib/mysql µs\n"), "/var/lib/mysql µs\n");
    }
}
