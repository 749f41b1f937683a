//! Variables, home and files around a command: tests point them elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

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

/// Whom a file is open to, besides its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Openness {
    /// Group or others may read it.
    pub readable: bool,
    /// Others may write it.
    pub writable: bool,
}

impl Around {
    /// This process's.
    pub fn live() -> Around {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let uid = rustix::process::geteuid().as_raw();
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
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

/// Whom a file is open to.
pub(super) fn openness(path: &Path) -> io::Result<Openness> {
    let mode = fs::metadata(path)?.mode();
    Ok(Openness { readable: mode & 0o077 != 0, writable: mode & 0o002 != 0 })
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
