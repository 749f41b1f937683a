//! Marks of a grade: shape, word and colour each say it alone.

use maud::{Markup, html};
use weir_verdict::doctor::Grade;

/// The sign of a grade with its word.
pub fn grade(grade: Grade) -> Markup {
    let (outline, stroke) = match grade {
        Grade::Good => ("M12 2a10 10 0 1 0 .01 0z", "M7 12.5l3.4 3.4L17.3 9"),
        Grade::Fair => ("M12 2.2L23 21.4H1z", "M12 9v6M12 17.6v1.2"),
        Grade::Poor => ("M8 2h8l6 6v8l-6 6h-8l-6 -6v-8z", "M8.3 8.3l7.4 7.4M15.7 8.3l-7.4 7.4"),
        Grade::Unknown => {
            ("M12 2a10 10 0 1 0 .01 0z", "M9.2 9.4a2.9 2.9 0 1 1 4 2.7c-.8.4-1.2 1-1.2 1.9M12 16.8v1")
        }
    };
    sign(grade.name(), grade.name(), outline, stroke)
}

/// Whether a bar was met.
pub fn met(met: Option<bool>) -> Markup {
    match met {
        Some(true) => sign("good", "met", "M12 2a10 10 0 1 0 .01 0z", "M7 12.5l3.4 3.4L17.3 9"),
        Some(false) => {
            sign("poor", "missed", "M8 2h8l6 6v8l-6 6h-8l-6 -6v-8z", "M8.3 8.3l7.4 7.4M15.7 8.3l-7.4 7.4")
        }
        None => grade(Grade::Unknown),
    }
}

fn sign(class: &str, word: &str, outline: &str, stroke: &str) -> Markup {
    html! {
        span.grade.(class) {
            svg viewBox="0 0 24 24" aria-hidden="true" {
                path d=(outline) fill="currentColor" {}
                path d=(stroke) fill="none" stroke="var(--paper)" stroke-width="2.4" stroke-linecap="round"
                    stroke-linejoin="round" {}
            }
            (word)
        }
    }
}
