//! From parts of syncs and completions to sums.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Range;

use super::allowance::Allowance;
use super::cause::{Cause, Completion, Owner, Piece, Relation, cut};
use super::log::Book;
use super::part::{Beneath, Call, FileId, Io, Part, Skimmed, Wait};
use super::phase::{self, Phase, SiteId};
use super::recent::Recent;
use super::report::{Losses, SlowSync, Stall, StillWaiting};
use super::senders::{Sender, Senders};
use super::tally::{Place, Tally};
use crate::SizeClass;
use weir_core::stats::Distribution;
use weir_core::target::DeviceNumber;

/// Completions that are kept for syncs that have not ended; 100 bytes each.
const IOS_MAX: usize = 1 << 17;
/// Room for completions of a device that is kept when a burst is over.
pub(super) const ROOM_KEPT: usize = 1 << 8;
/// Completions in the windows of waits that are looked at in a second. A thousand threads that sleep in a sync have each of them in their
/// windows; the time of waits beyond is not explained.
const VISITS_MAX: usize = 1 << 21;
/// Syncs under way that are followed.
const OPEN_MAX: usize = 1 << 14;
/// Slow syncs kept until somebody takes them.
const SLOW_MAX: usize = 1000;
/// Processes distinguished in the report; the rest is one.
const PROCESSES_MAX: usize = 1024;
/// Devices of which is remembered what lies under them. A machine has fewer.
const DEVICES_MAX: usize = 4096;

/// Below this a sync may be counted without being looked into.
const SHORT_NS: u64 = 1_000_000;

/// How stacks are sampled, and which syncs are worth a line of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Waits at least this long always have their stack taken; shorter ones with probability length/this, but
    /// for the first of one sync in a while.
    pub stack_every_ns: u64,
    /// Syncs at least this long are kept for [`Analyst::slow`].
    pub slow_ns: Option<u64>,
}

/// Sums of the syncs of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub comm: String,
    pub calls: BTreeMap<Call, u64>,
    pub latency: Distribution,
    pub wall_ns: u64,
    pub tally: Tally,
    /// Syncs shorter than [`SHORT_NS`], by length class.
    pub short: BTreeMap<u32, Short>,
}

/// Short syncs of a length class (a power of two): those looked into stand for those that were only counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Short {
    pub looked_into: u64,
    pub looked_into_ns: u64,
    pub tally: Tally,
    pub skimmed: u64,
    pub skimmed_ns: u64,
}

#[derive(Debug)]
struct Open {
    accounted_ns: u64,
    tally: Tally,
    /// Ticks in which it was neither told of nor ended: one is a race, more are a loss.
    missed: u32,
}

/// What a process is called, and where it runs, if that is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Called {
    comm: String,
    cgroup: Option<String>,
}

/// Adds up what syncs waited for. Memory is bounded by the syncs under way, 131,072 completions and a
/// thousand processes; what does not fit is counted in [`super::Losses`].
#[derive(Debug)]
pub struct Analyst {
    sampling: Sampling,
    pub(super) ios: HashMap<DeviceNumber, VecDeque<Io>>,
    ios_held: usize,
    visits: Allowance,
    ticked_ns: u64,
    fastest_ns: HashMap<(DeviceNumber, u8, SizeClass), u64>,
    beneath: HashMap<DeviceNumber, Beneath>,
    /// Devices that data of a file system without a single device (btrfs) was seen on.
    seen_on: HashMap<DeviceNumber, BTreeSet<DeviceNumber>>,
    /// Devices of which a request was seen, whenever that was.
    at_work: HashSet<DeviceNumber>,
    open: HashMap<(u32, u64), Open>,
    site_ids: HashMap<(String, Phase), SiteId>,
    slow: Vec<SlowSync>,
    pub(super) sites: Vec<(String, Phase)>,
    pub(super) sums: BTreeMap<u32, Sums>,
    /// Of earlier intervals.
    pub(super) past: BTreeMap<u32, Sums>,
    pub(super) called: HashMap<u32, Called>,
    /// As they were in the interval before.
    pub(super) called_before: HashMap<u32, Called>,
    pub(super) stalls: Vec<Stall>,
    pub(super) senders: Senders,
    pub(super) still: StillWaiting,
    pub(super) ios_forgotten: u64,
    pub(super) syncs_forgotten: u64,
    /// Waits whose completions were too many to look at.
    pub(super) waits_forgotten: u64,
    pub(super) stacks: u64,
    /// What the programs have lost since they came.
    lost: Losses,
    /// When the interval began.
    pub(super) losses_before: Losses,
    pub(super) stacks_before: u64,
    pub(super) recent: Recent,
    /// Where single syncs and requests are kept, if they are.
    pub(super) book: Option<Box<Book>>,
}

impl Analyst {
    /// One that has seen nothing.
    pub fn new(sampling: Sampling) -> Analyst {
        Analyst {
            sampling,
            ios: HashMap::new(),
            ios_held: 0,
            visits: Allowance::a_second(VISITS_MAX),
            ticked_ns: 0,
            fastest_ns: HashMap::new(),
            beneath: HashMap::new(),
            seen_on: HashMap::new(),
            at_work: HashSet::new(),
            open: HashMap::new(),
            site_ids: HashMap::new(),
            slow: Vec::new(),
            sites: Vec::new(),
            sums: BTreeMap::new(),
            past: BTreeMap::new(),
            called: HashMap::new(),
            called_before: HashMap::new(),
            stalls: Vec::new(),
            senders: Senders::default(),
            still: StillWaiting::default(),
            ios_forgotten: 0,
            syncs_forgotten: 0,
            waits_forgotten: 0,
            stacks: 0,
            lost: Losses::default(),
            losses_before: Losses::default(),
            stacks_before: 0,
            recent: Recent::default(),
            book: None,
        }
    }

    /// The place of a stack, innermost function first.
    pub fn site(&mut self, frames: &[&str]) -> SiteId {
        self.stacks += 1;
        // The text holds the innermost functions; one further out may decide the phase.
        let site = (phase::describe(frames), phase::classify(frames));
        if let Some(&known) = self.site_ids.get(&site) {
            return known;
        }
        let id = SiteId(self.sites.len() as u32);
        self.sites.push(site.clone());
        self.site_ids.insert(site, id);
        id
    }

    /// Says what lies under a device; the last word counts.
    pub fn lies_under(&mut self, device: DeviceNumber, beneath: Beneath) {
        if self.beneath.len() >= DEVICES_MAX && !self.knows(device) {
            self.beneath.clear();
        }
        self.beneath.insert(device, beneath);
    }

    /// Whether [`Analyst::lies_under`] was told of a device, and it is not forgotten.
    pub fn knows(&self, device: DeviceNumber) -> bool {
        self.beneath.contains_key(&device)
    }

    /// Says what a process is called.
    pub fn name(&mut self, tgid: u32, comm: &str) {
        if self.called.len() < PROCESSES_MAX || self.has_name(tgid) {
            self.called.entry(tgid).or_default().comm = comm.to_string();
        }
    }

    /// Says in which cgroup a process runs that has a name.
    pub fn runs_in(&mut self, tgid: u32, cgroup: &str) {
        if let Some(called) = self.called.get_mut(&tgid) {
            called.cgroup = Some(cgroup.to_string());
        }
    }

    /// Whether a process was told of by [`Analyst::name`] since names were last to be told anew: it may be called otherwise by now.
    pub fn has_name(&self, tgid: u32) -> bool {
        self.called.contains_key(&tgid)
    }

    /// What a process is called, if that is known; where it was not told of anew, what it was called before.
    pub fn name_of(&self, tgid: u32) -> Option<&str> {
        self.called(tgid).map(|called| called.comm.as_str())
    }

    /// Goes on with what a process was called and where it ran, for one that has ended; says whether that is known.
    pub fn keep_name(&mut self, tgid: u32) -> bool {
        let Some(called) = self.called_before.get(&tgid).cloned() else { return false };
        if self.called.len() < PROCESSES_MAX {
            self.called.entry(tgid).or_insert(called);
        }
        true
    }

    /// The cgroup of a process: that of the time that its name is of.
    pub(super) fn cgroup_of(&self, tgid: u32) -> Option<&String> {
        self.called(tgid)?.cgroup.as_ref()
    }

    fn called(&self, tgid: u32) -> Option<&Called> {
        self.called.get(&tgid).or_else(|| self.called_before.get(&tgid))
    }

    /// A completion, before the parts of the syncs that it ended.
    pub fn io(&mut self, io: Io) {
        self.recent.push(&io);
        if !self.at_work.contains(&io.device) {
            if self.at_work.len() >= DEVICES_MAX {
                self.at_work.clear();
            }
            self.at_work.insert(io.device);
        }
        if io.issue_ns != 0 && io.issue_ns < io.complete_ns {
            let key = (io.device, io.flags.op(), SizeClass::of(io.bytes));
            let took_ns = io.complete_ns - io.issue_ns;
            self.fastest_ns.entry(key).and_modify(|least| *least = took_ns.min(*least)).or_insert(took_ns);
        }
        if let Some(file) = io.file.filter(|file| file.file_system.is_anonymous()) {
            if self.seen_on.len() >= DEVICES_MAX && !self.seen_on.contains_key(&file.file_system) {
                self.seen_on.clear();
            }
            self.seen_on.entry(file.file_system).or_default().insert(io.device);
        }
        // The end of a flush sequence comes again, without data: it was told with the flush.
        if io.bytes == 0 && !io.flags.is_flush() {
            return;
        }
        if let Some(book) = &mut self.book {
            book.io(&io);
        }
        if self.ios_held >= IOS_MAX {
            self.ios_forgotten += 1;
            return;
        }
        let queue = self.ios.entry(io.device).or_default();
        // Processors stamp on their own: a stamp may be a little older than the one before.
        let at = queue.iter().rposition(|before| before.complete_ns <= io.complete_ns).map_or(0, |at| at + 1);
        queue.insert(at, io);
        self.ios_held += 1;
    }

    /// Whether a quarter of the completions that can be kept are: [`Analyst::under_way`] should come before the second is over.
    pub fn is_filling(&self) -> bool {
        self.ios_held >= IOS_MAX / 4
    }

    /// A sync that ended, or a stretch of it.
    pub fn part(&mut self, part: &Part) {
        let key = (part.tid, part.start_ns);
        let Some(mut open) = self.opened(part) else { return };
        let waits_end_ns = part.waits.last().map_or(open.accounted_ns, |wait| wait.end_ns);
        let until_ns = part.end_ns.unwrap_or(waits_end_ns);
        self.account(&mut open, part, until_ns);
        match part.end_ns {
            Some(end_ns) => self.close(part, end_ns, open),
            None => _ = self.open.insert(key, open),
        }
    }

    /// Takes the syncs under way at `now_ns` as far as they have come, each with all waits since its last part, the
    /// last of them up to now. To be called about once a second: completions before the last call are forgotten.
    ///
    /// Whose a piece of a wait was is known when a request completes at its end; so what a sync has waited since
    /// the last completion stays open until the next call, unless this is the `last`.
    pub fn under_way(&mut self, parts: &[Part], now_ns: u64, last: bool) {
        self.visits.pass(now_ns);
        for part in parts {
            let Some(mut open) = self.opened(part) else { continue };
            let until_ns = if last { now_ns } else { self.settled(part, &open, now_ns) };
            self.account(&mut open, part, until_ns);
            open.missed = 0;
            self.open.insert((part.tid, part.start_ns), open);
        }
        let told: HashSet<(u32, u64)> = parts.iter().map(|part| (part.tid, part.start_ns)).collect();
        self.open.retain(|key, open| {
            open.missed += u32::from(!told.contains(key));
            open.missed < 2
        });
        let oldest_ns = parts.iter().map(|part| now_ns.saturating_sub(part.start_ns)).max();
        self.still = StillWaiting { count: parts.len(), oldest_ns: oldest_ns.unwrap_or(0) };
        self.recent.look(parts);
        self.forget_ios(self.ticked_ns);
        self.ticked_ns = now_ns;
    }

    /// Short syncs that were only counted since the last call.
    pub fn skimmed(&mut self, skimmed: &[Skimmed]) {
        for of in skimmed.iter().filter(|of| of.count > 0) {
            let mean_ns = of.took_ns / of.count;
            let sums = self.sums_of(of.tgid, &of.comm);
            sums.latency.add_bucket(mean_ns, mean_ns, of.count);
            *sums.calls.entry(of.call).or_default() += of.count;
            sums.wall_ns += of.took_ns;
            let short = sums.short.entry(length_class(mean_ns)).or_default();
            short.skimmed += of.count;
            short.skimmed_ns += of.took_ns;
        }
    }

    /// Replaces what is known of pauses of buffered writers.
    pub fn stalls(&mut self, stalls: Vec<Stall>) {
        self.stalls = stalls;
    }

    /// Replaces what is known of what the programs have lost since they came.
    pub fn lost(&mut self, lost: Losses) {
        self.lost = lost;
    }

    /// Replaces what is known of who reads, writes past the page cache and frees blocks; bytes count from the same time at each call.
    pub fn senders(&mut self, senders: &[Sender]) {
        self.senders.tell(senders);
    }

    /// Those that have sent in this interval and have no name, by their thread's.
    pub fn nameless_senders(&self) -> Vec<(u32, String)> {
        let of = |sender: &Sender| Some((sender.process.pid?, sender.process.comm.clone()));
        let senders = self.senders.of_interval.iter().filter_map(of);
        senders.filter(|(tgid, _)| !self.has_name(*tgid)).collect()
    }

    /// All that was not seen, not kept or not explained so far.
    pub fn losses(&self) -> Losses {
        let forgotten = self.syncs_forgotten + self.waits_forgotten;
        Losses { ios: self.lost.ios + self.ios_forgotten, syncs: self.lost.syncs + forgotten, ..self.lost }
    }

    /// The slow syncs since the last call.
    pub fn slow(&mut self) -> Vec<SlowSync> {
        std::mem::take(&mut self.slow)
    }

    /// Begins the next interval; sums so far stay in [`Analyst::whole`], and what is under way goes on.
    pub fn next_interval(&mut self) {
        for (tgid, sums) in std::mem::take(&mut self.sums) {
            let past =
                self.past.entry(tgid).or_insert_with(|| Sums { comm: sums.comm.clone(), ..Sums::default() });
            past.merge(&sums);
        }
        self.senders.next_interval();
        (self.losses_before, self.stacks_before) = (self.losses(), self.stacks);
    }

    /// Begins the next interval as if nothing had been before: for those who watch for weeks, in which more processes come
    /// and go than can be distinguished. What is under way goes on.
    pub fn forget(&mut self) {
        self.sums.clear();
        self.past.clear();
        self.called.clear();
        self.called_before.clear();
        self.senders.forget();
        (self.losses_before, self.stacks_before) = (self.losses(), self.stacks);
    }

    /// Until when it is known whose the time of a sync under way was.
    fn settled(&self, part: &Part, open: &Open, now_ns: u64) -> u64 {
        let Some(wait) = part.waits.last().filter(|wait| wait.end_ns >= now_ns) else { return now_ns };
        let from_ns = wait.start_ns.max(open.accounted_ns);
        let windows =
            self.windows(part, from_ns, now_ns).filter_map(|(ios, window)| ios.range(window).next_back());
        windows.map(|io| io.complete_ns).max().unwrap_or(from_ns)
    }

    fn opened(&mut self, part: &Part) -> Option<Open> {
        let known = self.open.remove(&(part.tid, part.start_ns));
        if known.is_none() && self.open.len() >= OPEN_MAX {
            self.syncs_forgotten += 1;
            return None;
        }
        Some(known.unwrap_or_else(|| Open {
            accounted_ns: part.start_ns,
            tally: Tally::default(),
            missed: 0,
        }))
    }

    fn account(&mut self, open: &mut Open, part: &Part, until_ns: u64) {
        let mut fresh = Tally::default();
        let from_ns = open.accounted_ns;
        // A wait that was not seen is not explained.
        let mut at_ns = part.seen_from_ns.min(until_ns).max(from_ns);
        fresh.add_plain(Phase::Unknown, at_ns - from_ns);
        for wait in &part.waits {
            let (start_ns, end_ns) = (wait.start_ns.max(at_ns), wait.end_ns.min(until_ns));
            if end_ns <= start_ns {
                continue;
            }
            fresh.add_plain(Phase::Cpu, start_ns - at_ns);
            self.wait(&mut fresh, part, wait, start_ns, end_ns);
            // A long one is accounted for a stretch at a time, and counts with the first.
            if let Some(site) = wait.site.filter(|_| wait.start_ns >= from_ns) {
                fresh.sites.entry(site).or_default().waits += self.place(wait).weight();
            }
            at_ns = end_ns;
        }
        let end_ns = until_ns.max(at_ns);
        fresh.add_plain(Phase::Cpu, end_ns - at_ns);
        open.accounted_ns = end_ns;
        self.write_down(part, from_ns, end_ns);
        open.tally.merge(&fresh);
        let sums = self.sums_of(part.tgid, &part.comm);
        sums.wall_ns += end_ns - from_ns;
        sums.tally.merge(&fresh);
    }

    pub(super) fn phase_of(&self, site: SiteId) -> Phase {
        self.sites.get(site.0 as usize).map_or(Phase::Unknown, |(_, phase)| *phase)
    }

    fn wait(&mut self, tally: &mut Tally, part: &Part, wait: &Wait, start_ns: u64, end_ns: u64) {
        let woken_ns = wait.end_ns.saturating_sub(wait.runnable_ns).clamp(start_ns, end_ns);
        tally.add_plain(Phase::RunQueue, end_ns - woken_ns);
        let place = self.place(wait);
        if let Some(site) = wait.site {
            let sum = tally.sites.entry(site).or_default();
            let asleep_ns = (woken_ns - start_ns) as f64;
            match place {
                Place::Sampled(_, weight) => sum.sample_ns += asleep_ns * weight,
                _ => sum.known_ns += asleep_ns,
            }
        }
        if place == Place::Known(Phase::DirtyPause) {
            tally.add_plain(Phase::DirtyPause, woken_ns - start_ns);
            return;
        }
        if !self.at_work.iter().any(|device| self.serves(*device, part)) {
            tally.add(place, Piece { cause: Cause::Unseen, owner: None, length_ns: woken_ns - start_ns });
            return;
        }
        let visits = self.windows(part, start_ns, woken_ns).map(|(_, window)| window.len()).sum();
        if !self.visits.take(visits) {
            self.waits_forgotten += 1;
            tally.add_plain(Phase::Unknown, woken_ns - start_ns);
            return;
        }
        let completions = self.completions(part, start_ns, woken_ns);
        for completion in &completions {
            if let Relation::Other(owner) = completion.relation {
                let blame = tally.blame(owner);
                blame.bytes += u64::from(completion.io.bytes);
                blame.ios += 1;
            }
        }
        cut(start_ns, woken_ns, &completions, |piece: Piece| tally.add(place, piece));
    }

    fn place(&self, wait: &Wait) -> Place {
        let took_ns = wait.end_ns - wait.start_ns;
        let long = took_ns >= self.sampling.stack_every_ns;
        match wait.site.and_then(|site| self.sites.get(site.0 as usize)) {
            Some((_, phase)) if long => Place::Known(*phase),
            Some((_, phase)) if wait.by_chance => {
                Place::Sampled(*phase, self.sampling.stack_every_ns as f64 / took_ns.max(1) as f64)
            }
            Some((_, phase)) => Place::Sampled(*phase, 1.0),
            None if long => Place::Known(Phase::Unknown),
            None => Place::Unsampled,
        }
    }

    /// The completions of a window on the devices under a sync, by time.
    pub(super) fn completions(&self, part: &Part, start_ns: u64, end_ns: u64) -> Vec<Completion> {
        let mut found = Vec::new();
        let has_copies =
            part.device.and_then(|top| self.beneath.get(&top)).is_some_and(|beneath| beneath.has_copies);
        for (ios, window) in self.windows(part, start_ns, end_ns) {
            found.extend(ios.range(window).map(|io| Completion {
                io: *io,
                relation: relation(part, io, has_copies),
                fastest_ns: self.fastest(io),
            }));
        }
        found.sort_by_key(|completion| completion.io.complete_ns);
        found
    }

    /// Completions on each device under a sync, and which of them are in a window.
    fn windows(
        &self,
        part: &Part,
        start_ns: u64,
        end_ns: u64,
    ) -> impl Iterator<Item = (&VecDeque<Io>, Range<usize>)> {
        let serving = self.ios.iter().filter(|(device, _)| self.serves(**device, part));
        serving.map(move |(_, ios)| {
            let from = ios.partition_point(|io| io.complete_ns <= start_ns);
            (ios, from..from.max(ios.partition_point(|io| io.complete_ns <= end_ns)))
        })
    }

    /// Whether requests of a device serve a sync; those of sync(2) may go to any.
    fn serves(&self, device: DeviceNumber, part: &Part) -> bool {
        if let Some(top) = part.device {
            return self.is_under(device, top);
        }
        let Some(file) = part.file else { return true };
        self.seen_on.get(&file.file_system).is_some_and(|devices| devices.contains(&device))
    }

    /// Whether a disk serves requests of a device: it is that device, or lies under it.
    pub(super) fn is_under(&self, disk: DeviceNumber, top: DeviceNumber) -> bool {
        self.beneath.get(&top).map_or(top == disk, |beneath| beneath.leaves.contains(&disk))
    }

    /// The device by which senders to a disk are counted: itself, unless it is one of several ways to another.
    pub(super) fn counted_as(&self, disk: DeviceNumber) -> DeviceNumber {
        let mut paths = self.beneath.values().flat_map(|beneath| &beneath.paths);
        paths.find(|(path, _)| *path == disk).map_or(disk, |(_, namespace)| *namespace)
    }

    fn fastest(&self, io: &Io) -> u64 {
        let key = (io.device, io.flags.op(), SizeClass::of(io.bytes));
        let took_ns = if io.issue_ns == 0 { 0 } else { io.complete_ns.saturating_sub(io.issue_ns) };
        self.fastest_ns.get(&key).copied().unwrap_or(0).min(took_ns)
    }

    fn close(&mut self, part: &Part, end_ns: u64, open: Open) {
        let took_ns = end_ns.saturating_sub(part.start_ns);
        if let Some(book) = &mut self.book {
            book.close(part, end_ns);
        }
        let sums = self.sums_of(part.tgid, &part.comm);
        sums.latency.record(took_ns);
        *sums.calls.entry(part.call).or_default() += 1;
        if took_ns < SHORT_NS {
            let short = sums.short.entry(length_class(took_ns)).or_default();
            short.looked_into += 1;
            short.looked_into_ns += took_ns;
            short.tally.merge(&open.tally);
        }
        if self.sampling.slow_ns.is_some_and(|slow_ns| took_ns >= slow_ns) && self.slow.len() < SLOW_MAX {
            let slow = self.describe_slow(part, took_ns, &open.tally);
            self.slow.push(slow);
        }
    }

    fn sums_of(&mut self, tgid: u32, comm: &str) -> &mut Sums {
        let held = self.sums.len() + self.past.len();
        let is_known = self.sums.contains_key(&tgid) || self.past.contains_key(&tgid);
        let full = held >= PROCESSES_MAX && !is_known;
        let sums = self.sums.entry(if full { 0 } else { tgid }).or_default();
        if sums.comm.is_empty() {
            sums.comm = if full { "all others".to_string() } else { comm.to_string() };
        }
        sums
    }

    fn forget_ios(&mut self, until_ns: u64) {
        for ios in self.ios.values_mut() {
            let gone = ios.partition_point(|io| io.complete_ns <= until_ns);
            ios.drain(..gone);
            if ios.capacity() > ROOM_KEPT.max(4 * ios.len()) {
                ios.shrink_to(2 * ios.len());
            }
        }
        // Devices may come and go by the thousand.
        self.ios.retain(|_, ios| !ios.is_empty());
        self.ios_held = self.ios.values().map(VecDeque::len).sum();
    }
}

fn length_class(took_ns: u64) -> u32 {
    took_ns.max(1).ilog2()
}

/// btrfs keeps its trees in the pages of an inode of this number (BTRFS_BTREE_INODE_OBJECTID).
const BTRFS_TREES: u64 = 1;

/// Whether a request holds metadata of the sync's file system; btrfs does not flag its own.
fn is_metadata(part: &Part, io: &Io) -> bool {
    let Some(file) = part.file else { return io.flags.is_metadata() || io.raw_device.is_some() };
    let on_no_device = file.file_system.is_anonymous();
    let on_its_device = io.raw_device.is_some_and(|raw| on_no_device || raw == file.file_system);
    let in_its_trees =
        on_no_device && io.file == Some(FileId { file_system: file.file_system, inode: BTRFS_TREES });
    io.flags.is_metadata() || on_its_device || in_its_trees
}

/// How a request stands to a sync; `has_copies` as in [`Beneath`].
fn relation(part: &Part, io: &Io, has_copies: bool) -> Relation {
    let own_file = io.file.is_some() && io.file == part.file;
    if own_file || io.own_tid == part.tid || io.flags.is_flush() || is_metadata(part, io) {
        return Relation::Own;
    }
    if io.owner_tgid == part.tgid {
        return Relation::OwnProcess;
    }
    Relation::Other(match io.owner_tgid {
        _ if io.flags.is_read() => Owner::Reads(io.device),
        _ if io.flags.is_discard() => Owner::Discards(io.device),
        0 if io.file.is_none() && has_copies => Owner::PassedOn(io.device),
        0 if io.file.is_none() => Owner::DirectWrites(io.device),
        0 => Owner::Unseen,
        tgid => Owner::Process(tgid),
    })
}
