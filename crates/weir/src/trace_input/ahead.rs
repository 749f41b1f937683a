//! Reads ahead: a thread decodes and merges while the caller's thread uses what came before.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weir_core::trace::decode::Batch;
use weir_core::trace::merge::{self, Merged, Turn};

use super::stream::{Broken, Stream};

/// Events handed over at once: enough to make the handing over cheap, few enough to stay in a cache.
const EVENTS_AT_ONCE: usize = 2048;
/// Batches read ahead.
const AHEAD: usize = 4;
/// How long a wait for input may keep a signal waiting.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// What became of waiting for the next batch.
pub enum Next {
    /// It is here.
    Batch(Batch),
    /// Nothing came yet.
    Wait,
    /// There is no more.
    End,
}

/// Batches in order of time.
pub struct Ahead {
    batches: Receiver<Batch>,
    used: SyncSender<Batch>,
    thread: JoinHandle<Merged<Stream>>,
}

impl Ahead {
    /// Starts reading. Where `strict`, a file that breaks ends everything.
    pub fn start(streams: Vec<Stream>, strict: bool) -> std::io::Result<Ahead> {
        let (to, batches) = sync_channel(AHEAD);
        let (used, reusable) = sync_channel(AHEAD + 2);
        let read = move || read(streams, strict, &to, &reusable);
        let thread = thread::Builder::new().name("decode".to_string()).spawn(read)?;
        Ok(Ahead { batches, used, thread })
    }

    /// The next batch.
    pub fn next(&self) -> Next {
        match self.batches.recv_timeout(PATIENCE) {
            Ok(batch) => Next::Batch(batch),
            Err(RecvTimeoutError::Timeout) => Next::Wait,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// Gives a batch back, so that its memory is used again.
    pub fn give_back(&self, batch: Batch) {
        if let Err(TrySendError::Full(batch)) = self.used.try_send(batch) {
            drop(batch);
        }
    }

    /// What came of reading, after the end.
    pub fn finish(self) -> thread::Result<Merged<Stream>> {
        self.thread.join()
    }
}

fn read(
    streams: Vec<Stream>,
    strict: bool,
    to: &SyncSender<Batch>,
    reusable: &Receiver<Batch>,
) -> Merged<Stream> {
    let broken = streams.first().map(|stream| stream.broken().clone());
    let mut batch = Batch::default();
    let merged = merge::merge(streams, |turn| {
        match turn {
            Turn::Event(event) => batch.push_event(*event),
            Turn::Other(item) => batch.push(item.clone()),
        }
        if batch.events().len() < EVENTS_AT_ONCE && batch.others().len() < EVENTS_AT_ONCE {
            return true;
        }
        let mut next = reusable.try_recv().unwrap_or_default();
        next.clear();
        let full = std::mem::replace(&mut batch, next);
        let is_broken = broken.as_ref().is_some_and(Broken::is_raised);
        to.send(full).is_ok() && !(strict && is_broken)
    });
    // Whoever stopped listening wants no more of it.
    let _ = to.send(batch);
    merged
}
