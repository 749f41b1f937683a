//! The map's heat, its edge with the model's curve, commits beside it, and the lines to copy.

use crate::doctor::map::{at, loads, off, percent, shade};
use crate::page::{Table, cells, data_table, figure, paragraph, typed};
use crate::plot::heat::SHADES;
use crate::plot::{Axis, CellFigure, Figure, HeatText, Join, Panel, Scale, Series, Unit};
use maud::{Markup, html};
use weir_core::units::{Nanos, grouped, per_second};
use weir_verdict::doctor::DoctorReport;
use weir_verdict::map::cost::CostModel;
use weir_verdict::map::{Commits, LoadMap, Point};

/// Points of the model's curve.
const CURVE: u32 = 40;

/// Heat map and edge.
pub fn html(report: &DoctorReport) -> Markup {
    let Some(map) = &report.map else { return Markup::default() };
    html! {
        @if !map.inside.is_empty() { (cells(&heat(map), &numbers(map))) }
        @if let Some(model) = map.model.as_ref().filter(|_| map.edges.len() > 1) {
            (figure(&edge(map, model), &Table::default()))
        }
    }
}

/// What the model is in the words of other programs.
pub fn lines(report: &DoctorReport) -> Markup {
    let Some(map) = report.map.as_ref().filter(|map| map.model.is_some()) else { return Markup::default() };
    html! {
        @for line in &map.lines {
            h3 { (line.title) }
            p.soft { (line.goes_to) }
            @if let Some(text) = &line.text { (typed(text)) }
            (paragraph(format!("{}: {}.", crate::page::capitalised(line.how_sure.sure.name()), line.how_sure.why)))
        }
    }
}

fn heat(map: &LoadMap) -> CellFigure {
    let loads = loads(map);
    let cell = |point: Option<&Point>| point.and_then(|point| drawn(map, point));
    let row = |edge: &Point| {
        let inside = loads.iter().map(|load| cell(at(map, edge.share, *load)));
        (percent(edge.share), inside.chain([cell(Some(edge))]).collect())
    };
    let columns = loads.iter().map(|load| format!("{:.0} %", load * 100.0)).chain(["edge".to_string()]);
    CellFigure {
        id: "map-heat".to_string(),
        title: "99th percentile of latency by share of writes and load".to_string(),
        finding: finding(map),
        rows_name: "writes".to_string(),
        columns_name: "load, as a part of the edge's rate".to_string(),
        columns: columns.collect(),
        rows: map.edges.iter().map(row).collect(),
    }
}

fn drawn(map: &LoadMap, point: &Point) -> Option<HeatText> {
    let ns = point.p99_ns?;
    let late = if point.kept { "" } else { ", and the rate was not kept" };
    let hint = format!(
        "{} of writes, {} reads/s and {} writes/s: p99 {}{late}",
        percent(point.share),
        per_second(point.reads),
        per_second(point.writes),
        Nanos(ns)
    );
    Some(HeatText { text: Nanos(ns).to_string(), shade: shade(map, ns, SHADES), hint })
}

fn finding(map: &LoadMap) -> String {
    let tails = map.inside.iter().filter_map(|point| Some((point.p99_ns?, point)));
    let (Some(least), Some(most)) =
        (tails.clone().min_by_key(|(ns, _)| *ns), tails.max_by_key(|(ns, _)| *ns))
    else {
        return String::new();
    };
    let place =
        |point: &Point| format!("{:.0} % load with {} of writes", point.load * 100.0, percent(point.share));
    format!(
        "From {} at {} to {} at {}; each darker shade is the same factor more.",
        Nanos(least.0),
        place(least.1),
        Nanos(most.0),
        place(most.1)
    )
}

fn edge(map: &LoadMap, model: &CostModel) -> Figure {
    // With a limit each the corner lies between two of the even steps.
    let corner = model.writes / (model.reads + model.writes);
    let mut shares: Vec<f64> = (0..=CURVE).map(|i| f64::from(i) / f64::from(CURVE)).chain([corner]).collect();
    shares.sort_by(|a, b| b.total_cmp(a));
    let at = |share: f64| (model.edge(share) * (1.0 - share), model.edge(share) * share);
    let curve = shares.into_iter().map(at).collect();
    let measured = map.edges.iter().map(|point| (point.reads, point.writes)).collect();
    let measured = Series { join: Join::None, ..Series::line("measured", 0, measured) };
    let fitted = Series { join: Join::Curve, ..Series::line("model", 1, curve) };
    Figure {
        id: "map-edge".to_string(),
        title: "As many reads and writes as the storage takes".to_string(),
        finding: format!("The model misses no measured point by more than {:.1} %.", model.error * 100.0),
        x: Axis::x("reads", Unit::Iops, Scale::Linear),
        panels: vec![Panel::of(Axis::y("writes", Unit::Iops, Scale::Linear), vec![fitted, measured], 0.9)],
        regions: Vec::new(),
    }
}

fn numbers(map: &LoadMap) -> Table {
    let head =
        ["writes", "load", "reads/s", "writes/s", "model", "p50", "p99", "n"].map(str::to_string).to_vec();
    let time = |ns: Option<u64>| ns.map_or("too few".to_string(), |ns| Nanos(ns).to_string());
    let row = |point: &Point| {
        vec![
            percent(point.share),
            if point.load < 1.0 { format!("{:.0} %", point.load * 100.0) } else { "edge".to_string() },
            per_second(point.reads),
            per_second(point.writes),
            if point.load < 1.0 { String::new() } else { off(map, point) },
            time(point.p50_ns),
            time(point.p99_ns),
            grouped(point.n),
        ]
    };
    Table { head, rows: map.edges.iter().chain(&map.inside).map(row).collect(), ..Table::default() }
}

/// Commits alone and beside loads.
pub fn commits(report: &DoctorReport) -> Markup {
    let Some(map) = report.map.as_ref().filter(|map| !map.commits.is_empty()) else {
        return Markup::default();
    };
    let head = ["beside", "reads/s", "writes/s", "commits/s", "p50", "p99", "n"].map(str::to_string).to_vec();
    let mixed = map.commits.iter().map(|one| commits_row(beside(one), one));
    let pages =
        map.pages.beside.iter().map(|one| commits_row(format!("pages, {:.0} %", one.load * 100.0), one));
    data_table(&Table { head, rows: mixed.chain(pages).collect(), ..Table::default() })
}

fn beside(one: &Commits) -> String {
    if one.load == 0.0 {
        return "nothing".to_string();
    }
    format!("{:.0} %, {} writes", one.load * 100.0, percent(one.share))
}

fn commits_row(name: String, one: &Commits) -> Vec<String> {
    let time = |ns: u64| Nanos(ns).to_string();
    vec![
        name,
        per_second(one.reads),
        per_second(one.writes),
        per_second(one.rate),
        one.p50_ns.map_or("too few".to_string(), time),
        one.p99_ns.map_or_else(|| format!("longest {}", time(one.max_ns)), time),
        grouped(one.n),
    ]
}

#[cfg(test)]
mod tests {
    use crate::html;
    use weir_verdict::from_record;
    use weir_verdict::map::made::{each, mapped};

    #[test]
    fn the_page_has_heat_edge_commits_and_lines() {
        let report = from_record(&mapped(&each(2000.0, 800.0)).record(Vec::new())).unwrap();
        let page = html::doctor(&report);
        for part in [
            "id=\"map-heat\"",
            "id=\"map-edge\"",
            "innodb_io_capacity = ",
            "ctrl=user model=linear",
            "pages, 50 %",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
        assert!(!page.contains("NaN") && !page.contains(">inf"), "a figure without a value");
        assert!(!page.contains("id=\"commit-rates\""), "bars of single points");
    }
}
