//! The recorder as a service of systemd: one unit. Its first line holds a sum of the rest, so that a unit that was changed since
//! is known and left alone.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use weir_fs::{Dir, Root};
use weir_host::knob::fnv1a;

use crate::failure::Lacking;

/// Where the unit lies.
pub const PATH: &str = "/etc/systemd/system/weir-recorder.service";
/// Its name.
pub const NAME: &str = "weir-recorder.service";
/// The longest unit that is read.
const LONGEST_BYTES: u64 = 1 << 20;
const MARK: &str = "# Written by `weir recorder install`; `weir recorder uninstall` takes it away. Sum: ";

/// Those that load programs into the kernel and read its symbols, and those that see other users' processes
/// (capabilities(7)). Without CAP_SYS_ADMIN the place of a wait is known when it ends, and not before (`/proc/PID/stack`).
const CAPABILITIES: &str = "CAP_BPF CAP_PERFMON CAP_SYSLOG CAP_SYS_PTRACE CAP_DAC_READ_SEARCH";

/// The unit that runs a program with these options.
pub fn unit(program: &Path, options: &[String]) -> String {
    let words: Vec<String> = [program.display().to_string(), "recorder".into(), "run".into()]
        .into_iter()
        .chain(options.iter().cloned())
        .map(|text| word(&text))
        .collect();
    let command = words.join(" ");
    let text = format!(
        "\
[Unit]
Description=weir recorder: what storage and syncs did, kept for looking back
After=local-fs.target

[Service]
Type=exec
ExecStart={command}
Restart=on-failure
RestartSec=10
# A recorder that is told to end says by which signal.
SuccessExitStatus=143
# It closes its segment first; the journal holds what it could not.
TimeoutStopSec=60
KillMode=mixed
StateDirectory=weir/recorder
StateDirectoryMode=0700
# What is watched comes first.
Nice=5
IOSchedulingClass=idle
MemoryMax=256M
TasksMax=32
LimitCORE=0

CapabilityBoundingSet={CAPABILITIES}
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
DevicePolicy=closed
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectClock=yes
ProtectHostname=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=bpf perf_event_open
SystemCallErrorNumber=EPERM
UMask=0077

[Install]
WantedBy=multi-user.target
"
    );
    format!("{MARK}{:016x}\n{text}", fnv1a(text.as_bytes()))
}

/// A word as systemd reads it in a command: quoted where it must be, without specifiers and variables.
fn word(text: &str) -> String {
    let text = text.replace('%', "%%").replace('$', "$$");
    if text.contains([' ', '"', '\\', '\'', ';']) {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        text
    }
}

/// Whether a unit is as weir wrote it.
fn is_ours(text: &str) -> bool {
    let parts = text.strip_prefix(MARK).and_then(|rest| rest.split_once('\n'));
    parts.is_some_and(|(said, rest)| said == format!("{:016x}", fnv1a(rest.as_bytes())))
}

/// What is at the unit's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum There {
    /// Nothing.
    Nothing,
    /// The unit as weir wrote it.
    Ours,
    /// Another one, or weir's, changed.
    Others,
}

/// The place of the unit on the machine, or in a folder such as that of an image.
pub struct Place(Root);

impl Place {
    /// Opens it.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn open(folder: Option<&Path>) -> anyhow::Result<Place> {
        let named = folder.unwrap_or(Path::new("/")).display();
        Ok(Place(Root::open(folder).with_context(|| format!("cannot open {named}"))?))
    }

    /// The unit's path.
    pub fn path(&self) -> PathBuf {
        self.0.under(Path::new(PATH))
    }

    /// What is there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn there(&self) -> anyhow::Result<There> {
        let read = self.folder().and_then(|folder| folder.read(NAME, LONGEST_BYTES));
        match read {
            Ok(bytes) if is_ours(&String::from_utf8_lossy(&bytes)) => Ok(There::Ours),
            Ok(_) => Ok(There::Others),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(There::Nothing),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", self.path().display())),
        }
    }

    /// Writes the unit, in place of one that weir wrote.
    ///
    /// # Errors
    /// When another one is there, or it cannot be written.
    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        if self.there()? == There::Others {
            let what = format!("{} is there already and not as weir wrote it", self.path().display());
            return Err(Lacking { what, hint: Some("move it away; nothing was written".to_string()) }.into());
        }
        let above = Path::new(PATH).parent().unwrap_or(Path::new("/"));
        let written = || -> io::Result<()> {
            self.0.folder_or_make(above, &mut |_| {})?;
            let mut fresh = self.folder()?.beside(NAME, 0o600)?;
            fresh.write_all(text.as_bytes())?;
            fresh.chmod(0o644)?;
            fresh.commit()
        };
        written().with_context(|| format!("cannot write {}", self.path().display()))
    }

    /// Removes the unit.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self) -> anyhow::Result<()> {
        let removed = self.folder().and_then(|folder| folder.remove_file(NAME));
        removed.with_context(|| format!("cannot remove {}", self.path().display()))
    }

    fn folder(&self) -> io::Result<Dir> {
        self.0.folder(Path::new(PATH).parent().unwrap_or(Path::new("/")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_and_nothing_of_others_is_touched() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::open(Some(dir.path())).unwrap();
        assert_eq!(place.there().unwrap(), There::Nothing);
        let text = unit(Path::new("/usr/local/bin/weir"), &["--interval".into(), "5s".into()]);
        place.write(&text).unwrap();
        place.write(&unit(Path::new("/opt/my weir"), &[])).unwrap();
        assert_eq!(place.there().unwrap(), There::Ours);
        let path = dir.path().join("etc/systemd/system/weir-recorder.service");
        assert!(
            std::fs::read_to_string(&path).unwrap().contains("ExecStart=\"/opt/my weir\" recorder run\n")
        );
        std::fs::write(&path, text.replace("Nice=5", "Nice=6")).unwrap();
        assert_eq!(place.there().unwrap(), There::Others);
        assert!(place.write(&text).unwrap_err().to_string().contains("not as weir wrote it"));
        std::fs::write(&path, &text).unwrap();
        place.remove().unwrap();
        assert_eq!(place.there().unwrap(), There::Nothing);
    }
}
