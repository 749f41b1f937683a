//! Lives of I/Os, as the matcher puts them together from events.

use std::ops::ControlFlow;

use super::event::{Event, Flags, Item};
use super::stage::{Moment, Stage};
use weir_core::target::DeviceNumber;

/// When each [`Moment`] of a life was, ns; moments that did not happen or were not seen are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times([u64; 6]);

/// In place of the time of a moment that did not happen or was not seen.
pub(super) const ABSENT: u64 = u64::MAX;

impl Default for Times {
    fn default() -> Self {
        Times([ABSENT; 6])
    }
}

impl Times {
    /// All moments in their order, [`ABSENT`] where they were not.
    #[inline]
    pub(super) fn of(times_ns: [u64; 6]) -> Times {
        Times(times_ns)
    }

    /// When it was, if it was.
    #[inline]
    pub fn get(&self, moment: Moment) -> Option<u64> {
        let time_ns = self.0[moment as usize];
        (time_ns != ABSENT).then_some(time_ns)
    }

    /// Says when it was.
    #[inline]
    pub fn set(&mut self, moment: Moment, time_ns: u64) {
        self.0[moment as usize] = time_ns;
    }

    /// How long a stage took, ns; nothing where one of its ends is absent, or the stage does not apply: G2I and G2D
    /// exclude each other.
    #[inline]
    pub fn stage(&self, stage: Stage) -> Option<u64> {
        if stage == Stage::G2D && self.get(Moment::Insert).is_some() {
            return None;
        }
        let (from, to) = stage.ends();
        self.get(to)?.checked_sub(self.get(from)?)
    }

    /// When it was, where that is known to be known.
    #[inline]
    pub(super) fn raw(&self, moment: Moment) -> u64 {
        self.0[moment as usize]
    }

    /// Which moments are known: bit `moment as u8` for each.
    #[inline]
    pub fn known(&self) -> u8 {
        let bits = self.0.iter().enumerate();
        bits.fold(0, |known, (moment, &time_ns)| known | (u8::from(time_ns != ABSENT) << moment))
    }
}

/// How a piece came into its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole bio with a request of its own.
    Whole,
    /// A part of a bio that was split; it inherits the bio's Q.
    Split,
    /// A bio (or part of one) merged into another's request.
    Merged,
}

/// The unit of stage statistics: a bio, or a part of it after splits, from its Q to its true end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Device.
    pub device: DeviceNumber,
    /// Kind of I/O, as at Q (as at D where there was no Q).
    pub flags: Flags,
    /// First sector (512 bytes).
    pub sector: u64,
    /// Length of this piece.
    pub bytes: u32,
    /// Length of the request it travelled in.
    pub request_bytes: u32,
    /// Who sent it: the thread at Q.
    pub pid: u32,
    /// Its cgroup's id, 0 where unknown.
    pub cgroup: u64,
    /// How it came into its request.
    pub kind: Kind,
    /// When what happened.
    pub times: Times,
    /// Negative errno, 0 if none.
    pub error: i32,
    /// How often the driver gave its request back.
    pub requeues: u16,
    /// When the data was done, where a flush, or only the end of its sequence, followed (POSTFLUSH).
    pub data_done_ns: Option<u64>,
}

/// One request as the driver saw it: D to C, with all pieces in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Device.
    pub device: DeviceNumber,
    /// Kind of I/O, as at D.
    pub flags: Flags,
    /// First sector (512 bytes).
    pub sector: u64,
    /// Length at D.
    pub bytes: u32,
    /// Thread of the first piece, or of D where that is unknown.
    pub pid: u32,
    /// Cgroup id of the first piece, 0 where unknown.
    pub cgroup: u64,
    /// Pieces in it.
    pub pieces: u32,
    /// Q is the first piece's.
    pub times: Times,
    /// Negative errno, 0 if none.
    pub error: i32,
    /// How often the driver gave it back.
    pub requeues: u16,
    /// How many completions it took, flush sequences left out: more than one means partial completions.
    pub completions: u16,
}

/// A bio as its sender knows it, on the topmost device recorded: from its Q to the end of its last piece, through all
/// devices below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bio {
    /// Topmost device.
    pub device: DeviceNumber,
    /// Kind of I/O.
    pub flags: Flags,
    /// First sector there (512 bytes).
    pub sector: u64,
    /// Length.
    pub bytes: u32,
    /// Who sent it.
    pub pid: u32,
    /// Its cgroup's id, 0 where unknown.
    pub cgroup: u64,
    /// Pieces it was cut into.
    pub pieces: u32,
    /// Times it was remapped to a device below.
    pub remaps: u32,
    /// Q and C; other moments are the pieces'.
    pub times: Times,
    /// Negative errno, 0 if none.
    pub error: i32,
}

/// Takes what the matcher finds, in order of completion; events come in order of time, before what they complete.
pub trait Sink {
    /// A piece is done.
    fn piece(&mut self, piece: &Piece);
    /// A request is done.
    fn request(&mut self, request: &Request);
    /// A top-level bio is done.
    fn bio(&mut self, bio: &Bio);
    /// Something happened.
    fn event(&mut self, event: &Event);
    /// A piece whose Q was among the events never ends: the recording says no more of it.
    fn piece_lost(&mut self, _device: DeviceNumber) {}
    /// The same of a request that is at the driver.
    fn request_lost(&mut self, _device: DeviceNumber) {}
    /// The recording holds something beside events: a thread's name, say. Whoever reads the recording says so.
    fn item(&mut self, _item: &Item) {}
    /// The name of a device. The reader of the recording gives it before the first event.
    fn device_called(&mut self, _device: DeviceNumber, _name: &str) {}
    /// Whether it takes more; asked after every event. What cannot be written any longer breaks off the reading.
    fn goes_on(&self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn piece(&mut self, piece: &Piece) {
        (**self).piece(piece);
    }

    fn request(&mut self, request: &Request) {
        (**self).request(request);
    }

    fn bio(&mut self, bio: &Bio) {
        (**self).bio(bio);
    }

    fn event(&mut self, event: &Event) {
        (**self).event(event);
    }

    fn piece_lost(&mut self, device: DeviceNumber) {
        (**self).piece_lost(device);
    }

    fn request_lost(&mut self, device: DeviceNumber) {
        (**self).request_lost(device);
    }

    fn item(&mut self, item: &Item) {
        (**self).item(item);
    }

    fn device_called(&mut self, device: DeviceNumber, name: &str) {
        (**self).device_called(device, name);
    }

    fn goes_on(&self) -> ControlFlow<()> {
        (**self).goes_on()
    }
}
