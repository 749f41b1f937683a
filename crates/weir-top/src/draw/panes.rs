//! Devices, classes, processes, slow syncs: one below the other.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use weir_blocktrace::fsync::{Anatomy, SlowSync};
use weir_blocktrace::{DeviceFrame, Row};

use super::figures::{duration, duration_of, megabytes, percent, rate, spark};
use super::head::waits_for;
use super::table::{Cell, Column, ground, heads, more, put, row};
use super::theme::Look;
use crate::model::{Model, View};
use crate::pane::Pane;
use crate::sample::Process;

/// Points of a sparkline.
const POINTS: u16 = 60;
/// %util from which a device is worth a second look.
const BUSY: f64 = 90.0;

const DEVICES: [Column; 8] = [
    Column::text("DEVICES", 12, 0),
    Column::figure("IOPS", 8, 0),
    Column::figure("MB/s", 7, 0),
    Column::figure("busy", 6, 0),
    Column::figure("depth", 6, 4),
    Column::figure("p50", 8, 3),
    Column::figure("p99", 8, 0),
    Column::rest("latency before", 12, 2),
];

const CLASSES: [Column; 9] = [
    Column::text("CLASSES", 12, 0),
    Column::figure("IOPS", 8, 0),
    Column::figure("MB/s", 7, 0),
    Column::figure("mean", 8, 5),
    Column::figure("p50", 8, 3),
    Column::figure("p99", 8, 0),
    Column::figure("max", 8, 4),
    Column::figure("in queue", 9, 0),
    Column::figure("in device", 9, 2),
];

/// Where the source knows means alone.
const DEVICES_OF_MEANS: [Column; 7] = [
    Column::text("DEVICES", 12, 0),
    Column::figure("IOPS", 8, 0),
    Column::figure("MB/s", 7, 0),
    Column::figure("busy", 6, 0),
    Column::figure("depth", 6, 4),
    Column::figure("mean", 8, 0),
    Column::rest("latency before", 12, 2),
];

const CLASSES_OF_MEANS: [Column; 4] = [
    Column::text("CLASSES", 12, 0),
    Column::figure("IOPS", 8, 0),
    Column::figure("MB/s", 7, 0),
    Column::figure("mean", 8, 0),
];

const PROCESSES: [Column; 9] = [
    Column::rest("PROCESSES", 16, 0),
    Column::figure("pid", 8, 3),
    Column::text("unit", 22, 6),
    Column::figure("waiting", 8, 0),
    Column::figure("syncs/s", 8, 0),
    Column::figure("p99", 8, 0),
    Column::figure("writes MB/s", 11, 0),
    Column::figure("reads MB/s", 10, 4),
    Column::rest("its syncs wait for", 24, 5),
];

const SLOW: [Column; 6] = [
    Column::text("SLOW SYNCS", 10, 0),
    Column::figure("took", 8, 0),
    Column::text("call", 15, 4),
    Column::rest("process", 18, 0),
    Column::text("device", 9, 3),
    Column::rest("waited for", 24, 0),
];

/// All panes, each with as many rows as it needs and the screen has.
pub fn draw(model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    let needs = Pane::ALL.map(|pane| rows_needed(model, pane));
    let heights = heights(needs, area.height);
    let mut y = area.y;
    for (pane, height) in Pane::ALL.into_iter().zip(heights) {
        pane_in(model, look, pane, Rect { y, height, ..area }, buffer);
        y += height;
    }
}

/// The selected pane alone.
pub fn zoomed(model: &Model, look: Look, area: Rect, buffer: &mut Buffer) {
    pane_in(model, look, model.pane, area, buffer);
}

fn rows_needed(model: &Model, pane: Pane) -> u16 {
    let rows = model.names(pane).len().max(1);
    u16::try_from(rows + 1).unwrap_or(u16::MAX)
}

/// Rows of each pane, its head included: first what all need at least, then what is left in turn, processes first.
fn heights(needs: [u16; 4], height: u16) -> [u16; 4] {
    const LEAST: [u16; 4] = [2, 2, 3, 2];
    // On a very low screen some panes are not there.
    const SPARED_LAST: [usize; 4] = [1, 3, 0, 2];
    const TURNS: [usize; 7] = [2, 3, 0, 2, 1, 2, 3];
    let mut heights: [u16; 4] = std::array::from_fn(|at| LEAST[at].min(needs[at]));
    let mut over = heights.iter().sum::<u16>().saturating_sub(height);
    for at in SPARED_LAST {
        let cut = over.min(heights[at]);
        heights[at] -= cut;
        over -= cut;
    }
    let mut left = height.saturating_sub(heights.iter().sum());
    while left > 0 {
        let before = left;
        for at in TURNS {
            if left > 0 && heights[at] < needs[at] {
                heights[at] += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    heights
}

fn pane_in(model: &Model, look: Look, pane: Pane, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let is_in_focus = pane == model.pane;
    let head = Rect { height: 1, ..area };
    let columns = columns(model, pane);
    heads(columns, look.title(is_in_focus), head, buffer);
    // Behind the pane's own name, where no other head stands.
    let behind = area.x + columns[0].name.len() as u16;
    if !model.choice(pane).filter.is_empty() {
        put(buffer, behind, area.y, 1, "/", look.loud(), false);
    }
    let body = Rect { y: area.y + 1, height: area.height - 1, ..area };
    if body.height == 0 {
        return;
    }
    let names = model.names(pane);
    if names.is_empty() {
        put(buffer, body.x, body.y, body.width, &nothing(model, pane), look.faint(), false);
        return;
    }
    let selected = model.place(pane, &names);
    // The selected row is on the screen, wherever it is.
    let height = usize::from(body.height).max(1);
    let first = selected.saturating_sub(height - 1).min(names.len().saturating_sub(height));
    let cells = rows(model, look, pane, first, height);
    for (nth, cells) in cells.into_iter().enumerate() {
        let line = Rect { y: body.y + nth as u16, height: 1, ..body };
        row(columns, &cells, line, buffer);
        ground(look, first + nth == selected, is_in_focus, line, buffer);
    }
    let hidden = names.len().saturating_sub(first + height);
    if hidden > 0 {
        put(buffer, behind + 1, area.y, 3, &more(hidden), look.faint(), false);
    }
}

/// Whether more than means is known of what a pane shows. One device may have quantiles beside others that counters alone know.
fn has_quantiles(model: &Model, pane: Pane) -> bool {
    let devices = match pane {
        Pane::Classes => model.device().into_iter().collect(),
        _ => model.devices(),
    };
    let totals = devices.into_iter().flat_map(|device| &device.rows).filter_map(|row| row.total);
    let quantiles: Vec<bool> = totals.map(|total| total.p50_ns.is_some()).collect();
    quantiles.is_empty() || quantiles.contains(&true)
}

fn columns(model: &Model, pane: Pane) -> &'static [Column] {
    match pane {
        Pane::Devices if !has_quantiles(model, pane) => &DEVICES_OF_MEANS,
        Pane::Classes if !has_quantiles(model, pane) => &CLASSES_OF_MEANS,
        Pane::Devices => &DEVICES,
        Pane::Classes => &CLASSES,
        Pane::Processes => &PROCESSES,
        Pane::Slow => &SLOW,
    }
}

/// Why there is no row.
fn nothing(model: &Model, pane: Pane) -> String {
    let filter = &model.choice(pane).filter;
    if !filter.is_empty() {
        // Elsewhere Esc does something else first.
        let is_next = pane == model.pane && model.view == View::Overview;
        let way = if is_next { "; Esc removes the filter" } else { "" };
        return format!("nothing here is called `{filter}`{way}");
    }
    let shown = model.history.shown();
    match pane {
        Pane::Devices => "no device did any I/O".to_string(),
        Pane::Classes if model.device().is_some_and(DeviceFrame::is_unfollowed) => {
            "its single I/Os are not followed here; ? says why".to_string()
        }
        Pane::Classes => "nothing finished".to_string(),
        Pane::Processes => "no process read, wrote or synced".to_string(),
        Pane::Slow if shown.is_some_and(|sample| sample.syncs.is_none() && sample.is_recorded) => {
            "no sync was recorded".to_string()
        }
        Pane::Slow if shown.is_some_and(|sample| sample.syncs.is_none()) => {
            "syncs are not seen here; ? says why".to_string()
        }
        Pane::Slow => format!("none of {} or longer", duration(model.about.slow_ns as f64)),
    }
}

fn rows(model: &Model, look: Look, pane: Pane, first: usize, count: usize) -> Vec<Vec<Cell>> {
    match pane {
        Pane::Devices => {
            let has_quantiles = has_quantiles(model, pane);
            let devices = model.devices().into_iter().skip(first).take(count);
            devices.map(|frame| device(model, look, frame, has_quantiles)).collect()
        }
        Pane::Classes => {
            let cells = if has_quantiles(model, pane) { class } else { class_of_means };
            model.classes().into_iter().skip(first).take(count).map(cells).collect()
        }
        Pane::Processes => {
            let length_ns = model.history.shown().map_or(1, |sample| sample.frame.length_ns);
            let processes = model.processes().into_iter().skip(first).take(count);
            processes.map(|it| process(look, it, length_ns)).collect()
        }
        Pane::Slow => {
            let slow = model.slow().into_iter().skip(first).take(count);
            slow.map(|(clock, it)| slow_sync(model, clock, it)).collect()
        }
    }
}

fn device(model: &Model, look: Look, frame: &DeviceFrame, has_quantiles: bool) -> Vec<Cell> {
    let total = frame.total();
    let points = model.history.points(frame.number, POINTS.into());
    let latency: Vec<Option<f64>> =
        points.iter().map(|point| point.and_then(|point| point.latency_ns)).collect();
    let times = match has_quantiles {
        true => vec![total.and_then(|total| total.p50_ns), total.and_then(|total| total.p99_ns)],
        false => vec![total.map(|total| total.mean_ns as u64)],
    };
    let busy = frame.load.util_percent;
    let mut cells = vec![
        Cell::plain(&frame.name),
        Cell::plain(rate(frame.iops())),
        Cell::plain(megabytes(frame.bytes_per_second())),
        Cell::styled(percent(busy / 100.0), if busy >= BUSY { look.loud() } else { look.plain() }),
        Cell::plain(rate(frame.load.queue_mean)),
    ];
    cells.extend(times.into_iter().map(|ns| Cell::plain(duration_of(ns))));
    cells.push(Cell::styled(spark(&latency), look.bar()));
    cells
}

fn class_of_means(row: &Row) -> Vec<Cell> {
    let mean = row.total.map(|total| total.mean_ns as u64);
    vec![
        Cell::plain(row.class.words()),
        Cell::plain(rate(row.iops)),
        Cell::plain(megabytes(row.bytes_per_second)),
        Cell::plain(duration_of(mean)),
    ]
}

fn class(row: &Row) -> Vec<Cell> {
    let total = row.total;
    let mean =
        |spread: Option<weir_blocktrace::Spread>| duration_of(spread.map(|spread| spread.mean_ns as u64));
    vec![
        Cell::plain(row.class.words()),
        Cell::plain(rate(row.iops)),
        Cell::plain(megabytes(row.bytes_per_second)),
        Cell::plain(mean(total)),
        Cell::plain(duration_of(total.and_then(|total| total.p50_ns))),
        Cell::plain(duration_of(total.and_then(|total| total.p99_ns))),
        Cell::plain(duration_of(total.and_then(|total| total.max_ns))),
        Cell::plain(row.queue_share.map_or_else(|| "-".to_string(), percent)),
        Cell::plain(mean(row.device)),
    ]
}

fn process(look: Look, process: &Process, length_ns: u64) -> Vec<Cell> {
    let known = |rate: Option<f64>| rate.map_or_else(|| "?".to_string(), megabytes);
    let waiting = process.waiting(length_ns);
    let tail = process.syncs.as_ref().filter(|syncs| syncs.syncs > 0).map(|syncs| syncs.latency.p99_ns);
    // As many threads waited as processors would have worked.
    let style = if waiting >= 0.5 { look.alarm() } else { look.plain() };
    let share = if waiting < 0.005 { "-".to_string() } else { percent(waiting) };
    vec![
        Cell::plain(&process.name),
        Cell::plain(process.pid.map(|pid| pid.to_string()).unwrap_or_default()),
        Cell::plain(process.unit.as_deref().unwrap_or_default()),
        Cell::styled(share, style),
        Cell::plain(rate(process.syncs_per_second(length_ns))),
        Cell::plain(duration_of(tail)),
        Cell::plain(known(process.written)),
        Cell::plain(known(process.read)),
        Cell::plain(process.syncs.as_ref().map(waits_for).unwrap_or_default()),
    ]
}

fn slow_sync(model: &Model, clock: &str, slow: &SlowSync) -> Vec<Cell> {
    vec![
        Cell::plain(clock),
        Cell::plain(duration(slow.took_ns as f64)),
        Cell::plain(slow.call.name()),
        Cell::plain(slow.process.name()),
        Cell::plain(model.device_name(slow)),
        Cell::plain(waits_for(&anatomy_of(slow))),
    ]
}

/// A slow sync in the form of many.
pub fn anatomy_of(slow: &SlowSync) -> Anatomy {
    Anatomy {
        process: Some(slow.process.clone()),
        calls: vec![(slow.call, 1)],
        syncs: 1,
        short: 0,
        skimmed: 0,
        latency: Default::default(),
        wall_ns: slow.took_ns,
        explained: 1.0,
        phases: slow.phases.clone(),
        causes: Vec::new(),
        culprits: slow.culprits.clone(),
        sites: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::heights;

    #[test]
    fn every_pane_has_its_least_and_nothing_is_wasted() {
        for (needs, height, expected) in [
            ([3, 5, 9, 30], 21, [3, 4, 9, 5]),
            ([2, 2, 2, 2], 21, [2, 2, 2, 2]),
            ([9, 9, 90, 90], 9, [2, 2, 3, 2]),
            ([9, 9, 90, 90], 7, [2, 0, 3, 2]),
            ([9, 9, 90, 90], 4, [1, 0, 3, 0]),
            ([3, 5, 9, 4], 57, [3, 5, 9, 4]),
        ] {
            let found = heights(needs, height);
            assert_eq!(found, expected, "{needs:?} in {height}");
        }
    }
}
