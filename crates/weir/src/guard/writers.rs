//! A device's bulk writers in the last seconds, and which of them write past the page cache.

use std::collections::HashMap;

use weir_control::Writer;
use weir_control::bypass::{Sender, Traffic, Watch};
use weir_host::Host;

use super::sampler::{Seen, Time};

/// Each is asked so often whether it writes past the page cache.
const ASK_EVERY_NS: u64 = 300_000_000;

/// Files of processes that are looked at in one look, so that nobody's many files or processes delay the next.
const FILES_MOST: usize = 2048;

/// Of one device.
pub struct Writers {
    host: Host,
    /// What they wrote.
    pub watch: Watch,
    /// Whether a process writes past the page cache, by number, as of when that was asked last.
    direct: HashMap<u32, bool>,
    asked_ns: u64,
}

impl Writers {
    /// Of processes of this machine.
    pub fn new(host: &Host) -> Writers {
        Writers { host: host.clone(), watch: Watch::default(), direct: HashMap::new(), asked_ns: 0 }
    }

    /// Takes in a sample. The largest are asked first how they write, and as many as there is time for.
    pub fn push(&mut self, seen: &Seen, time: Time) {
        if time.now_ns >= self.asked_ns + ASK_EVERY_NS {
            self.asked_ns = time.now_ns;
            self.direct.clear();
        }
        let (host, direct, mut files) = (&self.host, &mut self.direct, FILES_MOST);
        let mut writers = seen.bulk.writers.clone();
        writers.sort_by_key(|writer| std::cmp::Reverse(writer.bytes));
        let mut is_direct = |pid: u32| match direct.get(&pid) {
            Some(is_direct) => *is_direct,
            None if files == 0 => false,
            None => *direct.entry(pid).or_insert(host.writes_directly(pid, &mut files)),
        };
        let sender = |writer: Writer| Sender { is_direct: is_direct(writer.pid), writer };
        let writers = writers.into_iter().map(sender).collect();
        self.watch.push(Traffic {
            elapsed_ns: time.elapsed_ns,
            written_bytes: seen.flow.written_bytes,
            writers,
            bulk_bytes: seen.bulk.dirtied_bytes + seen.bulk.unlocated_bytes,
        });
    }

    /// The device is gone, or what was seen spans a sleep.
    pub fn forget(&mut self) {
        (self.watch, self.direct) = (Watch::default(), HashMap::new());
    }
}
