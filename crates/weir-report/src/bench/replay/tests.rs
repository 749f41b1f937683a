//! A replay that had to change what it could, and was late: all of it is said, and nothing is wider than a ticket.

use super::*;
use crate::{json, text};
use weir_blocktrace::replay::{From, LeftOut, SCHEMA};
use weir_blocktrace::{ClassSet, Flags, Stage, StageTable};
use weir_core::result::derive;
use weir_core::result::record::Lateness;
use weir_core::stats::Histogram;
use weir_core::target::DeviceNumber;
use weir_core::workload::replay::Fitted;
use weir_core::workload::spec::{BlockSize, EngineKind, Replay};

fn table(flags: u32, bytes: u32, count: u64, d2c_ns: u64) -> StageTable {
    let device = DeviceNumber { major: 8, minor: 0 };
    let mut table = StageTable::default();
    let classes = ClassSet::of(Flags(flags), bytes);
    let cell =
        table.cell_mut(weir_blocktrace::Key { device, classes, size: weir_blocktrace::SizeClass::of(bytes) });
    for nth in 0..count {
        cell.stage_mut(Stage::D2C).record(d2c_ns + nth);
        cell.stage_mut(Stage::Q2C).record(2 * d2c_ns + nth);
    }
    table
}

/// A run that played a recording, and what it keeps besides.
pub fn played() -> (Record, ReplayRecord) {
    let mut record = crate::bench::tests::full();
    record.kind = "replay".to_string();
    let mut delays = Histogram::new();
    (0..6_000).for_each(|nth| delays.record(if nth < 5_400 { 12_000 } else { 3_000_000 }));
    let job = &mut record.jobs[0];
    job.job.replay = Some(Replay {
        recording: "/var/log/night.weirtrace".to_string(),
        device: "sda (8:0)".to_string(),
        speed: 2.0,
        ..Replay::default()
    });
    job.job.block = BlockSize::Split(vec![(Bytes(4096), 3.0), (Bytes(1 << 20), 1.0)]);
    (job.job.engine, job.job.depth, job.job.direct) = (EngineKind::IoUring, 64, true);
    job.lateness = Some(Lateness {
        intended: 6_000,
        late: 100,
        start_delay_max_ns: 3_000_000,
        start_delay: Some(delays),
        waited_for_depth: 512,
        ..Lateness::default()
    });
    let fitted = Fitted {
        ios: 6_000,
        reads: 4_000,
        writes: 1_900,
        flushes: 100,
        durable: 90,
        flushed_writes: 80,
        bytes: 1 << 30,
        operations: 6_080,
        span_ns: 12_000_000_000,
        extent_bytes: 1 << 40,
        space: Space::Wrap,
        target_bytes: 1 << 30,
        block_bytes: 4096,
        rounded: 17,
        moved: 5_000,
        in_parts: 3,
        gaps: 2,
        gaps_ns: 7_200_000_000_000,
        out_of_order: 1,
        ..Fitted::default()
    };
    let mut recorded = table(Flags::WRITE.0 | Flags::SYNC.0, 4096, 1_900, 100_000);
    recorded.merge(&table(Flags::FLUSH.0, 0, 100, 1_000_000));
    let replay = ReplayRecord {
        schema: SCHEMA.to_string(),
        recording: "/var/log/night.weirtrace".to_string(),
        device: "sda (8:0)".to_string(),
        from: From::Queue,
        depth_mean: 3.25,
        depth_max: 71,
        left_out: LeftOut { discards: 12, ..LeftOut::default() },
        fitted,
        recorded,
        replayed: Some(table(Flags::WRITE.0, 4096, 1_900, 50_000)),
        unseen: None,
        notes: vec!["3 events were far out of order in their files".to_string()],
    };
    (record, replay)
}

#[test]
fn the_report_says_what_was_played_changed_and_late() {
    let (record, replay) = played();
    let report = text::replay(&derive(&record), &record, &replay);
    let flat = report.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "sda (8:0) of /var/log/night.weirtrace at 2 x its speed",
        "4 KiB to 1 MiB",
        "6,000 I/Os of sda (8:0), as sent (Q): 4,000 reads, 1,900 writes (90 FUA, 80 with a flush first), 100 flushes",
        "offsets wrapped: the recording reaches to 1 TiB, the target has 1 GiB; 5,000 of the I/Os moved",
        "17 rounded to whole blocks of 4 KiB",
        "3 longer than 1 MiB, in parts",
        "1 sorted, as their times ran backwards",
        "2 times without I/O shortened by 120 min in all (--gap-max)",
        "left out 12 discards",
        "3.25 in flight on average in the recording, 71 at most",
        "starts behind their times: p50 12.0 µs, p99 3.00 ms, max 3.00 ms; 10.0 % of 6,000 more than 100 µs",
        "the machine could not keep to the recording's times: 10.0 % of 6,000 operations started more than 100 µs late",
        "512 of them because the target had as many in flight as --depth allows",
        "a write with a flush first is played as both",
        "3 events were far out of order",
    ] {
        assert!(flat.contains(expected), "no {expected:?} in\n{report}");
    }
    assert!(!flat.contains("the schedule was not kept"), "{report}");
    let row = report.lines().find(|line| line.starts_with("sync write") && line.contains("D2C")).unwrap();
    assert!(row.contains("1,900") && row.trim_end().ends_with('-'), "the replay had none: {row}");
    let wide = report.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide, None);
}

#[test]
fn what_was_not_seen_is_said() {
    let (record, replay) = played();
    let unseen = Some("not root".to_string());
    let replay = ReplayRecord { replayed: None, unseen, ..replay };
    let report = text::replay(&derive(&record), &record, &replay);
    assert!(report.contains("the stages of the replay were not seen: not root"), "{report}");
}

#[test]
fn that_the_target_stands_on_several_devices_is_said() {
    let (record, mut replay) = played();
    let said = |replay: &ReplayRecord| {
        let report = text::replay(&derive(&record), &record, replay);
        let flat = report.split_whitespace().collect::<Vec<_>>().join(" ");
        flat.contains("the target stands on 2 devices: the replay's I/Os are those of 8:0, 8:16 together")
    };
    assert!(!said(&replay));
    let key = weir_blocktrace::Key {
        device: DeviceNumber { major: 8, minor: 16 },
        ..*replay.recorded.cells().next().unwrap().0
    };
    replay.replayed.as_mut().unwrap().cell_mut(key).ios = 1;
    assert!(said(&replay));
}

#[test]
fn json_and_page_hold_both_sides() {
    let (record, replay) = played();
    let text = json::replay(&derive(&record), &replay).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], "weir.result/1");
    let rows = value["replay"]["stages"].as_array().unwrap();
    assert_eq!((rows[0]["class"].as_str(), rows[0]["stage"].as_str()), (Some("write"), Some("d2c")));
    assert_eq!((&rows[0]["recorded"]["count"], &rows[0]["replayed"]["count"]), (&1900.into(), &1900.into()));
    assert_eq!(value["replay"]["fitted"]["space"], "wrap");
    let page = crate::html::replay(&record, &replay);
    for expected in
        ["What was played", "How late operations started", "The recording and the replay", "512 of them"]
    {
        assert!(page.contains(expected), "no {expected:?}");
    }
}
