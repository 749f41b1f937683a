//! The last completions, for one who wants to tell afterwards what led to a slow sync.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use weir_core::target::DeviceNumber;

use super::analyst::Analyst;
use super::part::{Begun, Io, Part};

/// The last completions, at most so many.
#[derive(Debug, Default)]
pub(super) struct Recent {
    most: usize,
    ios: VecDeque<Io>,
    under_way: Vec<Begun>,
}

impl Recent {
    pub fn push(&mut self, io: Io) {
        if self.most == 0 {
            return;
        }
        if self.ios.len() >= self.most {
            self.ios.pop_front();
        }
        self.ios.push_back(io);
    }

    /// Replaces the syncs under way.
    pub fn look(&mut self, parts: &[Part]) {
        if self.most > 0 {
            self.under_way = parts.iter().map(Begun::of).collect();
        }
    }
}

impl Analyst {
    /// Keeps the last completions from now on, at most so many: about 90 bytes each.
    pub fn remember(&mut self, most: usize) {
        self.recent = Recent { most, ..Recent::default() };
    }

    /// Syncs that had not returned at the last [`Analyst::under_way`], where completions are kept.
    pub fn remembered_under_way(&self) -> &[Begun] {
        &self.recent.under_way
    }

    /// Names of the processes that own some completions, as far as they are known.
    pub fn owners(&self, ios: &[Io]) -> BTreeMap<u32, String> {
        let ids: BTreeSet<u32> = ios.iter().map(|io| io.owner_tgid).filter(|id| *id != 0).collect();
        ids.into_iter().filter_map(|id| Some((id, self.name_of(id)?.to_string()))).collect()
    }

    /// Completions between two times (CLOCK_MONOTONIC, ns) on the disks under a device, or on any, as far as they are
    /// remembered; in the order in which they came.
    pub fn recent(&self, device: Option<DeviceNumber>, from_ns: u64, to_ns: u64) -> Vec<Io> {
        let is_under = |io: &&Io| device.is_none_or(|top| self.is_under(io.device, top));
        let is_in_time = |io: &&Io| io.complete_ns >= from_ns && io.complete_ns <= to_ns;
        self.recent.ios.iter().filter(is_in_time).filter(is_under).copied().collect()
    }
}
