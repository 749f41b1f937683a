//! Recordings of `fixtures/traces`, unpacked, as sources of events.

use std::io::Read;
use std::path::{Path, PathBuf};

use weir_blocktrace::decode::{Batch, Decoder, HEAD_BYTES};
use weir_blocktrace::merge::Source;

/// A file of a recording, read at once.
pub struct InMemory {
    decoder: Decoder,
    bytes: Vec<u8>,
}

impl InMemory {
    pub fn new(name: &str, bytes: Vec<u8>) -> InMemory {
        let decoder = Decoder::new(name, &bytes[..bytes.len().min(HEAD_BYTES)]).unwrap();
        InMemory { decoder, bytes }
    }
}

impl Source for InMemory {
    fn refill(&mut self, batch: &mut Batch) -> bool {
        self.decoder.finish(&std::mem::take(&mut self.bytes), batch).unwrap();
        false
    }
}

pub fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces").join(path)
}

pub fn unpacked(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    bytes
}
