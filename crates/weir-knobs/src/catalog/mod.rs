//! What weir knows of each knob: its file, its values, what it means and what it risks.

mod bdi;
mod cgroup;
mod database;
mod device;
mod machine;
mod schedulers;

use crate::{KnobName, Scope, ServerName};
use weir_core::dialect::Dialect;

/// A kind of thing that has knobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// The machine.
    Machine,
    /// A block device's queue and scheduler.
    Device,
    /// A bdi: `DEVICE/bdi/SETTING`, or `bdi:NAME/SETTING`.
    Bdi,
    /// A cgroup.
    Cgroup,
    /// A server of MySQL or MariaDB.
    MySql,
    /// A server of PostgreSQL.
    Postgres,
}

/// What a knob holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number within bounds, both included. The machine may know narrower ones.
    Number {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
    /// The word `max`, which lifts the limit, or a whole number within bounds, both included.
    Limit {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
    /// `QUOTA PERIOD` of processor time in microseconds, or `max PERIOD` for none.
    Quota,
    /// One of the words that the kernel offers in the file itself, the chosen one in brackets.
    Choice,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A pair of sysctls of which one zeroes the other: `NAME_bytes` and `NAME_ratio`.
    DirtyPair,
    /// Something that is done, not held (`vm.drop_caches`): never restored, never kept for the next boot.
    Action,
}

/// What changing a knob risks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    /// Speed only, and it is restored exactly.
    None,
    /// Others suffer while it is set, and it is restored exactly; the sentence says how.
    Careful(&'static str),
    /// It is not restored exactly; the sentence says why.
    Inexact(&'static str),
    /// Data could be lost at a power failure: shown, measured when asked for, never changed without a flag that
    /// names the risk.
    Durability(&'static str),
    /// Shown only: weir does not change it.
    Shown(&'static str),
}

/// One entry of the catalog.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// What it belongs to.
    pub scope: ScopeKind,
    /// Name of the setting within its scope: `vm.dirty`, `nr_requests`, `iosched/fifo_batch`; a bdi's without
    /// `bdi/`, a cgroup's per device with `DEV` where the device's number stands.
    pub setting: &'static str,
    /// Its file; `{}` stands for the device, bdi or cgroup. A pair's without `_bytes` and `_ratio`. A server's: the
    /// statement that sets it, where `{}` stands for the setting.
    pub path: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Unit of its numbers.
    pub unit: &'static str,
    /// The kernel's default, in words where it depends on the device.
    pub default: &'static str,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// What has surprised people, in sentences; empty where nothing did.
    pub trap: &'static str,
    /// What changing it risks.
    pub risk: Risk,
    /// Place in the order of a transaction: lower is written first.
    pub rank: u8,
    /// Settings of the same scope that a write to this one resets: they are kept and checked with it.
    pub resets: &'static [&'static str],
    /// How far what reads back may be from what was written, where the kernel rounds.
    pub tolerance: i64,
    /// Whether it acts on requests: a device that passes bios on (dm, md) may have the file, and nothing that heeds it.
    pub of_requests: bool,
    /// The scheduler that has it, where it is one scheduler's own.
    pub scheduler: Option<&'static str>,
    /// The first kernel that has it, where not all supported ones do.
    pub since: Option<&'static str>,
}

/// What most knobs are: the tables say only how they differ.
const PLAIN: Spec = Spec {
    scope: ScopeKind::Machine,
    setting: "",
    path: "",
    kind: Kind::Choice,
    unit: "",
    default: "",
    meaning: "",
    trap: "",
    risk: Risk::None,
    rank: rank::ANY,
    resets: &[],
    tolerance: 0,
    of_requests: false,
    scheduler: None,
    since: None,
};

/// Places in the order of a transaction.
mod rank {
    pub const SCHEDULER: u8 = 10;
    pub const REQUESTS: u8 = 20;
    pub const SCHEDULERS_OWN: u8 = 30;
    pub const WBT: u8 = 40;
    pub const ANY: u8 = 50;
    pub const LIMIT: u8 = 60;
    pub const SWITCH: u8 = 70;
    pub const ACTION: u8 = 200;
}

const COUNT: usize = machine::KNOBS.len()
    + device::KNOBS.len()
    + schedulers::KNOBS.len()
    + bdi::KNOBS.len()
    + cgroup::KNOBS.len()
    + database::MYSQL_KNOBS.len()
    + database::POSTGRES_KNOBS.len();

const ALL: [Spec; COUNT] = {
    let groups: [&[Spec]; 7] = [
        machine::KNOBS,
        device::KNOBS,
        schedulers::KNOBS,
        bdi::KNOBS,
        cgroup::KNOBS,
        database::MYSQL_KNOBS,
        database::POSTGRES_KNOBS,
    ];
    let mut all = [PLAIN; COUNT];
    let (mut at, mut group) = (0, 0);
    while group < groups.len() {
        let mut index = 0;
        while index < groups[group].len() {
            all[at] = groups[group][index];
            at += 1;
            index += 1;
        }
        group += 1;
    }
    all
};

/// Every knob there is, in the order people read them.
pub static CATALOG: &[Spec] = &ALL;

/// The entry of a knob.
pub fn spec(knob: &KnobName) -> Option<&'static Spec> {
    let (kind, setting) = key(knob);
    CATALOG.iter().find(|spec| spec.scope == kind && spec.setting == setting)
}

/// The file of a knob under `/sys` or `/proc`; a pair's without `_bytes` and `_ratio`, a cgroup's where its hierarchy
/// is mounted at `/sys/fs/cgroup`, the file of a device's own cache with a `*` for the SCSI address. A server's variable
/// has none.
pub fn path(knob: &KnobName) -> Option<String> {
    let spec = spec(knob)?;
    let path = match &knob.scope {
        Scope::Machine => spec.path.to_string(),
        Scope::Device(device) if spec.scope == ScopeKind::Bdi => {
            format!("/sys/block/{device}/bdi/{}", spec.setting)
        }
        Scope::Device(name) | Scope::Bdi(name) => spec.path.replace("{}", name),
        Scope::Cgroup(path) => spec.path.replace("{}", path.trim_end_matches('/')),
        Scope::Server(_) => return None,
    };
    Some(path)
}

/// What the catalog calls a knob.
fn key(knob: &KnobName) -> (ScopeKind, String) {
    let setting = knob.setting.as_str();
    match &knob.scope {
        Scope::Machine => (ScopeKind::Machine, setting.to_string()),
        Scope::Device(_) => match setting.strip_prefix("bdi/") {
            Some(setting) => (ScopeKind::Bdi, setting.to_string()),
            None => (ScopeKind::Device, setting.to_string()),
        },
        Scope::Bdi(_) => (ScopeKind::Bdi, setting.to_string()),
        Scope::Cgroup(_) => match setting.split('/').collect::<Vec<_>>()[..] {
            [file, _device, field] => (ScopeKind::Cgroup, format!("{file}/DEV/{field}")),
            [file, _device] => (ScopeKind::Cgroup, format!("{file}/DEV")),
            _ => (ScopeKind::Cgroup, setting.to_string()),
        },
        Scope::Server(ServerName { family: Dialect::MySql, .. }) => (ScopeKind::MySql, setting.to_string()),
        Scope::Server(ServerName { family: Dialect::Postgres, .. }) => {
            (ScopeKind::Postgres, setting.to_string())
        }
    }
}

impl Spec {
    /// The name to type, with `DEV`, `CGROUP` in place of what it belongs to.
    pub fn pattern(&self) -> String {
        match self.scope {
            ScopeKind::Machine => self.setting.to_string(),
            ScopeKind::Device => format!("DEV/{}", self.setting),
            ScopeKind::Bdi => format!("DEV/bdi/{}", self.setting),
            ScopeKind::Cgroup => format!("cgroup:PATH/{}", self.setting),
            ScopeKind::MySql => format!("mysql:SERVER/{}", self.setting),
            ScopeKind::Postgres => format!("postgres:SERVER/{}", self.setting),
        }
    }
}

/// The name in the catalog that was perhaps meant: the whole name, ready to type, and `None` where nothing is near.
pub fn nearest(typed: &str) -> Option<String> {
    const FAR: usize = 3;
    let (prefix, wanted) = match typed.parse::<KnobName>() {
        Ok(KnobName { scope: Scope::Device(device), setting }) => (format!("{device}/"), setting),
        Ok(KnobName { scope: Scope::Bdi(bdi), setting }) => (format!("bdi:{bdi}/"), setting),
        Ok(KnobName { scope: Scope::Cgroup(path), setting }) => (format!("cgroup:{path}/"), setting),
        Ok(KnobName { scope: Scope::Server(server), setting }) => (format!("{server}/"), setting),
        _ => (String::new(), typed.to_string()),
    };
    let of_device = prefix.ends_with('/') && !prefix.contains(':');
    let candidates = CATALOG.iter().map(|spec| match spec.scope {
        ScopeKind::Bdi if of_device => format!("bdi/{}", spec.setting),
        // Without a device, its settings are shown as a pattern.
        ScopeKind::Device if prefix.is_empty() => format!("DEV/{}", spec.setting),
        _ => spec.setting.to_string(),
    });
    let last = |name: &str| name.rsplit(['/', '.']).next().unwrap_or_default().to_string();
    candidates
        .map(|name| {
            let whole = distance(&name, &wanted);
            let tail = distance(&last(&name), &last(&wanted)) + 1;
            (whole.min(tail), name)
        })
        .filter(|(far, _)| *far <= FAR)
        .min()
        .map(|(_, name)| format!("{prefix}{name}"))
}

/// Letters to insert, remove or replace to make one text the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> KnobName {
        text.parse().unwrap()
    }

    #[test]
    fn every_entry_is_whole() {
        for spec in CATALOG {
            let pattern = spec.pattern();
            let of_server = matches!(spec.scope, ScopeKind::MySql | ScopeKind::Postgres);
            assert!(!spec.setting.is_empty() && spec.path.starts_with('/') != of_server, "{pattern}");
            assert!(spec.meaning.ends_with('.') && spec.meaning.len() > 20, "{pattern}: {}", spec.meaning);
            assert!(spec.trap.is_empty() || spec.trap.ends_with('.'), "{pattern}: {}", spec.trap);
            assert!(!spec.default.is_empty(), "{pattern}");
            assert_eq!(spec.path.contains("{}"), spec.scope != ScopeKind::Machine, "{pattern}");
            let sample =
                pattern.replace("DEV/bdi", "sda/bdi").replace("PATH", "/db.slice").replace("DEV", "8:0");
            let sample = sample.replace("SERVER", "root@/run/db.sock");
            assert_eq!(super::spec(&name(&sample)), Some(spec), "{sample}");
            for reset in spec.resets {
                let known = CATALOG.iter().find(|other| other.scope == spec.scope && other.setting == *reset);
                let known = known.unwrap_or_else(|| panic!("{pattern} resets {reset}, which is not there"));
                assert!(known.rank >= spec.rank, "{reset} would be written before {pattern} resets it");
            }
        }
        let mut names: Vec<String> = CATALOG.iter().map(Spec::pattern).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), CATALOG.len(), "a name occurs twice");
    }

    #[test]
    fn a_knob_has_a_file() {
        for (knob, file) in [
            ("vm.swappiness", "/proc/sys/vm/swappiness"),
            ("vm.dirty_bytes", "/proc/sys/vm/dirty"),
            ("sda/scheduler", "/sys/block/sda/queue/scheduler"),
            ("sda/iosched/fifo_batch", "/sys/block/sda/queue/iosched/fifo_batch"),
            ("sda/bdi/max_ratio", "/sys/block/sda/bdi/max_ratio"),
            ("bdi:0:44/max_ratio", "/sys/class/bdi/0:44/max_ratio"),
            ("cgroup:/db.slice/io.max/8:0/wbps", "/sys/fs/cgroup/db.slice/io.max"),
            ("cgroup:/memory.high", "/sys/fs/cgroup/memory.high"),
        ] {
            assert_eq!(path(&name(knob)).as_deref(), Some(file));
        }
        assert_eq!(path(&name("vm.nonsense")), None);
    }

    #[test]
    fn a_slip_finds_the_name_meant() {
        for (typed, meant) in [
            ("vm.swapiness", Some("vm.swappiness")),
            ("swappiness", Some("vm.swappiness")),
            ("sda/nr_request", Some("sda/nr_requests")),
            ("sda/schduler", Some("sda/scheduler")),
            ("sda/fifo_batch", Some("sda/iosched/fifo_batch")),
            ("sda/max_ratio", Some("sda/bdi/max_ratio")),
            ("scheduler", Some("DEV/scheduler")),
            ("mysql:/run/db.sock/innodb_io_capacty", Some("mysql:/run/db.sock/innodb_io_capacity")),
            ("checkpoint_tmeout", Some("checkpoint_timeout")),
            ("innodb_buffer_pool_size", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed).as_deref(), meant, "{typed}");
        }
    }
}
