//! The page of a guarded time: what syncs kept and what bulk writers got, before, during and after each flood; the
//! limit's path, and every decision with its reason.

mod course;

use crate::conditions::under_which_conditions;
use crate::guard::{self as words, DeviceStory, Phase, Story, Sums};
use crate::page::{
    Page, Table, Tile, data_table, date, facts_table, headline, lede, note, page, section, tiles,
};
use maud::{Markup, html};
use weir_control::{History, Noted};
use weir_core::result::Record;
use weir_core::units::{Nanos, megabytes_per_second};
use weir_verdict::view::percent;

/// Decisions that the table of a page shows; all of them are in the record.
const ROWS_MOST: usize = 300;
/// Phases that it shows.
const PHASES_MOST: usize = 100;

/// Draws a guard's history as one HTML document.
pub fn guard(record: &Record, history: &History) -> String {
    let story = Story::of(history);
    let own: Vec<&Noted> = story.own_notes().collect();
    let body = html! {
        (opening(record, &story))
        @for (i, device) in story.devices.iter().enumerate() {
            (section(&format!("device-{i}"), &device.device.name, about(i, device)))
        }
        @if !own.is_empty() {
            (section("notes", "What happened to the guard", data_table(&decisions(&own))))
        }
        (section("task", "What the guard was to do", task(&story)))
        (under_which_conditions(record))
    };
    page(&Page {
        title: format!("weir guard: {}", story.headline()),
        kind: "guard".to_string(),
        date: date(&record.started_at),
        foot: format!("weir {} · record {}", record.weir_version, record.id),
        body,
    })
}

fn opening(record: &Record, story: &Story<'_>) -> Markup {
    let several = story.devices.len() > 1;
    let sentences = story.devices.iter().map(|device| {
        let said = device.sentences().join(" ");
        if several { format!("{}: {said}", device.device.name) } else { said }
    });
    let shadow = "The guard looked and decided, and touched nothing: what the plots show of latency and throughput \
                  happened without it. Its limits are those it would have set.";
    html! {
        (headline(story.headline()))
        @for said in sentences { (lede(said)) }
        (tiles(&head_tiles(story)))
        @if story.history.shadow { (note("Shadow", shadow, false)) }
        @if let Some(reason) = &record.ended_early { (note("The guard ended early", reason, true)) }
    }
}

/// What the guard was asked for.
fn task(story: &Story<'_>) -> Markup {
    let row = |name: &str, value: String, more: &str| (name.to_string(), value, more.to_string());
    let mut rows = vec![
        row("to be held", words::target(&story.history.target), ""),
        row("protected", story.history.protect.clone(), ""),
        row("watched", Nanos(story.length_ns()).to_string(), ""),
    ];
    for device in story.devices.iter().map(|device| device.device) {
        let actuator = format!("{}, found at {}", device.actuator, words::size(device.saved_bytes));
        let floor = format!("never below {}", words::size(device.floor_bytes));
        rows.push(row(&format!("turned for {}", device.name), actuator, &floor));
        rows.push(row("latencies from", words::sensor(device.sensor).to_string(), ""));
    }
    facts_table(&rows)
}

/// What is taken home: of the device with the longest floods.
fn head_tiles(story: &Story<'_>) -> Vec<Tile> {
    let Some((device, flooded)) = story
        .devices
        .iter()
        .map(|device| (device, device.flooded()))
        .max_by_key(|(_, flooded)| flooded.seconds)
        .filter(|(_, flooded)| flooded.seconds > 0)
    else {
        return Vec::new();
    };
    let tile = |name: &str, value: String, detail: String| Tile { name: name.to_string(), value, detail };
    let mut out = Vec::new();
    if let Some(kept) = flooded.kept {
        let goal = format!("of the undisturbed rate; the goal is {}", percent(story.history.target.keep));
        out.push(tile("syncs kept", words::share_kept(kept), goal));
    }
    let over = match flooded.judged {
        0 => "–".to_string(),
        _ => format!("{} s", flooded.over),
    };
    let of = format!("of {} s of flood with syncs and a known target", flooded.judged);
    out.push(tile("over the target", over, of));
    let rate = flooded.bulk_rate().unwrap_or(flooded.device_rate());
    let best = megabytes_per_second(device.best_second() as f64);
    let what = if flooded.bulk_rate().is_some() { "bulk writers wrote" } else { "the device wrote" };
    out.push(tile(what, megabytes_per_second(rate), format!("best second of the device {best}")));
    if let Some((least, _)) = flooded.limits.filter(|_| !story.history.shadow) {
        let saved = format!("baseline {}", words::size(device.device.saved_bytes));
        out.push(tile("lowest limit", words::size(least), saved));
    }
    if let Some((least, _)) = flooded.cgroup_limits.filter(|_| !story.history.shadow) {
        let of = "of the throttled cgroup".to_string();
        out.push(tile("lowest rate", words::limit(least, true), of));
    }
    out
}

fn about(i: usize, device: &DeviceStory<'_>) -> Markup {
    let more_phases = device.phases.len().saturating_sub(PHASES_MOST);
    let more_decisions = device.decisions.len().saturating_sub(ROWS_MOST);
    html! {
        (course::html(i, device))
        @if device.floods() > 0 {
            h3 { "Before, during, after" }
            (data_table(&phases(device)))
            @if more_phases > 0 { p { "And " (more_phases) " later ones." } }
        }
        h3 { "Every decision" }
        @if device.decisions.is_empty() { p { "Nothing had to be decided." } }
        @else { (data_table(&decisions(&device.decisions))) }
        @if more_decisions > 0 { p { "And " (more_decisions) " later ones, in the record." } }
    }
}

fn phases(device: &DeviceStory<'_>) -> Table {
    let head =
        ["", "from", "length", "syncs/s", "kept", "p99", "longest", "over target", "bulk", "device", "limit"];
    let row =
        |phase: &Phase| device.row(phase, "–").into_iter().chain([limits(&device.sums(phase))]).collect();
    Table {
        head: head.map(str::to_string).to_vec(),
        rows: device.phases.iter().take(PHASES_MOST).map(row).collect(),
        ..Table::default()
    }
}

/// The limits of some seconds: of dirty pages, of a cgroup.
fn limits(sums: &Sums) -> String {
    let said = |(range, of_cgroup): (Option<(u64, u64)>, bool)| {
        let (least, most) = range?;
        let [least, most] = [least, most].map(|bytes| words::limit(bytes, of_cgroup));
        Some(if least == most { least } else { format!("{least}–{most}") })
    };
    let said: Vec<String> =
        [(sums.limits, false), (sums.cgroup_limits, true)].into_iter().filter_map(said).collect();
    if said.is_empty() { "–".to_string() } else { said.join(", ") }
}

fn decisions(decisions: &[&Noted]) -> Table {
    let head = ["at", "limit", "branch", "reason"];
    let row = |noted: &&Noted| {
        vec![
            format!("{:.1} s", noted.at_ms as f64 / 1000.0),
            words::done(noted).unwrap_or("–".to_string()),
            noted.branch().map_or("–".to_string(), words::branch),
            words::reason(noted),
        ]
    };
    Table {
        head: head.map(str::to_string).to_vec(),
        rows: decisions.iter().take(ROWS_MOST).map(row).collect(),
        says: true,
        ..Table::default()
    }
}

#[cfg(test)]
mod tests;
