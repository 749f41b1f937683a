//! The account that a server runs as, and the rights that it keeps: PostgreSQL refuses to be root, and a throw-away server has no need to
//! be. Nothing of this process's rights reaches it.

use std::ffi::CString;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Uid, fchown};
use weir_oltp::Dialect;

use super::{Flavour, SandboxError};

/// `_LINUX_CAPABILITY_VERSION_3` of linux/capability.h.
const CAPABILITY_VERSION: u32 = 0x2008_0522;
/// Capabilities have numbers below this.
const CAPABILITIES: u32 = 64;
/// securebits(7): root's number gives no capabilities, none become ambient, and neither can be changed.
const SECURE_BITS: libc::c_ulong = 0b1100_0011;

/// Numbers that neither distributions nor containers nor directories (sssd ends at 2,000,200,000) give out, and that fit
/// an `int`.
const UNUSED: RangeInclusive<u32> = 0x7800_0000..=0x7ffd_ffff;

/// Who a server runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
    /// Whether this process has to become it first.
    other: bool,
}

impl Account {
    /// This user; for root a number that no account, no process and, by its chance, no file has.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn unused() -> io::Result<Account> {
        if let Some(own) = Account::own() {
            return Ok(own);
        }
        loop {
            let chance = weir_fs::unguessable()?;
            let number = u32::from_str_radix(&chance[..8], 16).map_err(io::Error::other)?;
            let id = UNUSED.start() + number % (UNUSED.end() - UNUSED.start() + 1);
            if !is_used(id) {
                return Ok(Account { uid: id, gid: id, other: true });
            }
        }
    }

    /// This user; for root, where it may not give a number a name, an account of this machine: the server's own or nobody.
    ///
    /// # Errors
    /// When root finds none.
    pub fn of_machine(flavour: Flavour) -> Result<Account, SandboxError> {
        if let Some(own) = Account::own() {
            return Ok(own);
        }
        let names = match flavour.dialect() {
            Dialect::MySql => ["mysql", "nobody"],
            Dialect::Postgres => ["postgres", "nobody"],
        };
        let passwd = weir_fs::read_lossily("/etc/passwd").unwrap_or_default();
        let (uid, gid) = names
            .iter()
            .find_map(|name| of_name(&passwd, name))
            .ok_or_else(|| SandboxError::NoAccount { flavour, accounts: names.join(", ") })?;
        Ok(Account { uid, gid, other: true })
    }

    /// This user, who is not root.
    fn own() -> Option<Account> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        (uid != 0).then_some(Account { uid, gid, other: false })
    }

    /// Its numbers.
    pub fn ids(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Whether root becomes it.
    pub fn is_other(&self) -> bool {
        self.other
    }

    /// The lines of a user namespace in which a plain user is itself; root needs none.
    pub fn maps(&self) -> io::Result<Option<[CString; 2]>> {
        if self.other {
            return Ok(None);
        }
        let line = |id: u32| CString::new(format!("{id} {id} 1\n")).map_err(io::Error::from);
        Ok(Some([line(self.uid)?, line(self.gid)?]))
    }

    /// The first folder on the way to this one that it cannot pass through, as root's home.
    pub fn closed_above(&self, folder: &Path) -> Option<PathBuf> {
        if !self.other {
            return None;
        }
        let mut above: Vec<&Path> = folder.ancestors().skip(1).collect();
        above.reverse();
        let closed = |folder: &&Path| fs::metadata(folder).is_ok_and(|m| !self.may_pass(&m));
        above.into_iter().find(closed).map(Path::to_path_buf)
    }

    fn may_pass(&self, folder: &fs::Metadata) -> bool {
        let bit = match (folder.uid() == self.uid, folder.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        folder.mode() & bit != 0
    }

    /// Hands over what is open.
    pub fn give(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        if self.other {
            fchown(fd, Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))?;
        }
        Ok(())
    }

    /// Becomes it for good, with no right beyond its own. Only system calls: this runs between fork and exec.
    pub fn become_it(&self) -> io::Result<()> {
        leave_keys();
        if self.other {
            let none: *const libc::gid_t = std::ptr::null();
            // SAFETY: no group is passed, so no memory is read; the rest takes numbers. The C library's functions of these
            // names would ask every thread of weir to do the same.
            unsafe {
                done(libc::syscall(libc::SYS_setgroups, 0, none))?;
                done(libc::syscall(libc::SYS_setresgid, self.gid, self.gid, self.gid))?;
                renounce();
                done(libc::syscall(libc::SYS_setresuid, self.uid, self.uid, self.uid))?;
            }
        } else {
            // In a user namespace of its own it has had all capabilities.
            renounce();
        }
        // struct __user_cap_header_struct and __user_cap_data_struct[2] of linux/capability.h.
        let header: [u32; 2] = [CAPABILITY_VERSION, 0];
        let none: [u32; 6] = [0; 6];
        // SAFETY: the kernel reads both arrays, which have the sizes that this version of the call asks for; the rest
        // takes numbers.
        unsafe {
            done(
                libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong, 0, 0, 0)
                    .into(),
            )?;
            done(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()))?;
            done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())
        }
    }
}

/// Joins a session keyring of its own: whoever holds one uses its keys, whatever account it becomes. A kernel without
/// keys, or a container that forbids them, has none to leave.
pub(super) fn leave_keys() {
    /// linux/keyctl.h.
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    let unnamed: *const libc::c_char = std::ptr::null();
    // SAFETY: without a name no memory is read.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, unnamed) };
}

/// Gives up what could bring capabilities back. A process that may not do this has nothing to bring back: without new
/// privileges no file and no number gives any.
fn renounce() {
    for capability in 0..CAPABILITIES {
        // SAFETY: takes numbers.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability as libc::c_ulong, 0, 0, 0) } != 0 {
            break;
        }
    }
    // SAFETY: takes numbers.
    unsafe { libc::prctl(libc::PR_SET_SECUREBITS, SECURE_BITS, 0, 0, 0) };
}

/// A session of its own, whose terminal nobody can write commands to; no descriptor but the first three. Only system
/// calls: this runs between fork and exec.
pub(super) fn come_away() -> io::Result<()> {
    rustix::process::setsid()?;
    // The descriptor by which weir hears of a failed exec stays until then.
    weir_fs::close_at_exec(3)
}

/// Files that others may not read, unless the server says otherwise.
pub(super) fn keep_to_itself() {
    // SAFETY: takes a number and cannot fail.
    unsafe { libc::umask(0o077) };
}

fn done(status: i64) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Whether an account, a group, a range of them or a process has this number.
fn is_used(id: u32) -> bool {
    let accounts = ["/etc/passwd", "/etc/group"].map(|path| weir_fs::read_lossily(path).unwrap_or_default());
    let ranges = ["/etc/subuid", "/etc/subgid"].map(|path| weir_fs::read_lossily(path).unwrap_or_default());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    accounts.iter().any(|text| has_number(text, id))
        || ranges.iter().any(|text| has_range(text, id))
        || processes
            .filter_map(|entry| entry.metadata().ok())
            .any(|found| found.uid() == id || found.gid() == id)
}

/// passwd(5) and group(5): the third field.
fn has_number(text: &str, id: u32) -> bool {
    text.lines().any(|line| line.split(':').nth(2).and_then(|number| number.parse().ok()) == Some(id))
}

/// subuid(5): the first number, and how many.
fn has_range(text: &str, id: u32) -> bool {
    text.lines().any(|line| {
        let mut numbers = line.split(':').skip(1).map_while(|number| number.trim().parse::<u32>().ok());
        let (first, count) = (numbers.next(), numbers.next().unwrap_or(0));
        first.is_some_and(|first| id >= first && id - first < count)
    })
}

/// uid and gid of an account in the text of /etc/passwd.
fn of_name(passwd: &str, name: &str) -> Option<(u32, u32)> {
    let fields =
        passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|fields| fields[0] == name)?;
    Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
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
        for (id, number, range) in [
            (65534, true, false),
            (65533, false, false),
            (99, false, false),
            (100_000, false, true),
            (100_001, false, true),
            (100_002, false, false),
        ] {
            assert_eq!(has_number(passwd, id), number, "{id}");
            assert_eq!(has_range("a:100000:2\nodd:x\nb:7\n", id), range, "{id}");
        }
    }

    #[test]
    fn the_callers_keys_stay_behind() {
        // linux/keyctl.h: the session's keyring, not made where there is none.
        // SAFETY: takes numbers.
        let session = || unsafe { libc::syscall(libc::SYS_keyctl, 0, -3, 0) };
        let account = Account::unused().unwrap();
        let settle = move || {
            // As a log-in does.
            leave_keys();
            let before = session();
            account.become_it()?;
            match before >= 0 && session() == before {
                true => Err(io::ErrorKind::AlreadyExists.into()),
                false => Ok(()),
            }
        };
        let mut program = super::super::spawn::Program::new(Path::new("/"), Vec::new(), 0, Box::new(settle));
        assert!(program.is_possible().unwrap());
    }
}
