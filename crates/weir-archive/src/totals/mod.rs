//! Sums since the recorder began, for a server of metrics: what rows of intervals add up to. Labels are bounded, and no sum of a
//! label ever falls.

mod histogram;
mod named;

use std::collections::BTreeMap;

use weir_core::printable;

pub use histogram::{BOUNDS_NS, Histogram};
pub use named::{Named, Sums};

use crate::interval::{NAMED_OF_UNIT_MAX, OTHERS, StageSum, Syncs, outer_unit};
use crate::stall::goes_on;
use crate::tables::{Counter, Event, Process, Stage, is_gauge};

/// Processes that are distinguished.
pub const PROCESSES_MAX: usize = 24;
/// Devices that are distinguished.
pub const DEVICES_MAX: usize = 16;

/// A process: its unit and its name, as a terminal may show them.
pub type Who = (String, String);

/// Rows of an interval.
#[derive(Debug, Default)]
pub struct Rows<'a> {
    /// The interval's length, ms.
    pub span_ms: i64,
    /// Stages of requests, ...
    pub stages: &'a [Stage],
    /// ... and how long all of a row's took.
    pub stage_sums: &'a [StageSum],
    /// Syncs.
    pub syncs: Option<&'a Syncs>,
    /// What processes moved.
    pub processes: &'a [Process],
    /// Counters and gauges.
    pub counters: &'a [Counter],
    /// Events.
    pub events: &'a [Event],
}

/// Sums since the recorder began.
#[derive(Debug)]
pub struct Totals {
    /// Intervals.
    pub intervals: u64,
    /// Syncs by process.
    pub syncs: Named<Who, OfSyncs>,
    /// Time of syncs behind others' I/O, by whose it was.
    pub behind: Named<Who, Amounts>,
    /// Bytes by process.
    pub processes: Named<Who, Amounts>,
    /// Durations of stages, by device; then by class and stage.
    pub stages: Named<String, Stages>,
    /// Counters by device.
    pub devices: Named<String, Amounts>,
    /// Counters of the machine and of the recorder.
    pub machine: BTreeMap<String, u64>,
    /// Gauges by device, empty for the machine, and by name; of the last interval.
    pub gauges: BTreeMap<(String, String), u64>,
    /// Events by kind.
    pub events: BTreeMap<String, u64>,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals {
            intervals: 0,
            syncs: by_unit(),
            behind: by_unit(),
            processes: by_unit(),
            stages: Named::new(DEVICES_MAX),
            devices: Named::new(DEVICES_MAX),
            machine: BTreeMap::new(),
            gauges: BTreeMap::new(),
            events: BTreeMap::new(),
        }
    }
}

/// Sums of a process's syncs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfSyncs {
    /// How long they took.
    pub latency: Histogram,
    /// What for: time by part and cause, ns.
    pub waits: BTreeMap<(String, String), u64>,
}

impl Sums for OfSyncs {
    fn add(&mut self, more: &OfSyncs) {
        self.latency.add(&more.latency);
        more.waits.iter().for_each(|(key, ns)| *self.waits.entry(key.clone()).or_default() += ns);
    }
}

/// Amounts by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Amounts(pub BTreeMap<String, u64>);

impl Sums for Amounts {
    fn add(&mut self, more: &Amounts) {
        more.0.iter().for_each(|(name, amount)| *self.0.entry(name.clone()).or_default() += amount);
    }
}

/// Durations by class and stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stages(pub BTreeMap<(String, String), Histogram>);

impl Sums for Stages {
    fn add(&mut self, more: &Stages) {
        more.0.iter().for_each(|(key, histogram)| self.0.entry(key.clone()).or_default().add(histogram));
    }
}

/// What an interval adds, by key; and by how much a key counts when some have to be chosen.
type Fresh<K, V> = BTreeMap<K, (V, f64)>;

/// Of processes, of which a unit has a share.
fn by_unit<V: Sums>() -> Named<Who, V> {
    Named::in_groups(PROCESSES_MAX, NAMED_OF_UNIT_MAX, |(unit, _)| outer_unit(unit))
}

fn who(unit: &str, comm: &str) -> Option<Who> {
    let is_rest = unit.is_empty() && comm == OTHERS;
    (!is_rest).then(|| (printable::line(unit).into_owned(), printable::line(comm).into_owned()))
}

fn amount(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

impl Totals {
    /// A copy to be shown: sums of keys that have lost their place are not among it.
    pub fn shown(&self) -> Totals {
        Totals {
            intervals: self.intervals,
            syncs: self.syncs.shown(),
            behind: self.behind.shown(),
            processes: self.processes.shown(),
            stages: self.stages.shown(),
            devices: self.devices.shown(),
            machine: self.machine.clone(),
            gauges: self.gauges.clone(),
            events: self.events.clone(),
        }
    }

    /// Adds an interval.
    pub fn take(&mut self, rows: &Rows<'_>) {
        self.intervals += 1;
        if let Some(syncs) = rows.syncs {
            self.syncs(rows.span_ms, syncs);
        }
        let mut moved: Fresh<Option<Who>, Amounts> = BTreeMap::new();
        for row in rows.processes {
            let (sums, weight) = moved.entry(who(&row.unit, &row.comm)).or_default();
            for (name, value) in [("read", row.read_bytes), ("written", row.written_bytes)] {
                *sums.0.entry(name.to_string()).or_default() += amount(value);
                *weight += value as f64;
            }
        }
        self.processes.take(rows.span_ms, moved);
        self.stages(rows);
        self.counters(rows);
        // A stall counts when it begins; of one that is over the interval has another event.
        for event in rows.events.iter().filter(|event| event.kind != "stall" || goes_on(event)) {
            *self.events.entry(event.kind.clone()).or_default() += 1;
        }
    }

    fn syncs(&mut self, span_ms: i64, syncs: &Syncs) {
        let mut fresh: Fresh<Option<Who>, OfSyncs> = BTreeMap::new();
        for row in &syncs.syncs {
            let (sums, _) = fresh.entry(who(&row.unit, &row.comm)).or_default();
            sums.latency.count(row.bucket_low_ns, amount(row.count));
        }
        for row in &syncs.waits {
            let (sums, weight) = fresh.entry(who(&row.unit, &row.comm)).or_default();
            *sums.waits.entry((row.part.clone(), row.cause.clone())).or_default() += amount(row.ns);
            sums.latency.lasted(amount(row.ns));
            *weight += row.ns as f64;
        }
        self.syncs.take(span_ms, fresh);
        let mut behind: Fresh<Option<Who>, Amounts> = BTreeMap::new();
        for row in &syncs.behind {
            let (sums, weight) = behind.entry(who(&row.culprit_unit, &row.culprit)).or_default();
            *sums.0.entry(row.way.clone()).or_default() += amount(row.ns);
            *weight += row.ns as f64;
        }
        self.behind.take(span_ms, behind);
    }

    fn stages(&mut self, rows: &Rows<'_>) {
        let mut fresh: Fresh<Option<String>, Stages> = BTreeMap::new();
        for row in rows.stages {
            let (sums, weight) = fresh.entry(Some(row.device.clone())).or_default();
            let of = sums.0.entry((row.class.clone(), row.stage.clone())).or_default();
            of.count(row.bucket_low_ns, amount(row.count));
            *weight += row.count as f64;
        }
        for row in rows.stage_sums {
            let (sums, _) = fresh.entry(Some(row.device.clone())).or_default();
            sums.0.entry((row.class.to_string(), row.stage.to_string())).or_default().lasted(row.ns);
        }
        self.stages.take(rows.span_ms, fresh);
    }

    fn counters(&mut self, rows: &Rows<'_>) {
        self.gauges.clear();
        let mut fresh: Fresh<Option<String>, Amounts> = BTreeMap::new();
        for row in rows.counters {
            let value = amount(row.value);
            match (is_gauge(&row.name), row.device.as_str()) {
                (true, _) => _ = self.gauges.insert((row.device.clone(), row.name.clone()), value),
                (false, "") => *self.machine.entry(row.name.clone()).or_default() += value,
                (false, _) => {
                    let (sums, weight) = fresh.entry(Some(row.device.clone())).or_default();
                    *sums.0.entry(row.name.clone()).or_default() += value;
                    *weight += if row.name.ends_with("_bytes") { row.value as f64 } else { 0.0 };
                }
            }
        }
        self.devices.take(rows.span_ms, fresh);
    }
}

#[cfg(test)]
mod tests;
