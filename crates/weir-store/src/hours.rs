//! Rows of a recorder's intervals, added up by hours. Requests keep the load under which they were served, so that devices can be
//! compared at equal load afterwards.

use std::collections::BTreeMap;

use weir_archive::tables::{self, is_gauge};
use weir_archive::{Batch, Row};

use crate::covered::Covered;
use crate::facts::of_event;
use crate::layout::Place;
use crate::tables::{Counter, Fact, Stage, Sync, Wait};

const HOUR_S: i64 = 3_600;

/// Hours of a host in the making.
#[derive(Debug, Default)]
pub struct Hours {
    host: String,
    stages: BTreeMap<(i64, String, String, String, i64, i64), i64>,
    syncs: BTreeMap<(i64, String, i64, i64), i64>,
    waits: BTreeMap<(i64, String, String), i64>,
    counters: BTreeMap<(i64, String, String), i64>,
    facts: Vec<Fact>,
    left_out: usize,
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
    /// Of a host.
    pub fn new(host: &str) -> Hours {
        Hours { host: host.to_string(), ..Hours::default() }
    }

    /// Takes the rows of a file of the recorder's, except those of times that were imported. Returns from when until when they are, in ms.
    pub fn take(&mut self, batches: &[Batch], covered: &Covered) -> Option<(i64, i64)> {
        let table = batches.first()?.table().name;
        let loads = loads(batches);
        let mut times: Option<(i64, i64)> = None;
        let mut is_new = |ts_ms: i64, span_ms: i64| {
            let (begin, end) = times.unwrap_or((ts_ms, ts_ms));
            times = Some((begin.min(ts_ms), end.max(ts_ms.saturating_add(span_ms.max(1)))));
            !covered.has(table, ts_ms)
        };
        for batch in batches {
            match table {
                "stages" => {
                    let rows =
                        tables::Stage::all(batch).into_iter().filter(|row| is_new(row.ts_ms, row.span_ms));
                    rows.for_each(|row| self.stage(row, &loads));
                }
                "syncs" => {
                    let rows =
                        tables::Sync::all(batch).into_iter().filter(|row| is_new(row.ts_ms, row.span_ms));
                    rows.for_each(|row| {
                        let load = loads.get(&(row.ts_ms, String::new())).copied().unwrap_or(0);
                        let key = (hour_s(row.ts_ms), row.unit, load, row.bucket_low_ns);
                        add(&mut self.syncs, key, row.count, &mut self.left_out);
                    });
                }
                "waits" => {
                    let rows =
                        tables::Wait::all(batch).into_iter().filter(|row| is_new(row.ts_ms, row.span_ms));
                    rows.for_each(|row| {
                        add(
                            &mut self.waits,
                            (hour_s(row.ts_ms), row.part, row.cause),
                            row.ns,
                            &mut self.left_out,
                        );
                    });
                }
                "counters" => {
                    let rows =
                        tables::Counter::all(batch).into_iter().filter(|row| is_new(row.ts_ms, row.span_ms));
                    rows.for_each(|row| self.counter(row));
                }
                "events" => {
                    let rows = tables::Event::all(batch).into_iter().filter(|row| is_new(row.ts_ms, 1));
                    rows.for_each(|row| self.facts.extend(of_event(&self.host, &row)));
                }
                _ => {}
            }
        }
        times
    }

    /// Takes facts.
    pub fn take_facts(&mut self, facts: Vec<Fact>) {
        self.facts.extend(facts);
    }

    /// Rows that were left out, since no recorder writes such: negative counts and durations.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    fn stage(&mut self, row: tables::Stage, loads: &BTreeMap<(i64, String), i64>) {
        let key = (row.ts_ms, row.device);
        let load = loads.get(&key).copied().unwrap_or(0);
        let key = (hour_s(row.ts_ms), key.1, row.class, row.stage, load, row.bucket_low_ns);
        add(&mut self.stages, key, row.count, &mut self.left_out);
    }

    fn counter(&mut self, row: tables::Counter) {
        let gauge = is_gauge(&row.name);
        let kept = self.counters.entry((hour_s(row.ts_ms), row.device, row.name)).or_default();
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

/// The load of each interval: of a device its reads and writes, from the beginning to the end; of the host its syncs.
fn loads(batches: &[Batch]) -> BTreeMap<(i64, String), i64> {
    let mut requests: BTreeMap<(i64, String), (i64, i64)> = BTreeMap::new();
    for row in batches.iter().flat_map(tables::Stage::all) {
        // sync_write and metadata lie within these two.
        if row.stage == "g2c" && (row.class == "read" || row.class == "write") {
            let sum = requests.entry((row.ts_ms, row.device)).or_insert((0, row.span_ms));
            sum.0 = sum.0.saturating_add(row.count.max(0));
        }
    }
    for row in batches.iter().flat_map(tables::Sync::all) {
        let sum = requests.entry((row.ts_ms, String::new())).or_insert((0, row.span_ms));
        sum.0 = sum.0.saturating_add(row.count.max(0));
    }
    requests.into_iter().map(|(key, (requests, span_ms))| (key, load(requests, span_ms))).collect()
}

fn add<K: Ord>(sums: &mut BTreeMap<K, i64>, key: K, count: i64, left_out: &mut usize) {
    if count < 0 {
        *left_out += 1;
    } else {
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(count);
    }
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
        let mut hours = Hours::new("db1");
        assert_eq!(hours.take(&[batch], &Covered::default()), Some((7_200_000, 10_810_000)));
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
        let mut hours = Hours::new("db1");
        hours.take(&[batch], &covered);
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
        let mut hours = Hours::new("db1");
        hours.take(&[batch], &Covered::default());
        let days = hours.finish();
        assert_eq!(days.iter().map(|(place, _)| place.day_s).collect::<Vec<_>>(), [0, 86_400]);
        let values: Vec<i64> =
            days.iter().flat_map(|(_, batch)| Counter::all(batch)).map(|row| row.value).collect();
        assert_eq!(values, [5, i64::MAX, 4]);
    }
}
