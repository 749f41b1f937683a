//! The last completions, for one who wants to tell afterwards what led to a slow sync.

use std::collections::VecDeque;

use weir_core::target::DeviceNumber;

use super::analyst::Analyst;
use super::part::Io;

/// The last completions, at most so many.
#[derive(Debug, Default)]
pub(super) struct Recent {
    most: usize,
    ios: VecDeque<Io>,
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
}

impl Analyst {
    /// Keeps the last completions from now on, at most so many: about 90 bytes each.
    pub fn remember(&mut self, most: usize) {
        self.recent = Recent { most, ios: VecDeque::new() };
    }

    /// Completions between two times (CLOCK_MONOTONIC, ns) on the disks under a device, or on any, as far as they are
    /// remembered; in the order in which they came.
    pub fn recent(&self, device: Option<DeviceNumber>, from_ns: u64, to_ns: u64) -> Vec<Io> {
        let is_under = |io: &&Io| device.is_none_or(|top| self.is_under(io.device, top));
        let is_in_time = |io: &&Io| io.complete_ns >= from_ns && io.complete_ns <= to_ns;
        self.recent.ios.iter().filter(is_in_time).filter(is_under).copied().collect()
    }
}
