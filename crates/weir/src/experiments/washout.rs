//! The wait for a clean start: what an earlier trial left dirty would be part of the next one's figures.

use std::time::{Duration, Instant};

use weir_core::target::TargetFacts;
use weir_experiment::Washout;
use weir_host::Host;
use weir_io::runner::{Stop, pause};

use crate::quiet::dirty_bytes;

/// Less than this, dirty and under writeback, is clean.
const CLEAN: u64 = 64 << 20;
/// Where others had more dirty when the experiment began, so much more than that is clean.
const ABOVE_FOUND: f64 = 1.2;
const POLL: Duration = Duration::from_millis(50);

/// What counts as clean on this machine, as it is before the first trial.
pub fn clean_bytes(host: &Host, target: &TargetFacts) -> u64 {
    CLEAN.max((dirty_bytes(host, target) as f64 * ABOVE_FOUND) as u64)
}

/// Waits until less than `clean` is dirty, but not for ever. What is dirty here is no matter for storage elsewhere.
pub fn wait(host: &Host, target: &TargetFacts, clean: u64, longest: Duration, stop: &Stop) -> Washout {
    if target.path.is_empty() {
        return Washout::default();
    }
    let begun = Instant::now();
    loop {
        let left_bytes = dirty_bytes(host, target);
        let timed_out = left_bytes > clean && begun.elapsed() >= longest;
        if left_bytes <= clean || timed_out || !pause(stop, POLL) {
            return Washout { took_ns: begun.elapsed().as_nanos() as u64, left_bytes, timed_out };
        }
    }
}
