//! The devices that somebody names.

use std::path::Path;

use weir_core::target::Layer;
use weir_host::{Host, HostError};

use crate::failure::Lacking;

/// The devices that were named; each once.
///
/// # Errors
/// Where a name means no single block device.
pub fn named(names: &[String]) -> anyhow::Result<Vec<Layer>> {
    let host = Host::live();
    let mut devices: Vec<Layer> = Vec::new();
    for name in names {
        // A path that is not there yet has a device too: its folder's. Here it is a slip of the pen.
        if !Path::new(name).exists() && !Path::new("/sys/class/block").join(name).exists() {
            return Err(lacking(format!("no device and no path {name}")));
        }
        let device = behind(name, host.device_of(name))?;
        if !devices.iter().any(|known| known.number == device.number) {
            devices.push(device);
        }
    }
    Ok(devices)
}

/// What was found behind a name, if anything was.
///
/// # Errors
/// With how to name a device, where nothing was.
pub fn behind<T>(name: &str, found: Result<Option<T>, HostError>) -> anyhow::Result<T> {
    let found = found.map_err(|error| lacking(error.to_string()))?;
    found.ok_or_else(|| lacking(format!("no single block device stands behind {name}")))
}

fn lacking(what: String) -> anyhow::Error {
    let hint = "give a device (/dev/sda or sda), or a path on a file system that stands on one";
    Lacking { what, hint: Some(hint.to_string()) }.into()
}
