//! Settings whose changes the recorder notes.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_host::{Host, knob};

/// Knobs that the kernel derives from others and from free memory, so that they change all the time.
const FOLLOW: [&str; 2] = ["bdi/max_bytes", "bdi/min_bytes"];

/// Values of knobs by name.
pub(super) fn knobs(host: &Host) -> BTreeMap<String, String> {
    let all = knob::values(host).into_iter().map(|(knob, value)| (knob.to_string(), value.to_string()));
    all.filter(|(knob, _)| !FOLLOW.iter().any(|follows| knob.ends_with(follows))).collect()
}

/// What a device says it is.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Make {
    pub(super) model: Option<String>,
    pub(super) firmware: Option<String>,
}

/// Model and firmware of each device that has any.
pub(super) fn makes(host: &Host) -> BTreeMap<String, Make> {
    let makes = host.devices().into_iter().map(|device| {
        let make = Make { model: device.model, firmware: device.firmware };
        (device.name, make)
    });
    makes.filter(|(_, make)| make.model.is_some() || make.firmware.is_some()).collect()
}
