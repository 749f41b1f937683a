//! The clock of every latency, sleeping by it, and CPU time.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in ns; costs a vDSO call.
#[inline]
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until a point on that clock.
pub fn sleep_until_ns(deadline_ns: u64) {
    std::thread::sleep(Duration::from_nanos(deadline_ns.saturating_sub(now_ns())));
}

/// User and system time of this process so far, in ns.
pub fn process_cpu_ns() -> (u64, u64) {
    // SAFETY: rusage is plain numbers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for the call to fill.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}
