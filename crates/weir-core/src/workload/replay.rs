//! A recording as a workload: the I/Os of a device, brought into the size and the blocks of a target, each at its time.
//!
//! What a recording says is believed of nothing but order: times and offsets are bounded here, whatever they claim.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};
use crate::workload::op::{Op, OpKind, OpSource, Then};
use crate::workload::spec::{BlockSize, Job, Replay, Space, SyncMode};
use crate::workload::validate::{SpecError, fail_if};

/// An I/O that is longer is played in parts of this length, all at its time. A bio of O_DIRECT holds no more than 256
/// pages (BIO_MAX_VECS, include/linux/bio.h) either.
pub const PART_BYTES_MAX: u32 = 1 << 20;
/// No I/O that moves data is longer: whoever says so means zeros or a discard.
pub const IO_BYTES_MAX: u32 = 64 << 20;
/// Offsets are signed in the kernel (loff_t).
pub const OFFSET_MAX: u64 = i64::MAX as u64;
/// Buffers of all operations in flight together.
const BUFFERS_BYTES_MAX: u64 = 256 << 20;
/// Places for operations in flight, unless more or fewer are asked for.
const DEPTH_MIN: u64 = 64;
const DEPTH_MAX: u64 = 1024;
/// A target that is slower than the recorded device has more in flight.
const DEPTH_SPARE: u64 = 4;

/// An I/O of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recorded {
    /// When, ns of the recording's clock.
    pub at_ns: u64,
    /// Where on its device, bytes.
    pub offset: u64,
    /// Length; 0: a flush of the device's cache.
    pub bytes: u32,
    /// Writes; else it reads.
    pub is_write: bool,
    /// The device's cache is emptied before (PREFLUSH).
    pub flushes_first: bool,
    /// Durable when it is done (FUA).
    pub is_durable: bool,
}

/// The target as far as playing needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ground {
    /// Size of the file or device.
    pub bytes: u64,
    /// Left untouched at its beginning.
    pub base: u64,
    /// What offsets and lengths are multiples of.
    pub block: u64,
}

/// What is asked of the playing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Twice as fast: 2.
    pub speed: f64,
    /// How offsets come into the target; without it as recorded where that fits, else wrapped.
    pub space: Option<Space>,
    /// Longest time without any I/O, ns, before it is played at its speed.
    pub gap_ns_max: u64,
}

/// What became of the recording's I/Os.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fitted {
    /// I/Os played.
    pub ios: u64,
    /// Of these, reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Of the writes, durable when done (FUA).
    pub durable: u64,
    /// Flushes without data.
    pub flushes: u64,
    /// Of the writes, those that a flush goes with (PREFLUSH).
    pub flushed_writes: u64,
    /// Data, bytes.
    pub bytes: u64,
    /// Operations that the I/Os are played as.
    pub operations: u64,
    /// From the first to the last, as played, ns.
    pub span_ns: u64,
    /// End of the farthest I/O on the recorded device, bytes.
    pub extent_bytes: u64,
    /// How offsets came into the target.
    pub space: Space,
    /// Bytes of the target that are used.
    pub target_bytes: u64,
    /// What offsets and lengths were rounded to, bytes.
    pub block_bytes: u64,
    /// I/Os that grew to whole blocks.
    pub rounded: u64,
    /// I/Os that are at another offset than recorded, rounding left out.
    pub moved: u64,
    /// I/Os played in parts.
    pub in_parts: u64,
    /// I/Os cut because the target is smaller than they are.
    pub shortened: u64,
    /// Times without I/O that were shortened.
    pub gaps: u64,
    /// By so much together, ns of the recording.
    pub gaps_ns: u64,
    /// I/Os that stood behind later ones.
    pub out_of_order: u64,
}

/// A recording, ready to be played.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    ios: Vec<Recorded>,
    sizes: BTreeMap<u32, u64>,
    /// What became of it.
    pub fitted: Fitted,
}

impl Plan {
    /// Brings I/Os into order, time and space.
    ///
    /// # Errors
    /// Where there are none, the rules make no sense, or they do not fit as recorded though that was asked for.
    pub fn new(mut ios: Vec<Recorded>, rules: &Rules, ground: &Ground) -> Result<Plan, SpecError> {
        check(rules)?;
        if ios.is_empty() {
            return Err(SpecError::new("the recording has no I/O that can be played"));
        }
        let mut fitted = Fitted { ios: ios.len() as u64, ..Fitted::default() };
        ios.iter_mut().for_each(|io| io.offset = io.offset.min(OFFSET_MAX));
        put_in_time(&mut ios, rules, &mut fitted);
        let mut sizes = BTreeMap::new();
        if let Some(end) = ios.iter().filter(|io| io.bytes > 0).map(|io| end_of(io, ground.block)).max() {
            fitted.extent_bytes = end;
            let placer = Placer::new(rules.space, ground, end)?;
            (fitted.space, fitted.target_bytes) = (placer.space, placer.usable);
            for io in &mut ios {
                placer.place(io, &mut fitted);
                for bytes in parts(io) {
                    *sizes.entry(bytes).or_insert(0) += 1;
                }
            }
        } else {
            fitted.flushes = fitted.ios;
        }
        fitted.block_bytes = ground.block;
        fitted.operations = sizes.values().sum::<u64>() + fitted.flushes + fitted.flushed_writes;
        Ok(Plan { ios, sizes, fitted })
    }

    /// The job that plays it, from one that says where and how: sizes, mix and places for operations in flight are the
    /// plan's. `depth` is what was asked for, `recorded_depth` the most that the recording has in flight.
    pub fn job(&self, how: Job, replay: Replay, depth: Option<u32>, recorded_depth: u64) -> Job {
        let sizes: Vec<(Bytes, f64)> =
            self.sizes.iter().map(|(bytes, n)| (Bytes(u64::from(*bytes)), *n as f64)).collect();
        let block = match sizes.as_slice() {
            [] => BlockSize::Fixed(Bytes(self.fitted.block_bytes)),
            [(only, _)] => BlockSize::Fixed(*only),
            _ => BlockSize::Split(sizes),
        };
        let all = (self.fitted.reads + self.fitted.writes).max(1);
        let by_memory = (BUFFERS_BYTES_MAX / block.largest().max(4096)).max(1);
        let wanted = recorded_depth.saturating_mul(DEPTH_SPARE).clamp(DEPTH_MIN, DEPTH_MAX).min(by_memory);
        Job {
            block,
            read_percent: if self.fitted.writes == 0 {
                100.0
            } else {
                self.fitted.reads as f64 * 100.0 / all as f64
            },
            depth: depth.unwrap_or(wanted as u32),
            replay: Some(replay),
            ..how
        }
    }

    /// The operations, each at its time.
    pub fn source(self) -> Player {
        Player { ios: self.ios, next: 0, played_bytes: 0, has_flushed: false }
    }
}

fn check(rules: &Rules) -> Result<(), SpecError> {
    fail_if(
        !(0.001..=1000.0).contains(&rules.speed),
        || format!("a speed of {} is not possible", rules.speed),
        "1 plays as recorded, 2 twice as fast, 0.5 half as fast; from 0.001 to 1000",
    )
}

/// Sorts, and turns times of the recording into times since the start.
fn put_in_time(ios: &mut [Recorded], rules: &Rules, fitted: &mut Fitted) {
    let behind = |pair: &&[Recorded]| pair[0].at_ns > pair[1].at_ns;
    fitted.out_of_order = ios.windows(2).filter(behind).count() as u64;
    ios.sort_by_key(|io| io.at_ns);
    let mut before_ns = ios.first().map_or(0, |io| io.at_ns);
    let mut since_start_ns = 0_u64;
    for io in ios.iter_mut() {
        let gap_ns = io.at_ns - before_ns;
        before_ns = io.at_ns;
        if gap_ns > rules.gap_ns_max {
            fitted.gaps += 1;
            fitted.gaps_ns = fitted.gaps_ns.saturating_add(gap_ns - rules.gap_ns_max);
        }
        since_start_ns = since_start_ns.saturating_add(gap_ns.min(rules.gap_ns_max));
        io.at_ns = (since_start_ns as f64 / rules.speed) as u64;
    }
    fitted.span_ns = ios.last().map_or(0, |io| io.at_ns);
}

/// Where an I/O ends, in whole blocks.
fn end_of(io: &Recorded, block: u64) -> u64 {
    // No overflow: both are below 2^63.
    (io.offset + u64::from(io.bytes)).next_multiple_of(block)
}

/// Brings offsets into the target.
struct Placer {
    space: Space,
    block: u64,
    base: u64,
    usable: u64,
    extent: u64,
}

impl Placer {
    fn new(asked: Option<Space>, ground: &Ground, extent: u64) -> Result<Placer, SpecError> {
        let usable = ground.bytes.saturating_sub(ground.base) / ground.block * ground.block;
        fail_if(
            usable == 0,
            || format!("a target of {} holds no block of {} bytes", Bytes(ground.bytes), ground.block),
            "name a larger one",
        )?;
        fail_if(
            !ground.base.is_multiple_of(ground.block),
            || {
                format!(
                    "an offset of {} is not a multiple of the block of {} bytes",
                    ground.base, ground.block
                )
            },
            "start at a multiple of the target's block",
        )?;
        let fits = extent <= usable;
        fail_if(
            asked == Some(Space::Recorded) && !fits,
            || format!("the recording reaches to {} and the target has {}", Bytes(extent), Bytes(usable)),
            "--space wrap or --space scale brings it in, or name a larger target",
        )?;
        let space = asked.unwrap_or(if fits { Space::Recorded } else { Space::Wrap });
        Ok(Placer { space, block: ground.block, base: ground.base, usable, extent })
    }

    /// Places one, and counts what became of it.
    fn place(&self, io: &mut Recorded, fitted: &mut Fitted) {
        if io.bytes == 0 {
            fitted.flushes += 1;
            return;
        }
        let start = io.offset / self.block * self.block;
        let whole = end_of(io, self.block) - start;
        fitted.rounded += u64::from(whole != u64::from(io.bytes) || start != io.offset);
        let len = whole.min(self.usable);
        fitted.shortened += u64::from(len < whole);
        let at = match self.space {
            Space::Recorded | Space::Wrap => start % self.usable,
            Space::Scale => {
                let scaled = u128::from(start) * u128::from(self.usable) / u128::from(self.extent.max(1));
                scaled as u64 / self.block * self.block
            }
        };
        let at = at.min(self.usable - len);
        fitted.moved += u64::from(at != start);
        (io.offset, io.bytes) = (self.base + at, len as u32);
        fitted.in_parts += u64::from(io.bytes > PART_BYTES_MAX);
        fitted.bytes += len;
        if io.is_write {
            fitted.writes += 1;
            fitted.durable += u64::from(io.is_durable);
            fitted.flushed_writes += u64::from(io.flushes_first);
        } else {
            fitted.reads += 1;
            (io.flushes_first, io.is_durable) = (false, false);
        }
    }
}

/// Lengths of an I/O's parts.
fn parts(io: &Recorded) -> impl Iterator<Item = u32> + use<> {
    let bytes = io.bytes;
    let count = bytes.div_ceil(PART_BYTES_MAX);
    (0..count).map(move |part| (bytes - part * PART_BYTES_MAX).min(PART_BYTES_MAX))
}

/// The operations of a plan.
#[derive(Debug, Clone)]
pub struct Player {
    ios: Vec<Recorded>,
    next: usize,
    played_bytes: u32,
    has_flushed: bool,
}

impl Player {
    fn next(&mut self) -> Option<Op> {
        let io = *self.ios.get(self.next)?;
        let op = |kind, then, len, offset| Op { kind, then, file: 0, len, offset, at_ns: io.at_ns };
        let is_flush = io.bytes == 0;
        // No engine has both in one: they start together.
        if is_flush || (io.flushes_first && !self.has_flushed) {
            self.has_flushed = !is_flush;
            self.next += usize::from(is_flush);
            return Some(op(OpKind::Sync(SyncMode::Fdatasync), Then::Nothing, 0, 0));
        }
        let len = (io.bytes - self.played_bytes).min(PART_BYTES_MAX);
        let offset = io.offset + u64::from(self.played_bytes);
        self.played_bytes += len;
        if self.played_bytes == io.bytes {
            (self.next, self.played_bytes, self.has_flushed) = (self.next + 1, 0, false);
        }
        let kind = if io.is_write { OpKind::Write } else { OpKind::Read };
        let then = if io.is_durable { Then::Commit(SyncMode::RwfDsync) } else { Then::Nothing };
        Some(op(kind, then, len, offset))
    }
}

impl OpSource for Player {
    fn fill(&mut self, out: &mut Vec<Op>, n: usize) {
        out.extend(std::iter::from_fn(|| self.next()).take(n));
    }
}

/// A time without I/O that is played in full, unless another is asked for.
pub const GAP_MAX: Nanos = Nanos::from_secs(60);

#[cfg(test)]
mod tests;
