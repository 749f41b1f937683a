//! Where blktrace's records begin and end; what they say is decoded elsewhere.

/// First word of a record, without its version.
const MAGIC: u32 = 0x6561_7400;
/// Category of records that are no events.
const NOTIFY: u64 = 1 << 10;

/// A record's place in time, its thread, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlktraceRecord {
    /// Length with its payload, bytes.
    pub bytes: usize,
    /// When, ns.
    pub time_ns: u64,
    /// Thread.
    pub pid: u32,
    /// It is no event: a name, a time or a message.
    pub notify: bool,
    /// It says of no event: the kernel had the place for it, but had not written it.
    pub torn: bool,
}

impl BlktraceRecord {
    /// The record that begins here, if a whole one does (linux/blktrace_api.h, versions 7 and 8).
    pub fn of(bytes: &[u8]) -> Option<BlktraceRecord> {
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let magic = word(0)?;
        let (header_bytes, payload_at, pid, action) = match (magic & !0xff, magic & 0xff) {
            (MAGIC, 7) => (48, 46, word(32)?, u64::from(word(28)?)),
            (MAGIC, 8) => (64, 50, word(28)?, long(32)?),
            _ => return None,
        };
        let payload = u16::from_ne_bytes(*bytes.get(payload_at..)?.first_chunk()?);
        let length = header_bytes + usize::from(payload);
        let notify = action >> 16 & NOTIFY != 0;
        let torn = !notify && action & 0xff == 0;
        (length <= bytes.len()).then_some(BlktraceRecord {
            bytes: length,
            time_ns: long(8)?,
            pid,
            notify,
            torn,
        })
    }
}

/// Takes the whole records at the start of `bytes` out, and says how many between them were torn: a relay gives out a place
/// that is being written on another CPU, which a hypervisor may have stopped just then.
pub fn take_whole(bytes: &mut Vec<u8>) -> (Vec<u8>, u64) {
    let begins =
        |at: usize| bytes[at..].first_chunk().is_some_and(|word| is_magic(u32::from_ne_bytes(*word)));
    let (mut whole, mut at, mut torn) = (Vec::new(), 0, 0);
    while let Some(start) = (at..bytes.len()).find(|&at| begins(at)) {
        torn += u64::from(start > at);
        at = start;
        let Some(record) = BlktraceRecord::of(&bytes[at..]) else { break };
        let end = at + record.bytes;
        if record.torn {
            torn += 1
        } else {
            whole.extend_from_slice(&bytes[at..end])
        }
        at = end;
    }
    bytes.drain(..at);
    (whole, torn)
}

fn is_magic(word: u32) -> bool {
    [MAGIC | 7, MAGIC | 8].contains(&word)
}

/// The whole records at the start of `bytes`, with their offsets.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = (usize, BlktraceRecord)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let record = BlktraceRecord::of(&bytes[at..])?;
        at += record.bytes;
        Some((at - record.bytes, record))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of version 7 without payload.
    fn record(time_ns: u64, action: u32) -> Vec<u8> {
        let mut bytes = vec![0; 48];
        bytes[..4].copy_from_slice(&(MAGIC | 7).to_ne_bytes());
        bytes[8..16].copy_from_slice(&time_ns.to_ne_bytes());
        bytes[28..32].copy_from_slice(&action.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_place_that_was_not_written_yet_is_a_loss_and_no_end() {
        const QUEUE: u32 = 1 << 20 | 1;
        let (first, last, name) = (record(1, QUEUE), record(3, QUEUE), record(2, 1 << 26));
        for (between, rest, torn) in [
            (vec![], vec![], 0),
            (name, vec![], 0),
            // Nothing of it, or its head alone.
            (vec![0; 48], vec![], 1),
            (record(2, 0), vec![], 1),
            // What follows it, where its length is not there yet, is no record either.
            ([record(2, 0), vec![9; 8]].concat(), vec![], 2),
            (vec![], last[..40].to_vec(), 0),
        ] {
            let is_event = |bytes: &[u8]| BlktraceRecord::of(bytes).is_some_and(|record| !record.torn);
            let kept = if is_event(&between) { between.clone() } else { Vec::new() };
            let mut bytes = [&first[..], &between, &last, &rest].concat();
            assert_eq!(take_whole(&mut bytes), ([&first[..], &kept, &last].concat(), torn), "{between:?}");
            assert_eq!(bytes, rest);
        }
        // At the end it may be all that has come.
        let mut bytes = [first.clone(), vec![0; 48]].concat();
        assert_eq!(take_whole(&mut bytes), (first, 0));
        bytes.extend_from_slice(&last);
        assert_eq!((take_whole(&mut bytes), bytes.len()), ((last, 1), 0));
    }
}
