//! The page of a run over many hosts: who is slow and why, all hosts, and their commits beside each other.

use maud::{Markup, html};

use super::Listing;
use crate::page::{self, Page, Table, date, headline, lede, page, paragraph, section};
use crate::plot::{Axis, Scale, ScatterFigure, Spot, Unit};

/// Colour and marker of a host like its peers, of a change that was kept, ...
const USUAL: usize = 0;
/// ... and of one that is not.
const MARKED: usize = 1;

/// A run over many hosts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// What ran there.
    pub command: String,
    /// Its name.
    pub id: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// What a reader should take from it.
    pub headline: String,
    /// How many hosts are done, and when.
    pub lede: String,
    /// Sentences about the run as a whole.
    pub remarks: Vec<String>,
    /// Where hosts were compared.
    pub slow: Option<SlowHosts>,
    /// All hosts.
    pub hosts: Listing,
    /// Of hosts that measured commits.
    pub commits: Vec<Commits>,
    /// Of hosts of a rollout that were probed before and after.
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
        (page::typed(format!("weir fleet run {}", run.command)))
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

fn commits(run: &Run, slow: &[&str]) -> Markup {
    if run.commits.is_empty() {
        return Markup::default();
    }
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
        title: "Commits of one thread, by host".to_string(),
        finding: "Each point is a host, slow ones with their names; point at one to read its figures. Further down and to the right is better."
            .to_string(),
        x: Axis::x("commits", Unit::Count("commits/s"), Scale::Log),
        y: Axis::y("95th percentile of a commit", Unit::Latency, Scale::Log),
        spots: run.commits.iter().map(spot).collect(),
        path: Vec::new(),
        references: Vec::new(),
        key,
        all_named: false,
    };
    section("commits-by-host", "Commits by host", page::scatter(&figure, &Table::default()))
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
    // Both axes have the same range, so that the line where nothing changed goes from corner to corner.
    let rates = run.probes.iter().flat_map(|host| [host.before.0, host.before.1, host.after.0, host.after.1]);
    let rates = rates.filter(|rate| *rate > 0.0);
    let (least, most) = (rates.clone().fold(f64::INFINITY, f64::min), rates.fold(0.0, f64::max));
    let axis = |axis: Axis| Axis { include: vec![least, most], ..axis };
    let figure = ScatterFigure {
        id: "probes".to_string(),
        title: "Commits before the change and after it".to_string(),
        finding: "Each point is a host with the range of its probes, those without the change with their names. The dashed line is where nothing changed; below it, commits are slower."
            .to_string(),
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
