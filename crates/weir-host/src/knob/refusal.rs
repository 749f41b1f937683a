//! Why the kernel refuses a value, in words, and the question before anything is written.

use std::io;

use weir_knobs::{KnobName, Scope, Setting, Value, catalog, plan};

use super::error::KnobError;
use super::place::{self, Place};
use super::read;
use crate::error::HostError;
use crate::host::Host;

/// Why a value could not be written.
pub(super) fn refused(host: &Host, knob: &KnobName, value: &Value, error: HostError) -> KnobError {
    let HostError::Io { path, error } = error else { return error.into() };
    let (why, hint) = explained(host, knob, value, &error);
    let setting = Setting::new(knob.clone(), value.clone()).to_string();
    KnobError::Refused { setting, path: path.display().to_string(), why, hint }
}

fn explained(host: &Host, knob: &KnobName, value: &Value, error: &io::Error) -> (String, Option<String>) {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::ERANGE | libc::EDOM | libc::EOVERFLOW) => {
            (format!("the kernel refuses the value{}", allowed(host, knob, value)), None)
        }
        Some(libc::EPERM | libc::EACCES) if !is_root() => {
            ("it may be written by root only".to_string(), Some("run weir as root".to_string()))
        }
        Some(libc::EPERM | libc::EACCES) => {
            let why = "the kernel does not let even root write it here".to_string();
            (
                why,
                Some(
                    "in a container it takes a privileged one; on some devices the file is read-only".into(),
                ),
            )
        }
        Some(libc::EROFS) => (
            "its file system is mounted read-only".to_string(),
            Some("in a container, /proc/sys and /sys are: apply it on the host".to_string()),
        ),
        Some(libc::EBUSY) => {
            ("the device is busy".to_string(), Some("try again when less is running on it".to_string()))
        }
        Some(libc::ENOENT) => (absent(knob), None),
        Some(libc::ENODEV | libc::EOPNOTSUPP | libc::ENXIO) => {
            ("the device does not support it".to_string(), None)
        }
        _ => (error.to_string(), None),
    }
}

fn absent(knob: &KnobName) -> String {
    let since = catalog::spec(knob).and_then(|spec| spec.since);
    let since = since.map(|version| format!("; Linux has it since {version}")).unwrap_or_default();
    format!("this kernel or this device does not have it{since}")
}

/// `: it takes 4 to 128 requests`, as far as it is known.
fn allowed(host: &Host, knob: &KnobName, value: &Value) -> String {
    let Some(spec) = catalog::spec(knob) else { return String::new() };
    let scheduler = match &knob.scope {
        Scope::Device(device) => place::value(&host.tree, &KnobName::device(device, "scheduler")).ok(),
        _ => None,
    };
    let scheduler = scheduler.map(|word| word.to_string());
    let reading = read::read(host, knob).ok();
    let is_ratio = matches!(value, Value::Ratio(_));
    format!(": it takes {}", plan::range(spec, reading.as_ref(), scheduler.as_deref(), is_ratio))
}

fn is_root() -> bool {
    // SAFETY: geteuid takes no arguments, touches no memory and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Asks the kernel, before anything is written, whether it would let the file be written at all.
pub(super) fn check_writable(host: &Host, knob: &KnobName, value: &Value) -> Result<(), KnobError> {
    let opened = Place::of(&host.tree, knob).and_then(|place| place.try_open(&host.tree, value));
    opened.map_err(|error| refused(host, knob, value, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::testing::Machine;

    #[test]
    fn the_kernels_answers_are_translated() {
        let machine = Machine::new();
        for (setting, errno, says) in [
            ("vm.dirty_bytes=1", libc::EINVAL, "the kernel refuses the value: it takes 8192 or more bytes"),
            ("vm.dirty_ratio=0", libc::EINVAL, "it takes 1 to 100 %"),
            ("vm.swappiness=201", libc::ERANGE, "it takes 0 to 200"),
            ("loop0/scheduler=foo", libc::EINVAL, "it takes none | mq-deadline | kyber"),
            ("loop0/nr_requests=9999", libc::EINVAL, "it takes 4 to 2048 requests"),
            ("loop0/max_sectors_kb=9999", libc::EINVAL, "it takes 4 to 2560 KiB"),
            ("loop0/write_cache=on", libc::EINVAL, "it takes write back | write through"),
            ("cgroup:/db.slice/memory.high=low", libc::EINVAL, "it takes max, or 0 or more bytes"),
            ("vm.swappiness=1", libc::EROFS, "its file system is mounted read-only"),
            ("loop0/nr_requests=9", libc::EBUSY, "the device is busy"),
            ("loop0/bdi/max_bytes=9999", libc::ENOENT, "does not have it; Linux has it since 6.2"),
            ("loop0/wbt_lat_usec=9", libc::EOPNOTSUPP, "the device does not support it"),
            ("loop0/wbt_lat_usec=9", libc::EIO, "Input/output error"),
        ] {
            let wanted: Setting = setting.parse().unwrap();
            let error = HostError::io(&machine.real("/file"), io::Error::from_raw_os_error(errno));
            let text = refused(&machine.host, &wanted.knob, &wanted.value, error).to_string();
            assert!(text.starts_with(setting) && text.contains("/file: ") && text.contains(says), "{text}");
        }
    }
}
