//! What the guard costs.

use std::collections::VecDeque;

use weir_control::Cost;
use weir_host::{own_cpu_ns, own_memory_bytes};

/// The time over which the share of a processor is taken.
const WINDOW_NS: u64 = 60_000_000_000;

/// Processor time and memory of this process.
#[derive(Default)]
pub struct Meter {
    /// Moments and the processor time until then, a second apart.
    past: VecDeque<(u64, u64)>,
    first_ns: u64,
    late_looks: u64,
}

impl Meter {
    /// From now on.
    pub fn new() -> Meter {
        Meter { first_ns: own_cpu_ns().unwrap_or(0), ..Meter::default() }
    }

    /// A sample came too late.
    pub fn late(&mut self) {
        self.late_looks += 1;
    }

    /// Up to now; called once a second.
    pub fn read(&mut self, now_ns: u64) -> Cost {
        let cpu_ns = own_cpu_ns().unwrap_or(0);
        self.past.push_back((now_ns, cpu_ns));
        while self.past.front().is_some_and(|(at_ns, _)| now_ns.saturating_sub(*at_ns) > WINDOW_NS) {
            self.past.pop_front();
        }
        let (since_ns, before_ns) = self.past.front().copied().unwrap_or((now_ns, cpu_ns));
        let cpu_share = (cpu_ns - before_ns) as f64 / now_ns.saturating_sub(since_ns).max(1) as f64;
        Cost {
            cpu_ns: cpu_ns.saturating_sub(self.first_ns),
            cpu_share: if since_ns == now_ns { 0.0 } else { cpu_share },
            rss_bytes: own_memory_bytes().unwrap_or(0),
            late_looks: self.late_looks,
        }
    }
}
