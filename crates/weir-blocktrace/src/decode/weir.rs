//! weir's own recordings, see [`crate::recording`].

use super::{Batch, Format, Stop};
use crate::recording::{self, Header, Out, Reader};
use crate::{Event, Item};

/// Decodes a recording of weir.
#[derive(Debug, Default)]
pub struct Weir {
    reader: Reader,
    taken: u64,
}

impl Weir {
    /// Whether a file is one.
    pub fn recognise(head: &[u8]) -> Option<(Format, Weir)> {
        let big_endian = Reader::big_endian(head)?;
        Some((Format::Weir { big_endian }, Weir::default()))
    }

    /// As [`super::Decoder::decode`].
    pub fn decode(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<usize, Stop> {
        let used = self.reader.decode(bytes, batch).map_err(|fault| self.stop(fault))?;
        self.taken += used as u64;
        Ok(used)
    }

    /// As [`super::Decoder::finish`], after all was decoded that could be.
    pub fn finish(&mut self, rest: &[u8], batch: &mut Batch) -> Result<(), Stop> {
        self.reader.finish(rest, batch).map_err(|fault| self.stop(fault))
    }

    /// As [`super::Decoder::note`].
    pub fn note(&self) -> Option<&str> {
        self.reader.note()
    }

    /// As [`super::Decoder::header`].
    pub fn header(&self) -> &Header {
        self.reader.header()
    }

    fn stop(&self, fault: recording::Fault) -> Stop {
        Stop { at: fault.offset.wrapping_sub(self.taken) as i64, reason: fault.reason }
    }
}

impl Out for Batch {
    #[inline]
    fn event(&mut self, event: Event) {
        self.push_event(event);
    }

    fn item(&mut self, item: Item) {
        self.push(item);
    }
}
