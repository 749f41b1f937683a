//! What to do, as the doctor's page shows its advice.

use crate::experiment::words;
use crate::experiment::words::NO_COMMAND;
use crate::page::{facts_table, note, paragraph, typed};
use maud::{Markup, html};
use weir_experiment::{Recommendation, Study};
use weir_knobs::Setting;

/// The recommendation, or why there is none.
pub fn html(study: &Study<'_>) -> Markup {
    match &study.finding.recommendation {
        Recommendation::None => paragraph("Nothing: this experiment recommends no setting."),
        Recommendation::Keep { why } => {
            let title =
                if words::sets_nothing(study) { "Nothing to set" } else { "Keep the baseline settings" };
            note(title, &words::sentence(why), false)
        }
        Recommendation::Infeasible { why } => {
            note("Nothing that was tried meets the goal", &words::sentence(why), true)
        }
        Recommendation::Change { .. } => change(study),
    }
}

fn change(study: &Study<'_>) -> Markup {
    let Recommendation::Change { arm, settings, cost, durability, reversibility } =
        &study.finding.recommendation
    else {
        return Markup::default();
    };
    let names: Vec<String> = settings.iter().map(|s| s.short_name()).collect();
    let title = if names.is_empty() { words::arm(study, *arm) } else { names.join(", ") };
    let told = [("cost", cost), ("durability", durability), ("restore", reversibility)]
        .map(|(name, text)| (name, words::sentence(text)));
    let told = told.into_iter().chain(words::while_set(settings).into_iter().map(|text| ("while set", text)));
    let rows: Vec<_> = told.map(|(name, text)| (name.to_string(), text, String::new())).collect();
    html! {
        div.advice {
            h3 { code { (title) } span.tag.yes { "measured" } }
            @for setting in settings { p.change { (step(study, setting)) } }
            @for change in words::job_changes(study, *arm) { p.change { (change) } }
            @for effect in words::effects_of(study, *arm) { (paragraph(words::effect_sentence(study, effect))) }
            @if let Some(kept) = words::idle_sentence(study, *arm) { (paragraph(kept)) }
            (commands(study, settings))
            (facts_table(&rows))
        }
    }
}

/// `vm.dirty_bytes: 20 % → 15 MB`.
fn step(study: &Study<'_>, setting: &Setting) -> String {
    let found = study.found(&setting.knob).map(|found| words::value(&found.value));
    let found = found.map_or(String::new(), |found| format!("{found} → "));
    format!("{}: {found}{}", setting.short_name(), words::value(&setting.value))
}

fn commands(study: &Study<'_>, settings: &[Setting]) -> Markup {
    let Some(commands) = words::commands(study, settings) else {
        return paragraph(words::sentence(NO_COMMAND));
    };
    html! {
        p.soft { "Apply, with five minutes to confirm" }
        pre { (commands.apply) "\n" (commands.confirm) }
        p.soft { "Keep for the next boot" }
        (typed(commands.persist.join("\n")))
        p.soft { "Undo" }
        (typed(commands.undo))
    }
}
