//! A recording from its files to an analysis.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use weir_blocktrace::read::{self, Taker};
use weir_blocktrace::{Analysis, Both, Collector, Sink, Unmatched, merge};
use weir_core::units::{Bytes, significant};
use weir_io::runner::Stop;

use super::Problem;
use super::ahead::{self, PATIENCE, Waiting};
use super::filter::{Filter, Filtered};
use super::find::Recording;
use super::names::{DeviceNames, names_of};
use super::open::Meter;
use super::source::Source;
use super::stream::{Broken, Stream};
use crate::failure::Lacking;
use crate::progress::Progress;

/// Nothing is shown of what takes less than this.
const QUIET: Duration = Duration::from_secs(1);

/// How recordings are read.
pub struct Reader<'a> {
    /// Which I/Os count.
    pub filter: &'a Filter,
    /// Report what comes before the place where a file breaks.
    pub keep_going: bool,
    /// Raised by signals.
    pub stop: &'a Stop,
    /// Shows how far it is.
    pub progress: &'a mut Progress,
    /// Takes every I/O that counts, too.
    pub rows: Option<&'a mut dyn Sink>,
    /// Takes every event, whether it counts or not.
    pub events: Option<&'a mut dyn Sink>,
}

/// A recording, analysed.
#[derive(Debug)]
pub struct Analysed {
    /// Where it came from, as shown.
    pub name: String,
    /// What is in it.
    pub analysis: Analysis,
    /// Sentences: what is missing, and why.
    pub notes: Vec<String>,
    /// The signal that ended reading early.
    pub interrupted: Option<u8>,
}

/// Reads a recording to its end, or to where a signal stops it.
pub fn analyse(recording: &Recording, reader: &mut Reader<'_>) -> anyhow::Result<Analysed> {
    let meter = Meter::default();
    let mut run_state = ReadingRun {
        stop: reader.stop,
        progress: reader.progress,
        meter: &meter,
        bytes: bytes_of(recording),
        begun: Instant::now(),
        events: 0,
    };
    let opened = open_while(recording, &meter, reader.keep_going, &mut run_state)?;
    let (streams, mut notes) = opened.unwrap_or_default();
    let names = names_of(&streams, Path::new("/"));
    for sink in [reader.rows.as_deref_mut(), reader.events.as_deref_mut()].into_iter().flatten() {
        names.iter().for_each(|(device, name)| sink.device_called(*device, name));
    }
    let strict = !reader.keep_going;
    let mut collector = Collector::new();
    let events = reader.events.as_deref_mut().map(|events| events as &mut dyn Sink);
    let ran = match reader.rows.as_deref_mut() {
        None if reader.filter.is_empty() && events.is_none() => {
            run(streams, strict, Taker::Statistics(&mut collector), &mut run_state)?
        }
        None => {
            let sinks = Sinks { counted: &mut collector, events };
            run_filtered(streams, strict, reader.filter, &names, sinks, &mut run_state)?
        }
        Some(rows) => {
            let sinks = Sinks { counted: &mut Both(&mut collector, rows), events };
            run_filtered(streams, strict, reader.filter, &names, sinks, &mut run_state)?
        }
    };
    for problem in ran.problems {
        if strict {
            return Err(Lacking::from(problem).into());
        }
        notes.push(format!("{}; what comes before it is in the figures", problem.what));
    }
    if ran.late > 0 {
        notes.push(format!("{} events were far out of order in their files", ran.late));
    }
    let mut unmatched = ran.unmatched;
    unmatched.devices.retain(|device, _| reader.filter.takes_device(*device, &names));
    let analysis = finished(collector, &names, unmatched);
    Ok(Analysed { name: recording.name.clone(), analysis, notes, interrupted: reader.stop.requested() })
}

/// Opens all files in a thread, since a pipe may have nothing to say for long; nothing if a signal came first.
fn open_while(
    recording: &Recording,
    meter: &Meter,
    keep_going: bool,
    run_state: &mut ReadingRun<'_>,
) -> anyhow::Result<Option<(Vec<Stream>, Vec<String>)>> {
    let (recording, meter) = (recording.clone(), meter.clone());
    let (to, opened) = sync_channel(1);
    let open = move || to.send(open_all(&recording, &meter, keep_going));
    thread::Builder::new().name("open".to_string()).spawn(open)?;
    while run_state.goes_on() {
        match opened.recv_timeout(PATIENCE) {
            Ok(result) => return result.map(Some),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                anyhow::bail!("the thread that opens files ended in a panic")
            }
        }
    }
    Ok(None)
}

/// The streams of all files that hold anything. A file of one CPU may well be empty, but not all of them.
fn open_all(
    recording: &Recording,
    meter: &Meter,
    keep_going: bool,
) -> anyhow::Result<(Vec<Stream>, Vec<String>)> {
    let (mut streams, mut notes, mut first) = (Vec::new(), Vec::new(), None);
    let broken = Broken::default();
    for source in &recording.sources {
        match Stream::open(source, recording.sources.len(), meter, &broken) {
            Ok(Some(stream)) => streams.push(stream),
            Ok(None) => {
                let reason = if source.path.is_some() { "the file is empty" } else { "nothing came" };
                first.get_or_insert(Problem::of_foreign(&source.name(), reason));
            }
            Err(problem) if keep_going => {
                notes.push(format!("{}; nothing of this file is in the figures", problem.what));
                first.get_or_insert(problem);
            }
            Err(problem) => return Err(Lacking::from(problem).into()),
        }
    }
    match first {
        Some(problem) if streams.is_empty() => Err(Lacking::from(problem).into()),
        _ => Ok((streams, notes)),
    }
}

/// Length of all files; nothing where standard input is among them.
fn bytes_of(recording: &Recording) -> Option<u64> {
    let length = |source: &Source| Some(std::fs::metadata(source.path.as_ref()?).ok()?.len());
    recording.sources.iter().map(length).sum()
}

/// What comes out of the files beside lives.
struct Ran {
    unmatched: Unmatched,
    problems: Vec<Problem>,
    late: u64,
}

/// Who takes what the files say.
struct Sinks<'a> {
    /// What the filter takes.
    counted: &'a mut dyn Sink,
    /// Everything.
    events: Option<&'a mut dyn Sink>,
}

/// Gives the sinks what the files say and the filter takes.
fn run_filtered(
    streams: Vec<Stream>,
    strict: bool,
    filter: &Filter,
    names: &DeviceNames,
    sinks: Sinks<'_>,
    run_state: &mut ReadingRun<'_>,
) -> anyhow::Result<Ran> {
    let Sinks { counted, events } = sinks;
    if filter.is_empty() {
        return run_beside(streams, strict, counted, events, run_state);
    }
    let mut filtered = Filtered::new(filter, names, counted);
    let ran = run_beside(streams, strict, &mut filtered, events, run_state)?;
    filtered.finish();
    Ok(ran)
}

fn run_beside(
    streams: Vec<Stream>,
    strict: bool,
    counted: &mut dyn Sink,
    events: Option<&mut dyn Sink>,
    run_state: &mut ReadingRun<'_>,
) -> anyhow::Result<Ran> {
    match events {
        None => run(streams, strict, Taker::Any(counted), run_state),
        Some(events) => run(streams, strict, Taker::Any(&mut Both(counted, events)), run_state),
    }
}

/// Merges and matches what the files say.
fn run(
    streams: Vec<Stream>,
    strict: bool,
    taker: Taker<'_>,
    run_state: &mut ReadingRun<'_>,
) -> anyhow::Result<Ran> {
    let broken = streams.first().map(|stream| stream.broken().clone());
    let run_state = RefCell::new(run_state);
    let goes_on = || run_state.borrow_mut().goes_on();
    let waiting = Waiting { goes_on: &goes_on, given_up: Cell::new(false) };
    let (mut inputs, reading) = ahead::start(streams, &waiting)?;
    let sources = inputs.iter_mut().map(|input| input as &mut dyn merge::Source).collect();
    let read = read::read(sources, taker, &mut || {
        run_state.borrow_mut().events += read::TURNS;
        let is_broken = strict && broken.as_ref().is_some_and(Broken::is_raised);
        !is_broken && !waiting.given_up.get() && goes_on()
    });
    let (mut problems, mut late) = (Vec::new(), 0);
    // A thread that still waits for input ends with the process.
    let interrupted = run_state.borrow().stop.requested().is_some() || read.broken_off;
    if !interrupted {
        let panicked = |_| anyhow::anyhow!("the thread that decodes ended in a panic");
        let streams = ahead::finish(inputs, reading).map_err(panicked)?;
        problems = streams.iter().filter_map(|stream| stream.problem().cloned()).collect();
        late = read.late;
    }
    Ok(Ran { unmatched: read.unmatched, problems, late })
}

/// How far it is, and whether to go on.
struct ReadingRun<'a> {
    stop: &'a Stop,
    progress: &'a mut Progress,
    meter: &'a Meter,
    bytes: Option<u64>,
    begun: Instant,
    events: u64,
}

impl ReadingRun<'_> {
    fn goes_on(&mut self) -> bool {
        if self.begun.elapsed() >= QUIET {
            self.progress.show(&self.line());
        }
        self.stop.requested().is_none()
    }

    fn line(&self) -> String {
        let millions = significant(self.events as f64 / 1e6);
        let read = self.meter.bytes();
        match self.bytes.filter(|all| *all > 0) {
            Some(all) => {
                let (percent, of) = (read.min(all) * 100 / all, Bytes(all));
                format!("reading: {percent} % of {of}, {millions} million events")
            }
            None => format!("reading: {}, {millions} million events", Bytes(read >> 20 << 20)),
        }
    }
}

/// The analysis, with names and with what could not be matched.
fn finished(mut collector: Collector, names: &DeviceNames, unmatched: Unmatched) -> Analysis {
    for (device, name) in names {
        collector.name_device(*device, name);
    }
    collector.finish(unmatched)
}
