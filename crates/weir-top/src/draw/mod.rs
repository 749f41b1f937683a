//! From the model to cells: one frame.

mod details;
mod figures;
mod head;
mod help;
mod panes;
mod table;
mod theme;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use crate::model::{Model, View};

#[cfg(test)]
pub use table::cells;
pub use theme::Look;

/// Narrowest and lowest screen that shows anything but a request for more.
const COLUMNS_MIN: u16 = 40;
const ROWS_MIN: u16 = 10;
/// Rows above and below the panes.
const HEAD: u16 = 2;
const FOOT: u16 = 1;

/// Draws a frame into all of `area`.
pub fn draw(model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    buffer.reset();
    if area.width < COLUMNS_MIN || area.height < ROWS_MIN {
        let text = format!("weir top needs {COLUMNS_MIN} columns and {ROWS_MIN} rows");
        buffer.set_stringn(area.x, area.y, text, area.width.into(), look.plain());
        return;
    }
    head::draw(model, look, Rect { height: HEAD, ..area }, buffer);
    let body = Rect { y: area.y + HEAD, height: area.height - HEAD - FOOT, ..area };
    if model.help {
        help::draw(model, look, body, buffer);
    } else if model.history.shown().is_none() {
        buffer.set_stringn(
            body.x,
            body.y + 1,
            "the first interval is under way",
            body.width.into(),
            look.faint(),
        );
    } else {
        match model.view {
            View::Overview => panes::draw(model, look, body, buffer),
            View::Zoomed => panes::zoomed(model, look, body, buffer),
            View::Details => details::draw(model, look, body, buffer),
        }
    }
    head::foot(model, look, Rect { y: area.bottom() - FOOT, height: FOOT, ..area }, buffer);
}

/// A frame as lines of text, without blanks at their ends.
pub fn text(model: &Model, columns: u16, rows: u16) -> String {
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    draw(model, Look::plain_text(), area, &mut buffer);
    lines(&buffer).join("\n") + "\n"
}

/// The rows of a buffer as text.
pub fn lines(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let row = |y: u16| {
        let mut line = String::new();
        let mut x = area.left();
        while x < area.right() {
            let symbol = buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
            line.push_str(symbol);
            // A wide character covers the cells behind it.
            x += ratatui_core::text::Span::raw(symbol).width().max(1) as u16;
        }
        line.trim_end().to_string()
    };
    (area.top()..area.bottom()).map(row).collect()
}
