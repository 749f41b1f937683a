//! A made-up day of four devices and twenty units at 10 s: how large its archive is, and how long a question takes.
//!
//!     cargo run --release -p weir-archive --example day FOLDER
//!
//! The files lie in FOLDER afterwards, as a recorder would have left them today: `weir recorder show --dir FOLDER` reads them.
#![allow(clippy::disallowed_methods, reason = "an example may touch files and clocks; the library does not")]
#![allow(clippy::unwrap_used, reason = "it ends at the first mistake")]

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Instant, SystemTime};

use weir_archive::parquet::{Writer, read};
use weir_archive::segment::Name;
use weir_archive::series::{Series, Wanted};
use weir_archive::tables::{Behind, Counter, Process, Row, Stage, Sync, Wait, named};
use weir_archive::verdict::judge;
use weir_archive::{Batch, SCHEMA, Table};

const SPAN_MS: i64 = 10_000;
const HOUR_S: i64 = 3600;

/// Numbers that look random and are the same at every run (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, most: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % most as u64) as i64
    }
}

fn main() {
    let folder = std::env::args().nth(1).expect("a folder");
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    let now_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
    let first_s = (now_s - 24 * HOUR_S) / 10 * 10;
    let (mut random, began, mut rows) = (Random(1), Instant::now(), 0);
    for hour in 0..24 {
        rows += segment(folder, first_s + hour * HOUR_S, &mut random);
    }
    let bytes: u64 =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    println!("{rows} rows, {:.1} MB, written in {:.1} s", bytes as f64 / 1e6, began.elapsed().as_secs_f64());
    for (what, hours) in [("half an hour after six", 6), ("half an hour after 23", 23)] {
        let since_ms = (first_s + 23 * HOUR_S) * 1000;
        let wanted = Wanted {
            since_ms: since_ms - hours * HOUR_S * 1000,
            until_ms: since_ms + 1_800_000,
            ..Wanted::default()
        };
        let (began, mut series) = (Instant::now(), Series::default());
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let Some(Name::Table { table, begin_s, end_s }) =
                Name::parse(path.file_name().unwrap().to_str().unwrap())
            else {
                continue;
            };
            if table.name != "stages" && end_s * 1000 >= wanted.since_ms && begin_s * 1000 < wanted.until_ms {
                take(&path, table, &mut series, &wanted);
            }
        }
        let verdict = judge(&series, since_ms, wanted.until_ms);
        println!(
            "{what}: {:.2} s for {} intervals, {} troubles",
            began.elapsed().as_secs_f64(),
            series.slots.len(),
            verdict.troubles.len()
        );
    }
}

fn take(path: &Path, table: &'static Table, series: &mut Series, wanted: &Wanted) {
    let bytes = fs::read(path).unwrap();
    let each = |batch: Batch| {
        series.take(&batch, wanted);
        ControlFlow::Continue(())
    };
    read(&bytes, table, each).unwrap();
}

/// An hour; returns its rows.
fn segment(folder: &Path, begin_s: i64, random: &mut Random) -> usize {
    let mut batches: BTreeMap<&str, Batch> = BTreeMap::new();
    for at in 0..HOUR_S * 1000 / SPAN_MS {
        for batch in interval(begin_s * 1000 + at * SPAN_MS, random) {
            batches.entry(batch.table().name).or_insert_with(|| Batch::new(batch.table())).append(&batch);
        }
    }
    let rows = batches.values().map(Batch::rows).sum();
    for (name, batch) in batches {
        let table = named(name).unwrap();
        let keys = vec![("weir.archive".to_string(), SCHEMA.to_string())];
        let mut writer = Writer::new(Vec::new(), table, keys).unwrap();
        writer.group(&batch).unwrap();
        let name = Name::Table { table, begin_s, end_s: begin_s + HOUR_S };
        fs::write(folder.join(name.to_string()), writer.finish().unwrap()).unwrap();
    }
    rows
}

fn interval(ts_ms: i64, random: &mut Random) -> Vec<Batch> {
    let span_ms = SPAN_MS;
    let (mut stages, mut counters) = (Vec::new(), Vec::new());
    for device in ["sda", "sdb", "nvme0n1", "nvme1n1"].map(String::from) {
        for class in ["read", "write", "sync_write", "metadata", "flush"] {
            for stage in ["g2d", "d2c", "g2c"] {
                let first = 40 + random.below(8);
                stages.extend((0..20).map(|nth| Stage {
                    ts_ms,
                    span_ms,
                    device: device.clone(),
                    class: class.into(),
                    stage: stage.into(),
                    bucket_low_ns: 1 << ((first + nth) / 4) | (first + nth) % 4,
                    count: 1 + random.below(1 << (10 - (nth - 10).abs())),
                }));
            }
        }
        for name in [
            "reads",
            "read_bytes",
            "read_ms",
            "writes",
            "write_bytes",
            "write_ms",
            "busy_ms",
            "queue_ms",
            "flushes",
            "flush_ms",
            "in_flight",
            "dirty_bytes",
            "writeback_bytes",
            "written_bytes",
        ] {
            let value = 1 + random.below(1 << 20);
            counters.push(Counter { ts_ms, span_ms, device: device.clone(), name: name.into(), value });
        }
    }
    for nth in 0..20 {
        let value = random.below(1 << 30);
        counters.push(Counter {
            ts_ms,
            span_ms,
            device: String::new(),
            name: format!("machine_{nth}"),
            value,
        });
    }
    let (mut syncs, mut waits, mut behind, mut processes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for nth in 0..20 {
        let (comm, unit) = (format!("server{nth}"), format!("server{nth}.service"));
        let cgroup = format!("/system.slice/{unit}");
        syncs.extend((0..15).map(|bucket| Sync {
            ts_ms,
            span_ms,
            comm: comm.clone(),
            unit: unit.clone(),
            cgroup: cgroup.clone(),
            bucket_low_ns: 300_000 << (bucket / 2),
            count: 1 + random.below(100),
        }));
        for part in ["own_data", "journal", "flush", "lock"] {
            waits.extend(["others", "device", "kernel"].map(|cause| Wait {
                ts_ms,
                span_ms,
                comm: comm.clone(),
                unit: unit.clone(),
                cgroup: cgroup.clone(),
                part: part.into(),
                cause: cause.into(),
                ns: 1 + random.below(1 << 33),
            }));
        }
        behind.extend((0..3).map(|culprit| Behind {
            ts_ms,
            span_ms,
            comm: comm.clone(),
            unit: unit.clone(),
            culprit: format!("server{culprit}"),
            culprit_unit: format!("server{culprit}.service"),
            way: "writeback".into(),
            ns: random.below(1 << 33),
            bytes: random.below(1 << 28),
            ios: random.below(1 << 12),
        }));
        let (read_bytes, written_bytes) = (random.below(1 << 28), random.below(1 << 28));
        processes.push(Process { ts_ms, span_ms, comm, unit, cgroup, read_bytes, written_bytes });
    }
    vec![
        Stage::batch(&stages),
        Sync::batch(&syncs),
        Wait::batch(&waits),
        Behind::batch(&behind),
        Process::batch(&processes),
        Counter::batch(&counters),
    ]
}
