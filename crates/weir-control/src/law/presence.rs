//! Who is there: whether syncs need protection, whether bulk writers write, whether nothing disturbs.

use std::collections::VecDeque;

use crate::{Bulk, Parameters, Sample, SensorSource};

const SECOND_NS: u64 = 1_000_000_000;
/// Looks in which one look's single sync is not yet worth a limit.
const LOOKS: usize = 10;
/// Looks from which it is told whether those write who are known to be bulk writers.
const LOOKS_TOLD: usize = 3;

/// A device that only serves syncs shows some times [`Parameters::slack_bytes`] under way, one that still writes what a
/// flood left shows many.
const SLACKS: u64 = 8;

/// Who is there.
#[derive(Debug, Clone, Default)]
pub(super) struct Presence {
    /// Whether there were syncs in the last looks.
    syncs: VecDeque<bool>,
    last_sync_ns: Option<u64>,
    /// When syncs last came that were more than a single one: a lone one is not worth a limit.
    last_load_ns: Option<u64>,
    /// The longest time without a sync between two of them, ageing.
    pause_ns: f64,
    protected: bool,
    last_bulk_ns: Option<u64>,
    /// The same where somebody said that they write to this very device.
    told_bulk_ns: Option<u64>,
    /// Since when bulk writers write without a pause that counts.
    bulk_since_ns: u64,
    /// Time, bytes of bulk writers, inflow and syncs of the last looks.
    inflow: VecDeque<Inflow>,
    backlog_bytes: u64,
    /// Bytes written for a sync while nothing else wrote.
    bytes_per_sync: Option<f64>,
    /// When somebody last said who writes.
    told_ns: Option<u64>,
    quiet_since_ns: Option<u64>,
    /// Backlog while bulk writers were idle, ageing.
    idle_backlog: f64,
    /// It still writes what a flood left.
    drains: bool,
    /// Another device on the same disk is flooded.
    is_disturbed: bool,
    /// Bulk writers that private limits hold are at work.
    are_held_at_work: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Inflow {
    elapsed_ns: u64,
    bulk: u64,
    all: i64,
    syncs: u64,
}

impl Inflow {
    fn seconds(&self) -> f64 {
        (self.elapsed_ns as f64 / 1e9).max(1e-3)
    }
}

impl Presence {
    /// Takes in a look; `best` is the best rate of the device in bytes per second.
    pub fn push(&mut self, sample: &Sample, parameters: &Parameters, best: f64) {
        let syncs = &sample.syncs;
        let any = syncs.ended.count() > 0 || syncs.under_way > 0 || syncs.held_back > 0;
        self.syncs.push_back(any);
        if self.syncs.len() > LOOKS {
            self.syncs.pop_front();
        }
        self.pause_ns *= 0.5_f64.powf(sample.elapsed_ns as f64 / (60.0 * 1e9));
        if any {
            let pause = self.last_sync_ns.map_or(0, |at| sample.at_ns - at);
            if pause < parameters.pause_most_ns {
                self.pause_ns = self.pause_ns.max(pause as f64);
            }
            self.last_sync_ns = Some(sample.at_ns);
        }
        let within = |at: Option<u64>, long_ns| at.is_some_and(|at| sample.at_ns - at < long_ns);
        let several = self.syncs.iter().filter(|any| **any).count() >= 2 || syncs.ended.count() > 1;
        // Only a sensor that sees the processes knows that nobody syncs.
        let blind = sample.sensor.source == SensorSource::Diskstats;
        if any && (several || blind || within(self.last_load_ns, parameters.pause_most_ns)) {
            self.last_load_ns = Some(sample.at_ns);
        }
        self.protected = within(self.last_load_ns, parameters.release_after_ns);

        let backlog = sample.backlog_bytes();
        let all = sample.flow.written_bytes as i64 + backlog as i64 - self.backlog_bytes as i64;
        self.backlog_bytes = backlog;
        self.inflow.push_back(Inflow {
            elapsed_ns: sample.elapsed_ns,
            bulk: sample.bulk.dirtied_bytes,
            all,
            syncs: syncs.ended.count(),
        });
        if self.inflow.len() > LOOKS {
            self.inflow.pop_front();
        }
        if sample.bulk.is_told() {
            self.told_ns = Some(sample.at_ns);
        }
        if self.bulk_writes(sample, parameters, best) {
            if !self.bulk_active(sample.at_ns, parameters) {
                self.bulk_since_ns = sample.at_ns;
            }
            self.last_bulk_ns = Some(sample.at_ns);
            if is_held_back(&sample.bulk) || self.is_told(sample.at_ns) {
                self.told_bulk_ns = Some(sample.at_ns);
            }
        }
        self.watch_quiet(sample, parameters);
        // What a flood left is a flood until it is written.
        if self.drains && self.floods_others(sample.at_ns, parameters) {
            self.told_bulk_ns = Some(sample.at_ns);
        }
    }

    /// Whether it is known who writes: writers are asked for less often than looks are taken.
    fn is_told(&self, now_ns: u64) -> bool {
        self.told_ns.is_some_and(|at| now_ns - at < SECOND_NS)
    }

    fn bulk_writes(&self, sample: &Sample, parameters: &Parameters, best: f64) -> bool {
        // What a pace lets through may be less than a flood, and disturbs syncs all the same.
        if self.are_held_at_work || is_held_back(&sample.bulk) {
            return true;
        }
        let least = (parameters.slack_bytes as f64).max(best * parameters.bulk_share);
        if self.is_told(sample.at_ns) {
            let sum = self.inflow(LOOKS_TOLD);
            return sum.bulk as f64 / sum.seconds() > least;
        }
        // Nobody says who writes: what flows in and no sync accounts for. What a sync wrote and its end fall into different
        // looks, and into different slices of a throttle: only over some of those they match.
        let sum = self.inflow(LOOKS);
        let own = self.bytes_per_sync.unwrap_or(0.0) * sum.syncs as f64 * 1.5;
        let unexplained = self.bytes_per_sync.is_some() || sum.syncs == 0;
        let flows = unexplained && (sum.all as f64 - own) / sum.seconds() > least;
        flows || self.backlog_bytes > 2 * parameters.slack_bytes
    }

    /// The last looks, added up.
    fn inflow(&self, looks: usize) -> Inflow {
        self.inflow.iter().rev().take(looks).fold(Inflow::default(), |sum, look| Inflow {
            elapsed_ns: sum.elapsed_ns + look.elapsed_ns,
            bulk: sum.bulk + look.bulk,
            all: sum.all + look.all,
            syncs: sum.syncs + look.syncs,
        })
    }

    fn watch_quiet(&mut self, sample: &Sample, parameters: &Parameters) {
        // Who begins, or comes back after a pause, does not yet do what it does undisturbed.
        let steady = self.syncs.iter().rev().take(2).any(|any| *any);
        self.drains = sample.flow.writeback_bytes >= SLACKS * parameters.slack_bytes;
        let quiet = steady
            && !self.is_disturbed
            && !self.bulk_active(sample.at_ns, parameters)
            && !self.drains
            && sample.syncs.held_back == 0;
        if !quiet {
            self.quiet_since_ns = None;
        } else if self.quiet_since_ns.is_none() {
            self.quiet_since_ns = Some(sample.at_ns);
        }
        let sum = self.inflow(LOOKS);
        if quiet && sum.syncs > 0 {
            let now = sum.all.max(0) as f64 / sum.syncs as f64;
            let before = self.bytes_per_sync.unwrap_or(now);
            self.bytes_per_sync = Some(before + (now - before) * 0.05);
        }
        // What a flood left behind does not count while it is being written.
        if self.undisturbed_since(sample.at_ns).is_some() {
            let aged = self.idle_backlog * 0.5_f64.powf(sample.elapsed_ns as f64 / (30.0 * 1e9));
            self.idle_backlog = aged.max(sample.backlog_bytes() as f64);
        }
    }

    /// Whether there are syncs to protect.
    pub fn protected(&self) -> bool {
        self.protected
    }

    /// Whether syncs have been missing for longer than they usually do, and for a second at least.
    pub fn pauses(&self, now_ns: u64) -> bool {
        let least = SECOND_NS.max((2.0 * self.pause_ns) as u64);
        self.last_load_ns.is_some_and(|at| now_ns - at >= least)
    }

    /// Whether bulk writers write, or did a moment ago.
    pub fn bulk_active(&self, now_ns: u64, parameters: &Parameters) -> bool {
        self.last_bulk_ns.is_some_and(|at| now_ns - at < parameters.bulk_idle_after_ns)
    }

    /// Whether bulk writers are known to write to this device, or what they wrote is still under way. What nobody accounts for does not
    /// count: a disk's counters have all that is written through the devices that are mapped over it.
    pub fn floods_others(&self, now_ns: u64, parameters: &Parameters) -> bool {
        self.told_bulk_ns.is_some_and(|at| now_ns - at < parameters.bulk_idle_after_ns)
    }

    /// Whether another device is flooded that stands on the same disk.
    pub fn disturb(&mut self, is_disturbed: bool) {
        self.is_disturbed = is_disturbed;
    }

    /// Whether bulk writers that private limits hold are at work.
    pub fn hold(&mut self, are_at_work: bool) {
        self.are_held_at_work = are_at_work;
    }

    /// Whether bulk writers have written for so long.
    pub fn bulk_lasts(&self, now_ns: u64, long_ns: u64) -> bool {
        self.bulk_since().is_some_and(|since| now_ns.saturating_sub(since) >= long_ns)
    }

    /// Since when bulk writers write, where they do.
    pub fn bulk_since(&self) -> Option<u64> {
        self.last_bulk_ns.map(|_| self.bulk_since_ns)
    }

    /// Since when nothing disturbs the syncs, where that has lasted a second.
    pub fn undisturbed_since(&self, now_ns: u64) -> Option<u64> {
        self.quiet_since_ns.filter(|since| now_ns - since >= SECOND_NS)
    }

    /// The most that was dirty and under way while bulk writers were idle, ageing, in bytes.
    pub fn idle_backlog(&self) -> u64 {
        self.idle_backlog as u64
    }
}

fn is_held_back(bulk: &Bulk) -> bool {
    bulk.held_back > 0 || bulk.held_back_ns > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceFlow, Limits, Sensor, Syncs};
    use weir_core::stats::CoarseHistogram;
    use weir_core::target::DeviceNumber;

    /// A look in which so many syncs of a millisecond ended and so much was written.
    fn look(number: u64, ended: u64, written_bytes: u64) -> Sample {
        let mut durations = CoarseHistogram::new();
        durations.record_many(1_000_000, ended);
        Sample {
            device: DeviceNumber::default(),
            at_ns: number * SECOND_NS / 10,
            elapsed_ns: SECOND_NS / 10,
            sensor: Sensor { source: SensorSource::Syscalls, silent_ns: 0, lost: 0 },
            syncs: Syncs { ended: durations, under_way: 1, threads: 1, ..Syncs::default() },
            bulk: Bulk::default(),
            flow: DeviceFlow { written_bytes, ..DeviceFlow::default() },
            limits: Limits::default(),
        }
    }

    #[test]
    fn writes_and_syncs_that_fall_into_different_looks_are_no_flood() {
        let (parameters, mut presence) = (Parameters::default(), Presence::default());
        for number in 1..200 {
            // A slice's writes are seen one look before its syncs end.
            let (ended, written) = match number {
                0..20 => (155, 2610 << 10),
                _ if number % 2 == 0 => (10, 5 << 20),
                _ => (300, 100 << 10),
            };
            presence.push(&look(number, ended, written), &parameters, 0.0);
            assert!(!presence.bulk_active(number * SECOND_NS / 10, &parameters), "look {number}");
        }
        for number in 200..203 {
            presence.push(&look(number, 10, 60 << 20), &parameters, 0.0);
        }
        assert!(presence.bulk_active(202 * SECOND_NS / 10, &parameters), "a flood is seen in a few looks");
    }

    /// The disk under a volume has the writes of that one in its counters, and nobody who writes to itself.
    #[test]
    fn only_a_flood_of_which_the_writers_are_known_disturbs_others() {
        let (parameters, mut presence) = (Parameters::default(), Presence::default());
        let mut number = 0;
        let mut push = |bulk: &Bulk, writeback_bytes, looks| {
            for _ in 0..looks {
                number += 1;
                let mut sample = Sample { syncs: Syncs::default(), ..look(number, 0, 20 << 20) };
                (sample.bulk, sample.flow.writeback_bytes) = (bulk.clone(), writeback_bytes);
                presence.push(&sample, &parameters, 0.0);
            }
            let at_ns = number * SECOND_NS / 10;
            (presence.bulk_active(at_ns, &parameters), presence.floods_others(at_ns, &parameters))
        };
        let drains = SLACKS * parameters.slack_bytes;
        let (nobody, held_back) = (Bulk::default(), Bulk { held_back: 1, ..Bulk::default() });
        let dirtied = |dirtied_bytes| Bulk { dirtied_bytes, ..Bulk::default() };
        for (what, bulk, writeback_bytes, looks, expected) in [
            ("nobody says who writes", &nobody, 0, 30, (true, false)),
            ("nor who left what is under way", &nobody, drains, 30, (true, false)),
            ("a bulk writer", &dirtied(20 << 20), 0, 5, (true, true)),
            ("what it left", &nobody, drains, 60, (true, true)),
            ("that is written", &nobody, 0, 20, (true, false)),
            ("one who writes a little", &dirtied(1), 0, 20, (false, false)),
            ("one who was throttled", &held_back, 0, 1, (true, true)),
        ] {
            assert_eq!(push(bulk, writeback_bytes, looks), expected, "{what}");
        }
    }
}
