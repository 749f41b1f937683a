//! The thread that writes: the disk may be the very one whose slowness is being recorded, so that nothing that samples waits for
//! it. What it cannot keep up with is left out, counted, and said in the archive.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use weir_archive::tables::{Event, Row};
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

/// Events of intervals that are not in the archive, which are kept for a later one; ...
const KEPT_EVENTS: usize = 512;
/// ... and how many of them may be slow syncs, which are the most.
const KEPT_SYNCS: usize = 256;
/// What is lost, in the event that tells of it.
pub const LOST: &str = "intervals: the disk was too slow or refused them";

/// Rows of an interval.
pub struct Interval {
    /// No row of it lies before this, Unix time, ms. What was given back is older than the interval.
    pub begin_ms: i64,
    /// Its rows.
    pub batches: Vec<Batch>,
    /// Lost intervals that it tells of.
    pub lost: u64,
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
    /// What happened in intervals that are not in the archive, ...
    events: Mutex<Vec<Event>>,
    /// ... and how many lost ones those told of.
    untold: AtomicU64,
}

impl Account {
    /// Keeps the events of an interval that is not in the archive for a later one.
    fn give_back(&self, interval: &Interval) {
        self.untold.fetch_add(interval.lost, Ordering::Relaxed);
        let mut kept = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        for event in interval.batches.iter().flat_map(Event::all) {
            // That is told anew, with all that were lost meanwhile.
            let is_old = event.kind == "lost" && event.detail.contains(LOST);
            let most = if event.kind == "slow_sync" { KEPT_SYNCS } else { KEPT_EVENTS };
            if !is_old && kept.len() < most {
                kept.push(event);
            }
        }
    }
}

/// The thread, seen from the sampler.
pub struct Recorded {
    sender: Option<SyncSender<Work>>,
    ended: Receiver<()>,
    account: Arc<Account>,
    left_out: u64,
    /// Lost intervals that intervals handed over tell of.
    told: u64,
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
            thinned: Instant::now(),
            said: Vec::new(),
        };
        thread::Builder::new().name("writer".to_string()).spawn(move || {
            writer.run(&works);
            let _ = end.send(());
        })?;
        Ok(Recorded { sender: Some(sender), ended, account, left_out: 0, told: 0 })
    }

    /// Hands an interval over, without waiting. It is left out where others wait that the disk did not take.
    pub fn write(&mut self, interval: Interval) {
        self.told += interval.lost;
        if let Some(Work::Interval(interval)) = self.hand_over(Work::Interval(interval)) {
            self.left_out += 1;
            self.account.give_back(&interval);
        }
    }

    /// Events of intervals that did not come into the archive.
    pub fn events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.account.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lost intervals of which no interval tells that the archive has or that waits.
    pub fn untold(&self) -> u64 {
        let told = self.told.saturating_sub(self.account.untold.load(Ordering::Relaxed));
        self.lost().saturating_sub(told)
    }

    /// Hands a snapshot over in the same way. Whoever asked for it hears when it is written.
    pub fn keep(&self, at_ms: i64, bytes: Vec<u8>, reply: Option<SyncSender<Reply>>) -> bool {
        let (waiting, length) = (&self.account.waiting_bytes, bytes.len() as u64);
        waiting.fetch_add(length, Ordering::Relaxed);
        let sent = self.hand_over(Work::Snapshot(at_ms, bytes, reply)).is_none();
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

    /// Returns what could not be handed over.
    fn hand_over(&self, work: Work) -> Option<Work> {
        self.account.waiting.fetch_add(1, Ordering::Relaxed);
        let left = match &self.sender {
            Some(sender) => sender.try_send(work).err().map(|error| match error {
                TrySendError::Full(work) | TrySendError::Disconnected(work) => work,
            }),
            None => Some(work),
        };
        if left.is_some() {
            self.account.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        left
    }

    /// Intervals left out so far: the disk was too slow, or refused them.
    pub fn lost(&self) -> u64 {
        self.left_out + self.account.failed.load(Ordering::Relaxed)
    }

    /// Intervals that the journal has.
    pub fn written(&self) -> u64 {
        self.account.written.load(Ordering::Relaxed)
    }

    /// Segments that were closed.
    pub fn segments(&self) -> u64 {
        self.account.segments.load(Ordering::Relaxed)
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
    /// When its first interval began, Unix time, ms.
    begin_ms: i64,
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
    /// When files that are old or too many were removed last.
    thinned: Instant,
    /// Complaints so far: each is said once.
    said: Vec<String>,
}

impl Writer {
    fn run(mut self, works: &Receiver<Work>) {
        // Journals of recorders that were killed.
        self.rotate();
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
            } else if self.thinned.elapsed() >= self.segment {
                // A disk that takes no journal may take one then.
                let newest = self.archive.newest_s();
                self.thin_out(newest);
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
        if written.is_some() {
            self.account.written.fetch_add(1, Ordering::Relaxed);
        } else {
            self.account.failed.fetch_add(1, Ordering::Relaxed);
            self.account.give_back(interval);
        }
    }

    fn try_append(&mut self, interval: &Interval) -> Option<()> {
        let framed = journal::frame(&interval.batches).map_err(std::io::Error::other);
        let frame = self.note("an interval cannot be written", framed)?;
        // After the clock was set back: rows lie in no segment that begins later.
        if self.open.as_ref().is_some_and(|open| interval.begin_ms < open.begin_ms) {
            self.rotate();
        }
        if self.open.is_none() {
            let begun = self.archive.begin_journal(interval.begin_ms.div_euclid(1000));
            let file = self.note("a journal cannot be begun", begun)?;
            let bytes = journal::MAGIC.len() as u64;
            let begin_ms = interval.begin_ms;
            self.open = Some(Open { file, begin_ms, bytes, since: Instant::now() });
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
        let newest = self.archive.newest_s();
        self.open = None;
        self.close_all();
        self.thin_out(newest);
        give_memory_back();
    }

    /// Removes what is too old or too much. `newest` is how far segments go that were closed before the last one: a clock that was set wrong for
    /// less than a segment makes nothing old.
    fn thin_out(&mut self, newest: std::io::Result<Option<i64>>) {
        self.thinned = Instant::now();
        let Some(newest_s) = self.note("the archive cannot be read", newest) else { return };
        let now_s = jiff::Timestamp::now().as_second();
        let oldest_s = newest_s.map_or(i64::MIN, |newest_s| newest_s.min(now_s) - self.max_age_s);
        let thinned = self.archive.thin_out(oldest_s, self.max_bytes);
        self.note("old segments cannot be removed", thinned);
        let thinned = self.archive.thin_out_snapshots(oldest_s);
        self.note("old snapshots cannot be removed", thinned);
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
    use std::path::Path;

    use weir_archive::tables::Counter;

    use super::*;

    fn recorded(places: usize) -> (Recorded, Receiver<Work>) {
        let (sender, works) = sync_channel(places);
        let (_end, ended) = sync_channel(1);
        (Recorded { sender: Some(sender), ended, account: Arc::default(), left_out: 0, told: 0 }, works)
    }

    /// One in which a counter and a knob changed.
    fn interval(begin_s: i64, lost: u64) -> Interval {
        let counter = Counter { ts_ms: begin_s * 1000, span_ms: 1000, value: begin_s, ..Counter::default() };
        let event = |kind: &str, detail: &str| Event {
            ts_ms: begin_s * 1000,
            kind: kind.into(),
            detail: detail.into(),
            ..Event::default()
        };
        let mut events = vec![event("knob", "{}")];
        events.extend((lost > 0).then(|| event("lost", LOST)));
        let batches = vec![Counter::batch(&[counter]), Event::batch(&events)];
        Interval { begin_ms: begin_s * 1000, batches, lost }
    }

    fn writer(folder: &Path) -> Writer {
        Writer {
            archive: Archive::to_write(&folder.join("archive")).unwrap(),
            about: About::default(),
            segment: Duration::from_secs(3600),
            max_age_s: 14 * 86_400,
            max_bytes: 1 << 30,
            account: Arc::default(),
            open: None,
            thinned: Instant::now(),
            said: Vec::new(),
        }
    }

    /// Counters between two times, s.
    fn counters(archive: &Archive, since_s: i64, until_s: i64) -> Vec<i64> {
        let mut values = Vec::new();
        let is_meant = |row: &Counter| (since_s * 1000..until_s * 1000).contains(&row.ts_ms);
        let take = |batch: Batch| {
            values.extend(Counter::all(&batch).into_iter().filter(is_meant).map(|row| row.value));
        };
        archive.read(since_s * 1000, until_s * 1000, &["counters"], take).unwrap();
        values
    }

    #[test]
    fn snapshots_that_wait_for_a_disk_have_a_bound() {
        let (recorded, works) = recorded(WAITING_MAX);
        let keep = || recorded.has_room() && recorded.keep(1, vec![b' '; 1 << 20], None);
        assert_eq!((0..WAITING_MAX).filter(|_| keep()).count(), 4);
        recorded.account.waiting_bytes.store(0, Ordering::Relaxed);
        assert!(recorded.has_room());
        for at in 4..WAITING_MAX {
            assert!(recorded.hand_over(Work::Interval(interval(at as i64, 0))).is_none());
        }
        assert!(!recorded.has_room(), "intervals take places, too");
        drop(works);
        recorded.account.waiting.store(0, Ordering::Relaxed);
        assert!(!keep() && recorded.has_room(), "what nobody takes does not wait");
    }

    #[test]
    fn what_happened_in_a_lost_interval_and_that_it_is_lost_is_told_later() {
        let (mut recorded, works) = recorded(1);
        let kinds = |recorded: &Recorded| -> Vec<(i64, String)> {
            recorded.events().into_iter().map(|event| (event.ts_ms, event.kind)).collect()
        };
        recorded.write(interval(1, 0));
        assert_eq!((recorded.lost(), recorded.untold(), kinds(&recorded)), (0, 0, vec![]));
        // Nothing is taken: what tells of losses is lost itself.
        for (at, lost) in [(2, 0), (3, 1), (4, 2)] {
            assert_eq!(recorded.untold(), lost);
            recorded.write(interval(at, lost));
            assert_eq!(kinds(&recorded), [(at * 1000, "knob".to_string())]);
        }
        assert_eq!((recorded.lost(), recorded.untold()), (3, 3));
        works.recv().unwrap();
        recorded.write(interval(5, 3));
        assert_eq!((recorded.lost(), recorded.untold(), kinds(&recorded)), (3, 0, vec![]));
        // Slow syncs are the most, and leave places for others.
        let of_kind = |kind: &str| Event { kind: kind.into(), ..Event::default() };
        let many = [vec![of_kind("slow_sync"); 2 * KEPT_EVENTS], vec![of_kind("stall"); KEPT_EVENTS]];
        let batches = vec![Event::batch(&many.concat())];
        recorded.write(Interval { begin_ms: 0, batches, lost: 0 });
        let kept = recorded.events();
        let count = |kind: &str| kept.iter().filter(|event| event.kind == kind).count();
        assert_eq!((count("slow_sync"), count("stall")), (KEPT_SYNCS, KEPT_EVENTS - KEPT_SYNCS));
    }

    #[test]
    fn what_a_disk_refuses_is_told_later() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(folder.path());
        writer.append(&interval(1000, 0));
        // It takes no more.
        let open = writer.open.as_mut().unwrap();
        open.file = File::open("/dev/null").unwrap();
        writer.append(&interval(1001, 2));
        let account = &writer.account;
        assert_eq!((account.written.load(Ordering::Relaxed), account.failed.load(Ordering::Relaxed)), (1, 1));
        assert_eq!(account.untold.load(Ordering::Relaxed), 2);
        assert_eq!(account.events.lock().unwrap().len(), 1);
    }

    #[test]
    fn rows_after_the_clock_was_set_back_are_found_at_their_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(folder.path());
        for at in [10_000, 10_001, 3_000, 3_001, 10_000] {
            writer.append(&interval(at, 0));
        }
        for _ in 0..2 {
            assert_eq!(counters(&writer.archive, 2_000, 4_000), [3_000, 3_001]);
            assert_eq!(counters(&writer.archive, 9_000, 11_000), [10_000, 10_000, 10_001]);
            writer.rotate();
        }
    }

    #[test]
    fn a_clock_that_is_wrong_for_less_than_a_segment_makes_nothing_old() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = writer(folder.path());
        let now_s = jiff::Timestamp::now().as_second();
        // For all that is known, the clock is years ahead now.
        let right_s = now_s - 1_000 * 86_400;
        writer.append(&interval(right_s, 0));
        writer.rotate();
        writer.append(&interval(now_s, 0));
        writer.rotate();
        assert_eq!(counters(&writer.archive, right_s - 1, right_s + 1), [right_s]);
        // It is right after all.
        writer.rotate();
        assert_eq!(counters(&writer.archive, 0, i64::MAX / 1000), [now_s]);
    }
}
