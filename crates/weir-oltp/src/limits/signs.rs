//! What the evidence shows of processors and their queues, and of pages that have to be written.

use super::evidence::Evidence;
use super::profile::{Part, Profile};
use crate::processors::Processors;
use weir_core::result::run_result::LATE_SHARE_MAX;

/// Processors are short from here on. The remaining share is what two processors cannot use of each other's time.
pub(super) const SATURATED: f64 = 0.85;
/// A wait that accounts for less is not what limits a run.
pub(super) const WORTH_NAMING: f64 = 0.25;
/// An open loop is satisfied with at least this share of the rate asked for.
const RATE_AT_LEAST: f64 = 0.97;
/// Writes of data pages are the device's main work from here on, by their share of all its writes or of their bytes.
const PAGES_DOMINATE: f64 = 0.5;
/// A device is busy from here on. A device that works in parallel is used for far less than all of the time when it can
/// take no more; what is throttled above its queue shows in those that wait for it alone (pressure).
const DEVICE_BUSY: f64 = 0.2;
/// The log was full at so many of the looks: writing goes on as fast as pages are written.
const MOSTLY_FULL: f64 = 0.5;
/// Waits for a free page are what a transaction waits for from here on, by their number in one.
const PAGE_WAITS: f64 = 0.05;
/// Checkpoints forced by the size of the log come too often from here on: PostgreSQL's own `checkpoint_warning`.
const CHECKPOINTS_APART_NS: u64 = 30_000_000_000;
/// The page that PostgreSQL puts into its log.
const PAGE_IMAGE_BYTES: u64 = 8192;
/// Below this share of busy processors, who waits for one waits for it to wake up, not for its turn: the scheduler's
/// clock counts both as waiting.
const QUEUES_FROM: f64 = 0.6;

/// Whether the server shares these processors with the client, as far as is known: of a server elsewhere they tell nothing.
pub(super) fn serves_here(evidence: &Evidence) -> bool {
    evidence.watched.cpu.server_ns.is_some()
}

/// Whether servers share them of which the first alone was watched: whatever they use here is part of the rest.
pub(super) fn serve_unsummed(evidence: &Evidence) -> bool {
    !serves_here(evidence) && evidence.watched.server_processors > 0
}

/// Share of the processor time of server and client that was used, whoever used it.
pub(super) fn busy_share(evidence: &Evidence) -> Option<f64> {
    let all = Processors::watched(&evidence.watched).filter(|_| serves_here(evidence))?;
    Some(all.busy_share())
}

/// Share of this machine's processor time that gives way to nobody, wherever the server is: all but work of a lowered
/// priority.
pub(super) fn pressing_share(evidence: &Evidence) -> Option<f64> {
    let all = Processors::watched(&evidence.watched)?;
    Some(((all.busy - all.niced) / f64::from(all.online.max(1))).min(1.0))
}

/// Processors that others use and that do not give way; 0 where that is not known.
pub(super) fn pressing_others(evidence: &Evidence) -> f64 {
    let all = Processors::watched(&evidence.watched).filter(|all| all.server.is_some());
    all.map_or(0.0, |all| all.rest - all.niced)
}

/// Of a wait for a processor, the share that is behind other programs: their part of the processors that are used. Niced ones
/// get a large part only where server and client leave it.
pub(super) fn behind_others(evidence: &Evidence) -> f64 {
    let all = Processors::watched(&evidence.watched).filter(|all| all.server.is_some());
    all.map_or(0.0, |all| all.rest / all.busy.max(f64::MIN_POSITIVE))
}

/// Whether the data lie in memory, where no device can be waited for.
pub(super) fn is_in_memory(evidence: &Evidence) -> bool {
    evidence.watched.device.as_ref().is_some_and(|device| device.is_memory)
}

/// Share of a transaction that is its COMMIT by the client's clock and no wait for a replica, what is slow about a commit
/// that had to sleep included: the turns that server and client wait for afterwards.
pub(super) fn commits_by_clock(evidence: &Evidence, profile: &Profile) -> f64 {
    evidence.load.commit_share() - profile.share(Part::Replica)
}

/// Whether an open loop's transactions ran when they were due.
pub(super) fn is_satisfied(evidence: &Evidence) -> bool {
    let load = &evidence.load;
    load.asked_per_second.is_some_and(|asked| {
        load.late.max(load.not_started) <= LATE_SHARE_MAX && load.per_second() >= RATE_AT_LEAST * asked
    })
}

/// Whether processors are used for at least such a share, and what others leave of them is less than the transactions
/// could use: a session uses one at a time, its own or the client's.
pub(super) fn are_short(evidence: &Evidence, from: f64) -> bool {
    let at_once = evidence.load.busy_ns as f64 / evidence.load.elapsed_ns.max(1) as f64;
    let is_enough = at_once + pressing_others(evidence) <= f64::from(evidence.watched.processors);
    !is_enough && pressing_share(evidence).is_some_and(|busy| busy >= from)
}

/// Whether waiting for a processor is waiting for a turn, for somebody who may use so many of them.
fn is_queue(evidence: &Evidence, may_use: u32) -> bool {
    let confined = may_use > 0 && may_use < evidence.watched.processors;
    confined || pressing_share(evidence).is_none() || are_short(evidence, QUEUES_FROM)
}

/// The server's wait for its turn on a processor.
pub(super) fn server_queues(evidence: &Evidence, profile: &Profile) -> f64 {
    let queues = is_queue(evidence, evidence.watched.server_processors);
    if queues { profile.share(Part::ServerQueues) - stalled_queues(evidence, profile) } else { 0.0 }
}

/// The client's.
pub(super) fn client_queues(evidence: &Evidence, profile: &Profile) -> f64 {
    let queues = is_queue(evidence, evidence.watched.client_processors);
    if queues { profile.share(Part::ClientQueues) } else { 0.0 }
}

/// Whether data pages cannot be written later: the log or the pool has no room for more changes, or checkpoints follow
/// each other because the log is small.
fn is_pressed(evidence: &Evidence) -> bool {
    let counters = evidence.watched.counters.unwrap_or_default();
    let forced = counters.forced_checkpoints.unwrap_or(0);
    holds_up_writers(evidence) || forced.saturating_mul(CHECKPOINTS_APART_NS) >= evidence.watched.elapsed_ns
}

/// Whether InnoDB mostly lets sessions that change something wait until its page cleaner has made room.
pub(super) fn holds_up_writers(evidence: &Evidence) -> bool {
    held_up_share(evidence) >= MOSTLY_FULL
}

/// Share of the time in which it does. They sleep on a futex, whatever the device looks like meanwhile.
fn held_up_share(evidence: &Evidence) -> f64 {
    let counters = evidence.watched.counters.unwrap_or_default();
    let writes_pages = counters.page_writes.is_some_and(|pages| pages > 0);
    if evidence.load.is_read_only || is_in_memory(evidence) || !writes_pages {
        return 0.0;
    }
    let Some(full) = counters.log_full else { return 0.0 };
    let waits = evidence.load.per_transaction(counters.free_page_waits.unwrap_or(0));
    if waits >= PAGE_WAITS { 1.0 } else { full }
}

/// Whether data pages that have to be written at once are what the device does, so that commits wait behind them.
pub(super) fn pages_fill_device(evidence: &Evidence) -> bool {
    let watched = &evidence.watched;
    let (Some(counters), Some(device)) = (watched.counters, watched.device.as_ref()) else { return false };
    let rate = |count: u64| count as f64 * 1e9 / watched.elapsed_ns.max(1) as f64;
    let pages = counters.page_writes.unwrap_or(0);
    let by_number = rate(pages) >= PAGES_DOMINATE * device.writes_per_second.max(1.0);
    // Without checkpoints the log would hold no images of pages: where it is made of them, its own writes are theirs.
    let of_page_size = |count: u64| count.saturating_mul(PAGE_IMAGE_BYTES);
    let images = of_page_size(counters.log_page_images.unwrap_or(0));
    let log_of_images =
        images as f64 >= PAGES_DOMINATE * counters.log_bytes.map_or(f64::INFINITY, |n| n as f64);
    let bytes = rate(of_page_size(pages) + images);
    let by_bytes = log_of_images && bytes >= PAGES_DOMINATE * device.write_bytes_per_second.max(1.0);
    is_pressed(evidence) && (by_number || by_bytes) && is_busy(evidence) && !device.is_memory
}

/// Whether the device has work for a good part of the time, or somebody waits for it.
fn is_busy(evidence: &Evidence) -> bool {
    let watched = &evidence.watched;
    let util = watched.device.as_ref().map(|device| device.util);
    [util, watched.pressure_io].into_iter().flatten().any(|share| share >= DEVICE_BUSY)
}

/// Time on other threads of the server, and in queues for a processor, that is waiting for pages to be written: whenever the
/// page cleaner has made some room, all that wait are woken, and most find none and sleep again. It counts for the share of
/// the time in which there was no room.
pub(super) fn stalled(evidence: &Evidence, profile: &Profile) -> f64 {
    stalled_latches(evidence, profile) + stalled_queues(evidence, profile)
}

/// The part of it on latches.
pub(super) fn stalled_latches(evidence: &Evidence, profile: &Profile) -> f64 {
    held_up_share(evidence) * profile.share(Part::Latch)
}

/// Where processors are short the page cleaner itself may wait for one.
fn stalled_queues(evidence: &Evidence, profile: &Profile) -> f64 {
    let is_short = are_short(evidence, SATURATED);
    if is_short { 0.0 } else { held_up_share(evidence) * profile.share(Part::ServerQueues) }
}
