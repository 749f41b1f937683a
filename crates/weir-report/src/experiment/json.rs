//! An experiment as JSON: the plan, every trial, the arms and the finding. Described in `docs/reference/tune-json.md`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::experiment::words;
use weir_experiment::{
    Arm, ArmSummary, Effect, Goal, Outcome, Phase, Recommendation, Role, ScalabilityLaw, Study, TrialLog,
    Washout,
};
use weir_experiment::{Metric, TimeUsed};
use weir_knobs::Setting;
use weir_oltp::limits::Tested;

/// Value of `schema`.
pub const SCHEMA: &str = "weir.tune/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    record_id: &'a str,
    record_path: Option<&'a str>,
    weir_version: &'a str,
    command: &'a [String],
    started_at: &'a str,
    ended_early: Option<&'a str>,
    design: &'a str,
    plan: &'a Value,
    goal: &'a Goal,
    counted: &'static str,
    seed: u64,
    budget_ns: u64,
    used: TimeUsed,
    found: &'a [Setting],
    finding: FindingOf<'a>,
    arms: Vec<ArmOf<'a>>,
    trials: Vec<TrialOf<'a>>,
    doubts: Vec<String>,
    conditions: &'a Value,
}

#[derive(Serialize)]
struct FindingOf<'a> {
    headline: &'a str,
    recommendation: &'a Recommendation,
    commands: Option<CommandsOf>,
    job_changes: Vec<String>,
    effects: &'a [Effect],
    front: &'a [usize],
    knee: Option<usize>,
    law: Option<ScalabilityLaw>,
    tested: Option<&'a Tested>,
    remarks: &'a [String],
}

#[derive(Serialize)]
struct CommandsOf {
    apply: String,
    confirm: String,
    persist: Vec<String>,
    undo: String,
}

#[derive(Serialize)]
struct ArmOf<'a> {
    role: Value,
    #[serde(flatten)]
    summary: &'a ArmSummary,
    settings: &'a [Setting],
    floods: &'a [String],
    workload: Option<&'a weir_experiment::Workload>,
}

#[derive(Serialize)]
struct TrialOf<'a> {
    arm: usize,
    block: u32,
    phase: Phase,
    start_ns: u64,
    took_ns: u64,
    washout: &'a Washout,
    outcome: &'static str,
    why: Option<&'a str>,
    operations: u64,
    values: Option<&'a BTreeMap<Metric, f64>>,
    job: Option<usize>,
    remarks: &'a [String],
}

/// The whole document, indented, with a newline at the end.
pub fn document(study: &Study<'_>) -> serde_json::Result<String> {
    let (record, experiment) = (study.record, &study.experiment);
    let document = Document {
        schema: SCHEMA,
        record_id: &record.id,
        record_path: study.path.as_deref(),
        weir_version: &record.weir_version,
        command: &record.command,
        started_at: &record.started_at,
        ended_early: record.ended_early.as_deref(),
        design: &experiment.design,
        plan: &experiment.plan,
        goal: &experiment.goal,
        counted: study.operations(),
        seed: experiment.seed,
        budget_ns: experiment.budget_ns,
        used: study.time_used(),
        found: &experiment.found,
        finding: finding(study),
        arms: study.finding.arms.iter().enumerate().map(|(i, summary)| arm(study, i, summary)).collect(),
        trials: experiment.trials.iter().map(trial).collect(),
        doubts: words::doubts(study),
        conditions: &record.conditions,
    };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

fn finding<'a>(study: &'a Study<'_>) -> FindingOf<'a> {
    let finding = &study.finding;
    let commands = match &finding.recommendation {
        Recommendation::Change { settings, .. } => words::commands(study, settings).map(|c| CommandsOf {
            apply: c.apply,
            confirm: c.confirm,
            persist: c.persist,
            undo: c.undo,
        }),
        _ => None,
    };
    FindingOf {
        headline: &finding.headline,
        recommendation: &finding.recommendation,
        commands,
        job_changes: words::recommended(study).map_or(Vec::new(), |arm| words::job_changes(study, arm)),
        effects: &finding.effects,
        front: &finding.front,
        knee: finding.knee,
        law: finding.law,
        tested: finding.tested.as_ref(),
        remarks: &finding.remarks,
    }
}

fn arm<'a>(study: &'a Study<'_>, index: usize, summary: &'a ArmSummary) -> ArmOf<'a> {
    let arm: Option<&Arm> = study.arms.get(index);
    let role = match study.role(index) {
        Role::Tried if !study.was_tried(index) => "not-tried".into(),
        role => json!(role),
    };
    ArmOf {
        role,
        summary,
        settings: arm.map_or(&[], |a| &a.settings),
        floods: arm.map_or(&[], |a| &a.floods),
        workload: arm.map(|a| &a.workload),
    }
}

fn trial(trial: &TrialLog) -> TrialOf<'_> {
    let (outcome, why, measures) = match &trial.observation.outcome {
        Outcome::Measured(measures) => ("measured", None, Some(measures)),
        Outcome::Aborted { why, measures } => ("aborted", Some(why.as_str()), Some(measures)),
        Outcome::Failed { why } => ("failed", Some(why.as_str()), None),
    };
    TrialOf {
        arm: trial.proposal().arm,
        block: trial.proposal().block,
        phase: trial.proposal().phase,
        start_ns: trial.start_ns,
        took_ns: trial.took_ns,
        washout: &trial.washout,
        outcome,
        why,
        operations: measures.map_or(0, |m| m.operations),
        values: measures.map(|m| &m.values),
        job: trial.job,
        remarks: &trial.remarks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::synthetic;

    #[test]
    fn the_document_has_plan_trials_arms_and_finding() {
        let record = synthetic::record();
        let parse = |study: &Study<'_>| -> Value { serde_json::from_str(&document(study).unwrap()).unwrap() };
        let sweep = parse(&synthetic::spoilt(&record));
        assert_eq!(sweep["schema"], SCHEMA);
        assert_eq!(sweep["arms"].as_array().map(Vec::len), Some(10));
        assert_eq!(sweep["arms"][0]["role"], "idle");
        assert_eq!(sweep["arms"][1]["role"], "as-found");
        assert_eq!(sweep["arms"][5]["settings"][0], "vm.dirty_bytes=15000000");
        assert!(sweep["arms"][5]["intervals"]["rate"][0].as_f64().unwrap() > 600.0);
        assert_eq!(sweep["trials"].as_array().map(Vec::len), Some(30));
        assert_eq!(sweep["trials"][3]["outcome"], "aborted");
        assert_eq!(sweep["trials"][5]["values"], Value::Null);
        assert_eq!(sweep["finding"]["knee"], 5);
        assert_eq!(sweep["finding"]["commands"], Value::Null);
        assert_eq!(sweep["used"]["washouts_ns"], 118_000_000_000u64);
        let cut = parse(&synthetic::cut_short(&record));
        assert_eq!(
            (&cut["arms"][9]["role"], &sweep["arms"][9]["role"]),
            (&"not-tried".into(), &"tried".into())
        );
        assert_eq!(parse(&synthetic::scale(&record))["finding"]["law"]["contention"], 0.05);
        let raced = parse(&synthetic::race(&record));
        assert_eq!(raced["trials"][30]["phase"], "confirm");
        assert!(raced["finding"]["commands"]["apply"].as_str().unwrap().contains("sda/nr_requests=32"));
        assert_eq!(raced["finding"]["commands"]["persist"].as_array().map(Vec::len), Some(2));
    }
}
