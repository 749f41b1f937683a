//! C: how requests and bios end.

use super::index::{By, Direction, Key};
use super::life::{NEVER, RequestLife, State, direction_of_bio, direction_of_request, end_of, place_of};
use super::slab::Id;
use super::{Fit, Found, Matcher, Reason};
use crate::{Event, Flags, Sink};

/// What a completion may be of.
enum Ends {
    /// A request, or some of it.
    Request(Found),
    /// A bio of a device that has no requests (dm, most of md).
    Bio(Id),
}

/// The end of a flush sequence, or of a flush as its sender has it: no data, and no longer a flush.
#[inline]
fn is_sequence_end(event: &Event) -> bool {
    let kinds = Flags(Flags::FLUSH.0 | Flags::PASSTHROUGH.0);
    event.bytes == 0 && event.flags.0 & kinds.0 == 0
}

impl Matcher {
    /// C: a request, a part of one, or a bio is done.
    #[inline]
    pub(super) fn complete(&mut self, event: &Event, device: u16, sink: &mut impl Sink) {
        match self.find_ending(event, device, sink) {
            Some(Ends::Request(found)) => {
                self.note_ambiguous(device, &found);
                self.complete_request(found, event, sink);
            }
            Some(Ends::Bio(part)) => self.complete_bio(part, event, sink),
            // A flush as its sender has it is never issued: it lacks its Q.
            None if is_sequence_end(event) => {
                self.devices[usize::from(device)].without_queue(1, event.time_ns);
            }
            None => self.orphan(event, device, Reason::NoD),
        }
    }

    #[inline]
    fn find_ending(&mut self, event: &Event, device: u16, sink: &mut impl Sink) -> Option<Ends> {
        if event.identity != 0
            && let Some(found) = self.find_by_identity(event, device)
        {
            return Some(found);
        }
        if is_sequence_end(event) {
            return self.find_sequence_end(event, device, sink);
        }
        let direction = direction_of_request(event.flags, event.bytes);
        self.find_issued(event, device, direction, sink)
            .or_else(|| self.find_unissued(event, device, direction))
            .map(Ends::Request)
            .or_else(|| self.find_bio(event, device, sink))
    }

    fn find_by_identity(&self, event: &Event, device: u16) -> Option<Ends> {
        if let Some(id) = self.by_request_identity(event.identity)
            && self.requests[id].device == device
        {
            return Some(Ends::Request(Found { id, ambiguous: false, alone: true }));
        }
        let part = self.part_of_identity(event.identity)?;
        (self.bios[self.parts[part].bio].device == device).then_some(Ends::Bio(part))
    }

    fn find_sequence_end(&mut self, event: &Event, device: u16, sink: &mut impl Sink) -> Option<Ends> {
        let direction = direction_of_request(event.flags, event.bytes);
        let any = |_: &Self, _| Fit::first(1);
        let ending = self.pick(Key::of_sector(By::Ending, device, direction, event.sector), any);
        let flush = || self.pick(Key::of_sector(By::Start, device, Direction::FlushBio, event.sector), any);
        let found = ending.or_else(flush);
        let found = found.or_else(|| self.find_issued(event, device, direction, sink));
        found.map(Ends::Request).or_else(|| self.find_bio_at(event, device, Direction::FlushBio, sink))
    }

    /// An issued request of which this is, or begins, the rest.
    #[inline]
    pub(super) fn find_issued(
        &mut self,
        event: &Event,
        device: u16,
        direction: Direction,
        sink: &mut impl Sink,
    ) -> Option<Found> {
        if let Some(id) = self.by_request_identity(event.identity)
            && self.requests[id].state == State::Issued
        {
            return Some(Found { id, ambiguous: false, alone: true });
        }
        let key = Key::of_sector(By::Issued, device, direction, place_of(direction, event.sector));
        self.pick_fresh(key, device, sink, |this, id| {
            let rest_bytes = this.requests[id].rest_bytes;
            Fit::first(1 + u8::from(rest_bytes >= event.bytes) + u8::from(rest_bytes == event.bytes))
        })
    }

    /// Of several under one key, what has been in flight for far too long has lost its end.
    #[cold]
    pub(super) fn lose_stale(&mut self, key: Key, device: u16, sink: &mut impl Sink) {
        while let Some((first, true)) = self.index.first(key) {
            let age_ns = self.now_ns.saturating_sub(self.requests[first].last_ns);
            if !self.devices[usize::from(device)].is_stale(age_ns) {
                return;
            }
            self.lose_request(first, Reason::NoC, sink);
        }
    }

    /// A request that ends without having been issued: its D was lost, or the flush before its data failed.
    fn find_unissued(&self, event: &Event, device: u16, direction: Direction) -> Option<Found> {
        let direction = match direction {
            Direction::FlushCommand => Direction::FlushBio,
            other => other,
        };
        let key = Key::of_sector(By::Start, device, direction, place_of(direction, event.sector));
        self.pick(key, |this, id| Fit::first(u8::from(this.requests[id].rest_bytes == event.bytes)))
    }

    fn find_bio(&mut self, event: &Event, device: u16, sink: &mut impl Sink) -> Option<Ends> {
        self.find_bio_at(event, device, direction_of_bio(event.flags, event.bytes), sink)
    }

    fn find_bio_at(
        &mut self,
        event: &Event,
        device: u16,
        direction: Direction,
        sink: &mut impl Sink,
    ) -> Option<Ends> {
        let key = Key::of_sector(By::Waiting, device, direction, place_of(direction, event.sector));
        while let Some((first, true)) = self.index.first(key) {
            let age_ns = self.now_ns.saturating_sub(self.parts[first].last_ns);
            if !self.devices[usize::from(device)].is_stale(age_ns) {
                break;
            }
            self.lose_part(first, Reason::NoC, sink);
        }
        let found = self.pick(key, |this, id| {
            let part = &this.parts[id];
            let bio = &this.bios[part.bio];
            let whole = bio.sector == event.sector && bio.bytes == event.bytes;
            Fit::first(2 * u8::from(part.bytes == event.bytes) + u8::from(whole))
        })?;
        self.note_ambiguous(device, &found);
        Some(Ends::Bio(found.id))
    }

    #[inline]
    fn complete_request(&mut self, found: Found, event: &Event, sink: &mut impl Sink) {
        let id = found.id;
        self.unfile(id);
        let life = &mut self.requests[id];
        life.events += 1;
        life.last_ns = event.time_ns;
        if life.error == 0 {
            life.error = event.error;
        }
        if life.state == State::Issued {
            // A driver that has done nothing of it yet says so, too (SCSI before it looks at an error).
            if event.bytes == 0 && life.rest_bytes > 0 && !life.has_flush_sequence() {
                return self.file_rest(id, By::Issued, sink);
            }
            life.completions = life.completions.saturating_add(1);
            if event.bytes > 0 && event.bytes < life.rest_bytes {
                life.rest_bytes -= event.bytes;
                life.rest_sector = end_of(event.sector, event.bytes);
                return self.file_rest(id, By::Issued, sink);
            }
            if life.has_flush_sequence() {
                life.state = State::Ending;
                life.data_done_ns = event.time_ns;
                life.rest_sector = event.sector;
                return self.file_rest(id, By::Ending, sink);
            }
            if !found.ambiguous {
                let RequestLife { device, issued_ns, .. } = *life;
                self.devices[usize::from(device)].took(event.time_ns.saturating_sub(issued_ns));
            }
        }
        self.finish_request(id, event.time_ns, sink);
    }

    fn complete_bio(&mut self, part: Id, event: &Event, sink: &mut impl Sink) {
        let bio = self.parts[part].bio;
        let life = &mut self.bios[bio];
        life.events += 1;
        if life.error == 0 {
            life.error = event.error;
        }
        let took_ns = event.time_ns.saturating_sub(life.queued_ns);
        let whole = life.sector == event.sector && life.bytes == event.bytes;
        let device = &mut self.devices[usize::from(life.device)];
        device.completes_itself = true;
        if life.queued_ns != NEVER {
            device.took(took_ns);
        }
        if whole {
            self.finish_waiting_parts(bio, event.time_ns, sink);
        } else {
            self.finish_waiting_part(part, event.time_ns, sink);
        }
    }
}
