//! A heat map of many named rows over time, with shades that stand for classes: rows are low, and cells have no text.

use maud::Markup;

use super::Form;
use super::labels::{Swatch, legend};
use super::svg::{Anchor, Svg, bold_width, text_width};

/// One cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapCell {
    /// Its shade, from 0 for the least to [`super::heat::SHADES`] - 1.
    pub shade: usize,
    /// What it says when pointed at.
    pub hint: String,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapRow {
    /// Its name; one that is too long is cut, and whole when pointed at.
    pub name: String,
    /// Whether the name is set in bold.
    pub strong: bool,
    /// A cell for each column; one without a value is left blank.
    pub cells: Vec<Option<MapCell>>,
}

/// Rows over time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapFigure {
    /// Anchor in the page; letters, digits and hyphens.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// The sentence that a reader should take from it.
    pub finding: String,
    /// What the columns are.
    pub columns_name: String,
    /// Short names of columns; those that have no room are left out.
    pub columns: Vec<String>,
    /// From top to bottom.
    pub rows: Vec<MapRow>,
    /// What each shade means, from the least.
    pub shades: Vec<String>,
}

/// Height of a row, in font sizes.
const ROW: f64 = 1.15;
/// Largest share of the width that names take.
const NAMES: f64 = 0.36;

/// Draws a map for one form of page.
pub fn svg(figure: &MapFigure, form: Form) -> Markup {
    let font = form.font();
    let mut svg = Svg::default();
    let shades = figure.shades.iter().enumerate();
    let entries: Vec<(Swatch, String)> =
        shades.map(|(shade, text)| (Swatch::Shade(shade), text.clone())).collect();
    let mut top = 2.0 + legend(&mut svg, &entries, 2.0, 2.0, form) + font * 0.5;
    let names = figure.rows.iter().map(|row| bold_width(&row.name, font)).fold(0.0, f64::max);
    let left = names.min(form.width() * NAMES) + 10.0;
    let width = (form.width() - left - 2.0) / figure.columns.len().max(1) as f64;
    svg.text("cap", (left, top + font), Anchor::Start, &figure.columns_name);
    top += font * 1.5;
    let mut free_from = left;
    for (at, name) in figure.columns.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        let x = left + at as f64 * width;
        let end = x + text_width(name, font);
        if x >= free_from && end <= form.width() {
            svg.text("tk", (x, top + font), Anchor::Start, name);
            svg.line("ax", (x, top + font * 1.25), (x, top + font * 1.5));
            free_from = end + font;
        }
    }
    top += font * 1.6;
    for row in &figure.rows {
        let mut name = Svg::default();
        let class = if row.strong { "lg strong" } else { "tk" };
        // Bold ones are wider.
        let wider = if row.strong { bold_width("m", 1.0) / text_width("m", 1.0) } else { 1.0 };
        let shown = cut(&row.name, (left - 9.9) / wider, font);
        name.text(class, (left - 8.0, top + font * 0.9), Anchor::End, &shown);
        svg.group(name, &row.name);
        for (at, cell) in row.cells.iter().enumerate() {
            if let Some(cell) = cell {
                let class = format!("h{}", cell.shade.min(super::heat::SHADES - 1) + 1);
                let x = left + at as f64 * width;
                svg.cell(&class, (x, top), (width - 1.0, font * ROW - 1.0), &cell.hint);
            }
        }
        top += font * ROW;
    }
    svg.finish(&figure.id, form, top + 4.0, &figure.title, &figure.finding)
}

/// As much of a name as has room; its end, which tells devices of a host from each other, stays.
pub fn cut(name: &str, room: f64, font: f64) -> String {
    if text_width(name, font) <= room {
        return name.to_string();
    }
    let all: Vec<char> = name.chars().collect();
    let shortened = |kept: usize| -> String {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        all[..head].iter().chain(['…'].iter()).chain(&all[all.len() - tail..]).collect()
    };
    // Names of hostile length are not measured letter by letter from the end.
    let most = all.len().min(80);
    (1..most).rev().map(shortened).find(|text| text_width(text, font) <= room).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(cut("db1 sda", 200.0, 12.0), "db1 sda");
        let short = cut("database-server-017.example.com nvme0n1", 110.0, 12.0);
        assert!(short.starts_with("datab") && short.ends_with("0n1") && short.contains('…'), "{short}");
        assert!(text_width(&short, 12.0) <= 110.0);
        assert!(text_width(&cut(&"x".repeat(100_000), 110.0, 12.0), 12.0) <= 110.0);
        assert_eq!(cut("name", 0.0, 12.0), "");
    }

    #[test]
    fn cells_lie_in_their_columns_and_blank_ones_are_not_drawn() {
        let cell = |shade| Some(MapCell { shade, hint: "\"><img src=x>".into() });
        let figure = MapFigure {
            id: "m".into(),
            title: "t".into(),
            finding: "f".into(),
            columns_name: "time".into(),
            columns: vec!["04-01".into(), String::new(), "04-02".into(), String::new()],
            rows: vec![MapRow {
                name: "<script>alert(1)</script>".into(),
                strong: true,
                cells: vec![cell(0), None, cell(3), cell(99)],
            }],
            shades: vec!["as usual".into()],
        };
        for form in [Form::Wide, Form::Narrow] {
            let drawn = svg(&figure, form).into_string();
            // Of the legend one.
            assert_eq!(drawn.matches("<rect").count(), 4, "{drawn}");
            assert!(drawn.contains("class=\"h4\"") && drawn.contains("class=\"h6\""), "{drawn}");
            assert!(!drawn.contains("<script") && !drawn.contains("<img"), "{drawn}");
            let lefts: Vec<f64> = drawn
                .split("<rect class=\"h")
                .skip(2)
                .map(|part| part.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
                .collect();
            let step = lefts[2] - lefts[1];
            assert!((lefts[1] - lefts[0] - 2.0 * step).abs() < 0.3, "{lefts:?}");
            assert!(lefts[2] + step <= form.width() + 0.2, "{lefts:?}");
        }
    }
}
