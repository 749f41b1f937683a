//! Small multiples: one cell for each of many runs, each with the same few strips over time, all on the same scales.

use maud::Markup;

use super::labels::{Swatch, legend, polygon, write_name};
use super::scale::{Axis, Placed};
use super::svg::{Anchor, Svg, polyline, text_width};
use super::{Form, LOOKS};

/// One strip of every cell.
#[derive(Debug, Clone)]
pub struct Strip {
    /// What it shows.
    pub axis: Axis,
    /// Colour.
    pub look: usize,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Its name: the number of the trial.
    pub label: String,
    /// Something to remark: the trial was spoilt.
    pub remark: String,
    /// For each strip: points in the axis's unit; a `y` that is not finite breaks the line.
    pub courses: Vec<Vec<(f64, f64)>>,
}

/// Cells in named groups.
#[derive(Debug, Clone)]
pub struct MultiplesFigure {
    /// Anchor in the page; letters, digits and hyphens.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// The sentence that a reader should take from it.
    pub finding: String,
    /// From top to bottom of each cell.
    pub strips: Vec<Strip>,
    /// Longest time of any cell, in seconds.
    pub seconds: f64,
    /// Groups with their cells, in order.
    pub groups: Vec<(String, Vec<Cell>)>,
}

/// Height of a strip, in font sizes.
const STRIP: f64 = 1.9;

/// Most cells beside each other.
fn columns(figure: &MultiplesFigure, form: Form) -> usize {
    let most = figure.groups.iter().map(|g| g.1.len()).max().unwrap_or(1);
    match form {
        Form::Wide => most.clamp(2, 5),
        Form::Narrow => most.clamp(1, 2),
    }
}

/// Draws all cells for one form of page.
pub fn svg(figure: &MultiplesFigure, form: Form) -> Markup {
    let font = form.font();
    let mut svg = Svg::default();
    let scales: Vec<Placed> = (0..figure.strips.len()).map(|i| scale(figure, i, font)).collect();
    let entries: Vec<(Swatch, String)> = figure
        .strips
        .iter()
        .zip(&scales)
        .map(|(strip, scale)| (Swatch::Fill(strip.look), range(scale)))
        .collect();
    let mut top = 2.0;
    top += legend(&mut svg, &entries, 2.0, top, form) + font * 0.4;
    let count = columns(figure, form);
    let width = (form.width() - 14.0 * (count - 1) as f64) / count as f64;
    let height = font * (1.45 + STRIP * figure.strips.len() as f64 + 0.5);
    for (name, cells) in &figure.groups {
        top += font * 1.7 + write_name(&mut svg, "cap", (2.0, top + font * 1.2), name, form);
        for row in cells.chunks(count) {
            for (i, cell) in row.iter().enumerate() {
                let left = i as f64 * (width + 14.0);
                draw(&mut svg, figure, cell, &scales, (left, top, width), font);
            }
            top += height;
        }
        top += font * 0.5;
    }
    svg.finish(&figure.id, form, top, &figure.title, &figure.finding)
}

/// The scale that all cells share for one strip.
fn scale(figure: &MultiplesFigure, strip: usize, font: f64) -> Placed {
    let axis = figure.strips[strip].axis.clone();
    let courses = figure.groups.iter().flat_map(|g| &g.1).filter_map(|cell| cell.courses.get(strip));
    let (low, high) = axis.range(courses.flatten().map(|point| point.1));
    Placed { axis, low, high, start: font * STRIP - 4.0, end: 0.0 }
}

/// `commits (0 to 800 operations/s)`.
fn range(scale: &Placed) -> String {
    let (axis, unit) = (&scale.axis, scale.axis.unit);
    let low = if axis.scale == super::Scale::LogOrZero { 0.0 } else { scale.low };
    let log = if axis.scale == super::Scale::Linear { "" } else { ", log scale" };
    let (low, high) = (unit.tick(low, scale.high), unit.tick(scale.high, scale.high));
    let caption = unit.caption(scale.high);
    let unit = if caption.is_empty() { String::new() } else { format!(" {caption}") };
    format!("{} ({low} to {high}{unit}{log})", axis.title)
}

fn draw(
    svg: &mut Svg,
    figure: &MultiplesFigure,
    cell: &Cell,
    scales: &[Placed],
    (left, top, width): (f64, f64, f64),
    font: f64,
) {
    svg.text("tk", (left + 2.0, top + font), Anchor::Start, &cell.label);
    if !cell.remark.is_empty() {
        let at = left + 2.0 + text_width(&cell.label, font) + font * 0.6;
        svg.text("rg", (at, top + font), Anchor::Start, &cell.remark);
    }
    for (i, (scale, course)) in scales.iter().zip(&cell.courses).enumerate() {
        let foot = top + font * (1.45 + STRIP * (i + 1) as f64) - 4.0;
        let y = Placed { start: foot, end: foot - (scale.start - scale.end), ..scale.clone() };
        let x = |seconds: f64| left + width * (seconds / figure.seconds.max(1e-9)).min(1.0);
        svg.line("gr", (left, foot), (left + width, foot));
        for run in course.split(|p| !p.1.is_finite()).filter(|run| !run.is_empty()) {
            let corners: Vec<(f64, f64)> = run.iter().map(|p| (x(p.0), y.at(p.1))).collect();
            let look = figure.strips[i].look % LOOKS;
            let floor = [corners.last(), corners.first()].into_iter().flatten().map(|p| (p.0, foot));
            let floor: Vec<(f64, f64)> = floor.collect();
            svg.path(&format!("ar s{look}"), &polygon(corners.iter().copied(), floor.into_iter()));
            svg.path(&format!("ln solid thin s{look}"), &polyline(&corners));
        }
    }
}
