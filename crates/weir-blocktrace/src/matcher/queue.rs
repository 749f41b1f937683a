//! Bios on their way down: Q, X and A.

use super::index::{By, Direction, Key};
use super::life::{BioLife, NEVER, Part, direction_of_bio, end_of, place_of};
use super::slab::{Id, NONE};
use super::{Fit, Found, Matcher, Reason};
use crate::{Event, Kind, Sink};

impl Matcher {
    /// Q: a bio enters.
    #[inline]
    pub(super) fn queue(&mut self, event: &Event, device: u16, sink: &mut impl Sink) {
        if self.devices[usize::from(device)].is_remap_target && self.confirm_remapped(event, device) {
            return;
        }
        self.enter(BioLife::of(event, device, event.time_ns), event, sink);
    }

    /// A new bio, seen by its first event; all of it waits.
    #[inline(always)]
    fn enter(&mut self, life: BioLife, event: &Event, sink: &mut impl Sink) {
        let (bio, device) = (self.bios.next_id(), life.device);
        self.devices[usize::from(device)].has_queue = true;
        let direction = direction_of_bio(event.flags, event.bytes);
        let part = Part { identity: event.identity, ..Part::whole(bio, event, direction) };
        let id = self.parts.insert(part);
        self.bios.insert(BioLife { events: 1, parts: 1, open: 1, waiting: id, ..life });
        self.file_part(id, &part, device, sink);
    }

    /// Puts one part more of a bio among those that wait.
    fn wait(&mut self, part: Part, sink: &mut impl Sink) {
        let id = self.parts.insert(part);
        let bio = &mut self.bios[part.bio];
        bio.parts += 1;
        bio.open += 1;
        let (next, device) = (std::mem::replace(&mut bio.waiting, id), bio.device);
        self.parts[id].next = next;
        if next != NONE {
            self.parts[next].before = id;
        }
        self.file_part(id, &part, device, sink);
    }

    /// Puts a part that begins to wait under its keys.
    #[inline(always)]
    fn file_part(&mut self, id: Id, part: &Part, device: u16, sink: &mut impl Sink) {
        if part.identity != 0 {
            let key = Key::of_identity(By::BioIdentity, part.identity);
            // An identity in use again: the end of what had it was lost.
            if let Some((old, _)) = self.index.first(key) {
                self.lose_part(old, Reason::NoC, sink);
            }
            self.index.insert(key, id);
        }
        self.file_waiting(id, waiting_key(device, part), sink);
    }

    #[inline(always)]
    fn file_waiting(&mut self, id: Id, key: Key, sink: &mut impl Sink) {
        if let Some(surplus) = self.index.insert(key, id) {
            self.lose_part(surplus, Reason::NoC, sink);
        }
    }

    /// Takes a part from those that wait; it stays open for its bio.
    #[inline]
    pub(super) fn unwait(&mut self, id: Id) {
        let key = self.unlist(id);
        self.index.remove(key, id);
    }

    /// The same, but that it is still found under the key given back: the caller puts another in its place.
    #[inline(always)]
    pub(super) fn unlist(&mut self, id: Id) -> Key {
        let part = self.parts[id];
        let device = self.bios[part.bio].device;
        if part.identity != 0 {
            self.index.remove(Key::of_identity(By::BioIdentity, part.identity), id);
        }
        if part.cursor != NEVER {
            self.index.remove(cursor_key(device, &part), id);
        }
        match part.before {
            NONE => self.bios[part.bio].waiting = part.next,
            before => self.parts[before].next = part.next,
        }
        if part.next != NONE {
            self.parts[part.next].before = part.before;
        }
        self.parts[id].next = NONE;
        self.parts[id].before = NONE;
        waiting_key(device, &part)
    }

    /// The waiting part that an event of its submission (G, M, F, X) is about; not taken.
    #[inline]
    pub(super) fn find_waiting(&mut self, event: &Event, device: u16, direction: Direction) -> Option<Found> {
        let identity = if event.act == crate::Act::Split { event.other } else { event.identity };
        if let Some(id) = self.part_of_identity(identity)
            && self.bios[self.parts[id].bio].device == device
        {
            return Some(Found { id, ambiguous: false, alone: true });
        }
        let key = Key::of_sector(By::Waiting, device, direction, place_of(direction, event.sector));
        let found = self.pick(key, |this, id| this.fit_submission(id, event))?;
        self.note_ambiguous(device, &found);
        Some(found)
    }

    /// The submitter's own, and of equal length: then the latest, since a thread has one bio at a time in flight.
    fn fit_submission(&self, id: Id, event: &Event) -> Fit {
        let part = &self.parts[id];
        if part.bytes < event.bytes {
            return Fit::NO;
        }
        let same_thread = self.bios[part.bio].pid == event.pid;
        let score = 1 + u8::from(part.bytes == event.bytes) + 2 * u8::from(same_thread);
        Fit { score, latest_wins: same_thread }
    }

    /// What the thread of `found` had waiting at the same place before it: their further events were lost.
    #[inline]
    pub(super) fn give_up_earlier(&mut self, found: Found, device: u16, sink: &mut impl Sink) {
        if !found.alone {
            self.give_up_before(found.id, device, sink);
        }
    }

    #[cold]
    fn give_up_before(&mut self, id: Id, device: u16, sink: &mut impl Sink) {
        let part = &self.parts[id];
        let (key, pid) = (waiting_key(device, part), self.bios[part.bio].pid);
        let earlier: Vec<Id> = self.index.all(key).take_while(|&other| other != id).collect();
        for other in earlier {
            // What is remapped here may wait long for a Q of its own, and what is known by identity is no mistake.
            let part = &self.parts[other];
            let bio = &self.bios[part.bio];
            if bio.pid == pid && !bio.awaits_queue && part.identity == 0 {
                self.lose_part(other, Reason::NoC, sink);
            }
        }
    }

    /// X: the front of a bio goes its own way, the rest starts at sector `detail`.
    pub(super) fn split(&mut self, event: &Event, device: u16, sink: &mut impl Sink) {
        let direction = direction_of_bio(event.flags, event.bytes);
        if event.detail == event.sector {
            return self.advance(event, device, direction, sink);
        }
        let Some(Found { id, .. }) = self.find_waiting(event, device, direction) else {
            return self.orphan(event, device, Reason::NoRequest);
        };
        let bio = self.parts[id].bio;
        if !self.cut(id, event.detail, event.identity, sink) {
            return self.orphan(event, device, Reason::NoRequest);
        }
        self.bios[bio].events += 1;
    }

    /// X as device-mapper says it: the event is about the rest, and the bio, whose front is already in flight below,
    /// goes on under the rest's sector. It ends once, as a whole.
    fn advance(&mut self, event: &Event, device: u16, direction: Direction, sink: &mut impl Sink) {
        let key = Key::of_sector(By::Cursor, device, direction, event.sector);
        let end = end_of(event.sector, event.bytes);
        let Some(found) = self.pick(key, |this, id| Fit::first(u8::from(this.parts[id].end() == end))) else {
            return self.orphan(event, device, Reason::NoRequest);
        };
        self.note_ambiguous(device, &found);
        let waiting = waiting_key(device, &self.parts[found.id]);
        self.index.remove(waiting, found.id);
        self.index.remove(key, found.id);
        let part = &mut self.parts[found.id];
        (part.sector, part.bytes, part.cursor, part.last_ns) =
            (event.sector, event.bytes, NEVER, event.time_ns);
        let bio = part.bio;
        self.bios[bio].events += 1;
        self.file_waiting(found.id, waiting_key(device, &self.parts[found.id]), sink);
    }

    /// Cuts a waiting part at `sector`, if that lies within it. The front, which may have an identity of its own,
    /// becomes a part; the part found is the rest.
    pub(super) fn cut(&mut self, id: Id, sector: u64, identity: u64, sink: &mut impl Sink) -> bool {
        let whole = self.parts[id];
        let front_sectors = sector.wrapping_sub(whole.sector);
        let front_bytes = u32::try_from(front_sectors).ok().and_then(|sectors| sectors.checked_mul(512));
        let Some(front_bytes) = front_bytes.filter(|&bytes| bytes > 0 && bytes < whole.bytes) else {
            return false;
        };
        let device = self.bios[whole.bio].device;
        self.index.remove(waiting_key(device, &whole), id);
        let rest = &mut self.parts[id];
        rest.sector = sector;
        rest.bytes -= front_bytes;
        rest.kind = Kind::Split;
        // What was cut off goes its way first, so that it is not mistaken for something given up.
        self.file_waiting(id, waiting_key(device, &self.parts[id]), sink);
        self.wait(
            Part { bytes: front_bytes, kind: Kind::Split, identity, cursor: NEVER, before: NONE, ..whole },
            sink,
        );
        true
    }

    /// A: a bio came here from another device, where it may be known.
    pub(super) fn remap(&mut self, event: &Event, device: u16, sink: &mut impl Sink) {
        let above = self.find_above(event);
        if above.is_none() && self.follow_partition(event, device, sink) {
            return;
        }
        self.devices[usize::from(device)].is_remap_target = true;
        let mut life = BioLife::of(event, device, event.time_ns);
        life.awaits_queue = true;
        if let Some(above) = above {
            life.above = above;
            life.above_generation = self.bios.generation(above);
            self.pass_identity_on(above, event.identity);
            let above = &mut self.bios[above];
            above.remaps += 1;
            above.below_open += 1;
        }
        self.enter(life, event, sink);
    }

    /// The bio on the device above that a remap came from.
    fn find_above(&mut self, event: &Event) -> Option<Id> {
        if let Some(part) = self.part_of_identity(event.other) {
            return Some(self.parts[part].bio);
        }
        let from = *self.numbers.get(&event.from)?;
        if let Some(part) = self.part_of_identity(event.identity)
            && self.bios[self.parts[part].bio].device == from
        {
            return Some(self.parts[part].bio);
        }
        let direction = direction_of_bio(event.flags, event.bytes);
        let by = |by| Key::of_sector(by, from, direction, event.detail);
        let fit = |this: &Self, id: Id| {
            let part = &this.parts[id];
            let bio = &this.bios[part.bio];
            let (same_thread, fits) = (bio.pid == event.pid, part.bytes == event.bytes);
            // Of equal bios in flight together, each goes on once.
            let stays = bio.remaps == 0;
            Fit::first(1 + u8::from(same_thread) + 2 * u8::from(fits) + 4 * u8::from(stays))
        };
        let found = self.pick(by(By::Waiting), fit).or_else(|| self.pick(by(By::Cursor), fit))?;
        self.expect_next_piece(found, event, from);
        Some(self.parts[found.id].bio)
    }

    #[inline(always)]
    pub(super) fn part_of_identity(&self, identity: u64) -> Option<Id> {
        if identity == 0 {
            return None;
        }
        self.index.first(Key::of_identity(By::BioIdentity, identity)).map(|(part, _)| part)
    }

    /// Where a bio goes on itself, and not a clone of it (md's arrays, NVMe with several paths), its identity is below from now on.
    fn pass_identity_on(&mut self, above: Id, identity: u64) {
        if let Some(part) = self.part_of_identity(identity).filter(|&part| self.parts[part].bio == above) {
            self.index.remove(Key::of_identity(By::BioIdentity, identity), part);
            self.parts[part].identity = 0;
        }
    }

    /// Where a bio is remapped piece by piece, the next piece starts where this one ends.
    fn expect_next_piece(&mut self, found: Found, event: &Event, device: u16) {
        let part = self.parts[found.id];
        let next = end_of(event.detail, event.bytes);
        if part.cursor != NEVER {
            self.index.remove(cursor_key(device, &part), found.id);
        }
        let goes_on =
            event.bytes > 0 && next.wrapping_sub(part.sector) < part.end().wrapping_sub(part.sector);
        let part = &mut self.parts[found.id];
        part.cursor = if goes_on { next } else { NEVER };
        part.last_ns = event.time_ns;
        if goes_on {
            let key = cursor_key(device, part);
            self.index.insert(key, found.id);
        }
    }

    /// A bio that came to a partition goes on to the disk: both remaps are the disk's, and make one way.
    fn follow_partition(&mut self, event: &Event, device: u16, sink: &mut impl Sink) -> bool {
        if !self.devices[usize::from(device)].is_remap_target {
            return false;
        }
        let direction = direction_of_bio(event.flags, event.bytes);
        let key = Key::of_sector(By::Waiting, device, direction, event.detail);
        let Some(found) = self.pick(key, |this, id| this.fit_remapped(id, event)) else { return false };
        self.index.remove(key, found.id);
        let part = &mut self.parts[found.id];
        part.sector = event.sector;
        let bio = part.bio;
        self.file_waiting(found.id, waiting_key(device, &self.parts[found.id]), sink);
        let bio = &mut self.bios[bio];
        bio.sector = event.sector;
        bio.events += 1;
        true
    }

    /// Q of a bio that a remap has announced.
    fn confirm_remapped(&mut self, event: &Event, device: u16) -> bool {
        let direction = direction_of_bio(event.flags, event.bytes);
        let key = Key::of_sector(By::Waiting, device, direction, event.sector);
        let Some(found) = self.pick(key, |this, id| this.fit_remapped(id, event)) else { return false };
        let part = &mut self.parts[found.id];
        part.last_ns = event.time_ns;
        let bio = &mut self.bios[part.bio];
        bio.queued_ns = event.time_ns;
        bio.flags = event.flags;
        bio.awaits_queue = false;
        bio.events += 1;
        true
    }

    fn fit_remapped(&self, id: Id, event: &Event) -> Fit {
        let part = &self.parts[id];
        let bio = &self.bios[part.bio];
        if !bio.awaits_queue || part.bytes != event.bytes || part.identity != event.identity {
            return Fit::NO;
        }
        Fit::first(1 + u8::from(bio.pid == event.pid))
    }
}

#[inline]
pub(super) fn waiting_key(device: u16, part: &Part) -> Key {
    Key::of_sector(By::Waiting, device, part.direction, place_of(part.direction, part.sector))
}

fn cursor_key(device: u16, part: &Part) -> Key {
    Key::of_sector(By::Cursor, device, part.direction, part.cursor)
}
