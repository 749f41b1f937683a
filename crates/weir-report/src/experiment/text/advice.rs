//! What to do: the effect, what it costs and risks, and the commands to do it, keep it and take it back.

use super::EDGE;
use crate::experiment::words;
use crate::experiment::words::NO_COMMAND;
use crate::layout::labelled_at;
use weir_experiment::{Recommendation, Study};
use weir_knobs::Setting;

/// Effects of a recommendation that are spelt out.
const EFFECTS_MAX: usize = 4;

/// The section on what to do.
pub fn advice(study: &Study<'_>) -> String {
    let mut out = String::new();
    match &study.finding.recommendation {
        Recommendation::None => return out,
        Recommendation::Keep { why } => {
            let label = if words::sets_nothing(study) { "Advice" } else { "Keep" };
            labelled_at(&mut out, label, EDGE, &words::sentence(why));
        }
        Recommendation::Infeasible { why } => {
            labelled_at(&mut out, "Infeasible", EDGE, &words::sentence(why))
        }
        Recommendation::Change { arm, settings, cost, durability, reversibility } => {
            out.push_str("To do (weir has restored every setting)\n");
            for setting in settings {
                labelled_at(&mut out, "  change", EDGE + 1, &step(study, setting));
            }
            for change in words::job_changes(study, *arm) {
                labelled_at(&mut out, "  workload", EDGE + 1, &change);
            }
            for effect in words::effects_of(study, *arm).into_iter().take(EFFECTS_MAX) {
                labelled_at(&mut out, "  effect", EDGE + 1, &words::effect_sentence(study, effect));
            }
            if let Some(kept) = words::idle_sentence(study, *arm) {
                labelled_at(&mut out, "  effect", EDGE + 1, &kept);
            }
            for (label, text) in
                [("  cost", cost), ("  durability", durability), ("  restore", reversibility)]
            {
                labelled_at(&mut out, label, EDGE + 1, &words::sentence(text));
            }
            for told in words::while_set(settings) {
                labelled_at(&mut out, "  while set", EDGE + 1, &told);
            }
            out.push_str(&commands(study, settings));
        }
    }
    out.push('\n');
    out
}

/// `vm.dirty_bytes: 20 % → 15 MB`.
fn step(study: &Study<'_>, setting: &Setting) -> String {
    let found = study.found(&setting.knob).map(|found| words::value(&found.value));
    let found = found.map_or(String::new(), |found| format!("{found} → "));
    format!("{}: {found}{}", setting.short_name(), words::value(&setting.value))
}

/// Commands keep lines of their own, however long: they are there to be copied.
fn commands(study: &Study<'_>, settings: &[Setting]) -> String {
    let Some(commands) = words::commands(study, settings) else {
        let mut out = String::new();
        labelled_at(&mut out, "  apply", EDGE + 1, NO_COMMAND);
        return out;
    };
    let mut lines = vec![("apply", commands.apply), ("confirm", commands.confirm)];
    lines.extend(commands.persist.into_iter().map(|persist| ("persist", persist)));
    lines.push(("undo", commands.undo));
    lines.iter().map(|(label, command)| format!("  {label:<width$}{command}\n", width = EDGE - 1)).collect()
}
