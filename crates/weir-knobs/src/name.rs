//! Names of knobs, as people type them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use weir_core::dialect::Dialect;

/// One setting of one thing. Prints and parses as `vm.swappiness`, `sda/nr_requests`, `sda/iosched/fifo_batch`,
/// `sda/bdi/max_ratio`, `bdi:0:44/max_ratio`, `cgroup:/db.slice/memory.high`,
/// `cgroup:/db.slice/io.max/8:0/wbps`, `cgroup:/backup/blkio.throttle.write_bps_device/8:0` or
/// `mysql:root@/run/db.sock/innodb_io_capacity`. Sysctls of which one zeroes the other are one knob: `vm.dirty_bytes`
/// and `vm.dirty_ratio` are both `vm.dirty`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct KnobName {
    /// What it belongs to.
    pub scope: Scope,
    /// Which setting of it, as the catalog calls it.
    pub setting: String,
}

/// What a knob belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The machine: a sysctl.
    Machine,
    /// A block device by the kernel's name: its queue, its scheduler, its bdi.
    Device(String),
    /// A bdi that belongs to no block device (btrfs, NFS), by its name under `/sys/class/bdi`.
    Bdi(String),
    /// A cgroup by its path in the hierarchy that has the setting: of version 1 where its file begins with `blkio.`, else
    /// of version 2.
    Cgroup(String),
    /// A database server.
    Server(ServerName),
}

/// A database server as journals name it: who asks and where, without a password. Prints as `mysql:root@/run/db.sock`,
/// `postgres:dba@db1:5432`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName {
    /// Whose protocol it speaks.
    pub family: Dialect,
    /// `USER@` where it is given, then the path of a socket, or `HOST:PORT`.
    pub place: String,
}

impl ServerName {
    const PREFIXES: [(&'static str, Dialect); 2] =
        [("mysql:", Dialect::MySql), ("postgres:", Dialect::Postgres)];

    /// `mysql:PLACE/SETTING` in its two parts.
    fn split(text: &str) -> Option<(ServerName, &str)> {
        let (prefix, family) = Self::PREFIXES.into_iter().find(|(prefix, _)| text.starts_with(prefix))?;
        let (place, setting) = text[prefix.len()..].rsplit_once('/')?;
        let whole = !place.is_empty() && !setting.is_empty();
        whole.then(|| (ServerName { family, place: place.to_string() }, setting))
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = Self::PREFIXES.iter().find(|(_, family)| *family == self.family);
        write!(f, "{}{}", prefix.map_or("", |(prefix, _)| prefix), self.place)
    }
}

/// A text that names no knob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no knob: {why}")]
pub struct BadName {
    /// What was typed.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl KnobName {
    /// A sysctl.
    pub fn machine(setting: &str) -> KnobName {
        KnobName { scope: Scope::Machine, setting: setting.to_string() }
    }

    /// A setting of a block device.
    pub fn device(device: &str, setting: &str) -> KnobName {
        KnobName { scope: Scope::Device(device.to_string()), setting: setting.to_string() }
    }

    /// Whether it is a variable of a database server: the server asks for privileges of its own, and another boot does not
    /// undo its change.
    pub fn is_of_server(&self) -> bool {
        matches!(self.scope, Scope::Server(_))
    }
}

impl fmt::Display for KnobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Scope::Machine => f.write_str(&self.setting),
            Scope::Device(device) => write!(f, "{device}/{}", self.setting),
            Scope::Bdi(bdi) => write!(f, "bdi:{bdi}/{}", self.setting),
            Scope::Cgroup(path) => write!(f, "cgroup:{}/{}", path.trim_end_matches('/'), self.setting),
            Scope::Server(server) => write!(f, "{server}/{}", self.setting),
        }
    }
}

impl FromStr for KnobName {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = |why: &str| BadName { text: text.to_string(), why: why.to_string() };
        if text.is_empty() || text.contains(char::is_whitespace) || text.contains("..") {
            return Err(bad("a name is one word, such as vm.swappiness or sda/nr_requests"));
        }
        if let Some(rest) = text.strip_prefix("cgroup:") {
            let of_files = || ["/io.", "/memory.", "/blkio."].iter().filter_map(|file| rest.find(file)).min();
            // Cgroups may be called so too: `/cpu.slice`.
            let at = rest.strip_suffix("/cpu.max").map(str::len).or_else(of_files);
            let at =
                at.ok_or_else(|| bad("a cgroup's knob is a path and a file, cgroup:/db.slice/memory.high"))?;
            let path = if at == 0 { "/" } else { &rest[..at] };
            return Ok(KnobName {
                scope: Scope::Cgroup(path.to_string()),
                setting: rest[at + 1..].to_string(),
            });
        }
        if let Some((server, setting)) = ServerName::split(text) {
            return Ok(KnobName { scope: Scope::Server(server), setting: setting.to_string() });
        }
        if let Some((bdi, setting)) = text.strip_prefix("bdi:").and_then(|rest| rest.split_once('/')) {
            return Ok(KnobName { scope: Scope::Bdi(bdi.to_string()), setting: setting.to_string() });
        }
        match text.split_once('/') {
            Some(("", _) | (_, "")) => Err(bad("expected DEVICE/SETTING")),
            Some((device, setting)) => Ok(KnobName::device(device, setting)),
            None => Ok(KnobName::machine(match text {
                "vm.dirty_bytes" | "vm.dirty_ratio" => "vm.dirty",
                "vm.dirty_background_bytes" | "vm.dirty_background_ratio" => "vm.dirty_background",
                other => other,
            })),
        }
    }
}

impl From<KnobName> for String {
    fn from(name: KnobName) -> Self {
        name.to_string()
    }
}

impl TryFrom<String> for KnobName {
    type Error = BadName;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_print_as_they_parse() {
        for (text, printed) in [
            ("vm.swappiness", "vm.swappiness"),
            ("vm.dirty_ratio", "vm.dirty"),
            ("vm.dirty_background_bytes", "vm.dirty_background"),
            ("nvme0n1/scheduler", "nvme0n1/scheduler"),
            ("sda/iosched/fifo_batch", "sda/iosched/fifo_batch"),
            ("sda/bdi/max_ratio", "sda/bdi/max_ratio"),
            ("bdi:0:44/max_ratio", "bdi:0:44/max_ratio"),
            ("cgroup:/db.slice/io.max/8:0/wbps", "cgroup:/db.slice/io.max/8:0/wbps"),
            ("cgroup:/memory.high", "cgroup:/memory.high"),
            ("cgroup:/cpu.slice/memory.high", "cgroup:/cpu.slice/memory.high"),
            ("cgroup:/a/memory.b/cpu.max", "cgroup:/a/memory.b/cpu.max"),
            (
                "cgroup:/backup/blkio.throttle.write_bps_device/8:0",
                "cgroup:/backup/blkio.throttle.write_bps_device/8:0",
            ),
            ("mysql:root@/run/db.sock/innodb_io_capacity", "mysql:root@/run/db.sock/innodb_io_capacity"),
            ("postgres:db1:5432/max_wal_size", "postgres:db1:5432/max_wal_size"),
        ] {
            let name: KnobName = text.parse().unwrap();
            assert_eq!(name.to_string(), printed);
            assert_eq!(printed.parse::<KnobName>().unwrap(), name);
        }
        for text in ["", "a b", "/scheduler", "sda/", "sda/../../etc", "cgroup:/db.slice"] {
            assert!(text.parse::<KnobName>().is_err(), "{text}");
        }
    }
}
