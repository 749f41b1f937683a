//! Recordings of the block layer's events.

mod about;
mod background;
mod blktrace;
mod bpf;
mod clock;
mod debugfs;
mod ftrace;
mod records;
mod relay;
mod ring;
mod session;
mod sink;
mod tracer;
mod tracer_journal;

use std::path::PathBuf;

pub use bpf::DEVICES_MAX;
pub use ring::RING_BYTES;
pub use session::{CaptureSession, Summary};
pub use sink::Progress;
use weir_core::target::DeviceNumber;

/// What to record, and where to.
#[derive(Debug, Clone)]
pub struct Options {
    /// Devices; empty: all.
    pub devices: Vec<DeviceNumber>,
    /// Which events.
    pub events: Events,
    /// Ring of each CPU, bytes: a power of two.
    pub ring_bytes: usize,
    /// The recording.
    pub out: PathBuf,
    /// Its largest size.
    pub size_max_bytes: u64,
    /// blktrace's files instead of one of weir's: `OUT.blktrace.CPU`.
    pub blktrace: bool,
    /// Where the events are to come from; absent: the best there is.
    pub source: Option<Source>,
    /// What runs meanwhile, for the header.
    pub command: Vec<String>,
}

/// Which events are recorded; each costs time where it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// Requests: G (as the request remembers it), I, D, R, C.
    Requests,
    /// Bios and requests: A, Q, X, M, F, G, I, D, R, C.
    Bios,
    /// The same and plugs: P, U, UT.
    All,
}

impl Events {
    fn has_bios(self) -> bool {
        self != Events::Requests
    }

    fn has_plugs(self) -> bool {
        self == Events::All
    }
}

/// Where events come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// weir's programs in the kernel.
    Bpf,
    /// The kernel's tracer `blk`, in its binary mode.
    Ftrace,
    /// blktrace's relay.
    Relay,
}

impl Source {
    /// As in options and headers.
    pub fn name(self) -> &'static str {
        match self {
            Source::Bpf => "bpf",
            Source::Ftrace => "ftrace",
            Source::Relay => "relay",
        }
    }
}
