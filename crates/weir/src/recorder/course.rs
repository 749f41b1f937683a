//! The loop: look, and hand over what was seen, interval by interval, until somebody ends it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use jiff::Timestamp;
use weir_archive::snapshot::Budget;
use weir_archive::stall::Stall;
use weir_archive::tables::Event;
use weir_archive::totals::Totals;
use weir_blocktrace::fsync::SlowSync;
use weir_core::target::DeviceNumber;
use weir_core::units::Nanos;
use weir_host::{Counts, Host, ProcessSample, keep_little_memory, own_cpu_ns};
use weir_io::runner::Stop;

use super::archive::{About, Archive};
use super::control::{self, Request};
use super::guarded::Guarded;
use super::kernel::{LEFT_OUT, Programs, Room};
use super::knob_values::{Make, knobs, makes};
use super::metrics::{Metrics, Published};
use super::settings::RecorderSettings;
use super::snapshots::{Snapshot, Snapshots, View};
use super::watch::Watch;
use super::whose::Known;
use super::writer::Recorded;
use crate::clock::Moment;
use crate::daemon::Board;
use crate::daemon::notify::Manager;
use crate::daemon::scrape::{self, Door};
use crate::daemon::socket::Files;

/// The programs' ring is emptied so often.
const DRAIN: Duration = Duration::from_millis(100);
/// Syncs under way and devices are looked at so often, ns.
const TICK_NS: u64 = 1_000_000_000;
/// Completions around a cut of the guard's are kept for some seconds at least, ms.
const CUT_FRESH_MS: i64 = 10_000;
/// What is not seen is said again so often, ns: `show` asks about a time long after the start.
const SAY_NOT_SEEN_NS: u64 = 600_000_000_000;

/// What a recorder has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Intervals in the archive.
    pub written: u64,
    /// Intervals that are not.
    pub lost: u64,
    /// Whether the disk took all of it before the end.
    pub flushed: bool,
}

/// Records until told to end.
///
/// # Errors
/// When there is no folder to write to, another recorder writes there, a named device is not there, or metrics cannot be offered.
pub fn run(settings: &RecorderSettings, devices: &[DeviceNumber], stop: &Stop) -> anyhow::Result<Done> {
    keep_little_memory();
    let host = Host::live();
    let archive = Archive::to_write(&settings.dir)?;
    let mut files = Files::default();
    let door = settings.metrics.as_ref().map(|at| Door::open(at, &mut files)).transpose()?;
    let mut room = Room::default();
    let programs = Programs::start(&mut room, devices, settings);
    for remark in programs.remarks() {
        say!("weir: {remark}");
    }
    if !programs.see_syncs() {
        say!("weir: counters of devices, memory, pressure and processes are recorded");
    }
    // A folder on a file system without sockets is no reason to record nothing.
    let requests = control::serve(archive.dir())
        .map_err(|error| say!("weir: `weir recorder snap` has no effect: no control socket: {error}"))
        .ok();
    let budget = archive.snapshot_budget(Timestamp::now().as_millisecond());
    let budget = budget.map_err(|error| say!("weir: snapshots of today are not counted: {error}"));
    let board = Board::default();
    door.map(|door| scrape::serve(door, Metrics::new(board.clone()))).transpose()?;
    say!("weir: records to {} every {}", settings.dir.display(), settings.interval);
    let mut recorded = Recorded::start(archive, settings, About::here())?;
    let mut course = Course::begin(&host, settings, devices, programs);
    course.snapshots = Snapshots::with(budget.unwrap_or_default());
    course.board = settings.metrics.is_some().then_some(board);
    course.requests = requests.as_ref().map(|(_, requests)| requests);
    course.publish(&recorded);
    course.manager.ready();
    course.record(&mut recorded, stop);
    course.manager.stopping();
    let flushed = recorded.end();
    if !flushed {
        say!("weir: the disk did not take all in time; the journal holds what it took");
    }
    Ok(Done { written: recorded.written(), lost: recorded.lost(), flushed })
}

pub(super) struct Course<'a> {
    pub(super) host: Host,
    pub(super) settings: RecorderSettings,
    pub(super) devices: Vec<DeviceNumber>,
    pub(super) programs: Programs<'a>,
    pub(super) known: Known,
    guarded: Option<Guarded>,
    watch: Watch,
    snapshots: Snapshots,
    requests: Option<&'a Receiver<Request>>,
    board: Option<Board<Published>>,
    pub(super) totals: Totals,
    manager: Manager,
    pub(super) counts: Counts,
    pub(super) moved: ProcessSample,
    pub(super) knobs: BTreeMap<String, String>,
    pub(super) makes: Arc<BTreeMap<String, Make>>,
    pub(super) begun: Moment,
    pub(super) begun_ms: i64,
    started_ms: i64,
    pub(super) cpu_ns: u64,
    pub(super) events: Vec<Event>,
    /// Closed segments when facts were said last.
    said_facts_at: u64,
}

impl<'a> Course<'a> {
    fn begin(
        host: &Host,
        settings: &RecorderSettings,
        devices: &[DeviceNumber],
        programs: Programs<'a>,
    ) -> Course<'a> {
        let now_ms = Timestamp::now().as_millisecond();
        let counts = host.counts();
        let guarded = Guarded::start();
        let mut course = Course {
            host: host.clone(),
            settings: settings.clone(),
            devices: devices.to_vec(),
            programs,
            known: Known::new(host),
            guarded: guarded.map_err(|error| say!("weir: decisions of a guard are not seen: {error}")).ok(),
            watch: Watch::begin(host, counts.devices(), settings.stall.0),
            snapshots: Snapshots::with(Budget::default()),
            requests: None,
            board: None,
            totals: Totals::default(),
            manager: Manager::of_environment(),
            counts,
            moved: host.processes(),
            knobs: knobs(host),
            makes: Arc::new(makes(host)),
            begun: Moment::now(),
            begun_ms: now_ms,
            started_ms: now_ms,
            cpu_ns: own_cpu_ns().unwrap_or(0),
            events: Vec::new(),
            said_facts_at: 0,
        };
        let mut detail = course.facts();
        detail["interval_ms"] = (settings.interval.0 / 1_000_000).into();
        detail["not_seen"] = course.programs.remarks().into();
        course.note("start", detail.to_string());
        course
    }

    /// What is so on this machine.
    fn facts(&self) -> serde_json::Value {
        serde_json::json!({
            "weir_version": env!("CARGO_PKG_VERSION"),
            "kernel": self.host.kernel(),
            "machine": self.host.machine_mark(),
            "devices": *self.makes,
            "knobs": self.knobs,
        })
    }

    pub(super) fn note(&mut self, kind: &str, detail: String) {
        let ts_ms = Timestamp::now().as_millisecond();
        self.events.push(Event { ts_ms, kind: kind.to_string(), detail, ..Event::default() });
    }

    fn record(&mut self, recorded: &mut Recorded, stop: &Stop) {
        let start = self.begun;
        let interval_ns = self.settings.interval.0;
        let (mut tick_ns, mut end_ns) = (start.boot_ns + TICK_NS, start.boot_ns + interval_ns);
        let mut say_not_seen_ns = start.boot_ns + SAY_NOT_SEEN_NS;
        let mut lost = 0;
        loop {
            let now = Moment::now();
            let is_over = stop.requested().is_some()
                || self.settings.duration.is_some_and(|time| now.boot_ns >= start.boot_ns + time.0);
            if now.boot_ns >= tick_ns || is_over {
                self.tick(now, recorded);
                tick_ns = now.boot_ns + TICK_NS;
            } else {
                let slow = self.programs.drain(&mut self.known);
                self.slow_syncs(&slow, recorded);
            }
            self.answer(recorded);
            if now.boot_ns >= end_ns || is_over {
                if is_over {
                    self.say_what_goes_on(now);
                    self.note("end", "{}".to_string());
                }
                if now.boot_ns >= say_not_seen_ns {
                    self.say_not_seen();
                    say_not_seen_ns = now.boot_ns + SAY_NOT_SEEN_NS;
                }
                self.say_no_room();
                self.say_facts(recorded.segments());
                let interval = self.interval(now, recorded);
                recorded.write(interval);
                self.publish(recorded);
                lost = say_lost(recorded, lost);
                // An interval that was slept through is not made up for.
                end_ns = (end_ns + interval_ns).max(now.boot_ns + interval_ns / 2);
            }
            if is_over {
                return;
            }
            self.manager.beat();
            let written = recorded.written();
            self.manager.status(|| format!("{written} intervals recorded, {lost} lost"));
            std::thread::sleep(DRAIN.min(Duration::from_nanos(end_ns.saturating_sub(now.boot_ns).max(1))));
        }
    }

    /// What is looked at once a second.
    fn tick(&mut self, now: Moment, recorded: &Recorded) {
        let slow = self.programs.tick(&mut self.known);
        let now_ms = Timestamp::now().as_millisecond();
        let stalls = self.watch.look(&self.host, self.counts.devices(), now, now_ms);
        self.slow_syncs(&slow, recorded);
        for stall in stalls {
            self.stall(&stall, recorded);
        }
        for decided in self.guarded.as_ref().map(Guarded::decisions).unwrap_or_default() {
            // A guard that ran before this recorder tells of cuts of long ago.
            let is_fresh = now_ms - decided.event.ts_ms < CUT_FRESH_MS;
            if let Some(reason) = decided.cut.filter(|_| is_fresh) {
                let event = &decided.event;
                let did = serde_json::from_str::<serde_json::Value>(&event.detail).unwrap_or_default();
                let sentence = did["did"].as_str().unwrap_or_default().to_string();
                let view = View::of(&self.programs, &self.watch, &self.counts, recorded);
                let snapshot = self.snapshots.of_cut(&view, event, &reason, sentence);
                self.keep(snapshot, recorded);
            }
            self.events.push(decided.event);
        }
    }

    fn slow_syncs(&mut self, slow: &[SlowSync], recorded: &Recorded) {
        for slow in slow {
            let unit = self.known.whose(slow.process.pid, &slow.process.comm).unit;
            let view = View::of(&self.programs, &self.watch, &self.counts, recorded);
            let snapshot = self.snapshots.of_sync(&view, slow, &unit);
            self.keep(snapshot, recorded);
        }
    }

    fn stall(&mut self, stall: &Stall, recorded: &Recorded) {
        if !self.is_wanted(stall.device(), &self.counts) {
            return;
        }
        self.events.push(stall.event());
        if let Stall::Begun { device, for_ns, in_flight, .. } = stall {
            let reason = format!(
                "{device} completed nothing for {} with {in_flight} requests in flight",
                Nanos(*for_ns)
            );
            let view = View::of(&self.programs, &self.watch, &self.counts, recorded);
            let snapshot = self.snapshots.of_stall(&view, device, *for_ns, reason);
            self.keep(snapshot, recorded);
        }
    }

    fn say_what_goes_on(&mut self, now: Moment) {
        let mut stalls = self.watch.going_on(now);
        stalls.retain(|stall| self.is_wanted(&stall.device, &self.counts));
        self.events.extend(stalls);
    }

    fn say_not_seen(&mut self) {
        let remarks = self.programs.remarks();
        if !remarks.is_empty() {
            self.note("not_seen", serde_json::json!({ "not_seen": remarks }).to_string());
        }
    }

    /// Repeats the facts in each segment: the one with the start goes some day, and an export may begin after it.
    fn say_facts(&mut self, segments: u64) {
        if segments != self.said_facts_at {
            self.said_facts_at = segments;
            let detail = self.facts();
            self.note("facts", detail.to_string());
        }
    }

    /// Takes snapshots that somebody asks for.
    fn answer(&mut self, recorded: &Recorded) {
        let Some(Ok(request)) = self.requests.map(Receiver::try_recv) else { return };
        let last_ns = u64::try_from(request.last.as_nanos()).unwrap_or(u64::MAX);
        let view = View::of(&self.programs, &self.watch, &self.counts, recorded);
        match self.snapshots.asked(&view, last_ns) {
            // The reply is dropped where nothing takes it, and who asked hears that.
            Ok(Snapshot { at_ms, bytes, event }) => {
                if recorded.keep(at_ms, bytes, Some(request.reply)) {
                    self.events.push(event);
                }
            }
            Err(why) => _ = request.reply.try_send(Err(why)),
        }
    }

    fn keep(&mut self, snapshot: Option<Snapshot>, recorded: &Recorded) {
        let Some(Snapshot { at_ms, bytes, event }) = snapshot else { return };
        if recorded.keep(at_ms, bytes, None) {
            self.events.push(event);
        }
    }

    /// Shows metrics what has been added up.
    fn publish(&self, recorded: &Recorded) {
        let Some(board) = &self.board else { return };
        board.publish(Published {
            totals: self.totals.shown(),
            makes: self.makes.clone(),
            started_ms: self.started_ms,
            at_ms: self.begun_ms,
            written: recorded.written(),
            lost: recorded.lost(),
            cpu_ns: self.cpu_ns,
            sees_syncs: self.programs.see_syncs(),
            sees_stages: self.programs.see_stages(),
        });
    }

    fn say_no_room(&mut self) {
        let count = self.snapshots.without_room();
        if count > 0 {
            let what = "troubles without a snapshot: the disk had not written those before";
            self.note(LEFT_OUT, serde_json::json!({ "what": what, "count": count }).to_string());
        }
    }
}

/// Says it on the spot; the archive is told with an interval.
fn say_lost(recorded: &Recorded, before: u64) -> u64 {
    let lost = recorded.lost();
    if lost > before {
        say!("weir: {} intervals could not be written", lost - before);
    }
    lost
}
