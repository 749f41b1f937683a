//! Sub-buffers of the kernel's ring buffer, as `trace_pipe_raw` hands them out (Documentation/trace/ring-buffer-map.rst,
//! include/linux/ring_buffer.h): a time stamp, a length with flags, then records with the time since the one before.

/// Length of a sub-buffer that was cut short by losses, and whether their number follows (kernel/trace/ring_buffer.c).
const MISSED: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const LENGTH: u64 = (1 << 20) - 1;
/// Types of record headers from here on are not lengths.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// An absolute time has 59 bits; the others are those of the time before it.
const STAMP_BITS: u32 = 59;

/// What one sub-buffer says besides its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Page {
    /// Whether records were lost before it.
    pub missed: bool,
    /// How many, where the kernel knows.
    pub missed_records: u64,
}

/// Hands every record's time and content to `record`, in order. `None` where the bytes are no sub-buffer; what came
/// before the damage has been handed over.
pub fn read(bytes: &[u8], mut record: impl FnMut(u64, &[u8])) -> Option<Page> {
    let mut time_ns = u64_at(bytes, 0)?;
    let commit = u64_at(bytes, 8)?;
    let data = bytes.get(16..)?;
    let length = (commit & LENGTH) as usize;
    let records = data.get(..length)?;
    let stored = commit & MISSED_STORED != 0;
    let missed_records = if stored { u64_at(data, length).unwrap_or(0) } else { 0 };
    let page = Page { missed: commit & MISSED != 0, missed_records };
    let mut at = 0;
    while at + 4 <= records.len() {
        let header = u32_at(records, at)?;
        let (kind, delta) = (header & 31, u64::from(header >> 5));
        let next = |at: usize| u32_at(records, at + 4);
        match kind {
            PADDING if delta == 0 => break,
            PADDING => {
                time_ns = time_ns.wrapping_add(delta);
                at += 4 + next(at)? as usize;
            }
            TIME_EXTEND => {
                time_ns = time_ns.wrapping_add((u64::from(next(at)?) << DELTA_BITS) + delta);
                at += 8;
            }
            TIME_STAMP => {
                let stamp = (u64::from(next(at)?) << DELTA_BITS) + delta;
                time_ns = (time_ns >> STAMP_BITS << STAMP_BITS) | stamp;
                at += 8;
            }
            _ => {
                time_ns = time_ns.wrapping_add(delta);
                let (from, length) =
                    if kind == 0 { (at + 8, next(at)? as usize) } else { (at + 4, kind as usize * 4) };
                // A length that is stored counts itself.
                let to = if kind == 0 { (at + 4).checked_add(length)? } else { from + length };
                record(time_ns, records.get(from..to)?);
                at = to;
            }
        }
    }
    Some(page)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(time_ns: u64, flags: u64, words: &[u32], after: &[u64]) -> Vec<u8> {
        let mut bytes = time_ns.to_ne_bytes().to_vec();
        bytes.extend((flags | (words.len() as u64 * 4)).to_ne_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        after.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes
    }

    fn header(kind: u32, delta: u32) -> u32 {
        kind | delta << 5
    }

    #[test]
    fn every_kind_of_record_moves_time_and_place_as_the_kernel_does() {
        let words = [
            header(2, 10),
            0xa,
            0xb, // two words, 10 ns later
            header(TIME_EXTEND, 5),
            1, // 2^27 + 5 ns
            header(0, 1),
            8,
            0xc, // a length that counts itself: one word
            header(PADDING, 3),
            8,
            0, // skipped
            header(TIME_STAMP, 7),
            2, // absolute
            header(1, 0),
            0xd,
            header(PADDING, 0),
            0xdead, // the end
        ];
        let mut seen = Vec::new();
        let bytes = page(1000, MISSED | MISSED_STORED, &words, &[42]);
        let result = read(&bytes, |time_ns, data| seen.push((time_ns, data.to_vec())));
        assert_eq!(result, Some(Page { missed: true, missed_records: 42 }));
        let word = |word: u32| word.to_ne_bytes().to_vec();
        let expected = [
            (1010, [word(0xa), word(0xb)].concat()),
            (1010 + (1 << 27) + 6, word(0xc)),
            ((2 << 27) + 7, word(0xd)),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn damage_never_panics() {
        let words = [header(2, 10), 1, 2, header(0, 1), 900, 3, header(PADDING, 3), u32::MAX, 0];
        let good = page(1, 0, &words, &[]);
        for length in 0..good.len() {
            read(&good[..length], |_, _| {});
        }
        for at in 0..good.len() {
            for value in [0, 0x7f, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                read(&bad, |_, _| {});
            }
        }
    }
}
