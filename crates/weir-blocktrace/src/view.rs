//! What a live view shows: the figures of one interval by device and class, and the last minute of them.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::class::Class;
use super::life::Piece;
use super::stage::Stage;
use super::table::{Cell, StageTable};
use weir_core::stats::Distribution;
use weir_core::target::{DeviceLoad, DeviceNumber, Layer, MemoryLoad, Throttle};
use weir_core::units::{megabytes_per_second, per_second};

/// Where live figures come from, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Programs in the kernel count stages there.
    Bpf,
    /// Events of the kernel's own tracer, matched here.
    Tracefs,
    /// The kernel's counters alone.
    Diskstats,
}

impl Source {
    /// As typed and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Source::Bpf => "bpf",
            Source::Tracefs => "tracefs",
            Source::Diskstats => "diskstats",
        }
    }

    /// What it cannot show that a better source could, in a sentence; nothing for the best.
    pub fn loses(self) -> Option<&'static str> {
        match self {
            Source::Bpf => None,
            Source::Tracefs => Some(
                "no cgroups; each event costs time in the kernel and again here, and a burst can overrun its buffer",
            ),
            Source::Diskstats => Some(
                "no percentiles, no stages (the wait in the queue cannot be told from the device's time), no slow requests, no processes",
            ),
        }
    }
}

/// A duration's distribution in four figures; those that a source cannot tell are absent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many durations.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// Longest.
    pub max_ns: Option<u64>,
}

impl Spread {
    fn of(distribution: &Distribution) -> Option<Spread> {
        let [p50_ns, p99_ns] = distribution.quantiles([0.5, 0.99]);
        (!distribution.is_empty()).then(|| Spread {
            count: distribution.count(),
            mean_ns: distribution.mean_ns(),
            p50_ns: Some(p50_ns),
            p99_ns: Some(p99_ns),
            max_ns: Some(distribution.max_ns()),
        })
    }

    fn of_mean(count: u64, mean_ns: f64) -> Spread {
        Spread { count, mean_ns, p50_ns: None, p99_ns: None, max_ns: None }
    }
}

/// One class of I/O on one device in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The class.
    pub class: Class,
    /// I/Os finished.
    pub ios: u64,
    /// The same per second.
    pub iops: f64,
    /// Data moved or discarded.
    pub bytes_per_second: f64,
    /// I/Os that failed.
    pub errors: u64,
    /// From the queue to completion: what iostat calls await.
    pub total: Option<Spread>,
    /// Before the driver.
    pub queue: Option<Spread>,
    /// Driver and device.
    pub device: Option<Spread>,
    /// Share of the time that was spent before the driver, 0..1.
    pub queue_share: Option<f64>,
    /// Every single stage that was seen, in the order of an I/O's life.
    pub stages: Vec<(Stage, Spread)>,
}

impl Row {
    fn of_cell(class: Class, cell: &Cell, seconds: f64) -> Row {
        // Without Q, a request's own time stands for all of it.
        let first = |stages: [Stage; 2]| stages.into_iter().find_map(|stage| Spread::of(cell.stage(stage)));
        let (total, queue) = (first([Stage::Q2C, Stage::G2C]), first([Stage::Q2D, Stage::G2DAll]));
        let device = Spread::of(cell.stage(Stage::D2C));
        // Where the time before the driver has no distribution of its own, it is what the device did not take.
        let rest = total.zip(device).filter(|(total, device)| total.count == device.count);
        let rest = rest.map(|(t, d)| Spread::of_mean(t.count, (t.mean_ns - d.mean_ns).max(0.0)));
        let queue = queue.or(rest);
        let means = queue.zip(device).map(|(queue, device)| (queue.mean_ns, device.mean_ns));
        let single = [Stage::Q2G, Stage::G2I, Stage::G2D, Stage::I2D, Stage::Q2M, Stage::M2D, Stage::D2C];
        let total = total
            .or_else(|| means.map(|(queue_ns, device_ns)| Spread::of_mean(cell.ios, queue_ns + device_ns)));
        let share = |(queue_ns, device_ns): (f64, f64)| queue_ns / (queue_ns + device_ns).max(1.0);
        Row {
            class,
            ios: cell.ios,
            iops: cell.ios as f64 / seconds,
            bytes_per_second: cell.bytes as f64 / seconds,
            errors: cell.errors,
            total: total.or(device),
            queue,
            device,
            queue_share: means.map(share),
            stages: single
                .into_iter()
                .filter_map(|stage| Some((stage, Spread::of(cell.stage(stage))?)))
                .collect(),
        }
    }

    fn of_counters(class: Class, iops: f64, bytes_per_second: f64, wait_ms: f64, seconds: f64) -> Row {
        let ios = (iops * seconds).round() as u64;
        Row {
            class,
            ios,
            iops,
            bytes_per_second,
            errors: 0,
            total: (ios > 0).then(|| Spread::of_mean(ios, wait_ms * 1e6)),
            queue: None,
            device: None,
            queue_share: None,
            stages: Vec::new(),
        }
    }
}

/// One device in one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceFrame {
    /// Device.
    pub number: DeviceNumber,
    /// The kernel's name.
    pub name: String,
    /// The kernel's counters: %util, mean depth.
    pub load: DeviceLoad,
    /// Limits in force on it.
    pub limits: Vec<LimitUse>,
    /// Classes that had any I/O, in the order of reports.
    pub rows: Vec<Row>,
}

/// A limit on a device that weir's own cgroup has or one above it, and what all cgroups did beside it. An I/O that waits for a limit
/// waits before Q: no stage holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitUse {
    /// The cgroup.
    pub cgroup: String,
    /// In the words of cgroup v2: `rbps`, `wbps` (bytes/s), `riops`, `wiops` (operations/s).
    pub what: String,
    /// The limit.
    pub limit: u64,
    /// What the whole device did, per second.
    pub done: f64,
}

impl LimitUse {
    /// In words. What the device did is no share of the limit: other cgroups' I/O is in it.
    pub fn words(&self) -> String {
        let kind = if self.what.starts_with('r') { "reads" } else { "writes" };
        let rate = |rate: f64| match self.what.as_str() {
            "rbps" | "wbps" => megabytes_per_second(rate),
            _ => format!("{}/s", per_second(rate)),
        };
        let (cgroup, limit, done) = (&self.cgroup, rate(self.limit as f64), rate(self.done));
        format!(
            "the cgroup {cgroup}, weir's own or above it, limits {kind} to {limit} (all on the device: {done})"
        )
    }

    /// Rates of a device against the limits on it; targets of latency are no limits.
    fn of(device: &str, load: &DeviceLoad, throttles: &[Throttle]) -> Vec<LimitUse> {
        let done = |what: &str| match what {
            "rbps" => Some(load.read_bytes_per_second),
            "wbps" => Some(load.write_bytes_per_second),
            "riops" => Some(load.reads_per_second),
            "wiops" => Some(load.writes_per_second),
            _ => None,
        };
        let of_device = throttles.iter().filter(|throttle| throttle.device == device);
        let each =
            of_device.flat_map(|t| t.limits.iter().map(move |(what, limit)| (&t.cgroup, what, *limit)));
        each.filter_map(|(cgroup, what, limit)| {
            Some(LimitUse { cgroup: cgroup.clone(), what: what.clone(), limit, done: done(what)? })
        })
        .collect()
    }
}

impl DeviceFrame {
    /// From the interval's counters and, where the source has one, its table.
    pub fn new(device: &Layer, load: DeviceLoad, table: Option<&StageTable>, length_ns: u64) -> DeviceFrame {
        let seconds = (length_ns as f64 / 1e9).max(1e-9);
        let rows = match table {
            Some(table) => rows_of_table(table, device.number, seconds),
            None => rows_of_counters(&load, seconds),
        };
        DeviceFrame { number: device.number, name: device.name.clone(), load, limits: Vec::new(), rows }
    }

    /// The same with the limits among `throttles` that are on it.
    pub fn limited(self, throttles: &[Throttle]) -> DeviceFrame {
        DeviceFrame { limits: LimitUse::of(&self.name, &self.load, throttles), ..self }
    }

    /// The time of all its I/Os, or of its only class; absent without I/O.
    pub fn total(&self) -> Option<Spread> {
        self.row(Class::All).or(self.rows.first()).and_then(|row| row.total)
    }

    /// The 99th percentile of all its I/Os, or the mean where there is none, ns; absent without I/O.
    pub fn tail_ns(&self) -> Option<f64> {
        self.total().map(|total| total.p99_ns.map_or(total.mean_ns, |p99_ns| p99_ns as f64))
    }

    /// A class's row, where it had any I/O.
    pub fn row(&self, class: Class) -> Option<&Row> {
        self.rows.iter().find(|row| row.class == class)
    }

    /// Reads, writes and discards per second, as the kernel counts them.
    pub fn iops(&self) -> f64 {
        self.load.reads_per_second + self.load.writes_per_second + self.load.discards_per_second
    }

    /// Bytes read and written per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.load.read_bytes_per_second + self.load.write_bytes_per_second
    }

    /// Whether I/Os are counted of which none was followed.
    pub fn is_unfollowed(&self) -> bool {
        self.rows.is_empty() && self.iops() > 0.0
    }

    /// Whether anything happened or is under way.
    pub fn is_idle(&self) -> bool {
        self.rows.is_empty() && self.load.in_flight == 0 && self.iops() + self.load.flushes_per_second == 0.0
    }
}

fn rows_of_table(table: &StageTable, device: DeviceNumber, seconds: f64) -> Vec<Row> {
    let cells = Class::ALL.into_iter().map(|class| (class, table.of_class(device, class)));
    cells.filter(|(_, cell)| cell.ios > 0).map(|(class, cell)| Row::of_cell(class, &cell, seconds)).collect()
}

fn rows_of_counters(load: &DeviceLoad, seconds: f64) -> Vec<Row> {
    let (reads, writes, discards) = (load.reads_per_second, load.writes_per_second, load.discards_per_second);
    let waits = reads * load.read_wait_ms + writes * load.write_wait_ms + discards * load.discard_wait_ms;
    let all = reads + writes + discards;
    let bytes = load.read_bytes_per_second + load.write_bytes_per_second + load.discard_bytes_per_second;
    let rows = [
        (Class::All, all, bytes, if all > 0.0 { waits / all } else { 0.0 }),
        (Class::Read, reads, load.read_bytes_per_second, load.read_wait_ms),
        (Class::Write, writes, load.write_bytes_per_second, load.write_wait_ms),
        (Class::Discard, discards, load.discard_bytes_per_second, load.discard_wait_ms),
        (Class::Flush, load.flushes_per_second, 0.0, load.flush_wait_ms),
    ];
    let row = |(class, iops, bytes, wait_ms)| Row::of_counters(class, iops, bytes, wait_ms, seconds);
    rows.into_iter().map(row).filter(|row| row.ios > 0).collect()
}

/// What watching costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Processor time of weir itself, as a share of one processor.
    pub weir_cpu_share: f64,
    /// Time in weir's programs in the kernel, as a share of one processor; absent where it cannot be seen.
    pub kernel_cpu_share: Option<f64>,
}

/// One interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// End of the interval, since the start of watching.
    pub at_ns: u64,
    /// Its length.
    pub length_ns: u64,
    /// Devices with any I/O, and those that were named.
    pub devices: Vec<DeviceFrame>,
    /// Dirty pages and pages in write-back at its end.
    pub memory: MemoryLoad,
    /// Events, requests or samples that the source lost in it, by reason.
    pub lost: BTreeMap<String, u64>,
    /// What watching cost.
    pub cost: Cost,
}

/// A request that took long.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowIo {
    /// When it was done, since the start of watching.
    pub at_ns: u64,
    /// Its life.
    pub piece: Piece,
    /// The name of the thread that sent it, empty where unknown.
    pub sender: String,
}

/// One point of a sparkline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// I/Os per second.
    pub iops: f64,
    /// 99th percentile of the time from queue to completion, or the mean where there is none; absent without I/O.
    pub latency_ns: Option<f64>,
}

/// The last points of every device; bounded.
#[derive(Debug, Clone)]
pub struct History {
    points_max: usize,
    devices: BTreeMap<DeviceNumber, VecDeque<Point>>,
}

impl History {
    /// Keeps so many points a device.
    pub fn new(points_max: usize) -> History {
        History { points_max: points_max.max(1), devices: BTreeMap::new() }
    }

    /// Takes in an interval.
    pub fn push(&mut self, frame: &Frame) {
        for device in &frame.devices {
            self.devices.entry(device.number).or_default();
        }
        for (number, points) in &mut self.devices {
            let device = frame.devices.iter().find(|device| device.number == *number);
            let latency_ns = device.and_then(DeviceFrame::tail_ns);
            // A device that a frame does not have was idle in it.
            points.push_back(Point { iops: device.map_or(0.0, DeviceFrame::iops), latency_ns });
            if points.len() > self.points_max {
                points.pop_front();
            }
        }
    }

    /// A device's points, oldest first.
    pub fn of(&self, device: DeviceNumber) -> impl Iterator<Item = &Point> {
        self.devices.get(&device).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClassSet, Flags, Key, SizeClass};

    fn device() -> Layer {
        Layer { name: "sda".into(), number: DeviceNumber { major: 8, minor: 0 }, ..Layer::default() }
    }

    fn table(stages: &[(Stage, u64)]) -> StageTable {
        let mut table = StageTable::default();
        for (flags, bytes) in
            [(Flags::READ, 4096), (Flags(Flags::WRITE.0 | Flags::SYNC.0), 8192), (Flags::FLUSH, 0)]
        {
            let classes = ClassSet::of(flags, bytes);
            let cell = table.cell_mut(Key { device: device().number, classes, size: SizeClass::of(bytes) });
            for _ in 0..10 {
                stages.iter().for_each(|&(stage, ns)| cell.stage_mut(stage).record(ns));
                cell.ios += 1;
                cell.bytes += u64::from(bytes);
            }
        }
        table
    }

    #[test]
    fn a_table_becomes_rows_whatever_stages_it_has() {
        let full = [(Stage::Q2D, 300), (Stage::D2C, 100), (Stage::Q2C, 400)];
        let whole = [(Stage::Q2C, 400), (Stage::D2C, 100)];
        let cheap = [(Stage::G2DAll, 300), (Stage::D2C, 100), (Stage::G2C, 400)];
        for (stages, p99_ns) in
            [(&full[..], Some(400)), (&whole[..], Some(400)), (&cheap[..], Some(400)), (&cheap[..2], None)]
        {
            let frame =
                DeviceFrame::new(&device(), DeviceLoad::default(), Some(&table(stages)), 2_000_000_000);
            let classes: Vec<_> = frame.rows.iter().map(|row| (row.class, row.ios)).collect();
            let expected = [
                (Class::All, 20),
                (Class::Read, 10),
                (Class::Write, 10),
                (Class::SyncWrite, 10),
                (Class::Flush, 10),
            ];
            assert_eq!(classes, expected);
            let row = frame.row(Class::Write).unwrap();
            assert_eq!((row.iops, row.bytes_per_second, row.queue_share), (5.0, 40960.0, Some(0.75)));
            let total = row.total.unwrap();
            assert_eq!((total.mean_ns, total.p99_ns), (400.0, p99_ns));
        }
    }

    #[test]
    fn counters_become_rows_without_quantiles() {
        let load = DeviceLoad {
            reads_per_second: 30.0,
            read_wait_ms: 1.0,
            writes_per_second: 10.0,
            write_wait_ms: 5.0,
            ..DeviceLoad::default()
        };
        let frame = DeviceFrame::new(&device(), load, None, 1_000_000_000);
        let all = frame.row(Class::All).unwrap();
        assert_eq!((all.ios, all.total.unwrap().mean_ns, all.total.unwrap().p99_ns), (40, 2e6, None));
        assert!(frame.row(Class::Flush).is_none() && !frame.is_idle());
    }

    #[test]
    fn limits_are_held_against_what_was_done() {
        let load =
            DeviceLoad { writes_per_second: 1490.0, write_bytes_per_second: 2e6, ..DeviceLoad::default() };
        let limits = [("wiops", 1500), ("wbps", 4_000_000), ("latency_us", 10)];
        let throttle = |device: &str| Throttle {
            cgroup: "/".into(),
            version: 1,
            device: device.into(),
            limits: limits.iter().map(|(what, limit)| (what.to_string(), *limit)).collect(),
        };
        let frame = DeviceFrame::new(&device(), load, None, 1_000_000_000);
        let frame = frame.limited(&[throttle("sda"), throttle("sdb")]);
        let used: Vec<_> = frame.limits.iter().map(|l| (l.what.as_str(), l.limit, l.done)).collect();
        assert_eq!(used, [("wbps", 4_000_000, 2e6), ("wiops", 1500, 1490.0)]);
        let words: Vec<String> = frame.limits.iter().map(LimitUse::words).collect();
        let whose = "the cgroup /, weir's own or above it, limits writes to";
        assert_eq!(
            words,
            [
                format!("{whose} 4.00 MB/s (all on the device: 2.00 MB/s)"),
                format!("{whose} 1,500/s (all on the device: 1,490/s)"),
            ]
        );
    }

    #[test]
    fn history_is_bounded_and_in_order() {
        let mut history = History::new(3);
        let frame = |devices| Frame {
            at_ns: 0,
            length_ns: 1,
            devices,
            memory: MemoryLoad::default(),
            lost: BTreeMap::new(),
            cost: Cost::default(),
        };
        for n in 0..5 {
            let load = DeviceLoad { reads_per_second: f64::from(n), ..DeviceLoad::default() };
            history.push(&frame(vec![DeviceFrame::new(&device(), load, None, 1_000_000_000)]));
        }
        let iops =
            |history: &History| -> Vec<f64> { history.of(device().number).map(|point| point.iops).collect() };
        assert_eq!(iops(&history), [2.0, 3.0, 4.0]);
        history.push(&frame(Vec::new()));
        assert_eq!(iops(&history), [3.0, 4.0, 0.0], "an idle device is not in the frame");
        assert_eq!(history.of(DeviceNumber::default()).count(), 0);
    }
}
