//! A small chart of one device beside its peers: its percentiles as lines, the peers' as a line in a band. Many of them stand beside each
//! other, all on the same scales. Its letters suit a third of a wide page and the whole of a narrow one.

use maud::{Markup, PreEscaped, html};

use super::labels::polygon;
use super::scale::{Axis, Placed, Scale};
use super::svg::{Anchor, Svg, number, polyline, text_width};
use super::unit::Unit;

/// What one column says, ns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SmallPoint {
    /// The device's own median.
    pub p50: f64,
    /// Its 99th percentile.
    pub p99: f64,
    /// Median of the peers' medians; not finite where it is not known.
    pub peers_p50: f64,
    /// Median of the peers' 99th percentiles.
    pub peers_p99: f64,
    /// Their quartiles.
    pub band: (f64, f64),
    /// What it says when pointed at.
    pub hint: String,
}

/// One device.
#[derive(Debug, Clone, PartialEq)]
pub struct SmallFigure {
    /// The sentence for those who do not see it.
    pub finding: String,
    /// A point for each column; without one, lines are broken.
    pub points: Vec<Option<SmallPoint>>,
}

/// What all charts share.
#[derive(Debug, Clone, PartialEq)]
pub struct SmallScales {
    /// Lowest and highest latency, ns.
    range: (f64, f64),
    /// Short names of columns; those that have no room are left out.
    pub columns: Vec<String>,
    /// Whether columns are points, with their names below their middles, or windows, with their names where they begin.
    pub are_points: bool,
}

const WIDTH: f64 = 270.0;
const HEIGHT: f64 = 150.0;
const FONT: f64 = 11.5;

impl SmallScales {
    /// Scales that hold all figures.
    pub fn of(figures: &[SmallFigure], columns: Vec<String>, are_points: bool) -> SmallScales {
        let points = figures.iter().flat_map(|figure| figure.points.iter().flatten());
        let values = points.flat_map(|p| [p.p50, p.p99, p.peers_p50, p.peers_p99, p.band.0, p.band.1]);
        SmallScales { range: axis().range(values), columns, are_points }
    }
}

fn axis() -> Axis {
    Axis::y("latency", Unit::Latency, Scale::Log)
}

/// Draws one.
pub fn svg(figure: &SmallFigure, scales: &SmallScales) -> Markup {
    let mut svg = Svg::default();
    let (low, high) = scales.range;
    let foot = HEIGHT - FONT * 1.7;
    let y = Placed { axis: axis(), low, high, start: foot, end: FONT * 0.8 };
    let apart = |ticks: &[(f64, String)]| {
        ticks.windows(2).all(|pair| (y.at(pair[0].0) - y.at(pair[1].0)).abs() >= FONT * 1.3)
    };
    let ticks = y.ticks(apart);
    let left = ticks.iter().map(|(_, text)| text_width(text, FONT)).fold(0.0, f64::max) + 6.0;
    let step = (WIDTH - left - 2.0) / scales.columns.len().max(1) as f64;
    for (value, text) in &ticks {
        svg.line("gr", (left, y.at(*value)), (WIDTH - 2.0, y.at(*value)));
        svg.text("tk", (left - 5.0, y.at(*value) + FONT * 0.35), Anchor::End, text);
    }
    names(&mut svg, scales, (left, foot, step));
    let middle = |at: usize| left + (at as f64 + 0.5) * step;
    let points: Vec<(f64, &SmallPoint)> = vec![];
    let runs = figure.points.iter().enumerate().fold(vec![points], |mut runs, (at, point)| {
        match (point, runs.last_mut()) {
            (Some(point), Some(run)) => run.push((middle(at), point)),
            _ => runs.push(Vec::new()),
        }
        runs
    });
    let runs: Vec<_> = runs.into_iter().filter(|run| !run.is_empty()).map(|run| widened(run, step)).collect();
    for run in &runs {
        let edge = |of: fn(&SmallPoint) -> f64| run.iter().map(move |(x, p)| (*x, of(p)));
        let placed = |of: fn(&SmallPoint) -> f64| -> Vec<(f64, f64)> {
            edge(of).filter(|p| p.1.is_finite()).map(|(x, value)| (x, y.at(value))).collect()
        };
        let (lows, highs) = (placed(|p| p.band.0), placed(|p| p.band.1));
        svg.path("ba s5", &polygon(highs.into_iter(), lows.into_iter().rev()));
        svg.path("ln s5 dot", &polyline(&placed(|p| p.peers_p50)));
        svg.path("ln s5", &polyline(&placed(|p| p.peers_p99)));
        svg.path("ln s0 dot", &polyline(&placed(|p| p.p50)));
        svg.path("ln s0", &polyline(&placed(|p| p.p99)));
    }
    for (at, point) in figure.points.iter().enumerate() {
        if let Some(point) = point {
            let x = left + at as f64 * step;
            svg.cell("hit", (x, 0.0), (step, foot), &point.hint);
        }
    }
    let size = format!("0 0 {} {}", number(WIDTH), number(HEIGHT));
    html! {
        svg.small role="img" viewBox=(size) font-size=(number(FONT)) aria-label=(figure.finding) { (PreEscaped(svg.into_text())) }
    }
}

/// A run of one column would be no line: it gets the width of half a column.
fn widened(run: Vec<(f64, &SmallPoint)>, step: f64) -> Vec<(f64, &SmallPoint)> {
    match run.as_slice() {
        [(x, point)] => vec![(x - step / 4.0, *point), (x + step / 4.0, *point)],
        _ => run,
    }
}

fn names(svg: &mut Svg, scales: &SmallScales, (left, foot, step): (f64, f64, f64)) {
    svg.line("ax", (left, foot), (WIDTH - 2.0, foot));
    let mut free_from = left;
    for (at, name) in scales.columns.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        let wide = text_width(name, FONT);
        let tick = left + (at as f64 + if scales.are_points { 0.5 } else { 0.0 }) * step;
        let x = if scales.are_points { (tick - wide / 2.0).max(0.0) } else { tick };
        if (scales.are_points && at == 0 || x >= free_from) && x + wide <= WIDTH {
            svg.line("ax", (tick, foot), (tick, foot + 4.0));
            svg.text("tk", (x, foot + FONT * 1.4), Anchor::Start, name);
            free_from = x + wide + FONT * 0.8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(p99: f64) -> Option<SmallPoint> {
        let hint = "<script>alert(1)</script>".to_string();
        Some(SmallPoint { p50: p99 / 8.0, p99, peers_p50: f64::NAN, peers_p99: 1e5, band: (8e4, 2e5), hint })
    }

    #[test]
    fn all_charts_share_one_scale_and_gaps_break_lines() {
        let figure = |points| SmallFigure { finding: "\"><img src=x>".into(), points };
        let all = [figure(vec![point(1e6), None, point(2e6), point(2e6)]), figure(vec![None, point(8e7)])];
        let columns = ["04-01", "", "04-02", ""].map(String::from).to_vec();
        let scales = SmallScales::of(&all, columns, false);
        assert_eq!(scales.range, (5e4, 1e8));
        let drawn = svg(&all[0], &scales).into_string();
        // Two runs with a band each, and no line of what is not known.
        assert_eq!(drawn.matches("class=\"ba s5\"").count(), 2, "{drawn}");
        assert_eq!(drawn.matches("class=\"ln s5 dot\"").count(), 0, "{drawn}");
        assert_eq!(drawn.matches("class=\"hit\"").count(), 3, "{drawn}");
        assert!(drawn.contains(">100 µs<") && drawn.contains(">10 ms<"), "{drawn}");
        assert!(!drawn.contains("<script") && !drawn.contains("<img"), "{drawn}");
        let empty = SmallScales::of(&[], Vec::new(), true);
        assert!(svg(&figure(Vec::new()), &empty).into_string().contains("<svg"));
    }
}
