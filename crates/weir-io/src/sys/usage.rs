//! What this process has used, and of how much.

/// What all threads of this process have used so far, io_uring's workers included.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// User time in ns.
    pub user_ns: u64,
    /// System time in ns.
    pub system_ns: u64,
    /// Bytes that it had the block layer read.
    pub read_bytes: u64,
}

/// This process's usage, as getrusage(2) has it.
pub fn of_process() -> Usage {
    // SAFETY: rusage is plain numbers, for which zero is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for the call to fill.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    // The kernel counts blocks of 512 bytes here (task_io_get_inblock).
    let read_bytes = usage.ru_inblock as u64 * 512;
    Usage { user_ns: ns(usage.ru_utime), system_ns: ns(usage.ru_stime), read_bytes }
}

/// Processors online, whether or not this process may use them.
pub fn processors_online() -> u32 {
    // SAFETY: sysconf takes a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    online.try_into().unwrap_or(0)
}
