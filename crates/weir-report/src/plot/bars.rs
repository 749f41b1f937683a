//! Horizontal bars: a few named values side by side, each with its figure in words.

use super::scale::{Axis, Placed};
use super::svg::{Anchor, Svg, bold_width, text_width};
use super::{Form, LOOKS};

/// One bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// What was measured.
    pub label: String,
    /// Its value, in the axis's unit; not finite: measured nothing, said so.
    pub value: f64,
    /// An interval around the value, if one is known.
    pub interval: Option<(f64, f64)>,
    /// Further words behind the value.
    pub note: String,
    /// Colour.
    pub look: usize,
}

/// Bars over one axis that starts at zero.
#[derive(Debug, Clone)]
pub struct BarFigure {
    /// Anchor in the page; letters, digits and hyphens.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// The sentence that a reader should take from it.
    pub finding: String,
    /// The values' axis.
    pub axis: Axis,
    /// From top to bottom; an empty group name continues the group before.
    pub groups: Vec<(String, Vec<Bar>)>,
}

/// Height of one bar with its label above it, in font sizes.
const ROW: f64 = 2.75;

/// Draws bars for one form of page. Labels stand above their bars, so that long ones fit a phone.
pub fn svg(figure: &BarFigure, form: Form) -> String {
    let font = form.font();
    let bars = || figure.groups.iter().flat_map(|g| &g.1);
    let values = bars().flat_map(|b| [b.value, b.interval.map_or(b.value, |i| i.1)]);
    let (low, high) = figure.axis.range(values);
    let words = |b: &Bar| words_of(b, figure);
    let room = bars().map(|b| bold_width(&words(b), font)).fold(0.0, f64::max) + 12.0;
    let end = (form.width() - room).max(form.width() * 0.35);
    let placed = Placed { axis: figure.axis.clone(), low, high, start: 4.0, end };
    let rows: f64 = figure.groups.iter().map(|g| group_height(g, font)).sum();
    let ticks = placed.ticks(|t| {
        t.windows(2).all(|p| placed.at(p[1].0) - placed.at(p[0].0) >= text_width(&p[1].1, font) + 14.0)
    });

    let mut svg = Svg::default();
    for (value, text) in &ticks {
        svg.line("gm", (placed.at(*value), 2.0), (placed.at(*value), rows + 4.0));
        svg.text("tk", (placed.at(*value), rows + font * 1.5), Anchor::Middle, text);
    }
    svg.line("ax", (placed.start, 2.0), (placed.start, rows + 4.0));
    let mut top = 2.0;
    for (name, bars) in &figure.groups {
        if !name.is_empty() {
            svg.text("cap", (placed.start + 6.0, top + font * 1.3), Anchor::Start, name);
            top += font * 1.7;
        }
        for bar in bars {
            draw_bar(&mut svg, bar, &words(bar), &placed, top, font);
            top += font * ROW;
        }
        top += font * 0.5;
    }
    let caption = figure.axis.caption(high);
    svg.text("cap", (placed.start, rows + font * 3.1), Anchor::Start, &caption);
    svg.finish(&figure.id, form, rows + font * 3.6, &figure.title, &figure.finding)
}

fn group_height((name, bars): &(String, Vec<Bar>), font: f64) -> f64 {
    font * (ROW * bars.len() as f64 + 0.5 + if name.is_empty() { 0.0 } else { 1.7 })
}

fn words_of(bar: &Bar, figure: &BarFigure) -> String {
    let value = figure.axis.unit.value(bar.value);
    if bar.note.is_empty() { value } else { format!("{value} · {}", bar.note) }
}

fn draw_bar(svg: &mut Svg, bar: &Bar, words: &str, axis: &Placed, top: f64, font: f64) {
    let look = bar.look % LOOKS;
    svg.text("lg", (axis.start + 6.0, top + font), Anchor::Start, &bar.label);
    let (bar_top, height) = (top + font * 1.35, font * 0.95);
    let end = if bar.value.is_finite() { axis.at(bar.value) } else { axis.start };
    svg.rect(&format!("br s{look}"), axis.start, bar_top, (end - axis.start).max(1.5), height);
    let mut text_from = end;
    if let Some((low, high)) = bar.interval {
        let (a, b, middle) = (axis.at(low), axis.at(high), bar_top + height / 2.0);
        svg.line("wh", (a, middle), (b, middle));
        svg.line("wh", (a, middle - 4.0), (a, middle + 4.0));
        svg.line("wh", (b, middle - 4.0), (b, middle + 4.0));
        text_from = text_from.max(b);
    }
    svg.text("lg strong", (text_from + 7.0, bar_top + height * 0.82), Anchor::Start, words);
}
