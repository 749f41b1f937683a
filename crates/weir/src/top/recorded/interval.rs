//! An interval of the archive in the terms of the screen.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use weir_archive::series::{DeviceSlot, Histogram, Slot, User, UserSlot, quantile};
use weir_blocktrace::fsync::{Anatomy, Cause, Culprit, Latency, Phase, Process as Who, Row as PhaseRow, Way};
use weir_blocktrace::{Class, DeviceFrame, Row, Spread, Stage};
use weir_core::target::{DeviceLoad, DeviceNumber, Layer, PressureLoad};
use weir_top::{Process, Syncs};

/// Durations of a device's requests by class and stage.
pub type OfDevice = BTreeMap<(String, String), Histogram>;

/// A value by its word in rows: as in JSON.
fn by_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(word.to_string())).ok()
}

/// A counter; none where it was not read.
pub fn amount(value: Option<&i64>) -> u64 {
    value.and_then(|value| u64::try_from(*value).ok()).unwrap_or(0)
}

/// A device, by its counters and, where they were seen, its stages.
pub fn device(
    number: DeviceNumber,
    name: &str,
    slot: &DeviceSlot,
    stages: Option<&OfDevice>,
    span_ms: i64,
) -> DeviceFrame {
    let seconds = span_ms as f64 / 1e3;
    let count = |name: &str| slot.counter(name).max(0) as f64;
    let wait =
        |ms: &str, requests: &str| if count(requests) > 0.0 { count(ms) / count(requests) } else { 0.0 };
    let load = DeviceLoad {
        util_percent: (count("busy_ms") / span_ms as f64 * 100.0).min(100.0),
        reads_per_second: count("reads") / seconds,
        writes_per_second: count("writes") / seconds,
        flushes_per_second: count("flushes") / seconds,
        discards_per_second: count("discards") / seconds,
        read_bytes_per_second: count("read_bytes") / seconds,
        write_bytes_per_second: count("write_bytes") / seconds,
        discard_bytes_per_second: count("discard_bytes") / seconds,
        read_wait_ms: wait("read_ms", "reads"),
        write_wait_ms: wait("write_ms", "writes"),
        discard_wait_ms: wait("discard_ms", "discards"),
        flush_wait_ms: wait("flush_ms", "flushes"),
        // The kernel's sum has flushes twice; see weir-host's diskstats.
        queue_mean: (count("queue_ms") - count("flush_ms")).max(0.0) / span_ms as f64,
        in_flight: amount(slot.counters.get("in_flight")),
    };
    let counted = DeviceFrame::new(
        &Layer { name: name.to_string(), number, ..Layer::default() },
        load,
        None,
        span_ms as u64 * 1_000_000,
    );
    let Some(stages) = stages else { return counted };
    let bytes = |class| counted.row(class).map_or(0.0, |row: &Row| row.bytes_per_second);
    let rows = Class::ALL.into_iter().filter_map(|class| row_of(class, stages, seconds, bytes(class)));
    DeviceFrame { rows: rows.collect(), ..counted }
}

/// A class of a device. What lies in several is of its own class alone; the sum of all is that of reads, writes and discards.
fn row_of(class: Class, stages: &OfDevice, seconds: f64, bytes_per_second: f64) -> Option<Row> {
    let classes: &[Class] = match class {
        Class::All => &[Class::Read, Class::Write, Class::Discard],
        _ => &[class],
    };
    let of = |stage: &str| {
        let mut sum = Histogram::new();
        for class in classes {
            let one = stages.get(&(class.name().to_string(), stage.to_string()));
            one.into_iter().flatten().for_each(|(low, n)| *sum.entry(*low).or_default() += n);
        }
        spread(&sum)
    };
    let (total, queue, device) = (of("g2c"), of("g2d"), of("d2c"));
    let whole = total.or(device)?;
    let means = queue.zip(device).map(|(queue, device)| (queue.mean_ns, device.mean_ns));
    Some(Row {
        class,
        ios: whole.count,
        iops: whole.count as f64 / seconds,
        bytes_per_second,
        errors: 0,
        total: Some(whole),
        queue,
        device,
        queue_share: means.map(|(queue_ns, device_ns)| queue_ns / (queue_ns + device_ns).max(1.0)),
        stages: device.map(|device| (Stage::D2C, device)).into_iter().collect(),
    })
}

/// Figures of buckets, each value taken for the lowest of its bucket, and the mean for the middle ones: to within an eighth.
fn spread(histogram: &Histogram) -> Option<Spread> {
    let count: i64 = histogram.values().sum();
    let at = |q: f64| quantile(histogram, q).and_then(|ns| u64::try_from(ns).ok());
    (count > 0).then(|| Spread {
        count: count as u64,
        mean_ns: mean(histogram, count),
        p50_ns: at(0.5),
        p99_ns: at(0.99),
        max_ns: at(1.0),
    })
}

fn mean(histogram: &Histogram, count: i64) -> f64 {
    histogram.iter().map(|(low, n)| *low as f64 * 1.0625 * *n as f64).sum::<f64>() / count.max(1) as f64
}

/// Share of the time in which tasks waited.
pub fn pressure(slot: &Slot, span_ms: i64) -> BTreeMap<String, PressureLoad> {
    let mut found = BTreeMap::new();
    for resource in ["cpu", "io", "memory"] {
        let percent = |kind: &str| {
            let us = slot.machine.get(&format!("pressure_{resource}_{kind}_us"))?;
            Some((*us as f64 / 10.0 / span_ms as f64).clamp(0.0, 100.0))
        };
        if let Some(some_percent) = percent("some") {
            let full_percent = percent("full").unwrap_or(0.0);
            found.insert(resource.to_string(), PressureLoad { some_percent, full_percent });
        }
    }
    found
}

/// Those that read, wrote or synced.
pub fn processes(slot: &Slot, span_ms: i64) -> Vec<Process> {
    let mut users: Vec<&User> = slot.processes.keys().chain(slot.users.keys()).collect();
    users.sort();
    users.dedup();
    let rate = |bytes: i64| bytes.max(0) as f64 * 1e3 / span_ms as f64;
    let process = |user: &User| {
        let (read, written) = slot.processes.get(user).copied().unwrap_or_default();
        Process {
            pid: None,
            name: user.comm.clone(),
            unit: (!user.unit.is_empty()).then(|| user.unit.clone()),
            read: Some(rate(read)),
            written: Some(rate(written)),
            syncs: slot.users.get(user).map(|syncs| anatomy(Some(user), syncs)),
        }
    };
    users.into_iter().map(process).collect()
}

/// All syncs of an interval; `None` where none was recorded: that there was none, or that they were not seen.
pub fn syncs(slot: &Slot, span_ms: i64) -> Option<Syncs> {
    let mut all = UserSlot::default();
    for user in slot.users.values() {
        user.latency.iter().for_each(|(low, n)| *all.latency.entry(*low).or_default() += n);
        user.waits.iter().for_each(|(key, ns)| *all.waits.entry(key.clone()).or_default() += ns);
        for (key, (ns, bytes)) in &user.behind {
            let sum = all.behind.entry(key.clone()).or_default();
            *sum = (sum.0 + ns, sum.1 + bytes);
        }
    }
    (!slot.users.is_empty()).then(|| Syncs {
        per_second: all.count() as f64 * 1e3 / span_ms as f64,
        under_way: 0,
        anatomy: anatomy(None, &all),
    })
}

fn anatomy(user: Option<&User>, syncs: &UserSlot) -> Anatomy {
    let wall_ns = syncs.wall_ns().max(0);
    let share = |ns: i64| ns.max(0) as f64 / wall_ns.max(1) as f64;
    let mut phases: BTreeMap<Phase, PhaseRow> = BTreeMap::new();
    for ((part, cause), ns) in &syncs.waits {
        let Some(phase) = by_word::<Phase>(part) else { continue };
        let row = phases.entry(phase).or_insert(PhaseRow { phase, share: 0.0, causes: Vec::new() });
        row.share += share(*ns);
        row.causes.extend(by_word::<Cause>(cause).map(|cause| (cause, share(*ns))));
    }
    let mut phases: Vec<PhaseRow> = phases.into_values().collect();
    phases.sort_by(|a, b| b.share.total_cmp(&a.share));
    let culprit = |((of, way), (ns, bytes)): (&(User, String), &(i64, i64))| {
        Some(Culprit {
            process: Who::new(None, &of.comm),
            processes: 1,
            way: by_word::<Way>(way)?,
            share: share(*ns),
            bytes: amount(Some(bytes)),
            ios: 0,
        })
    };
    let mut culprits: Vec<Culprit> = syncs.behind.iter().filter_map(culprit).collect();
    culprits.sort_by(|a, b| b.share.total_cmp(&a.share));
    let at = |q: f64| quantile(&syncs.latency, q).and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0);
    let count = syncs.count().max(0);
    Anatomy {
        process: user.map(|user| Who::new(None, &user.comm)),
        calls: Vec::new(),
        syncs: count as u64,
        short: 0,
        skimmed: 0,
        latency: Latency {
            mean_ns: mean(&syncs.latency, count),
            p50_ns: at(0.5),
            p95_ns: at(0.95),
            p99_ns: at(0.99),
            max_ns: at(1.0),
        },
        wall_ns: wall_ns as u64,
        explained: 1.0,
        phases,
        causes: Vec::new(),
        culprits,
        sites: Vec::new(),
    }
}
