//! The page of a question to the tables: the verdict, and where there are devices over time, what it rests on. And the page of a run.

mod devices;
mod loads;
mod map;
mod run;
#[cfg(test)]
pub mod tests;

use crate::page::{Page, Table, capitalised, data_table, headline, lede, page, paragraph, section};
use maud::{Markup, html};
use weir_core::units::{Nanos, grouped, significant};
use weir_store::layout::minute;
use weir_store::verdict::{AtLoad, Slow, Window};

/// Devices that have a part of their own.
const PARTS_MOST: usize = 24;

pub use run::{Commits, Probed, Run, SlowHosts, run};

/// A table of words and figures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// Its columns.
    pub head: Vec<String>,
    /// Which of them hold words.
    pub words: Vec<bool>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

impl Listing {
    /// With an anchor for each row, and one that each row leads to; empty where there is none.
    fn table(&self, anchors: Vec<String>, links: Vec<String>) -> Table {
        let (head, rows, words) = (self.head.clone(), self.rows.clone(), self.words.clone());
        Table { head, rows, anchors, links, words, says: false }
    }
}

/// The answer to a question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Its name: `slow`.
    pub question: String,
    /// The time, s since 1970.
    pub from_s: i64,
    /// Its end.
    pub until_s: i64,
    /// The length of windows, s.
    pub slot_s: i64,
    /// Devices of one kind that it takes to compare them.
    pub peers: u32,
    /// The verdict.
    pub sentence: String,
    /// Its table.
    pub listing: Listing,
    /// What is to be said of others than those.
    pub remarks: Vec<String>,
    /// The devices and hosts that those rows name, in their order; empty for other questions.
    pub slow: Vec<Slow>,
    /// Devices over time.
    pub windows: Vec<Window>,
    /// Devices by load.
    pub loads: Vec<AtLoad>,
    /// The folder of the tables.
    pub folder: String,
    /// Version of weir that wrote the page.
    pub weir_version: String,
}

/// An answer as one HTML document.
pub fn fleet(answer: &Answer) -> String {
    let time = format!("{} to {} UTC", minute(answer.from_s), minute(answer.until_s));
    let parts = devices::parts(answer);
    let rows = answer.listing.rows.len();
    let links = (0..rows).map(|at| if at < parts { devices::anchor(at) } else { String::new() });
    let table = answer.listing.table(Vec::new(), links.collect());
    let body = html! {
        (headline(capitalised(&answer.sentence)))
        (lede(&time))
        @if let Some(rule) = rule(answer) { (paragraph(rule)) }
        @if rows > 0 { (data_table(&table)) }
        @for remark in &answer.remarks { (paragraph(capitalised(remark))) }
        (maps(answer))
        (devices::section(answer))
        (loads::section(answer))
    };
    page(&Page {
        title: format!("weir fleet: {}", answer.sentence),
        kind: format!("fleet, {}", answer.question),
        date: time,
        foot: format!("weir {} · {}", answer.weir_version, answer.folder),
        body,
    })
}

/// What is compared with what.
fn rule(answer: &Answer) -> Option<String> {
    (answer.question == "slow").then(|| {
        format!(
            "A device is compared with its peers: at least {} devices with its model, firmware and scheduler, in the same window and at the same \
             load. It is slow if its median or its 99th percentile exceeds the median of its peers by 30 % and by 3.5 robust deviations in \
             seven of ten windows and loads.",
            answer.peers
        )
    })
}

fn maps(answer: &Answer) -> Markup {
    let maps = map::maps(answer);
    if maps.is_empty() {
        return Markup::default();
    }
    let body = html! {
        (paragraph(format!(
            "A row is a device, or a host where syncs are shown. A cell is a window of {}: the 99th percentile of the device over the median of its \
             peers' 99th percentiles, in that window and at the load that most of the device's requests had. A blank cell has fewer than 1,000 \
             requests, or fewer than {} devices of its kind at that load. Point at a cell to read its figures.",
            hours(answer.slot_s), answer.peers
        )))
        @for map in maps { (map) }
    };
    section("over-time", "99th percentile over time, relative to peers", body)
}

/// `3 hours`.
fn hours(span_s: i64) -> String {
    match span_s / 3_600 {
        1 => "1 hour".to_string(),
        n => format!("{n} hours"),
    }
}

/// `db1 sda`, or the host.
fn name(host: &str, device: &str) -> String {
    format!("{host} {device}").trim().to_string()
}

fn ns(ns: f64) -> String {
    Nanos(ns.max(0.0) as u64).to_string()
}

fn times(ratio: f64) -> String {
    format!("{}×", significant(ratio))
}

fn count(n: i64) -> String {
    grouped(n.unsigned_abs())
}

/// `reads` of `read d2c`, and so on.
fn requests(what: &str) -> &'static str {
    match what.split(' ').next() {
        Some("read") => "reads",
        Some("write") => "writes",
        _ => "syncs",
    }
}

/// A class and stage as headings have it.
fn heading(what: &str) -> String {
    match what {
        "read d2c" => "Reads, from driver to completion (D2C)".to_string(),
        "write d2c" => "Writes, from driver to completion (D2C)".to_string(),
        "read g2d" => "Reads, from request to driver (G2D)".to_string(),
        "write g2d" => "Writes, from request to driver (G2D)".to_string(),
        "sync" => "Syncs, by host".to_string(),
        other => other.to_string(),
    }
}
