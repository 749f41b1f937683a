//! What stands in the rows: groups of digits, as sysbench has them, by seed and number of the row, so that the same
//! table comes out whatever the order and way in which it is filled.

use super::keys::Keys;
use super::{OltpSpec, Script};
use weir_core::workload::rng::Rng;

/// Length of `c`: ten groups of eleven digits, and the dashes between them.
pub const C_BYTES: usize = groups_bytes(10);
/// Length of `pad`: five groups.
pub const PAD_BYTES: usize = groups_bytes(5);

const DIGITS: usize = 11;
/// Purposes of random streams, see [`Rng::new`]: the number of the table is added to it.
const ROWS_PURPOSE: u64 = 0x726f_7773 << 32;

const fn groups_bytes(groups: usize) -> usize {
    groups * (DIGITS + 1) - 1
}

/// Fills `out`, as long as whole groups and the dashes between them, with random digits.
pub fn fill_groups(rng: &mut Rng, out: &mut [u8]) {
    for group in out.chunks_mut(DIGITS + 1) {
        let bits = rng.next_u64();
        // A digit's share departs from a tenth by less than 3 %: 2^32 is no multiple of 10^8.
        let eight = ((bits >> 32) * 100_000_000) >> 32;
        let three = ((bits & 0xffff_ffff) * 1000) >> 32;
        if let Some((first, rest)) = group.split_first_chunk_mut::<8>() {
            *first = eight_digits(eight);
            let last = [three / 100, three / 10 % 10, three % 10, 0].map(|digit| b'0' + digit as u8);
            let digits = rest.len().min(3);
            rest[..digits].copy_from_slice(&last[..digits]);
            if let Some(dash) = rest.get_mut(3) {
                *dash = b'-';
            }
        }
    }
}

/// A number below 10^8 as eight digits: halves, quarters and eighths side by side in one word, each division by
/// multiplication (after Daniel Lemire, "Converting integers to decimal strings faster with AVX-512", 2022, and its
/// SWAR forerunners).
fn eight_digits(number: u64) -> [u8; 8] {
    let (high, low) = (number / 10_000, number % 10_000);
    let halves = high | (low << 32);
    let hundreds = ((halves * 10_486) >> 20) & 0x7f_0000_007f;
    let quarters = hundreds | ((halves - hundreds * 100) << 16);
    let tens = ((quarters * 103) >> 10) & 0x000f_000f_000f_000f;
    let eighths = tens | ((quarters - tens * 10) << 8);
    (eighths + 0x3030_3030_3030_3030).to_le_bytes()
}

/// A part of a table's rows, written out one after another.
pub struct Rows {
    next: u64,
    last: u64,
    purpose: u64,
    seed: u64,
    keys: Keys,
}

impl Rows {
    /// Rows `first..=last` of a table (from 0) of `spec.table_size` rows.
    pub fn new(spec: &OltpSpec, table: u32, first: u64, last: u64) -> Rows {
        debug_assert!(spec.script != Script::BulkInsert, "its tables start empty");
        Rows {
            next: first,
            last,
            purpose: ROWS_PURPOSE | u64::from(table),
            seed: spec.seed,
            keys: Keys::new(spec.keys, spec.table_size),
        }
    }

    /// Rows left.
    pub fn left(&self) -> u64 {
        (self.last + 1).saturating_sub(self.next)
    }

    /// Appends rows as lines of columns `id`, `k`, `c`, `pad` between tabs, until `out` holds `bytes` or none is
    /// left; says whether more are left. The form of COPY and LOAD DATA.
    pub fn lines(&mut self, out: &mut Vec<u8>, bytes: usize) -> bool {
        const FRAME: Frame = Frame { open: b"", comma: b"\t", quote: b"\t", unquote: b"", close: b"\n" };
        while self.left() > 0 && out.len() < bytes {
            self.row(out, &FRAME);
        }
        self.left() > 0
    }

    /// Appends rows as the values of an INSERT with columns `id`, `k`, `c`, `pad`, as [`Rows::lines`] does. Nothing is
    /// appended where no row is left.
    pub fn values(&mut self, out: &mut Vec<u8>, bytes: usize) -> bool {
        const FRAME: Frame = Frame { open: b"(", comma: b", ", quote: b", '", unquote: b"'", close: b")" };
        let mut between = false;
        while self.left() > 0 && out.len() < bytes {
            if between {
                out.extend_from_slice(b", ");
            }
            self.row(out, &FRAME);
            between = true;
        }
        self.left() > 0
    }

    fn row(&mut self, out: &mut Vec<u8>, frame: &Frame) {
        let id = self.next;
        self.next += 1;
        // One generator a row: what stands in a row depends on nothing but seed, table and number.
        let mut rng = Rng::new(self.seed ^ id.rotate_left(32), self.purpose);
        out.extend_from_slice(frame.open);
        write_number(out, id);
        out.extend_from_slice(frame.comma);
        write_number(out, self.keys.draw(&mut rng) as u64);
        for bytes in [C_BYTES, PAD_BYTES] {
            out.extend_from_slice(frame.quote);
            let start = out.len();
            out.resize(start + bytes, 0);
            fill_groups(&mut rng, &mut out[start..]);
            out.extend_from_slice(frame.unquote);
        }
        out.extend_from_slice(frame.close);
    }
}

/// What stands around the columns of a row.
struct Frame {
    open: &'static [u8],
    comma: &'static [u8],
    quote: &'static [u8],
    unquote: &'static [u8],
    close: &'static [u8],
}

/// Appends a number in decimal.
pub fn write_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_those_of_the_number() {
        for number in [0, 1, 9, 10, 99, 12_345_678, 99_999_999, 90_807_060, 10_000, 9_999] {
            assert_eq!(eight_digits(number), format!("{number:08}").as_bytes(), "{number}");
        }
        let mut rng = Rng::new(1, 1);
        for _ in 0..100_000 {
            let number = rng.below(100_000_000);
            assert_eq!(eight_digits(number), format!("{number:08}").as_bytes(), "{number}");
        }
    }

    #[test]
    fn text_is_groups_of_eleven_evenly_spread_digits() {
        let (mut rng, mut c) = (Rng::new(7, 7), [0; C_BYTES]);
        let mut counts = [0u32; 10];
        for _ in 0..1000 {
            fill_groups(&mut rng, &mut c);
            let text = std::str::from_utf8(&c).unwrap();
            let groups: Vec<&str> = text.split('-').collect();
            assert!(groups.len() == 10 && groups.iter().all(|group| group.len() == 11), "{text}");
            text.bytes().filter(u8::is_ascii_digit).for_each(|digit| counts[usize::from(digit - b'0')] += 1);
        }
        // 110,000 digits: each 11,000 give or take five standard deviations.
        assert!(counts.iter().all(|count| (10_500..11_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn rows_depend_on_seed_table_and_number_only() {
        let spec = OltpSpec { table_size: 100, seed: 5, ..OltpSpec::default() };
        let text = |spec: &OltpSpec, table, first, last| {
            let mut out = Vec::new();
            while Rows::new(spec, table, first, last).lines(&mut out, usize::MAX) {}
            String::from_utf8(out).unwrap()
        };
        let whole = text(&spec, 0, 1, 100);
        assert_eq!(whole, text(&spec, 0, 1, 60) + &text(&spec, 0, 61, 100));
        assert_ne!(whole, text(&spec, 1, 1, 100));
        assert_ne!(whole, text(&OltpSpec { seed: 6, ..spec.clone() }, 0, 1, 100));
        for (line, id) in whole.lines().zip(1..) {
            let columns: Vec<&str> = line.split('\t').collect();
            assert_eq!((columns.len(), columns[0].parse()), (4, Ok(id)), "{line}");
            assert!((1..=100).contains(&columns[1].parse::<u32>().unwrap()), "{line}");
            assert_eq!((columns[2].len(), columns[3].len()), (C_BYTES, PAD_BYTES), "{line}");
        }
        assert_eq!(whole.lines().count(), 100);
    }

    #[test]
    fn pieces_end_at_the_size_asked_for_and_both_forms_hold_the_same() {
        let spec = OltpSpec { table_size: 50, ..OltpSpec::default() };
        let (mut lines, mut values) = (Rows::new(&spec, 0, 1, 50), Rows::new(&spec, 0, 1, 50));
        let (mut out, mut pieces) = (Vec::new(), 0);
        let mut all = Vec::new();
        loop {
            out.clear();
            let more = values.values(&mut out, 1000);
            assert!(out.len() < 1300, "{}", out.len());
            all.extend_from_slice(&out);
            pieces += 1;
            if !more {
                break;
            }
        }
        assert!(pieces > 5, "{pieces}");
        let mut text = Vec::new();
        assert!(!lines.lines(&mut text, usize::MAX));
        let text = String::from_utf8(text).unwrap();
        let all = String::from_utf8(all).unwrap();
        for line in text.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let row = format!("({}, {}, '{}', '{}')", columns[0], columns[1], columns[2], columns[3]);
            assert!(all.contains(&row), "{row}");
        }
    }
}
