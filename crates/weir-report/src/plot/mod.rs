//! Plots as SVG text, in the page's own font and colours.
//!
//! A [`Figure`] is data: one x axis, one or more panels below each other that share it, shaded regions. It is
//! drawn twice, for a wide page and for a phone, because one drawing scaled to both is legible on neither; the
//! style sheet shows the one that fits. Colours are CSS custom properties (`--s0`…, `--grid`, `--ink`), so that
//! one drawing serves light and dark screens and paper; series differ in colour, dash and marker.

mod bars;
mod cells;
mod draw;
pub mod heat;
mod labels;
mod map;
mod multiples;
mod place;
pub mod scale;
mod scatter;
mod small;
mod stack;
mod svg;
pub mod unit;

pub use bars::{Bar, BarFigure};
pub use cells::{CellFigure, HeatText};
pub use map::{MapCell, MapFigure, MapRow};
pub use multiples::{Cell, MultiplesFigure, Strip};
pub use scale::{Axis, Scale};
pub use scatter::{Level, NAMED_MOST, ScatterFigure, Spot};
pub use small::{SmallFigure, SmallPoint, SmallScales, svg as small_svg};
pub use stack::{Stack, StackFigure};
pub use unit::Unit;

use maud::Markup;

/// How many looks (colour, dash and marker together) are distinct; further ones repeat.
pub const LOOKS: usize = 6;

/// For which page a figure is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A column of text on a desk or on paper.
    Wide,
    /// A phone.
    Narrow,
}

impl Form {
    /// Height of the drawing area of a panel with height 1.
    fn full_height(self) -> f64 {
        match self {
            Form::Wide => 300.0,
            Form::Narrow => 230.0,
        }
    }

    /// Width of the view box, in CSS pixels at which text has its nominal size.
    pub fn width(self) -> f64 {
        match self {
            Form::Wide => 800.0,
            Form::Narrow => 352.0,
        }
    }

    /// Height of letters.
    pub fn font(self) -> f64 {
        match self {
            Form::Wide => 13.5,
            Form::Narrow => 12.0,
        }
    }

    /// The class that the style sheet shows or hides it by.
    pub fn class(self) -> &'static str {
        match self {
            Form::Wide => "wide",
            Form::Narrow => "narrow",
        }
    }
}

/// A plot: panels that share one x axis.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Anchor in the page; letters, digits and hyphens.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// The sentence that a reader should take from it; read out where the drawing is not seen.
    pub finding: String,
    /// The axis that all panels share.
    pub x: Axis,
    /// From top to bottom.
    pub panels: Vec<Panel>,
    /// Stretches of the x axis that are distinguished by a shade and a name, in order.
    pub regions: Vec<Region>,
}

/// One y axis and what is drawn against it.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The axis.
    pub y: Axis,
    /// Drawn in order.
    pub series: Vec<Series>,
    /// Drawn below the series.
    pub heat: Vec<HeatCell>,
    /// Lines that values are read against.
    pub references: Vec<Reference>,
    /// Share of the usual height: 1 for a plot on its own, less for one of several panels.
    pub height: f64,
}

impl Panel {
    /// A panel of series and nothing else.
    pub fn of(y: Axis, series: Vec<Series>, height: f64) -> Panel {
        Panel { y, series, heat: Vec::new(), references: Vec::new(), height }
    }
}

/// How the points of a series are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// Straight lines.
    Line,
    /// Each value holds until the next point.
    Step,
    /// Straight lines, and the points are not marked: a formula, not what was measured.
    Curve,
    /// Not at all.
    None,
}

/// Points of one kind.
#[derive(Debug, Clone)]
pub struct Series {
    /// Name at its end or in the legend.
    pub name: String,
    /// Colour, dash and marker.
    pub look: usize,
    /// How points are joined.
    pub join: Join,
    /// Fill the space down to the axis.
    pub area: bool,
    /// In data units; a `y` that is not finite breaks the line.
    pub points: Vec<(f64, f64)>,
    /// An interval around the points: x, low, high; one that is not finite breaks the band.
    pub band: Vec<(f64, f64, f64)>,
    /// Intervals of single points, drawn as bars: x, low, high.
    pub whiskers: Vec<(f64, f64, f64)>,
    /// From this point on the line is dotted: too few samples stand behind it.
    pub doubtful_from: Option<usize>,
    /// What each point says when pointed at, where name and value are not all there is to say; else empty.
    pub hints: Vec<String>,
}

impl Series {
    /// A line through points.
    pub fn line(name: impl Into<String>, look: usize, points: Vec<(f64, f64)>) -> Series {
        Series {
            name: name.into(),
            look,
            join: Join::Line,
            area: false,
            points,
            band: Vec::new(),
            whiskers: Vec::new(),
            doubtful_from: None,
            hints: Vec::new(),
        }
    }
}

/// A count over a rectangle of the panel, shown as a shade.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeatCell {
    /// From and to on the x axis.
    pub x: (f64, f64),
    /// From and to on the y axis.
    pub y: (f64, f64),
    /// How many.
    pub count: u64,
}

/// A line across the panel.
#[derive(Debug, Clone)]
pub struct Reference {
    /// At a value of x (a vertical line) or of y.
    pub at: At,
    /// What the line means.
    pub label: String,
}

/// Where a reference line lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum At {
    /// A vertical line.
    X(f64),
    /// A horizontal line.
    Y(f64),
}

/// A named stretch of the x axis.
#[derive(Debug, Clone)]
pub struct Region {
    /// Start, in units of x.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Its name.
    pub label: String,
    /// How it is told from its neighbours.
    pub tint: Tint,
    /// Whether its name may be left out where it does not fit.
    pub optional: bool,
    /// Stretches within it that are distinguished in a second row, in order.
    pub parts: Vec<Part>,
}

/// A stretch within a region.
#[derive(Debug, Clone)]
pub struct Part {
    /// Start, in units of x.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Its name.
    pub label: String,
    /// A short form, for narrow pages.
    pub short: String,
}

/// The shade of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    /// None.
    Plain,
    /// Something disturbs what is measured.
    Disturbed,
    /// Something disturbs, and something is done about it.
    Eased,
}

/// Draws a figure for one form of page.
pub fn svg(figure: &Figure, form: Form) -> Markup {
    draw::figure(figure, form)
}

/// Draws bars for one form of page.
pub fn bars_svg(figure: &BarFigure, form: Form) -> Markup {
    bars::svg(figure, form)
}

/// Draws a heat map of cells for one form of page.
pub fn cells_svg(figure: &CellFigure, form: Form) -> Markup {
    cells::svg(figure, form)
}

/// Draws a heat map of rows over time for one form of page.
pub fn map_svg(figure: &MapFigure, form: Form) -> Markup {
    map::svg(figure, form)
}

/// Draws stacked bars for one form of page.
pub fn stack_svg(figure: &StackFigure, form: Form) -> Markup {
    stack::svg(figure, form)
}

/// Draws named points over two axes for one form of page.
pub fn scatter_svg(figure: &ScatterFigure, form: Form) -> Markup {
    scatter::svg(figure, form)
}

/// Draws small multiples for one form of page.
pub fn multiples_svg(figure: &MultiplesFigure, form: Form) -> Markup {
    multiples::svg(figure, form)
}
