//! Short syncs that the programs only counted: what was handed over of each place of their table, and which places nobody needs.

use std::collections::HashMap;

/// Ticks, some ten a recorder's interval, after which a place in which nothing was counted is another's.
const STILL_MAX: u32 = 10;
/// Places of the table, at most ...
const MOST: usize = 8192;
/// ... and at least, whatever number of processors each has a count for ...
const LEAST: usize = 2048;
/// ... as far as these bytes of the kernel's memory go.
const BYTES: usize = 2 << 20;
/// A place without its counts (`struct htab_elem` and a bucket), and a count (`struct skim`).
const PLACE_BYTES: usize = 96;
const COUNT_BYTES: usize = 16;

/// What was counted in a place: syncs, and how long they took together, ns.
type Count = (u64, u64);

/// What was handed over so far, by the key of the programs' table.
#[derive(Default)]
pub(super) struct Skims(HashMap<Vec<u8>, Place>);

#[derive(Default)]
struct Place {
    so_far: Count,
    /// Ticks in which nothing was counted.
    still: u32,
}

/// What a place has since the last tick.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Since {
    /// So much.
    Grown(Count),
    /// Nothing.
    Still,
    /// Nothing for so long that it may be another's.
    StillForLong,
}

impl Skims {
    /// Takes what a place holds now. One that was freed, and is taken again, begins anew.
    pub(super) fn take(&mut self, key: &[u8], now: Count) -> Since {
        let place = self.0.entry(key.to_vec()).or_default();
        let before = std::mem::replace(&mut place.so_far, now);
        if now != before {
            place.still = 0;
            return Since::Grown((now.0.saturating_sub(before.0), now.1.saturating_sub(before.1)));
        }
        place.still += 1;
        if place.still < STILL_MAX { Since::Still } else { Since::StillForLong }
    }

    /// A place was freed.
    pub(super) fn forget(&mut self, key: &[u8]) {
        self.0.remove(key);
    }
}

/// How many places the table has where so many processors count.
pub(super) fn places(processors: usize) -> u32 {
    let fit = BYTES / (PLACE_BYTES + COUNT_BYTES * processors);
    fit.clamp(LEAST, MOST) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_which_nothing_was_counted_for_long_is_another_s() {
        let mut skims = Skims::default();
        assert_eq!(skims.take(b"a", (3, 900)), Since::Grown((3, 900)));
        assert_eq!(skims.take(b"a", (5, 1500)), Since::Grown((2, 600)));
        for _ in 1..STILL_MAX {
            assert_eq!(skims.take(b"a", (5, 1500)), Since::Still);
        }
        assert_eq!(skims.take(b"a", (6, 1800)), Since::Grown((1, 300)), "a process that pools connections");
        for _ in 1..STILL_MAX {
            assert_eq!(skims.take(b"a", (6, 1800)), Since::Still);
        }
        assert_eq!(skims.take(b"a", (6, 1800)), Since::StillForLong);
        skims.forget(b"a");
        assert_eq!(skims.take(b"a", (1, 200)), Since::Grown((1, 200)));
    }

    #[test]
    fn the_table_has_more_places_where_few_processors_count() {
        assert_eq!([2, 64, 256].map(places), [8192, LEAST as u32, LEAST as u32]);
        assert!((LEAST as u32 + 1..MOST as u32).contains(&places(16)), "{}", places(16));
    }
}
