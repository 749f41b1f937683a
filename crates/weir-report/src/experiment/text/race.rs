//! A race: which knobs were seen to matter, how far each candidate came, and the confirmed effect.

use super::{cell, interval_cell, last_flush_left, tabulated};
use crate::experiment::race::{candidates, fate};
use crate::experiment::words;
use crate::layout::wrap;
use weir_experiment::{Phase, Study};

/// Width that a candidate's settings may take in a table.
const NAME: usize = 44;
/// Candidates shown before the rest is left to JSON and page.
const SHOWN_MAX: usize = 12;

/// How many trials each part took, then the candidates.
pub fn figures(study: &Study<'_>) -> String {
    phases(study) + &survivors(study)
}

fn phases(study: &Study<'_>) -> String {
    let parts =
        [(Phase::Screen, "to screen the knobs"), (Phase::Race, "to race"), (Phase::Confirm, "to confirm")];
    let counts = parts.map(|(phase, what)| (study.of_phase(phase).count(), what));
    let told: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if told.is_empty() { String::new() } else { format!("Trials: {}.\n\n", told.join(", ")) }
}

fn survivors(study: &Study<'_>) -> String {
    let main = study.main_metric();
    let title = words::title(study, &main);
    let mut rows = vec![["candidate", &title, "95 %", "blocks", ""].map(String::from).to_vec()];
    let raced = candidates(study);
    for candidate in raced.iter().take(SHOWN_MAX) {
        let name = words::arm(study, candidate.arm);
        let mut lines = wrap(&name, NAME).into_iter();
        rows.push(vec![
            lines.next().unwrap_or_default(),
            cell(study, candidate.arm, &main),
            interval_cell(study, candidate.arm, &main),
            candidate.blocks.to_string(),
            fate(study, candidate),
        ]);
        rows.extend(lines.map(|line| [vec![format!("  {line}")], vec![String::new(); 4]].concat()));
    }
    if rows.len() == 1 {
        return String::new();
    }
    last_flush_left(&mut rows);
    let hidden = raced.len().saturating_sub(SHOWN_MAX);
    let more = if hidden == 0 { String::new() } else { format!("and {hidden} more that fell behind\n\n") };
    tabulated(&rows, 1) + &more
}
