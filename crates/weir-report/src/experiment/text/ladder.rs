//! A ladder: what each step gained over the step before, and the latency that was really there.

use super::{cell, last_flush_left, tabulated, time_cell};
use crate::experiment::words;
use crate::layout::wrap;
use weir_experiment::{Metric, Study};

/// Width that a step's name may take in a table.
const NAME: usize = 38;

/// Throughput step by step, then latencies.
pub fn figures(study: &Study<'_>) -> String {
    throughput(study) + &latency(study)
}

fn throughput(study: &Study<'_>) -> String {
    let main = study.main_metric();
    let mut rows = vec![cells(["", "step", &words::title(study, &main), "against the step before", ""])];
    for arm in 0..study.finding.arms.len() {
        let effect = arm.checked_sub(1).and_then(|before| study.effect(before, arm, &main));
        let ratio = effect.and_then(|e| e.ratio.as_ref()).map_or(String::new(), words::change);
        let verdict = effect.map_or("", words::judgement);
        append(&mut rows, study, arm, &[cell(study, arm, &main), ratio, verdict.to_string()]);
    }
    last_flush_left(&mut rows);
    tabulated(&rows, 2)
}

/// Latencies of operations beside the time that submitting them takes, where the two differ in kind.
fn latency(study: &Study<'_>) -> String {
    let submits = study.has(&Metric::SubmitP95);
    let head = ["", "latency", "mean", "p95", "p99", "max", if submits { "submit p95" } else { "" }];
    let mut rows = vec![cells(head)];
    for arm in 0..study.finding.arms.len() {
        let of = |metric| time_cell(study.value(arm, &metric));
        let mut row = [Metric::Mean, Metric::P95, Metric::P99, Metric::Max].map(of).to_vec();
        row.push(if submits { of(Metric::SubmitP95) } else { String::new() });
        append(&mut rows, study, arm, &row);
    }
    let mut out = tabulated(&rows, 2);
    if submits {
        out.insert_str(
            out.len() - 1,
            "submit p95: what handing the I/O to the kernel takes, printed by sysbench as the latency of\n\
             asynchronous I/O; the other columns run from the start of an operation to its completion.\n",
        );
    }
    out
}

fn cells<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_string).to_vec()
}

/// A step's row; what its name lacks room for goes to rows of its own.
fn append(rows: &mut Vec<Vec<String>>, study: &Study<'_>, arm: usize, figures: &[String]) {
    let mut lines = wrap(&words::arm(study, arm), NAME).into_iter();
    let mut row = vec![(arm + 1).to_string(), lines.next().unwrap_or_default()];
    row.extend_from_slice(figures);
    let width = row.len();
    rows.push(row);
    rows.extend(lines.map(|line| {
        let mut row = vec![String::new(); width];
        row[1] = format!("  {line}");
        row
    }));
}
