//! What a PostgreSQL that was killed leaves in the kernel: a System V segment of 56 bytes, by which servers see whether
//! others still work on the same data. An orderly one removes it; once its data are gone, nobody else does.

use std::fs;
use std::path::Path;

/// The server's pid file in its data directory, and the segment's line in it (src/include/utils/pidfile.h).
const PID_FILE: &str = "postmaster.pid";
const SEGMENT_LINE: usize = 6;

/// A segment by its pid file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    /// The server that made it.
    maker: libc::pid_t,
    /// As the kernel numbers it.
    id: libc::c_int,
}

impl Segment {
    fn of(pid_file: &str) -> Option<Segment> {
        let maker = pid_file.lines().next()?.trim().parse().ok()?;
        // Its key, then its number.
        let id = pid_file.lines().nth(SEGMENT_LINE)?.split_whitespace().nth(1)?.parse().ok()?;
        Some(Segment { maker, id })
    }
}

/// Removes the segment of a PostgreSQL that has ended, where it left one; of any other server there is none.
pub(super) fn release(data: &Path) {
    let text = fs::read_to_string(data.join(PID_FILE)).unwrap_or_default();
    let Some(segment) = Segment::of(&text) else { return };
    // SAFETY: the structure is plain numbers, for which zeroes are values.
    let mut found: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one structure of this type.
    let seen = unsafe { libc::shmctl(segment.id, libc::IPC_STAT, &mut found) };
    // Numbers are given out again: it has to be the one that this server made. Those of its processes that have not
    // ended yet go on with it; the kernel frees it after the last.
    if seen == 0 && found.shm_cpid == segment.maker {
        // SAFETY: no memory is passed.
        unsafe { libc::shmctl(segment.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(maker: u32, id: i32) -> String {
        format!("{maker}\n/d/data\n1795301580\n5432\n/run\n\n  7340032   {id}\nready   \n")
    }

    #[test]
    fn segments_are_read_from_pid_files() {
        assert_eq!(Segment::of(&file(4711, 98304)), Some(Segment { maker: 4711, id: 98304 }));
        // A server that has just begun, and MySQL's.
        for text in ["4711\n/d/data\n1795301580\n5432\n", "", "4711\n"] {
            assert_eq!(Segment::of(text), None, "{text}");
        }
    }

    #[test]
    fn only_the_makers_own_segment_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        // SAFETY: a new segment that nobody else knows.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 56, 0o600 | libc::IPC_CREAT) };
        assert!(id >= 0, "{}", std::io::Error::last_os_error());
        let is_there = || {
            // SAFETY: as in `release`.
            let mut found: libc::shmid_ds = unsafe { std::mem::zeroed() };
            // SAFETY: as in `release`.
            unsafe { libc::shmctl(id, libc::IPC_STAT, &mut found) == 0 }
        };
        let own = std::process::id();
        for (maker, stays) in [(own + 1, true), (own, false)] {
            fs::write(folder.path().join(PID_FILE), file(maker, id)).unwrap();
            release(folder.path());
            assert_eq!(is_there(), stays, "made by {maker}, not by {own}");
        }
    }
}
