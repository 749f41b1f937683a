//! The few SVG elements that plots are made of, as text.

use std::fmt::{Display, Write};

use weir_core::printable::{REPLACEMENT, is_hidden};

/// Makes text safe between tags and in attributes of HTML and SVG. What XML forbids or
/// what could hide what follows it becomes a visible replacement.
pub fn escape(text: impl Display) -> String {
    let text = text.to_string();
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if is_hidden(c) => out.push(REPLACEMENT),
            c => out.push(c),
        }
    }
    out
}

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
        let _ = write!(
            self.out,
            r#"<path class="{class}" d="M{} {}L{} {}"/>"#,
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1)
        );
    }

    /// A rectangle; negative sizes are drawn as nothing.
    pub fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let _ = write!(
            self.out,
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"/>"#,
            number(x),
            number(y),
            number(width.max(0.0)),
            number(height.max(0.0))
        );
    }

    /// A path.
    pub fn path(&mut self, class: &str, d: &str) {
        if !d.is_empty() {
            let _ = write!(self.out, r#"<path class="{class}" d="{d}"/>"#);
        }
    }

    /// A text on its baseline.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let _ = write!(
            self.out,
            r#"<text class="{class}" x="{}" y="{}"{anchor}>{}</text>"#,
            number(at.0),
            number(at.1),
            escape(text)
        );
    }

    /// The marker of a look around a place.
    pub fn marker(&mut self, look: usize, (x, y): (f64, f64), hint: &str) {
        let (n, look) = (number, look % super::LOOKS);
        let d = match look {
            0 => format!("M{} {}a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z", n(x - 3.6), n(y)),
            1 => format!("M{} {}h6.6v6.6h-6.6z", n(x - 3.3), n(y - 3.3)),
            2 => format!("M{} {}l4.3 7.4h-8.6z", n(x), n(y - 4.7)),
            3 => format!("M{} {}l4.5 4.5l-4.5 4.5l-4.5 -4.5z", n(x), n(y - 4.5)),
            4 => format!("M{} {}l4.3 -7.4h-8.6z", n(x), n(y + 4.7)),
            _ => format!("M{} {}h8.4M{} {}v8.4", n(x - 4.2), n(y), n(x), n(y - 4.2)),
        };
        let _ = if hint.is_empty() {
            write!(self.out, r#"<path class="mk s{look}" d="{d}"/>"#)
        } else {
            write!(self.out, r#"<path class="mk s{look}" d="{d}"><title>{}</title></path>"#, escape(hint))
        };
    }

    /// The whole element, with a title and a description for readers who do not see it.
    pub fn finish(self, id: &str, form: super::Form, height: f64, title: &str, description: &str) -> String {
        let (class, width) = (form.class(), form.width());
        format!(
            concat!(
                r#"<svg class="{class}" role="img" viewBox="0 0 {width} {height}" font-size="{font}" "#,
                r#"aria-labelledby="{id}-{class}-t {id}-{class}-d"><title id="{id}-{class}-t">{title}</title>"#,
                r#"<desc id="{id}-{class}-d">{description}</desc>{body}</svg>"#
            ),
            class = class,
            width = number(width),
            height = number(height),
            font = number(form.font()),
            id = id,
            title = escape(title),
            description = escape(description),
            body = self.out
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_inert() {
        let hostile = "</title><script>alert(\"x\")</script>&'\u{0}\u{1b}[31m\u{202e}gpj";
        let safe = escape(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{0}', '\u{1b}', '\u{202e}']), "{safe}");
        assert!(safe.contains("&lt;script&gt;"));
        assert_eq!(escape("/var/lib/mysql µs"), "/var/lib/mysql µs");
    }
}
