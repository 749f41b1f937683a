//! Two arms in pairs: every figure side by side, and where the device's requests spent their time.

use super::{cell, last_flush_left, tabulated};
use crate::experiment::stages;
use crate::experiment::words;
use crate::layout::labelled;
use weir_core::units::{Nanos, grouped};
use weir_experiment::{Metric, Study};

/// Both arms by name, then their figures.
pub fn figures(study: &Study<'_>) -> String {
    let mut out = String::new();
    for (letter, arm) in ["A", "B"].into_iter().zip(0..study.arms.len()) {
        let summary = study.finding.arms.get(arm).map_or(String::new(), words::trials);
        labelled(&mut out, letter, &format!("{} ({summary})", words::arm(study, arm)));
    }
    out.push('\n');
    out + &effects(study) + &stages_table(study)
}

fn effects(study: &Study<'_>) -> String {
    let mut metrics: Vec<&Metric> = study.finding.arms.iter().flat_map(|arm| arm.values.keys()).collect();
    metrics.sort();
    metrics.dedup();
    let mut rows = vec![["", "A", "B", "B against A, 95 % interval", "n", ""].map(String::from).to_vec()];
    for metric in metrics {
        let effect = study.effect(0, 1, metric);
        rows.push(vec![
            words::title(study, metric),
            cell(study, 0, metric),
            cell(study, 1, metric),
            effect.and_then(|e| e.ratio.as_ref()).map_or("-".to_string(), words::change),
            effect.map_or(String::new(), |e| e.units.to_string()),
            effect.map_or("", words::judgement).to_string(),
        ]);
    }
    last_flush_left(&mut rows);
    tabulated(&rows, 1)
}

/// Mean and 99th percentile of each stage, where they were watched.
fn stages_table(study: &Study<'_>) -> String {
    let stages = stages::rows(study, &[0, 1]);
    if stages.is_empty() {
        return String::new();
    }
    let mut rows =
        vec![["stage", "A mean", "A p99", "B mean", "B p99", "A n", "B n"].map(String::from).to_vec()];
    for row in stages {
        let of = |i: usize| row.sides.get(i);
        let time = |ns: Option<u64>| ns.map_or("-".to_string(), |ns| Nanos(ns).to_string());
        let mean = |i| time(of(i).map(|s| s.mean_ns.round() as u64));
        let p99 = |i| time(of(i).and_then(|s| s.p99_ns));
        let count = |i| of(i).map_or(String::new(), |s| grouped(s.count));
        rows.push(vec![row.name, mean(0), p99(0), mean(1), p99(1), count(0), count(1)]);
    }
    tabulated(&rows, 1)
}
