//! Who writes, by the kernel's own accounts of its threads, and onto which device.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;

use libbpf_rs::{Iter, Link};
use weir_core::target::DeviceNumber;

use super::account::{Account, Open};
use crate::fsync::files::{self, FILES_MAX};
use crate::fsync::ring_entry::{text, u32_at, u64_at};
use crate::live::overhead::thread_ns;

/// `struct told` in `bpf/syncs.bpf.c`.
const TOLD: usize = 64;
/// Asking takes a fraction of a microsecond for each thread of the machine, and at most one part in so many of the time
/// of a processor ...
const ONE_IN: u64 = 1000;
/// ... but a writer must not go unnoticed for longer than this.
const NEXT_MAX_NS: u64 = 1_000_000_000;
/// A process's open files are looked through again after so long ...
const FILES_STAND_NS: u64 = 1_000_000_000;
/// ... and those of one that is protected after so long: it is not throttled for where it writes, and a database is many
/// processes with many files.
const PROTECTED_STAND_NS: u64 = 10_000_000_000;
/// ... and of all processes together no more files than this in one look, those of the greatest writers first: who
/// starts many processes, each with many files, must not hold up a guard.
const FILES_A_LOOK: usize = 4 * FILES_MAX;

/// Tables of mounts that are read in one look: each may be as long as the reader bears.
const TABLES_A_LOOK: usize = 4;

/// What stat says of files is asked again after so long.
const NUMBERS_STAND_NS: u64 = 10_000_000_000;

/// Up to this descriptor, files are taken for messages until they are longer than that.
const STANDARD_ERROR: u32 = 2;
const MESSAGES_MAX: u64 = 1 << 20;

/// A process, distinguished from an earlier one of the same number by when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    pub pid: u32,
    pub start_ns: u64,
}

/// What a process wrote since the scan before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    pub comm: String,
    pub bytes: u64,
    /// What its threads are accounted with since they began.
    pub total_bytes: u64,
}

/// What a thread had written; threads that use a number again began at another time.
#[derive(Clone, Copy)]
struct Thread {
    tid: u32,
    start_ns: u64,
    account: Account,
    open: Open,
}

/// Remembers what each thread had written.
#[derive(Default)]
pub struct Writers {
    /// In the order of their numbers.
    threads: Vec<Thread>,
    scanned: bool,
    next_ns: u64,
    room: Vec<u8>,
    places: HashMap<Id, (u64, Vec<DeviceNumber>)>,
    numbers: Numbers,
    /// When the last look was, and how many files it may still look at.
    room_for_files: (Option<u64>, usize),
}

impl Writers {
    /// Asks, if the last answer did not take too long for that; `processes` becomes what each has written since the scan
    /// before. Whether it was asked.
    pub fn scan(&mut self, link: &Link, now_ns: u64, processes: &mut HashMap<Id, Written>) -> bool {
        if now_ns < self.next_ns {
            return false;
        }
        self.room.clear();
        // Not by the clock: on a busy machine somebody else may run meanwhile.
        let before_ns = thread_ns();
        let answer = match Iter::new(link) {
            Ok(mut threads) => threads.read_to_end(&mut self.room),
            Err(_) => return false,
        };
        self.next_ns = now_ns + (thread_ns().saturating_sub(before_ns) * ONE_IN).min(NEXT_MAX_NS);
        if answer.is_err() {
            return false;
        }
        let room = std::mem::take(&mut self.room);
        self.take(&room, processes);
        self.room = room;
        true
    }

    /// `told` holds the threads one after the other. Most of them are those of the scan before, and so are their
    /// processes, which stay where they are.
    fn take(&mut self, told: &[u8], processes: &mut HashMap<Id, Written>) {
        processes.values_mut().for_each(|process| (process.bytes, process.total_bytes) = (0, 0));
        let mut threads = Vec::with_capacity(told.len() / TOLD);
        for thread in told.chunks_exact(TOLD) {
            let word = |at| u64_at(thread, at).unwrap_or(0);
            let (tid, tgid) = (u32_at(thread, 0).unwrap_or(0), u32_at(thread, 4).unwrap_or(0));
            let start_ns = word(8);
            let account = Account { accounted: word(24), passed: word(32), calls: word(40) };
            let known =
                self.threads.binary_search_by_key(&(tid, start_ns), |known| (known.tid, known.start_ns));
            let (before, mut open) = match known {
                Ok(at) => (self.threads[at].account, self.threads[at].open),
                Err(_) if self.scanned => Default::default(),
                // Bytes from before the first scan count for nobody.
                Err(_) => (account, Open::default()),
            };
            let bytes = open.count(&account.since(&before));
            threads.push(Thread { tid, start_ns, account, open });
            let process = processes.entry(Id { pid: tgid, start_ns: word(16) }).or_default();
            let name = &thread[48..TOLD];
            if !name.starts_with(process.comm.as_bytes()) || name.get(process.comm.len()) != Some(&0) {
                process.comm = text(name);
            }
            process.bytes += bytes;
            process.total_bytes += account.accounted;
        }
        // The kernel tells them in this order already.
        threads.sort_unstable_by_key(|thread| (thread.tid, thread.start_ns));
        self.threads = threads;
        self.scanned = true;
        // Nobody is told of who has written nothing.
        processes.retain(|_, process| process.total_bytes > 0);
        self.places.retain(|id, _| processes.contains_key(id));
    }

    /// The devices that a process has files open on for writing; in one look all are asked for with the same time.
    pub fn devices(&mut self, id: Id, is_protected: bool, now_ns: u64) -> &[DeviceNumber] {
        let place = self.places.entry(id).or_default();
        let stand_ns = if is_protected { PROTECTED_STAND_NS } else { FILES_STAND_NS };
        if place.1.is_empty() || now_ns >= place.0 + stand_ns {
            if self.room_for_files.0 != Some(now_ns) {
                self.room_for_files = (Some(now_ns), FILES_A_LOOK);
                self.numbers.tables_left = TABLES_A_LOOK;
            }
            let left = &mut self.room_for_files.1;
            if *left > 0 {
                self.numbers.forget_old(now_ns);
                *place = (now_ns, devices_of(id.pid, left, &mut self.numbers));
            }
        }
        &place.1
    }
}

/// Which device syncs on a file system are counted under, by what stat says of its files.
#[derive(Default)]
struct Numbers {
    known: HashMap<DeviceNumber, DeviceNumber>,
    since_ns: u64,
    /// Tables of mounts that this look may still read.
    tables_left: usize,
}

/// A process whose files are looked at, and its mounts once they were needed.
struct Process {
    pid: u32,
    mounts: Option<HashMap<u64, DeviceNumber>>,
}

impl Numbers {
    /// A number may be given to another file system.
    fn forget_old(&mut self, now_ns: u64) {
        if now_ns >= self.since_ns + NUMBERS_STAND_NS {
            (self.known, self.since_ns) = (HashMap::new(), now_ns);
        }
    }

    /// Of an open file. What a process does not see mounted stands for itself, and is not remembered: others may see it.
    fn device(&mut self, process: &mut Process, facts: &weir_fs::Facts) -> DeviceNumber {
        let number = files::number_by_stat(facts);
        if let Some(known) = self.known.get(&number) {
            return *known;
        }
        let found = match number.is_anonymous() {
            true => self.file_system(process, facts.mount),
            false => Some(files::whole(number)),
        };
        found.inspect(|found| _ = self.known.insert(number, *found)).unwrap_or(number)
    }

    fn file_system(&mut self, process: &mut Process, mount: Option<u64>) -> Option<DeviceNumber> {
        if process.mounts.is_none() && self.tables_left > 0 {
            self.tables_left -= 1;
            process.mounts = Some(files::file_systems_of(process.pid));
        }
        process.mounts.as_ref()?.get(&mount?).copied()
    }
}

/// A database has hundreds of files open on one device: one that it writes to tells of all.
/// `left` files are looked at, at most.
fn devices_of(pid: u32, left: &mut usize, numbers: &mut Numbers) -> Vec<DeviceNumber> {
    let folder = format!("/proc/{pid}/fd");
    let (mut found, mut process) = (Vec::new(), Process { pid, mounts: None });
    for descriptor in files::numbers(&folder).take(FILES_MAX.min(*left)) {
        *left -= 1;
        let Ok(facts) = weir_fs::facts_unasked(format!("{folder}/{descriptor}")) else { continue };
        if ![libc::S_IFREG, libc::S_IFBLK].contains(&(facts.mode & libc::S_IFMT)) {
            continue;
        }
        // What is known costs nothing; whether a file is written to takes two calls, and a table of mounts many.
        let is_new =
            numbers.known.get(&files::number_by_stat(&facts)).is_none_or(|disk| !found.contains(disk));
        if is_new && is_written_to(pid, descriptor) {
            let disk = numbers.device(&mut process, &facts);
            if !found.contains(&disk) {
                found.push(disk);
            }
        }
    }
    found.sort_unstable();
    found
}

/// Whether a file is open for writing, and not for messages alone.
fn is_written_to(pid: u32, descriptor: u32) -> bool {
    // The link's own permission says how the file was opened (proc_pid_fd(5)). fdinfo has a line for each lock that the file holds, as
    // many as its owner likes.
    let link = fs::symlink_metadata(format!("/proc/{pid}/fd/{descriptor}"));
    if !link.is_ok_and(|link| link.mode() & 0o200 != 0) {
        return false;
    }
    let is_far = |position| position >= MESSAGES_MAX;
    descriptor > STANDARD_ERROR || files::position_to_write(pid, descriptor).is_some_and(is_far)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(tid: u32, tgid: u32, start_ns: u64, bytes: u64) -> Vec<u8> {
        let mut thread = [tid.to_ne_bytes(), tgid.to_ne_bytes()].concat();
        [start_ns, 7, bytes, bytes, 1].iter().for_each(|word| thread.extend(word.to_ne_bytes()));
        thread.extend(*b"mariadbd\0\0\0\0\0\0\0\0");
        thread
    }

    #[test]
    fn files_of_the_protected_are_looked_through_less_often() {
        use std::io::Write;
        use std::process::{Command, Stdio};

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("written");
        // Closes its file at the first line, and ends at the second. It must not write to files of who runs the test.
        let mut shell = Command::new("sh");
        let inherited = "exec 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-";
        let closes = "exec 3>\"$0\"; echo open; read x; exec 3>&-; echo closed; read x";
        shell.args(["-c", &format!("{inherited}; {closes}")]).arg(&file);
        let mut child =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut says = |expected: &str| {
            let mut said = vec![0; expected.len()];
            output.read_exact(&mut said).unwrap();
            assert_eq!(String::from_utf8_lossy(&said), expected);
        };
        let id = Id { pid: child.id(), start_ns: 0 };
        let mut writers = Writers::default();
        says("open\n");
        assert_eq!(writers.devices(id, true, 0).len(), 1);
        input.write_all(b"\n").unwrap();
        says("closed\n");
        assert_eq!(writers.devices(id, true, PROTECTED_STAND_NS - 1).len(), 1, "it is remembered");
        assert_eq!(writers.devices(id, false, FILES_STAND_NS - 1).len(), 1);
        assert_eq!(writers.devices(id, false, FILES_STAND_NS), [], "of a bulk writer not for long");
        drop(input);
        child.wait().unwrap();
    }

    #[test]
    fn one_look_is_at_so_many_files_whoever_has_how_many() {
        use std::process::{Command, Stdio};

        let folder = tempfile::tempdir().unwrap();
        let opens = "import os,resource,sys; most=resource.getrlimit(resource.RLIMIT_NOFILE)[1]; \
                     resource.setrlimit(resource.RLIMIT_NOFILE,(most,most)); f=os.open(sys.argv[1],65); \
                     [os.dup(f) for _ in range(1100)]; print(flush=True); sys.stdin.read()";
        let mut python = Command::new("python3");
        python.args(["-c", opens]).arg(folder.path().join("written"));
        let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let mut writers = Writers::default();
        let ids = [0, 1, 2, 3, 4].map(|start_ns| Id { pid: child.id(), start_ns });
        let found = ids.map(|id| writers.devices(id, false, 7).len());
        assert_eq!(found, [1, 1, 1, 1, 0], "each has more than FILES_MAX files");
        assert_eq!(writers.devices(ids[4], false, 8).len(), 1, "at the next look it is its turn");
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn one_look_reads_so_many_tables_of_mounts_and_believes_what_it_found() {
        let facts = weir_fs::facts_unasked("/proc/self/stat").unwrap();
        let number = files::number_by_stat(&facts);
        let (mut numbers, pid) = (Numbers::default(), std::process::id());
        assert_eq!(numbers.device(&mut Process { pid, mounts: None }, &facts), number);
        assert!(numbers.known.is_empty(), "what was not looked up is not known");
        numbers.tables_left = 1;
        let mut process = Process { pid, mounts: None };
        // Opened before its process went elsewhere: no mount of that number is seen there.
        let elsewhere = weir_fs::Facts { mount: Some(u64::MAX), ..facts };
        assert_eq!(numbers.device(&mut process, &elsewhere), number);
        assert!(numbers.known.is_empty() && numbers.tables_left == 0);
        assert_eq!(numbers.device(&mut process, &facts), number);
        assert_eq!(numbers.known, [(number, number)].into(), "the table is read once a process");
    }

    #[test]
    fn threads_add_up_and_numbers_used_again_are_others() {
        let (mut writers, mut found) = (Writers::default(), HashMap::new());
        let id = Id { pid: 10, start_ns: 7 };
        let cases = [
            ("what was before counts in the total only", vec![told(10, 10, 7, 500)], (0, 500)),
            ("a thread that began since", vec![told(10, 10, 7, 600), told(11, 10, 9, 30)], (130, 630)),
            ("another thread of that number", vec![told(10, 10, 7, 600), told(11, 10, 12, 20)], (20, 620)),
        ];
        for (name, threads, (bytes, total_bytes)) in cases {
            writers.take(&threads.concat(), &mut found);
            let expected = Written { comm: "mariadbd".to_string(), bytes, total_bytes };
            assert_eq!(found.get(&id), Some(&expected), "{name}");
        }
        let mut renamed = told(10, 10, 7, 600);
        renamed[48 + 5] = 0;
        writers.take(&renamed, &mut found);
        assert_eq!(found[&id], Written { comm: "maria".to_string(), bytes: 0, total_bytes: 600 });
        writers.take(&[], &mut found);
        assert_eq!(found, HashMap::new());
        assert!(writers.threads.is_empty(), "nothing stays of threads that are gone");
    }
}
