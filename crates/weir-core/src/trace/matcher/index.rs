//! Where to find what is in flight: an open-addressing table that keeps those of the same key in the order in which
//! they came.

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

const EMPTY: Entry = Entry { key: Key { at: 0, tag: 0 }, id: 0 };
const SLOTS_MIN: usize = 256;
/// The bits of a tag that say by what.
const BY: u32 = 0xf;

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    id: Id,
}

/// The table.
#[derive(Debug)]
pub(super) struct Index {
    entries: Vec<Entry>,
    len: usize,
    shift: u32,
}

impl Index {
    pub(super) fn new() -> Self {
        Index { entries: vec![EMPTY; SLOTS_MIN], len: 0, shift: 64 - SLOTS_MIN.trailing_zeros() }
    }

    #[inline]
    fn home(&self, key: Key) -> usize {
        // Fibonacci hashing: neighbouring sectors spread over the whole table. By what something is found does not
        // matter, so that what goes on at its sector keeps its place.
        let mixed = (key.at ^ u64::from(key.tag & !BY) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.entries.len() - 1)
    }

    /// Puts `id` behind those of the same key. Too many of them: gives back the first, for the caller to give up.
    #[inline]
    pub(super) fn insert(&mut self, key: Key, id: Id) -> Option<Id> {
        if self.len * 2 >= self.entries.len() {
            self.grow();
        }
        let (mut same, mut first) = (0, id);
        let mut slot = self.home(key);
        while self.entries[slot].key.tag != 0 {
            if self.entries[slot].key == key {
                first = if same == 0 { self.entries[slot].id } else { first };
                same += 1;
            }
            slot = self.next(slot);
        }
        self.entries[slot] = Entry { key, id };
        self.len += 1;
        (same >= SAME_KEY_MAX).then_some(first)
    }

    /// The first of `key`, and whether there are more.
    #[inline]
    pub(super) fn first(&self, key: Key) -> Option<(Id, bool)> {
        let mut all = self.all(key);
        let first = all.next()?;
        Some((first, all.next().is_some()))
    }

    /// All of `key`, the first that came first.
    #[inline]
    pub(super) fn all(&self, key: Key) -> impl Iterator<Item = Id> + '_ {
        let mut slot = self.home(key);
        std::iter::from_fn(move || {
            loop {
                let entry = &self.entries[slot];
                if entry.key.tag == 0 {
                    return None;
                }
                slot = self.next(slot);
                if entry.key == key {
                    return Some(entry.id);
                }
            }
        })
    }

    /// Takes `id` out of those of `key`. Says whether it was there.
    #[inline]
    pub(super) fn remove(&mut self, key: Key, id: Id) -> bool {
        let mut slot = self.home(key);
        loop {
            let entry = &self.entries[slot];
            if entry.key.tag == 0 {
                return false;
            }
            if entry.key == key && entry.id == id {
                break;
            }
            slot = self.next(slot);
        }
        self.close_gap(slot);
        self.len -= 1;
        true
    }

    /// Takes `old` out and puts `new` behind those of its key: in the same place where both belong there. Gives back
    /// what [`Index::insert`] does.
    #[inline]
    pub(super) fn replace(&mut self, old: (Key, Id), new: (Key, Id)) -> Option<Id> {
        if (old.0.at, old.0.tag & !BY) != (new.0.at, new.0.tag & !BY) {
            self.remove(old.0, old.1);
            return self.insert(new.0, new.1);
        }
        let (mut slot, mut place) = (self.home(old.0), None);
        while self.entries[slot].key.tag != 0 {
            let entry = &self.entries[slot];
            if entry.key == new.0 {
                // They keep their turns.
                self.remove(old.0, old.1);
                return self.insert(new.0, new.1);
            }
            if entry.key == old.0 && entry.id == old.1 {
                place = Some(slot);
            }
            slot = self.next(slot);
        }
        let Some(place) = place else { return self.insert(new.0, new.1) };
        self.entries[place] = Entry { key: new.0, id: new.1 };
        None
    }

    /// Moves up what follows a freed slot, so that every entry stays reachable from its home and keeps its turn.
    #[inline]
    fn close_gap(&mut self, mut gap: usize) {
        let mask = self.entries.len() - 1;
        let mut slot = self.next(gap);
        while self.entries[slot].key.tag != 0 {
            let home = self.home(self.entries[slot].key);
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
        let start = old.iter().position(|entry| entry.key.tag == 0).unwrap_or(0);
        for entry in old[start..].iter().chain(&old[..start]).filter(|entry| entry.key.tag != 0) {
            let mut slot = self.home(entry.key);
            while self.entries[slot].key.tag != 0 {
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
