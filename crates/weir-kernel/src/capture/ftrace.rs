//! The kernel's tracer `blk` in its binary mode (kernel/trace/blktrace.c): blktrace's records through tracefs, where
//! the relay's files are locked. It is one for the whole machine, so it is only taken where nobody uses it.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use weir_blocktrace::decode::{Batch, Decoder};
use weir_blocktrace::recording::BlktraceWriter;
use weir_blocktrace::{Event, Item};

use super::blktrace::{kept_open, settings_of};
use super::records::BlktraceRecord;
use super::sink::{Progress, Sink};
use super::tracer_journal::{Setting, TracerJournal, in_use, opened};
use crate::Error;
use crate::tracefs::Tracefs;

/// Threads whose names are told; Linux knows no more.
const THREADS_MAX: usize = 1 << 22;
/// One round takes so much of a CPU at most, so that `until` is asked in time.
const ROUND_BYTES_MAX: usize = 4 << 20;

/// The tracer, ours.
pub struct Ftrace {
    // Dropped in this order: pipes are closed before settings go back, devices stay open until then, and the mount goes last.
    pipes: Vec<File>,
    journal: TracerJournal,
    _devices: Vec<File>,
    disks: Vec<String>,
    /// By CPU: each one's stream is read by itself, and tells a thread's name before its first record.
    named: Vec<HashSet<u32>>,
    buffer: Vec<u8>,
    /// Size of each CPU's ring.
    ring_bytes: usize,
    /// By CPU, where the kernel's records are cut: what makes whole ones of them.
    cut: Vec<Option<Cut>>,
    /// Events that found a buffer full.
    pub dropped_by_cpu: Vec<u64>,
    mount: Tracefs,
}

impl Ftrace {
    /// Takes the tracer and sets it up.
    pub fn open(disks: &[String], ring_bytes: usize, cpus: usize) -> Result<Ftrace, Error> {
        let journal = opened(TracerJournal::open())?;
        let mount = Tracefs::open()?;
        let mut ftrace = Ftrace {
            pipes: Vec::new(),
            journal,
            _devices: disks.iter().filter_map(|disk| kept_open(&switch_of(disk))).collect(),
            disks: disks.to_vec(),
            named: vec![HashSet::new(); cpus],
            buffer: vec![0; 64 << 10],
            ring_bytes,
            cut: (0..cpus).map(|_| None).collect(),
            dropped_by_cpu: vec![0; cpus],
            mount,
        };
        ftrace.refuse_if_used()?;
        let kilobytes = (ring_bytes >> 10).to_string();
        let settings = [
            ("current_tracer", "blk"),
            // Its own text comes before the binary mode.
            ("options/blk_classic", "0"),
            ("options/bin", "1"),
            ("options/context-info", "0"),
            // The application's clock, and that of all other recordings.
            ("trace_clock", "mono"),
            ("buffer_size_kb", &kilobytes),
            ("tracing_on", "1"),
        ];
        for (setting, value) in settings {
            ftrace.set(Setting::Tracefs(setting.into()), value)?;
        }
        for cpu in 0..cpus {
            let path = ftrace.mount.root().join(format!("per_cpu/cpu{cpu}/trace_pipe"));
            let pipe = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
            ftrace.pipes.push(pipe.map_err(|source| system("the tracer's pipe", source))?);
        }
        Ok(ftrace)
    }

    /// Somebody else's tracer, or events in the same buffers, would be disturbed.
    fn refuse_if_used(&self) -> Result<(), Error> {
        let read = |name: &str| fs::read_to_string(self.mount.root().join(name)).unwrap_or_default();
        let tracer = read("current_tracer");
        if tracer.trim() != "nop" {
            return Err(in_use(format!(
                "the kernel's tracer is in use: current_tracer is {}",
                tracer.trim()
            )));
        }
        let events = read("set_event");
        if let Some(event) = events.lines().next() {
            return Err(in_use(format!(
                "the kernel's tracer is in use: {event} is switched on in set_event"
            )));
        }
        for disk in &self.disks {
            let enabled = fs::read_to_string(switch_of(disk)).unwrap_or_default();
            if enabled.trim() == "1" {
                return Err(in_use(format!("{disk} is being traced already")));
            }
        }
        Ok(())
    }

    fn set(&mut self, setting: Setting, value: &str) -> Result<(), Error> {
        let what = setting.to_string();
        self.journal.set(setting, value).map_err(|source| system(&what, source))
    }

    /// Switches the devices on.
    pub fn begin(&mut self) -> Result<(), Error> {
        for disk in self.disks.clone() {
            self.set(Setting::File(switch_of(&disk)), "1")?;
        }
        Ok(())
    }

    /// Switches the devices off.
    pub fn end(&mut self) {
        for disk in &self.disks {
            // The journal tries it again.
            let _ = fs::write(switch_of(disk), "0");
        }
    }

    /// Takes what the rings hold; returns how full the fullest was, in parts of 1.
    pub fn round(&mut self, sink: &mut Sink, progress: &mut Progress) -> f64 {
        let mut fullest = 0;
        for cpu in 0..self.pipes.len() {
            let mut taken = 0;
            while taken < ROUND_BYTES_MAX {
                // At the end of the buffer the read says EAGAIN, or nothing.
                let Ok(length @ 1..) = self.pipes[cpu].read(&mut self.buffer) else { break };
                taken += length;
                progress.events += self.records(cpu, length, sink);
            }
            fullest = fullest.max(taken);
        }
        progress.dropped = self.dropped_by_cpu.iter().sum();
        fullest as f64 / self.ring_bytes as f64
    }

    /// Whether the kernel's records told neither errors nor where bios were remapped from.
    pub fn is_cut(&self) -> bool {
        self.cut.iter().any(Option::is_some)
    }

    /// Passes on the records in the buffer; between them the tracer tells in words what it lost.
    fn records(&mut self, cpu: usize, length: usize, sink: &mut Sink) -> u64 {
        if self.cut[cpu].is_none() {
            self.cut[cpu] = Cut::of(&self.buffer[..length]);
        }
        if self.cut[cpu].is_some() {
            return self.cut_records(cpu, length, sink);
        }
        let bytes = &self.buffer[..length];
        let named = &mut self.named[cpu];
        let (mut from, mut at, mut names) = (0, 0, Vec::new());
        let mut events = 0;
        while at < length {
            if let Some(record) = BlktraceRecord::of(&bytes[at..]) {
                if named.len() < THREADS_MAX && named.insert(record.pid) {
                    name(record.pid, cpu, self.mount.root(), &mut names);
                }
                at += record.bytes;
                continue;
            }
            sink.blktrace_records(cpu, &std::mem::take(&mut names));
            events += sink.blktrace_records(cpu, &bytes[from..at]);
            let (skipped, lost) = lost(&bytes[at..]);
            self.dropped_by_cpu[cpu] += lost;
            at += skipped;
            from = at;
        }
        sink.blktrace_records(cpu, &names);
        events += sink.blktrace_records(cpu, &bytes[from..at]);
        events
    }

    fn cut_records(&mut self, cpu: usize, length: usize, sink: &mut Sink) -> u64 {
        let Some(cut) = &mut self.cut[cpu] else { return 0 };
        let batch = cut.take(&self.buffer[..length]);
        let named = &mut self.named[cpu];
        let mut whole = Vec::new();
        for item in batch.items() {
            match item {
                Item::Event(event) => {
                    if named.len() < THREADS_MAX && named.insert(event.pid) {
                        name(event.pid, cpu, self.mount.root(), &mut whole);
                    }
                    cut.writer.event(&event, &mut whole);
                }
                Item::Dropped { events } => self.dropped_by_cpu[cpu] += events,
                _ => {}
            }
        }
        sink.blktrace_records(cpu, &whole)
    }
}

/// Linux 7.2's records, which are whole ones of version 7 after this.
struct Cut {
    decoder: Decoder,
    /// The start of a record, whose end comes with the next read.
    rest: Vec<u8>,
    writer: BlktraceWriter,
}

impl Cut {
    /// For a stream that starts like this, if its records are cut.
    fn of(bytes: &[u8]) -> Option<Cut> {
        let decoder = Decoder::new("the tracer's pipe", bytes).ok()?;
        decoder.is_cut().then(|| Cut { decoder, rest: Vec::new(), writer: BlktraceWriter::default() })
    }

    /// What came, decoded.
    fn take(&mut self, bytes: &[u8]) -> Batch {
        let mut batch = Batch::default();
        self.rest.extend_from_slice(bytes);
        match self.decoder.decode(&self.rest, &mut batch) {
            Ok(used) => drop(self.rest.drain(..used)),
            // The kernel's records are no foreign data: what is no record ends here, and the next read begins anew.
            Err(_) => self.rest.clear(),
        }
        batch
    }
}

/// What stands between records: `CPU:1 [LOST 123 EVENTS]` and a new line. Length of the line, and events lost (one if
/// their number is not told).
fn lost(bytes: &[u8]) -> (usize, u64) {
    let length = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
    let line = String::from_utf8_lossy(&bytes[..length]);
    let number = line.split_once("[LOST ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    (length, number.unwrap_or(1))
}

/// Appends blktrace's record of a thread's name, which the tracer's stream does not have. A thread that has ended is
/// among those whose names the tracer keeps (`saved_cmdlines`: lines of thread and name), unless many came after it.
fn name(pid: u32, cpu: usize, tracefs: &Path, out: &mut Vec<u8>) {
    let name = weir_fs::read_lossily(format!("/proc/{pid}/comm")).ok().or_else(|| {
        let kept = weir_fs::read_lossily(tracefs.join("saved_cmdlines")).ok()?;
        let mut lines = kept.lines().filter_map(|line| line.trim_start().split_once(' '));
        lines.find(|(thread, _)| *thread == pid.to_string()).map(|(_, name)| name.to_string())
    });
    if let Some(name) = name {
        let item = Item::Process { pid, process: 0, name: name.trim_end().to_string() };
        BlktraceWriter::default().item(&item, &Event { cpu: cpu as u32, ..Event::default() }, out);
    }
}

/// The file that switches a disk's tracing on.
fn switch_of(disk: &str) -> PathBuf {
    settings_of(disk).join("enable")
}

fn system(what: &str, source: io::Error) -> Error {
    Error::System { what: PathBuf::from(what).display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_losses_are_told_apart() {
        let mut bytes = Vec::new();
        let event = Event { act: weir_blocktrace::Act::Split, pid: 77, detail: 9, ..Event::default() };
        BlktraceWriter::default().event(&event, &mut bytes);
        let record = BlktraceRecord { torn: false, bytes: 56, time_ns: 0, pid: 77, notify: false };
        assert_eq!(BlktraceRecord::of(&bytes), Some(record));
        assert_eq!(BlktraceRecord::of(&bytes[..55]), None);
        for (text, expected) in [
            (&b"CPU:1 [LOST 123 EVENTS]\nrest"[..], (24, 123)),
            (b"CPU:1 [LOST EVENTS]\n", (20, 1)),
            (b"what is this", (12, 1)),
        ] {
            assert_eq!((BlktraceRecord::of(text), lost(text)), (None, expected));
        }
    }
}
