//! Which step it is, out of how many, and how long it will take.

use std::time::{Duration, Instant};

use weir_core::units::per_second;
use weir_io::runner::{Observer, Tick};

use crate::progress::StepLine;

/// Progress over all steps.
pub struct Steps {
    line: StepLine,
    done: usize,
    all: usize,
    ends: Instant,
    current: String,
}

impl Steps {
    /// Of so many steps, expected to take so long.
    pub fn new(all: usize, expected: Duration) -> Steps {
        let ends = Instant::now() + expected;
        Steps { line: StepLine::new(), done: 0, all, ends, current: String::new() }
    }

    /// The next step begins.
    pub fn next(&mut self, what: &str) {
        self.done += 1;
        // Steps that nobody foresaw (another flood, say) must not lead to "31 of 30".
        self.all = self.all.max(self.done);
        self.current = what.to_string();
        let text = self.text("");
        self.line.begin(&text);
    }

    /// Steps that will not be made.
    pub fn drop_steps(&mut self, n: usize) {
        self.all = self.all.saturating_sub(n).max(self.done);
    }

    /// More about the current step; only a terminal shows it.
    pub fn detail(&mut self, detail: &str) {
        let text = self.text(detail);
        self.line.renew(&text);
    }

    /// Something worth a line of its own.
    pub fn say(&mut self, sentence: &str) {
        self.line.say(sentence);
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        self.line.clear();
    }

    fn text(&self, detail: &str) -> String {
        let Steps { done, all, current, .. } = self;
        let left = match self.ends.saturating_duration_since(Instant::now()).as_secs() {
            0 if done < all => "longer than expected".to_string(),
            left => format!("about {left} s left"),
        };
        format!("[{done}/{all}, {left}] {current}{detail}")
    }
}

impl Observer for Steps {
    fn tick(&mut self, tick: &Tick<'_>) {
        let finished = tick.interval.classes.values().map(|c| c.count).max().unwrap_or(0);
        let rate = finished as f64 * 1e9 / tick.interval.len_ns.max(1) as f64;
        self.detail(&format!(": {}/s", per_second(rate)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps that are left take time, whatever was expected.
    #[test]
    fn no_time_is_left_only_where_no_step_is() {
        let mut steps = Steps::new(2, Duration::ZERO);
        steps.next("commits");
        assert_eq!(steps.text(""), "[1/2, longer than expected] commits");
        steps.drop_steps(1);
        assert_eq!(steps.text(": 750/s"), "[1/1, about 0 s left] commits: 750/s");
    }
}
