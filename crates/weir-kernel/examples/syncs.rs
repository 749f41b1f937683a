//! Looks at the syncs of this machine ten times a second: `syncs [SECONDS]`, and says what looking cost.

use std::time::Duration;

use weir_kernel::sync_sensor::{SyncSession, Whose};

fn main() -> Result<(), weir_kernel::Error> {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10);
    let mut session = SyncSession::start(&Whose::Everybody)?;
    eprintln!("learns of calls by {:?}", session.brackets());
    let (before, cpu_ns) = (session.figures(), cpu_ns());
    for _ in 0..seconds * 10 {
        std::thread::sleep(Duration::from_millis(100));
        for (device, look) in session.look(clock(libc::CLOCK_MONOTONIC)).devices {
            let (syncs, bulk) = (&look.syncs, &look.bulk);
            println!(
                "{device}: {} syncs, mean {} us, {} under way, oldest {} us, throttled {} ms; bulk throttled \
                 {} ms, {:?}, {} left out",
                syncs.ended.count(),
                syncs.ended.sum() / u128::from(syncs.ended.count().max(1)) / 1000,
                syncs.under_way,
                syncs.oldest_ns / 1000,
                syncs.held_back_ns / 1_000_000,
                bulk.held_back_ns / 1_000_000,
                bulk.writers.first(),
                look.left_out
            );
        }
    }
    let after = session.figures();
    eprintln!(
        "{} us of CPU a look; programs ran {} times for {} ns",
        (self::cpu_ns() - cpu_ns) / 1000 / (seconds * 10),
        after.runs - before.runs,
        after.run_time_ns - before.run_time_ns
    );
    Ok(())
}

fn cpu_ns() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
