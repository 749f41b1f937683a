//! What the sampler saw of a job.

use std::collections::BTreeMap;

use weir_core::result::intervals::Intervals;
use weir_core::result::record::Class;
use weir_core::stats::counters::Totals;

use crate::sys::usage::Usage;

/// What the sampler saw of a job.
#[derive(Default)]
pub struct Seen {
    /// Counters when measuring began, by class.
    pub base: BTreeMap<Class, Totals>,
    /// Other counters when measuring began.
    pub base_scalars: Scalars,
    /// Delays of starts when measuring began.
    pub base_start_delays: Totals,
    /// Finished intervals.
    pub intervals: Intervals<Class>,
    /// Most ring workers seen at once.
    pub ring_workers_max: usize,
    /// What had been used when measuring began.
    pub base_used: Used,
    /// The same when the job ended.
    pub end_used: Used,
    /// Threads were stuck past the limit and were left behind.
    pub abandoned: bool,
    /// When the last tick was, ns on the monotonic clock.
    pub last_ns: u64,
    pub(super) last: BTreeMap<Class, Totals>,
    pub(super) next_tick_ns: u64,
    pub(super) measuring: bool,
    pub(super) ended: bool,
}

/// Clocks and counters of this process and the machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct Used {
    /// This process.
    pub process: Usage,
    /// Time that all processors were busy, ns.
    pub machine_busy_ns: Option<u64>,
}

/// Sums over the threads of a job that are no latencies.
#[derive(Debug, Default, Clone, Copy)]
pub struct Scalars {
    /// Integral of operations in flight over time.
    pub in_flight_integral: u64,
    /// Open loop: operations taken.
    pub intended: u64,
    /// Open loop: finished late.
    pub late: u64,
    /// Open loop: started late because the depth was full.
    pub waited_for_depth: u64,
}
