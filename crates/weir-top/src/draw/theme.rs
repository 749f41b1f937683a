//! How text looks, with colours and without.

use ratatui_core::style::{Color, Modifier, Style};

/// What the terminal can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    colours: bool,
    marks: bool,
}

impl Look {
    /// For a terminal, with colours or without.
    pub fn terminal(colours: bool) -> Look {
        Look { colours, marks: true }
    }

    /// For text that goes to a file.
    pub fn plain_text() -> Look {
        Look { colours: false, marks: false }
    }

    /// As it comes.
    pub fn plain(self) -> Style {
        Style::new()
    }

    /// A title.
    pub fn title(self, is_selected: bool) -> Style {
        let style = self.with(Modifier::BOLD);
        if is_selected {
            self.colour(style, Color::Cyan).add_modifier(self.mark(Modifier::UNDERLINED))
        } else {
            style
        }
    }

    /// What matters less.
    pub fn faint(self) -> Style {
        self.with(Modifier::DIM)
    }

    /// What deserves a look.
    pub fn loud(self) -> Style {
        self.colour(self.with(Modifier::BOLD), Color::Yellow)
    }

    /// A figure that says that somebody waits.
    pub fn alarm(self) -> Style {
        self.colour(self.with(Modifier::BOLD), Color::Red)
    }

    /// Bars and sparklines.
    pub fn bar(self) -> Style {
        self.colour(Style::new(), Color::Blue)
    }

    /// The selected row.
    pub fn selected(self, is_in_focus: bool) -> Style {
        if is_in_focus { self.with(Modifier::REVERSED) } else { self.with(Modifier::BOLD) }
    }

    fn with(self, modifier: Modifier) -> Style {
        Style::new().add_modifier(self.mark(modifier))
    }

    fn mark(self, modifier: Modifier) -> Modifier {
        if self.marks { modifier } else { Modifier::empty() }
    }

    fn colour(self, style: Style, colour: Color) -> Style {
        if self.colours { style.fg(colour) } else { style }
    }
}
