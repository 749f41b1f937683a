//! What `weir db doctor` found, as text that people paste.

use super::text::{INDENT, next, sentence, wrapped};
use weir_core::units::Nanos;
use weir_verdict::db::{DbFinding, DbReport};

/// The whole report, with a final newline.
pub fn db_doctor(report: &DbReport) -> String {
    let exam = &report.examination;
    let mut out = format!("weir db doctor {}: {}\n", exam.place, report.headline.grade.name().to_uppercase());
    out.push_str(&wrapped("", 0, &report.headline.text));
    let vitals = &exam.vitals;
    out.push_str(&format!(
        "Watched for {} ({} samples of its sessions, which cost this side {}); nothing was changed.\n\n",
        Nanos(vitals.elapsed_ns),
        vitals.sessions.looks,
        Nanos(vitals.cost_ns)
    ));
    report
        .facts
        .iter()
        .for_each(|fact| out.push_str(&wrapped(&format!("  {}", fact.label), 18, &fact.value)));
    out.push('\n');
    report.findings.iter().for_each(|finding| out.push_str(&section(finding)));
    out.push_str(&advice(report));
    out.push_str(&next(&report.next));
    if !report.caveats.is_empty() {
        out.push_str("\nWhat weakens this\n");
        report.caveats.iter().for_each(|caveat| out.push_str(&wrapped("  -", 4, caveat)));
    }
    out
}

fn section(finding: &DbFinding) -> String {
    let grade = finding.grade.map(|grade| format!("{}. ", grade.name().to_uppercase())).unwrap_or_default();
    let sentences: Vec<String> = finding.statements.iter().map(sentence).collect();
    wrapped(&finding.topic, INDENT, &format!("{grade}{}", sentences.join(" ")))
}

fn advice(report: &DbReport) -> String {
    if report.advice.is_empty() {
        return format!("\n{}", wrapped("", 0, &report.closing));
    }
    let mut out = "\nTo consider (weir changes nothing by itself; try on a copy first)\n".to_string();
    for (nth, one) in report.advice.iter().enumerate() {
        let restart = if one.restart { ", needs a restart" } else { "" };
        let head = format!("{}: {} → {} (not measured{restart})", one.variable, one.current, one.proposed);
        out.push_str(&wrapped(&format!("  {}.", nth + 1), 5, &head));
        out.push_str(&wrapped("", 5, &format!("Why: {}. Cost: {}.", one.why, one.cost)));
        out.push_str(&format!("     do:   {}\n     undo: {}\n", one.apply, one.undo));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::COLUMNS;
    use weir_verdict::db::synthetic::small_log;

    #[test]
    fn the_report_can_be_pasted() {
        let text = db_doctor(&weir_verdict::db::report(small_log()));
        for line in text.lines() {
            let is_command = ["     do:", "     undo:"].iter().any(|start| line.starts_with(start));
            assert!(line.chars().count() <= COLUMNS || is_command, "too wide: {line}");
        }
        assert!(text.starts_with("weir db doctor unix:/run/s: POOR\nThe log is too small"), "{text}");
        for part in
            ["     do:   SET GLOBAL innodb_log_file_size = 4294967296;", "Next, to examine", "transactions/s"]
        {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
