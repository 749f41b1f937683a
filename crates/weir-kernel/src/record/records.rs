//! Where blktrace's records begin and end; what they say is decoded elsewhere.

/// First word of a record, without its version.
const MAGIC: u32 = 0x6561_7400;
/// Category of records that are no events.
const NOTIFY: u64 = 1 << 10;

/// A record's place in time, its thread, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Length with its payload, bytes.
    pub bytes: usize,
    /// When, ns.
    pub time_ns: u64,
    /// Thread.
    pub pid: u32,
    /// It is no event: a name, a time or a message.
    pub notify: bool,
}

impl Record {
    /// The record that begins here, if a whole one does (linux/blktrace_api.h, versions 7 and 8).
    pub fn of(bytes: &[u8]) -> Option<Record> {
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let magic = word(0)?;
        let (header_bytes, payload_at, pid, categories) = match (magic & !0xff, magic & 0xff) {
            (MAGIC, 7) => (48, 46, word(32)?, u64::from(word(28)? >> 16)),
            (MAGIC, 8) => (64, 50, word(28)?, long(32)? >> 16),
            _ => return None,
        };
        let payload = u16::from_ne_bytes(*bytes.get(payload_at..)?.first_chunk()?);
        let length = header_bytes + usize::from(payload);
        let notify = categories & NOTIFY != 0;
        (length <= bytes.len()).then_some(Record { bytes: length, time_ns: long(8)?, pid, notify })
    }
}

/// The whole records at the start of `bytes`, with their offsets.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = (usize, Record)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let record = Record::of(&bytes[at..])?;
        at += record.bytes;
        Some((at - record.bytes, record))
    })
}
