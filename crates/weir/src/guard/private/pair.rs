//! What turns memory.high and io.max of one cgroup: a thread of its own, or nothing.
//!
//! Whoever lowers memory.high below what a cgroup uses reclaims its memory in that very write, and waits where it is dirty. The
//! guard has to go on looking meanwhile.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use weir_host::Host;
use weir_host::knob::{Governor, Journal, KnobError, Lever, Move};

/// The thread gives signs of life and looks at its limits this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// memory.high is never asked to be less.
const FLOOR_BYTES: u64 = 1 << 20;

/// The limits of one cgroup; `None` is what was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// memory.high, in bytes.
    pub high: Option<u64>,
    /// io.max, in bytes a second.
    pub pace: Option<u64>,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The cgroup is gone, and its limits with it.
    Gone,
    /// Somebody put back what was found, as a service manager does that applies its properties again.
    Reset,
    /// Somebody else turns them, or the kernel does not take them; says what.
    Lost(String),
}

/// Turns the limits of one cgroup.
pub trait Pair {
    /// Asks for limits. They are in force some time later.
    fn set(&mut self, limits: Limits);

    /// Whether it has ended by itself.
    fn ended(&mut self) -> Option<End>;

    /// Begins to restore them, and does not wait: the kernel may take long over the write before.
    fn release(&mut self);

    /// Waits for that, this long at most. The sentences tell what was restored; `None`: not yet. Where the guard ends before, its guardian
    /// process restores them.
    fn released(&mut self, patience: Duration) -> Option<Restored>;
}

/// Sentences of what was restored, or why it was not.
pub type Restored = Result<Vec<String>, KnobError>;

/// Takes the limits of a cgroup over.
pub type TakePair = Box<dyn FnMut(&Lever) -> Result<Box<dyn Pair>, KnobError>>;

/// Takes them for earnest, or in shadow.
pub fn take_pair(host: &Host, journal: &Journal, shadow: bool) -> TakePair {
    let (host, journal) = (host.clone(), journal.clone());
    Box::new(move |lever| {
        if shadow {
            return Ok(Box::new(Untouched));
        }
        Ok(Box::new(Worker::start(Governor::start(&journal, &host, lever, FLOOR_BYTES)?)?))
    })
}

/// Turns nothing.
struct Untouched;

impl Pair for Untouched {
    fn set(&mut self, _limits: Limits) {}

    fn ended(&mut self) -> Option<End> {
        None
    }

    fn release(&mut self) {}

    fn released(&mut self, _patience: Duration) -> Option<Restored> {
        Some(Ok(Vec::new()))
    }
}

/// A governor on a thread of its own. When the sender is dropped it puts back what was found.
struct Worker {
    wanted: Option<Sender<Limits>>,
    asked: Limits,
    ends: Receiver<End>,
    restored: Receiver<Restored>,
}

impl Worker {
    fn start(governor: Governor) -> Result<Worker, KnobError> {
        let ((wanted, asks), (tell, ends), (done, restored)) = (channel(), channel(), channel());
        std::thread::Builder::new()
            .name("private limits".to_string())
            .spawn(move || {
                // Nobody hears it who does not wait any more.
                let _ = done.send(turn(governor, &asks, &tell));
            })
            .map_err(KnobError::NoGuardian)?;
        Ok(Worker { wanted: Some(wanted), asked: Limits::default(), ends, restored })
    }
}

/// Does what was asked for last, until nobody asks any more.
fn turn(mut governor: Governor, asks: &Receiver<Limits>, tell: &Sender<End>) -> Restored {
    loop {
        let moved = match asks.recv_timeout(LOOK_EVERY) {
            Ok(first) => {
                let last = asks.try_iter().last().unwrap_or(first);
                governor.set_private(last.high, last.pace)
            }
            Err(RecvTimeoutError::Timeout) => governor.beat(),
            Err(RecvTimeoutError::Disconnected) => return governor.stop(),
        };
        let end = match moved {
            Ok(Move::Written { .. }) => continue,
            Ok(Move::Gone { .. }) => End::Gone,
            Ok(Move::StoodDown { said }) if said.is_empty() => End::Reset,
            Ok(Move::StoodDown { said }) => End::Lost(said),
            Err(error) => End::Lost(error.to_string()),
        };
        // Nobody hears it who does not look any more.
        let _ = tell.send(end);
        return governor.stop();
    }
}

impl Pair for Worker {
    fn set(&mut self, limits: Limits) {
        if let Some(wanted) = self.wanted.as_ref().filter(|_| limits != self.asked) {
            self.asked = limits;
            // A thread that has ended has told why.
            let _ = wanted.send(limits);
        }
    }

    fn ended(&mut self) -> Option<End> {
        self.ends.try_recv().ok()
    }

    fn release(&mut self) {
        self.wanted = None;
    }

    fn released(&mut self, patience: Duration) -> Option<Restored> {
        self.release();
        match self.restored.recv_timeout(patience) {
            Ok(restored) => Some(restored),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Ok(Vec::new())),
        }
    }
}
