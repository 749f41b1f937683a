//! What the guard tells: decisions and minutes to stderr and the log file, lines to the history.

use weir_control::{History, Noted, Standing, State};
use weir_core::units::Nanos;
use weir_report::guard as words;

use super::log::{Minute, minute_json, noted_json, remark_json, sentence};
use super::recorder::{Item, Recorder};
use crate::clock::rfc3339;
use crate::guard::settings::Format;

/// Hands over what is to be told, each in the forms that were asked for.
pub struct Reporter {
    recorder: Recorder,
    format: Format,
    has_log: bool,
    left_out: u64,
}

impl Reporter {
    /// By this recorder; stderr has lines in the format, and the log, if there is one, always JSON.
    pub fn new(recorder: Recorder, format: Format, has_log: bool) -> Reporter {
        Reporter { recorder, format, has_log, left_out: 0 }
    }

    /// A decision.
    pub fn noted(&mut self, noted: &Noted) {
        self.line(|at| noted_json(at, noted), || sentence(noted));
    }

    /// A minute of a device.
    pub fn minute(&mut self, minute: &Minute) {
        self.line(|at| minute_json(at, minute), || minute.sentence());
        let left_out = self.left_out + self.recorder.left_out();
        if left_out > 0 {
            self.remark(&format!("{left_out} lines were left out so far: too many in a short time"));
        }
    }

    /// Something else.
    pub fn remark(&mut self, sentence: &str) {
        self.line(|at| remark_json(at, sentence), || sentence.to_string());
    }

    /// A line that there was no room for.
    pub fn leave_out(&mut self) {
        self.left_out += 1;
    }

    /// Lines of the history.
    pub fn history(&mut self, lines: Vec<u8>) {
        if !lines.is_empty() {
            self.recorder.write(Item::History(lines));
        }
    }

    /// A record of the history begins.
    pub fn begin_history(&mut self, history: &History) {
        self.recorder.write(Item::Begin(Box::new(history.clone())));
    }

    /// All is told: waits until it is written, but not for ever.
    pub fn end(self) {
        self.recorder.end();
    }

    fn line(&mut self, json: impl Fn(&str) -> String, sentence: impl Fn() -> String) {
        let json = (self.has_log || self.format == Format::Json).then(|| json(&rfc3339()));
        let said = match (&json, self.format) {
            (Some(json), Format::Json) => json.clone(),
            _ => format!("weir: {}", sentence()),
        };
        self.recorder.write(Item::Said(said));
        if let Some(json) = json.filter(|_| self.has_log) {
            self.recorder.write(Item::Logged(json));
        }
    }
}

/// A state in one line.
pub fn status_line(state: &State) -> String {
    let device = |device: &weir_control::DeviceState| {
        let latency = device.second.p99_us.map(|us| format!("p99 {}", Nanos(us.saturating_mul(1000))));
        let target = device.second.target_us.map(|us| format!(" of {}", Nanos(us.saturating_mul(1000))));
        let limited = match &device.standing {
            Standing::StoodDown { .. } => "yielded".to_string(),
            Standing::Gone => "gone".to_string(),
            Standing::Shadow | Standing::Guarding => format!("limit {}", words::limit_of(device)),
        };
        let latency = latency.unwrap_or("no syncs".to_string()) + &target.unwrap_or_default();
        let private = words::private_limit_of(device).map(|limits| format!(", cgroups {limits}"));
        format!("{}: {latency}, {limited}{}", device.name, private.unwrap_or_default())
    };
    let devices: Vec<String> = state.devices.iter().map(device).collect();
    let shadow = if state.shadow { "shadow; " } else { "" };
    format!("{shadow}{}", devices.join("; "))
}
