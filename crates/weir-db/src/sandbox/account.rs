//! Who a server runs as. PostgreSQL refuses to be root, and a throw-away server has no need to be.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use weir_core::oltp::Dialect;

use super::{Flavour, SandboxError};

/// `CAP_DAC_OVERRIDE` of linux/capability.h.
const CAP_DAC_OVERRIDE: u32 = 1;
/// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Who a server runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    uid: u32,
    gid: u32,
    /// Whether this process has to become it first.
    other: bool,
    /// Whether it cannot pass through the folders above, as in root's home: then it is given that one right.
    shut_out: bool,
}

impl Account {
    /// This user; for root an unprivileged account: the owner of data that are there already, the server's own, or
    /// nobody.
    ///
    /// # Errors
    /// When root finds none.
    pub fn choose(flavour: Flavour, data: &Path) -> Result<Account, SandboxError> {
        // SAFETY: both take nothing and cannot fail.
        let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
        if uid != 0 {
            return Ok(Account { uid, gid, other: false, shut_out: false });
        }
        let owner = fs::metadata(data).ok().map(|m| (m.uid(), m.gid())).filter(|(uid, _)| *uid != 0);
        let names = match flavour.dialect() {
            Dialect::MySql => ["mysql", "nobody"],
            Dialect::Postgres => ["postgres", "nobody"],
        };
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let (uid, gid) = owner
            .or_else(|| names.iter().find_map(|name| of_name(&passwd, name)))
            .ok_or_else(|| SandboxError::NoAccount { flavour, accounts: names.join(", ") })?;
        Ok(Account { uid, gid, other: true, shut_out: false })
    }

    /// The same, able to reach these folders.
    #[must_use]
    pub fn reaching(mut self, folders: &[&Path]) -> Account {
        let closed = |folder: &Path| fs::metadata(folder).is_ok_and(|m| !self.may_pass(&m));
        self.shut_out = self.other && folders.iter().any(|folder| folder.ancestors().skip(1).any(closed));
        self
    }

    fn may_pass(&self, folder: &fs::Metadata) -> bool {
        let bit = match (folder.uid() == self.uid, folder.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        folder.mode() & bit != 0
    }

    /// Hands a file or folder to it.
    pub fn give(&self, path: &Path) -> Result<(), SandboxError> {
        if !self.other {
            return Ok(());
        }
        chown(path, Some(self.uid), Some(self.gid)).map_err(SandboxError::io("hand over", path))
    }

    /// Makes a command run as it.
    pub fn take_on(self, command: &mut Command) {
        if !self.other {
            return;
        }
        let become_it = move || become_account(self.uid, self.gid, self.shut_out);
        // SAFETY: between fork and exec only system calls are made, all of them async-signal-safe.
        unsafe { command.pre_exec(become_it) };
    }
}

/// uid and gid of an account in the text of /etc/passwd.
fn of_name(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let fields =
        passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
}

/// Drops root for good. With `pass`, one capability survives in the ambient set (capabilities(7)).
fn become_account(uid: u32, gid: u32, pass: bool) -> io::Result<()> {
    let done = |status: i64| if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: no group is passed, so no memory is read; the rest takes numbers.
    unsafe {
        done(libc::setgroups(0, std::ptr::null()).into())?;
        done(libc::setresgid(gid, gid, gid).into())?;
        if pass {
            done(libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0).into())?;
        }
        done(libc::setresuid(uid, uid, uid).into())?;
    }
    if !pass {
        return Ok(());
    }
    // struct __user_cap_header_struct and __user_cap_data_struct[2] of linux/capability.h.
    let header: [u32; 2] = [CAPABILITY_VERSION, 0];
    let one = 1 << CAP_DAC_OVERRIDE;
    let sets: [u32; 6] = [one, one, one, 0, 0, 0];
    // SAFETY: the kernel reads both arrays, which have the sizes that this version of the call asks for.
    unsafe {
        done(libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()))?;
        done(
            libc::prctl(
                libc::PR_CAP_AMBIENT,
                libc::PR_CAP_AMBIENT_RAISE,
                libc::c_ulong::from(CAP_DAC_OVERRIDE),
                0,
                0,
            )
            .into(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_from_passwd() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533:nobody:/:/bin/false\nodd\n";
        for (name, expected) in [("nobody", Some((65534, 65533))), ("postgres", None), ("odd", None)] {
            assert_eq!(of_name(passwd, name), expected, "{name}");
        }
    }
}
