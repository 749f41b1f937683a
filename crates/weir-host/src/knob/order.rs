//! The order in which knobs are written and restored.

use std::fs;
use std::os::unix::fs::MetadataExt;

use weir_core::target::DeviceNumber;
use weir_knobs::{KnobName, Scope, Value, catalog};

use super::dirty;
use super::place::{self, Place};
use crate::block;
use crate::host::Host;
use crate::tree::Tree;

/// Sorts by the catalog's ranks: a scheduler before what its switch resets. The background limit goes before the
/// dirty limit where that is lowered, so that writeback starts while nobody has to wait, and after it where that is
/// raised.
pub(super) fn sort<T>(host: &Host, items: &mut [T], knob_and_value: impl Fn(&T) -> (KnobName, Value)) {
    let lowered = items.iter().map(&knob_and_value).any(|(knob, value)| dirty::lowers(host, &knob, &value));
    items.sort_by_key(|item| {
        let knob = knob_and_value(item).0;
        let among_limits = match knob.to_string().as_str() {
            dirty::LIMIT => 1,
            dirty::BACKGROUND if lowered => 0,
            dirty::BACKGROUND => 2,
            _ => 3,
        };
        (catalog::spec(&knob).map_or(u8::MAX, |spec| spec.rank), among_limits)
    });
}

/// The one name of a knob that has several: of a block device's bdi the device's, of a cgroup its plain path, of a device in one of
/// its files the number.
pub(super) fn one_name(tree: &Tree, knob: &KnobName) -> KnobName {
    let as_given = || knob.clone();
    match &knob.scope {
        Scope::Bdi(bdi) => {
            let device = DeviceNumber::parse(bdi).and_then(|number| block::name_of(tree, number));
            device.map_or_else(as_given, |device| KnobName::device(&device, &format!("bdi/{}", knob.setting)))
        }
        Scope::Cgroup(path) => {
            let parts: Vec<&str> = path.split('/').filter(|part| !["", "."].contains(part)).collect();
            let number =
                |device: &str| DeviceNumber::parse(device).or_else(|| block::number_of(tree, device).ok());
            let mut words: Vec<String> = knob.setting.split('/').map(str::to_string).collect();
            if let Some(device) = words.get_mut(1)
                && let Some(number) = number(device)
            {
                *device = number.to_string();
            }
            KnobName { scope: Scope::Cgroup(format!("/{}", parts.join("/"))), setting: words.join("/") }
        }
        Scope::Machine | Scope::Device(_) | Scope::Server(_) => as_given(),
    }
}

/// How a knob says the value of the one that it is kept as.
#[derive(Clone, Copy)]
enum Scale {
    AsKept,
    /// Of parts per million.
    Percent,
    /// Of parts per million of the dirty limit.
    Bytes,
}

/// The knob that a knob is really kept as. A bdi keeps its limits in parts per million, whichever file they came through;
/// what it shows as bytes moves with free memory, and percents are rounded. A device has one read-ahead, with two files.
fn keeper(tree: &Tree, knob: &KnobName) -> (KnobName, Scale) {
    let knob = one_name(tree, knob);
    let (prefix, setting) = match knob.setting.rsplit_once("bdi/") {
        Some((_, setting)) => ("bdi/", setting),
        None => ("", knob.setting.as_str()),
    };
    let named = |setting: String| KnobName { scope: knob.scope.clone(), setting };
    let (limit, scale) = match setting {
        "max_ratio" => ("max", Scale::Percent),
        "min_ratio" => ("min", Scale::Percent),
        "max_bytes" => ("max", Scale::Bytes),
        "min_bytes" => ("min", Scale::Bytes),
        "read_ahead_kb" if prefix == "bdi/" => return (named(setting.to_string()), Scale::AsKept),
        _ => return (knob, Scale::AsKept),
    };
    let fine = named(format!("{prefix}{limit}_ratio_fine"));
    if place::value(tree, &fine).is_ok() { (fine, scale) } else { (knob, Scale::AsKept) }
}

/// The knob under which a value is really kept, and the value there.
pub(super) fn kept_as(host: &Host, knob: &KnobName, value: &Value) -> (KnobName, Value) {
    let (kept, scale) = keeper(&host.tree, knob);
    let ppm = match (scale, value.number()) {
        (Scale::AsKept, _) => return (kept, value.clone()),
        (Scale::Percent, Some(percent)) => Some(percent.saturating_mul(10_000)),
        (Scale::Bytes, Some(bytes)) => dirty::share_ppm(host, bytes),
        (_, None) => None,
    };
    match ppm {
        Some(ppm) => (kept, Value::Number(ppm)),
        None => (one_name(&host.tree, knob), value.clone()),
    }
}

/// A value of another knob as this one would show it, where both are kept as one.
pub(super) fn shown_by(host: &Host, knob: &KnobName, other: &KnobName, value: &Value) -> Option<Value> {
    if knob == other {
        return Some(value.clone());
    }
    let (kept, scale) = keeper(&host.tree, knob);
    let (other, value) = kept_as(host, other, value);
    match (scale, value.number()) {
        _ if kept != other => None,
        (Scale::Percent, Some(ppm)) => Some(Value::Number(ppm / 10_000)),
        (Scale::Bytes, Some(ppm)) => dirty::of_share(host, ppm).map(Value::Number),
        _ => Some(value),
    }
}

/// Knobs that a write to this one changes.
pub(super) fn reset_by(knob: &KnobName) -> Vec<KnobName> {
    let resets = catalog::spec(knob).map_or(&[][..], |spec| spec.resets);
    let prefix = if knob.setting.starts_with("bdi/") { "bdi/" } else { "" };
    resets
        .iter()
        .map(|reset| KnobName { scope: knob.scope.clone(), setting: format!("{prefix}{reset}") })
        .collect()
}

/// Number of the device as the kernel counts them, or of the cgroup's folder: what went and came back is another one,
/// though its name is the same.
pub(super) fn device_sequence(tree: &Tree, knob: &KnobName) -> Option<u64> {
    match &knob.scope {
        Scope::Device(device) => tree.value(&format!("/sys/block/{device}/diskseq")).ok(),
        Scope::Cgroup(_) => {
            let file = tree.real(Place::of(tree, knob).ok()?.file(&Value::Number(0)));
            fs::metadata(file.parent()?).ok().map(|folder| folder.ino())
        }
        _ => None,
    }
}
