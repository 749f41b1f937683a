//! The slowest device against its peers at equal load.

use super::{Answer, count, name, ns, requests, times};
use crate::page::{self, Table, data_table, figure};
use crate::plot::{Axis, Figure, Join, Panel, Scale, Series, Unit};
use maud::{Markup, html};
use weir_store::verdict::{AtLoad, Slow};

/// The section; empty where no named device has a figure at a load.
pub fn section(answer: &Answer) -> Markup {
    let named = answer.slow.iter().map(|slow| (slow, of(answer, slow)));
    let mut named = named.filter(|(_, rows)| !rows.is_empty());
    let Some((slow, rows)) = named.next() else { return Markup::default() };
    let others: Vec<Vec<String>> = named.flat_map(|(_, rows)| rows).map(cells).take(ROWS_MOST).collect();
    let body = html! {
        (figure(&drawn(slow, &rows), &table(rows.iter().copied().map(cells).collect())))
        @if !others.is_empty() {
            details { summary { "The other slow devices and hosts at equal load" } (data_table(&table(others))) }
        }
    };
    page::section("at-equal-load", "The slowest against its peers at equal load", body)
}

/// Rows of the table of the others.
const ROWS_MOST: usize = 500;

fn of<'a>(answer: &'a Answer, slow: &Slow) -> Vec<&'a AtLoad> {
    let is_its = |row: &&AtLoad| {
        row.load > 0 && row.host == slow.host && row.device == slow.device && row.what == slow.figure.what
    };
    answer.loads.iter().filter(is_its).collect()
}

fn drawn(slow: &Slow, rows: &[&AtLoad]) -> Figure {
    let of = |value: fn(&AtLoad) -> f64| -> Vec<(f64, f64)> {
        rows.iter().map(|row| (row.load as f64, value(row))).collect()
    };
    let hints = |words: fn(&AtLoad) -> String| rows.iter().map(|row| words(row)).collect();
    let own = Series {
        hints: hints(|row| {
            format!("{} at {}/s, {} {}", ns(row.p99_ns), row.load, count(row.requests), requests(&row.what))
        }),
        ..Series::line("p99 of this one", 0, of(|row| row.p99_ns))
    };
    let peers = Series {
        band: rows.iter().map(|row| (row.load as f64, row.peers_low_ns, row.peers_high_ns)).collect(),
        hints: hints(|row| {
            format!("{} at {}/s, {} of this kind", ns(row.peers_p99_ns), row.load, row.peers_n)
        }),
        ..Series::line("peers' median", 5, of(|row| row.peers_p99_ns))
    };
    let served = Series { join: Join::Line, ..Series::line("", 4, of(|row| row.requests as f64)) };
    let things = requests(&slow.figure.what);
    let factor = rows.iter().map(|row| row.p99_ns / row.peers_p99_ns.max(1.0));
    let (least, most) = (factor.clone().fold(f64::INFINITY, f64::min), factor.fold(0.0, f64::max));
    let unit = if slow.device.is_empty() { "syncs/s" } else { "requests/s" };
    Figure {
        id: "by-load".to_string(),
        title: format!("{}, {}", name(&slow.host, &slow.device), slow.figure.what),
        finding: format!(
            "At equal load its 99th percentile is {} to {} of the peers' median; the band has their quartiles. {}",
            times(least),
            times(most),
            slow.peers
        ),
        x: Axis::x("load", Unit::Count(unit), Scale::Log2),
        panels: vec![
            Panel::of(Axis::y("99th percentile", Unit::Latency, Scale::Log), vec![own, peers], 0.9),
            Panel::of(
                Axis::y(format!("{things} of this one"), Unit::Count(""), Scale::Log),
                vec![served],
                0.4,
            ),
        ],
        regions: Vec::new(),
    }
}

fn cells(row: &AtLoad) -> Vec<String> {
    vec![
        name(&row.host, &row.device),
        row.what.clone(),
        format!("{}/s", count(row.load)),
        count(row.requests),
        ns(row.p50_ns),
        ns(row.p99_ns),
        format!("{} [{}–{}]", ns(row.peers_p99_ns), ns(row.peers_low_ns), ns(row.peers_high_ns)),
        times(row.p99_ns / row.peers_p99_ns.max(1.0)),
        row.peers_n.to_string(),
    ]
}

fn table(rows: Vec<Vec<String>>) -> Table {
    let head =
        ["", "figure", "load", "requests", "p50", "p99", "peers' p99 [quartiles]", "of peers'", "peers"];
    Table { head: head.map(String::from).to_vec(), rows, ..Table::default() }
}
