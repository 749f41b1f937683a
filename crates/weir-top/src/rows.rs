//! Which rows there are, in which order.

use std::cmp::Ordering;

use weir_blocktrace::DeviceFrame;
use weir_blocktrace::fsync::SlowSync;

use crate::pane::Pane;
use crate::sample::Process;

/// By which column rows are ordered, and whether from its other end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Order {
    /// A place in [`Rank::of`].
    pub column: usize,
    /// Names come from a to z and figures from the largest, or the other way round.
    pub reversed: bool,
}

/// What is chosen of a pane. A row is known by its name, so that it stays selected wherever it is sorted to.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// The selected row's name; of one that is gone, the row in its place is taken.
    pub selected: Option<String>,
    /// Where it was when it was last seen.
    pub place: usize,
    /// How rows are ordered.
    pub order: Order,
    /// What names must hold.
    pub filter: String,
}

/// What rows can be ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// Threads that wait inside a sync.
    Waiting,
    /// Syncs by the second.
    Syncs,
    /// The 99th percentile of a latency.
    Tail,
    /// Bytes written.
    Written,
    /// Bytes read.
    Read,
    /// A name.
    Name,
    /// I/Os by the second.
    Iops,
    /// Bytes by the second.
    Bytes,
    /// Share of the time with I/O in flight.
    Busy,
    /// When it happened, the last first.
    Time,
    /// How long it took.
    Length,
    /// As classes are always ordered.
    Class,
}

impl Rank {
    /// The columns of a pane.
    pub fn of(pane: Pane) -> &'static [Rank] {
        match pane {
            Pane::Devices => &[Rank::Iops, Rank::Bytes, Rank::Busy, Rank::Tail, Rank::Name],
            Pane::Classes => &[Rank::Class],
            Pane::Processes => {
                &[Rank::Waiting, Rank::Syncs, Rank::Tail, Rank::Written, Rank::Read, Rank::Name]
            }
            Pane::Slow => &[Rank::Length, Rank::Time, Rank::Name],
        }
    }

    /// In words, for the line that says how rows are ordered.
    pub fn name(self) -> &'static str {
        match self {
            Rank::Waiting => "waiting",
            Rank::Syncs => "syncs",
            Rank::Tail => "p99",
            Rank::Written => "written",
            Rank::Read => "read",
            Rank::Name => "name",
            Rank::Iops => "IOPS",
            Rank::Bytes => "MB/s",
            Rank::Busy => "busy",
            Rank::Time => "time",
            Rank::Length => "length",
            Rank::Class => "class",
        }
    }
}

/// The rank that a pane is ordered by.
pub fn rank(pane: Pane, choice: &Choice) -> Rank {
    let ranks = Rank::of(pane);
    ranks[choice.order.column % ranks.len()]
}

/// Whether a name holds a filter, in small or large letters.
pub fn holds(name: &str, filter: &str) -> bool {
    filter.is_empty() || name.to_lowercase().contains(&filter.to_lowercase())
}

/// What distinguishes a process from others.
pub fn id(process: &Process) -> String {
    match (process.pid, &process.unit) {
        (Some(pid), _) => pid.to_string(),
        // Of recorded processes those that are called alike are one, if they lie in one unit.
        (None, Some(unit)) => format!("{} {unit}", process.name),
        (None, None) => process.name.clone(),
    }
}

/// What distinguishes a slow sync from others.
pub fn slow_id(slow: &SlowSync) -> String {
    format!("{} {}", slow.tid, slow.start_ns)
}

pub fn devices<'a>(devices: &'a [DeviceFrame], choice: &Choice) -> Vec<&'a DeviceFrame> {
    let mut found: Vec<&DeviceFrame> =
        devices.iter().filter(|device| holds(&device.name, &choice.filter)).collect();
    let by = rank(Pane::Devices, choice);
    sort(
        &mut found,
        choice.order,
        |a, b| match by {
            Rank::Bytes => larger(a.bytes_per_second(), b.bytes_per_second()),
            Rank::Busy => larger(a.load.util_percent, b.load.util_percent),
            Rank::Tail => larger(a.tail_ns().unwrap_or(0.0), b.tail_ns().unwrap_or(0.0)),
            Rank::Name => a.name.cmp(&b.name),
            _ => larger(a.iops(), b.iops()),
        },
        |a, b| a.number.cmp(&b.number),
    );
    found
}

pub fn processes<'a>(processes: &'a [Process], length_ns: u64, choice: &Choice) -> Vec<&'a Process> {
    let fits = |process: &&Process| {
        let unit = process.unit.as_deref().unwrap_or_default();
        [&process.name, unit, &id(process)].iter().any(|text| holds(text, &choice.filter))
    };
    let mut found: Vec<&Process> = processes.iter().filter(fits).collect();
    let by = rank(Pane::Processes, choice);
    let tail = |p: &Process| p.syncs.as_ref().map_or(0.0, |syncs| syncs.latency.p99_ns as f64);
    sort(
        &mut found,
        choice.order,
        |a, b| match by {
            Rank::Syncs => larger(a.syncs_per_second(length_ns), b.syncs_per_second(length_ns)),
            Rank::Tail => larger(tail(a), tail(b)),
            Rank::Written => larger(a.written.unwrap_or(0.0), b.written.unwrap_or(0.0)),
            Rank::Read => larger(a.read.unwrap_or(0.0), b.read.unwrap_or(0.0)),
            Rank::Name => a.name.cmp(&b.name),
            _ => larger(a.waiting(length_ns), b.waiting(length_ns)).then(larger(a.moved(), b.moved())),
        },
        |a, b| larger(a.moved(), b.moved()).then(a.pid.cmp(&b.pid)),
    );
    found
}

pub fn slow<'a>(
    mut found: Vec<(&'a str, &'a SlowSync)>,
    choice: &Choice,
    mut device_name: impl FnMut(&SlowSync) -> String,
) -> Vec<(&'a str, &'a SlowSync)> {
    let mut fits = |slow: &SlowSync| {
        let device = device_name(slow);
        let pid = slow.process.pid.map(|pid| pid.to_string()).unwrap_or_default();
        [&slow.process.comm, &device, &pid].iter().any(|text| holds(text, &choice.filter))
    };
    found.retain(|(_, slow)| choice.filter.is_empty() || fits(slow));
    let by = rank(Pane::Slow, choice);
    let end = |slow: &SlowSync| slow.start_ns.saturating_add(slow.took_ns);
    sort(
        &mut found,
        choice.order,
        |(_, a), (_, b)| match by {
            Rank::Time => end(b).cmp(&end(a)),
            Rank::Name => a.process.comm.cmp(&b.process.comm),
            _ => b.took_ns.cmp(&a.took_ns),
        },
        |(_, a), (_, b)| (b.start_ns, b.tid).cmp(&(a.start_ns, a.tid)),
    );
    found
}

/// The larger first.
fn larger(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}

/// By a column, rows that are alike there always in the same order.
fn sort<T>(rows: &mut [T], order: Order, by: impl Fn(&T, &T) -> Ordering, then: impl Fn(&T, &T) -> Ordering) {
    rows.sort_by(|a, b| {
        let first = by(a, b);
        if order.reversed { first.reverse() } else { first }.then_with(|| then(a, b))
    });
}
