//! The archive's rows as a course of intervals: what the verdict looks at.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::batch::{Batch, Column, Texts};
use crate::tables::{Event, Row};

/// Lowest value and count of buckets.
pub type Histogram = BTreeMap<i64, i64>;

/// The value of rank ⌊q·n⌋, to within its bucket: its lowest. `None` where nothing was counted.
pub fn quantile(histogram: &Histogram, q: f64) -> Option<i64> {
    let count: i64 = histogram.values().sum();
    let rank = ((count as f64 * q) as i64).min(count - 1);
    let mut passed = 0;
    histogram
        .iter()
        .find(|(_, n)| {
            passed += **n;
            passed > rank
        })
        .map(|(low, _)| *low)
}

/// Whose syncs: a unit, or where there is none a process's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct User {
    /// The process's name.
    pub comm: String,
    /// Its unit; empty where it has none.
    pub unit: String,
}

impl User {
    /// One without a unit.
    pub fn named(comm: &str) -> User {
        User { comm: comm.to_string(), ..User::default() }
    }

    /// Both, from rows.
    pub fn of(comm: &str, unit: &str) -> User {
        User { comm: comm.to_string(), unit: unit.to_string() }
    }
}

impl std::fmt::Display for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.unit.as_str() {
            "" => write!(f, "{}", self.comm),
            unit => write!(f, "{} ({unit})", self.comm),
        }
    }
}

/// Syncs of a user in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserSlot {
    /// How long they took.
    pub latency: Histogram,
    /// Time by part and cause, ns.
    pub waits: BTreeMap<(String, String), i64>,
    /// Behind whose I/O: time and bytes by culprit and way.
    pub behind: BTreeMap<(User, String), (i64, i64)>,
}

impl UserSlot {
    /// Syncs that returned.
    pub fn count(&self) -> i64 {
        self.latency.values().sum()
    }

    /// Time inside syncs, ns, summed over threads.
    pub fn wall_ns(&self) -> i64 {
        self.waits.values().sum()
    }
}

/// A device in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceSlot {
    /// Time in driver and device of what moves data, where programs watched.
    pub in_device: Histogram,
    /// Its counters.
    pub counters: BTreeMap<String, i64>,
}

impl DeviceSlot {
    /// A counter; 0 where it was not read.
    pub fn counter(&self, name: &str) -> i64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Requests of reads and writes.
    pub fn requests(&self) -> i64 {
        self.counter("reads") + self.counter("writes")
    }

    /// Bytes that they moved.
    pub fn bytes(&self) -> i64 {
        self.counter("read_bytes") + self.counter("write_bytes")
    }

    /// Mean time of a request from its start to its end, ns; `None` without requests.
    pub fn mean_ns(&self) -> Option<i64> {
        let ms = self.counter("read_ms") + self.counter("write_ms");
        (self.requests() > 0).then(|| ms.saturating_mul(1_000_000) / self.requests())
    }
}

/// An interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slot {
    /// Its length, ms.
    pub span_ms: i64,
    /// Devices by name.
    pub devices: BTreeMap<String, DeviceSlot>,
    /// Who synced.
    pub users: BTreeMap<User, UserSlot>,
    /// Read and written bytes of processes.
    pub processes: BTreeMap<User, (i64, i64)>,
    /// Counters of the machine.
    pub machine: BTreeMap<String, i64>,
}

/// Which rows are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// From then on, Unix time, ms.
    pub since_ms: i64,
    /// Until then.
    pub until_ms: i64,
    /// Only this device.
    pub device: Option<String>,
    /// Only syncs of this unit, or of processes of this name.
    pub unit: Option<String>,
}

impl Wanted {
    fn has_time(&self, ts_ms: i64) -> bool {
        ts_ms >= self.since_ms && ts_ms < self.until_ms
    }

    fn has_device(&self, device: &str) -> bool {
        self.device.as_deref().is_none_or(|wanted| wanted == device)
    }

    fn has_user(&self, comm: &str, unit: &str) -> bool {
        let stem = |unit: &str| unit.strip_suffix(".service").unwrap_or(unit).to_string();
        self.unit.as_deref().is_none_or(|wanted| wanted == comm || wanted == unit || wanted == stem(unit))
    }

    /// All others than syncs and stalls may be the cause of something, whatever is asked about.
    fn has_event(&self, events: &Columns<'_>, row: usize) -> bool {
        let text = |name| events.text(name, row);
        let is_meant = match text("kind") {
            "slow_sync" => self.has_user(text("comm"), text("unit")),
            "stall" => self.has_device(text("device")),
            _ => true,
        };
        is_meant && self.has_time(events.integers("ts_ms")[row])
    }
}

/// A course of intervals by their start, and what happened in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    /// Intervals by their start, Unix time, ms.
    pub slots: BTreeMap<i64, Slot>,
    /// Events, in order of time once [`Series::sort`] was called.
    pub events: Vec<Event>,
    /// Events for which there was no space.
    pub left_out: u64,
    /// The unit, or name of processes, whose syncs alone were wanted.
    pub unit: Option<String>,
    /// Whether there were syncs of others than that.
    pub has_others: bool,
    /// The device that alone was wanted.
    pub device: Option<String>,
    /// Whether rows were left out because there was no space for them: then it says nothing about its time.
    pub is_cut: bool,
    event_bytes: usize,
    slot_bytes: usize,
    /// What a row of the batch at hand adds to that.
    entry_bytes: usize,
}

/// Events that are held, bytes: a slow sync's take about 2 KiB.
const EVENT_BYTES_MAX: usize = 256 << 20;
/// Intervals that are held, bytes: some days of a machine with many units.
pub const SLOT_BYTES_MAX: usize = 1 << 30;

/// What a row of a table takes with its names, roughly: each adds an entry to its interval.
fn entry_bytes(table: &str) -> usize {
    match table {
        "behind" => 320,
        "waits" | "processes" => 192,
        "counters" => 128,
        _ => 48,
    }
}

/// Columns of a batch by name, checked once.
struct Columns<'a>(&'a Batch);

impl<'a> Columns<'a> {
    fn integers(&self, name: &str) -> &'a [i64] {
        match self.0.column(name) {
            Some(Column::Integers(values)) => values,
            _ => &[],
        }
    }

    fn text(&self, name: &str, row: usize) -> &'a str {
        self.0.column(name).map_or("", |column| column.text(row))
    }
}

/// What two columns of names make together: made once for each pair, since there are few and rows are many.
struct Pairs<'a, T, F> {
    columns: [Option<&'a Texts>; 2],
    made: HashMap<[u32; 2], T>,
    make: F,
}

impl<'a, T, F: Fn(&str, &str) -> T> Pairs<'a, T, F> {
    fn of(batch: &'a Batch, names: [&str; 2], make: F) -> Pairs<'a, T, F> {
        let texts = |name| match batch.column(name) {
            Some(Column::Texts(texts)) => Some(texts),
            _ => None,
        };
        Pairs { columns: names.map(texts), made: HashMap::new(), make }
    }

    fn get(&mut self, row: usize) -> &T {
        let code =
            |texts: Option<&Texts>| texts.and_then(|texts| texts.codes().get(row).copied()).unwrap_or(0);
        let text = |texts: Option<&'a Texts>| texts.map_or("", |texts| texts.get(row));
        let [first, second] = self.columns;
        let made = self.made.entry([code(first), code(second)]);
        made.or_insert_with(|| (self.make)(text(first), text(second)))
    }
}

/// Changes the value of a key, which is made if it is not there; the key is copied only then.
fn change<K: Ord + Clone, V: Default>(map: &mut BTreeMap<K, V>, key: &K, change: impl FnOnce(&mut V)) {
    match map.get_mut(key) {
        Some(value) => change(value),
        None => change(map.entry(key.clone()).or_default()),
    }
}

impl Series {
    /// Adds the rows of a batch that are wanted, as long as there is space.
    pub fn take(&mut self, batch: &Batch, wanted: &Wanted) {
        self.unit.clone_from(&wanted.unit);
        self.device.clone_from(&wanted.device);
        self.is_cut |= self.slot_bytes > SLOT_BYTES_MAX;
        let table = batch.table().name;
        self.entry_bytes = entry_bytes(table);
        match table {
            "events" => {
                let rows = (0..batch.rows()).filter(|row| wanted.has_event(&Columns(batch), *row));
                rows.for_each(|row| self.event(batch, row));
            }
            _ if self.is_cut => {}
            "stages" => self.stages(batch, wanted),
            "syncs" => self.syncs(batch, wanted),
            "waits" => self.waits(batch, wanted),
            "behind" => self.behind(batch, wanted),
            "processes" => self.processes(batch, wanted),
            "counters" => self.counters(batch, wanted),
            _ => {}
        }
    }

    fn event(&mut self, batch: &Batch, row: usize) {
        let texts: usize = batch.columns().iter().map(|column| column.text(row).len()).sum();
        let bytes = self.event_bytes.saturating_add(size_of::<Event>() + texts);
        if bytes > EVENT_BYTES_MAX {
            self.left_out += 1;
            return;
        }
        self.event_bytes = bytes;
        self.events.push(Event::get(batch, row));
    }

    /// Puts events in order of time. Of those of one stall, which is told when it begins and when it is over, the longest stays.
    pub fn sort(&mut self) {
        self.events.sort_by_key(|event| event.ts_ms);
        let stall = |event: &Event| (event.kind == "stall").then(|| (event.ts_ms, event.device.clone()));
        let mut longest: BTreeMap<(i64, String), i64> = BTreeMap::new();
        for event in &self.events {
            if let Some(stall) = stall(event) {
                let took_ns = longest.entry(stall).or_insert(event.took_ns);
                *took_ns = event.took_ns.max(*took_ns);
            }
        }
        self.events.retain(|event| match stall(event) {
            Some(stall) if longest.get(&stall) == Some(&event.took_ns) => longest.remove(&stall).is_some(),
            Some(_) => false,
            None => true,
        });
    }

    /// Devices that have any rows.
    pub fn devices(&self) -> BTreeSet<&str> {
        self.slots.values().flat_map(|slot| slot.devices.keys().map(String::as_str)).collect()
    }

    /// Everybody who synced.
    pub fn users(&self) -> BTreeSet<&User> {
        self.slots.values().flat_map(|slot| slot.users.keys()).collect()
    }

    /// The interval of a row that is wanted.
    fn slot(&mut self, ts_ms: i64, span_ms: i64) -> &mut Slot {
        self.slot_bytes = self.slot_bytes.saturating_add(self.entry_bytes);
        let slot = self.slots.entry(ts_ms).or_default();
        slot.span_ms = slot.span_ms.max(span_ms);
        slot
    }

    /// By far the most rows: names are compared once for each that a batch holds, not for each row.
    fn stages(&mut self, batch: &Batch, wanted: &Wanted) {
        let columns = Columns(batch);
        let (times, spans) = (columns.integers("ts_ms"), columns.integers("span_ms"));
        let (lows, counts) = (columns.integers("bucket_low_ns"), columns.integers("count"));
        let [Some(Column::Texts(devices)), Some(Column::Texts(classes)), Some(Column::Texts(stages))] =
            ["device", "class", "stage"].map(|name| batch.column(name))
        else {
            return;
        };
        let is = |texts: &Texts, check: &dyn Fn(&str) -> bool| -> Vec<bool> {
            texts.words().iter().map(|word| check(word)).collect()
        };
        let of_device = is(devices, &|word| wanted.has_device(word));
        let of_class = is(classes, &|word| matches!(word, "read" | "write"));
        let of_stage = is(stages, &|word| word == "d2c");
        for row in 0..batch.rows() {
            let has = |texts: &Texts, flags: &[bool]| flags[texts.codes()[row] as usize];
            if wanted.has_time(times[row])
                && has(stages, &of_stage)
                && has(classes, &of_class)
                && has(devices, &of_device)
            {
                let slot = self.slot(times[row], spans[row]);
                let device = match slot.devices.get_mut(devices.get(row)) {
                    Some(device) => device,
                    None => slot.devices.entry(devices.get(row).to_string()).or_default(),
                };
                *device.in_device.entry(lows[row]).or_default() += counts[row];
            }
        }
    }

    fn syncs(&mut self, batch: &Batch, wanted: &Wanted) {
        let columns = Columns(batch);
        let (times, spans) = (columns.integers("ts_ms"), columns.integers("span_ms"));
        let (lows, counts) = (columns.integers("bucket_low_ns"), columns.integers("count"));
        let mut users = Pairs::of(batch, ["comm", "unit"], User::of);
        for row in (0..batch.rows()).filter(|row| wanted.has_time(times[*row])) {
            let user = users.get(row);
            if wanted.has_user(&user.comm, &user.unit) {
                let count = |slot: &mut UserSlot| *slot.latency.entry(lows[row]).or_default() += counts[row];
                change(&mut self.slot(times[row], spans[row]).users, user, count);
            } else {
                self.has_others = true;
            }
        }
    }

    fn waits(&mut self, batch: &Batch, wanted: &Wanted) {
        let columns = Columns(batch);
        let (times, spans) = (columns.integers("ts_ms"), columns.integers("span_ms"));
        let ns = columns.integers("ns");
        let mut users = Pairs::of(batch, ["comm", "unit"], User::of);
        let mut parts =
            Pairs::of(batch, ["part", "cause"], |part, cause| (part.to_string(), cause.to_string()));
        for row in (0..batch.rows()).filter(|row| wanted.has_time(times[*row])) {
            let user = users.get(row);
            if wanted.has_user(&user.comm, &user.unit) {
                let part = parts.get(row);
                let add = |slot: &mut UserSlot| change(&mut slot.waits, part, |sum| *sum += ns[row]);
                change(&mut self.slot(times[row], spans[row]).users, user, add);
            } else {
                self.has_others = true;
            }
        }
    }

    fn behind(&mut self, batch: &Batch, wanted: &Wanted) {
        let columns = Columns(batch);
        let (times, spans) = (columns.integers("ts_ms"), columns.integers("span_ms"));
        let (ns, bytes) = (columns.integers("ns"), columns.integers("bytes"));
        let mut users = Pairs::of(batch, ["comm", "unit"], User::of);
        let mut culprits = Pairs::of(batch, ["culprit", "culprit_unit"], User::of);
        for row in (0..batch.rows()).filter(|row| wanted.has_time(times[*row])) {
            let user = users.get(row);
            if wanted.has_user(&user.comm, &user.unit) {
                let key = (culprits.get(row).clone(), columns.text("way", row).to_string());
                let add = |slot: &mut UserSlot| {
                    let sum = slot.behind.entry(key).or_default();
                    *sum = (sum.0 + ns[row], sum.1 + bytes[row]);
                };
                change(&mut self.slot(times[row], spans[row]).users, user, add);
            }
        }
    }

    fn processes(&mut self, batch: &Batch, wanted: &Wanted) {
        let columns = Columns(batch);
        let (times, spans) = (columns.integers("ts_ms"), columns.integers("span_ms"));
        let (read, written) = (columns.integers("read_bytes"), columns.integers("written_bytes"));
        let mut users = Pairs::of(batch, ["comm", "unit"], User::of);
        for row in (0..batch.rows()).filter(|row| wanted.has_time(times[*row])) {
            let add = |sum: &mut (i64, i64)| *sum = (sum.0 + read[row], sum.1 + written[row]);
            change(&mut self.slot(times[row], spans[row]).processes, users.get(row), add);
        }
    }

    fn counters(&mut self, batch: &Batch, wanted: &Wanted) {
        let columns = Columns(batch);
        let (times, spans) = (columns.integers("ts_ms"), columns.integers("span_ms"));
        let values = columns.integers("value");
        for row in 0..batch.rows() {
            let (device, name) = (columns.text("device", row), columns.text("name", row));
            if !wanted.has_time(times[row]) || !(device.is_empty() || wanted.has_device(device)) {
                continue;
            }
            let slot = self.slot(times[row], spans[row]);
            let set = |counters: &mut BTreeMap<String, i64>| match counters.get_mut(name) {
                Some(value) => *value = values[row],
                None => _ = counters.insert(name.to_string(), values[row]),
            };
            match slot.devices.get_mut(device) {
                _ if device.is_empty() => set(&mut slot.machine),
                Some(known) => set(&mut known.counters),
                None => set(&mut slot.devices.entry(device.to_string()).or_default().counters),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Behind, Counter, Stage, Sync};

    #[test]
    fn rows_meet_in_their_intervals_and_others_are_left_out() {
        let wanted = Wanted {
            since_ms: 10,
            until_ms: 30,
            device: Some("sda".to_string()),
            unit: Some("db".to_string()),
        };
        let stage = |ts_ms, device: &str, class: &str, count| Stage {
            ts_ms,
            span_ms: 10,
            device: device.into(),
            class: class.into(),
            stage: "d2c".into(),
            bucket_low_ns: 1000,
            count,
        };
        let sync = |comm: &str, unit: &str, count| Sync {
            ts_ms: 10,
            comm: comm.into(),
            unit: unit.into(),
            bucket_low_ns: 7,
            count,
            ..Sync::default()
        };
        let mut series = Series::default();
        let stages = [
            stage(10, "sda", "read", 2),
            stage(10, "sda", "write", 3),
            stage(10, "sda", "sync_write", 3),
            stage(10, "sdb", "write", 5),
            stage(30, "sda", "write", 7),
        ];
        series.take(&Stage::batch(&stages), &wanted);
        series
            .take(&Sync::batch(&[sync("x", "db.service", 4), sync("y", "", 9), sync("db", "", 1)]), &wanted);
        let reads =
            Counter { ts_ms: 20, device: "sda".into(), name: "reads".into(), value: 6, ..Counter::default() };
        series.take(&Counter::batch(&[reads]), &wanted);
        let event = |ts_ms| Event { ts_ms, kind: "knob".into(), ..Event::default() };
        series.take(&Event::batch(&[event(9), event(10), event(29), event(30)]), &wanted);
        assert_eq!(series.events, [event(10), event(29)]);
        assert_eq!((series.unit.as_deref(), series.has_others), (Some("db"), true));
        assert_eq!(series.slots.keys().collect::<Vec<_>>(), [&10, &20]);
        assert_eq!(series.slots[&10].devices["sda"].in_device, Histogram::from([(1000, 5)]));
        assert_eq!(series.slots[&10].users.values().map(UserSlot::count).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(series.slots[&20].devices["sda"].requests(), 6);
        assert_eq!(series.devices(), BTreeSet::from(["sda"]));
    }

    #[test]
    fn slow_syncs_are_the_units_and_stalls_the_devices() {
        let event = |kind: &str, device: &str, comm: &str, unit: &str| Event {
            kind: kind.into(),
            device: device.into(),
            comm: comm.into(),
            unit: unit.into(),
            ..Event::default()
        };
        let own = [
            event("slow_sync", "sda", "mariadbd", "db.service"),
            event("slow_sync", "", "db", ""),
            event("stall", "sda", "", ""),
            event("knob", "", "", ""),
            event("guard", "sdb", "", ""),
            event("clock", "", "", ""),
        ];
        let others = [event("slow_sync", "sda", "dd", "backup.service"), event("stall", "sdb", "", "")];
        let wanted = Wanted {
            until_ms: 1,
            device: Some("sda".to_string()),
            unit: Some("db".to_string()),
            ..Wanted::default()
        };
        let mut series = Series::default();
        series.take(&Event::batch(&[&others[..], &own].concat()), &wanted);
        assert_eq!(series.events, own);
        let all = Wanted { until_ms: 1, ..Wanted::default() };
        let mut series = Series::default();
        series.take(&Event::batch(&others), &all);
        assert_eq!((&series.events[..], series.unit), (&others[..], None));
    }

    #[test]
    fn events_take_a_bounded_space() {
        let detail = "x".repeat(1 << 20);
        let events: Vec<Event> =
            (0..300).map(|ts_ms| Event { ts_ms, detail: detail.clone(), ..Event::default() }).collect();
        let wanted = Wanted { until_ms: 1000, ..Wanted::default() };
        let mut series = Series::default();
        series.take(&Event::batch(&events), &wanted);
        assert_eq!((series.events.len(), series.left_out), (255, 45));
    }

    #[test]
    fn intervals_take_a_bounded_space() {
        let row = |ts_ms| Behind { ts_ms, comm: "db".into(), culprit: "dd".into(), ..Behind::default() };
        let batch = Behind::batch(&(0..1000).map(row).collect::<Vec<_>>());
        let wanted = Wanted { until_ms: 1000, ..Wanted::default() };
        let mut series = Series { slot_bytes: SLOT_BYTES_MAX - 1000, ..Series::default() };
        series.take(&batch, &wanted);
        assert!(!series.is_cut, "all of a batch is taken");
        let held = series.slots.clone();
        series.take(&batch, &wanted);
        assert!(series.is_cut && series.slots == held);
        // What is not wanted takes none.
        let mut series = Series::default();
        series.take(&batch, &Wanted { unit: Some("other".into()), ..wanted });
        assert_eq!(series.slot_bytes, 0);
    }

    #[test]
    fn a_stall_is_told_once_as_long_as_it_was() {
        let event = |ts_ms, device: &str, took_ns| Event {
            ts_ms,
            kind: "stall".into(),
            device: device.into(),
            took_ns,
            ..Event::default()
        };
        let knob = Event { ts_ms: 5, kind: "knob".into(), ..Event::default() };
        let events = [
            event(7, "sda", 1),
            event(5, "sda", 1),
            event(5, "sdb", 2),
            knob.clone(),
            event(5, "sda", 9),
            event(5, "sdb", 2),
        ];
        let mut series = Series { events: events.into(), ..Series::default() };
        series.sort();
        assert_eq!(series.events, [event(5, "sdb", 2), knob, event(5, "sda", 9), event(7, "sda", 1)]);
    }

    #[test]
    fn quantiles_are_of_the_bucket() {
        let histogram = Histogram::from([(10, 98), (100, 1), (1000, 1)]);
        assert_eq!(quantile(&histogram, 0.5), Some(10));
        assert_eq!(quantile(&histogram, 0.98), Some(100));
        assert_eq!(quantile(&histogram, 0.99), Some(1000));
        assert_eq!(quantile(&histogram, 1.0), Some(1000));
        assert_eq!(quantile(&Histogram::new(), 0.5), None);
    }
}
