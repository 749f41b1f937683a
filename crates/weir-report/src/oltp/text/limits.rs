//! What limits a run of transactions: the verdict, what it stands on, what would help at most.

use crate::layout::{labelled, table};
use weir_oltp::limits::{Diagnosis, Part};

/// Places that take less of the time are left out of the table.
const WORTH_A_ROW: f64 = 0.005;
/// Width of the bar that stands for all of the time.
const BAR: f64 = 40.0;

/// The verdict of a run.
pub fn limits(verdict: &Diagnosis) -> String {
    let mut out = String::new();
    let confidence = format!(" (confidence: {})", verdict.confidence.name());
    labelled(&mut out, "verdict", &(verdict.headline.clone() + &confidence));
    for (nth, sentence) in verdict.evidence.iter().enumerate() {
        labelled(&mut out, if nth == 0 { "evidence" } else { "" }, sentence);
    }
    if let Some(chain) = &verdict.chain {
        labelled(&mut out, "chain", chain);
    }
    let gain = |(change, gain): (&str, f64)| format!("{change} {:+.0} %", gain * 100.0);
    let gains: Vec<String> = verdict.bounds.gains().into_iter().map(gain).collect();
    if !gains.is_empty() {
        labelled(&mut out, "at most", &gains.join(", "));
    }
    for tested in &verdict.tested {
        labelled(&mut out, "tested", &tested.sentence);
    }
    let rows = rows(verdict);
    if !rows.is_empty() {
        out.push('\n');
        table(&mut out, &rows, 2);
        out.push('\n');
    }
    for trap in &verdict.traps {
        labelled(&mut out, "beware", &trap.text);
    }
    for unseen in &verdict.unseen {
        labelled(&mut out, "unseen", unseen);
    }
    out
}

/// Where the time went: one row a place, with a bar.
fn rows(verdict: &Diagnosis) -> Vec<Vec<String>> {
    let parts = verdict.profile.parts.iter().filter(|(_, share)| *share >= WORTH_A_ROW);
    let row = |(part, share): &(Part, f64)| {
        let bar = "█".repeat((share * BAR).round() as usize);
        vec![part.name().to_string(), bar, format!("{:.0} %", share * 100.0)]
    };
    parts.map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::COLUMNS;
    use weir_oltp::limits::judge;
    use weir_oltp::limits::synthetic::Scene;
    use weir_oltp::limits::waits::Wait;

    #[test]
    fn the_verdict_comes_first_and_nothing_is_wider_than_a_line() {
        let scene = Scene {
            server: (0.05, 0.02),
            waits: &[(Wait::Commit, 0.8), (Wait::Lock, 0.1)],
            roots: &[(Wait::Commit, 0.1)],
            syncs: 0.5,
            ..Scene::default()
        };
        let mut evidence = scene.evidence();
        evidence.watched.unseen.push("how long syncs take: not allowed".to_string());
        let text = limits(&judge(&evidence));
        let first = text.lines().next().unwrap();
        assert!(first.starts_with("verdict  limited by commit latency on the device vda: 83 %"), "{text}");
        for part in
            ["evidence", "chain", "at most", "commit waits for the log  ", "  ███", "unseen   how long"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    }
}
