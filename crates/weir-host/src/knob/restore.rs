//! Restoring, from the journal alone.

use std::path::Path;

use weir_knobs::{KnobName, Scope, Setting, Value};

use super::entry::{Entry, State, Written};
use super::journal::{Journal, Sync};
use super::refusal::check_writable;
use super::steps::lead_through;
use super::{KnobError, dirty, order, place};
use crate::host::Host;

/// What a file says once weir has marked it as set by hand.
const BY_HAND: &str = "wbt_lat_usec";

/// Leads one entry back and takes it out of the journal, if it is `due` when its turn comes; `None` where it is not. An
/// entry that is gone has been restored already.
pub(super) fn from_file(
    host: &Host,
    journal: &Journal,
    file: &Path,
    due: impl Fn(&Entry) -> bool,
) -> Result<Option<Vec<String>>, KnobError> {
    let _lock = match journal.lock() {
        // The whole folder is gone: so is every entry.
        Err(error) if error.is_absent() => return Ok(Some(Vec::new())),
        lock => lock?,
    };
    match journal.read_or_set_aside(host, file) {
        Err(KnobError::Host(error)) if error.is_absent() => Ok(Some(Vec::new())),
        Ok(entry) if !due(&entry) => Ok(None),
        entry => with_lock(host, journal, file, entry?).map(Some),
    }
}

/// The same for an entry just read, or known from before, with the lock held.
pub(super) fn with_lock(
    host: &Host,
    journal: &Journal,
    file: &Path,
    mut entry: Entry,
) -> Result<Vec<String>, KnobError> {
    // It is gone, and somebody put another one in its place.
    if journal.read(file).is_ok_and(|other| !other.is_same(&entry)) {
        return Ok(Vec::new());
    }
    let mut way = Way { host, said: Vec::new(), failed: Vec::new() };
    let mut state = entry.state;
    if entry.is_of_another_boot(&host.tree)? {
        if !entry.outlives_boot() {
            way.said.push(
                "the settings in the journal belong to an earlier boot; nothing to restore".to_string(),
            );
        }
        entry.changes.retain(|change| change.knob.is_of_server());
        // Others had time to set them since, whatever was under way at the end of that boot.
        state = State::InForce;
    }
    way.decide(&mut entry, state);
    let is_halfway = |change: &Written| (change.touched || way.is_long(change)) && way.can_write(change);
    if entry.changes.iter().any(is_halfway) {
        // From here on a knob may read neither old nor new, should this process be killed: the kernel resets some,
        // and a dirty limit goes down in steps. Without space for the note the restoration is still better than none.
        entry.state = State::LeadingBack;
        let _ = journal.rewrite(file, &entry, Sync::Not);
    }
    way.go(&mut entry.changes);
    if way.failed.is_empty() {
        if let Err(error) = journal.remove(file) {
            way.said.push(format!("the entry stays in the journal, which cannot be written: {error}"));
        }
        return Ok(way.said);
    }
    if !entry.changes.iter().any(|change| way.can_write(change)) {
        // Where nothing may be written, as in a service's namespace, nothing was. What reads otherwise next time is others' doing.
        entry.state = state;
    }
    // What is restored may be set by others from now on.
    let _ = journal.rewrite(file, &entry, Sync::Not);
    Err(KnobError::NotLedBack { said: way.said, failed: way.failed })
}

/// The restoration of one entry.
struct Way<'a> {
    host: &'a Host,
    said: Vec<String>,
    failed: Vec<String>,
}

impl Way<'_> {
    /// What each knob is to be restored to: compare and set, so that only a value that weir wrote is replaced.
    fn decide(&mut self, entry: &mut Entry, state: State) {
        for change in &mut entry.changes {
            if state == State::LeadingBack {
                continue;
            }
            change.target = if self.is_same_device(change) {
                self.target(change, state)
            } else {
                let what = if matches!(change.knob.scope, Scope::Cgroup(_)) { "cgroup" } else { "device" };
                self.said.push(format!("{}: the {what} is another one now: left alone", change.knob));
                None
            };
        }
    }

    /// A loop device keeps its settings from one file to the next, so what a guard left there is restored though the
    /// kernel counts it as another device.
    fn is_same_device(&self, change: &Written) -> bool {
        let tree = &self.host.tree;
        let is_governed = || {
            change.band.is_some_and(|band| place::value(tree, &change.knob).is_ok_and(|now| band.has(&now)))
        };
        order::device_sequence(tree, &change.knob) == change.device_sequence || is_governed()
    }

    fn target(&mut self, change: &Written, state: State) -> Option<Value> {
        let old = Some(change.old.clone());
        match place::value(&self.host.tree, &change.knob) {
            // A scheduler's own knobs come back with the scheduler.
            Err(error) if error.is_absent() && !change.touched => {
                self.said.push(format!("{} is gone: nothing to restore", change.knob));
                None
            }
            // Its turn comes, and with it the error or the value.
            Err(_) => old,
            Ok(_) if state == State::Applying => old,
            Ok(now) if now == change.old || change.is_weirs(&now) => old,
            Ok(now) => {
                self.said.push(stood_down(change, &now));
                // Somebody else's value is kept even if the restoration of another knob resets it.
                change.touched.then_some(now)
            }
        }
    }

    /// Whether the kernel lets this process restore it.
    fn can_write(&self, change: &Written) -> bool {
        let target = change.target.as_ref();
        target.is_some_and(|target| check_writable(self.host, &change.knob, target).is_ok())
    }

    /// Whether it goes back in steps.
    fn is_long(&self, change: &Written) -> bool {
        change.target.as_ref().is_some_and(|target| dirty::ramp(self.host, &change.knob, target).len() > 1)
    }

    /// In the order in which a change is made, for the same reasons. Of two limits that bound each other the first may
    /// only go back after the second, so what fails has another turn. What fails again is left in `changes`.
    fn go(&mut self, changes: &mut Vec<Written>) {
        let target = |change: &Written| change.target.clone().unwrap_or_else(|| change.old.clone());
        order::sort(self.host, changes, |change| (change.knob.clone(), target(change)));
        let refused: Vec<&Written> = changes.iter().filter(|change| self.lead(change).is_err()).collect();
        let mut left: Vec<KnobName> = Vec::new();
        for change in refused {
            if let Err(error) = self.lead(change) {
                self.failed.push(error.to_string());
                left.push(change.knob.clone());
            }
        }
        // What the kernel resets when one that failed goes back has its turn again, after that one.
        let reset: Vec<KnobName> = left.iter().flat_map(order::reset_by).collect();
        changes
            .retain(|change| left.contains(&change.knob) || change.touched && reset.contains(&change.knob));
        changes.sort_by_key(|change| !left.contains(&change.knob));
    }

    fn lead(&mut self, change: &Written) -> Result<(), KnobError> {
        let Some(target) = &change.target else { return Ok(()) };
        let now = match place::value(&self.host.tree, &change.knob) {
            // The scheduler it belongs to is not the one in force, so it has gone with its scheduler.
            Err(error) if error.is_absent() && change.touched => return Ok(()),
            now => now?,
        };
        if now != *target {
            let steps = dirty::ramp(self.host, &change.knob, target);
            lead_through(self.host, &change.knob, &steps)?;
            self.said.push(came_back(change, target));
        }
        Ok(())
    }
}

fn came_back(change: &Written, target: &Value) -> String {
    let setting = Setting::new(change.knob.clone(), target.clone());
    let (name, value) = (setting.written_name(), setting.written_value());
    let by_hand = if change.knob.setting == BY_HAND {
        "; the kernel now takes it as set by hand, and bfq or io.cost no longer turn it off: only a restart clears that"
    } else {
        ""
    };
    format!("{name} is back at {value}{by_hand}")
}

fn stood_down(change: &Written, now: &Value) -> String {
    let (knob, old) = (&change.knob, &change.old);
    match change.new.last().filter(|_| !change.touched) {
        None if change.band.is_some() => {
            format!("{knob} is {now}, which weir's guard did not write (it was {old}): left alone")
        }
        Some(wrote) => {
            format!("{knob} is {now}, which weir did not write (it wrote {wrote}, over {old}): left alone")
        }
        None => format!("{knob} is {now}, which weir did not cause (it was {old}): left alone"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;

    use weir_knobs::ServerName;

    use super::*;
    use crate::knob::entry::Term;
    use crate::knob::rollback::{Until, Which, listed, recover_stale, rollback};
    use crate::knob::testing::Machine;
    use crate::knob::{Servers, Unreached};

    const FILE: &str = "/proc/sys/vm/dirty_bytes";

    fn entry(machine: &Machine) -> Entry {
        let written = Written {
            knob: "vm.dirty".parse().unwrap(),
            old: Value::Bytes(40_000),
            new: vec![Value::Bytes(20_000), Value::Bytes(10_000)],
            band: None,
            touched: false,
            device_sequence: None,
            target: None,
        };
        let entry = Entry::new(&machine.host.tree, crate::knob::Hold::WhileAlive, vec![written]).unwrap();
        Entry { pid: 99, pid_started_ticks: 1, state: State::InForce, ..entry }
    }

    #[test]
    fn a_dead_runs_values_are_led_back_and_others_are_left_alone() {
        type Change = fn(&mut Entry);
        let cases: &[(Change, u64, &str, bool, &str)] = &[
            (|_| {}, 10_000, "vm.dirty_bytes is back at 40000", true, "40000"),
            // Killed in the middle of the ramp.
            (|_| {}, 20_000, "back at 40000", true, "40000"),
            (|_| {}, 40_000, "ended without", true, "40000"),
            (|_| {}, 77_777, "vm.dirty is bytes=77777, which weir did not write", true, "77777"),
            // While it was being applied, whatever is there is weir's doing.
            (|e| e.state = State::Applying, 77_777, "back at 40000", true, "40000"),
            (|e| e.boot_id = "earlier".into(), 10_000, "ended without", true, "10000"),
            (
                |e| (e.boot_id, e.hold) = ("earlier".into(), Term::Kept),
                10_000,
                "the settings in the journal belong to an earlier boot",
                true,
                "10000",
            ),
            // Still running: not ours to touch.
            (|e| (e.pid, e.pid_started_ticks) = (17, 5555), 10_000, "", false, "10000"),
            // The id was given to another process.
            (|e| (e.pid, e.pid_started_ticks) = (17, 5554), 10_000, "back at", true, "40000"),
            // Its process has ended, as it should.
            (|e| e.hold = Term::Kept, 10_000, "", false, "10000"),
            (|e| (e.hold, e.state) = (Term::Kept, State::Applying), 10_000, "back at", true, "40000"),
            (|e| e.hold = Term::UntilConfirmed { deadline_ns: u64::MAX }, 10_000, "", false, "10000"),
            (|e| e.hold = Term::UntilConfirmed { deadline_ns: 1 }, 10_000, "back at", true, "40000"),
            (|e| e.schema = "weir.journal/1".into(), 10_000, "back at", true, "40000"),
            (|e| e.schema = "weir.journal/9".into(), 10_000, "expected the schema", true, "10000"),
            (
                |e| e.changes[0].knob = "vm.nonsense".parse().unwrap(),
                10_000,
                "knows no knob vm.nonsense",
                true,
                "10000",
            ),
        ];
        for (change, bytes, says, gone, left) in cases {
            let machine = Machine::new();
            machine.set(FILE, &bytes.to_string());
            let mut entry = entry(&machine);
            change(&mut entry);
            let file = machine.journal.folder().join("1.json");
            fs::write(&file, entry.text().unwrap()).unwrap();
            let said = recover_stale(&machine.host, &machine.journal).join("; ");
            assert!(said.contains(says) && says.is_empty() == said.is_empty(), "{entry:?} {bytes}: {said}");
            assert!(
                entry.hold != Term::Kept || entry.state != State::InForce || !said.contains("ended without")
            );
            assert_eq!((!file.exists(), machine.get(FILE).as_str()), (*gone, *left), "{entry:?} {bytes}");
        }
    }

    /// A server whose only variable reads so, or which is silent.
    #[derive(Debug)]
    struct Stub(Mutex<Option<Value>>);

    impl Servers for Stub {
        fn read(&self, _: &ServerName, _: &str) -> Result<Value, Unreached> {
            let silent = || Unreached { why: "it is silent".to_string(), gone: false };
            self.0.lock().unwrap().clone().ok_or_else(silent)
        }

        fn write(&self, _: &ServerName, _: &str, value: &Value) -> Result<(), Unreached> {
            *self.0.lock().unwrap() = Some(value.clone());
            Ok(())
        }
    }

    #[test]
    fn another_boot_voids_nothing_that_a_server_keeps() {
        const OLD: Value = Value::Number(100);
        const NEW: Value = Value::Number(200);
        const OTHER: Value = Value::Number(300);
        let unconfirmed = Term::UntilConfirmed { deadline_ns: u64::MAX };
        for (hold, state, now, says, stays, left) in [
            (Term::WhileAlive, State::InForce, Some(NEW), "max_wal_size is back at 100", false, Some(OLD)),
            (Term::WhileAlive, State::InForce, Some(OTHER), "which weir did not write", false, Some(OTHER)),
            (Term::WhileAlive, State::Applying, Some(OTHER), "which weir did not write", false, Some(OTHER)),
            (Term::Kept, State::LeadingBack, Some(NEW), "is back at 100", false, Some(OLD)),
            (unconfirmed, State::InForce, Some(NEW), "is back at 100", false, Some(OLD)),
            (Term::WhileAlive, State::InForce, None, "it is silent", true, None),
            (Term::Kept, State::InForce, Some(NEW), "", true, Some(NEW)),
        ] {
            let mut machine = Machine::new();
            let server: &Stub = Box::leak(Box::new(Stub(Mutex::new(now))));
            machine.host = machine.host.clone().reaching(server);
            machine.set(FILE, "10000");
            let mut entry = entry(&machine);
            let of_kernel = entry.changes[0].clone();
            let knob = "postgres:dba@db1:5432/max_wal_size".parse().unwrap();
            entry.changes.push(Written { knob, old: OLD, new: vec![NEW], ..of_kernel });
            (entry.boot_id, entry.hold, entry.state) = ("earlier".into(), hold, state);
            let file = machine.journal.folder().join("1.json");
            fs::write(&file, entry.text().unwrap()).unwrap();
            let said = recover_stale(&machine.host, &machine.journal).join("; ");
            assert!(said.contains(says) && says.is_empty() == said.is_empty(), "{entry:?}: {said}");
            assert_eq!((file.exists(), server.0.lock().unwrap().clone()), (stays, left), "{entry:?}: {said}");
            if stays {
                let listed = listed(&machine.host, file.clone(), &machine.journal.read(&file).unwrap());
                let until = if hold == Term::Kept { Until::Rollback } else { Until::Stale };
                assert_eq!((listed.until, listed.changes.len()), (until, 1), "{entry:?}");
                *server.0.lock().unwrap() = Some(NEW);
                let done = rollback(&machine.host, &machine.journal, Which::Last);
                assert!(done.failed.is_empty() && !file.exists(), "{done:?}");
                assert_eq!(server.0.lock().unwrap().clone(), Some(OLD), "{done:?}");
            }
            assert_eq!(machine.get(FILE), "10000", "the kernel's own is another one since the boot");
        }
    }

    #[test]
    fn an_entry_of_the_first_schema_is_led_back() {
        let machine = Machine::new();
        machine.set(FILE, "10000");
        let text = r#"{"schema": "weir.journal/1", "boot_id": "this-boot", "pid": 99, "pid_started_ticks": 1,
            "changes": [{"knob": "vm.dirty", "old": "bytes=40000", "new": ["bytes=20000", "bytes=10000"]}]}"#;
        fs::write(machine.journal.folder().join("99-1.json"), text).unwrap();
        let said = recover_stale(&machine.host, &machine.journal).join("; ");
        assert_eq!((machine.get(FILE).as_str(), machine.journaled().len()), ("40000", 0), "{said}");
    }

    #[test]
    fn another_entry_in_the_place_of_one_stays() {
        let machine = Machine::new();
        machine.set(FILE, "10000");
        let gone = entry(&machine);
        let other = Entry { since_ns: gone.since_ns + 1, ..gone.clone() };
        let file = machine.journal.folder().join("99-1.0.json");
        fs::write(&file, other.text().unwrap()).unwrap();
        let said = with_lock(&machine.host, &machine.journal, &file, gone).unwrap();
        assert!(said.is_empty() && machine.journal.read(&file).unwrap().is_same(&other), "{said:?}");
        assert_eq!(machine.get(FILE), "10000");
        with_lock(&machine.host, &machine.journal, &file, other).unwrap();
        assert_eq!((machine.get(FILE), machine.journaled().len()), ("40000".to_string(), 0));
    }

    #[test]
    fn a_damaged_file_is_refused_and_named() {
        let machine = Machine::new();
        machine.set(FILE, "10000");
        let whole = entry(&machine).text().unwrap();
        let file = machine.journal.folder().join("1.json");
        let altered = String::from_utf8(whole.clone()).unwrap().replace("bytes=40000", "bytes=90000");
        let cut = (1..whole.len() - 1).step_by(7).map(|length| whole[..length].to_vec());
        let foreign = [b"".to_vec(), b"{}".to_vec(), b"[1]".to_vec(), vec![0; 512], altered.into_bytes()];
        for text in cut.chain(foreign) {
            fs::write(&file, &text).unwrap();
            let said = recover_stale(&machine.host, &machine.journal).join("; ");
            assert!(said.contains("1.json") && said.contains("the file is now"), "{said}");
            assert_eq!((machine.get(FILE).as_str(), file.exists()), ("10000", false));
            let names = fs::read_dir(machine.journal.folder()).unwrap().flatten();
            let aside: Vec<_> =
                names.filter(|entry| entry.path().extension().unwrap_or_default() == "damaged").collect();
            assert_eq!(aside.iter().map(|entry| fs::read(entry.path()).unwrap()).collect::<Vec<_>>(), [text]);
            fs::remove_file(aside[0].path()).unwrap();
        }
    }

    #[test]
    fn without_the_boots_name_nothing_is_thrown_away() {
        const BOOT: &str = "/proc/sys/kernel/random/boot_id";
        let machine = Machine::new();
        machine.set(FILE, "10000");
        let file = machine.journal.folder().join("1.json");
        fs::write(&file, entry(&machine).text().unwrap()).unwrap();
        machine.remove(BOOT);
        let said = recover_stale(&machine.host, &machine.journal).join("; ");
        assert!(said.contains("boot_id"), "{said}");
        assert_eq!((machine.get(FILE).as_str(), file.exists()), ("10000", true), "{said}");
        machine.set(BOOT, "this-boot");
        recover_stale(&machine.host, &machine.journal);
        assert_eq!((machine.get(FILE).as_str(), file.exists()), ("40000", false));
    }

    #[test]
    fn a_journal_that_others_may_write_is_not_obeyed() {
        use std::os::unix::fs::PermissionsExt;
        let machine = Machine::new();
        machine.set(FILE, "10000");
        let file = machine.journal.folder().join("1.json");
        fs::write(&file, entry(&machine).text().unwrap()).unwrap();
        fs::set_permissions(machine.journal.folder(), fs::Permissions::from_mode(0o777)).unwrap();
        recover_stale(&machine.host, &machine.journal);
        assert_eq!((machine.get(FILE).as_str(), file.exists()), ("10000", true));
        let error = machine.journal.lock().unwrap_err();
        assert!(error.to_string().contains("other accounts may write"), "{error}");
    }

    #[test]
    fn a_fifo_in_the_journal_holds_nobody_up() {
        let machine = Machine::new();
        for name in ["lock", "1.json"] {
            let made = std::process::Command::new("mkfifo").arg(machine.journal.folder().join(name)).status();
            assert!(made.unwrap().success());
        }
        assert!(machine.journal.lock().unwrap_err().to_string().contains("not a regular file"));
        fs::remove_file(machine.journal.folder().join("lock")).unwrap();
        let said = recover_stale(&machine.host, &machine.journal).join("; ");
        assert!(said.contains("1.json is not a regular file"), "{said}");
    }

    /// What is restored of a switch of the scheduler, when the machine reads so.
    #[test]
    fn what_a_switch_resets_comes_back_after_it() {
        let queue = |file: &str| format!("/sys/block/loop0/queue/{file}");
        for (state, requests, left, says) in [
            // The kernel's own value under the new scheduler, which the journal noted.
            (State::InForce, "128", "64", "nr_requests is back at 64"),
            (State::InForce, "99", "99", "is 99, which weir did not cause (it was 64)"),
            // Killed before it could be noted.
            (State::Applying, "256", "64", "nr_requests is back at 64"),
            (State::LeadingBack, "256", "64", "nr_requests is back at 64"),
        ] {
            let machine = Machine::new();
            machine.set(&queue("scheduler"), "[none] mq-deadline kyber");
            machine.set(&queue("nr_requests"), requests);
            let written = |knob: &str, old: &str, new: &[&str], touched| Written {
                knob: knob.parse().unwrap(),
                old: old.parse().unwrap(),
                new: new.iter().map(|value| value.parse().unwrap()).collect(),
                band: None,
                touched,
                device_sequence: Some(7),
                target: (state == State::LeadingBack).then(|| old.parse().unwrap()),
            };
            let changes = vec![
                written("loop0/nr_requests", "64", &["128"], true),
                written("loop0/scheduler", "mq-deadline", &["none"], false),
            ];
            let entry = Entry { state, changes, ..entry(&machine) };
            let file = machine.journal.folder().join("1.json");
            fs::write(&file, entry.text().unwrap()).unwrap();
            let said =
                from_file(&machine.host, &machine.journal, &file, |_| true).unwrap().unwrap().join("; ");
            assert_eq!(machine.get(&queue("scheduler")), "mq-deadline", "{said}");
            assert!(machine.get(&queue("nr_requests")) == left && said.contains(says), "{state:?}: {said}");
        }
    }

    #[test]
    fn what_could_not_be_led_back_is_led_back_later() {
        let (machine, swappiness) = (Machine::new(), "/proc/sys/vm/swappiness");
        let written = |knob: &str, old: &str, new: &str, touched| Written {
            knob: knob.parse().unwrap(),
            old: old.parse().unwrap(),
            new: vec![new.parse().unwrap()],
            band: None,
            touched,
            device_sequence: knob.starts_with("loop0").then_some(7),
            target: None,
        };
        let changes = vec![
            written("vm.swappiness", "60", "1", false),
            written("loop0/nr_requests", "32", "64", true),
            written("vm.dirty", "bytes=40960", "bytes=8192000", false),
        ];
        machine.set(FILE, "8192000");
        let entry = Entry { changes, ..entry(&machine) };
        let file = machine.journal.folder().join("1.json");
        fs::write(&file, entry.text().unwrap()).unwrap();
        fs::remove_file(machine.real(swappiness)).unwrap();
        fs::create_dir(machine.real(swappiness)).unwrap();
        let back = || from_file(&machine.host, &machine.journal, &file, |_| true);
        let error = back().unwrap_err();
        assert!(matches!(&error, KnobError::NotLedBack { failed, .. } if failed.len() == 1), "{error}");
        let requests = machine.get("/sys/block/loop0/queue/nr_requests");
        assert_eq!((requests.as_str(), machine.get(FILE).as_str()), ("32", "40960"), "the others are back");
        fs::remove_dir(machine.real(swappiness)).unwrap();
        machine.set(swappiness, "1");
        machine.set("/sys/block/loop0/queue/nr_requests", "99");
        back().unwrap();
        assert_eq!((machine.get(swappiness), machine.journaled().len()), ("60".to_string(), 0));
        assert_eq!(machine.get("/sys/block/loop0/queue/nr_requests"), "99", "somebody set it since");
    }

    /// As a guard's service sees the queues of devices: it restores what it can, and decides nothing about the others.
    #[test]
    fn what_could_not_be_written_at_all_may_be_set_by_others() {
        // Read-only for root, too: whatever it holds is what weir wrote here.
        const READ_ONLY: &str = "/proc/sys/kernel/ngroups_max";
        let holds = fs::read_to_string(READ_ONLY).unwrap().trim().parse::<i64>().unwrap();
        for with_another in [false, true] {
            let (machine, requests) = (Machine::new(), "/sys/block/loop0/queue/nr_requests");
            machine.remove(requests);
            std::os::unix::fs::symlink(READ_ONLY, machine.real(requests)).unwrap();
            machine.set(FILE, "8192000");
            let of_queue = Written {
                knob: "loop0/nr_requests".parse().unwrap(),
                old: Value::Number(32),
                new: vec![Value::Number(holds)],
                band: None,
                touched: true,
                device_sequence: Some(7),
                target: None,
            };
            let of_memory = Written {
                knob: "vm.dirty".parse().unwrap(),
                old: Value::Bytes(40_960),
                new: vec![Value::Bytes(8_192_000)],
                touched: false,
                device_sequence: None,
                ..of_queue.clone()
            };
            let changes = if with_another { vec![of_queue, of_memory] } else { vec![of_queue] };
            let entry = Entry { changes, ..entry(&machine) };
            let file = machine.journal.folder().join("1.json");
            fs::write(&file, entry.text().unwrap()).unwrap();
            let back = || from_file(&machine.host, &machine.journal, &file, |_| true);
            let error = back().unwrap_err();
            assert!(matches!(&error, KnobError::NotLedBack { failed, .. } if failed.len() == 1), "{error}");
            assert_eq!(machine.get(FILE), if with_another { "40960" } else { "8192000" });
            assert_eq!(machine.journal.read(&file).unwrap().state, State::InForce);
            // Somebody sets it by hand; the next weir may write there.
            machine.remove(requests);
            machine.set(requests, "99");
            let said = back().unwrap().unwrap().join("; ");
            assert!(said.contains("is 99, which weir did not"), "{said}");
            assert_eq!((machine.get(requests).as_str(), file.exists()), ("99", false));
        }
    }

    #[test]
    fn another_device_of_the_same_name_is_left_alone() {
        let machine = Machine::new();
        let mut entry = entry(&machine);
        let change = &mut entry.changes[0];
        change.knob = "loop0/nr_requests".parse().unwrap();
        (change.old, change.new, change.device_sequence) =
            (Value::Number(32), vec![Value::Number(64)], Some(6));
        let file = machine.journal.folder().join("1.json");
        fs::write(&file, entry.text().unwrap()).unwrap();
        let said = from_file(&machine.host, &machine.journal, &file, |_| true).unwrap().unwrap().join("; ");
        assert!(said.contains("the device is another one now"), "{said}");
        assert_eq!((machine.get("/sys/block/loop0/queue/nr_requests"), file.exists()), ("64".into(), false));
    }
}
