//! SIGKILL at moments that nobody chose: to the run, to its guardian, to both.

use std::thread::sleep;
use std::time::Duration;

use weir_core::stats::random::Random;
use weir_host::Host;
use weir_host::knob::{self, Journal, Which};

use super::devices::Disk;
use super::limits;
use super::runs::{Run, entries};

/// Kills in a run of this test, unless `WEIR_KILLS` says how many.
const KILLS: u64 = 12;
/// Longest time that a run is let alone.
const MOST_US: u64 = 300_000;

/// Whom a kill hits, in this order.
const VICTIMS: [&[Victim]; 4] =
    [&[Victim::Run], &[Victim::Guardian, Victim::Run], &[Victim::Run, Victim::Guardian], &[Victim::Guardian]];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Run,
    Guardian,
}

fn kill(victims: &[Victim], run: &mut Run) {
    // After the run's end nobody names its children any more.
    let guardians = run.guardians();
    for victim in victims {
        match victim {
            Victim::Run => run.kill(),
            // One that has just ended is no loss.
            Victim::Guardian => guardians.iter().for_each(|pid| {
                // SAFETY: a signal touches no memory of ours; the process is a child of a child of ours.
                unsafe { libc::kill(*pid, libc::SIGKILL) };
            }),
        }
    }
}

fn wanted_kills() -> u64 {
    std::env::var("WEIR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

/// A guard that turns a limit a hundred times a second, with values that no journal lists.
pub fn root_a_guard_killed_at_any_moment_is_led_back() {
    let kills = wanted_kills();
    let disk = Disk::new();
    let now = || (disk.snapshot(), limits::limits());
    let (before, folder) = (now(), disk.journal());
    let (mut moments, mut unfinished) = (Random::new(2), 0);
    for index in 0..kills {
        let actuator = if index % 2 == 0 { "dirty" } else { disk.name.as_str() };
        let victims = VICTIMS[(moments.next_u64() % VICTIMS.len() as u64) as usize];
        let alone = Duration::from_micros(moments.next_u64() % MOST_US);
        let mut run = Run::start("__govern", &folder, &[actuator, "30000"]);
        sleep(alone);
        kill(victims, &mut run);
        drop(run);
        unfinished += entries(&folder);
        for again in [false, true] {
            let done = knob::rollback(&Host::live(), &Journal::at(&folder), Which::All);
            assert!(done.failed.is_empty(), "kill {index} after {alone:?}, {again}: {done:?}");
            assert_eq!(now(), before, "kill {index} after {alone:?}, {actuator}: {done:?}");
        }
        assert_eq!(entries(&folder), 0, "kill {index}");
    }
    println!("{kills} kills of a guard, {unfinished} of them with its entry left: every limit was restored");
}

pub fn root_kills_at_any_moment_are_led_back() {
    let kills = wanted_kills();
    let disk = Disk::new();
    let now = || (disk.snapshot(), limits::limits());
    let before = now();
    let folder = disk.journal();
    let mut wanted = disk.settings(&[
        "scheduler=none",
        "nr_requests=48",
        "max_sectors_kb=512",
        "read_ahead_kb=64",
        "nomerges=2",
        "bdi/max_ratio=7",
    ]);
    wanted.extend(limits::wanted());
    let (mut moments, mut unfinished) = (Random::new(1), 0);
    for index in 0..kills {
        let verb = if index % 3 == 2 { "__keep" } else { "__churn" };
        let victims = VICTIMS[(moments.next_u64() % VICTIMS.len() as u64) as usize];
        let alone = Duration::from_micros(moments.next_u64() % MOST_US);
        let mut run = Run::start(verb, &folder, &wanted);
        sleep(alone);
        kill(victims, &mut run);
        // A run whose guardian alone was killed goes on; here it ends too.
        drop(run);
        unfinished += entries(&folder);
        let done = knob::rollback(&Host::live(), &Journal::at(&folder), Which::All);
        assert!(done.failed.is_empty(), "kill {index} after {alone:?}: {done:?}");
        assert_eq!(now(), before, "kill {index} after {alone:?}, {verb}: {done:?}");
        assert_eq!(entries(&folder), 0, "kill {index}");
    }
    println!("{kills} kills, {unfinished} of them with a change in the journal: every value was restored");
}
