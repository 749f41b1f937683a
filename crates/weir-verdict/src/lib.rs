//! From measurements to verdicts: small pure rules, one file a topic, whose sentences name their evidence.
#![forbid(unsafe_code)]

pub mod bar;
pub mod condition_rows;
pub mod curve;
pub mod db;
pub mod doctor;
pub mod endurance;
pub mod map;
mod mean_interval;
pub mod measurement;
pub mod notes;
pub mod products;
pub mod rules;
pub mod saturation;
pub mod stages;
pub mod story;
pub mod sustained;
pub mod topic;
pub mod view;

pub use doctor::DoctorReport;
pub use notes::DoctorNotes;

use view::View;
use weir_core::result::Record;
use weir_core::target::Conditions;

/// What the doctor found, as a record holds it beside its jobs.
#[derive(Debug, Clone)]
pub struct Examined {
    /// Its notes.
    pub notes: DoctorNotes,
    /// What the target stands on, and the settings.
    pub conditions: Conditions,
}

/// The report on a made-up record.
///
/// # Errors
/// When the record does not hold an examination.
#[cfg(any(test, feature = "samples"))]
pub fn from_record(record: &Record) -> serde_json::Result<DoctorReport> {
    let typed = weir_core::json::typed(&record.extra)?;
    Ok(report(record, &Examined { notes: typed, conditions: weir_core::json::typed(&record.conditions)? }))
}

/// Derives the report from a record and the examination it holds, again and again if need be: nothing is measured.
pub fn report(record: &Record, examined: &Examined) -> DoctorReport {
    let Examined { notes, conditions } = examined;
    let pairs = notes.steps.iter().zip(&record.jobs);
    let measurements: Vec<_> = pairs.map(|(step, job)| measurement::measure(step, job)).collect();
    let curves = curve::curves(&measurements, notes);
    let flood = story::story(notes, &measurements);
    let sustained = endurance::derive(notes, &record.jobs);
    let map = map::derive::derive(notes, &record.jobs, conditions);
    let view = View {
        conditions,
        notes,
        measurements: &measurements,
        curves: &curves,
        flood: flood.as_ref(),
        sustained: sustained.as_ref(),
    };
    let ended_early = record.ended_early.as_deref();
    let findings = match (&map, &sustained, notes.product) {
        (Some(map), ..) => rules::map::findings(map),
        (_, Some(sustained), _) => rules::sustained::findings(&view, sustained),
        (_, None, Some(product)) => {
            let mut found = rules::product::findings(&view, product);
            found.extend(rules::product_advice::findings(&view, product));
            found
        }
        (_, None, None) => rules::findings(&view),
    };
    let mut advice: Vec<_> = rules::flood::advise(&view).into_iter().collect();
    advice.extend(rules::sync_path::advise(&view));
    advice.extend(rules::settings::advise(&view));
    advice.extend(notes.product.and_then(|product| rules::product_advice::advise(&view, product)));
    let next = rules::next::steps(&view);
    let error = measurements.iter().find_map(|m| m.error.as_deref());
    let trouble = match (error, ended_early) {
        (Some(_), _) => Some("An operation failed: resolve that before any setting."),
        (None, Some(_)) => Some("It ended early: too little was measured for advice."),
        _ if rules::settings::barriers(&view).is_some() => {
            Some("A setting puts data at risk: see what weakens this.")
        }
        _ => None,
    };
    let tried = view.flood.and_then(rules::flood::tried);
    let mut closing = rules::headline::closing(&findings, &advice, &next, trouble, tried.as_deref());
    if let Some(limited) = notes.product.and_then(|_| rules::product::limited(&view, &findings)) {
        closing = format!("{closing} {limited}");
    }
    let headline = match error {
        Some(error) => rules::headline::of_failure(error),
        None => match (&map, &sustained, notes.product) {
            (Some(map), ..) => rules::map::headline(map, &findings, ended_early),
            (_, Some(sustained), _) => rules::sustained::headline(sustained, &findings, ended_early),
            (_, None, Some(product)) => rules::product::headline(&view, product, ended_early, &closing),
            (_, None, None) => rules::headline::headline(&findings, ended_early, &closing),
        },
    };
    let caveats = rules::caveats::list(&view, ended_early);
    let mut bars = notes.product.map_or(Vec::new(), |product| rules::product::bars(&view, product));
    bars.extend(rules::bars::judge(&view));
    let commit_stages = stages::of_commits(notes, &measurements);
    DoctorReport {
        schema: doctor::SCHEMA.to_string(),
        record_id: record.id.clone(),
        weir_version: record.weir_version.clone(),
        command: record.command.clone(),
        started_at: record.started_at.clone(),
        mode: notes.mode.clone(),
        elapsed_ns: notes.elapsed_ns,
        path: notes.path.clone(),
        facts: condition_rows::rows(conditions, notes),
        headline,
        findings,
        advice,
        closing,
        next,
        caveats,
        curves,
        measurements,
        flood,
        commit_stages,
        product: notes.product,
        sustained,
        map,
        bars,
        ended_early: record.ended_early.clone(),
    }
}

#[cfg(any(test, feature = "samples"))]
pub mod synthetic;
#[cfg(test)]
mod tests;
