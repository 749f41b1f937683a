//! Decisions of a guard that runs beside, read along by a thread of its own: a guard that does not answer holds nobody up.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use weir_archive::tables::Event;
use weir_control::{Noted, State};
use weir_report::guard::{self as words, Change};

use crate::guard::{sentence, socket};

/// Whether a guard runs is looked at so often.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Decisions that may wait; the guard itself notes about one a second.
const WAITING_MAX: usize = 1024;
/// The newest decisions of a state that are taken: a guard tells its last 20.
const TAKEN_MAX: usize = 64;

/// A decision, as an event.
pub struct Decided {
    /// The event.
    pub event: Event,
    /// The reason in a word, where the limit was cut, or would have been.
    pub cut: Option<String>,
}

/// The thread.
pub struct Guarded(Receiver<Decided>);

impl Guarded {
    /// Starts it. It ends with the process.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start() -> io::Result<Guarded> {
        let (sender, decided) = sync_channel(WAITING_MAX);
        let reads = move || {
            let mut known = Known::default();
            loop {
                known.read(&sender);
                thread::sleep(LOOK_EVERY);
            }
        };
        thread::Builder::new().name("guarded".to_string()).spawn(reads)?;
        Ok(Guarded(decided))
    }

    /// Decisions since the last call.
    pub fn decisions(&self) -> Vec<Decided> {
        self.0.try_iter().collect()
    }
}

/// What is known of the guard's decisions.
#[derive(Default)]
struct Known {
    /// When the guard began, and the last of its decisions that was taken.
    last: Option<(String, u64)>,
}

impl Known {
    /// Reads along until the guard ends.
    fn read(&mut self, sender: &SyncSender<Decided>) {
        let Ok(mut client) = socket::stream() else { return };
        while let Ok(Some(state)) = client.next() {
            for decided in self.fresh(&state) {
                let _ = sender.try_send(decided);
            }
        }
    }

    fn fresh(&mut self, state: &State) -> Vec<Decided> {
        let Ok(now) = state.at.parse::<Timestamp>() else { return Vec::new() };
        let known_ms = self.last.take().filter(|(began, _)| *began == state.since).map(|(_, at_ms)| at_ms);
        let newest = &state.decisions[state.decisions.len().saturating_sub(TAKEN_MAX)..];
        let newest_ms = newest.iter().map(|noted| noted.at_ms).max().or(known_ms).unwrap_or(0);
        self.last = Some((state.since.clone(), newest_ms));
        let fresh = newest.iter().filter(|noted| known_ms.is_none_or(|known| noted.at_ms > known));
        // By the clock as it is now: it may have been set since the guard began.
        let ago_ms = |noted: &Noted| i64::try_from(state.at_ms.saturating_sub(noted.at_ms)).unwrap_or(0);
        let event = |noted: &Noted| Event {
            ts_ms: now.as_millisecond() - ago_ms(noted),
            kind: "guard".to_string(),
            device: noted.device.clone(),
            detail: serde_json::json!({ "did": sentence(noted), "shadow": state.shadow }).to_string(),
            ..Event::default()
        };
        let cut = |noted: &Noted| {
            let is_cut = words::moved(noted).is_some() && words::change(noted) == Change::Cut;
            noted.branch().filter(|_| is_cut).map(words::branch)
        };
        fresh.map(|noted| Decided { event: event(noted), cut: cut(noted) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use weir_control::{Effect, Target, state};

    use super::*;
    use crate::guard::testing;

    fn noted(at_ms: u64, effect: Effect) -> Noted {
        let mut decision = testing::decision(0);
        decision.inputs.limit_bytes = 100;
        Noted { at_ms, device: "sda".to_string(), decision: Some(decision), effect }
    }

    #[test]
    fn every_decision_is_told_once_and_cuts_are_known() {
        let mut state = State {
            schema: state::SCHEMA.to_string(),
            weir_version: String::new(),
            pid: 1,
            since: "2026-11-25T03:00:00Z".to_string(),
            // The clock was set an hour back after the guard's start.
            at: "2026-11-25T02:00:10Z".to_string(),
            at_ms: 10_000,
            shadow: false,
            target: Target::default(),
            protect: String::new(),
            devices: Vec::new(),
            decisions: vec![
                noted(5, Effect::Written { bytes: 50 }),
                noted(6, Effect::Written { bytes: 200 }),
            ],
            cost: weir_control::Cost::default(),
            remarks: Vec::new(),
        };
        let mut known = Known::default();
        let told = known.fresh(&state);
        assert_eq!(told.iter().map(|decided| decided.cut.is_some()).collect::<Vec<_>>(), [true, false]);
        let now: Timestamp = state.at.parse().unwrap();
        assert_eq!(told[0].event.ts_ms, now.as_millisecond() - 9_995);
        assert!(known.fresh(&state).is_empty());
        state.decisions.push(noted(9, Effect::Shadow { bytes: 1 }));
        assert_eq!(known.fresh(&state).len(), 1);
        // Another guard.
        state.since = "2026-11-25T04:00:00Z".to_string();
        assert_eq!(known.fresh(&state).len(), 3);
        state.decisions = (10..10_000).map(|at_ms| noted(at_ms, Effect::Shadow { bytes: 1 })).collect();
        assert_eq!(known.fresh(&state).len(), TAKEN_MAX);
        assert!(known.fresh(&state).is_empty());
    }
}
