//! Bytes of recordings to events: every format behind one decoder that is fed chunks as they are read.
//!
//! Lengths in the data are never trusted: nothing is allocated by them, and a record that cannot be one is a
//! [`Fault`] that names file and offset, with everything before it already decoded.

mod batch;
mod blktrace;
#[cfg(test)]
mod tests;
mod weir;

pub use batch::Batch;
use blktrace::Blktrace;
use weir::Weir;

use crate::recording::Header;

/// Enough bytes to recognise any format.
pub const HEAD_BYTES: usize = 64;
/// Longest record of any format: a buffer of this length always lets [`Decoder::decode`] make progress.
pub const RECORD_BYTES_MAX: usize = 64 + u16::MAX as usize;

/// A kind of recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// blktrace's records: its per-CPU files, `blkparse -d` dumps and the stream of ftrace's `blk` tracer.
    Blktrace {
        /// 7 (48 bytes a record) or 8 (64 bytes).
        version: u8,
        /// The recording machine's byte order.
        big_endian: bool,
    },
    /// weir's own, see [`crate::recording`].
    Weir {
        /// The recording machine's byte order.
        big_endian: bool,
    },
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Format::Blktrace { version, big_endian } => {
                let order = if *big_endian { "big" } else { "little" };
                write!(f, "blktrace version {version}, {order}-endian")
            }
            Format::Weir { big_endian } => {
                let order = if *big_endian { "big" } else { "little" };
                write!(f, "weir, {order}-endian")
            }
        }
    }
}

/// What is wrong with a recording, and where; what was decoded before it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: at byte {offset}: {reason}")]
pub struct Fault {
    /// The file, as the caller called it.
    pub file: String,
    /// Where in the (uncompressed) file.
    pub offset: u64,
    /// What is wrong there.
    pub reason: String,
}

/// Decodes one file or stream, chunk by chunk.
#[derive(Debug)]
pub struct Decoder {
    file: String,
    offset: u64,
    format: Format,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Blktrace(Blktrace),
    Weir(Box<Weir>),
}

/// Why a format's decoder stopped: how many bytes after the start of the chunk, or before it, and the reason.
struct Stop {
    at: i64,
    reason: String,
}

impl Decoder {
    /// Recognises format and byte order from the first bytes of a file ([`HEAD_BYTES`] of them, or all there are).
    /// The head is only looked at: it comes again with the first [`Decoder::decode`].
    pub fn new(file: &str, head: &[u8]) -> Result<Decoder, Fault> {
        let fault = |reason: &str| Fault { file: file.to_string(), offset: 0, reason: reason.to_string() };
        if head.is_empty() {
            return Err(fault("it is empty"));
        }
        let blktrace = || Blktrace::recognise(head).map(|(f, decoder)| (f, Kind::Blktrace(decoder)));
        let weir = || Weir::recognise(head).map(|(f, decoder)| (f, Kind::Weir(Box::new(decoder))));
        let Some((format, kind)) = weir().or_else(blktrace) else {
            return Err(fault(blktrace::why_not(head)));
        };
        Ok(Decoder { file: file.to_string(), offset: 0, format, kind })
    }

    /// What it is.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether its records are cut: they tell neither errors nor payloads, and nothing else reads them.
    pub fn is_cut(&self) -> bool {
        matches!(&self.kind, Kind::Blktrace(decoder) if decoder.is_cut())
    }

    /// What a recording of weir's says about itself; empty until that was read.
    pub fn header(&self) -> Option<&Header> {
        match &self.kind {
            Kind::Weir(decoder) => Some(decoder.header()),
            Kind::Blktrace(_) => None,
        }
    }

    /// Bytes decoded so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Decodes the whole records at the start of `bytes` and appends them to `batch`. Returns how many bytes that
    /// were: the caller brings the rest again, with more behind it.
    pub fn decode(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<usize, Fault> {
        let decoded = match &mut self.kind {
            Kind::Blktrace(decoder) => decoder.decode(bytes, batch),
            Kind::Weir(decoder) => decoder.decode(bytes, batch),
        };
        match decoded {
            Ok(used) => {
                self.offset += used as u64;
                Ok(used)
            }
            Err(stop) => Err(self.stopped(stop)),
        }
    }

    /// Says that nothing follows `rest`, what [`Decoder::decode`] has left over: part of a record is a fault.
    pub fn finish(&mut self, rest: &[u8], batch: &mut Batch) -> Result<(), Fault> {
        let used = self.decode(rest, batch)?;
        if let Kind::Weir(decoder) = &mut self.kind {
            return decoder.finish(&rest[used..], batch).map_err(|stop| self.stopped(stop));
        }
        let left = rest.len() - used;
        if left == 0 {
            return Ok(());
        }
        Err(self.fault(format!("the last record is truncated: it has {left} bytes")))
    }

    /// What is to be said of a file that was read to its end, though it is no fault: that its recorder was killed.
    pub fn note(&self) -> Option<&str> {
        match &self.kind {
            Kind::Weir(decoder) => decoder.note(),
            _ => None,
        }
    }

    fn stopped(&mut self, stop: Stop) -> Fault {
        self.offset = self.offset.saturating_add_signed(stop.at);
        self.fault(stop.reason)
    }

    fn fault(&self, reason: String) -> Fault {
        Fault { file: self.file.clone(), offset: self.offset, reason }
    }
}
