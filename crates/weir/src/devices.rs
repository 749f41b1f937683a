//! The devices that somebody names, and those that a job uses.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use weir_core::target::Layer;
use weir_core::workload::Job;
use weir_core::workload::spec::Target;
use weir_host::{Host, HostError};

use crate::failure::{Lacking, Usage};

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

/// The folder of a place that may be a file.
pub fn folder_of(place: &Path) -> &Path {
    if place.is_dir() { place } else { place.parent().unwrap_or(Path::new(".")) }
}

fn is_block_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.file_type().is_block_device())
}

/// Writing to a device needs the user's word for that very device, if anything on it could be lost.
pub fn refuse_devices_in_use(jobs: &[Job], allowed: &[PathBuf]) -> anyhow::Result<()> {
    for job in jobs.iter().filter(|job| job.writes()) {
        // A record or a job file may call a device a file.
        let path = match &job.target {
            Target::Device { path, .. } => path,
            Target::File { path, .. } if is_block_device(path) => path,
            _ => continue,
        };
        if allowed.contains(path) {
            continue;
        }
        let reasons = weir_host::signature::examine_device(path).map_err(|error| Lacking {
            what: error.to_string(),
            hint: Some("weir reads a device before it writes to it".to_string()),
        })?;
        let what = match reasons.as_slice() {
            [] => format!("writing to {} destroys its content", path.display()),
            reasons => {
                format!("writing to {} destroys its content: {}", path.display(), reasons.join("; "))
            }
        };
        let hint = Some(format!("if that is what you want: --i-know-this-destroys {}", path.display()));
        return Err(Usage { what, hint }.into());
    }
    Ok(())
}
