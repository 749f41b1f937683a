//! Waits and completions made by hand, with the anatomy they must give.

use super::*;
use weir_core::target::DeviceNumber;

const LOOP: DeviceNumber = DeviceNumber { major: 7, minor: 0 };
const FILE: FileId = FileId { file_system: LOOP, inode: 11 };
const DUMP: FileId = FileId { file_system: LOOP, inode: 12 };
const MS: u64 = 1_000_000;

const DATA: [&str; 6] = [
    "__schedule",
    "io_schedule",
    "folio_wait_bit_common",
    "folio_wait_writeback",
    "__filemap_fdatawait_range",
    "xfs_file_fsync",
];
const LOG: [&str; 5] =
    ["__schedule", "schedule", "xlog_wait_on_iclog", "xfs_log_force_seq", "xfs_file_fsync"];

fn analyst() -> Analyst {
    let mut analyst = Analyst::new(Sampling { stack_every_ns: MS, slow_ns: Some(50 * MS) });
    analyst.name(77, "dd");
    // The device is one whose requests are seen.
    analyst.io(Io { complete_ns: 0, issue_ns: 0, get_ns: 0, ..write(1, FILE, 5) });
    analyst
}

fn part(waits: Vec<Wait>, end_ns: Option<u64>) -> Part {
    Part {
        tid: 5,
        tgid: 5,
        comm: "sysbench".to_string(),
        call: Call::Fsync,
        device: Some(LOOP),
        file: Some(FILE),
        start_ns: 0,
        end_ns,
        seen_from_ns: 0,
        waits,
    }
}

fn write(complete_ms: u64, file: FileId, owner_tgid: u32) -> Io {
    Io {
        device: LOOP,
        complete_ns: complete_ms * MS,
        issue_ns: complete_ms * MS - MS / 2,
        get_ns: complete_ms * MS - MS,
        queue_ns: 0,
        file: Some(file),
        owner_tgid,
        own_tid: 0,
        bytes: 4096,
        flags: IoFlags(1),
        raw_device: None,
    }
}

fn wait(start_ms: u64, end_ms: u64, site: Option<SiteId>) -> Wait {
    Wait { start_ns: start_ms * MS, end_ns: end_ms * MS, runnable_ns: 0, site, by_chance: true }
}

fn share_of(rows: &[(Cause, f64)], cause: Cause) -> f64 {
    rows.iter().find(|(c, _)| *c == cause).map_or(0.0, |(_, share)| *share)
}

fn check_sums(anatomy: &Anatomy) {
    let sum: f64 = anatomy.phases.iter().map(|row| row.share).sum();
    assert!((sum - 1.0).abs() < 1e-9, "phases add up to {sum}: {anatomy:?}");
    for row in anatomy.phases.iter().filter(|row| !row.causes.is_empty()) {
        let sum: f64 = row.causes.iter().map(|(_, share)| share).sum();
        assert!((sum - row.share).abs() < 1e-9, "{row:?}");
    }
}

#[test]
fn time_behind_another_s_requests_is_theirs() {
    let mut analyst = analyst();
    let (data, log) = (analyst.site(&DATA), analyst.site(&LOG));
    // 90 ms behind dd, then a request of its own that took half a millisecond in the device, as all do.
    for ms in (10..=90).step_by(10) {
        analyst.io(write(ms, DUMP, 77));
    }
    analyst.io(write(92, FILE, 5));
    let mut logged = write(96, FILE, 0);
    (logged.file, logged.flags) = (None, IoFlags(1 | 1 << 12));
    analyst.io(logged);
    analyst.part(&part(vec![wait(0, 92, Some(data)), wait(93, 97, Some(log))], Some(100 * MS)));
    let report = analyst.report(100 * MS);
    let all = &report.all;
    check_sums(all);
    assert_eq!((all.syncs, all.wall_ns, report.processes.len()), (1, 100 * MS, 1));
    assert!((share_of(&all.causes, Cause::Others) - 0.90).abs() < 1e-9, "{all:?}");
    // 90..91 and 93..95 ms: there was nothing of its own in the block layer yet.
    assert!((share_of(&all.causes, Cause::Held) - 0.03).abs() < 1e-9, "{all:?}");
    assert!((share_of(&all.causes, Cause::Queue) - 0.01).abs() < 1e-9, "{all:?}");
    assert!((share_of(&all.causes, Cause::Device) - 0.01).abs() < 1e-9, "{all:?}");
    assert!((share_of(&all.causes, Cause::Kernel) - 0.01).abs() < 1e-9, "{all:?}");
    assert_eq!(all.culprits[0].process.comm, "dd");
    assert_eq!((all.culprits[0].ios, all.culprits[0].bytes), (9, 9 * 4096));
    assert_eq!(all.sites[0].functions, "folio_wait_writeback < __filemap_fdatawait_range < xfs_file_fsync");
    assert!((all.explained - 1.0).abs() < 1e-9);
    let slow = analyst.slow();
    assert_eq!((slow.len(), slow[0].took_ns, slow[0].culprits[0].process.pid), (1, 100 * MS, Some(77)));
}

/// Requests of NVMe with several paths, of a network file system, or of persistent memory come on no device that is known to serve the sync.
#[test]
fn time_on_a_device_that_was_never_seen_at_work_is_not_explained() {
    let mut analyst = Analyst::new(Sampling { stack_every_ns: MS, slow_ns: None });
    let site = analyst.site(&DATA);
    let other = DeviceNumber { major: 259, minor: 1 };
    (10..=90).step_by(10).for_each(|ms| analyst.io(Io { device: other, ..write(ms, DUMP, 77) }));
    analyst.part(&part(vec![wait(0, 95, Some(site))], Some(100 * MS)));
    let all = analyst.report(0).all;
    check_sums(&all);
    assert!((share_of(&all.causes, Cause::Unseen) - 0.95).abs() < 1e-9, "{all:?}");
    assert!((all.explained - 0.05).abs() < 1e-9 && all.culprits.is_empty(), "{all:?}");
    // Where it slept is known all the same.
    assert_eq!(all.phases[0].phase, Phase::OwnData);
    // Once it was seen, a time without completions is the kernel's.
    analyst.io(write(110, FILE, 5));
    analyst.next_interval();
    let waits = vec![wait(120, 195, Some(site))];
    analyst.part(&Part { start_ns: 120 * MS, ..part(waits, Some(195 * MS)) });
    let all = analyst.report(0).all;
    assert!((share_of(&all.causes, Cause::Kernel) - 1.0).abs() < 1e-9, "{all:?}");
    assert!((all.explained - 1.0).abs() < 1e-9, "{all:?}");
}

/// A thousand threads of another account asleep in a sync, beside a busy device.
#[test]
fn very_many_waits_are_not_each_held_against_very_many_completions() {
    let mut analyst = analyst();
    let data = analyst.site(&DATA);
    for us in 0..20_000 {
        analyst.io(Io { complete_ns: MS + us * 1000, issue_ns: MS, ..write(1, DUMP, 77) });
    }
    let parts: Vec<Part> =
        (0..1000).map(|tid| Part { tid, ..part(vec![wait(1, 40, Some(data))], None) }).collect();
    analyst.under_way(&parts, 40 * MS, true);
    let all = analyst.report(40 * MS).all;
    let forgotten = analyst.losses().sum();
    // 2 million of the 20 are looked at; the rest of the time is not explained.
    assert_eq!(forgotten, 1000 - (1 << 21) / 20_000);
    assert!((1.0 - all.explained - 0.97 * forgotten as f64 / 1000.0).abs() < 0.02, "{all:?}");
    // Another look at once has no more.
    let fresh = [Part { tid: 5000, ..part(vec![wait(1, 40, Some(data))], None) }];
    analyst.under_way(&fresh, 40 * MS, true);
    let forgotten = forgotten + 1;
    assert_eq!(analyst.losses().sum(), forgotten);
    // The next tick has as much again.
    analyst.under_way(&parts[..1], 41 * MS, true);
    assert_eq!(analyst.losses().sum(), forgotten);
}

#[test]
fn a_device_that_serves_many_at_once_is_no_queue() {
    let mut analyst = analyst();
    let data = analyst.site(&DATA);
    // Another's requests complete while ours is in the device for its usual 10 ms: they did not delay it.
    for ms in 3..9 {
        analyst.io(write(ms, DUMP, 77));
    }
    let mine = Io { issue_ns: 0, get_ns: 0, ..write(10, FILE, 5) };
    analyst.io(Io { get_ns: 1, issue_ns: 1, ..mine });
    analyst.io(Io { complete_ns: 10 * MS + 2, get_ns: 2, issue_ns: 2, bytes: 8192, ..mine });
    analyst.part(&part(vec![wait(0, 11, Some(data))], Some(11 * MS)));
    let all = analyst.report(0).all;
    check_sums(&all);
    // dd's were in the device half a millisecond each; ours of 8 KiB never less than 10.
    assert!(share_of(&all.causes, Cause::Others) < 0.01, "{all:?}");
    assert!(share_of(&all.causes, Cause::Device) > 0.9, "{all:?}");
}

#[test]
fn a_sync_is_counted_as_far_as_it_has_come_and_never_twice() {
    let mut analyst = analyst();
    let data = analyst.site(&DATA);
    analyst.under_way(&[part(vec![wait(1, 40, Some(data))], None)], 40 * MS, false);
    // Nothing has completed: whose the wait is, is not known yet.
    assert_eq!(analyst.report(0).all.wall_ns, MS);
    analyst.io(write(30, DUMP, 77));
    analyst.under_way(&[part(vec![wait(1, 40, Some(data))], None)], 40 * MS, false);
    assert_eq!(analyst.report(0).all.wall_ns, 30 * MS);
    analyst.under_way(&[part(vec![wait(1, 40, Some(data))], None)], 40 * MS, true);
    assert_eq!(analyst.report(0).all.wall_ns, 40 * MS);
    assert_eq!(analyst.still_waiting(), StillWaiting { count: 1, oldest_ns: 40 * MS });
    analyst.next_interval();
    analyst.part(&part(vec![wait(1, 70, Some(data))], None));
    analyst.part(&part(vec![wait(80, 90, Some(data))], Some(100 * MS)));
    let all = analyst.report(0).all;
    check_sums(&all);
    assert_eq!((all.wall_ns, all.syncs, all.latency.max_ns), (60 * MS, 1, 100 * MS));
    assert_eq!(analyst.whole(0).all.wall_ns, 100 * MS);
    let cpu = all.phases.iter().find(|row| row.phase == Phase::Cpu).unwrap();
    assert!((cpu.share - 20.0 / 60.0).abs() < 1e-9, "{cpu:?}");
}

#[test]
fn short_waits_are_told_by_their_sample() {
    let mut analyst = analyst();
    let (data, log) = (analyst.site(&DATA), analyst.site(&LOG));
    // 1000 waits of 0.1 ms; one in ten has its stack taken; of those, three quarters are for data.
    for i in 0..1000_u64 {
        let site = (i % 10 == 0).then_some(if i % 40 == 0 { log } else { data });
        let (start_ns, end_ns) = (i * MS, i * MS + MS / 10);
        let waits = vec![Wait { start_ns, end_ns, runnable_ns: 0, site, by_chance: true }];
        analyst.part(&Part { start_ns, end_ns: Some(end_ns), waits, ..part(vec![], None) });
    }
    let all = analyst.report(0).all;
    check_sums(&all);
    let share = |phase| all.phases.iter().find(|row| row.phase == phase).map_or(0.0, |row| row.share);
    assert!(
        (share(Phase::OwnData) - 0.75).abs() < 1e-9 && (share(Phase::Journal) - 0.25).abs() < 1e-9,
        "{all:?}"
    );
    assert!((all.sites[0].share - 0.75).abs() < 1e-9 && (all.sites[0].waits - 750.0).abs() < 1e-6, "{all:?}");
}

#[test]
fn short_syncs_stand_for_those_only_counted_and_unseen_time_is_unexplained() {
    let mut analyst = analyst();
    let data = analyst.site(&DATA);
    // 100 µs, of which 75 asleep; 15 like it were only counted, and 5 of 400 µs, of which none was looked into.
    let us = MS / 1000;
    let asleep =
        Wait { start_ns: 25 * us, end_ns: 100 * us, runnable_ns: 0, site: Some(data), by_chance: true };
    analyst.part(&part(vec![asleep], Some(100 * us)));
    let counted = |count, each_us| Skimmed {
        tgid: 5,
        comm: "sysbench".to_string(),
        call: Call::Fsync,
        count,
        took_ns: count * each_us * us,
    };
    analyst.skimmed(&[counted(15, 100), counted(5, 400)]);
    let share =
        |all: &Anatomy, phase| all.phases.iter().find(|row| row.phase == phase).map_or(0.0, |r| r.share);
    let all = analyst.report(0).all;
    check_sums(&all);
    assert_eq!((all.syncs, all.short, all.skimmed, all.wall_ns), (21, 21, 20, 3600 * us));
    assert!((share(&all, Phase::OwnData) - 1.2 / 3.6).abs() < 1e-9, "{all:?}");
    assert!((share(&all, Phase::Unknown) - 2.0 / 3.6).abs() < 1e-9, "{all:?}");
    assert!((all.explained - 1.6 / 3.6).abs() < 1e-9, "{all:?}");
    assert!((all.sites[0].waits - 160.0 / 7.5 * 10.0).abs() < 1e-6, "{all:?}");
    // A long one that was not looked into until it had taken 2 ms of its 10.
    let late =
        Part { start_ns: MS, seen_from_ns: 3 * MS, ..part(vec![wait(2, 11, Some(data))], Some(11 * MS)) };
    analyst.next_interval();
    analyst.part(&late);
    let all = analyst.report(0).all;
    check_sums(&all);
    assert!((all.explained - 0.8).abs() < 1e-9, "{all:?}");
}

#[test]
fn a_stack_not_left_to_chance_stands_for_its_own_wait() {
    let mut analyst = analyst();
    let (data, log) = (analyst.site(&DATA), analyst.site(&LOG));
    let us = MS / 1000;
    let asleep = |site, by_chance, start_us, end_us| Wait {
        start_ns: start_us * us,
        end_ns: end_us * us,
        runnable_ns: 0,
        site: Some(site),
        by_chance,
    };
    // Of the first, both stacks; of a second like it, only that of the long half, whose chance was a half.
    let first = vec![asleep(data, false, 0, 500), asleep(log, false, 500, 600)];
    analyst.part(&part(first, Some(600 * us)));
    let mut second = vec![asleep(data, true, 0, 500), asleep(log, true, 500, 600)];
    second[1].site = None;
    analyst.part(&part(second, Some(600 * us)));
    let all = analyst.report(0).all;
    check_sums(&all);
    let share = |phase| all.phases.iter().find(|row| row.phase == phase).map_or(0.0, |row| row.share);
    assert!((share(Phase::OwnData) - 1500.0 / 1600.0).abs() < 1e-9, "{all:?}");
    assert!((share(Phase::Journal) - 100.0 / 1600.0).abs() < 1e-9, "{all:?}");
    assert!((all.explained - 1.0).abs() < 1e-9, "{all:?}");
}

#[test]
fn stacks_have_phases() {
    let cases: [(&[&str], Phase); 14] = [
        (&DATA, Phase::OwnData),
        (&LOG, Phase::Journal),
        (&["schedule", "jbd2_log_wait_commit", "ext4_sync_file"], Phase::Journal),
        (&["schedule", "blkdev_issue_flush", "ext4_sync_file"], Phase::Flush),
        (
            &["io_schedule", "submit_bio_wait", "blkdev_issue_flush", "jbd2_complete_transaction"],
            Phase::Flush,
        ),
        (&["schedule", "rwsem_down_write_slowpath", "ext4_buffered_write_iter"], Phase::Lock),
        (&["schedule", "__mutex_lock", "btrfs_sync_log", "btrfs_sync_file"], Phase::Journal),
        (
            &["io_schedule", "blk_mq_get_tag", "do_writepages", "file_write_and_wait_range"],
            Phase::RequestQueue,
        ),
        (&["io_schedule_timeout", "balance_dirty_pages", "generic_perform_write"], Phase::DirtyPause),
        (&["io_schedule", "folio_wait_bit_common", "btrfs_wait_ordered_range"], Phase::OwnData),
        (&["io_schedule", "__iomap_dio_rw", "ext4_file_write_iter"], Phase::OwnData),
        (&["schedule", "__wait_on_buffer", "ext4_mb_init_cache", "do_writepages"], Phase::Read),
        (&["io_schedule", "__sync_dirty_buffer", "ext4_write_inode", "ext4_sync_file"], Phase::Journal),
        (&["schedule", "pipe_write", "vfs_write"], Phase::Other),
    ];
    for (frames, phase) in cases {
        assert_eq!(super::phase::classify(frames), phase, "{frames:?}");
    }
}

#[test]
fn stacks_that_differ_further_out_are_two_places() {
    let mut analyst = analyst();
    let [journal, read] = ["jbd2_log_do_checkpoint", "ext4_mb_init_cache"].map(|outer| {
        analyst.site(&[
            "io_schedule",
            "__wait_on_buffer",
            "wait_inner",
            "wait_outer",
            outer,
            "ext4_sync_file",
        ])
    });
    analyst.part(&part(vec![wait(0, 6, Some(journal)), wait(6, 8, Some(read))], Some(8 * MS)));
    let all = analyst.whole(8 * MS).all;
    let found: Vec<_> = all.phases.iter().map(|row| (row.phase, row.share)).collect();
    assert_eq!(found, [(Phase::Journal, 0.75), (Phase::Read, 0.25)]);
    assert_eq!(all.sites.iter().map(|site| site.phase).collect::<Vec<_>>(), [Phase::Journal, Phase::Read]);
}

#[test]
fn every_process_has_its_anatomy_up_to_a_thousand() {
    let mut analyst = analyst();
    for tgid in 1..=1100 {
        analyst.part(&Part { tid: tgid, tgid, ..part(Vec::new(), Some(MS)) });
    }
    let report = analyst.whole(MS);
    let wall_ns: u64 = report.processes.iter().map(|anatomy| anatomy.wall_ns).sum();
    assert_eq!((report.processes.len(), wall_ns), (1025, report.all.wall_ns));
    assert_eq!(report.processes[0].process.as_ref().unwrap().comm, "all others");
}

#[test]
fn a_ledger_takes_all_of_an_interval_and_leaves_the_next_one_empty() {
    let mut analyst = analyst();
    analyst.remember(2);
    let site = analyst.site(&DATA);
    for complete_ms in [10, 30, 60] {
        analyst.io(write(complete_ms, DUMP, 77));
    }
    analyst.part(&part(vec![wait(0, 70, Some(site))], Some(80 * MS)));
    let ledgers = analyst.take_ledgers();
    assert_eq!(ledgers.len(), 1);
    let ledger = &ledgers[0];
    assert_eq!((ledger.process.pid, ledger.latency.count(), ledger.wall_ns), (Some(5), 1, 80 * MS));
    let whole: f64 = ledger.phases.iter().map(|row| row.share).sum();
    assert!((whole - 1.0).abs() < 1e-9, "{ledger:?}");
    assert_eq!(ledger.culprits[0].process.comm, "dd");
    assert_eq!(analyst.take_ledgers(), []);
    // The first of the three was pushed out.
    let recent = |device, from_ms: u64, to_ms: u64| {
        let found = analyst.recent(device, from_ms * MS, to_ms * MS, 9);
        found.ios.iter().map(|io| io.complete_ns / MS).collect::<Vec<_>>()
    };
    assert_eq!(recent(Some(LOOP), 0, 100), [30, 60]);
    assert_eq!(recent(None, 31, 100), [60]);
    assert_eq!(recent(Some(DeviceNumber { major: 8, minor: 0 }), 0, 100), Vec::<u64>::new());
    let last = analyst.recent(None, 0, u64::MAX, 1);
    assert_eq!((last.ios[0].complete_ns, last.ios.len(), last.left_out), (60 * MS, 1, 1));
}

/// Threads of a server have names of their own, and the one that syncs first is another one each time.
#[test]
fn syncs_go_by_the_name_of_the_process_and_slow_ones_say_the_thread() {
    let mut analyst = analyst();
    let of_thread = |comm: &str| Part { comm: comm.to_string(), ..part(Vec::new(), Some(60 * MS)) };
    let comms = |analyst: &mut Analyst| {
        let slow = analyst.slow().remove(0);
        let anatomy = analyst.report(MS).processes.remove(0);
        let ledger = analyst.take_ledgers().remove(0);
        (ledger.process.comm, anatomy.process.unwrap().comm, slow.process.comm, slow.thread)
    };
    let expected = |comm: &str, thread: Option<&str>| {
        (comm.to_string(), comm.to_string(), comm.to_string(), thread.map(str::to_string))
    };
    analyst.part(&of_thread("connection"));
    assert_eq!(comms(&mut analyst), expected("connection", None), "nothing else is known");
    analyst.name(5, "mysqld");
    for thread in ["ib_log_flush", "connection"] {
        analyst.part(&of_thread(thread));
        assert_eq!(comms(&mut analyst), expected("mysqld", Some(thread)));
        analyst.name(5, "mysqld");
    }
}

/// A shell becomes the server that it starts. What has ended is called as it was.
#[test]
fn names_are_told_anew_in_each_interval_of_ledgers() {
    let mut analyst = analyst();
    analyst.name(5, "docker-entrypoi");
    analyst.runs_in(5, "/docker/1");
    assert!(analyst.has_name(5));
    let mut named = |again: Option<&str>| {
        analyst.take_ledgers();
        assert!(!analyst.has_name(5));
        match again {
            Some(comm) => analyst.name(5, comm),
            None => _ = analyst.keep_name(5),
        }
        analyst.part(&part(Vec::new(), Some(MS)));
        let anatomy = analyst.report(MS).processes.remove(0);
        let process = anatomy.process.unwrap();
        (process.comm, process.cgroup)
    };
    let kept = ("docker-entrypoi".to_string(), Some("/docker/1".to_string()));
    assert_eq!([named(None), named(None)], [kept.clone(), kept]);
    assert_eq!(named(Some("mysqld")), ("mysqld".to_string(), None));
    analyst.take_ledgers();
    assert_eq!(analyst.name_of(5), Some("mysqld"));
    analyst.take_ledgers();
    assert_eq!(analyst.name_of(5), None);
    assert!(!analyst.keep_name(5));
}

#[test]
fn times_of_a_remembered_request_are_within_256_ns_or_not_known() {
    assert!(size_of::<PastIo>() <= 48);
    const HOUR: u64 = 3_600_000_000_000;
    let whole = Io {
        queue_ns: 4 * HOUR + 1,
        get_ns: 4 * HOUR + 999,
        issue_ns: 0,
        complete_ns: 4 * HOUR + 5 * MS,
        ..write(9, DUMP, 1)
    };
    let kept = PastIo::from(&whole);
    let late = |kept: Option<u64>, was: u64| kept.unwrap() - was;
    assert!(late(kept.queue_ns(), whole.queue_ns) < 256 && late(kept.get_ns(), whole.get_ns) < 256);
    assert_eq!((kept.issue_ns(), kept.complete_ns), (None, whole.complete_ns));
    // Processors stamp on their own; and what waited longer than fits is not told wrongly.
    let late = PastIo::from(&Io { queue_ns: HOUR, issue_ns: 5 * HOUR, ..whole });
    assert_eq!((late.queue_ns(), late.issue_ns()), (None, Some(whole.complete_ns)));
}

fn reader(pid: u32, comm: &str, device: DeviceNumber, bytes: u64) -> Sender {
    Sender { process: Process::new(Some(pid), comm), device, way: Way::Reads, bytes }
}

/// Readers and their bytes since the start, one sync beside them, and whom that is told to have waited for.
fn beside_readers(analyst: &mut Analyst, bytes: [u64; 2]) {
    analyst.lies_under(LOOP, Beneath { leaves: vec![LOOP], has_copies: false, ..Beneath::default() });
    analyst.senders(&[reader(8, "cp", LOOP, bytes[0]), reader(9, "tar", LOOP, bytes[1])]);
    analyst.io(Io { flags: IoFlags(0), ..write(9, DUMP, 0) });
    analyst.part(&part(vec![wait(0, 10, None)], Some(10 * MS)));
}

fn names_of(culprits: &[Culprit]) -> Vec<(&str, f64)> {
    culprits.iter().map(|culprit| (culprit.process.comm.as_str(), culprit.share)).collect()
}

fn ios_of(culprits: &[Culprit]) -> Vec<(&str, u64)> {
    culprits.iter().map(|culprit| (culprit.process.comm.as_str(), culprit.ios)).collect()
}

/// Twelve seconds behind a flood, looked at each second: one sleep, not twelve.
#[test]
fn a_long_wait_is_one_however_often_it_is_looked_at() {
    let mut analyst = analyst();
    let site = analyst.site(&DATA);
    for second in 1..=11 {
        analyst.io(write(second * 1000 - 1, DUMP, 77));
        analyst.under_way(&[part(vec![wait(0, second * 1000, Some(site))], None)], second * 1000 * MS, false);
    }
    analyst.part(&part(vec![wait(0, 12_000, Some(site))], Some(12_000 * MS)));
    let all = analyst.report(0).all;
    assert_eq!((all.sites[0].waits, all.wall_ns), (1.0, 12_000 * MS));
    assert!((all.sites[0].share - 1.0).abs() < 1e-9, "{all:?}");
}

/// What is lost counts since the programs came; each interval tells its own, and the whole all.
#[test]
fn an_interval_tells_what_was_lost_in_it_alone() {
    let mut analyst = analyst();
    let lost = |ring_syncs| Losses { ring_syncs, ..Losses::default() };
    let told = |analyst: &Analyst| (analyst.report(1).losses.ring_syncs, analyst.report(1).stacks);
    analyst.lost(lost(12));
    analyst.site(&DATA);
    assert_eq!(told(&analyst), (12, 1));
    analyst.next_interval();
    assert_eq!(told(&analyst), (0, 0));
    analyst.lost(lost(15));
    analyst.site(&LOG);
    assert_eq!((told(&analyst), analyst.whole(1).losses, analyst.whole(1).stacks), ((3, 1), lost(15), 2));
    analyst.forget();
    assert_eq!(told(&analyst), (0, 0));
}

/// A daemon that watches for weeks asks of each interval alone.
#[test]
fn what_is_forgotten_is_in_no_later_interval() {
    let mut analyst = analyst();
    for (bytes, name) in [([100, 0], "cp"), ([100, 50], "tar")] {
        beside_readers(&mut analyst, bytes);
        let report = analyst.report(1);
        assert_eq!((report.all.syncs, names_of(&report.processes[0].culprits)[0].0), (1, name));
        assert_eq!(report.all.culprits.len(), 1, "{report:?}");
        analyst.forget();
    }
    assert_eq!(analyst.whole(1).all.syncs, 0);
}

#[test]
fn readers_of_a_ledger_are_those_of_its_interval() {
    let mut analyst = analyst();
    for (bytes, name) in [([1000, 0], "cp"), ([1000, 10], "tar")] {
        beside_readers(&mut analyst, bytes);
        let ledgers = analyst.take_ledgers();
        let names = names_of(&ledgers[0].culprits);
        assert_eq!((names.len(), names[0].0), (1, name), "{ledgers:?}");
    }
}

#[test]
fn readers_of_an_interval_are_its_own_and_the_whole_has_all() {
    let mut analyst = Analyst::new(Sampling { stack_every_ns: MS, slow_ns: Some(5 * MS) });
    beside_readers(&mut analyst, [1000, 0]);
    assert_eq!(names_of(&analyst.slow()[0].culprits)[0].0, "cp");
    analyst.next_interval();
    beside_readers(&mut analyst, [1000, 3000]);
    // A slow sync counts as the interval does that it ended in.
    for culprits in [&analyst.slow()[0].culprits, &analyst.report(1).all.culprits] {
        assert_eq!((culprits.len(), names_of(culprits)[0].0), (1, "tar"));
    }
    let whole = analyst.whole(1).all;
    let (names, others) = (names_of(&whole.culprits), share_of(&whole.causes, Cause::Others));
    assert_eq!(names.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["tar", "cp"]);
    assert!(
        (names[0].1 - others * 0.75).abs() < 1e-9 && (names[1].1 - others * 0.25).abs() < 1e-9,
        "{names:?}"
    );
}

/// A script that starts a `cp` for each file: none of them has much of the time, all together nearly all of it.
#[test]
fn processes_of_one_name_and_cgroup_are_one_cause() {
    let mut analyst = analyst();
    let site = analyst.site(&DATA);
    (101..=140).for_each(|pid| analyst.name(pid, "cp"));
    analyst.runs_in(140, "/user.slice");
    for ms in 1..=41 {
        // The tenth has two parts, dd one.
        let owner = if ms == 41 { 110 } else { 100 + ms as u32 };
        analyst.io(write(ms, DUMP, owner));
    }
    analyst.io(write(42, DUMP, 77));
    analyst.io(write(43, DUMP, 77));
    analyst.part(&part(vec![wait(0, 43, Some(site))], Some(50 * MS)));
    let told = |culprits: &[Culprit]| -> Vec<(String, u64, u64)> {
        culprits.iter().map(|of| (of.name(), of.processes, of.ios)).collect()
    };
    let expected = [("cp (110 and 38 more)", 39, 40), ("dd (77)", 1, 2), ("cp (140)", 1, 1)];
    let expected = expected.map(|(name, processes, ios)| (name.to_string(), processes, ios));
    assert_eq!(told(&analyst.slow()[0].culprits), expected);
    let all = &analyst.report(50 * MS).all;
    assert_eq!(told(&all.culprits)[0], expected[0]);
    let sum: f64 = all.culprits.iter().map(|culprit| culprit.share).sum();
    assert!((sum - share_of(&all.causes, Cause::Others)).abs() < 1e-9, "{all:?}");
    // Who keeps ledgers asks each of the processes for its unit.
    let ledger = &analyst.take_ledgers()[0];
    assert_eq!(ledger.culprits.len(), 41);
    assert!(ledger.culprits.iter().all(|culprit| culprit.processes == 1), "{ledger:?}");
}

/// A dump reads from the disk that the sync waits for, and ten times as much is read from another on which there are syncs too.
#[test]
fn who_reads_from_another_disk_is_not_who_a_sync_waited_for() {
    let mut analyst = analyst();
    let other = DeviceNumber { major: 259, minor: 0 };
    let volume = DeviceNumber { major: 253, minor: 0 };
    let own = |device| Beneath { leaves: vec![device], has_copies: false, ..Beneath::default() };
    analyst.lies_under(LOOP, own(LOOP));
    analyst.lies_under(other, own(other));
    analyst.lies_under(volume, own(LOOP));
    // One reads a volume on the disk: the kernel tells its bios twice, of the volume and of the disk.
    analyst.senders(&[
        reader(8, "tar", other, 10_000),
        reader(9, "mysqldump", LOOP, 1000),
        reader(10, "cp", volume, 250),
        reader(10, "cp", LOOP, 250),
        reader(11, "md5sum", volume, 750),
    ]);
    let read = |device, ms| Io { device, flags: IoFlags(0), ..write(ms, DUMP, 0) };
    (1..=16).for_each(|ms| analyst.io(read(LOOP, ms)));
    analyst.part(&part(vec![wait(0, 16, None)], Some(16 * MS)));
    let culprits = analyst.report(1).all.culprits;
    assert_eq!(ios_of(&culprits), [("mysqldump", 8), ("md5sum", 6), ("cp", 2)], "{culprits:?}");
    // A sync of the other waits for that one's readers.
    (21..=30).for_each(|ms| analyst.io(read(other, ms)));
    let there =
        Part { device: Some(other), start_ns: 20 * MS, ..part(vec![wait(20, 30, None)], Some(30 * MS)) };
    analyst.next_interval();
    analyst.senders(&[reader(8, "tar", other, 20_000), reader(9, "mysqldump", LOOP, 2000)]);
    analyst.part(&there);
    assert_eq!(names_of(&analyst.report(1).all.culprits), [("tar", 1.0)]);
}

/// An NVMe namespace with two paths under LVM: requests complete on the hidden disk of a path, and the kernel tells bios of the namespace.
#[test]
fn who_reads_from_a_namespace_is_counted_whichever_path_serves_it() {
    let mut analyst = analyst();
    let [namespace, path, volume, other] =
        [(259, 0), (259, 1), (253, 0), (253, 1)].map(|(major, minor)| DeviceNumber { major, minor });
    let paths = vec![(path, namespace)];
    analyst.lies_under(volume, Beneath { leaves: vec![namespace, path], paths, has_copies: false });
    analyst.senders(&[
        reader(9, "mysqld", volume, 100),
        reader(9, "mysqld", namespace, 100),
        reader(8, "tar", other, 300),
        reader(8, "tar", namespace, 300),
    ]);
    (1..=8).for_each(|ms| analyst.io(Io { device: path, flags: IoFlags(0), ..write(ms, DUMP, 0) }));
    analyst.part(&Part { device: Some(volume), ..part(vec![wait(0, 8, None)], Some(8 * MS)) });
    let culprits = analyst.report(1).all.culprits;
    assert_eq!(ios_of(&culprits), [("tar", 6), ("mysqld", 2)], "{culprits:?}");
}

/// fstrim beside a direct writer, and beside the kernel threads of dm-crypt, whose writes are nobody's.
#[test]
fn discards_and_copies_are_not_a_direct_writer_s() {
    let sender = |process, way, bytes| Sender { process, device: LOOP, way, bytes };
    let named = |pid, comm| Process::new(Some(pid), comm);
    let passed_on = sender(Process::kernel_threads(), Way::WritesPassedOn, 3000);
    let senders =
        [sender(named(8, "fio"), Way::DirectWrites, 1000), sender(named(9, "fstrim"), Way::Discards, 1000)];
    let culprits = |has_copies, flags: u32, senders: &[Sender]| {
        let mut analyst = analyst();
        analyst.lies_under(LOOP, Beneath { leaves: vec![LOOP], has_copies, ..Beneath::default() });
        analyst.senders(senders);
        analyst.io(Io { flags: IoFlags(flags), file: None, ..write(9, DUMP, 0) });
        analyst.part(&part(vec![wait(0, 10, None)], Some(10 * MS)));
        let culprits = analyst.report(1).all.culprits;
        let all: f64 = culprits.iter().map(|culprit| culprit.share).sum();
        let percent = |share: f64| (100.0 * share / all).round();
        let each = culprits.into_iter();
        each.map(|of| (of.way, of.process.comm, percent(of.share))).collect::<Vec<_>>()
    };
    for (has_copies, flags, way, comm) in [
        (false, 1, Way::DirectWrites, "fio"),
        (false, 3, Way::Discards, "fstrim"),
        (false, 5, Way::Discards, "fstrim"),
        (true, 9, Way::Discards, "fstrim"),
    ] {
        let found = culprits(has_copies, flags, &senders);
        assert_eq!(found, [(way, comm.to_string(), 100.0)], "operation {flags}");
    }
    let unknown = culprits(false, 3, &senders[..1]);
    assert_eq!(unknown, [(Way::Discards, "senders of discards".to_string(), 100.0)]);
    let kernel = |percent| (Way::WritesPassedOn, passed_on.process.comm.clone(), percent);
    assert_eq!(culprits(true, 1, &[]), [kernel(100.0)]);
    // Of two partitions of the disk one is encrypted: the sync's, or the other.
    let both = [senders[0].clone(), passed_on.clone()];
    for has_copies in [false, true] {
        let fio = (Way::DirectWrites, "fio".to_string(), 25.0);
        assert_eq!(culprits(has_copies, 1, &both), [kernel(75.0), fio], "{has_copies}");
    }
}

#[test]
fn bytes_of_a_sender_that_is_told_in_parts_are_those_of_the_interval() {
    let mut senders = senders::Senders::default();
    let process = Process::new(Some(9), "fstrim");
    let part = |bytes| Sender { process: process.clone(), device: LOOP, way: Way::Discards, bytes };
    for (parts, fresh) in [([1000, 10], 1010), ([1010, 15], 15)] {
        senders.tell(&parts.map(part));
        assert_eq!(senders.of_interval, [part(fresh)]);
        senders.next_interval();
    }
}

/// To learn again what lies under a device takes no other's place.
#[test]
fn a_device_that_is_told_of_again_makes_no_other_forgotten() {
    let mut analyst = analyst();
    let devices: Vec<_> = (0..).take(4096).map(|minor| DeviceNumber { major: 8, minor }).collect();
    for device in devices.iter().chain(&devices) {
        analyst
            .lies_under(*device, Beneath { leaves: vec![*device], has_copies: false, ..Beneath::default() });
    }
    assert!(devices.iter().all(|device| analyst.knows(*device)));
    analyst.lies_under(LOOP, Beneath::default());
    assert!(analyst.knows(LOOP) && !analyst.knows(devices[0]));
}

#[test]
fn the_room_that_a_burst_needed_is_let_go_of() {
    let mut analyst = analyst();
    (1..=100_000).for_each(|ms| analyst.io(write(ms, FILE, 5)));
    assert!(analyst.ios[&LOOP].capacity() >= 100_000);
    analyst.under_way(&[], 100_000 * MS, false);
    analyst.io(write(100_001, FILE, 5));
    analyst.under_way(&[], 200_000 * MS, false);
    assert_eq!(analyst.ios[&LOOP].len(), 1);
    assert!(analyst.ios[&LOOP].capacity() <= analyst::ROOM_KEPT);
    analyst.under_way(&[], 300_000 * MS, false);
    analyst.under_way(&[], 400_000 * MS, false);
    assert!(analyst.ios.is_empty(), "nothing is kept of a device that does nothing");
}
