//! Which devices are meant.

use std::path::Path;

use weir_core::target::DeviceNumber;
use weir_host::{Host, HostError};

use crate::devices::behind;
use crate::failure::Lacking;

/// A device that is to be guarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// As somebody named it.
    pub asked: String,
    /// The kernel's name of the whole disk, or of what is mapped over disks.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// Numbers under which syncs of its file systems are counted, where those are others.
    pub file_systems: Vec<DeviceNumber>,
}

/// Those that were named, or every device with a file system that is mounted for writing; each once.
///
/// # Errors
/// When a name means no single block device, or there is none to guard.
pub fn find_all(host: &Host, named: &[String]) -> anyhow::Result<Vec<BlockDevice>> {
    let mut block_devices: Vec<BlockDevice> = Vec::new();
    let mut add = |block_device: BlockDevice| {
        if block_devices.iter().all(|known| known.name != block_device.name) {
            block_devices.push(block_device);
        }
    };
    for name in named {
        add(behind(name, find(host, name))?);
    }
    if named.is_empty() {
        let mounts = host.mounts_for_writing().into_iter();
        mounts.filter_map(|mount| find(host, &mount).ok().flatten()).for_each(&mut add);
    }
    if block_devices.is_empty() {
        let what = "no file system of a block device is mounted for writing".to_string();
        return Err(Lacking { what, hint: Some("name a device, or a path on one".to_string()) }.into());
    }
    Ok(block_devices)
}

/// What one name means; `None` where no single block device stands behind it.
///
/// # Errors
/// When it cannot be resolved.
pub fn find(host: &Host, asked: &str) -> Result<Option<BlockDevice>, HostError> {
    let Some(layer) = host.device_of(asked)? else { return Ok(None) };
    let path = Path::new(asked);
    let of_file_system = asked.contains('/').then(|| host.target(path)).transpose()?;
    let own = of_file_system.and_then(|facts| facts.file_system).map(|system| system.device_number);
    // A file system's pages are written by the domain of the very device it lies on, which may be mapped over others.
    let number = own.filter(|number| !number.is_anonymous()).unwrap_or(layer.number);
    let flow = host.flow(number)?;
    let (name, number) = (flow.name().to_string(), flow.number());
    let file_systems = flow.file_systems();
    Ok(Some(BlockDevice { asked: asked.to_string(), name, number, file_systems }))
}
