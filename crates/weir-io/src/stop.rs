//! Waiting that a request to stop ends.

use std::time::{Duration, Instant};

pub use weir_core::stop::Stop;

/// Sleeps, but wakes when asked to stop. `false`: asked.
pub fn pause(stop: &Stop, time: Duration) -> bool {
    const STEP: Duration = Duration::from_millis(20);
    let until = Instant::now() + time;
    while Instant::now() < until && stop.requested().is_none() {
        std::thread::sleep(STEP.min(until.saturating_duration_since(Instant::now())));
    }
    stop.requested().is_none()
}
