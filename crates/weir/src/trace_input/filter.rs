//! Which I/Os count: by when they began, device, process, class, length and place.
//!
//! An I/O is taken or left as a whole. So, where anything but the device decides, the events that statistics are made
//! of are not the recording's but those of the I/Os taken, put into their order in time.

use std::collections::{BinaryHeap, HashSet};
use std::ops::ControlFlow;

use weir_blocktrace::{
    Act, Bio, Class, ClassSet, Event, Flags, Item, Kind, Moment, Piece, Request, Sink, Times,
};
use weir_core::target::DeviceNumber;

use super::names::DeviceNames;

/// What is remembered to be put in order: enough for every I/O in flight and the events of each.
const HELD_MAX: usize = 1 << 16;

/// What is asked for; empty lists take everything.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Begun at this time after the first event or later, ns.
    pub from_ns: Option<u64>,
    /// Begun before this time, ns.
    pub to_ns: Option<u64>,
    /// Numbers or names.
    pub devices: Vec<String>,
    /// Ids or names of processes or threads.
    pub processes: Vec<String>,
    /// In any of these.
    pub classes: Vec<Class>,
    /// Length, both ends included.
    pub bytes: Option<(u64, u64)>,
    /// First sector, both ends included.
    pub sectors: Option<(u64, u64)>,
}

impl Filter {
    /// Whether everything is taken.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.only_devices()
    }

    /// Whether I/O of a device may count.
    pub fn takes_device(&self, device: DeviceNumber, names: &DeviceNames) -> bool {
        let (number, name) = (device.to_string(), names.get(&device));
        self.devices.is_empty() || self.devices.iter().any(|d| *d == number || Some(d) == name)
    }

    /// Whether nothing but the device decides.
    fn only_devices(&self) -> bool {
        let times = self.from_ns.is_none() && self.to_ns.is_none();
        let kinds = self.processes.is_empty() && self.classes.is_empty();
        times && kinds && self.bytes.is_none() && self.sectors.is_none()
    }
}

/// What decides about an I/O.
struct Subject<'a> {
    device: DeviceNumber,
    flags: Flags,
    sector: u64,
    bytes: u32,
    pid: u32,
    times: &'a Times,
}

/// Passes on what a filter takes.
pub struct Filtered<'a, S> {
    filter: &'a Filter,
    names: &'a DeviceNames,
    pids: HashSet<u32>,
    start_ns: Option<u64>,
    /// The latest event.
    last_ns: u64,
    ended_ns: Option<u64>,
    held: BinaryHeap<Held>,
    order: u64,
    inner: S,
}

impl<'a, S: Sink> Filtered<'a, S> {
    /// In front of a sink.
    pub fn new(filter: &'a Filter, names: &'a DeviceNames, inner: S) -> Filtered<'a, S> {
        let pids = filter.processes.iter().filter_map(|p| p.parse().ok()).collect();
        Filtered {
            filter,
            names,
            pids,
            start_ns: None,
            last_ns: 0,
            ended_ns: None,
            held: BinaryHeap::new(),
            order: 0,
            inner,
        }
    }

    /// Passes on what is held, and when what was asked for ended; the sink.
    pub fn finish(mut self) -> S {
        while self.pass_on() {}
        let cut_ns = self.filter.to_ns.zip(self.start_ns).map(|(to, start_ns)| start_ns.saturating_add(to));
        // What was asked for may go beyond the end of the recording.
        let seen_ns = self.ended_ns.unwrap_or(self.last_ns);
        let ended_ns = cut_ns.filter(|cut_ns| *cut_ns <= seen_ns).or(self.ended_ns);
        ended_ns.into_iter().for_each(|time_ns| self.inner.item(&Item::Ended { time_ns }));
        self.inner
    }

    /// The first event: from here on `--from` counts.
    fn begin(&mut self, time_ns: u64) {
        self.start_ns = Some(time_ns);
        if let Some(from) = self.filter.from_ns {
            self.inner.item(&Item::Begun { time_ns: time_ns.saturating_add(from), device: None });
        }
    }

    fn takes_device(&self, device: DeviceNumber) -> bool {
        self.filter.takes_device(device, self.names)
    }

    /// Whether the recording's own events of a device go on as they are.
    fn passes_events_of(&self, device: DeviceNumber) -> bool {
        self.filter.only_devices() && self.takes_device(device)
    }

    fn takes_time(&self, time_ns: u64) -> bool {
        let after_ns = time_ns.saturating_sub(self.start_ns.unwrap_or(time_ns));
        self.filter.from_ns.is_none_or(|from| after_ns >= from)
            && self.filter.to_ns.is_none_or(|to| after_ns < to)
    }

    fn takes(&self, subject: &Subject) -> bool {
        let filter = self.filter;
        let moments = [Moment::Queue, Moment::GetRequest, Moment::Insert, Moment::Merge, Moment::Issue];
        let begun_ns = moments.into_iter().find_map(|m| subject.times.get(m));
        let classes = ClassSet::of(subject.flags, subject.bytes);
        let within = |range: Option<(u64, u64)>, value| range.is_none_or(|(a, b)| a <= value && value <= b);
        (filter.classes.is_empty() || filter.classes.iter().any(|class| classes.has(*class)))
            && within(filter.bytes, u64::from(subject.bytes))
            && within(filter.sectors, subject.sector)
            && (filter.processes.is_empty() || self.pids.contains(&subject.pid))
            && begun_ns.or(subject.times.get(Moment::Complete)).is_none_or(|ns| self.takes_time(ns))
            && self.takes_device(subject.device)
    }

    fn hold(&mut self, time_ns: u64, what: What) {
        self.order += 1;
        self.held.push(Held { time_ns, order: self.order, what });
        if self.held.len() > HELD_MAX {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) -> bool {
        let Some(next) = self.held.pop() else { return false };
        match next.what {
            What::Event(event) => self.inner.event(&event),
            What::Piece(piece) => self.inner.piece(&piece),
            What::Request(request) => self.inner.request(&request),
            What::Bio(bio) => self.inner.bio(&bio),
        }
        true
    }

    /// Holds the events that `times` tell of, each as an act.
    fn hold_events(&mut self, like: Event, times: &Times, acts: &[(Moment, Act)]) {
        for (moment, act) in acts {
            if let Some(time_ns) = times.get(*moment) {
                self.hold(time_ns, What::Event(Event { time_ns, act: *act, ..like }));
            }
        }
    }
}

impl<S: Sink> Sink for Filtered<'_, S> {
    fn piece(&mut self, piece: &Piece) {
        let Piece { device, flags, sector, bytes, pid, ref times, .. } = *piece;
        if !self.takes(&Subject { device, flags, sector, bytes, pid, times }) {
            return;
        }
        if self.filter.only_devices() {
            return self.inner.piece(piece);
        }
        let queued = if piece.kind == Kind::Split { Act::Split } else { Act::Queue };
        let acts = [
            (Moment::Queue, queued),
            (Moment::GetRequest, Act::GetRequest),
            (Moment::Insert, Act::Insert),
            (Moment::Merge, Act::BackMerge),
        ];
        // A merged bio's request got its own G and I.
        let merged = piece.kind == Kind::Merged;
        let own = acts
            .map(|(m, act)| (m, act))
            .into_iter()
            .filter(|(m, _)| !merged || matches!(m, Moment::Queue | Moment::Merge));
        let like = event_like(device, flags, sector, bytes, pid, piece.cgroup);
        self.hold_events(like, times, &own.collect::<Vec<_>>());
        self.hold(times.get(Moment::Complete).unwrap_or(0), What::Piece(*piece));
    }

    fn request(&mut self, request: &Request) {
        let Request { device, flags, sector, bytes, pid, ref times, .. } = *request;
        if !self.takes(&Subject { device, flags, sector, bytes, pid, times }) {
            return;
        }
        if self.filter.only_devices() {
            return self.inner.request(request);
        }
        let like = event_like(device, flags, sector, bytes, pid, request.cgroup);
        self.hold_events(like, times, &[(Moment::Issue, Act::Issue), (Moment::Complete, Act::Complete)]);
        self.hold(times.get(Moment::Complete).unwrap_or(0), What::Request(*request));
    }

    fn bio(&mut self, bio: &Bio) {
        let Bio { device, flags, sector, bytes, pid, ref times, .. } = *bio;
        if !self.takes(&Subject { device, flags, sector, bytes, pid, times }) {
            return;
        }
        if self.filter.only_devices() {
            return self.inner.bio(bio);
        }
        self.hold(times.get(Moment::Complete).unwrap_or(0), What::Bio(*bio));
    }

    fn event(&mut self, event: &Event) {
        if self.start_ns.is_none() {
            self.begin(event.time_ns);
        }
        self.last_ns = self.last_ns.max(event.time_ns);
        if self.filter.only_devices() {
            if self.takes_device(event.device) {
                self.inner.event(event);
            }
            return;
        }
        // Plugs belong to no I/O, but to a task and a time.
        let plug = matches!(event.act, Act::Plug | Act::Unplug | Act::UnplugTimer);
        let pid = self.filter.processes.is_empty() || self.pids.contains(&event.pid);
        if plug && pid && self.takes_time(event.time_ns) && self.takes_device(event.device) {
            self.hold(event.time_ns, What::Event(*event));
        }
    }

    fn piece_lost(&mut self, device: DeviceNumber) {
        if self.passes_events_of(device) {
            self.inner.piece_lost(device);
        }
    }

    fn request_lost(&mut self, device: DeviceNumber) {
        if self.passes_events_of(device) {
            self.inner.request_lost(device);
        }
    }

    fn item(&mut self, item: &Item) {
        if let Item::Process { pid, process, name } = item
            && !self.filter.processes.is_empty()
        {
            // A process is told of before its threads, as the first of them, whose id is its own.
            let is_asked_for = self.filter.processes.iter().any(|p| p == name || p.parse() == Ok(*pid));
            if is_asked_for || (process != pid && self.pids.contains(process)) {
                self.pids.insert(*pid);
            } else {
                // The thread runs another program now.
                self.pids.remove(pid);
            }
        }
        match item {
            Item::Begun { .. } if self.filter.from_ns.is_some() => {}
            Item::Ended { time_ns } => self.ended_ns = Some(*time_ns),
            _ => self.inner.item(item),
        }
    }

    fn goes_on(&self) -> ControlFlow<()> {
        self.inner.goes_on()
    }
}

fn event_like(device: DeviceNumber, flags: Flags, sector: u64, bytes: u32, pid: u32, cgroup: u64) -> Event {
    Event { sector, bytes, flags, device, pid, cgroup, ..Event::default() }
}

/// Waits for its turn: the earliest first, those of one time in the order they came.
struct Held {
    time_ns: u64,
    order: u64,
    what: What,
}

enum What {
    Event(Event),
    Piece(Piece),
    Request(Request),
    Bio(Bio),
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        (other.time_ns, other.order).cmp(&(self.time_ns, self.order))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}

#[cfg(test)]
mod tests {
    use weir_blocktrace::Collector;

    use super::*;

    #[test]
    fn a_process_is_all_of_its_threads() {
        let told = [
            (100, 100, "mysqld"),
            (101, 100, "connection"),
            (102, 100, "ib_io_rd-1"),
            (200, 200, "cp"),
            // Its process is not known.
            (300, 0, "mysqld"),
            (301, 0, "connection"),
        ];
        let cases: [(&str, &[u32]); 5] = [
            ("mysqld", &[100, 101, 102, 300]),
            ("100", &[100, 101, 102]),
            ("connection", &[101, 301]),
            ("102", &[102]),
            ("cp", &[200]),
        ];
        for (asked, expected) in cases {
            let filter = Filter { processes: vec![asked.to_string()], ..Filter::default() };
            let names = DeviceNames::default();
            let mut filtered = Filtered::new(&filter, &names, Collector::new());
            let mut tell = |pid, process, name: &str| {
                filtered.item(&Item::Process { pid, process, name: name.to_string() });
                let mut taken: Vec<u32> = filtered.pids.iter().copied().collect();
                taken.sort_unstable();
                taken
            };
            let mut taken = Vec::new();
            for (pid, process, name) in told {
                taken = tell(pid, process, name);
            }
            assert_eq!(taken, expected, "{asked}");
        }
    }
}
