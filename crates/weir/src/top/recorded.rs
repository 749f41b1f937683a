//! What a recorder has written, as samples: intervals of its archive around the time that the screen asks for.

mod interval;

use std::collections::BTreeMap;

use jiff::{Timestamp, Zoned};
use serde::de::DeserializeOwned;
use weir_archive::Batch;
use weir_archive::series::{Series, Slot, Wanted};
use weir_archive::tables::{Event, Row as _, Stage};
use weir_blocktrace::fsync::{Call, Process as Who, SlowSync};
use weir_blocktrace::{Cost, Frame};
use weir_core::target::{DeviceNumber, MemoryLoad};
use weir_core::units::Nanos;
use weir_top::{About, Sample, Samples, Wish};

use interval::{OfDevice, amount, device, pressure, processes, syncs};

use crate::recorder::archive::{Archive, Listed, wall_clock};

/// Intervals that are fetched at a time.
const FETCHED: usize = 60;
/// The stretch that is read for them, ms, at first; where it holds nothing, the next is four times as long.
const STRETCH_MS: i64 = 600_000;
const TABLES: [&str; 7] = ["stages", "syncs", "waits", "behind", "processes", "counters", "events"];
/// The major number of devices of which only the name is known: beyond any that the kernel gives.
const UNKNOWN_MAJOR: u32 = 1 << 20;

/// An archive that is stepped through.
pub struct Recorded {
    archive: Archive,
    /// Names of the devices that are shown; none means all.
    devices: Vec<String>,
    slow_ns: i64,
    numbers: BTreeMap<String, DeviceNumber>,
    about: About,
}

/// Durations by time and device.
type Stages = BTreeMap<(i64, String), OfDevice>;

impl Recorded {
    /// Of an archive: these devices, none meaning all, and syncs at least so long.
    pub fn new(archive: Archive, devices: Vec<String>, slow: Nanos) -> Recorded {
        let slow_ns = i64::try_from(slow.0).unwrap_or(i64::MAX);
        Recorded { archive, devices, slow_ns, numbers: BTreeMap::new(), about: About::default() }
    }

    /// A sentence for the help.
    pub fn remark(&self) -> String {
        format!("before this screen's start: as the recorder wrote it to {}", self.archive.path().display())
    }

    /// Samples that the screen asks for; what cannot be read is not there.
    pub fn fetch(&mut self, wish: Wish) -> Vec<Sample> {
        let spans = self.spans();
        // Over times of which there is no file.
        let near = match wish {
            Wish::Before(ms) => {
                spans.iter().filter(|(begin_ms, _)| *begin_ms < ms).map(|(_, end_ms)| ms.min(*end_ms)).max()
            }
            Wish::After(ms) => {
                spans.iter().filter(|(_, end_ms)| *end_ms > ms).map(|(begin_ms, _)| ms.max(*begin_ms)).min()
            }
        };
        let Some(near_ms) = near else { return Vec::new() };
        let mut stretch_ms = STRETCH_MS;
        loop {
            let (since_ms, until_ms) = match wish {
                Wish::Before(_) => (near_ms.saturating_sub(stretch_ms), near_ms),
                Wish::After(_) => (near_ms, near_ms.saturating_add(stretch_ms)),
            };
            // What ends in the stretch may have begun before it: an interval, or a slow sync.
            let mut found = self.read(since_ms.saturating_sub(STRETCH_MS), until_ms);
            found.retain(|sample| match wish {
                Wish::Before(ms) => sample.at_ms <= ms && sample.at_ms > since_ms,
                Wish::After(ms) => sample.at_ms > ms,
            });
            let is_left = |(begin_ms, end_ms): &(i64, i64)| match wish {
                Wish::Before(_) => *begin_ms < since_ms,
                Wish::After(_) => *end_ms > until_ms,
            };
            if !found.is_empty() || !spans.iter().any(is_left) {
                match wish {
                    Wish::Before(_) => _ = found.drain(..found.len().saturating_sub(FETCHED)),
                    Wish::After(_) => found.truncate(FETCHED),
                }
                return found;
            }
            stretch_ms = stretch_ms.saturating_mul(4);
        }
    }

    /// From when until when files are, Unix time, ms; a journal goes on until now.
    fn spans(&self) -> Vec<(i64, i64)> {
        let now_s = Timestamp::now().as_second();
        let span = |file: &Listed| {
            let end_s = file.name.end_s().unwrap_or(now_s).saturating_add(1);
            (file.name.begin_s().saturating_mul(1000), end_s.saturating_mul(1000))
        };
        self.archive.files().map(|(files, _)| files.iter().map(span).collect()).unwrap_or_default()
    }

    /// Samples of the intervals that began in a stretch of time.
    fn read(&mut self, since_ms: i64, until_ms: i64) -> Vec<Sample> {
        let wanted = Wanted { since_ms, until_ms, device: None, unit: None };
        let (mut series, mut stages) = (Series::default(), Stages::new());
        // What is damaged is said by `weir recorder show`.
        let _ = self.archive.read(since_ms, until_ms, &TABLES, |batch| {
            series.take(&batch, &wanted);
            take_stages(&mut stages, &batch, &wanted);
        });
        series.sort();
        self.samples(&series, &stages)
    }

    fn samples(&mut self, series: &Series, stages: &Stages) -> Vec<Sample> {
        let now = Zoned::now();
        let mut samples = Vec::new();
        for (ts_ms, slot) in &series.slots {
            let until_ms = ts_ms.saturating_add(slot.span_ms.max(1));
            let ended_ms = |event: &Event| event.ts_ms.saturating_add(event.took_ns / 1_000_000);
            let slow = series.events.iter().filter(|event| event.kind == "slow_sync");
            let slow: Vec<&Event> = slow
                .filter(|event| event.took_ns >= self.slow_ns)
                .filter(|event| (*ts_ms..until_ms).contains(&ended_ms(event)))
                .collect();
            let slow = slow.into_iter().map(|event| self.slow_sync(event)).collect();
            samples.push(self.sample(*ts_ms, slot, stages, slow, &now));
        }
        samples
    }

    fn sample(
        &mut self,
        ts_ms: i64,
        slot: &Slot,
        stages: &Stages,
        slow: Vec<SlowSync>,
        now: &Zoned,
    ) -> Sample {
        let span_ms = slot.span_ms.max(1);
        let at_ms = ts_ms.saturating_add(span_ms);
        let (devices, is_all) = (&self.devices, self.devices.is_empty());
        let shown: Vec<&String> =
            slot.devices.keys().filter(|name| is_all || devices.contains(name)).collect();
        let shown: Vec<String> = shown.into_iter().cloned().collect();
        let frames = shown.iter().map(|name| {
            let of_stages = stages.get(&(ts_ms, name.clone()));
            device(self.number(name), name, &slot.devices[name], of_stages, span_ms)
        });
        let frame = Frame {
            at_ns: 0,
            length_ns: span_ms as u64 * 1_000_000,
            devices: frames.filter(|frame| !frame.is_idle() || !is_all).collect(),
            memory: MemoryLoad {
                dirty_bytes: amount(slot.machine.get("dirty_bytes")),
                writeback_bytes: amount(slot.machine.get("writeback_bytes")),
                ..MemoryLoad::default()
            },
            lost: BTreeMap::new(),
            cost: Cost::default(),
        };
        Sample {
            clock: wall_clock(at_ms, now).unwrap_or_else(|| "?".to_string()),
            at_ms,
            is_recorded: true,
            frame,
            pressure: pressure(slot, span_ms),
            processes: processes(slot, span_ms),
            syncs: syncs(slot, span_ms),
            slow,
        }
    }

    /// The number of a device by its name: as it is now, if there is one, else one that no device has.
    fn number(&mut self, name: &str) -> DeviceNumber {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        let said =
            if is_name { std::fs::read_to_string(format!("/sys/class/block/{name}/dev")).ok() } else { None };
        let said = said.and_then(|said| DeviceNumber::parse(&said));
        let minor = self.numbers.len() as u32;
        let number = said.unwrap_or(DeviceNumber { major: UNKNOWN_MAJOR, minor });
        self.numbers.insert(name.to_string(), number);
        number
    }

    /// A slow sync as it was written down; its anatomy is left out where that cannot be understood.
    fn slow_sync(&mut self, event: &Event) -> SlowSync {
        let detail: serde_json::Value = serde_json::from_str(&event.detail).unwrap_or_default();
        let device = (!event.device.is_empty()).then(|| self.number(&event.device));
        SlowSync {
            // By the wall clock: only the order matters.
            start_ns: u64::try_from(event.ts_ms).unwrap_or(0).saturating_mul(1_000_000),
            took_ns: u64::try_from(event.took_ns).unwrap_or(0),
            process: Who::new(u32::try_from(event.pid).ok().filter(|pid| *pid != 0), &event.comm),
            tid: part::<u32>(&detail, "tid").unwrap_or(0),
            thread: part(&detail, "thread"),
            call: part(&detail, "call").unwrap_or(Call::Fsync),
            device,
            phases: part(&detail, "phases").unwrap_or_default(),
            culprits: part(&detail, "culprits").unwrap_or_default(),
        }
    }
}

impl Samples for Recorded {
    type Error = anyhow::Error;

    fn about(&self) -> &About {
        &self.about
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn take(&mut self) -> anyhow::Result<Option<Sample>> {
        Ok(None)
    }

    fn recorded(&mut self, wish: Wish) -> Vec<Sample> {
        self.fetch(wish)
    }
}

fn part<T: DeserializeOwned>(detail: &serde_json::Value, name: &str) -> Option<T> {
    serde_json::from_value(detail.get(name)?.clone()).ok()
}

fn take_stages(stages: &mut Stages, batch: &Batch, wanted: &Wanted) {
    let (true, Some(times)) = (batch.table().name == Stage::TABLE.name, batch.column("ts_ms")) else {
        return;
    };
    for row in
        (0..batch.rows()).filter(|row| (wanted.since_ms..wanted.until_ms).contains(&times.integer(*row)))
    {
        let Stage { ts_ms, device, class, stage, bucket_low_ns, count, .. } = Stage::get(batch, row);
        let histogram = stages.entry((ts_ms, device)).or_default().entry((class, stage)).or_default();
        let sum = histogram.entry(bucket_low_ns).or_default();
        *sum = sum.saturating_add(count.max(0));
    }
}

#[cfg(test)]
mod tests;
