//! The flood: a bulk buffered writer beside a workload, as `dd` or `cp` would be. Its file is removed at the end.

use std::path::PathBuf;

use weir_core::result::record::FloodRecord;
use weir_core::units::Bytes;

use crate::IoError;

/// What a flood writes.
#[derive(Debug, Clone, PartialEq)]
pub struct FloodSpec {
    /// As typed: `dd`, `cp` or `dd:size=4G,bs=1M,rate=200M,writers=2`.
    pub text: String,
    /// Folder of its file, on the file system under test.
    pub dir: PathBuf,
    /// Most it writes before it starts over at the beginning of its file; the room it needs.
    pub size: Bytes,
    /// Size of each write(2).
    pub block: Bytes,
    /// Parallel writers.
    pub writers: u32,
    /// Most bytes per second it hands over; 0: no limit.
    pub rate: Bytes,
    /// Read what it writes from another file (`cp`) instead of from memory (`dd`).
    pub copies: bool,
}

/// A running flood; dropping it stops it and removes its files.
pub struct Flood {}

impl Flood {
    /// Starts the writers.
    pub fn start(spec: FloodSpec) -> Result<Flood, IoError> {
        let _ = spec;
        Err(IoError::environment("the flood is not there yet"))
    }

    /// Bytes handed over so far.
    pub fn bytes(&self) -> u64 {
        0
    }

    /// Stops the writers, removes their files, and says what they did.
    pub fn stop(self) -> FloodRecord {
        FloodRecord::default()
    }
}
