//! The program that is copied to hosts: read, compressed and summed once for each architecture.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use weir_cli::failure::{lacking, usage};

/// The host reads whole blocks of this size, so that it reads nothing of what follows.
pub const BLOCK: usize = 64 << 10;

/// A longer file is no program of weir's.
const LONGEST_BYTES: u64 = 512 << 20;

/// A program, ready to be sent.
pub struct Payload {
    /// Where it was read.
    pub path: PathBuf,
    /// The architecture that it is for, as `uname -m` says it; absent for a script, which runs on any.
    pub architecture: Option<String>,
    /// Compressed, and filled up with zeros to whole blocks.
    pub packed: Vec<u8>,
    /// Size of the program.
    pub bytes: u64,
    /// SHA-256 of the program, in hex.
    pub sum: String,
}

impl Payload {
    /// The line that announces it.
    pub fn announcement(&self) -> String {
        format!("put {} {}\n", self.packed.len() / BLOCK, self.sum)
    }
}

/// Programs, at most one for each architecture.
pub struct Payloads(Vec<Payload>);

impl Payloads {
    /// Reads the programs that were named, or the `weir` beside this program.
    pub fn read(named: &[PathBuf]) -> anyhow::Result<Payloads> {
        let own = || std::env::current_exe().context("cannot find this program's own file");
        let paths = if named.is_empty() { vec![beside(&own()?)?] } else { named.to_vec() };
        let mut all: Vec<Payload> = Vec::new();
        for path in paths {
            let payload = read(&path)?;
            if let Some(other) = all.iter().find(|other| other.architecture == payload.architecture) {
                let (one, two) = (other.path.display(), path.display());
                return Err(usage(
                    format!("{one} and {two} are for the same architecture"),
                    "name one of them with --binary",
                ));
            }
            all.push(payload);
        }
        Ok(Payloads(all))
    }

    /// The program for a host that calls its architecture so.
    pub fn of(&self, architecture: &str) -> Option<&Payload> {
        let of_any = || self.0.iter().find(|payload| payload.architecture.is_none());
        self.0.iter().find(|payload| payload.architecture.as_deref() == Some(architecture)).or_else(of_any)
    }

    /// Space that the largest takes on a host, with the rest of what is put there.
    pub fn need_bytes(&self) -> u64 {
        self.0.iter().map(|payload| payload.bytes).max().unwrap_or_default() + (8 << 20)
    }

    /// The architectures that there are programs for.
    pub fn architectures(&self) -> String {
        let names: Vec<&str> =
            self.0.iter().map(|payload| payload.architecture.as_deref().unwrap_or("any")).collect();
        names.join(", ")
    }
}

/// The `weir` beside this program, where root or the caller alone can have put it: every host runs it, by `--sudo` as root.
fn beside(own: &Path) -> anyhow::Result<PathBuf> {
    let path = own.with_file_name("weir");
    weir_fs::lasting_chain(&path).map_err(|error| {
        lacking(
            format!("{} is not copied to hosts: {error}", path.display()),
            "name the weir to copy with --binary FILE",
        )
    })
}

fn read(path: &Path) -> anyhow::Result<Payload> {
    let unreadable = |error: std::io::Error| {
        lacking(
            format!("cannot read the program {}: {error}", path.display()),
            "name the weir to copy with --binary FILE",
        )
    };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(LONGEST_BYTES).read_to_end(&mut bytes)).map_err(unreadable)?;
    let architecture = architecture(&bytes).map_err(|why| {
        usage(
            format!("{} is not a program for Linux: {why}", path.display()),
            "--binary takes a weir built for the hosts",
        )
    })?;
    let sum = Sha256::digest(&bytes).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::new(6));
    encoder.write_all(&bytes)?;
    let mut packed = encoder.finish()?;
    packed.resize(packed.len().next_multiple_of(BLOCK), 0);
    Ok(Payload { path: path.to_path_buf(), architecture, packed, bytes: bytes.len() as u64, sum })
}

/// What `uname -m` says where this program runs; nothing for a script.
///
/// The header is that of the ELF specification: class at 4, byte order at 5, e_machine at 18.
fn architecture(bytes: &[u8]) -> Result<Option<String>, String> {
    if bytes.starts_with(b"#!") {
        return Ok(None);
    }
    let header =
        bytes.get(..20).filter(|header| header.starts_with(b"\x7fELF")).ok_or("it has no ELF header")?;
    let machine = match header[5] {
        1 => u16::from_le_bytes([header[18], header[19]]),
        _ => u16::from_be_bytes([header[18], header[19]]),
    };
    let name = match machine {
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv64",
        21 => "ppc64le",
        22 => "s390x",
        other => return Err(format!("its ELF machine is {other}")),
    };
    Ok(Some(name.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_names_the_architecture() {
        let elf = |machine: u8, order: u8| {
            let mut bytes = b"\x7fELF\x02".to_vec();
            bytes.push(order);
            bytes.resize(18, 0);
            bytes.extend(if order == 1 { [machine, 0] } else { [0, machine] });
            bytes
        };
        assert_eq!(architecture(&elf(62, 1)).unwrap().unwrap(), "x86_64");
        assert_eq!(architecture(&elf(183, 1)).unwrap().unwrap(), "aarch64");
        assert_eq!(architecture(&elf(22, 2)).unwrap().unwrap(), "s390x");
        assert_eq!(architecture(b"#!/bin/sh\n").unwrap(), None);
        for bad in [&b"MZ"[..], b"\x7fELF", &elf(3, 1)] {
            assert!(architecture(bad).is_err());
        }
    }

    #[test]
    fn root_a_weir_of_another_account_is_not_taken() {
        if !rustix::process::geteuid().is_root() {
            let _ = writeln!(
                std::io::stderr(),
                "not run: root_a_weir_of_another_account_is_not_taken lacks root"
            );
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (own, weir) = (folder.path().join("weir-fleet"), folder.path().join("weir"));
        std::fs::write(&weir, "#!/bin/sh\nexit 0\n").unwrap();
        std::fs::set_permissions(&weir, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(beside(&own).unwrap(), weir.canonicalize().unwrap());
        std::os::unix::fs::chown(&weir, Some(65534), None).unwrap();
        let error = beside(&own).unwrap_err().to_string();
        assert!(error.contains("is not copied to hosts") && error.contains("account 65534"), "{error}");
    }

    #[test]
    fn a_payload_is_whole_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weir");
        std::fs::write(&path, "#!/bin/sh\nexit 0\n").unwrap();
        let payloads = Payloads::read(std::slice::from_ref(&path)).unwrap();
        let payload = payloads.of("sparc").unwrap();
        assert_eq!((payload.packed.len(), payload.bytes), (BLOCK, 17));
        assert!(payload.announcement().starts_with("put 1 "), "{}", payload.announcement());
        assert!(Payloads::read(&[path.clone(), path]).is_err());
        assert!(Payloads::read(&[folder.path().join("gone")]).is_err());
    }
}
