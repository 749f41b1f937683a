//! Processes, how their I/O reaches a device, and who sends what no page of a file explains, counted over the same time as the
//! syncs beside them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use weir_core::target::DeviceNumber;

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
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

    /// Who, in words: `dd (77)`, or a group by what describes it.
    pub fn name(&self) -> String {
        self.pid.map_or_else(|| self.comm.clone(), |pid| format!("{} ({pid})", self.comm))
    }

    /// Kernel threads that write for others.
    pub fn kernel_threads() -> Process {
        Process::new(None, "writes by kernel threads (dm-crypt, md, swap: not known whose, own ones too)")
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
    /// Kernel threads wrote what others had given them: dm-crypt, md, swap.
    WritesPassedOn,
}

/// Who reads, frees blocks, or writes what no page of a file explains, on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender {
    /// Who.
    pub process: Process,
    /// Where.
    pub device: DeviceNumber,
    /// Any but writeback.
    pub way: Way,
    /// How much, bytes; what counts is the proportion.
    pub bytes: u64,
}

type Key = (Option<u32>, DeviceNumber, Way);
/// Bytes by process, device, and way.
type Sent = HashMap<Key, u64>;

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
        let mut sums: HashMap<Key, Sender> = HashMap::new();
        for sender in senders {
            let sum = sums.entry(key(sender)).or_insert_with(|| Sender { bytes: 0, ..sender.clone() });
            sum.bytes += sender.bytes;
        }
        self.of_interval = since(&sums, &self.before_interval);
        self.of_whole = since(&sums, &self.before_whole);
        self.sent = sums.into_iter().map(|(key, sum)| (key, sum.bytes)).collect();
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

fn key(sender: &Sender) -> Key {
    (sender.process.pid, sender.device, sender.way)
}

fn since(sums: &HashMap<Key, Sender>, before: &Sent) -> Vec<Sender> {
    let fresh = |(key, sender): (&Key, &Sender)| {
        let bytes = sender.bytes.saturating_sub(before.get(key).copied().unwrap_or(0));
        (bytes > 0).then(|| Sender { bytes, ..sender.clone() })
    };
    let mut fresh: Vec<Sender> = sums.iter().filter_map(fresh).collect();
    fresh.sort_by_key(|sender| (std::cmp::Reverse(sender.bytes), sender.process.pid, sender.device));
    fresh
}
