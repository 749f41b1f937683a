//! Snapshots: which are taken, and of what.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use weir_archive::snapshot::{ASKED, Budget, Cause, Scene, document};
use weir_archive::tables::Event;
use weir_blocktrace::fsync::SlowSync;
use weir_core::target::DeviceNumber;
use weir_host::Counts;

use super::archive::snapshot_name;
use super::kernel::Programs;
use super::watch::Watch;
use super::writer::Recorded;
use crate::clock::Moment;

/// Before what is of interest, so much time is, ns.
const BEFORE_NS: u64 = 1_000_000_000;
/// Completions in a snapshot, ...
const COMPLETIONS: usize = 8192;
/// ... and in one that somebody asked for.
const COMPLETIONS_ASKED: usize = 32_768;
/// Troubles without a snapshot that are told apart.
const WITHOUT_MAX: usize = 256;

/// A file that says what led to something.
pub struct Snapshot {
    /// When it was taken, Unix time, ms; no two have the same.
    pub at_ms: i64,
    /// All of it.
    pub bytes: Vec<u8>,
    /// An event that names it.
    pub event: Event,
}

/// What is looked at.
pub struct View<'a, 'b> {
    /// Completions and syncs under way.
    pub programs: &'a Programs<'b>,
    /// Seconds of devices.
    pub watch: &'a Watch,
    /// Names of devices.
    pub names: &'a BTreeMap<DeviceNumber, String>,
    /// Whether the disk has taken enough of those before.
    pub has_room: bool,
}

impl<'a, 'b> View<'a, 'b> {
    /// Of these.
    pub fn of(
        programs: &'a Programs<'b>,
        watch: &'a Watch,
        counts: &'a Counts,
        recorded: &Recorded,
    ) -> View<'a, 'b> {
        View { programs, watch, names: counts.devices(), has_room: recorded.has_room() }
    }
}

/// Some time up to now.
#[derive(Clone, Copy)]
struct Stretch {
    /// CLOCK_MONOTONIC.
    from_ns: u64,
    to_ns: u64,
    /// Unix time, ms, less CLOCK_MONOTONIC.
    clock_ms: i64,
}

/// Takes them.
pub struct Snapshots {
    budget: Budget,
    last_ms: i64,
    /// Troubles of which there is none, because there was no room, ...
    without: BTreeSet<Cause>,
    /// ... and how many have become that since somebody looked.
    no_room: u64,
}

impl Snapshots {
    /// With what is left of a day's space.
    pub fn with(budget: Budget) -> Snapshots {
        Snapshots { budget, last_ms: 0, without: BTreeSet::new(), no_room: 0 }
    }

    /// Of a slow sync: what led to it, where that is worth a file.
    pub fn of_sync(&mut self, view: &View<'_, '_>, slow: &SlowSync, unit: &str) -> Option<Snapshot> {
        let name = |number: DeviceNumber| view.names.get(&number).cloned().unwrap_or(number.to_string());
        let device = slow.device.map(name).unwrap_or_default();
        let cause = Cause::of(slow, unit, &device);
        let at_ms = self.worth(now_ms(), view.has_room, &cause)?;
        let (from_ns, to_ns) = (slow.start_ns.saturating_sub(BEFORE_NS), slow.start_ns + slow.took_ns);
        let scene = Scene {
            trigger: "slow_sync",
            device,
            unit: unit.to_string(),
            sync: Some(slow),
            zero_ns: slow.start_ns,
            ..Scene::default()
        };
        let stretch = Stretch { from_ns, to_ns, clock_ms: clock_ms() };
        self.spent(&cause, take(view, at_ms, scene, slow.device, stretch, COMPLETIONS)?)
    }

    /// Of a device that stands still.
    pub fn of_stall(
        &mut self,
        view: &View<'_, '_>,
        device: &str,
        for_ns: u64,
        reason: String,
    ) -> Option<Snapshot> {
        let cause = Cause::Stall(device.to_string());
        let at_ms = self.worth(now_ms(), view.has_room, &cause)?;
        let now_ns = Moment::now().awake_ns;
        let scene = Scene {
            trigger: "stall",
            reason,
            device: device.to_string(),
            zero_ns: now_ns,
            ..Scene::default()
        };
        let from_ns = now_ns.saturating_sub(for_ns + BEFORE_NS);
        let stretch = Stretch { from_ns, to_ns: now_ns, clock_ms: clock_ms() };
        self.spent(&cause, take(view, at_ms, scene, None, stretch, COMPLETIONS)?)
    }

    /// Of a cut of the guard's, some seconds ago at most.
    pub fn of_cut(
        &mut self,
        view: &View<'_, '_>,
        event: &Event,
        reason: &str,
        sentence: String,
    ) -> Option<Snapshot> {
        let cause = Cause::Guard(event.device.clone(), reason.to_string());
        let at_ms = self.worth(now_ms(), view.has_room, &cause)?;
        let (clock_ms, now_ns) = (clock_ms(), Moment::now().awake_ns);
        let cut_ns = u64::try_from(event.ts_ms - clock_ms).unwrap_or(0).saturating_mul(1_000_000).min(now_ns);
        let scene = Scene {
            trigger: "guard",
            reason: sentence,
            device: event.device.clone(),
            zero_ns: cut_ns,
            ..Scene::default()
        };
        let from_ns = cut_ns.saturating_sub(BEFORE_NS);
        let stretch = Stretch { from_ns, to_ns: now_ns, clock_ms };
        self.spent(&cause, take(view, at_ms, scene, None, stretch, COMPLETIONS)?)
    }

    /// The last so many nanoseconds, for one who asks.
    ///
    /// # Errors
    /// Why there is none, as a sentence.
    pub fn asked(&mut self, view: &View<'_, '_>, last_ns: u64) -> Result<Snapshot, String> {
        let now_ms = now_ms();
        if !self.budget.takes_asked(now_ms) {
            return Err("those of today have taken all the space that a day has".to_string());
        }
        if !view.has_room {
            return Err("the disk has not written those before yet".to_string());
        }
        let now_ns = Moment::now().awake_ns;
        let scene = Scene { trigger: ASKED, zero_ns: now_ns, ..Scene::default() };
        let stretch =
            Stretch { from_ns: now_ns.saturating_sub(last_ns), to_ns: now_ns, clock_ms: clock_ms() };
        let taken = take(view, self.time_of_file(now_ms), scene, None, stretch, COMPLETIONS_ASKED);
        let snapshot = taken.ok_or_else(|| "it cannot be written as JSON".to_string())?;
        self.budget.took_asked(snapshot.bytes.len() as u64);
        Ok(snapshot)
    }

    /// When a snapshot of a cause is taken, if it is worth one.
    fn worth(&mut self, now_ms: i64, has_room: bool, cause: &Cause) -> Option<i64> {
        if !self.budget.takes(now_ms, cause) {
            return None;
        }
        if has_room {
            self.without.remove(cause);
            return Some(self.time_of_file(now_ms));
        }
        // It is tried again, and counted once.
        self.budget.put_back(cause);
        if self.without.len() < WITHOUT_MAX && self.without.insert(cause.clone()) {
            self.no_room += 1;
        }
        None
    }

    /// How many troubles had no room for theirs, since the last call.
    pub fn without_room(&mut self) -> u64 {
        std::mem::take(&mut self.no_room)
    }

    fn spent(&mut self, cause: &Cause, snapshot: Snapshot) -> Option<Snapshot> {
        self.budget.took(cause, snapshot.bytes.len() as u64);
        Some(snapshot)
    }

    /// A file's name is its time: two of the same millisecond would be one.
    fn time_of_file(&mut self, now_ms: i64) -> i64 {
        self.last_ms = now_ms + i64::from(now_ms == self.last_ms);
        self.last_ms
    }
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

fn clock_ms() -> i64 {
    now_ms() - (Moment::now().awake_ns / 1_000_000) as i64
}

fn take(
    view: &View<'_, '_>,
    at_ms: i64,
    scene: Scene<'_>,
    device: Option<DeviceNumber>,
    stretch: Stretch,
    most: usize,
) -> Option<Snapshot> {
    let of_ns = |ns: u64| stretch.clock_ms + (ns / 1_000_000) as i64;
    let last = view.programs.recent(device, stretch.from_ns, stretch.to_ns, most);
    let seconds = view.watch.since(of_ns(stretch.from_ns));
    let scene = Scene {
        at_ms,
        zero_ms: of_ns(scene.zero_ns),
        under_way: view.programs.under_way(),
        seconds: &seconds,
        owners: view.programs.owners(&last.ios),
        last,
        ..scene
    };
    let bytes = document(&scene).ok()?;
    let detail = serde_json::json!({ "file": snapshot_name(at_ms), "trigger": scene.trigger });
    let event = Event {
        ts_ms: at_ms,
        kind: "snapshot".to_string(),
        device: scene.device.clone(),
        detail: detail.to_string(),
        ..Event::default()
    };
    Some(Snapshot { at_ms, bytes, event })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_without_room_is_counted_once_and_muted_by_nothing() {
        let mut snapshots = Snapshots::with(Budget::default());
        let stall = Cause::Stall("sda".to_string());
        let mut ask = |has_room, now_ms| {
            (snapshots.worth(now_ms, has_room, &stall).is_some(), snapshots.without_room())
        };
        // Two are some seconds apart.
        assert_eq!(ask(false, 10_000), (false, 1));
        assert_eq!(ask(false, 20_000), (false, 0));
        assert_eq!(ask(true, 30_000), (true, 0));
        assert_eq!(ask(true, 40_000), (false, 0), "the same again");
    }

    #[test]
    fn a_clock_that_was_set_back_mutes_none_and_gives_each_its_time() {
        const HOUR_MS: i64 = 3_600_000;
        let mut snapshots = Snapshots::with(Budget::default());
        let mut at = |now_ms, device: &str| snapshots.worth(now_ms, true, &Cause::Stall(device.to_string()));
        assert_eq!(at(2 * HOUR_MS, "sda"), Some(2 * HOUR_MS));
        assert_eq!(at(HOUR_MS, "sdb"), Some(HOUR_MS));
        assert_eq!(at(HOUR_MS + 10_000, "sdc"), Some(HOUR_MS + 10_000));
        assert_eq!(snapshots.time_of_file(HOUR_MS + 10_000), HOUR_MS + 10_001);
    }
}
