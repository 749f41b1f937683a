//! The map in the words of programs that limit or pace I/O, each line with how sure it is.

use super::sure::{HowSure, Sure};
use super::{Commits, Line, LoadMap, Point};
use crate::topic::COMMIT_GOOD_NS;
use crate::view::{percent, time};
use weir_core::target::{Conditions, Layer, LayerKind};

/// Load of the edge at which latencies are taken for iocost's targets, and the shares of writes nearest to which.
const QOS_LOAD: f64 = 0.8;
const QOS_SHARE: f64 = 0.5;
/// Commits may take this many times what they take alone.
const COMMITS_FACTOR: u64 = 2;

/// All lines, in the order of reports.
pub fn all(map: &LoadMap, conditions: &Conditions) -> Vec<Line> {
    vec![
        iocost_model(map, conditions),
        iocost_qos(map, conditions),
        io_properties(map, conditions),
        innodb(map),
    ]
}

/// What holds for all lines that are made of the edge: drift, and whether processors capped one of the ends.
fn of_edge(map: &LoadMap) -> HowSure {
    let drift = HowSure::by(map.drift.edge, "the drift of the edge between start and end");
    if map.capped.is_empty() {
        return drift;
    }
    let shares: Vec<String> = map.capped.iter().map(|share| percent_of(*share)).collect();
    let why =
        format!("processors limited the load at {} of writes, so these are lower bounds", shares.join(", "));
    drift.and(HowSure::of(Sure::Roughly, why))
}

/// Whether operations of both kinds add up, as iocost and Seastar compute.
fn of_sum(map: &LoadMap) -> HowSure {
    let off = map.model.map(|model| model.error_linear);
    HowSure::by(off, "the error of the sum of the costs of reads and writes")
}

fn percent_of(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn missing(why: &str) -> (Option<String>, HowSure) {
    (None, HowSure::of(Sure::DoNotUse, why))
}

/// The single device whose queue takes all the I/O, or why there is none. iocost acts on whole devices with requests.
fn disk(conditions: &Conditions) -> Result<&Layer, &'static str> {
    let target = conditions.target.as_ref().ok_or("the device is not known")?;
    let layer = target.device_layer().ok_or("no single disk stands beneath the folder")?;
    if !layer.has_requests() || layer.number.is_anonymous() {
        return Err("the device beneath the folder has no requests of its own: set its disks one by one");
    }
    Ok(layer)
}

fn iocost_model(map: &LoadMap, conditions: &Conditions) -> Line {
    let (text, how_sure) = match (disk(conditions), iocost_coefficients(map)) {
        (Err(why), _) => missing(why),
        (_, None) => missing("an end of the edge or a step in order was not measured"),
        (Ok(disk), Some(c)) => (
            Some(format!("{} ctrl=user model=linear {c}", disk.number)),
            of_edge(map).and(of_sum(map)).and(of_device(disk)),
        ),
    };
    let goes_to = "/sys/fs/cgroup/io.cost.model".to_string();
    Line { id: "iocost-model".into(), title: "iocost, cost model".into(), goes_to, text, how_sure }
}

/// A loop device passes its I/O to a disk that others use too.
fn of_device(disk: &Layer) -> HowSure {
    match disk.kind {
        LayerKind::Loop { .. } => {
            HowSure::of(Sure::Roughly, format!("{} is a loop device on another disk", disk.name))
        }
        _ => HowSure::of(Sure::Sure, format!("for the whole of {}", disk.name)),
    }
}

/// Six figures by the names of cgroup-v2.rst: bytes a second, operations of 4 KiB a second in order and at random. Where
/// those in order were slower, which is noise or the depth, they count as the random ones.
fn iocost_coefficients(map: &LoadMap) -> Option<String> {
    let (model, order) = (map.model?, map.in_order);
    let one = |side: &str, bytes: f64, in_order: f64, random: f64| {
        let [bytes, in_order, random] =
            [bytes, in_order.max(random), random].map(|value| value.round() as u64);
        format!("{side}bps={bytes} {side}seqiops={in_order} {side}randiops={random}")
    };
    let reads = one("r", order.read_bytes?, order.reads?, model.reads);
    Some(format!("{reads} {}", one("w", order.write_bytes?, order.writes?, model.writes)))
}

/// The point that stands for a loaded device.
fn loaded(map: &LoadMap) -> Option<&Point> {
    let off = |point: &&Point| (point.load - QOS_LOAD).abs() + (point.share - QOS_SHARE).abs();
    let mixed = map.inside.iter().filter(|p| p.kept && p.read_p95_ns.is_some() && p.write_p95_ns.is_some());
    mixed.filter(|point| off(point) < 0.5).min_by(|a, b| off(a).total_cmp(&off(b)))
}

/// Latency targets, and how far the kernel may correct the model: twice as far as it was off.
fn iocost_qos(map: &LoadMap, conditions: &Conditions) -> Line {
    let (text, how_sure) = match (disk(conditions), loaded(map), map.model) {
        (Err(why), ..) => missing(why),
        (_, None, _) | (_, _, None) => missing("no mixed point near 80 % of the edge was kept up"),
        (Ok(disk), Some(point), Some(model)) => {
            let off = model.error_linear.max(map.drift.edge.unwrap_or(0.0));
            let (min, max) = ((1.0 - 2.0 * off).clamp(0.25, 0.9), (1.0 + 2.0 * off).clamp(1.1, 2.0));
            let us = |ns: Option<u64>| ns.unwrap_or(0).div_ceil(1000).max(1);
            let (rlat, wlat) = (us(point.read_p95_ns), us(point.write_p95_ns));
            let text = format!(
                "{} enable=1 ctrl=user rpct=95.00 rlat={rlat} wpct=95.00 wlat={wlat} min={:.2} max={:.2}",
                disk.number,
                min * 100.0,
                max * 100.0
            );
            let place = format!(
                "95th percentiles at {} of the edge with {} of writes, n = {}",
                percent_of(point.load),
                percent_of(point.share),
                point.n
            );
            (Some(text), of_edge(map).and(of_sum(map)).and(HowSure::of(Sure::Roughly, place)))
        }
    };
    let goes_to = "/sys/fs/cgroup/io.cost.qos".to_string();
    Line { id: "iocost-qos".into(), title: "iocost, latency targets".into(), goes_to, text, how_sure }
}

/// What Seastar's iotune would write (its doc/io-properties-file.md).
fn io_properties(map: &LoadMap, conditions: &Conditions) -> Line {
    let file_system = conditions.target.as_ref().and_then(|target| target.file_system.as_ref());
    let found = map.model.zip(map.in_order.read_bytes).zip(map.in_order.write_bytes).zip(file_system);
    let (text, how_sure) = match found {
        None => missing("an end of the edge or a large step in order was not measured"),
        Some((((model, read_bytes), write_bytes), file_system)) => {
            let whole = |value: f64| value.round() as u64;
            let text = format!(
                "disks:\n  - mountpoint: {}\n    read_iops: {}\n    read_bandwidth: {}\n    write_iops: {}\n    write_bandwidth: {}",
                yaml(&file_system.mount_point),
                whole(model.reads),
                whole(read_bytes),
                whole(model.writes),
                whole(write_bytes)
            );
            (Some(text), of_edge(map).and(of_sum(map)))
        }
    };
    let goes_to = "/etc/scylla.d/io_properties.yaml".to_string();
    Line { id: "io-properties".into(), title: "Seastar, ScyllaDB".into(), goes_to, text, how_sure }
}

/// A path as YAML has it: what is not plain stands between double quotes, as in JSON.
fn yaml(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    if path.starts_with('/') && path.chars().all(plain) {
        path.to_string()
    } else {
        serde_json::Value::from(path).to_string()
    }
}

/// The time that commits beside flushed pages may take: what is good for a commit, or twice what they take alone.
pub fn commits_bound_ns(map: &LoadMap) -> Option<u64> {
    let alone = map.commits.iter().find(|one| one.load == 0.0)?.tail_ns()?;
    Some(COMMIT_GOOD_NS.max(COMMITS_FACTOR * alone))
}

/// Pages a second: the most beside which commits stayed within the bound; half of it as the rate for good, since that is the
/// server's own ratio of both variables.
fn innodb(map: &LoadMap) -> Line {
    let beside = &map.pages.beside;
    let (text, how_sure) = match (commits_bound_ns(map), beside.first()) {
        (None, _) | (_, None) => missing("commits beside writes of pages were not measured"),
        (Some(bound), Some(first)) => {
            let within = |one: &&Commits| one.tail_ns().is_some_and(|tail| tail <= bound);
            match beside.iter().take_while(within).last() {
                None => missing(&format!(
                    "even beside {} pages/s commits took {}, more than {}",
                    first.writes.round(),
                    first.tail_ns().map_or("too long".to_string(), time),
                    time(bound)
                )),
                Some(most) if most.writes < CAPACITY_MIN as f64 => missing(&format!(
                    "commits kept {} beside {} pages/s at most: less than {CAPACITY_MIN} pages/s, the least that the \
                     server takes",
                    time(bound),
                    most.writes.floor()
                )),
                Some(most) => capacities(most.writes, of_pages(map, most, bound)),
            }
        }
    };
    let goes_to = "my.cnf, [mysqld]".to_string();
    Line { id: "innodb".into(), title: "InnoDB".into(), goes_to, text, how_sure }
}

/// The least that MySQL and MariaDB take for both variables: they raise what is lower, with a warning.
const CAPACITY_MIN: u64 = 100;

fn capacities(most: f64, how_sure: HowSure) -> (Option<String>, HowSure) {
    let most = two_digits(most);
    let half = two_digits(most as f64 / 2.0);
    let how_sure = if half < CAPACITY_MIN {
        let why =
            format!("innodb_io_capacity is {CAPACITY_MIN}, the least that the server takes, instead of half");
        how_sure.and(HowSure::of(Sure::Sure, why))
    } else {
        how_sure
    };
    let half = half.max(CAPACITY_MIN);
    (Some(format!("innodb_io_capacity = {half}\ninnodb_io_capacity_max = {most}")), how_sure)
}

/// Rounded down to two digits: a limit is not known more closely.
fn two_digits(value: f64) -> u64 {
    let step = 10f64.powi((value.max(1.0).log10().floor() as i32 - 1).max(0));
    ((value / step).floor() * step) as u64
}

fn of_pages(map: &LoadMap, most: &Commits, bound: u64) -> HowSure {
    let drift = HowSure::by(map.drift.commits, "the drift of commits between start and end");
    let edge = map.pages.edge.unwrap_or(most.writes);
    let tail = format!(
        "beside {} pages/s ({} of the most) commits took {} at {} (bound {}, n = {})",
        most.writes.round(),
        percent(most.writes / edge.max(1e-9)),
        most.tail_ns().map_or(String::new(), time),
        if most.p99_ns.is_some() { "p99" } else { "most" },
        time(bound),
        most.n
    );
    let alone = map.commits.iter().find(|one| one.load == 0.0);
    let has_tails = most.p99_ns.is_some() && alone.is_some_and(|alone| alone.p99_ns.is_some());
    let enough = if has_tails { Sure::Sure } else { Sure::Roughly };
    drift.and(HowSure::of(enough, tail))
}
