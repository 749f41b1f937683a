//! What the recorder has added up, as metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_archive::interval::OTHERS;
use weir_archive::totals::{Amounts, Histogram, Named, Totals, Who};

use super::knob_values::Make;
use crate::daemon::openmetrics::Page;
use crate::daemon::{Board, scrape};

/// What is shown.
pub struct Published {
    /// Sums since the recorder began.
    pub totals: Totals,
    /// Model and firmware of devices.
    pub(super) makes: Arc<BTreeMap<String, Make>>,
    /// When it began, Unix time, ms.
    pub started_ms: i64,
    /// Up to when the sums go, Unix time, ms.
    pub at_ms: i64,
    /// Intervals in the archive, ...
    pub written: u64,
    /// ... and those that are not.
    pub lost: u64,
    /// Processor time of the recorder, ns.
    pub cpu_ns: u64,
    /// Whether syncs are seen.
    pub sees_syncs: bool,
    /// Whether stages of requests are.
    pub sees_stages: bool,
}

/// The page of what was published last, written once however often it is asked for.
pub struct Metrics {
    board: Board<Published>,
    last: Option<(i64, Arc<str>)>,
}

impl Metrics {
    /// Of what a recorder publishes.
    pub fn new(board: Board<Published>) -> Metrics {
        Metrics { board, last: None }
    }
}

impl scrape::Page for Metrics {
    fn text(&mut self) -> Option<Arc<str>> {
        let published = self.board.read()?;
        if self.last.as_ref().is_none_or(|(at_ms, _)| *at_ms != published.at_ms) {
            self.last = Some((published.at_ms, exposition(&published).into()));
        }
        self.last.as_ref().map(|(_, text)| text.clone())
    }
}

/// Sums as a page of metrics.
fn exposition(published: &Published) -> String {
    let mut page = Page::default();
    let totals = &published.totals;
    of_recorder(&mut page, published);
    syncs(&mut page, totals);
    stages(&mut page, totals);
    processes(&mut page, totals);
    devices(&mut page, totals);
    makes_of(&mut page, published);
    machine(&mut page, totals);
    page.end()
}

/// Events that are counted from the start on.
const COUNTED: [&str; 7] = ["clock", "guard", "knob", "lost", "slow_sync", "snapshot", "stall"];

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn of_recorder(page: &mut Page, published: &Published) {
    page.family("weir_recorder_build", "info", "", "Version of weir.");
    page.sample("weir_recorder_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let help = "When the recorder began, Unix time.";
    page.one("weir_recorder_start_seconds", "gauge", "seconds", help, published.started_ms as f64 / 1e3);
    let help = "Up to when sums go, Unix time: the end of the last interval.";
    page.one("weir_recorder_last_interval_seconds", "gauge", "seconds", help, published.at_ms as f64 / 1e3);
    page.family("weir_recorder_sees", "gauge", "", "1 where the kernel takes the programs that see it.");
    for (what, sees) in [("syncs", published.sees_syncs), ("stages", published.sees_stages)] {
        page.sample("weir_recorder_sees", &[("what", what)], u8::from(sees));
    }
    page.one("weir_recorder_intervals", "counter", "", "Intervals in the archive.", published.written);
    let help = "Intervals that the disk was too slow for, or refused.";
    page.one("weir_recorder_lost_intervals", "counter", "", help, published.lost);
    let help = "Processor time of the recorder itself.";
    page.one("weir_recorder_cpu_seconds", "counter", "seconds", help, seconds(published.cpu_ns));
    let help = "Memory of the recorder itself.";
    let memory = gauge(&published.totals, "", "recorder_memory_bytes");
    page.one("weir_recorder_resident_memory_bytes", "gauge", "bytes", help, memory);
    page.family("weir_recorder_events", "counter", "", "Events in the archive, by kind.");
    // A counter that begins with its first event has not grown by it.
    let mut events = BTreeMap::from(COUNTED.map(|kind| (kind, 0)));
    events.extend(published.totals.events.iter().map(|(kind, count)| (kind.as_str(), *count)));
    for (kind, count) in events {
        page.sample("weir_recorder_events_total", &[("kind", kind)], count);
    }
}

/// Those that are named, and the rest.
fn with_others<'a, V: weir_archive::totals::Sums>(
    named: &'a Named<Who, V>,
    others: &'a Who,
) -> impl Iterator<Item = (&'a Who, &'a V)> {
    named.named().iter().chain([(others, named.others())])
}

fn others() -> Who {
    (String::new(), OTHERS.to_string())
}

fn histogram(page: &mut Page, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
    let bucket = format!("{name}_bucket");
    for (bound_ns, count) in histogram.cumulative() {
        let le = seconds(bound_ns).to_string();
        page.sample(&bucket, &[labels, &[("le", &le)]].concat(), count);
    }
    page.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), histogram.total());
    page.sample(&format!("{name}_count"), labels, histogram.total());
    page.sample(&format!("{name}_sum"), labels, seconds(histogram.sum_ns()));
}

fn syncs(page: &mut Page, totals: &Totals) {
    let rest = others();
    let help = "How long syncs took: fsync, fdatasync, writes to files opened with O_SYNC or O_DSYNC, msync.";
    page.family("weir_recorder_sync_seconds", "histogram", "seconds", help);
    for ((unit, comm), sums) in with_others(&totals.syncs, &rest) {
        let labels = [("unit", unit.as_str()), ("comm", comm.as_str())];
        histogram(page, "weir_recorder_sync_seconds", &labels, &sums.latency);
    }
    let help = "What syncs spent their time on, summed over threads.";
    page.family("weir_recorder_sync_wait_seconds", "counter", "seconds", help);
    for ((unit, comm), sums) in with_others(&totals.syncs, &rest) {
        for ((part, cause), ns) in &sums.waits {
            let labels =
                [("unit", unit.as_str()), ("comm", comm), ("part", part.as_str()), ("cause", cause.as_str())];
            page.sample("weir_recorder_sync_wait_seconds_total", &labels, seconds(*ns));
        }
    }
    let help = "Time of all syncs behind others' I/O, by whose that was.";
    page.family("weir_recorder_sync_behind_seconds", "counter", "seconds", help);
    for ((unit, comm), sums) in with_others(&totals.behind, &rest) {
        for (way, ns) in &sums.0 {
            let labels = [("culprit_unit", unit.as_str()), ("culprit", comm.as_str()), ("way", way.as_str())];
            page.sample("weir_recorder_sync_behind_seconds_total", &labels, seconds(*ns));
        }
    }
}

fn stages(page: &mut Page, totals: &Totals) {
    let help = "Stages of requests: g2d from the request to the driver, d2c driver and device, g2c both.";
    page.family("weir_recorder_stage_seconds", "histogram", "seconds", help);
    for (device, sums) in totals.stages.named() {
        for ((class, stage), durations) in &sums.0 {
            let labels = [("device", device.as_str()), ("class", class.as_str()), ("stage", stage.as_str())];
            histogram(page, "weir_recorder_stage_seconds", &labels, durations);
        }
    }
}

fn processes(page: &mut Page, totals: &Totals) {
    let rest = others();
    for (name, kind, help) in [
        ("weir_recorder_process_read_bytes", "read", "Read from devices, by process."),
        (
            "weir_recorder_process_written_bytes",
            "written",
            "Written, or made dirty and to be written, by process.",
        ),
    ] {
        page.family(name, "counter", "bytes", help);
        for ((unit, comm), Amounts(amounts)) in with_others(&totals.processes, &rest) {
            let labels = [("unit", unit.as_str()), ("comm", comm.as_str())];
            page.sample(&format!("{name}_total"), &labels, amounts.get(kind).copied().unwrap_or(0));
        }
    }
}

/// A counter of devices: its name, unit, what the archive calls it, and how many of those make one unit.
type OfDevice = (&'static str, &'static str, &'static str, u64, &'static str);

const OF_DEVICES: [OfDevice; 10] = [
    ("weir_recorder_device_reads", "", "reads", 1, "Reads completed."),
    ("weir_recorder_device_writes", "", "writes", 1, "Writes completed."),
    ("weir_recorder_device_flushes", "", "flushes", 1, "Cache flushes completed."),
    ("weir_recorder_device_read_bytes", "bytes", "read_bytes", 1, "Read from the device."),
    ("weir_recorder_device_write_bytes", "bytes", "write_bytes", 1, "Written to the device."),
    ("weir_recorder_device_busy_seconds", "seconds", "busy_ms", 1000, "Time with requests in flight."),
    (
        "weir_recorder_device_queue_seconds",
        "seconds",
        "queue_ms",
        1000,
        "Time of requests, summed over them.",
    ),
    ("weir_recorder_device_flush_seconds", "seconds", "flush_ms", 1000, "Time of cache flushes."),
    (
        "weir_recorder_device_dirtied_bytes",
        "bytes",
        "dirtied_bytes",
        1,
        "Pages made dirty, where debugfs is read.",
    ),
    (
        "weir_recorder_device_written_back_bytes",
        "bytes",
        "written_bytes",
        1,
        "Pages written back, where debugfs is read.",
    ),
];

fn devices(page: &mut Page, totals: &Totals) {
    for (name, unit, counter, per_unit, help) in OF_DEVICES {
        page.family(name, "counter", unit, help);
        for (device, Amounts(amounts)) in totals.devices.named() {
            let value = amounts.get(counter).copied().unwrap_or(0) as f64 / per_unit as f64;
            page.sample(&format!("{name}_total"), &[("device", device)], value);
        }
    }
    for (name, unit, of, help) in [
        ("weir_recorder_device_in_flight", "", "in_flight", "Requests in flight."),
        ("weir_recorder_device_dirty_bytes", "bytes", "dirty_bytes", "Dirty pages, where debugfs is read."),
        (
            "weir_recorder_device_writeback_bytes",
            "bytes",
            "writeback_bytes",
            "Pages being written, where debugfs is read.",
        ),
    ] {
        page.family(name, "gauge", unit, help);
        for device in totals.devices.named().keys() {
            page.sample(name, &[("device", device)], gauge(totals, device, of));
        }
    }
}

/// Of devices that have a name among the metrics.
fn makes_of(page: &mut Page, published: &Published) {
    page.family("weir_recorder_device", "info", "", "Model and firmware of a device.");
    for device in published.totals.devices.named().keys() {
        let Some(make) = published.makes.get(device) else { continue };
        let said = |text: &Option<String>| text.clone().unwrap_or_default();
        let (model, firmware) = (said(&make.model), said(&make.firmware));
        let labels = [("device", device.as_str()), ("model", &model), ("firmware", &firmware)];
        page.sample("weir_recorder_device_info", &labels, 1);
    }
}

fn gauge(totals: &Totals, device: &str, name: &str) -> u64 {
    totals.gauges.get(&(device.to_string(), name.to_string())).copied().unwrap_or(0)
}

fn machine(page: &mut Page, totals: &Totals) {
    for (name, of, help) in [
        ("weir_recorder_dirty_bytes", "dirty_bytes", "Dirty pages of the machine."),
        ("weir_recorder_writeback_bytes", "writeback_bytes", "Pages of the machine being written."),
        (
            "weir_recorder_dirty_threshold_bytes",
            "dirty_threshold_bytes",
            "From so many dirty pages on writers are made to wait.",
        ),
        ("weir_recorder_available_bytes", "available_bytes", "Memory that programs could still get."),
    ] {
        page.one(name, "gauge", "bytes", help, gauge(totals, "", of));
    }
    let none = BTreeMap::new();
    let counters = if totals.intervals == 0 { &none } else { &totals.machine };
    let help = "Time in which some tasks, or all, waited for a resource (pressure stall information).";
    page.family("weir_recorder_pressure_seconds", "counter", "seconds", help);
    for resource in ["cpu", "io", "memory"] {
        for share in ["some", "full"] {
            let us = counters.get(&format!("pressure_{resource}_{share}_us")).copied().unwrap_or(0);
            let labels = [("resource", resource), ("share", share)];
            page.sample("weir_recorder_pressure_seconds_total", &labels, us as f64 / 1e6);
        }
    }
    let help = "Processor time of all that runs.";
    let busy_ns = counters.get("processors_busy_ns").copied().unwrap_or(0);
    page.one("weir_recorder_processors_busy_seconds", "counter", "seconds", help, seconds(busy_ns));
}

#[cfg(test)]
mod tests {
    use weir_archive::interval::{StageSum, Syncs};
    use weir_archive::tables::{Behind, Counter, Event, Process, Stage, Sync, Wait};
    use weir_archive::totals::Rows;

    use super::*;
    use crate::daemon::openmetrics::testing::{Family, parse};

    const HOSTILE: &str = "a\"b\\c\nd\x1b[2J";

    fn totals() -> Totals {
        let (comm, unit) = ("mariadbd".to_string(), "mariadb.service".to_string());
        let sync = |bucket_low_ns, count| Sync {
            comm: comm.clone(),
            unit: unit.clone(),
            bucket_low_ns,
            count,
            ..Sync::default()
        };
        let wait = Wait {
            comm: comm.clone(),
            unit: unit.clone(),
            part: "flush".into(),
            cause: "device".into(),
            ns: 2_500_000_000,
            ..Wait::default()
        };
        let behind = Behind {
            culprit: HOSTILE.into(),
            way: "writeback".into(),
            ns: 1_000_000_000,
            ..Behind::default()
        };
        let syncs = Syncs {
            syncs: vec![sync(1 << 20, 90), sync(1 << 27, 10)],
            waits: vec![wait],
            behind: vec![behind],
        };
        let stage = Stage {
            device: "sda".into(),
            class: "write".into(),
            stage: "d2c".into(),
            bucket_low_ns: 1 << 20,
            count: 7,
            ..Stage::default()
        };
        let sum = StageSum { device: "sda".into(), class: "write", stage: "d2c", ns: 8_000_000 };
        let process = Process { comm: HOSTILE.into(), written_bytes: 4096, ..Process::default() };
        let counter = |device: &str, name: &str, value| Counter {
            device: device.into(),
            name: name.into(),
            value,
            ..Counter::default()
        };
        let counters = [
            counter("sda", "busy_ms", 1500),
            counter("sda", "in_flight", 3),
            counter("", "dirty_bytes", 8192),
            counter("", "pressure_io_some_us", 250_000),
        ];
        let mut totals = Totals::default();
        totals.take(&Rows {
            span_ms: 10_000,
            stages: &[stage],
            stage_sums: &[sum],
            syncs: Some(&syncs),
            processes: &[process],
            counters: &counters,
            events: &[Event { kind: "knob".into(), ..Event::default() }],
        });
        totals
    }

    fn published(totals: Totals) -> Published {
        let make = Make { model: Some("NV-A1".into()), firmware: None };
        Published {
            totals,
            makes: Arc::new(BTreeMap::from([("sda".to_string(), make)])),
            started_ms: 1_795_000_000_500,
            at_ms: 1_795_000_010_500,
            written: 1,
            lost: 2,
            cpu_ns: 1_500_000_000,
            sees_syncs: true,
            sees_stages: false,
        }
    }

    fn value(families: &BTreeMap<String, Family>, name: &str, wanted: &[(&str, &str)]) -> f64 {
        let has = |labels: &BTreeMap<String, String>| {
            wanted.iter().all(|(label, value)| labels.get(*label).is_some_and(|v| v == value))
        };
        let mut samples = families.values().flat_map(|family| &family.samples);
        samples
            .find(|(n, labels, _)| n == name && has(labels))
            .unwrap_or_else(|| panic!("{name} {wanted:?}"))
            .2
    }

    #[test]
    fn the_page_keeps_the_format_whatever_processes_are_called() {
        let families = parse(&exposition(&published(totals())));
        let of_db = ("unit", "mariadb.service");
        let harmless = "a\"b\\c\u{fffd}d\u{fffd}[2J";
        for (name, labels, expected) in [
            ("weir_recorder_sync_seconds_count", vec![of_db, ("comm", "mariadbd")], 100.0),
            ("weir_recorder_sync_seconds_sum", vec![of_db], 2.5),
            ("weir_recorder_sync_seconds_bucket", vec![of_db, ("le", "0.001048576")], 0.0),
            ("weir_recorder_sync_seconds_bucket", vec![of_db, ("le", "0.002097152")], 90.0),
            ("weir_recorder_sync_seconds_bucket", vec![of_db, ("le", "0.268435456")], 100.0),
            ("weir_recorder_sync_seconds_count", vec![("comm", OTHERS)], 0.0),
            ("weir_recorder_sync_wait_seconds_total", vec![("part", "flush"), ("cause", "device")], 2.5),
            (
                "weir_recorder_sync_behind_seconds_total",
                vec![("culprit", harmless), ("way", "writeback")],
                1.0,
            ),
            (
                "weir_recorder_stage_seconds_count",
                vec![("device", "sda"), ("class", "write"), ("stage", "d2c")],
                7.0,
            ),
            ("weir_recorder_stage_seconds_sum", vec![("device", "sda")], 0.008),
            ("weir_recorder_process_written_bytes_total", vec![("comm", harmless)], 4096.0),
            ("weir_recorder_device_busy_seconds_total", vec![("device", "sda")], 1.5),
            ("weir_recorder_device_in_flight", vec![("device", "sda")], 3.0),
            ("weir_recorder_device_info", vec![("device", "sda"), ("model", "NV-A1"), ("firmware", "")], 1.0),
            ("weir_recorder_dirty_bytes", vec![], 8192.0),
            ("weir_recorder_pressure_seconds_total", vec![("resource", "io"), ("share", "some")], 0.25),
            ("weir_recorder_lost_intervals_total", vec![], 2.0),
            ("weir_recorder_events_total", vec![("kind", "knob")], 1.0),
            ("weir_recorder_events_total", vec![("kind", "stall")], 0.0),
            ("weir_recorder_sees", vec![("what", "stages")], 0.0),
            ("weir_recorder_start_seconds", vec![], 1_795_000_000.5),
        ] {
            assert_eq!(value(&families, name, &labels), expected, "{name} {labels:?}");
        }
    }

    #[test]
    fn before_the_first_interval_the_page_is_whole() {
        let families = parse(&exposition(&published(Totals::default())));
        assert_eq!(value(&families, "weir_recorder_sync_seconds_count", &[("comm", OTHERS)]), 0.0);
        assert_eq!(value(&families, "weir_recorder_dirty_bytes", &[]), 0.0);
    }

    #[test]
    fn the_page_is_written_once_an_interval() {
        let board = Board::default();
        let mut metrics = Metrics::new(board.clone());
        assert_eq!(scrape::Page::text(&mut metrics), None);
        board.publish(published(Totals::default()));
        let first = scrape::Page::text(&mut metrics).unwrap();
        board.publish(Published { at_ms: 1_795_000_020_500, ..published(totals()) });
        assert_ne!(scrape::Page::text(&mut metrics).unwrap(), first);
    }
}
