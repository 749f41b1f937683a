//! The constants of the law, all of them, each with its reason. Shares are of one; times are of the kernel's write-back or of
//! statistics.

pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// Rungs of the ladder of limits to a factor of two: a step is 1.4, which changes a loss by more than it is measured with.
pub(super) const RUNGS: f64 = 2.0;
/// The first limit of one thread, as time at the device's rate: no more than a few syncs of a disk wait for it.
pub(super) const START_NS: u64 = SECOND_NS / 50;
/// What keeps a device busy through the longest pauses that writers get of the kernel, as time at its rate.
pub(super) const BUSY_NS: u64 = SECOND_NS / 10;
/// A limit is judged by so much of what follows the move to it, by up to five times as much while that is not sure, and by half where the
/// loss is steep.
pub(super) const JUDGED_NS: u64 = SECOND_NS;
/// One-sided confidence, in standard deviations: one verdict in ten may be wrong, and the next one corrects it.
pub(super) const SURE: f64 = 1.28;
/// Below this share of what was to be expected a loss is steep: no single step explains it.
pub(super) const STEEP: f64 = 0.8;
/// A difference of rates that counts: less is noise of windows of seconds.
pub(super) const GAIN: f64 = 0.03;
/// A dip leads to a third of the limit, for so long and until what was let in before is written.
pub(super) const DIP: i32 = 3;
pub(super) const DIP_NS: u64 = 4 * SECOND_NS / 10;
/// What proved no better is not tried again for so long, and each time for twice as long, up to sixteen times: a step of a second then
/// costs at most an eighth of the time, and soon a hundredth.
pub(super) const AGAIN_NS: u64 = 8 * SECOND_NS;
/// A device that delivers so small a share of what it did at the same limit has become slower, and at the reverse it is fast again.
pub(super) const SLOWER: f64 = 0.65;
/// Syncs that a mean stands on, and a 99th percentile: three of those are beyond it.
pub(super) const MEAN_SYNCS: u64 = 20;
pub(super) const TAIL_SYNCS: u64 = 300;
