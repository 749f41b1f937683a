//! Heat maps of devices over time.

use std::collections::BTreeMap;

use super::{Answer, count, heading, name, ns, requests, times};
use crate::page::{self, Table, slug};
use crate::plot::{MapCell, MapFigure, MapRow};
use maud::Markup;
use weir_core::units::significant;
use weir_store::layout::minute;
use weir_store::verdict::Window;

/// Rows of all maps of a page.
const ROWS_MOST: usize = 200;
/// Rows of a map in which nothing exceeds its peers.
const ROWS_LEAST: usize = 12;
/// A device that exceeds its peers by this in half of its windows is drawn.
const REMARKABLE: f64 = 1.3;
/// Where a shade ends and the next begins.
const EDGES: [f64; 5] = [1.3, 1.7, 2.5, 4.0, 8.0];
const WORDS: [&str; 6] =
    ["as peers or faster", "somewhat slower", "slower", "much slower", "very much slower", "extremely slow"];

/// The shade of a ratio, from 0.
pub fn shade(ratio: f64) -> usize {
    EDGES.iter().filter(|edge| ratio >= **edge).count()
}

/// What the shades mean.
fn shades() -> Vec<String> {
    let edge = |at: usize| EDGES[at].to_string();
    (0..WORDS.len())
        .map(|at| match at {
            0 => format!("{}: below {}×", WORDS[at], edge(0)),
            5 => format!("{}: {}× or more", WORDS[at], edge(4)),
            _ => format!("{}: {} to {}×", WORDS[at], edge(at - 1), edge(at)),
        })
        .collect()
}

/// One device's windows.
struct Row<'a> {
    windows: BTreeMap<i64, &'a Window>,
    any: &'a Window,
    /// Whether the verdict names it ...
    named: bool,
    /// ... for this class and stage.
    named_here: bool,
    /// Median of its ratios.
    usual: f64,
    /// The largest.
    most: f64,
}

impl Row<'_> {
    fn name(&self) -> String {
        name(&self.any.host, &self.any.device)
    }

    fn measured(mut self) -> Self {
        let mut ratios: Vec<f64> = self.windows.values().map(|window| window.ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let middle = ratios.len() / 2;
        let lower = ratios.get(ratios.len().saturating_sub(1) / 2);
        self.usual = ratios.get(middle).zip(lower).map_or(0.0, |(a, b)| f64::midpoint(*a, *b));
        self.most = ratios.last().copied().unwrap_or_default();
        self
    }
}

/// A map for each class and stage: those in the device, syncs, and whatever else the verdict names.
pub fn maps(answer: &Answer) -> Vec<Markup> {
    let named = answer.slow.iter().map(|slow| slow.figure.what.as_str());
    let mut all: Vec<&str> = ["read d2c", "write d2c", "sync"].into_iter().chain(named).collect();
    let mut seen = Vec::new();
    all.retain(|what| {
        let is_new = !seen.contains(what) && answer.windows.iter().any(|window| window.what == *what);
        seen.push(*what);
        is_new
    });
    all.iter().map(|what| map(answer, what, ROWS_MOST / all.len())).collect()
}

fn map(answer: &Answer, what: &str, most: usize) -> Markup {
    let (shown, hidden) = chosen(rows(answer, what), most);
    let columns: Vec<i64> = columns(answer);
    let named = shown.iter().any(|row| row.named);
    let order = "The slowest stand on top";
    let bold =
        if named { "; those that the verdict names are bold." } else { "; the verdict names none of them." };
    let bold = if answer.slow.is_empty() { "." } else { bold };
    let cell = |window: &&Window| MapCell { shade: shade(window.ratio), hint: hint(window) };
    let row = |row: &Row<'_>| MapRow {
        name: row.name(),
        strong: row.named,
        cells: columns.iter().map(|ts| row.windows.get(ts).map(cell)).collect(),
    };
    let figure = MapFigure {
        id: format!("map-{}", slug(what)),
        title: heading(what),
        finding: format!("{order}{bold}{}", rest(&shown, &hidden, what)),
        columns_name: format!("begin of window, UTC, {}", minute(answer.from_s).get(..4).unwrap_or_default()),
        columns: names(&columns, answer),
        rows: shown.iter().map(row).collect(),
        shades: shades(),
    };
    page::map(&figure, &table(&shown, &columns, what))
}

/// Devices with their windows, the slowest first: by the median of their ratios.
fn rows<'a>(answer: &'a Answer, what: &str) -> Vec<Row<'a>> {
    let mut named: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for slow in &answer.slow {
        *named.entry((&slow.host, &slow.device)).or_default() |= slow.figure.what == what;
    }
    let mut devices: BTreeMap<(&str, &str), Row<'a>> = BTreeMap::new();
    for window in answer.windows.iter().filter(|window| window.what == what) {
        let key = (window.host.as_str(), window.device.as_str());
        let (is_named, here) = (named.contains_key(&key), named.get(&key) == Some(&true));
        let new = || Row {
            windows: BTreeMap::new(),
            any: window,
            named: is_named,
            named_here: here,
            usual: 0.0,
            most: 0.0,
        };
        devices.entry(key).or_insert_with(new).windows.insert(window.ts, window);
    }
    let mut rows: Vec<Row<'a>> = devices.into_values().map(Row::measured).collect();
    rows.sort_by(|a, b| b.usual.total_cmp(&a.usual));
    rows
}

/// The rows that are drawn, and the others.
fn chosen(rows: Vec<Row<'_>>, most: usize) -> (Vec<Row<'_>>, Vec<Row<'_>>) {
    let (mut shown, mut hidden) = (Vec::new(), Vec::new());
    for row in rows {
        let counts = row.named_here || row.usual >= REMARKABLE || shown.len() < ROWS_LEAST;
        if counts && shown.len() < most { shown.push(row) } else { hidden.push(row) }
    }
    (shown, hidden)
}

/// The sentence on those that are not drawn.
fn rest(shown: &[Row<'_>], hidden: &[Row<'_>], what: &str) -> String {
    let (others, others_most) = shown.first().map_or((0, 0.0), |row| (row.any.others, row.any.others_most));
    let farthest = hidden.iter().map(|row| row.most).fold(others_most, f64::max);
    let things = if what == "sync" { "hosts" } else { "devices" };
    match others + hidden.len() as i64 {
        0 => String::new(),
        n => format!(
            " {} other {things} are not drawn; none exceeds {} its peers in any window.",
            count(n),
            times(farthest)
        ),
    }
}

/// Begins of windows.
pub fn columns(answer: &Answer) -> Vec<i64> {
    let slot_s = answer.slot_s.max(1);
    let mut at_s = answer.from_s - answer.from_s.rem_euclid(slot_s);
    let mut all = Vec::new();
    while at_s < answer.until_s {
        all.push(at_s);
        at_s += slot_s;
    }
    all
}

/// Their short names: days where they begin, or hours where there are two days at most.
pub fn names(columns: &[i64], answer: &Answer) -> Vec<String> {
    let short = answer.until_s - answer.from_s <= 2 * 86_400;
    let mut day = String::new();
    let name = |at_s: &i64| {
        let text = minute(*at_s);
        let (date, time) = (text.get(5..10).unwrap_or_default(), text.get(11..).unwrap_or_default());
        let is_new = day != date;
        day = date.to_string();
        match (is_new, short) {
            (true, _) => date.to_string(),
            (false, true) => time.to_string(),
            (false, false) => String::new(),
        }
    };
    let mut names: Vec<String> = columns.iter().map(name).collect();
    // The rest of a day has no room beside the day that follows it.
    if !short && names.iter().skip(1).take(2).any(|name| !name.is_empty()) {
        names[0].clear();
    }
    names
}

fn hint(window: &Window) -> String {
    format!(
        "{}, {}: p99 {}, peers' median {} ({}), {} {} at a load of {}/s, {} devices of this kind",
        name(&window.host, &window.device),
        minute(window.ts),
        ns(window.p99_ns),
        ns(window.peers_p99_ns),
        times(window.ratio),
        count(window.requests),
        requests(&window.what),
        count(window.load),
        window.peers_n
    )
}

/// The same as numbers: a row for each device, since a screen reader reads these.
fn table(rows: &[Row<'_>], columns: &[i64], what: &str) -> Table {
    let head = [if what == "sync" { "host" } else { "device" }, "median", "most", "windows above 1.3×"];
    let row = |row: &Row<'_>| {
        let above = row.windows.values().filter(|window| window.ratio >= REMARKABLE).count();
        let mut cells =
            vec![row.name(), times(row.usual), times(row.most), format!("{above} of {}", row.windows.len())];
        let ratio = |ts| row.windows.get(ts).map_or("–".to_string(), |window| significant(window.ratio));
        // Of a long time the windows themselves are too many for a table.
        cells.extend(columns.iter().filter(|_| columns.len() <= COLUMNS_MOST).map(ratio));
        cells
    };
    let mut head: Vec<String> = head.map(String::from).to_vec();
    let name = |ts: &i64| minute(*ts).get(5..).unwrap_or_default().to_string();
    head.extend(columns.iter().filter(|_| columns.len() <= COLUMNS_MOST).map(name));
    Table { head, rows: rows.iter().map(row).collect(), ..Table::default() }
}

/// Windows that have columns in a table.
const COLUMNS_MOST: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::html::tests::answer;

    #[test]
    fn shades_begin_where_the_legend_says() {
        let all = [0.5, 1.29, 1.3, 1.69, 2.0, 3.9, 4.0, 8.0, 900.0].map(shade);
        assert_eq!(all, [0, 0, 1, 1, 2, 3, 4, 5, 5]);
        assert_eq!(shades()[0], "as peers or faster: below 1.3×");
        assert_eq!(shades()[5], "extremely slow: 8× or more");
    }

    #[test]
    fn the_slowest_stand_on_top_and_the_rest_is_counted() {
        let answer = answer(60);
        let (shown, hidden) = chosen(rows(&answer, "write d2c"), 200);
        assert_eq!((shown[0].usual, shown[1].most), (6.0, 1.25));
        let names: Vec<String> = shown.iter().take(3).map(Row::name).collect();
        assert_eq!(names, ["h001 <script>alert(1)</script>", "h003 sda", "h000 sda"]);
        assert_eq!(shown.len(), ROWS_LEAST);
        // Seven more that the query has counted.
        let words = rest(&shown, &hidden, "write d2c");
        assert_eq!(words, " 55 other devices are not drawn; none exceeds 1.25× its peers in any window.");
        let (few, _) = chosen(rows(&answer, "write d2c"), 5);
        assert_eq!((few.len(), few[0].named, few[1].named), (5, true, false));
    }

    #[test]
    fn a_device_that_the_verdict_names_is_drawn_wherever_it_stands() {
        let mut answer = answer(60);
        answer.slow[0].host = "h059".into();
        answer.slow[0].device = "sda".into();
        let (shown, _) = chosen(rows(&answer, "write d2c"), 200);
        let last = shown.last().unwrap();
        assert_eq!((shown.len(), last.name().as_str(), last.named), (ROWS_LEAST + 1, "h059 sda", true));
    }

    #[test]
    fn days_are_named_where_they_begin() {
        let mut answer = answer(1);
        let columns = columns(&answer);
        assert_eq!(columns.len(), 24);
        let names = super::names(&columns, &answer);
        assert_eq!((names[0].as_str(), names[1].as_str(), names[8].as_str()), ("04-01", "", "04-02"));
        answer.from_s -= 3_600;
        let late = super::columns(&answer);
        assert_eq!(super::names(&late, &answer)[..2], ["", "04-01"]);
        answer.from_s += 3_600;
        answer.until_s = answer.from_s + 86_400;
        assert_eq!(super::names(&columns, &answer)[1], "03:00");
    }
}
