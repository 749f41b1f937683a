//! Writes what the guard has to say: a thread of its own, since a log, a pipe or a store may lie behind the very flood
//! that the guard is to throttle. Where it cannot keep up, lines are left out and counted.

use std::fs::File;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use weir_control::History;

use super::history::Chapter;

/// Lines that may wait.
const ROOM: usize = 1024;
/// How long the end waits for them.
const PATIENCE: Duration = Duration::from_secs(5);

/// Something to write.
pub enum Item {
    /// A line to stderr.
    Said(String),
    /// A line to the log file.
    Logged(String),
    /// Lines for the history.
    History(Vec<u8>),
    /// A record of the history begins, in place of the one before.
    Begin(Box<History>),
}

/// Puts the record of a history into the store.
pub type Begin = Box<dyn FnMut(&History) -> anyhow::Result<Chapter> + Send>;

/// The thread, seen from the guard.
pub struct Recorder {
    sender: Option<SyncSender<Item>>,
    ended: Receiver<()>,
    left_out: u64,
}

impl Recorder {
    /// Starts it.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(log: Option<File>, begin: Begin) -> std::io::Result<Recorder> {
        let (sender, items) = sync_channel(ROOM);
        let (end, ended) = sync_channel(1);
        thread::Builder::new().name("recorder".to_string()).spawn(move || {
            write(&items, log, begin);
            let _ = end.send(());
        })?;
        Ok(Recorder { sender: Some(sender), ended, left_out: 0 })
    }

    /// Hands something over, without waiting.
    pub fn write(&mut self, item: Item) {
        let sent = self.sender.as_ref().is_some_and(|sender| sender.try_send(item).is_ok());
        self.left_out += u64::from(!sent);
    }

    /// What was left out so far.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Waits until all is written, but not for ever.
    pub fn end(mut self) {
        drop(self.sender.take());
        let _ = self.ended.recv_timeout(PATIENCE);
    }
}

fn write(items: &Receiver<Item>, mut log: Option<File>, mut begin: Begin) {
    let mut chapter: Option<Chapter> = None;
    let mut failed = Failed::default();
    for item in items {
        match item {
            Item::Said(line) => say!("{line}"),
            Item::Logged(line) => {
                if let Some(file) = &mut log {
                    failed.note("the log", file.write_all(format!("{line}\n").as_bytes()));
                }
            }
            Item::History(lines) => {
                if let Some(chapter) = &mut chapter {
                    failed.note("the history", chapter.append(&lines));
                }
            }
            Item::Begin(history) => {
                if let Some(before) = chapter.take() {
                    failed.note("the history", before.end());
                }
                chapter = failed.note("the history", begin(&history));
            }
        }
    }
    if let Some(last) = chapter {
        failed.note("the history", last.end());
    }
}

/// What could not be written, each said once.
#[derive(Default)]
struct Failed(Vec<&'static str>);

impl Failed {
    fn note<T, E: std::fmt::Display>(&mut self, what: &'static str, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            Err(error) => {
                if !self.0.contains(&what) {
                    say!("weir: {what} cannot be written: {error:#}");
                    self.0.push(what);
                }
                None
            }
        }
    }
}
