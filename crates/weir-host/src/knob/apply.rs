//! The transaction: checks, journal, guardian, writes, readback; and all is restored if one of them fails.

use std::path::PathBuf;
use std::time::Duration;

use weir_knobs::{Kind, KnobName, Plan, Setting, Step, Value, catalog};

use super::alive::Alive;
use super::dirty;
use super::entry::{Entry, State, Term, Written, after};
use super::guardian::Guardian;
use super::journal::{Journal, Sync};
use super::place::{self, Place};
use super::refusal::{check_writable, refused};
use super::stderr::say;
use super::steps::{accept, lead_through};
use super::{Hold, KnobError, Until, order, restore, rollback};
use crate::host::Host;

/// A change in force. With [`Hold::WhileAlive`] it ends with [`Applied::restore`], or when this is dropped, or when
/// the process ends in whatever way; otherwise it outlives this.
#[derive(Debug)]
pub struct Applied {
    host: Host,
    journal: Journal,
    /// Its file in the journal and what is in it; `None` where nothing was changed that could be restored.
    entry: Option<(PathBuf, Entry)>,
    hold: Hold,
    notes: Vec<String>,
    /// Its pipe closes after the restore, or with the process.
    guardian: Option<Guardian>,
    _alive: Option<Alive>,
}

/// A plan in the terms of what is really written.
struct Work {
    changes: Vec<Setting>,
    actions: Vec<Setting>,
    /// Knobs that a change resets.
    touched: Vec<KnobName>,
    /// Settings of a scheduler that the plan switches to first, with their defaults: there is no file yet.
    to_appear: Vec<Setting>,
}

impl Work {
    fn of(host: &Host, plan: &Plan) -> Work {
        let is_action =
            |setting: &Setting| catalog::spec(&setting.knob).is_some_and(|spec| spec.kind == Kind::Action);
        let wanted = plan.steps.iter().map(|step| Setting::new(step.knob.clone(), step.to.clone()));
        let (actions, changes): (Vec<_>, Vec<_>) = wanted.partition(is_action);
        let kept = |setting: Setting| {
            let (knob, value) = order::kept_as(host, &setting.knob, &setting.value);
            Setting::new(knob, value)
        };
        let appears = |step: &&Step| {
            catalog::spec(&step.knob).is_some_and(|spec| spec.scheduler.is_some())
                && place::value(&host.tree, &step.knob).is_err_and(|error| error.is_absent())
        };
        let to_appear = plan.steps.iter().filter(appears);
        let to_appear = to_appear.map(|step| Setting::new(step.knob.clone(), step.from.clone())).collect();
        let mut changes: Vec<Setting> = changes.into_iter().map(kept).collect();
        order::sort(host, &mut changes, |setting| (setting.knob.clone(), setting.value.clone()));
        // Whoever made the plan: what goes with a change has to come back with it.
        let reset = changes.iter().flat_map(|change| order::reset_by(&change.knob));
        let reset =
            reset.filter_map(|knob| Some(Setting::new(knob.clone(), place::value(&host.tree, &knob).ok()?)));
        let mut touched: Vec<KnobName> = Vec::new();
        for setting in plan.touched.iter().cloned().chain(reset) {
            let knob = order::kept_as(host, &setting.knob, &setting.value).0;
            if !touched.contains(&knob) && changes.iter().all(|change| change.knob != knob) {
                touched.push(knob);
            }
        }
        Work { changes, actions, touched, to_appear }
    }

    fn knobs(&self) -> Vec<KnobName> {
        self.changes.iter().map(|change| change.knob.clone()).chain(self.touched.iter().cloned()).collect()
    }

    /// What goes into the journal: values as they are now.
    fn written(&self, host: &Host) -> Result<Vec<Written>, KnobError> {
        let tree = &host.tree;
        let written = |knob: &KnobName, new: Vec<Value>, touched: bool| -> Result<Written, KnobError> {
            let device_sequence = order::device_sequence(tree, knob);
            let old = match self.to_appear.iter().find(|setting| setting.knob == *knob) {
                Some(default) => default.value.clone(),
                None => place::value(tree, knob)?,
            };
            Ok(Written { knob: knob.clone(), old, new, band: None, touched, device_sequence, target: None })
        };
        let is_reset =
            |knob: &KnobName| self.changes.iter().any(|change| order::reset_by(&change.knob).contains(knob));
        let changes = self.changes.iter().map(|change| {
            written(&change.knob, dirty::ramp(host, &change.knob, &change.value), is_reset(&change.knob))
        });
        let touched = self.touched.iter().map(|knob| written(knob, Vec::new(), true));
        changes.chain(touched).collect()
    }
}

impl Journal {
    /// Applies a plan, or nothing of it. `patience` is how long to wait for another weir that has one of the knobs in
    /// hand; zero refuses at once.
    ///
    /// # Errors
    /// When a file cannot be written, another change holds a knob, the journal cannot be written, no guardian
    /// starts, the kernel refuses a value, or has another one afterwards. Everything that was written by then has
    /// been restored, unless the error says otherwise.
    pub fn apply(
        &self,
        host: &Host,
        plan: &Plan,
        hold: Hold,
        patience: Duration,
    ) -> Result<Applied, KnobError> {
        let work = Work::of(host, plan);
        let there_already =
            |setting: &&Setting| work.to_appear.iter().all(|other| other.knob != setting.knob);
        for setting in work.changes.iter().chain(&work.actions).filter(there_already) {
            check_writable(host, &setting.knob, &setting.value)?;
        }
        let mut applied = Applied {
            host: host.clone(),
            journal: self.clone(),
            entry: None,
            hold,
            notes: Vec::new(),
            guardian: None,
            _alive: None,
        };
        if !work.changes.is_empty() {
            let entry = || Ok(Entry::new(&host.tree, hold, work.written(host)?)?);
            let entered = self.enter(host, &work.knobs(), patience, entry)?;
            applied._alive = entered.alive;
            applied.guard(entered.file, entered.entry)?;
        }
        match applied.write_all(&work) {
            Ok(()) => Ok(applied),
            Err(cause) => Err(applied.take_back(cause)),
        }
    }
}

impl Applied {
    /// Only the machine itself has a guardian: nothing has to be restored in a captured tree whose process is gone.
    fn guard(&mut self, file: PathBuf, entry: Entry) -> Result<(), KnobError> {
        if self.host.live {
            match Guardian::start(&file, &entry) {
                Ok(guardian) => self.guardian = Some(guardian),
                Err(error) => {
                    self.journal.remove(&file)?;
                    return Err(KnobError::NoGuardian(error));
                }
            }
        }
        self.entry = Some((file, entry));
        Ok(())
    }

    fn write_all(&mut self, work: &Work) -> Result<(), KnobError> {
        for change in &work.changes {
            self.lead(change)?;
        }
        for action in &work.actions {
            let place = Place::of(&self.host.tree, &action.knob)?;
            let written = place.write(&self.host.tree, &action.value);
            written.map_err(|error| refused(&self.host, &action.knob, &action.value, error))?;
        }
        self.verify(work)?;
        self.settle()
    }

    /// One knob to its value, a lowered dirty limit by a ramp.
    fn lead(&self, change: &Setting) -> Result<(), KnobError> {
        let host = &self.host;
        if place::value(&host.tree, &change.knob)? == change.value {
            return Ok(());
        }
        // As journaled: a value of which the journal does not know must not be written.
        let journaled = self.entry.iter().flat_map(|(_, entry)| &entry.changes);
        let steps = journaled.filter(|written| written.knob == change.knob).flat_map(|written| &written.new);
        lead_through(host, &change.knob, &steps.cloned().collect::<Vec<_>>())
    }

    /// Reads everything back once more, since a later write may have changed what an earlier one set, and notes in
    /// the journal what is there now.
    fn verify(&mut self, work: &Work) -> Result<(), KnobError> {
        let Some((_, entry)) = &mut self.entry else { return Ok(()) };
        for written in &mut entry.changes {
            let Ok(now) = place::value(&self.host.tree, &written.knob) else { continue };
            if let Some(wanted) = work.changes.iter().find(|change| change.knob == written.knob) {
                accept(&written.knob, &wanted.value, &now)?;
            } else if now != written.old {
                self.notes.push(format!(
                    "{} went from {} to {now} with it, and goes back with it",
                    written.knob, written.old
                ));
            }
            if now != written.old && !written.new.contains(&now) {
                written.new.push(now);
            }
        }
        Ok(())
    }

    /// All is verified: from here on the entry holds as it was asked for.
    fn settle(&mut self) -> Result<(), KnobError> {
        let Some((file, entry)) = &mut self.entry else { return Ok(()) };
        entry.state = State::InForce;
        if let Hold::UntilConfirmed { deadline } = self.hold {
            entry.hold = Term::UntilConfirmed { deadline_ns: after(deadline) };
        }
        let _lock = self.journal.lock().map_err(KnobError::Journal)?;
        self.journal.rewrite(file, entry, Sync::Waits).map_err(KnobError::Journal)
    }

    /// After a failure: restores, and gives the cause with what could not be restored, if anything could not.
    fn take_back(mut self, cause: KnobError) -> KnobError {
        self.hold = Hold::WhileAlive;
        match self.lead_back() {
            Ok(_) => cause,
            Err(KnobError::NotLedBack { said, mut failed }) => {
                failed.insert(0, cause.to_string());
                KnobError::NotLedBack { said, failed }
            }
            Err(error) => {
                KnobError::NotLedBack { said: Vec::new(), failed: vec![cause.to_string(), error.to_string()] }
            }
        }
    }

    /// The values before the change.
    pub fn old(&self) -> impl Iterator<Item = Setting> + '_ {
        let changes = self.entry.iter().flat_map(|(_, entry)| &entry.changes);
        changes.map(|change| Setting::new(change.knob.clone(), change.old.clone()))
    }

    /// What else has changed with it, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Until when it holds now; `None` where it is gone.
    pub fn until(&self) -> Option<Until> {
        let (file, _) = self.entry.as_ref()?;
        let entry = self.journal.read(file).ok()?;
        Some(rollback::listed(&self.host, file.clone(), &entry).until)
    }

    /// Keeps it, if it waits for confirmation, and no other change. The sentences tell what is kept.
    ///
    /// # Errors
    /// When the journal cannot be written; it then goes back at its deadline.
    pub fn confirm(&self) -> Result<Vec<String>, KnobError> {
        let is_own = |other: &Entry| self.entry.iter().any(|(_, entry)| entry.is_same(other));
        rollback::confirm_all(&self.journal, Some(std::process::id()), is_own)
    }

    /// Restores the values. The sentences tell what is back, and of values that somebody else has changed since, which are
    /// left alone.
    ///
    /// # Errors
    /// When a value cannot be written; the journal then keeps its entry, and the next run tries again.
    pub fn restore(self) -> Result<Vec<String>, KnobError> {
        self.lead_back()
    }

    fn lead_back(&self) -> Result<Vec<String>, KnobError> {
        match &self.entry {
            Some((file, _)) => {
                restore::from_file(&self.host, &self.journal, file, |_| true).map(Option::unwrap_or_default)
            }
            None => Ok(Vec::new()),
        }
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        if self.hold != Hold::WhileAlive {
            if let Some(guardian) = self.guardian.take() {
                guardian.leave_behind();
            }
            return;
        }
        // After `restore` the entry is gone and there is nothing left to do. A panic here could be a second one.
        match self.lead_back() {
            Ok(sentences) => sentences.iter().for_each(|sentence| say(&format!("weir: {sentence}"))),
            Err(error) => say(&format!("weir: a setting could not be restored: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use weir_knobs::script::script;

    use super::*;
    use crate::knob::testing::Machine;
    use crate::knob::{Which, plan, rollback::rollback};

    const FINE: &str = "/sys/class/bdi/7:0/max_ratio_fine";

    fn apply(machine: &Machine, texts: &[&str], hold: Hold) -> Result<Applied, KnobError> {
        let settings: Vec<Setting> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let plan = plan(&machine.host, &settings, false).map_err(KnobError::Planned)?;
        machine.journal.apply(&machine.host, &plan, hold, Duration::ZERO)
    }

    #[test]
    fn an_action_is_done_and_never_led_back() {
        let machine = Machine::new();
        let applied = apply(&machine, &["vm.drop_caches=3"], Hold::WhileAlive).unwrap();
        assert!(machine.journaled().is_empty() && applied.old().next().is_none());
        drop(applied);
        assert_eq!(machine.get("/proc/sys/vm/drop_caches"), "3");
    }

    #[test]
    fn a_bdis_limit_is_kept_in_parts_per_million() {
        let machine = Machine::new();
        machine.set(FINE, "123457");
        // Of a dirty limit of 4096000 bytes.
        for (text, ppm) in [
            ("loop0/bdi/max_bytes=2048000", "500000"),
            ("loop0/bdi/max_ratio=7", "70000"),
            ("loop0/bdi/max_ratio_fine=9", "9"),
        ] {
            let applied = apply(&machine, &[text], Hold::WhileAlive).unwrap();
            assert_eq!(machine.get(FINE), ppm, "{text}");
            // The same limit under another name is not free.
            let second = apply(&machine, &["loop0/bdi/max_ratio=50"], Hold::WhileAlive);
            assert!(matches!(second, Err(KnobError::Held { .. })), "{text}");
            applied.restore().unwrap();
            assert_eq!(machine.get(FINE), "123457", "{text}");
        }
    }

    /// By weir, and by the script that does without.
    #[test]
    fn a_cgroups_files_are_written_as_the_kernel_takes_them() {
        for (text, file, written, led_back) in [
            ("/db.slice/memory.high=1073741824", "unified/db.slice/memory.high", "1073741824", "max"),
            (
                "/db.slice/io.max/7:0/wbps=1000",
                "unified/db.slice/io.max",
                "7:0 wbps=1000",
                "7:0 wbps=2097152",
            ),
            ("/db.slice/io.max/loop0/rbps=1000", "unified/db.slice/io.max", "7:0 rbps=1000", "7:0 rbps=max"),
            ("/db.slice/io.max/7:0/wiops=max", "unified/db.slice/io.max", "7:0 wiops=max", "7:0 wiops=300"),
            (
                "/db.slice/io.latency/7:0/target=9",
                "unified/db.slice/io.latency",
                "7:0 target=9",
                "7:0 target=50000",
            ),
            ("/db.slice/io.weight=50", "unified/db.slice/io.weight", "default 50", "default 100"),
            (
                "/a/blkio.throttle.write_bps_device/loop0=1000",
                "blkio/a/blkio.throttle.write_bps_device",
                "7:0 1000",
                "7:0 1048576",
            ),
        ] {
            let machine = Machine::new();
            let get = || machine.get(&format!("/sys/fs/cgroup/{file}"));
            let text = format!("cgroup:{text}");
            let plan = plan(&machine.host, &[text.parse().unwrap()], false).unwrap();
            let applied = apply(&machine, &[&text], Hold::WhileAlive).unwrap();
            assert_eq!(get(), written, "{text}");
            applied.restore().unwrap();
            assert_eq!(get(), led_back, "{text}");
            let script = script(&plan, &|setting| place::written(&machine.host, setting));
            let groups = machine.real("/sys/fs/cgroup").display().to_string();
            let script = script.replace("/sys/fs/cgroup", &groups);
            for (argument, left) in [("", written), ("undo", led_back)] {
                let run = Command::new("sh").args(["-c", &script, "sh", argument]).status().unwrap();
                assert!(run.success() && get() == left, "{text} {argument}: {}", get());
            }
        }
    }

    #[test]
    fn a_setting_has_one_name_in_the_journal() {
        let queue = |file: &str| format!("/sys/block/loop0/queue/{file}");
        for (one, other) in [
            ("cgroup:/db.slice/io.max/loop0/wbps=1000", "cgroup:/db.slice/io.max/7:0/wbps=2000"),
            ("cgroup:/db.slice/io.max/07:0/wbps=1000", "cgroup:/db.slice/io.max/7:0/wbps=2000"),
            (
                "cgroup:/a/blkio.throttle.write_bps_device/loop0=1000",
                "cgroup:/a/blkio.throttle.write_bps_device/7:0=2000",
            ),
            ("cgroup:/db.slice/memory.high=1073741824", "cgroup://./db.slice//memory.high=2147483648"),
            ("loop0/bdi/max_ratio=50", "bdi:7:0/max_ratio=40"),
            ("loop0/bdi/max_ratio_fine=500000", "bdi:7:0/max_bytes=40960"),
            ("loop0/iosched/slice_idle=1", "loop0/iosched/slice_idle_us=5"),
        ] {
            for (first, second) in [(one, other), (other, one)] {
                let machine = Machine::new();
                machine.set(&queue("scheduler"), "none [bfq]");
                machine.set(&queue("iosched/slice_idle"), "8");
                machine.set(&queue("iosched/slice_idle_us"), "8000");
                let link = machine.real("/sys/dev/block/7:0");
                std::fs::create_dir_all(link.parent().unwrap()).unwrap();
                std::os::unix::fs::symlink("../../devices/virtual/block/loop0", link).unwrap();
                let applied = apply(&machine, &[first], Hold::WhileAlive).unwrap();
                let file = machine.journal.folder().join(&machine.journaled()[0]);
                let now = std::fs::read_to_string(&file).unwrap();
                let earlier = now.replace("journal/2", "journal/1").replace("\"loop0/bdi/", "\"bdi:7:0/");
                let earlier = earlier.replace("/7:0", "/loop0").replace("/db.slice/", "//db.slice/");
                for text in [&earlier, &now] {
                    std::fs::write(&file, text).unwrap();
                    let refused = apply(&machine, &[second], Hold::WhileAlive).map(|_| ()).unwrap_err();
                    assert!(matches!(refused, KnobError::Held { .. }), "{first} {second}: {refused}");
                }
                applied.restore().unwrap();
                apply(&machine, &[second], Hold::WhileAlive).unwrap();
            }
        }
    }

    #[test]
    fn what_is_kept_stays_until_a_rollback() {
        let machine = Machine::new();
        let values =
            || ["vm/swappiness", "vm/dirty_bytes"].map(|file| machine.get(&format!("/proc/sys/{file}")));
        let before = values();
        drop(apply(&machine, &["vm.swappiness=1", "vm.dirty_bytes=40960"], Hold::Kept).unwrap());
        drop(apply(&machine, &["vm.swappiness=2"], Hold::Kept).unwrap());
        assert_eq!((values(), machine.journaled().len()), (["2".into(), "40960".into()], 2));
        // These files do not zero each other.
        machine.set("/proc/sys/vm/dirty_bytes", "0");
        machine.set("/proc/sys/vm/swappiness", "2");
        let done = rollback(&machine.host, &machine.journal, Which::Last);
        assert_eq!((values()[0].as_str(), machine.journaled().len()), ("1", 1), "{done:?}");
        let done = rollback(&machine.host, &machine.journal, Which::All);
        assert_eq!((values(), machine.journaled().len()), (before.clone(), 0), "{done:?}");
        let again = rollback(&machine.host, &machine.journal, Which::All);
        assert_eq!((values(), again.said.len()), (before, 1));
    }

    #[test]
    fn limits_go_down_background_first_and_up_dirty_first() {
        let machine = Machine::new();
        for (dirty, expected) in [
            ("vm.dirty_bytes=40960", ["vm.dirty_background", "vm.dirty"]),
            ("vm.dirty_ratio=5", ["vm.dirty_background", "vm.dirty"]),
            ("vm.dirty_bytes=409600000", ["vm.dirty", "vm.dirty_background"]),
            ("vm.dirty_ratio=40", ["vm.dirty", "vm.dirty_background"]),
        ] {
            let mut settings: Vec<Setting> =
                ["vm.dirty_background_bytes=8192", dirty].iter().map(|text| text.parse().unwrap()).collect();
            order::sort(&machine.host, &mut settings, |s| (s.knob.clone(), s.value.clone()));
            let order: Vec<String> = settings.iter().map(|setting| setting.knob.to_string()).collect();
            assert_eq!(order, expected, "{dirty}");
        }
    }
}
