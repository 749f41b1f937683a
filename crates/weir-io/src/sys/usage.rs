//! CPU time of this process.

/// User and system time of all threads of this process so far, in ns (io_uring's workers included).
pub fn process_cpu_ns() -> (u64, u64) {
    // SAFETY: rusage is plain numbers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for the call to fill.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}
