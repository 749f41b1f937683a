//! A device's bulk writers in the last seconds, and which of them write past the page cache.

use std::collections::HashMap;

use weir_control::Writer;
use weir_control::bypass::{Sender, Traffic, Watch};
use weir_host::{Host, IoCgroup};

use super::sampler::Seen;

/// Of one device.
#[derive(Default)]
pub struct Writers {
    /// What they wrote.
    pub watch: Watch,
    /// Whether a process writes past the page cache, by number, as of when that was asked last.
    direct: HashMap<u32, bool>,
}

impl Writers {
    /// Takes in a sample.
    pub fn push(&mut self, host: &Host, seen: &Seen, elapsed_ns: u64) {
        let direct = &mut self.direct;
        let sender = |writer: &Writer| {
            let is_direct = *direct.entry(writer.pid).or_insert_with(|| host.writes_directly(writer.pid));
            Sender { writer: writer.clone(), is_direct }
        };
        let writers = seen.bulk.writers.iter().map(sender).collect();
        self.watch.push(Traffic { elapsed_ns, written_bytes: seen.flow.written_bytes, writers });
    }

    /// From now on each is asked again whether it writes past the page cache.
    pub fn ask_again(&mut self) {
        self.direct.clear();
    }
}

/// Somebody in a cgroup whom no limit of bulk writers may hold, by name: the protected, and the guard itself. `None` where it
/// has too many groups to look through.
pub fn protected_in(host: &Host, group: &IoCgroup, protected: &[u32]) -> Option<Option<String>> {
    let counts = |pid: &u32| protected.contains(pid) || *pid == std::process::id();
    let found = host.processes_in(group)?.into_iter().find(counts);
    Some(found.map(|pid| host.name_of(pid).unwrap_or(format!("process {pid}"))))
}
