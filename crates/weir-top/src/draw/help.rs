//! Keys, and what cannot be seen.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::figures::duration;
use super::table::{Line, scrolled, wrapped};
use super::theme::Look;
use crate::key::HELP;
use crate::model::Model;

/// Cells of a key's name.
const KEYS: usize = 16;

/// Draws over all panes.
pub fn draw(model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    let keys = HELP.iter().map(|(keys, what)| {
        vec![(format!("{keys:<KEYS$} "), look.title(false)), ((*what).to_string(), look.plain())]
    });
    let mut lines: Vec<Line> = keys.collect();
    let kept = model.history.len() as u64 * model.about.interval_ns;
    let waiting =
        "waiting: threads inside a sync, of 100 % each; what a process writes may reach the device later";
    let facts = [
        format!("source {}; the last {} are kept", model.about.source, duration(kept as f64)),
        waiting.to_string(),
    ];
    for remark in facts.iter().chain(&model.about.remarks) {
        lines.extend(wrapped(remark, area.width).into_iter().map(|line| vec![(line, look.faint())]));
    }
    scrolled(&lines, model, look, area, buffer);
}
