//! Where events go: one recording of weir's, or blktrace's files, one a CPU.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_blocktrace::decode::{Batch, Decoder};
use weir_blocktrace::recording::{
    BLOCK_HEAD_BYTES, BlktraceWriter, BlockKind, End, Header, Out, Reader, block, encode, encode_process,
    preamble, text_block,
};
use weir_blocktrace::{Event, Item};
use weir_fs::Output;

use super::background::{Background, Portion};
use super::clock;
use super::records::records;
use crate::Error;

/// A portion is handed to the writing thread when it is so large, or so old.
const PORTION_BYTES: usize = 1 << 20;
const PORTION_AGE_NS: u64 = 1_000_000_000;
/// Beyond this, nothing more is taken from the kernel's buffers, which then drop and count.
const PORTION_BYTES_MAX: usize = 64 << 20;
/// Between two looks at whether there is room again.
const REST_NAP: Duration = Duration::from_millis(8);
/// Kept for the last block when the size is bounded.
const END_BYTES: u64 = 64 << 10;

/// How far a recording is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Events taken from the kernel.
    pub events: u64,
    /// Bytes of the recording, written or about to be.
    pub bytes: u64,
    /// Events that found a ring full.
    pub dropped: u64,
}

/// What is written.
pub struct Sink {
    background: Background,
    portions: Vec<Portion>,
    form: Form,
    since_ns: u64,
    size_max_bytes: u64,
    /// Of each portion, the bytes and events up to the last whole round that fits.
    rounds: Vec<(usize, u64)>,
    /// Events written or handed over.
    events: u64,
    /// Bytes written or handed over.
    pub bytes: u64,
    /// The files.
    pub paths: Vec<PathBuf>,
}

enum Form {
    Weir { base_ns: u64, decoders: Vec<Option<FromBlktrace>> },
    Blktrace { reader: Box<Reader>, writers: Vec<BlktraceWriter> },
}

/// Decodes what a kernel's tracer wrote on one CPU.
struct FromBlktrace {
    decoder: Decoder,
    rest: Vec<u8>,
}

/// A file to record to, its owner's alone: it holds names and I/O of all accounts. It has its name from the start: what a
/// killed recording has written by then is worth having.
fn opened(path: &Path) -> io::Result<File> {
    Output::create(path, 0o600)?.in_place()
}

/// What became of what was handed over.
pub struct Ended {
    /// Size of the files.
    pub bytes: u64,
    /// Events in them.
    pub events: u64,
    /// Events of the time recorded that were not written.
    pub lost: u64,
    /// Why.
    pub error: Option<io::Error>,
}

impl Sink {
    /// A recording of weir's at `path`.
    pub fn weir(path: &Path, header: &Header, size_max_bytes: u64) -> Result<Sink, Error> {
        let failed = |source| Error::System { what: path.display().to_string(), source };
        let mut file = opened(path).map_err(failed)?;
        let start = preamble(header).map_err(|error| failed(error.into()))?;
        file.write_all(&start).map_err(failed)?;
        let decoders = (0..header.cpus).map(|_| None).collect();
        let form = Form::Weir { base_ns: header.base_ns, decoders };
        Sink::new(vec![file], vec![path.to_path_buf()], form, size_max_bytes, start.len() as u64)
    }

    /// Files `path.blktrace.CPU`.
    pub fn blktrace(path: &Path, header: &Header, size_max_bytes: u64) -> Result<Sink, Error> {
        let (mut files, mut paths) = (Vec::new(), Vec::new());
        for cpu in 0..header.cpus {
            let mut name = path.as_os_str().to_os_string();
            name.push(format!(".blktrace.{cpu}"));
            let path = PathBuf::from(name);
            files.push(
                opened(&path).map_err(|source| Error::System { what: path.display().to_string(), source })?,
            );
            paths.push(path);
        }
        let mut reader = Box::new(Reader::default());
        let failed = |reason: String| Error::System {
            what: path.display().to_string(),
            source: io::Error::other(reason),
        };
        let start = preamble(header).map_err(|error| failed(error.to_string()))?;
        reader.decode(&start, &mut Vec::new()).map_err(|fault| failed(fault.to_string()))?;
        let form = Form::Blktrace { reader, writers: vec![BlktraceWriter::default(); files.len()] };
        let mut sink = Sink::new(files, paths, form, size_max_bytes, 0)?;
        let wall_clock = Item::WallClock { time_ns: header.base_ns, wall_ns: header.wall_ns };
        BlktraceWriter::default().item(&wall_clock, &Event::default(), &mut sink.portions[0].bytes);
        Ok(sink)
    }

    fn new(
        files: Vec<File>,
        paths: Vec<PathBuf>,
        form: Form,
        size_max_bytes: u64,
        bytes: u64,
    ) -> Result<Sink, Error> {
        let portions: Vec<Portion> =
            (0..files.len()).map(|file| Portion { file, bytes: Vec::new(), events: 0 }).collect();
        let (rounds, since_ns) = (vec![(0, 0); portions.len()], clock::monotonic_ns());
        let background = Background::start(files)
            .map_err(|source| Error::System { what: "starting a thread".to_string(), source })?;
        Ok(Sink { background, portions, form, since_ns, size_max_bytes, rounds, events: 0, bytes, paths })
    }

    /// Whether it takes more: not while the disk is far behind.
    pub fn has_room(&self) -> bool {
        self.portions.iter().map(|portion| portion.bytes.len()).sum::<usize>() < PORTION_BYTES_MAX
    }

    /// Gives `fill` the place for blocks of weir's format, where it returns how many events it put there.
    pub fn blocks(&mut self, fill: impl FnOnce(&mut Vec<u8>) -> u64) {
        match &mut self.form {
            Form::Weir { .. } => {
                let portion = &mut self.portions[0];
                portion.events += fill(&mut portion.bytes);
            }
            Form::Blktrace { reader, writers } => {
                let mut blocks = Vec::new();
                fill(&mut blocks);
                // What this very process wrote is no recording with faults.
                let mut out = ToBlktrace::new(&mut self.portions, writers);
                let _ = reader.decode(&blocks, &mut out);
                out.names_without_event();
            }
        }
    }

    /// Takes what a kernel's tracer wrote on a CPU: blktrace's records, whole ones. Returns how many events they are.
    pub fn blktrace_records(&mut self, cpu: usize, bytes: &[u8]) -> u64 {
        match &mut self.form {
            Form::Blktrace { .. } => {
                let Some(portion) = self.portions.get_mut(cpu) else { return 0 };
                let events = records(bytes).filter(|(_, record)| !record.notify).count() as u64;
                portion.bytes.extend_from_slice(bytes);
                portion.events += events;
                events
            }
            Form::Weir { base_ns, decoders } => {
                let Some(decoder) = decoders.get_mut(cpu) else { return 0 };
                let portion = &mut self.portions[0];
                let events = decoded(decoder, cpu, bytes, *base_ns, &mut portion.bytes);
                portion.events += events;
                events
            }
        }
    }

    /// Whether it would be larger than allowed with what waits.
    fn is_too_large(&self) -> bool {
        let waiting: u64 = self.portions.iter().map(|portion| portion.bytes.len() as u64).sum();
        self.bytes + waiting + END_BYTES > self.size_max_bytes
    }

    /// After a round: hands over what is due; says why the recording must end, if it must.
    pub fn pass_on(&mut self) -> Option<&'static str> {
        if self.background.has_failed() {
            return Some("the recording could not be written");
        }
        if self.is_too_large() {
            return Some("the largest size was reached");
        }
        let now_ns = clock::monotonic_ns();
        let old = now_ns - self.since_ns > PORTION_AGE_NS;
        if old {
            self.since_ns = now_ns;
        }
        for (place, round) in self.portions.iter_mut().zip(&mut self.rounds) {
            *round = (place.bytes.len(), place.events);
            if place.bytes.is_empty() || !(old || place.bytes.len() >= PORTION_BYTES) {
                continue;
            }
            let empty = Portion { file: place.file, bytes: self.background.buffer(), events: 0 };
            match self.background.hand_over(std::mem::replace(place, empty)) {
                Ok(()) => {
                    self.bytes += round.0 as u64;
                    self.events += round.1;
                    *round = (0, 0);
                }
                Err(portion) => *place = portion,
            }
        }
        None
    }

    /// Takes round after round, each the events that it returns, until one brings nothing: a round takes a part of each of the
    /// kernel's buffers, of each the less, the more processors there are. A disk that is far behind is waited for so long; what
    /// it has no room for then is let go of. Returns how many events those are.
    pub fn take_rest(&mut self, patience: Duration, mut round: impl FnMut(&mut Sink) -> u64) -> u64 {
        let (started, mut left) = (Instant::now(), 0);
        loop {
            let has_room = self.has_room();
            if has_room || started.elapsed() >= patience {
                let events = round(self);
                if events == 0 {
                    return left;
                }
                if !has_room {
                    left += events;
                    self.undo_round();
                }
            } else {
                std::thread::sleep(REST_NAP);
            }
            if self.pass_on().is_some() {
                return left;
            }
        }
    }

    /// Lets go of what came after the last [`Self::pass_on`].
    fn undo_round(&mut self) {
        for (portion, (bytes, events)) in self.portions.iter_mut().zip(&self.rounds) {
            portion.bytes.truncate(*bytes);
            portion.events = *events;
        }
    }

    /// Writes all that is left and fits, and the end; the files are on the disk after this. What came after the last round
    /// that fits came after the end of the recording, and is no loss.
    pub fn finish(mut self, end: End) -> Ended {
        if let Form::Blktrace { reader, writers } = &mut self.form {
            let mut out = ToBlktrace::new(&mut self.portions, writers);
            let _ = reader.finish(&[], &mut out);
            out.names_without_event();
        }
        if self.is_too_large() {
            self.undo_round();
        }
        for portion in self.portions {
            self.events += portion.events;
            self.background.hand_over_at_last(portion);
        }
        let mut written = self.background.finish();
        let events = self.events.saturating_sub(written.lost);
        if let (Form::Weir { .. }, Some(file)) = (&self.form, written.files.first_mut()) {
            let end = End { missed: end.missed + written.lost, events, ..end };
            let ended = text_block(BlockKind::End, &end).map_err(io::Error::from).and_then(|last| {
                file.seek(SeekFrom::End(0))?;
                file.write_all(&last)
            });
            written.error = written.error.or(ended.err());
        }
        for file in &written.files {
            written.error = written.error.or(file.sync_all().err());
        }
        let bytes = written.files.iter().map(|file| file.metadata().map_or(0, |data| data.len())).sum();
        Ended { bytes, events, lost: written.lost, error: written.error }
    }
}

/// Writes what a reader of weir's format gives out as blktrace's records.
struct ToBlktrace<'a> {
    portions: &'a mut [Portion],
    writers: &'a mut [BlktraceWriter],
    /// Each file is read by itself: a thread's name stands in that of its next event, before it.
    names: Vec<Item>,
}

impl<'a> ToBlktrace<'a> {
    fn new(portions: &'a mut [Portion], writers: &'a mut [BlktraceWriter]) -> ToBlktrace<'a> {
        ToBlktrace { portions, writers, names: Vec::new() }
    }

    /// Those whose next event comes later, if ever.
    fn names_without_event(&mut self) {
        if let (Some(portion), Some(writer)) = (self.portions.first_mut(), self.writers.first_mut()) {
            self.names.drain(..).for_each(|name| writer.item(&name, &Event::default(), &mut portion.bytes));
        }
    }
}

impl Out for ToBlktrace<'_> {
    fn event(&mut self, event: Event) {
        let cpu = event.cpu as usize;
        if let (Some(portion), Some(writer)) = (self.portions.get_mut(cpu), self.writers.get_mut(cpu)) {
            self.names.retain(|name| {
                let is_its = matches!(name, Item::Process { pid, .. } if *pid == event.pid);
                if is_its {
                    writer.item(name, &Event { cpu: event.cpu, ..Event::default() }, &mut portion.bytes);
                }
                !is_its
            });
            portion.events += u64::from(writer.event(&event, &mut portion.bytes));
        }
    }

    fn item(&mut self, item: Item) {
        if let Item::Process { .. } = item {
            self.names.push(item);
        }
    }
}

/// Appends a block of what `bytes` and the rest from before hold; returns how many events.
fn decoded(
    decoder: &mut Option<FromBlktrace>,
    cpu: usize,
    bytes: &[u8],
    base_ns: u64,
    out: &mut Vec<u8>,
) -> u64 {
    if decoder.is_none() {
        let made = Decoder::new(&format!("CPU {cpu}"), bytes).ok();
        *decoder = made.map(|decoder| FromBlktrace { decoder, rest: Vec::new() });
    }
    let Some(from) = decoder else { return 0 };
    from.rest.extend_from_slice(bytes);
    let mut batch = Batch::default();
    match from.decoder.decode(&from.rest, &mut batch) {
        Ok(used) => drop(from.rest.drain(..used)),
        // The kernel's records are no foreign data: what is no record ends here, and the next read begins anew.
        Err(_) => from.rest.clear(),
    }
    let (mut words, mut events, mut last) = (Vec::new(), 0, None);
    for item in batch.items() {
        match &item {
            Item::Event(event) => {
                events += u64::from(encode(event, base_ns, &mut words));
                last = Some(*event);
            }
            Item::Process { pid, name, .. } => {
                encode_process(
                    *pid,
                    name,
                    last.map_or(0, |event| event.time_ns.saturating_sub(base_ns)),
                    &mut words,
                );
            }
            _ => {}
        }
    }
    if !words.is_empty() {
        out.reserve(BLOCK_HEAD_BYTES + words.len() * 8);
        out.extend_from_slice(&block(BlockKind::Events, cpu as u32, words.len() * 8, 0, 0));
        words.iter().for_each(|word| out.extend_from_slice(&word.to_ne_bytes()));
    }
    events
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use weir_blocktrace::Act;

    use super::*;

    #[test]
    fn a_recording_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.weirtrace");
        let file = opened(&path).unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(path.exists());
    }

    /// The disk takes nothing until all is over, and then what was kept.
    #[test]
    fn what_is_left_at_the_end_is_bounded_and_counted() {
        const ROUND_BYTES: usize = 1 << 20;
        const ROUNDS: u64 = 130;
        let (mut disk, file) = io::pipe().unwrap();
        let form = Form::Weir { base_ns: 0, decoders: Vec::new() };
        let file = File::from(std::os::fd::OwnedFd::from(file));
        let mut sink = Sink::new(vec![file], Vec::new(), form, u64::MAX, 0).unwrap();
        let (mut rounds, mut most) = (0, 0);
        let left = sink.take_rest(Duration::ZERO, |sink| {
            most = most.max(sink.portions[0].bytes.len());
            rounds += 1;
            let events = u64::from(rounds <= ROUNDS);
            sink.blocks(|bytes| {
                bytes.resize(bytes.len() + ROUND_BYTES * events as usize, 0);
                events
            });
            events
        });
        assert!(most <= PORTION_BYTES_MAX, "{most} bytes");
        assert!(left > 0 && rounds == ROUNDS + 1, "{left} left of {rounds}");
        let reader = std::thread::spawn(move || io::copy(&mut disk, &mut io::sink()).unwrap());
        let ended = sink.finish(End::default());
        assert_eq!((ended.events + left, ended.lost), (ROUNDS, 0));
        assert!(reader.join().unwrap() >= ended.events * ROUND_BYTES as u64);
    }

    /// What came after the last round that fits is neither in the recording nor missing from it.
    #[test]
    fn a_recording_that_reaches_its_size_ends_with_a_whole_round() {
        const ROUND_EVENTS: u64 = 100;
        const SIZE_MAX: u64 = 256 << 10;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.weirtrace");
        let mut sink = Sink::weir(&path, &Header { cpus: 1, ..Header::default() }, SIZE_MAX).unwrap();
        let mut rounds = 0;
        let mut round = |sink: &mut Sink| {
            sink.blocks(|bytes| {
                let mut words = Vec::new();
                for nth in 0..ROUND_EVENTS {
                    let time_ns = rounds * ROUND_EVENTS + nth;
                    assert!(encode(&Event { act: Act::Plug, time_ns, ..Event::default() }, 0, &mut words));
                }
                rounds += 1;
                bytes.extend(block(BlockKind::Events, 0, words.len() * 8, 0, 0));
                words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
                bytes.extend(block(BlockKind::Round, 0, 0, rounds * ROUND_EVENTS, 0));
                ROUND_EVENTS
            });
        };
        let reason = loop {
            round(&mut sink);
            if let Some(reason) = sink.pass_on() {
                break reason;
            }
        };
        assert!(reason.contains("largest size"), "{reason}");
        // The kernel's buffers have something left, as ever.
        round(&mut sink);
        let ended = sink.finish(End::default());
        assert_eq!((ended.events, ended.lost), ((rounds - 2) * ROUND_EVENTS, 0));
        assert!((SIZE_MAX / 2..=SIZE_MAX).contains(&ended.bytes), "{} bytes", ended.bytes);
        let (mut reader, mut items) = (Reader::default(), Vec::new());
        let bytes = std::fs::read(&path).unwrap();
        let used = reader.decode(&bytes, &mut items).unwrap();
        reader.finish(&bytes[used..], &mut items).unwrap();
        let events = items.iter().filter(|item| matches!(item, Item::Event(_))).count() as u64;
        let end = reader.end().unwrap();
        assert_eq!((events, end.events, end.missed), (ended.events, ended.events, 0));
    }
}
