//! Words and figures that text and page of an experiment share.

use weir_core::printable;
use weir_core::stats::bootstrap::RatioInterval;
use weir_core::units::{Bytes, Nanos, limit, megabytes_per_second, per_second, significant};
use weir_experiment::{
    ArmSummary, Effect, Judgement, Metric, Outcome, Recommendation, Role, Study, TrialLog, Workload,
};
use weir_knobs::{Risk, Scope, Setting, Value, catalog};
use weir_oltp::Dialect;

/// Name of a figure in a column's head.
pub fn title(study: &Study<'_>, metric: &Metric) -> String {
    match metric {
        Metric::Rate => format!("{}/s", study.operations()),
        Metric::SubmitP95 => "submit p95".to_string(),
        Metric::Device => "device writes".to_string(),
        other => other.to_string(),
    }
}

/// A figure with its unit.
pub fn figure(metric: &Metric, value: f64) -> String {
    match metric {
        Metric::Bulk | Metric::Device => megabytes_per_second(value),
        latency if latency.is_latency() => Nanos(value.round().max(0.0) as u64).to_string(),
        _ => per_second(value),
    }
}

/// `690–716`: an interval; bulk rates in the unit of their column.
pub fn interval(metric: &Metric, (low, high): (f64, f64)) -> String {
    match metric {
        Metric::Bulk | Metric::Device => format!("{}–{}", significant(low / 1e6), significant(high / 1e6)),
        _ => format!("{}–{}", figure(metric, low), figure(metric, high)),
    }
}

/// `+12.3 % [+8.0, +17.1]`; factors beyond two as `20.9× [18.1, 23.4]`, and as `1/20.9 [1/23.4, 1/18.1]` downwards.
pub fn change(ratio: &RatioInterval) -> String {
    let percent = |r: f64| {
        let text = format!("{:+.1}", (r - 1.0) * 100.0);
        if text == "-0.0" { "+0.0".to_string() } else { text }
    };
    let part = |r: f64| format!("1/{}", significant(1.0 / r));
    match ratio.ratio {
        r if r >= 2.0 => {
            format!("{}× [{}, {}]", significant(r), significant(ratio.low), significant(ratio.high))
        }
        r if r <= 0.5 && r > 0.0 && ratio.low > 0.0 => {
            format!("{} [{}, {}]", part(r), part(ratio.low), part(ratio.high))
        }
        r => format!("{} % [{}, {}]", percent(r), percent(ratio.low), percent(ratio.high)),
    }
}

/// What an effect says, in a word or two.
pub fn judgement(effect: &Effect) -> &'static str {
    match effect.judgement {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::NoDifference => "not significant",
        Judgement::Unknown => "no interval",
    }
}

/// A value as people say it: `15 MB`, `20 %`, `mq-deadline`.
pub fn value(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => limit(Bytes(*bytes)),
        Value::Ratio(ratio) => format!("{ratio} %"),
        other => other.to_string(),
    }
}

/// An arm in a table of one knob's values: its value, or what it stands for.
pub fn arm(study: &Study<'_>, arm: usize) -> String {
    let label = || study.arms.get(arm).map_or(format!("arm {arm}"), |a| a.label.clone());
    let knob = study.swept();
    match study.role(arm) {
        Role::Idle => "idle".to_string(),
        Role::AsFound => match knob.and_then(|knob| study.found(&knob)) {
            Some(found) if study.experiment.design == "sweep" => {
                format!("baseline ({})", value(&found.value))
            }
            _ => "baseline".to_string(),
        },
        Role::Tried if study.experiment.design == "sweep" => {
            knob.and_then(|knob| study.setting(arm, &knob)).map_or_else(label, |s| value(&s.value))
        }
        Role::Tried => label(),
    }
}

/// The name under which a swept knob is typed: that of the values tried.
pub fn swept_name(study: &Study<'_>) -> Option<String> {
    let knob = study.swept()?;
    let tried = (0..study.arms.len()).find_map(|arm| study.setting(arm, &knob));
    Some(tried.map_or_else(|| knob.to_string(), Setting::short_name))
}

/// Whether it was never about a setting that could be kept: numbers of connections, a flood, a disk against memory.
pub fn sets_nothing(study: &Study<'_>) -> bool {
    matches!(study.experiment.design.as_str(), "scale" | "beside") || study.finding.tested.is_some()
}

/// The arm that is recommended.
pub fn recommended(study: &Study<'_>) -> Option<usize> {
    match &study.finding.recommendation {
        Recommendation::Change { arm, .. } => Some(*arm),
        _ => None,
    }
}

/// Why an arm stands out: on the front, at its knee, recommended; worse than the baseline, where no flood is traded with.
pub fn marks(study: &Study<'_>, arm: usize) -> Vec<&'static str> {
    let knee = study.finding.knee == Some(arm);
    let found = study.arm_of(Role::AsFound).filter(|_| study.arm_of(Role::Idle).is_none());
    let effect = found.and_then(|found| study.effect(found, arm, &study.main_metric()));
    let all = [
        (effect.is_some_and(|effect| effect.judgement == Judgement::Worse), "worse"),
        (study.finding.front.contains(&arm) && !knee, "front"),
        (knee, "knee"),
        (recommended(study) == Some(arm), "recommended"),
    ];
    all.into_iter().filter_map(|(is, word)| is.then_some(word)).collect()
}

/// Share of the idle rate that an arm keeps.
pub fn of_idle(study: &Study<'_>, arm: usize) -> Option<f64> {
    let idle = study.arm_of(Role::Idle).filter(|idle| *idle != arm)?;
    let base = study.value(idle, &Metric::Rate).filter(|rate| *rate > 0.0)?;
    Some(study.value(arm, &Metric::Rate)? / base)
}

/// `9 trials`, `8 of 9 trials`.
pub fn trials(summary: &ArmSummary) -> String {
    let all = summary.trials + summary.spoilt;
    let unit = if all == 1 { "trial" } else { "trials" };
    if summary.spoilt == 0 { format!("{all} {unit}") } else { format!("{} of {all} {unit}", summary.trials) }
}

/// Where a change lies in the workload alone.
pub const NO_COMMAND: &str = "nothing of the machine: the gain lies in how the I/O is done, which is set where the application is configured.";

/// The commands that follow from a recommendation.
pub struct Commands {
    /// Sets the values, and takes them back unless they are confirmed.
    pub apply: String,
    /// Says that they shall stay.
    pub confirm: String,
    /// Writes the files that set them at boot, one command for each kind of file.
    pub persist: Vec<String>,
    /// Takes them back.
    pub undo: String,
}

/// What a recommended arm's workload does otherwise than the first step's, as keys of a job: where the gain lies in how
/// the I/O is done, no command of weir's sets it.
pub fn job_changes(study: &Study<'_>, arm: usize) -> Vec<String> {
    if study.role(arm) != Role::Tried {
        return Vec::new();
    }
    let keys = |arm: usize| match study.arms.get(arm).map(|a| &a.workload) {
        Some(Workload::Job(job)) => serde_json::to_value(job).ok(),
        _ => None,
    };
    let (Some(serde_json::Value::Object(from)), Some(serde_json::Value::Object(to))) = (keys(0), keys(arm))
    else {
        return Vec::new();
    };
    let changed = to.iter().filter(|(key, value)| from.get(*key) != Some(value));
    changed.map(|(key, value)| format!("{key}: {} → {}", plain(from.get(key)), plain(Some(value)))).collect()
}

/// A value of a job's key without the quotes of JSON.
fn plain(value: Option<&serde_json::Value>) -> String {
    match value {
        None | Some(serde_json::Value::Null) => "none".to_string(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The commands for a study's settings; `None` where nothing of the machine is to be set. A throw-away server is gone by
/// now: its name stands for the reader's own.
pub fn commands(study: &Study<'_>, settings: &[Setting]) -> Option<Commands> {
    if settings.is_empty() {
        return None;
    }
    let settings: Vec<Setting> = settings.iter().map(|setting| on_a_server(study, setting)).collect();
    let words = |settings: &[&Setting]| {
        settings.iter().map(|s| shell_word(&s.to_string())).collect::<Vec<_>>().join(" ")
    };
    let all: Vec<&Setting> = settings.iter().collect();
    let files = ["sysctl.d", "udev", "systemd"].into_iter().filter_map(|kind| {
        let of_kind: Vec<&Setting> =
            settings.iter().filter(|s| kept_by(&s.knob.scope) == Some(kind)).collect();
        (!of_kind.is_empty())
            .then(|| format!("weir knobs apply {} --persist {kind} --write", words(&of_kind)))
    });
    let of_servers = settings.iter().filter_map(|setting| match &setting.knob.scope {
        Scope::Server(server) if server.family == Dialect::MySql => {
            Some(format!("{} = {}", setting.short_name(), setting.written_value()))
        }
        _ => None,
    });
    let lines: Vec<String> = of_servers.collect();
    let option_file = (!lines.is_empty())
        // One line, whatever a record says: what follows its end would pass for a command.
        .then(|| {
            format!("# in the server's option file, under [mysqld]: {}", printable::line(&lines.join("; ")))
        });
    Some(Commands {
        apply: format!("weir knobs apply {} --confirm-within 5m", words(&all)),
        confirm: "weir knobs confirm".to_string(),
        persist: files.chain(option_file).collect(),
        undo: "weir knobs rollback".to_string(),
    })
}

fn on_a_server(study: &Study<'_>, setting: &Setting) -> Setting {
    let mut setting = setting.clone();
    if let Scope::Server(server) = &mut setting.knob.scope
        && study.throw_away()
    {
        server.place = "USER@SOCKET".to_string();
    }
    setting
}

/// The kind of file that sets a knob at boot; variables of servers are the servers' own business.
fn kept_by(scope: &Scope) -> Option<&'static str> {
    match scope {
        Scope::Machine => Some("sysctl.d"),
        Scope::Device(_) | Scope::Bdi(_) => Some("udev"),
        Scope::Cgroup(_) => Some("systemd"),
        Scope::Server(_) => None,
    }
}

fn shell_word(word: &str) -> String {
    crate::layout::shell(&[word.to_string()])
}

/// The effects that speak for or against a recommended arm: against the baseline, the main figure first;
/// only of figures that both have.
pub fn effects_of<'a>(study: &'a Study<'_>, arm: usize) -> Vec<&'a Effect> {
    let main = study.main_metric();
    let known = |e: &Effect| [e.from, e.to].iter().all(|arm| study.value(*arm, &e.metric).is_some());
    let all = study.finding.effects.iter().filter(|e| e.to == arm && study.role(e.from) != Role::Idle);
    let mut effects: Vec<&Effect> = all.filter(|e| known(e)).collect();
    effects.sort_by_key(|e| (study.role(e.from) != Role::AsFound, e.metric != main));
    effects
}

/// What others suffer while some settings are in force, in a sentence each.
pub fn while_set(settings: &[Setting]) -> Vec<String> {
    let told = |setting: &Setting| match catalog::spec(&setting.knob)?.risk {
        Risk::Careful(why) if settings.len() > 1 => Some(sentence(&format!("{}: {why}", setting.knob))),
        Risk::Careful(why) => Some(sentence(why)),
        _ => None,
    };
    settings.iter().filter_map(told).collect()
}

/// `commits/s 33.7 → 703: 20.9× [18.1, 23.4], better (9 units)`.
pub fn effect_sentence(study: &Study<'_>, effect: &Effect) -> String {
    let value =
        |arm| study.value(arm, &effect.metric).map_or("–".to_string(), |v| figure(&effect.metric, v));
    let ratio = effect.ratio.as_ref().map_or("no interval".to_string(), change);
    let verdict = if effect.ratio.is_some() { format!(", {}", judgement(effect)) } else { String::new() };
    format!(
        "{} {} → {}: {ratio}{verdict} (n = {})",
        title(study, &effect.metric),
        value(effect.from),
        value(effect.to),
        effect.units
    )
}

/// How much of the idle machine's figure an arm keeps, with the interval.
pub fn idle_sentence(study: &Study<'_>, arm: usize) -> Option<String> {
    let metric = study.main_metric();
    let effect = study.effect(study.arm_of(Role::Idle)?, arm, &metric)?;
    let ratio = effect.ratio?;
    let percent = |share: f64| significant(share * 100.0);
    let (name, share) = (title(study, &metric), percent(ratio.ratio));
    let (low, high) = (percent(ratio.low), percent(ratio.high));
    Some(format!("{name}: {share} % of idle [{low}, {high}] (n = {})", effect.units))
}

/// A finding's words as a sentence of its own: a capital, unless it begins with a name, and a full stop.
pub fn sentence(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or_default().trim_end_matches(':');
    let is_name = first.contains(['.', '/', '=', '_', ':']);
    let mut chars = text.chars();
    let start: String = chars
        .next()
        .into_iter()
        .flat_map(|c| if is_name { vec![c] } else { c.to_uppercase().collect() })
        .collect();
    let stop = if text.ends_with(['.', '!', '?', ':']) || text.is_empty() { "" } else { "." };
    format!("{start}{}{stop}", chars.as_str())
}

/// What weakens the finding: spoilt trials, washouts cut short, what was noticed on the way.
pub fn doubts(study: &Study<'_>) -> Vec<String> {
    let all = study.experiment.trials.len();
    let mut out = Vec::new();
    if let Some(why) = &study.record.ended_early {
        out.push(sentence(&format!("The experiment ended early: {why}")));
    }
    for (trial, how) in study.spoilt() {
        let why = match &trial.observation.outcome {
            Outcome::Aborted { why, .. } | Outcome::Failed { why } => why.as_str(),
            Outcome::Measured(_) => "",
        };
        out.push(sentence(&format!("{} {how} and counts as the worst: {why}", whose(study, trial))));
    }
    let short: Vec<u64> = study
        .experiment
        .trials
        .iter()
        .filter(|t| t.washout.timed_out)
        .map(|t| t.washout.left_bytes)
        .collect();
    if let Some(most) = short.iter().max() {
        let n = short.len();
        out.push(format!(
            "{n} of {all} waits for a clean start gave up with up to {} still dirty or under write-back.",
            Bytes(*most)
        ));
    }
    out.extend(study.experiment.remarks.iter().map(|remark| sentence(remark)));
    for trial in &study.experiment.trials {
        out.extend(
            trial.remarks.iter().map(|remark| sentence(&format!("{}: {remark}", whose(study, trial)))),
        );
    }
    out
}

/// `Trial 7 (15 MB)`.
fn whose(study: &Study<'_>, trial: &TrialLog) -> String {
    let place = study.experiment.trials.iter().position(|t| std::ptr::eq(t, trial)).map_or(0, |i| i + 1);
    format!("Trial {place} ({})", arm(study, trial.proposal().arm))
}

/// `27 trials in 5 min 12 s and 3 min of washout: 8 min 12 s of a budget of 10 min`.
pub fn time_used(study: &Study<'_>) -> String {
    let used = study.time_used();
    let n = study.experiment.trials.len();
    format!(
        "{n} {} in {} and {} of washout: {} of a budget of {}",
        if n == 1 { "trial" } else { "trials" },
        Nanos(used.trials_ns),
        Nanos(used.washouts_ns),
        Nanos(used.total_ns()),
        Nanos(study.experiment.budget_ns)
    )
}
