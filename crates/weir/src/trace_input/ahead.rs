//! Reads ahead: a thread reads, decodes and sorts every file's next batch while the caller's thread uses the last.
//!
//! A batch goes to the caller as it is and comes back to be filled again: no event is copied on its way.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weir_core::trace::decode::Batch;
use weir_core::trace::merge::{Sorted, Source};

use super::stream::Stream;

/// How long a wait for input may keep a signal waiting.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Asks for the next batch of the nth file, in the memory of this one.
type Request = (usize, Batch);
/// The batch, and whether the file goes on behind it.
type Reply = (Batch, bool);

/// The next batches of a file.
pub struct Ahead<'a> {
    nth: usize,
    requests: Sender<Request>,
    replies: Receiver<Reply>,
    waiting: &'a Waiting<'a>,
}

/// What to do while a file has nothing to say.
pub struct Waiting<'a> {
    /// Says whether to go on waiting.
    pub goes_on: &'a dyn Fn() -> bool,
    /// Set where it did not.
    pub given_up: Cell<bool>,
}

/// The thread that reads; it ends once nobody asks any longer.
pub type Reading = JoinHandle<Vec<Stream>>;

/// Starts reading all `streams`.
pub fn start<'a>(
    streams: Vec<Stream>,
    waiting: &'a Waiting<'a>,
) -> std::io::Result<(Vec<Ahead<'a>>, Reading)> {
    let (requests, requested) = channel();
    let (mut sorted, mut aheads) = (Vec::new(), Vec::new());
    for (nth, stream) in streams.into_iter().enumerate() {
        let (to, replies) = channel();
        sorted.push((Sorted::new(stream), to));
        // The first batch is asked for at once; from then on one is under way while another is used.
        let _ = requests.send((nth, Batch::default()));
        aheads.push(Ahead { nth, requests: requests.clone(), replies, waiting });
    }
    let thread = thread::Builder::new().name("decode".to_string()).spawn(move || read(sorted, &requested))?;
    Ok((aheads, thread))
}

fn read(mut sorted: Vec<(Sorted<Stream>, Sender<Reply>)>, requested: &Receiver<Request>) -> Vec<Stream> {
    for (nth, mut batch) in requested {
        let Some((stream, to)) = sorted.get_mut(nth) else { continue };
        batch.clear();
        let goes_on = stream.refill(&mut batch);
        // Whoever stopped listening wants no more of it.
        let _ = to.send((batch, goes_on));
    }
    sorted.into_iter().map(|(stream, _)| stream.into_inner()).collect()
}

impl Source for Ahead<'_> {
    fn refill(&mut self, batch: &mut Batch) -> bool {
        loop {
            match self.replies.recv_timeout(PATIENCE) {
                Ok((next, goes_on)) => {
                    let used = std::mem::replace(batch, next);
                    if goes_on {
                        let _ = self.requests.send((self.nth, used));
                    }
                    return goes_on;
                }
                Err(RecvTimeoutError::Timeout) if (self.waiting.goes_on)() => {}
                Err(RecvTimeoutError::Timeout) => {
                    self.waiting.given_up.set(true);
                    return false;
                }
                // The thread panicked: whoever joins it says so.
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }
}
