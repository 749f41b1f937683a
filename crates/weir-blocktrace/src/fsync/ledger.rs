//! Sums by process for one who keeps them: the whole distribution of latencies, and every process.

use weir_core::stats::Distribution;

use super::analyst::Analyst;
use super::report::{Culprit, Row};
use super::senders::Process;

/// The syncs of a process in an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    /// Whose.
    pub process: Process,
    /// How long those took that returned.
    pub latency: Distribution,
    /// Wall time inside syncs, those that have not returned included.
    pub wall_ns: u64,
    /// By phase, the shares of that time.
    pub phases: Vec<Row>,
    /// Whose I/O was served meanwhile.
    pub culprits: Vec<Culprit>,
}

impl Analyst {
    /// The sums of the interval, which ends with this; the next begins. Nothing of it is kept for [`Analyst::whole`], and names are to
    /// be told anew: a process that becomes another program keeps its number, and a number may be used again.
    pub fn take_ledgers(&mut self) -> Vec<Ledger> {
        let sums = std::mem::take(&mut self.sums);
        let ledgers = sums.iter().map(|(tgid, sums)| self.ledger(*tgid, sums)).collect();
        self.past.clear();
        self.senders.forget();
        self.called_before = std::mem::take(&mut self.called);
        ledgers
    }
}
