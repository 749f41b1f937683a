//! How long a change holds: until its process ends, until it is not confirmed, until it is rolled back.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::thread::{sleep, spawn};
use std::time::Duration;

use weir_host::Host;
use weir_host::knob::{self, Actuator, BdiOf, Governor, Hold, Journal, KnobError, Until, Which};

use super::devices::Disk;
use super::runs::{Run, apply, entries, settings, signal, until};

/// Processes that guard an entry of this journal.
pub fn guardians(journal: &Path) -> Vec<i32> {
    let is_guardian = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains(knob::ARGUMENT) && line.contains(&journal.display().to_string())
    };
    let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.to_string_lossy().parse().ok()).filter(is_guardian).collect()
}

fn untils(journal: &Path) -> Vec<Until> {
    knob::entries(&Journal::at(journal)).0.into_iter().map(|listed| listed.until).collect()
}

/// What a process leaves that applies this for so many milliseconds unless it is confirmed.
fn unconfirmed(disk: &Disk, milliseconds: u32) {
    unconfirmed_of(disk, "read_ahead_kb=64", milliseconds);
}

fn unconfirmed_of(disk: &Disk, setting: &str, milliseconds: u32) {
    let mut arguments = vec![milliseconds.to_string()];
    arguments.extend(disk.settings(&[setting]));
    Run::whole("__unconfirmed", &disk.journal(), &arguments);
}

pub fn root_what_is_not_confirmed_goes_back() {
    let disk = Disk::new();
    let (before, journal) = (disk.snapshot(), disk.journal());
    unconfirmed(&disk, 5000);
    assert_eq!(disk.read("queue/read_ahead_kb"), "64", "it outlives its process");
    assert!(matches!(untils(&journal)[..], [Until::Deadline(_)]), "{:?}", untils(&journal));
    let second = disk.trial(&["read_ahead_kb=32"]).unwrap_err();
    assert!(matches!(second, KnobError::Held { unconfirmed: true, .. }), "{second}");
    until("it goes back", || disk.snapshot() == before && entries(&journal) == 0);
    until("its guardian ends", || guardians(&journal).is_empty());

    // Without a guardian the next weir does it.
    unconfirmed(&disk, 1000);
    guardians(&journal).into_iter().for_each(|pid| signal(pid, "-KILL"));
    until("its time passes", || untils(&journal) == [Until::Stale]);
    let said = knob::recover_stale(&Host::live(), &Journal::at(&journal)).join("\n");
    assert_eq!(disk.snapshot(), before, "{said}");
}

/// As systemd ends what is left of a unit.
pub fn root_what_is_not_confirmed_goes_back_at_sigterm() {
    let disk = Disk::new();
    let (before, journal) = (disk.snapshot(), disk.journal());
    unconfirmed(&disk, 3_600_000);
    guardians(&journal).into_iter().for_each(|pid| signal(pid, "-TERM"));
    until("it goes back", || disk.snapshot() == before && entries(&journal) == 0);
    until("its guardian ends", || guardians(&journal).is_empty());
}

/// Nobody can confirm it: it does not wait for its time, which here is an hour.
pub fn root_what_lost_its_journal_goes_back() {
    let disk = Disk::new();
    let (before, journal) = (disk.snapshot(), disk.journal());
    // As `flock FILE weir …` has it open.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("lock");
    let lock = fs::File::create(&path).unwrap();
    // SAFETY: the descriptor is open; fcntl takes numbers here.
    unsafe { libc::fcntl(lock.as_raw_fd(), libc::F_SETFD, 0) };
    unconfirmed(&disk, 3_600_000);
    let waiting = guardians(&journal);
    assert_eq!(waiting.len(), 1);
    // Entries that end while they are read are its own: it reads its journal now and then.
    let open = fs::read_dir(format!("/proc/{}/fd", waiting[0])).unwrap();
    let mut targets = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    assert!(!targets.any(|target| target == path), "it keeps what its caller has open");
    // Its guardian has seen the entry once it has let go of its standard error.
    let has_seen =
        || fs::read_link(format!("/proc/{}/fd/2", waiting[0])).is_ok_and(|to| to == Path::new("/dev/null"));
    until("its guardian waits", has_seen);
    fs::remove_dir_all(&journal).unwrap();
    until("its guardian ends", || guardians(&journal).is_empty());
    assert_eq!(disk.snapshot(), before);
}

pub fn root_what_is_confirmed_stays() {
    let disk = Disk::new();
    let (before, journal) = (disk.snapshot(), disk.journal());
    unconfirmed(&disk, 60_000);
    let confirm = |of| knob::confirm(&Journal::at(&journal), of).unwrap().join("\n");
    let said = confirm(None);
    assert!(said.contains("read_ahead_kb: kept until"), "{said}");
    assert_eq!(confirm(None), "nothing waits for confirmation");
    until("its guardian ends", || guardians(&journal).is_empty());
    assert!(knob::recover_stale(&Host::live(), &Journal::at(&journal)).is_empty());
    assert_eq!((disk.read("queue/read_ahead_kb"), untils(&journal)), ("64".into(), vec![Until::Rollback]));
    let done = knob::rollback(&Host::live(), &Journal::at(&journal), Which::Last);
    assert!(done.failed.is_empty() && done.said[0].contains("read_ahead_kb is back at 256"), "{done:?}");
    assert_eq!(disk.snapshot(), before);
}

pub fn root_a_confirmation_of_one_process_keeps_nothing_of_others() {
    let disk = Disk::new();
    let (before, folder) = (disk.snapshot(), disk.journal());
    let journal = Journal::at(&folder);
    unconfirmed(&disk, 60_000);
    unconfirmed_of(&disk, "nomerges=2", 60_000);
    let [second, first] = &knob::entries(&journal).0[..] else { panic!("{:?}", untils(&folder)) };
    let said = knob::confirm(&journal, Some(first.pid)).unwrap();
    assert!(said.len() == 1 && said[0].contains("read_ahead_kb: kept until"), "{said:?}");
    assert!(matches!(untils(&folder)[..], [Until::Deadline(_), Until::Rollback]), "{:?}", untils(&folder));
    let again = knob::confirm(&journal, Some(first.pid)).unwrap();
    assert_eq!(again, [format!("nothing of process {} waits for confirmation", first.pid)]);
    // Without a choice everybody's is kept.
    let said = knob::confirm(&journal, None).unwrap();
    assert!(said.len() == 1 && said[0].contains("nomerges: kept until"), "{said:?}");
    assert_ne!(first.pid, second.pid);
    knob::rollback(&Host::live(), &journal, Which::All);
    assert_eq!(disk.snapshot(), before);
}

/// Numbers of processes are given again.
pub fn root_a_confirmation_is_of_the_process_and_not_of_its_number() {
    let disk = Disk::new();
    let (before, folder) = (disk.snapshot(), disk.journal());
    let journal = Journal::at(&folder);
    unconfirmed(&disk, 60_000);
    let other = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let other = other.into_iter().find(|path| path.extension().is_some_and(|name| name == "json")).unwrap();
    let hold = Hold::UntilConfirmed { deadline: Duration::from_secs(60) };
    let own = apply(&journal, &disk.settings(&["nomerges=2"]), hold).unwrap();
    let pid = knob::entries(&journal).0.iter().find(|entry| entry.file == other).unwrap().pid;
    let numbers = |pid: u32| format!("\"pid\": {pid},");
    // Entries of the first schema have no checksum.
    let text = fs::read_to_string(&other).unwrap().replace("weir.journal/2", "weir.journal/1");
    let text = text.replace(&numbers(pid), &numbers(std::process::id()));
    fs::write(&other, text).unwrap();
    let refused = knob::confirm(&journal, Some(std::process::id())).unwrap_err();
    assert!(matches!(refused, KnobError::SeveralProcesses { .. }), "{refused}");
    assert!(matches!(untils(&folder)[..], [Until::Deadline(_), Until::Deadline(_)]), "{:?}", untils(&folder));
    let said = own.confirm().unwrap();
    assert!(said.len() == 1 && said[0].contains("nomerges: kept until"), "{said:?}");
    assert_eq!(own.until(), Some(Until::Rollback));
    assert!(matches!(untils(&folder)[..], [Until::Rollback, Until::Deadline(_)]), "{:?}", untils(&folder));
    drop(own);
    knob::rollback(&Host::live(), &journal, Which::All);
    assert_eq!(disk.snapshot(), before);
}

pub fn root_changes_go_back_newest_first() {
    let disk = Disk::new();
    let (before, folder) = (disk.snapshot(), disk.journal());
    let journal = Journal::at(&folder);
    Run::whole("__kept", &folder, &disk.settings(&["read_ahead_kb=64"]));
    Run::whole("__kept", &folder, &disk.settings(&["read_ahead_kb=32", "scheduler=none"]));
    // A trial on top of them is left alone, and what lies beneath it too.
    let trial = Run::start("__hold", &folder, &disk.settings(&["read_ahead_kb=16"]));
    let done = knob::rollback(&Host::live(), &journal, Which::All);
    assert!(done.said[0].contains("in use by a running weir"), "{done:?}");
    assert_eq!((disk.read("queue/read_ahead_kb"), entries(&folder)), ("16".into(), 3));
    drop(trial);
    until("the trial is restored", || entries(&folder) == 2);
    assert_eq!(disk.read("queue/read_ahead_kb"), "32");
    knob::rollback(&Host::live(), &journal, Which::Last);
    assert_eq!((disk.read("queue/read_ahead_kb"), entries(&folder)), ("64".into(), 1));
    let done = knob::rollback(&Host::live(), &journal, Which::All);
    assert_eq!(disk.snapshot(), before, "{done:?}");
    let again = knob::rollback(&Host::live(), &journal, Which::All);
    assert_eq!((again.said.len(), again.failed.len(), disk.snapshot()), (1, 0, before), "{again:?}");
    // Somebody else's value stays.
    Run::whole("__kept", &folder, &disk.settings(&["read_ahead_kb=64", "nomerges=2"]));
    disk.write("queue/read_ahead_kb", "512");
    let said = knob::rollback(&Host::live(), &journal, Which::All).said.join("\n");
    assert!(said.contains("is 512, which weir did not write (it wrote 64, over 256)"), "{said}");
    assert_eq!((disk.read("queue/read_ahead_kb"), disk.read("queue/nomerges")), ("512".into(), "0".into()));
}

pub fn root_a_second_run_waits() {
    let disk = Disk::new();
    let first = Run::start("__hold", &disk.journal(), &disk.settings(&["read_ahead_kb=64"]));
    let refused = disk.trial(&["read_ahead_kb=32"]).unwrap_err();
    assert!(matches!(&refused, KnobError::Held { pid, .. } if *pid == first.id()), "{refused}");
    // Another knob is free.
    drop(disk.trial(&["nomerges=2"]).unwrap());
    let ends = spawn(move || {
        sleep(Duration::from_millis(300));
        drop(first);
    });
    let host = Host::live();
    let plan = knob::plan(&host, &settings(&disk.settings(&["read_ahead_kb=32"])), false).unwrap();
    let journal = Journal::at(&disk.journal());
    let applied = journal.apply(&host, &plan, Hold::WhileAlive, Duration::from_secs(20)).unwrap();
    ends.join().unwrap();
    assert_eq!(disk.read("queue/read_ahead_kb"), "32");
    applied.restore().unwrap();
    assert_eq!(disk.read("queue/read_ahead_kb"), "256", "what the first run found, not what it wrote");
}

/// Its number means another process here, or none.
pub fn root_a_change_from_another_pid_namespace_is_in_use_until_that_ends() {
    let disk = Disk::new();
    let (before, folder) = (disk.snapshot(), disk.journal());
    let journal = Journal::at(&folder);
    let mut run = Run::start_contained("__hold", &folder, &disk.settings(&["read_ahead_kb=64"]));
    let listed = knob::entries(&journal).0;
    assert_eq!((listed[0].pid, listed[0].alive, listed[0].until), (1, true, Until::End));
    let refused = disk.trial(&["read_ahead_kb=32"]).unwrap_err();
    assert!(matches!(refused, KnobError::Held { pid: 1, .. }), "{refused}");
    assert!(knob::recover_stale(&Host::live(), &journal).is_empty());
    let done = knob::rollback(&Host::live(), &journal, Which::All);
    assert!(done.said[0].contains("in use by a running weir"), "{done:?}");
    assert_eq!(disk.read("queue/read_ahead_kb"), "64");
    // The kernel kills its guardian with it.
    run.kill();
    until("all of it has ended", || {
        guardians(&folder).is_empty() && knob::entries(&journal).0.iter().all(|entry| !entry.alive)
    });
    knob::recover_stale(&Host::live(), &journal);
    assert_eq!((disk.snapshot(), entries(&folder)), (before, 0));
}

/// A file system of a few pages, unmounted again.
pub struct Small(pub tempfile::TempDir);

impl Small {
    pub fn new() -> Small {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=16k,mode=0700", "weir"])
            .arg(folder.path())
            .status();
        assert!(mounted.unwrap().success());
        Small(folder)
    }

    /// As one becomes on an error of its disk (`errors=remount-ro`).
    pub fn becomes_read_only(&self) {
        let mounted = Command::new("mount").args(["-o", "remount,ro"]).arg(self.0.path()).status();
        assert!(mounted.unwrap().success());
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

pub fn root_a_journal_without_room_changes_nothing() {
    let disk = Disk::new();
    let (before, small) = (disk.snapshot(), Small::new());
    let full = fs::write(small.0.path().join("filler"), vec![1; 1 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let texts = disk.settings(&["read_ahead_kb=64"]);
    let error = apply(&Journal::at(small.0.path()), &texts, Hold::Kept).unwrap_err();
    assert!(error.to_string().contains("so nothing was changed"), "{error}");
    assert!(error.hint().unwrap().contains("free some space"), "{error}");
    assert_eq!((disk.snapshot(), entries(small.0.path())), (before.clone(), 0));
    let error = apply(&Journal::at(Path::new("/proc/journal")), &texts, Hold::Kept).unwrap_err();
    assert!(matches!(error, KnobError::Journal(_)), "{error}");
    assert_eq!(disk.snapshot(), before);
}

pub fn root_a_journal_that_became_read_only_is_led_back() {
    let disk = Disk::new();
    let (before, host, ahead) = (disk.snapshot(), Host::live(), disk.settings(&["read_ahead_kb=64"]));
    let stays = |said: &[String]| said.iter().any(|sentence| sentence.contains("stays in the journal"));

    let small = Small::new();
    let journal = Journal::at(small.0.path());
    Run::whole("__kept", small.0.path(), &ahead);
    small.becomes_read_only();
    for _ in 0..2 {
        let done = knob::rollback(&host, &journal, Which::All);
        assert!(done.failed.is_empty() && stays(&done.said), "{done:?}");
        assert_eq!(disk.snapshot(), before);
    }

    let small = Small::new();
    let applied = apply(&Journal::at(small.0.path()), &ahead, Hold::WhileAlive).unwrap();
    small.becomes_read_only();
    let said = applied.restore().unwrap();
    assert!(stays(&said) && disk.snapshot() == before, "{said:?}");

    let small = Small::new();
    let actuator = Actuator::Bdi(BdiOf::Device(disk.name.clone()));
    let mut governor = Governor::start(&Journal::at(small.0.path()), &host, &actuator, 1 << 20).unwrap();
    governor.set(20 << 20).unwrap();
    assert_ne!(disk.snapshot(), before);
    small.becomes_read_only();
    let said = governor.stop().unwrap();
    assert!(stays(&said) && disk.snapshot() == before, "{said:?}");

    let small = Small::new();
    let mut run = Run::start("__hold", small.0.path(), &ahead);
    small.becomes_read_only();
    run.kill();
    until("its guardian restores", || disk.snapshot() == before);
    until("its guardian ends", || guardians(small.0.path()).is_empty());
    // What a service does after its end: nothing is left to restore.
    let done = knob::recover(&host, &Journal::at(small.0.path()));
    assert!(done.failed.is_empty() && stays(&done.said), "{done:?}");
    let error = apply(&Journal::at(small.0.path()), &ahead, Hold::Kept).unwrap_err();
    assert!(error.hint().unwrap().contains("mounted read-only"), "{error}");
    assert_eq!(disk.snapshot(), before);
}

pub fn root_a_damaged_journal_blocks_nobody() {
    let disk = Disk::new();
    let (before, folder) = (disk.snapshot(), disk.journal());
    Run::whole("__kept", &folder, &disk.settings(&["read_ahead_kb=64"]));
    let file = knob::entries(&Journal::at(&folder)).0.remove(0).file;
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let draft = folder.join(format!(".17-1.0.json.4194305.{}.tmp", "0".repeat(32)));
    fs::write(&draft, "left by one that was killed").unwrap();
    // Its values stay as they are; it is put aside, and blocks nobody.
    let done = knob::rollback(&Host::live(), &Journal::at(&folder), Which::All);
    let [KnobError::Damaged { aside: Some(aside), .. }] = &done.failed[..] else { panic!("{done:?}") };
    assert_eq!((disk.read("queue/read_ahead_kb"), file.exists()), ("64".into(), false));
    drop(disk.trial(&["nomerges=2"]).unwrap());
    assert!(!draft.exists());
    assert_eq!(disk.read("queue/read_ahead_kb"), "64");
    fs::write(&file, whole).unwrap();
    fs::remove_file(aside).unwrap();
    knob::rollback(&Host::live(), &Journal::at(&folder), Which::All);
    assert_eq!(disk.snapshot(), before);
}
