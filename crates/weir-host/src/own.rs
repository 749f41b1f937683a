//! What this process has used itself.

/// Processor time of this process so far, all its threads, user and system, ns. `None` where the kernel does not say.
pub fn own_cpu_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec where it is told to.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    (answer == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
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
