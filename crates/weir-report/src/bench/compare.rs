//! A comparison: the effect first, then what else differs.

use super::text::to_the_second;
use crate::layout::{labelled, table};
use weir_core::result::comparison::{Comparison, Effect, Measure, Significance};
use weir_core::result::difference::Difference;
use weir_core::units::{Nanos, per_second};

/// Lines of differences that a reader is given; runs of different kinds have hundreds.
const DIFFERENCES_MAX: usize = 12;

/// The report of a comparison.
pub fn comparison(comparison: &Comparison) -> String {
    let mut out = String::new();
    labelled(&mut out, "B vs A", &summary(comparison));
    out.push('\n');
    for job in &comparison.jobs {
        if comparison.jobs.len() > 1 {
            labelled(&mut out, "job", &format!("{} (A) against {} (B)", job.a, job.b));
        }
        let mut rows = vec![["", "", "A", "B", "B/A", "95 % interval", ""].map(String::from).to_vec()];
        rows.extend(job.effects.iter().map(|effect| {
            let interval =
                effect.interval.map_or("-".to_string(), |i| format!("{:.3} .. {:.3}", i.low, i.high));
            vec![
                effect.class.clone(),
                effect.measure.name().to_string(),
                figure(effect.measure, effect.a),
                figure(effect.measure, effect.b),
                effect.ratio.map_or("-".to_string(), |r| format!("{r:.3}")),
                interval,
                verdict(&effect.verdict).to_string(),
            ]
        }));
        // The verdict is a sentence, so it stands flush left behind its row.
        let widest = rows.iter().map(|r| r[6].chars().count()).max().unwrap_or(0);
        rows.iter_mut().for_each(|r| r[6] = format!("{:<widest$}", r[6]));
        table(&mut out, &rows, 2);
        out.push('\n');
    }
    for warning in &comparison.warnings {
        labelled(&mut out, "warning", &warning.text);
    }
    labelled(
        &mut out,
        "A",
        &format!("{}, started {}", comparison.a.id, to_the_second(&comparison.a.started_at)),
    );
    labelled(
        &mut out,
        "B",
        &format!("{}, started {}", comparison.b.id, to_the_second(&comparison.b.started_at)),
    );
    append_differences(&mut out, "workload", &comparison.workload_differences);
    append_differences(&mut out, "differs", &comparison.condition_differences);
    if comparison.condition_differences.is_empty() {
        labelled(&mut out, "differs", "nothing in the recorded conditions");
    }
    out
}

/// A comparison as JSON, indented, with a newline at the end.
pub fn json(comparison: &Comparison) -> serde_json::Result<String> {
    serde_json::to_string_pretty(comparison).map(|text| text + "\n")
}

/// What the intervals say, in one sentence.
fn summary(comparison: &Comparison) -> String {
    let effects = || comparison.jobs.iter().flat_map(|job| &job.effects);
    let of = |wanted: Significance| -> Vec<String> {
        effects().filter(|e| e.verdict == wanted).map(|e| format!("{} {}", phrase(e), change(e))).collect()
    };
    let (better, worse) = (of(Significance::Better), of(Significance::Worse));
    if effects().all(|e| e.verdict == Significance::Unknown) {
        return "cannot tell: no intervals".to_string();
    }
    let mut parts = Vec::new();
    if !better.is_empty() {
        parts.push(format!("better in {}", better.join(", ")));
    }
    if !worse.is_empty() {
        parts.push(format!("worse in {}", worse.join(", ")));
    }
    if parts.is_empty() { "the data show no difference".to_string() } else { parts.join("; ") }
}

fn phrase(effect: &Effect) -> String {
    format!("{} {}", effect.class, effect.measure.name())
}

fn change(effect: &Effect) -> String {
    effect.ratio.map_or(String::new(), |ratio| format!("({:+.1} %)", (ratio - 1.0) * 100.0))
}

fn append_differences(out: &mut String, label: &str, differences: &[Difference]) {
    let mut label = label;
    for d in differences.iter().take(DIFFERENCES_MAX) {
        // A file of the kernel's with several lines is one value.
        let [a, b] = [&d.a, &d.b].map(|value| value.trim_end().replace('\n', ", "));
        labelled(out, label, &format!("{}: {a} (A), {b} (B)", d.what));
        label = "";
    }
    let more = differences.len().saturating_sub(DIFFERENCES_MAX);
    if more > 0 {
        labelled(out, "", &format!("and {more} more (all of them: --format json)"));
    }
}

fn figure(measure: Measure, value: Option<f64>) -> String {
    match (measure, value) {
        (_, None) => super::text::TOO_FEW.to_string(),
        (Measure::Throughput, Some(rate)) => format!("{}/s", per_second(rate)),
        (Measure::P50 | Measure::P99, Some(ns)) => Nanos(ns as u64).to_string(),
    }
}

fn verdict(verdict: &Significance) -> &'static str {
    match verdict {
        Significance::Better => "B better",
        Significance::Worse => "B worse",
        Significance::NoDifference => "no difference shown",
        Significance::Unknown => "cannot say",
    }
}
