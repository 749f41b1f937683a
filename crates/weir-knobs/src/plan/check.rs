//! One setting on its own: is there such a knob, may it be changed, does it take the value?

use super::{Context, Refusal, Step, place};
use crate::catalog::{self, Kind, Risk, Spec};
use crate::{KnobName, Reading, Scope, Setting, Value};
use weir_core::units::{Bytes, limit};

/// Two pages of 4 KiB: where the machine's own minimum is not known.
const TWO_PAGES: i64 = 8192;

/// Where requests are, of devices that have a file by that name all the same.
const BENEATH: &str =
    ", or none that acts: a device that passes I/O on (dm, md) leaves it to the disks beneath it";

/// Least and greatest number that a knob takes, both included.
pub type Bounds = (i64, i64);

/// Checks a setting and says where it starts from.
pub(super) fn check(context: &Context<'_>, setting: &Setting) -> Result<Step, Refusal> {
    let spec = catalog::spec(&setting.knob).ok_or_else(|| unknown(setting))?;
    allowed(context, spec, setting)?;
    let (now, future) = context.schedulers(&setting.knob);
    belongs(spec, setting, future.as_deref())?;
    let reading = (context.read)(&setting.knob);
    // A scheduler's own settings appear, with their defaults, when it is switched to.
    let appears = spec.scheduler.is_some() && spec.scheduler != now.as_deref();
    if !appears {
        present(spec, setting, reading.as_ref())?;
    }
    fits(spec, setting, reading.as_ref(), future.as_deref())?;
    let from = match reading.and_then(|reading| reading.value) {
        Some(value) if !appears => value,
        _ => start(context, spec, setting),
    };
    Ok(Step { knob: setting.knob.clone(), from, to: setting.value.clone() })
}

fn unknown(setting: &Setting) -> Refusal {
    let hint = match catalog::nearest(&setting.knob.to_string()) {
        Some(name) => format!("did you mean {name}?"),
        None => "`weir knobs list --all` lists them".to_string(),
    };
    Context::refusal(setting, "no knob has this name".to_string(), Some(&hint))
}

fn allowed(context: &Context<'_>, spec: &Spec, setting: &Setting) -> Result<(), Refusal> {
    match spec.risk {
        Risk::Shown(why) => {
            let why = format!("weir shows this knob and does not change it: {why}");
            Err(Context::refusal(setting, why, None))
        }
        Risk::Durability(why) if !context.allow_durability => {
            let hint = format!("if that is what you want: --i-accept-data-loss-risk {}", setting.knob);
            Err(Context::refusal(setting, format!("this can lose data: {why}"), Some(&hint)))
        }
        _ => Ok(()),
    }
}

fn belongs(spec: &Spec, setting: &Setting, future: Option<&str>) -> Result<(), Refusal> {
    let (Some(own), Some(future)) = (spec.scheduler, future) else { return Ok(()) };
    if own == future {
        return Ok(());
    }
    let device = match &setting.knob.scope {
        Scope::Device(device) => device.as_str(),
        _ => "DEV",
    };
    let why = format!("a setting of the scheduler {own}, but {future} will be in force");
    Err(Context::refusal(setting, why, Some(&format!("add {device}/scheduler={own}"))))
}

fn present(spec: &Spec, setting: &Setting, reading: Option<&Reading>) -> Result<(), Refusal> {
    let place = place(spec, setting, reading);
    let Some(reading) = reading else {
        let since = spec.since.map(|since| format!("; kernels have it since {since}")).unwrap_or_default();
        let beneath = if spec.of_requests { BENEATH } else { "" };
        let why = format!("no {place} on this machine{since}{beneath}");
        return Err(Context::refusal(setting, why, Some("`weir knobs list --all` shows what there is")));
    };
    match &reading.unreadable {
        Some(why) if spec.kind != Kind::Action => {
            let why = format!("{place} cannot be read, so the old value could not be restored: {why}");
            Err(Context::refusal(setting, why, None))
        }
        _ if !reading.writable => {
            Err(Context::refusal(setting, format!("{place} is read-only on this machine"), None))
        }
        _ => Ok(()),
    }
}

fn fits(
    spec: &Spec,
    setting: &Setting,
    reading: Option<&Reading>,
    scheduler: Option<&str>,
) -> Result<(), Refusal> {
    let choices: &[String] = reading.map_or(&[], |reading| &reading.choices);
    let fits = match (spec.kind, &setting.value) {
        (Kind::Choice, Value::Word(word)) => choices.is_empty() || choices.contains(word),
        (Kind::Word(words), Value::Word(word)) => words.contains(&word.as_str()),
        (Kind::Limit { .. }, Value::Word(word)) => word == "max",
        (Kind::Quota, Value::Word(word)) => is_quota(word),
        (Kind::DirtyPair, Value::Bytes(_) | Value::Ratio(_))
        | (Kind::Number { .. } | Kind::Limit { .. } | Kind::Action, Value::Number(_)) => {
            let (min, max) = bounds(spec, reading, scheduler, matches!(setting.value, Value::Ratio(_)));
            // A number beyond i64 is beyond every bound.
            setting.value.number().is_some_and(|number| (min..=max).contains(&number))
        }
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let place = place(spec, setting, reading);
    let why = match (spec.kind, &setting.value) {
        (Kind::DirtyPair, Value::Number(_) | Value::Word(_)) => {
            let name = &setting.knob;
            format!("a limit is set as {name}_bytes=BYTES or {name}_ratio=PERCENT")
        }
        (_, value) => {
            let ratio = matches!(value, Value::Ratio(_));
            format!(
                "{place} takes {}, not {value}",
                range(spec, reading, scheduler, ratio),
                value = setting.written_value()
            )
        }
    };
    let hint = match spec.setting {
        "nr_requests" if scheduler == Some("none") => {
            "without a scheduler, the hardware's own depth is the most".to_string()
        }
        _ => format!("`weir knobs show {}` says more", setting.knob),
    };
    Err(Context::refusal(setting, why, Some(&hint)))
}

/// Whether the kernel takes it (`tg_set_cfs_bandwidth`).
fn is_quota(word: &str) -> bool {
    let Some((quota, period)) = word.split_once(' ') else { return false };
    let is_period = period.parse().is_ok_and(|period: u64| (1000..=1_000_000).contains(&period));
    is_period && (quota == "max" || quota.parse().is_ok_and(|quota: u64| quota >= 1000))
}

/// The bounds of a knob's numbers on this machine, under the scheduler that is or will be in force. `ratio` says
/// which of a pair is meant.
pub fn bounds(spec: &Spec, reading: Option<&Reading>, scheduler: Option<&str>, ratio: bool) -> Bounds {
    let (min, max) = match spec.kind {
        Kind::Number { min, max } | Kind::Limit { min, max } => (min, max),
        Kind::DirtyPair if ratio => return (i64::from(spec.setting == "vm.dirty"), 100),
        Kind::DirtyPair if spec.setting == "vm.dirty" => (TWO_PAGES, i64::MAX),
        Kind::DirtyPair => (1, i64::MAX),
        Kind::Action => (1, 3),
        Kind::Choice | Kind::Word(_) | Kind::Quota => (0, 0),
    };
    // The hardware's depth bounds the queue only where no scheduler keeps a queue of its own; the shares of a
    // bdi bound each other, which is judged by what both will be.
    let counts = match spec.setting {
        "nr_requests" => scheduler == Some("none"),
        "min_ratio" | "min_ratio_fine" | "max_ratio" | "max_ratio_fine" => false,
        _ => true,
    };
    let machine = reading.filter(|_| counts);
    let narrower_min = machine.and_then(|reading| reading.min).unwrap_or(min);
    let narrower_max = machine.and_then(|reading| reading.max).unwrap_or(max);
    (min.max(narrower_min), max.min(narrower_max))
}

/// `between 2 MB and 4.9 GB`: what a guard may make of a knob.
pub fn between(least: &Value, most: &Value) -> String {
    let said = |value: &Value| match value {
        Value::Bytes(bytes) => limit(Bytes(*bytes)),
        other => other.to_string(),
    };
    format!("between {} and {}", said(least), said(most))
}

/// What a knob takes, in words.
pub fn range(spec: &Spec, reading: Option<&Reading>, scheduler: Option<&str>, ratio: bool) -> String {
    let (min, max) = bounds(spec, reading, scheduler, ratio);
    let unit = match spec.kind {
        Kind::DirtyPair if ratio => "%",
        Kind::DirtyPair => "bytes",
        _ => spec.unit,
    };
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let numbers = match max {
        i64::MAX => format!("{min} or more{unit}"),
        max => format!("{min} to {}{unit}", legible(max)),
    };
    let quoted = |words: Vec<&str>| words.join(" | ");
    match spec.kind {
        Kind::Limit { .. } => format!("max, or {numbers}"),
        Kind::Quota => {
            "QUOTA PERIOD or max PERIOD, in µs: a QUOTA of 1000 or more, a PERIOD of 1000 to 1000000"
                .to_string()
        }
        Kind::Word(words) => quoted(words.to_vec()),
        Kind::Choice => match reading.map(|reading| &reading.choices) {
            Some(choices) if !choices.is_empty() => quoted(choices.iter().map(String::as_str).collect()),
            _ => "one of the words in its file".to_string(),
        },
        _ => numbers,
    }
}

/// A number, as a power of two where that is what the kernel's integers end at.
fn legible(number: i64) -> String {
    const SIGNED: i64 = i32::MAX as i64;
    const UNSIGNED: i64 = u32::MAX as i64;
    match number {
        SIGNED => "2^31-1".to_string(),
        UNSIGNED => "2^32-1".to_string(),
        other => other.to_string(),
    }
}

/// What a knob starts from where it cannot be read: nothing, for an action; its default, for a setting of a
/// scheduler that is not there yet.
fn start(context: &Context<'_>, spec: &Spec, setting: &Setting) -> Value {
    if let Ok(default) = spec.default.parse() {
        return Value::Number(default);
    }
    let requests = match &setting.knob.scope {
        Scope::Device(device) if spec.default == "nr_requests" => {
            context.future(&KnobName::device(device, "nr_requests"))
        }
        _ => None,
    };
    requests.unwrap_or(Value::Number(0))
}
