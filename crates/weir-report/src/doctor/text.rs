//! The doctor's verdict as text that people paste: at most 100 columns, some 50 lines, no colour.

use crate::layout::{labelled_at, table};
use weir_core::units::{Nanos, grouped, megabytes_per_second, per_second};
use weir_verdict::doctor::{
    BarResult, Curve, DoctorReport, EffectSide, Evidence, Fact, Finding, FloodEffect, FloodStory, NextStep,
    Statement, Topic,
};
use weir_verdict::view::{limit, percent, threads, time};

/// Where the text of findings begins.
pub(super) const INDENT: usize = 13;
/// Caveats shown before the rest is left to JSON and HTML.
const CAVEATS_MAX: usize = 6;

pub(super) fn wrapped(label: &str, edge: usize, text: &str) -> String {
    let mut out = String::new();
    labelled_at(&mut out, label, edge, text);
    out
}

/// The whole summary, with a final newline.
pub fn doctor(report: &DoctorReport) -> String {
    let mut out = head(report);
    for fact in report.facts.iter().filter(|fact| !is_told_elsewhere(fact, report)) {
        out.push_str(&wrapped(&format!("  {}", fact.label), 18, &fact.value));
    }
    out.push('\n');
    for finding in &report.findings {
        out.push_str(&section(finding, report));
    }
    out.push_str(&curves(&report.curves));
    out.push_str(&report.flood.as_ref().map(flood).unwrap_or_default());
    out.push_str(&report.map.as_ref().map(super::map::text).unwrap_or_default());
    out.push_str(&advice(report));
    out.push_str(&next(&report.next));
    out.push_str(&bars(&report.bars));
    out.push_str(&caveats(&report.caveats));
    out
}

/// Facts that a caveat tells where they matter, or a finding that stands on them.
fn is_told_elsewhere(fact: &Fact, report: &DoctorReport) -> bool {
    let mut evidence =
        report.findings.iter().flat_map(|finding| &finding.statements).flat_map(|said| &said.evidence);
    match fact.label.as_str() {
        "others, before" => true,
        "cgroup limits" => evidence.any(|evidence| evidence.source.starts_with("fact:cgroup ")),
        _ => false,
    }
}

fn head(report: &DoctorReport) -> String {
    let product = report.product.map_or(String::new(), |product| format!(" --for {}", product.name()));
    let product = if report.sustained.is_some() { " --sustained".to_string() } else { product };
    let product = if report.map.is_some() { " --map".to_string() } else { product };
    let grade = report.headline.grade.name().to_uppercase();
    let title = format!("weir doctor{product} {}: {grade}\n", report.path);
    let text = wrapped("", 0, &report.headline.text);
    let took = Nanos(report.elapsed_ns);
    let run = format!("Record {}, {}, {took}, weir {}.", report.record_id, report.mode, report.weir_version);
    format!("{title}{text}{run}\n\n")
}

/// A finding's sentences. What a table below shows as well is left to the table.
fn section(finding: &Finding, report: &DoctorReport) -> String {
    let in_table = match finding.topic {
        Topic::Utilization => report.curves.len(),
        Topic::Flood => report.flood.as_ref().map_or(0, |f| f.effects.len()),
        _ => 0,
    };
    let sentences: Vec<String> = match finding.topic {
        Topic::Utilization => &finding.statements[..finding.statements.len().saturating_sub(in_table)],
        Topic::Tail => &finding.statements[..1.min(finding.statements.len())],
        Topic::Flood => finding.statements.get(in_table..in_table + 2).unwrap_or(&[]),
        _ => &finding.statements[..],
    }
    .iter()
    .map(sentence)
    .collect();
    let grade = finding.grade.map(|g| format!("{}. ", g.name().to_uppercase())).unwrap_or_default();
    let summary = if finding.topic == Topic::Flood {
        format!("{}. ", sentence_case(&finding.summary))
    } else {
        String::new()
    };
    wrapped(finding.topic.title(), INDENT, &format!("{grade}{summary}{}", sentences.join(" ")))
}

fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// A sentence with the names of what it stands on.
pub(super) fn sentence(statement: &Statement) -> String {
    let mut sources: Vec<String> = Vec::new();
    for evidence in &statement.evidence {
        let name = source(evidence);
        if !sources.contains(&name) {
            sources.push(name);
        }
    }
    if sources.is_empty() {
        statement.text.clone()
    } else {
        format!("{} [{}]", statement.text, sources.join(", "))
    }
}

fn source(evidence: &Evidence) -> String {
    let name = evidence.source.strip_prefix("fact:").unwrap_or(&evidence.source);
    if evidence.n > 0 { format!("{name} n={}", grouped(evidence.n)) } else { name.to_string() }
}

/// IOPS and p99 over depth; the knee is marked.
fn curves(curves: &[Curve]) -> String {
    let mut depths: Vec<u32> = curves.iter().flat_map(|c| c.points.iter().map(|p| p.depth)).collect();
    depths.sort_unstable();
    depths.dedup();
    if depths.is_empty() {
        return String::new();
    }
    let mut rows = vec![vec!["In flight".to_string()]];
    rows[0].extend(depths.iter().map(u32::to_string));
    for curve in curves {
        let at = |depth: u32| curve.points.iter().find(|p| p.depth == depth);
        let iops = depths.iter().map(|d| {
            let mark = if *d == curve.knee_depth { "*" } else { "" };
            at(*d).map_or(String::new(), |p| format!("{mark}{}", per_second(p.iops.mean)))
        });
        let p99 = depths.iter().map(|d| at(*d).and_then(|p| p.p99_ns).map_or(String::new(), time));
        rows.push(std::iter::once(format!("{} IOPS", curve.id)).chain(iops).collect());
        rows.push(std::iter::once("  p99".to_string()).chain(p99).collect());
    }
    tabulated(&rows)
}

/// Rows of equal length under an empty line.
fn tabulated(rows: &[Vec<String>]) -> String {
    let mut out = "\n".to_string();
    table(&mut out, rows, 1);
    out
}

/// Idle, flood and rescues as rows; a column for each number of threads, the other axis in the last.
fn flood(story: &FloodStory) -> String {
    let Some(first) = story.effects.first() else { return String::new() };
    let mut header = vec!["Commits/s".to_string()];
    header.extend(story.effects.iter().map(|effect| threads(effect.threads)));
    header.push("device writes".to_string());
    let mut rows = vec![header, side("idle", story, |effect| Some(&effect.idle))];
    rows.push(side("bulk writer", story, |effect| Some(&effect.flood)));
    for rescue in &first.rescues {
        let limit = rescue.dirty_bytes.map_or_else(|| "baseline".to_string(), limit);
        let same = |e: &'_ FloodEffect| e.rescues.iter().position(|r| r.dirty_bytes == rescue.dirty_bytes);
        let label = format!("  with dirty_bytes {limit}");
        rows.push(side(&label, story, |effect| same(effect).map(|i| &effect.rescues[i])));
    }
    tabulated(&rows)
}

fn side(label: &str, story: &FloodStory, pick: impl Fn(&FloodEffect) -> Option<&EffectSide>) -> Vec<String> {
    let mut row = vec![label.to_string()];
    row.extend(story.effects.iter().map(|effect| pick(effect).map_or(String::new(), |s| cell(effect, s))));
    let device = story.effects.iter().filter_map(&pick).find_map(|side| side.device_bytes_per_second);
    let is_idle = story.effects.iter().filter_map(&pick).all(|side| side.flood_bytes_per_second.is_none());
    row.push(device.filter(|_| !is_idle).map_or(String::new(), megabytes_per_second));
    row
}

fn cell(effect: &FloodEffect, side: &EffectSide) -> String {
    let bound = if side.cut_short { "≥ " } else { "" };
    let (rate, worst) = (per_second(side.iops.mean), format!("{bound}{}", time(side.worst_ns)));
    if side.measurement == effect.idle.measurement || effect.idle.iops.mean <= 0.0 {
        return format!("{rate} (worst {worst})");
    }
    format!("{rate} ({}, worst {worst})", percent(side.iops.mean / effect.idle.iops.mean))
}

fn advice(report: &DoctorReport) -> String {
    if report.advice.is_empty() {
        return format!("\n{}", wrapped("", 0, &report.closing));
    }
    let mut out = "\nTo consider (weir changes nothing by itself)\n".to_string();
    for (i, a) in report.advice.iter().enumerate() {
        let label = format!("  {}.", i + 1);
        let measured = if a.measured { "measured" } else { "not measured, a trial" };
        out.push_str(&wrapped(
            &label,
            5,
            &format!("{}: {} → {} ({measured})", a.knob, a.current, a.proposed),
        ));
        let effect = format!("{} {}", sentence(&a.effect), sentence(&a.cost));
        out.push_str(&wrapped("", 5, &effect));
        out.push_str(&wrapped(
            "",
            5,
            &format!("Durability: {}. Reversible: {}.", a.durability, a.reversibility),
        ));
        out.push_str(&format!("     do:   {}\n     undo: {}\n", a.command, a.undo));
    }
    out
}

/// Experiments that tell more, and the guard; why stands in the finding above.
pub(super) fn next(steps: &[NextStep]) -> String {
    if steps.is_empty() {
        return String::new();
    }
    let line = |step: &NextStep| format!("Next, to {}: {}\n", step.purpose, step.command);
    format!("\n{}", steps.iter().map(line).collect::<String>())
}

fn bars(bars: &[BarResult]) -> String {
    if bars.is_empty() {
        return String::new();
    }
    let said = |bar: &BarResult| match &bar.source {
        Some(source) => format!("{} ({source})", bar.statement.text),
        None => sentence(&bar.statement),
    };
    let lines = bars.iter().map(|bar| wrapped("  -", 4, &said(bar)));
    format!("\nBars\n{}", lines.collect::<String>())
}

fn caveats(caveats: &[Statement]) -> String {
    if caveats.is_empty() {
        return String::new();
    }
    let shown = caveats.iter().take(CAVEATS_MAX);
    let mut out = "\nWhat weakens this\n".to_string();
    out.extend(shown.map(|caveat| wrapped("  -", 4, &caveat.text)));
    if caveats.len() > CAVEATS_MAX {
        out.push_str(&format!("  - and {} more in the JSON and HTML reports\n", caveats.len() - CAVEATS_MAX));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::COLUMNS;
    use weir_verdict::from_record;
    use weir_verdict::synthetic::{Lab, throttled_and_flooded};

    #[test]
    fn the_summary_can_be_pasted() {
        let mut lab = throttled_and_flooded();
        lab.notes.flood.phases[1].cut_short = true;
        let text = doctor(&from_record(&lab.record(Vec::new())).unwrap());
        for line in text.lines() {
            assert!(line.chars().count() <= COLUMNS || line.starts_with("     do:"), "too wide: {line}");
        }
        assert!(text.lines().count() <= 55, "{} lines:\n{text}", text.lines().count());
        assert!(text.starts_with("weir doctor /srv/db: POOR\n"), "{text}");
        assert!(text.contains("10 threads") && text.contains("%, worst ≥ "), "{text}");
        let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flowing.contains("[flood-flood-t10 n=135, flood-rescue-t10 n=2,812]"), "{text}");
        assert!(text.contains("sysctl -w vm.dirty_bytes=15000000"), "{text}");
        assert!(
            text.contains("\nNext, to find the best: sudo weir tune sweep vm.dirty_bytes --dir /srv/db\n"),
            "{text}"
        );
        assert!(
            text.contains("\nNext, to hold commits as the load changes: sudo weir guard run --shadow\n"),
            "{text}"
        );
    }

    /// Of a limit that explains a ceiling the finding tells; any other is seen among the facts.
    #[test]
    fn a_cgroups_limit_is_said_once() {
        let mut lab = throttled_and_flooded();
        let shown = |lab: Lab| {
            let text = doctor(&from_record(&lab.record(Vec::new())).unwrap());
            text.lines()
                .filter(|line| line.starts_with("  cgroup limits"))
                .map(String::from)
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(throttled_and_flooded()), Vec::<String>::new());
        lab.conditions.target.as_mut().unwrap().throttles.clear();
        lab.throttle("wiops", 90_000);
        assert_eq!(shown(lab), ["  cgroup limits   vdb write 90,000 IOPS"]);
    }

    #[test]
    fn why_nothing_is_advised_can_be_pasted_too() {
        let mut report = from_record(&throttled_and_flooded().record(Vec::new())).unwrap();
        report.advice.clear();
        report.closing =
            "vm.dirty_bytes = 40 MB left 49 % of 10 threads' commits instead of 21 %, which may be chance: \
                          the trials' intervals overlap; the next steps are below."
                .to_string();
        let text = doctor(&report);
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flowing.contains(&report.closing), "{text}");
    }
}
