//! Rows of several files as those of one: in order, equal keys added up. The last column of a table is what is added; of gauges the
//! largest value stays, and of facts each counts once.

use std::collections::BTreeMap;

use weir_archive::tables::is_gauge;
use weir_archive::{Batch, Column};

/// Memory of rows that are merged at a time, about: those of a week of six busy devices.
const HELD_MAX: usize = 1 << 30;

/// What a row takes beside its names: cells of a key, each with memory of its own, and the place in a tree.
const ROW_BYTES: usize = 400;

/// Rows of one table that come file by file and are merged. Where they are more than memory is for, they come out in parts, and the
/// same key may stand in two: as in two files, which mean the same.
#[derive(Debug, Default)]
pub struct Merger {
    batches: Vec<Batch>,
    held: usize,
}

impl Merger {
    /// Adds rows. Returns all since the last time, merged, once they are many.
    #[must_use]
    pub fn add(&mut self, batch: Batch) -> Option<Batch> {
        let names = |column: &Column| if let Column::Texts(texts) = column { texts.bytes() } else { 0 };
        let names: usize = batch.columns().iter().map(names).sum();
        self.held = self.held.saturating_add(batch.rows() * ROW_BYTES + names);
        self.batches.push(batch);
        if self.held > HELD_MAX { self.finish() } else { None }
    }

    /// Returns the rest, merged.
    #[must_use]
    pub fn finish(&mut self) -> Option<Batch> {
        self.held = 0;
        merged(&std::mem::take(&mut self.batches))
    }
}

/// A cell of a key. Rows are in the order of their cells.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Number(i64),
    Text(String),
}

/// Merges rows of one table; `None` where there are none.
fn merged(batches: &[Batch]) -> Option<Batch> {
    let table = batches.first()?.table();
    let measured = batches[0].columns().last().is_some_and(|column| matches!(column, Column::Integers(_)));
    let keys = table.columns.len() - usize::from(measured);
    let gauges = table.name == "counters";
    let mut rows: BTreeMap<Vec<Cell>, i64> = BTreeMap::new();
    for batch in batches.iter().filter(|batch| batch.table().name == table.name) {
        for row in 0..batch.rows() {
            let cell = |column: &Column| match column {
                Column::Integers(_) => Cell::Number(column.integer(row)),
                Column::Texts(_) => Cell::Text(column.text(row).to_string()),
            };
            let key: Vec<Cell> = batch.columns()[..keys].iter().map(cell).collect();
            let value = batch.columns().get(keys).map_or(0, |column| column.integer(row));
            let peaks = gauges && matches!(key.last(), Some(Cell::Text(name)) if is_gauge(name));
            let kept = rows.entry(key).or_default();
            *kept = if peaks { (*kept).max(value) } else { kept.saturating_add(value) };
        }
    }
    let mut all = Batch::new(table);
    for (key, value) in rows {
        let mut columns = all.columns_mut().iter_mut();
        for cell in key {
            match (columns.next(), cell) {
                (Some(column), Cell::Number(number)) => column.push_integer(number),
                (Some(column), Cell::Text(text)) => column.push_text(&text),
                (None, _) => {}
            }
        }
        if let Some(column) = columns.next() {
            column.push_integer(value);
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_archive::Row;

    use super::*;
    use crate::tables::{Counter, Fact, Sync};

    proptest! {
        #[test]
        fn however_rows_are_parted_they_add_up_to_the_same(
            rows in prop::collection::vec((0_i64..3, 0_i64..4, 0_i64..100), 1..40),
            cut in any::<prop::sample::Index>(),
        ) {
            let rows: Vec<Sync> = rows
                .into_iter()
                .map(|(ts, bucket_low_ns, n)| Sync { host: "db1".into(), ts, bucket_low_ns, n, ..Sync::default() })
                .collect();
            let (one, two) = rows.split_at(cut.index(rows.len()));
            let whole = merged(&[Sync::batch(&rows)]).unwrap();
            let parts = merged(&[Sync::batch(two), Sync::batch(one)]).unwrap();
            prop_assert_eq!(&whole, &parts);
            prop_assert_eq!(Sync::all(&whole).iter().map(|row| row.n).sum::<i64>(), rows.iter().map(|row| row.n).sum::<i64>());
            prop_assert_eq!(&merged(std::slice::from_ref(&whole)).unwrap(), &whole);
        }
    }

    #[test]
    fn rows_that_are_too_many_to_merge_come_in_parts() {
        let batch = |ts: i64| {
            let row = |bucket_low_ns| Sync { ts, unit: "u".into(), bucket_low_ns, n: 1, ..Sync::default() };
            Sync::batch(&[row(2), row(1), row(2)])
        };
        let mut merger = Merger::default();
        assert_eq!((merger.add(batch(1)), merger.add(batch(0))), (None, None));
        assert!((6 * ROW_BYTES..10 * ROW_BYTES).contains(&merger.held), "{}", merger.held);
        merger.held += HELD_MAX - 8 * ROW_BYTES;
        let part = merger.add(batch(1)).unwrap();
        let rows = |batch: &Batch| Sync::all(batch).iter().map(|row| (row.ts, row.n)).collect::<Vec<_>>();
        assert_eq!(rows(&part), [(0, 1), (0, 2), (1, 2), (1, 4)]);
        assert_eq!((merger.held, merger.finish()), (0, None));
        assert_eq!(merger.add(batch(1)), None);
        assert_eq!(rows(&merger.finish().unwrap()), [(1, 1), (1, 2)]);
    }

    #[test]
    fn gauges_peak_and_facts_count_once() {
        let counter = |name: &str, value| Counter { name: name.into(), value, ..Counter::default() };
        let batch = Counter::batch(&[
            counter("in_flight", 3),
            counter("in_flight", 2),
            counter("reads", 3),
            counter("reads", 2),
        ]);
        let values: Vec<i64> = Counter::all(&merged(&[batch]).unwrap()).iter().map(|row| row.value).collect();
        assert_eq!(values, [3, 5]);
        let fact = |value: &str| Fact { name: "model".into(), value: value.into(), ..Fact::default() };
        let facts = merged(&[Fact::batch(&[fact("b"), fact("a")]), Fact::batch(&[fact("b")])]).unwrap();
        assert_eq!(Fact::all(&facts), [fact("a"), fact("b")]);
        assert_eq!(merged(&[]), None);
    }
}
