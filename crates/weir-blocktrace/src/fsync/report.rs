//! What was found, as data.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::analyst::{Analyst, Sums};
use super::cause::{Cause, Owner};
use super::ledger::Ledger;
use super::part::{Call, Part};
use super::phase::Phase;
use super::senders::{Process, Sender, Way};
use super::tally::{Matrix, Tally};
use weir_core::target::DeviceNumber;
use weir_core::units::grouped;

/// Culprits and places listed.
const LISTED_MAX: usize = 12;
/// Processes that a ledger lists: who adds them up by program finds nearly all of those that live for a moment each.
const LEDGER_MAX: usize = 64;
/// Senders to a disk that are told apart.
const SENDERS_MAX: usize = 256;

/// All that was found in a stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Length of the stretch.
    pub elapsed_ns: u64,
    /// All syncs together.
    pub all: Anatomy,
    /// By process, the longest wall time first.
    pub processes: Vec<Anatomy>,
    /// Pauses of buffered writers, the longest first.
    pub stalls: Vec<Stall>,
    /// What was not seen.
    pub losses: Losses,
    /// Stacks that were taken to say where waits were slept.
    pub stacks: u64,
}

/// Where the time of syncs went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Anatomy {
    /// Whose syncs; `None` for all.
    pub process: Option<Process>,
    /// Syncs that returned, by call.
    pub calls: Vec<(Call, u64)>,
    /// Their sum.
    pub syncs: u64,
    /// How many of them were shorter than 1 ms.
    pub short: u64,
    /// How many of those were only counted; what their time went for is told by the others of like length.
    pub skimmed: u64,
    /// Their latency; all 0 where none returned.
    pub latency: Latency,
    /// Wall time inside syncs, those that have not returned included.
    pub wall_ns: u64,
    /// Share of `wall_ns` with a known place or cause.
    pub explained: f64,
    /// By phase; phases without time are left out. Shares add up to 1.
    pub phases: Vec<Row>,
    /// Sum of the rows' causes.
    pub causes: Vec<(Cause, f64)>,
    /// Whose I/O was served while the syncs waited, the largest share first.
    pub culprits: Vec<Culprit>,
    /// Where waits were slept, the largest share first.
    pub sites: Vec<Site>,
}

/// Latency of syncs that returned, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

/// A phase and why its time passed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Phase.
    pub phase: Phase,
    /// Share of wall time.
    pub share: f64,
    /// Shares of wall time by cause; empty for time that was no wait for I/O.
    pub causes: Vec<(Cause, f64)>,
}

/// Somebody whose I/O was served while syncs waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Culprit {
    /// Who; of several processes the one that they waited for longest.
    pub process: Process,
    /// How many processes of that name and cgroup are counted together here: a copy by many is one cause. In a ledger each is one.
    #[serde(default = "one")]
    pub processes: u64,
    /// How.
    pub way: Way,
    /// Share of wall time spent behind it. Readers and direct writers share what was spent behind all of
    /// them by the bytes each sent.
    pub share: f64,
    /// What the device moved for it while syncs waited, bytes; syncs that wait at the same time each count it.
    pub bytes: u64,
    /// The same in requests.
    pub ios: u64,
}

fn one() -> u64 {
    1
}

fn longest_first(culprits: impl Iterator<Item = Culprit>) -> Vec<Culprit> {
    let mut culprits: Vec<Culprit> = culprits.collect();
    let by = |culprit: &Culprit| (culprit.process.pid, culprit.way as u8);
    culprits.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| by(a).cmp(&by(b))));
    culprits
}

impl Culprit {
    fn add(&mut self, share: f64, bytes: u64, ios: u64) {
        self.share += share;
        self.bytes += bytes;
        self.ios += ios;
    }

    /// Who, in words: `dd (77)`, `cp (77 and 7 more)`, or a group by what describes it.
    pub fn name(&self) -> String {
        match (self.process.pid, self.processes) {
            (Some(pid), 2..) => {
                format!("{} ({pid} and {} more)", self.process.comm, grouped(self.processes - 1))
            }
            _ => self.process.name(),
        }
    }
}

/// Syncs that had not returned. They are in no latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StillWaiting {
    /// How many.
    pub count: usize,
    /// Age of the oldest, nanoseconds.
    pub oldest_ns: u64,
}

/// Where waits were slept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Kernel functions, the innermost first.
    pub functions: String,
    /// The phase they mean.
    pub phase: Phase,
    /// Share of wall time.
    pub share: f64,
    /// Waits, scaled up from the sample.
    pub waits: f64,
}

/// Pauses that balance_dirty_pages imposed on a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Who was paused.
    pub process: Process,
    /// On which backing device, as the kernel calls it: `259:0`, or `btrfs-1`.
    pub bdi: String,
    /// Pauses.
    pub count: u64,
    /// Their sum.
    pub slept_ns: u64,
    /// The longest.
    pub slept_ns_max: u64,
}

/// What was not seen, each by its reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Syncs of threads for which the kernel's table had no room.
    pub tasks: u64,
    /// Syncs, or parts of them, for which the ring had no room.
    pub syncs: u64,
    /// Completions, likewise.
    pub ios: u64,
    /// Stacks, likewise, or that could not be walked.
    pub stacks: u64,
    /// Pauses for which the table had no room.
    pub stalls: u64,
    /// Syncs sent through io_uring (fsync, sync_file_range), which no system call brackets: they are counted here alone.
    pub ring_syncs: u64,
}

impl Losses {
    /// All of them.
    pub fn sum(&self) -> u64 {
        self.tasks + self.syncs + self.ios + self.stacks + self.stalls + self.ring_syncs
    }

    /// What came after `earlier`.
    fn since(self, earlier: Losses) -> Losses {
        Losses {
            tasks: self.tasks.saturating_sub(earlier.tasks),
            syncs: self.syncs.saturating_sub(earlier.syncs),
            ios: self.ios.saturating_sub(earlier.ios),
            stacks: self.stacks.saturating_sub(earlier.stacks),
            stalls: self.stalls.saturating_sub(earlier.stalls),
            ring_syncs: self.ring_syncs.saturating_sub(earlier.ring_syncs),
        }
    }
}

/// A sync that took long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowSync {
    /// When it began, CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// How long it took.
    pub took_ns: u64,
    /// Whose.
    pub process: Process,
    /// Which thread.
    pub tid: u32,
    /// What that is called, where it is not called as its process is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// What.
    pub call: Call,
    /// On which disk.
    pub device: Option<DeviceNumber>,
    /// By phase, the shares of its time.
    pub phases: Vec<Row>,
    /// Whose I/O it waited behind.
    pub culprits: Vec<Culprit>,
}

impl Analyst {
    /// What was found in the interval. Pauses are those since the start.
    pub fn report(&self, elapsed_ns: u64) -> Report {
        let report = self.report_on(&self.sums, &self.senders.of_interval, elapsed_ns);
        let (losses, stacks) = (self.losses().since(self.losses_before), self.stacks - self.stacks_before);
        Report { losses, stacks, ..report }
    }

    /// What was found since the start.
    pub fn whole(&self, elapsed_ns: u64) -> Report {
        let mut whole = self.past.clone();
        for (tgid, sums) in &self.sums {
            let known =
                whole.entry(*tgid).or_insert_with(|| Sums { comm: sums.comm.clone(), ..Sums::default() });
            known.merge(sums);
        }
        self.report_on(&whole, &self.senders.of_whole, elapsed_ns)
    }

    fn report_on(&self, sums: &BTreeMap<u32, Sums>, senders: &[Sender], elapsed_ns: u64) -> Report {
        let mut all = Sums::default();
        for sums in sums.values() {
            all.merge(sums);
        }
        let mut processes: Vec<Anatomy> = sums
            .iter()
            .map(|(tgid, sums)| {
                let pid = (*tgid != 0).then_some(*tgid);
                self.anatomy(sums, senders, Some(self.process(pid, &sums.comm)))
            })
            .collect();
        processes.sort_by_key(|anatomy| std::cmp::Reverse(anatomy.wall_ns));
        Report {
            elapsed_ns,
            all: self.anatomy(&all, senders, None),
            processes,
            stalls: self.placed_stalls(),
            losses: self.losses(),
            stacks: self.stacks,
        }
    }

    /// Syncs that had not returned at the last [`Analyst::under_way`].
    pub fn still_waiting(&self) -> StillWaiting {
        self.still
    }

    pub(super) fn describe_slow(&self, part: &Part, took_ns: u64, tally: &Tally) -> SlowSync {
        let wall_ns = took_ns.max(1) as f64;
        let process = self.process(Some(part.tgid), &part.comm);
        SlowSync {
            start_ns: part.start_ns,
            took_ns,
            thread: (process.comm != part.comm).then(|| part.comm.clone()),
            process,
            tid: part.tid,
            call: part.call,
            device: part.device,
            phases: rows(&tally.matrix(), wall_ns),
            culprits: self.programs(tally, &self.senders.of_interval, wall_ns),
        }
    }

    fn anatomy(&self, sums: &Sums, senders: &[Sender], process: Option<Process>) -> Anatomy {
        let wall_ns = sums.wall_ns.max(1) as f64;
        let tally = sums.with_skimmed();
        let matrix = tally.matrix();
        let phases = rows(&matrix, wall_ns);
        let skimmed = sums.short.values().map(|short| short.skimmed).sum();
        let [p50_ns, p95_ns, p99_ns] = sums.latency.quantiles([0.5, 0.95, 0.99]);
        let max_ns = sums.latency.max_ns();
        let mean_ns = if sums.latency.is_empty() { 0.0 } else { sums.latency.mean_ns() };
        Anatomy {
            process,
            calls: sums.calls.iter().map(|(call, n)| (*call, *n)).collect(),
            syncs: sums.latency.count(),
            short: skimmed + sums.short.values().map(|short| short.looked_into).sum::<u64>(),
            skimmed,
            latency: Latency { mean_ns, p50_ns, p95_ns, p99_ns, max_ns },
            wall_ns: sums.wall_ns,
            explained: explained(&matrix, wall_ns),
            causes: causes(&phases),
            phases,
            culprits: self.programs(&tally, senders, wall_ns),
            sites: self.places(&tally, wall_ns),
        }
    }

    pub(super) fn ledger(&self, tgid: u32, sums: &Sums) -> Ledger {
        let (wall_ns, tally) = (sums.wall_ns.max(1) as f64, sums.with_skimmed());
        let mut culprits = self.culprits(&tally, &self.senders.of_interval, wall_ns);
        culprits.truncate(LEDGER_MAX);
        Ledger {
            process: self.process((tgid != 0).then_some(tgid), &sums.comm),
            latency: sums.latency.clone(),
            wall_ns: sums.wall_ns,
            phases: rows(&tally.matrix(), wall_ns),
            culprits,
        }
    }

    /// By process, the longest first.
    fn culprits(&self, tally: &Tally, senders: &[Sender], wall_ns: f64) -> Vec<Culprit> {
        let mut culprits: HashMap<(Process, Way), Culprit> = HashMap::new();
        for (owner, blame) in tally.blamed() {
            for (process, way, part) in self.who(owner, senders) {
                let share = blame.wait_ns / wall_ns * part;
                let [bytes, ios] = [blame.bytes, blame.ios].map(|count| (count as f64 * part).round() as u64);
                let none = Culprit { process, processes: 1, way, share: 0.0, bytes: 0, ios: 0 };
                // One may send to several disks.
                culprits.entry((none.process.clone(), way)).or_insert(none).add(share, bytes, ios);
            }
        }
        longest_first(culprits.into_values())
    }

    /// By program, the longest first.
    fn programs(&self, tally: &Tally, senders: &[Sender], wall_ns: f64) -> Vec<Culprit> {
        let mut programs = HashMap::new();
        for culprit in self.culprits(tally, senders, wall_ns) {
            let Culprit { process: Process { pid, comm, cgroup }, way, share, bytes, ios, .. } =
                culprit.clone();
            let more = |longest: &mut Culprit| {
                longest.processes += 1;
                longest.add(share, bytes, ios);
            };
            programs.entry((pid.is_some(), comm, cgroup, way)).and_modify(more).or_insert(culprit);
        }
        let mut programs = longest_first(programs.into_values());
        programs.truncate(LISTED_MAX);
        programs
    }

    /// With its cgroup, by its own name, where that is known; else by the one that its thread had.
    fn process(&self, pid: Option<u32>, of_thread: &str) -> Process {
        let comm = pid.and_then(|pid| self.name_of(pid)).unwrap_or(of_thread);
        let cgroup = pid.and_then(|pid| self.cgroup_of(pid)).cloned();
        Process { cgroup, ..Process::new(pid, comm) }
    }

    fn placed_stalls(&self) -> Vec<Stall> {
        let placed = |stall: &Stall| self.process(stall.process.pid, &stall.process.comm);
        self.stalls.iter().map(|stall| Stall { process: placed(stall), ..stall.clone() }).collect()
    }

    /// The processes behind an owner, each with its part of it.
    fn who(&self, owner: Owner, senders: &[Sender]) -> Vec<(Process, Way, f64)> {
        let group = |comm: &str| Process::new(None, comm);
        match owner {
            Owner::Process(tgid) => {
                vec![(self.process(Some(tgid), "?"), Way::Writeback, 1.0)]
            }
            Owner::Reads(disk) => self.senders_of(senders, disk, &[Way::Reads], group("readers")),
            Owner::Discards(disk) => {
                self.senders_of(senders, disk, &[Way::Discards], group("senders of discards"))
            }
            // A disk may have an encrypted partition and a plain one: direct writers and kernel threads both write to it.
            Owner::DirectWrites(disk) => {
                let ways = [Way::DirectWrites, Way::WritesPassedOn];
                self.senders_of(senders, disk, &ways, group("direct writers"))
            }
            Owner::PassedOn(disk) => {
                let ways = [Way::WritesPassedOn, Way::DirectWrites];
                self.senders_of(senders, disk, &ways, Process::kernel_threads())
            }
            Owner::Unseen => {
                vec![(group("processes that have ended (dirtied before the trace)"), Way::Writeback, 1.0)]
            }
        }
    }

    /// Those that sent to a disk, or to a device that it lies under, in any of the ways. Where none is known, it is the first way.
    fn senders_of(
        &self,
        senders: &[Sender],
        disk: DeviceNumber,
        ways: &[Way],
        unknown: Process,
    ) -> Vec<(Process, Way, f64)> {
        let disk = self.counted_as(disk);
        let sent = || senders.iter().filter(|sender| ways.contains(&sender.way));
        let at_disk: HashSet<(Option<u32>, Way)> =
            sent().filter(|s| s.device == disk).map(|s| (s.process.pid, s.way)).collect();
        // What a volume passes on in its sender's name is told again of the disk.
        let from_above =
            |s: &Sender| self.is_under(disk, s.device) && !at_disk.contains(&(s.process.pid, s.way));
        let senders: Vec<&Sender> = sent().filter(|s| s.device == disk || from_above(s)).collect();
        let all: u64 = senders.iter().map(|sender| sender.bytes).sum();
        if all == 0 {
            return vec![(unknown, ways[0], 1.0)];
        }
        let placed = |process: &Process| self.process(process.pid, &process.comm);
        // They are sorted, and those beyond sent next to nothing.
        let most = senders.iter().take(SENDERS_MAX);
        most.map(|s| (placed(&s.process), s.way, s.bytes as f64 / all as f64)).collect()
    }

    fn places(&self, tally: &Tally, wall_ns: f64) -> Vec<Site> {
        let mut sites: Vec<Site> = tally
            .sites
            .iter()
            .filter_map(|(id, sum)| {
                let (functions, phase) = self.sites.get(id.0 as usize)?.clone();
                Some(Site { functions, phase, share: tally.site_ns(sum) / wall_ns, waits: sum.waits })
            })
            .collect();
        sites.sort_by(|a, b| b.share.total_cmp(&a.share));
        sites.truncate(LISTED_MAX);
        sites
    }
}

impl Sums {
    pub(super) fn merge(&mut self, other: &Sums) {
        for (call, n) in &other.calls {
            *self.calls.entry(*call).or_default() += n;
        }
        self.latency.merge(&other.latency);
        self.wall_ns += other.wall_ns;
        self.tally.merge(&other.tally);
        for (class, theirs) in &other.short {
            let mine = self.short.entry(*class).or_default();
            mine.looked_into += theirs.looked_into;
            mine.looked_into_ns += theirs.looked_into_ns;
            mine.tally.merge(&theirs.tally);
            mine.skimmed += theirs.skimmed;
            mine.skimmed_ns += theirs.skimmed_ns;
        }
    }

    /// The time of all syncs: that of those only counted is as that of the others of their length; where there
    /// are none, it is not explained.
    fn with_skimmed(&self) -> Tally {
        let mut tally = self.tally.clone();
        for short in self.short.values().filter(|short| short.skimmed_ns > 0) {
            if short.looked_into_ns > 0 {
                let times = short.skimmed_ns as f64 / short.looked_into_ns as f64;
                tally.merge_times(&short.tally, times);
            } else {
                tally.add_plain(Phase::Unknown, short.skimmed_ns);
            }
        }
        tally
    }
}

fn rows(matrix: &Matrix, wall_ns: f64) -> Vec<Row> {
    let row = |phase: Phase| {
        let by_cause = &matrix[phase as usize];
        let share = by_cause.iter().sum::<f64>() / wall_ns;
        let waits_for_io = !matches!(phase, Phase::Cpu | Phase::RunQueue | Phase::DirtyPause);
        let causes = Cause::ALL
            .iter()
            .filter(|cause| waits_for_io && by_cause[**cause as usize] > 0.0)
            .map(|cause| (*cause, by_cause[*cause as usize] / wall_ns))
            .collect();
        Row { phase, share, causes }
    };
    Phase::ALL.iter().map(|phase| row(*phase)).filter(|row| row.share > 0.0).collect()
}

fn causes(rows: &[Row]) -> Vec<(Cause, f64)> {
    let of =
        |cause: Cause| rows.iter().flat_map(|row| &row.causes).filter(|c| c.0 == cause).map(|c| c.1).sum();
    Cause::ALL.iter().map(|cause| (*cause, of(*cause))).filter(|(_, share): &(_, f64)| *share > 0.0).collect()
}

/// Time is unexplained where neither the place is known nor the device was seen at work, and where it never was.
fn explained(matrix: &Matrix, wall_ns: f64) -> f64 {
    let unknown = |phase: Phase| matrix[phase as usize][Cause::Kernel as usize];
    let unseen: f64 = matrix.iter().map(|row| row[Cause::Unseen as usize]).sum();
    1.0 - (unknown(Phase::Unknown) + unknown(Phase::Other) + unseen) / wall_ns
}
