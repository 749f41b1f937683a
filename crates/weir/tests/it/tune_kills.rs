//! SIGKILL to experiments, at moments that nobody chose: whatever was set goes back. `WEIR_KILLS` says how many there
//! are; each test has a few of its own accord.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_core::stats::random::Random;

use crate::lab::{LoopDevice, dirty_limits, root_or_say};
use crate::tune::SWEEP as SWEEP_OF_LIMITS;
use crate::weir::{Running, Weir, ended, files_under};

/// Longest time that an experiment on device knobs is let alone, once it is at work.
const MOST_MS: u64 = 5_000;
/// Device knobs that are turned.
const KNOBS: [&str; 3] = ["nr_requests", "read_ahead_kb", "max_sectors_kb"];

const RACE: [&str; 5] = ["tune", "race", "@/nr_requests", "@/read_ahead_kb", "@/max_sectors_kb"];
const SWEEP: [&str; 7] = ["tune", "sweep", "@/max_sectors_kb", "--grid", "64,128,256", "--repeats", "20"];
/// Trials as short as they can be.
const SHORT: [&str; 9] =
    ["--size", "8M", "--duration", "200ms", "--warmup", "0s", "--washout", "1s", "--no-trace"];

/// Whom a kill hits, in this order; a run whose guardian alone was killed is killed a little later.
const VICTIMS: [&[Victim]; 4] =
    [&[Victim::Run], &[Victim::Guardian, Victim::Run], &[Victim::Run, Victim::Guardian], &[Victim::Guardian]];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Run,
    Guardian,
}

fn kills(few: u64) -> u64 {
    std::env::var("WEIR_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

fn values(files: &[PathBuf]) -> Vec<String> {
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// The run, its guardian, or both.
fn kill(victims: &[Victim], running: &mut Running) {
    // After the run's end nobody names its children any more.
    let guardians = running.children();
    for victim in victims {
        match victim {
            Victim::Run => running.signal("KILL"),
            Victim::Guardian => guardians.iter().for_each(|pid| crate::weir::signal("KILL", *pid)),
        }
    }
    if !victims.contains(&Victim::Run) {
        std::thread::sleep(Duration::from_millis(100));
        running.signal("KILL");
    }
    running.finish();
}

#[test]
fn root_races_and_sweeps_killed_at_any_moment_are_rolled_back() {
    let name = "root_races_and_sweeps_killed_at_any_moment_are_rolled_back";
    if !root_or_say(name, &["losetup", "mkfs.ext4"]) {
        return;
    }
    let (weir, journal) = (Weir::new(), tempfile::tempdir().unwrap());
    let device = LoopDevice::create(&["size=128M", "fs=ext4"]);
    let queue = Path::new("/sys/block").join(device.device().file_name().unwrap()).join("queue");
    let files: Vec<PathBuf> = KNOBS.iter().map(|knob| queue.join(knob)).collect();
    let before = values(&files);
    let command = |arguments: &[&str]| {
        let mut command = weir.command(&device.mount(), arguments);
        command.env("WEIR_JOURNAL", journal.path());
        command
    };
    let (mut moments, mut changed, kills) = (Random::new(1), 0, kills(6));
    for index in 0..kills {
        let design: &[&str] = if index % 2 == 0 { &RACE } else { &SWEEP };
        let victims = VICTIMS[(moments.next_u64() % VICTIMS.len() as u64) as usize];
        let alone = Duration::from_millis(moments.next_u64() % MOST_MS);
        let mut running = Weir::started(command(&[design, &SHORT].concat()), |a| a.written > 8 << 20);
        std::thread::sleep(alone);
        changed += usize::from(!entries(journal.path()).is_empty());
        kill(victims, &mut running);
        let case = format!("kill {index} of {victims:?} after {alone:?}, {}", design[1]);
        let back = ended(command(&["knobs", "rollback", "--all"]));
        assert_eq!(back.code, 0, "{case}: {back:?}");
        assert_eq!(values(&files), before, "{case}: {back:?}");
        assert_eq!(entries(journal.path()), Vec::<PathBuf>::new(), "{case}");
    }
    println!("{kills} kills, {changed} of them with a change in the journal: every value was restored");
}

fn entries(journal: &Path) -> Vec<PathBuf> {
    files_under(journal).into_iter().filter(|path| path.extension().is_some_and(|e| e == "json")).collect()
}

#[test]
fn root_alone_a_sweep_killed_at_any_moment_leaves_the_limits_as_they_were() {
    let name = "root_alone_a_sweep_killed_at_any_moment_leaves_the_limits_as_they_were";
    if !root_or_say(name, &["losetup", "mkfs.xfs"]) {
        return;
    }
    let weir = Weir::alone();
    let device = LoopDevice::create(&["size=2G", "fs=xfs", "write_iops=1500", "write_bps=200000000"]);
    let before = dirty_limits();
    let mut moments = Random::new(2);
    for index in 0..kills(4) {
        let mut running =
            weir.start(&device.mount(), &SWEEP_OF_LIMITS, |activity| activity.written > 32 << 20);
        // Some moment of a trial: while a limit is lowered, holds, or is restored.
        let alone = Duration::from_millis(1_700 + moments.next_u64() % 3_000);
        std::thread::sleep(alone);
        running.signal("KILL");
        running.finish();
        // The guardian outlives what it guards.
        let patience = Instant::now() + Duration::from_secs(10);
        while dirty_limits() != before && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(dirty_limits(), before, "kill {index} after {alone:?}");
    }
}

#[test]
fn alone_a_command_does_not_outlive_a_killed_weir() {
    let weir = Weir::alone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("process");
    let command = format!("sleep 600 & echo $! > {}; wait", file.display());
    let words = ["tune", "ab", "--a-command", &command, "--b-command", "true", "--metric", "rate=(x)"];
    let process = || fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<u32>().ok());
    let mut running = weir.start(folder.path(), &words, |_| process().is_some());
    running.signal("KILL");
    running.finish();
    let stat = format!("/proc/{}/stat", process().unwrap());
    let lives = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    let patience = Instant::now() + Duration::from_secs(10);
    while lives() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!lives(), "{}", fs::read_to_string(&stat).unwrap_or_default());
}
