//! The loop: look, and hand over what was seen, interval by interval, until somebody ends it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use weir_archive::interval::{Span, processes};
use weir_archive::tables::{Behind, Counter, Event, Row, Stage, Sync, Wait};
use weir_archive::{Batch, tables};
use weir_core::target::DeviceNumber;
use weir_host::{Counts, Host, ProcessSample, knob, own_cpu_ns, own_memory_bytes};
use weir_io::runner::Stop;

use super::archive::{About, Archive, snapshot_name};
use super::guarded::Guarded;
use super::kernel::{Programs, Room, Seen};
use super::settings::RecorderSettings;
use super::whose::Known;
use super::writer::{Interval, Recorded};
use crate::clock::Moment;

/// The programs' ring is emptied so often.
const DRAIN: Duration = Duration::from_millis(100);
/// Syncs under way are looked at so often, ns.
const TICK_NS: u64 = 1_000_000_000;
/// Asleep for longer than this, the machine slept; the wall clock moved where it differs by as much.
const JUMP_MS: i64 = 1_000;

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
/// When there is no folder to write to, another recorder writes there, or a named device is not there.
pub fn run(settings: &RecorderSettings, devices: &[DeviceNumber], stop: &Stop) -> anyhow::Result<Done> {
    let host = Host::live();
    let archive = Archive::to_write(&settings.dir)?;
    let mut room = Room::default();
    let programs = Programs::start(&mut room, devices, settings.slow.0);
    for remark in programs.remarks() {
        say!("weir: {remark}");
    }
    if !programs.see_syncs() {
        say!("weir: counters of devices, memory, pressure and processes are recorded");
    }
    say!("weir: records to {} every {}", settings.dir.display(), settings.interval);
    let mut recorded = Recorded::start(archive, settings, About::here())?;
    let mut course = Course::begin(&host, settings, devices, programs);
    let done = course.record(&mut recorded, stop);
    let flushed = recorded.end();
    if !flushed {
        say!("weir: the disk did not take all in time; the journal holds what it took");
    }
    Ok(Done { written: recorded.written(), flushed, ..done })
}

struct Course<'a> {
    host: Host,
    settings: RecorderSettings,
    devices: Vec<DeviceNumber>,
    programs: Programs<'a>,
    known: Known,
    guarded: Guarded,
    counts: Counts,
    moved: ProcessSample,
    knobs: BTreeMap<String, String>,
    begun: Moment,
    begun_ms: i64,
    cpu_ns: u64,
    events: Vec<Event>,
}

impl<'a> Course<'a> {
    fn begin(
        host: &Host,
        settings: &RecorderSettings,
        devices: &[DeviceNumber],
        programs: Programs<'a>,
    ) -> Course<'a> {
        let now_ms = Timestamp::now().as_millisecond();
        let knobs = knobs(host);
        let mut course = Course {
            host: host.clone(),
            settings: settings.clone(),
            devices: devices.to_vec(),
            programs,
            known: Known::new(host),
            guarded: Guarded::default(),
            counts: host.counts(),
            moved: host.processes(),
            knobs,
            begun: Moment::now(),
            begun_ms: now_ms,
            cpu_ns: own_cpu_ns().unwrap_or(0),
            events: Vec::new(),
        };
        let detail = serde_json::json!({
            "weir_version": env!("CARGO_PKG_VERSION"),
            "interval_ms": settings.interval.0 / 1_000_000,
            "not_seen": course.programs.remarks(),
            "knobs": course.knobs,
        });
        course.note("start", detail.to_string());
        course
    }

    fn note(&mut self, kind: &str, detail: String) {
        let ts_ms = Timestamp::now().as_millisecond();
        self.events.push(Event { ts_ms, kind: kind.to_string(), detail, ..Event::default() });
    }

    fn record(&mut self, recorded: &mut Recorded, stop: &Stop) -> Done {
        let start = self.begun;
        let interval_ns = self.settings.interval.0;
        let (mut tick_ns, mut end_ns) = (start.boot_ns + TICK_NS, start.boot_ns + interval_ns);
        let mut lost = 0;
        loop {
            let now = Moment::now();
            let is_over = stop.requested().is_some()
                || self.settings.duration.is_some_and(|time| now.boot_ns >= start.boot_ns + time.0);
            if now.boot_ns >= tick_ns || is_over {
                self.programs.tick(&mut self.known);
                tick_ns = now.boot_ns + TICK_NS;
            } else {
                self.programs.drain(&mut self.known);
            }
            if now.boot_ns >= end_ns || is_over {
                if is_over {
                    self.note("end", "{}".to_string());
                }
                let interval = self.interval(now, recorded);
                recorded.write(interval);
                let lost_now = recorded.lost();
                if lost_now > lost {
                    let detail = serde_json::json!({ "what": "intervals: the disk was too slow or refused them", "count": lost_now - lost });
                    self.note("lost", detail.to_string());
                    say!("weir: {} intervals could not be written", lost_now - lost);
                    lost = lost_now;
                }
                // An interval that was slept through is not made up for.
                end_ns = (end_ns + interval_ns).max(now.boot_ns + interval_ns / 2);
            }
            if is_over {
                return Done { lost, ..Done::default() };
            }
            std::thread::sleep(DRAIN.min(Duration::from_nanos(end_ns.saturating_sub(now.boot_ns).max(1))));
        }
    }

    /// Everything that was seen since the last one.
    fn interval(&mut self, now: Moment, recorded: &Recorded) -> Interval {
        let now_ms = Timestamp::now().as_millisecond();
        let span_ms = (now.boot_ns.saturating_sub(self.begun.boot_ns) / 1_000_000) as i64;
        let jumped_ms = now_ms - self.begun_ms - span_ms;
        let slept_ms = (now.slept_since(self.begun) / 1_000_000) as i64;
        if jumped_ms.abs() > JUMP_MS || slept_ms > JUMP_MS {
            let detail = serde_json::json!({ "clock_moved_ms": jumped_ms, "slept_ms": slept_ms });
            self.note("clock", detail.to_string());
        }
        // By the clock as it is now: where it was set meanwhile, no two intervals are one.
        let span = Span { ts_ms: now_ms - span_ms, span_ms: span_ms.max(1) };
        let counts = self.host.counts();
        let name_of = |number: DeviceNumber| counts.devices().get(&number).cloned();
        let clock_ms = now_ms - (now.awake_ns / 1_000_000) as i64;
        let Seen { stages, syncs, events, snapshots } =
            self.programs.interval(span, clock_ms, &mut self.known, name_of);
        self.events.extend(events);
        for snapshot in &snapshots {
            let detail = serde_json::json!({ "file": snapshot_name(snapshot.at_ms) }).to_string();
            let kind = "snapshot".to_string();
            self.events.push(Event { ts_ms: snapshot.at_ms, kind, detail, ..Event::default() });
        }
        let moved = self.host.processes();
        let mut of_processes = Vec::new();
        for process in moved.moved_since(&self.moved) {
            self.known.meet(process.pid, &process.comm);
            let whose = self.known.whose(Some(process.pid), &process.comm);
            of_processes.push((whose, process.read_bytes, process.written_bytes));
        }
        self.changed_knobs(now_ms);
        self.events.extend(self.guarded.decisions());
        let counters = self.counters(span, &counts, recorded);
        (self.counts, self.moved, self.begun, self.begun_ms) = (counts, moved, now, now_ms);
        let events = std::mem::take(&mut self.events);
        let batches: Vec<Batch> = vec![
            Stage::batch(&stages),
            Sync::batch(&syncs.syncs),
            Wait::batch(&syncs.waits),
            Behind::batch(&syncs.behind),
            tables::Process::batch(&processes(span, of_processes)),
            Counter::batch(&counters),
            Event::batch(&events),
        ];
        Interval { begin_ms: span.ts_ms, batches, snapshots }
    }

    fn counters(&mut self, span: Span, counts: &Counts, recorded: &Recorded) -> Vec<Counter> {
        let is_wanted = |device: &str| {
            let wanted =
                |(number, name): (&DeviceNumber, &String)| name == device && self.devices.contains(number);
            device.is_empty() || self.devices.is_empty() || counts.devices().iter().any(wanted)
        };
        let grown = counts.since(&self.counts).into_iter().filter(|counted| is_wanted(&counted.device));
        let row = |device: String, name: &str, value: u64| Counter {
            ts_ms: span.ts_ms,
            span_ms: span.span_ms,
            device,
            name: name.to_string(),
            value: i64::try_from(value).unwrap_or(i64::MAX),
        };
        let mut rows: Vec<Counter> =
            grown.map(|counted| row(counted.device, counted.name, counted.value)).collect();
        let cpu_ns = own_cpu_ns().unwrap_or(0);
        let own = [
            ("recorder_cpu_ns", cpu_ns.saturating_sub(self.cpu_ns)),
            ("recorder_memory_bytes", own_memory_bytes().unwrap_or(0)),
            ("recorder_lost_intervals", recorded.lost()),
        ];
        self.cpu_ns = cpu_ns;
        rows.extend(own.map(|(name, value)| row(String::new(), name, value)));
        rows
    }

    fn changed_knobs(&mut self, now_ms: i64) {
        let now = knobs(&self.host);
        for (knob, value) in &now {
            let before = self.knobs.get(knob);
            if before.is_some_and(|before| before != value) {
                let device = knob.split_once('/').map_or("", |(device, _)| device);
                let detail = serde_json::json!({ "knob": knob, "before": before, "after": value });
                self.events.push(Event {
                    ts_ms: now_ms,
                    kind: "knob".to_string(),
                    device: device.to_string(),
                    detail: detail.to_string(),
                    ..Event::default()
                });
            }
        }
        self.knobs = now;
    }
}

/// Knobs that the kernel derives from others and from free memory, so that they change all the time.
const FOLLOW: [&str; 2] = ["bdi/max_bytes", "bdi/min_bytes"];

fn knobs(host: &Host) -> BTreeMap<String, String> {
    let all = knob::values(host).into_iter().map(|(knob, value)| (knob.to_string(), value.to_string()));
    all.filter(|(knob, _)| !FOLLOW.iter().any(|follows| knob.ends_with(follows))).collect()
}
