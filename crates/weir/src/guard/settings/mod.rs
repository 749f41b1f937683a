//! What a guard has to know before it looks at the machine, and its form as a file.

pub mod file;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use weir_control::{LatencyTarget, SensorSource, Target};
use weir_core::units::Nanos;

use crate::daemon::MetricsAt;

pub use file::print;

/// All that a guard has to know before it looks at the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardSettings {
    /// Devices and paths as they were named; none means all that carry file systems.
    pub devices: Vec<String>,
    /// What is to be held.
    pub target: Target,
    /// Whose syncs; none means all.
    pub protect: Vec<Protected>,
    /// Decide and log only.
    pub shadow: bool,
    /// What is turned.
    pub actuator: ActuatorChoice,
    /// What else may be.
    pub may: Vec<May>,
    /// Whose cgroups are left alone.
    pub spare: Vec<Protected>,
    /// Where latencies come from.
    pub sensor: SensorChoice,
    /// Where metrics are offered.
    pub metrics: Option<MetricsAt>,
    /// Whether that may be an address that others can reach.
    pub metrics_for_others: bool,
    /// A file for the log.
    pub log: Option<PathBuf>,
    /// How long.
    pub duration: Option<Nanos>,
    /// Form of the log on stderr.
    pub format: Format,
    /// Whether a history is kept in the store.
    pub history: bool,
}

impl Default for GuardSettings {
    fn default() -> GuardSettings {
        GuardSettings {
            devices: Vec::new(),
            target: Target::default(),
            protect: Vec::new(),
            shadow: false,
            actuator: ActuatorChoice::Auto,
            may: Vec::new(),
            spare: Vec::new(),
            sensor: SensorChoice::Auto,
            metrics: None,
            metrics_for_others: false,
            log: None,
            duration: None,
            format: Format::Text,
            history: true,
        }
    }
}

impl GuardSettings {
    /// Whether limits of cgroups may be turned that bulk writers are alone in: who names an actuator means that one.
    pub fn may_be_private(&self) -> bool {
        self.actuator == ActuatorChoice::Auto && !self.spare.contains(&Protected::All)
    }
}

/// Whose syncs are protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protected {
    /// Everybody who syncs, but for the bulk writers.
    All,
    /// A unit of systemd, by name.
    Unit(String),
    /// A cgroup and those below it, by path.
    Cgroup(String),
    /// Processes of this name.
    Comm(String),
    /// A process and its descendants.
    Pid(u32),
}

impl FromStr for Protected {
    type Err = String;

    fn from_str(text: &str) -> Result<Protected, String> {
        const UNITS: [&str; 3] = [".service", ".slice", ".scope"];
        if text == "all" {
            return Ok(Protected::All);
        }
        match text.split_once(':') {
            Some((_, "")) => Err(format!("`{text}` names nobody")),
            Some(("comm", name)) => Ok(Protected::Comm(name.to_string())),
            Some(("cgroup", path)) => Ok(Protected::Cgroup(path.to_string())),
            Some(("pid", number)) => match number.parse() {
                Ok(pid @ 1..) => Ok(Protected::Pid(pid)),
                _ => Err(format!("expected a process id, got `{number}`")),
            },
            None if UNITS.iter().any(|ending| text.len() > ending.len() && text.ends_with(ending)) => {
                Ok(Protected::Unit(text.to_string()))
            }
            _ => {
                Err("expected all, a unit such as mariadb.service, comm:NAME, pid:N or cgroup:PATH"
                    .to_string())
            }
        }
    }
}

impl fmt::Display for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protected::All => f.write_str("all"),
            Protected::Unit(name) => f.write_str(name),
            Protected::Cgroup(path) => write!(f, "cgroup:{path}"),
            Protected::Comm(name) => write!(f, "comm:{name}"),
            Protected::Pid(pid) => write!(f, "pid:{pid}"),
        }
    }
}

/// Which actuator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ActuatorChoice {
    /// The best that this kernel has for the device
    #[default]
    Auto,
    /// vm.dirty_bytes, for the whole machine
    Vm,
    /// The device's own share, by strict_limit and max_ratio_fine
    Bdi,
}

impl ActuatorChoice {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            ActuatorChoice::Auto => "auto",
            ActuatorChoice::Vm => "vm",
            ActuatorChoice::Bdi => "bdi",
        }
    }
}

/// What the guard turns only where it is allowed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum May {
    /// What the cgroup of a bulk writer that goes past the page cache may write to the device
    Cgroup,
}

impl May {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            May::Cgroup => "cgroup",
        }
    }
}

impl FromStr for May {
    type Err = String;

    fn from_str(text: &str) -> Result<May, String> {
        match text {
            "cgroup" => Ok(May::Cgroup),
            _ => Err(format!("expected cgroup, got `{text}`")),
        }
    }
}

/// Which sensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SensorChoice {
    /// The first of the others that can be had
    #[default]
    Auto,
    /// The system calls of the protected, by programs in the kernel
    Syscalls,
    /// Small writes and syncs of weir's own, some a second
    Canary,
    /// The device's counters
    Diskstats,
}

impl SensorChoice {
    /// All of them.
    pub const ALL: [SensorChoice; 4] =
        [SensorChoice::Auto, SensorChoice::Syscalls, SensorChoice::Canary, SensorChoice::Diskstats];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            SensorChoice::Auto => "auto",
            SensorChoice::Syscalls => "syscalls",
            SensorChoice::Canary => "canary",
            SensorChoice::Diskstats => "diskstats",
        }
    }

    /// The source that is asked for; `None` is the best there is.
    pub fn source(self) -> Option<SensorSource> {
        match self {
            SensorChoice::Auto => None,
            SensorChoice::Syscalls => Some(SensorSource::Syscalls),
            SensorChoice::Canary => Some(SensorSource::Canary),
            SensorChoice::Diskstats => Some(SensorSource::Diskstats),
        }
    }
}

/// `50ms`, or `5x`.
pub fn latency_target(text: &str) -> Result<LatencyTarget, String> {
    const MOST: f64 = 1000.0;
    if let Some(times) = text.strip_suffix(['x', '×']) {
        return match times.trim().parse::<f64>() {
            // At 1x half of all windows would be over it.
            Ok(times) if times > 1.0 && times <= MOST => Ok(LatencyTarget::TimesIdle(times)),
            _ => Err(format!("`{text}`: the multiple must be above 1 and at most {MOST}")),
        };
    }
    match text.parse::<Nanos>() {
        Ok(Nanos(0)) => Err("must be more than 0".to_string()),
        Ok(time) => Ok(LatencyTarget::Absolute(time)),
        Err(error) => Err(format!("{error}; expected a time such as 50ms, or a multiple such as 5x")),
    }
}

/// A share, 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("expected a share from 0 to 1, got `{text}`")),
    }
}

/// Form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Sentences
    #[default]
    Text,
    /// JSON, one object a line
    Json,
}

#[cfg(test)]
mod tests;
