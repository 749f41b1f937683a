//! What a session costs: time in its programs, CPU of this process.

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use libbpf_rs::libbpf_sys;

/// How long the kernel's BPF statistics run at a time; they cost some 50 ns a run.
const WINDOW: Duration = Duration::from_millis(2);
/// Completions to see before the mean is told.
const COMPLETIONS_MIN: u64 = 2_000;

/// The kernel's figures of one program, or of several together.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProgramFigures {
    /// Time in it, ns, while the kernel's BPF statistics were on.
    pub run_time_ns: u64,
    /// How often it ran meanwhile.
    pub runs: u64,
    /// Runs that were skipped because the program would have interrupted itself.
    pub skipped: u64,
}

/// Asks the kernel; zeros if it does not tell.
pub fn figures(program: BorrowedFd<'_>) -> ProgramFigures {
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut length = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    // SAFETY: `info` is valid for writes of `length` bytes, and all zeros, which asks for no arrays.
    let answer = unsafe {
        libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), (&raw mut info).cast(), &raw mut length)
    };
    if answer != 0 {
        return ProgramFigures::default();
    }
    ProgramFigures { run_time_ns: info.run_time_ns, runs: info.run_cnt, skipped: info.recursion_misses }
}

/// Gathers a sample of the programs' run times, in short windows until it is large enough.
#[derive(Default)]
pub struct Sampler {
    run_time_ns: u64,
    completions: u64,
    is_denied: bool,
}

impl Sampler {
    /// Switches the statistics on for an instant, unless the sample is large enough. `all` gives the figures of all
    /// programs together, `completions` those of the one that runs at C.
    pub fn sample(&mut self, all: impl Fn() -> ProgramFigures, at_completion: impl Fn() -> ProgramFigures) {
        if self.is_denied || self.completions >= COMPLETIONS_MIN {
            return;
        }
        // SAFETY: the call takes no pointers, and returns a new file descriptor or a negative number.
        let switch = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
        if switch < 0 {
            self.is_denied = true;
            return;
        }
        // SAFETY: the descriptor is new and nobody else's; dropping it switches the statistics off.
        let switch = unsafe { OwnedFd::from_raw_fd(switch) };
        let before = (all(), at_completion());
        std::thread::sleep(WINDOW);
        let after = (all(), at_completion());
        drop(switch);
        self.run_time_ns += after.0.run_time_ns - before.0.run_time_ns;
        self.completions += after.1.runs - before.1.runs;
    }

    /// Time in all programs per completion, ns.
    pub fn ns_per_completion(&self) -> Option<f64> {
        (self.completions >= COMPLETIONS_MIN / 10).then(|| self.run_time_ns as f64 / self.completions as f64)
    }
}

/// CPU time of this process, user and system, ns.
pub fn process_ns() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is valid for writes of one rusage.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) } != 0 {
        return 0;
    }
    // SAFETY: getrusage succeeded, so it filled the structure.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// CLOCK_MONOTONIC, ns: the clock of the kernel's stamps.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread, ns.
pub fn thread_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
