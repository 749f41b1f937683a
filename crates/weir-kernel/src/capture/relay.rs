//! blktrace's own way (kernel/trace/blktrace.c): ioctls on the device, and per-CPU relay files in debugfs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::blktrace::{BLKTRACESETUP, BLKTRACESTART, BLKTRACESTOP, command, open};
use super::debugfs::Debugfs;
use super::records::{records, take_whole};
use super::sink::{Progress, Sink};
use super::tracer_journal::{TracerJournal, in_use, opened};
use crate::Error;

/// A ring is cut into so many sub-buffers.
const SUB_BUFFERS: usize = 4;
/// One round takes so much of a file at most.
const ROUND_BYTES_MAX: usize = 4 << 20;

/// `struct blk_user_trace_setup` (linux/blktrace_api.h).
#[repr(C)]
struct Setup {
    name: [u8; 32],
    act_mask: u16,
    buf_size: u32,
    buf_nr: u32,
    start_lba: u64,
    end_lba: u64,
    pid: u32,
}

/// Traces that were set up.
pub struct Relay {
    files: Vec<Disk>,
    /// Size of each file's ring.
    ring_bytes: usize,
    /// Records that the kernel was writing as they were read.
    torn: u64,
    _journal: TracerJournal,
    _mount: Debugfs,
}

struct Disk {
    node: File,
    cpus: Vec<File>,
    /// By CPU, the beginning of a record whose end was not there yet.
    rests: Vec<Vec<u8>>,
    /// `dropped` in debugfs.
    dropped: PathBuf,
}

impl Relay {
    /// Sets up a trace of each disk.
    pub fn open(disks: &[String], ring_bytes: usize, cpus: usize) -> Result<Relay, Error> {
        let mut journal = opened(TracerJournal::open())?;
        let mount = Debugfs::open()?;
        let mut files = Vec::new();
        for disk in disks {
            files.push(set_up(disk, ring_bytes, cpus, &mut journal, &mount)?);
        }
        Ok(Relay { files, ring_bytes, torn: 0, _journal: journal, _mount: mount })
    }

    /// Starts them.
    pub fn begin(&mut self) -> Result<(), Error> {
        for disk in &self.files {
            command(&disk.node, BLKTRACESTART)
                .map_err(|source| Error::System { what: "BLKTRACESTART".to_string(), source })?;
        }
        Ok(())
    }

    /// Stops them; the kernel puts what its sub-buffers hold into the files.
    pub fn end(&mut self) {
        for disk in &self.files {
            let _ = command(&disk.node, BLKTRACESTOP);
        }
    }

    /// Takes what the files hold; returns how full the fullest ring was, in parts of 1.
    pub fn round(&mut self, sink: &mut Sink, progress: &mut Progress) -> f64 {
        let cpus = self.files.first().map_or(0, |disk| disk.cpus.len());
        let mut fullest = 0;
        for cpu in 0..cpus {
            let mut bytes = Vec::new();
            for disk in &mut self.files {
                let (file, rest) = (&mut disk.cpus[cpu], &mut disk.rests[cpu]);
                // An error here is an interrupted read: the next round has what follows.
                let _ = file.by_ref().take(ROUND_BYTES_MAX as u64).read_to_end(rest);
                let (whole, torn) = take_whole(rest);
                self.torn += torn;
                fullest = fullest.max(whole.len());
                bytes.extend(whole);
            }
            if self.files.len() > 1 {
                bytes = in_order_of_time(&bytes);
            }
            progress.events += sink.blktrace_records(cpu, &bytes);
        }
        progress.dropped = self.dropped();
        fullest as f64 / self.ring_bytes as f64
    }

    /// Events that found the relay full, or were read before they were written.
    pub fn dropped(&self) -> u64 {
        let read =
            |path: &Path| fs::read_to_string(path).unwrap_or_default().trim().parse::<u64>().unwrap_or(0);
        self.torn + self.files.iter().map(|disk| read(&disk.dropped)).sum::<u64>()
    }
}

fn set_up(
    disk: &str,
    ring_bytes: usize,
    cpus: usize,
    journal: &mut TracerJournal,
    mount: &Debugfs,
) -> Result<Disk, Error> {
    let system = |what: String| move |source| Error::System { what, source };
    let node = open(disk).map_err(system(disk.to_string()))?;
    let mark = journal
        .relay(disk)
        .map_err(system(format!("the journal of settings to restore, {}", super::tracer_journal::PATH)))?;
    let mut setup = Setup {
        name: [0; 32],
        act_mask: u16::MAX,
        buf_size: (ring_bytes / SUB_BUFFERS) as u32,
        buf_nr: SUB_BUFFERS as u32,
        start_lba: 0,
        end_lba: mark,
        pid: 0,
    };
    // SAFETY: the kernel reads and writes one structure of this layout.
    let done = unsafe { libc::ioctl(node.as_raw_fd(), BLKTRACESETUP as _, &raw mut setup) };
    if done < 0 {
        let source = io::Error::last_os_error();
        return Err(match source.raw_os_error() {
            Some(libc::EBUSY) => in_use(format!("{disk} is being traced already")),
            Some(libc::EPERM | libc::EACCES) => {
                Error::Denied { what: "blktrace's relay", lacking: vec!["CAP_SYS_ADMIN".to_string()] }
            }
            Some(libc::ENOTTY) => {
                Error::Unsupported { lacking: "blktrace (CONFIG_BLK_DEV_IO_TRACE)".to_string() }
            }
            _ => system(format!("BLKTRACESETUP of {disk}"))(source),
        });
    }
    let end = setup.name.iter().position(|&byte| byte == 0).unwrap_or(setup.name.len());
    let folder = mount.root().join("block").join(String::from_utf8_lossy(&setup.name[..end]).as_ref());
    let open = |cpu: usize| {
        let path = folder.join(format!("trace{cpu}"));
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        file.map_err(|source| match source.raw_os_error() {
            Some(libc::EPERM) => Error::Unsupported {
                lacking: "a way to the relay's files, which lockdown keeps shut".to_string(),
            },
            _ => system(format!("the relay file of CPU {cpu}"))(source),
        })
    };
    let rests = vec![Vec::new(); cpus];
    let cpus = (0..cpus).map(open).collect::<Result<_, _>>()?;
    Ok(Disk { node, cpus, rests, dropped: folder.join("dropped") })
}

/// Records of several devices as one CPU wrote them.
fn in_order_of_time(bytes: &[u8]) -> Vec<u8> {
    let mut places: Vec<_> = records(bytes).map(|(at, record)| (record.time_ns, at, record.bytes)).collect();
    places.sort();
    places.iter().flat_map(|&(_, at, length)| &bytes[at..at + length]).copied().collect()
}
