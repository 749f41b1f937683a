//! One event of the block layer's tracepoints, as every format of recording says it.

use weir_core::target::DeviceNumber;

/// What happened; the letters are blktrace's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Act {
    /// Q: a bio enters the block layer.
    Queue,
    /// M: a bio was appended to a request that waits.
    BackMerge,
    /// F: a bio was put in front of a request that waits.
    FrontMerge,
    /// G: a request was allocated for a bio.
    GetRequest,
    /// S: a submitter sleeps until a request is free (kernels before 5).
    SleepRequest,
    /// R: the driver gave a request back.
    Requeue,
    /// D: a request went to the driver.
    Issue,
    /// C: a request, or a part of it, is done.
    Complete,
    /// P: a plug was set.
    Plug,
    /// U: a plug was taken away; `detail` requests were in it.
    Unplug,
    /// UT: a plug was flushed because its task went to sleep.
    UnplugTimer,
    /// I: a request went into the scheduler.
    Insert,
    /// X: a bio was cut; the rest starts at sector `detail`.
    Split,
    /// B: a bio was bounced (old kernels).
    Bounce,
    /// A: a bio goes on to another device; it came from `from`, sector `detail`.
    Remap,
    /// A request was aborted.
    Abort,
    /// A driver's own data.
    DriverData,
    /// A request was merged into another request.
    RequestMerge,
    /// An act this version does not know.
    #[default]
    Unknown,
}

impl Act {
    /// Every act, in the order of declaration.
    pub const ALL: [Act; 19] = [
        Act::Queue,
        Act::BackMerge,
        Act::FrontMerge,
        Act::GetRequest,
        Act::SleepRequest,
        Act::Requeue,
        Act::Issue,
        Act::Complete,
        Act::Plug,
        Act::Unplug,
        Act::UnplugTimer,
        Act::Insert,
        Act::Split,
        Act::Bounce,
        Act::Remap,
        Act::Abort,
        Act::DriverData,
        Act::RequestMerge,
        Act::Unknown,
    ];
}

/// What kind of I/O an event is about: blktrace's categories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flags(pub u32);

impl Flags {
    /// Reads data.
    pub const READ: Flags = Flags(1);
    /// Writes data.
    pub const WRITE: Flags = Flags(1 << 1);
    /// Empties the device's cache, first or only (PREFLUSH or a flush).
    pub const FLUSH: Flags = Flags(1 << 2);
    /// Somebody waits for it.
    pub const SYNC: Flags = Flags(1 << 3);
    /// Passthrough: a command that is not from a file system.
    pub const PASSTHROUGH: Flags = Flags(1 << 9);
    /// Read-ahead.
    pub const AHEAD: Flags = Flags(1 << 11);
    /// A file system's metadata.
    pub const METADATA: Flags = Flags(1 << 12);
    /// Discard, secure erase.
    pub const DISCARD: Flags = Flags(1 << 13);
    /// Durable before it is done (FUA).
    pub const FUA: Flags = Flags(1 << 15);
    /// A write of zeros that the device makes itself: no data is moved. blktrace's version 7 does not say so.
    pub const ZEROES: Flags = Flags(1 << 22);

    /// Whether all bits of `other` are set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One event. Times are nanoseconds of the recording's clock (CLOCK_MONOTONIC for blktrace), sectors 512 bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Event {
    /// When, ns.
    pub time_ns: u64,
    /// First sector.
    pub sector: u64,
    /// Length.
    pub bytes: u32,
    /// What happened.
    pub act: Act,
    /// To what kind of I/O.
    pub flags: Flags,
    /// On which device (a whole disk or a mapped device; partitions are remapped before Q).
    pub device: DeviceNumber,
    /// The thread that did it.
    pub pid: u32,
    /// The CPU it happened on.
    pub cpu: u32,
    /// Error of a completion, a negative errno; 0 if none.
    pub error: i32,
    /// Cgroup id, 0 where the recording has none.
    pub cgroup: u64,
    /// Unplug: requests; split: sector at which the rest starts; remap: sector on `from`.
    pub detail: u64,
    /// Remap: the device it came from.
    pub from: DeviceNumber,
    /// What tells this bio (at Q, X, G, M, F, A and a bio's own C) or this request (at I, D, R, C and a request merge)
    /// from all others in flight, 0 where the recording cannot say.
    pub identity: u64,
    /// The other party's identity, 0 where the recording cannot say. At I, D, R and C the request's first bio; at X
    /// the bio that was cut (`identity` is then its front piece); at A the bio above that this one serves; at G, M
    /// and F the request that took the bio.
    pub other: u64,
    /// The recorder's number of this event on its CPU, 0 where it has none.
    pub sequence: u32,
}

/// What recordings hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// An event of the block layer.
    Event(Event),
    /// The name of a thread.
    Process {
        /// Thread.
        pid: u32,
        /// Its process; 0 where that is not known.
        process: u32,
        /// Its name when it was seen.
        name: String,
    },
    /// The wall clock, at a time of the recording's clock.
    WallClock {
        /// Recording's clock, ns.
        time_ns: u64,
        /// Since the epoch, ns.
        wall_ns: u64,
    },
    /// A text that someone wrote into the recording.
    Message {
        /// Recording's clock, ns.
        time_ns: u64,
        /// Device it was written for.
        device: DeviceNumber,
        /// Thread that wrote it.
        pid: u32,
        /// The text.
        text: String,
    },
    /// From then on events were recorded.
    Begun {
        /// Recording's clock, ns.
        time_ns: u64,
        /// Of this device; of all where it names none.
        device: Option<DeviceNumber>,
    },
    /// Up to then.
    Ended {
        /// Recording's clock, ns.
        time_ns: u64,
    },
    /// The recorder says that it lost events, or none.
    Dropped {
        /// How many; 0 where it counts them and lost none.
        events: u64,
    },
}
