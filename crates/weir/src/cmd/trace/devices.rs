//! The devices that somebody names.

use weir_core::target::Layer;
use weir_host::Host;

use crate::failure::Usage;

/// The devices that were named; each once.
pub fn named(names: &[String]) -> anyhow::Result<Vec<Layer>> {
    let host = Host::live();
    let mut devices: Vec<Layer> = Vec::new();
    for name in names {
        let hint = Some(
            "give a device (/dev/sda or sda), or a path on a file system that stands on one".to_string(),
        );
        let device =
            host.device_of(name).map_err(|error| Usage { what: error.to_string(), hint: hint.clone() })?;
        let nothing = || Usage { what: format!("no single block device stands behind {name}"), hint };
        let device = device.ok_or_else(nothing)?;
        if !devices.iter().any(|known| known.number == device.number) {
            devices.push(device);
        }
    }
    Ok(devices)
}
