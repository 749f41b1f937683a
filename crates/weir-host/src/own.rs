//! What this process has used itself, and what others have by the same clocks.

/// Processor time of this process so far, all its threads, user and system, ns. `None` where the kernel does not say.
pub fn own_cpu_ns() -> Option<u64> {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of the calling thread so far, ns. `None` where the kernel does not say.
pub fn thread_cpu_ns() -> Option<u64> {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Processor time of any process so far, all its threads and those that ended, ns; `None` where there is no such
/// process. Finer than the ticks of `/proc/PID/stat`.
pub fn process_cpu_ns(process: u32) -> Option<u64> {
    // The kernel's numbers of other processes' clocks: include/linux/posix-timers.h, CPUCLOCK_SCHED.
    const CPUCLOCK_SCHED: i32 = 2;
    clock_ns((!i32::try_from(process).ok()? << 3) | CPUCLOCK_SCHED)
}

/// Processors that this process may run on. `None` where the kernel does not say.
pub fn own_processors() -> Option<u32> {
    // SAFETY: all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most so many bytes where it is told to.
    let answer = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    // SAFETY: counts the bits of a set that was just written.
    (answer == 0).then(|| unsafe { libc::CPU_COUNT(&set) } as u32)
}

fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec where it is told to.
    let answer = unsafe { libc::clock_gettime(clock, &mut time) };
    (answer == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Sets the allocator so that a large piece goes back to the system when it is freed: by itself it learns to keep ever larger ones,
/// and the free end of a thread's arena, which [`give_memory_back`] does not reach. To be called once, before threads begin.
pub fn keep_little_memory() {
    // The usual beginning, 128 KiB; setting it ends the learning (mallopt(3)).
    // SAFETY: it takes no pointers and may be called at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
    }
}

/// Gives the system what the allocator keeps of small pieces that were freed, of all threads.
pub fn give_memory_back() {
    // SAFETY: it takes no pointers and may be called at any time.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Memory of this process that is in RAM. `None` where the kernel does not say.
pub fn own_memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page_bytes).ok()?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn memory_that_is_touched_counts() {
        const MORE: usize = 64 << 20;
        let grows = || {
            let before = super::own_memory_bytes().unwrap();
            let _touched = std::hint::black_box(vec![1_u8; MORE]);
            super::own_memory_bytes().unwrap() >= before + MORE as u64 / 2
        };
        // Other tests of this process take and free memory meanwhile.
        assert!((0..10).any(|_| grows()));
    }

    #[test]
    fn time_passes_while_working() {
        let before_ns = super::own_cpu_ns().unwrap();
        let mut sum = 0_u64;
        while super::own_cpu_ns().unwrap() < before_ns + 1_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
        let by_number = super::process_cpu_ns(std::process::id()).unwrap();
        assert!(by_number >= before_ns, "{by_number} {before_ns}");
        assert!(super::thread_cpu_ns().unwrap() <= super::own_cpu_ns().unwrap());
        assert!(super::own_processors().unwrap() > 0);
        assert_eq!(super::process_cpu_ns(u32::MAX), None);
    }
}
