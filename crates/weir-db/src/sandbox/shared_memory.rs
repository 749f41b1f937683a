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

/// The segment that a PostgreSQL's pid file names, as the kernel knows it now. Numbers are given out again: it has to be the
/// one that this server made.
fn left_in(data: &Path) -> Option<(Segment, libc::shmid_ds)> {
    let segment = Segment::of(&fs::read_to_string(data.join(PID_FILE)).ok()?)?;
    // SAFETY: the structure is plain numbers, for which zeroes are values.
    let mut found: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one structure of this type.
    let seen = unsafe { libc::shmctl(segment.id, libc::IPC_STAT, &mut found) };
    (seen == 0 && found.shm_cpid == segment.maker).then_some((segment, found))
}

/// Whether processes of a PostgreSQL still work on these data: they outlive a server that is killed by a moment, and the
/// next one refuses to start until they have gone.
pub(super) fn is_in_use(data: &Path) -> bool {
    left_in(data).is_some_and(|(_, found)| found.shm_nattch > 0)
}

/// Removes the segment of a PostgreSQL that has ended, where it left one; of any other server there is none.
pub(super) fn release(data: &Path) {
    // Those of its processes that have not ended yet go on with it; the kernel frees it after the last.
    if let Some((segment, _)) = left_in(data) {
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
    fn a_segment_is_in_use_while_attached_and_only_the_makers_own_is_removed() {
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
        fs::write(folder.path().join(PID_FILE), file(own, id)).unwrap();
        assert!(!is_in_use(folder.path()), "nobody is attached");
        // SAFETY: the kernel chooses a free place.
        let memory = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        assert!(is_in_use(folder.path()));
        // SAFETY: it was attached there.
        unsafe { libc::shmdt(memory) };
        assert!(!is_in_use(folder.path()), "nobody is attached any more");
        for (maker, stays) in [(own + 1, true), (own, false)] {
            fs::write(folder.path().join(PID_FILE), file(maker, id)).unwrap();
            release(folder.path());
            assert_eq!(is_there(), stays, "made by {maker}, not by {own}");
        }
    }
}
