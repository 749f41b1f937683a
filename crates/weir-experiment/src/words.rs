//! Phrases that the findings of all designs are made of.

use crate::Arm;
use crate::arm::{Counted, Workload, synced_every};
use crate::finding::{ArmSummary, Effect, Judgement};
use crate::measures::Metric;
use weir_core::stats::bootstrap::{RatioInterval, UNITS_MIN};
use weir_core::units::{Bytes, limit, significant};
use weir_knobs::{Risk, Setting, Value, catalog};

/// `vm.dirty_bytes = 15 MB`.
pub(super) fn setting(setting: &Setting) -> String {
    format!("{} = {}", setting.short_name(), shown(setting))
}

fn shown(setting: &Setting) -> String {
    match setting.value {
        Value::Bytes(bytes) => limit(Bytes(bytes)),
        Value::Ratio(percent) => format!("{percent} %"),
        _ => setting.written_value(),
    }
}

/// The values that an arm sets, without their knobs' names.
pub(super) fn value_of(arm: &Arm) -> String {
    list(&arm.settings.iter().map(shown).collect::<Vec<_>>())
}

/// The value that an arm gives a knob, else all that it sets.
pub(super) fn value_in(arm: &Arm, knob: &str) -> String {
    let setting = arm.settings.iter().find(|setting| setting.knob.setting == knob);
    setting.map_or_else(|| value_of(arm), shown)
}

/// What an arm changes, else its label.
pub(super) fn arm(arm: &Arm) -> String {
    let settings: Vec<String> = arm.settings.iter().map(setting).collect();
    if settings.is_empty() { arm.label.clone() } else { settings.join(", ") }
}

/// What the rates of an experiment's arms count.
pub(super) fn operations(arms: &[Arm]) -> &'static str {
    match (arms.first().map(|arm| &arm.workload), Counted::of(arms)) {
        (Some(Workload::Transactions(_)), _) => "transactions",
        (Some(Workload::Command(_)), _) => "the command's rate",
        (_, Counted::Commits) => "synchronous commits",
        (_, Counted::Operations) => "operations",
    }
}

/// A figure's name in a sentence.
pub(super) fn figure(metric: &Metric) -> String {
    match metric {
        Metric::Rate => "the rate".to_string(),
        Metric::Mean => "the mean latency".to_string(),
        Metric::Bulk => "the bulk rate".to_string(),
        Metric::Device => "device writes".to_string(),
        Metric::Max => "the longest latency".to_string(),
        other => other.to_string(),
    }
}

/// A share in percent with as many digits as it is worth: `0.1`, `4`, `93`, `1250`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 0.95 {
        significant(percent).trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        format!("{percent:.0}")
    }
}

/// A ratio as a change: `+12 %`, `-4.5 %`, `× 21.0`, `÷ 24.0`.
pub(super) fn change(ratio: f64) -> String {
    if ratio >= 3.0 {
        return format!("× {}", significant(ratio));
    }
    if ratio <= 0.2 && ratio > 0.0 {
        return format!("÷ {}", significant(1.0 / ratio));
    }
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() < 9.95 { format!("{percent:+.1} %") } else { format!("{percent:+.0} %") }
}

/// `(95 %: +9 % … +15 %)`: an interval that leaves out the truth with chance `alpha`.
pub(super) fn interval(ratio: &RatioInterval, alpha: f64) -> String {
    let level = 100.0 - alpha * 100.0;
    format!("({level:.0} %: {} … {})", change(ratio.low), change(ratio.high))
}

/// An effect in short: `+12 % (95 %: +9 % … +15 %)`, or that nothing was shown.
pub(super) fn effect(effect: &Effect, alpha: f64) -> String {
    match (&effect.ratio, effect.judgement) {
        (Some(ratio), Judgement::NoDifference) => {
            format!("no difference shown {}", interval(ratio, alpha))
        }
        (Some(ratio), _) => format!("{} {}", change(ratio.ratio), interval(ratio, alpha)),
        (None, _) => "too little was measured to say".to_string(),
    }
}

/// What got worse, and what may have, of figures that were there to get worse; `None` where nothing did.
pub(super) fn cost<'a>(
    effects: impl Iterator<Item = &'a Effect>,
    arms: &[ArmSummary],
    alpha: f64,
) -> Option<String> {
    let (mut worse, mut unknown) = (Vec::new(), Vec::new());
    for of in effects {
        match of.judgement {
            Judgement::Worse => worse.push(format!("{} {}", figure(&of.metric), effect(of, alpha))),
            Judgement::Unknown if arms[of.from].values.contains_key(&of.metric) => {
                unknown.push(figure(&of.metric));
            }
            Judgement::Better | Judgement::NoDifference | Judgement::Unknown => {}
        }
    }
    let worse = (!worse.is_empty()).then(|| format!("costs {}", list(&worse)));
    let unknown = (!unknown.is_empty())
        .then(|| format!("too little was measured to say its cost in {}", list(&unknown)));
    let told: Vec<String> = worse.into_iter().chain(unknown).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Where [`cost`] has nothing to say.
pub(super) const NO_COST: &str = "the data show no cost in any other figure";

/// `1 repeat`, `3 repeats`.
pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `2 of 3 trials were aborted or failed`; `None` where none was.
pub(super) fn spoilt(arm: &ArmSummary) -> Option<String> {
    let of = arm.spoilt + arm.trials;
    (arm.spoilt > 0).then(|| format!("{} of {of} trials were aborted or failed", arm.spoilt))
}

/// The same of each arm that has any, with its label.
pub(super) fn spoilt_each(arms: &[ArmSummary]) -> impl Iterator<Item = String> + '_ {
    arms.iter().filter_map(|arm| Some(format!("{}: {}", arm.label, spoilt(arm)?)))
}

/// What a reader must know of intervals from few repeats.
pub(super) fn few_repeats(made: usize) -> Option<String> {
    (2..UNITS_MIN).contains(&made).then(|| {
        format!(
            "{made} repeats are few: intervals depend on the seconds within trials, and the spread of trials \
             is known only roughly; {UNITS_MIN} repeats give reliable intervals"
        )
    })
}

/// A list as in a sentence: `a, b and c`.
pub(super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// What settings mean for durability.
pub(super) fn durability(settings: &[Setting]) -> String {
    let told = risks(settings, |risk| if let Risk::Durability(told) = risk { Some(told) } else { None });
    if told.is_empty() { "none: synced data stay as safe as before".to_string() } else { told.join("; ") }
}

/// What one way to run means for durability instead of another: by its settings, and by how its job syncs.
pub(super) fn durability_of(from: &Arm, to: &Arm) -> String {
    let (Workload::Job(before), Workload::Job(after)) = (&from.workload, &to.workload) else {
        return durability(&to.settings);
    };
    match (synced_every(before), synced_every(after)) {
        (Some(before), after) if after.is_none_or(|after| after > before) => {
            format!("fewer syncs than with {}: a power failure loses writes that were safe there", from.label)
        }
        _ => durability(&to.settings),
    }
}

/// How exactly the settings are restored.
pub(super) fn reversibility(settings: &[Setting]) -> String {
    let told = risks(settings, |risk| if let Risk::Inexact(told) = risk { Some(told) } else { None });
    match (settings.is_empty(), told.is_empty()) {
        (true, _) => "the machine is not changed".to_string(),
        (false, true) => "exact: the baseline values are restored".to_string(),
        (false, false) => format!("the baseline values are restored, but not exactly: {}", told.join("; ")),
    }
}

fn risks(settings: &[Setting], of: fn(Risk) -> Option<&'static str>) -> Vec<String> {
    let specs = settings.iter().filter_map(|setting| Some((setting, catalog::spec(&setting.knob)?)));
    specs.filter_map(|(setting, spec)| Some(format!("{}: {}", setting.knob, of(spec.risk)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::workload::Job;
    use weir_core::workload::spec::{OpenSync, SyncMode};

    #[test]
    fn a_job_that_syncs_less_is_less_durable_whatever_the_settings() {
        let arm = |open_sync: OpenSync, every: u64, mode: SyncMode| {
            let mut job = Job { open_sync, read_percent: 0.0, ..Job::default() };
            (job.sync.every, job.sync.mode) = (every, mode);
            let (label, settings) = ("first".to_string(), Vec::new());
            let workload = Workload::Job(Box::new(job));
            Arm { label, settings, workload, floods: Vec::new(), guarded: false }
        };
        for (from, to, less) in [
            ((OpenSync::None, 1), (OpenSync::None, 1), false),
            ((OpenSync::Dsync, 0), (OpenSync::None, 1), false),
            ((OpenSync::Dsync, 0), (OpenSync::None, 0), true),
            ((OpenSync::None, 1), (OpenSync::None, 100), true),
            ((OpenSync::None, 100), (OpenSync::Sync, 0), false),
            ((OpenSync::None, 0), (OpenSync::None, 0), false),
        ] {
            let [from, to] = [from, to].map(|(open_sync, every)| arm(open_sync, every, SyncMode::Fdatasync));
            let told = durability_of(&from, &to);
            assert_eq!(told.starts_with("fewer syncs"), less, "{from:?} to {to:?}: {told}");
        }
        // sync_file_range makes nothing durable, unless the open file does.
        let (range, plain, dsync) = (SyncMode::SyncFileRange, OpenSync::None, OpenSync::Dsync);
        let synced = arm(plain, 1, SyncMode::Fdatasync);
        for (from, to, less) in [
            (&synced, &arm(plain, 1, range), true),
            (&arm(plain, 100, SyncMode::Fsync), &arm(plain, 1, range), true),
            (&arm(plain, 1, range), &synced, false),
            (&synced, &arm(dsync, 1, range), false),
        ] {
            let told = durability_of(from, to);
            assert_eq!(told.starts_with("fewer syncs"), less, "{from:?} to {to:?}: {told}");
        }
    }
}
