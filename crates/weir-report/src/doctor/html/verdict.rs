//! Findings, advice, bars and caveats: sentences, each with links to what it stands on.

use super::{Links, signs};
use crate::page::{capitalised, facts_table, paragraph};
use crate::plot::escape;
use weir_core::units::grouped;
use weir_verdict::doctor::{Advice, DoctorReport, Evidence, Finding, NextStep, Statement, Topic};

/// Figures shown under one sentence; a caveat can concern every step.
const EVIDENCE_MOST: usize = 6;

/// The section of the page that a topic's plots and further sentences stand in.
fn section_of(topic: Topic) -> &'static str {
    match topic {
        Topic::Class | Topic::Utilization => "depth",
        Topic::Commit | Topic::GroupCommit | Topic::SyncPath | Topic::Tail | Topic::Stages => "commits",
        Topic::Sequential => "bulk",
        Topic::Flood => "under-flood",
        Topic::Settings => "facts",
    }
}

/// The findings in reading order, each with its first sentence, which carries the conclusion.
pub fn findings(report: &DoctorReport, links: &Links) -> String {
    let items: String = report.findings.iter().map(|f| finding(f, links)).collect();
    format!("<ol class=\"findings\">{items}</ol>\n")
}

fn finding(finding: &Finding, links: &Links) -> String {
    let sign = finding.grade.map_or(String::new(), signs::grade);
    let conclusion = finding.statements.first().map_or(String::new(), |s| statement(s, links));
    format!(
        "<li class=\"finding\"><div class=\"side\"><a class=\"topic\" href=\"#{}\">{}</a>{sign}</div>\
         <div><h3>{}</h3>{conclusion}</div></li>\n",
        section_of(finding.topic),
        escape(finding.topic.title()),
        escape(&finding.summary)
    )
}

/// The further sentences of all findings that belong to a section.
pub fn further(section: &str, report: &DoctorReport, links: &Links) -> String {
    let here = report.findings.iter().filter(|f| section_of(f.topic) == section);
    here.flat_map(|f| f.statements.iter().skip(1)).map(|s| statement(s, links)).collect()
}

/// Whether a finding's link leads to a section.
pub fn points_at(section: &str, report: &DoctorReport) -> bool {
    report.findings.iter().any(|f| section_of(f.topic) == section)
}

/// A sentence with its evidence beneath.
fn statement(statement: &Statement, links: &Links) -> String {
    let sentence = paragraph(capitalised(&statement.text));
    if statement.evidence.is_empty() {
        return sentence;
    }
    let shown: String =
        statement.evidence.iter().take(EVIDENCE_MOST).map(|e| evidence_link(e, links)).collect();
    let rest = match statement.evidence.len().saturating_sub(EVIDENCE_MOST) {
        0 => String::new(),
        n => format!("<span class=\"ev\">and {n} more</span>"),
    };
    format!("{sentence}<div class=\"evs\">{shown}{rest}</div>")
}

fn evidence_link(evidence: &Evidence, links: &Links) -> String {
    let mut text = evidence.figure.clone();
    if let Some(interval) = &evidence.interval {
        text.push_str(&format!(", 95 % {interval}"));
    }
    if evidence.n > 0 {
        text.push_str(&format!(", n = {}", grouped(evidence.n)));
    }
    let source = escape(&evidence.source);
    match links.anchor(&evidence.source) {
        Some(anchor) => {
            format!("<a class=\"ev\" href=\"#{}\" title=\"{source}\">{}</a>", escape(anchor), escape(text))
        }
        None => format!("<span class=\"ev soft\" title=\"{source}\">{}</span>", escape(text)),
    }
}

/// What to change, or that nothing needs to.
pub fn advice(report: &DoctorReport, links: &Links) -> String {
    if report.advice.is_empty() {
        return paragraph(&report.closing);
    }
    let lead =
        paragraph("weir has left every setting as it was. Each command comes with the one that undoes it.");
    let items: String = report.advice.iter().map(|a| piece(a, links)).collect();
    lead + &items
}

fn piece(advice: &Advice, links: &Links) -> String {
    let (class, tag) =
        if advice.measured { ("tag yes", "gain measured here") } else { ("tag", "an experiment to make") };
    let commands = [("Apply", &advice.command), ("Undo", &advice.undo)]
        .iter()
        .filter(|(_, command)| !command.is_empty())
        .map(|(name, command)| format!("<p class=\"topic\">{name}</p><pre>{}</pre>", escape(command)))
        .collect::<String>();
    let rows: Vec<(String, String, String)> =
        [("Durability", &advice.durability), ("Restore", &advice.reversibility)]
            .iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| (name.to_string(), text.to_string(), String::new()))
            .collect();
    format!(
        "<div class=\"advice\"><h3><code>{}</code><span class=\"{class}\">{tag}</span></h3>\
         <p class=\"change\">{} → {}</p>{}{}{commands}{}</div>\n",
        escape(&advice.knob),
        escape(&advice.current),
        escape(&advice.proposed),
        statement(&advice.effect, links),
        statement(&advice.cost, links),
        facts_table(&rows)
    )
}

/// Experiments that tell more.
pub fn next(report: &DoctorReport) -> String {
    let step = |step: &NextStep| format!("{}<pre>{}</pre>\n", paragraph(&step.why), escape(&step.command));
    report.next.iter().map(step).collect()
}

/// The bars a user stated.
pub fn bars(report: &DoctorReport, links: &Links) -> String {
    let item = |bar: &weir_verdict::doctor::BarResult| {
        format!(
            "<li class=\"finding\"><div class=\"side\">{}</div><div><h3><code>{}</code></h3>{}</div></li>\n",
            signs::met(bar.met),
            escape(&bar.bar),
            statement(&bar.statement, links)
        )
    };
    let items: String = report.bars.iter().map(item).collect();
    format!("<ol class=\"findings\">{items}</ol>\n")
}

/// What could not be seen, and what else may have disturbed.
pub fn caveats(report: &DoctorReport, links: &Links) -> String {
    report.caveats.iter().map(|s| statement(s, links)).collect()
}
