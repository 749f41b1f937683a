//! Decisions of a guard that runs beside, as events.

use jiff::Timestamp;
use weir_archive::tables::Event;

use crate::guard::{sentence, socket};

/// What is known of the guard's decisions.
#[derive(Default)]
pub struct Guarded {
    /// When the guard began, and the last of its decisions that was taken.
    last: Option<(String, u64)>,
}

impl Guarded {
    /// Decisions since the last call; none where no guard runs.
    pub fn decisions(&mut self) -> Vec<Event> {
        if !socket::path().exists() {
            return Vec::new();
        }
        let Ok(state) = socket::ask() else { return Vec::new() };
        let Ok(since) = state.since.parse::<Timestamp>() else { return Vec::new() };
        let known_ms = self.last.take().filter(|(began, _)| *began == state.since).map(|(_, at_ms)| at_ms);
        let newest_ms = state.decisions.iter().map(|noted| noted.at_ms).max().or(known_ms).unwrap_or(0);
        self.last = Some((state.since.clone(), newest_ms));
        let fresh = state.decisions.iter().filter(|noted| known_ms.is_none_or(|known| noted.at_ms > known));
        let event = |noted: &weir_control::Noted| Event {
            ts_ms: since.as_millisecond() + i64::try_from(noted.at_ms).unwrap_or(0),
            kind: "guard".to_string(),
            device: noted.device.clone(),
            detail: serde_json::json!({ "did": sentence(noted), "shadow": state.shadow }).to_string(),
            ..Event::default()
        };
        fresh.map(event).collect()
    }
}
