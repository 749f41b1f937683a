//! The verdict in one sentence, put together from the findings that decide.

use crate::doctor::{Advice, Finding, Grade, Headline, NextStep, Topic};

/// An operation that failed outweighs every figure.
pub fn of_failure(error: &str) -> Headline {
    let text =
        format!("An operation failed: {error}. Secure the data first; the kernel's log may tell more.");
    Headline { grade: Grade::Poor, text }
}

/// Worst of the grades given, and what it rests on.
pub fn headline(findings: &[Finding], ended_early: Option<&str>, closing: &str) -> Headline {
    let of = |topic: Topic| findings.iter().find(|f| f.topic == topic);
    let Some(commit) = of(Topic::Commit) else {
        let why = ended_early.map_or(String::new(), |w| format!(" ({w})"));
        return Headline {
            grade: Grade::Unknown,
            text: format!("Too little was measured for a verdict{why}."),
        };
    };
    let grade = worst(findings);
    let storage = of(Topic::Class).map_or("storage".to_string(), |f| f.summary.clone());
    let mut text = format!("{}. Idle, commits are {}", capital(&storage), word(commit));
    if let Some(flood) = of(Topic::Flood) {
        text.push_str(&format!("; {}", flood.summary));
    }
    text.push_str(&match ended_early {
        Some(why) => format!(". It ended early ({why}), so this is incomplete."),
        None => format!(". {closing}"),
    });
    Headline { grade, text }
}

fn word(commit: &Finding) -> String {
    format!("{} ({})", commit.grade.map_or("unknown", Grade::name), commit.summary)
}

/// Worst of the grades given.
pub fn worst(findings: &[Finding]) -> Grade {
    let known = findings.iter().filter_map(|f| f.grade).filter(|g| *g != Grade::Unknown);
    known.max().unwrap_or(Grade::Unknown)
}

/// What is to be done, in one sentence: every place that says so says this one. `trouble`: why even without advice not all
/// is well. `tried`: what a trial changed, though not enough to be advised.
pub fn closing(
    findings: &[Finding],
    advice: &[Advice],
    next: &[NextStep],
    trouble: Option<&str>,
    tried: Option<&str>,
) -> String {
    match advice.iter().find(|a| a.measured) {
        Some(a) => format!("{} = {} helped in a trial.", a.knob, a.proposed),
        None if advice.len() > 1 => "Some changes to try.".to_string(),
        None if !advice.is_empty() => "One change to try.".to_string(),
        None => match worst(findings) {
            _ if trouble.is_some() => trouble.unwrap_or_default().to_string(),
            Grade::Good => "Nothing to change.".to_string(),
            Grade::Unknown => "Too little was measured for advice.".to_string(),
            _ if !next.is_empty() => {
                let tried = tried.unwrap_or("No measured change helps");
                format!("{tried}; the next steps are below.")
            }
            _ => "No setting was found that would help.".to_string(),
        },
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().collect::<String>() + chars.as_str())
}
