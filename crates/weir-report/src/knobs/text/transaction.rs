//! A transaction before it is applied, and those in force.

use crate::layout::{labelled_at, table};
use weir_knobs::{Became, KnobName, Plan, Setting, Value, catalog};

/// Width of the labels under a plan.
const LABEL: usize = 8;

/// Steps in order, before → after, with what they touch besides and what is worth knowing.
pub fn plan(plan: &Plan) -> String {
    let mut out = String::new();
    let rows: Vec<Vec<String>> = plan
        .steps
        .iter()
        .enumerate()
        .map(|(index, step)| {
            vec![format!("  {}", index + 1), step.knob.to_string(), arrow(&step.knob, &step.from, &step.to)]
        })
        .collect();
    table(&mut out, &rows, 3);
    if !plan.touched.is_empty() {
        let touched: Vec<String> = plan.touched.iter().map(Setting::to_string).collect();
        let said = format!("{}: reset by this, and restored with it", touched.join(", "));
        labelled_at(&mut out, "  also", LABEL, &said);
    }
    for note in &plan.notes {
        labelled_at(&mut out, "  note", LABEL, note);
    }
    out
}

fn arrow(knob: &KnobName, from: &Value, to: &Value) -> String {
    let said = |value: &Value| match catalog::spec(knob) {
        Some(spec) => super::value(spec, value),
        None => value.to_string(),
    };
    match catalog::spec(knob).map(|spec| spec.kind) {
        Some(catalog::Kind::Action) => format!("{to}  (done once, nothing to restore)"),
        _ => format!("{} → {}", said(from), said(to)),
    }
}

/// Something that weir has changed and not taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// When and by whom, and until when it holds: a line of words.
    pub title: String,
    /// Knob, value before, and what became of it.
    pub values: Vec<(KnobName, Value, Became)>,
}

/// What is in force by weir, newest first.
pub fn changes(changes: &[Change]) -> String {
    let mut out = String::new();
    for change in changes {
        labelled_at(&mut out, "", 0, &change.title);
        let rows: Vec<Vec<String>> = change
            .values
            .iter()
            .map(|(knob, before, now)| {
                let said = match now {
                    Became::Value(now) => arrow(knob, before, now),
                    Became::Reset => format!("reset with it, was {before}"),
                    Became::Governed { least, most } => {
                        let held = weir_knobs::plan::between(least, most);
                        arrow(knob, before, &Value::Word(format!("held {held}")))
                    }
                };
                vec![format!("  {knob}"), said]
            })
            .collect();
        table(&mut out, &rows, 2);
    }
    out
}
