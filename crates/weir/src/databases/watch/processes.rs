//! Processor time of the server's processes, of which some end before the watching does.

use std::collections::HashMap;

use weir_host::process_cpu_ns;

/// Processes with their clocks when they were first and last seen.
#[derive(Default)]
pub struct Processes(HashMap<u32, (u64, u64)>);

impl Processes {
    /// Reads the clocks of all that are known and of these; one that has ended keeps its last.
    pub fn look(&mut self, others: &[u32]) {
        for (process, (_, last_ns)) in &mut self.0 {
            *last_ns = process_cpu_ns(*process).unwrap_or(*last_ns);
        }
        for process in others {
            if let Some(now_ns) = process_cpu_ns(*process) {
                self.0.entry(*process).or_insert((now_ns, now_ns));
            }
        }
    }

    /// Time used since each was first seen.
    pub fn used_ns(&self) -> u64 {
        self.0.values().map(|(first_ns, last_ns)| last_ns.saturating_sub(*first_ns)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_the_first_look_on() {
        let own = std::process::id();
        let mut processes = Processes::default();
        processes.look(&[own, u32::MAX]);
        assert_eq!((processes.0.len(), processes.used_ns()), (1, 0));
        let first_ns = processes.0[&own].0;
        while process_cpu_ns(own).unwrap() < first_ns + 1_000_000 {}
        processes.look(&[]);
        assert!(processes.used_ns() >= 1_000_000, "{}", processes.used_ns());
    }
}
