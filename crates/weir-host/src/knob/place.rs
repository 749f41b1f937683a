//! Where a knob lies, and how its file is read and written.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_core::target::DeviceNumber;
use weir_knobs::{Kind, KnobName, Scope, ServerName, Setting, Value, catalog};

use super::servers;
use crate::block;
use crate::cgroup;
use crate::error::{BadLine, HostError};
use crate::host::Host;
use crate::tree::Tree;

/// What lifts a limit of cgroup version 1, of which the kernel then has no line.
const NO_LIMIT: i64 = 0;

/// Where a knob lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// Two files of which one zeroes the other.
    Pair { bytes: String, ratio: String },
    /// A file with one value, or with all choices and brackets around the one in force.
    Whole(String),
    /// One key of a device's line in a cgroup's file, `8:0 rbps=max wbps=1048576`, and what it is without a line.
    Keyed { file: String, device: DeviceNumber, key: String, unset: Value },
    /// A device's line in a cgroup's file of version 1, `8:0 1048576`; without a line there is no limit.
    Line { file: String, device: DeviceNumber },
    /// A cgroup's file whose first line is `default 100`.
    Default(String),
    /// A variable of a database server.
    Variable { server: ServerName, name: String },
}

impl Place {
    /// Where the knob lies on this machine.
    ///
    /// # Errors
    /// Not found: weir does not know the knob, or the machine has no such device, cgroup or hierarchy.
    pub fn of(tree: &Tree, knob: &KnobName) -> Result<Place, HostError> {
        if let Scope::Server(server) = &knob.scope {
            catalog::spec(knob).ok_or_else(|| unknown(knob))?;
            return Ok(Place::Variable { server: server.clone(), name: knob.setting.clone() });
        }
        let path = catalog::path(knob).ok_or_else(|| unknown(knob))?;
        if let Scope::Device(device) = &knob.scope
            && catalog::spec(knob).is_some_and(|spec| spec.of_requests)
            && tree.exists(&path)
            && !block::has_requests(tree, device)
        {
            let why = "it passes I/O on to the devices beneath, whose queues have this knob";
            return Err(not_found(tree.real(&path), why));
        }
        match &knob.scope {
            Scope::Cgroup(_) => in_cgroup(tree, knob, &path),
            Scope::Device(device) if knob.setting.starts_with("bdi/") => {
                Ok(Place::Whole(through_link(tree, device, path)))
            }
            _ if catalog::spec(knob).is_some_and(|spec| spec.kind == Kind::DirtyPair) => {
                Ok(Place::Pair { bytes: format!("{path}_bytes"), ratio: format!("{path}_ratio") })
            }
            _ => Ok(Place::Whole(with_star(tree, path))),
        }
    }

    /// The value in force.
    pub fn read(&self, tree: &Tree) -> Result<Value, HostError> {
        match self {
            // The kernel keeps the other of the pair at zero.
            Place::Pair { bytes, ratio } => match tree.value::<u64>(bytes)? {
                0 => Ok(Value::Ratio(tree.value(ratio)?)),
                in_force => Ok(Value::Bytes(in_force)),
            },
            Place::Whole(file) => tree.parsed(file, parse_whole),
            Place::Default(file) => tree.parsed(file, parse_default),
            Place::Variable { server, name } => servers::read(tree, server, name),
            Place::Keyed { file, device, key, unset } => tree
                .parsed(file, |text| Ok(parse_keyed(text, *device, key)?.unwrap_or_else(|| unset.clone()))),
            Place::Line { file, device } => tree.parsed(file, |text| parse_line(text, *device)),
        }
    }

    /// Writes a value, of a pair only the one that is to be in force. Whether it took is for the reader to say.
    pub fn write(&self, tree: &Tree, value: &Value) -> Result<(), HostError> {
        match (self, value) {
            (Place::Variable { server, name }, value) => return servers::write(tree, server, name, value),
            // The kernel clears the bytes only when the ratio changes, and it reads 0 while bytes are in force.
            (Place::Pair { ratio, .. }, Value::Ratio(0)) => put(tree, ratio, "1")?,
            _ => {}
        }
        put(tree, self.file(value), &self.text(value))
    }

    /// The words in which its file takes a value.
    fn text(&self, value: &Value) -> String {
        match (self, value) {
            (Place::Keyed { device, key, .. }, value) => format!("{device} {key}={value}"),
            (Place::Line { device, .. }, value) => format!("{device} {}", value.number().unwrap_or(NO_LIMIT)),
            (Place::Default(_), value) => format!("default {value}"),
            (_, value) => value.written(),
        }
    }

    /// The same. The kernel reclaims memory in the very write that lowers a cgroup's limit, for as long as those inside take more: it
    /// does so for this long.
    pub fn write_within(&self, tree: &Tree, value: &Value, patience: Duration) -> Result<(), HostError> {
        match self {
            Place::Whole(file) if file.rsplit('/').next().is_some_and(|name| name.starts_with("memory.")) => {
                let real = tree.real(file);
                put_apart(&real, &value.to_string(), patience).map_err(|error| HostError::io(&real, error))
            }
            _ => self.write(tree, value),
        }
    }

    /// The file that such a value is written to; of a server's variable, its name.
    pub fn file(&self, value: &Value) -> &str {
        match (self, value) {
            (Place::Pair { ratio, .. }, Value::Ratio(_)) => ratio,
            (Place::Pair { bytes: file, .. } | Place::Whole(file) | Place::Default(file), _)
            | (Place::Keyed { file, .. } | Place::Line { file, .. }, _) => file,
            (Place::Variable { name, .. }, _) => name,
        }
    }

    /// Whether root may write it at all.
    pub fn is_writable(&self, tree: &Tree, value: &Value) -> bool {
        if let Place::Variable { .. } = self {
            return true;
        }
        let real = tree.real(self.file(value));
        fs::metadata(real).is_ok_and(|data| data.permissions().mode() & 0o222 != 0)
    }

    /// Opens the file for writing and writes nothing: the kernel says here already what it would not allow.
    pub fn try_open(&self, tree: &Tree, value: &Value) -> Result<(), HostError> {
        if let Place::Variable { .. } = self {
            return self.read(tree).map(drop);
        }
        let real = tree.real(self.file(value));
        OpenOptions::new().write(true).open(&real).map(drop).map_err(|error| HostError::io(&real, error))
    }
}

/// The value of a knob, without what else is to be known of it.
pub(super) fn value(tree: &Tree, knob: &KnobName) -> Result<Value, HostError> {
    Place::of(tree, knob)?.read(tree)
}

/// The file that a setting goes to on this machine, and what is to be written there; `None` where it has no file.
pub fn written(host: &Host, setting: &Setting) -> Option<(String, String)> {
    let place = Place::of(&host.tree, &setting.knob).ok()?;
    let has_file = !matches!(place, Place::Variable { .. });
    has_file.then(|| (place.file(&setting.value).to_string(), place.text(&setting.value)))
}

fn put(tree: &Tree, path: &str, text: &str) -> Result<(), HostError> {
    let real = tree.real(path);
    let written = || OpenOptions::new().write(true).truncate(true).open(&real)?.write_all(text.as_bytes());
    written().map_err(|error| HostError::io(&real, error))
}

/// Writes by a process of its own, which is killed where that takes longer: the kernel has the value by then, and a signal ends what it does
/// with it.
fn put_apart(path: &Path, text: &str, patience: Duration) -> io::Result<()> {
    const POLL: Duration = Duration::from_millis(2);
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the child makes system calls alone, on memory that it has a copy of.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above. Nothing of this process stays open in it, such as a lock.
        unsafe {
            let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_TRUNC);
            let is_written = file >= 0
                && libc::dup2(file, 0) == 0
                && libc::syscall(libc::SYS_close_range, 1 as libc::c_uint, libc::c_uint::MAX, 0) == 0
                && libc::write(0, text.as_ptr().cast(), text.len()) == text.len() as isize;
            libc::_exit(if is_written {
                0
            } else {
                io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
            });
        }
    }
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    let (begun, mut status, mut is_killed) = (Instant::now(), 0, false);
    // SAFETY: a child of ours that nobody else waits for; the status is written to.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if begun.elapsed() > patience * 2 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if begun.elapsed() > patience && !is_killed {
            // SAFETY: takes numbers; it has not been waited for, so the number is its.
            is_killed = unsafe { libc::kill(child, libc::SIGKILL) } == 0;
        }
        std::thread::sleep(POLL);
    }
    match libc::WEXITSTATUS(status) {
        error if libc::WIFEXITED(status) && error != 0 => Err(io::Error::from_raw_os_error(error)),
        _ => Ok(()),
    }
}

fn unknown(knob: &KnobName) -> HostError {
    not_found(PathBuf::from(knob.to_string()), "weir knows no such knob")
}

fn not_found(path: PathBuf, why: &str) -> HostError {
    HostError::Io { path, error: io::Error::new(io::ErrorKind::NotFound, why) }
}

/// A captured tree may have lost the link from the device to its bdi; the device's number names it too.
fn through_link(tree: &Tree, device: &str, path: String) -> String {
    if tree.exists(&path) {
        return path;
    }
    let link = tree.link_name(&format!("/sys/block/{device}/bdi"));
    let name = link.or_else(|| block::number_of(tree, device).ok().map(|number| number.to_string()));
    let setting = path.rsplit('/').next().unwrap_or_default();
    name.map_or(path.clone(), |name| format!("/sys/class/bdi/{name}/{setting}"))
}

/// A `*` stands for the only entry of its folder.
fn with_star(tree: &Tree, path: String) -> String {
    let Some((folder, rest)) = path.split_once("/*") else { return path };
    match tree.names(folder).first() {
        Some(name) => format!("{folder}/{name}{rest}"),
        None => path,
    }
}

fn in_cgroup(tree: &Tree, knob: &KnobName, path: &str) -> Result<Place, HostError> {
    let is_of_version_1 = knob.setting.starts_with("blkio.");
    let mount =
        if is_of_version_1 { cgroup::mount_of_blkio(tree)? } else { cgroup::mount_of_version_2(tree)? };
    let file = path.replacen("/sys/fs/cgroup", &mount.mount_point, 1);
    let mut parts = knob.setting.split('/').skip(1);
    match (parts.next(), parts.next()) {
        (None, _) if knob.setting == "io.weight" => Ok(Place::Default(file)),
        (None, _) => Ok(Place::Whole(file)),
        (Some(device), key) => {
            let device = match DeviceNumber::parse(device) {
                Some(number) => number,
                None => block::number_of(tree, device)?,
            };
            if is_of_version_1 {
                return Ok(Place::Line { file, device });
            }
            let unset = if knob.setting.starts_with("io.max/") {
                Value::Word("max".into())
            } else {
                Value::Number(0)
            };
            Ok(Place::Keyed { file, device, key: key.unwrap_or_default().to_string(), unset })
        }
    }
}

/// The words of a file that shows all it may hold, `none [mq-deadline] kyber`; `None` where it shows only one value.
pub(crate) fn parse_choices(text: &str) -> Option<Vec<String>> {
    let bare = |word: &str| word.trim_start_matches('[').trim_end_matches(']').to_string();
    text.contains('[').then(|| text.split_whitespace().map(bare).collect())
}

/// A number, a word, or the word in brackets.
pub(crate) fn parse_whole(text: &str) -> Result<Value, BadLine> {
    let text = text.trim();
    let chosen = match text.split_once('[') {
        Some((_, rest)) => rest.split_once(']').map(|(word, _)| word),
        None => Some(text),
    };
    match chosen.filter(|word| !word.is_empty()) {
        Some(word) => Ok(word.parse().map_or_else(|_| Value::Word(word.to_string()), Value::Number)),
        None => Err(BadLine::new(1, "a value", text)),
    }
}

/// `default 100`, then lines for single devices.
pub(crate) fn parse_default(text: &str) -> Result<Value, BadLine> {
    let value = text.lines().find_map(|line| line.strip_prefix("default ")?.trim().parse().ok());
    value
        .map(Value::Number)
        .ok_or_else(|| BadLine::new(1, "default NUMBER", text.lines().next().unwrap_or_default()))
}

/// A device's limit in a file of version 1.
pub(crate) fn parse_line(text: &str, device: DeviceNumber) -> Result<Value, BadLine> {
    const LIMIT: &str = "limit";
    let limits = cgroup::parse_device_limits(text, LIMIT)?;
    let limit = limits.get(&device).and_then(|limits| i64::try_from(*limits.get(LIMIT)?).ok());
    Ok(limit.filter(|limit| *limit != NO_LIMIT).map_or_else(|| Value::Word("max".into()), Value::Number))
}

/// One key of one device's line; `None` where the device has no line, or the line no such key.
pub(crate) fn parse_keyed(text: &str, device: DeviceNumber, key: &str) -> Result<Option<Value>, BadLine> {
    for (index, line) in text.lines().enumerate() {
        let bad = || BadLine::new(index + 1, "MAJOR:MINOR KEY=VALUE…", line);
        let mut words = line.split_whitespace();
        if words.next().and_then(DeviceNumber::parse).ok_or_else(bad)? != device {
            continue;
        }
        let values = words.map(|word| word.split_once('=').ok_or_else(bad)).collect::<Result<Vec<_>, _>>()?;
        let found = values.into_iter().find(|(name, _)| *name == key);
        return found.map(|(_, value)| parse_whole(value)).transpose();
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel may while it reclaims memory; a FIFO's opening waits as well.
    #[test]
    fn a_limit_of_memory_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, file) = (folder.path().join("memory.high"), folder.path().join("memory.max"));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        assert!(put_apart(&fifo, "max", Duration::from_millis(100)).is_ok());
        fs::write(&file, "").unwrap();
        assert!(put_apart(&file, "5000", Duration::from_secs(20)).is_ok());
        assert_eq!(fs::read_to_string(&file).unwrap(), "5000");
        let missing = put_apart(&folder.path().join("gone"), "max", Duration::from_secs(20)).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
