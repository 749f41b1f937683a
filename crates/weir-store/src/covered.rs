//! The times of a host that were imported. A segment may come twice, and exports may overlap: a time counts once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// For each table, times in ms that were imported: in order, and apart from each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered(BTreeMap<String, Vec<(i64, i64)>>);

impl Covered {
    /// Whether a time of a table was imported.
    pub fn has(&self, table: &str, at_ms: i64) -> bool {
        let Some(spans) = self.0.get(table) else { return false };
        let after = spans.partition_point(|(begin, _)| *begin <= at_ms);
        after > 0 && at_ms < spans[after - 1].1
    }

    /// From now on, these are imported.
    pub fn add(&mut self, table: &str, begin_ms: i64, end_ms: i64) {
        if begin_ms >= end_ms {
            return;
        }
        let spans = self.0.entry(table.to_string()).or_default();
        spans.push((begin_ms, end_ms));
        spans.sort_unstable();
        let mut apart: Vec<(i64, i64)> = Vec::with_capacity(spans.len());
        for (begin, end) in spans.drain(..) {
            match apart.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => apart.push((begin, end)),
            }
        }
        *spans = apart;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_time_is_covered_if_one_of_the_spans_has_it(spans in prop::collection::vec((0_i64..60, 0_i64..9), 0..20)) {
            let mut covered = Covered::default();
            spans.iter().for_each(|(begin, length)| covered.add("stages", *begin, begin + length));
            for at in -1..70 {
                let expected = spans.iter().any(|(begin, length)| (*begin..begin + length).contains(&at));
                prop_assert_eq!(covered.has("stages", at), expected);
            }
            prop_assert!(!covered.has("syncs", 3));
            let text = serde_json::to_string(&covered).unwrap();
            prop_assert_eq!(serde_json::from_str::<Covered>(&text).unwrap(), covered);
        }
    }
}
