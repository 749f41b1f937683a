//! A map as text: the edge, latency below it as a heat map of shades, commits beside it, and the lines to copy.

use crate::layout::{labelled_at, table};
use weir_core::units::per_second;
use weir_verdict::map::{Commits, Line, LoadMap, Point};
use weir_verdict::view::time;

/// Marks of a cell, from the least latency of the map to the most, by equal factors.
const SHADES: [&str; 4] = [" ", "░", "▒", "▓"];
/// Loads that differ by less are one column.
pub const SAME: f64 = 0.06;

/// Everything that a map has beside findings.
pub fn text(map: &LoadMap) -> String {
    let mut out = edge(map);
    out.push_str(&heat(map));
    out.push_str(&commits(map));
    out.push_str(&pages(map));
    if map.model.is_some() {
        out.extend(map.lines.iter().map(line));
    }
    out
}

/// `50 %` or `12.5 %`.
pub fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

fn tabulated(rows: &[Vec<String>]) -> String {
    let mut out = "\n".to_string();
    table(&mut out, rows, 1);
    out
}

fn edge(map: &LoadMap) -> String {
    if map.edges.is_empty() {
        return String::new();
    }
    let mut rows = vec![["Edge: writes", "reads/s", "writes/s", "model", "p99"].map(String::from).to_vec()];
    rows.extend(map.edges.iter().map(|point| {
        vec![
            percent(point.share),
            per_second(point.reads),
            per_second(point.writes),
            off(map, point),
            point.p99_ns.map_or("too few".to_string(), time),
        ]
    }));
    tabulated(&rows)
}

/// How far the model is off at a point of the edge: `+1.2 %`.
pub fn off(map: &LoadMap, point: &Point) -> String {
    let rate = point.reads + point.writes;
    let Some(model) = map.model.filter(|_| rate > 0.0) else { return String::new() };
    format!("{:+.1} %", (model.edge(point.writes / rate) / rate - 1.0) * 100.0)
}

/// Loads of the map that have a column of their own, ascending; points inside are asked for at the same few.
pub fn loads(map: &LoadMap) -> Vec<f64> {
    let mut all: Vec<f64> = map.inside.iter().map(|point| point.load).collect();
    all.sort_by(f64::total_cmp);
    all.dedup_by(|a, b| (*a - *b).abs() < SAME);
    all
}

/// The point of a share and a load, if it was measured.
pub fn at(map: &LoadMap, share: f64, load: f64) -> Option<&Point> {
    let near = |point: &&Point| point.share == share && (point.load - load).abs() < SAME;
    map.inside.iter().filter(near).min_by(|a, b| (a.load - load).abs().total_cmp(&(b.load - load).abs()))
}

/// Which of so many shades a latency has, from 0: by equal factors between least and most.
pub fn shade(map: &LoadMap, ns: u64, shades: usize) -> usize {
    let known = map.inside.iter().chain(&map.edges).filter_map(|point| point.p99_ns);
    let (least, most) = known.fold((u64::MAX, 1), |(least, most), ns| (least.min(ns), most.max(ns)));
    let of = |ns: u64| (ns.max(1) as f64).ln();
    let range = (of(most) - of(least.min(most))).max(0.1);
    (((of(ns) - of(least)) / range * shades as f64).max(0.0) as usize).min(shades - 1)
}

/// A row for each share, a column for each load, the edge last.
fn heat(map: &LoadMap) -> String {
    let loads = loads(map);
    if loads.is_empty() {
        return String::new();
    }
    let cell = |point: Option<&Point>| {
        let Some(point) = point else { return String::new() };
        let late = if point.kept { "" } else { ">" };
        point.p99_ns.map_or("too few".to_string(), |ns| {
            format!("{}{late}{}", SHADES[shade(map, ns, SHADES.len())], time(ns))
        })
    };
    let mut rows = vec![vec!["p99: writes".to_string()]];
    rows[0].extend(loads.iter().map(|load| format!("at {:.0} %", load * 100.0)));
    rows[0].push("edge".to_string());
    rows.extend(map.edges.iter().map(|edge| {
        let mut row = vec![percent(edge.share)];
        row.extend(loads.iter().map(|load| cell(at(map, edge.share, *load))));
        row.push(cell(Some(edge)));
        row
    }));
    let kept = map.inside.iter().all(|point| point.kept);
    let key = if kept { "" } else { "> the rate that was asked for was not kept\n" };
    tabulated(&rows) + key
}

/// Rate and tail, and a mark where the tail is the longest of few.
fn cell(one: &Commits) -> String {
    let few = if one.p99_ns.is_some() { "" } else { "≤" };
    let tail = one.tail_ns().map_or("none".to_string(), time);
    format!("{}/s {few}{tail}", per_second(one.rate))
}

fn commits(map: &LoadMap) -> String {
    let beside: Vec<&Commits> = map.commits.iter().filter(|one| one.load > 0.0).collect();
    let mut loads: Vec<f64> = beside.iter().map(|one| one.load).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup_by(|a, b| (*a - *b).abs() < SAME);
    let mut shares: Vec<f64> = beside.iter().map(|one| one.share).collect();
    shares.dedup();
    if loads.is_empty() {
        return String::new();
    }
    let mut rows = vec![vec!["Commits, p99: writes".to_string()]];
    rows[0].extend(loads.iter().map(|load| format!("beside {:.0} %", load * 100.0)));
    rows.extend(shares.iter().map(|share| {
        let at = |load: &f64| {
            beside
                .iter()
                .find(|one| one.share == *share && (one.load - load).abs() < SAME)
                .map(|one| cell(one))
        };
        let mut row = vec![percent(*share)];
        row.extend(loads.iter().map(|load| at(load).unwrap_or_default()));
        row
    }));
    tabulated(&rows) + few(&beside)
}

/// What the mark of few commits means, where it stands.
fn few(shown: &[&Commits]) -> &'static str {
    if shown.iter().any(|one| one.p99_ns.is_none()) { "≤ the longest: too few for a p99\n" } else { "" }
}

fn pages(map: &LoadMap) -> String {
    if map.pages.beside.is_empty() {
        return String::new();
    }
    let mut rows = vec![["Pages of 16 KiB", "commits beside, p99"].map(String::from).to_vec()];
    let row = |one: &Commits| vec![format!("{}/s", per_second(one.writes)), cell(one)];
    rows.extend(map.pages.beside.iter().map(row));
    rows.extend(
        map.pages.edge.map(|edge| vec![format!("{}/s", per_second(edge)), "as many as finish".into()]),
    );
    tabulated(&rows) + few(&map.pages.beside.iter().collect::<Vec<_>>())
}

/// What goes where, and how sure it is; the text itself is not broken, so that it can be copied.
fn line(line: &Line) -> String {
    let sure = line.how_sure.sure.name().to_uppercase();
    let mut out = format!("\n{}: {}\n", line.title, line.goes_to);
    if let Some(text) = &line.text {
        out.extend(text.lines().map(|line| format!("  {line}\n")));
    }
    labelled_at(&mut out, "", 2, &format!("{sure}: {}.", line.how_sure.why));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;
    use weir_verdict::from_record;
    use weir_verdict::map::made::{each, mapped, one_budget};

    #[test]
    fn a_map_fits_eighty_columns_and_its_lines_can_be_copied() {
        for device in [each(2000.0, 800.0), one_budget(412_345.0, 61_234.0, 0.7)] {
            let text = text::doctor(&from_record(&mapped(&device).record(Vec::new())).unwrap());
            let tables = text.split("\nEdge: ").nth(1).unwrap().split("\niocost, ").next().unwrap();
            assert!(tables.lines().all(|line| line.chars().count() <= 80), "{tables}");
            assert!(text.starts_with("weir doctor --map /srv/db: "), "{text}");
            for part in [
                "\n  253:16 ctrl=user model=linear rbps=",
                "\n  253:16 enable=1 ctrl=user rpct=95.00 rlat=",
                "\n      read_iops: ",
                "\n  innodb_io_capacity_max = ",
                "at 80 %",
                "beside 60 %",
            ] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn shades_rise_by_equal_factors() {
        let map = from_record(&mapped(&one_budget(1e4, 1e4, 0.0)).record(Vec::new())).unwrap().map.unwrap();
        let most = map.edges.iter().filter_map(|point| point.p99_ns).max().unwrap();
        assert_eq!((shade(&map, 1, 4), shade(&map, most, 4), shade(&map, u64::MAX, 4)), (0, 3, 3));
    }
}
