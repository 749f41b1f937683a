//! Requests on their way to the driver: G, M, F, I, D and R.

use super::index::{By, Direction, Key};
use super::life::{
    BioLife, NEVER, Part, RequestLife, State, direction_of_bio, direction_of_request, end_of, place_of,
};
use super::slab::{Id, NONE};
use super::{Fit, Found, Matcher, Reason};
use crate::{Act, Event, Flags, Kind, Sink};

/// The most bios of a request: the kernel counts its segments in 16 bits (`nr_phys_segments` of struct request,
/// include/linux/blk-mq.h), and each bio has one. What is taken over is walked: without a bound, requests of a made-up recording
/// would take each other over again and again, each time with all that they had.
const PARTS_MAX: u32 = u16::MAX as u32;

impl Matcher {
    /// G: a bio, or a part of it, gets a request.
    #[inline]
    pub(super) fn get_request(&mut self, event: &Event, device: u16, sink: &mut impl Sink) {
        let direction = direction_of_bio(event.flags, event.bytes);
        let (part, waited) = match self.find_waiting(event, device, direction) {
            Some(found) => {
                self.give_up_earlier(found, device, sink);
                let part = self.front_of(found.id, event, sink);
                (part, Some(self.unlist(part)))
            }
            None => (self.unseen_part(event, device, direction), None),
        };
        self.parts[part].got_ns = event.time_ns;
        let mut life = RequestLife::of(event, device, direction);
        life.identity = event.other;
        life.first_bio = event.identity;
        if self.parts[part].bytes < event.bytes {
            // A recorder that knows G only from D says how long the request became.
            let Part { sector, bytes, .. } = self.parts[part];
            (life.sector, life.rest_sector, life.bytes, life.rest_bytes) = (sector, sector, bytes, bytes);
        }
        self.open_request(life, part, waited, sink);
    }

    /// The part itself, or so much of it as the event speaks of: its split was not seen.
    fn front_of(&mut self, part: Id, event: &Event, sink: &mut impl Sink) -> Id {
        let Part { bio, sector, bytes, .. } = self.parts[part];
        if bytes == event.bytes || !self.cut(part, end_of(sector, event.bytes), event.identity, sink) {
            return part;
        }
        self.bios[bio].waiting
    }

    /// A part of a bio whose Q was not seen; it does not wait.
    fn unseen_part(&mut self, event: &Event, device: u16, direction: Direction) -> Id {
        let mut bio = BioLife::of(event, device, NEVER);
        bio.parts = 1;
        bio.open = 1;
        let bio = self.bios.insert(bio);
        self.parts.insert(Part::whole(bio, event, direction))
    }

    /// A request begins, with its first part; `waited` is where that is still found.
    #[inline(always)]
    fn open_request(
        &mut self,
        mut life: RequestLife,
        part: Id,
        waited: Option<Key>,
        sink: &mut impl Sink,
    ) -> Id {
        let bio = &self.bios[self.parts[part].bio];
        life.asked = Flags(life.asked.0 | bio.flags.0);
        life.first = part;
        life.last = part;
        life.parts = 1;
        life.events = 1;
        let id = self.requests.insert(life);
        self.parts[part].request = id;
        // The part goes before anything else is given up: it waits no more.
        let life = &self.requests[id];
        let is_identified = life.identity | life.first_bio != 0;
        if is_identified {
            if let Some(key) = waited {
                self.index.remove(key, part);
            }
            self.file_identities(id, sink);
        }
        self.file_got(id, waited.filter(|_| !is_identified).map(|key| (key, part)), sink);
        id
    }

    fn file_identities(&mut self, id: Id, sink: &mut impl Sink) {
        let RequestLife { identity, first_bio, .. } = self.requests[id];
        for (by, identity) in [(By::RequestIdentity, identity), (By::BioOfRequest, first_bio)] {
            if identity == 0 {
                continue;
            }
            let key = Key::of_identity(by, identity);
            match self.index.first(key) {
                Some((old, _)) if old == id => continue,
                // An identity in use again: the end of what had it was lost.
                Some((old, _)) => self.lose_request(old, Reason::NoC, sink),
                None => {}
            }
            self.index.insert(key, id);
        }
    }

    /// Takes a request that is over out of its identities.
    #[inline]
    pub(super) fn unfile_identities(&mut self, id: Id) {
        let RequestLife { identity, first_bio, .. } = self.requests[id];
        if identity != 0 {
            self.index.remove(Key::of_identity(By::RequestIdentity, identity), id);
        }
        if first_bio != 0 {
            self.index.remove(Key::of_identity(By::BioOfRequest, first_bio), id);
        }
    }

    /// Puts a request that waits under its keys, in the place of `from` where something goes for it.
    #[inline]
    fn file_got(&mut self, id: Id, from: Option<(Key, Id)>, sink: &mut impl Sink) {
        let (start, end) = got_keys(&self.requests[id]);
        let surplus = match from {
            Some(from) => self.index.replace(from, (start, id)),
            None => self.index.insert(start, id),
        };
        if let Some(surplus) = surplus {
            self.lose_request(surplus, Reason::NoC, sink);
        }
        if let Some(surplus) = end.and_then(|end| self.index.insert(end, id)) {
            self.lose_request(surplus, Reason::NoC, sink);
        }
    }

    /// Puts a request that waits and has grown under its keys; what did not change keeps its turn.
    fn refile_got(&mut self, id: Id, (start, end): GotKeys, sink: &mut impl Sink) {
        let (new_start, new_end) = got_keys(&self.requests[id]);
        if new_start != start
            && let Some(surplus) = self.index.replace((start, id), (new_start, id))
        {
            self.lose_request(surplus, Reason::NoC, sink);
        }
        if let (Some(end), Some(new_end)) = (end, new_end)
            && new_end != end
            && let Some(surplus) = self.index.replace((end, id), (new_end, id))
        {
            self.lose_request(surplus, Reason::NoC, sink);
        }
    }

    /// Takes a request out of wherever it is found.
    #[inline]
    pub(super) fn unfile(&mut self, id: Id) {
        let life = &self.requests[id];
        match life.state {
            State::Got => {
                let (start, end) = got_keys(life);
                self.index.remove(start, id);
                if let Some(end) = end {
                    self.index.remove(end, id);
                }
            }
            State::Issued => {
                self.index.remove(rest_key(By::Issued, life), id);
            }
            State::Ending => {
                self.index.remove(rest_key(By::Ending, life), id);
            }
        }
    }

    /// Puts an issued or ending request under the first sector not yet done.
    pub(super) fn file_rest(&mut self, id: Id, by: By, sink: &mut impl Sink) {
        let key = rest_key(by, &self.requests[id]);
        if let Some(surplus) = self.index.insert(key, id) {
            self.lose_request(surplus, Reason::NoC, sink);
        }
    }

    /// M and F: a bio joins a request that waits. Recordings without an act of its own say M for two requests, too.
    pub(super) fn merge(&mut self, event: &Event, device: u16, sink: &mut impl Sink) {
        let direction = direction_of_bio(event.flags, event.bytes);
        let Some(found) = self.find_waiting(event, device, direction) else {
            return self.merge_requests(event, device, sink);
        };
        let has_room = |found: &Found| self.requests[found.id].parts < PARTS_MAX;
        let Some(request) = self.find_container(event, device, direction).filter(has_room) else {
            // The request began before the recording, or its G was lost: so is what became of the bio.
            self.orphan(event, device, Reason::NoRequest);
            let reason =
                self.devices[usize::from(device)].unless_before_start(Reason::NoRequest, event.time_ns);
            return self.lose_part(found.id, reason, sink);
        };
        self.note_ambiguous(device, &request);
        self.give_up_earlier(found, device, sink);
        let part = self.front_of(found.id, event, sink);
        self.unwait(part);
        self.join(part, request.id, event, sink);
    }

    /// The request whose end, or start for F, is where the bio starts, or ends; of several the submitter's latest.
    fn find_container(&self, event: &Event, device: u16, direction: Direction) -> Option<Found> {
        if let Some(id) = self.by_request_identity(event.other).filter(|&id| self.is_open_on(id, device)) {
            return Some(Found { id, ambiguous: false, alone: true });
        }
        let fit = |this: &Self, id: Id| {
            let same_thread = this.requests[id].pid == event.pid;
            Fit { score: 1 + u8::from(same_thread), latest_wins: true }
        };
        let back = || self.pick(Key::of_sector(By::End, device, direction, event.sector), fit);
        let end = end_of(event.sector, event.bytes);
        let front = || self.pick(Key::of_sector(By::Start, device, direction, end), fit);
        match event.act {
            Act::FrontMerge => front(),
            _ => back(),
        }
    }

    fn join(&mut self, part: Id, request: Id, event: &Event, sink: &mut impl Sink) {
        let filed = got_keys(&self.requests[request]);
        let piece = &mut self.parts[part];
        piece.merged_ns = event.time_ns;
        piece.kind = Kind::Merged;
        piece.request = request;
        let (bytes, sector) = (piece.bytes, piece.sector);
        let life = &mut self.requests[request];
        if event.act == Act::FrontMerge {
            piece.next = life.first;
            life.first = part;
            life.sector = sector;
            life.rest_sector = sector;
        } else {
            let last = std::mem::replace(&mut life.last, part);
            self.parts[last].next = part;
        }
        life.parts += 1;
        life.bytes = life.bytes.wrapping_add(bytes);
        life.rest_bytes = life.rest_bytes.wrapping_add(bytes);
        life.events += 1;
        life.last_ns = event.time_ns;
        self.refile_got(request, filed, sink);
    }

    /// A request joins the one that ends where it starts.
    pub(super) fn merge_requests(&mut self, event: &Event, device: u16, sink: &mut impl Sink) {
        let direction = direction_of_bio(event.flags, event.bytes);
        let start = Key::of_sector(By::Start, device, direction, event.sector);
        let joining = match self.by_request_identity(event.identity) {
            Some(id) if self.is_open_on(id, device) => Some(Found { id, ambiguous: false, alone: true }),
            _ => self.pick(start, |this, id| Fit::first(u8::from(this.requests[id].bytes == event.bytes))),
        };
        let end = Key::of_sector(By::End, device, direction, event.sector);
        let taking = joining.and_then(|joining| {
            self.pick(end, |_, id| Fit { score: u8::from(id != joining.id), latest_wins: true })
        });
        let parts = |found: &Found| self.requests[found.id].parts;
        let fit = |joining, taking| parts(joining).saturating_add(parts(taking)) <= PARTS_MAX;
        match (joining, taking) {
            (Some(joining), Some(taking)) if fit(&joining, &taking) => {
                self.note_ambiguous(device, &joining);
                self.take_over(joining.id, taking.id, event, sink);
            }
            _ => self.orphan(event, device, Reason::NoRequest),
        }
    }

    fn take_over(&mut self, joining: Id, taking: Id, event: &Event, sink: &mut impl Sink) {
        self.unfile(joining);
        self.unfile_identities(joining);
        let filed = got_keys(&self.requests[taking]);
        let gone = self.requests.remove(joining);
        let mut part = gone.first;
        while part != NONE {
            let piece = &mut self.parts[part];
            piece.request = taking;
            piece.kind = Kind::Merged;
            if piece.inserted_ns == NEVER && piece.merged_ns == NEVER {
                piece.inserted_ns = gone.inserted_ns;
            }
            part = piece.next;
        }
        let life = &mut self.requests[taking];
        self.parts[life.last].next = gone.first;
        life.last = gone.last;
        life.parts += gone.parts;
        life.bytes = life.bytes.wrapping_add(gone.bytes);
        life.rest_bytes = life.rest_bytes.wrapping_add(gone.rest_bytes);
        life.events += gone.events + 1;
        life.last_ns = event.time_ns;
        self.refile_got(taking, filed, sink);
    }

    /// I: a request goes into the scheduler.
    #[inline]
    pub(super) fn insert(&mut self, event: &Event, device: u16, sink: &mut impl Sink) {
        let direction = direction_of_request(event.flags, event.bytes);
        let id = self.find_or_open(event, device, direction, sink);
        let life = &mut self.requests[id];
        if life.inserted_ns == NEVER {
            life.inserted_ns = event.time_ns;
        }
        life.last_ns = event.time_ns;
        self.know_identities(id, event, sink);
    }

    /// D: a request goes to the driver. Its start and length are what the driver sees.
    #[inline]
    pub(super) fn issue(&mut self, event: &Event, device: u16, sink: &mut impl Sink) {
        let direction = direction_of_request(event.flags, event.bytes);
        let id = self.find_or_open(event, device, direction, sink);
        let life = &mut self.requests[id];
        let (start, end) = got_keys(life);
        life.direction = direction;
        life.flags = event.flags;
        life.state = State::Issued;
        life.issued_ns = event.time_ns;
        life.last_ns = event.time_ns;
        if life.requeues == 0 {
            life.sector = event.sector;
            life.bytes = event.bytes;
        }
        life.rest_sector = event.sector;
        life.rest_bytes = event.bytes;
        let issued = rest_key(By::Issued, life);
        let surplus = self.index.replace((start, id), (issued, id));
        if let Some(end) = end {
            self.index.remove(end, id);
        }
        if let Some(surplus) = surplus {
            self.lose_request(surplus, Reason::NoC, sink);
        }
        self.know_identities(id, event, sink);
    }

    fn know_identities(&mut self, id: Id, event: &Event, sink: &mut impl Sink) {
        if event.identity == 0 {
            return;
        }
        let life = &self.requests[id];
        if life.identity == event.identity && life.first_bio == event.other {
            return;
        }
        self.unfile_identities(id);
        let life = &mut self.requests[id];
        life.identity = event.identity;
        life.first_bio = event.other;
        self.file_identities(id, sink);
    }

    /// The request that an I or D is about; one made for it, with the event counted, where there is none.
    #[inline]
    fn find_or_open(&mut self, event: &Event, device: u16, direction: Direction, sink: &mut impl Sink) -> Id {
        if let Some(id) = self.find_got(event, device, direction, sink) {
            self.requests[id].events += 1;
            return id;
        }
        let part = match direction {
            // A command of the flush machinery, which serves many: it has no Q.
            Direction::FlushCommand => None,
            _ => self.find_waiting(event, device, direction).map(|found| found.id),
        };
        let part = match part.filter(|&part| self.parts[part].bytes == event.bytes) {
            Some(part) => {
                self.unwait(part);
                part
            }
            None => self.unseen_part(event, device, direction),
        };
        self.open_request(RequestLife::of(event, device, direction), part, None, sink)
    }

    fn find_got(
        &mut self,
        event: &Event,
        device: u16,
        direction: Direction,
        sink: &mut impl Sink,
    ) -> Option<Id> {
        if event.identity != 0 {
            let of_bio = || self.index.first(Key::of_identity(By::BioOfRequest, event.other));
            let found = self.by_request_identity(event.identity).or_else(|| of_bio().map(|(id, _)| id));
            if let Some(id) = found
                && self.is_open_on(id, device)
            {
                return Some(id);
            }
        }
        let found = self.find_got_at(event, device, direction, sink)?;
        self.note_ambiguous(device, &found);
        Some(found.id)
    }

    fn find_got_at(
        &mut self,
        event: &Event,
        device: u16,
        direction: Direction,
        sink: &mut impl Sink,
    ) -> Option<Found> {
        let fit = |this: &Self, id: Id| this.fit_got(id, event);
        let key = Key::of_sector(By::Start, device, direction, place_of(direction, event.sector));
        if let Some(found) = self.pick_fresh(key, device, sink, fit) {
            return Some(found);
        }
        // Old kernels issue the very request of the flush's sender.
        let legacy_flush = direction == Direction::FlushCommand && event.flags.has(Flags::WRITE);
        let key = Key::of_sector(By::Start, device, Direction::FlushBio, event.sector);
        legacy_flush.then(|| self.pick(key, fit)).flatten()
    }

    /// The length says more than the state: a request may be inserted again, and need not be inserted.
    #[inline]
    fn fit_got(&self, id: Id, event: &Event) -> Fit {
        let life = &self.requests[id];
        let inserted = life.inserted_ns != NEVER;
        let in_turn = inserted == (event.act == Act::Issue);
        Fit::first(1 + 2 * u8::from(life.rest_bytes == event.bytes) + u8::from(in_turn))
    }

    /// Whether a request waits, on this device.
    fn is_open_on(&self, id: Id, device: u16) -> bool {
        let life = &self.requests[id];
        life.state == State::Got && life.device == device
    }

    pub(super) fn by_request_identity(&self, identity: u64) -> Option<Id> {
        if identity == 0 {
            return None;
        }
        self.index.first(Key::of_identity(By::RequestIdentity, identity)).map(|(id, _)| id)
    }

    /// R: the driver gives a request back. It says so more than once for one time.
    pub(super) fn requeue(&mut self, event: &Event, device: u16, sink: &mut impl Sink) {
        let direction = direction_of_request(event.flags, event.bytes);
        let issued = self.find_issued(event, device, direction, sink);
        if let Some(found) = issued {
            self.note_ambiguous(device, &found);
            self.unfile(found.id);
            let life = &mut self.requests[found.id];
            life.state = State::Got;
            life.requeues = life.requeues.saturating_add(1);
            life.events += 1;
            life.last_ns = event.time_ns;
            return self.file_got(found.id, None, sink);
        }
        let waiting = Key::of_sector(By::Start, device, direction, place_of(direction, event.sector));
        match self.pick(waiting, |this, id| this.fit_got(id, event)) {
            Some(found) => self.requests[found.id].events += 1,
            None => self.orphan(event, device, Reason::NoRequest),
        }
    }

    /// An event of something not seen before.
    pub(super) fn orphan(&mut self, event: &Event, device: u16, reason: Reason) {
        let device = &mut self.devices[usize::from(device)];
        let reason = device.unless_before_start(reason, event.time_ns);
        device.unmatched(reason, 1);
    }
}

/// By start, and by end.
type GotKeys = (Key, Option<Key>);

/// Where a request that waits is found; one that nothing can be merged into is not found by its end.
#[inline]
fn got_keys(life: &RequestLife) -> GotKeys {
    let RequestLife { device, direction, rest_sector: sector, rest_bytes: bytes, .. } = *life;
    let start = Key::of_sector(By::Start, device, direction, place_of(direction, sector));
    let mergeable = matches!(direction, Direction::Read | Direction::Write | Direction::Discard);
    let end = || Key::of_sector(By::End, device, direction, end_of(sector, bytes));
    (start, mergeable.then(end))
}

#[inline]
fn rest_key(by: By, life: &RequestLife) -> Key {
    Key::of_sector(by, life.device, life.direction, place_of(life.direction, life.rest_sector))
}
