//! Steps as jobs: what the runner is given.

use std::path::Path;

use weir_core::units::{Bytes, Nanos};
use weir_core::workload::Job;
use weir_core::workload::spec::{
    Access, Arrival, BlockSize, Distribution, EngineKind, OpenSync, Rate, SyncMode, SyncPolicy, Target,
};
use weir_verdict::notes::{StepKind, SyncPath};
use weir_verdict::sustained::Pressure;

use super::plan::What;

/// Requests in flight and size for bulk reads and writes: enough to keep any device busy.
const BULK_BLOCK: u64 = 1 << 20;
const BULK_DEPTH: u32 = 8;
/// Small requests in flight that saturate a volume with a limit: at 1 ms each that is 32,000 a second.
const SMALL_DEPTH: u32 = 32;
/// Operations in flight on the edge of a map, over all threads: what NVMe devices need to be saturated by small reads.
const MAP_DEPTH: u32 = 128;
/// Threads of it at most.
const MAP_THREADS: u32 = 4;
/// Share of a step that warms up, uncounted; at most half a second.
const WARMUP_SHARE: u64 = 8;
const WARMUP_MAX_NS: u64 = 500_000_000;

/// A job on the test file for this long, warm-up included.
pub fn on(file: &Path, size: Bytes, duration_ns: u64) -> Job {
    let warmup_ns = (duration_ns / WARMUP_SHARE).min(WARMUP_MAX_NS);
    Job {
        target: Target::File { path: file.to_path_buf(), size },
        warmup: Nanos(warmup_ns),
        duration: Nanos(duration_ns - warmup_ns),
        // No sync at the end: each step is about its own I/O, and direct writes leave nothing behind.
        sync: SyncPolicy { every: 0, mode: SyncMode::Fdatasync, at_end: false },
        ..Job::default()
    }
}

/// Depth as the engine has it: in one ring, or in as many threads.
fn in_flight(job: Job, engine: EngineKind, depth: u32) -> Job {
    let (depth, threads) = if engine.is_async() { (depth, 1) } else { (1, depth) };
    Job { engine, depth, threads, direct: true, ..job }
}

/// The job that writes the test file for the first time, ending with the file or with its time.
pub fn layout(file: &Path, size: Bytes, engine: EngineKind, longest_ns: u64) -> Job {
    let job = in_flight(on(file, size, longest_ns), engine, BULK_DEPTH);
    Job {
        name: "layout".into(),
        access: Access::Sequential,
        read_percent: 0.0,
        block: BlockSize::Fixed(Bytes(BULK_BLOCK)),
        operations: size.0 / BULK_BLOCK,
        warmup: Nanos(0),
        duration: Nanos(longest_ns),
        ..job
    }
}

/// Name, purpose and job of a step.
pub fn of_step(
    what: &What,
    file: &Path,
    size: Bytes,
    engine: EngineKind,
    duration_ns: u64,
) -> (String, StepKind, Job) {
    let job = on(file, size, duration_ns);
    let random = |block: u64, percent: f64, job: Job| Job {
        access: Access::Random(Distribution::Uniform),
        read_percent: percent,
        block: BlockSize::Fixed(Bytes(block)),
        ..job
    };
    let bulk = |percent: f64| Job {
        access: Access::Sequential,
        read_percent: percent,
        block: BlockSize::Fixed(Bytes(BULK_BLOCK)),
        ..in_flight(job.clone(), engine, BULK_DEPTH)
    };
    let (id, kind, job) = match *what {
        What::Read(depth) => {
            let job = random(4096, 100.0, in_flight(job, engine, depth));
            (format!("read-4k-d{depth}"), StepKind::ReadDepth, job)
        }
        What::Write(depth, block) => {
            let job = random(block, 0.0, in_flight(job, engine, depth));
            (format!("write-{}k-d{depth}", block >> 10), StepKind::WriteDepth, job)
        }
        What::Commit { path, block, threads } => {
            let id = format!("commit-{}k-t{threads}{}", block >> 10, suffix(path));
            (id, StepKind::Commit(path), commit(path, random(block, 0.0, Job { threads, ..job })))
        }
        What::BulkRead => ("read-1m".into(), StepKind::SequentialRead, bulk(100.0)),
        What::BulkWrite => ("write-1m".into(), StepKind::SequentialWrite, bulk(0.0)),
    };
    (id.clone(), kind, Job { name: id, ..job })
}

fn suffix(path: SyncPath) -> &'static str {
    match path {
        SyncPath::Buffered => "",
        SyncPath::Direct => "-direct",
        SyncPath::DirectDsync => "-dsync",
    }
}

fn commit(path: SyncPath, job: Job) -> Job {
    let each = SyncPolicy { every: 1, mode: SyncMode::Fdatasync, at_end: false };
    match path {
        SyncPath::Buffered => Job { sync: each, ..job },
        SyncPath::Direct => Job { sync: each, direct: true, ..job },
        SyncPath::DirectDsync => Job { open_sync: OpenSync::Dsync, direct: true, ..job },
    }
}

/// A load that saturates the storage, every operation of it measured: what comes first spends the credit.
pub fn saturating(file: &Path, size: Bytes, engine: EngineKind, pressure: Pressure, longest_ns: u64) -> Job {
    let depth = match pressure {
        Pressure::Small => SMALL_DEPTH,
        Pressure::Bulk => BULK_DEPTH,
    };
    let job = in_flight(on(file, size, longest_ns), engine, depth);
    Job { warmup: Nanos(0), duration: Nanos(longest_ns), ..job }
}

/// A load of a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixture {
    /// Writes of all operations, 0 to 1.
    pub share: f64,
    /// Size of each.
    pub block: u64,
    /// Operations a second, in open loop; absent: as many as finish.
    pub rate: Option<f64>,
    /// One after another instead of at random.
    pub in_order: bool,
}

/// The job of a load of a map: half of the processors issue it, so that the other half is left to the kernel. Each thread
/// has its part of the operations in flight; in order there is one thread, since several would be several orders.
pub fn mixture(file: &Path, size: Bytes, engine: EngineKind, mix: Mixture) -> Job {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let threads = if mix.in_order { 1 } else { (processors / 2).clamp(1, MAP_THREADS) };
    let depth = if mix.block >= BULK_BLOCK { BULK_DEPTH } else { MAP_DEPTH };
    let job = in_flight(on(file, size, 0), engine, depth);
    let job = if engine.is_async() { Job { threads, depth: (depth / threads).max(1), ..job } } else { job };
    let random = Access::Random(Distribution::Uniform);
    Job {
        access: if mix.in_order { Access::Sequential } else { random },
        read_percent: (1.0 - mix.share) * 100.0,
        block: BlockSize::Fixed(Bytes(mix.block)),
        // As independent clients ask.
        rate: mix.rate.map(|iops| Rate { iops, arrival: Arrival::Poisson }),
        ..job
    }
}

/// Commits of one thread: a write and its fdatasync, one after another.
pub fn commits(file: &Path, size: Bytes, block: u64) -> Job {
    let job = Job { read_percent: 0.0, block: BlockSize::Fixed(Bytes(block)), ..on(file, size, 0) };
    commit(SyncPath::Buffered, job)
}

/// Commits beside a flood: 16 KiB written at random and fsynced each, as the field reports have it.
pub fn beside_flood(label: &str, file: &Path, size: Bytes, threads: u32, duration_ns: u64) -> Job {
    Job {
        name: label.to_string(),
        read_percent: 0.0,
        block: BlockSize::Fixed(Bytes(16 << 10)),
        threads,
        warmup: Nanos(0),
        duration: Nanos(duration_ns),
        sync: SyncPolicy { every: 1, mode: SyncMode::Fsync, at_end: false },
        ..on(file, size, duration_ns)
    }
}
