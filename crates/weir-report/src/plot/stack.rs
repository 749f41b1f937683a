//! Stacked bars: how wholes divide into the same few parts, each whole as long as every other.

use maud::Markup;

use super::labels::{LINE, Swatch, legend, write_name};
use super::svg::{Anchor, Svg, bold_width, text_width};
use super::{Form, LOOKS};

/// One whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Stack {
    /// What it is.
    pub label: String,
    /// What else is known of it, behind its name.
    pub note: String,
    /// The parts' sizes, in the order of [`StackFigure::parts`], in any unit; a part that is not finite is none.
    pub values: Vec<f64>,
}

/// Wholes below each other.
#[derive(Debug, Clone, PartialEq)]
pub struct StackFigure {
    /// Anchor in the page; letters, digits and hyphens.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// The sentence that a reader should take from it.
    pub finding: String,
    /// Names of the parts, from left to right, each with its look.
    pub parts: Vec<(String, usize)>,
    /// From top to bottom.
    pub stacks: Vec<Stack>,
}

/// Height of one bar with its label above it, in font sizes.
const ROW: f64 = 3.6;
/// Height of a bar, in font sizes.
const BAR: f64 = 1.6;
/// Room for the parts' names and the percentages of the axis, in font sizes.
const FOOT: f64 = 1.8;

/// Draws stacked bars for one form of page.
pub fn svg(figure: &StackFigure, form: Form) -> Markup {
    let font = form.font();
    let (left, right) = (2.0, form.width() - 2.0);
    let mut svg = Svg::default();
    let used = |part: usize| figure.stacks.iter().any(|s| share(s, part) > 0.0);
    let named = figure.parts.iter().enumerate().filter(|(part, _)| used(*part));
    let entries: Vec<(Swatch, String)> =
        named.map(|(_, (name, look))| (Swatch::Fill(*look), name.clone())).collect();
    let mut top = 2.0 + legend(&mut svg, &entries, left, 2.0, form);
    for stack in &figure.stacks {
        let baseline = top + font * 1.2;
        let behind = left + bold_width(&stack.label, font) + font * 0.8;
        let further = write_name(&mut svg, "lg strong", (left, baseline), &stack.label, form);
        top += further;
        let baseline = baseline + further;
        if further == 0.0 && behind + text_width(&stack.note, font) <= right {
            svg.text("tk", (behind, baseline), Anchor::Start, &stack.note);
        } else {
            let below = font * LINE;
            top += below + write_name(&mut svg, "tk", (left, baseline + below), &stack.note, form);
        }
        bar(&mut svg, figure, stack, (left, right), top + font * 1.6, font);
        top += font * ROW;
    }
    for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let anchor = match percent {
            0.0 => Anchor::Start,
            100.0 => Anchor::End,
            _ => Anchor::Middle,
        };
        let at = left + (right - left) * percent / 100.0;
        svg.text("tk", (at, top + font), anchor, &format!("{percent:.0} %"));
    }
    svg.finish(&figure.id, form, top + font * FOOT, &figure.title, &figure.finding)
}

fn share(stack: &Stack, part: usize) -> f64 {
    let usable = |v: &f64| v.is_finite() && *v > 0.0;
    let all: f64 = stack.values.iter().copied().filter(usable).sum();
    stack.values.get(part).copied().filter(usable).map_or(0.0, |v| v / all)
}

/// Whole percents, but what is not all of it is not called 100 %.
fn rounded(percent: f64) -> String {
    if (99.5..100.0).contains(&percent) {
        format!("{:.1}", percent.min(99.9))
    } else {
        format!("{percent:.0}")
    }
}

fn bar(svg: &mut Svg, figure: &StackFigure, stack: &Stack, (left, right): (f64, f64), top: f64, font: f64) {
    let height = font * BAR;
    let mut from = left;
    for (part, (name, look)) in figure.parts.iter().enumerate() {
        let share = share(stack, part);
        let width = (right - left) * share;
        if width <= 0.0 {
            continue;
        }
        // A hair of paper between neighbours; a sliver keeps its colour.
        svg.rect(&format!("br s{}", look % LOOKS), from, top, (width - 1.0).max(width.min(0.8)), height);
        let long = format!("{name} {} %", rounded(share * 100.0));
        let text = [long.as_str(), name.as_str()].into_iter().find(|t| bold_width(t, font) + 10.0 <= width);
        if let Some(text) = text {
            svg.text("in", (from + width / 2.0, top + height * 0.68), Anchor::Middle, text);
        }
        from += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_the_bar_and_nothing_hostile_or_infinite_gets_in() {
        let stack = |values: &[f64]| Stack {
            label: "<b>".to_string(),
            note: "n = 1".to_string(),
            values: values.to_vec(),
        };
        let figure = StackFigure {
            id: "a".to_string(),
            title: "t".to_string(),
            finding: "f".to_string(),
            parts: [("Q2G", 0), ("D2C", 1), ("M2D", 2)].map(|(n, l)| (n.to_string(), l)).to_vec(),
            stacks: vec![stack(&[1.0, 3.0, 0.0]), stack(&[f64::NAN, f64::INFINITY, -1.0]), stack(&[])],
        };
        for form in [Form::Wide, Form::Narrow] {
            let drawn = svg(&figure, form).into_string();
            assert!(drawn.contains("D2C 75 %") && drawn.contains("Q2G 25 %"), "{drawn}");
            // Two parts and two swatches.
            assert_eq!(drawn.matches("<rect").count(), 4, "{drawn}");
            assert!(!drawn.contains("<b>") && !drawn.contains("NaN") && !drawn.contains("M2D"), "{drawn}");
        }
    }
}
