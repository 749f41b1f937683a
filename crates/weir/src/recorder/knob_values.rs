//! Settings whose changes the recorder notes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_host::{Host, knob};

/// Knobs that the kernel derives from others and from free memory, so that they change all the time.
const FOLLOW: [&str; 2] = ["bdi/max_bytes", "bdi/min_bytes"];

/// Values of knobs by name.
pub(super) fn knobs(host: &Host) -> BTreeMap<String, String> {
    let all = knob::values(host).into_iter().map(|(knob, value)| (knob.to_string(), value.to_string()));
    all.filter(|(knob, _)| !FOLLOW.iter().any(|follows| knob.ends_with(follows))).collect()
}

/// Model and firmware of each device that has any.
pub(super) fn models(host: &Host) -> BTreeMap<String, Value> {
    let known =
        host.devices().into_iter().filter(|device| device.model.is_some() || device.firmware.is_some());
    known.map(|device| (device.name, json!({ "model": device.model, "firmware": device.firmware }))).collect()
}
