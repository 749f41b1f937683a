//! A cap on dirty pages, approached in steps.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::journal::{Applied, Change, Journal};
use super::{Knob, KnobError, Value};
use crate::error::HostError;
use crate::host::Host;
use crate::vm;

/// A cap on dirty pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyCap {
    /// `vm.dirty_bytes`. The kernel refuses less than two pages.
    pub dirty_bytes: u64,
    /// `vm.dirty_background_bytes`; `None` leaves it alone, and the kernel takes half of `dirty_bytes` where the
    /// background limit would not be below it.
    pub background_bytes: Option<u64>,
}

/// Puts the cap in force: the background limit first, so that writeback starts while nobody has to wait, then the
/// dirty limit in halves, each after the dirty pages fell below it. Lowering it at once would stall every buffered
/// writer of the machine until the surplus is written. `ramp_max` bounds the whole; at its end the cap is set
/// whatever is dirty.
///
/// # Errors
/// When a knob cannot be read or written, another run holds it, or the journal or the guardian fails. What was
/// written by then has been led back.
pub fn cap_dirty(journal: &Journal, cap: DirtyCap, ramp_max: Duration) -> Result<Applied, KnobError> {
    let host = Host::live();
    let from = dirty_threshold_bytes(&host)?;
    let steps = halves(from, cap.dirty_bytes);
    let dirty = Change { knob: Knob::Dirty, steps: steps.iter().copied().map(Value::Bytes).collect() };
    let background = cap
        .background_bytes
        .map(|bytes| Change { knob: Knob::DirtyBackground, steps: vec![Value::Bytes(bytes)] });
    let changes: Vec<Change> = background.into_iter().chain([dirty]).collect();
    let applied = journal.begin(&changes)?;
    let deadline = Instant::now() + ramp_max;
    if let Some(bytes) = cap.background_bytes {
        applied.step(Knob::DirtyBackground, Value::Bytes(bytes))?;
    }
    for (index, bytes) in steps.iter().enumerate() {
        let steps_left = (steps.len() - index) as u32;
        wait_below(&host, *bytes, deadline.saturating_duration_since(Instant::now()) / steps_left)?;
        applied.step(Knob::Dirty, Value::Bytes(*bytes))?;
    }
    Ok(applied)
}

/// The dirty limit in force, in bytes, whichever way it is set.
fn dirty_threshold_bytes(host: &Host) -> Result<u64, HostError> {
    let counters = host.tree.parsed("/proc/vmstat", vm::parse_vmstat)?;
    Ok(counters.get("nr_dirty_threshold").copied().unwrap_or(0) * host.page_bytes())
}

/// Halves of `from` above `to`, then `to`.
fn halves(from: u64, to: u64) -> Vec<u64> {
    let mut steps: Vec<u64> = std::iter::successors(Some(from / 2), |bytes| Some(bytes / 2))
        .take_while(|bytes| *bytes > to)
        .collect();
    steps.push(to);
    steps
}

/// Waits until less than `bytes` are dirty or being written, at most for `patience`.
fn wait_below(host: &Host, bytes: u64, patience: Duration) -> Result<(), HostError> {
    const POLL: Duration = Duration::from_millis(20);
    let until = Instant::now() + patience;
    loop {
        let memory = vm::memory(&host.tree)?;
        if memory.dirty_bytes + memory.writeback_bytes < bytes || Instant::now() >= until {
            return Ok(());
        }
        sleep(POLL.min(patience));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_halves_down_to_the_cap() {
        for (from, to, steps) in [
            (4000, 600, vec![2000, 1000, 600]),
            (4000, 500, vec![2000, 1000, 500]),
            (1000, 900, vec![900]),
            // Raising takes one step.
            (1000, 4000, vec![4000]),
            (0, 10, vec![10]),
        ] {
            assert_eq!(halves(from, to), steps, "{from} → {to}");
        }
    }
}
