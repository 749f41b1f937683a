//! A job's threads: launched, made ready (engine set up, buffers there), let go, and joined.

use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use weir_core::result::record::{EngineRecord, Note, VerifyRecord};
use weir_core::stats::Histogram;
use weir_core::units::Bytes;
use weir_core::workload::Job;
use weir_core::workload::spec::EngineKind;

use super::seen::Seen;
use super::{JobPlan, RunOptions};
use crate::IoError;
use crate::content::{Content, Generations};
use crate::engine::{Engine, Setup, libaio::Libaio, mmap::Mmap, null::Null, psync::Psync, uring::Uring};
use crate::recorder::ThreadCounters;
use crate::sys::arena::Arena;
use crate::sys::clock::{sleep_until_ns, tighten_timer_slack};
use crate::sys::{extents, file};
use crate::worker::{Shared, Span, Worker};

/// Holes are worth a sentence from this share of the bytes on.
const UNWRITTEN_SHARE: f64 = 0.01;

/// A job whose threads exist.
pub struct RunningJob {
    /// What the threads share.
    pub shared: Arc<Shared>,
    /// Each thread's counters.
    pub counters: Vec<Arc<ThreadCounters>>,
    /// The open files, kept open for the final sync.
    pub files: Arc<Vec<File>>,
    /// What was seen of the files before the start.
    pub notes: Vec<Note>,
    /// What the engine said of itself when it was set up.
    pub engine: EngineRecord,
    /// Each thread's last word.
    pub ends: Vec<ThreadEnd>,
    /// When measuring starts and no operation starts any more, ns on the monotonic clock.
    pub measure_from_ns: u64,
    /// See `measure_from_ns`; `u64::MAX`: no limit.
    pub deadline_ns: u64,
    /// Zero of the schedule.
    pub epoch_ns: u64,
    /// Generations of the blocks, where they are verified.
    pub generations: Generations,
    /// What the sampler saw.
    pub seen: Seen,
    threads: Vec<JoinHandle<()>>,
    go: Vec<Sender<Span>>,
    ready: Receiver<Result<EngineRecord, IoError>>,
    done: Receiver<ThreadEnd>,
}

/// What a thread says when it has ended.
#[derive(Debug, Default)]
pub struct ThreadEnd {
    /// Whether it was at work until its time was up.
    pub lasted: bool,
    /// Of the steps looked at, how many had finished inside the submitting call.
    pub inline: (u64, u64),
    /// What verification found.
    pub verify: VerifyRecord,
    /// How long handing each step to the kernel took, where that was measured.
    pub submits: Option<Histogram>,
}

impl RunningJob {
    /// Opens the files and starts the threads, which set up their engines and wait.
    pub fn launch(plan: JobPlan, options: &RunOptions) -> Result<RunningJob, IoError> {
        let JobPlan { job, source, places } = plan;
        let files = places.iter().map(|place| file::open(&job, place)).collect::<Result<Vec<_>, _>>()?;
        let file_bytes = files
            .iter()
            .zip(&places)
            .map(|(opened, place)| Ok(job.target.used_of(file::size_bytes(opened, place.path())?)))
            .collect::<Result<Vec<_>, _>>()?;
        if job.invalidate {
            files
                .iter()
                .zip(&places)
                .try_for_each(|(opened, place)| file::invalidate(opened, place.path()))?;
        }
        let notes = unwritten(&job, &files, &file_bytes).into_iter().collect();
        let shared = Arc::new(Shared {
            source: Mutex::new(source),
            halt: AtomicBool::new(false),
            failure: Mutex::new(None),
            places,
            file_bytes,
            job,
        });
        let files = Arc::new(files);
        let depth = if shared.job.engine.is_async() || shared.job.engine == EngineKind::Null {
            shared.job.depth
        } else {
            1
        };
        let (ready_sender, ready) = channel();
        let (done_sender, done) = channel();
        let mut running = RunningJob {
            counters: Vec::new(),
            files,
            notes,
            engine: EngineRecord::default(),
            ends: Vec::new(),
            measure_from_ns: 0,
            deadline_ns: u64::MAX,
            epoch_ns: 0,
            generations: Content::shared(&shared.job, &shared.file_bytes),
            seen: Seen::default(),
            threads: Vec::new(),
            go: Vec::new(),
            ready,
            done,
            shared,
        };
        for index in 0..running.shared.job.threads {
            let counters = Arc::new(ThreadCounters::new(depth, running.shared.job.is_open_loop()));
            let (go_sender, go) = channel();
            let seat = Seat {
                shared: running.shared.clone(),
                counters: counters.clone(),
                files: running.files.clone(),
                depth,
                time_submits: options.time_submits,
                content: Content::new(&running.shared.job, depth, running.generations.clone())
                    .map_err(|e| IoError::environment(format!("no random bytes to write: {e}")))?,
                ready: ready_sender.clone(),
                go,
                done: done_sender.clone(),
            };
            let thread = std::thread::Builder::new()
                .name(format!("weir-{}-{index}", running.shared.job.engine.name()))
                .stack_size(256 << 10)
                .spawn(move || seat.work())
                .map_err(|e| IoError::environment(format!("cannot start thread {index}: {e}")))?;
            running.counters.push(counters);
            running.threads.push(thread);
            running.go.push(go_sender);
        }
        Ok(running)
    }

    /// Waits until every thread has its engine. On failure the others end by themselves, as their `go` is dropped.
    pub fn wait_until_ready(&mut self) -> Result<(), IoError> {
        for _ in &self.threads {
            self.engine = self
                .ready
                .recv()
                .map_err(|_| IoError::environment("a thread ended before its engine was set up"))??;
        }
        Ok(())
    }

    /// Lets all threads start.
    pub fn go(&mut self, epoch_ns: u64) {
        let job = &self.shared.job;
        self.epoch_ns = epoch_ns;
        self.measure_from_ns = epoch_ns + job.ramp.0 + job.warmup.0;
        if job.duration.0 > 0 {
            self.deadline_ns = self.measure_from_ns + job.duration.0;
        }
        let threads = self.go.len() as u64;
        for (index, go) in self.go.iter().enumerate() {
            let start_ns = epoch_ns + job.ramp.0 * index as u64 / threads;
            // A thread that is gone has said why through `done`.
            let _ = go.send(Span { epoch_ns, start_ns, deadline_ns: self.deadline_ns });
        }
    }

    /// Collects threads that have ended; `true` once all have.
    pub fn all_ended(&mut self) -> bool {
        self.ends.extend(self.done.try_iter());
        self.ends.len() == self.threads.len() || self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Joins the threads, unless they are stuck and were given up. A panic is the job's failure.
    pub fn join(&mut self) {
        for thread in self.threads.drain(..) {
            if !self.seen.abandoned && thread.join().is_err() {
                let mut failure = self.shared.failure.lock().unwrap_or_else(|e| e.into_inner());
                failure.get_or_insert("a worker thread panicked; see the message above".to_string());
            }
        }
        self.ends.extend(self.done.try_iter());
    }
}

/// What one thread is given.
struct Seat {
    shared: Arc<Shared>,
    counters: Arc<ThreadCounters>,
    files: Arc<Vec<File>>,
    depth: u32,
    time_submits: bool,
    content: Content,
    ready: Sender<Result<EngineRecord, IoError>>,
    go: Receiver<Span>,
    done: Sender<ThreadEnd>,
}

impl Seat {
    /// The thread's life: buffers, engine, ready, go, work, last word.
    fn work(mut self) {
        tighten_timer_slack();
        let block = self.shared.job.block.largest() as usize;
        let mut arena = match Arena::new(self.depth as usize, block) {
            Ok(arena) => arena,
            Err(error) => {
                let refusal = buffer_error(&self.shared.job, error);
                return self.refuse(refusal);
            }
        };
        self.content.fill(&mut arena, self.depth, block);
        let files = self.files.clone();
        let file_bytes = self.shared.file_bytes.clone();
        let setup = Setup {
            files: &files,
            file_bytes: &file_bytes,
            depth: self.depth,
            region: arena.region(),
            iopoll: self.shared.job.iopoll,
            writes: self.shared.job.writes(),
            time_submits: self.time_submits,
        };
        match self.shared.job.engine {
            EngineKind::Psync => self.work_with(Psync::new(&setup), arena),
            EngineKind::Null => self.work_with(Null::default(), arena),
            EngineKind::Mmap => match Mmap::new(&setup) {
                Ok(engine) => self.work_with(engine, arena),
                Err(error) => self.refuse(error),
            },
            EngineKind::Libaio => match Libaio::new(&setup) {
                Ok(engine) => self.work_with(engine, arena),
                Err(error) => self.refuse(error),
            },
            EngineKind::IoUring => match Uring::new(&setup) {
                Ok(engine) => self.work_with(engine, arena),
                Err(error) => self.refuse(error),
            },
        }
    }

    fn refuse(self, error: IoError) {
        let _ = self.ready.send(Err(error));
    }

    fn work_with<E: Engine>(self, engine: E, arena: Arena) {
        let _ = self.ready.send(Ok(engine.describe()));
        // The sender is gone when another thread could not be set up: nothing to do then.
        let Ok(span) = self.go.recv() else { return };
        sleep_until_ns(span.start_ns);
        let mut worker = Worker::new(&self.shared, &self.counters, engine, arena, self.content, span);
        worker.run();
        let lasted = worker.has_lasted();
        let inline = worker.engine().inline_share();
        let submits = worker.engine().submits().cloned();
        let verify = worker.into_content().verify_record();
        let _ = self.done.send(ThreadEnd { lasted, inline, verify, submits });
    }
}

/// Files that read as zeros in part, which the file system makes up without the device. Finding them writes what is dirty:
/// where the page cache is kept, it is to stay as it is.
fn unwritten(job: &Job, files: &[File], file_bytes: &[u64]) -> Option<Note> {
    if !job.reads() || !(job.direct || job.invalidate) {
        return None;
    }
    let (mut all, mut written) = (0, 0);
    for (opened, bytes) in files.iter().zip(file_bytes) {
        let used = job.offset.0.min(*bytes)..*bytes;
        all += used.end - used.start;
        written += extents::written_bytes(opened, used.clone()).unwrap_or(used.end - used.start);
    }
    let share = (all - written) as f64 / all.max(1) as f64;
    (share >= UNWRITTEN_SHARE).then(|| {
        let text = format!(
            "{:.0} % of the {} that the job reads from had never been written: the file system answers such reads with \
             zeros and does not ask the device; write the file in full first (`dd if=/dev/urandom`, not fallocate or \
             truncate)",
            share * 100.0,
            Bytes(all)
        );
        Note { key: "unwritten-extents".to_string(), text }
    })
}

fn buffer_error(job: &Job, error: std::io::Error) -> IoError {
    IoError::environment(format!(
        "cannot allocate {} buffers of {} bytes: {error}",
        job.depth,
        job.block.largest()
    ))
    .hint("use a smaller --depth or --block")
}
