//! Batches of every file: of plain files read and decoded in place, of packed ones and pipes by a thread ahead.
//!
//! What a plain file says is there at once, and handing it from thread to thread costs more than decoding it. A batch
//! of the thread's goes to the caller as it is and comes back to be filled again: no event is copied on its way.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weir_blocktrace::decode::Batch;
use weir_blocktrace::merge::{Sorted, Source};

use super::stream::Stream;

/// How long a wait for input may keep a signal waiting.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Asks for the next batch of the nth file, in the memory of this one.
type Request = (usize, Batch);
/// The batch, and whether the file goes on behind it.
type Reply = (Batch, bool);

/// A file that is read for the merge.
pub enum Input<'a> {
    /// Read where it is used.
    Here(Box<Sorted<Stream>>),
    /// Read ahead.
    Ahead(Ahead<'a>),
}

/// The next batches of a file that is read ahead.
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

/// The thread that reads ahead, where there is one; it ends once nobody asks any longer.
pub struct Reading(Option<JoinHandle<Vec<Stream>>>);

/// Starts reading all `streams`; the inputs are in the same order.
pub fn start<'a>(
    streams: Vec<Stream>,
    waiting: &'a Waiting<'a>,
) -> std::io::Result<(Vec<Input<'a>>, Reading)> {
    let (requests, requested) = channel();
    let (mut ahead, mut inputs) = (Vec::new(), Vec::new());
    for stream in streams {
        if !stream.keeps_waiting() {
            inputs.push(Input::Here(Box::new(Sorted::new(stream))));
            continue;
        }
        let (nth, (to, replies)) = (ahead.len(), channel());
        ahead.push((Sorted::new(stream), to));
        // The first batch is asked for at once; from then on one is under way while another is used.
        let _ = requests.send((nth, Batch::default()));
        inputs.push(Input::Ahead(Ahead { nth, requests: requests.clone(), replies, waiting }));
    }
    if ahead.is_empty() {
        return Ok((inputs, Reading(None)));
    }
    let thread = thread::Builder::new().name("decode".to_string()).spawn(move || read(ahead, &requested))?;
    Ok((inputs, Reading(Some(thread))))
}

/// The streams behind `inputs`, in their order, once they have been read.
pub fn finish(inputs: Vec<Input<'_>>, reading: Reading) -> thread::Result<Vec<Stream>> {
    let here = |input| match input {
        Input::Here(stream) => Some(stream.into_inner()),
        Input::Ahead(_) => None,
    };
    // The thread ends when the last of its inputs is gone.
    let streams: Vec<Option<Stream>> = inputs.into_iter().map(here).collect();
    let mut ahead = reading.0.map_or(Ok(Vec::new()), JoinHandle::join)?.into_iter();
    Ok(streams.into_iter().filter_map(|here| here.or_else(|| ahead.next())).collect())
}

fn read(mut sorted: Vec<(Sorted<Stream>, Sender<Reply>)>, requested: &Receiver<Request>) -> Vec<Stream> {
    for (nth, mut batch) in requested {
        let Some((stream, to)) = sorted.get_mut(nth) else { continue };
        batch.clear();
        let goes_on = stream.refill(&mut batch);
        // A listener that stopped wants no more of it.
        let _ = to.send((batch, goes_on));
    }
    sorted.into_iter().map(|(stream, _)| stream.into_inner()).collect()
}

impl Source for Input<'_> {
    fn refill(&mut self, batch: &mut Batch) -> bool {
        match self {
            Input::Here(stream) => stream.refill(batch),
            Input::Ahead(ahead) => ahead.refill(batch),
        }
    }
}

impl Ahead<'_> {
    fn refill(&mut self, batch: &mut Batch) -> bool {
        // Where one was given up, those that still have something to say end, too.
        while !self.waiting.given_up.get() {
            match self.replies.recv_timeout(PATIENCE) {
                Ok((next, goes_on)) => {
                    let used = std::mem::replace(batch, next);
                    if goes_on {
                        let _ = self.requests.send((self.nth, used));
                    }
                    return goes_on;
                }
                Err(RecvTimeoutError::Timeout) if (self.waiting.goes_on)() => {}
                Err(RecvTimeoutError::Timeout) => self.waiting.given_up.set(true),
                // The thread panicked: whoever joins it says so.
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        false
    }
}
