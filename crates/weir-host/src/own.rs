//! What this process has used itself.

/// Processor time of this process so far, all its threads, user and system, ns. `None` where the kernel does not say.
pub fn own_cpu_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec where it is told to.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    (answer == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
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
        let before = super::own_memory_bytes().unwrap();
        let touched = std::hint::black_box(vec![1_u8; MORE]);
        let after = super::own_memory_bytes().unwrap();
        assert!(after >= before + MORE as u64 / 2, "{before} → {after}, {}", touched.len());
    }

    #[test]
    fn time_passes_while_working() {
        let before_ns = super::own_cpu_ns().unwrap();
        let mut sum = 0_u64;
        while super::own_cpu_ns().unwrap() < before_ns + 1_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }
}
