//! What the I/O looks like: lengths, depth, order of places, merging and plugging.

use super::{active_share, percent, quantile};
use crate::page::{Table, bars, capitalised, facts_table, figure};
use crate::plot::{Axis, Bar, BarFigure, Figure, Join, Panel, Scale, Series, Unit};
use crate::trace::phrases;
use maud::{Markup, html};
use weir_blocktrace::analysis::{Depth, Device, Seeks};
use weir_blocktrace::{Analysis, Cell, Class, SizeClass, Stage};
use weir_core::stats::quantile::needed;
use weir_core::units::{Bytes, grouped, significant};

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// Everything about the pattern of a device's I/O.
pub fn html(id: &str, analysis: &Analysis, device: &Device) -> Markup {
    html! {
        (sizes(id, analysis, device))
        @for plot in depths(id, device).iter().chain(&distances(id, device)) { (figure(plot, &Table::default())) }
        h3 { "Merging, faults, plugging" }
        (facts_table(&facts(device)))
    }
}

fn sizes(id: &str, analysis: &Analysis, device: &Device) -> Markup {
    let mut sizes: Vec<SizeClass> = analysis.table.cells().map(|(key, _)| key.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let of = |size: SizeClass, class: Class| {
        analysis.table.sum(|key| key.device == device.device && key.size == size && key.classes.has(class))
    };
    let mut groups = Vec::new();
    let mut table = Table {
        head: ["", "n", "Q2C mean", "p50", "p99", "D2C mean", "p50", "p99"].map(str::to_string).to_vec(),
        ..Table::default()
    };
    for (class, look) in [(Class::Read, 0), (Class::Write, 1), (Class::Discard, 4)] {
        let cells: Vec<(SizeClass, Cell)> =
            sizes.iter().map(|size| (*size, of(*size, class))).filter(|(_, cell)| cell.ios > 0).collect();
        let each = cells.iter().map(|(size, cell)| bar(*size, cell, look));
        groups.push((class.name().to_string(), each.collect::<Vec<_>>()));
        table.rows.extend(cells.iter().map(|(size, cell)| row(class, *size, cell)));
    }
    groups.retain(|(_, bars)| !bars.is_empty());
    if groups.is_empty() {
        return Markup::default();
    }
    let figure = BarFigure {
        id: format!("{id}-sizes"),
        title: "Lengths".to_string(),
        finding: "I/Os by length, after splits and before merges; beside them, how long they took."
            .to_string(),
        axis: Axis { include: vec![0.0], ..Axis::x("number", Unit::Count("I/Os"), Scale::Linear) },
        groups,
    };
    bars(&figure, &table)
}

/// `4 KiB`, or the range that a class of lengths stands for.
fn label(size: SizeClass) -> String {
    match size.bytes_max() {
        most @ 0..=512 => Bytes(most).to_string(),
        most => format!("over {} to {}", Bytes(most / 2), Bytes(most)),
    }
}

fn bar(size: SizeClass, cell: &Cell, look: usize) -> Bar {
    let q2c = cell.stage(Stage::Q2C);
    let known = [(0.5, "p50"), (0.99, "p99")].into_iter().filter(|(q, _)| q2c.count() >= needed(*q));
    let took: Vec<String> = known.map(|(q, name)| format!("{name} {}", quantile(q2c, q))).collect();
    Bar {
        label: label(size),
        value: cell.ios as f64,
        interval: None,
        note: if took.is_empty() { String::new() } else { format!("Q2C {}", took.join(", ")) },
        look,
    }
}

fn row(class: Class, size: SizeClass, cell: &Cell) -> Vec<String> {
    let mut row = vec![format!("{} {}", class.name(), label(size)), grouped(cell.ios)];
    for stage in [Stage::Q2C, Stage::D2C] {
        let d = cell.stage(stage);
        row.extend([super::mean(d), quantile(d, 0.5), quantile(d, 0.99)]);
    }
    row
}

/// How much of the time at least so many were in flight, where that was seen.
fn depths(id: &str, device: &Device) -> Option<Figure> {
    let (at_work, _) = phrases::at_work(device)?;
    let curve = |name: &str, look, depth: &Depth| {
        let all: u64 = depth.time_ns.iter().sum();
        let mut left = all;
        let mut points = Vec::new();
        for (at, ns) in depth.time_ns.iter().enumerate() {
            if at > 0 {
                points.push((at as f64, left as f64 * 100.0 / all.max(1) as f64));
            }
            left -= ns;
        }
        Series { join: Join::Step, ..Series::line(name, look, points) }
    };
    let both = [("queued", 1, &device.depth_queue), ("at the device", 0, &device.depth_issue)];
    let seen: Vec<(&str, usize, &Depth)> =
        both.into_iter().filter(|(.., depth)| depth.arrivals > 0).collect();
    let told = seen.iter().map(|(name, _, depth)| {
        let (mean, most) = (significant(depth.mean()), grouped(depth.max));
        format!("{}: {mean} on average, {most} at most. ", capitalised(name))
    });
    let busy = percent(active_share(at_work));
    Some(Figure {
        id: format!("{id}-depth"),
        title: "How many were in flight".to_string(),
        finding: format!("{}The device had something to do in {busy} of the time.", told.collect::<String>()),
        x: Axis {
            include: vec![1.0],
            ..Axis::x("at least so many in flight", Unit::Count("I/Os"), Scale::Log)
        },
        panels: vec![Panel::of(
            Axis::y("share of the time", Unit::Percent, Scale::Linear),
            seen.into_iter().map(|(name, look, depth)| curve(name, look, depth)).collect(),
            0.6,
        )],
        regions: Vec::new(),
    })
}

/// Shares of I/Os by their distance from the end of the one before, where more than one distance is known.
fn distances(id: &str, device: &Device) -> Option<Figure> {
    let both = [("as queued", 1, &device.seeks_queue), ("as issued", 0, &device.seeks_issue)];
    let seen: Vec<(&str, usize, &Seeks)> = both.into_iter().filter(|(.., seeks)| seeks.count > 1).collect();
    let curve = |name: &str, look, seeks: &Seeks| {
        let share = |n: u64| n as f64 * 100.0 / seeks.count as f64;
        let mut passed = seeks.sequential;
        let mut points = vec![(SECTOR as f64 / 2.0, share(passed))];
        for (_, high, n) in seeks.sectors.buckets() {
            passed += n;
            points.push((high as f64 * SECTOR as f64, share(passed)));
        }
        Series { join: Join::Step, ..Series::line(name, look, points) }
    };
    let told = seen.iter().map(|(name, _, seeks)| {
        let sequential = percent(seeks.sequential as f64 / seeks.count as f64);
        let median = Bytes(seeks.median_sectors().saturating_mul(SECTOR));
        format!(
            "{}, {sequential} began where the one before ended, and half were at most {median} away.",
            capitalised(name)
        )
    });
    (!seen.is_empty()).then(|| Figure {
        id: format!("{id}-seeks"),
        title: "Order of places".to_string(),
        finding: told.collect::<Vec<_>>().join(" "),
        x: Axis::x("distance at most", Unit::Distance, Scale::Log),
        panels: vec![Panel::of(
            Axis::y("share of I/Os", Unit::Percent, Scale::Linear),
            seen.iter().map(|(name, look, seeks)| curve(name, *look, seeks)).collect(),
            0.6,
        )],
        regions: Vec::new(),
    })
}

fn facts(device: &Device) -> Vec<(String, String, String)> {
    let rows = [
        ("merges", phrases::merges(device)),
        ("faults", phrases::faults(device)),
        ("plugs", phrases::plugs(device)),
        ("activity", phrases::activity(device)),
    ];
    rows.map(|(name, text)| (name.to_string(), text, String::new())).to_vec()
}
