//! The guard's settings as a file: TOML, one key a setting, named as the flags are.

use std::fmt::Write;
use std::path::PathBuf;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};
use weir_control::LatencyTarget;
use weir_core::units::Nanos;

use crate::daemon::MetricsAt;

use super::{ActuatorChoice, Format, GuardSettings, Protected, SensorChoice, latency_target, share};

/// The keys, in the order in which they are printed.
const KEYS: [&str; 15] = [
    "devices",
    "target-p99",
    "keep",
    "protect",
    "shadow",
    "lever",
    "may",
    "spare",
    "sensor",
    "metrics",
    "metrics-for-others",
    "log",
    "duration",
    "format",
    "history",
];

/// A mistake in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where, counted from 1.
    pub line: usize,
    /// The mistake.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

/// The settings of a file; what it does not say is as by default.
pub fn parse(text: &str) -> Result<GuardSettings, Mistake> {
    let document = DeTable::parse(text).map_err(|error| Mistake {
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        what: error.message().to_string(),
        hint: Some("the file is TOML, with one key a setting".to_string()),
    })?;
    let mut settings = GuardSettings::default();
    for (key, value) in document.get_ref() {
        let line = line_of(text, key.span().start);
        let name = key.get_ref().as_ref();
        set(&mut settings, name, value.get_ref()).map_err(|what| {
            let known = KEYS.contains(&name);
            let hint = (!known).then(|| format!("the keys are {}", KEYS.join(", ")));
            Mistake { line, what: if known { format!("{name}: {what}") } else { what }, hint }
        })?;
    }
    Ok(settings)
}

fn set(settings: &mut GuardSettings, key: &str, value: &DeValue<'_>) -> Result<(), String> {
    match key {
        "devices" => settings.devices = list(value)?,
        "target-p99" => settings.target.p99 = latency_target(text(value)?)?,
        "keep" => settings.target.keep = share(&number(value)?)?,
        "protect" => settings.protect = list(value)?,
        "shadow" => settings.shadow = flag(value)?,
        "lever" => {
            let word = text(value)?;
            let all = [ActuatorChoice::Auto, ActuatorChoice::Vm, ActuatorChoice::Bdi];
            let found = all.into_iter().find(|choice| choice.name() == word);
            settings.actuator = found.ok_or_else(|| format!("expected auto, vm or bdi, got `{word}`"))?;
        }
        "may" => settings.may = list(value)?,
        "spare" => settings.spare = list(value)?,
        "sensor" => {
            let word = text(value)?;
            let found = SensorChoice::ALL.into_iter().find(|choice| choice.name() == word);
            settings.sensor =
                found.ok_or_else(|| format!("expected auto, syscalls, canary or diskstats, got `{word}`"))?;
        }
        "metrics" => settings.metrics = Some(text(value)?.parse::<MetricsAt>()?),
        "metrics-for-others" => settings.metrics_for_others = flag(value)?,
        "log" => settings.log = Some(PathBuf::from(text(value)?)),
        "duration" => {
            settings.duration = Some(text(value)?.parse::<Nanos>().map_err(|error| error.to_string())?);
        }
        "format" => {
            settings.format = match text(value)? {
                "text" => Format::Text,
                "json" => Format::Json,
                word => return Err(format!("expected text or json, got `{word}`")),
            };
        }
        "history" => settings.history = flag(value)?,
        other => return Err(format!("expected a setting of the guard, got `{other}`")),
    }
    Ok(())
}

fn text<'a>(value: &'a DeValue<'_>) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| "expected a text in quotes".to_string())
}

fn flag(value: &DeValue<'_>) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "expected true or false".to_string())
}

fn number(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::Float(number) => Ok(number.as_str().to_string()),
        DeValue::Integer(number) => Ok(number.as_str().to_string()),
        _ => Err("expected a number".to_string()),
    }
}

/// One text, or several.
fn list<T>(value: &DeValue<'_>) -> Result<Vec<T>, String>
where
    T: FromStr,
    T::Err: ToString,
{
    let one = |value: &DeValue<'_>| text(value)?.parse().map_err(|error: T::Err| error.to_string());
    match value {
        DeValue::Array(values) => values.iter().map(|value| one(value.get_ref())).collect(),
        value => Ok(vec![one(value)?]),
    }
}

/// Settings as the file that says just that.
pub fn print(settings: &GuardSettings) -> String {
    let mut out = String::from("# Settings of weir guard. `weir guard run --help` says what each means.\n");
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{key} = {value}");
    };
    if !settings.devices.is_empty() {
        line("devices", quoted_list(&settings.devices));
    }
    line("target-p99", quoted(&target(settings.target.p99)));
    line("keep", settings.target.keep.to_string());
    let protect: Vec<String> = settings.protect.iter().map(Protected::to_string).collect();
    line(
        "protect",
        if protect.is_empty() { quoted_list(&["all".to_string()]) } else { quoted_list(&protect) },
    );
    line("shadow", settings.shadow.to_string());
    line("lever", quoted(settings.actuator.name()));
    if !settings.may.is_empty() {
        let may: Vec<String> = settings.may.iter().map(|may| may.name().to_string()).collect();
        line("may", quoted_list(&may));
    }
    if !settings.spare.is_empty() {
        line("spare", quoted_list(&settings.spare.iter().map(Protected::to_string).collect::<Vec<_>>()));
    }
    line("sensor", quoted(settings.sensor.name()));
    if let Some(metrics) = &settings.metrics {
        line("metrics", quoted(&metrics.to_string()));
        line("metrics-for-others", settings.metrics_for_others.to_string());
    }
    if let Some(log) = &settings.log {
        line("log", quoted(&log.display().to_string()));
    }
    if let Some(duration) = settings.duration {
        line("duration", quoted(&format!("{}ns", duration.0)));
    }
    if settings.format == Format::Json {
        line("format", quoted("json"));
    }
    line("history", settings.history.to_string());
    out
}

fn target(target: LatencyTarget) -> String {
    match target {
        LatencyTarget::TimesIdle(times) => format!("{times}x"),
        // Exactly, and in the largest unit that can.
        LatencyTarget::Absolute(Nanos(ns)) if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        LatencyTarget::Absolute(Nanos(ns)) => format!("{ns}ns"),
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

fn quoted_list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}
