//! A sweep: one row for each value, both axes with their intervals.

use super::{cell, interval_cell, last_flush_left, tabulated};
use crate::experiment::words;
use weir_core::units::significant;
use weir_experiment::{Metric, Study};
use weir_verdict::view::percent;

/// The table of values.
pub fn figures(study: &Study<'_>) -> String {
    let main = study.main_metric();
    let with_bulk = study.has(&Metric::Bulk);
    let with_idle = (0..study.arms.len()).any(|arm| words::of_idle(study, arm).is_some());
    let with_p99 = main != Metric::P99 && study.has(&Metric::P99);
    let mut rows = vec![head(study, &main, [with_idle, with_bulk, with_p99])];
    // A value for which no time was left has no figures; a remark names it.
    for arm in study.tried() {
        let mut row = vec![words::arm(study, arm), cell(study, arm, &main), interval_cell(study, arm, &main)];
        if with_idle {
            row.push(words::of_idle(study, arm).map_or(String::new(), percent));
        }
        if with_bulk {
            row.extend([bulk(study, arm), interval_cell(study, arm, &Metric::Bulk)]);
        }
        if with_p99 {
            row.push(cell(study, arm, &Metric::P99));
        }
        row.push(words::marks(study, arm).join(", "));
        rows.push(row);
    }
    last_flush_left(&mut rows);
    tabulated(&rows, 1)
}

fn head(study: &Study<'_>, main: &Metric, [idle, bulk, p99]: [bool; 3]) -> Vec<String> {
    let knob = words::swept_name(study).unwrap_or_default();
    let mut head = vec![knob, words::title(study, main), "95 %".to_string()];
    head.extend(idle.then(|| "of idle".to_string()));
    head.extend(bulk.then(|| ["bulk MB/s".to_string(), "95 %".to_string()]).into_iter().flatten());
    head.extend(p99.then(|| "p99".to_string()));
    head.push(String::new());
    head
}

/// Bulk throughput in the unit of its column.
fn bulk(study: &Study<'_>, arm: usize) -> String {
    study.value(arm, &Metric::Bulk).map_or("-".to_string(), |rate| significant(rate / 1e6))
}
