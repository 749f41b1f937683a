//! Whether a limit harms the group that it holds.

use std::collections::VecDeque;

use super::constants::{SECOND_NS, STALL};
use super::{Group, Transition};

/// Harm is judged over so long: shorter stalls are part of writing.
const OVER_NS: u64 = 5 * SECOND_NS;
/// A process that gives so many times to write(2) what its group is counted with writes pages of others' groups.
const ESCAPED: f64 = 3.0;
/// That is believed after so long, where processor time can be limited instead.
const ESCAPED_NS: u64 = 2 * SECOND_NS;
/// And after so long where syncs surely lose: it fills memory meanwhile.
const ESCAPED_PLAINLY_NS: u64 = SECOND_NS / 2;

/// What all groups did in the last seconds, a look each.
#[derive(Debug, Clone, Default)]
pub(super) struct Harm {
    looks: VecDeque<Look>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Look {
    elapsed_ns: u64,
    memory_stall_ns: u64,
    io_stall_ns: u64,
    refault_bytes: u64,
    written_bytes: u64,
    sent_bytes: u64,
    before_bytes: u64,
    /// Of `sent_bytes`, what the io controller counted on any device; all of it where there is none.
    counted_bytes: u64,
    backlog_bytes: u64,
    writes: bool,
}

impl Harm {
    /// Takes in a look. Of several groups the one that is stalled most counts.
    pub fn push(&mut self, elapsed_ns: u64, groups: &[Group]) {
        let most = |of: fn(&Group) -> u64| groups.iter().map(of).max().unwrap_or(0);
        let sum = |of: fn(&Group) -> u64| groups.iter().map(of).sum::<u64>();
        self.looks.push_back(Look {
            elapsed_ns,
            memory_stall_ns: most(|group| group.memory_stall_ns),
            io_stall_ns: most(|group| group.io_stall_ns),
            refault_bytes: sum(|group| group.refault_bytes),
            written_bytes: sum(Group::bytes),
            sent_bytes: sum(|group| group.sent_bytes),
            before_bytes: sum(|group| group.before_bytes),
            counted_bytes: sum(Group::counted_bytes),
            backlog_bytes: sum(|group| group.memory.backlog()),
            writes: groups
                .iter()
                .any(|group| group.bytes() + group.before_bytes + group.memory.backlog() > 0),
        });
        let mut held = self.elapsed_ns();
        while let Some(first) = self.looks.front().filter(|look| held >= OVER_NS + look.elapsed_ns) {
            held -= first.elapsed_ns;
            self.looks.pop_front();
        }
    }

    fn elapsed_ns(&self) -> u64 {
        self.looks.iter().map(|look| look.elapsed_ns).sum()
    }

    /// Begins anew.
    pub fn forget(&mut self) {
        self.looks.clear();
    }

    /// Whether the group writes pages that count for others: they are no more dirty for it than they are written for it.
    pub fn escapes(&self, is_plain: bool) -> bool {
        let elapsed_ns = self.elapsed_ns();
        let sum = |of: fn(&Look) -> u64| self.looks.iter().map(of).sum::<u64>() as f64;
        let backlog = self.looks.back().map_or(0, |look| look.backlog_bytes) as f64;
        let counted = sum(|look| look.counted_bytes) + backlog;
        let is_more = |sent: f64| sent > ESCAPED * counted + 5.0 * least(elapsed_ns);
        let sent = sum(|look| look.sent_bytes);
        match elapsed_ns {
            // Some of what it gave before it was held is written by then.
            ESCAPED_NS.. => is_more(sent + sum(|look| look.before_bytes)),
            ESCAPED_PLAINLY_NS.. => is_plain && is_more(sent),
            _ => false,
        }
    }

    /// What harm there is.
    pub fn found(&self) -> Option<Transition> {
        let elapsed_ns = self.elapsed_ns();
        if elapsed_ns + SECOND_NS / 5 < OVER_NS {
            return None;
        }
        let sum = |of: fn(&Look) -> u64| self.looks.iter().map(of).sum::<u64>() as f64;
        let most = STALL * elapsed_ns as f64;
        if sum(|look| look.memory_stall_ns) > most {
            return Some(Transition::MemoryStalls);
        }
        // A copy that reads what it wrote lately is no working set.
        if sum(|look| look.refault_bytes) > least(elapsed_ns).max(STALL * sum(|look| look.written_bytes)) {
            return Some(Transition::WorkingSet);
        }
        if self.escapes(false) {
            return Some(Transition::Escapes);
        }
        let writes = self.looks.iter().any(|look| look.writes);
        (!writes && sum(|look| look.io_stall_ns) > most).then_some(Transition::OtherStall)
    }
}

/// Bytes that say something in so long.
fn least(elapsed_ns: u64) -> f64 {
    (4 << 20) as f64 * elapsed_ns as f64 / 1e9
}
