//! A recording that was played: what became of it, and its stages beside those of the replay.

use crate::layout::{labelled, table};
use crate::page::distribution::{self, Sample};
use crate::page::{Table, data_table, facts_table, figure, note, section};
use maud::{Markup, html};
use serde::Serialize;
use weir_blocktrace::StageTable;
use weir_blocktrace::replay::{Figures, ReplayRecord, StageRow};
use weir_core::result::{Record, RunResult};
use weir_core::units::{Bytes, Nanos, grouped, significant};
use weir_core::workload::spec::Space;

/// In place of a figure that is not there.
const NONE: &str = "-";

/// The report for people.
pub fn text(result: &RunResult, record: &Record, replay: &ReplayRecord) -> String {
    let mut more = String::from("\n");
    for (label, sentence) in facts(replay) {
        labelled(&mut more, label, &sentence);
    }
    let rows = replay.stages();
    if !rows.is_empty() {
        more.push('\n');
        table(&mut more, &stage_rows(&rows), 2);
    }
    for remark in remarks(replay) {
        labelled(&mut more, "note", &remark);
    }
    super::text::run_with(result, record, &more)
}

/// The result as JSON, with what became of the recording in `replay`.
///
/// # Errors
/// When it cannot be written.
pub fn json(result: &RunResult, replay: &ReplayRecord) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        result: &'a RunResult,
        replay: Part<'a>,
    }
    #[derive(Serialize)]
    struct Part<'a> {
        recording: &'a str,
        device: &'a str,
        from: weir_blocktrace::replay::From,
        depth_mean: f64,
        depth_max: u64,
        left_out: &'a weir_blocktrace::replay::LeftOut,
        fitted: &'a weir_core::workload::replay::Fitted,
        stages: Vec<StageRow>,
        unseen: Option<&'a str>,
        notes: &'a [String],
    }
    let part = Part {
        recording: &replay.recording,
        device: &replay.device,
        from: replay.from,
        depth_mean: replay.depth_mean,
        depth_max: replay.depth_max,
        left_out: &replay.left_out,
        fitted: &replay.fitted,
        stages: replay.stages(),
        unseen: replay.unseen.as_deref(),
        notes: &replay.notes,
    };
    serde_json::to_string_pretty(&Document { result, replay: part }).map(|text| text + "\n")
}

/// The section of the page.
pub fn html(record: &Record, replay: &ReplayRecord) -> Markup {
    let rows: Vec<(String, String, String)> =
        facts(replay).into_iter().map(|(label, text)| (label.to_string(), text, String::new())).collect();
    let delays = record.jobs.first().and_then(|job| job.lateness.as_ref()?.start_delay.as_ref());
    let stages = stage_rows(&replay.stages());
    html! {
        (section("replay", "What was played", facts_table(&rows)))
        @if let Some(delays) = delays.filter(|delays| delays.count() > 0) {
            @let sample = Sample { name: "start".to_string(), look: 0, latency: delays };
            @let finding = "From the time of the recording to the real start of each operation.";
            @let plot = distribution::figure("start-delay", "How late operations started", finding, &[sample]);
            (section("timing", "Were the recording's times kept?", figure(&plot, &Table::default())))
        }
        @if let [head, rest @ ..] = stages.as_slice() {
            @let table = Table { head: head.clone(), rows: rest.to_vec(), ..Table::default() };
            (section("stages", "The recording and the replay", data_table(&table)))
        }
        @for remark in remarks(replay) { (note("Note", &remark, false)) }
    }
}

/// What was played, and what was changed to play it.
fn facts(replay: &ReplayRecord) -> Vec<(&'static str, String)> {
    let fitted = &replay.fitted;
    let played = format!(
        "{} I/Os of {}, {}: {} reads, {} writes ({} FUA, {} with a flush first), {} flushes; {} in {}",
        grouped(fitted.ios),
        replay.device,
        replay.from.name(),
        grouped(fitted.reads),
        grouped(fitted.writes),
        grouped(fitted.durable),
        grouped(fitted.flushed_writes),
        grouped(fitted.flushes),
        Bytes(fitted.bytes),
        Nanos(fitted.span_ns)
    );
    let mut facts = vec![("played", played), ("space", space(replay))];
    let changed = changes(replay);
    if !changed.is_empty() {
        facts.push(("changed", changed.join("; ")));
    }
    let left: Vec<String> =
        replay.left_out.reasons().into_iter().map(|(n, why)| format!("{} {why}", grouped(n))).collect();
    if !left.is_empty() {
        facts.push(("left out", left.join(", ")));
    }
    let depth = format!(
        "{} in flight on average in the recording, {} at most",
        significant(replay.depth_mean),
        grouped(replay.depth_max)
    );
    facts.push(("depth", depth));
    facts
}

fn space(replay: &ReplayRecord) -> String {
    let fitted = &replay.fitted;
    let (extent, target) = (Bytes(fitted.extent_bytes), Bytes(fitted.target_bytes));
    match fitted.space {
        _ if fitted.extent_bytes == 0 => "flushes have no offset".to_string(),
        Space::Recorded => format!("offsets as recorded, up to {extent}"),
        Space::Wrap => format!(
            "offsets wrapped: the recording reaches to {extent}, the target has {target}; {} of the I/Os moved",
            grouped(fitted.moved)
        ),
        Space::Scale => format!("offsets scaled from {extent} to {target}: sequential I/Os overlap"),
    }
}

fn changes(replay: &ReplayRecord) -> Vec<String> {
    let fitted = &replay.fitted;
    let block = Bytes(fitted.block_bytes);
    let said = [
        (fitted.rounded, format!("rounded to whole blocks of {block}")),
        (fitted.in_parts, "longer than 1 MiB, in parts".to_string()),
        (fitted.shortened, "cut to the size of the target".to_string()),
        (fitted.out_of_order, "sorted, as their times ran backwards".to_string()),
    ];
    let mut changes: Vec<String> =
        said.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", grouped(n))).collect();
    if fitted.gaps > 0 {
        changes.push(format!(
            "{} times without I/O shortened by {} in all (--gap-max)",
            grouped(fitted.gaps),
            Nanos(fitted.gaps_ns)
        ));
    }
    changes
}

fn remarks(replay: &ReplayRecord) -> Vec<String> {
    let mut remarks = replay.notes.clone();
    if let Some(why) = &replay.unseen {
        remarks.push(format!("the stages of the replay were not seen: {why}"));
    }
    if let Some(devices) = replay.replayed.as_ref().map(StageTable::devices).filter(|of| of.len() > 1) {
        let names: Vec<String> = devices.iter().map(ToString::to_string).collect();
        remarks.push(format!(
            "the target stands on {} devices: the replay's I/Os are those of {} together, the recording's of one device",
            devices.len(),
            names.join(", ")
        ));
    }
    if replay.fitted.flushed_writes > 0 {
        remarks.push(
            "a write with a flush first is played as both, starting together: the recording's Q2C has the flush in \
             it, the replay's has not"
                .to_string(),
        );
    }
    remarks
}

/// The stages with a head.
fn stage_rows(rows: &[StageRow]) -> Vec<Vec<String>> {
    let head =
        ["class", "stage", "recorded", "mean", "p50", "p99", "replayed", "mean", "p50", "p99", "ratio"];
    let mut out = vec![head.map(String::from).to_vec()];
    for row in rows {
        let mut cells = vec![row.class.words(), row.stage.name().to_string()];
        cells.extend(figures(row.recorded));
        cells.extend(figures(row.replayed));
        let ratio = row.recorded.zip(row.replayed).filter(|(recorded, _)| recorded.mean_ns > 0.0);
        cells.push(ratio.map_or(NONE.to_string(), |(recorded, replayed)| {
            format!("{:.2}", replayed.mean_ns / recorded.mean_ns)
        }));
        out.push(cells);
    }
    out
}

fn figures(figures: Option<Figures>) -> [String; 4] {
    let Some(f) = figures else { return [NONE; 4].map(String::from) };
    [
        grouped(f.count),
        Nanos(f.mean_ns.round() as u64).to_string(),
        Nanos(f.p50_ns).to_string(),
        f.p99_ns.map_or(super::text::TOO_FEW.to_string(), |ns| Nanos(ns).to_string()),
    ]
}

#[cfg(test)]
pub mod tests;
