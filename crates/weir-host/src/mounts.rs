//! `/proc/self/mountinfo`, described in proc_pid_mountinfo(5).

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use weir_core::target::DeviceNumber;

use crate::error::{BadLine, HostError};
use crate::tree::Tree;

/// One mount, as this process sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// No two mounts of the machine have one at the same time.
    pub id: u64,
    pub number: DeviceNumber,
    /// Folder of the file system that is mounted.
    pub root: String,
    pub mount_point: String,
    pub mount_options: Vec<String>,
    pub kind: String,
    pub source: String,
    pub super_options: Vec<String>,
}

impl Mount {
    /// Options of the mount, then of the file system, each once.
    pub fn options(&self) -> Vec<String> {
        let mut all = self.mount_options.clone();
        let more = self.super_options.iter().filter(|option| !self.mount_options.contains(option));
        all.extend(more.cloned());
        all
    }

    /// Whether the file system is mounted for writing. One mount of it may be read-only, as all are that a service with
    /// `ProtectSystem=strict` sees (systemd.exec(5)): other processes write to the same file system all the same.
    pub fn is_written(&self) -> bool {
        !self.super_options.iter().any(|option| option == "ro")
    }

    /// Whether this process may write through this mount.
    pub fn takes_writes(&self) -> bool {
        self.is_written() && !self.mount_options.iter().any(|option| option == "ro")
    }

    /// The value of `key=value` among the file system's options.
    pub fn super_option(&self, key: &str) -> Option<&str> {
        self.super_options.iter().find_map(|option| option.strip_prefix(key)?.strip_prefix('='))
    }
}

/// All mounts, in the kernel's order: a later one at the same place covers an earlier one.
pub(crate) fn parse(text: &str) -> Result<Vec<Mount>, BadLine> {
    text.lines().enumerate().map(|(index, line)| parse_line(index + 1, line)).collect()
}

/// The most that is read of the mounts of another process: a container may have a hundred thousand, with paths as it likes.
const FOREIGN_MAX: u64 = 16 << 20;

/// The mount of an id among those that a process (`self`, or its number) sees; `None` where it is not among them, or comes after
/// more than is read.
pub(crate) fn of_process(tree: &Tree, process: &str, id: u64) -> Result<Option<Mount>, HostError> {
    let path = tree.real(&format!("/proc/{process}/mountinfo"));
    let failed = |error| HostError::io(&path, error);
    let mut lines = BufReader::new(File::open(&path).map_err(failed)?.take(FOREIGN_MAX));
    let id = id.to_string();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if lines.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if text.split(' ').next() == Some(&id) {
            return parse_line(number, text.trim_end_matches('\n')).map(Some).map_err(|bad| bad.at(&path));
        }
    }
    Ok(None)
}

fn parse_line(number: usize, line: &str) -> Result<Mount, BadLine> {
    let bad = |expected: &str| BadLine::new(number, expected, line);
    let fields: Vec<&str> = line.split(' ').collect();
    // Between the sixth field and a lone hyphen lie any number of optional fields.
    let hyphen = fields.iter().position(|f| *f == "-").filter(|at| *at >= 6);
    let after = &fields[hyphen.ok_or_else(|| bad("a hyphen after the sixth field"))? + 1..];
    let [kind, source, super_options] = after else {
        return Err(bad("type, source and options after the hyphen"));
    };
    Ok(Mount {
        id: fields[0].parse().map_err(|_| BadLine::new(number, "the id of a mount", fields[0]))?,
        number: DeviceNumber::parse(fields[2])
            .ok_or_else(|| BadLine::new(number, "major:minor", fields[2]))?,
        root: unescape(fields[3]),
        mount_point: unescape(fields[4]),
        mount_options: options(fields[5]),
        kind: unescape(kind),
        source: unescape(source),
        super_options: options(super_options),
    })
}

fn options(field: &str) -> Vec<String> {
    field.split(',').filter(|option| !option.is_empty()).map(unescape).collect()
}

/// Space, tab, newline and backslash arrive as `\040`, `\011`, `\012`, `\134` (and `#` as `\043` in some kernels).
pub(crate) fn unescape(field: &str) -> String {
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\').and_then(octal_byte);
        out.push(octal.unwrap_or(bytes[at]));
        at += if octal.is_some() { 4 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn octal_byte(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

/// The mount that holds `path`, as far as names tell: the longest mount point that is a prefix of it, the latest of
/// equals. A longer one may be hidden beneath another mount.
pub(crate) fn holding<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.mount_point));
    above.max_by_key(|mount| mount.mount_point.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
28 27 8:1 / /srv rw,noatime shared:1 master:2 - xfs /dev/sda1 rw,logbsize=32k,noatime
29 28 8:2 /db /srv/my\\040data\\134x rw - ext4 /dev/sda2 rw,data=ordered
30 27 0:40 /@home /home rw - btrfs /dev/sdb1 rw,subvolid=256,subvol=/@home
31 27 8:3 / /srv rw - ext4 /dev/sda3 rw
";

    #[test]
    fn a_path_finds_its_mount() {
        let mounts = parse(TEXT).unwrap();
        for (path, source) in [
            ("/", "/dev/vda"),
            ("/srvx/y", "/dev/vda"),
            // The later mount at the same place covers the earlier one.
            ("/srv/y", "/dev/sda3"),
            ("/srv/my data\\x/file", "/dev/sda2"),
        ] {
            let found = holding(&mounts, Path::new(path)).unwrap();
            assert_eq!(found.source, source, "{path}");
        }
        assert_eq!(mounts[1].options(), ["rw", "noatime", "logbsize=32k"]);
        assert_eq!(mounts[3].super_option("subvol"), Some("/@home"));
        assert_eq!(mounts[3].super_option("sub"), None);
    }

    #[test]
    fn damaged_lines_are_named() {
        for (text, line, item) in [
            ("27 1 254:0 / / rw,relatime ext4 /dev/vda rw", 1, "a hyphen after the sixth field"),
            ("27 1 254:0 / / rw - ext4 /dev/vda", 1, "type, source and options"),
            (&TEXT.replace("8:2", "eight"), 3, "expected major:minor, got `eight`"),
            (&TEXT.replace("29 28", "x 28"), 3, "expected the id of a mount, got `x`"),
            ("\n", 1, "a hyphen"),
        ] {
            let bad = parse(text).unwrap_err();
            assert!(bad.line == line && bad.item.contains(item), "{text}: {bad:?}");
        }
    }

    #[test]
    fn of_a_process_with_many_mounts_a_part_is_read() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/7")).unwrap();
        let far = "99 27 8:9 / /far rw - ext4 /dev/sdz rw\n";
        let filler = format!("50 27 0:40 / /{} rw - tmpfs none rw\n", "x".repeat(4000)).repeat(5000);
        std::fs::write(root.path().join("proc/7/mountinfo"), format!("{TEXT}{filler}{far}")).unwrap();
        let tree = Tree::new(root.path());
        let source = |id| of_process(&tree, "7", id).unwrap().map(|mount| mount.source);
        assert_eq!(source(28).as_deref(), Some("/dev/sda1"));
        assert_eq!(source(2), None);
        assert_eq!(source(99), None, "beyond what is read");
        assert!(of_process(&tree, "8", 28).is_err());
    }
}
