//! A run in the shape of fio 3.33's `--output-format=json`, so that scripts made for fio read it.
//!
//! What differs in meaning is stated in `docs/reference/record.md`: latencies count from the intended start, so `clat_ns` and
//! `lat_ns` are the same and `slat_ns` is empty; what weir does not count (`ctx`, `majf`, `minf`, `short_ios`,
//! `drop_ios`, `disk_util`) is zero or empty. `commit` in a job is weir's own addition.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::fio_options;
use weir_core::result::record::{Class, ClassRecord, JobRecord, Record};
use weir_core::result::series::{Series, per_second};
use weir_core::stats::Histogram;
use weir_core::stats::histogram::{bucket_high, bucket_low};

/// The percentiles that fio prints by default.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
/// Upper edges of fio's latency buckets, in each of ns, µs and ms.
const EDGES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
/// errno of a failure that does not name its own.
const EIO: i64 = 5;

/// The document. `timestamp_ms` is the start since the epoch, `time` the same as ctime(3) writes it.
pub fn run(record: &Record, timestamp_ms: i64, time: &str) -> serde_json::Result<String> {
    let jobs: Vec<Value> = record.jobs.iter().enumerate().map(|(i, _)| job(record, i)).collect();
    let document = json!({
        "fio version": format!("fio-3.33-weir-{}", record.weir_version),
        "timestamp": timestamp_ms / 1000,
        "timestamp_ms": timestamp_ms,
        "time": time,
        "global options": {},
        "jobs": jobs,
        "disk_util": [],
    });
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

fn job(record: &Record, index: usize) -> Value {
    let job = &record.jobs[index];
    let group = record.jobs[1..=index].iter().filter(|j| j.job.after_previous).count();
    let mut object = json!({
        "jobname": job.job.name,
        "groupid": group,
        "error": errno(job),
        "eta": 0,
        "elapsed": job.elapsed_ns.div_ceil(1_000_000_000),
        "job options": fio_options::of(&job.job),
        "read": direction(record, job, Class::Read),
        "write": direction(record, job, written(job)),
        "trim": direction_of_nothing(),
        "sync": sync(job.classes.get(&Class::Sync)),
        "commit": sync(job.classes.get(&Class::Commit)),
    });
    if let Some(object) = object.as_object_mut() {
        object.append(&mut cpu(job));
        object.append(&mut depths(job));
        object.append(&mut latency_buckets(job));
    }
    object
}

/// With RWF_DSYNC a write and its sync are one call, and may be known as commits alone.
fn written(job: &JobRecord) -> Class {
    if job.classes.contains_key(&Class::Write) { Class::Write } else { Class::Commit }
}

fn errno(job: &JobRecord) -> i64 {
    let Some(error) = &job.error else { return 0 };
    let number = error.split("os error ").nth(1).map(|rest| rest.trim_end_matches(')'));
    number.and_then(|n| n.parse().ok()).unwrap_or(EIO)
}

fn direction(record: &Record, job: &JobRecord, class: Class) -> Value {
    let Some(of) = job.classes.get(&class) else { return direction_of_nothing() };
    let series = Series::of(job, class);
    let group_bytes: u64 = record.jobs.iter().filter_map(|j| j.classes.get(&class)).map(|c| c.bytes).sum();
    let mut object = plain(of, job.elapsed_ns);
    let kib: Vec<f64> = (0..series.len()).map(|i| series.byte_rate(i..i + 1) / 1024.0).collect();
    let share = if group_bytes == 0 { 0.0 } else { of.bytes as f64 / group_bytes as f64 * 100.0 };
    object.append(&mut samples("bw", "dev", &kib));
    object.insert("bw_agg".to_string(), share.into());
    object.append(&mut samples("iops", "stddev", &series.rates()));
    object.into()
}

fn direction_of_nothing() -> Value {
    let mut object = plain(&ClassRecord::default(), 0);
    object.append(&mut samples("bw", "dev", &[]));
    object.insert("bw_agg".to_string(), 0.0.into());
    object.append(&mut samples("iops", "stddev", &[]));
    object.into()
}

fn plain(class: &ClassRecord, elapsed_ns: u64) -> Map<String, Value> {
    let bytes_per_second = per_second(class.bytes, elapsed_ns);
    let latency = latency(&class.latency, true);
    members(json!({
        "io_bytes": class.bytes,
        "io_kbytes": class.bytes / 1024,
        "bw_bytes": bytes_per_second as u64,
        "bw": (bytes_per_second / 1024.0) as u64,
        "iops": per_second(class.latency.count(), elapsed_ns),
        "runtime": elapsed_ns / 1_000_000,
        "total_ios": class.latency.count(),
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": self::latency(&Histogram::new(), false),
        "clat_ns": latency,
        "lat_ns": latency,
    }))
}

fn sync(class: Option<&ClassRecord>) -> Value {
    let nothing = ClassRecord::default();
    let latency_record = &class.unwrap_or(&nothing).latency;
    json!({ "total_ios": latency_record.count(), "lat_ns": latency(latency_record, true) })
}

fn latency(histogram: &Histogram, percentiles: bool) -> Value {
    let mut object = members(json!({
        "min": histogram.min().unwrap_or(0),
        "max": histogram.max().unwrap_or(0),
        "mean": histogram.mean().unwrap_or(0.0),
        "stddev": deviation(histogram),
        "N": histogram.count(),
    }));
    if percentiles && histogram.count() > 0 {
        let at = |p: &f64| (format!("{p:.6}"), histogram.quantile(p / 100.0).unwrap_or(0).into());
        object.insert("percentile".to_string(), Value::Object(PERCENTILES.iter().map(at).collect()));
    }
    object.into()
}

/// Standard deviation, from the middles of the buckets (0.1 % wide).
fn deviation(histogram: &Histogram) -> f64 {
    let mean = histogram.mean().unwrap_or(0.0);
    let middle = |bucket| (bucket_low(bucket) as f64 + bucket_high(bucket) as f64) / 2.0;
    let squares: f64 =
        histogram.nonzero().map(|(bucket, n)| n as f64 * (middle(bucket) - mean).powi(2)).sum();
    (squares / histogram.count().max(1) as f64).sqrt()
}

/// `NAME_min`, `NAME_max`, `NAME_mean`, the deviation under fio's own word for it, and `NAME_samples`.
fn samples(name: &str, deviation: &str, values: &[f64]) -> Map<String, Value> {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let spread = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
    let largest = values.iter().copied().fold(0.0, f64::max);
    let smallest = values.iter().copied().fold(largest, f64::min);
    Map::from_iter([
        (format!("{name}_min"), (smallest as u64).into()),
        (format!("{name}_max"), (largest as u64).into()),
        (format!("{name}_mean"), mean.into()),
        (format!("{name}_{deviation}"), spread.into()),
        (format!("{name}_samples"), values.len().into()),
    ])
}

fn cpu(job: &JobRecord) -> Map<String, Value> {
    let thread_time = (job.elapsed_ns * u64::from(job.job.threads.max(1))).max(1) as f64;
    let percent = |ns: u64| ns as f64 / thread_time * 100.0;
    members(json!({
        "job_runtime": job.elapsed_ns / 1_000_000,
        "usr_cpu": percent(job.cpu.process_user_ns),
        "sys_cpu": percent(job.cpu.process_system_ns),
        "ctx": 0,
        "majf": 0,
        "minf": 0,
        "latency_depth": job.job.depth,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    }))
}

/// fio counts depths operation by operation; weir knows the mean, so all of it goes to the mean's level.
fn depths(job: &JobRecord) -> Map<String, Value> {
    let levels = |labels: [&str; 7], mark: Option<usize>| {
        let level = |(i, label): (usize, &&str)| {
            (label.to_string(), if mark == Some(i) { 100.0 } else { 0.0 }.into())
        };
        Value::Object(labels.iter().enumerate().map(level).collect())
    };
    let operations = job.classes.values().any(|c| c.latency.count() > 0);
    let mean = job.engine.in_flight_mean / f64::from(job.job.threads.max(1));
    let depth = (mean.round().max(1.0).log2() as usize).min(6);
    // The batches' levels are upper edges: 0, up to 4, up to 8 …
    let batch = (f64::from(job.engine.batch.max(1)) / 4.0).log2().ceil().max(0.0) as usize + 1;
    let submit = || levels(["0", "4", "8", "16", "32", "64", ">=64"], operations.then_some(batch.min(6)));
    Map::from_iter([
        (
            "iodepth_level".to_string(),
            levels(["1", "2", "4", "8", "16", "32", ">=64"], operations.then_some(depth)),
        ),
        ("iodepth_submit".to_string(), submit()),
        ("iodepth_complete".to_string(), submit()),
    ])
}

/// Shares of all reads and writes in fio's latency buckets, percent.
fn latency_buckets(job: &JobRecord) -> Map<String, Value> {
    let mut all = Histogram::new();
    for class in [Class::Read, written(job)] {
        job.classes.get(&class).into_iter().for_each(|c| all.merge(&c.latency));
    }
    let within = |range: Range<u64>| {
        let low_edge = |(bucket, _): &(usize, u64)| range.contains(&bucket_low(*bucket));
        let n: u64 = all.nonzero().filter(low_edge).map(|(_, n)| n).sum();
        Value::from(n as f64 / all.count().max(1) as f64 * 100.0)
    };
    let mut out = Map::new();
    let mut from = 0;
    for (name, unit) in [("latency_ns", 1), ("latency_us", 1_000), ("latency_ms", 1_000_000)] {
        let mut buckets = Map::new();
        for edge in EDGES {
            buckets.insert(edge.to_string(), within(from..edge * unit));
            from = edge * unit;
        }
        if name == "latency_ms" {
            buckets.insert("2000".to_string(), within(from..2000 * unit));
            buckets.insert(">=2000".to_string(), within(2000 * unit..u64::MAX));
        }
        out.insert(name.to_string(), buckets.into());
    }
    out
}

/// The members of a value that was written as an object.
fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
