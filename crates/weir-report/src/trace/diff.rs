//! A comparison of two recordings, for people and as JSON.

use super::phrases::recorded;
use crate::layout::{labelled, table};
use weir_blocktrace::Stage;
use weir_blocktrace::diff::{ClassDiff, DeviceSide, Diff, Effect, LatencyChange, StageDiff};
use weir_core::units::{Nanos, grouped, per_second, significant};

/// In place of a figure that is not there.
const NONE: &str = "-";

/// The report; `names` are what the two recordings are called.
pub fn text(diff: &Diff, names: [&str; 2]) -> String {
    let mut out = String::new();
    for (nth, sentence) in diff.verdict.iter().enumerate() {
        labelled(&mut out, if nth == 0 { "verdict" } else { "" }, sentence);
    }
    for (nth, label) in ["A", "B"].into_iter().enumerate() {
        labelled(&mut out, label, &format!("{}: {}", names[nth], side(&diff.devices[nth])));
    }
    let mut rows = vec![header()];
    let mut told: Vec<&ClassDiff> = Vec::new();
    for class in diff.classes.iter().filter(|class| class.comparable) {
        // Classes overlap; one with the same I/Os as another says nothing new.
        match told.iter().find(|other| other.stages == class.stages) {
            Some(same) => rows.push([spoken(class), format!("as {}", spoken(same))].to_vec()),
            None => append_class(&mut rows, class),
        }
        told.push(class);
    }
    if rows.len() > 1 {
        out.push('\n');
        table(&mut out, &rows, 2);
    }
    append_uncompared(&mut out, diff);
    out.push('\n');
    let margin = diff.margin * 100.0;
    let note = format!(
        "figures are over the kinds and sizes that both have, weighted to a common mix; B/A has a 95 % interval from \
         stretches of time drawn again; within {margin:.0} % is the same (--margin); {NONE}: too few I/Os, or none"
    );
    labelled(&mut out, "note", &note);
    out
}

/// As JSON; `names` are what the two recordings are called.
pub fn json(diff: &Diff, names: [&str; 2]) -> serde_json::Result<String> {
    #[derive(serde::Serialize)]
    struct Document<'a> {
        schema: u32,
        kind: &'static str,
        recordings: [&'a str; 2],
        #[serde(flatten)]
        diff: &'a Diff,
    }
    let document = Document { schema: 1, kind: "trace_diff", recordings: names, diff };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

fn side(side: &DeviceSide) -> String {
    let scheduler = match side.inserted_share {
        Some(share) if share > 0.5 => "; through a scheduler",
        _ => "",
    };
    let depth = side
        .depth_at_driver
        .map_or(String::new(), |depth| format!("; {} requests at the driver on average", significant(depth)));
    format!(
        "{}, {} pieces in {}: {}/s{depth}{scheduler}",
        side.device,
        grouped(side.ios),
        recorded(side.extent, side.span_ns),
        per_second(side.ios_per_second)
    )
}

fn header() -> Vec<String> {
    ["class", "stage", "A mean", "B mean", "B/A", "95 %", "p50 B/A", "p99 B/A", "p99 95 %", ""]
        .map(String::from)
        .to_vec()
}

fn spoken(class: &ClassDiff) -> String {
    class.class.words()
}

fn append_class(rows: &mut Vec<Vec<String>>, class: &ClassDiff) {
    let shown = class.stages.iter().filter(|stage| is_shown(stage, class));
    for (nth, stage) in shown.enumerate() {
        let name = if nth == 0 { spoken(class) } else { String::new() };
        rows.push(stage_row(name, stage));
    }
}

/// Where one side has a scheduler and the other has not, only sums can be compared, and then they are shown.
fn is_shown(stage: &StageDiff, class: &ClassDiff) -> bool {
    let one_sided = |stage: Stage| class.stage(stage).is_none_or(|of| of.mean.is_none());
    match stage.stage {
        Stage::G2DAll => {
            one_sided(Stage::I2D) && one_sided(Stage::G2D) || one_sided(Stage::G2D) != one_sided(Stage::I2D)
        }
        Stage::G2C => class.stage(Stage::Q2C).is_none(),
        _ => true,
    }
}

fn stage_row(class: String, diff: &StageDiff) -> Vec<String> {
    let mean = |of: fn(&Effect) -> f64| {
        diff.mean.as_ref().map_or(NONE.to_string(), |e| Nanos(of(e).round() as u64).to_string())
    };
    let ratio = |effect: &Option<Effect>| effect.map_or(NONE.to_string(), |e| format!("{:.2}", e.ratio));
    let interval = |effect: &Option<Effect>| {
        let interval = effect.and_then(|effect| effect.interval);
        interval.map_or(NONE.to_string(), |[low, high]| format!("{low:.2}–{high:.2}"))
    };
    vec![
        class,
        diff.stage.name().to_string(),
        mean(|e| e.a_ns),
        mean(|e| e.b_ns),
        ratio(&diff.mean),
        interval(&diff.mean),
        ratio(&diff.p50),
        ratio(&diff.p99),
        interval(&diff.p99),
        judgement(diff.judgement).to_string(),
    ]
}

fn judgement(judgement: LatencyChange) -> &'static str {
    match judgement {
        LatencyChange::Same => "same",
        LatencyChange::Longer => "longer",
        LatencyChange::Shorter => "shorter",
        LatencyChange::Undecided => "undecided",
        LatencyChange::NoInterval => "no interval",
        LatencyChange::OnlyA => "only in A",
        LatencyChange::OnlyB => "only in B",
    }
}

fn append_uncompared(out: &mut String, diff: &Diff) {
    for class in diff.classes.iter().filter(|class| !class.comparable) {
        let text = format!(
            "{}: {} I/Os in A, {} in B, of which only {:.0} % and {:.0} % are of a kind and size that both have",
            spoken(class),
            grouped(class.ios[0]),
            grouped(class.ios[1]),
            class.common[0] * 100.0,
            class.common[1] * 100.0
        );
        labelled(out, "not", &text);
    }
}
