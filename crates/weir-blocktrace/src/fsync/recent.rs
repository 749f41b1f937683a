//! The last completions, for one who wants to tell afterwards what led to a slow sync.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weir_core::target::DeviceNumber;

use super::analyst::Analyst;
use super::part::{Begun, Io, IoFlags, Part};

/// Times before a completion are kept in units of so many bits of nanoseconds: 256 ns, up to 18 minutes.
const UNIT_BITS: u32 = 8;
/// A time that is not known, or too long ago.
const UNKNOWN: u32 = u32::MAX;

/// A completion as it is remembered, in half the memory of an [`Io`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastIo {
    /// The disk.
    pub device: DeviceNumber,
    /// C.
    pub complete_ns: u64,
    /// Of D, G and Q, how long before C.
    before: [u32; 3],
    /// The process that dirtied its file last; 0 if not known.
    pub owner_tgid: u32,
    /// The thread inside a sync that submitted it; 0 if none did.
    pub own_tid: u32,
    /// Length.
    pub bytes: u32,
    /// Operation and flags.
    pub flags: IoFlags,
}

impl From<&Io> for PastIo {
    fn from(io: &Io) -> PastIo {
        let before = |ns: u64| match io.complete_ns.saturating_sub(ns) >> UNIT_BITS {
            units if ns != 0 => u32::try_from(units).unwrap_or(UNKNOWN),
            _ => UNKNOWN,
        };
        PastIo {
            device: io.device,
            complete_ns: io.complete_ns,
            before: [io.issue_ns, io.get_ns, io.queue_ns].map(before),
            owner_tgid: io.owner_tgid,
            own_tid: io.own_tid,
            bytes: io.bytes,
            flags: io.flags,
        }
    }
}

impl PastIo {
    /// D, to 256 ns; `None` if not known.
    pub fn issue_ns(&self) -> Option<u64> {
        self.at(self.before[0])
    }

    /// G, to 256 ns; `None` if not known.
    pub fn get_ns(&self) -> Option<u64> {
        self.at(self.before[1])
    }

    /// Q, to 256 ns; `None` if not known.
    pub fn queue_ns(&self) -> Option<u64> {
        self.at(self.before[2])
    }

    fn at(&self, before: u32) -> Option<u64> {
        (before != UNKNOWN).then(|| self.complete_ns - (u64::from(before) << UNIT_BITS))
    }
}

/// The last completions of some time, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub struct LastIos<'a> {
    /// As many as were asked for.
    pub ios: Vec<&'a PastIo>,
    /// Earlier ones.
    pub left_out: usize,
}

/// The last completions, at most so many.
#[derive(Debug, Default)]
pub(super) struct Recent {
    most: usize,
    ios: VecDeque<PastIo>,
    under_way: Vec<Begun>,
}

impl Recent {
    pub fn push(&mut self, io: &Io) {
        if self.most == 0 {
            return;
        }
        if self.ios.len() >= self.most {
            self.ios.pop_front();
        }
        self.ios.push_back(io.into());
    }

    /// Replaces the syncs under way.
    pub fn look(&mut self, parts: &[Part]) {
        if self.most > 0 {
            self.under_way = parts.iter().map(Begun::of).collect();
        }
    }
}

impl Analyst {
    /// Keeps the last completions from now on, at most so many: 48 bytes each.
    pub fn remember(&mut self, most: usize) {
        self.recent = Recent { most, ..Recent::default() };
    }

    /// Syncs that had not returned at the last [`Analyst::under_way`], where completions are kept.
    pub fn remembered_under_way(&self) -> &[Begun] {
        &self.recent.under_way
    }

    /// Names of the processes that own some completions, as far as they are known.
    pub fn owners(&self, ios: &[&PastIo]) -> BTreeMap<u32, String> {
        let ids: BTreeSet<u32> = ios.iter().map(|io| io.owner_tgid).filter(|id| *id != 0).collect();
        ids.into_iter().filter_map(|id| Some((id, self.name_of(id)?.to_string()))).collect()
    }

    /// The last `most` completions between two times (CLOCK_MONOTONIC, ns) on the disks under a device, or on any, as far as
    /// they are remembered.
    pub fn recent(&self, device: Option<DeviceNumber>, from_ns: u64, to_ns: u64, most: usize) -> LastIos<'_> {
        let is_under = |io: &&PastIo| device.is_none_or(|top| self.is_under(io.device, top));
        let is_in_time = |io: &&PastIo| io.complete_ns >= from_ns && io.complete_ns <= to_ns;
        let mut backwards = self.recent.ios.iter().rev().filter(is_in_time).filter(is_under);
        let mut ios: Vec<&PastIo> = backwards.by_ref().take(most).collect();
        ios.reverse();
        LastIos { ios, left_out: backwards.count() }
    }
}
