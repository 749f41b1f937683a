//! Rates, latencies and depth over time, and a heat map.

use super::directions;
use crate::page::{Table, figure};
use crate::plot::{Axis, Figure, HeatCell, Join, Panel, Scale, Series, Unit, heat};
use crate::trace::phrases;
use maud::{Markup, html};
use weir_blocktrace::analysis::{Depth, Device, Direction, Slice};
use weir_blocktrace::{Analysis, Sketch};

/// A slice of the timeline within what was recorded, s from the recording's start.
struct Column<'a> {
    from: f64,
    to: f64,
    /// Of a whole slice, s.
    width: f64,
    slice: &'a Slice,
}

impl Column<'_> {
    /// What rates are over: a sliver at either end would make a peak of a single I/O.
    fn seconds(&self) -> f64 {
        (self.to - self.from).max(self.width / 2.0)
    }

    fn middle(&self) -> f64 {
        f64::midpoint(self.from, self.to)
    }
}

fn columns<'a>(analysis: &Analysis, device: &'a Device) -> Vec<Column<'a>> {
    let grid = &device.timeline;
    let since_start = |ns: u64| ns.saturating_sub(analysis.recorded().0) as f64 / 1e9;
    let (begun_ns, ended_ns) = device.recorded();
    let column = |(at, slice): (usize, &'a Slice)| {
        let start_ns = grid.start_ns + at as u64 * grid.width_ns;
        let from = since_start(start_ns.max(begun_ns));
        let to = since_start(grid.end_ns(at).min(ended_ns)).max(from);
        Column { from, to, width: grid.width_ns as f64 / 1e9, slice }
    };
    grid.slices.iter().enumerate().map(column).filter(|c| c.to > c.from).collect()
}

/// The figures, where there is more than one moment to show.
pub fn html(id: &str, analysis: &Analysis, device: &Device) -> Markup {
    let columns = columns(analysis, device);
    if columns.len() < 2 {
        return Markup::default();
    }
    let cells = cells(&columns);
    let x = time_axis(analysis);
    html! {
        (figure(&over_time(id, x.clone(), &columns, device), &Table::default()))
        @if !cells.is_empty() { (figure(&heat_map(id, x, cells), &Table::default())) }
    }
}

/// All of the time recorded, of which much may be without events.
fn time_axis(analysis: &Analysis) -> Axis {
    let all = analysis.recorded_ns() as f64 / 1e9;
    Axis { include: vec![0.0, all], ..Axis::x("time", Unit::Seconds, Scale::Linear) }
}

fn over_time(id: &str, x: Axis, columns: &[Column<'_>], device: &Device) -> Figure {
    let shown: Vec<Direction> = directions(device).collect();
    let each = |value: &dyn Fn(&Column<'_>, usize) -> f64| -> Vec<Series> {
        let moved = shown.iter().filter(|d| **d != Direction::Other);
        moved.map(|d| stepped(d.name(), *d as usize, columns, |c| value(c, *d as usize))).collect()
    };
    let iops = shown.iter().map(|d| {
        stepped(name_of(*d), *d as usize, columns, |c| c.slice.pieces[*d as usize] as f64 / c.seconds())
    });
    let mut panels =
        vec![Panel::of(Axis::y("I/Os finished", Unit::Iops, Scale::Linear), iops.collect(), 0.5)];
    let bytes = each(&|c, at| c.slice.bytes[at] as f64 / c.seconds());
    panels.push(Panel::of(Axis::y("data", Unit::BytesPerSecond, Scale::Linear), bytes, 0.45));
    let timed = |d: &&Direction| columns.iter().any(|c| !c.slice.q2c[**d as usize].is_empty());
    for direction in shown.iter().filter(timed) {
        let title = format!("{}: queue to completion, median to p99", name_of(*direction));
        let series = vec![median_and_p99(*direction, columns)];
        panels.push(Panel::of(Axis::y(title, Unit::Latency, Scale::Log), series, 0.5));
    }
    let depths = mean_depths(columns, device);
    if !depths.is_empty() {
        panels.push(Panel::of(Axis::y("mean depth", Unit::Count("I/Os"), Scale::Linear), depths, 0.5));
    }
    Figure {
        id: format!("{id}-time"),
        title: "Over time".to_string(),
        finding: finding(columns, device),
        x,
        panels,
        regions: Vec::new(),
    }
}

/// What a direction is called beside a plot: what moves no data are flushes, mostly.
fn name_of(direction: Direction) -> &'static str {
    match direction {
        Direction::Other => "flush",
        other => other.name(),
    }
}

/// The depths of which any arrival was seen.
fn mean_depths(columns: &[Column<'_>], device: &Device) -> Vec<Series> {
    type Area = fn(&Slice) -> u64;
    let both: [(&str, usize, &Depth, Area); 2] = [
        ("queued", 1, &device.depth_queue, |slice| slice.depth_queue_area_ns),
        ("at the device", 0, &device.depth_issue, |slice| slice.depth_issue_area_ns),
    ];
    let seen = both.into_iter().filter(|(.., depth, _)| depth.arrivals > 0);
    let series = |(name, look, _, area): (&str, usize, &Depth, Area)| {
        stepped(name, look, columns, |c| area(c.slice) as f64 / 1e9 / c.seconds())
    };
    seen.map(series).collect()
}

fn finding(columns: &[Column<'_>], device: &Device) -> String {
    let count = |c: &Column<'_>| c.slice.pieces.iter().sum::<u64>();
    let busiest = columns
        .iter()
        .max_by(|a, b| (count(a) as f64 / a.seconds()).total_cmp(&(count(b) as f64 / b.seconds())));
    let is_idle = |c: &&Column<'_>| c.slice.depth_queue_area_ns == 0 && c.slice.depth_issue_area_ns == 0;
    let idle = phrases::at_work(device).map_or(0, |_| columns.iter().filter(is_idle).count());
    let width = Unit::Latency.value(columns.first().map_or(0.0, |column| column.width * 1e9));
    let busiest = busiest.map_or(String::new(), |c| {
        format!(
            " The busiest is at {}, with {} I/Os a second.",
            Unit::Seconds.value(c.from),
            Unit::Iops.value(count(c) as f64 / c.seconds())
        )
    });
    let idle =
        if idle > 0 { format!(" {idle} of {} had nothing in flight.", columns.len()) } else { String::new() };
    format!("In slices of {width}; I/Os count where they end.{busiest}{idle}")
}

fn stepped(name: &str, look: usize, columns: &[Column<'_>], value: impl Fn(&Column<'_>) -> f64) -> Series {
    let mut points: Vec<(f64, f64)> = columns.iter().map(|c| (c.from, value(c))).collect();
    if let (Some(column), Some(last)) = (columns.last(), points.last().copied()) {
        points.push((column.to, last.1));
    }
    Series { join: Join::Step, ..Series::line(name, look, points) }
}

fn median_and_p99(direction: Direction, columns: &[Column<'_>]) -> Series {
    let at = direction as usize;
    let of = |c: &Column<'_>| {
        let sketch = &c.slice.q2c[at];
        if sketch.is_empty() {
            return (f64::NAN, f64::NAN);
        }
        (sketch.quantile(0.5).max(1) as f64, sketch.quantile(0.99).max(1) as f64)
    };
    let values = columns.iter().map(|c| (c.middle(), of(c)));
    let (points, band) = values.map(|(x, (p50, p99))| ((x, p50), (x, p50, p99))).unzip();
    Series { band, ..Series::line(name_of(direction), at, points) }
}

fn heat_map(id: &str, x: Axis, cells: Vec<HeatCell>) -> Figure {
    let axis = Axis::y("queue to completion", Unit::Latency, Scale::Log);
    Figure {
        id: format!("{id}-heat"),
        title: "Every I/O".to_string(),
        finding: "The darker a cell, the more I/Os that ended in that time took that long.".to_string(),
        x,
        panels: vec![Panel { heat: cells, ..Panel::of(axis, Vec::new(), 1.0) }],
        regions: Vec::new(),
    }
}

fn cells(columns: &[Column<'_>]) -> Vec<HeatCell> {
    let cells = |column: &Column<'_>| {
        heat::column((column.from, column.to), column.slice.q2c.iter().flat_map(Sketch::buckets))
    };
    columns.iter().flat_map(cells).collect()
}
