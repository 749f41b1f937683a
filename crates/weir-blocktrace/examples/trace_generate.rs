//! Writes blktrace recordings (version 7, per-CPU files) of any length, of a machine that does not exist: an NVMe drive
//! without scheduler and a disk behind mq-deadline, with reads, writes, merges, splits, requeues, flushes and journal
//! commits in the proportions of a database server. The same arguments make the same bytes.
//!
//!     trace_generate FOLDER EVENTS [CPUS] [SEED]
#![allow(clippy::disallowed_methods, reason = "a tool that writes files; the library writes none")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
const SYNC: u32 = 1 << 19;
const QUEUE: u32 = 1 << 20;
const ISSUE: u32 = 1 << 22;
const COMPLETE: u32 = 1 << 23;
const FS: u32 = 1 << 24;
const NOTIFY: u32 = 1 << 26;
const AHEAD: u32 = 1 << 27;
const META: u32 = 1 << 28;
const FUA: u32 = 1 << 31;

const PROCESSES: [(u32, &str); 4] =
    [(2101, "mysqld"), (2102, "mysqld"), (611, "jbd2/sda1-8"), (44, "kworker/0:1H")];

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |nth: usize, otherwise: u64| arguments.get(nth).and_then(|a| a.parse().ok()).unwrap_or(otherwise);
    let Some(folder) = arguments.first() else {
        eprintln!("trace_generate FOLDER EVENTS [CPUS] [SEED]");
        std::process::exit(2);
    };
    std::fs::create_dir_all(folder)?;
    let (events, cpus) = (number(1, 1_500_000), number(2, 2).clamp(1, 64) as u32);
    let mut machine = Machine::new(Path::new(folder), cpus, number(3, 1))?;
    while machine.written < events {
        machine.next_io()?;
    }
    machine.drain(u64::MAX)?;
    machine.disks.iter_mut().flat_map(|disk| &mut disk.files).try_for_each(|file| file.flush())
}

/// One record before it is written; ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Record {
    time_ns: u64,
    number: u64,
    disk: usize,
    cpu: u32,
    pid: u32,
    action: u32,
    sector: u64,
    sectors: u32,
    detail: Option<u64>,
}

struct Disk {
    device: u32,
    has_scheduler: bool,
    files: Vec<BufWriter<File>>,
    sequence: Vec<u32>,
    next_write: u64,
}

struct Machine {
    disks: Vec<Disk>,
    cpus: u32,
    pending: BinaryHeap<Reverse<Record>>,
    now_ns: u64,
    made: u64,
    written: u64,
    random: u64,
}

/// What is submitted.
#[derive(Clone, Copy)]
struct Io {
    disk: usize,
    cpu: u32,
    pid: u32,
    kind: u32,
    sector: u64,
    sectors: u32,
}

impl Machine {
    fn new(folder: &Path, cpus: u32, seed: u64) -> io::Result<Machine> {
        let mut machine = Machine {
            disks: Vec::new(),
            cpus,
            pending: BinaryHeap::new(),
            now_ns: 1_000_000_000,
            made: 0,
            written: 0,
            random: seed | 1,
        };
        for (name, device, has_scheduler) in [("nvme0n1", 259 << 20, false), ("sda", 8 << 20, true)] {
            let file = |cpu| File::create(folder.join(format!("{name}.blktrace.{cpu}"))).map(BufWriter::new);
            let files = (0..cpus).map(file).collect::<io::Result<Vec<_>>>()?;
            let sequence = vec![0; cpus as usize];
            machine.disks.push(Disk { device, has_scheduler, files, sequence, next_write: 1 << 24 });
            machine.preface(machine.disks.len() - 1)?;
        }
        Ok(machine)
    }

    /// The wall clock, once a disk, and the names of the threads.
    fn preface(&mut self, disk: usize) -> io::Result<()> {
        let (device, time_ns) = (self.disks[disk].device, self.now_ns - 1000);
        let clock = [1_795_000_000_u32.to_le_bytes(), 0_u32.to_le_bytes()].concat();
        self.disks[disk].files[0].write_all(&bytes_of(
            0,
            time_ns,
            0,
            0,
            NOTIFY | 1,
            [0, device, 0],
            &clock,
        ))?;
        for (pid, name) in PROCESSES {
            let mut text = [0; 16];
            text[..name.len()].copy_from_slice(name.as_bytes());
            let note = bytes_of(0, time_ns, 0, 0, NOTIFY, [pid, device, 0], &text);
            self.disks[disk].files[0].write_all(&note)?;
        }
        Ok(())
    }

    fn random(&mut self, below: u64) -> u64 {
        // xorshift64 (Marsaglia 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// Starts what a server does next.
    fn next_io(&mut self) -> io::Result<()> {
        self.now_ns += 500 + self.random(20_000);
        self.drain(self.now_ns)?;
        let disk = usize::from(self.random(3) == 0);
        let cpu = self.random(u64::from(self.cpus)) as u32;
        let (pid, _) = PROCESSES[self.random(2) as usize];
        let sector = self.random(1 << 24) * 8;
        let io = Io { disk, cpu, pid, kind: READ, sector, sectors: 8 };
        let sectors = 8 << self.random(3);
        match self.random(100) {
            0..55 => self.simple(Io { sectors, ..io }),
            55..60 => self.simple(Io { kind: READ | AHEAD, sectors: 256, ..io }),
            60..75 => self.simple(Io { kind: WRITE | SYNC, sectors: 32, ..io }),
            75..90 => self.merged(Io { kind: WRITE, ..io }),
            90..93 => self.split(Io { kind: WRITE, sectors: 1024, ..io }),
            93..94 => self.requeued(io),
            94..97 => self.flush(Io { kind: WRITE | SYNC, sector: 0, sectors: 0, ..io }),
            _ => self.commit(Io { kind: WRITE | SYNC | META, pid: 611, ..io }),
        }
        Ok(())
    }

    fn push(&mut self, time_ns: u64, io: Io, action: u32, detail: Option<u64>) {
        self.made += 1;
        self.pending.push(Reverse(Record {
            time_ns,
            number: self.made,
            disk: io.disk,
            cpu: io.cpu,
            pid: io.pid,
            action,
            sector: io.sector,
            sectors: io.sectors,
            detail,
        }));
    }

    /// From G to C; where there is a scheduler, I is between.
    fn serve(&mut self, got_ns: u64, io: Io, whole: Io) -> u64 {
        self.push(got_ns, io, io.kind | QUEUE | 4, None);
        let mut time_ns = got_ns + 300 + self.random(900);
        if self.disks[io.disk].has_scheduler {
            self.push(time_ns, whole, whole.kind | QUEUE | FS | 12, None);
            time_ns += 500 + self.random(30_000);
        }
        self.drive(time_ns, whole)
    }

    fn drive(&mut self, issued_ns: u64, io: Io) -> u64 {
        let base_ns = if self.disks[io.disk].has_scheduler { 90_000 } else { 30_000 };
        let done_ns = issued_ns + base_ns + self.random(base_ns) + u64::from(io.sectors) * 60;
        self.push(issued_ns, io, io.kind | ISSUE | FS | 7, None);
        self.push(done_ns, Io { pid: 0, ..io }, io.kind | COMPLETE | FS | 8, None);
        done_ns
    }

    fn simple(&mut self, io: Io) {
        self.push(self.now_ns, io, io.kind | QUEUE | 1, None);
        self.serve(self.now_ns + 400, io, io);
    }

    /// A plugged run of neighbours: one request with several bios in it.
    fn merged(&mut self, io: Io) {
        let bios = 2 + self.random(7) as u32;
        let sector = self.disks[io.disk].next_write;
        self.disks[io.disk].next_write += u64::from(bios) * 8 + 64;
        let first = Io { sector, ..io };
        let none = Io { sector: 0, sectors: 0, kind: READ, ..io };
        self.push(self.now_ns, first, io.kind | QUEUE | 1, None);
        self.push(self.now_ns + 50, none, QUEUE | READ | 9, None);
        let mut time_ns = self.now_ns + 700;
        for nth in 1..bios {
            let bio = Io { sector: sector + u64::from(nth) * 8, ..io };
            self.push(time_ns, bio, io.kind | QUEUE | 1, None);
            self.push(time_ns + 150, bio, io.kind | QUEUE | 2, None);
            time_ns += 400;
        }
        self.push(self.now_ns + 300, first, io.kind | QUEUE | 4, None);
        self.push(time_ns, none, QUEUE | READ | 10, Some(1));
        let whole = Io { sectors: bios * 8, ..first };
        time_ns += 100;
        if self.disks[io.disk].has_scheduler {
            self.push(time_ns, whole, io.kind | QUEUE | FS | 12, None);
            time_ns += 20_000;
        }
        self.drive(time_ns, whole);
    }

    fn split(&mut self, io: Io) {
        self.push(self.now_ns, io, io.kind | QUEUE | 1, None);
        let (mut time_ns, mut rest) = (self.now_ns + 300, io);
        while rest.sectors > 256 {
            let front = Io { sectors: 256, ..rest };
            rest = Io { sector: rest.sector + 256, sectors: rest.sectors - 256, ..rest };
            self.push(time_ns, front, io.kind | 13, Some(rest.sector));
            self.serve(time_ns + 200, front, front);
            time_ns += 2000;
        }
        self.serve(time_ns, rest, rest);
    }

    fn requeued(&mut self, io: Io) {
        self.push(self.now_ns, io, io.kind | QUEUE | 1, None);
        self.push(self.now_ns + 300, io, io.kind | QUEUE | 4, None);
        self.push(self.now_ns + 600, io, io.kind | ISSUE | FS | 7, None);
        self.push(self.now_ns + 1600, io, io.kind | (1 << 21) | FS | 6, None);
        self.drive(self.now_ns + 4000, io);
    }

    /// A command to the drive; its end.
    fn flush_command(&mut self, time_ns: u64, io: Io) -> u64 {
        let done_ns = time_ns + 150_000 + self.random(150_000);
        let command = Io { sector: 0, sectors: 0, kind: READ | FLUSH, pid: 44, ..io };
        self.push(time_ns, command, command.kind | ISSUE | FS | 7, None);
        self.push(done_ns, Io { pid: 0, ..command }, command.kind | COMPLETE | FS | 8, None);
        done_ns
    }

    fn flush(&mut self, io: Io) {
        self.push(self.now_ns, io, io.kind | FLUSH | QUEUE | 1, None);
        self.push(self.now_ns + 500, io, io.kind | FLUSH | QUEUE | 4, None);
        let done_ns = self.flush_command(self.now_ns + 900, io);
        self.push(done_ns + 700, Io { pid: 0, ..io }, io.kind | COMPLETE | FS | 8, None);
    }

    /// A journal's commit on a drive that cannot write through: flush, data, flush, and the end of it all.
    fn commit(&mut self, io: Io) {
        let asked = io.kind | FLUSH | FUA | QUEUE;
        self.push(self.now_ns, io, asked | 1, None);
        self.push(self.now_ns + 400, io, asked | 4, None);
        let flushed_ns = self.flush_command(self.now_ns + 900, io);
        let written_ns = self.drive(flushed_ns + 3000, io);
        let done_ns = self.flush_command(written_ns + 2000, io);
        let end = Io { sectors: 0, pid: 0, ..io };
        self.push(done_ns + 600, end, io.kind | COMPLETE | FS | 8, None);
    }

    /// Writes what happened before `until_ns`.
    fn drain(&mut self, until_ns: u64) -> io::Result<()> {
        while let Some(Reverse(record)) =
            self.pending.peek().filter(|next| next.0.time_ns < until_ns).copied()
        {
            self.pending.pop();
            let disk = &mut self.disks[record.disk];
            let sequence = &mut disk.sequence[record.cpu as usize];
            *sequence += 1;
            let payload = record.detail.map(u64::to_be_bytes);
            let bytes = bytes_of(
                *sequence,
                record.time_ns,
                record.sector,
                record.sectors * 512,
                record.action,
                [record.pid, disk.device, record.cpu],
                payload.as_ref().map_or(&[], <[u8; 8]>::as_slice),
            );
            disk.files[record.cpu as usize].write_all(&bytes)?;
            self.written += 1;
        }
        Ok(())
    }
}

/// A record as blktrace writes it; `who` is thread, device and CPU.
fn bytes_of(
    sequence: u32,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    who: [u32; 3],
    payload: &[u8],
) -> Vec<u8> {
    let mut record = Vec::with_capacity(64);
    record.extend_from_slice(&0x6561_7407_u32.to_le_bytes());
    record.extend_from_slice(&sequence.to_le_bytes());
    record.extend_from_slice(&time_ns.to_le_bytes());
    record.extend_from_slice(&sector.to_le_bytes());
    record.extend_from_slice(&bytes.to_le_bytes());
    record.extend_from_slice(&action.to_le_bytes());
    who.iter().for_each(|field| record.extend_from_slice(&field.to_le_bytes()));
    record.extend_from_slice(&0_u16.to_le_bytes());
    record.extend_from_slice(&(payload.len() as u16).to_le_bytes());
    record.extend_from_slice(payload);
    record
}
