//! What turns memory.high and io.max of one cgroup: a thread of its own, or nothing.
//!
//! Whoever lowers memory.high below what a cgroup uses reclaims its memory in that very write, and waits where it is dirty. The
//! guard has to go on looking meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use weir_host::Host;
use weir_host::knob::{Actuator, Governor, Journal, KnobError, Move, PrivateLimits, SpareGuardian};

use crate::clock::Moment;

/// The thread gives signs of life and looks at its limits this often.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A guard that has asked for nothing for so long hangs: no sign of life is given for it any more, and its guardian restores the limits.
const HANGS_NS: u64 = 5_000_000_000;
/// memory.high is never asked to be less.
const FLOOR_BYTES: u64 = 1 << 20;
/// Threads at the same time, those that are not done though nobody waits for them any more included. Each has a guardian, and
/// both count among the tasks of the service.
const THREADS_MOST: usize = 16;
/// Those there are.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The cgroup is gone, and its limits with it.
    Gone,
    /// Somebody restored the baseline, as a service manager does that applies its properties again.
    Reset,
    /// Somebody else turns them, the guardian restored them, or the kernel does not take them; says what.
    Lost(String),
}

/// Turns the limits of one cgroup.
pub trait Pair {
    /// Asks for limits, the same or others, at every sample. They are in force some time later.
    fn set(&mut self, limits: PrivateLimits);

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
pub type TakePair = Box<dyn FnMut(&Actuator) -> Result<Box<dyn Pair>, KnobError>>;

/// Takes them for earnest, or in shadow.
pub fn take_pair(host: &Host, journal: &Journal, shadow: bool) -> TakePair {
    let (host, journal) = (host.clone(), journal.clone());
    if shadow {
        return Box::new(|_| Ok(Box::new(Untouched)));
    }
    let spare = SpareGuardian::default();
    if host.has_memory_limits() {
        spare.prepare();
    }
    Box::new(move |actuator| {
        let turns = Turns::take().ok_or_else(too_many)?;
        let governor = Governor::start_with(&journal, &host, actuator, FLOOR_BYTES, &spare)?;
        Ok(Box::new(Worker::start(Governed { governor, spare: spare.clone() }, turns)?))
    })
}

/// Turns nothing.
struct Untouched;

impl Pair for Untouched {
    fn set(&mut self, _limits: PrivateLimits) {}

    fn ended(&mut self) -> Option<End> {
        None
    }

    fn release(&mut self) {}

    fn released(&mut self, _patience: Duration) -> Option<Restored> {
        Some(Ok(Vec::new()))
    }
}

/// One of the threads that there may be.
struct Turns;

impl Turns {
    fn take() -> Option<Turns> {
        let more = |threads: usize| (threads < THREADS_MOST).then_some(threads + 1);
        THREADS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Turns)
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

fn too_many() -> KnobError {
    let why = format!("limits of {THREADS_MOST} cgroups are in use, and no more are taken");
    KnobError::NoGuardian(std::io::Error::other(why))
}

/// A governor on a thread of its own. When the sender is dropped it restores the baseline, however long the kernel takes.
struct Worker {
    wanted: Option<Sender<PrivateLimits>>,
    asked: PrivateLimits,
    /// When it was asked last, by the clock that stands still while the machine sleeps.
    asked_ns: Arc<AtomicU64>,
    ends: Receiver<End>,
    /// What came of it, once the thread is done.
    restored: Receiver<Restored>,
}

impl Worker {
    fn start(governed: Governed, turns: Turns) -> Result<Worker, KnobError> {
        Worker::of(turns, move |asks, tell, asked_ns| turn(governed, asks, tell, asked_ns))
    }

    fn of(
        turns: Turns,
        work: impl FnOnce(&Receiver<PrivateLimits>, &Sender<End>, &AtomicU64) -> Restored + Send + 'static,
    ) -> Result<Worker, KnobError> {
        let ((wanted, asks), (tell, ends), (done, restored)) = (channel(), channel(), channel());
        let asked_ns = Arc::new(AtomicU64::new(Moment::now().awake_ns));
        let of_loop = asked_ns.clone();
        let all = move || {
            let result = work(&asks, &tell, &of_loop);
            drop(turns);
            // Nobody hears it who does not wait any more.
            let _ = done.send(result);
        };
        std::thread::Builder::new()
            .name("private limits".to_string())
            .spawn(all)
            .map_err(KnobError::NoGuardian)?;
        Ok(Worker { wanted: Some(wanted), asked: PrivateLimits::default(), asked_ns, ends, restored })
    }
}

/// Turns limits as it is asked.
trait Turned {
    fn set(&mut self, limits: PrivateLimits) -> Result<Move, KnobError>;

    /// A sign of life.
    fn beat(&mut self) -> Result<Move, KnobError>;

    fn stop(self) -> Restored;
}

/// The limits of one cgroup, and the guardian of the next one.
struct Governed {
    governor: Governor,
    spare: SpareGuardian,
}

impl Turned for Governed {
    fn set(&mut self, limits: PrivateLimits) -> Result<Move, KnobError> {
        self.governor.set_private(&limits)
    }

    fn beat(&mut self) -> Result<Move, KnobError> {
        // These are in force, so there is time for it.
        self.spare.prepare();
        self.governor.beat()
    }

    fn stop(self) -> Restored {
        self.governor.stop()
    }
}

/// Does what was asked for last, until nobody asks any more. That this thread lives does not tell that the guard does.
fn turn(
    mut governor: impl Turned,
    asks: &Receiver<PrivateLimits>,
    tell: &Sender<End>,
    asked_ns: &AtomicU64,
) -> Restored {
    let hangs = || Moment::now().awake_ns >= asked_ns.load(Ordering::Relaxed) + HANGS_NS;
    loop {
        let moved = match asks.recv_timeout(LOOK_EVERY) {
            Ok(first) => {
                let last = asks.try_iter().last().unwrap_or(first);
                governor.set(last)
            }
            Err(RecvTimeoutError::Timeout) if hangs() => continue,
            Err(RecvTimeoutError::Timeout) => governor.beat(),
            Err(RecvTimeoutError::Disconnected) => return governor.stop(),
        };
        let end = match moved {
            Ok(Move::Written { .. }) => continue,
            Ok(Move::Gone { .. }) => End::Gone,
            Ok(Move::Reset { .. }) => End::Reset,
            Ok(Move::StoodDown { said }) => End::Lost(said),
            Err(error) => End::Lost(error.to_string()),
        };
        // Nobody hears it who does not look any more.
        let _ = tell.send(end);
        return governor.stop();
    }
}

impl Pair for Worker {
    fn set(&mut self, limits: PrivateLimits) {
        self.asked_ns.store(Moment::now().awake_ns, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// A kernel that does not come back from a write, as long as whoever is in the cgroup likes.
    #[test]
    fn a_thread_that_hangs_is_not_waited_for_and_still_counts() {
        let (release, held) = channel::<()>();
        let hangs = move |_: &Receiver<PrivateLimits>, _: &Sender<End>, _: &AtomicU64| {
            let _ = held.recv();
            Ok(vec!["back".to_string()])
        };
        let mut taken: Vec<Turns> = std::iter::from_fn(Turns::take).collect();
        assert_eq!(taken.len(), THREADS_MOST);
        assert!(too_many().to_string().contains("limits of 16 cgroups are in use"));
        let mut worker = Worker::of(taken.remove(0), hangs).unwrap();
        worker.release();
        assert!(worker.released(Duration::from_millis(1)).is_none(), "the kernel is still busy with it");
        assert!(Turns::take().is_none(), "its thread is still there");
        release.send(()).unwrap();
        while Turns::take().map(|turns| taken.push(turns)).is_none() {
            std::thread::yield_now();
        }
        assert_eq!(worker.released(Duration::from_secs(60)).unwrap().unwrap(), ["back"]);
    }

    /// Counts signs of life.
    struct Beaten(Sender<()>);

    impl Turned for Beaten {
        fn set(&mut self, _limits: PrivateLimits) -> Result<Move, KnobError> {
            Ok(Move::Written { bytes: 0 })
        }

        fn beat(&mut self) -> Result<Move, KnobError> {
            let _ = self.0.send(());
            Ok(Move::Reset { said: "cgroup:/a/io.max/7:0/wbps is back at max".to_string() })
        }

        fn stop(self) -> Restored {
            Ok(Vec::new())
        }
    }

    #[test]
    fn a_guard_that_hangs_gives_no_sign_of_life_and_a_reset_is_told_as_one() {
        let turned = |asked_ns: u64| {
            let ((wanted, asks), (tell, ends), (beat, beats)) = (channel(), channel(), channel());
            let ended =
                std::thread::spawn(move || turn(Beaten(beat), &asks, &tell, &AtomicU64::new(asked_ns)));
            let is_beaten =
                beats.recv_timeout(Duration::from_secs(if asked_ns == 0 { 1 } else { 60 })).is_ok();
            drop(wanted);
            ended.join().unwrap().unwrap();
            (is_beaten, ends.try_recv().ok())
        };
        assert_eq!(turned(Moment::now().awake_ns), (true, Some(End::Reset)));
        assert_eq!(turned(0), (false, None));
    }
}
