//! weir-fleet against hosts that are folders of this machine, and (as root) against sshd in network namespaces.
#![allow(
    clippy::unwrap_used,
    reason = "test code throughout; clippy knows that only of functions under #[test]"
)]

mod bucket;
mod engines;
mod hostile;
mod pages;
mod peers;
mod rollout;
mod runs;
mod servers;
mod spark;
mod sshd;
mod stops;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A file's permission bits.
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A folder in which each host has its own.
struct Hosts(TempDir);

impl Hosts {
    fn new() -> Hosts {
        Hosts(tempfile::tempdir().unwrap())
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// Writes a file into a host's folder.
    fn set(&self, host: &str, file: &str, text: &str) {
        let path = self.path(host).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program that a host has instead of its own.
    fn program(&self, host: &str, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        self.set(host, &format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(host).join("bin").join(name), fs::Permissions::from_mode(0o755))
            .unwrap();
    }

    fn has(&self, host: &str, file: &str) -> bool {
        self.path(host).join(file).exists()
    }

    /// `weir-fleet run` with the stand-ins for ssh and weir.
    fn fleet(&self, arguments: &[&str]) -> Command {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet");
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-fleet"));
        command
            .env("WEIR_FLEET_SSH", beside.join("ssh"))
            .env("FLEET_TEST", self.0.path())
            .env("WEIR_FLEET", self.path("results"));
        command.arg("run").arg("--binary").arg(beside.join("weir")).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.fleet(arguments).output().unwrap())
    }

    /// Folders that were left on hosts.
    fn left(&self) -> Vec<PathBuf> {
        let hosts = fs::read_dir(self.0.path()).unwrap().flatten().filter(|entry| entry.path().is_dir());
        let below =
            hosts.flat_map(|host| fs::read_dir(host.path()).unwrap().flatten().map(|entry| entry.path()));
        below.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("weir-fleet.")).collect()
    }

    /// Files that were pulled, below the folder of results, without summaries.
    fn pulled(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut open = vec![self.path("results")];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => open.push(entry.path()),
                    false => files
                        .push(entry.path().strip_prefix(self.path("results")).unwrap().display().to_string()),
                }
            }
        }
        files.retain(|file| !file.starts_with("runs/"));
        files.sort();
        files
    }
}

/// How it ended.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn of(output: Output) -> Ran {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Checks the exit code, and that words stand in the table.
    fn says(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        for word in words {
            assert!(self.out.contains(word), "{word:?} is not in\n{}\n{}", self.out, self.err);
        }
    }
}
