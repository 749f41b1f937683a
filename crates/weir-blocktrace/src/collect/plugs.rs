//! Plugs: how many requests they let go, and how long something was delayed.

use crate::analysis::Plugs;

/// Plugs open at once that are kept apart.
const OPEN_MAX: usize = 256;

/// Keeps [`Plugs`] up to date. A plug belongs to a task, so several can be set at once.
#[derive(Debug, Default)]
pub struct PlugMeter {
    open: Vec<u32>,
    since_ns: u64,
    out: Plugs,
}

impl PlugMeter {
    /// P.
    pub fn plug(&mut self, pid: u32, time_ns: u64) {
        self.out.plugs += 1;
        if self.open.contains(&pid) || self.open.len() == OPEN_MAX {
            return;
        }
        if self.open.is_empty() {
            self.since_ns = time_ns;
        }
        self.open.push(pid);
    }

    /// U, or UT where `by_schedule`.
    pub fn unplug(&mut self, pid: u32, time_ns: u64, requests: u64, by_schedule: bool) {
        let (count, sum) = if by_schedule {
            (&mut self.out.unplugs_by_schedule, &mut self.out.requests_by_schedule)
        } else {
            (&mut self.out.unplugs, &mut self.out.requests)
        };
        *count += 1;
        *sum = sum.saturating_add(requests);
        if let Some(at) = self.open.iter().position(|&open| open == pid) {
            self.open.swap_remove(at);
            if self.open.is_empty() {
                self.out.plugged_ns += time_ns.saturating_sub(self.since_ns);
            }
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &PlugMeter) {
        self.out.merge(&other.out);
    }

    /// The figures; a plug still set was never counted as time.
    pub fn finish(self) -> Plugs {
        self.out
    }
}
