//! A recording under way.

use std::io;
use std::time::Duration;

use weir_blocktrace::recording::{BlockKind, End, Header, block};

use super::bpf::Programs;
use super::sink::{Progress, Sink};
use super::tracer::Tracer;
use super::{Options, Source, about, clock};
use crate::Error;

/// What is read of all rings in one round: readers keep a round in memory.
const ROUND_BYTES_MAX: usize = 32 << 20;
/// An event this old was recorded, if it ever will be: the longest time that a program can be held up between taking
/// the time and writing its record, other than by a machine that stands still.
const SETTLED_NS: u64 = 10_000_000;
/// Between two looks at the rings: 1 MiB of ring bears 130 MB/s from one CPU for the longest.
const NAP_MIN: Duration = Duration::from_millis(1);
const NAP_MAX: Duration = Duration::from_millis(8);
/// For so long the end of a recording waits for a disk that is far behind.
const REST_WAIT_MAX: Duration = Duration::from_secs(30);

/// How a recording went.
#[derive(Debug)]
pub struct Summary {
    /// Why it ended.
    pub reason: String,
    /// Events in the recording.
    pub events: u64,
    /// Its size.
    pub bytes: u64,
    /// Events that found a ring full, or that the kernel could not hand over.
    pub dropped: u64,
    /// Events that were taken from the kernel and not written.
    pub lost: u64,
    /// How long it ran, ns.
    pub elapsed_ns: u64,
    /// What the recording cannot tell.
    pub lacks: Option<&'static str>,
    /// Why not everything was written.
    pub write_error: Option<io::Error>,
    /// The files.
    pub paths: Vec<std::path::PathBuf>,
}

/// A recording: the kernel records, and the file has its header.
pub struct CaptureSession {
    intake: Intake,
    sink: Sink,
    progress: Progress,
    base_ns: u64,
    /// When events were recorded from, since `base_ns`.
    begun_ns: u64,
    why: Vec<String>,
}

enum Intake {
    Bpf(Box<Programs>),
    Tracer(Box<Tracer>),
}

impl CaptureSession {
    /// Makes the file and begins to record.
    ///
    /// # Errors
    /// The file cannot be made, or the kernel offers none of the sources that may be used.
    pub fn start(options: &Options) -> Result<CaptureSession, Error> {
        let cpus = cpus()?;
        let (base_ns, wall_ns) = (clock::monotonic_ns(), clock::wall_ns());
        let (intake, why) = Intake::open(options, base_ns, cpus)?;
        let begun_ns = clock::monotonic_ns() - base_ns;
        let header = Header { begun_ns, ..about::header(options, intake.source(), cpus, base_ns, wall_ns) };
        let make = if options.blktrace { Sink::blktrace } else { Sink::weir };
        let sink = make(&options.out, &header, options.size_max_bytes)?;
        Ok(CaptureSession { intake, sink, progress: Progress::default(), base_ns, begun_ns, why })
    }

    /// Where the events come from.
    pub fn source(&self) -> Source {
        self.intake.source()
    }

    /// Why better sources were passed over, a sentence each.
    pub fn passed_over(&self) -> &[String] {
        &self.why
    }

    /// Records until `until` gives a reason to end, the size is reached or the disk is full. `until` is asked at least
    /// every 8 ms. What happened to the files is in the summary.
    pub fn run(mut self, mut until: impl FnMut(&Progress) -> Option<String>) -> Summary {
        let mut nap = NAP_MAX;
        let reason = loop {
            let fullest = if self.sink.has_room() {
                self.intake.round(self.base_ns, &mut self.sink, &mut self.progress)
            } else {
                1.0
            };
            self.progress.bytes = self.sink.bytes;
            let ended = self.sink.pass_on().map(str::to_string);
            if let Some(reason) = ended.or_else(|| until(&self.progress)) {
                break reason;
            }
            nap = next_nap(nap, fullest);
            std::thread::sleep(nap);
        };
        self.finish(reason)
    }

    fn finish(mut self, reason: String) -> Summary {
        let ended_ns = clock::monotonic_ns() - self.base_ns;
        self.intake.end();
        let left = self.sink.take_rest(REST_WAIT_MAX, |sink| {
            let before = self.progress.events;
            self.intake.round(self.base_ns, sink, &mut self.progress);
            self.progress.events - before
        });
        let lacks = match &self.intake {
            Intake::Tracer(tracer) => tracer.lacks(),
            Intake::Bpf(_) => None,
        };
        let (dropped_by_cpu, mut missed) = self.intake.losses();
        missed += left;
        let dropped = dropped_by_cpu.iter().sum::<u64>() + missed;
        let paths = self.sink.paths.clone();
        let end = End {
            reason: reason.clone(),
            dropped_by_cpu,
            missed,
            ended_ns: Some(ended_ns),
            ..End::default()
        };
        let ended = self.sink.finish(end);
        Summary {
            reason,
            events: ended.events,
            bytes: ended.bytes,
            dropped,
            lost: ended.lost,
            elapsed_ns: ended_ns - self.begun_ns,
            lacks,
            write_error: ended.error,
            paths,
        }
    }
}

impl Intake {
    /// The first source that may be used and can be, under way; with the reasons why others cannot.
    fn open(options: &Options, base_ns: u64, cpus: usize) -> Result<(Intake, Vec<String>), Error> {
        let mut why = Vec::new();
        // blktrace's own files are best made by blktrace's own relay.
        let order: &[Source] = match options.source {
            Some(source) => &[source],
            None if options.blktrace => &[Source::Relay, Source::Ftrace, Source::Bpf],
            None => &[Source::Bpf, Source::Ftrace, Source::Relay],
        };
        for (nth, source) in order.iter().enumerate() {
            match Intake::begun(*source, options, base_ns, cpus) {
                Ok(intake) => return Ok((intake, why)),
                Err(error) if nth + 1 == order.len() => return Err(error),
                Err(error) => why.push(format!("{}: {error}", source.name())),
            }
        }
        Err(Error::Unsupported { lacking: "every source of events".to_string() })
    }

    /// One source, under way: its buffers hold what happens until they are read.
    fn begun(source: Source, options: &Options, base_ns: u64, cpus: usize) -> Result<Intake, Error> {
        let mut intake = match source {
            Source::Bpf => Intake::Bpf(Box::new(Programs::load(options, base_ns, cpus)?)),
            _ => Intake::Tracer(Box::new(Tracer::open(source, options, cpus)?)),
        };
        intake.begin()?;
        Ok(intake)
    }

    fn source(&self) -> Source {
        match self {
            Intake::Bpf(_) => Source::Bpf,
            Intake::Tracer(tracer) => tracer.source(),
        }
    }

    /// From here on events are recorded.
    fn begin(&mut self) -> Result<(), Error> {
        match self {
            Intake::Bpf(programs) => programs.attach(),
            Intake::Tracer(tracer) => tracer.begin(),
        }
    }

    /// From here on none are; those that were are still there to be taken.
    fn end(&mut self) {
        match self {
            Intake::Bpf(programs) => programs.detach(),
            Intake::Tracer(tracer) => tracer.end(),
        }
    }

    /// Takes what is there; returns how full the fullest of the kernel's buffers was, in parts of 1.
    fn round(&mut self, base_ns: u64, sink: &mut Sink, progress: &mut Progress) -> f64 {
        match self {
            Intake::Bpf(programs) => bpf_round(programs, base_ns, sink, progress),
            Intake::Tracer(tracer) => {
                // Before the first file is read: reading may take longer than that, and what one gets meanwhile is younger.
                let settled_ns = clock::monotonic_ns().saturating_sub(base_ns + SETTLED_NS);
                let fullest = tracer.round(sink, progress);
                sink.blocks(|bytes| {
                    bytes.extend_from_slice(&block(BlockKind::Round, 0, 0, settled_ns, 0));
                    0
                });
                fullest
            }
        }
    }

    /// Events that found a buffer full, by CPU; and others that were lost.
    fn losses(&mut self) -> (Vec<u64>, u64) {
        match self {
            Intake::Bpf(programs) => {
                let rings = &programs.rings;
                ((0..rings.cpus()).map(|cpu| rings.dropped(cpu)).collect(), programs.missed())
            }
            Intake::Tracer(tracer) => tracer.losses(),
        }
    }
}

fn bpf_round(programs: &mut Programs, base_ns: u64, sink: &mut Sink, progress: &mut Progress) -> f64 {
    let rings = &mut programs.rings;
    let (cpus, ring_bytes) = (rings.cpus(), rings.ring_bytes());
    let mut settled_ns = clock::monotonic_ns().saturating_sub(base_ns + SETTLED_NS);
    let (mut fullest, mut blocked, mut any, mut dropped, mut events) = (0, false, false, 0, 0);
    sink.blocks(|bytes| {
        for cpu in 0..cpus {
            fullest = fullest.max(rings.waiting_bytes(cpu));
            let drained = rings.drain(cpu, ROUND_BYTES_MAX / cpus, bytes);
            events += drained.events;
            settled_ns = settled_ns.min(drained.left_ns.unwrap_or(u64::MAX));
            blocked |= drained.blocked;
            any |= drained.bytes > 0;
            dropped += rings.dropped(cpu);
        }
        if any && !blocked {
            bytes.extend_from_slice(&block(BlockKind::Round, 0, 0, settled_ns, 0));
        }
        events
    });
    progress.events += events;
    progress.dropped = dropped;
    fullest as f64 / ring_bytes as f64
}

/// Sleeps longer while little comes, shorter while much does; a ring is to be about a quarter full when looked at.
fn next_nap(nap: Duration, fullest: f64) -> Duration {
    let next = if fullest > 0.3 {
        nap / 2
    } else if fullest < 0.15 {
        nap * 5 / 4
    } else {
        nap
    };
    next.clamp(NAP_MIN, NAP_MAX)
}

/// CPUs, up to the last that is online: one that is plugged in later is not recorded.
fn cpus() -> Result<usize, Error> {
    let path = "/sys/devices/system/cpu/online";
    let failed = |source| Error::System { what: path.to_string(), source };
    let online = std::fs::read_to_string(path).map_err(failed)?;
    let last = online.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1)
        .ok_or_else(|| failed(io::Error::other(format!("`{}` names no CPUs", online.trim()))))
}
