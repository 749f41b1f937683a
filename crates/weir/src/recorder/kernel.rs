//! What the kernel's programs see: stages of requests, and what syncs wait for. Either may be refused; it is said what is not
//! seen then.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_archive::interval::{self, Span, StageSum, Syncs};
use weir_archive::tables::{Event, Stage};
use weir_blocktrace::StageTable;
use weir_blocktrace::fsync::{Analyst, Begun, LastIos, PastIo, Sampling, SlowSync};
use weir_core::target::DeviceNumber;
use weir_kernel::fsync::{FsyncSession, Options as SyncOptions, Storage};
use weir_kernel::live::{Options, Snapshot, StageSession};

use super::pace::{Pace, SAMPLED};
use super::settings::RecorderSettings;
use super::whose::Known;

/// Waits at least this long always have their stack taken.
const STACK_EVERY_NS: u64 = 1_000_000;
/// The kind of events of what was seen and counted, but not kept one by one.
pub(super) const LEFT_OUT: &str = "left_out";
/// Fewer than one of so many requests of an interval missing is no loss worth a word.
const LOST_SHARE: u64 = 1000;
/// Slow syncs of an interval that are kept one by one.
const SLOW_MAX: usize = 32;
/// Of the ring that completions and syncs come through: 0.6 s of 50,000 requests a second.
const RING_BYTES: u32 = 4 << 20;
/// After so long without a sync, beside devices that are fast, the programs for syncs leave requests alone.
const NO_SYNCS: Duration = Duration::from_secs(30);
/// Completions kept for snapshots: 3 MB, a second or more of a busy device.
const REMEMBERED: usize = 1 << 16;

/// Where libbpf keeps what the session borrows.
#[derive(Default)]
pub struct Room(Storage);

/// Programs in the kernel; they go away with this.
pub struct Programs<'a> {
    stages: Option<StageSession>,
    before: StageTable,
    losses: u64,
    estimated: BTreeMap<DeviceNumber, u64>,
    pace: Pace,
    issues_unwatched_ns: u64,
    /// Why the issue of requests is not watched as it should be.
    issues_refused: Option<String>,
    syncs: Option<(FsyncSession<'a>, Analyst)>,
    /// Why syncs, or their requests, could not be watched for a time.
    syncs_refused: Option<String>,
    lost_syncs: u64,
    slow: Vec<SlowSync>,
    slow_left_out: u64,
    remarks: Vec<String>,
}

/// What an interval brought.
#[derive(Default)]
pub struct Seen {
    /// Rows of stages.
    pub stages: Vec<Stage>,
    /// Rows of syncs.
    pub syncs: Syncs,
    /// Slow syncs, and what was lost.
    pub events: Vec<Event>,
    /// How long the requests of each row of stages took together.
    pub stage_sums: Vec<StageSum>,
    /// Requests in the rows of stages for which others stand, by device.
    pub estimated: Vec<(String, u64)>,
    /// How long the issue of requests was not watched.
    pub issues_unwatched_ns: u64,
}

impl<'a> Programs<'a> {
    /// Loads what the kernel takes.
    pub fn start(room: &'a mut Room, devices: &[DeviceNumber], settings: &RecorderSettings) -> Programs<'a> {
        let mut remarks = Vec::new();
        let options = Options {
            devices: devices.to_vec(),
            any_size: true,
            sampled: Some(SAMPLED),
            ..Options::default()
        };
        let stages = StageSession::start(&options)
            .map_err(|error| remarks.push(format!("stages of requests are not seen: {error}")))
            .ok();
        let options = SyncOptions {
            stack_every_ns: STACK_EVERY_NS,
            ring_bytes: Some(RING_BYTES),
            ..SyncOptions::default()
        };
        let sampling = Sampling { stack_every_ns: STACK_EVERY_NS, slow_ns: Some(settings.slow.0) };
        let syncs = FsyncSession::start(&mut room.0, &options)
            .map_err(|error| remarks.push(format!("syncs and what they wait for are not seen: {error}")))
            .ok()
            .map(|session| {
                let mut analyst = Analyst::new(sampling);
                analyst.remember(REMEMBERED);
                (session, analyst)
            });
        if let Some((session, _)) = &syncs {
            let unknown = session.unknown().iter();
            remarks.extend(unknown.map(|(what, why)| format!("not known here: {what} ({why})")));
        }
        Programs {
            stages,
            before: StageTable::default(),
            losses: 0,
            estimated: BTreeMap::new(),
            pace: Pace::new(settings.interval.0, u64::from(std::process::id())),
            issues_unwatched_ns: 0,
            issues_refused: None,
            syncs,
            syncs_refused: None,
            lost_syncs: 0,
            slow: Vec::new(),
            slow_left_out: 0,
            remarks,
        }
    }

    /// What is not seen, and why.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// Whether anything is.
    pub fn see_syncs(&self) -> bool {
        self.syncs.is_some()
    }

    /// Whether stages of requests are.
    pub fn see_stages(&self) -> bool {
        self.stages.is_some()
    }

    /// Takes what lies in the ring, some ten times a second; returns the slow syncs that ended.
    pub fn drain(&mut self, known: &mut Known) -> Vec<SlowSync> {
        self.watch_issues();
        let Some((session, analyst)) = &mut self.syncs else { return Vec::new() };
        // What could be read, counts.
        let drained = session.drain(analyst);
        self.say_refused(drained.err());
        self.keep_slow(known)
    }

    /// Takes how far syncs under way have come, too; once a second.
    pub fn tick(&mut self, known: &mut Known) -> Vec<SlowSync> {
        self.watch_issues();
        let Some((session, analyst)) = &mut self.syncs else { return Vec::new() };
        // What could be read, counts.
        let ticked = session.tick(analyst, false);
        self.say_refused(ticked.err());
        self.keep_slow(known)
    }

    /// The last completions, as [`Analyst::recent`].
    pub fn recent(&self, device: Option<DeviceNumber>, from_ns: u64, to_ns: u64, most: usize) -> LastIos<'_> {
        let seen = self.syncs.as_ref();
        seen.map_or_else(LastIos::default, |(_, analyst)| analyst.recent(device, from_ns, to_ns, most))
    }

    /// Syncs that had not returned at the last tick.
    pub fn under_way(&self) -> &[Begun] {
        self.syncs.as_ref().map_or(&[], |(_, analyst)| analyst.remembered_under_way())
    }

    /// Names of those who own completions.
    pub fn owners(&self, ios: &[&PastIo]) -> BTreeMap<u32, String> {
        self.syncs.as_ref().map_or_else(BTreeMap::new, |(_, analyst)| analyst.owners(ios))
    }

    fn say_refused(&mut self, error: Option<weir_kernel::Error>) {
        if let Some(error) = error {
            self.syncs_refused = Some(error.to_string());
        }
    }

    fn watch_issues(&mut self) {
        let Some(session) = &mut self.stages else { return };
        let (each, are_watched) = self.pace.issues();
        self.issues_refused = session.watch_issues(each, are_watched).err().map(|error| error.to_string());
    }

    fn keep_slow(&mut self, known: &mut Known) -> Vec<SlowSync> {
        let Some((_, analyst)) = &mut self.syncs else { return Vec::new() };
        let all = analyst.slow();
        for slow in &all {
            // Processes may end before the interval does.
            let culprits = slow.culprits.iter().map(|culprit| &culprit.process);
            for process in culprits.chain([&slow.process]) {
                process.pid.into_iter().for_each(|pid| known.meet(pid, &process.comm));
            }
            if self.slow.len() < SLOW_MAX { self.slow.push(slow.clone()) } else { self.slow_left_out += 1 }
        }
        all
    }

    /// What happened since the last call. `clock_ms` is what has to be added to CLOCK_MONOTONIC, ms, to make it Unix time.
    pub fn interval(
        &mut self,
        span: Span,
        clock_ms: i64,
        known: &mut Known,
        name_of: impl Fn(DeviceNumber) -> Option<String>,
    ) -> Seen {
        let mut seen = Seen::default();
        if let Some(session) = &mut self.stages {
            let snapshot = session.snapshot();
            let fresh = snapshot.table.since(&self.before);
            let lost = lost_of(&snapshot);
            // A few are missing whenever another tracer comes or goes.
            let ios: u64 = fresh.cells().map(|(_, cell)| cell.ios).sum();
            if lost.saturating_sub(self.losses) > ios / LOST_SHARE {
                seen.events.push(lost_event(span, "requests", lost - self.losses));
            }
            (self.before, self.losses) = (snapshot.table, lost);
            self.pace.next(ios, span.span_ms);
            if let Some(error) = &self.issues_refused {
                seen.events.push(lost_event(span, &format!("the issue of requests ({error})"), 1));
            }
            seen.issues_unwatched_ns = snapshot.issues_unwatched_ns - self.issues_unwatched_ns;
            self.issues_unwatched_ns = snapshot.issues_unwatched_ns;
            if let Some((session, _)) = &mut self.syncs {
                session.spare_requests(self.pace.are_fast.then_some(NO_SYNCS));
            }
            let estimated = snapshot.estimated.iter().filter_map(|(device, so_far)| {
                let grown = so_far - self.estimated.get(device).copied().unwrap_or(0).min(*so_far);
                name_of(*device).filter(|_| grown > 0).map(|name| (name, grown))
            });
            seen.estimated = estimated.collect();
            self.estimated = snapshot.estimated;
            seen.stages = interval::stages(span, &fresh, &name_of);
            seen.stage_sums = interval::stage_sums(&fresh, &name_of);
        }
        if let Some((_, analyst)) = &mut self.syncs {
            // Pauses of writers are not kept, and syncs through io_uring are no loss of the programs'.
            let losses = analyst.losses();
            let lost = losses.tasks + losses.syncs + losses.ios;
            if lost > self.lost_syncs {
                seen.events.push(lost_event(span, "syncs, or parts of them", lost - self.lost_syncs));
            }
            self.lost_syncs = lost;
            if let Some(error) = self.syncs_refused.take() {
                seen.events.push(lost_event(span, &format!("what syncs waited for ({error})"), 1));
            }
            let ledgers = analyst.take_ledgers();
            for ledger in &ledgers {
                let culprits = ledger.culprits.iter().map(|culprit| &culprit.process);
                for process in culprits.chain([&ledger.process]) {
                    process.pid.into_iter().for_each(|pid| known.meet(pid, &process.comm));
                }
            }
            seen.syncs = interval::syncs(span, &ledgers, |pid, comm| known.whose(pid, comm));
        }
        for slow in std::mem::take(&mut self.slow) {
            let ts_ms = clock_ms + (slow.start_ns / 1_000_000) as i64;
            let device = slow.device.and_then(&name_of).unwrap_or_default();
            let whose = known.whose(slow.process.pid, &slow.process.comm);
            seen.events.push(interval::slow_sync(ts_ms, &slow, device, whose));
        }
        let left_out = std::mem::take(&mut self.slow_left_out);
        if left_out > 0 {
            let what = format!("slow syncs one by one, beyond {SLOW_MAX} in an interval");
            // Nothing is missing: the rows of syncs have them.
            seen.events.push(Event { kind: LEFT_OUT.to_string(), ..lost_event(span, &what, left_out) });
        }
        seen
    }
}

fn lost_of(snapshot: &Snapshot) -> u64 {
    let losses = &snapshot.losses;
    losses.cells + losses.skipped + losses.unseen + losses.bios
}

pub(super) fn lost_event(span: Span, what: &str, count: u64) -> Event {
    Event {
        ts_ms: span.ts_ms,
        kind: "lost".to_string(),
        detail: serde_json::json!({ "what": what, "count": count }).to_string(),
        ..Event::default()
    }
}
