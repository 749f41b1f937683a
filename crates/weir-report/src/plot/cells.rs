//! A heat map of few cells, each with its value: rows and columns have names, not an axis.

use maud::Markup;

use super::Form;
use super::labels::write_name;
use super::svg::{Anchor, Svg, text_width};

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatText {
    /// What stands in it.
    pub text: String,
    /// Its shade, from 0 for the least to [`super::heat::SHADES`] - 1.
    pub shade: usize,
    /// What it says when pointed at.
    pub hint: String,
}

/// Rows of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellFigure {
    /// Anchor in the page; letters, digits and hyphens.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// The sentence that a reader should take from it.
    pub finding: String,
    /// What the rows' names mean.
    pub rows_name: String,
    /// What the columns' names mean.
    pub columns_name: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Names of the rows with their cells, one for each column; a cell without a value is left blank.
    pub rows: Vec<(String, Vec<Option<HeatText>>)>,
}

/// Height of a row, in font sizes.
const ROW: f64 = 2.2;
/// From this shade on the paper's colour is legible, and the ink's is not.
const DARK: usize = 3;

/// Draws cells for one form of page.
pub fn svg(figure: &CellFigure, form: Form) -> Markup {
    let font = form.font();
    let mut svg = Svg::default();
    let names = figure.rows.iter().map(|(name, _)| name).chain([&figure.rows_name]);
    let left = names.map(|name| text_width(name, font)).fold(0.0, f64::max) + 10.0;
    let width = (form.width() - left - 2.0) / figure.columns.len().max(1) as f64;
    let mut top = 2.0;
    top += font * 1.6 + write_name(&mut svg, "cap", (2.0, top + font), &figure.columns_name, form);
    svg.text("cap", (2.0, top + font), Anchor::Start, &figure.rows_name);
    for (at, name) in figure.columns.iter().enumerate() {
        svg.text("tk", (left + (at as f64 + 0.5) * width, top + font), Anchor::Middle, name);
    }
    top += font * 1.6;
    for (name, cells) in &figure.rows {
        let baseline = top + font * ROW * 0.65;
        svg.text("tk", (left - 8.0, baseline), Anchor::End, name);
        for (at, cell) in cells.iter().enumerate() {
            if let Some(cell) = cell {
                draw(&mut svg, cell, (left + at as f64 * width, top), (width, font * ROW), font);
            }
        }
        top += font * ROW;
    }
    svg.finish(&figure.id, form, top + 4.0, &figure.title, &figure.finding)
}

/// A cell with a hair of paper around it. A value that is too wide for it is told by shade and hint alone.
fn draw(svg: &mut Svg, cell: &HeatText, (x, y): (f64, f64), (width, height): (f64, f64), font: f64) {
    let class = format!("h{}", cell.shade.min(super::heat::SHADES - 1) + 1);
    let mut inner = Svg::default();
    inner.rect(&class, x, y, width - 1.5, height - 1.5);
    let value = shortest(&cell.text, width - 4.0, font);
    let ink = if cell.shade >= DARK { "in" } else { "lg" };
    if let Some(value) = value {
        inner.text(ink, (x + (width - 1.5) / 2.0, y + height * 0.62), Anchor::Middle, &value);
    }
    svg.group(inner, &cell.hint);
}

/// `1.23 ms`, else `1.2 ms`, else `1ms`: as much of a figure as has room.
fn shortest(text: &str, room: f64, font: f64) -> Option<String> {
    let rounded = |digits: usize| {
        let (number, unit) = text.split_once(' ')?;
        let value: f64 = number.parse().ok()?;
        let digits = if value < 10.0 { digits } else { 0 };
        Some(format!("{value:.digits$} {unit}"))
    };
    let forms =
        [Some(text.to_string()), rounded(1), rounded(0), rounded(0).map(|text| text.replace(' ', ""))];
    forms.into_iter().flatten().find(|form| text_width(form, font) <= room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shortened_before_they_are_left_out() {
        for (room, shown) in [
            (200.0, Some("1.23 ms")),
            (text_width("1.2 ms", 12.0), Some("1.2 ms")),
            (text_width("1ms", 12.0), Some("1ms")),
            (3.0, None),
        ] {
            assert_eq!(shortest("1.23 ms", room, 12.0).as_deref(), shown, "{room}");
        }
        assert_eq!(shortest("hostile", 1.0, 12.0), None);
    }

    #[test]
    fn every_cell_has_its_hint_and_blank_ones_are_none() {
        let cell =
            |text: &str, shade| Some(HeatText { text: text.into(), shade, hint: format!("<b>{text}") });
        let figure = CellFigure {
            id: "a".into(),
            title: "t".into(),
            finding: "f".into(),
            rows_name: "writes".into(),
            columns_name: "load".into(),
            columns: vec!["30 %".into(), "edge".into()],
            rows: vec![
                ("0 %".into(), vec![cell("1 ms", 0), cell("9 ms", 99)]),
                ("50 %".into(), vec![None, None]),
            ],
        };
        for form in [Form::Wide, Form::Narrow] {
            let drawn = svg(&figure, form).into_string();
            assert_eq!(drawn.matches("<rect").count(), 2, "{drawn}");
            assert!(drawn.contains("&lt;b&gt;9 ms") && drawn.contains("class=\"h6\""), "{drawn}");
        }
    }
}
