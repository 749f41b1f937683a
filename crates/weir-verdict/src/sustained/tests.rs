//! Planted buckets are recovered, a cache is told from them, and noise is taken for neither.

use super::course::Done;
use super::fall::{self, LONG, SHORT};
use super::judge::judge;
use super::made::{Device, Made};
use super::{Courses, Kind, LimitUnit, Pressure, Sure};
use weir_core::workload::rng::Rng;

fn near(found: f64, planted: f64, within: f64) -> bool {
    (found / planted - 1.0).abs() <= within
}

#[test]
fn planted_buckets_are_recovered_within_a_tenth() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed, 2);
        let bytes = seed % 2 == 1;
        let scale = if bytes { 1e5 } else { 1.0 };
        let base = (300.0 + 700.0 * rng.unit()) * scale;
        let burst = base * (2.0 + 8.0 * rng.unit());
        let credit = (burst - base) * (4.0 + 30.0 * rng.unit());
        let writes_only = seed % 3 == 0;
        let device = Device::Bucket { bytes, burst, base, credit, writes_only };
        let pressure = if bytes { Pressure::Bulk } else { Pressure::Small };
        let idle_s = (3.0 * (burst - base) / base).clamp(4.0, 30.0).min(credit / base / 2.0);
        let found = judge(pressure, &Made::new(device, 0.02, seed).examine(pressure, 240, idle_s));
        let case = format!("{device:?}: {found:?}");
        assert_eq!((found.kind, found.sure), (Kind::TokenBucket, Sure::Certain), "{case}");
        let unit = if bytes { LimitUnit::Bytes } else { LimitUnit::Operations };
        assert_eq!((found.unit, found.reads_limited), (Some(unit), Some(!writes_only)), "{case}");
        let figures = [
            (found.burst, burst),
            (Some(found.sustained), base),
            (found.credit, credit),
            (found.refill, base),
        ];
        for (found, planted) in figures {
            assert!(near(found.unwrap().value, planted, 0.1), "{planted}: {case}");
        }
    }
}

#[test]
fn a_bucket_that_is_empty_at_the_start_shows_after_an_idle_time() {
    let device =
        Device::Bucket { bytes: false, burst: 4000.0, base: 1000.0, credit: 30_000.0, writes_only: false };
    let mut made = Made::new(device, 0.02, 7);
    made.run(4096, false, 60);
    let found = judge(Pressure::Small, &made.examine(Pressure::Small, 80, 10.0));
    assert_eq!((found.kind, found.unit), (Kind::TokenBucket, Some(LimitUnit::Operations)), "{found:?}");
    assert!(near(found.burst.unwrap().value, 4000.0, 0.1) && near(found.refill.unwrap().value, 1000.0, 0.1));
    assert!(found.burst_ns.is_none() && found.credit.unwrap().value < 100.0, "{found:?}");
}

#[test]
fn what_writing_the_test_file_spent_belongs_to_the_credit() {
    let device = Device::Bucket { bytes: true, burst: 2e8, base: 5e7, credit: 1.5e9, writes_only: false };
    let mut made = Made::new(device, 0.0, 7);
    let file = made.run(1 << 20, false, 8);
    let mut courses = made.examine(Pressure::Bulk, 160, 4.0);
    courses.written_before = (super::course::operations(&file) << 20, 2.0);
    let found = judge(Pressure::Bulk, &courses);
    assert!(near(found.credit.unwrap().value, 1.5e9, 0.05), "{found:?}");
}

#[test]
fn a_full_write_cache_is_no_bucket() {
    for seed in 0..20 {
        let device = Device::Cache { fast: 2e9, slow: 4e8, bytes: 3e10 };
        let courses = Made::new(device, 0.05, seed).examine(Pressure::Bulk, 240, 10.0);
        let found = judge(Pressure::Bulk, &courses);
        assert_eq!((found.kind, found.reads_limited), (Kind::WriteCache, Some(false)), "{seed}: {found:?}");
        assert!(near(found.written.0 as f64, 3e10, 0.1) && found.refill.is_none(), "{seed}: {found:?}");
    }
}

/// A neighbour that arrives and stays, or leaves, is neither: the rate fell, and that is all.
#[test]
fn a_fall_without_a_refill_of_its_size_is_not_called_a_bucket() {
    let run =
        |rate: f64, ticks: usize, seed| Made::new(Device::Plain(rate), 0.03, seed).run(4096, false, ticks);
    for (seed, again) in [(1, run(20_000.0, 48, 1)), (2, run(60_000.0, 48, 2))] {
        let mut drain = run(60_000.0, 60, seed);
        drain.extend(run(20_000.0, 60, seed + 9));
        let (other, reads) = (run(20_000.0, 12, 3), run(20_000.0, 8, 4));
        let idle_ns = 10_000_000_000;
        let courses = Courses {
            drain,
            other,
            reads,
            again,
            idle_ns,
            idle_of_writes_ns: idle_ns,
            written_before: (0, 0.0),
        };
        let found = judge(Pressure::Small, &courses);
        assert_eq!((found.kind, found.sure), (Kind::Fell, Sure::Unexplained), "{found:?}");
    }
}

#[test]
fn an_interrupted_examination_claims_no_more_than_it_saw() {
    let device =
        Device::Bucket { bytes: false, burst: 4000.0, base: 1000.0, credit: 30_000.0, writes_only: false };
    let whole = Made::new(device, 0.02, 7).examine(Pressure::Small, 120, 10.0);
    let drain = Courses { drain: whole.drain.clone(), ..Courses::default() };
    assert_eq!(judge(Pressure::Small, &drain).kind, Kind::Fell);
    for ticks in [0, 1, 3, 7, 20, 38] {
        let short = Courses { drain: whole.drain[..ticks].to_vec(), ..Courses::default() };
        assert_eq!(judge(Pressure::Small, &short).kind, Kind::Steady, "{ticks}");
    }
}

/// A process without a fall, of one of several kinds.
fn noise(seed: u64, ticks: usize) -> Vec<Done> {
    let mut rng = Rng::new(seed, 3);
    let (deviation, memory): (f64, f64) = (0.02 + 0.3 * rng.unit(), [0.0, 0.5, 0.9][seed as usize % 3]);
    let mean = 1_000.0 + 50_000.0 * rng.unit();
    let mut state = 0.0;
    (0..ticks)
        .map(|i| {
            let chance = (0..4).map(|_| rng.unit()).sum::<f64>() * 3f64.sqrt() - 2.0 * 3f64.sqrt();
            state = memory * state + (1.0 - memory * memory).sqrt() * chance;
            let shape = match seed % 7 {
                // A start that takes its time.
                0 => 1.0 - (-(i as f64) / 12.0).exp(),
                // Garbage collection: every few seconds a slow half second.
                1 if i % 17 < 2 => 0.3,
                // A stall.
                2 if i == ticks / 2 => 0.0,
                // A slow decline to a half.
                3 => 1.0 - 0.5 * i as f64 / ticks as f64,
                // Single peaks.
                4 if rng.below(20) == 0 => 3.0,
                // It becomes faster.
                5 if i > ticks / 3 => 1.6,
                _ => 1.0,
            };
            let rate = mean * shape * (1.0 + deviation * state).max(0.02);
            let (len_ns, start_ns) = (250_000_000, i as u64 * 250_000_000);
            Done { start_ns, len_ns, operations: (rate * 0.25) as u64, p50_ns: 0 }
        })
        .collect()
}

#[test]
fn noise_and_slow_starts_are_not_taken_for_a_fall() {
    let mut wrong = Vec::new();
    for seed in 0..4_000 {
        for ticks in [12, 16, 40, 160, 480] {
            let bounds = if ticks < 24 { SHORT } else { LONG };
            let found = fall::find(&noise(seed, ticks), &bounds);
            wrong.extend(found.map(|fall| (seed, ticks, fall)));
        }
    }
    // With a deviation of a third and a memory of seconds, 3 of 100,000 do look like one, to people too.
    assert!(wrong.len() <= 1, "{} of 20,000: {:?}", wrong.len(), &wrong[..wrong.len().min(9)]);
}

#[test]
fn noise_is_never_called_a_bucket_or_a_cache() {
    for seed in 0..3_000 {
        let part = |offset: u64, ticks| noise(seed + 7 * offset * 1000, ticks);
        let courses = Courses {
            drain: part(0, 160),
            other: part(1, 12),
            reads: part(2, 8),
            again: part(3, 48),
            idle_ns: 10_000_000_000,
            idle_of_writes_ns: 12_000_000_000,
            written_before: (1 << 30, 5.0),
        };
        let found = judge(Pressure::Small, &courses);
        assert_eq!(found.kind, Kind::Steady, "seed {seed}: {found:?}");
    }
}

/// Other programs take the processor now and then while there is credit; without, they do not show.
#[test]
fn a_bucket_is_recognised_below_a_load_that_is_disturbed() {
    let mut missed = Vec::new();
    for seed in 0..50 {
        let mut drain = noise(seed * 21 + 6, 70);
        let low = super::course::median(&super::course::rates(&drain)) * 0.28;
        drain.iter_mut().for_each(|done| done.operations = done.operations.max((low * 0.45) as u64));
        drain.extend(Made::new(Device::Plain(low), 0.01, seed).run(4096, false, 80));
        let found = fall::find(&drain, &LONG);
        missed.extend(found.is_none_or(|fall| fall.at.abs_diff(70) > 1).then_some((seed, found)));
    }
    assert!(missed.len() <= 5, "{} of 50: {missed:?}", missed.len());
}

#[test]
fn a_fall_within_a_step_of_seconds_is_seen_where_it_is_clear() {
    for (high, low, seen) in [(4000.0, 1000.0, true), (4000.0, 3000.0, false)] {
        let mut course = Made::new(Device::Plain(high), 0.02, 1).run(4096, false, 6);
        course.extend(Made::new(Device::Plain(low), 0.02, 2).run(4096, false, 6));
        assert_eq!(fall::find(&course, &SHORT).is_some(), seen, "{high} {low}");
    }
}
