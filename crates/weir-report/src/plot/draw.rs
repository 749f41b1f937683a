//! Lays a figure out and draws it.

use maud::Markup;

use super::labels::{RegionNames, Swatch, at_ends, legend, polygon, room_at_end, write_name};
use super::place::Box4;
use super::scale::Placed;
use super::svg::{Anchor, Svg, bar, number, polyline, text_width};
use super::unit::Unit;
use super::{At, Figure, Form, Join, LOOKS, Panel, Series, Tint, heat};

/// More points than this carry markers only here and there.
const MARKED_POINTS_MOST: usize = 16;

/// Points of a series with at most this many say their value when pointed at.
const HINTED_POINTS_MOST: usize = 12;

/// Half the length of an interval's end strokes.
const WHISKER_END: f64 = 3.5;

/// Ticks of one axis: value and text.
type Ticks = Vec<(f64, String)>;

/// Draws all panels of a figure below each other.
pub fn figure(figure: &Figure, form: Form) -> Markup {
    let font = form.font();
    let axes: Vec<(Placed, Ticks)> = figure.panels.iter().map(|p| y_axis(p, form)).collect();
    let tick_width = |t: &Ticks| t.iter().map(|t| text_width(&t.1, font)).fold(0.0, f64::max);
    let left = axes.iter().map(|(_, t)| tick_width(t)).fold(16.0, f64::max) + 8.0;
    let room = room_at_end(&figure.panels, form);
    let (x, x_ticks) = x_axis(figure, form, left, room.unwrap_or(0.0));
    let names = RegionNames::of(&figure.regions, &x, font);

    let mut svg = Svg::default();
    let mut top = 2.0;
    for (i, (panel, (y, y_ticks))) in figure.panels.iter().zip(axes).enumerate() {
        top += font * 1.6 + write_name(&mut svg, "cap", (2.0, top + font), &panel.y.caption(y.high), form);
        top += legend(&mut svg, &entries(panel, room.is_some(), &names, i == 0), 2.0, top, form);
        if i == 0 && !figure.regions.is_empty() {
            names.draw(&mut svg, &figure.regions, &x, top, font);
            top += names.height(font) + font * 0.3;
        }
        top += font * 0.5 + top_labels_room(panel, font);
        let y = Placed { start: y.start + top, end: y.end + top, ..y };
        draw_panel(&mut svg, figure, panel, (&x, &x_ticks), (&y, &y_ticks), form);
        if room.is_some() && panel.series.len() > 1 {
            at_ends(&mut svg, panel, &x, &y, font);
        }
        top = y.start + font * 1.1;
    }
    top = x_labels(&mut svg, figure, &x, &x_ticks, top, form);
    svg.finish(&figure.id, form, top, &figure.title, &figure.finding)
}

/// The y axis of a panel, as if its top were at 0.
fn y_axis(panel: &Panel, form: Form) -> (Placed, Ticks) {
    let points = panel.series.iter().flat_map(|s| s.points.iter().map(|p| p.1));
    let bands = panel.series.iter().flat_map(|s| s.band.iter().chain(&s.whiskers).flat_map(|b| [b.1, b.2]));
    let cells = panel.heat.iter().flat_map(|c| [c.y.0, c.y.1]);
    let lines = panel.references.iter().filter_map(|r| match r.at {
        At::Y(value) => Some(value),
        At::X(_) => None,
    });
    let (low, high) = panel.y.range(points.chain(bands).chain(cells).chain(lines));
    let height = form.full_height() * panel.height;
    let placed = Placed { axis: panel.y.clone(), low, high, start: height, end: 0.0 };
    let ticks = placed.ticks(|t| {
        let enough_apart = t.windows(2).all(|p| placed.at(p[0].0) - placed.at(p[1].0) >= form.font() * 1.25);
        enough_apart && t.len() as f64 * form.font() * 1.9 <= height + form.font()
    });
    (placed, ticks)
}

fn x_axis(figure: &Figure, form: Form, left: f64, room: f64) -> (Placed, Ticks) {
    let series = figure.panels.iter().flat_map(|p| &p.series);
    let points = series.clone().flat_map(|s| s.points.iter().map(|p| p.0));
    let cells = figure.panels.iter().flat_map(|p| p.heat.iter().flat_map(|c| [c.x.0, c.x.1]));
    let regions = figure.regions.iter().flat_map(|r| [r.from, r.to]);
    let (low, high) = figure.x.range(points.chain(cells).chain(regions));
    // The last tick's text is centred below its tick and must not be cut off.
    let half = text_width(&figure.x.unit.tick(high, high), form.font()) / 2.0;
    let end = form.width() - room.max(half.min(30.0) + 4.0);
    let placed = Placed { axis: figure.x.clone(), low, high, start: left, end };
    let ticks = placed.ticks(|t| {
        t.windows(2).all(|p| {
            let room = placed.at(p[1].0) - placed.at(p[0].0);
            room >= (text_width(&p[0].1, form.font()) + text_width(&p[1].1, form.font())) / 2.0 + 8.0
        })
    });
    (placed, ticks)
}

/// What the legend of a panel has to name.
fn entries(panel: &Panel, named_at_ends: bool, names: &RegionNames, first: bool) -> Vec<(Swatch, String)> {
    let mut entries = Vec::new();
    if !named_at_ends && panel.series.len() > 1 {
        entries.extend(panel.series.iter().map(|s| (swatch(s), s.name.clone())));
    }
    if let Some(most) = panel.heat.iter().map(|c| c.count).max() {
        let text = format!("1 to {} operations per cell", weir_core::units::grouped(most));
        entries.push((Swatch::Shades, text));
    }
    if first {
        entries.extend(names.key());
    }
    entries
}

fn swatch(series: &Series) -> Swatch {
    match series.join {
        Join::Line | Join::Step => Swatch::Look(series.look),
        Join::Curve => Swatch::Line(series.look),
        Join::None => Swatch::Marker(series.look),
    }
}

/// Room above the drawing area for the names of vertical lines.
fn top_labels_room(panel: &Panel, font: f64) -> f64 {
    let vertical = panel.references.iter().filter(|r| matches!(r.at, At::X(_))).count();
    vertical as f64 * font * 1.25
}

fn draw_panel(
    svg: &mut Svg,
    figure: &Figure,
    panel: &Panel,
    (x, x_ticks): (&Placed, &Ticks),
    (y, y_ticks): (&Placed, &Ticks),
    form: Form,
) {
    for region in &figure.regions {
        let class = match region.tint {
            Tint::Plain => continue,
            Tint::Disturbed => "disturbed",
            Tint::Eased => "eased",
        };
        svg.rect(class, x.at(region.from), y.end, x.at(region.to) - x.at(region.from), y.start - y.end);
    }
    grid(svg, (x, x_ticks), (y, y_ticks), form);
    for region in figure.regions.iter().skip(1) {
        svg.line("edge", (x.at(region.from), y.end), (x.at(region.from), y.start));
    }
    for part in figure.regions.iter().flat_map(|r| r.parts.iter().skip(1)) {
        svg.line("edge part", (x.at(part.from), y.end), (x.at(part.from), y.start));
    }
    heat::draw(svg, &panel.heat, x, y);
    for series in &panel.series {
        filled(svg, series, x, y);
    }
    // A line on its own needs no dash or marker to be told from others.
    let alone = panel.series.len() == 1;
    for series in &panel.series {
        lines(svg, series, alone, x, y);
    }
    for series in &panel.series {
        let class = format!("eb s{}", series.look % LOOKS);
        for (at, low, high) in series.whiskers.iter().filter(|w| w.1.is_finite() && w.2.is_finite()) {
            bar(svg, &class, (x.at(*at), y.at(*low)), (x.at(*at), y.at(*high)), (WHISKER_END, 0.0));
        }
    }
    for series in &panel.series {
        markers(svg, series, alone, (x, figure.x.unit), (y, panel.y.unit));
    }
    references(svg, panel, (x, y), form.font());
}

/// Lines before names: a name may have to stand on another one's line.
fn references(svg: &mut Svg, panel: &Panel, (x, y): (&Placed, &Placed), font: f64) {
    let vertical = panel.references.iter().filter_map(|r| match r.at {
        At::X(value) => Some((x.at(value), r.label.as_str())),
        At::Y(_) => None,
    });
    // Each name has a row of its own above the drawing area.
    let baseline = |row: usize| y.end - font * (0.4 + 1.25 * row as f64);
    for (row, (at, _)) in vertical.clone().enumerate() {
        svg.line("ref", (at, baseline(row) - font * 0.2), (at, y.start));
    }
    for (row, (at, label)) in vertical.enumerate() {
        vertical_name(svg, (at, baseline(row)), label, x.end, font);
    }
    let mut taken = Vec::new();
    for reference in &panel.references {
        if let At::Y(value) = reference.at {
            let named = (value, reference.label.as_str());
            taken.push(horizontal_reference(svg, named, &panel.series, &taken, (x, y), font));
        }
    }
}

fn grid(svg: &mut Svg, (x, x_ticks): (&Placed, &Ticks), (y, y_ticks): (&Placed, &Ticks), form: Form) {
    let across = |at: f64| format!("M{} {}H{}", number(x.start), number(at), number(x.end));
    let down = |at: f64| format!("M{} {}V{}", number(at), number(y.end), number(y.start));
    let minor = y.minor().into_iter().map(|value| across(y.at(value)));
    let minor: String = minor.chain(x_ticks.iter().map(|tick| down(x.at(tick.0)))).collect();
    svg.path("gm", &minor);
    for (value, text) in y_ticks {
        svg.path("gr", &across(y.at(*value)));
        svg.text("tk", (x.start - 7.0, y.at(*value) + form.font() * 0.35), Anchor::End, text);
    }
    svg.line("ax", (x.start, y.start), (x.end, y.start));
}

/// Runs of points that hang together; a value that is not finite ends one.
fn runs(points: &[(f64, f64)]) -> impl Iterator<Item = &[(f64, f64)]> {
    points.split(|p| !p.1.is_finite()).filter(|run| !run.is_empty())
}

/// Places on the drawing that a run of points leads through.
fn corners(run: &[(f64, f64)], join: Join, x: &Placed, y: &Placed) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = Vec::with_capacity(run.len() * 2);
    for point in run {
        let (px, py) = (x.at(point.0), y.at(point.1));
        if let (Join::Step, Some(last)) = (join, out.last()) {
            out.push((px, last.1));
        }
        out.push((px, py));
    }
    out
}

fn filled(svg: &mut Svg, series: &Series, x: &Placed, y: &Placed) {
    let look = series.look % LOOKS;
    for run in series.band.split(|b| !(b.1.is_finite() && b.2.is_finite())) {
        let upper = run.iter().map(|b| (x.at(b.0), y.at(b.2)));
        let lower = run.iter().rev().map(|b| (x.at(b.0), y.at(b.1)));
        svg.path(&format!("ba s{look}"), &polygon(upper, lower));
    }
    if !series.area {
        return;
    }
    for run in runs(&series.points) {
        let there = corners(run, series.join, x, y);
        let floor = [there.last(), there.first()].into_iter().flatten().map(|p| (p.0, y.start));
        let floor: Vec<(f64, f64)> = floor.collect();
        svg.path(&format!("ar s{look}"), &polygon(there.into_iter(), floor.into_iter()));
    }
}

fn lines(svg: &mut Svg, series: &Series, alone: bool, x: &Placed, y: &Placed) {
    if series.join == Join::None {
        return;
    }
    let look = format!("s{}{}", series.look % LOOKS, if alone { " solid" } else { "" });
    let sure = series.doubtful_from.unwrap_or(series.points.len()).min(series.points.len());
    for run in runs(&series.points[..sure]) {
        svg.path(&format!("ln {look}"), &polyline(&corners(run, series.join, x, y)));
    }
    let doubtful = &series.points[sure.saturating_sub(1)..];
    if sure < series.points.len() {
        for run in runs(doubtful) {
            svg.path(&format!("ln doubt {look}"), &polyline(&corners(run, series.join, x, y)));
        }
    }
}

fn markers(
    svg: &mut Svg,
    series: &Series,
    alone: bool,
    (x, x_unit): (&Placed, Unit),
    (y, y_unit): (&Placed, Unit),
) {
    let n = series.points.len();
    let every = if n <= MARKED_POINTS_MOST { 1 } else { n.div_ceil(8) };
    let single = |i: usize| {
        let finite = |j: Option<usize>| j.and_then(|j| series.points.get(j)).is_some_and(|p| p.1.is_finite());
        !finite(i.checked_sub(1)) && !finite(Some(i + 1))
    };
    for (i, point) in series.points.iter().enumerate().filter(|(_, p)| p.1.is_finite()) {
        // Each look starts elsewhere, so that markers of neighbouring lines do not cover each other.
        let offset = (series.look * every / LOOKS) % every;
        let unmarked = series.area || series.join == Join::Curve || (alone && every > 1);
        let due = !unmarked && (i + every - offset).is_multiple_of(every);
        let tail = series.doubtful_from.is_some() && i + 1 == n;
        if due || tail || single(i) || series.join == Join::None {
            let said = || format!("{}: {} at {}", series.name, y_unit.value(point.1), x_unit.value(point.0));
            let hint = match series.hints.get(i) {
                Some(hint) => hint.clone(),
                None if n <= HINTED_POINTS_MOST => said(),
                None => String::new(),
            };
            svg.marker(series.look, (x.at(point.0), y.at(point.1)), &hint);
        }
    }
}

/// The name of a vertical line, to its right, where there is no room to its left, else from the page's edge.
fn vertical_name(svg: &mut Svg, (at, baseline): (f64, f64), label: &str, end: f64, font: f64) {
    let width = text_width(label, font) + 6.0;
    let (anchor, from) = if at + width <= end {
        (Anchor::Start, at + 5.0)
    } else if at >= width {
        (Anchor::End, at - 5.0)
    } else {
        (Anchor::Start, 2.0)
    };
    svg.text("rf", (from, baseline), anchor, label);
}

/// A horizontal line with its name above it, on the side where neither another name nor points are in its way; returns
/// the place of the name.
pub fn horizontal_reference(
    svg: &mut Svg,
    (value, label): (f64, &str),
    series: &[Series],
    taken: &[Box4],
    (x, y): (&Placed, &Placed),
    font: f64,
) -> Box4 {
    let (at, width) = (y.at(value), text_width(label, font) + 6.0);
    svg.line("ref", (x.start, at), (x.end, at));
    let in_the_way = |from: f64, to: f64| {
        let points = series.iter().flat_map(|s| &s.points).filter(|p| p.1.is_finite());
        let inside = |p: &&(f64, f64)| {
            let (px, py) = (x.at(p.0), y.at(p.1));
            from <= px && px <= to && at - font * 1.6 <= py && py <= at + 3.0
        };
        points.filter(inside).count()
    };
    let area = |left: f64| Box4 { left, top: at - 5.0 - font, right: left + width, bottom: at };
    let cost = |left: f64| {
        let covered = taken.iter().filter(|other| area(left).overlap(other) > 0.0).count();
        (covered, in_the_way(left, left + width))
    };
    if cost(x.end - width) <= cost(x.start) {
        svg.text("rf", (x.end - 2.0, at - 5.0), Anchor::End, label);
        area(x.end - width)
    } else {
        svg.text("rf", (x.start + 4.0, at - 5.0), Anchor::Start, label);
        area(x.start)
    }
}

/// Texts below the lowest panel; returns where they end.
fn x_labels(svg: &mut Svg, figure: &Figure, x: &Placed, ticks: &Ticks, top: f64, form: Form) -> f64 {
    let font = form.font();
    for (value, text) in ticks {
        svg.text("tk", (x.at(*value), top + font * 0.4), Anchor::Middle, text);
    }
    let middle = (x.start + x.end) / 2.0;
    let baseline = top + font * 1.95;
    svg.text("cap", (middle, baseline), Anchor::Middle, &figure.x.caption(x.high));
    baseline + font * 0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Reference, Scale};

    fn drawn(references: Vec<Reference>) -> String {
        let series = Series::line("rate", 0, (0..=100).map(|x| (f64::from(x), 50.0)).collect());
        let axis = Axis::y("rate", Unit::Count(""), Scale::Linear);
        super::figure(
            &Figure {
                id: "a".to_string(),
                title: "t".to_string(),
                finding: "f".to_string(),
                x: Axis::x("connections", Unit::Count(""), Scale::Linear),
                panels: vec![Panel { references, ..Panel::of(axis, vec![series], 1.0) }],
                regions: Vec::new(),
            },
            Form::Narrow,
        )
        .into_string()
    }

    fn named(at: At, label: &str) -> Reference {
        Reference { at, label: label.to_string() }
    }

    /// Where a name begins and ends, and its baseline.
    fn place(svg: &str, name: &str) -> (f64, f64, String) {
        let text = svg.split("<text ").find(|text| text.contains(&format!(">{name}<"))).unwrap();
        let attribute =
            |key: &str| text.split_once(key).and_then(|(_, rest)| rest.split('"').next()).unwrap();
        let (x, width) = (attribute(" x=\"").parse::<f64>().unwrap(), text_width(name, Form::Narrow.font()));
        let left = if text.contains("\"end\"") { x - width } else { x };
        (left, left + width, attribute(" y=\"").to_string())
    }

    #[test]
    fn names_of_vertical_lines_stay_on_the_page() {
        for at in [0.0, 40.0, 50.0, 60.0, 100.0] {
            for name in ["most: 8", "nearly as high: 12 connections"] {
                let (left, right, _) = place(&drawn(vec![named(At::X(at), name)]), name);
                assert!(left >= 0.0 && right <= Form::Narrow.width(), "{name} at {at}: {left} to {right}");
            }
        }
    }

    #[test]
    fn a_vertical_lines_name_has_its_row_whatever_lines_lie_across() {
        let across = |label| named(At::Y(20.0), label);
        let alone = place(&drawn(vec![named(At::X(50.0), "knee")]), "knee");
        let last =
            place(&drawn(vec![across("idle"), across("baseline"), named(At::X(50.0), "knee")]), "knee");
        assert_eq!(alone, last);
    }
}
