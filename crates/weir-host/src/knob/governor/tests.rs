//! A governor on a machine of a few files: what it writes, in which bounds, and over what it does not.

use std::fs;

use weir_control::Limits;
use weir_core::target::DeviceNumber;
use weir_knobs::{Became, Value};

use super::{Actuator, BdiOf, Governor, KnobError, Move, PrivateLimits};
use crate::knob::journal::Sync;
use crate::knob::restore;
use crate::knob::rollback::{Which, listed, rollback};
use crate::knob::testing::Machine;

/// Its threshold of dirty pages.
const SAVED: u64 = 4_096_000;
const FLOOR: u64 = 1_000_000;
const DIRTY: &str = "/proc/sys/vm/dirty_bytes";
const BACKGROUND: &str = "/proc/sys/vm/dirty_background_bytes";

const LOOP: DeviceNumber = DeviceNumber { major: 7, minor: 0 };

fn of_loop() -> Actuator {
    Actuator::Bdi(BdiOf::Device("loop0".into()))
}

fn bdi(file: &str) -> String {
    format!("/sys/class/bdi/7:0/{file}")
}

/// A machine whose bdi has a switch, and whose limits are in bytes: its files do not zero each other.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.set(DIRTY, "4096000");
    machine.set(BACKGROUND, "2048000");
    machine.set(&bdi("strict_limit"), "0");
    machine.set("/proc/sys/kernel/osrelease", "6.18.1");
    machine
}

fn start(machine: &Machine, actuator: &Actuator) -> Governor {
    Governor::start(&machine.journal, &machine.host, actuator, FLOOR).unwrap()
}

/// Its entry stays, of a process that is no more.
fn kill(machine: &Machine, governor: Governor) {
    let file = machine.journal.folder().join(&machine.journaled()[0]);
    let mut entry = machine.journal.read(&file).unwrap();
    (entry.pid_started_ticks, entry.since_ns) = (1, 0);
    std::mem::forget(governor);
    machine.journal.rewrite(&file, &entry, Sync::Not).unwrap();
}

fn written(moved: Move) -> u64 {
    match moved {
        Move::Written { bytes } => bytes,
        other => panic!("{other:?}"),
    }
}

fn stood_down(moved: &Move) -> &str {
    match moved {
        Move::StoodDown { said } => said,
        other => panic!("{other:?}"),
    }
}

fn is_as_found(machine: &Machine) -> bool {
    [DIRTY, BACKGROUND].map(|file| machine.get(file)) == ["4096000", "2048000"]
}

#[test]
fn the_limit_stays_between_floor_and_what_was_found() {
    let machine = machine();
    let mut governor = start(&machine, &Actuator::Dirty);
    let found = Limits { now_bytes: SAVED, saved_bytes: SAVED, floor_bytes: FLOOR };
    assert_eq!((governor.limits().unwrap(), machine.journaled().len()), (found, 1));
    assert!(is_as_found(&machine), "nothing is written before it is asked for");
    for (asked, pages) in [(2_000_000, 488), (1, 244), (0, 244), (u64::MAX, 1000), (3_000_000, 732)] {
        let bytes = written(governor.set(asked).unwrap());
        assert_eq!((bytes.div_ceil(4096), machine.get(DIRTY)), (pages, bytes.to_string()), "{asked}");
        let background: u64 = machine.get(BACKGROUND).parse().unwrap();
        assert_eq!(background.div_ceil(4096), pages / 2, "{asked}");
        assert_eq!(governor.limits().unwrap(), Limits { now_bytes: bytes, ..found });
        assert_eq!(written(governor.beat().unwrap()), bytes);
    }
    governor.stop().unwrap();
    assert!(is_as_found(&machine) && machine.journaled().is_empty());
}

/// Another process takes memory after the guard has started, and the baseline is a share of what is left.
#[test]
fn the_limit_never_exceeds_what_the_baseline_comes_to_now() {
    let machine = Machine::new();
    let memory = |threshold: u64, free: u64| {
        let text = format!("nr_free_pages {free}\nnr_inactive_file 1000\nnr_dirty_threshold {threshold}");
        machine.set("/proc/vmstat", &text);
    };
    let pages = |bytes: u64| bytes.div_ceil(4096);
    memory(1000, 9000);
    let mut governor = Governor::start(&machine.journal, &machine.host, &Actuator::Dirty, 100_000).unwrap();
    assert_eq!(pages(governor.limits().unwrap().saved_bytes), 1000);
    // Nothing is the guard's yet: the kernel tells the baseline.
    memory(300, 5500);
    governor.threshold.set(None);
    let limits = governor.limits().unwrap();
    assert_eq!((pages(limits.now_bytes), pages(limits.saved_bytes)), (300, 300));
    // It tells the guard's limit from now on. A fifth of the memory that others take is taken off.
    assert_eq!(pages(written(governor.set(u64::MAX).unwrap())), 300);
    memory(300, 5000);
    governor.threshold.set(None);
    let limits = governor.limits().unwrap();
    assert_eq!((pages(limits.now_bytes), pages(limits.saved_bytes)), (200, 200));
    assert_eq!(pages(written(governor.beat().unwrap())), 200);
    assert_eq!(pages(machine.get(DIRTY).parse().unwrap()), 200);
    // What becomes free is the guard's to give as far as it was when it started.
    memory(200, 100_000);
    governor.threshold.set(None);
    assert_eq!(pages(written(governor.set(u64::MAX).unwrap())), 1000);
    memory(1000, 0);
    governor.threshold.set(None);
    let limits = governor.limits().unwrap();
    assert!(limits.floor_bytes <= limits.saved_bytes && pages(limits.saved_bytes) == 4, "{limits:?}");
    // What is beneath the first floor is the guard's, too: whoever restores after a kill knows it by the journal.
    written(governor.set(1).unwrap());
    assert_eq!(pages(machine.get(DIRTY).parse().unwrap()), 4);
    for (band, value) in governor.bands.iter().zip(&governor.in_force) {
        assert!(band.has(value), "{band:?} {value}");
    }
}

#[test]
fn a_share_of_a_device_is_led_back_as_a_share() {
    let machine = machine();
    let ppm = || machine.get(&bdi("max_ratio_fine"));
    let mut governor = start(&machine, &of_loop());
    for (asked, share) in [(2_048_000, "500000"), (FLOOR / 2, "244140"), (u64::MAX, "1000000")] {
        written(governor.set(asked).unwrap());
        assert_eq!((ppm().as_str(), machine.get(&bdi("strict_limit"))), (share, "1".to_string()), "{asked}");
    }
    written(governor.release().unwrap());
    assert_eq!((ppm(), machine.get(&bdi("strict_limit"))), ("1000000".into(), "0".into()));
    assert_eq!((machine.journaled().len(), governor.limits().unwrap().now_bytes), (1, SAVED));
    written(governor.set(2_048_000).unwrap());
    drop(governor);
    assert_eq!((ppm(), machine.get(&bdi("strict_limit"))), ("1000000".into(), "0".into()));
    assert!(machine.journaled().is_empty());
}

/// The kernel refuses a smaller share than what the device is promised.
#[test]
fn a_share_is_never_less_than_what_is_promised() {
    let machine = machine();
    machine.set(&bdi("min_ratio_fine"), "400000");
    let mut governor = start(&machine, &of_loop());
    assert_eq!(governor.limits().unwrap().floor_bytes, 1_638_400);
    // Where memory becomes free, the same bytes are a smaller share.
    for (pages, asked) in [(1000, FLOOR), (1000, 1), (2000, FLOOR)] {
        machine.set("/proc/vmstat", &format!("nr_dirty_threshold {pages}"));
        written(governor.set(asked).unwrap());
        assert_eq!(machine.get(&bdi("max_ratio_fine")), "400000", "{pages} {asked}");
    }
}

/// Another process that hangs with the journal must not stop a guard.
#[test]
fn a_journal_in_use_is_not_waited_for_for_ever() {
    let machine = machine();
    let mut governor = start(&machine, &Actuator::Dirty);
    written(governor.set(2_000_000).unwrap());
    let lock = machine.journal.lock().unwrap();
    let error = Governor::start(&machine.journal, &machine.host, &of_loop(), FLOOR).unwrap_err();
    assert!(error.to_string().contains("another weir has had it"), "{error}");
    let error = governor.stop().unwrap_err();
    assert!(error.to_string().contains("another weir has had it"), "{error}");
    assert_eq!(machine.journaled().len(), 1, "it is left to the guardian");
    drop(lock);
}

#[test]
fn somebody_elses_value_stays_and_nothing_is_written_any_more() {
    for (foreign, says) in [
        ("2500000", "vm.dirty is bytes=2500000, which weir did not write"),
        // In the band and with the mark, as another guard would write it.
        ("2001579", "vm.dirty is bytes=2001579, which weir did not write"),
        ("0", "vm.dirty is ratio=20, which weir did not write"),
    ] {
        let machine = machine();
        let mut governor = start(&machine, &Actuator::Dirty);
        written(governor.set(2_000_000).unwrap());
        machine.set(DIRTY, foreign);
        let moved = governor.beat().unwrap();
        assert!(stood_down(&moved).contains(says), "{moved:?}");
        assert_eq!(governor.set(3_000_000).unwrap(), moved);
        assert_eq!((machine.get(DIRTY).as_str(), machine.journaled().len()), (foreign, 0));
        drop(governor);
        assert_eq!((machine.get(DIRTY).as_str(), machine.get(BACKGROUND).as_str()), (foreign, "2048000"));
    }
}

#[test]
fn an_entry_that_is_gone_ends_it() {
    let machine = machine();
    let mut governor = start(&machine, &Actuator::Dirty);
    written(governor.set(2_000_000).unwrap());
    let file = machine.journal.folder().join(&machine.journaled()[0]);
    // As its guardian would, but for a value that was written afterwards.
    fs::remove_file(&file).unwrap();
    let moved = governor.beat().unwrap();
    let said = stood_down(&moved);
    assert!(
        said.contains("gave no sign of life") && said.contains("vm.dirty_bytes is back at 4096000"),
        "{said}"
    );
    assert_eq!(governor.set(2_000_000).unwrap(), moved);
    assert!(is_as_found(&machine));
}

/// A guard that hung takes another limit: its first entry's file is its guardian's and its governor's to look for.
#[test]
fn an_entry_that_is_gone_leaves_its_name_to_no_other() {
    let machine = machine();
    let mut first = start(&machine, &of_loop());
    written(first.set(2_048_000).unwrap());
    let gone = machine.journaled();
    let file = machine.journal.folder().join(&gone[0]);
    restore::from_file(&machine.host, &machine.journal, &file, |_| true).unwrap();
    let mut second = start(&machine, &Actuator::Dirty);
    let there = machine.journaled();
    assert_ne!(gone, there);
    let moved = first.beat().unwrap();
    assert!(stood_down(&moved).contains("the guardian restored the limit"), "{moved:?}");
    drop(first);
    assert_eq!(machine.journaled(), there);
    written(second.set(2_000_000).unwrap());
    drop(second);
    assert!(is_as_found(&machine) && machine.journaled().is_empty());
}

#[test]
fn what_a_dead_guard_left_is_told_from_what_others_wrote() {
    for (dirty, background, dirty_is_back) in [
        ("2001579", "1002155", true),
        ("2000000", "1002155", false),
        ("2001920", "1002155", false),
        ("5001899", "1002155", false),
    ] {
        let machine = machine();
        let governor = start(&machine, &Actuator::Dirty);
        kill(&machine, governor);
        machine.set(DIRTY, dirty);
        machine.set(BACKGROUND, background);
        let done = rollback(&machine.host, &machine.journal, Which::Last);
        let said = done.said.join("\n");
        assert_eq!(said.contains("vm.dirty_bytes is back at 4096000"), dirty_is_back, "{dirty}: {said}");
        assert_ne!(said.contains("which weir's guard did not write"), dirty_is_back, "{dirty}: {said}");
        assert!(
            said.contains("vm.dirty_background_bytes is back at 2048000") && done.failed.is_empty(),
            "{done:?}"
        );
        let again = rollback(&machine.host, &machine.journal, Which::All);
        assert!(again.said[0].contains("nothing to restore"), "{again:?}");
    }
}

#[test]
fn another_device_ends_it_and_a_new_governor_may_start() {
    let machine = machine();
    let actuator = of_loop();
    let mut governor = start(&machine, &actuator);
    written(governor.set(2_000_000).unwrap());
    machine.set("/sys/block/loop0/diskseq", "8");
    let moved = governor.set(1_500_000).unwrap();
    assert!(matches!(moved, Move::Gone { .. }), "{moved:?}");
    // A loop device keeps what was set.
    assert_eq!(
        (machine.get(&bdi("max_ratio_fine")), machine.get(&bdi("strict_limit"))),
        ("1000000".into(), "0".into())
    );
    let mut next = start(&machine, &actuator);
    written(next.set(2_000_000).unwrap());
    fs::remove_dir_all(machine.real("/sys/class/bdi/7:0")).unwrap();
    fs::remove_file(machine.real("/sys/block/loop0/diskseq")).unwrap();
    let moved = next.beat().unwrap();
    assert!(matches!(moved, Move::Gone { .. }), "{moved:?}");
    assert!(machine.journaled().is_empty());
    assert_eq!(governor.beat().unwrap(), governor.beat().unwrap());
}

#[test]
fn an_actuator_in_other_hands_is_not_taken() {
    let machine = machine();
    let governor = start(&machine, &Actuator::Dirty);
    let error = Governor::start(&machine.journal, &machine.host, &Actuator::Dirty, FLOOR).unwrap_err();
    assert!(error.to_string().contains("vm.dirty") && error.to_string().contains("another weir"), "{error}");
    // The other actuator is free.
    start(&machine, &of_loop());
    governor.stop().unwrap();
    start(&machine, &Actuator::Dirty);
}

#[test]
fn the_actuator_is_chosen_by_what_the_kernel_offers() {
    for (release, lacks, expected, why) in [
        ("6.18.44-vm", "", of_loop(), "loop0 alone"),
        ("6.14.0", "", of_loop(), "loop0 alone"),
        ("6.12.7-cloud", "", Actuator::Dirty, "before Linux 6.14 (here 6.12.7-cloud)"),
        ("5.15.0", "strict_limit", Actuator::Dirty, "no loop0/bdi/strict_limit, which Linux has since 6.2"),
        ("", "", Actuator::Dirty, "before Linux 6.14"),
    ] {
        let machine = machine();
        machine.set("/proc/sys/kernel/osrelease", release);
        if !lacks.is_empty() {
            fs::remove_file(machine.real(&bdi(lacks))).unwrap();
        }
        let choice = Actuator::best(&machine.host, "loop0", LOOP);
        assert_eq!(choice.actuator, expected, "{release}: {}", choice.why);
        assert!(choice.why.contains(why), "{release}: {}", choice.why);
    }
    // What devices that were idle have left, with the release of a kernel that left them nothing: (dirty, written, min_ratio).
    for (threshold, written, promised, is_sound) in
        [(0, 0, 0, false), (31_384, 0, 0, true), (31_384, 1, 0, false), (31_384, 0, 1, false)]
    {
        let machine = machine();
        machine.set("/proc/sys/kernel/osrelease", "6.12.0-55.el10");
        machine.set(&bdi("min_ratio"), &promised.to_string());
        let stats = format!("BdiDirtyThresh: {threshold} kB\nBdiWritten: {written} kB");
        machine.set("/sys/kernel/debug/bdi/7:0/stats", &stats);
        let choice = Actuator::best(&machine.host, "loop0", LOOP);
        assert_eq!(choice.actuator != Actuator::Dirty, is_sound, "{stats}, {promised}: {}", choice.why);
    }
}

#[test]
fn a_file_system_with_a_bdi_of_its_own_is_turned_there() {
    let machine = machine();
    let btrfs = "43 30 0:39 / /data rw - btrfs /dev/loop0 rw\n";
    machine.set("/proc/self/mountinfo", btrfs);
    let choice = || Actuator::best(&machine.host, "loop0", LOOP);
    assert_eq!((choice().actuator, choice().why.contains("does not tell")), (Actuator::Dirty, true));
    for (file, value) in
        [("read_ahead_kb", "4096"), ("strict_limit", "0"), ("max_ratio_fine", "1000000"), ("max_bytes", "0")]
    {
        machine.set(&format!("/sys/class/bdi/btrfs-27/{file}"), value);
    }
    assert_eq!(choice().actuator, Actuator::Bdi(BdiOf::FileSystem("btrfs-27".into())), "{}", choice().why);
    let mut governor = start(&machine, &choice().actuator);
    written(governor.set(2_048_000).unwrap());
    assert_eq!(machine.get("/sys/class/bdi/btrfs-27/max_ratio_fine"), "500000");
    assert_eq!(machine.get(&bdi("strict_limit")), "0", "the disk's own bdi has none of its pages");
    governor.stop().unwrap();
    assert_eq!(machine.get("/sys/class/bdi/btrfs-27/max_ratio_fine"), "1000000");
    machine.set("/proc/self/mountinfo", &format!("{btrfs}44 30 7:0 / /other rw - ext4 /dev/loop0 rw\n"));
    assert_eq!(choice().actuator, Actuator::Dirty, "one limit for both");
}

#[test]
fn the_journal_says_what_a_guard_holds() {
    let machine = machine();
    let entry = |actuator: &Actuator| {
        let governor = start(&machine, actuator);
        let file = machine.journal.folder().join(&machine.journaled()[0]);
        let entry = machine.journal.read(&file).unwrap();
        governor.stop().unwrap();
        listed(&machine.host, file, &entry)
    };
    let dirty = entry(&Actuator::Dirty);
    assert!(dirty.by_guard);
    let held = |least, most| Became::Governed { least, most };
    assert_eq!(
        dirty.changes[1],
        (
            "vm.dirty".parse().unwrap(),
            Value::Bytes(4_096_000),
            held(Value::Bytes(998_059), Value::Bytes(4_096_000))
        )
    );
    let bdi = entry(&of_loop()).changes;
    let became: Vec<Became> = bdi.into_iter().map(|(_, _, became)| became).collect();
    assert_eq!(
        became,
        [Became::Value(Value::Number(1)), held(Value::Number(61_035), Value::Number(999_999))]
    );
}

const IO_MAX: &str = "/sys/fs/cgroup/unified/db.slice/io.max";
const WRITE_BPS: &str = "/sys/fs/cgroup/blkio/a/blkio.throttle.write_bps_device";

fn of_cgroup(knob: &str) -> Actuator {
    Actuator::Cgroup(knob.parse().unwrap())
}

#[test]
fn what_a_cgroup_may_write_is_turned_in_both_hierarchies() {
    // The baseline, and as what it counts in a tenth of a second.
    for (knob, file, found, saved_bytes, line) in [
        ("cgroup:/db.slice/io.max/7:0/wbps", IO_MAX, "7:0 rbps=max wbps=90000000", 9_000_000, "7:0 wbps="),
        ("cgroup:/db.slice/io.max/9:0/wbps", IO_MAX, "7:0 wbps=5", 4 << 30, "9:0 wbps="),
        ("cgroup:/a/blkio.throttle.write_bps_device/7:0", WRITE_BPS, "7:0 90000000", 9_000_000, "7:0 "),
        ("cgroup:/a/blkio.throttle.write_bps_device/9:0", WRITE_BPS, "7:0 5", 4 << 30, "9:0 "),
    ] {
        let machine = machine();
        machine.set(file, found);
        let mut governor = start(&machine, &of_cgroup(knob));
        let limits = Limits { now_bytes: saved_bytes, saved_bytes, floor_bytes: FLOOR };
        assert_eq!((governor.limits().unwrap(), machine.get(file).as_str()), (limits, found), "{knob}");
        let baseline = Governor::baseline_bytes(&machine.host, &of_cgroup(knob));
        assert_eq!(baseline.unwrap(), saved_bytes, "{knob}");
        // A lot is dirty, but not this limit's matter: it goes down at once.
        machine.set("/proc/meminfo", "Dirty: 3000000 kB\nWriteback: 0 kB");
        for (asked, least, most) in [(5_000_000, 49_990_000, 50_000_000), (1, 9_990_000, 10_000_000)] {
            let bytes = written(governor.set(asked).unwrap());
            let per_second: u64 = machine.get(file).strip_prefix(line).unwrap().parse().unwrap();
            assert!((least..=most).contains(&per_second), "{knob}: {asked} became {per_second}");
            assert_eq!(bytes, per_second / 10, "{knob}");
        }
        assert!(
            written(governor.set(u64::MAX).unwrap()) <= saved_bytes,
            "{knob}: never above what was found"
        );
        governor.stop().unwrap();
        // Files of a captured tree do not drop the line of a limit that is lifted.
        let back = match (saved_bytes, file) {
            (9_000_000, IO_MAX) => "7:0 wbps=90000000",
            (9_000_000, _) => "7:0 90000000",
            (_, IO_MAX) => "9:0 wbps=max",
            _ => "9:0 0",
        };
        assert_eq!((machine.get(file).as_str(), machine.journaled().len()), (back, 0), "{knob}");
    }
}

const HIGH: &str = "/sys/fs/cgroup/unified/db.slice/memory.high";

/// In MB, MB/s and microseconds a second.
fn limits(high: Option<u64>, pace: Option<u64>, quota: Option<u64>) -> PrivateLimits {
    let bytes = |mb: Option<u64>| mb.map(|mb| mb * 1_000_000);
    PrivateLimits { high: bytes(high), pace: bytes(pace), quota }
}

fn of_both() -> Actuator {
    Actuator::Private {
        high: "cgroup:/db.slice/memory.high".parse().unwrap(),
        pace: Some("cgroup:/db.slice/io.max/7:0/wbps".parse().unwrap()),
        quota: None,
    }
}

/// Not another program's wish: the guard sets its limits again.
#[test]
fn a_baseline_that_a_service_manager_writes_again_is_a_reset() {
    // As a service manager does that applies a unit's properties again, with a pace beside it or without.
    for (again, is_reset) in [
        (&[(HIGH, "max")][..], true),
        (&[(IO_MAX, "7:0 wbps=max")], true),
        (&[(HIGH, "max"), (IO_MAX, "7:0 wbps=max")], true),
        (&[(HIGH, "9000000")], false),
        (&[(HIGH, "max"), (IO_MAX, "7:0 wbps=5")], false),
    ] {
        let machine = machine();
        machine.set(HIGH, "max");
        machine.set(IO_MAX, "7:0 wbps=max");
        let mut governor = start(&machine, &of_both());
        written(governor.set_private(&limits(Some(16), Some(30), None)).unwrap());
        again.iter().for_each(|(file, text)| machine.set(file, text));
        let moved = governor.beat().unwrap();
        assert_eq!(matches!(moved, Move::Reset { .. }), is_reset, "{again:?}: {moved:?}");
        assert_eq!(governor.beat().unwrap(), moved);
        if is_reset {
            assert_eq!((machine.get(HIGH).as_str(), machine.get(IO_MAX).as_str()), ("max", "7:0 wbps=max"));
        }
        assert!(machine.journaled().is_empty());
    }
}

#[test]
fn both_limits_of_a_private_actuator_are_set_and_restored_together() {
    let high = HIGH;
    // (found, asked for in MB and MB/s, in force)
    for (found, asked, in_force) in [
        (("max", "7:0 wbps=max"), (Some(16), Some(30)), ("16166912", "7:0 wbps=29997739")),
        (("max", "7:0 wbps=max"), (Some(16), None), ("16166912", "7:0 wbps=max")),
        (("max", "7:0 wbps=max"), (None, Some(30)), ("max", "7:0 wbps=29997739")),
        (("max", "7:0 wbps=2000000"), (Some(16), Some(30)), ("16166912", "7:0 wbps=2000000")),
    ] {
        let machine = machine();
        machine.set(high, found.0);
        machine.set(IO_MAX, found.1);
        let mut governor = start(&machine, &of_both());
        written(governor.set_private(&limits(asked.0, asked.1, None)).unwrap());
        assert_eq!(
            (machine.get(high).as_str(), machine.get(IO_MAX).as_str()),
            in_force,
            "{found:?} {asked:?}"
        );
        written(governor.beat().unwrap());
        drop(governor);
        assert_eq!((machine.get(high).as_str(), machine.get(IO_MAX).as_str()), found);
    }
    // To restore it the kernel would reclaim, for as long as those inside like. Nothing is journaled.
    let machine = machine();
    machine.set(high, "9000000");
    let refused = Governor::start(&machine.journal, &machine.host, &of_both(), 1 << 20);
    assert!(matches!(refused, Err(KnobError::Limited { .. })));
    assert!(machine.journaled().is_empty());
    machine.set(high, "max");
    // A killed guard's limits are told from others' by their mark.
    let governor = start(&machine, &of_both());
    kill(&machine, governor);
    machine.set(high, "16166912");
    machine.set(IO_MAX, "7:0 wbps=30000000");
    let said = rollback(&machine.host, &machine.journal, Which::Last).said.join("\n");
    assert_eq!(
        (machine.get(high).as_str(), machine.get(IO_MAX).as_str()),
        ("max", "7:0 wbps=30000000"),
        "{said}"
    );
}

const CPU_MAX: &str = "/sys/fs/cgroup/unified/db.slice/cpu.max";

#[test]
fn processor_time_is_limited_in_the_shortest_period_and_restored_as_it_was() {
    let Actuator::Private { high, pace, .. } = of_both() else { unreachable!() };
    let quota = Some("cgroup:/db.slice/cpu.max".parse().unwrap());
    let actuator = Actuator::Private { high, pace, quota };
    // (found, microseconds a second, in force)
    for (found, asked, in_force) in [
        ("max 100000", Some(0), "1003 1000000"),
        ("max 100000", Some(5000), "1003 200600"),
        ("max 100000", Some(20_000), "1003 50150"),
        ("max 50000", Some(300_000), "3051 10000"),
        ("max 100000", Some(u64::MAX), "10000043 10000"),
        ("max 100000", None, "max 100000"),
        // Somebody's limit.
        ("50000 100000", Some(5000), "50000 100000"),
    ] {
        let machine = machine();
        machine.set(HIGH, "max");
        machine.set(IO_MAX, "7:0 wbps=max");
        machine.set(CPU_MAX, found);
        let mut governor = start(&machine, &actuator);
        written(governor.set_private(&limits(Some(16), None, asked)).unwrap());
        assert_eq!(machine.get(CPU_MAX), in_force, "{found}");
        assert_eq!(machine.get(IO_MAX), "7:0 wbps=max");
        written(governor.beat().unwrap());
        governor.stop().unwrap();
        assert_eq!((machine.get(HIGH).as_str(), machine.get(CPU_MAX).as_str()), ("max", found));
    }
    // Of a killed guard, and of somebody else since.
    for (left, back) in
        [("1003 200600", "max 100000"), ("1000 200600", "1000 200600"), ("max 9000", "max 9000")]
    {
        let machine = machine();
        machine.set(HIGH, "max");
        machine.set(CPU_MAX, "max 100000");
        let governor = start(&machine, &actuator);
        kill(&machine, governor);
        machine.set(CPU_MAX, left);
        let said = rollback(&machine.host, &machine.journal, Which::Last).said.join("\n");
        assert_eq!(machine.get(CPU_MAX), back, "{said}");
    }
}

#[test]
fn a_limit_of_a_cgroup_that_others_turn_is_left_alone_and_one_that_is_gone_is_gone() {
    let actuator = of_cgroup("cgroup:/a/blkio.throttle.write_bps_device/7:0");
    let machine = machine();
    let mut governor = start(&machine, &actuator);
    written(governor.set(50_000).unwrap());
    machine.set(WRITE_BPS, "7:0 500000");
    assert!(stood_down(&governor.beat().unwrap()).contains("is 500000, which weir did not write"));
    drop(governor);
    assert_eq!(machine.get(WRITE_BPS), "7:0 500000");

    machine.set(WRITE_BPS, "7:0 90000000");
    let mut governor = start(&machine, &actuator);
    written(governor.set(2_000_000).unwrap());
    // Made again under its name, as a unit's is when it is started again.
    let folder = machine.real("/sys/fs/cgroup/blkio/a");
    fs::rename(&folder, folder.with_file_name("before")).unwrap();
    machine.set(WRITE_BPS, "8:0 5");
    assert!(matches!(governor.beat().unwrap(), Move::Gone { .. }));
    drop(governor);
    assert_eq!((machine.get(WRITE_BPS).as_str(), machine.journaled().len()), ("8:0 5", 0));
}
