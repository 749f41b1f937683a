//! Makes the tables of a fleet that does not exist, with slow devices of five kinds in it, for bench/fleet/questions.
//!
//!     fleet OUT HOSTS DAYS [SEED] [SLOW_PERCENT]
//!
//! OUT/store gets the tables as `weir fleet compact` leaves them, and OUT/truth.csv a line for each slow device or host. Four devices a
//! host, of four models in uneven numbers. Loads follow the day; some hosts are eight times as busy, which makes them slower but
//! not slow; clocks are off by minutes, and of some hosts by hours; every device has a bad hour now and then.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    missing_docs,
    reason = "an example that makes files"
)]

use std::collections::BTreeMap;
use std::fs::{File, create_dir_all};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use weir_archive::parquet::{GROUP_ROWS, Writer};
use weir_archive::{Batch, Row};
use weir_store::layout::{MANY, PART_ROWS, Place, monday_s};
use weir_store::tables::{Counter, Fact, Stage, Sync, Wait};
use weir_store::{SCHEMA, SCHEMA_KEY};

/// Wednesday, 1 April 2026.
const BEGIN_S: i64 = 1_775_001_600;
const DEVICES: usize = 4;

/// SplitMix64 (Steele, Lea, Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Normal, by the sum of twelve.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    fn factor(&mut self, sigma: f64) -> f64 {
        (sigma * self.normal()).exp()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Device,
    Queue,
    Others,
    Throttled,
    Tail,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Device, "device"),
    (Kind::Queue, "queue"),
    (Kind::Others, "others"),
    (Kind::Throttled, "throttled"),
    (Kind::Tail, "device-tail"),
];

/// Model, share of hosts, time in the device, load at which it doubles.
const MODELS: [(&str, f64, f64, f64); 4] = [
    ("NV-A1", 0.60, 90e3, 3_000.0),
    ("NV-B2", 0.25, 160e3, 1_500.0),
    ("SS-C3", 0.12, 420e3, 600.0),
    ("HD-D4", 0.03, 6e6, 90.0),
];

/// Lowest durations of buckets: eight for each power of two, as the recorder has them.
fn buckets() -> Vec<i64> {
    (12..36)
        .flat_map(|power| (0..8).map(move |eighth| (1_i64 << power) + eighth * (1 << (power - 3))))
        .collect()
}

/// A table's files, a few a week.
struct Files<R: Row> {
    root: PathBuf,
    weeks: BTreeMap<i64, Week>,
    rows: usize,
    row: std::marker::PhantomData<R>,
}

/// A week's files: the open one, and how many were finished.
struct Week {
    folder: PathBuf,
    open: Option<(Writer<BufWriter<File>>, usize)>,
    waiting: Batch,
    done: usize,
}

impl Week {
    fn flush(&mut self) {
        let table = self.waiting.table();
        let batch = std::mem::replace(&mut self.waiting, Batch::new(table));
        let (mut file, rows) = self.open.take().unwrap_or_else(|| {
            let file = File::create(self.folder.join(format!("synthetic-{}.parquet", self.done))).unwrap();
            let keys = vec![(SCHEMA_KEY.to_string(), SCHEMA.to_string())];
            (Writer::new(BufWriter::new(file), table, keys).unwrap().without_compression(), 0)
        });
        file.group(&batch).unwrap();
        self.open = Some((file, rows + batch.rows()));
        if rows + batch.rows() >= PART_ROWS {
            self.finish();
        }
    }

    fn finish(&mut self) {
        if let Some((file, _)) = self.open.take() {
            file.finish().unwrap().into_inner().unwrap().sync_all().unwrap();
            self.done += 1;
        }
    }
}

impl<R: Row> Files<R> {
    fn new(root: &Path) -> Files<R> {
        Files { root: root.to_path_buf(), weeks: BTreeMap::new(), rows: 0, row: std::marker::PhantomData }
    }

    fn put(&mut self, ts: i64, row: &R) {
        let day_s = monday_s(ts);
        let week = self.weeks.entry(day_s).or_insert_with(|| {
            let folder =
                self.root.join(Place { kind: R::TABLE.name.into(), day_s, host: MANY.into() }.folder());
            create_dir_all(&folder).unwrap();
            Week { folder, open: None, waiting: Batch::new(R::TABLE), done: 0 }
        });
        row.put(&mut week.waiting);
        self.rows += 1;
        if week.waiting.rows() >= GROUP_ROWS {
            week.flush();
        }
    }

    fn finish(self) {
        for mut week in self.weeks.into_values() {
            week.flush();
            week.finish();
        }
    }
}

struct Fleet {
    lows: Vec<i64>,
    /// Share of each eighth of an octave around the median.
    shape: Vec<f64>,
    stages: Files<Stage>,
    syncs: Files<Sync>,
    waits: Files<Wait>,
    counters: Files<Counter>,
    facts: Files<Fact>,
}

impl Fleet {
    /// So many durations around a median; some of them, a share of all, times another factor.
    fn histogram(
        &self,
        random: &mut Random,
        n: f64,
        median_ns: f64,
        tail: Option<(f64, f64)>,
        mut each: impl FnMut(i64, i64),
    ) {
        let mut counts: BTreeMap<usize, i64> = BTreeMap::new();
        let parts = match tail {
            Some((share, factor)) => vec![(n * (1.0 - share), median_ns), (n * share, median_ns * factor)],
            None => vec![(n, median_ns)],
        };
        for (n, median_ns) in parts {
            let middle = ((median_ns.max(4_096.0).log2() - 12.0) * 8.0) as i64;
            for (offset, share) in self.shape.iter().enumerate() {
                let expected = n * share;
                let count = (expected + expected.sqrt() * random.normal()).round();
                let at = middle + offset as i64 - self.shape.len() as i64 / 2;
                if count >= 1.0 && (0..self.lows.len() as i64).contains(&at) {
                    *counts.entry(at as usize).or_default() += count as i64;
                }
            }
        }
        counts.into_iter().for_each(|(at, count)| each(self.lows[at], count));
    }
}

struct Host {
    name: String,
    clock_s: i64,
    busy: f64,
    phase: f64,
    model: usize,
    quirk: [f64; DEVICES],
    slow: Vec<(usize, Kind, f64)>,
}

fn power_of_two(rate: f64) -> i64 {
    (rate.max(0.0) as i64).checked_ilog2().map_or(0, |power| 1 << power)
}

fn hour(fleet: &mut Fleet, random: &mut Random, host: &Host, at_s: i64) {
    let ts = (at_s + host.clock_s).div_euclid(3_600) * 3_600;
    let of_day = (at_s.rem_euclid(86_400) as f64 / 86_400.0 + host.phase).fract();
    let day = 1.0 + 0.6 * (std::f64::consts::TAU * of_day).sin();
    let is = |device: usize, kind: Kind| {
        host.slow.iter().find(|slow| slow.0 == device && slow.1 == kind).map(|slow| slow.2)
    };
    let (_, _, base_ns, knee) = MODELS[host.model];
    let (mut worst_d2c, mut worst_g2d) = (0.0_f64, 0.0_f64);
    for device in 0..DEVICES {
        let name = format!("nvme{device}n1");
        let rate = (knee / 25.0 * host.busy * day * random.factor(0.35)).max(0.6);
        let load = power_of_two(rate);
        let bad = if random.unit() < 0.03 { 2.0 } else { 1.0 };
        let others = is(device, Kind::Others).unwrap_or(1.0);
        let mut d2c = base_ns * (1.0 + rate / knee) * host.quirk[device] * random.factor(0.06) * bad;
        let mut g2d = base_ns
            * (0.05 + (rate / knee).powi(2))
            * host.quirk[device]
            * random.factor(0.12)
            * bad
            * others.powi(2);
        d2c *= is(device, Kind::Device).unwrap_or(1.0) * others.sqrt();
        g2d *= is(device, Kind::Queue).unwrap_or(1.0).powi(2);
        (worst_d2c, worst_g2d) = (worst_d2c.max(d2c), worst_g2d.max(g2d));
        let tail = is(device, Kind::Tail).map(|factor| (0.02, 6.0 * factor));
        let (mut busy_ms, mut reads) = (0.0, 0.0);
        for (class, share, longer) in [("read", 0.6, 1.0), ("write", 0.4, 0.7)] {
            let n = rate * 3_600.0 * share;
            reads = if class == "read" { n } else { reads };
            busy_ms += n * d2c * longer / 1e6;
            for (stage, median, tail) in
                [("g2d", g2d, None), ("d2c", d2c * longer, tail), ("g2c", g2d + d2c * longer, tail)]
            {
                let mut rows = Vec::new();
                fleet.histogram(random, n, median, tail, |bucket_low_ns, n| rows.push((bucket_low_ns, n)));
                for (bucket_low_ns, n) in rows {
                    let (host, device, class, stage) =
                        (host.name.clone(), name.clone(), class.into(), stage.into());
                    fleet.stages.put(ts, &Stage { host, ts, device, class, stage, load, bucket_low_ns, n });
                }
            }
        }
        for (counter, value) in [("busy_ms", busy_ms.min(3_600e3)), ("reads", reads)] {
            let (host, device, name) = (host.name.clone(), name.clone(), counter.into());
            fleet.counters.put(ts, &Counter { host, ts, device, name, value: value as i64 });
        }
    }
    let rate = (12.0 * host.busy * day * random.factor(0.3)).max(0.6);
    let held = is(0, Kind::Throttled);
    let others = (0..DEVICES).any(|device| is(device, Kind::Others).is_some());
    let sync_ns =
        (2.0 * worst_d2c + worst_g2d) * held.map_or(1.0, |factor| factor * 1.5) * random.factor(0.08);
    let mut rows = Vec::new();
    let n = rate * 3_600.0;
    fleet.histogram(random, n, sync_ns, None, |bucket_low_ns, n| rows.push((bucket_low_ns, n)));
    for (bucket_low_ns, n) in rows {
        let (host, unit) = (host.name.clone(), "mysql.service".into());
        fleet.syncs.put(ts, &Sync { host, ts, unit, load: power_of_two(rate), bucket_low_ns, n });
    }
    let (wait_held, wait_others) = (if held.is_some() { 0.7 } else { 0.0 }, if others { 0.6 } else { 0.03 });
    for (cause, share) in [("device", 0.25), ("queue", 0.1), ("others", wait_others), ("held", wait_held)] {
        let ns = (n * sync_ns * share * random.factor(0.1)) as i64;
        let (host, part, cause) = (host.name.clone(), "own_data".into(), cause.into());
        fleet.waits.put(ts, &Wait { host, ts, part, cause, ns });
    }
}

fn make_host(random: &mut Random, number: usize, digits: usize, slow_share: f64, index: &mut usize) -> Host {
    let pick = random.unit();
    let mut sum = 0.0;
    let model = MODELS.iter().position(|(_, share, ..)| {
        sum += share;
        pick < sum
    });
    let drift = if random.unit() < 0.02 {
        12.0 * 3_600.0 * (2.0 * random.unit() - 1.0)
    } else {
        300.0 * random.normal()
    };
    let mut slow = Vec::new();
    for device in 0..DEVICES {
        if random.unit() < slow_share {
            let kind = KINDS[*index % KINDS.len()].0;
            *index += 1;
            // A limit is one of the host's.
            slow.push((if kind == Kind::Throttled { 0 } else { device }, kind, 1.7 + 2.3 * random.unit()));
        }
    }
    Host {
        name: format!("db{number:0digits$}"),
        clock_s: drift as i64,
        busy: if random.unit() < 0.03 { 8.0 } else { random.factor(0.3) },
        phase: random.unit() * 0.1,
        model: model.unwrap_or(0),
        quirk: [(); DEVICES].map(|()| random.factor(0.05)),
        slow,
    }
}

fn facts(fleet: &mut Fleet, random: &mut Random, host: &Host) {
    let firmware = if random.unit() < 0.7 { "1.0" } else { "1.1" };
    let mut put = |device: &str, name: &str, value: &str| {
        let fact = Fact {
            host: host.name.clone(),
            ts: BEGIN_S,
            device: device.into(),
            name: name.into(),
            value: value.into(),
        };
        fleet.facts.put(BEGIN_S, &fact);
    };
    put("", "kernel", if random.unit() < 0.98 { "6.12.9" } else { "6.1.130" });
    put("", "vm.dirty_ratio", if random.unit() < 0.97 { "20" } else { "40" });
    for device in 0..DEVICES {
        let name = format!("nvme{device}n1");
        put(&name, "model", MODELS[host.model].0);
        put(&name, "firmware", firmware);
        put(&name, "scheduler", "none");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |n: usize, default: f64| arguments.get(n).map_or(default, |text| text.parse().unwrap());
    let out = PathBuf::from(arguments.get(1).expect("OUT HOSTS DAYS [SEED] [SLOW_PERCENT]"));
    let (hosts, days) = (number(2, 120.0) as usize, number(3, 3.0) as i64);
    let (mut random, slow_share) = (Random(number(4, 7.0) as u64), number(5, 1.0) / 100.0);
    let root = out.join("store");
    let shape: Vec<f64> = (-9..=9).map(|k| (-f64::from(k * k) / 18.0).exp()).collect();
    let sum: f64 = shape.iter().sum();
    let mut fleet = Fleet {
        lows: buckets(),
        shape: shape.iter().map(|share| share / sum).collect(),
        stages: Files::new(&root),
        syncs: Files::new(&root),
        waits: Files::new(&root),
        counters: Files::new(&root),
        facts: Files::new(&root),
    };
    create_dir_all(&out).unwrap();
    let mut truth = File::create(out.join("truth.csv")).unwrap();
    let mut index = 0;
    for n in 0..hosts {
        let host = make_host(&mut random, n, hosts.to_string().len(), slow_share, &mut index);
        for (device, kind, factor) in &host.slow {
            let device = if *kind == Kind::Throttled { String::new() } else { format!("nvme{device}n1") };
            let kind = KINDS.iter().find(|(other, _)| other == kind).unwrap().1;
            writeln!(truth, "{},{device},{kind},{factor:.2},{}", host.name, MODELS[host.model].0).unwrap();
        }
        facts(&mut fleet, &mut random, &host);
        (0..days * 24).for_each(|hour_n| hour(&mut fleet, &mut random, &host, BEGIN_S + hour_n * 3_600));
    }
    println!("{} rows of stages, {} of syncs", fleet.stages.rows, fleet.syncs.rows);
    fleet.stages.finish();
    fleet.syncs.finish();
    fleet.waits.finish();
    fleet.counters.finish();
    fleet.facts.finish();
}
