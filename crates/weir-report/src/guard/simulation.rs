//! Limits compared on a simulated machine.

use serde::Serialize;

use weir_control::plant::score::{Phase, Score};
use weir_control::{LatencyTarget, Target};
use weir_core::units::{Nanos, megabytes_per_second};

use crate::layout::table;

/// What one limit was worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulated {
    /// The limit, or what turns it.
    pub law: String,
    /// In which phase; `None` for all of them together.
    pub phase: Option<Phase>,
    /// What it was worth.
    pub score: Score,
}

/// A table of them, a row each, the phases in the order of time.
pub fn simulation(rows: &[Simulated], target: &Target) -> String {
    let mut rows: Vec<&Simulated> = rows.iter().collect();
    rows.sort_by_key(|row| row.phase.map_or(0, |phase| phase.from));
    let head = ["phase", "limit", "commits", "p99", "longest", "over", "recovered", "bulk", "of the rest"];
    let mut cells = vec![head.map(str::to_string).to_vec()];
    let mut last = None;
    for row in rows {
        let name =
            if last == Some(row.phase) { String::new() } else { row.phase.map_or(String::new(), phase) };
        last = Some(row.phase);
        cells.push(line(name, row));
    }
    let mut out = format!(
        "simulated; commits as a share of those without the flood; over: seconds beyond {}\n\n",
        match target.p99 {
            LatencyTarget::Absolute(ns) => ns.to_string(),
            LatencyTarget::TimesIdle(times) => format!("{times} × idle p99"),
        }
    );
    table(&mut out, &cells, 2);
    out
}

fn phase(phase: Phase) -> String {
    let threads = match phase.threads {
        0 => "bulk alone".to_string(),
        1 => "1 thread".to_string(),
        n => format!("{n} threads"),
    };
    format!("{} to {} s, {threads}", phase.from, phase.to)
}

fn line(name: String, row: &Simulated) -> Vec<String> {
    let score = &row.score;
    let percent =
        |share: Option<f64>| share.map_or("-".to_string(), |share| format!("{:.0} %", share * 100.0));
    let syncs = |text: String| if score.seconds > 0 { text } else { "-".to_string() };
    let seconds = row.phase.map(|phase| (phase.to - phase.from) as f64);
    vec![
        name,
        row.law.clone(),
        percent(score.kept()),
        score.p99_ns.map_or("-".to_string(), |ns| Nanos(ns).to_string()),
        syncs(Nanos(score.max_ns).to_string()),
        percent(score.over()),
        syncs(format!("{} s", score.recovered_after)),
        seconds.map_or("-".to_string(), |seconds| megabytes_per_second(score.bulk_bytes as f64 / seconds)),
        percent(score.used()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::COLUMNS;

    #[test]
    fn a_row_a_limit_grouped_by_phase() {
        let score = Score {
            seconds: 30,
            commits: 900,
            commits_idle: 1000,
            p99_ns: Some(95_000_000),
            max_ns: 1_500_000_000,
            seconds_over: 3,
            recovered_after: 2,
            bulk_bytes: 3_000_000_000,
            left_bytes: 4e9,
            ..Score::default()
        };
        let row = |law: &str, threads, from| Simulated {
            law: law.to_string(),
            phase: Some(Phase { from, to: from + 30, threads, writers: 1 }),
            score: if threads == 0 { Score::default() } else { score.clone() },
        };
        let rows = [row("default", 10, 60), row("default", 0, 90), row("15 MB", 10, 60)];
        let text = simulation(&rows, &Target::default());
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words(lines[0]),
            "60 to 90 s, 10 threads default 90 % 95.0 ms 1.50 s 10 % 2 s 100 MB/s 75 %"
        );
        assert_eq!(words(lines[1]), "15 MB 90 % 95.0 ms 1.50 s 10 % 2 s 100 MB/s 75 %");
        assert_eq!(words(lines[2]), "90 to 120 s, bulk alone default - - - - - 0 MB/s -");
    }
}
