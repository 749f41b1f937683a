//! The machine's dirty limits: what they are in bytes, and how they are lowered without a stall.

use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_knobs::{KnobName, Value};

use super::place;
use crate::error::HostError;
use crate::host::Host;
use crate::vm;

/// The limit at which writers are made to wait.
pub(super) const LIMIT: &str = "vm.dirty";
/// The limit from which the kernel writes by itself.
pub(super) const BACKGROUND: &str = "vm.dirty_background";
/// What a whole ramp may take; at its end the limit is set whatever is dirty.
const RAMP_MAX: Duration = Duration::from_secs(5);

/// The dirty limit in force, in bytes, whichever way it is set.
pub(super) fn threshold_bytes(host: &Host) -> Result<u64, HostError> {
    // Where it is not told, nothing is known of the limit.
    Threshold::read(host).map(|threshold| threshold.bytes)
}

/// The dirty limit in force, and the memory of which it is a share where it is one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Threshold {
    pub bytes: u64,
    /// Free memory and page cache, without the reserves that the kernel takes off (`global_dirtyable_memory` of
    /// mm/page-writeback.c): it serves to tell how much that has changed.
    dirtyable_bytes: u64,
}

impl Threshold {
    pub fn read(host: &Host) -> Result<Threshold, HostError> {
        let text = host.tree.text("/proc/vmstat")?;
        let pages = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        let bytes = |name: &str| pages(name).unwrap_or(0_u64).saturating_mul(host.page_bytes());
        let dirtyable = ["nr_free_pages ", "nr_inactive_file ", "nr_active_file "].map(bytes);
        Ok(Threshold { bytes: bytes("nr_dirty_threshold "), dirtyable_bytes: dirtyable.iter().sum() })
    }

    /// What this one, which was a share in percent of memory, comes to with the memory of now.
    pub fn with_memory_of(&self, now: &Threshold, percent: u64) -> u64 {
        let part = |bytes: u64| bytes.saturating_mul(percent) / 100;
        (self.bytes + part(now.dirtyable_bytes)).saturating_sub(part(self.dirtyable_bytes))
    }
}

/// Bytes as parts per million of the dirty limit in force, as the kernel computes them for a bdi.
pub(super) fn share_ppm(host: &Host, bytes: i64) -> Option<i64> {
    let threshold = threshold_bytes(host).ok().filter(|bytes| *bytes > 0)?;
    let ppm = u128::from(u64::try_from(bytes).ok()?) * 1_000_000 / u128::from(threshold);
    i64::try_from(ppm).ok()
}

/// The other way round, as a bdi shows it.
pub(super) fn of_share(host: &Host, ppm: i64) -> Option<i64> {
    let bytes = u128::from(u64::try_from(ppm).ok()?) * u128::from(threshold_bytes(host).ok()?) / 1_000_000;
    i64::try_from(bytes).ok()
}

/// Whether this value of this knob is the dirty limit below the one in force.
pub(super) fn lowers(host: &Host, knob: &KnobName, value: &Value) -> bool {
    knob.to_string() == LIMIT
        && match (threshold_bytes(host), in_bytes(host, knob, value)) {
            (Ok(now), Some(then)) => then < now,
            _ => false,
        }
}

/// Values on the way down to `value`, each after the dirty pages fell below it: lowering the limit at once would
/// stall every buffered writer of the machine until the surplus is written. `value` itself where nothing is lowered.
pub(super) fn ramp(host: &Host, knob: &KnobName, value: &Value) -> Vec<Value> {
    // What the kernel refuses anyway is not approached.
    let is_possible = |bytes: u64| knob.to_string() == LIMIT && bytes >= 2 * host.page_bytes();
    let halfway = match (threshold_bytes(host), in_bytes(host, knob, value)) {
        (Ok(from), Some(to)) if is_possible(to) => halves(from, to),
        _ => Vec::new(),
    };
    halfway.into_iter().map(Value::Bytes).chain([value.clone()]).collect()
}

/// Bytes of dirty pages that a value stands for.
fn in_bytes(host: &Host, knob: &KnobName, value: &Value) -> Option<u64> {
    match value {
        Value::Bytes(bytes) => Some(*bytes),
        Value::Ratio(percent) => match place::value(&host.tree, knob).ok()? {
            Value::Ratio(now) if now > 0 => Some(threshold_bytes(host).ok()?.saturating_mul(*percent) / now),
            _ => Some(host.available_memory_bytes().ok()?.saturating_mul(*percent) / 100),
        },
        _ => None,
    }
}

/// Halves of `from` that are above `to`.
pub(super) fn halves(from: u64, to: u64) -> Vec<u64> {
    std::iter::successors(Some(from / 2), |bytes| Some(bytes / 2)).take_while(|bytes| *bytes > to).collect()
}

/// Waits before each step of a ramp until less is dirty or being written than the step allows, for a part of the
/// time that is left.
pub(super) struct Descent {
    until: Instant,
    steps_left: u32,
}

impl Descent {
    pub fn of(steps: usize) -> Self {
        Descent { until: Instant::now() + RAMP_MAX, steps_left: u32::try_from(steps).unwrap_or(u32::MAX) }
    }

    pub fn before(&mut self, host: &Host, value: &Value) {
        let patience = self.until.saturating_duration_since(Instant::now()) / self.steps_left.max(1);
        self.steps_left = self.steps_left.saturating_sub(1);
        if let Value::Bytes(bytes) = value {
            wait_below(host, *bytes, patience);
        }
    }
}

/// Where nobody can tell what is dirty, there is nothing to wait for: a limit must come back all the same.
fn wait_below(host: &Host, bytes: u64, patience: Duration) {
    const POLL: Duration = Duration::from_millis(20);
    let until = Instant::now() + patience;
    let is_above =
        || vm::memory(&host.tree).is_ok_and(|memory| memory.dirty_bytes + memory.writeback_bytes >= bytes);
    while Instant::now() < until && is_above() {
        sleep(POLL.min(patience));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ramp_halves_down_to_the_limit() {
        for (from, to, steps) in [
            (4000, 600, vec![2000, 1000]),
            (4000, 500, vec![2000, 1000]),
            (1000, 900, vec![]),
            // Raising takes one step.
            (1000, 4000, vec![]),
            (0, 10, vec![]),
            (10, 0, vec![5, 2, 1]),
        ] {
            assert_eq!(halves(from, to), steps, "{from} → {to}");
        }
    }
}
