//! The first two lines, and the last one.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;

use super::figures::{duration, duration_of, memory, percent, rate};
use super::table::{cells, put};
use super::theme::Look;
use crate::model::{Model, View};
use crate::pane::Pane;
use crate::rows::rank;
use crate::sample::Sample;

/// From this share of the time on, tasks that wait for I/O deserve a look.
const PRESSURE_LOUD: f64 = 20.0;

/// Who, when, from what, at what price; and the machine in one line.
pub fn draw(model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    let sample = model.history.shown();
    let clock = sample.map_or("", |sample| sample.clock.as_str());
    let left = format!("weir top  {}  {clock}", model.about.host);
    put(buffer, area.x, area.y, area.width, &left, look.title(false), false);
    let (state, is_live) = state(model);
    let x = area.x + (cells(&left) as u16 + 2).min(area.width);
    let style = if is_live { look.plain() } else { look.loud() };
    put(buffer, x, area.y, area.right().saturating_sub(x), &state, style, false);
    let taken = x + cells(&state) as u16 + 2;
    let is_recorded = sample.is_some_and(|sample| sample.is_recorded);
    let source = if is_recorded { "the recorder" } else { &model.about.source };
    let cost = sample.filter(|_| !is_recorded).map(cost).unwrap_or_default();
    let right = format!("{source}{cost}");
    let shown = if taken + cells(&right) as u16 <= area.right() { &right } else { source };
    if taken + cells(shown) as u16 <= area.right() {
        put(buffer, taken, area.y, area.right() - taken, shown, look.faint(), true);
    }
    if let Some(sample) = sample {
        machine(sample, look, Rect { y: area.y + 1, height: 1, ..area }, buffer);
    }
}

/// Where in time the screen is.
fn state(model: &Model) -> (String, bool) {
    if model.history.is_live() {
        return ("live".to_string(), true);
    }
    if let Some(shown) = model.history.shown().filter(|sample| sample.is_recorded) {
        let ago = model.history.last().map(|last| ago(last.at_ms.saturating_sub(shown.at_ms)));
        return (format!("recorded{}", ago.unwrap_or_default()), false);
    }
    let behind = model.history.behind() as u64 * model.about.interval_ns;
    match behind {
        0 => ("stays here".to_string(), false),
        ns => (format!("{} back", duration(ns as f64)), false),
    }
}

/// How long ago something was.
fn ago(ms: i64) -> String {
    let minutes = ms.max(0) / 60_000;
    match (minutes / 1440, minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => format!(", {} s back", ms.max(0) / 1000),
        (0, 0, minutes) => format!(", {minutes} min back"),
        (0, hours, minutes) => format!(", {hours} h {minutes} min back"),
        (days, hours, _) => format!(", {days} d {hours} h back"),
    }
}

fn cost(sample: &Sample) -> String {
    let share = sample.frame.cost.weir_cpu_share + sample.frame.cost.kernel_cpu_share.unwrap_or(0.0);
    format!(", costs {:.1} %", share * 100.0)
}

/// Pressure, dirty pages, all syncs.
fn machine(sample: &Sample, look: Look, area: Rect, buffer: &mut Buffer) {
    let mut parts = Vec::new();
    match &sample.syncs {
        Some(syncs) => {
            let p99 = (syncs.anatomy.syncs > 0).then_some(syncs.anatomy.latency.p99_ns);
            let waiting = match syncs.under_way {
                0 => String::new(),
                n => format!(", {n} waiting"),
            };
            let style = if syncs.under_way > 0 { look.loud() } else { look.plain() };
            let text = format!("syncs {}/s p99 {}{waiting}", rate(syncs.per_second), duration_of(p99));
            parts.push((text, style));
        }
        // A recorder writes down neither that there was none nor that it saw none.
        None if sample.is_recorded => parts.push(("no sync was recorded".to_string(), look.faint())),
        None => parts.push(("syncs are not seen".to_string(), look.faint())),
    }
    if let Some(io) = sample.pressure.get("io") {
        let style = if io.some_percent >= PRESSURE_LOUD { look.loud() } else { look.plain() };
        parts.push((format!("PSI {:.0} %", io.some_percent), style));
    }
    let memory_of = &sample.frame.memory;
    parts.push((format!("dirty {}", memory(memory_of.dirty_bytes)), look.plain()));
    parts.push((format!("writing {}", memory(memory_of.writeback_bytes)), look.plain()));
    let lost: u64 = sample.frame.lost.values().sum();
    if lost > 0 {
        parts.push((format!("lost {lost}"), look.loud()));
    }
    let mut x = area.x;
    for (text, style) in parts {
        put(buffer, x, area.y, area.right().saturating_sub(x), &text, style, false);
        x = (x + cells(&text) as u16 + 2).min(area.right());
    }
}

/// A filter that is typed, what cannot be seen, or the keys that matter here.
pub fn foot(model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    let filter = &model.choice(model.pane).filter;
    if model.typing {
        let text = format!("filter {}: {filter}_", pane_name(model.pane));
        put(buffer, area.x, area.y, area.width, &text, look.loud(), false);
        return;
    }
    let keys = match (model.help, model.view) {
        (true, _) => "?, Esc back  q end",
        (_, View::Details) => "Esc back  ←→ time  Space stay  ? keys  q end",
        _ => "? keys  Tab pane  Enter open  ←→ time  Space stay  s sort  / filter  q end",
    };
    put(buffer, area.x, area.y, area.width, keys, look.faint(), false);
    let kept = if filter.is_empty() { String::new() } else { format!("  only `{filter}`") };
    let order =
        format!("{} by {}{kept}", pane_name(model.pane), rank(model.pane, model.choice(model.pane)).name());
    let taken = cells(keys) + 2 + cells(&order);
    if taken <= usize::from(area.width) {
        put(buffer, area.x, area.y, area.width, &order, look.plain(), true);
    } else if !kept.is_empty() {
        // That rows are missing matters more than keys.
        let room = (cells(&kept) as u16).min(area.width);
        put(buffer, area.right() - room, area.y, room, &kept, look.loud(), true);
    }
}

fn pane_name(pane: Pane) -> &'static str {
    match pane {
        Pane::Devices => "devices",
        Pane::Classes => "classes",
        Pane::Processes => "processes",
        Pane::Slow => "slow syncs",
    }
}

/// What the processes of a sample wait for, in words.
pub fn waits_for(anatomy: &weir_blocktrace::fsync::Anatomy) -> String {
    let mut parts: Vec<(f64, String)> = anatomy
        .culprits
        .iter()
        .map(|culprit| (culprit.share, format!("I/O of {}", culprit.process.comm)))
        .collect();
    let others = weir_blocktrace::fsync::Cause::Others;
    for row in &anatomy.phases {
        let behind: f64 =
            row.causes.iter().filter(|(cause, _)| *cause == others).map(|(_, share)| share).sum();
        parts.push((row.share - behind, row.phase.name().to_string()));
    }
    parts.retain(|(share, _)| *share >= 0.05);
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let words = parts.iter().take(3).map(|(share, what)| format!("{} {what}", percent(*share)));
    words.collect::<Vec<_>>().join(", ")
}
