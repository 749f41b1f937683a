//! Whether others write so little that a machine-wide limit may be lowered for a trial: it holds them back, too.

use std::time::Duration;

use weir_core::target::TargetFacts;
use weir_core::units::{Bytes, megabytes_per_second};
use weir_host::Host;

/// Others may have less than this dirty and write less than this.
const DIRTY: u64 = 512 << 20;
const BYTES_PER_SECOND: f64 = 20e6;
/// How long they are watched.
const WATCH: Duration = Duration::from_secs(1);

/// Why others would suffer, if they would. `wait` sleeps, and says whether to go on.
pub fn unquiet(host: &Host, target: &TargetFacts, wait: impl FnOnce(Duration) -> bool) -> Option<String> {
    let before = host.processes();
    if !wait(WATCH) {
        return Some("interrupted".to_string());
    }
    let loads = host.processes().since(&before);
    let dirty = dirty_bytes(host, target);
    let writes: f64 = loads.iter().map(|p| p.write_bytes_per_second).sum();
    let most = loads.iter().max_by(|a, b| a.write_bytes_per_second.total_cmp(&b.write_bytes_per_second));
    if dirty > DIRTY {
        return Some(format!("{} are still dirty, so every buffered writer would stall", Bytes(dirty)));
    }
    (writes > BYTES_PER_SECOND).then(|| {
        let name = most.map_or("others", |p| p.name.as_str());
        format!("other processes write {} ({name} most) and would be throttled", megabytes_per_second(writes))
    })
}

/// How much must be dirty, near enough, for writers to be throttled: they are from halfway between the dirty limit and
/// the background limit on (mm/page-writeback.c, dirty_freerun_ceiling). 0 where neither is known.
pub fn enough_to_hold_back(limits: [u64; 2]) -> u64 {
    limits.iter().sum::<u64>() / 2 / 20 * 19
}

/// The same by this machine's limits as they are now.
pub fn throttled_from(host: &Host) -> u64 {
    let vm = host.vm_settings();
    let limits = [vm.dirty_threshold_bytes, vm.dirty_background_threshold_bytes];
    enough_to_hold_back(limits.map(Option::unwrap_or_default))
}

/// Dirty and under writeback, of the whole machine.
pub fn dirty_bytes(host: &Host, target: &TargetFacts) -> u64 {
    let sample = host.sample(target);
    let memory = sample.since(&sample).memory;
    memory.dirty_bytes + memory.writeback_bytes
}
