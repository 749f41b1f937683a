//! When the programs that follow syncs run with requests.

#![allow(clippy::unwrap_used)] // test code throughout; clippy knows that only of functions under #[test]

#[allow(dead_code)] // other tests limit what is dirty on theirs
mod lab;

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::Device;
use weir_blocktrace::fsync::{Analyst, Ledger, Phase, Sampling};
use weir_kernel::fsync::{FsyncSession, Options, Storage};

/// Syncs twenty times for each line that it reads.
const SYNCS: &str = "import os,sys\nf=os.open('a',66)\nfor line in sys.stdin:\n for i in range(20): os.pwrite(f,b'x'*4096,0); os.fsync(f)";

/// How long syncs waited, ns, of which nothing is known, since the last call.
fn unknown(analyst: &mut Analyst) -> f64 {
    let of = |ledger: Ledger| {
        let share: f64 =
            ledger.phases.iter().filter(|row| row.phase == Phase::Unknown).map(|row| row.share).sum();
        share * ledger.wall_ns as f64
    };
    analyst.take_ledgers().into_iter().map(of).sum()
}

#[test]
fn root_requests_are_left_alone_while_nobody_syncs() {
    let test = "root_requests_are_left_alone_while_nobody_syncs";
    let Some(device) = Device::create(test, "ext4") else { return };
    // Of short syncs not all are looked into.
    device.throttle("write_iops=200");
    let mut python = Command::new("python3");
    python.args(["-Ic", SYNCS]).current_dir(device.mount()).stdin(Stdio::piped());
    let mut syncer = python.spawn().unwrap();
    let mut lines = syncer.stdin.take().unwrap();

    let mut storage = Storage::default();
    let options = Options { pid: Some(syncer.id()), stack_every_ns: 1_000_000, ..Options::default() };
    let mut session = FsyncSession::start(&mut storage, &options).unwrap();
    let mut analyst = Analyst::new(Sampling { stack_every_ns: 1_000_000, slow_ns: None });
    analyst.remember(1 << 16);
    let drain_until = |session: &mut FsyncSession<'_>,
                       analyst: &mut Analyst,
                       is_so: &dyn Fn(&FsyncSession<'_>, usize) -> bool| {
        let begun = Instant::now();
        loop {
            session.drain(analyst).unwrap();
            let completions = analyst.recent(Some(device.number), 0, u64::MAX, usize::MAX).ios.len();
            if is_so(session, completions) {
                return;
            }
            let hooks = session.hooks_of_requests();
            assert!(begun.elapsed() < Duration::from_secs(20), "{hooks} hooks, {completions} seen");
            sleep(Duration::from_millis(20));
        }
    };
    let are_off = |session: &FsyncSession<'_>, _| session.hooks_of_requests() == 0;
    let are_on = |session: &FsyncSession<'_>, _| session.hooks_of_requests() >= 2;

    session.spare_requests(Some(Duration::from_millis(200)));
    drain_until(&mut session, &mut analyst, &are_off);
    // The first syncs bring them back; nobody is blamed for what was not seen of these. When they are over they go again.
    writeln!(lines, "first").unwrap();
    drain_until(&mut session, &mut analyst, &are_on);
    drain_until(&mut session, &mut analyst, &are_off);
    let unseen = unknown(&mut analyst);
    assert!(unseen > 0.0);
    // They stay where nothing is to be spared, and requests are seen.
    session.spare_requests(None);
    drain_until(&mut session, &mut analyst, &are_on);
    analyst.remember(1 << 16);
    writeln!(lines, "second").unwrap();
    drain_until(&mut session, &mut analyst, &|_, completions| completions >= 20);
    sleep(Duration::from_millis(300));
    session.drain(&mut analyst).unwrap();
    assert!(are_on(&session, 0));
    let then = unknown(&mut analyst);
    assert!(then < unseen / 2.0, "{then} and {unseen}");
    drop(lines);
    assert!(syncer.wait().unwrap().success());
}
