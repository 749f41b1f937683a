//! A limit that a guard sets, on the real machine. The machine's own limits are turned between gigabytes, so that other
//! work hardly notices; those of a device of the test's own without care.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use weir_control::Limits;
use weir_host::Host;
use weir_host::knob::{self, Actuator, BdiOf, Governor, Journal, KnobError, Move, SpareGuardian, Which};
use weir_knobs::Value;

use super::devices::Disk;
use super::limits::{Original, limits};
use super::runs::{Run, children, entries, signal, until};
use super::terms::{Small, guardians};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Silence that is a hang, in milliseconds, in tests where nothing hangs.
const LONG: &str = "60000";

/// What a run does that is called `__govern`: turns a limit a hundred times a second until it must not any more.
pub fn govern(journal: &Journal, arguments: &[String]) {
    let (actuator, hangs_after) = (&arguments[0], Duration::from_millis(arguments[1].parse().unwrap()));
    let (actuator, unit) = match actuator.as_str() {
        "dirty" => (Actuator::Dirty, GIB),
        device => (Actuator::Bdi(BdiOf::Device(device.to_string())), 10 * MIB),
    };
    let host = Host::live();
    let mut governor = match arguments.get(2) {
        Some(_ahead) => start_ahead(journal, &actuator, unit, &[]),
        None => Governor::start_within(journal, &host, &actuator, unit, hangs_after).unwrap(),
    };
    governor.set(2 * unit).unwrap();
    println!("begun");
    for nth in 0_u64.. {
        let moved = match nth % 20 {
            0 => governor.release(),
            even if even % 2 == 0 => governor.set(unit + nth * 7919 * 4096 % unit),
            _ => governor.beat(),
        };
        match moved.unwrap() {
            Move::Written { .. } => sleep(Duration::from_millis(10)),
            Move::StoodDown { said } | Move::Reset { said } | Move::Gone { said } => {
                println!("{said}");
                sleep(Duration::MAX);
            }
        }
    }
}

/// With a guardian that has waited, unless it has got these signals.
fn start_ahead(journal: &Journal, actuator: &Actuator, floor_bytes: u64, signals: &[&str]) -> Governor {
    let spare = SpareGuardian::default();
    spare.prepare();
    let (children, ahead) = (children(std::process::id()), format!("weir\0{}\0", knob::ARGUMENT));
    let is_ahead = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap() == ahead;
    let waiting: Vec<i32> = children.into_iter().filter(is_ahead).collect();
    assert_eq!(waiting.len(), 1);
    signals.iter().for_each(|name| signal(waiting[0], name));
    until("it has ended", || signals.is_empty() || !is_running(waiting[0]));
    Governor::start_with(journal, &Host::live(), actuator, floor_bytes, &spare).unwrap()
}

/// What a run does that is called `__govern_read_only`.
pub fn say_why_not(journal: &Journal) {
    let error = Governor::start(journal, &Host::live(), &Actuator::Dirty, GIB).unwrap_err();
    println!("{error}; {}", error.hint().unwrap_or_default());
}

fn on_disk(disk: &Disk) -> Result<Governor, KnobError> {
    let actuator = Actuator::Bdi(BdiOf::Device(disk.name.clone()));
    Governor::start(&Journal::at(&disk.journal()), &Host::live(), &actuator, MIB)
}

fn written(moved: Result<Move, KnobError>) -> u64 {
    match moved.unwrap() {
        Move::Written { bytes } => bytes,
        other => panic!("{other:?}"),
    }
}

pub fn root_a_marked_limit_is_what_the_kernel_takes() {
    let (original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let host = Host::live();
    let threshold = || host.vm_settings().dirty_threshold_bytes.unwrap();
    let found = threshold();
    let mut governor = Governor::start(&Journal::at(folder.path()), &host, &Actuator::Dirty, MIB).unwrap();
    let saved = governor.limits().unwrap().saved_bytes;
    assert!(saved.abs_diff(found) < found / 4, "{saved} is not what the kernel computed, {found}");
    for pages in [saved / 5000, saved / 8000, saved / 6000] {
        let (bytes, in_force) = (4096 * pages, written(governor.set(4096 * pages)));
        assert_eq!((in_force.next_multiple_of(4096), threshold()), (bytes, bytes));
        assert_eq!(limits()[0], in_force.to_string());
        let background = host.vm_settings().dirty_background_threshold_bytes;
        assert_eq!(background, Some(pages / 2 * 4096));
    }
    written(governor.release());
    assert_eq!((limits(), entries(folder.path())), (original.0.clone(), 1));
    written(governor.set(2 * GIB));
    governor.stop().unwrap();
    assert_eq!((limits(), entries(folder.path())), (original.0.clone(), 0));
}

pub fn root_a_killed_guard_is_led_back() {
    let (original, disk) = (Original::keep(), Disk::new());
    let (before, folder) = (disk.snapshot(), disk.journal());
    for actuator in ["dirty", &disk.name] {
        let mut run = Run::start("__govern", &folder, &[actuator, LONG]);
        run.kill();
        until("the guardian restores", || entries(&folder) == 0);
        assert_eq!((limits(), disk.snapshot()), (original.0.clone(), before.clone()), "{actuator}");
    }
}

/// It has limits to set at each turn, and never a moment in which it only gives a sign of life.
pub fn root_who_only_ever_sets_does_not_hang() {
    let disk = Disk::new();
    let (journal, hangs_after) = (disk.journal(), Duration::from_secs(1));
    let actuator = Actuator::Bdi(BdiOf::Device(disk.name.clone()));
    let mut governor =
        Governor::start_within(&Journal::at(&journal), &Host::live(), &actuator, MIB, hangs_after).unwrap();
    let begun = Instant::now();
    for nth in 0.. {
        written(governor.set((20 + nth % 2) * MIB));
        if begun.elapsed() > 3 * hangs_after {
            break;
        }
        sleep(Duration::from_millis(20));
    }
    assert_eq!(entries(&journal), 1);
    governor.stop().unwrap();
}

pub fn root_a_guardian_may_be_started_ahead() {
    let disk = Disk::new();
    let (before, folder) = (disk.snapshot(), disk.journal());
    let mut run = Run::start("__govern", &folder, &[&disk.name, LONG, "ahead"]);
    let guardian = run.guardian();
    assert_eq!(run.guardians(), [guardian], "the one that waited, and no other");
    // Now and then the run lets go for a moment.
    until("it sets a limit", || disk.snapshot() != before);
    run.kill();
    until("it restores", || entries(&folder) == 0 && disk.snapshot() == before);
    until("it ends", || !is_running(guardian));

    // One that has ended meanwhile is no guardian.
    let actuator = Actuator::Bdi(BdiOf::Device(disk.name.clone()));
    let governor = start_ahead(&Journal::at(&folder), &actuator, MIB, &["-KILL"]);
    assert_eq!(guardians(&folder).len(), 1);
    governor.stop().unwrap();

    // One that nobody needed ends with its process.
    let (before, spare) = (children(std::process::id()), SpareGuardian::default());
    spare.prepare();
    let mut waiting = children(std::process::id());
    waiting.retain(|pid| !before.contains(pid));
    drop(spare);
    assert!(waiting.len() == 1 && !is_running(waiting[0]), "{waiting:?}");
}

pub fn root_a_hang_is_led_back() {
    let (original, disk) = (Original::keep(), Disk::new());
    let (before, folder) = (disk.snapshot(), disk.journal());
    for actuator in ["dirty", &disk.name] {
        let mut run = Run::start("__govern", &folder, &[actuator, "1500"]);
        let pid = i32::try_from(run.id()).unwrap();
        signal(pid, "-STOP");
        until("the guardian restores", || entries(&folder) == 0);
        assert_eq!((limits(), disk.snapshot()), (original.0.clone(), before.clone()), "{actuator}");
        signal(pid, "-CONT");
        let said = run.line();
        assert!(said.contains("the guard gave no sign of life"), "{said}");
        assert_eq!((limits(), disk.snapshot()), (original.0.clone(), before.clone()), "{actuator}");
        until("its guardian ends", || run.guardians().iter().all(|pid| !is_running(*pid)));
    }
}

pub fn root_a_journal_that_is_removed_is_no_loss() {
    let disk = Disk::new();
    let (before, folder) = (disk.snapshot(), disk.journal());
    let mut run = Run::start("__govern", &folder, &[disk.name.as_str(), LONG]);
    let pid = i32::try_from(run.id()).unwrap();
    // Its guardian has seen the entry by then.
    signal(pid, "-STOP");
    until("the guardian waits", || run.guardians().iter().all(|pid| sleeps(*pid)));
    fs::remove_dir_all(&folder).unwrap();
    run.kill();
    until("the guardian restores", || disk.snapshot() == before);
    // Of a run that goes on, the governor sees it first.
    let mut run = Run::start("__govern", &folder, &[disk.name.as_str(), LONG]);
    // It writes there: a file may come between the last one's end and the folder's.
    until("the journal is gone", || fs::remove_dir_all(&folder).is_ok() || !folder.exists());
    let said = run.line();
    assert!(said.contains("the guardian restored the limit"), "{said}");
    assert_eq!(disk.snapshot(), before, "{said}");
}

/// Whether it is past its beginning: it waits in poll.
fn sleeps(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/wchan")).is_ok_and(|wchan| wchan.contains("poll"))
        || fs::read_to_string(format!("/proc/{pid}/syscall")).is_ok_and(|call| call.starts_with(POLL))
}

/// The number of poll on x86-64 and of ppoll on arm64.
const POLL: &str = if cfg!(target_arch = "x86_64") { "7 " } else { "73 " };

fn is_running(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

pub fn root_a_guard_gets_another_guardian() {
    let disk = Disk::new();
    let (before, folder) = (disk.snapshot(), disk.journal());
    let mut run = Run::start("__govern", &folder, &[disk.name.as_str(), "3000"]);
    let first = run.guardian();
    signal(first, "-KILL");
    until("another one starts", || run.guardians().iter().any(|pid| *pid != first && is_running(*pid)));
    run.kill();
    until("that one restores", || entries(&folder) == 0);
    assert_eq!(disk.snapshot(), before);
}

pub fn root_another_writer_is_left_alone() {
    let disk = Disk::new();
    let mut governor = on_disk(&disk).unwrap();
    written(governor.set(20 * MIB));
    disk.write("bdi/max_ratio_fine", "123457");
    let moved = governor.set(30 * MIB).unwrap();
    let Move::StoodDown { said } = &moved else { panic!("{moved:?}") };
    assert!(said.contains("max_ratio_fine is 123457, which weir did not write"), "{said}");
    assert_eq!(governor.beat().unwrap(), moved);
    drop(governor);
    let left = (disk.read("bdi/max_ratio_fine"), disk.read("bdi/strict_limit"), entries(&disk.journal()));
    assert_eq!(left, ("123457".into(), "0".into(), 0));
}

pub fn root_others_values_inside_the_band_survive() {
    let (original, folder) = (Original::keep(), tempfile::tempdir().unwrap());
    let mut run = Run::start("__govern", folder.path(), &["dirty", LONG]);
    // Nobody is left to restore; then somebody writes a limit such as the guard could have written.
    run.guardians().into_iter().for_each(|pid| signal(pid, "-KILL"));
    run.kill();
    let foreign = (3 * GIB / 2).to_string();
    fs::write("/proc/sys/vm/dirty_bytes", &foreign).unwrap();
    let done = knob::rollback(&Host::live(), &Journal::at(folder.path()), Which::All);
    assert!(done.failed.is_empty(), "{done:?}");
    assert_eq!((limits()[0].as_str(), &limits()[2..]), (foreign.as_str(), &original.0[2..]), "{done:?}");
}

pub fn root_a_device_may_go_and_come_back() {
    let disk = Disk::new();
    let before = disk.snapshot();
    let mut governor = on_disk(&disk).unwrap();
    written(governor.set(20 * MIB));
    assert_eq!(disk.read("bdi/strict_limit"), "1");
    disk.replace();
    let moved = governor.beat().unwrap();
    assert!(matches!(&moved, Move::Gone { said } if said.contains("max_ratio_fine is back")), "{moved:?}");
    assert_eq!(
        (disk.read("bdi/max_ratio_fine"), disk.read("bdi/strict_limit")),
        ("1000000".into(), "0".into())
    );
    let mut next = on_disk(&disk).unwrap();
    written(next.set(20 * MIB));
    assert_eq!(governor.set(30 * MIB).unwrap(), moved);
    drop(governor);
    assert_eq!(disk.read("bdi/strict_limit"), "1", "the first has no say any more");
    next.stop().unwrap();
    assert_eq!((disk.read("bdi/strict_limit"), before["bdi/strict_limit"].as_str()), ("0".into(), "0"));
}

pub fn root_without_a_journal_nothing_is_changed() {
    let (original, small) = (Original::keep(), Small::new());
    fs::write(small.0.path().join("filler"), vec![1; 1 << 20]).unwrap_err();
    for (folder, says) in [(small.0.path(), "free some space"), (Path::new("/proc/journal"), "")] {
        let error = Governor::start(&Journal::at(folder), &Host::live(), &Actuator::Dirty, GIB).unwrap_err();
        assert!(error.to_string().contains("so nothing was changed"), "{error}");
        assert!(error.hint().unwrap_or_default().contains(says), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let said = Run::whole::<&str>("__govern_read_only", folder.path(), &[]);
    assert!(said.contains("its file system is mounted read-only"), "{said}");
    assert_eq!((limits(), entries(folder.path())), (original.0.clone(), 0));
}

pub fn root_a_refused_limit_puts_back() {
    let disk = Disk::new();
    let mut governor = on_disk(&disk).unwrap();
    let Limits { saved_bytes, .. } = governor.limits().unwrap();
    written(governor.set(saved_bytes / 2));
    // The kernel takes no share below the least one.
    disk.write("bdi/min_ratio_fine", "200000");
    let error = governor.set(saved_bytes / 10).unwrap_err();
    disk.write("bdi/min_ratio_fine", "0");
    assert!(error.to_string().contains("the kernel refuses the value"), "{error}");
    assert_eq!(
        (disk.read("bdi/max_ratio_fine"), disk.read("bdi/strict_limit")),
        ("1000000".into(), "0".into())
    );
    // It is no end: another limit may be taken.
    written(governor.set(saved_bytes / 2));
    let host = Host::live();
    let share =
        knob::read(&host, &format!("{}/bdi/max_ratio_fine", disk.name).parse().unwrap()).unwrap().value;
    assert!(matches!(share, Some(Value::Number(490_000..=510_000))), "{share:?}");
    governor.stop().unwrap();
    assert_eq!(disk.read("bdi/strict_limit"), "0");
}
