//! What a map says: where the edge is and how reads and writes share it, and what a commit gets beside a load.

use crate::doctor::{Evidence, Finding, Grade, Headline, Statement, Topic};
use crate::map::cost::{CostModel, Sharing};
use crate::map::{Commits, LoadMap};
use crate::topic::{COMMIT_FAIR_NS, COMMIT_GOOD_NS};
use crate::view::{percent, time};
use weir_core::units::{grouped, per_second};

/// Interference up to which reads and writes just share.
const NO_INTERFERENCE: f64 = 0.1;
/// Load and share of writes for which the grade is given: half of what the device can do, of both kinds.
const LOAD: f64 = 0.6;
const SHARE: f64 = 0.5;

/// Edge and model; commits.
pub fn findings(map: &LoadMap) -> Vec<Finding> {
    let found = [edge(map), commits(map)];
    found.into_iter().flatten().collect()
}

/// What saturates the device, and what commits get beside half of it.
pub fn headline(map: &LoadMap, findings: &[Finding], ended_early: Option<&str>) -> Headline {
    let grade = findings.iter().find_map(|finding| finding.grade).unwrap_or(Grade::Unknown);
    let mut text = match map.model {
        Some(model) => format!("{}. ", ends(&model)),
        None => "Too little was measured for a model. ".to_string(),
    };
    let commits = findings.iter().find(|finding| finding.topic == Topic::Commit);
    text.push_str(&commits.map_or(String::new(), |finding| format!("Commits: {}. ", finding.summary)));
    text.push_str(
        &ended_early.map_or(String::new(), |why| format!("It ended early ({why}), so this is incomplete.")),
    );
    Headline { grade, text: text.trim_end().to_string() }
}

fn ends(model: &CostModel) -> String {
    format!(
        "{} reads/s or {} writes/s saturate it; {}",
        per_second(model.reads),
        per_second(model.writes),
        sharing(model)
    )
}

fn sharing(model: &CostModel) -> &'static str {
    match model.sharing {
        Sharing::LimitEach => "both have a limit of their own",
        Sharing::OneBudget { interference } if interference > NO_INTERFERENCE => {
            "together they disturb each other"
        }
        Sharing::OneBudget { interference } if interference < -NO_INTERFERENCE => {
            "together they reach more than a shared limit would let them"
        }
        Sharing::OneBudget { .. } => "both share one budget",
    }
}

fn edge(map: &LoadMap) -> Option<Finding> {
    let model = map.model?;
    let end = |share: f64, name: &str, rate: f64| {
        let point = map.edges.iter().find(|point| point.share == share)?;
        Some(Evidence {
            source: point.measurement.clone(),
            figure: format!("{} {name}/s", per_second(rate)),
            n: point.n,
            interval: None,
        })
    };
    let ends = [end(0.0, "reads", model.reads), end(1.0, "writes", model.writes)];
    let evidence: Vec<Evidence> = ends.into_iter().flatten().collect();
    let mut statements = vec![Statement::new(format!("{}.", self::ends(&model)), evidence)];
    statements.push(formula(map, &model));
    statements.extend(capped(map));
    let summary = format!("{} reads/s, {} writes/s", per_second(model.reads), per_second(model.writes));
    Some(Finding { topic: Topic::Map, grade: None, summary, statements })
}

/// The model as one can compute with it, and how far it is off.
fn formula(map: &LoadMap, model: &CostModel) -> Statement {
    let (reads, writes) = (whole(model.reads), whole(model.writes));
    let formula = match model.sharing {
        Sharing::LimitEach => format!("the larger of r/{reads} and w/{writes}"),
        Sharing::OneBudget { interference } => format!(
            "r/{reads} + w/{writes} {} {:.2}·√(r/{reads} · w/{writes})",
            if interference < 0.0 { "−" } else { "+" },
            interference.abs()
        ),
    };
    let repeated = map
        .drift
        .edge
        .map_or(String::new(), |drift| format!("; repeated at the end, it was {} off", percent(drift)));
    let text = format!(
        "A load of r reads and w writes a second uses {formula} of it. That misses the edge of {} shares of writes by at \
         most {}{repeated}.",
        model.points,
        percent(model.error)
    );
    Statement::new(text, Vec::new())
}

fn whole(rate: f64) -> String {
    grouped(rate.round() as u64)
}

fn capped(map: &LoadMap) -> Option<Statement> {
    if map.capped.is_empty() {
        return None;
    }
    let shares: Vec<String> = map.capped.iter().map(|share| format!("{:.0} %", share * 100.0)).collect();
    let text = format!(
        "At {} of writes the load generator or the machine had no processor left: the storage may do more.",
        shares.join(", ")
    );
    Some(Statement::new(text, Vec::new()))
}

/// What commits take alone and beside the load for which the grade is given.
fn commits(map: &LoadMap) -> Option<Finding> {
    let alone = map.commits.iter().find(|one| one.load == 0.0)?;
    let off = |one: &&Commits| (one.load - LOAD).abs() + (one.share - SHARE).abs();
    let loaded = map.commits.iter().filter(|one| one.load > 0.0);
    let loaded = loaded.min_by(|a, b| off(a).total_cmp(&off(b)));
    let mut statements = vec![said(alone, "Alone".to_string())];
    let Some(loaded) = loaded else {
        let summary = format!("{} alone", short(alone));
        return Some(Finding { topic: Topic::Commit, grade: None, summary, statements });
    };
    let place = format!("{:.0} % of the edge ({:.0} % writes)", loaded.load * 100.0, loaded.share * 100.0);
    statements.push(said(
        loaded,
        format!("Beside {} reads/s and {} writes/s", per_second(loaded.reads), per_second(loaded.writes)),
    ));
    let summary = format!("{} alone, {} beside {place}", short(alone), short(loaded));
    Some(Finding { topic: Topic::Commit, grade: loaded.tail_ns().map(grade), summary, statements })
}

fn grade(ns: u64) -> Grade {
    match ns {
        ns if ns <= COMMIT_GOOD_NS => Grade::Good,
        ns if ns <= COMMIT_FAIR_NS => Grade::Fair,
        _ => Grade::Poor,
    }
}

/// `p99 4.1 ms`, or the longest where there are too few for a p99.
fn short(one: &Commits) -> String {
    let name = if one.p99_ns.is_some() { "p99" } else { "longest" };
    one.tail_ns().map_or("none finished".to_string(), |ns| format!("{name} {}", time(ns)))
}

fn said(one: &Commits, place: String) -> Statement {
    let p50 = one.p50_ns.map_or(String::new(), |ns| format!("p50 {}, ", time(ns)));
    let evidence = Evidence { source: one.measurement.clone(), figure: short(one), n: one.n, interval: None };
    let text =
        format!("{place} one thread commits {} times a second ({p50}{}).", per_second(one.rate), short(one));
    Statement::new(text, vec![evidence])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::from_record;
    use crate::map::made::{each, mapped};

    #[test]
    fn the_headline_names_both_ends_how_they_share_and_what_commits_get() {
        let report = from_record(&mapped(&each(2000.0, 800.0)).record(Vec::new())).unwrap();
        let text = &report.headline.text;
        assert!(text.starts_with("2,000 reads/s or 800 writes/s saturate it; both have a limit"), "{text}");
        assert!(
            text.contains("Commits: p99 ") && text.contains("beside 60 % of the edge (50 % writes)"),
            "{text}"
        );
        assert!(report.findings.iter().any(|f| f.topic == Topic::Commit && f.grade.is_some()));
        let formula = &report.findings[0].statements[1].text;
        assert!(formula.contains("the larger of r/2,000 and w/800"), "{formula}");
    }

    #[test]
    fn a_map_that_ended_at_once_says_so() {
        let mut lab = mapped(&each(2000.0, 800.0));
        lab.keep(3);
        let mut record = lab.record(Vec::new());
        record.ended_early = Some("SIGINT".to_string());
        let report = from_record(&record).unwrap();
        assert!(report.headline.text.contains("Too little was measured"), "{}", report.headline.text);
        assert!(report.headline.text.contains("SIGINT"), "{}", report.headline.text);
        assert!(report.map.unwrap().lines.iter().all(|line| line.text.is_none()));
    }
}
