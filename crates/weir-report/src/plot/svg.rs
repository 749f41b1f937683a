//! The few SVG elements that plots are made of, as text.

use maud::{Markup, PreEscaped, Render, html};

/// A coordinate: one decimal is a tenth of a pixel.
pub fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

/// How wide a text is at a font size. Widths are those of a wide sans-serif face, so that narrower ones fit too.
pub fn text_width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        ' ' | '.' | ',' | ':' | 'i' | 'l' | 'j' | '|' | '\'' => 0.33,
        't' | 'f' | 'r' | '(' | ')' | '/' | '-' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 1.0,
        c if c.is_ascii_uppercase() => 0.70,
        _ => 0.62,
    };
    text.chars().map(em).sum::<f64>() * size
}

/// The same for bold letters.
pub fn bold_width(text: &str, size: f64) -> f64 {
    text_width(text, size) * 1.12
}

/// A path through places on the drawing.
pub fn polyline(corners: &[(f64, f64)]) -> String {
    let mut d = String::with_capacity(corners.len() * 10);
    for (i, (x, y)) in corners.iter().enumerate() {
        d.push_str(match i {
            0 => "M",
            1 => "L",
            _ => " ",
        });
        d.push_str(&format!("{} {}", number(*x), number(*y)));
    }
    d
}

/// Which end of a text stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It starts there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// An SVG under construction.
#[derive(Debug, Default)]
pub struct Svg {
    out: String,
}

impl Svg {
    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x0, y0, x1, y1] = [from.0, from.1, to.0, to.1].map(number);
        self.path(class, &format!("M{x0} {y0}L{x1} {y1}"));
    }

    /// A rectangle; negative sizes are drawn as nothing.
    pub fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        html! { rect class=(class) x=(x) y=(y) width=(width) height=(height) {} }.render_to(&mut self.out);
    }

    /// A rectangle that says something when pointed at.
    pub fn cell(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), hint: &str) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(number);
        html! { rect class=(class) x=(x) y=(y) width=(width) height=(height) { title { (hint) } } }
            .render_to(&mut self.out);
    }

    /// A path.
    pub fn path(&mut self, class: &str, d: &str) {
        if !d.is_empty() {
            html! { path class=(class) d=(d) {} }.render_to(&mut self.out);
        }
    }

    /// A text on its baseline.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => None,
            Anchor::Middle => Some("middle"),
            Anchor::End => Some("end"),
        };
        let (x, y) = (number(at.0), number(at.1));
        html! { text class=(class) x=(x) y=(y) text-anchor=[anchor] { (text) } }.render_to(&mut self.out);
    }

    /// The marker of a look around a place.
    pub fn marker(&mut self, look: usize, at: (f64, f64), hint: &str) {
        self.marker_of("mk", look, at, hint);
    }

    /// One of many, which lie on each other.
    pub fn marker_in_crowd(&mut self, look: usize, at: (f64, f64), hint: &str) {
        self.marker_of("mk crowd", look, at, hint);
    }

    fn marker_of(&mut self, class: &str, look: usize, (x, y): (f64, f64), hint: &str) {
        let (n, look) = (number, look % super::LOOKS);
        let d = match look {
            0 => format!("M{} {}a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z", n(x - 3.6), n(y)),
            1 => format!("M{} {}h6.6v6.6h-6.6z", n(x - 3.3), n(y - 3.3)),
            2 => format!("M{} {}l4.3 7.4h-8.6z", n(x), n(y - 4.7)),
            3 => format!("M{} {}l4.5 4.5l-4.5 4.5l-4.5 -4.5z", n(x), n(y - 4.5)),
            4 => format!("M{} {}l4.3 -7.4h-8.6z", n(x), n(y + 4.7)),
            _ => format!("M{} {}h8.4M{} {}v8.4", n(x - 4.2), n(y), n(x), n(y - 4.2)),
        };
        let class = format!("{class} s{look}");
        html! { path class=(class) d=(d) { @if !hint.is_empty() { title { (hint) } } } }
            .render_to(&mut self.out);
    }

    /// What another holds, with what it says when pointed at.
    pub fn group(&mut self, inner: Svg, hint: &str) {
        html! { g { @if !hint.is_empty() { title { (hint) } } (PreEscaped(inner.out)) } }
            .render_to(&mut self.out);
    }

    /// What it holds, for an element that is made elsewhere.
    pub fn into_text(self) -> String {
        self.out
    }

    /// The whole element, with a title and a description for readers who do not see it.
    pub fn finish(self, id: &str, form: super::Form, height: f64, title: &str, description: &str) -> Markup {
        let (class, width, height) = (form.class(), number(form.width()), number(height));
        let [titled, described] = ["t", "d"].map(|end| format!("{id}-{class}-{end}"));
        html! {
            svg class=(class) role="img" viewBox={ "0 0 " (width) " " (height) } font-size=(number(form.font()))
                aria-labelledby={ (titled) " " (described) }
            {
                title id=(titled) { (title) }
                desc id=(described) { (description) }
                (PreEscaped(self.out))
            }
        }
    }
}

/// A stroke with an end stroke on either side.
pub fn bar(svg: &mut Svg, class: &str, from: (f64, f64), to: (f64, f64), (dx, dy): (f64, f64)) {
    let n = number;
    let end = |(x, y): (f64, f64)| format!("M{} {}L{} {}", n(x - dx), n(y - dy), n(x + dx), n(y + dy));
    let d = format!("M{} {}L{} {}{}{}", n(from.0), n(from.1), n(to.0), n(to.1), end(from), end(to));
    svg.path(class, &d);
}
