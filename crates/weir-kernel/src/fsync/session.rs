//! A running session.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use libbpf_rs::skel::Skel;
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, RingBuffer, RingBufferBuilder};
use weir_blocktrace::fsync::{
    Allowance, Analyst, FileId, Io, IoFlags, Losses, Part, Process, Sender, SiteId, Skimmed, Stall, Wait, Way,
};
use weir_core::target::DeviceNumber;

use super::files;
use super::kernel::{self, Fitted, FsyncSkel};
use super::options::Options;
use super::ring_entry::{self, RawSync, RawWait, RingEntry, StackTaken};
use super::skims::{Since, Skims};
use super::symbols::Symbols;
use crate::brackets::Brackets;
use crate::{Error, probe};

/// After so many stacks those before are forgotten: a sync that ends tells of its waits at once.
const STACKS_MAX: usize = 1 << 14;

/// Files whose writers are looked for in /proc.
const LOOKED_FOR_MAX: usize = 64;
/// Open files that are looked at for them, all in all: half a second's work.
const LOOKED_AT_MAX: usize = 200_000;

/// A sync this long is looked into from here on at the latest, as in `src/bpf/fsync_state.h`.
const LONG_NS: u64 = 1_000_000;
/// Stacks of syncs under way that are read in a second: another account may have thousands.
const STACKS_READ: usize = 256;
/// Places in the programs' table. Where more than half are taken, threads that have begun nothing for so long lose theirs.
const TASKS: i32 = 8192;
const IDLE_NS: u64 = 10_000_000_000;
/// Places read by a call.
const BATCH: u32 = 1024;
/// Records read in a drain: as many of the shortest as the ring holds. Others may be written as fast as they are read.
const RECORDS_MOST: usize = 1 << 17;
/// Records in memory at a time: in 200 bytes each, the whole ring would be tens of megabytes.
const RECORDS_AT_ONCE: usize = 1 << 12;
/// What was learned of devices and of the kernel's functions is asked for again after so long: devices grow, modules come.
const LEARNED_NS: u64 = 60_000_000_000;
/// For how long those that become long are looked into where one was found to be: until after the next look.
const FOLLOW_NS: u64 = 2_000_000_000;

/// Where libbpf keeps what a session borrows.
#[derive(Default)]
pub struct Storage(Option<MaybeUninit<OpenObject>>);

/// Records as they came, and how many were none that the programs write: a bug, which must show.
#[derive(Default)]
struct Inbox {
    records: Vec<RingEntry>,
    foreign: u64,
}

/// Programs attached to the kernel; they go away when this is dropped.
pub struct FsyncSession<'a> {
    skeleton: FsyncSkel<'a>,
    fitted: Fitted,
    /// The programs at Q, C and, once it turned out to be needed, D.
    at_requests: Vec<Link>,
    /// Since when they are; never, while they are not.
    attached_ns: u64,
    /// After so long without a sync the programs leave requests alone.
    spared_after_ns: Option<u64>,
    /// When a sync was seen last.
    synced_ns: u64,
    ring: RingBuffer<'static>,
    inbox: Rc<RefCell<Inbox>>,
    symbols: Symbols,
    symbols_at_ns: u64,
    /// Places of waits, by thread and beginning, and those from before they were too many.
    stacks: HashMap<(u32, u64), SiteId>,
    stacks_before: HashMap<(u32, u64), SiteId>,
    stack_every_ns: u64,
    looked_for: HashMap<FileId, u32>,
    looked_at_left: usize,
    stacks_read: Allowance,
    /// When the analyst was told last what lies under a device.
    met: HashMap<DeviceNumber, u64>,
    own_cgroup: Option<String>,
    skims: Skims,
}

impl<'a> FsyncSession<'a> {
    /// Loads and attaches the programs. Syncs that sleep already are followed from now on.
    ///
    /// # Errors
    /// What is missing: privilege, kernel support, or what the kernel refused.
    pub fn start(storage: &'a mut Storage, options: &Options) -> Result<FsyncSession<'a>, Error> {
        const WHAT: &str = "following syncs by BPF";
        let symbols = Symbols::read();
        let is_hidden = symbols.as_ref().is_err_and(|why| why.kind() == io::ErrorKind::PermissionDenied);
        let denial = if is_hidden { probe::denial_without_addresses(WHAT) } else { probe::denial(WHAT) };
        if let Some(denial) = denial {
            return Err(denial);
        }
        let symbols = symbols.map_err(|source| Error::System {
            what: "the kernel's symbols (/proc/kallsyms; needs kernel.kptr_restrict below 2)".to_string(),
            source,
        })?;
        let fitted = Fitted::find(options)?;
        let mut skeleton = fitted.load(storage.0.insert(MaybeUninit::uninit()), options)?;
        let inbox = Rc::new(RefCell::new(Inbox::default()));
        let ring = ring(&skeleton, Rc::clone(&inbox)).map_err(failed("read the ring of"))?;
        let before = adopt(&mut skeleton, options);
        let mut at_requests = Vec::new();
        attach_to_requests(&skeleton, &mut at_requests)?;
        skeleton.attach().map_err(failed("attach"))?;
        let stack_every_ns = options.stack_every_ns;
        let mut session = FsyncSession {
            skeleton,
            fitted,
            at_requests,
            attached_ns: 0,
            spared_after_ns: None,
            synced_ns: now_ns(),
            ring,
            inbox,
            symbols,
            stacks: HashMap::new(),
            stacks_before: HashMap::new(),
            stack_every_ns,
            looked_for: HashMap::new(),
            looked_at_left: LOOKED_AT_MAX,
            stacks_read: Allowance::a_second(STACKS_READ),
            met: HashMap::new(),
            symbols_at_ns: now_ns(),
            own_cgroup: files::cgroup_of("self"),
            skims: Skims::default(),
        };
        session.release_those_that_left(&before);
        Ok(session)
    }

    /// How the programs learn of calls, and so who pays for it.
    pub fn brackets(&self) -> Brackets {
        self.fitted.brackets
    }

    /// What is not known here because the kernel did not take a program, with its reason.
    pub fn unknown(&self) -> &[(&'static str, String)] {
        &self.fitted.unknown
    }

    /// Hands over what happened since the last call. To be called some twenty times a second: the ring holds 8 MiB
    /// where nothing else is asked for, which 50,000 requests a second fill in more than a second.
    ///
    /// # Errors
    /// What libbpf said.
    pub fn drain(&mut self, analyst: &mut Analyst) -> Result<(), Error> {
        // What completed until then has been read when it is looked at.
        let now_ns = now_ns();
        self.read(analyst)?;
        if analyst.is_filling() {
            self.look(analyst, now_ns, false);
        }
        self.attach_while_needed()
    }

    fn read(&mut self, analyst: &mut Analyst) -> Result<(), Error> {
        for _ in 0..RECORDS_MOST / RECORDS_AT_ONCE {
            let read = self.ring.consume_raw_n(RECORDS_AT_ONCE);
            let read = usize::try_from(read)
                .map_err(|_| failed("read the ring of")(libbpf_rs::Error::from_raw_os_error(-read)))?;
            self.hand_over(analyst);
            if read < RECORDS_AT_ONCE {
                break;
            }
        }
        Ok(())
    }

    /// Hands over what was read.
    fn hand_over(&mut self, analyst: &mut Analyst) {
        let mut records = std::mem::take(&mut self.inbox.borrow_mut().records);
        for record in records.drain(..) {
            match record {
                RingEntry::Io(io) => self.io(io, analyst),
                RingEntry::Stack { tid, wait_start_ns, frames } => {
                    let names: Vec<&str> = frames.iter().map(|address| self.symbols.name(*address)).collect();
                    self.keep_site(tid, wait_start_ns, analyst.site(&names));
                }
                RingEntry::Sync(sync) => {
                    self.synced_ns = now_ns();
                    let part = self.part(sync);
                    self.meet(&part, analyst);
                    analyst.part(&part);
                }
            }
        }
        // Its memory serves the next ones.
        self.inbox.borrow_mut().records = records;
    }

    /// Hands over how far the syncs have come that are under way, and the pauses so far. About once a second,
    /// and as the `last` at the end.
    ///
    /// # Errors
    /// What libbpf said.
    pub fn tick(&mut self, analyst: &mut Analyst, last: bool) -> Result<(), Error> {
        let now_ns = now_ns();
        if now_ns.saturating_sub(self.symbols_at_ns) >= LEARNED_NS {
            self.symbols_at_ns = now_ns;
            self.symbols.renew();
            self.met.retain(|_, at_ns| now_ns.saturating_sub(*at_ns) < 2 * LEARNED_NS);
        }
        self.read(analyst)?;
        self.look(analyst, now_ns, last);
        let skimmed = self.skimmed(analyst);
        analyst.skimmed(&skimmed);
        analyst.lost(self.losses());
        analyst.stalls(self.stalls());
        analyst.senders(&self.senders());
        for (tgid, of_thread) in analyst.nameless_senders() {
            self.introduce(tgid, analyst, || Some(of_thread));
        }
        self.attach_while_needed()
    }

    /// Hands over how far the syncs under way have come.
    fn look(&mut self, analyst: &mut Analyst, now_ns: u64, last: bool) {
        let mut parts = Vec::new();
        self.stacks_read.pass(now_ns);
        let is_crowded = self.tasks_held() > TASKS / 2;
        for (_, bytes) in entries(&self.skeleton.maps.tasks) {
            if is_crowded && let Some(tid) = idler(&bytes, now_ns) {
                self.forget_idler(tid, now_ns);
                continue;
            }
            let Some(mut sync) = ring_entry::sync(&bytes) else { continue };
            if sync.skimmed && now_ns.saturating_sub(sync.start_ns) >= LONG_NS {
                self.follow(&mut sync, now_ns);
            } else if !sync.under_way {
                continue;
            }
            let open = sync.waiting_since_ns.filter(|since_ns| *since_ns < now_ns);
            let tid = sync.tid;
            let mut part = self.part(sync);
            if let Some(start_ns) = open {
                part.waits.push(self.open_wait(tid, start_ns, now_ns, analyst));
            }
            self.meet(&part, analyst);
            parts.push(part);
        }
        analyst.under_way(&parts, now_ns, last);
    }

    /// What was not seen since the start.
    fn losses(&self) -> Losses {
        let Some(data) = self.skeleton.maps.bss_data.as_deref() else { return Losses::default() };
        let [tasks, syncs, ios, stacks, stalls, ring_syncs] = data.lost;
        Losses { tasks, syncs: syncs + self.inbox.borrow().foreign, ios, stacks, stalls, ring_syncs }
    }

    /// The programs leave requests alone from so long after the last sync until the first [`Self::drain`] that sees another. What that
    /// one's requests did before is not known.
    pub fn spare_requests(&mut self, after: Option<Duration>) {
        self.spared_after_ns = after.map(|after| u64::try_from(after.as_nanos()).unwrap_or(u64::MAX));
    }

    /// How many programs run with requests now.
    pub fn hooks_of_requests(&self) -> usize {
        self.at_requests.len()
    }

    fn attach_while_needed(&mut self) -> Result<(), Error> {
        let are_under_way = self.skeleton.maps.bss_data.as_deref_mut().is_some_and(|data| {
            self.synced_ns = self.synced_ns.max(data.skimmed_ns);
            // Where adding is no barrier (arm64), a sync that began as it was cleared has not set it.
            if data.skimmed != 0 && data.skimming == 0 {
                store(&raw mut data.skimming, 1);
            }
            data.inside != 0 || data.skimmed != 0
        });
        let now_ns = now_ns();
        if are_under_way {
            self.synced_ns = now_ns;
        }
        let idle_ns = now_ns.saturating_sub(self.synced_ns);
        if self.spared_after_ns.is_some_and(|after_ns| idle_ns >= after_ns) {
            self.at_requests.clear();
            self.attached_ns = u64::MAX;
            return Ok(());
        }
        attach_to_requests(&self.skeleton, &mut self.at_requests)?;
        if self.attached_ns == u64::MAX {
            self.attached_ns = self::now_ns();
        }
        Ok(())
    }

    fn io(&mut self, mut io: Io, analyst: &mut Analyst) {
        if let (Some(file), 0, false) = (io.file, io.owner_tgid, io.flags.is_read()) {
            io.owner_tgid = self.writer_at_hand(file);
        }
        if let (Some(file), tgid) = (io.file, io.owner_tgid)
            && tgid != 0
        {
            self.introduce(tgid, analyst, || self.dirtier(file).or_else(|| Some("?".to_string())));
        }
        analyst.io(io);
    }

    /// A process that has a file open for writing, for files dirtied before the programs came; 0 if none has. Each
    /// file is looked for once, and no more than [`LOOKED_FOR_MAX`] are: it takes a walk through /proc.
    fn writer_at_hand(&mut self, file: FileId) -> u32 {
        if let Some(known) = self.looked_for.get(&file) {
            return *known;
        }
        if self.looked_for.len() >= LOOKED_FOR_MAX {
            return 0;
        }
        let found = files::writer_of(file, &mut self.looked_at_left).unwrap_or(0);
        self.looked_for.insert(file, found);
        found
    }

    /// The name of the thread that dirtied a file last.
    fn dirtier(&self, file: FileId) -> Option<String> {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&file.inode.to_ne_bytes());
        key[8..12].copy_from_slice(&ring_entry::packed(file.file_system).to_ne_bytes());
        let value = self.skeleton.maps.dirtiers.lookup(&key, MapFlags::ANY).ok()??;
        Some(ring_entry::text(value.get(8..24)?))
    }

    fn part(&mut self, sync: RawSync) -> Part {
        let waits = sync.waits.iter().map(|wait| self.wait(sync.tid, wait)).collect();
        Part {
            tid: sync.tid,
            tgid: sync.tgid,
            comm: sync.comm,
            call: sync.call,
            device: sync.device,
            file: sync.file,
            start_ns: sync.start_ns,
            end_ns: sync.end_ns,
            // Before, nothing was known of its requests.
            seen_from_ns: if sync.start_ns < self.attached_ns {
                sync.seen_from_ns.max(self.attached_ns)
            } else {
                sync.seen_from_ns
            },
            waits,
        }
    }

    fn wait(&mut self, tid: u32, wait: &RawWait) -> Wait {
        let has_stack = wait.stack != StackTaken::No;
        let site = if has_stack { self.site(tid, wait.start_ns) } else { None };
        Wait {
            start_ns: wait.start_ns,
            end_ns: wait.end_ns,
            runnable_ns: wait.runnable_ns,
            site,
            by_chance: wait.stack == StackTaken::ByChance,
        }
    }

    /// The place of the wait of a thread that began then.
    fn site(&self, tid: u32, start_ns: u64) -> Option<SiteId> {
        let key = (tid, start_ns);
        self.stacks.get(&key).or_else(|| self.stacks_before.get(&key)).copied()
    }

    fn keep_site(&mut self, tid: u32, start_ns: u64, site: SiteId) {
        if self.stacks.len() >= STACKS_MAX {
            self.stacks_before = std::mem::take(&mut self.stacks);
        }
        self.stacks.insert((tid, start_ns), site);
    }

    /// A wait that has not ended; long ones have the stack they are asleep in now.
    fn open_wait(&mut self, tid: u32, start_ns: u64, now_ns: u64, analyst: &mut Analyst) -> Wait {
        let mut site = self.site(tid, start_ns);
        if site.is_none() && now_ns - start_ns >= self.stack_every_ns && self.stacks_read.take(1) {
            let frames = files::kernel_stack(tid);
            let names: Vec<&str> = frames.iter().map(String::as_str).collect();
            site = (!names.is_empty()).then(|| analyst.site(&names));
            // It is the same sleep at the next look.
            site.into_iter().for_each(|site| self.keep_site(tid, start_ns, site));
        }
        Wait { start_ns, end_ns: now_ns, runnable_ns: 0, site, by_chance: false }
    }

    /// Learns what lies under a device, now and then, and what a process is called.
    fn meet(&mut self, part: &Part, analyst: &mut Analyst) {
        let is_due = |at_ns: &u64| self.synced_ns.saturating_sub(*at_ns) >= LEARNED_NS;
        if let Some(device) = part.device
            && (!analyst.knows(device) || self.met.get(&device).is_none_or(is_due))
        {
            self.met.insert(device, self.synced_ns);
            analyst.lies_under(device, files::beneath(device));
        }
        self.introduce(part.tgid, analyst, || Some(part.comm.clone()));
    }

    /// Says what a process is called, and where it runs unless that is where weir does, if the analyst is to be told. One that has ended
    /// is called as before, or, where it was not known, as its thread was.
    fn introduce(&self, tgid: u32, analyst: &mut Analyst, of_thread: impl FnOnce() -> Option<String>) {
        if analyst.has_name(tgid) {
            return;
        }
        let name = match files::comm(tgid) {
            Some(name) => name,
            None if analyst.keep_name(tgid) => return,
            None => match of_thread() {
                Some(name) => name,
                None => return,
            },
        };
        analyst.name(tgid, &name);
        let cgroup = files::cgroup_of(&tgid.to_string());
        if let Some(cgroup) = cgroup.filter(|cgroup| Some(cgroup) != self.own_cgroup.as_ref()) {
            analyst.runs_in(tgid, &cgroup);
        }
    }

    /// A sync that is not looked into has become long: from now on it is, and it sleeps where it slept.
    fn follow(&mut self, sync: &mut RawSync, now_ns: u64) {
        let Some(data) = self.skeleton.maps.bss_data.as_deref_mut() else { return };
        if data.following == 0 {
            store(&raw mut data.following_since_ns, now_ns);
        }
        store(&raw mut data.following_until_ns, now_ns + FOLLOW_NS);
        store(&raw mut data.following, 1);
        // It slept but once: from its start on.
        let sleeps_first =
            sync.sleeps.zip(files::sleeps(sync.tid)).is_some_and(|(before, now)| now == before + 1);
        let since_ns = if sleeps_first { sync.start_ns } else { data.following_since_ns };
        sync.seen_from_ns = since_ns.max(sync.start_ns);
        sync.waiting_since_ns = Some(sync.seen_from_ns);
        sync.waits.clear();
    }

    /// Short syncs that were only counted since the last call.
    fn skimmed(&mut self, analyst: &mut Analyst) -> Vec<Skimmed> {
        let map = &self.skeleton.maps.skims;
        let mut found = Vec::new();
        // A walk begins anew where its place is deleted.
        let keys: Vec<Vec<u8>> = map.keys().collect();
        for key in keys {
            let Ok(Some(by_cpu)) = map.lookup_percpu(&key, MapFlags::ANY) else { continue };
            let sum = |at| by_cpu.iter().filter_map(|value| ring_entry::u64_at(value, at)).sum::<u64>();
            let now = (sum(0), sum(8));
            let (tgid, call) =
                (ring_entry::u32_at(&key, 0), key.get(4).and_then(|call| ring_entry::call(*call)));
            let (Some(tgid), Some(call)) = (tgid, call) else { continue };
            let since = self.skims.take(&key, now);
            let is_free = match since {
                Since::Grown(_) => false,
                Since::Still => files::comm(tgid).is_none(),
                Since::StillForLong => true,
            };
            if is_free {
                // All of it was handed over, but for a sync that ends in this very instant: none did for seconds.
                let _ = map.delete(&key);
                self.skims.forget(&key);
            }
            if let Since::Grown((count, took_ns)) = since {
                found.push((tgid, call, count, took_ns));
            }
        }
        let mut skimmed = Vec::new();
        for (tgid, call, count, took_ns) in found {
            self.introduce(tgid, analyst, || None);
            let comm = analyst.name_of(tgid).unwrap_or("?").to_string();
            skimmed.push(Skimmed { tgid, comm, call, count, took_ns });
        }
        skimmed
    }

    fn stalls(&self) -> Vec<Stall> {
        let all = entries(&self.skeleton.maps.stalls);
        let mut stalls: Vec<Stall> = all.iter().filter_map(|(key, value)| stall(key, value)).collect();
        stalls.sort_by_key(|stall| std::cmp::Reverse(stall.slept_ns));
        stalls
    }

    fn senders(&self) -> Vec<Sender> {
        let all = entries(&self.skeleton.maps.submitters);
        all.iter().filter_map(|(key, value)| sender(key, value)).collect()
    }

    /// Syncs found asleep before the programs were attached may have returned just then: they must not count for ever.
    fn release_those_that_left(&mut self, before: &[(u32, u32, u64)]) {
        let mut left = 0;
        for (tgid, tid, number) in before {
            if files::inside(*tgid, *tid).is_some_and(|still| still.number == *number) {
                continue;
            }
            let key = tid.to_ne_bytes();
            let held = self.skeleton.maps.tasks.lookup(&key, MapFlags::ANY).ok().flatten();
            let stands = held.and_then(|bytes| ring_entry::sync(&bytes)).is_some_and(|sync| sync.under_way);
            if stands && self.forget(*tid) {
                watch(&mut self.skeleton, *tid, -1);
                left += 1;
            }
        }
        add_inside(&mut self.skeleton, 0_u64.wrapping_sub(left));
    }
}

impl FsyncSession<'_> {
    /// Threads with a place in the programs' table.
    fn tasks_held(&self) -> i32 {
        self.skeleton.maps.bss_data.as_deref().map_or(0, |data| data.tasks_held)
    }

    /// Frees the place of a thread, unless it has begun something meanwhile.
    fn forget_idler(&mut self, tid: u32, now_ns: u64) {
        let held = self.skeleton.maps.tasks.lookup(&tid.to_ne_bytes(), MapFlags::ANY).ok().flatten();
        if held.is_some_and(|bytes| idler(&bytes, now_ns).is_some()) {
            self.forget(tid);
        }
    }

    /// Frees a thread's place.
    fn forget(&mut self, tid: u32) -> bool {
        let is_gone = self.skeleton.maps.tasks.delete(&tid.to_ne_bytes()).is_ok();
        if is_gone {
            add_held(&mut self.skeleton, -1);
        }
        is_gone
    }
}

/// Attaches those programs that run with requests and are not attached yet, as far as this kernel took them.
fn attach_to_requests(skeleton: &FsyncSkel<'_>, attached: &mut Vec<Link>) -> Result<(), Error> {
    let programs = &skeleton.progs;
    let mut needed = vec![&programs.on_queue, &programs.on_complete];
    // Where the kernel does not say when a request went to the driver.
    if skeleton.maps.bss_data.as_deref().is_some_and(|data| data.issue_wanted != 0) {
        needed.push(&programs.on_issue);
    }
    for program in needed.iter().filter(|program| program.autoload()).skip(attached.len()) {
        attached.push(program.attach().map_err(failed("attach"))?);
    }
    Ok(())
}

/// Puts the syncs that sleep already into the programs' table; returns process, thread and call of each.
fn adopt(skeleton: &mut FsyncSkel<'_>, options: &Options) -> Vec<(u32, u32, u64)> {
    let calls = kernel::calls();
    let mut adopted = Vec::new();
    // Where a filter looks at more than the process's id, only calls that begin later are followed.
    if options.cgroup.is_some() || options.descendants_of.is_some() {
        return adopted;
    }
    for task in files::tasks_inside_calls() {
        let Some(&call) = calls.get(&task.number) else { continue };
        let is_wanted = options.pid.is_none_or(|pid| pid == task.tgid)
            && options.comm.as_ref().is_none_or(|comm| *comm == task.comm);
        // Writes and msync are durable only by flags that are not looked up here.
        if !is_wanted || matches!(call, 3 | 4 | 6) {
            continue;
        }
        let disk = files::device_of_descriptor(task.tgid, task.arguments[0]).map_or(0, ring_entry::packed);
        let bytes = ring_entry::begun_before(task.tid, task.tgid, &task.comm, call, disk, now_ns());
        if skeleton.maps.tasks.update(&task.tid.to_ne_bytes(), &bytes, MapFlags::ANY).is_ok() {
            watch(skeleton, task.tid, 1);
            adopted.push((task.tgid, task.tid, task.number));
        }
    }
    add_inside(skeleton, adopted.len() as u64);
    add_held(skeleton, adopted.len() as i32);
    adopted
}

/// Adds to the programs' count of threads with a place.
fn add_held(skeleton: &mut FsyncSkel<'_>, by: i32) {
    if let Some(data) = skeleton.maps.bss_data.as_deref_mut() {
        // SAFETY: as in `add_inside`; the field is an aligned s32.
        unsafe { AtomicI32::from_ptr(&raw mut data.tasks_held) }.fetch_add(by, Ordering::Relaxed);
    }
}

/// Adds to the programs' count of syncs under way, which they change at the same time.
fn add_inside(skeleton: &mut FsyncSkel<'_>, count: u64) {
    if let Some(data) = skeleton.maps.bss_data.as_deref_mut() {
        // SAFETY: the field is an aligned u64 of a mapping that lives as long as the skeleton, and the programs change
        // it by atomic instructions only.
        unsafe { AtomicU64::from_ptr(&raw mut data.inside) }.fetch_add(count, Ordering::Relaxed);
    }
}

/// Adds to the programs' count of watched tasks of an id, as `watch()` there does.
fn watch(skeleton: &mut FsyncSkel<'_>, tid: u32, by: i32) {
    if let Some(data) = skeleton.maps.bss_data.as_deref_mut() {
        let place = tid as usize % data.watched.len();
        // SAFETY: as in `add_inside`; the field is an aligned u32.
        unsafe { AtomicU32::from_ptr(&raw mut data.watched[place]) }.fetch_add(by as u32, Ordering::Relaxed);
    }
}

/// Sets a field of what the programs share.
fn store(field: *mut u64, value: u64) {
    // SAFETY: callers name aligned u64 of a mapping that lives as long as the skeleton; the programs read and write them whole.
    unsafe { AtomicU64::from_ptr(field) }.store(value, Ordering::Relaxed);
}

fn ring(
    skeleton: &FsyncSkel<'_>,
    inbox: Rc<RefCell<Inbox>>,
) -> Result<RingBuffer<'static>, libbpf_rs::Error> {
    let mut builder = RingBufferBuilder::new();
    builder.add(&skeleton.maps.events, move |bytes| {
        let mut inbox = inbox.borrow_mut();
        match ring_entry::record(bytes) {
            Some(record) => inbox.records.push(record),
            None => inbox.foreign += 1,
        }
        0
    })?;
    builder.build()
}

/// The thread of a place, where it has begun nothing for long.
fn idler(bytes: &[u8], now_ns: u64) -> Option<u32> {
    let (tid, since_ns) = ring_entry::idle_since(bytes)?;
    (now_ns.saturating_sub(since_ns) > IDLE_NS).then_some(tid)
}

/// A walk from key to key begins anew where one is deleted, which any thread may bring about; one by batches does not. The bound is for
/// those that come while it goes on.
fn entries(map: &impl MapCore) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY);
    all.map(|all| all.take(2 * TASKS as usize).collect()).unwrap_or_default()
}

/// `struct stall_key` and `struct stall`.
fn stall(key: &[u8], value: &[u8]) -> Option<Stall> {
    Some(Stall {
        process: Process::new(ring_entry::u32_at(key, 0), &ring_entry::text(value.get(24..40)?)),
        bdi: ring_entry::text(key.get(8..24)?),
        count: ring_entry::u64_at(value, 0)?,
        slept_ns: ring_entry::u64_at(value, 8)?,
        slept_ns_max: ring_entry::u64_at(value, 16)?,
    })
}

/// `struct submitter_key` and `struct submitter`.
fn sender(key: &[u8], value: &[u8]) -> Option<Sender> {
    let tgid = ring_entry::u32_at(key, 0)?;
    let process = Process::new(Some(tgid), &ring_entry::text(value.get(16..32)?));
    let (process, way) = match (IoFlags(ring_entry::u32_at(key, 8)?), tgid) {
        (flags, _) if flags.is_read() => (process, Way::Reads),
        (flags, _) if flags.is_discard() => (process, Way::Discards),
        (_, 0) => (Process::kernel_threads(), Way::WritesPassedOn),
        _ => (process, Way::DirectWrites),
    };
    let device = ring_entry::number(ring_entry::u32_at(key, 4)?);
    Some(Sender { process, device, way, bytes: ring_entry::u64_at(value, 0)? })
}

fn failed(action: &'static str) -> impl Fn(libbpf_rs::Error) -> Error {
    move |source| Error::Program { action, program: "the programs of the fsync trace", source }
}

/// CLOCK_MONOTONIC, as bpf_ktime_get_ns() says it.
fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; this clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
