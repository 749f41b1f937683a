//! Clocks of a group of threads that come and go.

use std::collections::HashMap;

use weir_host::{Host, TaskClock};
use weir_oltp::limits::TaskTimes;

/// One thread: its clock when it was first and last seen, and when that was.
struct Seen {
    first: (u64, TaskClock),
    last: (u64, TaskClock),
}

/// A group of threads.
#[derive(Default)]
pub struct Threads {
    seen: HashMap<u32, Seen>,
    refused: bool,
}

impl Threads {
    /// Reads the clocks of these threads; `now_ns` is the time since measuring began.
    pub fn look(&mut self, host: &Host, threads: impl IntoIterator<Item = u32>, now_ns: u64) {
        for thread in threads {
            match host.task_clock(thread) {
                Ok(Some(clock)) => {
                    let now = (now_ns, clock);
                    self.seen.entry(thread).or_insert(Seen { first: now, last: now }).last = now;
                }
                Ok(None) => {}
                Err(_) => self.refused = true,
            }
        }
    }

    /// Sums; `None` where no thread was seen twice.
    pub fn times(&self) -> Option<TaskTimes> {
        let mut sum = TaskTimes::default();
        for seen in self.seen.values() {
            let ((began_ns, first), (ended_ns, last)) = (seen.first, seen.last);
            sum.threads += 1;
            sum.on_ns += last.on_ns.saturating_sub(first.on_ns);
            sum.queued_ns += last.queued_ns.saturating_sub(first.queued_ns);
            sum.total_ns += ended_ns - began_ns;
        }
        (sum.total_ns > 0).then_some(sum)
    }

    /// Whether the kernel refused a look.
    pub fn is_refused(&self) -> bool {
        self.refused && self.seen.is_empty()
    }
}
