//! Any bytes as weir's own recording, in any portions: what is decoded does not depend on how it was cut, faults lie
//! inside the file, no more events come out than records fit into the bytes, and none is said to be lost that no block
//! says so of.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_blocktrace::Item;
use weir_blocktrace::recording::{
    BlockKind, End, FlagBits, Header, PREAMBLE_BYTES, Reader, block, preamble, text_block,
};

/// A D of six words may stand for a G, too; no record is shorter than five.
const EVENT_BYTES_MIN: usize = 24;
/// The last block is the shortest way to say anything: a digit and a comma for each CPU that lost events.
const ITEM_BYTES_MIN: usize = 2;
const KINDS: u64 = 18;

/// Items, how many bytes were taken, and where and why it ended before its end.
type Decoded = (Vec<Item>, Result<bool, (u64, String)>);

/// Reads as a reader does: in chunks, with what is left over in front of the next one.
fn decode(bytes: &[u8], chunk: usize) -> Decoded {
    let (mut reader, mut items) = (Reader::default(), Vec::new());
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = (end + chunk).min(bytes.len());
        match reader.decode(&bytes[start..end], &mut items) {
            Ok(used) => start += used,
            Err(fault) => return (items, Err((fault.offset, fault.reason))),
        }
    }
    let ended = reader.finish(&bytes[start..], &mut items);
    assert!(reader.end().is_none() || reader.note().is_none(), "an end, and {:?}", reader.note());
    (items, ended.map(|()| reader.end().is_some()).map_err(|fault| (fault.offset, fault.reason)))
}

/// A recording that is one up to its records, so that what lies behind the preamble is reached: each block is made of
/// four bytes (kind, CPU, time, length) and of eight bytes a word, the first of which is a kind now and then.
fn framed(mut bytes: &[u8], has_bits: bool) -> Vec<u8> {
    let header =
        Header { flag_bits: has_bits.then_some(FlagBits::NEWEST), base_ns: 1 << 30, ..Header::default() };
    let mut recording = preamble(&header).expect("a header is JSON");
    while let Some((&[kind, cpu, time, length], rest)) = bytes.split_first_chunk::<4>() {
        bytes = rest;
        match kind % 8 {
            0 => recording.extend(block(BlockKind::Round, 0, 0, u64::from(time) << 40, 0)),
            1 => recording.extend(text_block(BlockKind::Note, &cpu).expect("a number is JSON")),
            2 => {
                let end = End { dropped_by_cpu: vec![time.into(); usize::from(cpu % 4)], ..End::default() };
                recording.extend(text_block(BlockKind::End, &end).expect("an end is JSON"));
            }
            _ => {
                let words = usize::from(length % 32).min(bytes.len() / 8);
                let (payload, rest) = bytes.split_at(words * 8);
                bytes = rest;
                let head =
                    block(BlockKind::Events, u32::from(cpu % 4), payload.len(), 0, u64::from(time / 16));
                recording.extend(head);
                for word in payload.as_chunks::<8>().0 {
                    let word = u64::from_ne_bytes(*word);
                    // Few kinds, so that most first words are one.
                    let kind = (word >> 56) % KINDS;
                    recording.extend((kind << 56 | word & (1 << 56) - 1).to_ne_bytes());
                }
            }
        }
    }
    recording
}

/// The same of a machine of the other byte order, but for the texts' places, which hold nothing then.
fn turned(recording: &mut [u8]) {
    for field in recording[8..PREAMBLE_BYTES].as_chunks_mut::<4>().0 {
        field.reverse();
    }
    let length = u32::from_be_bytes([recording[16], recording[17], recording[18], recording[19]]);
    let length = if cfg!(target_endian = "big") { length.swap_bytes() } else { length };
    let blocks = PREAMBLE_BYTES + length as usize;
    for word in recording[blocks..].as_chunks_mut::<8>().0 {
        word.reverse();
    }
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (flavour, chunk, bytes) = (input.0, usize::from(input.1) + 1, input.2);
    let recording = match flavour % 4 {
        0 => bytes.to_vec(),
        1 => [&framed(&[], false)[..], bytes].concat(),
        _ => {
            let mut recording = framed(bytes, flavour & 4 != 0);
            if flavour % 4 == 3 {
                turned(&mut recording);
            }
            recording
        }
    };
    let (whole, ended) = decode(&recording, recording.len().max(1));
    let (cut, cut_ended) = decode(&recording, chunk);
    // Where a text is at fault is said to within the portion that made it whole.
    let reason = |ended: &Result<bool, (u64, String)>| ended.clone().map_err(|(_, reason)| reason);
    assert_eq!((&whole, reason(&ended)), (&cut, reason(&cut_ended)), "in chunks of {chunk}");
    let events = whole.iter().filter(|item| matches!(item, Item::Event(_))).count();
    assert!(events <= recording.len() / EVENT_BYTES_MIN, "{events} events of {} bytes", recording.len());
    let others = whole.len() - events;
    assert!(others <= 1 + recording.len() / ITEM_BYTES_MIN, "{others} items of {} bytes", recording.len());
    if let Err((offset, reason)) = ended {
        assert!(offset <= recording.len() as u64 && !reason.is_empty(), "{reason} at {offset}");
    }
});
