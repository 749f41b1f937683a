//! How dirty pages reach the data files.

use super::{Judged, View};
use crate::doctor::{Grade, Statement};
use crate::view::{fact, percent};
use weir_core::units::per_second;

/// Flushing at this share of its allowance is limited by it.
const HELD_BACK: f64 = 0.9;
/// With so many dirty pages, flushing is behind.
const DIRTY_HIGH: f64 = 0.5;
/// Backends that write so much of all pages themselves lack a background writer.
const BACKENDS_HIGH: f64 = 0.3;

pub(super) fn judge(view: &View) -> Option<Judged> {
    if view.is_postgres() { postgres(view) } else { innodb(view) }
}

/// Pages flushed a second, doublewrite left out.
fn flushed(view: &View) -> f64 {
    view.rate(view.vitals.difference().count("Innodb_buffer_pool_pages_flushed"))
}

/// Whether flushing runs at its allowance while pages pile up.
pub(super) fn is_held_back(view: &View) -> bool {
    let capacity = view.size("innodb_io_capacity").unwrap_or(u64::MAX) as f64;
    let behind = view.vitals.dirty.is_some_and(|dirty| dirty >= DIRTY_HIGH)
        || view.vitals.checkpoint_age.is_some_and(|age| age >= DIRTY_HIGH);
    view.is_loaded() && flushed(view) >= HELD_BACK * capacity && behind
}

fn innodb(view: &View) -> Option<Judged> {
    let capacity = view.size("innodb_io_capacity")?;
    let rate = flushed(view);
    let evidence = vec![
        fact("innodb_io_capacity", capacity.to_string()),
        fact("innodb_io_capacity_max", view.variable("innodb_io_capacity_max").unwrap_or("?")),
    ];
    let dirty = view
        .vitals
        .dirty
        .map_or(String::new(), |dirty| format!("; at most {} of the pool was dirty", percent(dirty)));
    let (grade, text) = if !view.is_loaded() {
        (
            None,
            format!(
                "{} pages/s were flushed; innodb_io_capacity allows {capacity}{dirty}.",
                per_second(rate)
            ),
        )
    } else if is_held_back(view) {
        let text = format!(
            "Flushing runs at its allowance: {} pages/s of innodb_io_capacity {capacity}{dirty}.",
            per_second(rate)
        );
        (Some(Grade::Fair), text)
    } else {
        let text = format!(
            "innodb_io_capacity {capacity} does not limit flushing ({} pages/s{dirty}): another value would \
             change \
             nothing under this load.",
            per_second(rate)
        );
        (Some(Grade::Good), text)
    };
    let mut judged = Judged::new("Flushing", grade, vec![Statement::new(text, evidence)]);
    if let Some(method) =
        view.variable("innodb_flush_method").filter(|method| method.eq_ignore_ascii_case("fsync"))
    {
        let text = "Pages go through the page cache as well: they are held twice, and a bulk writer's dirty \
            pages delay them.";
        judged.finding.statements.push(Statement::new(text, vec![fact("innodb_flush_method", method)]));
        let why =
            "the buffer pool is the cache; writes then reach the device when they are issued".to_string();
        let cost = "reads that the page cache answered go to the device: only with a buffer pool that holds the data";
        judged = judged.with(view.advise("innodb_flush_method", "O_DIRECT", true, why, cost));
    }
    Some(judged)
}

fn postgres(view: &View) -> Option<Judged> {
    let target: f64 = view.variable("checkpoint_completion_target")?.parse().ok()?;
    let evidence = vec![fact("checkpoint_completion_target", target.to_string())];
    let mut statements = Vec::new();
    let mut grade = Grade::Good;
    let mut advice = None;
    if target < 0.9 {
        let text = format!(
            "A checkpoint writes all dirty pages in {} of its interval: the writes come in bursts.",
            percent(target)
        );
        statements.push(Statement::new(text, evidence));
        grade = Grade::Fair;
        let why = "the same writes, spread over the interval; 0.9 is the default from 14 on".to_string();
        advice = view.advise(
            "checkpoint_completion_target",
            "0.9",
            false,
            why,
            "nothing but a little more log kept",
        );
    } else {
        let text = format!("Checkpoints spread their writes over {} of the interval.", percent(target));
        statements.push(Statement::new(text, evidence));
    }
    let (all, own) = (view.counters.page_writes.unwrap_or(0), view.counters.free_page_waits.unwrap_or(0));
    let share = own as f64 / all.max(1) as f64;
    if view.is_loaded() && share > BACKENDS_HIGH && view.rate(Some(own)) > 50.0 {
        let text = format!(
            "Sessions wrote {} of all pages themselves ({}/s, growth of files included).",
            percent(share),
            per_second(view.rate(Some(own)))
        );
        statements.push(Statement::new(text, Vec::new()));
        grade = grade.max(Grade::Fair);
    }
    Some(Judged::new("Flushing", Some(grade), statements).with(advice))
}
