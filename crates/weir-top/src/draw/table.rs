//! Rows of cells that fit the width they have: columns that matter less go first.

use std::borrow::Cow;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use weir_core::printable;

use super::theme::Look;
use crate::model::Model;

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its head.
    pub name: &'static str,
    /// Its cells.
    pub width: u16,
    /// Figures stand at its right edge.
    pub is_figure: bool,
    /// Which goes first where the screen is too narrow: the larger. 0 stays.
    pub spare: u8,
    /// Takes what is left.
    pub grows: bool,
}

impl Column {
    /// A figure.
    pub const fn figure(name: &'static str, width: u16, spare: u8) -> Column {
        Column { name, width, is_figure: true, spare, grows: false }
    }

    /// A text.
    pub const fn text(name: &'static str, width: u16, spare: u8) -> Column {
        Column { name, width, is_figure: false, spare, grows: false }
    }

    /// A text that takes what is left.
    pub const fn rest(name: &'static str, width: u16, spare: u8) -> Column {
        Column { name, width, is_figure: false, spare, grows: true }
    }
}

/// A cell.
#[derive(Debug, Clone)]
pub struct Cell {
    /// What it says; names that others chose are made printable when it is drawn.
    pub text: String,
    /// How it looks.
    pub style: Style,
}

impl Cell {
    /// As it comes.
    pub fn plain(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), style: Style::new() }
    }

    /// In a style.
    pub fn styled(text: impl Into<String>, style: Style) -> Cell {
        Cell { text: text.into(), style }
    }
}

/// Where each column stands; `None` of those that are left out.
pub fn places(columns: &[Column], width: u16) -> Vec<Option<(u16, u16)>> {
    let mut taken: Vec<bool> = vec![true; columns.len()];
    let needs = |taken: &[bool]| -> u16 {
        columns.iter().zip(taken).filter(|(_, taken)| **taken).map(|(column, _)| column.width + 1).sum()
    };
    while needs(&taken) > width + 1 {
        let candidates = columns.iter().enumerate().filter(|(at, column)| taken[*at] && column.spare > 0);
        let Some((worst, _)) = candidates.max_by_key(|(_, column)| column.spare) else { break };
        taken[worst] = false;
    }
    let growing = columns.iter().zip(&taken).filter(|(column, taken)| **taken && column.grows).count() as u16;
    let left = (width + 1).saturating_sub(needs(&taken));
    let mut x = 0;
    let place = |(column, taken): (&Column, &bool)| {
        taken.then(|| {
            let width = column.width + if column.grows { left / growing.max(1) } else { 0 };
            let at = x;
            x += width + 1;
            (at, width)
        })
    };
    columns.iter().zip(&taken).map(place).collect()
}

/// Draws one row of cells from the left edge of `area`, in its first line.
pub fn row(columns: &[Column], cells: &[Cell], area: Rect, buffer: &mut Buffer) {
    for ((column, place), cell) in columns.iter().zip(places(columns, area.width)).zip(cells) {
        let Some((x, width)) = place else { continue };
        // What would reach past the edge is cut, not wrapped.
        let width = width.min(area.width.saturating_sub(x));
        put(buffer, area.x + x, area.y, width, &cell.text, cell.style, column.is_figure);
    }
}

/// Draws the heads of columns.
pub fn heads(columns: &[Column], style: Style, area: Rect, buffer: &mut Buffer) {
    let cells: Vec<Cell> = columns.iter().map(|column| Cell::styled(column.name, style)).collect();
    row(columns, &cells, area, buffer);
}

/// Draws a text that others may have chosen into so many cells; one that is longer ends in an ellipsis.
pub fn put(buffer: &mut Buffer, x: u16, y: u16, width: u16, text: &str, style: Style, at_right: bool) {
    if !buffer.area.contains((x, y).into()) {
        return;
    }
    let text = safe(text);
    let length = cells(&text);
    if length <= usize::from(width) {
        let before = if at_right { usize::from(width) - length } else { 0 };
        buffer.set_stringn(x + before as u16, y, text, length, style);
    } else if width > 0 {
        let (end, _) = buffer.set_stringn(x, y, text, usize::from(width) - 1, style);
        buffer.set_stringn(end, y, "…", 1, style);
    }
}

/// A text without what a terminal obeys, and without marks of no width: a name may pile up hundreds on one character.
fn safe(text: &str) -> Cow<'_, str> {
    let text = printable::line(text);
    if text.is_ascii() {
        return text;
    }
    let has_width = |c: &char| cells(c.encode_utf8(&mut [0; 4])) > 0;
    text.chars().filter(has_width).collect::<String>().into()
}

/// How many cells a text takes.
pub fn cells(text: &str) -> usize {
    ratatui_core::text::Span::raw(text).width()
}

/// How many more there are, in three cells.
pub fn more(hidden: usize) -> String {
    if hidden > 99 { ">99".to_string() } else { format!("+{hidden}") }
}

/// A line: pieces of text, each with its style.
pub type Line = Vec<(String, Style)>;

/// Draws lines from the one on that has been scrolled to, and how many of them follow at the lower edge. Notes how far they
/// can be scrolled.
pub fn scrolled(lines: &[Line], model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    let height = usize::from(area.height);
    let most = lines.len().saturating_sub(height);
    model.scrolls.set(most);
    let first = model.scrolled.min(most);
    for (y, line) in (area.y..area.bottom()).zip(&lines[first..]) {
        let mut x = area.x;
        for (text, style) in line {
            put(buffer, x, y, area.right().saturating_sub(x), text, *style, false);
            x = x.saturating_add(cells(text) as u16).min(area.right());
        }
    }
    let hidden = lines.len().saturating_sub(first + height);
    if hidden > 0 {
        let text = format!(" {}", more(hidden));
        put(buffer, area.right().saturating_sub(4), area.bottom() - 1, 4, &text, look.faint(), true);
    }
}

/// Lines of a text, none longer than so many cells.
pub fn wrapped(text: &str, width: u16) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let taken = cells(&lines[last]);
        if taken > 0 && taken + 1 + cells(word) > usize::from(width) {
            lines.push(word.to_string());
        } else {
            if taken > 0 {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

/// The style of a row's ground.
pub fn ground(look: Look, is_selected: bool, is_in_focus: bool, area: Rect, buffer: &mut Buffer) {
    if is_selected {
        buffer.set_style(Rect { height: 1, ..area }, look.selected(is_in_focus));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] =
        [Column::rest("name", 8, 0), Column::figure("a", 6, 2), Column::figure("b", 6, 1)];

    #[test]
    fn columns_that_matter_less_go_first_and_the_rest_grows() {
        for (width, expected) in [
            (30, [Some((0, 16)), Some((17, 6)), Some((24, 6))]),
            (22, [Some((0, 8)), Some((9, 6)), Some((16, 6))]),
            (21, [Some((0, 14)), None, Some((15, 6))]),
            (9, [Some((0, 9)), None, None]),
            (4, [Some((0, 8)), None, None]),
        ] {
            assert_eq!(places(&COLUMNS, width), expected, "{width}");
        }
    }

    #[test]
    fn whatever_a_name_holds_it_stays_in_its_cells() {
        let names = [
            "a\x1b[2Jb\nc",
            "漢字漢字漢字漢字",
            "e\u{301}e\u{301}",
            "\u{202e}gpj",
            "🏳️‍🌈🏳️‍🌈🏳️‍🌈🏳️‍🌈🏳️‍🌈",
            &"\u{301}".repeat(500),
            "",
        ];
        for name in names {
            let area = Rect::new(0, 0, 20, 2);
            let mut buffer = Buffer::empty(area);
            put(&mut buffer, 2, 0, 6, name, Style::new(), false);
            put(&mut buffer, 19, 1, 1, name, Style::new(), false);
            buffer.set_stringn(8, 0, "|", 1, Style::new());
            let symbol = |x: u16, y: u16| buffer.cell((x, y)).map_or("", |cell| cell.symbol()).to_string();
            assert_eq!(symbol(8, 0), "|", "{name:?}");
            assert!((9..20).all(|x| symbol(x, 0) == " "), "{name:?}");
            let all: String = buffer.content().iter().map(|cell| cell.symbol()).collect();
            assert!(!all.contains(printable::is_hidden) && !all.contains('\u{301}'), "{name:?}: {all:?}");
        }
    }
}
