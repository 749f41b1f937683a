//! Keys, and what cannot be seen.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::figures::duration;
use super::table::{put, wrapped};
use super::theme::Look;
use crate::key::HELP;
use crate::model::Model;

/// Cells of a key's name.
const KEYS: u16 = 16;

/// Draws over all panes.
pub fn draw(model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    let mut y = area.y;
    for (keys, what) in HELP {
        if y >= area.bottom() {
            return;
        }
        put(buffer, area.x, y, KEYS.min(area.width), keys, look.title(false), false);
        let x = area.x + KEYS + 1;
        put(buffer, x, y, area.right().saturating_sub(x), what, look.plain(), false);
        y += 1;
    }
    let kept = model.history.len() as u64 * model.about.interval_ns;
    let waiting =
        "waiting: threads inside a sync, of 100 % each; what a process writes may reach the device later";
    let facts = [
        format!("source {}; the last {} are kept", model.about.source, duration(kept as f64)),
        waiting.to_string(),
    ];
    for remark in facts.iter().chain(&model.about.remarks) {
        for line in wrapped(remark, area.width) {
            if y >= area.bottom() {
                return;
            }
            put(buffer, area.x, y, area.width, &line, look.faint(), false);
            y += 1;
        }
    }
}
