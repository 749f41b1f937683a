//! An experiment: the answer first, then the figures it stands on, what to do, and what weakens it.

mod ab;
mod advice;
mod ladder;
mod race;
mod sweep;

use crate::bench::text::to_the_second;
use crate::experiment::words;
use crate::layout::{labelled, labelled_at, labelled_command, table};
use weir_core::units::Nanos;
use weir_experiment::{Metric, Study};

/// Doubts shown before the rest is left to JSON and page.
const DOUBTS_MAX: usize = 8;
/// Left edge of texts with a label.
const EDGE: usize = 12;

/// The report of an experiment of any design.
pub fn experiment(study: &Study<'_>) -> String {
    let mut out = head(study);
    out.push_str(&match study.experiment.design.as_str() {
        _ if study.finding.arms.is_empty() => String::new(),
        "sweep" => sweep::figures(study),
        "ladder" => ladder::figures(study),
        "ab" => ab::figures(study),
        "race" => race::figures(study),
        _ => arms(study),
    });
    out.push_str(&remarks(study));
    out.push_str(&advice::advice(study));
    out.push_str(&doubts(study));
    out.push_str(&foot(study));
    out
}

fn head(study: &Study<'_>) -> String {
    let mut out = String::new();
    labelled_at(&mut out, "", 0, &format!("{}: {}", study.title(), study.finding.headline));
    let record = study.record;
    labelled_at(
        &mut out,
        "",
        0,
        &format!("Started {}, weir {}.", to_the_second(&record.started_at), record.weir_version),
    );
    out.push('\n');
    out
}

/// Any design: each arm with the figures it has.
fn arms(study: &Study<'_>) -> String {
    let metrics: Vec<Metric> =
        [study.main_metric(), Metric::Bulk, Metric::P99].into_iter().filter(|m| study.has(m)).collect();
    let mut rows =
        vec![std::iter::once(String::new()).chain(metrics.iter().map(|m| words::title(study, m))).collect()];
    rows.extend((0..study.finding.arms.len()).map(|arm| {
        let cells = metrics.iter().map(|metric| cell(study, arm, metric));
        std::iter::once(words::arm(study, arm)).chain(cells).collect()
    }));
    tabulated(&rows, 1)
}

/// One figure of an arm, or a dash.
fn cell(study: &Study<'_>, arm: usize, metric: &Metric) -> String {
    study.value(arm, metric).map_or("-".to_string(), |value| words::figure(metric, value))
}

/// Its interval, or a dash.
fn interval_cell(study: &Study<'_>, arm: usize, metric: &Metric) -> String {
    study.interval(arm, metric).map_or("-".to_string(), |ends| words::interval(metric, ends))
}

/// Rows and an empty line.
fn tabulated(rows: &[Vec<String>], left: usize) -> String {
    let mut out = String::new();
    table(&mut out, rows, left);
    out.push('\n');
    out
}

/// Pads the last cells to one width: words at the end of rows stand flush left.
fn last_flush_left(rows: &mut [Vec<String>]) {
    let last = |row: &Vec<String>| row.last().map_or(0, |cell| cell.chars().count());
    let widest = rows.iter().map(last).max().unwrap_or(0);
    for cell in rows.iter_mut().filter_map(|row| row.last_mut()) {
        *cell = format!("{cell:<widest$}");
    }
}

fn remarks(study: &Study<'_>) -> String {
    let mut out = String::new();
    for remark in &study.finding.remarks {
        labelled_at(&mut out, "  -", 4, &words::sentence(remark));
    }
    if out.is_empty() { out } else { format!("How to read it\n{out}\n") }
}

fn doubts(study: &Study<'_>) -> String {
    let all = words::doubts(study);
    let mut out = String::new();
    for doubt in all.iter().take(DOUBTS_MAX) {
        labelled_at(&mut out, "  -", 4, doubt);
    }
    if all.len() > DOUBTS_MAX {
        out.push_str(&format!("  - and {} more in the JSON and HTML reports\n", all.len() - DOUBTS_MAX));
    }
    if out.is_empty() { out } else { format!("What weakens this\n{out}\n") }
}

fn foot(study: &Study<'_>) -> String {
    let mut out = String::new();
    labelled(&mut out, "goal", &study.experiment.goal.to_string());
    labelled(&mut out, "time", &words::time_used(study));
    if let Some(path) = &study.path {
        labelled(&mut out, "record", path);
    }
    labelled_command(
        &mut out,
        "draw",
        &crate::layout::shell(&["weir", "report", &study.record.id].map(String::from)),
    );
    labelled_command(&mut out, "again", &crate::layout::shell(&study.record.command));
    out
}

/// A mean or percentile in ns as text, or a dash where there is none.
fn time_cell(ns: Option<f64>) -> String {
    ns.map_or("-".to_string(), |ns| Nanos(ns.round().max(0.0) as u64).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::synthetic;
    use crate::layout::COLUMNS;

    /// Commands and labels of commands may be as long as they are.
    fn check(text: &str, wanted: &[&str]) {
        let may_be_wide = |line: &&str| !line.contains("weir knobs") && !line.contains("/home/dba");
        for line in text.lines().filter(may_be_wide) {
            assert!(line.chars().count() <= COLUMNS, "too wide: {line}\n{text}");
            assert!(!line.ends_with(' '), "a blank at the end of `{line}`");
        }
        let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for wanted in wanted {
            assert!(flowing.contains(wanted), "no `{wanted}` in\n{text}");
        }
    }

    #[test]
    fn every_design_says_what_was_found_and_what_to_do() {
        let record = synthetic::record();
        check(
            &experiment(&synthetic::sweep(&record)),
            &[
                "weir tune sweep: vm.dirty_bytes = 15 MB keeps 93 %",
                "vm.dirty_bytes commits/s 95 % of idle bulk MB/s 95 % p99",
                "baseline (20 %) 33.",
                "knee, recommended",
                "vm.dirty_bytes: 20 % → 15 MB",
                "weir knobs apply vm.dirty_bytes=15000000 --confirm-within 5m",
                "weir knobs rollback",
                "1 of 30 waits for a clean start gave up with up to 130 MiB",
                "another process wrote 41 MB/s",
                "of a budget of 15.0 min",
                "weir report 20261121-081359-506-0f1e",
            ],
        );
        check(
            &experiment(&synthetic::ladder(&record)),
            &[
                "3 direct, async (backlog 128)",
                "[",
                "better",
                "submit p95",
                "dropped, swappiness 0",
                "true p95 is 171 ms",
            ],
        );
        check(
            &experiment(&synthetic::ab(&record, 1.0)),
            &["A sda/scheduler=mq-deadline", "not significant", "Keep The data show no difference"],
        );
        check(&experiment(&synthetic::ab(&record, 1.4)), &["better", "--persist udev"]);
        let mut two_ways = synthetic::ab(&record, 1.0);
        for (arm, label) in two_ways.arms.iter_mut().zip(["threads=1", "threads=4"]) {
            (arm.label, arm.settings) = (label.to_string(), Vec::new());
        }
        check(&experiment(&two_ways), &["A threads=1 (10 trials)", "B threads=4 (10 trials)"]);
        let text = experiment(&synthetic::direct(&record));
        check(&text, &["direct: false → true", "depth: 1 → 32", "apply nothing of the machine"]);
        assert!(!text.contains("weir knobs"), "no command without a setting:\n{text}");
        check(
            &experiment(&synthetic::race(&record)),
            &["out after block 1", "confirmed in 10 trials", "what the goal refers to"],
        );
        check(
            &experiment(&synthetic::spoilt(&record)),
            &["aborted and counts as the worst", "EINVAL", "No value keeps p99 below 1 ms", "interruption"],
        );
        check(&experiment(&synthetic::scale(&record)), &["16 connections do most", "transactions/s", "p99"]);
        for design in ["sweep", "ladder", "ab", "race", "other"] {
            check(&experiment(&synthetic::empty(&record, design)), &["Nothing was measured."]);
        }
    }
}
