//! Horizontal bars: a few named values side by side, each with its figure in words.

use maud::Markup;

use super::labels::{LINE, further_lines, write_name};
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
pub fn svg(figure: &BarFigure, form: Form) -> Markup {
    let font = form.font();
    let bars = || figure.groups.iter().flat_map(|g| &g.1);
    let values = bars().flat_map(|b| [b.value, b.interval.map_or(b.value, |i| i.1)]);
    let (low, high) = figure.axis.range(values);
    let words = |b: &Bar| words_of(b, figure);
    let room = bars().map(|b| bold_width(&words(b), font)).fold(0.0, f64::max) + 12.0;
    // Words that leave the bars too little room stand above them.
    let apart = room > form.width() * 0.65;
    let end = if apart { form.width() - 12.0 } else { form.width() - room };
    let placed = Placed { axis: figure.axis.clone(), low, high, start: 4.0, end };
    let names: f64 = figure.groups.iter().map(|g| group_height(g, form)).sum();
    let lines = |b: &Bar| further_lines(&words(b), form) + font * LINE;
    let rows = names + if apart { bars().map(lines).sum() } else { 0.0 };
    let ticks = placed.ticks(|t| {
        t.windows(2).all(|p| placed.at(p[1].0) - placed.at(p[0].0) >= text_width(&p[1].1, font) + 14.0)
    });

    let mut svg = Svg::default();
    for (value, text) in &ticks {
        svg.line("gm", (placed.at(*value), 2.0), (placed.at(*value), rows + 4.0));
        let half = text_width(text, font) / 2.0;
        let at = placed.at(*value).min(form.width() - half).max(half);
        svg.text("tk", (at, rows + font * 1.5), Anchor::Middle, text);
    }
    svg.line("ax", (placed.start, 2.0), (placed.start, rows + 4.0));
    let mut top = 2.0;
    for (name, bars) in &figure.groups {
        if !name.is_empty() {
            top +=
                font * 1.7 + write_name(&mut svg, "cap", (placed.start + 6.0, top + font * 1.3), name, form);
        }
        for bar in bars {
            top += write_name(&mut svg, "lg", (placed.start + 6.0, top + font), &bar.label, form);
            if apart {
                let baseline = top + font * (1.0 + LINE);
                write_name(&mut svg, "lg strong", (placed.start + 6.0, baseline), &words(bar), form);
                top += lines(bar);
            }
            let behind = if apart { String::new() } else { words(bar) };
            draw_bar(&mut svg, bar, &behind, &placed, top, font);
            top += font * ROW;
        }
        top += font * 0.5;
    }
    let caption = figure.axis.caption(high);
    svg.text("cap", (placed.start, rows + font * 3.1), Anchor::Start, &caption);
    svg.finish(&figure.id, form, rows + font * 3.6, &figure.title, &figure.finding)
}

fn group_height((name, bars): &(String, Vec<Bar>), form: Form) -> f64 {
    let names = bars.iter().map(|bar| &bar.label).chain([name]);
    let further: f64 = names.map(|name| further_lines(name, form)).sum();
    further + form.font() * (ROW * bars.len() as f64 + 0.5 + if name.is_empty() { 0.0 } else { 1.7 })
}

fn words_of(bar: &Bar, figure: &BarFigure) -> String {
    let value = figure.axis.unit.value(bar.value);
    if bar.note.is_empty() { value } else { format!("{value} · {}", bar.note) }
}

fn draw_bar(svg: &mut Svg, bar: &Bar, words: &str, axis: &Placed, top: f64, font: f64) {
    let look = bar.look % LOOKS;
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
    if !words.is_empty() {
        svg.text("lg strong", (text_from + 7.0, bar_top + height * 0.82), Anchor::Start, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Scale, Unit};

    #[test]
    fn a_long_name_takes_further_lines_and_the_drawing_grows_by_them() {
        let drawn = |label: &str| {
            let bar =
                Bar { label: label.to_string(), value: 3.0, interval: None, note: String::new(), look: 0 };
            let figure = BarFigure {
                id: "a".to_string(),
                title: "t".to_string(),
                finding: "f".to_string(),
                axis: Axis::y("rate", Unit::Iops, Scale::Linear),
                groups: vec![(label.to_string(), vec![bar])],
            };
            let svg = svg(&figure, Form::Narrow).into_string();
            let height = svg.split_once("viewBox=\"0 0 352 ").unwrap().1.split_once('"').unwrap().0;
            let bar_at =
                svg.split_once("<rect").unwrap().1.split_once(" y=\"").unwrap().1.split_once('"').unwrap().0;
            (svg.matches("sectors").count(), height.parse::<f64>().unwrap(), bar_at.parse::<f64>().unwrap())
        };
        let name = "vm.dirty_bytes=15000000 vm.dirty_background_bytes=7500000 sda/max_sectors_kb=128";
        let (short, long) = (drawn("sda/max_sectors_kb=128"), drawn(name));
        // Group and bar have the name, in three lines each; both are above the bar.
        let grown = 2.0 * 2.0 * LINE * Form::Narrow.font();
        assert_eq!((short.0, long.0), (2, 2));
        for (of_long, of_short) in [(long.1, short.1), (long.2, short.2)] {
            assert!((of_long - of_short - grown).abs() < 0.2, "{of_long} {of_short}");
        }
    }
}
