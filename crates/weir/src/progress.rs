//! What is shown on stderr while something takes time: one line that renews itself on a terminal, a plain line now
//! and then elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weir_core::printable;
use weir_core::result::record::Class;
use weir_core::units::{Bytes, Nanos, per_second, significant};
use weir_io::runner::{Observer, Tick};

/// Where no line renews itself, one this often.
const PLAIN_EVERY: Duration = Duration::from_secs(10);
/// An operation in flight for longer than this is worth a word.
pub const STALL_NS: u64 = 500_000_000;

/// A line of progress.
pub struct Progress {
    bar: Option<ProgressBar>,
    last: Instant,
}

impl Progress {
    /// Nothing shown yet.
    pub fn new() -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(
            ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        // Elsewhere, and on a terminal whose TERM is `dumb` or not set, it would draw nothing.
        Progress { bar: (!bar.is_hidden()).then_some(bar), last: Instant::now() }
    }

    /// Shows a line, if it is time for one.
    pub fn show(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(printable::line(text).into_owned()),
            None if self.last.elapsed() >= PLAIN_EVERY => {
                say!("weir: {text}");
                self.last = Instant::now();
            }
            None => {}
        }
    }

    /// Shows how far filling of files has come.
    pub fn filling(&mut self, done: u64, all: u64) {
        let percent = done * 100 / all.max(1);
        self.show(&format!(
            "writing test files: {} of {} ({percent} %)",
            Bytes(done >> 20 << 20),
            Bytes(all)
        ));
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A line of progress over steps: on a terminal it renews itself, elsewhere each step is a plain line of its own.
pub struct StepLine {
    line: Progress,
}

impl StepLine {
    /// Nothing shown yet.
    pub fn new() -> StepLine {
        StepLine { line: Progress::new() }
    }

    /// A step begins.
    pub fn begin(&mut self, text: &str) {
        if self.line.bar.is_some() {
            self.line.show(text);
        } else {
            say!("weir: {text}");
        }
    }

    /// The current step with more about it; only a terminal shows it.
    pub fn renew(&mut self, text: &str) {
        if self.line.bar.is_some() {
            self.line.show(text);
        }
    }

    /// Something worth a line of its own.
    pub fn say(&mut self, sentence: &str) {
        self.line.clear();
        say!("weir: {sentence}");
        if self.line.bar.is_some() {
            self.line = Progress::new();
        }
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        self.line.clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Observer for Progress {
    fn tick(&mut self, tick: &Tick<'_>) {
        self.show(&line(tick));
    }
}

/// One second of a job in one line.
fn line(tick: &Tick<'_>) -> String {
    let mut line = format!("{}: {}", tick.job.name, place_in_time(tick.job.duration, tick.at_ns));
    // First, since a terminal cuts off the end of a long line.
    if tick.interval.oldest_ns > STALL_NS {
        line.push_str(&format!("  oldest in flight {}", Nanos(tick.interval.oldest_ns)));
    }
    for (class, seconds) in &tick.interval.classes {
        let rate = seconds.count as f64 * 1e9 / tick.interval.len_ns.max(1) as f64;
        line.push_str(&format!("  {} {}/s", class.name(), per_second(rate)));
        if matches!(class, Class::Read | Class::Write) {
            let bytes = seconds.bytes as f64 * 1e9 / tick.interval.len_ns.max(1) as f64;
            line.push_str(&format!(" {} MB/s", significant(bytes / 1e6)));
        }
        line.push_str(&format!(" p99 {}", Nanos(seconds.p99_ns)));
    }
    line
}

/// How far a run of such a length has come; negative times are its warm-up.
pub fn place_in_time(duration: Nanos, at_ns: i64) -> String {
    let seconds = at_ns.unsigned_abs() / 1_000_000_000;
    match at_ns {
        ..0 => format!("warming up, {seconds} s left"),
        _ if duration.0 > 0 => format!("{seconds} of {} s", duration.0 / 1_000_000_000),
        _ => format!("{seconds} s"),
    }
}
