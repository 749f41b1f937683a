//! Any bytes as a recording, in any portions: what is decoded does not depend on how it was cut, faults lie inside the
//! file, and no more events come out than records fit into the bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_blocktrace::decode::{Batch, Decoder, Fault, HEAD_BYTES};

const RECORD_BYTES_MIN: usize = 32;

/// Decodes as a reader does: in chunks, with what is left over in front of the next one.
fn decode(bytes: &[u8], chunk: usize) -> (Batch, Result<(), Fault>) {
    let mut batch = Batch::default();
    let mut decoder = match Decoder::new("input", &bytes[..bytes.len().min(HEAD_BYTES)]) {
        Ok(decoder) => decoder,
        Err(fault) => return (batch, Err(fault)),
    };
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = (end + chunk).min(bytes.len());
        match decoder.decode(&bytes[start..end], &mut batch) {
            Ok(used) => start += used,
            Err(fault) => return (batch, Err(fault)),
        }
    }
    let ended = decoder.finish(&bytes[start..], &mut batch);
    (batch, ended)
}

fuzz_target!(|input: (u8, &[u8])| {
    let (chunk, bytes) = (usize::from(input.0) + 1, input.1);
    let (whole, ended) = decode(bytes, bytes.len().max(1));
    let (cut, cut_ended) = decode(bytes, chunk);
    assert_eq!((&whole, &ended), (&cut, &cut_ended), "in chunks of {chunk}");
    assert!(whole.events().len() <= 2 * bytes.len() / RECORD_BYTES_MIN, "{} events", whole.events().len());
    if let Err(fault) = ended {
        assert!(fault.offset <= bytes.len() as u64 && !fault.reason.is_empty(), "{fault}");
    }
});
