//! Points with a name each, two values and their intervals: one thing traded for another.

use maud::Markup;

use super::draw::horizontal_reference;
use super::labels::{Swatch, legend};
use super::place::{Box4, Wish, place};
use super::scale::{Axis, Placed};
use super::svg::{Anchor, Svg, bar, bold_width, number, polyline, text_width};
use super::{Form, Series};

/// One point.
#[derive(Debug, Clone)]
pub struct Spot {
    /// Where it lies.
    pub at: (f64, f64),
    /// Interval along x.
    pub x_interval: Option<(f64, f64)>,
    /// Interval along y.
    pub y_interval: Option<(f64, f64)>,
    /// Its name.
    pub label: String,
    /// Colour and marker.
    pub look: usize,
    /// Ringed and named in bold: what the reader is led to.
    pub ringed: bool,
}

/// A horizontal line.
#[derive(Debug, Clone)]
pub struct Level {
    /// Its value of y.
    pub at: f64,
    /// What it means.
    pub label: String,
}

/// Points over two axes.
#[derive(Debug, Clone)]
pub struct ScatterFigure {
    /// Anchor in the page; letters, digits and hyphens.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// The sentence that a reader should take from it.
    pub finding: String,
    /// What lies to the right.
    pub x: Axis,
    /// What lies above.
    pub y: Axis,
    /// The points.
    pub spots: Vec<Spot>,
    /// A line through some of them.
    pub path: Vec<(f64, f64)>,
    /// Horizontal lines that points are read against.
    pub references: Vec<Level>,
    /// What looks mean.
    pub key: Vec<(usize, String)>,
    /// Whether each point has its name beside it; else those that are ringed have, and the others in a tooltip.
    pub all_named: bool,
}

/// Draws a figure for one form of page.
pub fn svg(figure: &ScatterFigure, form: Form) -> Markup {
    let font = form.font();
    let mut svg = Svg::default();
    let y = axis_y(figure, form);
    let y_ticks = y.ticks(|t| t.windows(2).all(|p| y.at(p[0].0) - y.at(p[1].0) >= font * 1.25));
    let left = y_ticks.iter().map(|t| text_width(&t.1, font)).fold(16.0, f64::max) + 8.0;
    let x = axis_x(figure, form, left);
    let x_ticks = x.ticks(|t| {
        let room = |p: &[(f64, String)]| x.at(p[1].0) - x.at(p[0].0);
        t.windows(2).all(|p| room(p) >= (text_width(&p[0].1, font) + text_width(&p[1].1, font)) / 2.0 + 8.0)
    });

    svg.text("cap", (2.0, 2.0 + font), Anchor::Start, &figure.y.caption(y.high));
    let mut top = 2.0 + font * 1.6;
    let entries: Vec<(Swatch, String)> =
        figure.key.iter().map(|(look, text)| (Swatch::Marker(*look), text.clone())).collect();
    top += legend(&mut svg, &entries, 2.0, top, form) + font * 0.7;
    let y = Placed { start: y.start + top, end: y.end + top, ..y };

    for (value, _) in &x_ticks {
        svg.line("gm", (x.at(*value), y.end), (x.at(*value), y.start));
    }
    for (value, text) in &y_ticks {
        svg.line("gr", (x.start, y.at(*value)), (x.end, y.at(*value)));
        svg.text("tk", (x.start - 7.0, y.at(*value) + font * 0.35), Anchor::End, text);
    }
    svg.line("ax", (x.start, y.start), (x.end, y.start));
    let points = [Series::line("", 0, figure.spots.iter().map(|s| s.at).collect())];
    let mut taken = obstacles(figure, &x, &y);
    for (value, label) in figure.references.iter().map(|r| (r.at, r.label.as_str())) {
        let place = horizontal_reference(&mut svg, (value, label), &points, &[], (&x, &y), font);
        taken.push(place);
    }
    let path: Vec<(f64, f64)> = figure.path.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
    svg.path("front", &polyline(&path));
    figure.spots.iter().for_each(|spot| whiskers(&mut svg, spot, &x, &y));
    figure.spots.iter().for_each(|spot| marker(&mut svg, figure, spot, &x, &y));
    taken.extend(pieces(&path));
    names(&mut svg, figure, &taken, (&x, &y), font);

    let bottom = y.start + font * 1.5;
    for (value, text) in &x_ticks {
        svg.text("tk", (x.at(*value), bottom), Anchor::Middle, text);
    }
    let baseline = bottom + font * 1.55;
    svg.text("cap", ((x.start + x.end) / 2.0, baseline), Anchor::Middle, &figure.x.caption(x.high));
    svg.finish(&figure.id, form, baseline + font * 0.5, &figure.title, &figure.finding)
}

fn axis_y(figure: &ScatterFigure, form: Form) -> Placed {
    let intervals = figure.spots.iter().filter_map(|s| s.y_interval).flat_map(|i| [i.0, i.1]);
    let lines = figure.references.iter().map(|r| r.at);
    let (low, high) = figure.y.range(figure.spots.iter().map(|s| s.at.1).chain(intervals).chain(lines));
    Placed { axis: figure.y.clone(), low, high, start: form.full_height() * 1.25, end: 0.0 }
}

fn axis_x(figure: &ScatterFigure, form: Form, left: f64) -> Placed {
    let intervals = figure.spots.iter().filter_map(|s| s.x_interval).flat_map(|i| [i.0, i.1]);
    let (low, high) = figure.x.range(figure.spots.iter().map(|s| s.at.0).chain(intervals));
    let half = text_width(&figure.x.unit.tick(high, high), form.font()) / 2.0;
    Placed { axis: figure.x.clone(), low, high, start: left, end: form.width() - half.min(30.0) - 4.0 }
}

/// Half the length of an interval's end strokes.
const END: f64 = 3.5;

fn whiskers(svg: &mut Svg, spot: &Spot, x: &Placed, y: &Placed) {
    let (px, py) = (x.at(spot.at.0), y.at(spot.at.1));
    let class = format!("eb s{}", spot.look % super::LOOKS);
    if let Some((low, high)) = spot.x_interval {
        bar(svg, &class, (x.at(low), py), (x.at(high), py), (0.0, END));
    }
    if let Some((low, high)) = spot.y_interval {
        bar(svg, &class, (px, y.at(low)), (px, y.at(high)), (END, 0.0));
    }
}

fn marker(svg: &mut Svg, figure: &ScatterFigure, spot: &Spot, x: &Placed, y: &Placed) {
    let at = (x.at(spot.at.0), y.at(spot.at.1));
    if spot.ringed {
        let n = number;
        svg.path("ring", &format!("M{} {}a9 9 0 1 0 18 0a9 9 0 1 0 -18 0z", n(at.0 - 9.0), n(at.1)));
    }
    let values = (figure.y.unit.value(spot.at.1), figure.x.unit.value(spot.at.0));
    let hint = format!("{}: {} at {}", spot.label, values.0, values.1);
    if spot.ringed || figure.all_named {
        svg.marker(spot.look, at, &hint);
    } else {
        svg.marker_in_crowd(spot.look, at, &hint);
    }
}

/// Ringed points that are named where the others are not: the first of them.
pub const NAMED_MOST: usize = 24;

/// Names beside their points, those that matter first.
fn names(svg: &mut Svg, figure: &ScatterFigure, taken: &[Box4], (x, y): (&Placed, &Placed), font: f64) {
    let at = |spot: &Spot| (x.at(spot.at.0), y.at(spot.at.1));
    let mut spots: Vec<&Spot> = figure.spots.iter().collect();
    spots.sort_by_key(|spot| !spot.ringed);
    if !figure.all_named {
        spots.retain(|spot| spot.ringed);
        spots.truncate(NAMED_MOST);
    }
    let wish = |s: &&Spot| Wish {
        at: at(s),
        width: if s.ringed { bold_width(&s.label, font) } else { text_width(&s.label, font) },
    };
    let wishes: Vec<Wish> = spots.iter().map(wish).collect();
    let bounds = Box4 { left: x.start, top: y.end - font, right: x.end + font, bottom: y.start };
    let placed = place(&wishes, font * 1.15, taken, &bounds);
    for (spot, area) in spots.iter().zip(placed) {
        let point = at(spot);
        let (middle, nearest) = (f64::midpoint(area.top, area.bottom), point.0.clamp(area.left, area.right));
        if (nearest - point.0).hypot(middle - point.1) > 24.0 {
            svg.line(&format!("lead s{}", spot.look % super::LOOKS), point, (nearest, middle));
        }
        let class = if spot.ringed { "rf strong" } else { "rf" };
        svg.text(class, (area.left, middle + font * 0.35), Anchor::Start, &spot.label);
    }
}

/// Markers, intervals, and lines across.
fn obstacles(figure: &ScatterFigure, x: &Placed, y: &Placed) -> Vec<Box4> {
    let mut out = Vec::new();
    for spot in &figure.spots {
        let (px, py) = (x.at(spot.at.0), y.at(spot.at.1));
        out.push(Box4::around((px, py), if spot.ringed { 10.0 } else { 5.5 }));
        out.extend(spot.x_interval.map(|i| Box4::between((x.at(i.0), py - END), (x.at(i.1), py + END))));
        out.extend(spot.y_interval.map(|i| Box4::between((px - END, y.at(i.0)), (px + END, y.at(i.1)))));
    }
    let line = |r: &Level| Box4::between((x.start, y.at(r.at)), (x.end, y.at(r.at)));
    out.extend(figure.references.iter().map(line));
    out
}

/// A slanted line as a row of small boxes.
fn pieces(path: &[(f64, f64)]) -> Vec<Box4> {
    let along = |pair: &[(f64, f64)]| {
        let (from, to) = (pair[0], pair[1]);
        let count = ((to.0 - from.0).hypot(to.1 - from.1) / 8.0).ceil().max(1.0) as usize;
        let at = move |i: usize| {
            let share = i as f64 / count as f64;
            (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
        };
        (0..=count).map(move |i| Box4::around(at(i), 1.5))
    };
    path.windows(2).flat_map(along).collect()
}
