//! The cgroups of this process: what limits its memory, CPU and I/O.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use weir_core::target::{Cgroup, DeviceNumber, Layer, Throttle};

use crate::error::{BadLine, HostError};
use crate::host::Host;
use crate::mounts::{self, Mount};
use crate::tree::{Tree, noted};

/// Files that limit something, by hierarchy. The v1 throttles are read apart, because they are per device.
const LIMITS_V2: [&str; 7] =
    ["memory.max", "memory.high", "memory.swap.max", "cpu.max", "io.max", "io.latency", "io.prio.class"];
const LIMITS_V1: [&str; 7] = [
    "memory.limit_in_bytes",
    "cpu.cfs_quota_us",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
    "blkio.latency",
];

/// The controller of block devices, by its name in version 1.
pub(crate) const BLKIO: &str = "blkio";

/// A cgroup of this process in one hierarchy, and the folders from its own up to the topmost visible one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Membership {
    version: u8,
    controllers: String,
    path: String,
    /// (path in the hierarchy, folder), own cgroup first.
    folders: Vec<(String, String)>,
}

/// One line of `/proc/self/cgroup`: `7:blkio:/x` (v1), `0::/x` (v2).
pub(crate) fn parse(text: &str) -> Result<Vec<(String, String)>, BadLine> {
    let line = |(index, line): (usize, &str)| {
        let mut fields = line.splitn(3, ':').skip(1).map(str::to_string);
        let pair = fields.next().zip(fields.next()).filter(|(_, path)| path.starts_with('/'));
        pair.ok_or_else(|| BadLine::new(index + 1, "ID:CONTROLLERS:/PATH", line))
    };
    text.lines().enumerate().map(line).collect()
}

/// Where this process stands in the hierarchies that can limit memory, CPU or I/O.
pub(crate) fn memberships(tree: &Tree, mounts: &[Mount], notes: &mut Vec<String>) -> Vec<Membership> {
    stands(tree, "/proc/self/cgroup", mounts, notes)
}

/// The same for another process.
pub(crate) fn memberships_of(
    tree: &Tree,
    process: u32,
    mounts: &[Mount],
    notes: &mut Vec<String>,
) -> Vec<Membership> {
    stands(tree, &format!("/proc/{process}/cgroup"), mounts, notes)
}

fn stands(tree: &Tree, file: &str, mounts: &[Mount], notes: &mut Vec<String>) -> Vec<Membership> {
    let lines = noted(tree.parsed(file, parse), notes).unwrap_or_default();
    let mut found = Vec::new();
    for (controllers, path) in lines {
        let version = if controllers.is_empty() { 2 } else { 1 };
        let limiting = controllers.split(',').any(|c| ["memory", "cpu", BLKIO].contains(&c));
        if version == 1 && !limiting {
            continue;
        }
        match mount_of(mounts, version, &controllers) {
            Some(mount) => {
                let folders = folders(mount, &path);
                found.push(Membership { version, controllers, path, folders });
            }
            None => notes
                .push(format!("cgroup v{version} {controllers} {path}: its hierarchy is not mounted here")),
        }
    }
    found
}

/// Where version 2 is mounted.
///
/// # Errors
/// Not found, where it is not; or mounts cannot be read.
pub(crate) fn mount_of_version_2(tree: &Tree) -> Result<Mount, HostError> {
    mounted(tree, 2, "", "cgroup version 2 is not mounted")
}

/// Where version 1 has its controller of block devices.
///
/// # Errors
/// Not found, where it has none; or mounts cannot be read.
pub(crate) fn mount_of_blkio(tree: &Tree) -> Result<Mount, HostError> {
    mounted(tree, 1, BLKIO, "no cgroup version 1 with blkio is mounted")
}

impl Host {
    /// See [`mount_of_version_2`]. It is looked for once: any account that may mount makes the table of mounts as long as it likes.
    pub(crate) fn mount_of_version_2(&self) -> Result<Mount, HostError> {
        found_once(&self.cgroup_mounts[0], || mount_of_version_2(&self.tree))
    }

    /// The same of [`mount_of_blkio`].
    pub(crate) fn mount_of_blkio(&self) -> Result<Mount, HostError> {
        found_once(&self.cgroup_mounts[1], || mount_of_blkio(&self.tree))
    }
}

fn found_once(
    cell: &OnceLock<Mount>,
    find: impl FnOnce() -> Result<Mount, HostError>,
) -> Result<Mount, HostError> {
    match cell.get() {
        Some(found) => Ok(found.clone()),
        None => find().inspect(|found| _ = cell.set(found.clone())),
    }
}

fn mounted(tree: &Tree, version: u8, controllers: &str, why: &str) -> Result<Mount, HostError> {
    let mounts = tree.parsed("/proc/self/mountinfo", mounts::parse)?;
    let absent = || std::io::Error::new(std::io::ErrorKind::NotFound, why);
    let mount = mount_of(&mounts, version, controllers).cloned();
    mount.ok_or_else(|| HostError::io(&tree.real("/sys/fs/cgroup"), absent()))
}

fn mount_of<'a>(mounts: &'a [Mount], version: u8, controllers: &str) -> Option<&'a Mount> {
    if version == 2 {
        return mounts.iter().find(|mount| mount.kind == "cgroup2");
    }
    let first = controllers.split(',').next()?;
    mounts.iter().find(|m| m.kind == "cgroup" && m.super_options.iter().any(|option| option == first))
}

/// From the cgroup up to the root of the mount. In a container the mount may show a part of the hierarchy only; a
/// cgroup outside of it (`/../x`, or a sibling whose name begins alike) has no folder here.
pub(crate) fn folders(mount: &Mount, path: &str) -> Vec<(String, String)> {
    let below = path.strip_prefix(mount.root.trim_end_matches('/'));
    let Some(below) = below.filter(|below| below.is_empty() || below.starts_with('/')) else {
        return Vec::new();
    };
    let below = below.trim_end_matches('/');
    if below.split('/').any(|part| part == "..") {
        return Vec::new();
    }
    let mut folders = Vec::new();
    let mut rest = below;
    loop {
        let name = if rest.is_empty() { "/" } else { rest };
        folders.push((name.to_string(), format!("{}{rest}", mount.mount_point)));
        match rest.rfind('/') {
            Some(slash) => rest = &rest[..slash],
            None => return folders,
        }
    }
}

/// The limits in force in each hierarchy.
pub(crate) fn limits(tree: &Tree, memberships: &[Membership]) -> Vec<Cgroup> {
    let cgroup = |member: &Membership| {
        let files: &[&str] = if member.version == 2 { &LIMITS_V2 } else { &LIMITS_V1 };
        let mut limits = BTreeMap::new();
        for (path, folder) in &member.folders {
            for file in files {
                let text = tree.line(&format!("{folder}/{file}")).filter(|text| is_a_limit(text));
                limits.extend(text.map(|text| (format!("{path} {file}"), text)));
            }
        }
        let (version, controllers) = (member.version, member.controllers.clone());
        Cgroup { version, controllers, path: member.path.clone(), limits }
    };
    memberships.iter().map(cgroup).collect()
}

/// Whether the text says anything but "no limit": `max`, `-1`, or v1's largest number of bytes in whole pages.
pub(crate) fn is_a_limit(text: &str) -> bool {
    let no_limit = ["max", "-1", "no-change"].contains(&text.split(' ').next().unwrap_or_default());
    !no_limit && !text.parse::<u64>().is_ok_and(|n| n >= i64::MAX as u64 - 65536)
}

/// Limits on devices of the stack: of the own cgroup and its parents in v2; in v1, where a parent's limits do not
/// reach its children, of the own cgroup and of the root, to which buffered writeback belongs there.
pub(crate) fn throttles(
    tree: &Tree,
    memberships: &[Membership],
    stack: &[Layer],
) -> (Vec<Throttle>, Vec<String>) {
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for member in memberships {
        let last = member.folders.len().saturating_sub(1);
        for (index, (path, folder)) in member.folders.iter().enumerate() {
            if member.version == 1 && index != 0 && index != last {
                continue;
            }
            for (number, limits) in device_limits(tree, member.version, folder, &mut notes) {
                let device =
                    stack.iter().find(|layer| layer.number == number).map(|layer| layer.name.clone());
                let (cgroup, version) = (path.clone(), member.version);
                found.extend(device.map(|device| Throttle { cgroup, version, device, limits }));
            }
        }
    }
    (found, notes)
}

pub(crate) type DeviceLimits = BTreeMap<DeviceNumber, BTreeMap<String, u64>>;

/// Limits in one cgroup's folder, by device.
fn device_limits(tree: &Tree, version: u8, folder: &str, notes: &mut Vec<String>) -> DeviceLimits {
    const FILES_V1: [(&str, &str); 4] = [
        ("blkio.throttle.read_bps_device", "rbps"),
        ("blkio.throttle.write_bps_device", "wbps"),
        ("blkio.throttle.read_iops_device", "riops"),
        ("blkio.throttle.write_iops_device", "wiops"),
    ];
    const FILES_V2: [(&str, &str); 2] = [("io.max", ""), ("io.latency", "")];
    let files: &[(&str, &str)] = if version == 1 { &FILES_V1 } else { &FILES_V2 };
    let mut all = DeviceLimits::new();
    for (file, key) in files {
        let parsed = tree.parsed(&format!("{folder}/{file}"), |text| parse_device_limits(text, key));
        for (number, limits) in noted(parsed, notes).unwrap_or_default() {
            all.entry(number).or_default().extend(limits);
        }
    }
    all
}

/// `254:0 1048576` (v1, what it limits is `key`) or `254:0 rbps=max wbps=1048576` and `254:0 target=50000` (v2).
pub(crate) fn parse_device_limits(text: &str, key: &str) -> Result<DeviceLimits, BadLine> {
    let mut all = DeviceLimits::new();
    for (index, line) in text.lines().enumerate() {
        let bad = |found: &str| BadLine::new(index + 1, "MAJOR:MINOR and limits", found);
        let mut words = line.split_whitespace();
        let number = words.next().and_then(DeviceNumber::parse).ok_or_else(|| bad(line))?;
        let mut limits = BTreeMap::new();
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((key, word));
            let name = if name == "target" { "latency_us" } else { name };
            if value != "max" {
                limits.insert(name.to_string(), value.parse().map_err(|_| bad(word))?);
            }
        }
        if !limits.is_empty() {
            all.insert(number, limits);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_limits_of_both_versions_parse() {
        let number = DeviceNumber { major: 7, minor: 0 };
        let limit = |text, key| parse_device_limits(text, key).map(|all| all.get(&number).cloned());
        let v1 = limit("7:0 1048576\n", "wbps").unwrap().unwrap();
        assert_eq!(v1["wbps"], 1_048_576);
        let v2 = limit("8:0 rbps=1\n7:0 rbps=max wbps=2097152 riops=max wiops=300\n", "").unwrap().unwrap();
        assert_eq!((v2.len(), v2["wbps"], v2["wiops"]), (2, 2_097_152, 300));
        assert_eq!(limit("7:0 target=50000", "").unwrap().unwrap()["latency_us"], 50_000);
        assert_eq!(limit("", "rbps").unwrap(), None);
        assert_eq!(limit("7:0 rbps=1\n7-0 x", "").unwrap_err().line, 2);
        assert!(limit("7:0 wbps=lots", "").unwrap_err().item.contains("wbps=lots"));
    }

    #[test]
    fn folders_lead_up_to_the_root_of_the_mount() {
        let mount = |root: &str| {
            let line = format!("38 31 0:35 {root} /sys/fs/cgroup rw - cgroup2 cgroup2 rw");
            crate::mounts::parse(&line).unwrap().remove(0)
        };
        let names = |root: &str, path: &str| -> Vec<String> {
            folders(&mount(root), path).into_iter().map(|(_, folder)| folder).collect()
        };
        assert_eq!(names("/", "/"), ["/sys/fs/cgroup"]);
        assert_eq!(names("/", "/a/b"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        assert_eq!(names("/docker/c1", "/docker/c1/x"), ["/sys/fs/cgroup/x", "/sys/fs/cgroup"]);
        assert!(names("/", "/../../x").is_empty());
        assert_eq!(names("/docker/c1", "/docker/c1"), ["/sys/fs/cgroup"]);
        // Others' cgroups, whose names begin alike, or who lie elsewhere, are not in that part of the hierarchy.
        for path in ["/docker/c10", "/docker/c1-x/y", "/docker", "/", "/user.slice"] {
            assert!(names("/docker/c1", path).is_empty(), "{path}");
        }
        // Two dots may begin a name.
        assert_eq!(names("/", "/..a"), ["/sys/fs/cgroup/..a", "/sys/fs/cgroup"]);
        assert_eq!(parse("7:blkio:/a\n0::/b:c\n").unwrap()[1].1, "/b:c");
        assert_eq!(parse("7:blkio:/a\n0:x\n").unwrap_err().line, 2);
    }

    #[test]
    fn no_limit_is_no_limit() {
        for (text, limit) in [
            ("max", false),
            ("max 100000", false),
            ("-1", false),
            ("9223372036854771712", false),
            ("536870912", true),
            ("50000 100000", true),
            ("8:0 rbps=1048576", true),
        ] {
            assert_eq!(is_a_limit(text), limit, "{text}");
        }
    }
}
