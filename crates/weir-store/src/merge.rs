//! Rows of several files as those of one: in order, equal keys added up. The last column of a table is what is added; of gauges the
//! largest value stays, and of facts each counts once.

use std::collections::BTreeMap;

use weir_archive::tables::is_gauge;
use weir_archive::{Batch, Column};

/// A cell of a key. Rows are in the order of their cells.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Number(i64),
    Text(String),
}

/// Merges rows of one table; `None` where there are none.
pub fn merged(batches: &[Batch]) -> Option<Batch> {
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
