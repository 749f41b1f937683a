//! What was sent to each device, from the events of a recording.
//!
//! An I/O is taken at its Q: what was asked of the device, at the time when it was asked, before plug, merges and scheduler
//! changed it; those of the target change the played I/O again. A recording without any Q of a device says what went to
//! its driver, and is played from its Ds.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use weir_core::target::DeviceNumber;
use weir_core::units::{SECTOR_BYTES, grouped};
use weir_core::workload::replay::{IO_BYTES_MAX, OFFSET_MAX, Recorded};

use crate::event::{Act, Event, Flags};
use crate::life::{Bio, Piece, Request, Sink};

/// I/Os that are kept, of all devices together: half a gigabyte.
pub const IOS_MAX: u64 = 20_000_000;
/// Devices kept apart; a recording that names more is damaged or hostile.
const DEVICES_MAX: usize = 256;
/// Requests at the driver of a device that are followed.
const AT_DRIVER_MAX: usize = 1 << 16;

/// Which events of the recording are played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// Q: as senders sent them.
    #[default]
    Queue,
    /// D: as they went to the driver.
    Issue,
}

/// I/Os that are not played, by the reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Discards and secure erases.
    pub discards: u64,
    /// Passthrough commands.
    pub passthrough: u64,
    /// Zeros that the device writes itself, where the recording says so.
    pub zeroes: u64,
    /// Commands without data that are no flushes: a zone's reset, say.
    pub without_data: u64,
    /// Longer than any transfer of data: zeros that the device writes itself, or nonsense.
    pub too_long: u64,
    /// Behind the end of any device.
    pub beyond: u64,
    /// Behind the last that is kept.
    pub too_many: u64,
}

/// Takes what was sent to devices in a window of time.
#[derive(Debug, Default)]
pub struct Sent {
    from_ns: u64,
    to_ns: Option<u64>,
    start_ns: Option<u64>,
    kept: u64,
    devices: BTreeMap<DeviceNumber, Device>,
    names: HashMap<DeviceNumber, String>,
}

#[derive(Debug, Default)]
struct Device {
    has_queued: bool,
    /// Where Ds are played: requests between D and C, by sector and whether they write, and whether the driver has given
    /// them back.
    at_driver: HashMap<(u64, bool), bool>,
    ios: Vec<Recorded>,
    left_out: LeftOut,
}

/// The I/Os of one device.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// Its number.
    pub device: DeviceNumber,
    /// `vda (254:0)`, or the number alone.
    pub label: String,
    /// Which events they are.
    pub from: From,
    /// In the order of the recording.
    pub ios: Vec<Recorded>,
    /// What is not among them.
    pub left_out: LeftOut,
}

/// Why there is no device to be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotChosen {
    /// Nothing was sent to any.
    #[error("the recording has no I/O that can be played")]
    None,
    /// Several, and none was named.
    #[error("the recording has I/O of several devices: {0}")]
    Several(String),
    /// Another one was named.
    #[error("the recording has no I/O of {wanted}; it has {has}")]
    Absent {
        /// As named.
        wanted: String,
        /// What there is.
        has: String,
    },
}

impl From {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            From::Queue => "as sent (Q)",
            From::Issue => "as issued to the driver (D)",
        }
    }
}

impl LeftOut {
    /// Reasons that occur, each with how often; empty where everything is played.
    pub fn reasons(&self) -> Vec<(u64, &'static str)> {
        let all = [
            (self.discards, "discards"),
            (self.passthrough, "passthrough commands"),
            (self.zeroes, "write-zeroes commands"),
            (self.without_data, "zone and other commands without data"),
            (self.too_long, "longer than 64 MiB"),
            (self.beyond, "behind the end of any device"),
            (self.too_many, "behind the first 20 million"),
        ];
        all.into_iter().filter(|(n, _)| *n > 0).collect()
    }
}

impl Sent {
    /// Takes what was sent from `from_ns` on and before `to_ns`, counted from the recording's first event.
    pub fn new(from_ns: u64, to_ns: Option<u64>) -> Sent {
        Sent { from_ns, to_ns, ..Sent::default() }
    }

    /// The I/Os of the device of this number or name; without one, of the only device.
    ///
    /// # Errors
    /// Where there is no such device, or not only one.
    pub fn choose(mut self, wanted: Option<&str>) -> Result<Chosen, NotChosen> {
        self.devices.retain(|_, device| !device.ios.is_empty());
        let found: Vec<DeviceNumber> = match wanted {
            None => self.devices.keys().copied().collect(),
            Some(wanted) => {
                let name = wanted.strip_prefix("/dev/").unwrap_or(wanted);
                let is_it = |device: &&DeviceNumber| {
                    device.to_string() == wanted
                        || self.names.get(device).is_some_and(|called| called == name)
                };
                self.devices.keys().filter(is_it).copied().collect()
            }
        };
        match (found.as_slice(), wanted) {
            ([], _) if self.devices.is_empty() => Err(NotChosen::None),
            ([], wanted) => {
                Err(NotChosen::Absent { wanted: wanted.unwrap_or_default().to_string(), has: self.list() })
            }
            ([device], _) => {
                let label = self.label(*device);
                let Device { has_queued, ios, left_out, .. } =
                    self.devices.remove(device).unwrap_or_default();
                let from = if has_queued { From::Queue } else { From::Issue };
                Ok(Chosen { device: *device, label, from, ios, left_out })
            }
            _ => Err(NotChosen::Several(self.list())),
        }
    }

    fn label(&self, device: DeviceNumber) -> String {
        self.names.get(&device).map_or_else(|| device.to_string(), |name| format!("{name} ({device})"))
    }

    fn list(&self) -> String {
        let one = |(number, device): (&DeviceNumber, &Device)| {
            format!("{} with {}", self.label(*number), grouped(device.ios.len() as u64))
        };
        self.devices.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn is_in_window(&mut self, time_ns: u64) -> bool {
        let start_ns = *self.start_ns.get_or_insert(time_ns);
        let since_ns = time_ns.saturating_sub(start_ns);
        since_ns >= self.from_ns && self.to_ns.is_none_or(|to_ns| since_ns < to_ns)
    }
}

impl Sink for Sent {
    fn piece(&mut self, _piece: &Piece) {}
    fn request(&mut self, _request: &Request) {}
    fn bio(&mut self, _bio: &Bio) {}

    fn event(&mut self, event: &Event) {
        let in_window = self.is_in_window(event.time_ns);
        if !in_window || !matches!(event.act, Act::Queue | Act::Issue | Act::Requeue | Act::Complete) {
            return;
        }
        let known = self.devices.len();
        if known == DEVICES_MAX && !self.devices.contains_key(&event.device) {
            return;
        }
        let device = self.devices.entry(event.device).or_default();
        match (event.act, device.has_queued) {
            (Act::Queue, true) => {}
            (Act::Queue, false) => {
                // What was under way when the recording began was seen from D on.
                self.kept -= device.ios.len() as u64;
                *device = Device { has_queued: true, ..Device::default() };
            }
            (_, true) => return,
            (Act::Issue, false) if device.is_issued_again(event) => return,
            (Act::Issue, false) => {}
            (act, false) => return device.leaves_driver(event, act == Act::Requeue),
        }
        match recorded(event, &mut device.left_out) {
            Some(_) if self.kept == IOS_MAX => device.left_out.too_many += 1,
            Some(io) => {
                self.kept += 1;
                device.ios.push(io);
            }
            None => {}
        }
    }

    fn device_called(&mut self, device: DeviceNumber, name: &str) {
        self.names.insert(device, name.to_string());
    }
}

impl Device {
    /// D: whether it is of a request that the driver has given back, which is no second I/O. Some are given back without
    /// ever having been issued.
    fn is_issued_again(&mut self, event: &Event) -> bool {
        let is_full = self.at_driver.len() >= AT_DRIVER_MAX;
        match self.at_driver.entry(place(event)) {
            Entry::Occupied(mut was_given_back) => was_given_back.insert(false),
            Entry::Vacant(entry) => {
                if !is_full {
                    entry.insert(false);
                }
                false
            }
        }
    }

    /// R or C.
    fn leaves_driver(&mut self, event: &Event, is_given_back: bool) {
        if !is_given_back {
            self.at_driver.remove(&place(event));
        } else if let Some(was_given_back) = self.at_driver.get_mut(&place(event)) {
            *was_given_back = true;
        }
    }
}

fn place(event: &Event) -> (u64, bool) {
    (event.sector, event.flags.has(Flags::WRITE))
}

/// The I/O of an event, where it can be played; counts it where not.
fn recorded(event: &Event, left_out: &mut LeftOut) -> Option<Recorded> {
    let Event { time_ns: at_ns, sector, bytes, flags, .. } = *event;
    let offset = if bytes == 0 { Some(0) } else { sector.checked_mul(SECTOR_BYTES) };
    let end = offset.and_then(|offset| offset.checked_add(u64::from(bytes)));
    let reason = if flags.has(Flags::PASSTHROUGH) {
        &mut left_out.passthrough
    } else if flags.has(Flags::DISCARD) {
        &mut left_out.discards
    } else if flags.has(Flags::ZEROES) {
        &mut left_out.zeroes
    } else if bytes == 0 && !flags.has(Flags::FLUSH) {
        &mut left_out.without_data
    } else if bytes > IO_BYTES_MAX {
        &mut left_out.too_long
    } else {
        match (offset, end) {
            (Some(offset), Some(end)) if end <= OFFSET_MAX => {
                return Some(Recorded {
                    at_ns,
                    offset,
                    bytes,
                    is_write: flags.has(Flags::WRITE),
                    flushes_first: flags.has(Flags::FLUSH),
                    is_durable: flags.has(Flags::FUA),
                });
            }
            _ => &mut left_out.beyond,
        }
    };
    *reason += 1;
    None
}
