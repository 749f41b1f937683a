//! The constants of the law, all of them, each with its reason.

pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// Dirty pages of a bulk writer that is not paced, as time at the device's rate: it bridges the pauses in which the kernel holds
/// writers back (200 ms at most, most of them 10 to 100), so the device stays busy, and a sync waits for no more.
pub(super) const BUDGET_NS: u64 = SECOND_NS / 10;
/// The least of them: below that a device has no two requests of a megabyte to choose from.
pub(super) const BUDGET_LEAST_BYTES: u64 = 2 << 20;
/// Those of a paced one, as time at its pace: io.max serves in slices of 100 ms, and two of them are always filled. Twice that while
/// syncs pause: it is soon written when they come back.
pub(super) const PACED_NS: u64 = SECOND_NS / 4;
/// No more than that as time at the device's rate: io.max lets a bio go as a whole, and one of large folios may hold all that is dirty.
/// A device's bucket holds about as much.
pub(super) const LUMP_NS: u64 = SECOND_NS / 12;
/// What was dirty before a bound is written without a pace for so long at most.
pub(super) const DRAINED_NS: u64 = 3 * SECOND_NS;
/// The first pace, as a share of the device's rate: a queue at four fifths of its rate is empty most of the time (M/D/1).
pub(super) const FIRST_PACE: f64 = 0.8;
/// The pace of a probe, as a share of the device's rate: a queue at a tenth of its rate is nearly always empty.
pub(super) const PROBE_PACE: f64 = 0.1;
/// The least pace, in bytes a second: the slowest disk does that, and a copy still ends.
pub(super) const PACE_LEAST: u64 = 1_000_000;
/// One step cuts to no less than this: a single bad second may be somebody else's.
pub(super) const CUT_MOST: f64 = 0.5;
/// One step raises by this share at least and twice that at most, and cuts by as much at least: noise of a second's syncs is as large.
pub(super) const RAISE: f64 = 0.04;
/// What proved too much is not tried again for so long: twenty steps down cost less than a fiftieth of the time.
pub(super) const TOO_MUCH_NS: u64 = 20 * SECOND_NS;
/// A move is judged by so much of what follows it, and a sync that has been under way for longer loses, whatever others do.
pub(super) const JUDGED_NS: u64 = SECOND_NS;
/// The same where pages count for others: nothing bounds what is dirty of them, and the kernel writes it every five seconds
/// (`vm.dirty_writeback_centisecs`).
pub(super) const LUMPS_NS: u64 = 6 * SECOND_NS;
/// And after so long all of it is written that a pace let through (`vm.dirty_expire_centisecs`, and those five seconds).
pub(super) const EXPIRED_NS: u64 = 35 * SECOND_NS;
/// Without a byte written for so long a group's work is over, and its limits are what they were.
pub(super) const IDLE_NS: u64 = 30 * SECOND_NS;
/// A group that a limit harms, or does not serve, is left alone for so long.
pub(super) const SPARED_NS: u64 = 600 * SECOND_NS;
/// So much more memory a group gets that waits for memory, each time it does; a fifth of it may be dirty.
pub(super) const ROOM_BYTES: [u64; 3] = [0, 16 << 20, 64 << 20];
/// From this share of the time on, memory stalls or waits for something else than writing are harm.
pub(super) const STALL: f64 = 0.2;
/// A limit stays so far below one that proved too much: near it a queue's waits rise steeply, and what syncs lose while that is tried
/// is more than the bulk writer gains.
pub(super) const BELOW: f64 = 0.9;
/// A pace hurts if syncs keep so much more without it: more than a second's noise.
pub(super) const HURTS: f64 = 0.1;
/// A pace that hurts is tried again after [`TOO_MUCH_NS`], twice that, and so on, this often: ten minutes at most. So is whether private
/// limits are enough after they were not.
pub(super) const HURTS_MOST: u32 = 5;
/// Below this share of what syncs are to keep, half of that time tells: no noise is as large.
pub(super) const PLAIN: f64 = 0.8;
/// One step of a pace divides it by so much at most, and multiplies it by half of that: a single bad second may be somebody else's.
pub(super) const CHANGE_MOST: f64 = 4.0;
/// A pace aims at what syncs are to keep and this share of the rest: what is tried above it costs them something.
pub(super) const AIM: f64 = 0.1;
