//! Variables, home and files around a command: tests point them elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::server::Authorities;

/// Where credentials are looked for.
#[derive(Debug, Clone)]
pub struct Around {
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// What stands for `/`.
    pub root: PathBuf,
    /// The name by which the system knows the user.
    pub user: String,
}

/// Why a file is left out that others may write.
const EVERYBODYS: &str = "everybody may write it";
/// The longest file that is read.
const LONGEST_BYTES: u64 = 4 << 20;

/// A file of settings or passwords, as it was opened.
#[derive(Debug)]
pub(super) struct Found {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Group or others may read it.
    pub readable: bool,
    /// Others may write it.
    pub writable: bool,
}

impl Found {
    /// Its text.
    pub fn text(self) -> io::Result<String> {
        String::from_utf8(self.bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

impl Around {
    /// This process's.
    pub fn live() -> Around {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let uid = rustix::process::geteuid().as_raw();
        let passwd = weir_fs::read_lossily("/etc/passwd").unwrap_or_default();
        let account = account(&passwd, uid);
        // HOME counts more than the account's own folder, as for every client.
        let home = variables.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        Around {
            home: home.or_else(|| account.as_ref().map(|(_, home)| home.clone())),
            root: PathBuf::from("/"),
            // The server asks the kernel who is at its socket, so the account counts more than USER.
            user: account
                .map(|(name, _)| name)
                .or_else(|| variables.get("USER").cloned())
                .unwrap_or_else(|| uid.to_string()),
            variables,
        }
    }

    /// A variable that is set to something.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A path of the system, under the root.
    pub(super) fn system(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A file in the home.
    pub(super) fn at_home(&self, name: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(name))
    }
}

/// Name and home of an account (passwd(5)).
fn account(passwd: &str, uid: u32) -> Option<(String, PathBuf)> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields[..] {
            [name, _, id, _, _, home, ..] if id.parse() == Ok(uid) => {
                Some((name.to_string(), PathBuf::from(home)))
            }
            _ => None,
        }
    })
}

/// Reads a file. Unless the user named it, root or the caller must have chosen what it says: a home, too, may be another's
/// (`sudo -E`).
pub(super) fn read(path: &Path, named: bool) -> io::Result<Found> {
    let file = weir_fs::regular_file(path)?;
    let data = file.metadata()?;
    if !named {
        check_owners(path, &file)?;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {LONGEST_BYTES} bytes"),
        ));
    }
    Ok(Found { bytes, readable: data.mode() & 0o077 != 0, writable: data.mode() & 0o002 != 0 })
}

/// Certificates of authorities that nobody named, read once. `None` where there are none.
///
/// # Errors
/// Where they cannot be read, or another account may have chosen them.
pub fn found_authorities(path: &Path) -> io::Result<Option<Authorities>> {
    let bytes = match believed(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    Ok(Some(Authorities { path: path.to_path_buf(), pem: bytes.into() }))
}

/// A file that nobody named, read by a descriptor, where root or the caller must have chosen what it says.
///
/// # Errors
/// Also where another account may have chosen it.
pub fn believed(path: &Path) -> io::Result<Vec<u8>> {
    match read(path, false)? {
        found if found.writable => Err(io::Error::other(EVERYBODYS)),
        found => Ok(found.bytes),
    }
}

/// Root or the caller owns the file, every folder on the way to it, as it was named and as links lead, and every name of them that is a
/// link: a stranger's link leads to whichever file of root's suits the stranger, and so does a folder that a stranger can rename.
fn check_owners(path: &Path, file: &fs::File) -> io::Result<()> {
    let (path, real) = (std::path::absolute(path)?, path.canonicalize()?);
    path.ancestors().chain(real.ancestors()).try_for_each(|part| weir_fs::owned_at(part, false))?;
    path.ancestors().skip(1).try_for_each(|folder| weir_fs::owned_at(folder, true))?;
    weir_fs::owned(file)
}

/// The same of a file that may be missing, and is left out with a note where it cannot be read or is not believed.
pub(super) fn read_if_any(path: &Path, named: bool, notes: &mut Vec<String>) -> Option<Found> {
    let note = |error: io::Error| {
        if error.kind() != io::ErrorKind::NotFound {
            notes.push(format!("{} is left out: {error}", path.display()));
        }
    };
    let found = read(path, named).and_then(|found| match found.writable && !named {
        true => Err(io::Error::other(EVERYBODYS)),
        false => Ok(found),
    });
    found.map_err(note).ok()
}

/// Whether there is a socket.
pub(super) fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_known_by_their_number() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nbroken\ndba:x:1000:1000:,,,:/home/dba:/bin/sh\n";
        assert_eq!(account(passwd, 1000), Some(("dba".to_string(), PathBuf::from("/home/dba"))));
        assert_eq!(account(passwd, 7), None);
    }
}
