//! What a PostgreSQL leaves that was killed where the kernel does not take it away with a namespace: a System V segment of
//! 56 bytes, by which servers see whether others still work on the same data. An orderly one removes it, and the next one on
//! the same data; once the data are gone, nobody else does.
//!
//! Which it is, the kernel says. What the server wrote down is in its account's hands, and could name the segment of another
//! server.

use std::fs;

/// A System V segment, of which no kernel value is asked twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    id: libc::c_int,
    maker: u32,
    made_s: u64,
}

impl Segment {
    /// A line of `/proc/sysvipc/shm`: key, number, mode, size, maker, last, attached, owner and maker's, times. With it, how
    /// many have it attached.
    fn of(line: &str) -> Option<(Segment, u64)> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let segment = Segment {
            id: fields.get(1)?.parse().ok()?,
            maker: fields.get(4)?.parse().ok()?,
            made_s: fields.get(13)?.parse().ok()?,
        };
        Some((segment, fields.get(6)?.parse().ok()?))
    }
}

/// All that there are.
pub(super) fn all() -> Vec<Segment> {
    table().into_iter().map(|(segment, _)| segment).collect()
}

fn table() -> Vec<(Segment, u64)> {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    table.lines().filter_map(Segment::of).collect()
}

/// The segments that a process made, beside those that were there before it: numbers are given out again, so it must not
/// have been waited for either.
pub(super) fn made_by(process: u32, before: &[Segment]) -> Vec<Segment> {
    let new = all().into_iter().filter(|segment| !before.contains(segment));
    new.filter(|segment| segment.maker == process).collect()
}

/// Whether somebody still works with one of them: a PostgreSQL's processes outlive their first by a moment, and the next
/// server refuses to start until they have gone.
pub(super) fn are_in_use(segments: &[Segment]) -> bool {
    table().iter().any(|(segment, attached)| *attached > 0 && segments.contains(segment))
}

/// Removes those that are still there. Processes that have them attached go on with them; the kernel frees each after the
/// last.
pub(super) fn remove(segments: &[Segment]) {
    for segment in all().iter().filter(|segment| segments.contains(segment)) {
        // SAFETY: no memory is passed.
        unsafe { libc::shmctl(segment.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_read_as_the_kernel_shows_them() {
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      \
                     atime      dtime      ctime                   rss                  swap\n   7340032      98304   600 \
                     56  4711  4712      2   105   113   105   113 1795301580          0 1795301580 4096 0\n";
        let read: Vec<_> = table.lines().filter_map(Segment::of).collect();
        assert_eq!(read, [(Segment { id: 98304, maker: 4711, made_s: 1_795_301_580 }, 2)]);
    }

    #[test]
    fn a_segment_is_in_use_while_attached_and_no_other_is_removed() {
        // SAFETY: a new segment that nobody else knows.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 56, 0o600 | libc::IPC_CREAT) };
        assert!(id >= 0, "{}", std::io::Error::last_os_error());
        let of_process =
            |before: &[Segment]| made_by(std::process::id(), before).into_iter().filter(|s| s.id == id);
        let own: Vec<Segment> = of_process(&[]).collect();
        assert_eq!(own.len(), 1);
        assert_eq!(of_process(&own).count(), 0, "it was there before");
        assert!(!are_in_use(&own), "nobody is attached");
        // SAFETY: the kernel chooses a free place.
        let memory = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        assert!(are_in_use(&own));
        // SAFETY: it was attached there.
        unsafe { libc::shmdt(memory) };
        // A process that another test is starting has it until its exec.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while are_in_use(&own) && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(!are_in_use(&own), "nobody is attached any more");
        let is_there = || all().iter().any(|segment| segment.id == id);
        let [another, later] =
            [Segment { maker: 1, ..own[0] }, Segment { made_s: own[0].made_s + 1, ..own[0] }];
        for (segment, stays) in [(another, true), (later, true), (own[0], false)] {
            remove(&[segment]);
            assert_eq!(is_there(), stays, "{segment:?}");
        }
    }
}
