//! Which trial it is, out of how many, and how long all will take: one line that renews itself on a terminal, one
//! plain line a trial elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use weir_core::units::Nanos;

use crate::progress::Progress;

/// Progress over all trials.
pub struct Steps {
    line: Progress,
    terminal: bool,
    current: String,
}

impl Steps {
    /// Nothing shown yet.
    pub fn new() -> Steps {
        Steps { line: Progress::new(), terminal: std::io::stderr().is_terminal(), current: String::new() }
    }

    /// Trial `number` of about `all` begins.
    pub fn trial(&mut self, number: usize, all: usize, left: Duration, what: &str) {
        let left = Nanos(left.as_secs().max(1) * 1_000_000_000);
        self.current = format!("[trial {number} of ~{all}, about {left} left] {what}");
        if !self.terminal {
            say!("weir: {}", self.current);
        }
        self.detail("");
    }

    /// More about the current trial; only a terminal shows it.
    pub fn detail(&mut self, detail: &str) {
        if self.terminal {
            self.line.show(&format!("{}{detail}", self.current));
        }
    }

    /// Something worth a line of its own.
    pub fn say(&mut self, sentence: &str) {
        self.line.clear();
        say!("weir: {sentence}");
        if self.terminal {
            self.line = Progress::new();
        }
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        self.line.clear();
    }
}
