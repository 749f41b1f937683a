//! How much room the examination takes, decided and said before anything is written.

use weir_core::units::Bytes;

/// What stays free whatever is asked for: a tenth of the file system, at least and at most this.
const KEEP_MIN: u64 = 1 << 30;
const KEEP_MAX: u64 = 16 << 30;
/// A test file smaller than this fits into too many caches to say anything.
pub const FILE_MIN: u64 = 128 << 20;
/// A flood smaller than this is none.
const FLOOD_MIN: u64 = 512 << 20;

/// Room for the test file and the flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Size of the test file.
    pub file: Bytes,
    /// Size of the flood's file; 0: there is no room for a flood.
    pub flood: Bytes,
}

/// Too little room even for the smallest test file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFull {
    /// Room the smallest examination takes.
    pub needed: Bytes,
    /// Room there is, beside what must stay free.
    pub there: Bytes,
    /// What must stay free.
    pub kept: Bytes,
}

/// Gives the file what it asks for, up to half of what may be used, and the flood the rest. A size that the user
/// asked for (`exact`) is not made smaller.
pub fn divide(size: u64, free: u64, file: Bytes, exact: bool, flood: Bytes) -> Result<Room, TooFull> {
    let kept = (size / 10).clamp(KEEP_MIN, KEEP_MAX);
    let there = free.saturating_sub(kept);
    let share = if flood.0 > 0 { there / 2 } else { there };
    let fits = if exact { file.0 } else { (file.0.min(share.max(FILE_MIN))) >> 20 << 20 };
    if fits > there || fits < FILE_MIN.min(file.0) {
        let needed = Bytes(if exact { file.0 } else { FILE_MIN });
        return Err(TooFull { needed, there: Bytes(there), kept: Bytes(kept) });
    }
    let rest = (there - fits).min(flood.0) >> 20 << 20;
    Ok(Room { file: Bytes(fits), flood: Bytes(if rest < FLOOD_MIN { 0 } else { rest }) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: u64 = 1 << 30;

    #[test]
    fn room_is_divided_and_a_tenth_stays() {
        for (size, free, file, exact, flood, expected) in [
            (100 * G, 80 * G, 2 * G, false, 6 * G, Some((2 * G, 6 * G))),
            (12 * G, 12 * G, 2 * G, false, 20 * G, Some((2 * G, (12 * G - 12 * G / 10 - 2 * G) >> 20 << 20))),
            (100 * G, 13 * G, 8 * G, false, 6 * G, Some((3 * G / 2, 3 * G / 2))),
            (100 * G, 13 * G, 2 * G, true, 0, Some((2 * G, 0))),
            (10_000 * G, 19 * G, 2 * G, true, 0, Some((2 * G, 0))),
            (10_000 * G, 17 * G, 2 * G, true, 0, None),
            (100 * G, 11 * G, 2 * G, true, 6 * G, None),
            (100 * G, 10 * G, 2 * G, false, 6 * G, None),
            (2 * G, G + (200 << 20), 2 * G, false, 6 * G, Some((FILE_MIN, 0))),
        ] {
            let room = divide(size, free, Bytes(file), exact, Bytes(flood));
            let got = room.ok().map(|r| (r.file.0, r.flood.0));
            assert_eq!(got, expected, "{size} {free} {file} {exact} {flood}");
        }
    }
}
