//! Little's law as a self-check: what was in flight must equal throughput times mean latency (Little 1961).

use serde::{Deserialize, Serialize};

/// Deviation beyond which a measurement contradicts itself.
pub const TOLERANCE: f64 = 0.05;

/// Both sides of the law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Little {
    /// Mean operations in flight, measured on its own.
    pub in_flight_mean: f64,
    /// Operations per second times mean latency: sum of all latencies over elapsed time.
    pub rate_times_latency: f64,
    /// `rate_times_latency / in_flight_mean - 1`.
    pub deviation: f64,
    /// Whether the deviation lies within [`TOLERANCE`].
    pub holds: bool,
}

/// Compares the sum of all latencies over the elapsed time with what was in flight. `None` where either side is
/// missing: nothing elapsed, nothing measured in flight, nothing finished.
pub fn check(in_flight_mean: f64, latency_sum_ns: u128, elapsed_ns: u64) -> Option<Little> {
    if in_flight_mean <= 0.0 || elapsed_ns == 0 || latency_sum_ns == 0 {
        return None;
    }
    let rate_times_latency = latency_sum_ns as f64 / elapsed_ns as f64;
    let deviation = rate_times_latency / in_flight_mean - 1.0;
    Some(Little { in_flight_mean, rate_times_latency, deviation, holds: deviation.abs() <= TOLERANCE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_honest_queue_holds_and_a_wrong_clock_does_not() {
        // 128 in flight for 10 s at 64,000 per second: each takes 2 ms.
        let honest = check(128.0, 640_000 * 2_000_000, 10_000_000_000).unwrap();
        assert!(honest.holds && honest.deviation.abs() < 1e-9, "{honest:?}");
        // Stamped after the submitting call: half of the latency is lost.
        let wrong = check(128.0, 640_000 * 1_000_000, 10_000_000_000).unwrap();
        assert!(!wrong.holds && (wrong.deviation + 0.5).abs() < 1e-9, "{wrong:?}");
        assert!(check(100.0, 1_049, 10).unwrap().holds);
        assert!(!check(100.0, 1_051, 10).unwrap().holds);
        assert_eq!(check(0.0, 5, 10), None);
        assert_eq!(check(1.0, 5, 0), None);
        assert_eq!(check(1.0, 0, 10), None);
    }
}
