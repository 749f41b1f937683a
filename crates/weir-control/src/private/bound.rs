//! From a budget of dirty pages to memory.high.
//!
//! The kernel lets so many of a cgroup's pages be dirty as `vm.dirty_ratio` is of its page cache and of what it may still
//! grow by (mm/page-writeback.c, `mem_cgroup_wb_stats` and `domain_dirty_limits`). So memory.high is what the group holds besides page cache,
//! and page cache of which that share is the budget.

use super::Memory;

/// Room above what a group holds besides page cache, at least: each processor is charged ahead by 64 pages
/// (`MEMCG_CHARGE_BATCH`), and a process may take some megabytes between two looks.
const MARGIN_BYTES: u64 = 4 << 20;
/// The same as a share of what it holds.
const MARGIN_SHARE: u64 = 8;
/// A limit that is less than this share too high stays: each change is a write to the kernel.
const SETTLED_SHARE: u64 = 16;

/// The least memory.high that lets a group have so many bytes dirty; `dirty_share` is what the kernel lets be dirty of
/// page cache, 0 to 1.
pub fn needed(memory: &Memory, budget_bytes: u64, dirty_share: f64) -> u64 {
    let held = memory.held();
    let margin = MARGIN_BYTES.max(held / MARGIN_SHARE);
    let cache = budget_bytes as f64 / dirty_share.clamp(0.01, 1.0);
    // Pages that are not written yet cannot be given back: a group that is above memory.high for it looks for other pages all the time.
    let cache = (cache as u64).max(memory.backlog() + memory.backlog() / MARGIN_SHARE);
    held.saturating_add(margin).saturating_add(cache)
}

/// The memory.high to be in force: upward at once, since nothing may wait for memory; downward where it is worth a write.
pub fn followed(in_force: Option<u64>, needed: u64, found: Option<u64>) -> u64 {
    let kept = in_force.filter(|now| *now >= needed && *now - needed <= now / SETTLED_SHARE);
    // Some room, so that a group that grows slowly is not written for at every look.
    let wanted = kept.unwrap_or(needed + needed / (2 * SETTLED_SHARE));
    found.map_or(wanted, |found| wanted.min(found))
}
