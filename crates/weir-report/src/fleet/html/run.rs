//! The page of a run over many hosts: who is slow and why, all hosts, and their commits beside each other.

use maud::{Markup, html};

use super::Listing;
use crate::page::{self, Page, Table, date, headline, lede, page, paragraph, section};
use crate::plot::{Axis, NAMED_MOST, Scale, ScatterFigure, Spot, Unit};

/// Colour and marker of a host like its peers, of a change that was kept, ...
const USUAL: usize = 0;
/// ... and of one that is not.
const MARKED: usize = 1;

/// A run over many hosts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Its name.
    pub id: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// What a reader should take from it.
    pub headline: String,
    /// What ran, how many hosts are done, and when.
    pub lede: String,
    /// Sentences about the run as a whole.
    pub remarks: Vec<String>,
    /// Where hosts were compared.
    pub slow: Option<SlowHosts>,
    /// All hosts.
    pub hosts: Listing,
    /// Whether the operations are commits.
    pub has_commits: bool,
    /// Of hosts that measured them, in the order in which they are named where there is no room for all.
    pub commits: Vec<Commits>,
    /// Hosts that measured too few of them to be drawn.
    pub undrawn: Vec<String>,
    /// Of hosts of a rollout that were probed before and after, in such an order.
    pub probes: Vec<Probed>,
    /// The folder of results.
    pub folder: String,
    /// Version of weir that wrote the page.
    pub weir_version: String,
}

/// Hosts that are slower than their peers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SlowHosts {
    /// What is compared with what.
    pub rule: String,
    /// Them, with their causes.
    pub listing: Listing,
    /// What the causes stand on, a sentence each.
    pub evidence: Vec<String>,
    /// Hosts with too few peers to be compared.
    pub without_peers: Vec<String>,
}

/// Commits of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Commits {
    /// Which.
    pub host: String,
    /// Commits a second.
    pub rate: f64,
    /// 95th percentile.
    pub p95_ns: f64,
    /// Whether it is slower than its peers.
    pub is_slow: bool,
}

/// Commits of a host before a change and after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// Which.
    pub host: String,
    /// The least and the most a second before.
    pub before: (f64, f64),
    /// After.
    pub after: (f64, f64),
    /// Whether the change was kept.
    pub is_kept: bool,
}

/// A run as one HTML document.
pub fn run(run: &Run) -> String {
    let slow: Vec<&str> = named(run).collect();
    let anchors = (0..run.hosts.rows.len()).map(|at| format!("host-{}", at + 1)).collect();
    let hosts = run.hosts.table(anchors, Vec::new());
    let body = html! {
        (headline(&run.headline))
        (lede(&run.lede))
        @if let Some(hosts) = &run.slow { (slow_hosts(run, hosts)) }
        (commits(run, &slow))
        (probes(run))
        (section("hosts", "All hosts", html! {
            (page::data_table(&hosts))
            @for remark in &run.remarks { (paragraph(page::capitalised(remark))) }
        }))
    };
    page(&Page {
        title: format!("weir fleet run: {}", run.headline),
        kind: "fleet, run".to_string(),
        date: date(&run.started_at),
        foot: format!("weir {} · run {} · {}", run.weir_version, run.id, run.folder),
        body,
    })
}

/// Names of the slow hosts, the slowest first.
fn named(run: &Run) -> impl Iterator<Item = &str> {
    run.slow.iter().flat_map(|slow| slow.listing.rows.iter().map(|row| row[0].as_str()))
}

fn slow_hosts(run: &Run, slow: &SlowHosts) -> Markup {
    let row_of = |name: &str| run.hosts.rows.iter().position(|row| row[0] == name);
    let links = named(run).map(|name| row_of(name).map_or(String::new(), |at| format!("host-{}", at + 1)));
    let table = slow.listing.table(Vec::new(), links.collect());
    let body = html! {
        (paragraph(&slow.rule))
        @if !table.rows.is_empty() { (page::data_table(&table)) }
        @for sentence in &slow.evidence { (paragraph(sentence)) }
        @if !slow.without_peers.is_empty() {
            (paragraph(format!("Not compared, for there are too few hosts of their kind: {}.", slow.without_peers.join(", "))))
        }
    };
    section("slow", "Slow hosts", body)
}

/// Who is named beside a point: all of them, or as many as there is room for.
fn with_names(count: usize, all: &str, first: &str) -> String {
    match count {
        0 => String::new(),
        count if count > NAMED_MOST => format!(", {first} {NAMED_MOST} with their names"),
        _ => format!(", {all} with their names"),
    }
}

fn commits(run: &Run, slow: &[&str]) -> Markup {
    if run.commits.is_empty() {
        return Markup::default();
    }
    let operations = if run.has_commits { "commits" } else { "operations" };
    let spot = |host: &Commits| Spot {
        at: (host.rate, host.p95_ns),
        x_interval: None,
        y_interval: None,
        label: host.host.clone(),
        look: if host.is_slow { MARKED } else { USUAL },
        ringed: host.is_slow,
    };
    let key = match slow {
        [] => Vec::new(),
        _ => vec![(USUAL, "as its peers".to_string()), (MARKED, "slow".to_string())],
    };
    let figure = ScatterFigure {
        id: "commits".to_string(),
        title: format!("Rate and 95th percentile of {operations}"),
        finding: format!(
            "Each point is a host{}; point at one to read its figures. Further down and to the right is better.",
            with_names(run.commits.iter().filter(|host| host.is_slow).count(), "slow ones", "the slowest")
        ),
        x: Axis::x(
            operations,
            Unit::Count(if run.has_commits { "commits/s" } else { "operations/s" }),
            Scale::Log,
        ),
        y: Axis::y(format!("95th percentile of {operations}"), Unit::Latency, Scale::Log),
        spots: run.commits.iter().map(spot).collect(),
        path: Vec::new(),
        references: Vec::new(),
        key,
        all_named: false,
    };
    let body = html! {
        (page::scatter(&figure, &Table::default()))
        @if !run.undrawn.is_empty() {
            (paragraph(format!("Not drawn, with too few operations for a 95th percentile: {}.", run.undrawn.join(", "))))
        }
    };
    section("commits-by-host", if run.has_commits { "Commits by host" } else { "Operations by host" }, body)
}

fn probes(run: &Run) -> Markup {
    if run.probes.is_empty() {
        return Markup::default();
    }
    let middle = |(least, most): (f64, f64)| f64::midpoint(least, most);
    let spot = |host: &Probed| Spot {
        at: (middle(host.before), middle(host.after)),
        x_interval: Some(host.before),
        y_interval: Some(host.after),
        label: host.host.clone(),
        look: if host.is_kept { USUAL } else { MARKED },
        ringed: !host.is_kept,
    };
    // Both axes reach over all rates, so that the line where nothing changed crosses the drawing.
    let rates = run.probes.iter().flat_map(|host| [host.before.0, host.before.1, host.after.0, host.after.1]);
    let rates = rates.filter(|rate| *rate > 0.0);
    let (least, most) = (rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max));
    let axis = |axis: Axis| Axis { include: vec![least, most], ..axis };
    let figure = ScatterFigure {
        id: "probes".to_string(),
        title: "Commits before the change and after it".to_string(),
        finding: format!(
            "Each point is a host with the range of its probes{}. The dashed line is where nothing changed; below it, commits are slower.",
            with_names(
                run.probes.iter().filter(|host| !host.is_kept).count(),
                "those that did not keep the change",
                "of those that did not keep the change the most harmed"
            )
        ),
        x: axis(Axis::x("before the change", Unit::Count("commits/s"), Scale::Log)),
        // After it there may be none.
        y: axis(Axis::y("after it", Unit::Count("commits/s"), Scale::LogOrZero)),
        spots: run.probes.iter().map(spot).collect(),
        path: vec![(least, least), (most, most)],
        references: Vec::new(),
        key: vec![(USUAL, "kept".to_string()), (MARKED, "not kept".to_string())],
        all_named: false,
    };
    section("rollout", "The change", page::scatter(&figure, &Table::default()))
}
