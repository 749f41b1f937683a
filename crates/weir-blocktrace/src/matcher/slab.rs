//! Places for what is in flight: reused, in the order in which they were taken.

/// A place in a [`Slab`].
pub(super) type Id = u32;

/// No place.
pub(super) const NONE: Id = Id::MAX;

/// Values by [`Id`]; where they are `ORDERED`, with the one taken longest ago at hand, so that what never ends can be
/// given up.
#[derive(Debug)]
pub(super) struct Slab<T, const ORDERED: bool = true> {
    slots: Vec<Slot<T>>,
    free: Id,
    oldest: Id,
    newest: Id,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Slot<T> {
    value: T,
    older: Id,
    /// The next younger one; of a free place the next free one.
    younger: Id,
    /// Counts what lived here, so that an old reference can be told from one to what lives here now.
    generation: u32,
}

impl<T: Copy, const ORDERED: bool> Slab<T, ORDERED> {
    pub(super) fn new() -> Self {
        Slab { slots: Vec::new(), free: NONE, oldest: NONE, newest: NONE, len: 0 }
    }

    /// How many live.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The place that the next value will have.
    #[inline]
    pub(super) fn next_id(&self) -> Id {
        if self.free == NONE { self.slots.len() as Id } else { self.free }
    }

    #[inline]
    pub(super) fn insert(&mut self, value: T) -> Id {
        let id = if self.free == NONE {
            self.slots.push(Slot { value, older: NONE, younger: NONE, generation: 0 });
            (self.slots.len() - 1) as Id
        } else {
            let id = self.free;
            let slot = &mut self.slots[id as usize];
            self.free = slot.younger;
            slot.value = value;
            id
        };
        self.len += 1;
        if ORDERED {
            self.link(id);
        }
        id
    }

    #[inline]
    pub(super) fn remove(&mut self, id: Id) -> T {
        if ORDERED {
            self.unlink(id);
        }
        self.len -= 1;
        let free = self.free;
        let slot = &mut self.slots[id as usize];
        slot.younger = free;
        slot.generation = slot.generation.wrapping_add(1);
        self.free = id;
        self.slots[id as usize].value
    }

    /// The one taken longest ago and not renewed since.
    pub(super) fn oldest(&self) -> Option<Id> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// Makes it the youngest.
    pub(super) fn renew(&mut self, id: Id) {
        self.unlink(id);
        self.link(id);
    }

    pub(super) fn generation(&self, id: Id) -> u32 {
        self.slots[id as usize].generation
    }

    #[inline]
    fn link(&mut self, id: Id) {
        let newest = self.newest;
        let slot = &mut self.slots[id as usize];
        slot.older = newest;
        slot.younger = NONE;
        match self.slots.get_mut(newest as usize) {
            Some(before) => before.younger = id,
            None => self.oldest = id,
        }
        self.newest = id;
    }

    #[inline]
    fn unlink(&mut self, id: Id) {
        let Slot { older, younger, .. } = self.slots[id as usize];
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.younger = younger,
            None => self.oldest = younger,
        }
        match self.slots.get_mut(younger as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
    }
}

impl<T, const ORDERED: bool> std::ops::Index<Id> for Slab<T, ORDERED> {
    type Output = T;

    #[inline]
    fn index(&self, id: Id) -> &T {
        &self.slots[id as usize].value
    }
}

impl<T, const ORDERED: bool> std::ops::IndexMut<Id> for Slab<T, ORDERED> {
    #[inline]
    fn index_mut(&mut self, id: Id) -> &mut T {
        &mut self.slots[id as usize].value
    }
}
