//! Which limit to turn.

use std::fmt;

use weir_core::target::DeviceNumber;
use weir_knobs::{KnobName, Scope, Value};

use super::super::read;
use crate::bdi;
use crate::host::Host;
use crate::write_back::{OwnBdi, WriteBack};

/// A limit that can be turned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actuator {
    /// `vm.dirty_bytes` with `vm.dirty_background_bytes` at half of it: every kernel has it, and every buffered writer
    /// of the machine is held to it.
    Dirty,
    /// The share of one bdi, by its device or its own name, held at all times (`strict_limit` and `max_ratio_fine`):
    /// writers to other devices are left alone.
    Bdi(BdiOf),
    /// What a cgroup may write to a device ([`crate::IoCgroup::write_limit`]). Its limit in bytes is what that lets through
    /// in a tenth of a second.
    Cgroup(KnobName),
    /// memory.high of a cgroup and, where it has them, what it may write to a device (io.max) and the processor time it may use
    /// (cpu.max): [`super::Governor::set_private`]. Its limit in bytes is memory.high.
    Private {
        /// memory.high.
        high: KnobName,
        /// The `wbps` of io.max.
        pace: Option<KnobName>,
        /// cpu.max, where it is no limit yet.
        quota: Option<KnobName>,
    },
}

/// Limits of a private actuator; `None` is the baseline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrivateLimits {
    /// memory.high, in bytes.
    pub high: Option<u64>,
    /// io.max, in bytes a second.
    pub pace: Option<u64>,
    /// cpu.max, in microseconds a second.
    pub quota: Option<u64>,
}

/// Which bdi.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BdiOf {
    /// That of a device, by the kernel's name of it.
    Device(String),
    /// That of a file system which has its own, by the bdi's name.
    FileSystem(String),
}

/// An actuator, and why that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Which.
    pub actuator: Actuator,
    /// A sentence part: what speaks for it, or against the other.
    pub why: String,
}

impl fmt::Display for Actuator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actuator::Dirty => f.write_str("vm.dirty_bytes"),
            Actuator::Bdi(BdiOf::Device(device)) => write!(f, "{device}/bdi (strict_limit, max_ratio_fine)"),
            Actuator::Bdi(BdiOf::FileSystem(bdi)) => write!(f, "bdi:{bdi} (strict_limit, max_ratio_fine)"),
            Actuator::Private { high, pace, quota } => {
                write!(f, "{high}")?;
                pace.iter().chain(quota).try_for_each(|knob| write!(f, " and {knob}"))
            }
            Actuator::Cgroup(knob) => write!(f, "{knob} (in a tenth of a second)"),
        }
    }
}

impl Actuator {
    /// The better one for this device, by what the kernel offers; `number` is the device's.
    pub fn best(host: &Host, device: &str, number: DeviceNumber) -> Choice {
        let dirty = |why: String| Choice { actuator: Actuator::Dirty, why };
        let bdi = match BdiOf::pages_on(host, device, number) {
            Ok(bdi) => bdi,
            Err(why) => return dirty(why),
        };
        let lacks = ["strict_limit", "max_ratio_fine"].into_iter().find_map(|file| lacking(host, &bdi, file));
        match lacks.or_else(|| too_old(host)) {
            Some(why) => dirty(why),
            None => {
                Choice { actuator: Actuator::Bdi(bdi), why: format!("it holds writers to {device} alone") }
            }
        }
    }
}

impl BdiOf {
    /// The one that writes back all pages of a device's file systems.
    ///
    /// # Errors
    /// A sentence part: why there is none, or none that is known.
    pub fn pages_on(host: &Host, device: &str, number: DeviceNumber) -> Result<BdiOf, String> {
        let WriteBack { own, shares_the_disks } = host.write_back(number);
        match own.as_slice() {
            [] => Ok(BdiOf::Device(device.to_string())),
            [OwnBdi { bdi: Some(bdi), .. }] if !shares_the_disks => Ok(BdiOf::FileSystem(bdi.clone())),
            [OwnBdi { bdi: None, .. }] => {
                Err(format!("the kernel does not tell the bdi of the file system on {device}"))
            }
            _ => Err(format!("the file systems on {device} have several bdis")),
        }
    }

    /// One of its files.
    pub(super) fn file(&self, file: &str) -> KnobName {
        match self {
            BdiOf::Device(device) => KnobName::device(device, &format!("bdi/{file}")),
            BdiOf::FileSystem(bdi) => KnobName { scope: Scope::Bdi(bdi.clone()), setting: file.to_string() },
        }
    }
}

/// Why a file of a bdi does not serve.
fn lacking(host: &Host, bdi: &BdiOf, file: &str) -> Option<String> {
    let knob = bdi.file(file);
    match read::read(host, &knob) {
        Ok(reading) if !reading.writable => Some(format!("{} is read-only", reading.path)),
        Ok(reading) if matches!(reading.value, Some(Value::Number(_))) => None,
        Ok(reading) => {
            Some(reading.unreadable.unwrap_or_else(|| format!("{} holds no number", reading.path)))
        }
        Err(_) => Some(format!("there is no {knob}, which Linux has since 6.2")),
    }
}

/// Before 6.14 the strict share of a device that has been idle for a while can sink to nothing and stop its writers. Where no
/// device shows that this kernel spares the idle, its release must tell.
fn too_old(host: &Host) -> Option<String> {
    const SOUND: (u64, u64) = (6, 14);
    let release = host.tree.line("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u64>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (version < SOUND && !bdi::spares_the_idle(&host.tree)).then(|| {
        format!(
            "before Linux 6.14 (here {release}) a strict limit can stop the writers of a device that was idle"
        )
    })
}
