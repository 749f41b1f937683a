//! What a PostgreSQL that was killed leaves: a System V segment of 56 bytes, by which servers see whether others still
//! work on the same data, and memory files. An orderly one removes them, and the next one on the same data; once the data
//! are gone, nobody else does.
//!
//! Which they are, the kernel says. What the server wrote down is in its account's hands, and could name the segment of
//! another server.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use weir_fs::{Access, Dir};

use super::process::ProcessId;

/// Where memory files lie.
const FOLDER: &str = "/dev/shm";
/// How theirs are called (src/backend/storage/ipc/dsm_impl.c).
const PREFIX: &str = "PostgreSQL.";
/// So much later than a process's start, by the kernel's account of both in whole seconds, a segment may seem older.
const ROUNDING_S: u64 = 2;

/// A System V segment, of which no kernel value is asked twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    id: libc::c_int,
    maker: u32,
    attached: u64,
    changed_s: u64,
}

impl Segment {
    /// A line of `/proc/sysvipc/shm`: key, number, mode, size, maker, last, attached, owner and maker's, times.
    fn of(line: &str) -> Option<Segment> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some(Segment {
            id: fields.get(1)?.parse().ok()?,
            maker: fields.get(4)?.parse().ok()?,
            attached: fields.get(6)?.parse().ok()?,
            changed_s: fields.get(13)?.parse().ok()?,
        })
    }
}

/// The segments that a server made. Numbers are given out again, so they have to be younger than it.
fn made_by(server: &ProcessId) -> Vec<Segment> {
    let Some(started_s) = server.started_s() else { return Vec::new() };
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let segments = table.lines().filter_map(Segment::of);
    segments.filter(|s| s.maker == server.pid && s.changed_s + ROUNDING_S >= started_s).collect()
}

/// Whether processes of a PostgreSQL still work on its data: they outlive a server that is killed by a moment, and the
/// next one refuses to start until they have gone.
pub(super) fn is_in_use(server: &ProcessId) -> bool {
    made_by(server).iter().any(|segment| segment.attached > 0)
}

/// Removes the segment of a PostgreSQL that has ended, where it left one; of any other server there is none.
pub(super) fn release(server: &ProcessId) {
    // Those of its processes that have not ended yet go on with it; the kernel frees it after the last.
    for segment in made_by(server) {
        // SAFETY: no memory is passed.
        unsafe { libc::shmctl(segment.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// Names of memory files that a PostgreSQL and its children have open.
pub(super) fn files_of(server: u32) -> BTreeSet<String> {
    let tasks = fs::read_dir(format!("/proc/{server}/task")).into_iter().flatten().flatten();
    let children: String = tasks
        .map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default() + " ")
        .collect();
    let processes = children.split_whitespace().filter_map(|pid| pid.parse().ok()).chain([server]);
    let maps = processes.map(|pid: u32| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default());
    maps.flat_map(|text| names(&text)).collect()
}

fn names(maps: &str) -> Vec<String> {
    let path = |line: &str| Some(line.split_once(FOLDER)?.1.strip_prefix('/')?.to_string());
    maps.lines().filter_map(path).filter(|name| is_theirs(name)).collect()
}

fn is_theirs(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX);
    number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// Removes memory files of this user by these names, where they are still there.
pub(super) fn remove_files(names: &BTreeSet<String>) {
    let Ok(folder) = Dir::open(Path::new(FOLDER)) else { return };
    let own = rustix::process::geteuid().as_raw();
    for name in names.iter().filter(|name| is_theirs(name)) {
        let file = folder.open_file(name, Access::Read).and_then(|file| file.metadata());
        if file.is_ok_and(|found| found.uid() == own) {
            let _ = folder.remove_file(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_files_are_read_as_the_kernel_shows_them() {
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      \
                     atime      dtime      ctime                   rss                  swap\n   7340032      98304   600 \
                     56  4711  4712      2   105   113   105   113 1795301580          0 1795301580 4096 0\n";
        let read: Vec<Segment> = table.lines().filter_map(Segment::of).collect();
        let expected = Segment { id: 98304, maker: 4711, attached: 2, changed_s: 1_795_301_580 };
        assert_eq!(read, [expected]);
        let maps = "7f00-7f01 rw-s 00000000 00:19 12   /dev/shm/PostgreSQL.2734518746\n\
                    7f02-7f03 rw-s 00000000 00:19 13   /dev/shm/PostgreSQL.27x\n\
                    7f04-7f05 rw-s 00000000 00:19 14   /dev/shm/other\n7f06-7f07 r--p 0 00:00 0\n";
        assert_eq!(names(maps), ["PostgreSQL.2734518746"]);
    }

    #[test]
    fn a_segment_is_in_use_while_attached_and_only_the_makers_own_is_removed() {
        // SAFETY: a new segment that nobody else knows.
        let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 56, 0o600 | libc::IPC_CREAT) };
        assert!(id >= 0, "{}", std::io::Error::last_os_error());
        let is_there = || {
            let table = fs::read_to_string("/proc/sysvipc/shm").unwrap();
            table.lines().filter_map(Segment::of).any(|segment| segment.id == id)
        };
        let own = ProcessId::of(std::process::id()).unwrap();
        let is_in_use = || made_by(&own).iter().any(|segment| segment.id == id && segment.attached > 0);
        assert!(!is_in_use(), "nobody is attached");
        // SAFETY: the kernel chooses a free place.
        let memory = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        assert!(is_in_use());
        // SAFETY: it was attached there.
        unsafe { libc::shmdt(memory) };
        assert!(!is_in_use(), "nobody is attached any more");
        let later = ProcessId { started_ticks: own.started_ticks + 1_000_000_000, ..own.clone() };
        for (maker, stays) in
            [(ProcessId { pid: own.pid + 1, ..own.clone() }, true), (later, true), (own.clone(), false)]
        {
            release(&maker);
            assert_eq!(is_there(), stays, "made by {maker:?}, not by {own:?}");
        }
    }
}
