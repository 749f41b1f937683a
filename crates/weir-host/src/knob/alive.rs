//! Which process lives, in whatever PID namespace: the maker of an entry has a lock on a byte of the journal's folder, at the
//! moment of the entry, until it ends. A number of a process says nothing to those in another namespace, such as a container's.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use weir_fs::Dir;

/// A sign that this process lives; the kernel takes it away with the process, however that ends.
#[derive(Debug)]
pub(super) struct Alive {
    _folder: Dir,
}

impl Alive {
    /// Gives the sign for an entry of this moment.
    ///
    /// # Errors
    /// Where the file system has no such locks: others then go by the number of the process.
    pub fn give(folder: Dir, since_ns: u64) -> io::Result<Alive> {
        fcntl(&folder, libc::F_OFD_SETLK, libc::F_RDLCK, since_ns)?;
        Ok(Alive { _folder: folder })
    }

    /// Whether the maker of the entry of this moment gives it.
    pub fn is_given(folder: &Dir, since_ns: u64) -> bool {
        let would_wait = |there: libc::flock| i32::from(there.l_type) != libc::F_UNLCK;
        fcntl(folder, libc::F_OFD_GETLK, libc::F_WRLCK, since_ns).is_ok_and(would_wait)
    }
}

/// One byte of the folder, by open file description (fcntl(2)): a fork that lets go of its copy takes nothing away.
fn fcntl(folder: &Dir, act: libc::c_int, kind: libc::c_int, at: u64) -> io::Result<libc::flock> {
    let number = |_| io::Error::from(io::ErrorKind::InvalidInput);
    // SAFETY: a flock is numbers; all of them may be zero.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind.try_into().map_err(number)?;
    lock.l_whence = libc::SEEK_SET.try_into().map_err(number)?;
    (lock.l_start, lock.l_len) = (at.try_into().map_err(number)?, 1);
    // SAFETY: the descriptor is open for as long as `folder` lives; the kernel reads and writes the one flock.
    match unsafe { libc::fcntl(folder.as_fd().as_raw_fd(), act, &raw mut lock) } {
        0 => Ok(lock),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_of_one_moment_and_ends() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Dir::open(folder.path()).unwrap();
        let [one, other] = [7, 8].map(|moment| Alive::give(open(), moment).unwrap());
        let given = || [6, 7, 8, u64::MAX].map(|moment| Alive::is_given(&open(), moment));
        assert_eq!(given(), [false, true, true, false]);
        drop(one);
        assert_eq!(given(), [false, false, true, false]);
        drop(other);
        assert_eq!(given(), [false; 4]);
    }
}
