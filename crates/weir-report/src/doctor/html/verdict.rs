//! Findings, advice, bars and caveats: sentences, each with links to what it stands on.

use super::{Links, signs};
use crate::page::{capitalised, facts_table, paragraph, typed};
use maud::{Markup, html};
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
        Topic::Sustained => "sustained",
        Topic::Map => "map",
        Topic::Flood => "under-flood",
        Topic::Settings => "facts",
    }
}

/// The findings in reading order, each with its first sentence, which carries the conclusion.
pub fn findings(report: &DoctorReport, links: &Links) -> Markup {
    html! { ol.findings { @for each in &report.findings { (finding(each, links)) } } }
}

fn finding(finding: &Finding, links: &Links) -> Markup {
    html! {
        li.finding {
            div.side {
                a.topic href={ "#" (section_of(finding.topic)) } { (finding.topic.title()) }
                @if let Some(grade) = finding.grade { (signs::grade(grade)) }
            }
            div {
                h3 { (finding.summary) }
                @if let Some(conclusion) = finding.statements.first() { (statement(conclusion, links)) }
            }
        }
    }
}

/// The further sentences of all findings that belong to a section.
pub fn further(section: &str, report: &DoctorReport, links: &Links) -> Markup {
    let here = report.findings.iter().filter(|f| section_of(f.topic) == section);
    html! { @for said in here.flat_map(|f| f.statements.iter().skip(1)) { (statement(said, links)) } }
}

/// Whether a finding's link leads to a section.
pub fn points_at(section: &str, report: &DoctorReport) -> bool {
    report.findings.iter().any(|f| section_of(f.topic) == section)
}

/// A sentence with its evidence beneath.
fn statement(statement: &Statement, links: &Links) -> Markup {
    let more = statement.evidence.len().saturating_sub(EVIDENCE_MOST);
    html! {
        (paragraph(capitalised(&statement.text)))
        @if !statement.evidence.is_empty() {
            div.evs {
                @for each in statement.evidence.iter().take(EVIDENCE_MOST) { (evidence_link(each, links)) }
                @if more > 0 { span.ev { "and " (more) " more" } }
            }
        }
    }
}

fn evidence_link(evidence: &Evidence, links: &Links) -> Markup {
    let mut text = evidence.figure.clone();
    if let Some(interval) = &evidence.interval {
        text.push_str(&format!(", 95 % {interval}"));
    }
    if evidence.n > 0 {
        text.push_str(&format!(", n = {}", grouped(evidence.n)));
    }
    html! {
        @match links.anchor(&evidence.source) {
            Some(anchor) => { a.ev href={ "#" (anchor) } title=(evidence.source) { (text) } }
            None => { span.ev.soft title=(evidence.source) { (text) } }
        }
    }
}

/// What to change, or that nothing needs to.
pub fn advice(report: &DoctorReport, links: &Links) -> Markup {
    if report.advice.is_empty() {
        return paragraph(&report.closing);
    }
    let lead = "weir has left every setting as it was. Each command comes with the one that undoes it.";
    html! { (paragraph(lead)) @for advice in &report.advice { (piece(advice, links)) } }
}

fn piece(advice: &Advice, links: &Links) -> Markup {
    let tag = if advice.measured { "gain measured here" } else { "an experiment to make" };
    let commands = [("Apply", &advice.command), ("Undo", &advice.undo)];
    let rows: Vec<(String, String, String)> =
        [("Durability", &advice.durability), ("Restore", &advice.reversibility)]
            .iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| (name.to_string(), text.to_string(), String::new()))
            .collect();
    html! {
        div.advice {
            h3 { code { (advice.knob) } span.tag.yes[advice.measured] { (tag) } }
            p.change { (advice.current) " → " (advice.proposed) }
            (statement(&advice.effect, links))
            (statement(&advice.cost, links))
            @for (name, command) in commands.iter().filter(|(_, command)| !command.is_empty()) {
                p.topic { (name) }
                (typed(command))
            }
            (facts_table(&rows))
        }
    }
}

/// Experiments that tell more.
pub fn next(report: &DoctorReport) -> Markup {
    html! { @for NextStep { why, command, .. } in &report.next { (paragraph(why)) (typed(command)) } }
}

/// The bars of a product and of the user.
pub fn bars(report: &DoctorReport, links: &Links) -> Markup {
    html! {
        ol.findings {
            @for bar in &report.bars {
                li.finding {
                    div.side { (signs::met(bar.met)) }
                    div {
                        h3 { code { (bar.bar) } }
                        (statement(&bar.statement, links))
                        @if let Some(source) = &bar.source { p.soft { (capitalised(source)) } }
                    }
                }
            }
        }
    }
}

/// What could not be seen, and what else may have disturbed.
pub fn caveats(report: &DoctorReport, links: &Links) -> Markup {
    html! { @for caveat in &report.caveats { (statement(caveat, links)) } }
}
