//! weir's own recording: what `weir trace record` writes. `docs/reference/trace-record.md` describes the format for other readers.
//!
//! A preamble, a header in JSON, then blocks. A block of events is the raw bytes of one CPU's ring: words of 64 bits in
//! the byte order of the machine, so that the recorder copies and never converts. Rounds say up to which time all CPUs'
//! events are there; a reader that sorts what lies between two rounds has everything in order of time.

mod blktrace;
mod decode;
mod encode;
mod header;
#[cfg(test)]
mod tests;

pub use blktrace::BlktraceWriter;
pub use decode::{Fault, Out, Reader};
pub use encode::{block, encode, encode_process, preamble, text_block};
pub use header::{End, FlagBits, Header, NamedDevice};

/// The first bytes of every recording.
pub const MAGIC: [u8; 8] = *b"weirtrc\n";
/// Version of the format that this code writes, and the last that it reads.
pub const VERSION: u32 = 1;
/// Bytes before the header: the magic, the order mark, [`VERSION`], the header's length, and four bytes 0.
pub const PREAMBLE_BYTES: usize = 24;
/// Bytes before the payload of a block.
pub const BLOCK_HEAD_BYTES: usize = 32;
/// As the recording machine writes it; read backwards, the recording is of the other byte order.
const ORDER: u32 = 0x0102_0304;
/// Low half of a block's first word.
const BLOCK_MARK: u32 = 0x6b6c_4277;
/// The largest header, and the largest payload of a block that is text.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// Bits of a record's first word that are its time; the rest is its kind.
const TIME_BITS: u32 = 56;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum BlockKind {
    /// Records of one CPU.
    Events = 1,
    /// No payload: every event before the block's time, of all CPUs, is before this block.
    Round = 2,
    /// The last block: [`End`] as JSON.
    End = 3,
    /// A text that the recorder left, for people.
    Note = 4,
}

/// What a record is. The first word is `kind << 56 | time` (ns since the header's `base_ns`); for events the words
/// after it are: identity, as [`crate::Event`] has it; sector; `device << 32 | bytes`; `extra << 32 | flags`; then up to two more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Q. Extra: thread.
    Queue = 1,
    /// M. Extra: thread.
    BackMerge = 2,
    /// F. Extra: thread.
    FrontMerge = 3,
    /// G. Extra: thread.
    GetRequest = 4,
    /// I. Sixth word: first bio.
    Insert = 5,
    /// D. Extra: how long before it G was, ns (0: not known; the largest value: that or longer). Sixth word: first bio.
    Issue = 6,
    /// R.
    Requeue = 7,
    /// C of a request. Extra: error.
    Complete = 8,
    /// C of a bio on a device without requests. Extra: error.
    BioComplete = 9,
    /// X. Extra: thread. Sixth word: the bio that was cut; seventh: sector at which the rest starts.
    Split = 10,
    /// A. Extra: thread. Sixth word: the device it came from; seventh: sector there.
    Remap = 11,
    /// A request was merged into another.
    RequestMerge = 12,
    /// P. Extra: thread.
    Plug = 13,
    /// U. Extra: thread. Sector word: requests.
    Unplug = 14,
    /// UT. Extra: thread. Sector word: requests.
    UnplugTimer = 15,
    /// Not an event: a thread's name. Words: cgroup id; 16 bytes of name in two words; `process << 32 | thread`, the process 0
    /// where it is not known.
    Process = 16,
}

impl Kind {
    /// In order of their numbers.
    const ALL: [Kind; 16] = [
        Kind::Queue,
        Kind::BackMerge,
        Kind::FrontMerge,
        Kind::GetRequest,
        Kind::Insert,
        Kind::Issue,
        Kind::Requeue,
        Kind::Complete,
        Kind::BioComplete,
        Kind::Split,
        Kind::Remap,
        Kind::RequestMerge,
        Kind::Plug,
        Kind::Unplug,
        Kind::UnplugTimer,
        Kind::Process,
    ];

    /// Of a record's first word; a 0 there means that there is no record.
    #[inline]
    pub fn of(word: u64) -> Option<Kind> {
        Kind::ALL.get(usize::from((word >> TIME_BITS) as u8).wrapping_sub(1)).copied()
    }

    /// The time in a record's first word, ns since `base_ns`, if that is one.
    pub fn time_of(word: u64) -> Option<u64> {
        Kind::of(word).map(|_| word & ((1 << TIME_BITS) - 1))
    }

    /// Length of a record, words.
    pub fn words(self) -> usize {
        match self {
            Kind::Insert | Kind::Issue => 6,
            Kind::Split | Kind::Remap => 7,
            _ => 5,
        }
    }
}
