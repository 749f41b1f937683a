//! Processes, how their I/O reaches a device, and who sends what no page of a file explains, counted over the same time as the
//! syncs beside them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use weir_core::target::DeviceNumber;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its id; `None` stands for a group that the name describes.
    pub pid: Option<u32>,
    /// Its name.
    pub comm: String,
    /// Its cgroup: the systemd unit or the container it runs in. `None` where that is not known, or is the tracer's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
}

impl Process {
    /// One process, or with no id a group of them under a name that describes it; without a cgroup.
    pub fn new(pid: Option<u32>, comm: &str) -> Process {
        Process { pid, comm: comm.to_string(), cgroup: None }
    }
}

/// How somebody's I/O reached a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Pages it dirtied were written back, by whom ever.
    Writeback,
    /// It read.
    Reads,
    /// It wrote past the page cache.
    DirectWrites,
    /// It freed blocks.
    Discards,
    /// A layer between wrote what it had written: dm-crypt, md.
    WritesPassedOn,
}

/// Who reads, writes past the page cache or frees blocks on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// Who.
    pub process: Process,
    /// Where.
    pub device: DeviceNumber,
    /// Reads, direct writes or discards.
    pub way: Way,
    /// How much, bytes; what counts is the proportion.
    pub bytes: u64,
}

/// Bytes by process, device, and way.
type Sent = HashMap<(Option<u32>, DeviceNumber, Way), u64>;

/// What each has sent of late, the most first.
#[derive(Debug, Default)]
pub(super) struct Senders {
    /// Since the interval began.
    pub of_interval: Vec<Sender>,
    /// Since all began that is not forgotten.
    pub of_whole: Vec<Sender>,
    /// What each had sent when it was told last, and when these began.
    sent: Sent,
    before_interval: Sent,
    before_whole: Sent,
}

impl Senders {
    /// Replaces what is known; the bytes are those since the programs came.
    pub fn tell(&mut self, senders: &[Sender]) {
        self.sent = senders.iter().map(|sender| (key(sender), sender.bytes)).collect();
        self.of_interval = since(senders, &self.before_interval);
        self.of_whole = since(senders, &self.before_whole);
    }

    /// The next interval begins. Until it has senders of its own, those before are the best that is known.
    pub fn next_interval(&mut self) {
        self.before_interval.clone_from(&self.sent);
    }

    /// The same, and nothing before counts for the whole any more.
    pub fn forget(&mut self) {
        self.next_interval();
        self.before_whole.clone_from(&self.sent);
    }
}

fn key(sender: &Sender) -> (Option<u32>, DeviceNumber, Way) {
    (sender.process.pid, sender.device, sender.way)
}

fn since(senders: &[Sender], before: &Sent) -> Vec<Sender> {
    let fresh = |sender: &Sender| {
        let bytes = sender.bytes.saturating_sub(before.get(&key(sender)).copied().unwrap_or(0));
        (bytes > 0).then(|| Sender { bytes, ..sender.clone() })
    };
    let mut fresh: Vec<Sender> = senders.iter().filter_map(fresh).collect();
    fresh.sort_by_key(|sender| std::cmp::Reverse(sender.bytes));
    fresh
}
