//! The page of an analysed recording.

mod latency;
mod pattern;
mod senders;
mod stages;
mod timelines;

use crate::page::{
    Page, Table, Tile, data_table, facts_table, headline, lede, note, page, paragraph, section, stacks, tiles,
};
use crate::plot::StackFigure;
use crate::trace::figures::Kind;
use crate::trace::phrases;
use maud::{Markup, html};
use weir_blocktrace::analysis::{Depth, Device, Direction, Parts};
use weir_blocktrace::{Analysis, Cell, Class, Moment, Stage};
use weir_core::stats::Distribution;
use weir_core::stats::quantile::needed;
use weir_core::units::{Nanos, grouped, megabytes_per_second, per_second, significant};

/// Devices with a part of the page of their own; a recording of a whole storage server would fill a book.
const DEVICES_MAX: usize = 8;

/// Draws an analysis as one HTML document. `name` says where it came from, `notes` what is missing in it.
pub fn trace(analysis: &Analysis, name: &str, notes: &[String]) -> String {
    let mut devices: Vec<&Device> = analysis.devices.iter().filter(|d| d.pieces > 0).collect();
    devices.sort_by_key(|device| std::cmp::Reverse(device.pieces));
    let several = devices.len() > 1;
    let further = devices.len().saturating_sub(DEVICES_MAX);
    let body = html! {
        (opening(analysis, &devices))
        @for text in notes { (note("Incomplete", text, true)) }
        (doubts(analysis))
        @if several { (section("devices", "Devices", side_by_side(analysis, &devices))) }
        @for device in devices.iter().take(DEVICES_MAX) { (part_of(analysis, device, several)) }
        @if further > 0 { p { (further) " less busy devices are in the table above only." } }
        @if !analysis.threads.is_empty() { (section("senders", "Who sent it", senders::html(analysis))) }
        (section("account", "What became of every event", accounts(analysis)))
        (section("words", "What the words mean", words()))
    };
    page(&Page {
        title: format!("weir trace: {name}"),
        kind: "trace".to_string(),
        date: date(analysis),
        foot: format!("weir trace read · {name}"),
        body,
    })
}

fn date(analysis: &Analysis) -> String {
    let recorded = phrases::recorded(analysis.extent, analysis.recorded_ns());
    if analysis.extent.is_known() { format!("{recorded} recorded") } else { recorded }
}

/// Names of the parts of Q2C with their looks: the same everywhere on the page.
fn parts_named() -> Vec<(String, usize)> {
    let look = |stage| match stage {
        Some(Stage::D2C) => 0,
        Some(Stage::I2D) => 1,
        Some(Stage::Q2G) => 2,
        Some(Stage::G2D | Stage::G2I) => 3,
        Some(Stage::Q2M | Stage::M2D) => 4,
        _ => 5,
    };
    let name = |stage: Option<Stage>| stage.map_or("elsewhere", Stage::name).to_string();
    Parts::default().each().into_iter().map(|(stage, _)| (name(stage), look(stage))).collect()
}

fn values(parts: &Parts) -> Vec<f64> {
    parts.each().iter().map(|(_, ns)| *ns as f64).collect()
}

/// What people call a part.
fn in_words(stage: Option<Stage>) -> &'static str {
    match stage {
        Some(Stage::Q2G) => "before a request was there (Q2G)",
        Some(Stage::G2I) => "on the way to the scheduler (G2I)",
        Some(Stage::G2D) => "between request and driver (G2D)",
        Some(Stage::I2D) => "in the scheduler (I2D)",
        Some(Stage::Q2M) => "before merging (Q2M)",
        Some(Stage::M2D) => "merged, before the driver (M2D)",
        Some(Stage::D2C) => "in driver and device (D2C)",
        _ => "between events that were not recorded",
    }
}

/// The largest part and its share, 0 to 1.
fn largest(parts: &Parts) -> Option<(&'static str, f64)> {
    let total_ns = parts.total_ns();
    let (stage, ns) = parts.each().into_iter().max_by_key(|(_, ns)| *ns)?;
    (total_ns > 0).then(|| (in_words(stage), ns as f64 / total_ns as f64))
}

fn percent(share: f64) -> String {
    format!("{} %", significant(share * 100.0))
}

/// Where the time went on the device with the most I/O, in one line.
fn opening(analysis: &Analysis, devices: &[&Device]) -> Markup {
    let Some(device) = devices.first() else {
        return html! {
            (headline("No I/O came to its end"))
            (paragraph(format!("{} events were read.", grouped(analysis.events))))
        };
    };
    let whole = Kind::whole(analysis, device);
    let first = match largest(&whole.parts) {
        _ if on_others(device) => through(analysis, device, devices),
        Some((place, share)) => format!("{} of the time was spent {place}", percent(share)),
        None => "Where the I/Os spent their time is not known".to_string(),
    };
    let on = if devices.len() > 1 { format!(" on {}", device.label()) } else { String::new() };
    let (ios, how_long) = (grouped(whole.cell.ios), how_long(&whole.cell));
    let recorded = phrases::recorded(device.extent, device.recorded_ns());
    let sentence = format!("{ios} I/Os{on} in {recorded}.{how_long}");
    html! { (headline(first)) (lede(sentence)) }
}

/// How long I/Os took, from the first moment that the recording has.
fn how_long(cell: &Cell) -> String {
    let wholes = [
        (Stage::Q2C, "From queue to completion"),
        (Stage::G2C, "From request to completion"),
        (Stage::D2C, "From driver to completion"),
    ];
    let mut wholes = wholes.into_iter().map(|(stage, from)| (cell.stage(stage), from));
    let Some((whole, from)) = wholes.find(|(whole, _)| !whole.is_empty()) else {
        return String::new();
    };
    let within = |q: f64, share: &str| {
        let known = whole.count() >= needed(q);
        if known { format!("{share} took {} or less, ", Nanos(whole.quantile(q))) } else { String::new() }
    };
    let (half, most) = (within(0.5, "half of them"), within(0.99, "99 %"));
    format!(" {from}, {half}{most}the longest took {}.", Nanos(whole.max_ns()))
}

/// Bars of all that took any time; without any there is no figure.
fn time_bars(mut figure: StackFigure) -> Markup {
    figure.stacks.retain(|stack| stack.values.iter().any(|ns| *ns > 0.0));
    if figure.stacks.is_empty() { Markup::default() } else { stacks(&figure, &Table::default()) }
}

/// What a reader must know before believing the figures.
fn doubts(analysis: &Analysis) -> Markup {
    let further = analysis.events_of_further_devices;
    html! {
        (missing(analysis))
        @if further > 0 {
            (note("Devices are missing", &format!("{} events of further devices are in no figure.", grouped(further)), true))
        }
    }
}

/// What is known of events that are missing.
fn missing(analysis: &Analysis) -> Markup {
    let dropped = analysis.events_dropped();
    if dropped > 0 {
        let text = format!(
            "The recorder lost {} events. Latencies are of the I/Os that are complete; depths and rates are too low.",
            grouped(dropped)
        );
        return note("Events are missing", &text, true);
    }
    let unmatched: u64 = analysis.unmatched().values().sum();
    if unmatched * 100 <= analysis.events {
        return Markup::default();
    }
    let share = percent(unmatched as f64 / analysis.events.max(1) as f64);
    let lost = if analysis.counts_losses {
        "The recorder lost none."
    } else {
        "Recorders that lose events often do not say so."
    };
    let text = format!(
        "{} of {} events ({share}) belong to no I/O that is complete. {lost}",
        grouped(unmatched),
        grouped(analysis.events)
    );
    note("Much is unmatched", &text, true)
}

/// Whether a device has no requests of its own, as device mapper and md.
fn on_others(device: &Device) -> bool {
    device.requests == 0 && device.bios > 0
}

/// Means on a device that stands on others, and on those.
fn through(analysis: &Analysis, device: &Device, devices: &[&Device]) -> String {
    let took = |device: &Device| {
        let cell = analysis.table.of_class(device.device, Class::All);
        format!("{} on {}", mean(cell.stage(Stage::Q2C)), device.label())
    };
    let below: Vec<String> = devices.iter().filter(|d| d.bios == 0).take(3).map(|d| took(d)).collect();
    let below = if below.is_empty() { String::new() } else { format!(", below it {}", below.join(", ")) };
    format!("I/Os took {}{below}", took(device))
}

fn side_by_side(analysis: &Analysis, devices: &[&Device]) -> Markup {
    let stack = |device: &&Device| stages::stack_of(analysis, device, Class::All, &device.label());
    let figure = StackFigure {
        id: "devices-share".to_string(),
        title: "Where the time went, by device".to_string(),
        finding: "Each bar is all the time of all I/Os of a device between queue and completion.".to_string(),
        parts: parts_named(),
        stacks: devices.iter().take(DEVICES_MAX).map(stack).collect(),
    };
    let head = ["", "I/Os", "I/Os a second", "data", "Q2C mean", "p50", "p99", "D2C p99", "active"];
    let row = |device: &&Device| {
        let cell = analysis.table.of_class(device.device, Class::All);
        let (q2c, d2c) = (cell.stage(Stage::Q2C), cell.stage(Stage::D2C));
        let seconds = device.recorded_ns().max(1) as f64 / 1e9;
        vec![
            device.label(),
            grouped(device.pieces),
            per_second(device.pieces as f64 / seconds),
            megabytes_per_second(cell.bytes as f64 / seconds),
            mean(q2c),
            quantile(q2c, 0.5),
            quantile(q2c, 0.99),
            quantile(d2c, 0.99),
            phrases::at_work(device).map_or("–".to_string(), |(depth, _)| percent(active_share(depth))),
        ]
    };
    let table = Table {
        head: head.map(str::to_string).to_vec(),
        rows: devices.iter().map(row).collect(),
        ..Table::default()
    };
    html! { (time_bars(figure)) (data_table(&table)) }
}

/// A mean, where there is one.
fn mean(d: &Distribution) -> String {
    if d.is_empty() { "–".to_string() } else { Nanos(d.mean_ns().round() as u64).to_string() }
}

/// The longest, where there is one.
fn longest(d: &Distribution) -> String {
    if d.is_empty() { "–".to_string() } else { Nanos(d.max_ns()).to_string() }
}

/// A quantile, where three or more values are expected beyond it.
fn quantile(d: &Distribution, q: f64) -> String {
    if d.count() < needed(q) { "–".to_string() } else { Nanos(d.quantile(q)).to_string() }
}

/// Share of the time with anything in flight.
fn active_share(depth: &Depth) -> f64 {
    depth.active_ns() as f64 / (depth.active_ns() + depth.idle_ns()).max(1) as f64
}

fn part_of(analysis: &Analysis, device: &Device, named: bool) -> Markup {
    let id = format!("d{}-{}", device.device.major, device.device.minor);
    let heading = if named { device.label() } else { format!("Device {}", device.label()) };
    let body = html! {
        (tiles(&head(analysis, device)))
        (stages::html(&id, analysis, device))
        (latency::distributions(&id, analysis, device))
        (timelines::html(&id, analysis, device))
        (pattern::html(&id, analysis, device))
    };
    section(&id, &heading, body)
}

fn head(analysis: &Analysis, device: &Device) -> Vec<Tile> {
    let tile = |name: &str, value: String, detail: String| Tile { name: name.to_string(), value, detail };
    let cell = analysis.table.of_class(device.device, Class::All);
    let (q2c, d2c) = (cell.stage(Stage::Q2C), cell.stage(Stage::D2C));
    let median = |d: &Distribution| format!("median {}, longest {}", quantile(d, 0.5), Nanos(d.max_ns()));
    let seconds = device.recorded_ns().max(1) as f64 / 1e9;
    let (what, n) = match device.traffic.iter().map(|t| t.requests).sum() {
        0 => ("I/Os a second", device.pieces),
        requests => ("requests a second", requests),
    };
    let moved = megabytes_per_second(cell.bytes as f64 / seconds);
    let mut out = vec![tile(what, per_second(n as f64 / seconds), format!("{moved}, n = {}", grouped(n)))];
    for (name, d) in [("Q2C, p99", q2c), ("D2C, p99", d2c)] {
        if !d.is_empty() {
            out.push(tile(name, quantile(d, 0.99), median(d)));
        }
    }
    if let Some((depth, from)) = phrases::at_work(device) {
        let place = if from == Moment::Issue { "in flight at the device" } else { "in flight" };
        let most = format!("most {}, busy {}", depth.max, percent(active_share(depth)));
        out.push(tile(place, significant(depth.mean()), most));
    }
    if cell.errors > 0 {
        out.push(tile("errors", grouped(cell.errors), errors(device)));
    }
    out
}

fn errors(device: &Device) -> String {
    let each = device.errors.iter().map(|(errno, n)| format!("errno {errno}: {}", grouped(*n)));
    each.collect::<Vec<_>>().join(", ")
}

/// Rows of directions that moved anything.
fn directions(device: &Device) -> impl Iterator<Item = Direction> + '_ {
    let seen = |direction: &Direction| {
        let at = *direction as usize;
        device.timeline.slices.iter().any(|slice| slice.pieces[at] > 0)
    };
    Direction::ALL.into_iter().filter(seen)
}

fn accounts(analysis: &Analysis) -> Markup {
    let mut rows = vec![("events read".to_string(), grouped(analysis.events), String::new())];
    let dropped = analysis.events_dropped();
    if dropped > 0 {
        rows.push(("lost by the recorder".to_string(), grouped(dropped), String::new()));
    }
    let of = |device: &Device| (device.label(), phrases::account(device), String::new());
    rows.extend(analysis.devices.iter().map(of));
    facts_table(&rows)
}

/// The stages for those who meet them for the first time.
fn words() -> Markup {
    let rows = [
        (
            "piece",
            "A bio, or a part of it after splits: the unit of stages. A merged bio is an I/O of its own.",
        ),
        ("request", "What the driver gets: one I/O, or several merged."),
        (
            "Q2G",
            "From the start of the I/O until a request is there: splitting, remapping, waiting for a free request.",
        ),
        ("G2I", "From the request to its place in the scheduler."),
        ("G2D", "From the request to the driver where no scheduler holds it (none)."),
        ("I2D", "Waiting in the scheduler."),
        (
            "Q2M, M2D",
            "The same for an I/O that was merged into another's request: until merged, and from then to the driver.",
        ),
        ("D2C", "Driver, controller, device."),
        ("Q2C", "All of it: what iostat calls await."),
        ("G2C", "From the request to the end: all that is known where no Q was seen."),
        ("elsewhere", "Between events that were not recorded, as on devices that stand on others."),
    ];
    facts_table(&rows.map(|(word, meaning)| (word.to_string(), meaning.to_string(), String::new())))
}

#[cfg(test)]
pub mod tests;
