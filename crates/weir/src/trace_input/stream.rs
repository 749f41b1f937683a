//! One file under way: bytes to batches of events, with what went wrong kept for later.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_blocktrace::decode::{Batch, Decoder, HEAD_BYTES, RECORD_BYTES_MAX};
use weir_blocktrace::recording::Header;
use weir_blocktrace::{Item, merge};
use weir_core::target::DeviceNumber;

use super::Problem;
use super::open::{self, Meter, Opened};
use super::source::Source;

/// Most and least bytes decoded at once; all files together share [`CHUNKS_BYTES`]. What is decoded of a few files and not
/// yet merged should stay in a core's own cache: of four it is 800 KiB.
const CHUNK_BYTES_MAX: usize = 64 << 10;
const CHUNK_BYTES_MIN: usize = 8 << 10;
const CHUNKS_BYTES: usize = 8 << 20;
/// What is no event is kept until an event comes, or until so many bytes were read: files may hold nothing else.
const OTHERS_BYTES: u64 = 1 << 20;

/// Raised when any file breaks.
#[derive(Debug, Clone, Default)]
pub struct Broken(Arc<AtomicBool>);

impl Broken {
    /// Whether one broke.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A file that is being decoded. Its first chunk is decoded when it is opened, so that a file that is no recording is
/// refused, and its device known, before anything is analysed.
pub struct Stream {
    source: Source,
    opened: Opened,
    decoder: Decoder,
    /// Bytes read and not decoded yet: `buffer[from..to]`.
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    chunk_bytes: usize,
    first: Option<Batch>,
    ended: bool,
    device: Option<DeviceNumber>,
    mixed: bool,
    problem: Option<Problem>,
    broken: Broken,
}

impl Stream {
    /// Opens a source and decodes its first chunk; nothing if it is empty. `beside` says how many others are open.
    pub fn open(
        source: &Source,
        beside: usize,
        meter: &Meter,
        broken: &Broken,
    ) -> Result<Option<Stream>, Problem> {
        let name = source.name();
        let mut opened = open::open(source, meter).map_err(|error| Problem::of_io(&name, 0, error))?;
        let chunk_bytes = (CHUNKS_BYTES / beside.max(1)).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        let mut buffer = vec![0; chunk_bytes];
        let to = open::fill(&mut opened.reader, &mut buffer[..HEAD_BYTES])
            .map_err(|error| Problem::of_io(&name, 0, error))?;
        if to == 0 {
            return Ok(None);
        }
        let decoder = Decoder::new(&name, &buffer[..to]).map_err(|fault| Problem::of_fault(fault, false))?;
        let mut stream = Stream {
            source: source.clone(),
            opened,
            decoder,
            buffer,
            from: 0,
            to,
            chunk_bytes,
            first: None,
            ended: to < HEAD_BYTES,
            device: None,
            mixed: false,
            problem: None,
            broken: broken.clone(),
        };
        let mut first = Batch::default();
        stream.next_chunk(&mut first);
        match stream.problem.take() {
            Some(problem) if first.is_empty() => return Err(problem),
            problem => stream.problem = problem,
        }
        stream.first = Some(first);
        Ok(Some(stream))
    }

    /// What was decoded when it was opened, and not taken yet.
    pub fn first_items(&self) -> impl Iterator<Item = &Item> {
        self.first.iter().flat_map(|batch| batch.others().iter().map(|(_, item)| item))
    }

    /// What a recording of weir's says about itself.
    pub fn header(&self) -> Option<&Header> {
        self.decoder.header()
    }

    /// Whether its next chunk may take long, so that others had better not wait for it.
    pub fn keeps_waiting(&self) -> bool {
        self.opened.keeps_waiting
    }

    /// Raised when this or another file breaks.
    pub fn broken(&self) -> &Broken {
        &self.broken
    }

    /// What ended it before its end.
    pub fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    /// Its device and what its file is called after, where it holds the events of one device alone.
    pub fn device_and_stem(&self) -> Option<(DeviceNumber, &str)> {
        let device = self.device.filter(|_| !self.mixed)?;
        Some((device, self.source.stem.as_deref()?))
    }

    /// Reads and decodes about a chunk, or more where there are no events; false at the end, or where the file breaks.
    fn next_chunk(&mut self, batch: &mut Batch) -> bool {
        let before = batch.events().len();
        let others_end = self.decoder.offset() + OTHERS_BYTES;
        loop {
            self.read();
            let done = self.decode(batch);
            let has_enough = self.decoder.offset() >= others_end && !batch.others().is_empty();
            if done || has_enough || batch.events().len() > before {
                break;
            }
        }
        self.note_devices(&batch.events()[before..]);
        !self.ended || self.from < self.to
    }

    /// Fills the buffer behind what is left in it.
    fn read(&mut self) {
        if self.ended {
            return;
        }
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        if self.to == self.buffer.len() {
            // A record longer than a chunk: no record is longer than this.
            self.buffer.resize(self.chunk_bytes.max(RECORD_BYTES_MAX) + self.to, 0);
        }
        loop {
            match self.opened.reader.read(&mut self.buffer[self.to..]) {
                Ok(0) => self.ended = true,
                Ok(n) => self.to += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let problem = Problem::of_io(&self.source.name(), self.decoder.offset(), error);
                    self.break_off(problem);
                }
            }
            return;
        }
    }

    /// Decodes what is there; true at the end.
    fn decode(&mut self, batch: &mut Batch) -> bool {
        let bytes = &self.buffer[self.from..self.to];
        let decoded = if self.ended && self.problem.is_none() {
            self.decoder.finish(bytes, batch).map(|()| bytes.len())
        } else {
            self.decoder.decode(bytes, batch)
        };
        match decoded {
            Ok(used) if !self.ended => self.from += used,
            // After a failed read, part of a record is that failure's doing.
            Ok(_) => {
                self.from = self.to;
                if let Some(note) = self.decoder.note() {
                    say!("note: {}: {note}", self.source.name());
                }
            }
            Err(fault) => {
                self.break_off(Problem::of_fault(fault, self.opened.packed));
                self.from = self.to;
            }
        }
        self.ended
    }

    fn break_off(&mut self, problem: Problem) {
        self.problem.get_or_insert(problem);
        self.broken.0.store(true, Ordering::Relaxed);
        self.ended = true;
    }

    fn note_devices(&mut self, events: &[weir_blocktrace::Event]) {
        for event in [events.first(), events.last()].into_iter().flatten() {
            let device = *self.device.get_or_insert(event.device);
            self.mixed |= device != event.device;
        }
    }
}

impl merge::Source for Stream {
    fn refill(&mut self, batch: &mut Batch) -> bool {
        match self.first.take() {
            Some(first) if batch.is_empty() => *batch = first,
            Some(first) => first.items().for_each(|item| batch.push(item)),
            None => return self.next_chunk(batch),
        }
        !self.ended
    }
}

#[cfg(test)]
mod tests {
    use weir_blocktrace::merge::Source as _;
    use weir_blocktrace::recording::{BlockKind, preamble, text_block};

    use super::*;

    #[test]
    fn a_file_without_events_is_read_bit_by_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.weirtrace");
        let note = text_block(BlockKind::Note, &"n".repeat(200_000)).unwrap();
        std::fs::write(&path, [preamble(&Header::default()).unwrap(), note.repeat(40)].concat()).unwrap();
        let opened = Stream::open(&Source::file(path), 1, &Meter::default(), &Broken::default());
        let (mut stream, mut notes, mut goes_on) = (opened.unwrap().unwrap(), 0, true);
        while goes_on {
            let mut batch = Batch::default();
            goes_on = stream.refill(&mut batch);
            let of_batch = batch.others().iter().filter(|(_, item)| matches!(item, Item::Message { .. }));
            let count = of_batch.count();
            assert!(count <= 7, "{count} notes at once");
            notes += count;
        }
        assert_eq!(notes, 40);
    }
}
