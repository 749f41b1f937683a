//! What the guard is to hold, and with which constants it goes about it.

use serde::{Deserialize, Serialize};

use weir_core::units::Nanos;

const SECOND: u64 = 1_000_000_000;

/// The latency that syncs are to keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyTarget {
    /// The 99th percentile, absolute.
    Absolute(Nanos),
    /// The 99th percentile, as a multiple of what it is at the same concurrency while no bulk writer runs.
    TimesIdle(f64),
}

/// What the guard is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The tail.
    pub p99: LatencyTarget,
    /// The share of their undisturbed rate that syncs keep at the same concurrency, 0 to 1.
    pub keep: f64,
}

impl Default for Target {
    fn default() -> Target {
        Target { p99: LatencyTarget::TimesIdle(5.0), keep: 0.93 }
    }
}

/// Constants of the law. None of them is a property of one machine: times are of the kernel's write-back or of
/// statistics, everything else is a ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parameters {
    /// What is to be held.
    pub target: Target,
    /// Time between samples.
    pub look_ns: u64,
    /// Time between decisions to raise, and the shortest window they stand on. Half of it is enough for a loss that
    /// nobody could take for noise.
    pub decide_ns: u64,
    /// The longest window.
    pub window_ns: u64,
    /// Silence of the sensor until the limit is frozen.
    pub silence_freeze_ns: u64,
    /// Silence of the sensor until the saved limit is restored.
    pub silence_release_ns: u64,
    /// Without a sync for so long, bulk writers get the saved limit back. The dirty pages of that moment have to be written before
    /// syncs are fast again, and no limit shortens that: it is given back to those who do not come back soon.
    pub release_after_ns: u64,
    /// Syncs that come again within so long belong to a load that pauses by itself.
    pub pause_most_ns: u64,
    /// While syncs pause, and until they have for `release_after_ns`, bulk writers get a limit of so much time at the best
    /// rate the device has delivered: enough to keep it busy, soon written when syncs come back. Several times as much
    /// is less: the kernel then holds writers back for longer at a time, and a device throttled in slices idles in some of
    /// them (measured: 251 MB/s at a tenth of a second, 183 at a quarter, 142 at one).
    pub pause_room_ns: u64,
    /// Without a byte of a bulk writer for so long, bulk writers count as idle. Longer than the longest pause the kernel
    /// gives a writer (200 ms).
    pub bulk_idle_after_ns: u64,
    /// Bulk writers count as active above this share of the best rate the device has delivered, and above
    /// `slack_bytes` a second.
    pub bulk_share: f64,
    /// Less than this, in bytes or in bytes a second, is no flood: the kernel counts pages by processor and adds them up
    /// late, and file systems write by themselves.
    pub slack_bytes: u64,
    /// Syncs that a tail stands on at least: three are expected beyond the 99th percentile.
    pub tail_samples: u64,
    /// Syncs that a mean stands on at least.
    pub mean_samples: u64,
    /// One-sided confidence, in standard deviations, that a share or a tail is off before the limit is cut.
    pub confidence: f64,
    /// Below this share of its target a tail is held with room.
    pub tail_room: f64,
    /// The first limit for a device, as time at the best rate it has delivered.
    pub start_ns: u64,
    /// The least first limit, in bytes: of a device of which nothing is known yet, its rate neither.
    pub start_least_bytes: u64,
    /// Where the limit is low only for a moment, it is so much time at the best rate of the device, or half of that where
    /// little more held: less leaves the device waiting and gains nothing.
    pub low_ns: u64,
    /// Before any flood was seen the limit is set to so many first limits: it is not in the way, and a first flood
    /// cannot run far ahead.
    pub idle_factor: f64,
    /// The most one step raises the limit.
    pub raise_most: f64,
    /// Limits closer than this ratio are one.
    pub settle_ratio: f64,
    /// From this share of all dirtied bytes on, the protected processes are the bulk writer.
    pub checkpoint_share: f64,
    /// Share of the time lost that own pauses account for, from which the limit is too small for the protected processes.
    pub own_share: f64,
    /// How long the limit is at its floor to learn what syncs do undisturbed.
    pub probe_ns: u64,
    /// Time between two of those.
    pub probe_every_ns: u64,
    /// The undisturbed rate of syncs is averaged over so long; their tail ages by as much again tenfold.
    pub reference_ns: u64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            target: Target::default(),
            look_ns: SECOND / 10,
            decide_ns: SECOND,
            window_ns: 5 * SECOND,
            silence_freeze_ns: 10 * SECOND,
            silence_release_ns: 60 * SECOND,
            release_after_ns: 300 * SECOND,
            pause_most_ns: 5 * SECOND,
            pause_room_ns: SECOND / 10,
            bulk_idle_after_ns: SECOND,
            bulk_share: 0.02,
            slack_bytes: 4 << 20,
            tail_samples: 300,
            mean_samples: 20,
            confidence: 1.28,
            tail_room: 0.8,
            start_ns: SECOND / 50,
            start_least_bytes: 4 << 20,
            low_ns: SECOND * 16 / 1000,
            idle_factor: 8.0,
            raise_most: 2.0,
            settle_ratio: 1.15,
            checkpoint_share: 0.8,
            own_share: 0.5,
            probe_ns: SECOND * 8 / 10,
            probe_every_ns: 60 * SECOND,
            reference_ns: 60 * SECOND,
        }
    }
}
