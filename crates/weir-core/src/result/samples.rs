//! Records made by hand for the tests of results and reports.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "made for tests")]

use std::collections::BTreeMap;

use serde_json::json;

use crate::result::record::{
    Class, ClassRecord, CpuRecord, EngineRecord, Interval, IntervalClass, JobRecord, Record, SCHEMA,
};
use crate::stats::random::{Random, simulate};
use crate::workload::Job;

/// One second of a made-up class: how many operations, of which latency.
#[derive(Clone, Copy)]
pub struct Second {
    /// Operations.
    pub count: u64,
    /// Mean latency; single ones are exponential around it.
    pub latency_ns: f64,
}

/// Seconds all alike but for a relative noise of the rate.
pub fn seconds(random: &mut Random, n: usize, count: f64, latency_ns: f64, noise: f64) -> Vec<Second> {
    let rates = simulate::series(random, n, count, noise, 0.0);
    rates.into_iter().map(|rate| Second { count: rate.max(0.0) as u64, latency_ns }).collect()
}

/// A job that measured the given classes, second by second.
pub fn job(random: &mut Random, classes: &[(Class, Vec<Second>)]) -> JobRecord {
    let mut totals: BTreeMap<Class, ClassRecord> = BTreeMap::new();
    let length = classes.iter().map(|(_, seconds)| seconds.len()).max().unwrap_or(0);
    let intervals: Vec<Interval> = (0..length)
        .map(|i| {
            let cell = |(class, seconds): &(Class, Vec<Second>)| {
                let made = seconds.get(i).map(|s| class_record(random, *class, *s)).unwrap_or_default();
                let total = totals.entry(*class).or_default();
                total.bytes += made.bytes;
                total.latency.merge(&made.latency);
                (*class, interval_class(&made))
            };
            Interval {
                start_ns: i as u64 * 1_000_000_000,
                len_ns: 1_000_000_000,
                classes: classes.iter().map(cell).collect(),
                oldest_ns: 2_000_000,
                in_flight: 1,
            }
        })
        .collect();
    let elapsed_ns = length as u64 * 1_000_000_000;
    let latency_sum: u128 =
        totals.iter().filter(|(class, _)| **class != Class::Commit).map(|(_, c)| c.latency.sum()).sum();
    JobRecord {
        job: Job { name: "made-up".to_string(), ..Job::default() },
        engine: EngineRecord {
            name: "psync".to_string(),
            in_flight_max: 1,
            in_flight_mean: latency_sum as f64 / elapsed_ns as f64,
            ..EngineRecord::default()
        },
        elapsed_ns,
        classes: totals,
        intervals,
        threads: Vec::new(),
        final_sync: None,
        lateness: None,
        cpu: CpuRecord {
            process_user_ns: elapsed_ns / 10,
            process_system_ns: elapsed_ns / 5,
            machine_busy_ns: elapsed_ns / 2,
            processors: 2,
            allowed: None,
        },
        notes: Vec::new(),
        error: None,
        verify: None,
        flood_ages_ns: Vec::new(),
    }
}

fn class_record(random: &mut Random, class: Class, second: Second) -> ClassRecord {
    let mut record = ClassRecord::default();
    (0..second.count).for_each(|_| {
        record.latency.record((-simulate::uniform(random).ln() * second.latency_ns) as u64 + 1_000)
    });
    record.bytes = if class == Class::Sync { 0 } else { second.count * 4096 };
    record
}

/// What an interval keeps of a class.
pub fn interval_class(made: &ClassRecord) -> IntervalClass {
    let at = |q| made.latency.quantile(q).unwrap_or(0);
    IntervalClass {
        count: made.latency.count(),
        bytes: made.bytes,
        mean_ns: made.latency.mean().unwrap_or(0.0),
        p50_ns: at(0.5),
        p95_ns: at(0.95),
        p99_ns: at(0.99),
        max_ns: made.latency.max().unwrap_or(0),
        coarse: made.latency.coarse(3),
    }
}

/// A record of jobs on a made-up machine.
pub fn record(jobs: Vec<JobRecord>) -> Record {
    Record {
        schema: SCHEMA.to_string(),
        id: "20261121-081359-506-0f1e".to_string(),
        weir_version: "0.1.0".to_string(),
        command: ["weir", "bench", "--dir", "/srv/my db"].map(String::from).to_vec(),
        kind: "bench".to_string(),
        started_at: "2026-11-21T08:13:59Z".to_string(),
        conditions: json!({
            "kernel": "6.1.0-13-amd64",
            "cpu": { "model": "Made-up CPU", "processors": 2, "governors": {}, "virtualised": "hypervisor flag" },
            "memory": { "total_bytes": 8_589_934_592u64, "free_bytes": 1, "swap_total_bytes": 0 },
            "vm": {
                "dirty": { "bytes": 0, "ratio_percent": 20 },
                "dirty_background": { "bytes": 0, "ratio_percent": 10 },
                "swappiness": 60,
            },
            "load_at_start": { "loadavg": [0.5, 0.4, 0.3] },
            "target": {
                "path": "/srv/my db",
                "file_system": {
                    "kind": "ext4",
                    "mount_point": "/srv",
                    "options": ["rw", "noatime"],
                },
                "stack": [
                    { "name": "sda1", "kind": { "type": "partition" }, "size_bytes": 107_374_182_400u64 },
                    {
                        "name": "sda",
                        "kind": { "type": "disk" },
                        "model": "Made-up SSD ",
                        "bus": "scsi",
                        "queue": {
                            "scheduler": "mq-deadline",
                            "nr_requests": 256,
                            "write_cache": "write back",
                            "wbt_lat_usec": 2000,
                            "rotational": false,
                            "read_ahead_kb": 128,
                        },
                    },
                ],
                "device": "sda",
            },
        }),
        jobs,
        floods: Vec::new(),
        notes: Vec::new(),
        ended_early: None,
        extra: serde_json::Value::Null,
    }
}
