//! The plant against itself.

use super::scenario::scenario;
use super::*;

const SECOND: u64 = 1_000_000_000;

/// A minute of a random scenario, looked at ten times a second under a limit that wanders.
fn wander(seed: u64, mut look: impl FnMut(&mut Plant, u64)) {
    let case = scenario(seed, 60 * SECOND);
    let mut plant = Plant::new(case.spec.clone(), seed);
    let mut events = case.script.events.iter().peekable();
    let limits =
        [case.spec.cache.saved_bytes, 200_000_000, 4_000_000, 20_000_000, case.spec.cache.floor_bytes];
    for at in (0..60 * SECOND).step_by(SECOND as usize / 10) {
        while let Some(event) = events.next_if(|event| event.at_ns <= at) {
            plant.apply(event.event);
        }
        let limit = limits[(at / (5 * SECOND)) as usize % limits.len()];
        plant.step(limit, SECOND / 10);
        look(&mut plant, limit);
    }
}

#[test]
fn bytes_are_conserved() {
    for seed in 0..12 {
        wander(seed, |plant, _| {
            let totals = plant.totals();
            let pages = plant.cache.bulk_dirty + plant.cache.writeback;
            // What bulk writers made dirty is written, under way or dirty; the rest under way is of sync threads.
            let of_syncs = plant.spec.syncs.data_bytes * plant.threads.len() as u64;
            assert!(totals.bulk_written + pages >= totals.bulk_dirtied, "seed {seed}: {totals:?}");
            assert!(totals.bulk_written + pages <= totals.bulk_dirtied + of_syncs, "seed {seed}: {totals:?}");
        });
    }
}

#[test]
fn the_device_never_gives_more_than_it_can() {
    for seed in 0..12 {
        let (mut bytes, mut requests) = (0.0, 0.0);
        let mut best: (f64, f64) = (0.0, 0.0);
        wander(seed, |plant, _| {
            let rates = plant.rates();
            best = (best.0.max(rates.0), best.1.max(rates.1));
            (bytes, requests) = (bytes + best.0 / 10.0, requests + best.1 / 10.0);
            // A slice that was not used up may be made up for in the next.
            let totals = plant.totals();
            assert!(totals.written as f64 <= bytes * 1.02 + best.0 * 0.4, "seed {seed}: {totals:?}");
            assert!(totals.requests as f64 <= requests * 1.02 + best.1 * 0.4, "seed {seed}: {totals:?}");
        });
    }
}

#[test]
fn dirty_pages_stay_below_a_limit_that_holds() {
    for seed in 0..12 {
        let mut before = 0;
        wander(seed, |plant, limit| {
            // A lowered limit is reached when the device has taken the rest; each writer may be one stride beyond.
            let slack =
                (plant.writers.len() as u64 + 1) * (1 << 20) + (plant.threads.len() as u64) * (64 << 10);
            let now = plant.backlog_bytes();
            assert!(now <= limit.max(before) + slack, "seed {seed}: {now} beyond {limit} and {before}");
            before = now;
        });
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let case = scenario(7, 30 * SECOND);
    let run = |seed| simulate(&case.spec, &case.script, Law::Static(20_000_000), seed);
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
    assert_eq!(case, scenario(7, 30 * SECOND));
}

#[test]
fn a_plant_is_written_and_read_back() {
    for spec in [PlantSpec::device_a(), PlantSpec::device_c(), scenario(5, SECOND).spec] {
        let text = toml::to_string(&spec).unwrap();
        assert_eq!(PlantSpec::from_toml(&text).unwrap(), spec, "{text}");
    }
    assert_eq!(PlantSpec::from_toml("").unwrap(), PlantSpec::device_a());
    assert!(PlantSpec::from_toml("[device]\niops = 3\n").is_err());
}

#[test]
fn a_silent_sensor_says_nothing_and_how_long() {
    let mut plant = Plant::new(PlantSpec::device_a(), 1);
    plant.step(50_000_000, SECOND);
    assert!(plant.sample().syncs.ended.count() > 500);
    plant.apply(Event::Silence(true));
    plant.step(50_000_000, 3 * SECOND);
    let sample = plant.sample();
    assert_eq!((sample.sensor.silent_ns, sample.syncs.ended.count()), (3 * SECOND, 0));
    plant.apply(Event::Silence(false));
    plant.step(50_000_000, SECOND);
    assert_eq!(plant.sample().sensor.silent_ns, 0);
}

#[test]
fn a_stall_shows_in_the_age_of_the_oldest_sync_before_anything_ends() {
    let mut spec = PlantSpec::device_a();
    spec.bulk.writers = 0;
    let mut plant = Plant::new(spec, 1);
    plant.step(50_000_000, SECOND);
    plant.apply(Event::Stall(5 * SECOND));
    // The device's last completions may not have been seen yet.
    plant.step(50_000_000, SECOND / 100);
    plant.sample();
    plant.step(50_000_000, 2 * SECOND);
    let sample = plant.sample();
    assert_eq!(sample.syncs.under_way, 10);
    assert!(sample.syncs.oldest_ns > SECOND, "{}", sample.syncs.oldest_ns);
    assert_eq!(sample.syncs.ended.count() + sample.flow.writes, 0);
}

#[test]
fn at_one_limit_syncs_are_fast_or_slow_by_what_was_before_where_processors_are_few() {
    let spec = || {
        let mut spec = PlantSpec::device_a().crowded();
        (spec.syncs.threads, spec.bulk.writers) = (0, 0);
        spec
    };
    let commits = |first: Event, then: Event| {
        let script = Script::of_seconds(20).and(1.0, first).and(4.0, then);
        simulate(&spec(), &script, Law::Static(30_000_000), 1).commits_per_second(8, 20)
    };
    let fast = commits(Event::Threads(10), Event::Flood(1));
    let slow = commits(Event::Flood(1), Event::Threads(10));
    assert!(fast > 1.3 * slow, "syncs first {fast}, flood first {slow}");
}
