//! Reads ahead: a thread decodes and merges while the caller's thread uses what came before.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, ScopedJoinHandle};

use weir_core::trace::decode::Batch;
use weir_core::trace::merge::{self, Merged, Turn};

use super::stream::{Broken, Stream};

/// Events handed over at once: enough to make the handing over cheap, few enough to stay in a cache.
const EVENTS_AT_ONCE: usize = 4096;
/// Batches read ahead.
const AHEAD: usize = 4;

/// Batches in order of time.
pub struct Ahead<'scope> {
    batches: Receiver<Batch>,
    used: SyncSender<Batch>,
    thread: ScopedJoinHandle<'scope, Merged<Stream>>,
}

impl<'scope> Ahead<'scope> {
    /// Starts reading. Where `strict`, a file that breaks ends everything.
    pub fn start<'env>(
        scope: &'scope thread::Scope<'scope, 'env>,
        streams: Vec<Stream>,
        strict: bool,
    ) -> std::io::Result<Ahead<'scope>> {
        let (to, batches) = sync_channel(AHEAD);
        let (used, reusable) = sync_channel(AHEAD + 2);
        let read = move || read(streams, strict, &to, &reusable);
        let thread = thread::Builder::new().name("decode".to_string()).spawn_scoped(scope, read)?;
        Ok(Ahead { batches, used, thread })
    }

    /// The next batch; nothing at the end.
    pub fn next(&self) -> Option<Batch> {
        self.batches.recv().ok()
    }

    /// Gives a batch back, so that its memory is used again.
    pub fn give_back(&self, batch: Batch) {
        if let Err(TrySendError::Full(batch)) = self.used.try_send(batch) {
            drop(batch);
        }
    }

    /// Ends reading, however far it is.
    pub fn stop(self) -> thread::Result<Merged<Stream>> {
        drop(self.batches);
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
