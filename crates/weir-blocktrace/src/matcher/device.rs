//! What the matcher knows of each device, and its account while it is open.

use super::account::{Account, Reason};
use crate::Event;
use weir_core::target::DeviceNumber;

/// Devices of one recording: more of them are no recording of a real machine.
pub(super) const DEVICES_MAX: usize = 1024;
/// CPUs whose event numbers are followed.
const CPUS_MAX: usize = 1024;
/// Events without a beginning so soon after the first are taken to have begun before it.
const START_NS: u64 = 1_000_000_000;
/// An I/O in flight for so many times the longest one known is not waited for where others fit as well …
const STALE_FACTOR: u64 = 4;
/// … but no I/O younger than this is stale.
const STALE_NS_MIN: u64 = 100_000_000;
/// So many bios of a device were done below and never by themselves: its driver completes in place.
const IN_PLACE: u32 = 64;

/// A device.
#[derive(Debug, Default)]
pub(super) struct Device {
    pub number: DeviceNumber,
    first_ns: u64,
    /// The longest time from Q (or D) to C of an I/O that could be no other.
    longest_ns: u64,
    /// Remaps lead here: a Q may belong to one.
    pub is_remap_target: bool,
    /// Bios here end by completions of their own (dm, most of md), seen at least once.
    pub completes_itself: bool,
    /// Bios done below that had no completion of their own.
    pub done_below: u32,
    /// Something was lost on the way to the recording.
    lossy: bool,
    pub events: u64,
    pub matched: u64,
    pub ambiguous: u64,
    unmatched: [u64; Reason::COUNT],
    /// A bio was seen on its way to it. Where none was, no Q was recorded, and none is missing.
    pub has_queue: bool,
    /// Events of I/Os without a Q, by what that means where Qs were recorded.
    unqueued: [u64; Reason::COUNT],
    /// By CPU: first and last number of its events, and how many there are.
    numbers: Vec<(u32, u32, u32)>,
}

impl Device {
    pub(super) fn new(number: DeviceNumber, first_ns: u64) -> Self {
        Device { number, first_ns, ..Device::default() }
    }

    /// Counts an event, and its number where the recorder gives one.
    #[inline]
    pub(super) fn count(&mut self, event: &Event) {
        self.events += 1;
        if event.sequence != 0 {
            self.follow(event.sequence, event.cpu as usize);
        }
    }

    #[inline]
    fn follow(&mut self, number: u32, cpu: usize) {
        if let Some((first, last, count)) = self.numbers.get_mut(cpu) {
            *first = (*first).min(number);
            *last = (*last).max(number);
            *count += 1;
        } else if cpu < CPUS_MAX {
            self.numbers.resize(cpu + 1, (u32::MAX, 0, 0));
            self.numbers[cpu] = (number, number, 1);
        }
    }

    /// Counts `events` that belong to no known life.
    pub(super) fn unmatched(&mut self, reason: Reason, events: u32) {
        self.unmatched[reason as usize] += u64::from(events);
        self.lossy |= matches!(reason, Reason::NoD | Reason::NoC | Reason::NoRequest);
    }

    /// Counts `events` of an I/O that has ended and has no Q.
    pub(super) fn without_queue(&mut self, events: u32, end_ns: u64) {
        let reason = self.unless_before_start(Reason::NoQ, end_ns);
        self.unqueued[reason as usize] += u64::from(events);
        self.lossy |= self.has_queue && reason == Reason::NoQ;
    }

    /// `reason`, unless the recording had begun so recently that the missing event may have been before it.
    pub(super) fn unless_before_start(&self, reason: Reason, time_ns: u64) -> Reason {
        let since_start_ns = time_ns.saturating_sub(self.first_ns);
        if since_start_ns <= self.longest_ns.max(START_NS) { Reason::BeforeStart } else { reason }
    }

    /// Remembers how long an I/O took that could be no other.
    #[inline]
    pub(super) fn took(&mut self, ns: u64) {
        self.longest_ns = self.longest_ns.max(ns);
    }

    /// Says that the recording has gaps.
    pub(super) fn has_gaps(&mut self) {
        self.lossy = true;
    }

    /// Whether an I/O in flight for so long must have lost its end. Only where events are known to be missing:
    /// otherwise the first in is the first out.
    pub(super) fn is_stale(&self, age_ns: u64) -> bool {
        self.lossy && age_ns > self.patience_ns()
    }

    /// Whether an I/O in flight for so long when the recording ends should have ended in it: its end was lost, or the
    /// device holds it. A device that ended nothing is no measure.
    pub(super) fn is_overdue(&self, age_ns: u64) -> bool {
        self.longest_ns > 0 && age_ns > self.patience_ns()
    }

    fn patience_ns(&self) -> u64 {
        STALE_NS_MIN.max(self.longest_ns.saturating_mul(STALE_FACTOR))
    }

    /// Whether a bio that is done below is done, with no completion of its own to come.
    pub(super) fn completes_in_place(&self) -> bool {
        !self.completes_itself && self.done_below >= IN_PLACE
    }

    /// The account of all its events.
    pub(super) fn account(&self) -> Account {
        let unqueued = if self.has_queue { self.unqueued } else { [0; Reason::COUNT] };
        let complete = self.unqueued.iter().sum::<u64>() - unqueued.iter().sum::<u64>();
        let of = |reason: Reason| self.unmatched[reason as usize] + unqueued[reason as usize];
        let unmatched = Reason::ALL.iter().map(|&reason| (reason, of(reason)));
        let gaps = self.numbers.iter().filter(|(_, _, count)| *count > 0);
        let missing = gaps.map(|&(first, last, count)| {
            u64::from(last - first).saturating_add(1).saturating_sub(count.into())
        });
        Account {
            events: self.events,
            matched: self.matched + complete,
            ambiguous: self.ambiguous,
            unmatched: unmatched.filter(|(_, count)| *count > 0).collect(),
            dropped: missing.sum(),
        }
    }
}
