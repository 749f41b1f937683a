//! From lives and events to an [`Analysis`], in memory that does not grow with the recording.

mod batch;
mod cells;
mod depth;
mod device;
mod plugs;
mod seeks;
mod senders;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use super::analysis::{Analysis, Sender, WallClock};
use super::class::{Class, ClassSet};
use super::event::{Act, Event, Item};
use super::life::{Bio, Piece, Request, Sink};
use super::matcher::Unmatched;
use super::stage::Moment;
use super::table::StageTable;
pub use cells::BLOCKS_MAX;
use device::DeviceCollector;
use senders::Senders;
use weir_core::target::DeviceNumber;

/// Devices kept apart; a recording that names more is damaged or hostile.
const DEVICES_MAX: usize = 256;
/// Places that spare the search for a device.
const RECENT: usize = 16;
const NOWHERE: usize = usize::MAX;
/// Thread names remembered.
const NAMES_MAX: usize = 1 << 16;

/// Collects what a [`super::Matcher`] finds. Several can work on different devices or recordings at once, and be
/// [merged](Collector::merge) in the end.
#[derive(Debug)]
pub struct Collector {
    totals: Analysis,
    devices: Vec<DeviceCollector>,
    /// When the recording of single devices began, ns.
    begun_ns: BTreeMap<DeviceNumber, u64>,
    /// Where the last remap came from.
    last_above: DeviceNumber,
    /// Devices of late and where they are, by some bits of their numbers.
    recent: [(DeviceNumber, usize); RECENT],
    names: HashMap<u32, String>,
    device_names: HashMap<DeviceNumber, String>,
    threads: Senders,
    cgroups: Senders,
    unsent: Senders,
}

impl Default for Collector {
    fn default() -> Self {
        Collector {
            totals: Analysis::default(),
            devices: Vec::new(),
            begun_ns: BTreeMap::new(),
            last_above: DeviceNumber::default(),
            recent: [(DeviceNumber::default(), NOWHERE); RECENT],
            names: HashMap::new(),
            device_names: HashMap::new(),
            threads: Senders::default(),
            cgroups: Senders::default(),
            unsent: Senders::default(),
        }
    }
}

/// Gives everything to two sinks: statistics and rows, say.
#[derive(Debug)]
pub struct Both<'a, A: ?Sized, B: ?Sized>(pub &'a mut A, pub &'a mut B);

impl Collector {
    /// One that has seen nothing.
    pub fn new() -> Collector {
        Collector::default()
    }

    /// Says what a device is called.
    pub fn name_device(&mut self, device: DeviceNumber, name: &str) {
        self.device_names.insert(device, name.to_string());
    }

    /// Says what a thread is called from now on.
    pub fn name_thread(&mut self, pid: u32, name: &str) {
        if self.names.len() < NAMES_MAX || self.names.contains_key(&pid) {
            self.names.insert(pid, name.to_string());
        }
        self.threads.name(u64::from(pid), name);
    }

    /// Adds all that `other` has seen. Time-weighted figures add up only where the two have seen different devices,
    /// or different stretches of time.
    pub fn merge(&mut self, other: Collector) {
        let mut other = other;
        self.totals.events_of_further_devices += other.totals.events_of_further_devices;
        self.totals.wall_clock = self.totals.wall_clock.or(other.totals.wall_clock);
        self.totals.counts_losses |= other.totals.counts_losses;
        other.begun_ns.iter().for_each(|(device, time_ns)| self.began(Some(*device), *time_ns));
        other.totals.extent.begun_ns.iter().for_each(|time_ns| self.began(None, *time_ns));
        self.totals.extent.ended_ns = self.totals.extent.ended_ns.max(other.totals.extent.ended_ns);
        self.totals.merge_table(std::mem::take(&mut other.totals.table));
        for device in other.devices {
            match self.devices.iter_mut().find(|d| d.number() == device.number()) {
                Some(mine) => mine.merge(device),
                None => self.devices.push(device),
            }
        }
        self.names.extend(other.names);
        self.device_names.extend(other.device_names);
        self.threads.merge(other.threads);
        self.cgroups.merge(other.cgroups);
        self.unsent.merge(other.unsent);
    }

    /// What was seen, with what the matcher says became of every event.
    pub fn finish(self, unmatched: Unmatched) -> Analysis {
        let mut analysis = self.totals;
        let mut table = StageTable::default();
        let ended_ns = analysis.extent.ended_ns;
        analysis.devices =
            self.devices.into_iter().map(|device| device.finish(ended_ns, &mut table)).collect();
        let first_begun_ns = self.begun_ns.into_values().min();
        analysis.extent.begun_ns = analysis.extent.begun_ns.or(first_begun_ns);
        analysis.start_ns = analysis.devices.iter().map(|d| d.start_ns).min().unwrap_or(0);
        analysis.end_ns = analysis.devices.iter().map(|d| d.end_ns).max().unwrap_or(0);
        let of_devices: u64 = analysis.devices.iter().map(|d| d.events.all() + d.plugs.all()).sum();
        analysis.events = of_devices + analysis.events_of_further_devices;
        analysis.take_accounts(unmatched);
        for device in &mut analysis.devices {
            device.name = self.device_names.get(&device.device).cloned();
        }
        analysis.devices.sort_by_key(|d| d.device);
        analysis.merge_table(table);
        analysis.threads = self.threads.finish();
        // Nobody in particular.
        let unsent = self.unsent.finish().into_iter();
        analysis.threads.extend(unsent.map(|sender| Sender { id: 0, members: 0, ..sender }));
        analysis.cgroups = self.cgroups.finish();
        analysis
    }

    /// A device's bios go on to another device.
    #[cold]
    fn stands_on_others(&mut self, number: DeviceNumber, time_ns: u64) {
        self.last_above = number;
        if let Some(device) = self.devices.iter_mut().find(|d| d.number() == number) {
            device.stands_on_others(time_ns);
        }
    }

    #[inline]
    fn device(&mut self, number: DeviceNumber) -> Option<&mut DeviceCollector> {
        let place = place_of(number);
        let (known, at) = self.recent[place];
        let at = if known == number && at != NOWHERE { at } else { self.find(number, place)? };
        self.devices.get_mut(at)
    }

    /// Recording began, of one device or of all: the earliest counts.
    fn began(&mut self, device: Option<DeviceNumber>, time_ns: u64) {
        match device {
            Some(device) if self.begun_ns.len() < DEVICES_MAX || self.begun_ns.contains_key(&device) => {
                let known_ns = self.begun_ns.entry(device).or_insert(time_ns);
                *known_ns = time_ns.min(*known_ns);
            }
            Some(_) => {}
            None => {
                let known_ns = self.totals.extent.begun_ns.get_or_insert(time_ns);
                *known_ns = time_ns.min(*known_ns);
            }
        }
    }

    #[cold]
    fn find(&mut self, number: DeviceNumber, place: usize) -> Option<usize> {
        let found = self.devices.iter().position(|device| device.number() == number);
        if found.is_none() && self.devices.len() < DEVICES_MAX {
            let begun_ns = self.begun_ns.get(&number).copied().or(self.totals.extent.begun_ns);
            self.devices.push(DeviceCollector::new(number, begun_ns));
        }
        let at =
            found.or_else(|| (self.devices.last()?.number() == number).then(|| self.devices.len() - 1))?;
        self.recent[place] = (number, at);
        Some(at)
    }
}

#[inline]
fn place_of(number: DeviceNumber) -> usize {
    number.major.wrapping_mul(7).wrapping_add(number.minor) as usize % RECENT
}

/// In place of the sender of a piece whose Q was not seen.
fn unsent_name(classes: ClassSet) -> String {
    let name = if classes.has(Class::Flush) {
        "(flushes)"
    } else if classes.has(Class::Passthrough) {
        "(passthrough)"
    } else {
        "(Q not seen)"
    };
    name.to_string()
}

impl Sink for Collector {
    #[inline]
    fn piece(&mut self, piece: &Piece) {
        let Some(device) = self.device(piece.device) else { return };
        let known = piece.times.known();
        let classes = device.piece(piece, known);
        if piece.times.get(Moment::Queue).is_none() {
            // The task that issued it need not be its sender: workers issue flushes, and other tasks' requests.
            self.unsent.piece(u64::from(classes.0), piece, classes, known, || unsent_name(classes));
            return;
        }
        let names = &self.names;
        self.threads.piece(u64::from(piece.pid), piece, classes, known, || {
            names.get(&piece.pid).cloned().unwrap_or_default()
        });
        if piece.cgroup != 0 {
            self.cgroups.piece(piece.cgroup, piece, classes, known, String::new);
        }
    }

    #[inline]
    fn request(&mut self, request: &Request) {
        if let Some(device) = self.device(request.device) {
            device.request(request);
        }
    }

    #[inline]
    fn bio(&mut self, bio: &Bio) {
        if let Some(device) = self.device(bio.device) {
            device.bio(bio);
        }
    }

    #[inline(always)]
    fn event(&mut self, event: &Event) {
        if event.act == Act::Remap && event.from != self.last_above {
            self.stands_on_others(event.from, event.time_ns);
        }
        match self.device(event.device) {
            Some(device) => device.event(event),
            None => self.totals.events_of_further_devices += 1,
        }
    }

    fn piece_lost(&mut self, device: DeviceNumber) {
        if let Some(device) = self.device(device) {
            device.piece_lost();
        }
    }

    fn request_lost(&mut self, device: DeviceNumber) {
        if let Some(device) = self.device(device) {
            device.request_lost();
        }
    }

    /// Takes names of threads, the wall clock, begin and end. Events and losses are not counted here: the matcher hands them on.
    fn item(&mut self, item: &Item) {
        match item {
            Item::Process { pid, name, .. } => self.name_thread(*pid, name),
            Item::WallClock { time_ns, wall_ns } => {
                let clock = WallClock { time_ns: *time_ns, wall_ns: *wall_ns };
                self.totals.wall_clock.get_or_insert(clock);
            }
            Item::Begun { time_ns, device } => self.began(*device, *time_ns),
            Item::Ended { time_ns } => {
                self.totals.extent.ended_ns = self.totals.extent.ended_ns.max(Some(*time_ns));
            }
            Item::Dropped { .. } => self.totals.counts_losses = true,
            Item::Event(_) | Item::Message { .. } => {}
        }
    }
}

impl<A: Sink + ?Sized, B: Sink + ?Sized> Sink for Both<'_, A, B> {
    fn piece(&mut self, piece: &Piece) {
        self.0.piece(piece);
        self.1.piece(piece);
    }

    fn request(&mut self, request: &Request) {
        self.0.request(request);
        self.1.request(request);
    }

    fn bio(&mut self, bio: &Bio) {
        self.0.bio(bio);
        self.1.bio(bio);
    }

    fn event(&mut self, event: &Event) {
        self.0.event(event);
        self.1.event(event);
    }

    fn piece_lost(&mut self, device: DeviceNumber) {
        self.0.piece_lost(device);
        self.1.piece_lost(device);
    }

    fn request_lost(&mut self, device: DeviceNumber) {
        self.0.request_lost(device);
        self.1.request_lost(device);
    }

    fn item(&mut self, item: &Item) {
        self.0.item(item);
        self.1.item(item);
    }

    fn device_called(&mut self, device: DeviceNumber, name: &str) {
        self.0.device_called(device, name);
        self.1.device_called(device, name);
    }

    fn goes_on(&self) -> ControlFlow<()> {
        self.0.goes_on()?;
        self.1.goes_on()
    }
}
