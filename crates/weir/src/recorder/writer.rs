//! The thread that writes: the disk may be the very one whose slowness is being recorded, so that nothing that samples waits for
//! it. What it cannot keep up with is left out, counted, and said in the archive.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use weir_archive::{Batch, journal};
use weir_host::give_memory_back;

use super::archive::{About, Archive, snapshot_name};
use super::control::Reply;
use super::settings::RecorderSettings;

/// Intervals that may wait: ten minutes of the usual ones.
const WAITING_MAX: usize = 64;
/// No snapshot is added to so many bytes that wait.
const WAITING_BYTES: u64 = 4 << 20;
/// A journal of this length becomes a segment before its time.
const JOURNAL_MAX: u64 = 32 << 20;
/// How long the end waits for the disk. What is not written by then is in the journal, or lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// Whether a segment's time is over is asked so often.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Rows of an interval.
pub struct Interval {
    /// When it began, Unix time, ms.
    pub begin_ms: i64,
    /// Its rows.
    pub batches: Vec<Batch>,
}

/// What the thread writes.
enum Work {
    Interval(Interval),
    /// When it was taken, all of it, and for whom.
    Snapshot(i64, Vec<u8>, Option<SyncSender<Reply>>),
}

/// What became of what was handed over.
#[derive(Default)]
pub struct Account {
    /// In the journal.
    pub written: AtomicU64,
    /// The disk refused them.
    pub failed: AtomicU64,
    /// Segments closed.
    pub segments: AtomicU64,
    /// Intervals and snapshots that wait, ...
    pub waiting: AtomicUsize,
    /// ... and bytes of those snapshots.
    pub waiting_bytes: AtomicU64,
}

/// The thread, seen from the sampler.
pub struct Recorded {
    sender: Option<SyncSender<Work>>,
    ended: Receiver<()>,
    account: Arc<Account>,
    left_out: u64,
}

impl Recorded {
    /// Starts it.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(archive: Archive, settings: &RecorderSettings, about: About) -> std::io::Result<Recorded> {
        let (sender, works) = sync_channel(WAITING_MAX);
        let (end, ended) = sync_channel(1);
        let account = Arc::new(Account::default());
        let writer = Writer {
            archive,
            about,
            segment: Duration::from_nanos(settings.segment.0),
            max_age_s: (settings.max_age.0 / 1_000_000_000) as i64,
            max_bytes: settings.max_bytes.0,
            account: account.clone(),
            open: None,
            said: Vec::new(),
        };
        thread::Builder::new().name("writer".to_string()).spawn(move || {
            writer.run(&works);
            let _ = end.send(());
        })?;
        Ok(Recorded { sender: Some(sender), ended, account, left_out: 0 })
    }

    /// Hands an interval over, without waiting; false where it had to be left out.
    pub fn write(&mut self, interval: Interval) -> bool {
        let sent = self.hand_over(Work::Interval(interval));
        self.left_out += u64::from(!sent);
        sent
    }

    /// Hands a snapshot over in the same way. Whoever asked for it hears when it is written.
    pub fn keep(&self, at_ms: i64, bytes: Vec<u8>, reply: Option<SyncSender<Reply>>) -> bool {
        let (waiting, length) = (&self.account.waiting_bytes, bytes.len() as u64);
        waiting.fetch_add(length, Ordering::Relaxed);
        let sent = self.hand_over(Work::Snapshot(at_ms, bytes, reply));
        if !sent {
            waiting.fetch_sub(length, Ordering::Relaxed);
        }
        sent
    }

    /// Whether a snapshot may be added to what waits.
    pub fn has_room(&self) -> bool {
        self.account.waiting.load(Ordering::Relaxed) < WAITING_MAX
            && self.account.waiting_bytes.load(Ordering::Relaxed) < WAITING_BYTES
    }

    fn hand_over(&self, work: Work) -> bool {
        self.account.waiting.fetch_add(1, Ordering::Relaxed);
        let sent = self.sender.as_ref().is_some_and(|sender| sender.try_send(work).is_ok());
        if !sent {
            self.account.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        sent
    }

    /// Intervals left out so far: the disk was too slow, or refused them.
    pub fn lost(&self) -> u64 {
        self.left_out + self.account.failed.load(Ordering::Relaxed)
    }

    /// Intervals that the journal has.
    pub fn written(&self) -> u64 {
        self.account.written.load(Ordering::Relaxed)
    }

    /// Waits until all is written, but not for ever; whether all is.
    pub fn end(&mut self) -> bool {
        drop(self.sender.take());
        self.ended.recv_timeout(PATIENCE).is_ok()
    }
}

/// A journal being written.
struct Open {
    file: File,
    /// As far as it is whole.
    bytes: u64,
    since: Instant,
}

struct Writer {
    archive: Archive,
    about: About,
    segment: Duration,
    max_age_s: i64,
    max_bytes: u64,
    account: Arc<Account>,
    open: Option<Open>,
    /// Complaints so far: each is said once.
    said: Vec<String>,
}

impl Writer {
    fn run(mut self, works: &Receiver<Work>) {
        // Those of recorders that were killed.
        self.close_all();
        loop {
            let work = works.recv_timeout(ASK_EVERY);
            if work.is_ok() {
                self.account.waiting.fetch_sub(1, Ordering::Relaxed);
            }
            match work {
                Ok(Work::Interval(interval)) => self.append(&interval),
                Ok(Work::Snapshot(at_ms, bytes, reply)) => {
                    self.keep(at_ms, &bytes, reply);
                    self.account.waiting_bytes.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
                    drop(bytes);
                    give_memory_back();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let is_full = |open: &Open| open.since.elapsed() >= self.segment || open.bytes >= JOURNAL_MAX;
            if self.open.as_ref().is_some_and(is_full) {
                self.rotate();
            }
        }
        self.rotate();
    }

    fn keep(&mut self, at_ms: i64, bytes: &[u8], reply: Option<SyncSender<Reply>>) {
        let kept = self.archive.keep_snapshot(at_ms, bytes);
        let said = match &kept {
            Ok(()) => Ok((snapshot_name(at_ms), bytes.len() as u64)),
            Err(error) => Err(format!("it cannot be written: {error}")),
        };
        self.note("a snapshot cannot be written", kept);
        // Who asked may have gone.
        reply.map(|reply| reply.try_send(said));
    }

    fn append(&mut self, interval: &Interval) {
        let written = self.try_append(interval);
        let count = if written.is_some() { &self.account.written } else { &self.account.failed };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn try_append(&mut self, interval: &Interval) -> Option<()> {
        let framed = journal::frame(&interval.batches).map_err(std::io::Error::other);
        let frame = self.note("an interval cannot be written", framed)?;
        if self.open.is_none() {
            let begun = self.archive.begin_journal(interval.begin_ms.div_euclid(1000));
            let file = self.note("a journal cannot be begun", begun)?;
            let bytes = journal::MAGIC.len() as u64;
            self.open = Some(Open { file, bytes, since: Instant::now() });
        }
        let open = self.open.as_mut()?;
        match open.file.write_all(&frame) {
            Ok(()) => {
                open.bytes += frame.len() as u64;
                Some(())
            }
            Err(error) => {
                // What follows half a frame could not be read.
                let is_whole = {
                    use std::io::Seek;
                    let at = std::io::SeekFrom::Start(open.bytes);
                    open.file.set_len(open.bytes).and_then(|()| open.file.seek(at)).is_ok()
                };
                if !is_whole {
                    self.open = None;
                }
                self.note::<()>("the journal cannot be written", Err(error))
            }
        }
    }

    fn rotate(&mut self) {
        self.open = None;
        self.close_all();
        let now_s = jiff::Timestamp::now().as_second();
        let thinned = self.archive.thin_out(now_s - self.max_age_s, self.max_bytes);
        self.note("old segments cannot be removed", thinned);
        let thinned = self.archive.thin_out_snapshots(now_s - self.max_age_s);
        self.note("old snapshots cannot be removed", thinned);
        give_memory_back();
    }

    fn close_all(&mut self) {
        let journals = self.archive.journals();
        for begin_s in self.note("the archive cannot be read", journals).unwrap_or_default() {
            let closed = self.archive.close_journal(begin_s, &self.about);
            match self.note("a segment cannot be closed; its journal is kept", closed) {
                Some(Some(damage)) => self.say(damage),
                Some(None) => _ = self.account.segments.fetch_add(1, Ordering::Relaxed),
                None => {}
            }
        }
    }

    fn note<T>(&mut self, what: &str, result: std::io::Result<T>) -> Option<T> {
        result.map_err(|error| self.say(format!("{what}: {error}"))).ok()
    }

    fn say(&mut self, sentence: String) {
        if !self.said.contains(&sentence) && self.said.len() < 100 {
            say!("weir: {sentence}");
            self.said.push(sentence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_that_wait_for_a_disk_have_a_bound() {
        let (sender, works) = sync_channel(WAITING_MAX);
        let (_end, ended) = sync_channel(1);
        let recorded = Recorded { sender: Some(sender), ended, account: Arc::default(), left_out: 0 };
        let keep = || recorded.has_room() && recorded.keep(1, vec![b' '; 1 << 20], None);
        assert_eq!((0..WAITING_MAX).filter(|_| keep()).count(), 4);
        recorded.account.waiting_bytes.store(0, Ordering::Relaxed);
        assert!(recorded.has_room());
        for _ in 4..WAITING_MAX {
            assert!(recorded.hand_over(Work::Interval(Interval { begin_ms: 0, batches: Vec::new() })));
        }
        assert!(!recorded.has_room(), "intervals take places, too");
        drop(works);
        recorded.account.waiting.store(0, Ordering::Relaxed);
        assert!(!keep() && recorded.has_room(), "what nobody takes does not wait");
    }
}
