//! What limits a run of transactions, in its page.

use crate::experiment::words::sentence;
use crate::page::{Table, facts_table, paragraph, stacks};
use crate::plot::{Stack, StackFigure};
use maud::{Markup, html};
use weir_oltp::limits::Diagnosis;

/// Places that have a colour of their own; the rest is one part.
const PARTS: usize = 5;

/// The verdict, where the sessions' time went, and what it stands on.
pub fn limits(verdict: &Diagnosis) -> Markup {
    let mut rows = Vec::new();
    let mut row = |name: &str, text: &str| rows.push((name.to_string(), text.to_string(), String::new()));
    row("confidence", verdict.confidence.name());
    verdict.evidence.iter().for_each(|sentence| row("evidence", sentence));
    verdict.chain.iter().for_each(|sentence| row("chain", sentence));
    for (change, gain) in verdict.bounds.gains() {
        row(change, &format!("at most {:+.0} %", gain * 100.0));
    }
    verdict.tested.iter().for_each(|tested| row("tested", &tested.sentence));
    verdict.traps.iter().for_each(|trap| row("beware", &trap.text));
    verdict.unseen.iter().for_each(|unseen| row("not seen", unseen));
    html! { (paragraph(sentence(&verdict.headline))) (shares(verdict)) (facts_table(&rows)) }
}

fn shares(verdict: &Diagnosis) -> Markup {
    let profile = &verdict.profile.parts;
    let Some((first, share)) = profile.first() else { return Markup::default() };
    let mut parts: Vec<(String, f64)> =
        profile.iter().take(PARTS).map(|(part, share)| (part.name().to_string(), *share)).collect();
    let rest: f64 = profile.iter().skip(PARTS).map(|(_, share)| share).sum();
    if rest > 0.0 {
        parts.push(("everything else".to_string(), rest));
    }
    let figure = StackFigure {
        id: "sessions".to_string(),
        title: "Where the sessions' time went".to_string(),
        finding: format!("{:.0} %: {}.", share * 100.0, first.name()),
        parts: parts.iter().enumerate().map(|(look, (name, _))| (name.clone(), look)).collect(),
        stacks: vec![Stack {
            label: "time in transactions".to_string(),
            note: String::new(),
            values: parts.iter().map(|(_, share)| *share).collect(),
        }],
    };
    stacks(&figure, &Table::default())
}
