//! The specification of a job: what a user may ask for, in validated types. It serialises as it stands in a TOML
//! job file and in the record of a run.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, Nanos};

/// One job: threads that issue one kind of I/O against one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Job {
    /// Name in reports.
    pub name: String,
    /// Where the I/O goes.
    pub target: Target,
    /// Bytes left untouched at the beginning of each file or device; a multiple of the smallest block.
    pub offset: Bytes,
    /// Order of offsets.
    pub access: Access,
    /// Share of reads, in percent: 100 reads only, 0 writes only.
    pub read_percent: f64,
    /// Size of each operation.
    pub block: BlockSize,
    /// How I/O reaches the kernel.
    pub engine: EngineKind,
    /// Operations in flight per thread (asynchronous engines).
    pub depth: u32,
    /// Threads.
    pub threads: u32,
    /// O_DIRECT.
    pub direct: bool,
    /// Take the files' pages out of the page cache before the start, so that buffered reads come from the storage.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub invalidate: bool,
    /// io_uring: poll for completions (needs O_DIRECT and a device with poll queues).
    pub iopoll: bool,
    /// Flags the files are opened with.
    pub open_sync: OpenSync,
    /// When written data is made durable.
    pub sync: SyncPolicy,
    /// Open loop at this rate; absent: closed loop.
    pub rate: Option<Rate>,
    /// A recording that is played, each operation at its time, in place of operations made up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// Open loop: an operation that finishes later than this after its intended start is late.
    pub late_after: Nanos,
    /// Stop after this time (measured after warm-up). 0: no limit.
    pub duration: Nanos,
    /// Stop after this many operations. 0: no limit.
    pub operations: u64,
    /// Leading time that is run but not counted.
    pub warmup: Nanos,
    /// Threads start spread over this time.
    pub ramp: Nanos,
    /// The seed of every random choice of operations; data is never repeated.
    pub seed: u64,
    /// What is written.
    pub data: Data,
    /// Write a checksum, offset and generation into every block and check them on every read.
    pub verify: bool,
    /// Wait for all earlier jobs of the file before starting (in sequence instead of in parallel).
    pub after_previous: bool,
}

impl Default for Job {
    fn default() -> Self {
        Job {
            name: "job".to_string(),
            target: Target::default(),
            offset: Bytes(0),
            access: Access::Random(Distribution::Uniform),
            read_percent: 100.0,
            block: BlockSize::Fixed(Bytes(4096)),
            engine: EngineKind::Psync,
            depth: 1,
            threads: 1,
            direct: false,
            invalidate: false,
            iopoll: false,
            open_sync: OpenSync::None,
            sync: SyncPolicy::default(),
            rate: None,
            replay: None,
            late_after: Nanos::from_millis(10),
            duration: Nanos::from_secs(10),
            operations: 0,
            warmup: Nanos(0),
            ramp: Nanos(0),
            seed: 1,
            data: Data::Random,
            verify: false,
            after_previous: false,
        }
    }
}

/// Where the I/O of a job goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Target {
    /// Files that weir makes (and removes unless `keep`) in a folder: `{prefix}.{index}`.
    Files {
        /// The folder.
        dir: PathBuf,
        /// First part of each name.
        prefix: String,
        /// How many files.
        count: u32,
        /// Size of each.
        size: Bytes,
        /// Leave the files in place, and use those that are there.
        keep: bool,
    },
    /// An existing file, read-only unless writes are asked for; never truncated.
    File {
        /// The file.
        path: PathBuf,
        /// How much of it to use; 0: all.
        size: Bytes,
    },
    /// A block device. Writing needs the user's explicit word for this very device.
    Device {
        /// The device node.
        path: PathBuf,
        /// How much of it to use; 0: all.
        size: Bytes,
    },
    /// No target: the null engine.
    Null {
        /// Pretended size.
        size: Bytes,
    },
}

impl Target {
    /// The path whose file system and device a job uses.
    pub fn place(&self) -> &Path {
        match self {
            Target::Files { dir: path, .. } | Target::File { path, .. } | Target::Device { path, .. } => path,
            Target::Null { .. } => Path::new("."),
        }
    }

    /// How many bytes of a file or device that has so many are used.
    pub fn used_of(&self, bytes: u64) -> u64 {
        match self {
            Target::File { size, .. } | Target::Device { size, .. } if size.0 > 0 => bytes.min(size.0),
            _ => bytes,
        }
    }
}

impl Default for Target {
    fn default() -> Self {
        Target::Files {
            dir: PathBuf::from("."),
            prefix: "weir-bench".to_string(),
            count: 1,
            size: Bytes(1 << 30),
            keep: false,
        }
    }
}

/// Order of offsets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// One cursor through all files in turn, shared by all threads; wraps at the end.
    Sequential,
    /// Block-aligned offsets from a distribution over all files.
    Random(Distribution),
}

/// Which blocks are popular. All but `Uniform` scatter the popular blocks over the whole range by a permutation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Every block alike.
    Uniform,
    /// Zipf with exponent theta > 0: the k-th most popular block has a weight of k^-theta.
    Zipf(f64),
    /// Pareto with 0 < h < 1: a share h of the blocks gets a share 1-h of the accesses (h = 0.2: 80/20).
    Pareto(f64),
    /// Gaussian around the middle of the range (not scattered); the standard deviation as a share of the range.
    Gaussian(f64),
    /// A share of the blocks gets a share of the accesses, each uniform.
    Hot {
        /// Share of blocks that are hot, 0..1.
        blocks: f64,
        /// Share of accesses that go to them, 0..1.
        accesses: f64,
    },
}

/// Size of each operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", untagged)]
pub enum BlockSize {
    /// One size.
    Fixed(Bytes),
    /// Sizes with weights. Offsets are aligned to the smallest.
    Split(Vec<(Bytes, f64)>),
}

/// How I/O reaches the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// pread and pwrite, one at a time per thread.
    Psync,
    /// Linux native asynchronous I/O (io_submit).
    Libaio,
    /// io_uring.
    IoUring,
    /// memcpy to and from a shared mapping; sync is msync.
    Mmap,
    /// Completes at once without a system call: weir's own floor.
    Null,
}

/// Flags the files are opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpenSync {
    /// Neither.
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    Dsync,
}

/// When written data is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SyncPolicy {
    /// Sync the written file after every N-th write; 0: never. 1: every write is a commit.
    pub every: u64,
    /// How.
    pub mode: SyncMode,
    /// Sync every file once at the end. Reported apart from throughput.
    pub at_end: bool,
}

impl Default for SyncPolicy {
    fn default() -> Self {
        SyncPolicy { every: 0, mode: SyncMode::Fdatasync, at_end: true }
    }
}

/// How data is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncMode {
    /// fsync(2): data and all metadata.
    Fsync,
    /// fdatasync(2): data and the metadata needed to read it.
    Fdatasync,
    /// pwritev2(2) with RWF_DSYNC: the write itself returns when durable; write and sync are one operation.
    RwfDsync,
    /// sync_file_range(2): starts and waits for write-out; **not** durable (no metadata, no device flush).
    SyncFileRange,
}

/// An open loop: operations start on a schedule, whether or not earlier ones have finished.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rate {
    /// Operations per second, over all threads of the job.
    pub iops: f64,
    /// Distances between them.
    pub arrival: Arrival,
}

/// Distances between intended starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// Equal.
    Constant,
    /// Exponential: a Poisson process, as independent clients make.
    Poisson,
}

/// A recording that is played.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Replay {
    /// The recording, as it was named.
    pub recording: String,
    /// Its device: `vda (254:0)`.
    pub device: String,
    /// Twice as fast as recorded: 2.
    pub speed: f64,
    /// How offsets of that device become offsets here.
    pub space: Space,
}

/// How offsets of a recorded device become offsets of a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Space {
    /// As they are.
    #[default]
    Recorded,
    /// What lies behind the target's end begins again at its start: neighbours stay neighbours.
    Wrap,
    /// In proportion to the sizes: what was far apart stays so, and what was sequential overlaps.
    Scale,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Data {
    /// Incompressible and different in every 512 bytes.
    Random,
    /// Zeros: compressing, deduplicating and thin devices look faster than they are.
    Zero,
    /// The given percentage of every block compresses away.
    Compressible(f64),
}

impl BlockSize {
    /// All sizes, in bytes.
    pub fn sizes(&self) -> impl Iterator<Item = u64> + '_ {
        let (fixed, split) = match self {
            BlockSize::Fixed(size) => (Some(size.0), &[][..]),
            BlockSize::Split(sizes) => (None, &sizes[..]),
        };
        fixed.into_iter().chain(split.iter().map(|(size, _)| size.0))
    }

    /// The smallest size, to which offsets are aligned.
    pub fn smallest(&self) -> u64 {
        self.sizes().min().unwrap_or(0)
    }

    /// The largest size, which buffers must hold.
    pub fn largest(&self) -> u64 {
        self.sizes().max().unwrap_or(0)
    }
}

impl Job {
    /// Whether the job writes at all.
    pub fn writes(&self) -> bool {
        self.read_percent < 100.0
    }

    /// Whether operations start on a schedule, whether or not earlier ones have finished.
    pub fn is_open_loop(&self) -> bool {
        self.rate.is_some() || self.replay.is_some()
    }

    /// Whether the job reads at all.
    pub fn reads(&self) -> bool {
        self.read_percent > 0.0
    }
}

impl EngineKind {
    /// The name in flags, job files and reports.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Psync => "psync",
            EngineKind::Libaio => "libaio",
            EngineKind::IoUring => "io_uring",
            EngineKind::Mmap => "mmap",
            EngineKind::Null => "null",
        }
    }

    /// Whether more than one operation per thread can be in flight.
    pub fn is_async(self) -> bool {
        matches!(self, EngineKind::Libaio | EngineKind::IoUring)
    }
}
