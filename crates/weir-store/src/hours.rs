//! Rows of a recorder's intervals, added up by hours. Requests keep the load under which they were served, so that devices can be
//! compared at equal load afterwards.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use weir_archive::tables::{self, is_gauge};
use weir_archive::{Batch, Row};

use crate::covered::Covered;
use crate::facts::{Newest, of_event};
use crate::layout::Place;
use crate::tables::{Counter, Fact, Stage, Sync, Wait};

const HOUR_S: i64 = 3_600;

/// 2015-01-01T00:00:00Z: no weir is older.
const FIRST_MS: i64 = 1_420_070_400_000;

const DAY_MS: i64 = 86_400_000;

/// Memory of sums and facts, and of the loads of the file at hand, about: that of two weeks of six busy devices.
const HELD_MAX: usize = 1 << 30;

/// What one takes beside its names.
const ENTRY_BYTES: usize = 200;

/// The longest names of a row together, bytes: a recorder's row has at most three, of 256.
const NAMES_MAX: usize = 768;

/// More than a host's recorder says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more different sums and facts than {} MiB hold: import fewer files at a time", HELD_MAX >> 20)]
pub struct TooMuch;

/// Times, ms since 1970, that a recorder or record can be of, with clocks that are two days fast.
pub fn times(now_ms: i64) -> RangeInclusive<i64> {
    FIRST_MS..=now_ms.saturating_add(2 * DAY_MS)
}

/// Hours of a host in the making.
#[derive(Debug)]
pub struct Hours {
    host: String,
    times: RangeInclusive<i64>,
    stages: BTreeMap<(i64, String, String, String, i64, i64), i64>,
    syncs: BTreeMap<(i64, String, i64, i64), i64>,
    waits: BTreeMap<(i64, String, String), i64>,
    counters: BTreeMap<(i64, String, String), i64>,
    facts: Vec<Fact>,
    account: Account,
}

/// What became of rows.
#[derive(Debug, Default)]
struct Account {
    left_out: usize,
    held: usize,
}

impl Account {
    /// A sum that was not there yet.
    fn new_sum(&mut self, names: usize) -> i64 {
        self.held = self.held.saturating_add(ENTRY_BYTES + names);
        0
    }

    fn within(&self) -> Result<(), TooMuch> {
        if self.held > HELD_MAX { Err(TooMuch) } else { Ok(()) }
    }
}

/// Whole hours of which times in ms are a part.
fn hour_s(ts_ms: i64) -> i64 {
    let ts = ts_ms.div_euclid(1000);
    ts - ts.rem_euclid(HOUR_S)
}

/// The largest power of two up to so many in so many ms, a second.
fn load(requests: i64, span_ms: i64) -> i64 {
    let rate = requests.max(0).saturating_mul(1000) / span_ms.max(1);
    rate.checked_ilog2().map_or(0, |power| 1 << power)
}

impl Hours {
    /// Of a host; only rows of these times ([`times`]) are taken.
    pub fn new(host: &str, times: RangeInclusive<i64>) -> Hours {
        Hours {
            host: host.to_string(),
            times,
            stages: BTreeMap::new(),
            syncs: BTreeMap::new(),
            waits: BTreeMap::new(),
            counters: BTreeMap::new(),
            facts: Vec::new(),
            account: Account::default(),
        }
    }

    /// Takes the rows of a file of the recorder's, except those of times that were imported. Returns from when until when they are, in ms.
    ///
    /// # Errors
    /// Where memory would have to grow without bound.
    pub fn take(&mut self, batches: &[Batch], covered: &Covered) -> Result<Option<(i64, i64)>, TooMuch> {
        let before = self.account.held;
        let loads = Loads::of(batches, &mut self.account)?;
        let of_loads = self.account.held - before;
        let taken = self.add_rows(batches, &loads, covered);
        self.account.held -= of_loads;
        taken
    }

    fn add_rows(
        &mut self,
        batches: &[Batch],
        loads: &Loads,
        covered: &Covered,
    ) -> Result<Option<(i64, i64)>, TooMuch> {
        let Some(table) = batches.first().map(|batch| batch.table().name) else { return Ok(None) };
        let mut times: Option<(i64, i64)> = None;
        let (can_be, mut strange) = (self.times.clone(), 0);
        let mut is_new = |ts_ms: i64, span_ms: i64| {
            if !can_be.contains(&ts_ms) {
                strange += 1;
                return false;
            }
            let (begin, end) = times.unwrap_or((ts_ms, ts_ms));
            times = Some((begin.min(ts_ms), end.max(ts_ms.saturating_add(span_ms.clamp(1, DAY_MS)))));
            !covered.has(table, ts_ms)
        };
        for batch in batches {
            match table {
                "stages" => {
                    let rows =
                        tables::Stage::all(batch).into_iter().filter(|row| is_new(row.ts_ms, row.span_ms));
                    rows.for_each(|row| self.stage(row, loads));
                }
                "syncs" => {
                    let rows =
                        tables::Sync::all(batch).into_iter().filter(|row| is_new(row.ts_ms, row.span_ms));
                    rows.for_each(|row| {
                        let load = loads.load(&(row.ts_ms, String::new()));
                        let names = row.unit.len();
                        let key = (hour_s(row.ts_ms), row.unit, load, row.bucket_low_ns);
                        add(&mut self.syncs, key, names, row.count, &mut self.account);
                    });
                }
                "waits" => {
                    let rows =
                        tables::Wait::all(batch).into_iter().filter(|row| is_new(row.ts_ms, row.span_ms));
                    rows.for_each(|row| {
                        let names = row.part.len() + row.cause.len();
                        let key = (hour_s(row.ts_ms), row.part, row.cause);
                        add(&mut self.waits, key, names, row.ns, &mut self.account);
                    });
                }
                "counters" => {
                    let rows =
                        tables::Counter::all(batch).into_iter().filter(|row| is_new(row.ts_ms, row.span_ms));
                    rows.for_each(|row| self.counter(row));
                }
                "events" => {
                    let rows = tables::Event::all(batch).into_iter().filter(|row| is_new(row.ts_ms, 1));
                    rows.map(|row| of_event(&self.host, &row))
                        .try_for_each(|facts| keep(&mut self.facts, facts, &mut self.account))?;
                }
                _ => {}
            }
            self.account.within()?;
        }
        self.account.left_out += strange;
        Ok(times)
    }

    /// Takes facts.
    ///
    /// # Errors
    /// As [`Hours::take`].
    pub fn take_facts(&mut self, facts: Vec<Fact>) -> Result<(), TooMuch> {
        keep(&mut self.facts, facts, &mut self.account)
    }

    /// Leaves out facts that are known.
    pub fn only_news(&mut self, known: &mut Newest) {
        self.facts.sort_by_key(|fact| fact.ts);
        self.facts.retain(|fact| known.is_news(fact));
    }

    /// Rows that were left out, since no recorder writes such: negative counts and durations, times that cannot be, and long names.
    pub fn left_out(&self) -> usize {
        self.account.left_out
    }

    fn stage(&mut self, row: tables::Stage, loads: &Loads) {
        let key = (row.ts_ms, row.device);
        let load = loads.load(&key);
        let names = key.1.len() + row.class.len() + row.stage.len();
        let key = (hour_s(row.ts_ms), key.1, row.class, row.stage, load, row.bucket_low_ns);
        add(&mut self.stages, key, names, row.count, &mut self.account);
    }

    fn counter(&mut self, row: tables::Counter) {
        let gauge = is_gauge(&row.name);
        let names = row.device.len() + row.name.len();
        if names > NAMES_MAX {
            self.account.left_out += 1;
            return;
        }
        let kept = self.counters.entry((hour_s(row.ts_ms), row.device, row.name));
        let kept = kept.or_insert_with(|| self.account.new_sum(names));
        *kept = if gauge { (*kept).max(row.value) } else { kept.saturating_add(row.value) };
    }

    /// All rows, by table and day, in order.
    pub fn finish(self) -> Vec<(Place, Batch)> {
        let host = || self.host.clone();
        let stages = self.stages.into_iter().map(|((ts, device, class, stage, load, bucket_low_ns), n)| {
            Stage { host: host(), ts, device, class, stage, load, bucket_low_ns, n }
        });
        let syncs = self.syncs.into_iter().map(|((ts, unit, load, bucket_low_ns), n)| Sync {
            host: host(),
            ts,
            unit,
            load,
            bucket_low_ns,
            n,
        });
        let waits =
            self.waits.into_iter().map(|((ts, part, cause), ns)| Wait { host: host(), ts, part, cause, ns });
        let counters = self.counters.into_iter().map(|((ts, device, name), value)| Counter {
            host: host(),
            ts,
            device,
            name,
            value,
        });
        let mut days = Days::default();
        stages.for_each(|row| days.put(row.ts, &self.host, &row));
        syncs.for_each(|row| days.put(row.ts, &self.host, &row));
        waits.for_each(|row| days.put(row.ts, &self.host, &row));
        counters.for_each(|row| days.put(row.ts, &self.host, &row));
        self.facts.iter().for_each(|row| days.put(row.ts, &self.host, row));
        days.0.into_iter().collect()
    }
}

/// Requests of each interval and its length in ms: of a device its reads and writes, from the beginning to the end; of the host its
/// syncs.
struct Loads(BTreeMap<(i64, String), (i64, i64)>);

impl Loads {
    /// Of the rows of a file. What they take is added to the account, as it is of sums.
    fn of(batches: &[Batch], account: &mut Account) -> Result<Loads, TooMuch> {
        let mut loads = Loads(BTreeMap::new());
        for batch in batches {
            for row in tables::Stage::all(batch) {
                // sync_write and metadata lie within these two.
                let is_counted = row.stage == "g2c" && (row.class == "read" || row.class == "write");
                if is_counted && row.device.len() <= NAMES_MAX {
                    loads.add((row.ts_ms, row.device), row.span_ms, row.count, account);
                }
            }
            for row in tables::Sync::all(batch) {
                loads.add((row.ts_ms, String::new()), row.span_ms, row.count, account);
            }
            account.within()?;
        }
        Ok(loads)
    }

    fn add(&mut self, key: (i64, String), span_ms: i64, count: i64, account: &mut Account) {
        let names = key.1.len();
        let (requests, _) = self.0.entry(key).or_insert_with(|| (account.new_sum(names), span_ms));
        *requests = requests.saturating_add(count.max(0));
    }

    fn load(&self, key: &(i64, String)) -> i64 {
        self.0.get(key).map_or(0, |(requests, span_ms)| load(*requests, *span_ms))
    }
}

/// Adds to a sum whose key has names of so many bytes.
fn add<K: Ord>(sums: &mut BTreeMap<K, i64>, key: K, names: usize, count: i64, account: &mut Account) {
    if count < 0 || names > NAMES_MAX {
        account.left_out += 1;
    } else {
        let sum = sums.entry(key).or_insert_with(|| account.new_sum(names));
        *sum = sum.saturating_add(count);
    }
}

fn keep(kept: &mut Vec<Fact>, facts: Vec<Fact>, account: &mut Account) -> Result<(), TooMuch> {
    let bytes = |fact: &Fact| ENTRY_BYTES + fact.device.len() + fact.name.len() + fact.value.len();
    account.held += facts.iter().map(bytes).sum::<usize>();
    kept.extend(facts);
    account.within()
}

#[derive(Default)]
struct Days(BTreeMap<Place, Batch>);

impl Days {
    fn put<R: Row>(&mut self, ts: i64, host: &str, row: &R) {
        row.put(self.0.entry(Place::of(R::TABLE, ts, host)).or_insert_with(|| Batch::new(R::TABLE)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ts_ms: i64, class: &str, stage: &str, bucket_low_ns: i64, count: i64) -> tables::Stage {
        let (device, class, stage) = ("sda".into(), class.into(), stage.into());
        tables::Stage { ts_ms, span_ms: 10_000, device, class, stage, bucket_low_ns, count }
    }

    fn stages(hours: Hours) -> Vec<Stage> {
        hours.finish().iter().flat_map(|(_, batch)| Stage::all(batch)).collect()
    }

    #[test]
    fn intervals_add_up_to_hours_at_their_load() {
        let batch = tables::Stage::batch(&[
            row(7_200_000, "write", "g2c", 512, 9_000),
            row(7_200_000, "write", "d2c", 512, 9_000),
            row(7_200_000, "sync_write", "g2c", 512, 9_000),
            row(7_210_000, "write", "g2c", 512, 9_500),
            row(7_220_000, "read", "g2c", 512, 5),
            row(10_800_000, "read", "g2c", 512, -5),
        ]);
        let mut hours = Hours::new("db1", 0..=i64::MAX);
        assert_eq!(hours.take(&[batch], &Covered::default()), Ok(Some((7_200_000, 10_810_000))));
        assert_eq!(hours.left_out(), 1);
        let rows: Vec<String> = stages(hours)
            .iter()
            .map(|row| format!("{} {} {} load {} n {}", row.ts, row.class, row.stage, row.load, row.n))
            .collect();
        let expected = [
            "7200 read g2c load 0 n 5",
            "7200 sync_write g2c load 512 n 9000",
            "7200 write d2c load 512 n 9000",
            "7200 write g2c load 512 n 18500",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn what_was_imported_counts_once() {
        let batch =
            tables::Stage::batch(&[row(0, "read", "g2c", 512, 7), row(10_000, "read", "g2c", 512, 8)]);
        let mut covered = Covered::default();
        covered.add("stages", 0, 10_000);
        let mut hours = Hours::new("db1", 0..=i64::MAX);
        hours.take(&[batch], &covered).unwrap();
        assert_eq!(stages(hours)[0].n, 8);
    }

    #[test]
    fn counters_grow_and_gauges_peak() {
        let counter = |ts_ms, name: &str, value| tables::Counter {
            ts_ms,
            span_ms: 10_000,
            device: "sda".into(),
            name: name.into(),
            value,
        };
        let batch = tables::Counter::batch(&[
            counter(0, "reads", 5),
            counter(10_000, "reads", 7),
            counter(0, "in_flight", 5),
            counter(86_400_000, "in_flight", 4),
            counter(10_000, "reads", i64::MAX),
        ]);
        let mut hours = Hours::new("db1", 0..=i64::MAX);
        hours.take(&[batch], &Covered::default()).unwrap();
        let days = hours.finish();
        assert_eq!(days.iter().map(|(place, _)| place.day_s).collect::<Vec<_>>(), [0, 86_400]);
        let values: Vec<i64> =
            days.iter().flat_map(|(_, batch)| Counter::all(batch)).map(|row| row.value).collect();
        assert_eq!(values, [5, i64::MAX, 4]);
    }

    #[test]
    fn times_that_cannot_be_are_left_out() {
        let now_ms = FIRST_MS + 5 * DAY_MS;
        let rows =
            [i64::MIN, 0, FIRST_MS - 1, FIRST_MS, now_ms + 2 * DAY_MS, now_ms + 2 * DAY_MS + 1, i64::MAX]
                .map(|ts_ms| row(ts_ms, "read", "d2c", 512, 1));
        let mut hours = Hours::new("db1", times(now_ms));
        let taken = hours.take(&[tables::Stage::batch(&rows)], &Covered::default());
        assert_eq!(taken, Ok(Some((FIRST_MS, now_ms + 2 * DAY_MS + 10_000))));
        assert_eq!((hours.left_out(), stages(hours).len()), (5, 2));
    }

    #[test]
    fn names_that_no_recorder_writes_are_left_out() {
        let long = "x".repeat(NAMES_MAX + 1);
        let stage = tables::Stage { device: long.clone(), ..row(0, "read", "g2c", 512, 7) };
        let counter = tables::Counter {
            span_ms: 10_000,
            device: "sda".into(),
            name: long,
            ..tables::Counter::default()
        };
        let mut hours = Hours::new("db1", 0..=i64::MAX);
        for batch in [tables::Stage::batch(&[stage]), tables::Counter::batch(&[counter])] {
            hours.take(&[batch], &Covered::default()).unwrap();
        }
        assert_eq!((hours.left_out(), hours.finish()), (2, Vec::new()));
    }

    #[test]
    fn sums_without_bound_are_refused() {
        let class = "x".repeat(700);
        let rows: Vec<_> = (0..10).map(|n| row(n * 3_600_000, &class, "d2c", 512, 1)).collect();
        let mut hours = Hours::new("db1", 0..=i64::MAX);
        let once = tables::Stage::batch(&rows);
        for _ in 0..3 {
            assert!(hours.take(std::slice::from_ref(&once), &Covered::default()).is_ok());
        }
        assert!(hours.account.held < 10_000, "the same sums take nothing more");
        hours.account.held += HELD_MAX - 5_000;
        assert_eq!(hours.take(&[once], &Covered::default()), Err(TooMuch));
    }

    #[test]
    fn loads_of_very_many_intervals_are_refused() {
        // One sum, at the loads of ten intervals.
        let rows: Vec<_> = (0..10).map(|n| row(n * 1_000, "read", "g2c", 512, 1)).collect();
        let syncs: Vec<_> = (0..10)
            .map(|n| tables::Sync { ts_ms: n * 1_000, span_ms: 1_000, count: 1, ..tables::Sync::default() })
            .collect();
        for once in [tables::Stage::batch(&rows), tables::Sync::batch(&syncs)] {
            let mut hours = Hours::new("db1", 0..=i64::MAX);
            for _ in 0..3 {
                assert!(hours.take(std::slice::from_ref(&once), &Covered::default()).is_ok());
            }
            assert!(hours.account.held < 2 * ENTRY_BYTES, "loads are held no longer than their rows");
            hours.account.held += HELD_MAX - 5 * ENTRY_BYTES;
            assert_eq!(hours.take(&[once], &Covered::default()), Err(TooMuch));
        }
    }
}
