//! What the kernel says of processes and open files of other accounts, asked so that none of them keeps weir waiting.
//!
//! Some files of `/proc/PID` (io, syscall, stack) wait while the process changes its program, and that may wait for a file
//! system that the account serves itself (FUSE), for ever. The attributes of an open file are asked of its file system.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, StatxFlags};

/// The kernel answers within microseconds; a busy machine lets the reader wait for a processor.
const PATIENCE: Duration = Duration::from_millis(250);
/// So many readers may be stuck at a time: beyond that nothing is asked until one of them returns.
const STUCK_MAX: usize = 8;
/// So much waiting there is in so long, all together: who answers late, but in time, is many processes as easily as one.
const BUDGET: Duration = Duration::from_secs(5);
const WINDOW: Duration = Duration::from_secs(10);
/// These files have a few lines.
const TEXT_MOST: u64 = 64 << 10;

static READERS: Mutex<Readers> = Mutex::new(Readers::new());

/// The text of `/proc/TASK/NAME`.
///
/// # Errors
/// Those of open(2) and read(2); `TimedOut` where the task keeps the reader waiting, now or since an earlier call, and where
/// others have done so for long.
pub fn text_of_task(task: u32, name: &str) -> io::Result<String> {
    READERS.lock().unwrap_or_else(PoisonError::into_inner).text(task, format!("/proc/{task}/{name}"))
}

/// What an open file is, as far as the kernel knows by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Type and permissions.
    pub mode: u32,
    /// Number of the file system's device.
    pub device: (u32, u32),
    /// Number of the device that a device file stands for.
    pub special: (u32, u32),
    /// Number of the file in its file system.
    pub inode: u64,
    /// Of the mount that it was opened through, as in mountinfo; `None` before Linux 5.8.
    pub mount: Option<u64>,
}

/// What a file is, without a question to a file system that is served elsewhere. Links are followed.
///
/// # Errors
/// Those of statx(2).
pub fn facts_unasked(path: impl AsRef<Path>) -> io::Result<Facts> {
    let wanted = StatxFlags::TYPE | StatxFlags::MODE | StatxFlags::INO | StatxFlags::MNT_ID;
    let found = rustix::fs::statx(CWD, path.as_ref(), AtFlags::STATX_DONT_SYNC, wanted)?;
    Ok(Facts {
        mode: u32::from(found.stx_mode),
        device: (found.stx_dev_major, found.stx_dev_minor),
        special: (found.stx_rdev_major, found.stx_rdev_minor),
        inode: found.stx_ino,
        mount: (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id),
    })
}

/// Threads that read, one at a time; those that do not return are left behind.
struct Readers {
    ready: Option<Reader>,
    stuck: Vec<(u32, Reader)>,
    /// What was waited since this time.
    waited: Duration,
    since: Option<Instant>,
}

struct Reader {
    ask: Sender<String>,
    answers: Receiver<io::Result<String>>,
}

impl Readers {
    const fn new() -> Readers {
        Readers { ready: None, stuck: Vec::new(), waited: Duration::ZERO, since: None }
    }

    fn text(&mut self, task: u32, path: String) -> io::Result<String> {
        let begun = Instant::now();
        if self.since.is_none_or(|since| begun.duration_since(since) >= WINDOW) {
            (self.since, self.waited) = (Some(begun), Duration::ZERO);
        }
        let text = self.within_budget(task, path);
        self.waited += begun.elapsed();
        text
    }

    fn within_budget(&mut self, task: u32, path: String) -> io::Result<String> {
        self.stuck.retain(|(_, reader)| reader.answers.try_recv().is_err());
        let is_stuck = self.stuck.iter().any(|(of, _)| *of == task);
        if is_stuck || self.stuck.len() >= STUCK_MAX || self.waited >= BUDGET {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let reader = match self.ready.take() {
            Some(reader) => reader,
            None => Reader::start()?,
        };
        reader.ask.send(path).map_err(|_| io::ErrorKind::BrokenPipe)?;
        match reader.answers.recv_timeout(PATIENCE) {
            Ok(answer) => {
                self.ready = Some(reader);
                answer
            }
            Err(RecvTimeoutError::Timeout) => {
                self.stuck.push((task, reader));
                Err(io::ErrorKind::TimedOut.into())
            }
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Reader {
    fn start() -> io::Result<Reader> {
        let (ask, asked) = channel::<String>();
        let (answer, answers) = channel();
        std::thread::Builder::new().name("weir-procs".to_string()).spawn(move || {
            // It ends with its channel. The owner of a file may see to it that not even a signal ends its wait: what the process has
            // open (locks, sockets, pipes to who restores its settings) must not stay open with it.
            let first: libc::c_uint = 3;
            // SAFETY: takes numbers; from here on this thread has descriptors of its own, and uses none that is closed.
            unsafe {
                libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE)
            };
            while let Ok(path) = asked.recv() {
                if answer.send(read(&path)).is_err() {
                    break;
                }
            }
        })?;
        Ok(Reader { ask, answers })
    }
}

fn read(path: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(TEXT_MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_never_answers_keeps_nobody_waiting_for_long() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let other = folder.path().join("other");
        std::fs::write(&other, "x").unwrap();
        let mut readers = Readers::new();
        let mut kind =
            |task, path: &Path| readers.text(task, path.display().to_string()).map_err(|error| error.kind());
        assert_eq!(kind(1, &fifo), Err(io::ErrorKind::TimedOut));
        assert_eq!(kind(1, &other), Err(io::ErrorKind::TimedOut), "it is not tried again");
        assert_eq!(kind(2, &other), Ok("x".to_string()), "others are");
        for task in 3..10 {
            assert_eq!(kind(task, &fifo), Err(io::ErrorKind::TimedOut));
        }
        assert_eq!(kind(11, &other), Err(io::ErrorKind::TimedOut), "too many readers are stuck");
        // Each reader opens it, sees its end, and is back.
        let mut seen = kind(1, &other);
        for _ in 0..200 {
            drop(File::options().write(true).open(&fifo).unwrap());
            std::thread::sleep(Duration::from_millis(10));
            seen = kind(1, &other);
            if seen.is_ok() {
                break;
            }
        }
        assert_eq!(seen, Ok("x".to_string()));
    }

    #[test]
    fn late_answers_are_waited_for_within_a_budget() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let mut readers = Readers::new();
        assert!(readers.text(1, path.clone()).is_ok() && readers.waited > Duration::ZERO);
        readers.waited = BUDGET;
        assert_eq!(readers.text(2, path.clone()).unwrap_err().kind(), io::ErrorKind::TimedOut);
        readers.since = Instant::now().checked_sub(WINDOW);
        assert!(readers.text(2, path).is_ok(), "a new window has begun");
    }

    #[test]
    fn tasks_and_files_of_this_process_are_told() {
        use std::os::unix::fs::MetadataExt;
        let own = std::process::id();
        assert!(text_of_task(own, "io").unwrap().contains("read_bytes"));
        assert_eq!(text_of_task(own, "no-such").unwrap_err().kind(), io::ErrorKind::NotFound);
        let file = tempfile::NamedTempFile::new().unwrap();
        let (facts, stat) = (facts_unasked(file.path()).unwrap(), std::fs::metadata(file.path()).unwrap());
        assert_eq!((facts.mode, facts.inode), (stat.mode(), stat.ino()));
    }
}
