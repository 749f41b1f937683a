//! What a recording says, as data: filled by [`super::Collector`], stored as JSON, rendered by `report::trace`.
//!
//! Its size depends on the devices, classes, sizes and processes that occur and on fixed numbers of slices, never on
//! the number of events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::class::{Class, ClassSet};
use super::extent::Extent;
use super::grid::Grid;
use super::matcher::{Account, Reason, Unmatched};
use super::sketch::Sketch;
use super::stage::Stage;
use super::table::{SizeClass, StageTable};
use weir_core::stats::Distribution;
use weir_core::target::DeviceNumber;

/// Slices of the timeline.
pub(super) const SLICES_MAX: usize = 240;

/// One or several recordings, analysed. Times are those of the recording's clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Analysis {
    /// First event, ns.
    pub start_ns: u64,
    /// Last event, ns.
    pub end_ns: u64,
    /// When recording began and ended, where that is known.
    pub extent: Extent,
    /// Events seen, of all devices.
    pub events: u64,
    /// Events that the recorder says it lost, of whatever device; see [`Analysis::events_dropped`].
    pub dropped: u64,
    /// Whether the recorder counts what it loses, so that 0 means none.
    pub counts_losses: bool,
    /// Events of devices past the number that is kept apart; they are in no other figure.
    pub events_of_further_devices: u64,
    /// A moment on both clocks, where the recording has one.
    pub wall_clock: Option<WallClock>,
    /// In the order of their numbers.
    pub devices: Vec<Device>,
    /// Threads that sent I/O, the busiest first; [`Analysis::processes_by_name`] adds up those of one name.
    pub threads: Vec<Sender>,
    /// Cgroups that sent I/O, the busiest first; empty where the recording has none.
    pub cgroups: Vec<Sender>,
    /// Stage distributions by device, class and size, of pieces.
    pub table: StageTable,
}

/// A moment on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallClock {
    /// Recording's clock, ns.
    pub time_ns: u64,
    /// Since the epoch, ns.
    pub wall_ns: u64,
}

/// One device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Its number.
    pub device: DeviceNumber,
    /// Its name, where somebody knew it.
    pub name: Option<String>,
    /// First event, ns.
    pub start_ns: u64,
    /// Last event, ns.
    pub end_ns: u64,
    /// When its recording began and ended, where that is known.
    pub extent: Extent,
    /// Pieces done, of all classes: the unit of stage statistics.
    pub pieces: u64,
    /// Requests done, of all classes.
    pub requests: u64,
    /// Top-level bios done: those whose topmost device this is.
    pub bios: u64,
    /// Events by kind.
    pub events: Events,
    /// Pieces that ended with an error, by errno (positive).
    pub errors: BTreeMap<i32, u64>,
    /// Requests the driver gave back at least once.
    pub requests_requeued: u64,
    /// Requests that took more than one completion.
    pub requests_completed_in_parts: u64,
    /// Where the time of pieces went, by exact classes and size.
    pub parts: Vec<(CellKey, Parts)>,
    /// D2C and Q2C per request, by direction.
    pub request_latency: [RequestLatency; Direction::COUNT],
    /// Q to the end of the last piece per top-level bio, through all devices below, by direction.
    pub bio_latency: [Distribution; Direction::COUNT],
    /// Times between successive Qs.
    pub queue_gaps: Summary,
    /// Distances between successive bios.
    pub seeks_queue: Seeks,
    /// Distances between successive requests, as they go to the driver.
    pub seeks_issue: Seeks,
    /// Pieces between Q and their end.
    pub depth_queue: Depth,
    /// Requests between D and C.
    pub depth_issue: Depth,
    /// Sum over Qs of the requests between D and C that each found.
    pub issued_seen_by_queued_sum: u64,
    /// Plugs.
    pub plugs: Plugs,
    /// Requests by direction, and their data.
    pub traffic: [Traffic; Direction::COUNT],
    /// Length of reads and writes at D, sectors: smallest, largest.
    pub request_sectors: Option<(u64, u64)>,
    /// The course of time, at most 240 slices.
    pub timeline: Grid<Slice>,
    /// Stage sums and sketches in at most 64 blocks of time, for resampling.
    pub blocks: Grid<Block>,
    /// What became of every event.
    pub account: Account,
}

/// Events by kind, whether they could be matched or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Events {
    /// Q.
    pub queued: u64,
    /// Q of these that carry no data: flushes.
    pub queued_flushes: u64,
    /// G.
    pub allocated: u64,
    /// I.
    pub inserted: u64,
    /// D.
    pub issued: u64,
    /// D of these that carry no data: flushes.
    pub issued_flushes: u64,
    /// C.
    pub completed: u64,
    /// M.
    pub back_merges: u64,
    /// F.
    pub front_merges: u64,
    /// A request into another.
    pub request_merges: u64,
    /// X.
    pub splits: u64,
    /// A.
    pub remaps: u64,
    /// R.
    pub requeues: u64,
    /// S, B, aborts, drivers' own and unknown ones.
    pub others: u64,
}

impl Events {
    /// All of them; plugs are counted by [`Plugs`].
    pub fn all(&self) -> u64 {
        self.queued
            + self.allocated
            + self.inserted
            + self.issued
            + self.completed
            + self.merges()
            + self.request_merges
            + self.splits
            + self.remaps
            + self.requeues
            + self.others
    }

    /// Bios that share another's request.
    pub fn merges(&self) -> u64 {
        self.back_merges + self.front_merges
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Events) {
        let theirs = [
            (&mut self.queued, other.queued),
            (&mut self.queued_flushes, other.queued_flushes),
            (&mut self.allocated, other.allocated),
            (&mut self.inserted, other.inserted),
            (&mut self.issued, other.issued),
            (&mut self.issued_flushes, other.issued_flushes),
            (&mut self.completed, other.completed),
            (&mut self.back_merges, other.back_merges),
            (&mut self.front_merges, other.front_merges),
            (&mut self.request_merges, other.request_merges),
            (&mut self.splits, other.splits),
            (&mut self.remaps, other.remaps),
            (&mut self.requeues, other.requeues),
            (&mut self.others, other.others),
        ];
        for (mine, more) in theirs {
            *mine += more;
        }
    }
}

/// Which way data goes; unlike classes, directions exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Direction {
    /// From the device.
    Read,
    /// To the device.
    Write,
    /// Neither: the device forgets it.
    Discard,
    /// Without data: flushes and passthrough.
    Other,
}

impl Direction {
    /// How many there are.
    pub const COUNT: usize = 4;
    /// In the order of reports.
    pub const ALL: [Direction; Direction::COUNT] =
        [Direction::Read, Direction::Write, Direction::Discard, Direction::Other];

    /// Of an I/O of these classes. From a table: whether the next I/O reads or writes cannot be foretold.
    #[inline]
    pub fn of(classes: ClassSet) -> Direction {
        const OF_SET: [Direction; 256] = {
            let mut of_set = [Direction::Other; 256];
            let mut set = 0;
            while set < of_set.len() {
                of_set[set] = if set & (1 << Class::Read as u8) != 0 {
                    Direction::Read
                } else if set & (1 << Class::Write as u8) != 0 {
                    Direction::Write
                } else if set & (1 << Class::Discard as u8) != 0 {
                    Direction::Discard
                } else {
                    Direction::Other
                };
                set += 1;
            }
            of_set
        };
        OF_SET[usize::from(classes.0)]
    }

    /// As in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Discard => "discard",
            Direction::Other => "other",
        }
    }
}

/// What a device's pieces are distinguished by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CellKey {
    /// Exact set of classes.
    pub classes: ClassSet,
    /// Length.
    pub size: SizeClass,
}

/// Where the time of pieces went: each nanosecond between Q and C is in exactly one part.
///
/// A merged bio's time is Q2M, M2D and D2C; another's is Q2G, then G2I and I2D (G2D where nothing was inserted), then
/// D2C. So I2D here leaves merged bios out, which the stage table's I2D has in. What has Q and C only, as on
/// stacked devices, is `elsewhere`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parts {
    /// Pieces with Q and C: those counted here.
    pub pieces: u64,
    /// Make the request.
    pub q2g_ns: u64,
    /// Until insertion.
    pub g2i_ns: u64,
    /// From the request to the driver where nothing was inserted.
    pub g2d_ns: u64,
    /// In the scheduler.
    pub i2d_ns: u64,
    /// Until merged.
    pub q2m_ns: u64,
    /// From merged to the driver.
    pub m2d_ns: u64,
    /// Driver and device.
    pub d2c_ns: u64,
    /// Between moments that are not recorded.
    pub elsewhere_ns: u64,
}

impl Parts {
    /// The parts in the order of an I/O's life; no stage stands for `elsewhere`.
    pub fn each(&self) -> [(Option<Stage>, u64); 8] {
        [
            (Some(Stage::Q2G), self.q2g_ns),
            (Some(Stage::G2I), self.g2i_ns),
            (Some(Stage::G2D), self.g2d_ns),
            (Some(Stage::I2D), self.i2d_ns),
            (Some(Stage::Q2M), self.q2m_ns),
            (Some(Stage::M2D), self.m2d_ns),
            (Some(Stage::D2C), self.d2c_ns),
            (None, self.elsewhere_ns),
        ]
    }

    /// All of Q2C, ns.
    pub fn total_ns(&self) -> u64 {
        self.each().iter().map(|(_, ns)| ns).sum()
    }

    /// The share of a stage in Q2C, 0 to 1; nothing for stages that overlap others, and where no time was counted.
    pub fn share(&self, stage: Stage) -> Option<f64> {
        let total_ns = self.total_ns();
        let (_, ns) = self.each().into_iter().find(|(part, _)| *part == Some(stage))?;
        (ns > 0).then(|| ns as f64 / total_ns as f64)
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Parts) {
        self.pieces += other.pieces;
        self.q2g_ns += other.q2g_ns;
        self.g2i_ns += other.g2i_ns;
        self.g2d_ns += other.g2d_ns;
        self.i2d_ns += other.i2d_ns;
        self.q2m_ns += other.q2m_ns;
        self.m2d_ns += other.m2d_ns;
        self.d2c_ns += other.d2c_ns;
        self.elsewhere_ns += other.elsewhere_ns;
    }
}

/// Latency per request rather than per piece.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestLatency {
    /// Driver and device.
    pub d2c: Distribution,
    /// From the first bio's Q.
    pub q2c: Distribution,
}

/// Distances from the end of one I/O to the start of the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seeks {
    /// I/Os with data, the first left out.
    pub count: u64,
    /// Those that started where the one before ended.
    pub sequential: u64,
    /// Sum of the distances, either way, sectors.
    pub sum_sectors: u128,
    /// The distances other than 0, either way, sectors.
    pub sectors: Sketch,
    /// The most frequent of these distances, and how often it occurred at least.
    pub frequent: Option<(u64, u64)>,
}

/// How many were in flight.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Depth {
    /// How long there were 0, 1, 2… in flight, ns; the last place holds all above.
    pub time_ns: Vec<u64>,
    /// Sum over time of depth × ns.
    pub area_ns: u128,
    /// The most at once.
    pub max: u64,
    /// How often it went from none to some.
    pub active_periods: u64,
    /// The longest time with none, ns.
    pub idle_ns_max: u64,
    /// The longest time with some, ns.
    pub active_ns_max: u64,
    /// Seen by arrivals: sum over arrivals of how many were in flight already.
    pub seen_sum: u64,
    /// Arrivals.
    pub arrivals: u64,
}

/// Plugs: a task gathers I/O before it lets it go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plugs {
    /// P.
    pub plugs: u64,
    /// U: the task let go.
    pub unplugs: u64,
    /// UT: the task went to sleep.
    pub unplugs_by_schedule: u64,
    /// Requests let go by U.
    pub requests: u64,
    /// Requests let go by UT.
    pub requests_by_schedule: u64,
    /// Time in which at least one plug was set, ns.
    pub plugged_ns: u64,
}

/// Requests done, and their data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// Requests.
    pub requests: u64,
    /// Data, bytes.
    pub bytes: u64,
}

/// Who sends I/O: a thread, the threads of one name, or a cgroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sender {
    /// Thread, 0 where several are added up; or cgroup.
    pub id: u64,
    /// Name, empty where the recording has none.
    pub name: String,
    /// How many were added up.
    pub members: u64,
    /// Pieces, of all classes.
    pub pieces: u64,
    /// Pieces and data by direction.
    pub traffic: [Traffic; Direction::COUNT],
    /// Pieces that ended with an error.
    pub errors: u64,
    /// Stages of the pieces of class all.
    pub stages: [Summary; Stage::COUNT],
    /// Where their time went.
    pub parts: Parts,
    /// Q2C of the pieces of class all.
    pub q2c: Distribution,
    /// D2C of the pieces of class all.
    pub d2c: Distribution,
}

/// A distribution's exact figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Durations.
    pub count: u64,
    /// Their sum, ns.
    pub sum_ns: u64,
    /// Smallest, ns; 0 without any.
    pub min_ns: u64,
    /// Largest, ns.
    pub max_ns: u64,
}

/// A slice of the timeline; I/Os count where they end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slice {
    /// Pieces by direction.
    pub pieces: [u64; Direction::COUNT],
    /// Data by direction, bytes.
    pub bytes: [u64; Direction::COUNT],
    /// Sum of Q2C by direction, ns.
    pub q2c_sum_ns: [u64; Direction::COUNT],
    /// Q2C by direction, ns.
    pub q2c: [Sketch; Direction::COUNT],
    /// Sum over time of pieces between Q and C × ns.
    pub depth_queue_area_ns: u64,
    /// Sum over time of requests between D and C × ns.
    pub depth_issue_area_ns: u64,
}

/// A block of time, for resampling: what ended in it, by kind of I/O. Stages that are sums of others (Q2D, G2D*, G2C) are
/// left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Block {
    /// Stages of each kind of I/O, in no order.
    pub cells: Vec<(CellKey, [StageSketch; Stage::COUNT])>,
}

/// A stage of one kind of I/O in one block: the mean exactly, quantiles to within 12 %.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageSketch {
    /// Sum, ns.
    pub sum_ns: u64,
    /// Counts, ns.
    pub counts: Sketch,
}

impl Analysis {
    /// From the first event to the last, ns.
    pub fn span_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// When recording began and ended, ns; see [`Extent::around`].
    pub fn recorded(&self) -> (u64, u64) {
        self.extent.around(self.start_ns, self.end_ns)
    }

    /// How long was recorded, ns.
    pub fn recorded_ns(&self) -> u64 {
        let (begun_ns, ended_ns) = self.recorded();
        ended_ns.saturating_sub(begun_ns)
    }

    /// A device by number.
    pub fn device(&self, device: DeviceNumber) -> Option<&Device> {
        self.devices.iter().find(|d| d.device == device)
    }

    /// Events that no life could be made of, over all devices, by reason.
    pub fn unmatched(&self) -> BTreeMap<Reason, u64> {
        let mut sum = Account::default();
        self.devices.iter().for_each(|device| sum.merge(&device.account));
        sum.unmatched
    }

    /// Events that are missing: those the recorder says it lost, and gaps in its numbers.
    pub fn events_dropped(&self) -> u64 {
        self.dropped + self.devices.iter().map(|device| device.account.dropped).sum::<u64>()
    }

    /// Those of them that may be a device's: of what the recorder lost, nobody knows whose it was.
    pub fn events_dropped_of(&self, device: &Device) -> u64 {
        self.dropped.saturating_add(device.account.dropped)
    }

    /// Says what became of every event.
    pub(super) fn take_accounts(&mut self, unmatched: Unmatched) {
        self.dropped += unmatched.dropped;
        for (device, account) in unmatched.devices {
            let at = self.devices.iter().position(|d| d.device == device).unwrap_or_else(|| {
                self.devices.push(Device { device, extent: self.extent, ..Device::default() });
                self.devices.len() - 1
            });
            self.devices[at].account.merge(&account);
        }
    }

    /// Adds to the stage distributions.
    pub(super) fn merge_table(&mut self, table: StageTable) {
        if self.table.cells().next().is_none() {
            self.table = table;
        } else {
            self.table.merge(&table);
        }
    }

    /// Threads of one name added up, the busiest first; threads without a name stand for themselves.
    pub fn processes_by_name(&self) -> Vec<Sender> {
        let mut by_name: BTreeMap<(&str, u64), Sender> = BTreeMap::new();
        for thread in &self.threads {
            let own_id = if thread.name.is_empty() { thread.id } else { 0 };
            let sum = by_name.entry((&thread.name, own_id)).or_default();
            let id = if sum.members == 0 || sum.id == thread.id { thread.id } else { 0 };
            sum.merge(thread);
            sum.id = id;
        }
        let mut senders: Vec<Sender> = by_name.into_values().collect();
        senders.sort_by_key(|s| std::cmp::Reverse(s.pieces));
        senders
    }
}

impl Device {
    /// Where the time of a class went.
    pub fn parts_of(&self, takes: impl Fn(&CellKey) -> bool) -> Parts {
        let mut sum = Parts::default();
        self.parts.iter().filter(|(key, _)| takes(key)).for_each(|(_, parts)| sum.merge(parts));
        sum
    }

    /// Adds counts and latencies of `other`; what meters keep is not among them.
    pub(super) fn merge(&mut self, other: Device) {
        self.pieces += other.pieces;
        self.requests += other.requests;
        self.bios += other.bios;
        self.events.merge(&other.events);
        for (errno, n) in other.errors {
            *self.errors.entry(errno).or_default() += n;
        }
        self.requests_requeued += other.requests_requeued;
        self.requests_completed_in_parts += other.requests_completed_in_parts;
        self.queue_gaps.merge(&other.queue_gaps);
        self.issued_seen_by_queued_sum += other.issued_seen_by_queued_sum;
        for (mine, theirs) in self.traffic.iter_mut().zip(&other.traffic) {
            mine.merge(theirs);
        }
        self.request_sectors = match (self.request_sectors, other.request_sectors) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        self.timeline.merge(other.timeline, SLICES_MAX);
        self.account.merge(&other.account);
    }

    /// From its first event to its last, ns.
    pub fn span_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// When its recording began and ended, ns; see [`Extent::around`].
    pub fn recorded(&self) -> (u64, u64) {
        self.extent.around(self.start_ns, self.end_ns)
    }

    /// How long it was recorded, ns: what its rates are over.
    pub fn recorded_ns(&self) -> u64 {
        let (begun_ns, ended_ns) = self.recorded();
        ended_ns.saturating_sub(begun_ns)
    }

    /// `254:0`, or `vda (254:0)` where the name is known.
    pub fn label(&self) -> String {
        self.name.as_ref().map_or_else(|| self.device.to_string(), |name| format!("{name} ({})", self.device))
    }
}

impl Slice {
    /// Q2C of reads, writes and discards together, ns.
    pub fn q2c_of_data(&self) -> Sketch {
        let mut sum = Sketch::default();
        for direction in [Direction::Read, Direction::Write, Direction::Discard] {
            sum.merge(&self.q2c[direction as usize]);
        }
        sum
    }
}

impl Seeks {
    /// The middle distance, sectors; 0 where most are sequential.
    pub fn median_sectors(&self) -> u64 {
        let rank = self.count / 2;
        if rank < self.sequential { 0 } else { self.sectors.at_rank(rank - self.sequential) }
    }

    /// The most frequent distance, and how often it occurred at least.
    pub fn mode_sectors(&self) -> (u64, u64) {
        self.frequent.filter(|(_, n)| *n > self.sequential).unwrap_or((0, self.sequential))
    }

    /// The mean distance, sectors.
    pub fn mean_sectors(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_sectors as f64 / self.count as f64 }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Seeks) {
        self.count += other.count;
        self.sequential += other.sequential;
        self.sum_sectors += other.sum_sectors;
        self.sectors.merge(&other.sectors);
        self.frequent = match (self.frequent, other.frequent) {
            (Some((distance, n)), Some((same, more))) if distance == same => Some((distance, n + more)),
            (Some(mine), Some(theirs)) => Some(if mine.1 >= theirs.1 { mine } else { theirs }),
            (mine, theirs) => mine.or(theirs),
        };
    }
}

impl Depth {
    /// Mean over time.
    pub fn mean(&self) -> f64 {
        let time_ns: u64 = self.time_ns.iter().sum();
        if time_ns == 0 { 0.0 } else { self.area_ns as f64 / time_ns as f64 }
    }

    /// Time with none, ns.
    pub fn idle_ns(&self) -> u64 {
        self.time_ns.first().copied().unwrap_or(0)
    }

    /// Time with some, ns.
    pub fn active_ns(&self) -> u64 {
        self.time_ns.iter().skip(1).sum()
    }

    /// Depth that was not exceeded in a share (0 to 1) of the time.
    pub fn quantile(&self, share: f64) -> usize {
        let total_ns: u64 = self.time_ns.iter().sum();
        let mut passed_ns = 0;
        for (depth, ns) in self.time_ns.iter().enumerate() {
            passed_ns += ns;
            if passed_ns as f64 >= share * total_ns as f64 {
                return depth;
            }
        }
        0
    }

    /// Adds all of `other`, of another stretch of time.
    pub fn merge(&mut self, other: &Depth) {
        if self.time_ns.len() < other.time_ns.len() {
            self.time_ns.resize(other.time_ns.len(), 0);
        }
        for (mine, theirs) in self.time_ns.iter_mut().zip(&other.time_ns) {
            *mine += theirs;
        }
        self.area_ns += other.area_ns;
        self.max = self.max.max(other.max);
        self.active_periods += other.active_periods;
        self.idle_ns_max = self.idle_ns_max.max(other.idle_ns_max);
        self.active_ns_max = self.active_ns_max.max(other.active_ns_max);
        self.seen_sum += other.seen_sum;
        self.arrivals += other.arrivals;
    }
}

impl Summary {
    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Arithmetic mean, ns; 0 without any.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Summary) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
    }
}

impl Sender {
    /// Adds all of `other`; the name stays unless there is none.
    pub fn merge(&mut self, other: &Sender) {
        if self.name.is_empty() {
            self.name.clone_from(&other.name);
        }
        self.members += other.members;
        self.pieces += other.pieces;
        self.errors += other.errors;
        for (mine, theirs) in self.traffic.iter_mut().zip(&other.traffic) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.stages.iter_mut().zip(&other.stages) {
            mine.merge(theirs);
        }
        self.parts.merge(&other.parts);
        self.q2c.merge(&other.q2c);
        self.d2c.merge(&other.d2c);
    }
}

impl Traffic {
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Traffic) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }
}

impl Plugs {
    /// Events of plugs.
    pub fn all(&self) -> u64 {
        self.plugs + self.unplugs + self.unplugs_by_schedule
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Plugs) {
        self.plugs += other.plugs;
        self.unplugs += other.unplugs;
        self.unplugs_by_schedule += other.unplugs_by_schedule;
        self.requests += other.requests;
        self.requests_by_schedule += other.requests_by_schedule;
        self.plugged_ns += other.plugged_ns;
    }
}
