//! Events as blktrace's records, version 7: for tools that read nothing else. Layout: the kernel's
//! include/uapi/linux/blktrace_api.h.

use crate::{Act, Event, Item};
use weir_core::target::DeviceNumber;

const MAGIC: u32 = 0x6561_7407;
const HEADER_BYTES: usize = 48;
/// Categories that say what happened, beside those that say what kind of I/O it is.
const QUEUE: u32 = 1 << 4;
const REQUEUE: u32 = 1 << 5;
const ISSUE: u32 = 1 << 6;
const COMPLETE: u32 = 1 << 7;
const NOTIFY: u32 = 1 << 10;
const NOTIFY_PROCESS: u32 = 0;
const NOTIFY_WALL_CLOCK: u32 = 1;

/// Writes the records of one CPU, whose sequences it counts: blktrace has one for each device.
#[derive(Debug, Default, Clone)]
pub struct BlktraceWriter {
    /// The device of the latest event comes first.
    sequences: Vec<(DeviceNumber, u32)>,
}

impl BlktraceWriter {
    /// Appends an event; false for acts that blktrace has no record of.
    pub fn event(&mut self, event: &Event, out: &mut Vec<u8>) -> bool {
        let Some((act, category)) = act_of(event.act) else { return false };
        let sequence = self.next_of(event.device);
        let action = act | (category | event.flags.0 & 0xffff) << 16;
        let unplugged = event.detail.to_be_bytes();
        let mut remap = [0; 16];
        remap[0..4].copy_from_slice(&number(event.from).to_be_bytes());
        remap[4..8].copy_from_slice(&number(event.device).to_be_bytes());
        remap[8..16].copy_from_slice(&event.detail.to_be_bytes());
        let payload: &[u8] = match event.act {
            Act::Unplug | Act::UnplugTimer | Act::Split => &unplugged,
            Act::Remap => &remap,
            _ => &[],
        };
        record(event, sequence, action, payload, out);
        true
    }

    fn next_of(&mut self, device: DeviceNumber) -> u32 {
        let at = self.sequences.iter().position(|(of, _)| *of == device).unwrap_or_else(|| {
            self.sequences.push((device, 0));
            self.sequences.len() - 1
        });
        self.sequences.swap(0, at);
        let sequence = &mut self.sequences[0].1;
        *sequence = sequence.wrapping_add(1);
        *sequence
    }

    /// Appends what is no event: a thread's name, or the wall clock. They are on the CPU and at the time of `at`.
    pub fn item(&mut self, item: &Item, at: &Event, out: &mut Vec<u8>) {
        match item {
            Item::Process { pid, name, .. } => {
                let mut payload = [0; 16];
                // The last byte ends the text.
                for (place, byte) in payload[..15].iter_mut().zip(name.bytes()) {
                    *place = byte;
                }
                let event = Event { pid: *pid, ..*at };
                record(&event, 0, NOTIFY_PROCESS | NOTIFY << 16, &payload, out);
            }
            Item::WallClock { time_ns, wall_ns } => {
                let (seconds, rest) = (*wall_ns / 1_000_000_000, *wall_ns % 1_000_000_000);
                let payload = [(seconds as u32).to_ne_bytes(), (rest as u32).to_ne_bytes()].concat();
                let event = Event { time_ns: *time_ns, pid: 0, ..*at };
                record(&event, 0, NOTIFY_WALL_CLOCK | NOTIFY << 16, &payload, out);
            }
            _ => {}
        }
    }
}

fn record(event: &Event, sequence: u32, action: u32, payload: &[u8], out: &mut Vec<u8>) {
    // An errno, as 16 bits hold it.
    let error = event.error as u16;
    out.reserve(HEADER_BYTES + payload.len());
    for word in [MAGIC, sequence] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    for word in [event.time_ns, event.sector] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    for word in [event.bytes, action, event.pid, number(event.device), event.cpu] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    for half in [error, payload.len() as u16] {
        out.extend_from_slice(&half.to_ne_bytes());
    }
    out.extend_from_slice(payload);
}

fn act_of(act: Act) -> Option<(u32, u32)> {
    Some(match act {
        Act::Queue => (1, QUEUE),
        Act::BackMerge | Act::RequestMerge => (2, QUEUE),
        Act::FrontMerge => (3, QUEUE),
        Act::GetRequest => (4, QUEUE),
        Act::SleepRequest => (5, QUEUE),
        Act::Requeue => (6, REQUEUE),
        Act::Issue => (7, ISSUE),
        Act::Complete => (8, COMPLETE),
        Act::Plug => (9, QUEUE),
        Act::Unplug => (10, QUEUE),
        Act::UnplugTimer => (11, QUEUE),
        Act::Insert => (12, QUEUE),
        Act::Split => (13, 0),
        Act::Bounce => (14, 0),
        Act::Remap => (15, 0),
        Act::Abort | Act::DriverData | Act::Unknown => return None,
    })
}

/// `major << 20 | minor` (linux/kdev_t.h).
fn number(device: DeviceNumber) -> u32 {
    device.major << 20 | device.minor & 0xf_ffff
}
