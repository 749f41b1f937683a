//! CLOCK_MONOTONIC in nanoseconds, the clock of every latency, and sleeping until a point on it.

/// Now, in ns. Costs a vDSO call, some 20 ns; no system call where the clock source is the TSC.
#[inline(always)]
pub fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill; CLOCK_MONOTONIC exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until `deadline_ns`. Oversleeps by the timer slack and the scheduler's delay, some 50 µs on an idle core.
pub fn sleep_until_ns(deadline_ns: u64) {
    let time = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` is a valid absolute time; an early return (EINTR) is for the caller's loop to see.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &time, std::ptr::null_mut());
    }
}

/// Lets the calling thread's sleeps end within a microsecond of their time instead of 50.
pub fn tighten_timer_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and changes the calling thread only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000 as libc::c_ulong) };
}
