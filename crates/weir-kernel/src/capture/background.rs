//! Writes buffers to files on a thread of its own, so that a slow disk fills memory up to a bound and then the rings,
//! where drops are counted.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Buffers that wait at most; with their size this bounds the memory.
const WAITING_MAX: usize = 32;

/// Bytes for a file.
#[derive(Debug)]
pub struct Portion {
    /// Which file.
    pub file: usize,
    /// What to append to it.
    pub bytes: Vec<u8>,
    /// Events in it.
    pub events: u64,
}

/// What became of the files.
#[derive(Debug)]
pub struct Written {
    /// The files, cut back to whole portions.
    pub files: Vec<File>,
    /// Events that were not written.
    pub lost: u64,
    /// Why not.
    pub error: Option<io::Error>,
}

/// The thread and the ways to it.
pub struct Background {
    to_thread: SyncSender<Portion>,
    /// Buffers come back for reuse.
    empty: Receiver<Vec<u8>>,
    failed: Arc<AtomicBool>,
    thread: JoinHandle<Written>,
}

impl Background {
    /// Starts it.
    ///
    /// # Errors
    /// No thread could be made.
    pub fn start(files: Vec<File>) -> io::Result<Background> {
        let (to_thread, portions) = sync_channel(WAITING_MAX);
        let (give_back, empty) = sync_channel(WAITING_MAX);
        let failed = Arc::new(AtomicBool::new(false));
        let flag = failed.clone();
        let thread = std::thread::Builder::new()
            .name("weir-record".to_string())
            .spawn(move || write_all(files, &portions, &give_back, &flag))?;
        Ok(Background { to_thread, empty, failed, thread })
    }

    /// Hands a portion over; gives it back if too many wait.
    ///
    /// # Errors
    /// The thread is too far behind, or gone.
    pub fn hand_over(&self, portion: Portion) -> Result<(), Portion> {
        self.to_thread.try_send(portion).map_err(|error| match error {
            TrySendError::Full(portion) | TrySendError::Disconnected(portion) => portion,
        })
    }

    /// Hands a portion over, however long that takes.
    pub fn hand_over_at_last(&self, portion: Portion) {
        // A thread that is gone says why when it is waited for.
        let _ = self.to_thread.send(portion);
    }

    /// An empty buffer, with memory if one was written lately.
    pub fn buffer(&self) -> Vec<u8> {
        self.empty.try_recv().unwrap_or_default()
    }

    /// Whether a write failed.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Waits until all is written.
    pub fn finish(self) -> Written {
        drop(self.to_thread);
        self.thread.join().unwrap_or_else(|_| Written {
            files: Vec::new(),
            lost: 0,
            error: Some(io::Error::other("the writing thread panicked")),
        })
    }
}

fn write_all(
    mut files: Vec<File>,
    portions: &Receiver<Portion>,
    give_back: &SyncSender<Vec<u8>>,
    failed: &AtomicBool,
) -> Written {
    let (mut lost, mut failure) = (0, None);
    let mut whole_bytes: Vec<u64> =
        files.iter().map(|file| file.metadata().map_or(0, |data| data.len())).collect();
    for mut portion in portions {
        let written = match files.get_mut(portion.file) {
            _ if failure.is_some() => Ok(false),
            Some(file) => file.write_all(&portion.bytes).map(|()| true),
            None => Ok(false),
        };
        match written {
            Ok(true) => whole_bytes[portion.file] += portion.bytes.len() as u64,
            Ok(false) => lost += portion.events,
            Err(error) => {
                lost += portion.events;
                // Half a portion is no use to a reader, and the end needs room.
                let _ = files[portion.file].set_len(whole_bytes[portion.file]);
                failed.store(true, Ordering::Relaxed);
                failure = Some(error);
            }
        }
        portion.bytes.clear();
        let _ = give_back.try_send(portion.bytes);
    }
    Written { files, lost, error: failure }
}
