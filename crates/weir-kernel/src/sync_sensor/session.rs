//! A running session, and what a look at it finds.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::atomic::Ordering;

use weir_control::{Bulk, Sensor, SensorSource, Syncs, Writer};
use weir_core::stats::CoarseHistogram;
use weir_core::target::DeviceNumber;

use super::Whose;
use super::account;
use super::debt::{BULK_ABOVE, Class, Debt};
use super::programs::Programs;
use super::tables::{Backlog, DeviceSyncs, Process, THREAD_WORDS, load, load32};
use super::writers::{Id, Writers, Written};
use crate::Error;
use crate::brackets::Brackets;
use crate::fsync::{files, ring_entry};
use crate::live::buckets::{BUCKETS, bounds};
use crate::live::overhead::{ProgramFigures, monotonic_ns};

/// The classes of `bpf/syncs.bpf.c`.
const UNJUDGED: u32 = 0;
const PROTECTED: u32 = 1;
const BULK: u32 = 2;
/// Writers that a look names by device. What the others wrote is counted together.
const WRITERS_MAX: usize = 32;
/// A process writes to the device for whose dirty pages it was made to pause, for so long after that.
const PAUSED_NS: u64 = 10_000_000_000;
/// What a process without a place has written is asked for again after so long.
const ASK_EVERY_NS: u64 = 1_000_000_000;
/// A process that found no place in the table is reckoned with for so long.
const UNPLACED_NS: u64 = 600_000_000_000;
/// Of `lost` in the programs' state: syncs and processes that found no place. A sync that is not counted pays for nothing that its
/// process wrote, which may pass for a bulk writer then.
const UNPLACED: [usize; 2] = [0, 1];
/// Places of devices that are gone are looked for so often.
const TIDY_NS: u64 = 60_000_000_000;
/// Threads are counted over so long.
const THREADS_NS: u64 = 1_000_000_000;

/// What happened on one device since the look before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceLook {
    /// Syncs that are to be protected.
    pub syncs: Syncs,
    /// Everybody else.
    pub bulk: Bulk,
    /// What is dirty and under way on it, where the kernel tells: not where cgroups write back on their own account, and
    /// not before the first sync or pause.
    pub backlog: Option<Backlog>,
    /// Syncs that ended and do not count: those of bulk writers, and of processes that wrote nothing themselves.
    pub left_out: u64,
}

/// What happened since the look before.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// By device: whole disks; a file system that stands on no single disk has a number of its own. Devices on which
    /// nothing happened are left out.
    pub devices: BTreeMap<DeviceNumber, DeviceLook>,
    /// Written by bulk writers of whom it is not known where: who maps a file may close it, and has none open.
    pub unlocated_bytes: u64,
    /// Whether the programs answer.
    pub sensor: Sensor,
}

/// What was read of a process before.
#[derive(Clone, Copy, Default)]
struct ProcessBefore {
    syncs: u64,
    pauses: u64,
    pause_ticks: u64,
    /// The device that it paused for last, as the programs write it, and when.
    paused: Option<(u32, u64)>,
}

/// What was read of a device before.
#[derive(Default)]
struct DeviceBefore {
    device: u64,
    count: u64,
    sum_ns: u64,
    left_out: u64,
    /// When, and the bits that threads had left since the look before.
    threads: VecDeque<(u64, [u64; THREAD_WORDS])>,
    buckets: Vec<u64>,
}

/// What is known of a process's part in all this.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Protected,
    Bulk,
}

/// Programs attached to the kernel; they go away when this is dropped.
pub struct SyncSession {
    programs: Programs,
    is_everybody: bool,
    tick_ns: u64,
    page_bytes: u64,
    writers: Writers,
    written: HashMap<Id, Written>,
    debts: HashMap<Id, Debt>,
    processes: HashMap<Id, ProcessBefore>,
    /// Those whose syncs counted at the last look.
    protected: Vec<u32>,
    /// Places in the table of processes that are not free, and how many had been taken when they were found.
    places: Vec<usize>,
    taken: u64,
    devices: HashMap<usize, DeviceBefore>,
    disks: HashMap<u32, DeviceNumber>,
    looked_ns: u64,
    beats: u64,
    answered_ns: u64,
    lost: u64,
    /// Whether syncs under way of processes without a place count, by process and whether they are without a write; since when.
    unplaced_count: HashMap<(u32, bool), bool>,
    asked_ns: u64,
    /// Syncs and processes that found no place, and until when they are reckoned with.
    unplaced: u64,
    unplaced_until_ns: u64,
    tidy_ns: u64,
}

impl SyncSession {
    /// Loads and attaches the programs. Syncs that began before are not seen.
    ///
    /// # Errors
    /// What is missing: privilege, kernel support, or what the kernel refused.
    pub fn start(whose: &Whose) -> Result<SyncSession, Error> {
        let programs = Programs::start(whose)?;
        let now_ns = monotonic_ns();
        let mut session = SyncSession {
            programs,
            is_everybody: *whose == Whose::Everybody,
            tick_ns: tick_ns(),
            page_bytes: page_bytes(),
            writers: Writers::default(),
            written: HashMap::new(),
            debts: HashMap::new(),
            processes: HashMap::new(),
            protected: Vec::new(),
            places: Vec::new(),
            taken: 0,
            devices: HashMap::new(),
            disks: HashMap::new(),
            looked_ns: now_ns,
            beats: 0,
            answered_ns: now_ns,
            lost: 0,
            unplaced_count: HashMap::new(),
            asked_ns: 0,
            unplaced: 0,
            unplaced_until_ns: 0,
            tidy_ns: now_ns + TIDY_NS,
        };
        session.look(now_ns);
        Ok(session)
    }

    /// Of [`Whose::Listed`]: these processes from now on, the first [`super::LISTED`] of them.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn list(&self, processes: &[u32]) -> Result<(), Error> {
        self.programs.list(processes)
    }

    /// How the programs learn of calls, and so who pays for it.
    pub fn brackets(&self) -> Brackets {
        self.programs.brackets()
    }

    /// From now on no call of the machine pays for the programs, and no sync is seen, until [`SyncSession::wake`]. Where calls
    /// are bracketed one by one ([`Brackets::OwnCalls`]) nobody pays for what is none of them, and nothing changes.
    pub fn rest(&mut self) {
        self.programs.rest();
    }

    /// Syncs that begin from now on are seen again.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn wake(&mut self) -> Result<(), Error> {
        self.programs.wake()
    }

    /// What happened since the look before; `now_ns` is of CLOCK_MONOTONIC.
    pub fn look(&mut self, now_ns: u64) -> Look {
        let silent_ns = self.beat(now_ns);
        let fresh = self.scan(now_ns);
        let mut devices = BTreeMap::new();
        let parts = self.read_processes(&fresh, now_ns, &mut devices);
        let is_protected = |(pid, part): (&u32, &Part)| (*part == Part::Protected).then_some(*pid);
        self.protected = parts.iter().filter_map(is_protected).collect();
        self.read_flights(&parts, now_ns, &mut devices);
        self.read_devices(now_ns, silent_ns == 0, &mut devices);
        let unlocated_bytes = self.name_writers(&fresh, &parts, now_ns, &mut devices);
        if now_ns >= self.tidy_ns {
            self.tidy_ns = now_ns + TIDY_NS;
            self.tidy();
        }
        let unplaced = UNPLACED.iter().map(|what| load(&self.programs.state().lost[*what])).sum();
        if unplaced != self.unplaced {
            (self.unplaced, self.unplaced_until_ns) = (unplaced, now_ns + UNPLACED_NS);
        }
        self.looked_ns = now_ns;
        let lost = self.lost_so_far();
        let sensor = Sensor { source: SensorSource::Syscalls, silent_ns, lost: lost - self.lost };
        self.lost = lost;
        Look { devices, unlocated_bytes, sensor }
    }

    /// The kernel's figures of the programs together: how often they ran, how often they were skipped, and for how long
    /// while its BPF statistics are on (`kernel.bpf_stats_enabled`).
    pub fn figures(&self) -> ProgramFigures {
        self.programs.figures()
    }

    /// Memory of the programs' tables.
    pub fn memory_bytes(&self) -> u64 {
        self.programs.memory_bytes()
    }

    /// Whether it is known who writes how much. Without that nobody is taken for a bulk writer.
    pub fn knows_writers(&self) -> bool {
        self.programs.writers().is_some()
    }

    /// Processes that have synced since the session began, are to be protected, and have not ended.
    pub fn protected(&self) -> &[u32] {
        &self.protected
    }

    /// Whether those are all: whether every sync of the last ten minutes, and its process, found a place in the tables.
    pub fn knows_protected(&self) -> bool {
        self.looked_ns >= self.unplaced_until_ns
    }

    /// Places taken in the tables: syncs under way, processes, devices.
    pub fn places_taken(&self) -> [usize; 3] {
        let flights = self.programs.flights.places().iter().filter(|flight| load32(&flight.tid) != 0);
        let processes = self.programs.processes.places().iter().filter(|process| load32(&process.tgid) != 0);
        let devices = self.programs.devices.places().iter().filter(|device| load(&device.device) != 0);
        [flights.count(), processes.count(), devices.count()]
    }

    /// Makes a sync of our own, which the programs count, and returns for how long they have not.
    fn beat(&mut self, now_ns: u64) -> u64 {
        // SAFETY: no descriptor is -1, so the call only fails.
        unsafe { libc::fdatasync(-1) };
        let beats = load(&self.programs.state().beats);
        if beats != self.beats {
            self.beats = beats;
            self.answered_ns = now_ns;
        }
        now_ns.saturating_sub(self.answered_ns)
    }

    fn lost_so_far(&self) -> u64 {
        self.programs.state().lost.iter().map(load).sum()
    }

    /// Bytes written by process since the scan before; empty where it is not time for one.
    fn scan(&mut self, now_ns: u64) -> HashMap<Id, u64> {
        let Some(link) = self.programs.writers() else { return HashMap::new() };
        if !self.writers.scan(link, now_ns, &mut self.written) {
            return HashMap::new();
        }
        self.debts.retain(|id, _| self.written.contains_key(id));
        self.written.iter().filter(|(_, process)| process.bytes > 0).map(|(id, p)| (*id, p.bytes)).collect()
    }

    /// Judges every process that synced, paused or wrote, and adds up pauses.
    fn read_processes(
        &mut self,
        fresh: &HashMap<Id, u64>,
        now_ns: u64,
        devices: &mut BTreeMap<DeviceNumber, DeviceLook>,
    ) -> HashMap<u32, Part> {
        let mut parts = HashMap::new();
        let mut present = HashSet::new();
        let places = self.programs.processes.places();
        let is_taken = |at: &usize| load32(&places[*at].tgid) != 0;
        // Read before the places: one that is taken meanwhile is counted at the next look.
        let taken = load(&self.programs.state().processes);
        if taken != self.taken {
            self.taken = taken;
            self.places = (0..places.len()).filter(is_taken).collect();
        }
        for process in self.places.iter().map(|at| &places[*at]) {
            let pid = load32(&process.tgid);
            let id = Id { pid, start_ns: load(&process.start_ns) };
            present.insert(id);
            let before = self.processes.get(&id).copied().unwrap_or_default();
            let mut now = ProcessBefore {
                syncs: load(&process.syncs),
                pauses: load(&process.pauses),
                pause_ticks: load(&process.pause_ticks),
                paused: before.paused,
            };
            let syncs = now.syncs.saturating_sub(before.syncs);
            let debt = self.debts.entry(id).or_default();
            let class = debt.settle(fresh.get(&id).copied().unwrap_or(0), syncs);
            let part = if self.is_everybody {
                say(process, class, self.written.get(&id));
                // A process that has not synced has nothing to protect.
                if class == Class::Protected && now.syncs > 0 { Part::Protected } else { Part::Bulk }
            } else if load32(&process.is_wanted) != 0 {
                Part::Protected
            } else {
                Part::Bulk
            };
            parts.insert(pid, part);
            let pauses = now.pauses.saturating_sub(before.pauses);
            let packed = load32(&process.device);
            if pauses > 0 && packed != 0 {
                now.paused = Some((packed, now_ns));
                let held_ns = now.pause_ticks.saturating_sub(before.pause_ticks) * self.tick_ns;
                let look: &mut DeviceLook = devices.entry(disk(&mut self.disks, packed)).or_default();
                let (ns, times) = match part {
                    Part::Protected => (&mut look.syncs.held_back_ns, &mut look.syncs.held_back),
                    Part::Bulk => (&mut look.bulk.held_back_ns, &mut look.bulk.held_back),
                };
                *ns += held_ns;
                *times += pauses;
            }
            self.processes.insert(id, now);
            if load32(&process.is_gone) != 0 {
                process.release();
            }
        }
        self.places.retain(is_taken);
        // Those without a place have neither synced nor paused, or there was none for them.
        for (id, bytes) in fresh.iter().filter(|(id, _)| !present.contains(id)) {
            self.debts.entry(*id).or_default().settle(*bytes, 0);
        }
        self.processes.retain(|id, _| present.contains(id));
        parts
    }

    fn read_flights(
        &mut self,
        parts: &HashMap<u32, Part>,
        now_ns: u64,
        devices: &mut BTreeMap<DeviceNumber, DeviceLook>,
    ) {
        if now_ns >= self.asked_ns + ASK_EVERY_NS {
            self.asked_ns = now_ns;
            self.unplaced_count.clear();
        }
        // Of those that had begun by now no more are to be found than are under way.
        let mut left = load(&self.programs.state().under_way);
        for flight in self.programs.flights.places() {
            if left == 0 {
                break;
            }
            let (tid, start_ns) = (load32(&flight.tid), load(&flight.start_ns));
            if tid == 0 || start_ns == 0 {
                continue;
            }
            left -= u64::from(start_ns <= now_ns);
            let (pid, without_write) = (load32(&flight.tgid), load32(&flight.without_write) != 0);
            let counts = !self.is_everybody
                || match parts.get(&pid) {
                    Some(part) => *part == Part::Protected,
                    // It has not ended one yet. A thousand of its threads may be in one.
                    None => *self.unplaced_count.entry((pid, without_write)).or_insert_with(|| {
                        (1..BULK_ABOVE).contains(&written_by(pid, without_write, &self.written))
                    }),
                };
            if !counts {
                continue;
            }
            let number = disk(&mut self.disks, load32(&flight.device));
            let syncs = &mut devices.entry(number).or_default().syncs;
            syncs.under_way += 1;
            syncs.oldest_ns = syncs.oldest_ns.max(now_ns.saturating_sub(start_ns));
        }
    }

    fn read_devices(&mut self, now_ns: u64, answers: bool, devices: &mut BTreeMap<DeviceNumber, DeviceLook>) {
        for (at, place) in self.programs.devices.places().iter().enumerate() {
            let number = load(&place.device);
            if number == 0 {
                continue;
            }
            if let Some(backlog) = place.backlog(self.page_bytes).filter(|_| answers) {
                devices.entry(disk(&mut self.disks, number as u32)).or_default().backlog = Some(backlog);
            }
            let before = self.devices.entry(at).or_default();
            if before.device != number {
                *before =
                    DeviceBefore { device: number, buckets: vec![0; BUCKETS], ..DeviceBefore::default() };
            }
            let left_out = load(&place.left_out);
            let (count, unchanged) = (load(&place.count), left_out == before.left_out);
            if count == before.count && unchanged {
                continue;
            }
            before
                .threads
                .push_back((now_ns, place.threads.each_ref().map(|word| word.swap(0, Ordering::Relaxed))));
            before.threads.retain(|(at_ns, _)| now_ns - at_ns < THREADS_NS);
            let look = devices.entry(disk(&mut self.disks, number as u32)).or_default();
            look.syncs.threads += threads(&before.threads);
            look.left_out += left_out - before.left_out;
            before.left_out = left_out;
            look.syncs.ended.merge(&ended(place, before));
        }
    }

    /// Says who writes onto which device, and how much of it is of the protected processes. How much bulk writers wrote of whom it is
    /// not known where.
    fn name_writers(
        &mut self,
        fresh: &HashMap<Id, u64>,
        parts: &HashMap<u32, Part>,
        now_ns: u64,
        devices: &mut BTreeMap<DeviceNumber, DeviceLook>,
    ) -> u64 {
        let mut unlocated_bytes = 0;
        let mut most: Vec<(Id, u64)> = fresh.iter().map(|(id, bytes)| (*id, *bytes)).collect();
        most.sort_unstable_by_key(|(id, bytes)| (std::cmp::Reverse(*bytes), *id));
        for (id, bytes) in most {
            let Some(written) = self.written.get(&id) else { continue };
            let is_protected = parts.get(&id.pid) == Some(&Part::Protected);
            let open = self.writers.devices(id, is_protected, now_ns);
            let paused = self.processes.get(&id).and_then(|process| process.paused);
            let paused = paused.filter(|(_, at_ns)| now_ns < at_ns + PAUSED_NS);
            let paused = paused.map(|(device, _)| disk(&mut self.disks, device));
            let paused = paused.filter(|device| !open.contains(device));
            if open.is_empty() && paused.is_none() && !is_protected {
                unlocated_bytes += bytes;
            }
            for device in open.iter().copied().chain(paused) {
                let bulk = &mut devices.entry(device).or_default().bulk;
                if is_protected {
                    bulk.protected_bytes += bytes;
                    continue;
                }
                bulk.dirtied_bytes += bytes;
                if bulk.writers.len() < WRITERS_MAX {
                    bulk.writers.push(Writer {
                        pid: id.pid,
                        comm: written.comm.clone(),
                        bytes,
                        start_ns: id.start_ns,
                    });
                }
            }
        }
        unlocated_bytes
    }

    /// Frees the places of devices, and of file systems with a bdi of their own, that are gone.
    fn tidy(&mut self) {
        self.disks.clear();
        for (at, place) in self.programs.devices.places().iter().enumerate() {
            let number = ring_entry::number(load(&place.device) as u32);
            let is_there = match number.is_anonymous() {
                true => load(&place.bdi) != 0,
                false => Path::new(&format!("/sys/dev/block/{number}")).exists(),
            };
            if load(&place.device) != 0 && !is_there {
                place.release();
                // Where the same device comes back, it begins at 0.
                self.devices.remove(&at);
            }
        }
    }
}

/// What a process has written, as far as it was told; else what /proc says.
fn written_by(pid: u32, without_write: bool, written: &HashMap<Id, Written>) -> u64 {
    let told = written.iter().filter(|(id, _)| id.pid == pid).map(|(_, process)| process.total_bytes).max();
    told.or_else(|| {
        let text = weir_fs::text_of_task(pid, "io").ok()?;
        Some(account::written(&text, without_write))
    })
    .unwrap_or(0)
}

/// Tells the programs what a process is. One that is not known to have written is left to them.
fn say(process: &Process, class: Class, written: Option<&Written>) {
    let class = match class {
        Class::Bulk => BULK,
        Class::Protected if written.is_some() => PROTECTED,
        Class::Protected => UNJUDGED,
    };
    process.class.store(class, Ordering::Relaxed);
}

/// How many threads left these bits. Several may share one: as many as fill so many places on average.
fn threads(looks: &VecDeque<(u64, [u64; THREAD_WORDS])>) -> u32 {
    let mut bits = [0; THREAD_WORDS];
    for (_, look) in looks {
        for (bits, word) in bits.iter_mut().zip(look) {
            *bits |= word;
        }
    }
    let places = (64 * THREAD_WORDS) as f64;
    let taken: u32 = bits.iter().map(|word| word.count_ones()).sum();
    (places * (places / (places - f64::from(taken)).max(1.0)).ln()).round() as u32
}

/// The syncs of a device since the look before, which this becomes.
fn ended(place: &DeviceSyncs, before: &mut DeviceBefore) -> CoarseHistogram {
    let mut ended = CoarseHistogram::new();
    let (mut least_ns, mut most_ns) = (u64::MAX, 0);
    for (bucket, (now, before)) in place.buckets.iter().zip(&mut before.buckets).enumerate() {
        let now = load(now);
        let count = now - *before;
        if count == 0 {
            continue;
        }
        *before = now;
        let (low_ns, high_ns) = bounds(bucket as u32);
        ended.record_many(low_ns + (high_ns - low_ns) / 2, count);
        (least_ns, most_ns) = (least_ns.min(low_ns), high_ns);
    }
    let (sum_ns, max_ns) = (load(&place.sum_ns), place.max_ns.swap(0, Ordering::Relaxed));
    let took_ns = sum_ns - before.sum_ns;
    (before.sum_ns, before.count) = (sum_ns, load(&place.count));
    if ended.count() > 0 {
        let most_ns = if max_ns == 0 { most_ns } else { max_ns };
        ended.set_exact(u128::from(took_ns), least_ns.min(most_ns), most_ns);
    }
    ended
}

/// The whole disk of a device as the programs write it.
fn disk(disks: &mut HashMap<u32, DeviceNumber>, packed: u32) -> DeviceNumber {
    *disks.entry(packed).or_insert_with(|| files::whole(ring_entry::number(packed)))
}

fn page_bytes() -> u64 {
    // SAFETY: asks for a number and touches no memory.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// A tick of the kernel, in which it says pauses: the resolution of the clock that ticks.
fn tick_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing; this clock exists on every Linux.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn root_or_say<T>(test: &str, needed: Result<T, String>) -> Option<T> {
        needed.map_err(|lacking| _ = writeln!(std::io::stderr(), "not run: {test} lacks {lacking}")).ok()
    }

    /// As where another account runs more processes that sync than the table has places.
    #[test]
    fn root_who_finds_no_place_is_counted_all_the_same() {
        use std::process::Command;

        const SYNCS: &str = "import os,sys\nopen('/proc/self/comm','w').write('weir-crowded')\n\
                             f=os.open(sys.argv[1],66)\n\
                             for i in range(20): os.write(f,b'x'*4096); os.fsync(f)";
        let folder = tempfile::tempdir().unwrap();
        for whose in [Whose::Comm("weir-crowded".to_string()), Whose::Everybody] {
            let test = "root_who_finds_no_place_is_counted_all_the_same";
            let Some(mut session) =
                root_or_say(test, SyncSession::start(&whose).map_err(|why| why.to_string()))
            else {
                return;
            };
            let mut synced = || {
                let mut python = Command::new("python3");
                assert!(python.args(["-c", SYNCS]).arg(folder.path().join("a")).status().unwrap().success());
                let look = session.look(monotonic_ns());
                let count = look.devices.values().map(|device| device.syncs.ended.count()).sum::<u64>();
                for (at, place) in session.programs.processes.places().iter().enumerate() {
                    place.tgid.store(u32::MAX - at as u32, Ordering::Relaxed);
                }
                (count, look.sensor.lost, session.knows_protected())
            };
            let (before, _, _) = synced();
            let device = (before >= 20).then_some(()).ok_or("a device under the temporary files".to_string());
            if root_or_say(test, device).is_none() {
                return;
            }
            let (count, lost, knows_all) = synced();
            assert!(count >= 20 && lost >= 20, "{whose:?}: {count} counted, {lost} without a place");
            assert!(!knows_all, "{whose:?}: who has no place may be protected");
        }
    }

    #[test]
    fn root_a_device_that_comes_back_begins_anew() {
        let test = "root_a_device_that_comes_back_begins_anew";
        let started = SyncSession::start(&Whose::Everybody).map_err(|why| why.to_string());
        let Some(mut session) = root_or_say(test, started) else { return };
        // No device has this number.
        let packed = 4000 << 20;
        let mut syncs = |count: u64| {
            let place = &session.programs.devices.places()[63];
            place.device.store(packed, Ordering::Relaxed);
            place.count.store(count, Ordering::Relaxed);
            place.buckets[3].store(count, Ordering::Relaxed);
            let look = session.look(monotonic_ns());
            session.tidy();
            assert_eq!(load(&session.programs.devices.places()[63].device), 0, "its place is free");
            look.devices[&ring_entry::number(packed as u32)].syncs.ended.count()
        };
        assert_eq!((syncs(7), syncs(3)), (7, 3));
    }

    /// Whoever fills the table of syncs hides those of a database, which then seems to write in bulk.
    #[test]
    fn root_while_syncs_find_no_place_it_is_not_known_who_is_protected() {
        let test = "root_while_syncs_find_no_place_it_is_not_known_who_is_protected";
        let started = SyncSession::start(&Whose::Everybody).map_err(|why| why.to_string());
        let Some(mut session) = root_or_say(test, started) else { return };
        assert!(session.knows_protected());
        for what in UNPLACED {
            let now_ns = monotonic_ns() + 2 * what as u64 * UNPLACED_NS;
            session.programs.state().lost[what].fetch_add(1, Ordering::Relaxed);
            session.look(now_ns);
            assert!(!session.knows_protected(), "{what}");
            session.look(now_ns + UNPLACED_NS);
            assert!(session.knows_protected(), "{what}");
        }
    }

    /// What `/proc` says of a process takes as long as the process has threads.
    #[test]
    fn root_a_process_without_a_place_is_asked_once_whatever_its_threads() {
        let test = "root_a_process_without_a_place_is_asked_once_whatever_its_threads";
        let started = SyncSession::start(&Whose::Everybody).map_err(|why| why.to_string());
        let Some(mut session) = root_or_say(test, started) else { return };
        let free = session.programs.flights.places().iter().filter(|flight| load32(&flight.tid) == 0);
        for (flight, tid) in free.zip(1 << 30..).take(100) {
            flight.tgid.store(std::process::id(), Ordering::Relaxed);
            flight.start_ns.store(1, Ordering::Relaxed);
            flight.tid.store(tid, Ordering::Relaxed);
        }
        session.programs.state().under_way.fetch_add(100, Ordering::Relaxed);
        session.look(monotonic_ns());
        let asked = session.unplaced_count.keys().filter(|(pid, _)| *pid == std::process::id());
        assert_eq!(asked.count(), 1);
    }

    #[test]
    fn threads_are_counted_by_the_places_they_leave_bits_in() {
        let look = |places: std::ops::Range<usize>| {
            let mut bits = [0; THREAD_WORDS];
            places.for_each(|place| bits[place / 64] |= 1 << (place % 64));
            (0, bits)
        };
        // (places in two looks, threads): few are counted exactly; many share places, and a full table says "many".
        for (one, other, expected) in [
            (0..0, 0..0, 0..=0),
            (0..1, 0..1, 1..=1),
            (0..5, 5..10, 10..=10),
            (0..512, 100..512, 705..=715),
            (0..1024, 0..0, 7000..=7200),
        ] {
            let threads = threads(&VecDeque::from([look(one.clone()), look(other)]));
            assert!(expected.contains(&threads), "{one:?}: {threads}");
        }
    }
}
