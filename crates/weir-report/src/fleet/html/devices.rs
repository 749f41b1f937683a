//! A part for each device that the verdict names: its percentiles over time and by load, beside those of its peers.

use std::collections::{BTreeMap, BTreeSet};

use super::{Answer, PARTS_MOST, count, map, name, ns, requests, times};
use crate::page::{self, paragraph};
use crate::plot::{SmallFigure, SmallPoint, SmallScales, small_svg};
use maud::{Markup, html};
use weir_store::layout::minute;
use weir_store::verdict::{AtLoad, Slow, Window};

/// How many have a part.
pub fn parts(answer: &Answer) -> usize {
    answer.slow.len().min(PARTS_MOST)
}

/// The anchor of a part.
pub fn anchor(at: usize) -> String {
    format!("device-{}", at + 1)
}

/// All parts.
pub fn section(answer: &Answer) -> Markup {
    let named = &answer.slow[..parts(answer)];
    if named.is_empty() {
        return Markup::default();
    }
    let courses: Vec<SmallFigure> = named.iter().map(|slow| over_time(answer, slow)).collect();
    let columns = map::columns(answer);
    let in_time = SmallScales::of(&courses, map::names(&columns, answer), false);
    let loads = loads(answer, named);
    let by_load: Vec<SmallFigure> = named.iter().map(|slow| at_loads(answer, slow, &loads)).collect();
    let in_load = SmallScales::of(&by_load, loads.iter().map(|load| short(*load)).collect(), true);
    let left_out = answer.slow.len() - named.len();
    let body = html! {
        (paragraph(
            "All charts have the same scales: latency (log scale), and time in UTC or load in requests a second. In windows, the load counts that most \
             of the device's requests had; the peers are those at the same load."
        ))
        (key())
        @if left_out > 0 { (paragraph(format!("{left_out} more are in the table and have no chart."))) }
        div.smalls {
            @for (at, slow) in named.iter().enumerate() {
                figure id=(anchor(at)) {
                    figcaption { b { (name(&slow.host, &slow.device)) } span { (caption(slow)) } }
                    h4 { (slow.figure.what) " over time: latency, log scale" }
                    (chart(&courses[at], &in_time))
                    h4 { (slow.figure.what) " by load, requests/s" }
                    (chart(&by_load[at], &in_load))
                }
            }
        }
    };
    page::section("devices", "Slow devices and hosts beside their peers", body)
}

fn chart(figure: &SmallFigure, scales: &SmallScales) -> Markup {
    match figure.points.iter().flatten().count() {
        0 => paragraph("Nothing to compare: too few requests, or too few devices of this kind at its loads."),
        _ => small_svg(figure, scales),
    }
}

/// `device: p99 1.44 ms, peers 180 µs`.
fn caption(slow: &Slow) -> String {
    let figure = &slow.figure;
    let quantile = if figure.permille == 500 { "median" } else { "99th percentile" };
    format!(
        "{}. Its {quantile} is {}, that of its peers {} ({}); beyond them in {} of {} windows and loads. {}",
        page::capitalised(slow.cause.words()),
        unbroken(figure.own_ns),
        unbroken(figure.usual_ns),
        times(figure.own_ns / figure.usual_ns.max(1.0)),
        figure.slow_bins,
        figure.bins,
        slow.peers
    )
}

/// A time that is not parted from its unit.
fn unbroken(time_ns: f64) -> String {
    ns(time_ns).replace(' ', "\u{a0}")
}

/// What the lines mean.
fn key() -> Markup {
    let swatch = |class: &str| {
        html! { svg viewBox="0 0 28 12" aria-hidden="true" {
            @if class == "ba s5" { rect class=(class) width="28" height="12" {} }
            @else { path class=(class) d="M0 6H28" {} }
        } }
    };
    let entries = [
        ("ln s0", "99th percentile of the device"),
        ("ln s0 dot", "median of the device"),
        ("ln s5", "median of the peers' 99th percentiles"),
        ("ba s5", "their quartiles"),
        ("ln s5 dot", "median of the peers' medians"),
    ];
    html! { p.key { @for (class, words) in entries { span { (swatch(class)) (words) } } } }
}

fn is_of(slow: &Slow, host: &str, device: &str, what: &str) -> bool {
    slow.host == host && slow.device == device && slow.figure.what == what
}

fn over_time(answer: &Answer, slow: &Slow) -> SmallFigure {
    let own = answer.windows.iter().filter(|window| is_of(slow, &window.host, &window.device, &window.what));
    let own: BTreeMap<i64, &Window> = own.map(|window| (window.ts, window)).collect();
    let point = |window: &&Window| SmallPoint {
        p50: window.p50_ns,
        p99: window.p99_ns,
        peers_p50: window.peers_p50_ns,
        peers_p99: window.peers_p99_ns,
        band: (window.peers_low_ns, window.peers_high_ns),
        hint: format!(
            "{}: p50 {}, p99 {}; peers' p50 {}, p99 {} (quartiles {} to {}); {} {} at {}/s",
            minute(window.ts),
            ns(window.p50_ns),
            ns(window.p99_ns),
            ns(window.peers_p50_ns),
            ns(window.peers_p99_ns),
            ns(window.peers_low_ns),
            ns(window.peers_high_ns),
            count(window.requests),
            requests(&window.what),
            count(window.load)
        ),
    };
    let ratios: Vec<f64> = own.values().map(|window| window.ratio).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    SmallFigure {
        finding: format!(
            "{}, {} over time: its 99th percentile is {} to {} of the peers' median in {} windows",
            name(&slow.host, &slow.device),
            slow.figure.what,
            times(least.min(most)),
            times(most),
            ratios.len()
        ),
        points: map::columns(answer).iter().map(|ts| own.get(ts).map(point)).collect(),
    }
}

/// All loads at which one of them has a figure.
fn loads(answer: &Answer, named: &[Slow]) -> Vec<i64> {
    let all = answer.loads.iter().filter(|row| {
        row.load > 0 && named.iter().any(|slow| is_of(slow, &row.host, &row.device, &row.what))
    });
    let all: BTreeSet<i64> = all.map(|row| row.load).collect();
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return Vec::new() };
    std::iter::successors(Some(*first), |load| load.checked_mul(2)).take_while(|load| load <= last).collect()
}

/// `512`, `4k`.
fn short(load: i64) -> String {
    if load < 1_024 { load.to_string() } else { format!("{}k", load / 1_024) }
}

fn at_loads(answer: &Answer, slow: &Slow, loads: &[i64]) -> SmallFigure {
    let own = answer.loads.iter().filter(|row| is_of(slow, &row.host, &row.device, &row.what));
    let own: BTreeMap<i64, &AtLoad> = own.map(|row| (row.load, row)).collect();
    let point = |row: &&AtLoad| SmallPoint {
        p50: row.p50_ns,
        p99: row.p99_ns,
        peers_p50: f64::NAN,
        peers_p99: row.peers_p99_ns,
        band: (row.peers_low_ns, row.peers_high_ns),
        hint: format!(
            "load {}/s: p50 {}, p99 {}; peers' p99 {} (quartiles {} to {}); {} {}, {} devices of this kind",
            count(row.load),
            ns(row.p50_ns),
            ns(row.p99_ns),
            ns(row.peers_p99_ns),
            ns(row.peers_low_ns),
            ns(row.peers_high_ns),
            count(row.requests),
            requests(&row.what),
            row.peers_n
        ),
    };
    let each = own.values().map(|row| format!("{}/s {}", count(row.load), ns(row.p99_ns)));
    SmallFigure {
        finding: format!(
            "{}, {}: 99th percentile by load: {}",
            name(&slow.host, &slow.device),
            slow.figure.what,
            each.collect::<Vec<_>>().join(", ")
        ),
        points: loads.iter().map(|load| own.get(load).map(point)).collect(),
    }
}
