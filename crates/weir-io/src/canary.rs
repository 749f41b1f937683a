//! A sync of weir's own, several times a second, for where those of others cannot be seen: a page is written to a
//! small file and made durable by fdatasync, again and again, on a thread of its own. It tells what a commit to that
//! file system takes now; it does not tell how many commits others make, nor what theirs take.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_core::stats::CoarseHistogram;
use weir_fs::Private;

use crate::IoError;
use crate::scratch;
use crate::sys::clock::{now_ns, sleep_until_ns};

/// From the start of one to the start of the next: five a second.
const EVERY_NS: u64 = 200_000_000;
const PAGE: [u8; 4096] = [0x5a; 4096];
/// How long an end waits for a sync under way. One that hangs longer keeps its thread, which cleans up when it comes
/// back; if the process ends before that, the next canary in the folder does.
const PATIENCE: Duration = Duration::from_secs(1);

/// Syncs by itself until dropped.
#[derive(Debug)]
pub struct Canary {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Of the one under way, CLOCK_MONOTONIC; 0 without one.
    started_ns: AtomicU64,
    failed: AtomicU64,
    ended: Mutex<CoarseHistogram>,
}

/// What happened since the look before.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CanaryLook {
    /// Durations of those that ended, ns: of the write and its fdatasync.
    pub ended: CoarseHistogram,
    /// Age of the one under way, ns.
    pub oldest_ns: Option<u64>,
    /// Failed since the start: a full or read-only file system.
    pub failed: u64,
}

impl Canary {
    /// Makes its file in a folder of its own below `folder`, and removes what killed ones left there.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn start(folder: &Path) -> Result<Canary, IoError> {
        let scratch = scratch::make(&scratch::open(folder)?, "canary")?;
        let made = scratch.dir().create_new("page", 0o600);
        let file = made.map_err(|error| IoError::io("cannot create a file in", scratch.path(), error))?;
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("weir-canary".to_string());
        let thread = thread.spawn(move || sing(&theirs, &file, scratch));
        let thread = thread.map_err(|error| IoError::io("cannot start a thread for", folder, error))?;
        Ok(Canary { shared, thread: Some(thread) })
    }

    /// What happened since the look before.
    pub fn look(&self) -> CanaryLook {
        let started_ns = self.shared.started_ns.load(Ordering::Acquire);
        let mut ended = self.shared.ended.lock().unwrap_or_else(PoisonError::into_inner);
        CanaryLook {
            ended: std::mem::take(&mut *ended),
            oldest_ns: (started_ns != 0).then(|| now_ns().saturating_sub(started_ns)),
            failed: self.shared.failed.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return };
        let begun = Instant::now();
        while !thread.is_finished() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(2));
        }
        if thread.is_finished() {
            // It does not panic; if it did, there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// The thread. The folder goes away with it.
fn sing(shared: &Shared, file: &File, scratch: Private) {
    let mut next_ns = now_ns();
    while !shared.stop.load(Ordering::Relaxed) {
        let started_ns = now_ns();
        shared.started_ns.store(started_ns, Ordering::Release);
        let synced = file.write_all_at(&PAGE, 0).and_then(|()| file.sync_data());
        let took_ns = now_ns() - started_ns;
        shared.started_ns.store(0, Ordering::Release);
        match synced {
            Ok(()) => shared.ended.lock().unwrap_or_else(PoisonError::into_inner).record(took_ns),
            Err(_) => {
                shared.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        // One that took long is not made up for.
        next_ns = (next_ns + EVERY_NS).max(now_ns());
        rest(shared, next_ns);
    }
    drop(scratch);
}

/// Sleeps in short steps, so that an end need not wait for the whole.
fn rest(shared: &Shared, until_ns: u64) {
    const STEP_NS: u64 = 50_000_000;
    while !shared.stop.load(Ordering::Relaxed) && now_ns() < until_ns {
        sleep_until_ns(until_ns.min(now_ns() + STEP_NS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_in(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn it_sings_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let canary = Canary::start(folder.path()).unwrap();
        assert_eq!(left_in(folder.path()), 1);
        let mut all = CoarseHistogram::new();
        while all.count() < 2 {
            let look = canary.look();
            assert_eq!(look.failed, 0);
            all.merge(&look.ended);
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(all.sum() > 0);
        drop(canary);
        assert_eq!(left_in(folder.path()), 0);
    }

    #[test]
    fn what_a_killed_one_left_goes_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let mut killed = scratch::make(&scratch::open(folder.path()).unwrap(), "canary").unwrap();
        let dead = killed.path().to_path_buf();
        killed.keep();
        drop(killed);
        // A process that another test starts has its lock until it begins its program.
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while dead.exists() {
            assert!(std::time::Instant::now() < until, "{} is still there", dead.display());
            drop(Canary::start(folder.path()).unwrap());
        }
        assert_eq!(left_in(folder.path()), 0);
        assert!(Canary::start(&folder.path().join("nowhere")).is_err());
    }
}
