//! Settings for the next boot, in the words of the programs that set them then.

mod overruled;
mod parse;
mod sysctl;
mod systemd;
mod tuned;
mod udev;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::catalog::{self, Kind as Holds};
use crate::{KnobName, Scope, Setting, Value};
use weir_core::dialect::Dialect;

pub use overruled::overruled;
pub use tuned::base;

/// Which program is to set the knobs at boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Keeper {
    /// sysctl's: knobs of the machine.
    Sysctl,
    /// udev: knobs of devices.
    Udev,
    /// A TuneD profile: both.
    Tuned,
    /// A service of systemd that runs once at boot: both.
    Systemd,
}

/// Every keeper.
pub const KEEPERS: [Keeper; 4] = [Keeper::Sysctl, Keeper::Udev, Keeper::Tuned, Keeper::Systemd];

/// A setting to keep, with the value from before weir changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What is to be in force after the next boot.
    pub setting: Setting,
    /// What was in force before, where that is known.
    pub before: Option<Value>,
}

/// A setting that a keeper cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The setting.
    pub setting: Setting,
    /// Why not, and what does hold it.
    pub why: String,
}

/// What keeps settings for the next boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persisted {
    /// The file.
    pub path: String,
    /// What it says.
    pub text: String,
    /// A symbolic link that goes with it, and where it points.
    pub link: Option<(String, String)>,
    /// What weir leaves to people: commands, in order.
    pub then: Vec<String>,
    /// The same for restoring, after the file is gone.
    pub then_undo: Vec<String>,
    /// What this keeper cannot hold.
    pub left_out: Vec<LeftOut>,
    /// What may surprise, in sentences.
    pub notes: Vec<String>,
}

/// What a file in the place of a keeper's is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Not weir's.
    Foreign,
    /// weir's, changed by somebody: the first line that is not as weir wrote it, or that is missing.
    Edited(String),
    /// As weir wrote it, with these settings.
    Kept(Vec<Kept>),
}

/// The first line of every file that weir writes here, and the mark by which it knows its own.
const MARK: &str = "# Written by weir: settings for the next boot.";

impl Keeper {
    /// Where its file lies.
    pub fn path(self) -> &'static str {
        match self {
            Keeper::Sysctl => "/etc/sysctl.d/90-weir.conf",
            Keeper::Udev => "/etc/udev/rules.d/90-weir.rules",
            Keeper::Tuned => "/etc/tuned/weir/tuned.conf",
            Keeper::Systemd => systemd::PATH,
        }
    }

    /// The symbolic link that goes with the file.
    pub fn link(self) -> Option<(String, String)> {
        (self == Keeper::Systemd).then(|| (systemd::LINK.to_string(), systemd::PATH.to_string()))
    }

    /// The file that keeps these settings, in the order they are to be written. `tuned_profile` is the active one,
    /// which a profile of weir's includes.
    pub fn persist(self, kept: &[Kept], tuned_profile: Option<&str>) -> Persisted {
        let mut left_out = Vec::new();
        let mut held = Vec::new();
        for one in kept {
            match self.refusal(&one.setting) {
                Some(why) => left_out.push(LeftOut { setting: one.setting.clone(), why }),
                None => held.push(one.clone()),
            }
        }
        let mut persisted = match self {
            Keeper::Sysctl => sysctl::file(&held),
            Keeper::Udev => udev::file(&held),
            Keeper::Tuned => tuned::file(&held, tuned_profile),
            Keeper::Systemd => systemd::file(&held),
        };
        persisted.left_out = left_out;
        persisted
    }

    /// What a text in the place of its file is.
    pub fn found(self, text: &str) -> Found {
        if !text.starts_with(MARK) {
            return Found::Foreign;
        }
        let kept = parse::kept(text);
        let wrote = self.persist(&kept, tuned::included(text).as_deref()).text;
        let (mut lines, mut wrote) = (text.lines(), wrote.lines());
        loop {
            match (lines.next(), wrote.next()) {
                (None, None) => return Found::Kept(kept),
                (line, as_written) if line == as_written => {}
                (line, as_written) => {
                    return Found::Edited(line.or(as_written).unwrap_or_default().to_string());
                }
            }
        }
    }

    /// Why a setting cannot be kept here.
    fn refusal(self, setting: &Setting) -> Option<String> {
        let spec = catalog::spec(&setting.knob)?;
        if spec.kind == Holds::Action {
            return Some("it is done once and not held, so there is nothing to keep".to_string());
        }
        if spec.path.contains('*') {
            return Some("the disk keeps it itself, or a file of hdparm's does".to_string());
        }
        match (&setting.knob.scope, self) {
            (Scope::Cgroup(path), _) => Some(cgroup_hint(path, setting)),
            (Scope::Bdi(_), _) => {
                Some("the number of a bdi without a device is another one after the next mount".to_string())
            }
            (Scope::Server(server), _) => {
                let how = match server.family {
                    Dialect::MySql => {
                        "the server keeps it by SET PERSIST (MySQL 8), or by a line of its my.cnf"
                    }
                    Dialect::Postgres => "ALTER SYSTEM has kept it already",
                };
                Some(how.to_string())
            }
            (Scope::Machine, Keeper::Udev) => {
                Some("udev sets devices only; use sysctl.d, tuned or systemd".to_string())
            }
            (Scope::Device(_), Keeper::Sysctl) => {
                Some("sysctl.d sets /proc/sys only; use udev, tuned or systemd".to_string())
            }
            (Scope::Machine, Keeper::Sysctl) if !spec.path.starts_with("/proc/sys/") => {
                Some("it is not a sysctl; use systemd".to_string())
            }
            _ => None,
        }
    }
}

/// systemd keeps the limits of its own cgroups, and undoes what others wrote there.
fn cgroup_hint(path: &str, setting: &Setting) -> String {
    let unit = path.rsplit('/').next().unwrap_or_default();
    let value = &setting.value;
    let parts: Vec<&str> = setting.knob.setting.split('/').collect();
    let property = match parts[..] {
        ["memory.high"] => format!("MemoryHigh={}", systemd_limit(value)),
        ["cpu.max"] => cpu_quota(value),
        ["io.weight"] => format!("IOWeight={value}"),
        ["io.max", device, field] => {
            let property = match field {
                "rbps" => "IOReadBandwidthMax",
                "wbps" => "IOWriteBandwidthMax",
                "riops" => "IOReadIOPSMax",
                _ => "IOWriteIOPSMax",
            };
            format!("'{property}={} {}'", node(device), systemd_limit(value))
        }
        ["io.latency", device, _] => format!("'IODeviceLatencyTargetSec={} {value}us'", node(device)),
        _ => return "the program that makes the cgroup has to set it".to_string(),
    };
    if unit.ends_with(".slice") || unit.ends_with(".service") {
        format!("systemd has this cgroup and keeps its limits: systemctl set-property {unit} {property}")
    } else {
        "the program that makes the cgroup has to set it".to_string()
    }
}

/// The file of a device by its name or number. The kernel writes a slash in a name as an exclamation mark.
fn node(device: &str) -> String {
    match device.contains(':') {
        true => format!("/dev/block/{device}"),
        false => format!("/dev/{}", device.replace('!', "/")),
    }
}

/// systemd has a share in hundredths of a percent.
fn cpu_quota(value: &Value) -> String {
    match value.quota() {
        Some((quota, period)) => {
            let share = 100.0 * quota as f64 / period as f64;
            format!("CPUQuota={share:.2}% CPUQuotaPeriodSec={period}us")
        }
        None => "CPUQuota=".to_string(),
    }
}

fn systemd_limit(value: &Value) -> String {
    match value {
        Value::Word(_) => "infinity".to_string(),
        other => other.to_string(),
    }
}

/// Earlier settings with later ones put in: of one knob, the later value, with what was before the earlier.
pub fn merged(earlier: Vec<Kept>, later: Vec<Kept>) -> Vec<Kept> {
    let mut all = earlier;
    for new in later {
        match all.iter_mut().find(|old| old.setting.knob == new.setting.knob) {
            Some(old) => {
                old.setting = new.setting;
                old.before = old.before.take().or(new.before);
            }
            None => all.push(new),
        }
    }
    all.sort_by_key(|kept| catalog::spec(&kept.setting.knob).map_or(0, |spec| spec.rank));
    all
}

/// What every file begins with: what it is, how it goes away, and what it keeps, for people and for weir.
fn header(keeper: Keeper, kept: &[Kept]) -> String {
    let mut out = format!("{MARK}\n# Take away: weir knobs rollback --persist {keeper}\n");
    for Kept { setting, before } in kept {
        let before = before.as_ref().map(|value| Setting::new(setting.knob.clone(), value.clone()));
        let before = before.map(|before| format!("{}{before}", parse::WAS)).unwrap_or_default();
        out.push_str(&format!("{}{setting}{before}\n", parse::LINE));
    }
    out
}

/// Where a device's name may lead another way after a boot.
fn name_notes(kept: &[Kept]) -> Vec<String> {
    let devices: BTreeSet<&str> = kept.iter().filter_map(|kept| device_of(&kept.setting.knob)).collect();
    devices
        .into_iter()
        .map(|device| {
            format!(
                "{device} may be another disk after the next boot; ENV{{ID_SERIAL}}, as `udevadm info /dev/{device}` \
                 shows it, names a disk for good"
            )
        })
        .collect()
}

fn device_of(knob: &KnobName) -> Option<&str> {
    match &knob.scope {
        Scope::Device(device) => Some(device),
        _ => None,
    }
}

impl fmt::Display for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Keeper::Sysctl => "sysctl.d",
            Keeper::Udev => "udev",
            Keeper::Tuned => "tuned",
            Keeper::Systemd => "systemd",
        })
    }
}

impl FromStr for Keeper {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        KEEPERS
            .into_iter()
            .find(|keeper| keeper.to_string() == text)
            .ok_or_else(|| "expected sysctl.d, udev, tuned or systemd".to_string())
    }
}

impl From<Keeper> for String {
    fn from(keeper: Keeper) -> Self {
        keeper.to_string()
    }
}

impl TryFrom<String> for Keeper {
    type Error = String;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests;
