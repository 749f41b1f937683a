//! Knobs as data for other programs: schema `weir.knobs/1`.

use serde::Serialize;

use weir_core::target::FileSystem;
use weir_knobs::plan::{bounds, range};
use weir_knobs::{Kind, KnobName, Owner, Reading, Risk, Scope, Spec, Value, catalog};

/// The document of `weir knobs list --json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    knobs: Vec<Knob<'a>>,
    /// Options of the file system asked about; `null` where none was.
    mount: Option<Mount<'a>>,
}

#[derive(Debug, Serialize)]
struct Mount<'a> {
    kind: &'a str,
    mount_point: &'a str,
    options: &'a [String],
}

#[derive(Debug, Serialize)]
struct Knob<'a> {
    name: &'a KnobName,
    value: &'a Option<Value>,
    path: &'a str,
    unit: &'static str,
    /// In words.
    range: String,
    /// Least and greatest number; of a pair, in bytes.
    min: Option<i64>,
    max: Option<i64>,
    choices: &'a [String],
    default: &'static str,
    meaning: &'static str,
    beware: &'static str,
    risk: Option<&'static str>,
    /// Whether weir changes it: `freely`, `only when told that data are at risk`, `never`.
    changes: &'static str,
    since: Option<&'static str>,
    writable: bool,
    unreadable: &'a Option<String>,
    owners: &'a [Owner],
}

/// Knobs with what is known of them, indented, with a newline at the end.
pub fn document(readings: &[Reading], file_system: Option<&FileSystem>) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&known(readings, file_system)).map(|text| text + "\n")
}

fn known<'a>(readings: &'a [Reading], file_system: Option<&'a FileSystem>) -> Document<'a> {
    let known = |reading: &'a Reading| Some(knob(catalog::spec(&reading.knob)?, reading, readings));
    Document {
        schema: "weir.knobs/1",
        knobs: readings.iter().filter_map(known).collect(),
        mount: file_system.map(|fs| Mount {
            kind: &fs.kind,
            mount_point: &fs.mount_point,
            options: &fs.options,
        }),
    }
}

fn knob<'a>(spec: &'static Spec, reading: &'a Reading, readings: &[Reading]) -> Knob<'a> {
    let scheduler = scheduler(&reading.knob, readings);
    let (min, max) = bounds(spec, Some(reading), scheduler.as_deref(), false);
    let numbers = !matches!(spec.kind, Kind::Choice | Kind::Word(_));
    let (risk, changes) = match spec.risk {
        Risk::None => (None, "freely"),
        Risk::Careful(why) | Risk::Inexact(why) => (Some(why), "freely"),
        Risk::Durability(why) => (Some(why), "only when told that data are at risk"),
        Risk::Shown(why) => (Some(why), "never"),
    };
    Knob {
        name: &reading.knob,
        value: &reading.value,
        path: &reading.path,
        unit: if spec.kind == Kind::DirtyPair { "bytes or %" } else { spec.unit },
        range: range(spec, Some(reading), scheduler.as_deref(), false),
        min: numbers.then_some(min),
        max: (numbers && max < i64::MAX).then_some(max),
        choices: &reading.choices,
        default: spec.default,
        meaning: spec.meaning,
        beware: spec.trap,
        risk,
        changes,
        since: spec.since,
        writable: reading.writable,
        unreadable: &reading.unreadable,
        owners: &reading.owners,
    }
}

/// The scheduler in force on a knob's device, as far as the readings tell.
pub(crate) fn scheduler(knob: &KnobName, readings: &[Reading]) -> Option<String> {
    let Scope::Device(device) = &knob.scope else { return None };
    let scheduler = KnobName::device(device, "scheduler");
    let reading = readings.iter().find(|reading| reading.knob == scheduler)?;
    reading.value.as_ref().map(Value::to_string)
}
