//! Where names go: at the ends of lines, in a legend that wraps, above the regions they name.

use super::scale::Placed;
use super::svg::{Anchor, Svg, bold_width, number, text_width};
use super::{Form, LOOKS, Panel, Part, Region};

/// Width of a legend's swatch with the space behind it.
const SWATCH: f64 = 34.0;
/// Space between two entries of a legend.
const BETWEEN: f64 = 18.0;
/// Widest name that is written at the end of its line.
const END_LABEL_MOST: f64 = 170.0;

/// Room that names at the right ends of lines need; none where a legend serves better.
pub fn room_at_end(panels: &[Panel], form: Form) -> Option<f64> {
    if form == Form::Narrow {
        return None;
    }
    let mut widest: f64 = 0.0;
    for panel in panels {
        let rows = panel.series.len() as f64 * form.font() * 1.25;
        if rows > panel.height * form.full_height() {
            return None;
        }
        let named = panel.series.iter().filter(|_| panel.series.len() > 1);
        widest = named.map(|s| bold_width(&s.name, form.font())).fold(widest, f64::max);
    }
    (widest > 0.0 && widest <= END_LABEL_MOST).then_some(widest + 14.0)
}

/// Moves labels apart so that each has `gap`, within `top..=bottom`, keeping their order.
pub fn spread(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut placed = wanted.to_vec();
    let mut free_from = top;
    for i in &order {
        placed[*i] = wanted[*i].max(free_from);
        free_from = placed[*i] + gap;
    }
    let mut free_to = bottom;
    for i in order.iter().rev() {
        placed[*i] = placed[*i].min(free_to);
        free_to = placed[*i] - gap;
    }
    placed
}

/// Writes each series' name at the end of its line.
pub fn at_ends(svg: &mut Svg, panel: &Panel, x: &Placed, y: &Placed, font: f64) {
    let last = |points: &[(f64, f64)]| points.iter().rev().find(|p| p.1.is_finite()).copied();
    let ends: Vec<(usize, (f64, f64))> =
        panel.series.iter().enumerate().filter_map(|(i, s)| last(&s.points).map(|p| (i, p))).collect();
    let wanted: Vec<f64> = ends.iter().map(|(_, p)| y.at(p.1)).collect();
    let placed = spread(&wanted, font * 1.2, y.end, y.start);
    for ((i, point), label_y) in ends.iter().zip(placed) {
        let series = &panel.series[*i];
        let (from, look) = (x.at(point.0), series.look % LOOKS);
        let far = x.end - from > 12.0 || (label_y - y.at(point.1)).abs() > font * 0.6;
        if far {
            svg.line(&format!("lead s{look}"), (from + 5.0, y.at(point.1)), (x.end + 7.0, label_y));
        }
        let class = format!("lb s{look}");
        svg.text(&class, (x.end + 10.0, label_y + font * 0.35), Anchor::Start, &series.name);
    }
}

/// What stands before an entry of a legend.
pub enum Swatch {
    /// A line with its marker.
    Look(usize),
    /// A line alone.
    Line(usize),
    /// A marker alone.
    Marker(usize),
    /// A colour alone.
    Fill(usize),
    /// A letter or short form that stands in the drawing.
    Text(String),
    /// The shades of a heat map.
    Shades,
    /// One of them, from 0.
    Shade(usize),
}

/// Draws entries from left to right, wrapping, and returns the height used.
pub fn legend(svg: &mut Svg, entries: &[(Swatch, String)], left: f64, top: f64, form: Form) -> f64 {
    let (font, row) = (form.font(), form.font() * 1.55);
    let (mut x, mut y) = (left, top);
    for (swatch, text) in entries {
        let swatch_width = match swatch {
            Swatch::Look(_) | Swatch::Line(_) => SWATCH,
            Swatch::Marker(_) | Swatch::Fill(_) | Swatch::Shade(_) => font * 1.4,
            Swatch::Text(mark) => text_width(mark, font) + font * 0.6,
            Swatch::Shades => super::heat::SHADES as f64 * 13.0 + 6.0,
        };
        let width = swatch_width + text_width(text, font);
        if x > left && x + width > form.width() - 2.0 {
            x = left;
            y += row;
        }
        draw_swatch(svg, swatch, x, y + font * 0.75);
        svg.text("lg", (x + swatch_width, y + font * 1.1), Anchor::Start, text);
        x += width + BETWEEN;
    }
    if entries.is_empty() { 0.0 } else { y + row - top }
}

fn draw_swatch(svg: &mut Svg, swatch: &Swatch, x: f64, y: f64) {
    match swatch {
        Swatch::Look(look) => {
            draw_swatch(svg, &Swatch::Line(*look), x, y);
            svg.marker(*look, (x + 14.0, y), "");
        }
        Swatch::Line(look) => svg.line(&format!("ln s{}", look % LOOKS), (x, y), (x + 28.0, y)),
        Swatch::Marker(look) => svg.marker(*look, (x + 6.0, y), ""),
        Swatch::Fill(look) => svg.rect(&format!("br s{}", look % LOOKS), x, y - 5.0, 12.0, 11.0),
        Swatch::Shade(shade) => svg.rect(&format!("h{}", shade + 1), x, y - 6.0, 13.0, 12.0),
        Swatch::Text(mark) => svg.text("lg strong", (x, y + 4.5), Anchor::Start, mark),
        Swatch::Shades => {
            for i in 0..super::heat::SHADES {
                svg.rect(&format!("h{}", i + 1), x + 13.0 * i as f64, y - 6.0, 13.0, 12.0);
            }
        }
    }
}

/// The names of regions, either in full above each or as letters with a key, and of their parts.
pub struct RegionNames {
    /// Lines above each region.
    lines: Vec<Vec<String>>,
    /// What the letters mean, where names do not fit.
    key: Vec<(String, String)>,
    /// Names of parts with their middle, in units of x.
    parts: Vec<(f64, String)>,
}

impl RegionNames {
    /// Wraps names into the room above their regions, if three lines do.
    pub fn of(regions: &[Region], x: &Placed, font: f64) -> RegionNames {
        let room = |r: &Region| x.at(r.to) - x.at(r.from) - 6.0;
        let fitting = |r: &Region| wrap(&r.label, room(r), font, 3).or(r.optional.then(Vec::new));
        let wrapped: Option<Vec<Vec<String>>> = regions.iter().map(fitting).collect();
        let letters = || ('A'..='Z').cycle();
        let (parts, short) = part_names(regions, x, font);
        let (lines, mut key) = match wrapped {
            Some(lines) => (lines, Vec::new()),
            None => (
                letters().take(regions.len()).map(|c| vec![c.to_string()]).collect(),
                letters().zip(regions).map(|(c, r)| (c.to_string(), r.label.clone())).collect(),
            ),
        };
        if short {
            let explained = regions.iter().flat_map(|r| &r.parts).find(|p| !p.short.is_empty());
            key.extend(explained.map(|p| (p.short.clone(), format!("= {}", p.label))));
        }
        RegionNames { lines, key, parts }
    }

    /// Entries of the legend that explain letters.
    pub fn key(&self) -> impl Iterator<Item = (Swatch, String)> + '_ {
        self.key.iter().map(|(mark, text)| (Swatch::Text(mark.clone()), text.clone()))
    }

    /// Rows of names, without those of parts.
    fn name_rows(&self) -> usize {
        self.lines.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Height that all rows take.
    pub fn height(&self, font: f64) -> f64 {
        (self.name_rows() + usize::from(!self.parts.is_empty())) as f64 * font * 1.25
    }

    /// Writes the names, the first row at `top`.
    pub fn draw(&self, svg: &mut Svg, regions: &[Region], x: &Placed, top: f64, font: f64) {
        let row = font * 1.25;
        for (region, lines) in regions.iter().zip(&self.lines) {
            let middle = (x.at(region.from) + x.at(region.to)) / 2.0;
            let first = top + (self.name_rows() - lines.len()) as f64 * row;
            for (i, line) in lines.iter().enumerate() {
                svg.text("rg", (middle, first + (i as f64 + 0.85) * row), Anchor::Middle, line);
            }
        }
        for (middle, name) in &self.parts {
            let baseline = top + (self.name_rows() as f64 + 0.8) * row;
            svg.text("tk", (x.at(*middle), baseline), Anchor::Middle, name);
        }
    }
}

/// Names of parts in full, or in short where the full ones do not fit; those without a short form, or whose short
/// form does not fit either, are left out. Also says whether short forms were used.
fn part_names(regions: &[Region], x: &Placed, font: f64) -> (Vec<(f64, String)>, bool) {
    let parts: Vec<&Part> = regions.iter().flat_map(|r| &r.parts).collect();
    let fits = |p: &Part, text: &str| text_width(text, font) + 4.0 <= x.at(p.to) - x.at(p.from);
    let short = parts.iter().any(|p| !p.short.is_empty() && !fits(p, &p.label));
    let text = |p: &Part| if short { p.short.clone() } else { p.label.clone() };
    let placed = parts.iter().map(|p| (p, text(p))).filter(|(p, text)| !text.is_empty() && fits(p, text));
    (placed.map(|(p, text)| ((p.from + p.to) / 2.0, text)).collect(), short)
}

/// Distance between the lines of a name, in font sizes.
pub const LINE: f64 = 1.25;

/// A name in as many lines as it takes on a page.
fn name_lines(name: &str, form: Form) -> Vec<String> {
    // Names may be bold.
    let width = (form.width() - 10.0) / bold_width("m", 1.0);
    wrap(name, width, form.font(), usize::MAX).unwrap_or_else(|| vec![name.to_string()])
}

/// Height that a name takes beyond its first line.
pub fn further_lines(name: &str, form: Form) -> f64 {
    (name_lines(name, form).len() - 1) as f64 * LINE * form.font()
}

/// Writes a name from the baseline of its first line on, and returns the height it takes beyond that line.
pub fn write_name(svg: &mut Svg, class: &str, (x, baseline): (f64, f64), name: &str, form: Form) -> f64 {
    for (i, line) in name_lines(name, form).iter().enumerate() {
        svg.text(class, (x, baseline + i as f64 * LINE * form.font()), Anchor::Start, line);
    }
    further_lines(name, form)
}

/// Breaks text at spaces into at most `most` lines of a width; `None` if it does not fit.
fn wrap(text: &str, width: f64, font: f64, most: usize) -> Option<Vec<String>> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut()?;
        let longer = if line.is_empty() { word.to_string() } else { format!("{line} {word}") };
        if text_width(&longer, font) <= width {
            *line = longer;
        } else if line.is_empty() || text_width(word, font) > width {
            return None;
        } else {
            lines.push(word.to_string());
        }
    }
    (lines.len() <= most).then_some(lines)
}

/// The path of a filled area between a line and a floor, or between two lines.
pub fn polygon(there: impl Iterator<Item = (f64, f64)>, back: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (i, (x, y)) in there.chain(back).enumerate() {
        d.push(if i == 0 { 'M' } else { 'L' });
        d.push_str(&format!("{} {}", number(x), number(y)));
    }
    if d.is_empty() { d } else { d + "z" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spread_labels_keep_their_distance_where_there_is_room(wanted in prop::collection::vec(0.0f64..200.0, 1..9)) {
            let mut placed = spread(&wanted, 16.0, 0.0, 200.0);
            placed.sort_by(f64::total_cmp);
            for pair in placed.windows(2) {
                prop_assert!(pair[1] - pair[0] >= 15.999, "{placed:?}");
            }
            prop_assert!(placed.iter().all(|p| (-0.001..=200.001).contains(p)), "{placed:?}");
        }
    }

    #[test]
    fn names_wrap_or_give_way_to_letters() {
        assert_eq!(wrap("flood + dirty_bytes 15 MB", 100.0, 12.0, 3).map(|l| l.len()), Some(3));
        assert_eq!(wrap("idle", 10.0, 12.0, 3), None);
    }
}
