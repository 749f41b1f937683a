//! Threads of other processes: how long they ran and waited for a processor, and where they sleep.
//!
//! Threads are named by their kernel number, which is how servers name them, too; `/proc/NUMBER` answers for every
//! thread, though it lists only the first one of each process.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use weir_control::Life;
use weir_oltp::limits::OffCpu;

use crate::cpu::parse_cpu_list;
use crate::error::{BadLine, HostError};
use crate::host::Host;

/// Open files of a process that are looked at: one may have a million, and a guard asks every second.
const FILES_MAX: usize = 1024;
/// They are looked at for so long.
const FILES_TIME: Duration = Duration::from_millis(20);

/// What the scheduler counted of one thread since it began, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskClock {
    /// On a processor.
    pub on_ns: u64,
    /// Ready to run, waiting for one.
    pub queued_ns: u64,
}

impl Host {
    /// A thread's clock; `None` once it is gone.
    ///
    /// # Errors
    /// When `schedstat` is there but cannot be read or understood.
    pub fn task_clock(&self, thread: u32) -> Result<Option<TaskClock>, HostError> {
        match self.tree.parsed(&format!("/proc/{thread}/schedstat"), parse_schedstat) {
            Err(error) if error.is_absent() || is_gone(&error) => Ok(None),
            clock => clock.map(Some),
        }
    }

    /// Where a thread sleeps; `None` once it is gone.
    ///
    /// # Errors
    /// When the kernel refuses, as it does for processes of other users.
    pub fn off_cpu(&self, thread: u32) -> Result<Option<OffCpu>, HostError> {
        match self.tree.text(&format!("/proc/{thread}/syscall")) {
            Err(error) if error.is_absent() || is_gone(&error) => Ok(None),
            text => Ok(Some(place(&text?))),
        }
    }

    /// A file in a task's folder of /proc that the task may keep from being read: on this machine it is waited for a moment.
    pub(crate) fn text_of_task(&self, task: u32, name: &str) -> Result<String, HostError> {
        let path = format!("/proc/{task}/{name}");
        if !self.live {
            return self.tree.text(&path);
        }
        weir_fs::text_of_task(task, name).map_err(|error| HostError::io(&self.tree.real(&path), error))
    }

    /// The process that a thread belongs to; `None` where there is no such thread.
    pub fn process_of(&self, thread: u32) -> Option<u32> {
        let status = self.tree.text(&format!("/proc/{thread}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
    }

    /// How many processors a process may use; `None` where there is no such process.
    pub fn processors_of(&self, process: u32) -> Option<u32> {
        let status = self.tree.text(&format!("/proc/{process}/status")).ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        parse_cpu_list(list.trim()).ok()
    }

    /// The process that started this one; `None` where there is no such process.
    pub fn parent_of(&self, process: u32) -> Option<u32> {
        parse_stat(&self.tree.text(&format!("/proc/{process}/stat")).ok()?).map(|stat| stat.parent)
    }

    /// When a process began, in ticks since boot, and its parent; `None` of one that the kernel made for itself, and of one that is gone. (Its command line
    /// would tell a kernel thread as well, but lies in the memory of the process, which may be a page of a file system that never answers.)
    pub(crate) fn birth(&self, process: u32) -> Option<(u64, u32)> {
        let stat = parse_stat(&self.tree.text(&format!("/proc/{process}/stat")).ok()?)?;
        (stat.flags & PF_KTHREAD == 0).then_some((stat.started_ticks, stat.parent))
    }

    /// The name of a process's first thread, or of a thread.
    pub fn name_of(&self, task: u32) -> Option<String> {
        self.tree.line(&format!("/proc/{task}/comm"))
    }

    /// Whether a process has not ended: its first thread may have, before others.
    pub fn is_still(&self, life: Life) -> bool {
        /// USER_HZ is 100 on every architecture that has BPF.
        const TICK_NS: u64 = 10_000_000;
        let stat = self.tree.text(&format!("/proc/{}/stat", life.pid)).ok();
        let stat = stat.and_then(|text| parse_stat(&text));
        stat.is_some_and(|stat| stat.runs && stat.started_ticks == life.start_ns / TICK_NS)
    }

    /// What is asked of a process by its number; `None` where it has ended, and another may have answered.
    pub fn asked_of<T>(&self, life: Life, ask: impl FnOnce(u32) -> T) -> Option<T> {
        let answer = ask(life.pid);
        self.is_still(life).then_some(answer)
    }

    /// The account that a process acts as.
    pub fn account_of(&self, process: u32) -> Option<u32> {
        let folder = self.tree.real(&format!("/proc/{process}"));
        folder.metadata().ok().map(|facts| facts.uid())
    }

    /// The account of a process where it is one's alone: the one that it acts as is the one that started it, and, where that is
    /// told, the one that logged in. A set-user-id program makes another of the first, and of the second where it likes.
    pub fn sole_account_of(&self, process: u32) -> Option<u32> {
        let status = self.tree.text(&format!("/proc/{process}/status")).ok()?;
        let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        let mut ids = ids.split_whitespace().filter_map(|id| id.parse::<u32>().ok());
        let account = ids.next()?;
        // Unset it is the largest number.
        let login = self.tree.line(&format!("/proc/{process}/loginuid")).and_then(|text| text.parse().ok());
        let is_login = login.is_none_or(|login: u32| login == account || login == u32::MAX);
        (ids.all(|id| id == account) && is_login).then_some(account)
    }

    /// Whether a process has a file open that it writes past the page cache (O_DIRECT), among the first 1024 of them, and of no
    /// more than `files`, from which it takes those it looked at: another account's process has as many as it likes. Of those of
    /// other users only root is told.
    pub fn writes_directly(&self, process: u32, files: &mut usize) -> bool {
        let folder = format!("/proc/{process}/fdinfo");
        let (most, begun) = (FILES_MAX.min(*files), Instant::now());
        let mut is_direct = |name: &String| {
            *files = files.saturating_sub(1);
            // What epoll or inotify watches, a line each, is as much as its owner likes.
            let link = self.tree.link(&format!("/proc/{process}/fd/{name}"));
            let is_watcher = link.is_some_and(|to| to.to_string_lossy().starts_with("anon_inode:"));
            if is_watcher || begun.elapsed() > FILES_TIME {
                return false;
            }
            let info = self.text_of_task(process, &format!("fdinfo/{name}")).unwrap_or_default();
            // In octal, proc_pid_fdinfo(5).
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = flags.and_then(|text| i32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0);
            flags & libc::O_DIRECT != 0 && flags & libc::O_ACCMODE != libc::O_RDONLY
        };
        self.tree.some_names(&folder).take(most).any(|name| is_direct(&name))
    }

    /// Threads of a process; none where there is no such process.
    pub fn threads_of(&self, process: u32) -> Vec<u32> {
        self.tree
            .names(&format!("/proc/{process}/task"))
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect()
    }

    /// A process and all that it started, directly or not: one scan of all processes.
    pub fn family_of(&self, process: u32) -> Vec<u32> {
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for pid in self.tree.names("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
            if let Some(parent) = self.parent_of(pid) {
                children.entry(parent).or_default().push(pid);
            }
        }
        let (mut family, mut seen) = (vec![process], HashSet::from([process]));
        let mut next = 0;
        while let Some(&pid) = family.get(next) {
            let of_it = children.get(&pid).into_iter().flatten().copied();
            family.extend(of_it.filter(|child| seen.insert(*child)));
            next += 1;
        }
        family
    }

    /// Whether the kernel counts how long tasks wait for block I/O; `None` where it cannot.
    pub fn counts_block_delay(&self) -> Option<bool> {
        self.tree.value::<u32>("/proc/sys/kernel/task_delayacct").ok().map(|value| value != 0)
    }

    /// Time in ns that a process's threads have waited for block I/O, to a hundredth of a second; 0 where the kernel does
    /// not count it.
    pub fn block_delay_ns(&self, process: u32) -> u64 {
        // USER_HZ is 100 on every architecture that weir runs on.
        const TICK_NS: u64 = 10_000_000;
        let of_thread = |thread: u32| {
            let stat = self.tree.text(&format!("/proc/{process}/task/{thread}/stat")).ok()?;
            parse_stat(&stat).map(|stat| stat.block_delay_ticks)
        };
        self.threads_of(process).into_iter().filter_map(of_thread).sum::<u64>() * TICK_NS
    }
}

/// A thread that ends while it is looked at.
fn is_gone(error: &HostError) -> bool {
    matches!(error, HostError::Io { error, .. } if error.raw_os_error() == Some(libc::ESRCH))
}

/// Nanoseconds on a processor, nanoseconds waiting for one, and how often it got one.
fn parse_schedstat(text: &str) -> Result<TaskClock, BadLine> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<u64>().ok());
    let mut next = |name: &str| numbers.next().flatten().ok_or_else(|| BadLine::new(1, name, text.trim()));
    Ok(TaskClock { on_ns: next("nanoseconds on a processor")?, queued_ns: next("nanoseconds waiting")? })
}

/// include/linux/sched.h.
const PF_KTHREAD: u64 = 0x0020_0000;

struct Stat {
    /// It has a thread that has not ended.
    runs: bool,
    started_ticks: u64,
    parent: u32,
    flags: u64,
    block_delay_ticks: u64,
}

/// The name is in parentheses and may hold any; fields are counted from the last one on (proc_pid_stat(5)).
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.rsplit_once(") ")?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok()).unwrap_or(0);
    let has_first = !["Z", "X", "x"].contains(fields.first()?);
    Some(Stat {
        runs: has_first || number(17) > 1,
        started_ticks: number(19),
        parent: fields.get(1)?.parse().ok()?,
        flags: number(6),
        block_delay_ticks: number(39),
    })
}

/// `running`, or the number of the system call and its arguments; -1 where it sleeps outside of one, in a page fault.
fn place(text: &str) -> OffCpu {
    let word = text.split_whitespace().next().unwrap_or_default();
    if word == "running" {
        return OffCpu::Runs;
    }
    match word.parse::<i64>() {
        Ok(-1) => OffCpu::Read,
        Ok(call) => CALLS
            .iter()
            .find(|(_, calls)| calls.contains(&call))
            .map_or(OffCpu::Elsewhere, |(place, _)| *place),
        Err(_) => OffCpu::Elsewhere,
    }
}

/// System calls that every architecture has, by what they wait for.
const CALLS: [(OffCpu, &[i64]); 7] = [
    (
        OffCpu::Socket,
        &[
            libc::SYS_recvfrom,
            libc::SYS_recvmsg,
            libc::SYS_sendto,
            libc::SYS_sendmsg,
            libc::SYS_ppoll,
            libc::SYS_epoll_pwait,
            libc::SYS_accept4,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select,
        ],
    ),
    (OffCpu::Sync, &[libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_msync, libc::SYS_sync_file_range]),
    (
        OffCpu::Read,
        &[libc::SYS_read, libc::SYS_pread64, libc::SYS_readv, libc::SYS_preadv, libc::SYS_preadv2],
    ),
    (
        OffCpu::Write,
        &[
            libc::SYS_write,
            libc::SYS_pwrite64,
            libc::SYS_writev,
            libc::SYS_pwritev,
            libc::SYS_pwritev2,
            libc::SYS_fallocate,
        ],
    ),
    (OffCpu::Asynchronous, &[libc::SYS_io_getevents, libc::SYS_io_uring_enter, libc::SYS_io_submit]),
    (OffCpu::Futex, &[libc::SYS_futex, libc::SYS_semtimedop]),
    (OffCpu::Nap, &[libc::SYS_clock_nanosleep, libc::SYS_nanosleep]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::testing::Machine;

    #[test]
    fn a_family_is_all_that_descend_from_its_first() {
        let machine = Machine::new();
        let stat = |parent: u32| format!("1 (a) b) S {parent} 17 17 0 -1");
        for (pid, parent) in [(40, 1), (41, 40), (42, 41), (43, 1), (44, 42)] {
            machine.set(&format!("/proc/{pid}/stat"), &stat(parent));
        }
        let mut family = machine.host.family_of(40);
        family.sort_unstable();
        assert_eq!(family, [40, 41, 42, 44]);
        assert_eq!((machine.host.parent_of(44), machine.host.parent_of(99)), (Some(42), None));
    }

    #[test]
    fn the_kernel_says_which_processes_are_its_own() {
        let machine = Machine::new();
        for (flags, expected) in [("2129984", None), ("4194304", Some((815, 2)))] {
            let rest = "0 0 0 0 0 0 0 0 20 0 1 0 815 0";
            machine.set("/proc/70/stat", &format!("70 (kworker) I 2 0 0 0 -1 {flags} {rest}"));
            // A process may hide its command line.
            machine.set("/proc/70/cmdline", "");
            assert_eq!(machine.host.birth(70), expected, "{flags}");
        }
        assert_eq!(machine.host.birth(71), None, "it is gone");
    }

    #[test]
    fn a_file_open_past_the_page_cache_to_be_written_is_told() {
        let machine = Machine::new();
        let link = |path: &str, to: &str| {
            let path = machine.real(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(to, path).unwrap();
        };
        for descriptor in [0, 5] {
            link(&format!("/proc/60/fd/{descriptor}"), "/srv/dump");
        }
        link("/proc/60/fd/6", "anon_inode:[eventpoll]");
        machine.set("/proc/60/fdinfo/6", "pos:\t0\nflags:\t0140002");
        machine.set("/proc/60/fdinfo/0", "pos:\t0\nflags:\t0100000");
        let writes_directly = |process, mut files| machine.host.writes_directly(process, &mut files);
        assert!(!writes_directly(60, 9) && !writes_directly(61, 9));
        for (flags, expected) in [("0140000", false), ("0100002", false), ("0140002", true), ("many", false)]
        {
            machine.set("/proc/60/fdinfo/5", &format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t9"));
            assert_eq!(writes_directly(60, 9), expected, "{flags}");
        }
        machine.set("/proc/60/fdinfo/5", "flags:\t0140002");
        machine.remove("/proc/60/fdinfo/0");
        let mut files = 2;
        assert!(machine.host.writes_directly(60, &mut files) && files == 1);
        assert!(machine.host.writes_directly(60, &mut files) && files == 0);
        assert!(!machine.host.writes_directly(60, &mut files), "there is no time for more");
    }

    /// A pipe may be open so, too.
    #[test]
    fn one_with_a_million_files_is_not_looked_through() {
        use std::io::Read;
        use std::process::{Command, Stdio};

        for (before, expected) in [(10, true), (1100, false)] {
            let opens = "import os,resource,sys; most=resource.getrlimit(resource.RLIMIT_NOFILE)[1]; \
                         resource.setrlimit(resource.RLIMIT_NOFILE,(most,most)); \
                         [os.dup(0) for _ in range(int(sys.argv[1]))]; os.pipe2(os.O_DIRECT); \
                         print(flush=True); sys.stdin.read()";
            let mut python = Command::new("python3");
            python.args(["-c", opens, &before.to_string()]);
            let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
            let is_direct = Host::live().writes_directly(child.id(), &mut (1 << 20));
            assert_eq!(is_direct, expected, "{before} files before it");
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }

    #[test]
    fn clocks_and_places_are_read_and_refused() {
        let machine = Machine::new();
        machine.set("/proc/50/schedstat", "7000 300 12");
        let expected = TaskClock { on_ns: 7000, queued_ns: 300 };
        assert_eq!(machine.host.task_clock(50).unwrap(), Some(expected));
        assert_eq!(machine.host.task_clock(51).unwrap(), None);
        machine.set("/proc/50/schedstat", "7000 x");
        let error = machine.host.task_clock(50).unwrap_err().to_string();
        assert!(error.contains("nanoseconds waiting, got `7000 x`"), "{error}");
        for (text, expected) in [
            ("running".to_string(), OffCpu::Runs),
            (format!("{} 0x1 0x2", libc::SYS_futex), OffCpu::Futex),
            (format!("{} 0x1", libc::SYS_fdatasync), OffCpu::Sync),
            (format!("{} 0x1", libc::SYS_recvfrom), OffCpu::Socket),
            ("-1 0x7f 0x7f".to_string(), OffCpu::Read),
            (format!("{} 0x1", libc::SYS_clock_nanosleep), OffCpu::Nap),
            (format!("{} 0x1", libc::SYS_getpid), OffCpu::Elsewhere),
        ] {
            machine.set("/proc/50/syscall", &text);
            assert_eq!(machine.host.off_cpu(50).unwrap(), Some(expected), "{text}");
        }
        machine.set("/proc/50/status", "Name:\tx\nTgid:\t48\nPid:\t50\nCpus_allowed_list:\t0-2,5");
        assert_eq!(machine.host.process_of(50), Some(48));
        assert_eq!(machine.host.processors_of(50), Some(4));
    }

    #[test]
    fn delays_are_of_all_threads_of_a_process() {
        let machine = Machine::new();
        let fields = |ticks: u32| format!("9 (x) S 1{} {ticks} 0 0", " 0".repeat(37));
        machine.set("/proc/9/task/9/stat", &fields(3));
        machine.set("/proc/9/task/10/stat", &fields(4));
        assert_eq!(machine.host.block_delay_ns(9), 70_000_000);
        assert_eq!(machine.host.counts_block_delay(), None);
        machine.set("/proc/sys/kernel/task_delayacct", "0");
        assert_eq!(machine.host.counts_block_delay(), Some(false));
    }

    #[test]
    fn a_thread_of_this_process_is_seen_running() {
        let (tell, told) = std::sync::mpsc::channel();
        let seen = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                tell.send(own_thread()).unwrap();
                while !seen.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let (host, thread) = (Host::live(), told.recv().unwrap());
            let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
            // The scheduler books a thread's time at its next tick, and the thread may be younger than that.
            let runs = || {
                let clock = host.task_clock(thread).unwrap().unwrap();
                clock.on_ns > 0 && host.off_cpu(thread).unwrap() == Some(OffCpu::Runs)
            };
            while !runs() && std::time::Instant::now() < until {}
            let (runs, process) = (runs(), host.process_of(thread));
            seen.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(runs);
            assert_eq!(process, Some(std::process::id()));
        });
    }

    /// The kernel's number of this thread, as its own folder says it.
    fn own_thread() -> u32 {
        let link = std::fs::read_link("/proc/thread-self").unwrap();
        link.file_name().unwrap().to_string_lossy().parse().unwrap()
    }
}
