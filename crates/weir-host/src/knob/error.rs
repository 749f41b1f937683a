//! Why a knob could not be turned, in words: the kernel's answers translated.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use weir_knobs::{KnobName, Refusal, Scope, Setting, Value, catalog, plan};

use super::place::Place;
use super::read;
use crate::error::HostError;
use crate::host::Host;

/// A knob that could not be turned, or not be restored. Unless it says otherwise, nothing is left changed.
#[derive(Debug, thiserror::Error)]
pub enum KnobError {
    /// A file could not be read.
    #[error("{0}")]
    Host(HostError),
    /// The settings do not make a plan; each reason stands for itself.
    #[error("{}", .0.iter().map(Refusal::to_string).collect::<Vec<_>>().join("; "))]
    Planned(Vec<Refusal>),
    /// Another change uses the same knob.
    #[error("{knob} is in use by another weir (process {pid}, for {} s now)", since.as_secs())]
    Held {
        /// The knob.
        knob: KnobName,
        /// The process that made the change.
        pid: u32,
        /// How long it has had it.
        since: Duration,
        /// Whether it waits to be confirmed rather than for the end of its process.
        unconfirmed: bool,
    },
    /// The file cannot be written, or the kernel does not take the value.
    #[error("{setting}: {path}: {why}")]
    Refused {
        /// What was to be set.
        setting: String,
        /// The file.
        path: String,
        /// The kernel's answer in words, with the allowed range where it is about the value.
        why: String,
        /// What may help.
        hint: Option<String>,
    },
    /// The kernel took the write but has another value.
    #[error("{knob}: wrote {wrote}, but it reads {reads}")]
    NotTaken {
        /// The knob.
        knob: KnobName,
        /// What was written.
        wrote: Value,
        /// What is there.
        reads: Value,
    },
    /// The guardian could not be started.
    #[error("no guardian, so nothing was changed: {0}")]
    NoGuardian(io::Error),
    /// The journal could not be written.
    #[error("the journal cannot be written, so nothing was changed: {0}")]
    Journal(HostError),
    /// A file of the journal is damaged or not weir's.
    #[error("{}: {why}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
        /// Where it was put, so that it blocks nobody.
        aside: Option<PathBuf>,
    },
    /// Not everything could be restored; the journal keeps the entry.
    #[error("not restored: {}", failed.join("; "))]
    NotLedBack {
        /// What was restored all the same.
        said: Vec<String>,
        /// What was not, and why.
        failed: Vec<String>,
    },
}

impl From<HostError> for KnobError {
    fn from(error: HostError) -> Self {
        KnobError::Host(error)
    }
}

impl KnobError {
    /// What may help.
    pub fn hint(&self) -> Option<String> {
        match self {
            KnobError::Planned(refusals) => refusals.iter().find_map(|refusal| refusal.hint.clone()),
            KnobError::Held { unconfirmed: true, .. } => Some(
                "`weir knobs confirm` keeps that change, `weir knobs rollback` takes it back".to_string(),
            ),
            KnobError::Held { .. } => Some("wait for its end".to_string()),
            KnobError::Refused { hint, .. } => hint.clone(),
            KnobError::NotTaken { reads, .. } => {
                Some(format!("the kernel rounds or bounds it here: it would keep {reads}"))
            }
            KnobError::Journal(HostError::Io { error, .. }) => hint_on_journal(error),
            KnobError::Damaged { aside: Some(aside), .. } => Some(format!(
                "check the settings by hand (`weir knobs list`); the file is now {}",
                aside.display()
            )),
            KnobError::Damaged { file, .. } => Some(format!(
                "check the settings by hand (`weir knobs list`), then remove {}",
                file.display()
            )),
            KnobError::NotLedBack { .. } => Some("`weir knobs rollback` tries again".to_string()),
            _ => None,
        }
    }
}

fn hint_on_journal(error: &io::Error) -> Option<String> {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Some("changing knobs takes root".to_string()),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space on its file system".to_string())
        }
        io::ErrorKind::ReadOnlyFilesystem => Some("its file system is mounted read-only".to_string()),
        _ => None,
    }
}

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
        Scope::Device(device) => read::value(&host.tree, &KnobName::device(device, "scheduler")).ok(),
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
