//! What an interval brought, as rows.

use std::sync::Arc;

use jiff::Timestamp;
use weir_archive::interval::{Span, processes};
use weir_archive::tables::{Behind, Counter, Event, Row, Stage, Sync, Wait};
use weir_archive::totals::Rows;
use weir_archive::{Batch, tables};
use weir_core::target::DeviceNumber;
use weir_host::{Counts, own_cpu_ns, own_memory_bytes};

use super::course::Course;
use super::kernel::{Seen, lost_event};
use super::knob_values::{knobs, makes};
use super::writer::{Interval, LOST, Recorded};
use crate::clock::Moment;

/// Asleep for longer than this, the machine slept; the wall clock moved where it differs by as much.
const JUMP_MS: i64 = 1_000;

impl Course<'_> {
    /// Everything that was seen since the last one.
    pub(super) fn interval(&mut self, now: Moment, recorded: &Recorded) -> Interval {
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
        let name_of = |number: DeviceNumber| name_in([&counts, &self.counts], number);
        let clock_ms = now_ms - (now.awake_ns / 1_000_000) as i64;
        let Seen { stages, syncs, events, stage_sums, estimated, issues_unwatched_ns } =
            self.programs.interval(span, clock_ms, &mut self.known, name_of);
        self.events.extend(events);
        let moved = self.host.processes();
        let mut of_processes = Vec::new();
        for process in moved.moved_since(&self.moved) {
            self.known.meet(process.pid, &process.comm);
            let whose = self.known.whose(Some(process.pid), &process.comm);
            of_processes.push((whose, process.read_bytes, process.written_bytes));
        }
        self.known.next_interval();
        self.changed_knobs(now_ms);
        if counts.has_other_devices(&self.counts) {
            self.changed_makes();
        }
        let mut counters = self.counters(span, &counts, recorded);
        let row = |device, name: &str, value| counter(span, device, name, value);
        counters
            .extend(estimated.into_iter().map(|(device, value)| row(device, "requests_estimated", value)));
        if issues_unwatched_ns > 0 {
            counters.push(row(String::new(), "issues_unwatched_ms", issues_unwatched_ns / 1_000_000));
        }
        (self.counts, self.moved, self.begun, self.begun_ms) = (counts, moved, now, now_ms);
        let lost = recorded.untold();
        if lost > 0 {
            self.events.push(lost_event(span, LOST, lost));
        }
        let events = std::mem::take(&mut self.events);
        let processes = processes(span, of_processes);
        let given_back = recorded.events();
        let begin_ms = given_back.iter().map(|event| event.ts_ms).fold(span.ts_ms, i64::min);
        let mut of_events = Event::batch(&given_back);
        events.iter().for_each(|event| event.put(&mut of_events));
        self.totals.take(&Rows {
            span_ms: span.span_ms,
            stages: &stages,
            stage_sums: &stage_sums,
            syncs: Some(&syncs),
            processes: &processes,
            counters: &counters,
            events: &events,
        });
        let batches: Vec<Batch> = vec![
            Stage::batch(&stages),
            Sync::batch(&syncs.syncs),
            Wait::batch(&syncs.waits),
            Behind::batch(&syncs.behind),
            tables::Process::batch(&processes),
            Counter::batch(&counters),
            of_events,
        ];
        Interval { begin_ms, batches, lost }
    }

    fn counters(&mut self, span: Span, counts: &Counts, recorded: &Recorded) -> Vec<Counter> {
        let is_wanted = |device: &str| device.is_empty() || self.is_wanted(device, counts);
        let grown = counts.since(&self.counts).into_iter().filter(|counted| is_wanted(&counted.device));
        let mut rows: Vec<Counter> =
            grown.map(|counted| counter(span, counted.device, counted.name, counted.value)).collect();
        let cpu_ns = own_cpu_ns().unwrap_or(0);
        let own = [
            ("recorder_cpu_ns", cpu_ns.saturating_sub(self.cpu_ns)),
            ("recorder_memory_bytes", own_memory_bytes().unwrap_or(0)),
            ("recorder_lost_intervals", recorded.lost()),
        ];
        self.cpu_ns = cpu_ns;
        rows.extend(own.map(|(name, value)| counter(span, String::new(), name, value)));
        rows
    }

    /// Whether a device is one of those to record.
    pub(super) fn is_wanted(&self, device: &str, counts: &Counts) -> bool {
        let wanted =
            |(number, name): (&DeviceNumber, &String)| name == device && self.devices.contains(number);
        self.devices.is_empty() || counts.devices().iter().any(wanted)
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

    /// Notes models and firmware where they are others: a disk may have been swapped.
    fn changed_makes(&mut self) {
        let now = makes(&self.host);
        if now != *self.makes {
            self.note("devices", serde_json::json!({ "devices": now }).to_string());
            self.makes = Arc::new(now);
        }
    }
}

/// What a device is called, or was: one that went away in the interval has rows of what it did before.
fn name_in(counts: [&Counts; 2], number: DeviceNumber) -> Option<String> {
    counts.into_iter().find_map(|counts| counts.devices().get(&number)).cloned()
}

fn counter(span: Span, device: String, name: &str, value: u64) -> Counter {
    Counter {
        ts_ms: span.ts_ms,
        span_ms: span.span_ms,
        device,
        name: name.to_string(),
        value: i64::try_from(value).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use weir_host::Host;

    use super::*;

    #[test]
    fn a_device_that_went_away_has_its_name_for_its_last_interval() {
        let folder = tempfile::tempdir().unwrap();
        let real = |path: &str| folder.path().join(path);
        for path in ["proc", "sys/dev/block", "sys/class/block/loop0"] {
            fs::create_dir_all(real(path)).unwrap();
        }
        symlink("../../class/block/loop0", real("sys/dev/block/7:0")).unwrap();
        let counts = |stats: &str| {
            fs::write(real("proc/diskstats"), stats).unwrap();
            Host::at(folder.path()).counts()
        };
        let before = counts(" 7 0 loop0 0 0 0 0 9 0 16 3 1 5 6\n");
        let now = counts("");
        let loop0 = DeviceNumber { major: 7, minor: 0 };
        assert_eq!(name_in([&now, &before], loop0).as_deref(), Some("loop0"));
        assert_eq!(name_in([&now, &now], loop0), None);
    }
}
