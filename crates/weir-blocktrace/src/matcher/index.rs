//! Where to find what is in flight: an open-addressing table that keeps those of the same key in the order in which
//! they came.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use super::slab::Id;

/// By what something is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum By {
    /// A part that waits for its request: by first sector.
    Waiting = 1,
    /// The same, by the identity of its bio.
    BioIdentity,
    /// Where the next remap of a bio that is remapped piecewise starts: a part, by sector.
    Cursor,
    /// A request not yet issued: by first sector.
    Start,
    /// The same, by the sector behind its last.
    End,
    /// The same, by the identity of a bio in it.
    BioOfRequest,
    /// A request by its own identity.
    RequestIdentity,
    /// An issued request: by the first sector not yet done.
    Issued,
    /// A request whose data is done, but not its flush sequence.
    Ending,
}

/// What is looked for; 0 is no tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    at: u64,
    tag: u32,
}

impl Key {
    /// By sector, on one device, in one direction.
    #[inline]
    pub(super) fn of_sector(by: By, device: u16, direction: Direction, sector: u64) -> Key {
        Key { at: sector, tag: u32::from(device) << 8 | (direction as u32) << 4 | by as u32 }
    }

    /// By identity, on whatever device.
    #[inline]
    pub(super) fn of_identity(by: By, identity: u64) -> Key {
        Key { at: identity, tag: by as u32 }
    }
}

/// What kinds of I/O are never mistaken for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Direction {
    Read,
    Write,
    Discard,
    /// A flush as its sender has it: a bio without data, which ends with a completion of its own.
    FlushBio,
    /// The flush that the device gets, for one or many of them.
    FlushCommand,
    Passthrough,
}

/// How many of one key are kept: more in flight at one sector is no recording of a real machine.
pub(super) const SAME_KEY_MAX: usize = 1024;

const EMPTY: Entry = Entry { at: 0, tag: 0, id: 0 };
const SLOTS_MIN: usize = 256;
/// Odd, and 2^64 over the golden ratio: multiples of it are spread evenly.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// The bits of a tag that say by what.
const BY: u32 = 0xf;

/// A key and what is under it: 16 bytes.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u64,
    tag: u32,
    id: Id,
}

impl Entry {
    #[inline(always)]
    fn new(key: Key, id: Id) -> Entry {
        Entry { at: key.at, tag: key.tag, id }
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.tag == 0
    }

    #[inline(always)]
    fn key(&self) -> Key {
        Key { at: self.at, tag: self.tag }
    }

    /// Whether it would be at home where `key` is, by whatever it is found.
    #[inline(always)]
    fn is_at_place_of(&self, key: Key) -> bool {
        self.at == key.at && (self.tag ^ key.tag) & !BY == 0
    }
}

/// Where something was found last: most often that is what is taken out or goes on next.
#[derive(Debug, Clone, Copy)]
struct Hint {
    slot: usize,
    /// Nothing else is at its place.
    is_sole: bool,
}

const NO_HINT: Hint = Hint { slot: usize::MAX, is_sole: false };

/// The table.
#[derive(Debug)]
pub(super) struct Index {
    entries: Vec<Entry>,
    len: usize,
    shift: u32,
    seeds: [u64; 2],
    /// Holds until anything changes.
    hint: Cell<Hint>,
}

impl Index {
    pub(super) fn new() -> Self {
        Index {
            entries: vec![EMPTY; SLOTS_MIN],
            len: 0,
            shift: 64 - SLOTS_MIN.trailing_zeros(),
            seeds: [0, 1].map(|n| RandomState::new().hash_one(n)),
            hint: Cell::new(NO_HINT),
        }
    }

    #[inline(always)]
    fn home(&self, key: Key) -> usize {
        // A product of 128 bits, folded. Both factors are seeded, so that no recording can have sectors, nor devices, that all fall
        // on one place. Of sectors in a row the folded products lie near to each other with one seed of two hundred: what follows is
        // a product again. By what something is found does not matter, so that what goes on at its sector keeps its place.
        let device = u64::from(key.tag & !BY) << 32;
        let product = u128::from(key.at ^ self.seeds[0]) * u128::from(self.seeds[1] ^ device);
        let folded = product as u64 ^ (product >> 64) as u64;
        (folded.wrapping_mul(FACTOR) >> self.shift) as usize
    }

    #[inline(always)]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.entries.len() - 1)
    }

    /// Puts `id` behind those of the same key. Too many of them: gives back the first, for the caller to give up.
    #[inline]
    pub(super) fn insert(&mut self, key: Key, id: Id) -> Option<Id> {
        if self.len * 2 >= self.entries.len() {
            self.grow();
        }
        self.hint.set(NO_HINT);
        let (mut same, mut first) = (0, id);
        let mut slot = self.home(key);
        while !self.entries[slot].is_empty() {
            if self.entries[slot].key() == key {
                first = if same == 0 { self.entries[slot].id } else { first };
                same += 1;
            }
            slot = self.next(slot);
        }
        self.entries[slot] = Entry::new(key, id);
        self.len += 1;
        (same >= SAME_KEY_MAX).then_some(first)
    }

    /// The first of `key`, and whether there are more.
    #[inline]
    pub(super) fn first(&self, key: Key) -> Option<(Id, bool)> {
        let slot = self.home(key);
        let entry = &self.entries[slot];
        if entry.is_empty() {
            return None;
        }
        // Most often it is at home and alone.
        if entry.key() == key && self.entries[self.next(slot)].is_empty() {
            self.hint.set(Hint { slot, is_sole: true });
            return Some((entry.id, false));
        }
        self.first_of_many(key, slot)
    }

    #[inline(never)]
    fn first_of_many(&self, key: Key, home: usize) -> Option<(Id, bool)> {
        let (mut first, mut same, mut at_place) = (usize::MAX, 0, 0);
        let mut slot = home;
        loop {
            let entry = &self.entries[slot];
            if entry.is_empty() {
                break;
            }
            if entry.is_at_place_of(key) {
                at_place += 1;
                if entry.tag == key.tag {
                    first = if same == 0 { slot } else { first };
                    same += 1;
                }
            }
            slot = self.next(slot);
        }
        let id = self.entries.get(first)?.id;
        self.hint.set(Hint { slot: first, is_sole: at_place == 1 });
        Some((id, same > 1))
    }

    /// All of `key`, the first that came first.
    #[inline]
    pub(super) fn all(&self, key: Key) -> impl Iterator<Item = Id> + '_ {
        let mut slot = self.home(key);
        std::iter::from_fn(move || {
            loop {
                let entry = &self.entries[slot];
                if entry.is_empty() {
                    return None;
                }
                slot = self.next(slot);
                if entry.key() == key {
                    return Some(entry.id);
                }
            }
        })
    }

    /// Takes `id` out of those of `key`. Says whether it was there.
    #[inline]
    pub(super) fn remove(&mut self, key: Key, id: Id) -> bool {
        let Some(slot) = self.slot_of(key, id) else { return false };
        self.hint.set(NO_HINT);
        self.close_gap(slot);
        self.len -= 1;
        true
    }

    /// Where `id` is among those of `key`.
    #[inline]
    fn slot_of(&self, key: Key, id: Id) -> Option<usize> {
        let is_it = |entry: &Entry| entry.key() == key && entry.id == id;
        let mut slot = self.hint.get().slot;
        if self.entries.get(slot).is_some_and(is_it) {
            return Some(slot);
        }
        slot = self.home(key);
        while !is_it(&self.entries[slot]) {
            if self.entries[slot].is_empty() {
                return None;
            }
            slot = self.next(slot);
        }
        Some(slot)
    }

    /// Takes `old` out and puts `new` behind those of its key: in the same place where both belong there. Gives back
    /// what [`Index::insert`] does.
    #[inline]
    pub(super) fn replace(&mut self, old: (Key, Id), new: (Key, Id)) -> Option<Id> {
        let hint = self.hint.get();
        if let Some(entry) = self.entries.get_mut(hint.slot)
            && (entry.key(), entry.id) == old
            && entry.is_at_place_of(new.0)
            && hint.is_sole
        {
            *entry = Entry::new(new.0, new.1);
            return None;
        }
        self.remove(old.0, old.1);
        self.insert(new.0, new.1)
    }

    /// Moves up what follows a freed slot, so that every entry stays reachable from its home and keeps its turn.
    #[inline]
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.entries.len() - 1;
        let mut slot = self.next(gap);
        while !self.entries[slot].is_empty() {
            let home = self.home(self.entries[slot].key());
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(gap) & mask {
                self.entries[gap] = self.entries[slot];
                gap = slot;
            }
            slot = self.next(slot);
        }
        self.entries[gap] = EMPTY;
    }

    #[cold]
    fn grow(&mut self) {
        let slots = self.entries.len() * 2;
        let old = std::mem::replace(&mut self.entries, vec![EMPTY; slots]);
        self.shift -= 1;
        // From an empty slot on, so that a run over the table's end keeps its order.
        let start = old.iter().position(Entry::is_empty).unwrap_or(0);
        for entry in old[start..].iter().chain(&old[..start]).filter(|entry| !entry.is_empty()) {
            let mut slot = self.home(entry.key());
            while !self.entries[slot].is_empty() {
                slot = self.next(slot);
            }
            self.entries[slot] = *entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Sectors that a hash without a seed would put on one place.
    #[test]
    fn chosen_sectors_spread_over_the_table() {
        let inverse = (0..6).fold(FACTOR, |x, _| x.wrapping_mul(2_u64.wrapping_sub(FACTOR.wrapping_mul(x))));
        assert_eq!(inverse.wrapping_mul(FACTOR), 1);
        let of_factor = |factor: u64| -> Vec<Key> {
            let sectors = (0..4096_u64).map(|n| n.wrapping_mul(factor));
            sectors.map(|sector| Key::of_sector(By::Start, 1, Direction::Write, sector)).collect()
        };
        // Each device's number takes back what its sector adds.
        let of_devices = (0..4096_u16).map(|device| {
            let key = Key::of_sector(By::Start, device, Direction::Write, 0);
            Key { at: u64::from(key.tag & !BY) << 40, ..key }
        });
        // Sums of powers of two whose products with that factor are near 0: a seed that is only added moves all alike.
        let of_bits = (0..4096_u64).map(|n| {
            let bits = [3, 13, 17, 33, 34, 35, 36, 49, 50, 54, 55, 56].into_iter().enumerate();
            let sector = bits.filter(|(nth, _)| n >> nth & 1 == 1).map(|(_, bit)| 1_u64 << bit).sum();
            Key::of_sector(By::Start, 1, Direction::Write, sector)
        });
        let chosen = [1, 8, 1000, 1 << 40, 1 << 52, inverse].map(of_factor);
        let chosen: Vec<Vec<Key>> =
            chosen.into_iter().chain([of_devices.collect(), of_bits.collect()]).collect();
        // Each time with other seeds.
        for keys in chosen.iter().cycle().take(40 * chosen.len()) {
            let mut index = Index::new();
            for (n, key) in keys.iter().enumerate() {
                index.insert(*key, n as Id);
            }
            let displaced = |(slot, entry): (usize, &Entry)| {
                slot.wrapping_sub(index.home(entry.key())) & (index.entries.len() - 1)
            };
            let taken = index.entries.iter().enumerate().filter(|(_, entry)| !entry.is_empty());
            let steps: usize = taken.map(displaced).sum();
            assert!(steps < 16 * 4096, "{:x?}: {steps} steps beside their places", &keys[..2]);
        }
    }

    proptest! {
        /// Few sectors, so that runs overlap and keys repeat.
        #[test]
        fn keeps_what_a_map_of_queues_keeps(steps in prop::collection::vec((0_u64..40, prop::bool::weighted(0.6), 0_usize..8), 1..2000)) {
            let mut index = Index::new();
            let mut model: std::collections::BTreeMap<u64, VecDeque<Id>> = Default::default();
            let mut replaced = model.clone();
            for (id, (sector, inserts, nth)) in steps.into_iter().enumerate() {
                let key = Key::of_sector(By::Start, 1, Direction::Write, sector);
                let queue = model.entry(sector).or_default();
                if inserts {
                    prop_assert_eq!(index.insert(key, id as Id), None);
                    queue.push_back(id as Id);
                } else if let Some(gone) = queue.remove(nth) {
                    // Some go on at once, under the same sector or the one behind it.
                    if nth % 3 == 0 {
                        prop_assert!(index.first(key).is_some());
                    }
                    if nth % 2 == 0 {
                        let issued = Key::of_sector(By::Issued, 1, Direction::Write, sector + nth as u64 / 4);
                        prop_assert_eq!(index.replace((key, gone), (issued, id as Id)), None);
                        replaced.entry(sector + nth as u64 / 4).or_default().push_back(id as Id);
                    } else {
                        prop_assert!(index.remove(key, gone));
                    }
                } else {
                    prop_assert!(!index.remove(key, Id::MAX - 1));
                }
            }
            for (by, model) in [(By::Start, model), (By::Issued, replaced)] {
                for (sector, queue) in model {
                    let key = Key::of_sector(by, 1, Direction::Write, sector);
                    prop_assert_eq!(index.all(key).collect::<VecDeque<_>>(), queue);
                }
            }
        }
    }
}
