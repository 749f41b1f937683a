//! Several connections that work through a list, ended together by an error or a request to stop.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use weir_core::stop::Stop;

use crate::connection::Connection;
use crate::error::DbError;
use crate::runner::lock;
use crate::server::{Canceller, Server};

/// How often whoever waits for the crew looks whether to stop.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Does something with each of `jobs`, on up to `threads` connections. The first error cancels what the others are at;
/// so does a request to stop, which ends with [`DbError::Stopped`].
pub fn each<J: Sync>(
    server: &Server,
    threads: u32,
    jobs: &[J],
    stop: &Stop,
    act: &(dyn Fn(&mut Connection, &J) -> Result<(), DbError> + Sync),
) -> Result<(), DbError> {
    let crew = Crew {
        next: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        at_work: AtomicUsize::new((threads.max(1) as usize).min(jobs.len())),
        cancellers: Mutex::default(),
        failure: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for _ in 0..crew.at_work.load(Relaxed) {
            scope.spawn(|| crew.work(server, jobs, act));
        }
        while crew.at_work.load(Relaxed) > 0 {
            if stop.requested().is_some() || crew.over.load(Relaxed) {
                crew.cancel(stop);
            }
            std::thread::sleep(LOOK_UP);
        }
    });
    match crew.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        _ if stop.requested().is_some() => Err(DbError::Stopped),
        Some(error) => Err(error),
        None => Ok(()),
    }
}

struct Crew {
    next: AtomicUsize,
    over: AtomicBool,
    at_work: AtomicUsize,
    cancellers: Mutex<Vec<Canceller>>,
    failure: Mutex<Option<DbError>>,
}

impl Crew {
    fn work<J>(
        &self,
        server: &Server,
        jobs: &[J],
        act: &(dyn Fn(&mut Connection, &J) -> Result<(), DbError> + Sync),
    ) {
        /// Counts the thread out, whichever way it ends.
        struct Out<'a>(&'a AtomicUsize);
        impl Drop for Out<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Relaxed);
            }
        }
        let _out = Out(&self.at_work);
        if let Err(error) = self.work_through(server, jobs, act) {
            lock(&self.failure).get_or_insert(error);
            self.over.store(true, Relaxed);
        }
    }

    fn work_through<J>(
        &self,
        server: &Server,
        jobs: &[J],
        act: &(dyn Fn(&mut Connection, &J) -> Result<(), DbError> + Sync),
    ) -> Result<(), DbError> {
        let mut connection = Connection::open_committing(server)?;
        lock(&self.cancellers).push(connection.canceller());
        while !self.over.load(Relaxed)
            && let Some(job) = jobs.get(self.next.fetch_add(1, Relaxed))
        {
            act(&mut connection, job)?;
        }
        Ok(())
    }

    /// Ends what is under way, once: who has nothing under way does not notice.
    fn cancel(&self, stop: &Stop) {
        self.over.store(true, Relaxed);
        for canceller in std::mem::take(&mut *lock(&self.cancellers)) {
            if canceller.cancel().is_err() && stop.requested().is_some() {
                // A server that cannot be reached ends the others' statements by itself.
                break;
            }
        }
    }
}
