//! The few figures of a host's answer that a table shows and that hosts are compared by. What a host answers is anybody's: it is
//! read into these types or left out, and nothing of it is believed beyond its own row.

use serde::{Deserialize, Serialize};

use crate::answer::{Any, CommitStages, Doctor, Few, Run, parsed};
use crate::session::short;

/// Commits, as one job measured them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Commits {
    /// Commits a second.
    pub rate: f64,
    /// Median latency.
    pub p50_ns: Option<u64>,
    /// 95th percentile.
    pub p95_ns: Option<u64>,
    /// 99th percentile, with enough commits.
    pub p99_ns: Option<u64>,
}

/// Where the mean time of a commit went, of the doctor's stages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// In the device's queue.
    pub queue_ns: f64,
    /// In driver and device, flushes included.
    pub device_ns: f64,
    /// Outside of the block layer.
    pub elsewhere_ns: f64,
}

/// What the doctor read and concluded, as far as hosts are compared by it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Examination {
    /// Kinds of file system and of the device's layers, without names and sizes.
    pub model: String,
    /// The settings of the devices' queues, without names.
    pub settings: String,
    /// The doctor's words, where it found a limit on IOPS or bandwidth.
    pub throttled: Option<String>,
    /// What others wrote and read before the examination, in bytes a second.
    pub others_bytes_per_second: Option<f64>,
    /// The doctor's words about them.
    pub others: Option<String>,
    /// Stages of commits, where they could be seen.
    pub stages: Option<Stages>,
}

/// The figures of one host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// A word: `POOR`, or the first line of what was printed.
    pub verdict: String,
    /// The doctor's sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
    /// Commits by one thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<Commits>,
    /// Of an examination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub examination: Option<Examination>,
}

/// Reads them out of what weir printed.
pub fn read(printed: &str) -> Figures {
    if !printed.trim_start().starts_with('{') {
        let first = printed.lines().map(str::trim).find(|line| !line.is_empty());
        return Figures { verdict: first.map(short).unwrap_or_default(), ..Figures::default() };
    }
    let schema = parsed(printed).map(|Any { schema }| schema).unwrap_or_default();
    match schema.as_str() {
        "weir.doctor/1" => parsed(printed).map(|document| of_doctor(&document)).unwrap_or_default(),
        "weir.result/1" => parsed(printed).map(|document| of_result(&document)).unwrap_or_default(),
        _ => Figures::default(),
    }
}

fn of_doctor(document: &Doctor) -> Figures {
    let of_id = |id: &str| document.measurements.0.iter().find(|one| one.id == id);
    let commit = of_id("commit-16k-t1").or_else(|| of_id("commit-4k-t1"));
    let commits = commit.and_then(|commit| {
        let latency = &commit.latency;
        let rate = figure(commit.iops.mean)?;
        Some(Commits { rate, p50_ns: latency.p50_ns, p95_ns: latency.p95_ns, p99_ns: latency.p99_ns })
    });
    Figures {
        verdict: short(&document.headline.grade).to_uppercase(),
        headline: Some(short(&document.headline.text)).filter(|text| !text.is_empty()),
        commits,
        examination: Some(examination(document)),
    }
}

fn examination(document: &Doctor) -> Examination {
    let fact = |label: &str| {
        let found = document.facts.0.iter().find(|fact| fact.label == label);
        found.map(|fact| fact.value.as_str()).unwrap_or_default()
    };
    let file_system = fact("file system").split(' ').next().unwrap_or_default();
    let class = document.findings.0.iter().find(|finding| finding.topic == "class");
    let class = class.map(|finding| short(&finding.summary)).unwrap_or_default();
    let others = short(fact("others, before"));
    Examination {
        // Shortened last: how long the names are must not decide where.
        model: short(&format!("{file_system} on {}", kinds(fact("device")))),
        settings: short(&nameless(fact("queue"))),
        throttled: Some(class).filter(|class| class.contains("throttled") || class.contains("limited")),
        others_bytes_per_second: megabytes(&others),
        others: Some(others).filter(|others| !others.is_empty()),
        stages: stages(&document.commit_stages),
    }
}

/// What stands in parentheses in `dm-0 (LVM vg-db) → [sda (disk, sata, X) + sdb (disk, sata, X)]`, as `LVM → [disk, sata, X + disk, sata, X]`:
/// it is the same on hosts of one kind.
fn kinds(device: &str) -> String {
    let (mut kinds, mut kind, mut depth) = (String::new(), String::new(), 0_usize);
    for c in device.chars() {
        match (c, depth) {
            ('(', 0) => depth = 1,
            (')', 1) => {
                // A map's name and a RAID's size come after the first word, a disk's bus and model after commas.
                let head = kind.split(',').next().unwrap_or_default();
                kinds.push_str(head.split(' ').next().unwrap_or_default());
                kinds.push_str(&kind[head.len()..]);
                kind.clear();
                depth = 0;
            }
            ('→' | '+', 0) => kinds.extend([' ', c, ' ']),
            ('[' | ']', 0) => kinds.push(c),
            (_, 0) => {}
            // A model may hold parentheses itself.
            _ => {
                depth = match c {
                    '(' => depth + 1,
                    ')' => depth - 1,
                    _ => depth,
                };
                kind.push(c);
            }
        }
    }
    kinds
}

/// `sda, sdb: scheduler none; sdc: scheduler kyber` without the names, which stand there where devices are several.
fn nameless(queues: &str) -> String {
    let settings = queues.split("; ").map(|one| one.split_once(": ").map_or(one, |(_, settings)| settings));
    settings.collect::<Vec<_>>().join("; ")
}

fn stages(all: &Few<CommitStages>) -> Option<Stages> {
    let stages = all.0.iter().find(|stages| stages.measurement == "commit-16k-t1").or(all.0.first())?;
    let device_ns = figure(stages.device_ns)? + figure(stages.flush_ns)?;
    Some(Stages { queue_ns: figure(stages.queue_ns)?, device_ns, elsewhere_ns: figure(stages.elsewhere_ns)? })
}

fn of_result(document: &Run) -> Figures {
    let Some(job) = document.jobs.0.first() else { return Figures::default() };
    let headline = job.headline.as_deref().unwrap_or_default();
    let commits = job.classes.of(headline).and_then(|class| {
        let rate = figure(class.iops)?;
        Some(Commits { rate, p50_ns: class.p50.ns(), p95_ns: class.p95.ns(), p99_ns: class.p99.ns() })
    });
    Figures { verdict: short(job.error.as_deref().unwrap_or(headline)), commits, ..Figures::default() }
}

/// A number that can be a rate or a time in ns: nobody measures more, and less is nothing.
fn figure(value: Option<f64>) -> Option<f64> {
    const LEAST: f64 = 1e-6;
    let value = value.filter(|value| (0.0..=1e15).contains(value))?;
    Some(if value < LEAST { 0.0 } else { value })
}

/// The `12.3 MB/s` in a fact.
fn megabytes(fact: &str) -> Option<f64> {
    let before = fact.split(" MB/s").next().filter(|before| before.len() < fact.len())?;
    let number = before.rsplit(' ').next()?.replace(',', "");
    number.parse().ok().map(|megabytes: f64| megabytes * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_examination() {
        let document = serde_json::json!({
            "schema": "weir.doctor/1", "headline": {"grade": "poor", "text": "A volume throttled to 1,500 write IOPS."},
            "facts": [{"label": "file system", "value": "ext4 on / (rw)"}, {"label": "device", "value": "vda (disk, virtio)"},
                {"label": "queue", "value": "scheduler none"}, {"label": "others, before", "value": "processors 1 % busy, 3 writes/s, 1,200.50 MB/s, 1 MiB dirty"}],
            "findings": [{"topic": "class", "summary": "a volume throttled to 1,500 write IOPS"}],
            "measurements": [{"id": "commit-16k-t1", "iops": {"mean": 749.0}, "latency": {"p50_ns": 1_300_000, "p95_ns": 2_000_000, "p99_ns": null}}],
            "commit_stages": [{"measurement": "commit-16k-t1", "queue_ns": 1.0, "device_ns": 2.0, "flush_ns": 3.0, "elsewhere_ns": 4.0}],
        });
        let figures = read(&document.to_string());
        assert_eq!(figures.verdict, "POOR");
        assert_eq!(
            figures.commits,
            Some(Commits { rate: 749.0, p50_ns: Some(1_300_000), p95_ns: Some(2_000_000), p99_ns: None })
        );
        let examined = figures.examination.unwrap();
        assert_eq!(
            (examined.model.as_str(), examined.settings.as_str()),
            ("ext4 on disk, virtio", "scheduler none")
        );
        assert!(examined.throttled.unwrap().contains("1,500"));
        assert_eq!(examined.others_bytes_per_second, Some(1_200_500_000.0));
        assert_eq!(examined.stages, Some(Stages { queue_ns: 1.0, device_ns: 5.0, elsewhere_ns: 4.0 }));
    }

    #[test]
    fn a_model_has_the_kinds_of_all_layers_and_no_name() {
        let read = |device: &str, queue: &str| {
            let facts = serde_json::json!([
                {"label": "file system", "value": "xfs on /data (rw)"}, {"label": "device", "value": device},
                {"label": "queue", "value": queue}]);
            let document = serde_json::json!({"schema": "weir.doctor/1", "facts": facts}).to_string();
            let examined = read(&document).examination.unwrap();
            (examined.model, examined.settings)
        };
        let none = "scheduler none, 64 requests";
        for (device, model) in [
            ("nvme0n1p1 (partition) → nvme0n1 (disk, nvme, X)", "partition → disk, nvme, X"),
            ("vdb (disk, virtio)", "disk, virtio"),
            ("dm-3 (LVM vg-db) → sdb (disk, scsi, V 2 (R))", "LVM → disk, scsi, V 2 (R)"),
            (
                "dm-0 (CRYPT luks-1) → md127 (raid1 of 2) → [sda1 (partition) → sda (disk) + sdb (disk)]",
                "CRYPT → raid1 → [partition → disk + disk]",
            ),
            ("loop0 (loop, direct I/O on)", "loop, direct I/O on"),
            (") (", ""),
        ] {
            let model = format!("xfs on {model}").trim_end().to_string();
            assert_eq!(read(device, none), (model, none.to_string()), "{device}");
        }
        // Sixteen disks, wherever their names begin to have two digits.
        let raid = |from: usize| {
            let legs: Vec<String> = (from..from + 16).map(|n| format!("nvme{n}n1 (disk, nvme, X)")).collect();
            format!("md0 (raid10 of 16) → [{}]", legs.join(" + "))
        };
        assert_eq!(read(&raid(0), ""), read(&raid(10), ""));
        let settings = |queue| read("", queue).1;
        assert_eq!(settings("sda, sdb: scheduler none"), "scheduler none");
        assert_eq!(settings("sda: scheduler none; sdb: scheduler kyber"), "scheduler none; scheduler kyber");
    }

    #[test]
    fn of_a_bench_and_of_text() {
        let document = r#"{"schema":"weir.result/1","jobs":[{"headline":"commit","error":null,"classes":{"commit":{"iops":292.4,
            "p50":{"value":{"ns":4000000}},"p95":{"value":{"ns":5000000}},"p99":{"insufficient":{"have":1,"need":300}}}}}]}"#;
        let commits = read(document).commits.unwrap();
        assert_eq!((commits.rate, commits.p50_ns, commits.p99_ns), (292.4, Some(4_000_000), None));
        assert_eq!(read("\n  weir has nothing in force\n").verdict, "weir has nothing in force");
    }

    #[test]
    fn nothing_that_a_host_answers_does_harm() {
        for hostile in [
            "{",
            "{}",
            "[]",
            "{\"schema\":\"weir.doctor/1\"}",
            "{\"schema\":\"weir.doctor/1\",\"measurements\":7,\"headline\":[],\"facts\":{\"a\":1}}",
            "{\"schema\":\"weir.result/1\",\"jobs\":[[]]}",
            "{\"schema\":\"weir.result/1\",\"jobs\":[{\"headline\":\"commit\",\"classes\":{\"commit\":{\"iops\":-1e308}}}]}",
            "{\"schema\":\"weir.result/1\",\"jobs\":[{\"headline\":\"commit\",\"classes\":{\"commit\":{\"iops\":1.7e308}}}]}",
        ] {
            assert_eq!(read(hostile).commits, None, "{hostile}");
        }
        let least = "{\"schema\":\"weir.result/1\",\"jobs\":[{\"headline\":\"commit\",\"classes\":{\"commit\":{\"iops\":5e-324}}}]}";
        assert_eq!(read(least).commits.map(|commits| commits.rate), Some(0.0));
        assert_eq!(read("\u{1b}[2J\u{9b}x").verdict, "\u{fffd}[2J\u{fffd}x");
        assert!(read(&"x".repeat(1 << 20)).verdict.chars().count() < 300);
    }
}
