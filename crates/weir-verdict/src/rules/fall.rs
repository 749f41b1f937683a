//! A rate that fell within one of the short steps of an examination: seen, and not explained.

use crate::doctor::{Evidence, Finding, Measurement, NextStep, Statement, Topic};
use crate::sustained::fall::Fall;
use crate::view::{View, percent, quoted, time};
use weir_core::units::per_second;

/// The step whose rate fell most.
fn worst<'a>(view: &View<'a>) -> Option<(&'a Measurement, Fall)> {
    let all = view.measurements.iter().filter_map(|m| Some((m, m.fall?)));
    all.min_by(|(_, a), (_, b)| (a.after / a.before).total_cmp(&(b.after / b.before)))
}

/// Says that it fell, and no more: a short step cannot tell why.
pub fn judge(view: &View) -> Option<Finding> {
    let (m, fall) = worst(view)?;
    let text = format!(
        "In {} the rate fell after {} from {} to {} IOPS and stayed there: a credit or a cache may have run out, or \
         other load begun. What is reported of this step, and of those after it, mixes both.",
        m.title,
        time(fall.at_ns),
        per_second(fall.before),
        per_second(fall.after)
    );
    let figure = format!("{} → {} IOPS", per_second(fall.before), per_second(fall.after));
    let evidence = Evidence { source: m.id.clone(), figure, n: m.latency.n, interval: None };
    let summary = format!("the rate fell to {} within a step", percent(fall.after / fall.before));
    Some(Finding {
        topic: Topic::Sustained,
        grade: None,
        summary,
        statements: vec![Statement::new(text, vec![evidence])],
    })
}

/// The examination that tells why, unless this was it: its test file may fall as well.
pub fn next(view: &View) -> Option<NextStep> {
    worst(view).filter(|_| view.sustained.is_none())?;
    Some(NextStep {
        why: "The rate fell within a step: writing on until it stays tells a token bucket from a cache."
            .to_string(),
        command: format!("weir doctor --sustained {}", quoted(&view.notes.path)),
        purpose: "see how long a burst lasts".to_string(),
    })
}
