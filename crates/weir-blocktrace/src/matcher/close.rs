//! How lives leave: done, or given up.

use super::index::Direction;
use super::life::{BioLife, NEVER, Part, RequestLife, State};
use super::slab::{Id, NONE};
use super::{Matcher, Reason};
use crate::{Bio, Moment, Piece, Request, Sink, Times};

/// So many events go by between two looks at what has been silent for long.
const TICKS: u32 = 64;
/// So many looks, once all is seen, in the time after which something is given up.
const LOOKS: u64 = 1024;

impl Matcher {
    /// A request is at its true end; it is found nowhere any more but by its identities.
    #[inline]
    pub(super) fn finish_request(&mut self, id: Id, end_ns: u64, sink: &mut impl Sink) {
        self.unfile_identities(id);
        let life = self.requests.remove(id);
        let device = self.devices[usize::from(life.device)].number;
        let first = &self.parts[life.first];
        let BioLife { queued_ns, pid, cgroup, .. } = self.bios[first.bio];
        let times = times_of(&life, first, queued_ns, NEVER, end_ns);
        let mut part = life.first;
        while part != NONE {
            let piece = self.parts.remove(part);
            let next = piece.next;
            self.emit_piece(&life, &piece, end_ns, sink);
            self.part_is_done(piece.bio, end_ns, life.error, sink);
            part = next;
        }
        let unseen = queued_ns == NEVER;
        let has_queue = !matches!(life.direction, Direction::FlushCommand | Direction::Passthrough);
        let account = &mut self.devices[usize::from(life.device)];
        if unseen && has_queue {
            account.without_queue(life.events, end_ns);
        } else {
            account.matched += u64::from(life.events);
        }
        if life.issued_ns != NEVER {
            sink.request(&Request {
                device,
                flags: life.flags,
                sector: life.sector,
                bytes: life.bytes,
                pid,
                cgroup,
                pieces: life.parts,
                times,
                error: life.error,
                requeues: life.requeues,
                completions: life.completions,
            });
        }
    }

    #[inline]
    fn emit_piece(&mut self, life: &RequestLife, part: &Part, end_ns: u64, sink: &mut impl Sink) {
        let bio = &self.bios[part.bio];
        let times = times_of(life, part, bio.queued_ns, part.merged_ns, end_ns);
        sink.piece(&Piece {
            device: self.devices[usize::from(life.device)].number,
            flags: bio.flags,
            sector: part.sector,
            bytes: part.bytes,
            request_bytes: life.bytes,
            pid: bio.pid,
            cgroup: bio.cgroup,
            kind: part.kind,
            times,
            error: life.error,
            requeues: life.requeues,
            data_done_ns: (life.data_done_ns != NEVER && life.is_flushed_after())
                .then_some(life.data_done_ns),
        });
    }

    /// Ends a part that never had a request: its bio ends by a completion of its own.
    pub(super) fn finish_waiting_part(&mut self, id: Id, end_ns: u64, sink: &mut impl Sink) {
        self.unwait(id);
        let part = self.parts.remove(id);
        let bio = &self.bios[part.bio];
        let error = bio.error;
        // Where device-mapper has it end under the sector of its rest, it is a whole all the same.
        let (sector, bytes) =
            if bio.parts == 1 { (bio.sector, bio.bytes) } else { (part.sector, part.bytes) };
        let mut times = Times::default();
        times.set(Moment::Queue, bio.queued_ns);
        times.set(Moment::Complete, end_ns);
        sink.piece(&Piece {
            device: self.devices[usize::from(bio.device)].number,
            flags: bio.flags,
            sector,
            bytes,
            request_bytes: bytes,
            pid: bio.pid,
            cgroup: bio.cgroup,
            kind: part.kind,
            times,
            error,
            requeues: 0,
            data_done_ns: None,
        });
        self.part_is_done(part.bio, end_ns, error, sink);
    }

    /// The same for all that wait of one bio.
    pub(super) fn finish_waiting_parts(&mut self, bio: Id, end_ns: u64, sink: &mut impl Sink) {
        let mut part = self.bios[bio].waiting;
        while part != NONE {
            let next = self.parts[part].next;
            self.finish_waiting_part(part, end_ns, sink);
            part = next;
        }
    }

    /// Ends the bios that are done below. Between acts alone: it may end anything that an act has found.
    #[inline]
    pub(super) fn end_in_place(&mut self, sink: &mut impl Sink) {
        if !self.done_below.is_empty() {
            self.end_all_in_place(sink);
        }
    }

    #[cold]
    fn end_all_in_place(&mut self, sink: &mut impl Sink) {
        let mut next = 0;
        // The end of one may be that of another one above.
        while let Some(&(bio, generation)) = self.done_below.get(next) {
            next += 1;
            if self.bios.generation(bio) == generation {
                let end_ns = self.bios[bio].below_end_ns;
                self.finish_waiting_parts(bio, end_ns, sink);
            }
        }
        self.done_below.clear();
    }

    #[inline]
    fn part_is_done(&mut self, bio: Id, end_ns: u64, error: i32, sink: &mut impl Sink) {
        let life = &mut self.bios[bio];
        life.open -= 1;
        life.end_ns = life.end_ns.max(end_ns);
        if life.error == 0 {
            life.error = error;
        }
        if life.open == 0 {
            self.close_bio(bio, sink);
        }
    }

    /// The last part of a bio is gone.
    fn close_bio(&mut self, bio: Id, sink: &mut impl Sink) {
        let life = self.bios.remove(bio);
        let device = &mut self.devices[usize::from(life.device)];
        match life.lost {
            Some(reason) => device.unmatched(reason, life.events),
            None => device.matched += u64::from(life.events),
        }
        if life.above != NONE {
            return self.tell_above(&life);
        }
        if life.lost.is_none() && life.queued_ns != NEVER {
            let mut times = Times::default();
            times.set(Moment::Queue, life.queued_ns);
            times.set(Moment::Complete, life.end_ns);
            sink.bio(&Bio {
                device: device.number,
                flags: life.flags,
                sector: life.sector,
                bytes: life.bytes,
                pid: life.pid,
                cgroup: life.cgroup,
                pieces: life.parts,
                remaps: life.remaps,
                times,
                error: life.error,
            });
        }
    }

    /// A bio that served another one is over. When all of that one is done below, it is done, unless its device says so
    /// itself.
    fn tell_above(&mut self, life: &BioLife) {
        let (id, generation) = (life.above, life.above_generation);
        if self.bios.generation(id) != generation {
            return;
        }
        let above = &mut self.bios[id];
        above.remaps += life.remaps;
        above.below_open -= 1;
        if life.lost.is_some() {
            return;
        }
        above.below_bytes += u64::from(life.bytes);
        above.below_end_ns = above.below_end_ns.max(life.end_ns);
        if above.error == 0 {
            above.error = life.error;
        }
        if !above.is_done_below() {
            return;
        }
        let device = &mut self.devices[usize::from(above.device)];
        device.done_below += u32::from(!device.completes_itself);
        if device.completes_in_place() {
            self.done_below.push((id, generation));
        }
    }

    /// Gives up a part: if it waits, its bio has no end any more.
    pub(super) fn lose_part(&mut self, id: Id, reason: Reason, sink: &mut impl Sink) {
        let part = self.parts[id];
        if part.request != NONE {
            return self.lose_request(part.request, reason, sink);
        }
        let bio = &self.bios[part.bio];
        let device = &self.devices[usize::from(bio.device)];
        if bio.is_done_below() && !device.completes_itself {
            let end_ns = bio.below_end_ns;
            return self.finish_waiting_part(id, end_ns, sink);
        }
        self.unwait(id);
        self.parts.remove(id);
        self.part_is_lost(part.bio, reason, sink);
    }

    fn part_is_lost(&mut self, bio: Id, reason: Reason, sink: &mut impl Sink) {
        let life = &mut self.bios[bio];
        life.lost = Some(reason);
        life.open -= 1;
        // A remap alone is no Q.
        if life.queued_ns != NEVER && !life.awaits_queue {
            sink.piece_lost(self.devices[usize::from(life.device)].number);
        }
        if life.open == 0 {
            self.close_bio(bio, sink);
        }
    }

    /// Gives up a request and all in it. One whose data is done ends there: that its flush sequence had an end of its
    /// own is only inferred.
    pub(super) fn lose_request(&mut self, id: Id, reason: Reason, sink: &mut impl Sink) {
        self.unfile(id);
        if self.requests[id].state == State::Ending {
            let end_ns = self.requests[id].data_done_ns;
            self.requests[id].data_done_ns = NEVER;
            return self.finish_request(id, end_ns, sink);
        }
        self.unfile_identities(id);
        let life = self.requests.remove(id);
        let device = &mut self.devices[usize::from(life.device)];
        device.unmatched(reason, life.events);
        if life.state == State::Issued {
            sink.request_lost(device.number);
        }
        let mut part = life.first;
        while part != NONE {
            let piece = self.parts.remove(part);
            self.part_is_lost(piece.bio, reason, sink);
            part = piece.next;
        }
    }

    /// Keeps memory bounded: what has been silent for too long goes, and the oldest where there are too many.
    #[inline]
    pub(super) fn give_up_some(&mut self, sink: &mut impl Sink) {
        if self.in_flight() > self.limits.in_flight {
            self.give_up_oldest(sink);
            self.give_up_oldest(sink);
        }
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(TICKS) && self.now_ns >= self.next_look_ns {
            self.look_for_silent(sink);
        }
    }

    /// Looks at a bounded number of the parts in flight, and when to go on once all were looked at.
    #[inline(never)]
    fn look_for_silent(&mut self, sink: &mut impl Sink) {
        if self.unlooked == 0 {
            self.unlooked = self.parts.len();
        }
        let now = self.unlooked.min(TICKS as usize);
        self.unlooked -= now;
        if !(0..now).all(|_| self.give_up_silent(sink)) {
            self.unlooked = 0;
        }
        if self.unlooked == 0 {
            self.next_look_ns = self.now_ns.saturating_add(self.limits.silent_ns / LOOKS);
        }
    }

    /// Gives up the oldest part, or the request it is in, if it has been silent for too long. Says whether younger ones
    /// may have been, too.
    fn give_up_silent(&mut self, sink: &mut impl Sink) -> bool {
        let Some(id) = self.parts.oldest() else { return false };
        let Part { request, last_ns, .. } = self.parts[id];
        let last_ns = if request == NONE { last_ns } else { self.requests[request].last_ns };
        if self.now_ns.saturating_sub(last_ns) > self.limits.silent_ns {
            self.lose_part(id, Reason::NoC, sink);
        } else if request == NONE {
            return false;
        } else {
            self.parts.renew(id);
        }
        true
    }

    fn give_up_oldest(&mut self, sink: &mut impl Sink) {
        if let Some(part) = self.parts.oldest() {
            self.lose_part(part, Reason::NoC, sink);
        }
    }

    /// The recording is over: what is in flight had no chance to end, unless it is far older than all that ended.
    pub(super) fn give_up_all(&mut self, sink: &mut impl Sink) {
        while let Some(part) = self.parts.oldest() {
            let Part { bio, last_ns, request, .. } = self.parts[part];
            let last_ns = if request == NONE { last_ns } else { self.requests[request].last_ns };
            let device = &self.devices[usize::from(self.bios[bio].device)];
            let is_overdue = device.is_overdue(self.now_ns.saturating_sub(last_ns));
            self.lose_part(part, if is_overdue { Reason::NoC } else { Reason::AfterEnd }, sink);
            self.end_in_place(sink);
        }
    }
}

/// The moments of a part that its request has, and its own G; a part merged after the insertion was not inserted.
#[inline]
fn times_of(life: &RequestLife, part: &Part, queued_ns: u64, merged_ns: u64, end_ns: u64) -> Times {
    let inserted_ns = if part.inserted_ns != NEVER { part.inserted_ns } else { life.inserted_ns };
    let was_in_it = part.merged_ns == NEVER || inserted_ns >= part.merged_ns;
    let inserted_ns = if was_in_it { inserted_ns } else { NEVER };
    Times::of([queued_ns, part.got_ns, inserted_ns, merged_ns, life.issued_ns, end_ns])
}
