//! Stages by the kernel's own tracer, where programs of ours are not allowed: an instance of it records the block
//! layer's events in bounded buffers, and weir-core's matcher puts lives together from them here.
//!
//! Nothing but events is asked of the kernel, so every kernel with tracefs will do. The price is time: each event is
//! written there and read again here.

mod format;
mod instance;
mod mount;
mod page;
mod sink;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use weir_blocktrace::{Act, Event, Limits, Matcher, SlowIo, StageTable};
use weir_core::target::DeviceNumber;

use self::format::{ESSENTIAL, EVENTS, Format};
pub use self::instance::Instance;
pub use self::mount::Tracefs;
pub(crate) use self::mount::detached;
use self::sink::Stages;
use crate::Error;

/// Buffer of each CPU: at 100 bytes an event it lasts for a tenth of a second at 800,000 events per second.
const BUFFER_KB: usize = 8192;
/// Events kept until all CPUs have been read; past this they are matched at once.
const EVENTS_MAX: usize = 1 << 22;
/// Thread names kept.
const NAMES_MAX: usize = 1 << 16;

/// What a session shall watch. Empty lists and `None` mean everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Devices.
    pub devices: Vec<DeviceNumber>,
    /// Processes (thread groups) whose I/O counts.
    pub pids: Vec<u32>,
    /// I/Os that take at least this long, ns, are handed out one by one.
    pub slow_ns: Option<u64>,
}

/// Events on their way from the kernel into a table. The instance goes away when this is dropped.
pub struct TracerSession {
    // Fields are dropped in this order: an instance that is still being read cannot be removed.
    cpus: Vec<Cpu>,
    instance: Instance,
    _tracefs: Tracefs,
    formats: Vec<Format>,
    pending: Vec<Event>,
    names: HashMap<u32, Box<[u8]>>,
    matcher: Matcher,
    stages: Stages,
    watched: Vec<u32>,
    damaged: u64,
    buffer: Vec<u8>,
}

struct Cpu {
    number: u32,
    pipe: File,
}

impl TracerSession {
    /// Makes an instance and switches the events on.
    ///
    /// # Errors
    /// What is missing: the privilege, tracefs, or the events.
    pub fn start(options: &Options) -> Result<TracerSession, Error> {
        let tracefs = Tracefs::open()?;
        let instance = Instance::create(tracefs.root())?;
        let formats = formats(&instance)?;
        let buffer = vec![0; subbuffer_bytes(&tracefs)?];
        for (file, text) in [
            ("trace_clock", "mono"),
            // A full buffer keeps what it has: lives that have begun are not torn.
            ("options/overwrite", "0"),
            ("buffer_size_kb", &BUFFER_KB.to_string()),
        ] {
            instance.write(file, text)?;
        }
        filter(&instance, &options.devices)?;
        let cpus = cpus(&instance)?;
        let mut session = TracerSession {
            cpus,
            instance,
            _tracefs: tracefs,
            formats,
            pending: Vec::new(),
            names: HashMap::new(),
            matcher: Matcher::new(Limits::default()),
            stages: Stages::new(now_ns(), options.slow_ns, !options.pids.is_empty()),
            watched: options.pids.clone(),
            damaged: 0,
            buffer,
        };
        session.look_for_threads();
        enable(&session.instance)?;
        Ok(session)
    }

    /// Takes in what the kernel has recorded; to be called several times a second.
    ///
    /// # Errors
    /// When the buffers cannot be read.
    pub fn drain(&mut self) -> Result<(), Error> {
        self.look_for_threads();
        let complete_ns = now_ns();
        for at in 0..self.cpus.len() {
            self.drain_cpu(at)?;
        }
        // Every event from before the reading began is here by now, whatever its CPU.
        self.pending.sort_by_key(|event| event.time_ns);
        let ready = self.pending.partition_point(|event| event.time_ns < complete_ns);
        for event in self.pending.drain(..ready) {
            self.matcher.event(&event, &mut self.stages);
        }
        Ok(())
    }

    fn drain_cpu(&mut self, at: usize) -> Result<(), Error> {
        let TracerSession { cpus, formats, pending, names, buffer, damaged, .. } = self;
        let cpu = &mut cpus[at];
        // What came while reading waits for the next time, so that this one ends.
        let rounds = 2 * (BUFFER_KB << 10) / buffer.len().max(1);
        for _ in 0..rounds {
            let length = match cpu.pipe.read(buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => {
                    return Err(Error::System { what: "cannot read the tracer's buffer".into(), source });
                }
            };
            if pending.len() >= EVENTS_MAX {
                *damaged += 1;
                continue;
            }
            let page = page::read(&buffer[..length], |time_ns, record| {
                let id = record.first_chunk().map(|id| u16::from_ne_bytes(*id));
                let Some(format) = formats.iter().find(|format| Some(format.id) == id) else { return };
                let event = format.event(record, time_ns, cpu.number);
                if let Some(name) = format.thread_name(record).filter(|_| names.len() < NAMES_MAX)
                    && names.get(&event.pid).is_none_or(|known| **known != *name)
                {
                    names.insert(event.pid, name.into());
                }
                pending.push(event);
            });
            *damaged += u64::from(page.is_none());
        }
        Ok(())
    }

    /// Threads of the processes that are watched, those that have ended included: their I/O may still be in flight.
    fn look_for_threads(&mut self) {
        for pid in &self.watched {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse::<u32>().ok());
            self.stages.threads.extend(ids);
        }
    }

    /// Stages of everything that has ended since the start.
    pub fn table(&self) -> &StageTable {
        &self.stages.table
    }

    /// Slow I/Os since the last call, in order of completion.
    pub fn slow(&mut self) -> Vec<SlowIo> {
        let names = &self.names;
        let name = |pid: u32| names.get(&pid).map(|name| String::from_utf8_lossy(name).into_owned());
        let slow = self.stages.slow.drain(..);
        slow.map(|io| SlowIo { sender: name(io.piece.pid).unwrap_or_default(), ..io }).collect()
    }

    /// What was lost since the start, by reason.
    pub fn losses(&self) -> BTreeMap<String, u64> {
        let counts = self.cpus.iter().filter_map(|cpu| {
            let text = self.instance.read(&format!("per_cpu/cpu{}/stats", cpu.number)).ok()?;
            Some(lost_of_cpu(&text))
        });
        let events = counts.sum();
        let all = [
            ("events that found the buffer full", events),
            ("pages of events that could not be read", self.damaged),
            ("slow I/Os beyond those kept", self.stages.slow_lost),
        ];
        all.into_iter().filter(|(_, n)| *n > 0).map(|(reason, n)| (reason.to_string(), n)).collect()
    }
}

/// `overrun`, `commit overrun` and `dropped events` in `per_cpu/cpuN/stats`.
fn lost_of_cpu(text: &str) -> u64 {
    let lost = |line: &str| {
        let (name, count) = line.split_once(':')?;
        let counts = ["overrun", "commit overrun", "dropped events"].contains(&name.trim());
        if counts { count.trim().parse::<u64>().ok() } else { None }
    };
    text.lines().filter_map(lost).sum()
}

/// Layouts of the events this kernel has.
fn formats(instance: &Instance) -> Result<Vec<Format>, Error> {
    let read = |(name, act): &'static (&'static str, Act)| {
        let text = instance.read(&format!("events/block/{name}/format")).ok()?;
        Some((*name, Format::parse(&text, *act)?))
    };
    let found: Vec<(&str, Format)> = EVENTS.iter().filter_map(read).collect();
    match ESSENTIAL.iter().find(|name| !found.iter().any(|(found, _)| found == *name)) {
        Some(name) => Err(Error::Unsupported { lacking: format!("the event {name}") }),
        None => Ok(found.into_iter().map(|(_, format)| format).collect()),
    }
}

fn subbuffer_bytes(tracefs: &Tracefs) -> Result<usize, Error> {
    let path = tracefs.root().join("events/header_page");
    // The kernel answers the first read only, so that has to ask for all of it.
    let mut bytes = [0; 4096];
    let length = File::open(&path).and_then(|mut file| file.read(&mut bytes));
    let length =
        length.map_err(|source| Error::System { what: format!("cannot read {}", path.display()), source })?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    let data = text.lines().find(|line| line.contains("char data;"));
    let number = |name: &str| -> Option<usize> {
        data?.split(';').find_map(|part| part.trim().strip_prefix(name))?.parse().ok()
    };
    match number("offset:").zip(number("size:")) {
        Some((16, size)) if size <= 1 << 20 => Ok(16 + size),
        _ => Err(Error::Unsupported { lacking: "a ring buffer of the known layout".to_string() }),
    }
}

/// Has the kernel record these devices only.
fn filter(instance: &Instance, devices: &[DeviceNumber]) -> Result<(), Error> {
    if devices.is_empty() {
        return Ok(());
    }
    let term = |device: &DeviceNumber| format!("dev == {}", (device.major << 20) | device.minor);
    let text = devices.iter().map(term).collect::<Vec<_>>().join(" || ");
    for (name, _) in present(instance) {
        instance.write(&format!("events/block/{name}/filter"), &text)?;
    }
    Ok(())
}

/// Completion first: a request whose end is missed would look as if it never came.
fn enable(instance: &Instance) -> Result<(), Error> {
    for (name, _) in present(instance).collect::<Vec<_>>().into_iter().rev() {
        instance.write(&format!("events/block/{name}/enable"), "1")?;
    }
    instance.write("tracing_on", "1")
}

fn present(instance: &Instance) -> impl Iterator<Item = &'static (&'static str, Act)> {
    EVENTS.iter().filter(|(name, _)| instance.path(&format!("events/block/{name}/enable")).exists())
}

fn cpus(instance: &Instance) -> Result<Vec<Cpu>, Error> {
    let folder = instance.path("per_cpu");
    let entries = std::fs::read_dir(&folder)
        .map_err(|source| Error::System { what: "cannot list the tracer's buffers".to_string(), source })?;
    let mut cpus = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.strip_prefix("cpu")?.parse().ok()) else {
            continue;
        };
        let path = entry.path().join("trace_pipe_raw");
        let pipe = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let pipe =
            pipe.map_err(|source| Error::System { what: format!("cannot open {}", path.display()), source })?;
        cpus.push(Cpu { number, pipe });
    }
    cpus.sort_by_key(|cpu| cpu.number);
    Ok(cpus)
}

/// The tracer's clock "mono".
fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec where it is told to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    #[test]
    fn losses_are_added_up() {
        let text = "entries: 5\noverrun: 3\ncommit overrun: 1\nbytes: 77\noldest event ts:  1.0\nnow ts: 2.0\n\
            dropped events: 10\nread events: 100\n";
        assert_eq!(super::lost_of_cpu(text), 14);
    }
}
