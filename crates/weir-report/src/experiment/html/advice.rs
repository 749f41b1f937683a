//! What to do, as the doctor's page shows its advice.

use crate::experiment::words;
use crate::experiment::words::NO_COMMAND;
use crate::page::{facts_table, note, paragraph};
use crate::plot::escape;
use weir_experiment::{Recommendation, Study};

/// The recommendation, or why there is none.
pub fn html(study: &Study<'_>) -> String {
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

fn change(study: &Study<'_>) -> String {
    let Recommendation::Change { arm, settings, cost, durability, reversibility } =
        &study.finding.recommendation
    else {
        return String::new();
    };
    let names: Vec<String> = settings.iter().map(|s| s.short_name()).collect();
    let label = words::arm(study, *arm);
    let steps: String = settings
        .iter()
        .map(|setting| {
            let found = study.found(&setting.knob).map(|found| words::value(&found.value));
            let found = found.map_or(String::new(), |found| format!("{found} → "));
            let text = format!("{}: {found}{}", setting.short_name(), words::value(&setting.value));
            format!("<p class=\"change\">{}</p>", escape(text))
        })
        .collect();
    let effects: String = words::effects_of(study, *arm)
        .into_iter()
        .map(|e| paragraph(words::effect_sentence(study, e)))
        .collect();
    let kept = words::idle_sentence(study, *arm).map_or(String::new(), paragraph);
    let told = [("cost", cost), ("durability", durability), ("restore", reversibility)]
        .map(|(name, text)| (name, words::sentence(text)));
    let told = told.into_iter().chain(words::while_set(settings).into_iter().map(|text| ("while set", text)));
    let rows: Vec<_> = told.map(|(name, text)| (name.to_string(), text, String::new())).collect();
    let of_job: String = words::job_changes(study, *arm)
        .iter()
        .map(|change| format!("<p class=\"change\">{}</p>", escape(change)))
        .collect();
    let lines = words::commands(study, settings).map_or(Vec::new(), |commands| {
        vec![
            ("Apply, with five minutes to confirm", format!("{}\n{}", commands.apply, commands.confirm)),
            ("Keep for the next boot", commands.persist.join("\n")),
            ("Undo", commands.undo),
        ]
    });
    let none = if lines.is_empty() { paragraph(words::sentence(NO_COMMAND)) } else { String::new() };
    let blocks: String = lines
        .into_iter()
        .map(|(name, text)| format!("<p class=\"soft\">{}</p><pre>{}</pre>", escape(name), escape(text)))
        .collect();
    format!(
        "<div class=\"advice\"><h3><code>{}</code><span class=\"tag yes\">measured</span></h3>{steps}{of_job}{effects}{kept}{none}{blocks}{}</div>\n",
        escape(if names.is_empty() { label } else { names.join(", ") }),
        facts_table(&rows)
    )
}
