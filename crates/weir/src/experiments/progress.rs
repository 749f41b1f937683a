//! Which trial it is, out of how many, and how long all will take.

use std::time::Duration;

use weir_core::units::Nanos;

use crate::progress::StepLine;

/// Progress over all trials.
pub struct Steps {
    line: StepLine,
    current: String,
}

impl Steps {
    /// Nothing shown yet.
    pub fn new() -> Steps {
        Steps { line: StepLine::new(), current: String::new() }
    }

    /// Trial `number` of about `all` begins.
    pub fn trial(&mut self, number: usize, all: usize, left: Duration, what: &str) {
        let left = Nanos(left.as_secs().max(1) * 1_000_000_000);
        self.current = format!("[trial {number} of ~{all}, about {left} left] {what}");
        self.line.begin(&self.current);
    }

    /// More about the current trial; only a terminal shows it.
    pub fn detail(&mut self, detail: &str) {
        self.line.renew(&format!("{}{detail}", self.current));
    }

    /// Something worth a line of its own.
    pub fn say(&mut self, sentence: &str) {
        self.line.say(sentence);
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        self.line.clear();
    }
}
