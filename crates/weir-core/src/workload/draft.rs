//! A job as far as somebody has stated it: each part may be missing. Drafts from defaults, a job file and flags are
//! laid over one another, and what nobody stated gets its default.

use std::path::PathBuf;

use crate::units::{Bytes, Nanos};
use crate::workload::spec::{
    Access, Arrival, BlockSize, Data, Distribution, EngineKind, Job, OpenSync, Rate, SyncMode, SyncPolicy,
    Target,
};
use crate::workload::validate::{self, SpecError};

/// Where the I/O goes, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Files made in a folder.
    Dir(PathBuf),
    /// An existing file.
    File(PathBuf),
    /// A block device.
    Device(PathBuf),
}

macro_rules! draft {
    ($($(#[$doc:meta])* $field:ident: $type:ty),+ $(,)?) => {
        /// What has been stated of a job.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Draft {
            $($(#[$doc])* pub $field: Option<$type>),+
        }

        impl Draft {
            /// This draft, completed by what only `below` states.
            pub fn over(self, below: &Draft) -> Draft {
                let below = below.clone().beneath(&self);
                Draft { $($field: self.$field.or(below.$field)),+ }
            }
        }
    };
}

draft! {
    /// Name in reports.
    name: String,
    /// Folder, file or device.
    place: Place,
    /// First part of the names of files that weir makes.
    prefix: String,
    /// How many files weir makes.
    files: u32,
    /// Size of each file; of a file or device that exists: how much of it to use.
    size: Bytes,
    /// Keep the files that weir made.
    keep: bool,
    /// Bytes left untouched at the beginning.
    offset: Bytes,
    /// Order of offsets; the distribution is stated apart.
    access: Access,
    /// Which blocks are popular (random access).
    distribution: Distribution,
    /// Share of reads in percent.
    read_percent: f64,
    /// Size of each operation.
    block: BlockSize,
    /// How I/O reaches the kernel.
    engine: EngineKind,
    /// Operations in flight per thread.
    depth: u32,
    /// Threads.
    threads: u32,
    /// O_DIRECT.
    direct: bool,
    /// Take the files out of the page cache before the start.
    invalidate: bool,
    /// Poll for completions.
    iopoll: bool,
    /// Flags the files are opened with.
    open_sync: OpenSync,
    /// Sync after every N-th write.
    sync_every: u64,
    /// How to sync.
    sync_mode: SyncMode,
    /// Sync at the end.
    sync_at_end: bool,
    /// Operations per second of an open loop; 0: a closed loop.
    rate_iops: f64,
    /// Distances between the starts of an open loop.
    arrival: Arrival,
    /// When an operation of an open loop counts as late.
    late_after: Nanos,
    /// Time limit.
    duration: Nanos,
    /// Limit of operations.
    operations: u64,
    /// Leading time that is not counted.
    warmup: Nanos,
    /// Threads start spread over this time.
    ramp: Nanos,
    /// Seed of every random choice.
    seed: u64,
    /// What is written.
    data: Data,
    /// Seal and check blocks.
    verify: bool,
    /// Wait for all earlier jobs.
    after_previous: bool,
}

/// First part of the names of files, where nobody states another.
pub const PREFIX: &str = "weir-bench";

/// Whether a job takes its files out of the page cache, where nobody states it: what filling or an earlier job has left
/// there would be read at the speed of memory.
fn invalidates(direct: bool, engine: EngineKind) -> bool {
    !direct && engine != EngineKind::Null
}

impl Draft {
    /// What is left of this draft under one that overrules it: parts that only went with what is overruled go too.
    fn beneath(mut self, above: &Draft) -> Draft {
        if above.access == Some(Access::Sequential) {
            self.distribution = None;
        }
        if above.distribution.is_some() && above.access.is_none() {
            self.access = None;
        }
        if matches!(above.place, Some(Place::File(_) | Place::Device(_))) {
            (self.files, self.prefix, self.keep) = (None, None, None);
        }
        self
    }

    /// The draft that states everything a job states.
    pub fn of(job: &Job) -> Draft {
        let (place, prefix, files, size, keep) = match job.target.clone() {
            Target::Files { dir, prefix, count, size, keep } => {
                (Some(Place::Dir(dir)), Some(prefix), Some(count), size, Some(keep))
            }
            Target::File { path, size } => (Some(Place::File(path)), None, None, size, None),
            Target::Device { path, size } => (Some(Place::Device(path)), None, None, size, None),
            Target::Null { size } => (None, None, None, size, None),
        };
        let distribution = match job.access {
            Access::Random(distribution) => Some(distribution),
            Access::Sequential => None,
        };
        Draft {
            name: Some(job.name.clone()),
            place,
            prefix,
            files,
            size: Some(size),
            keep,
            offset: Some(job.offset),
            access: Some(job.access),
            distribution,
            read_percent: Some(job.read_percent),
            block: Some(job.block.clone()),
            engine: Some(job.engine),
            depth: Some(job.depth),
            threads: Some(job.threads),
            direct: Some(job.direct),
            // Stated only where it departs from its default, which follows `direct` and `engine`.
            invalidate: Some(job.invalidate).filter(|stated| *stated != invalidates(job.direct, job.engine)),
            iopoll: Some(job.iopoll),
            open_sync: Some(job.open_sync),
            sync_every: Some(job.sync.every),
            sync_mode: Some(job.sync.mode),
            sync_at_end: Some(job.sync.at_end),
            rate_iops: job.rate.map(|rate| rate.iops),
            arrival: job.rate.map(|rate| rate.arrival),
            late_after: Some(job.late_after),
            duration: Some(job.duration),
            operations: Some(job.operations),
            warmup: Some(job.warmup),
            ramp: Some(job.ramp),
            seed: Some(job.seed),
            data: Some(job.data),
            verify: Some(job.verify),
            after_previous: Some(job.after_previous),
        }
    }

    /// The job that is meant: defaults filled in, and looked at by [`validate::job`].
    pub fn finish(self) -> Result<Job, SpecError> {
        let default = Job::default();
        let engine = self.engine();
        // The page cache would be measured instead of the storage, so O_DIRECT is the default where it can be.
        let direct = self.direct.unwrap_or(!matches!(engine, EngineKind::Mmap | EngineKind::Null));
        let operations = self.operations.unwrap_or(default.operations);
        let time_limit = if operations > 0 { Nanos(0) } else { default.duration };
        let job = Job {
            target: self.target(engine)?,
            access: self.access()?,
            sync: self.sync(),
            rate: self.rate()?,
            replay: None,
            name: self.name.unwrap_or(default.name),
            offset: self.offset.unwrap_or(default.offset),
            read_percent: self.read_percent.unwrap_or(default.read_percent),
            block: self.block.unwrap_or(default.block),
            engine,
            depth: self.depth.unwrap_or(default.depth),
            threads: self.threads.unwrap_or(default.threads),
            direct,
            invalidate: self.invalidate.unwrap_or(invalidates(direct, engine)),
            iopoll: self.iopoll.unwrap_or(default.iopoll),
            open_sync: self.open_sync.unwrap_or(default.open_sync),
            late_after: self.late_after.unwrap_or(default.late_after),
            duration: self.duration.unwrap_or(time_limit),
            operations,
            warmup: self.warmup.unwrap_or(default.warmup),
            ramp: self.ramp.unwrap_or(default.ramp),
            seed: self.seed.unwrap_or(default.seed),
            data: self.data.unwrap_or(default.data),
            verify: self.verify.unwrap_or(default.verify),
            after_previous: self.after_previous.unwrap_or(default.after_previous),
        };
        validate::job(&job)?;
        Ok(job)
    }

    /// psync, unless more than one operation is to be in flight.
    fn engine(&self) -> EngineKind {
        let needs_queue = self.depth.is_some_and(|depth| depth > 1) || self.iopoll == Some(true);
        self.engine.unwrap_or(if needs_queue { EngineKind::IoUring } else { EngineKind::Psync })
    }

    fn target(&self, engine: EngineKind) -> Result<Target, SpecError> {
        if engine == EngineKind::Null {
            return Ok(Target::Null { size: self.size.unwrap_or(Bytes(1 << 30)) });
        }
        let of_existing = |path: &PathBuf, what: &str| {
            if self.files.is_some() || self.prefix.is_some() || self.keep.is_some() {
                return Err(SpecError::new(format!("files, prefix and keep do not go with a {what}"))
                    .hint("they say which files weir makes in a folder (dir)"));
            }
            Ok((path.clone(), self.size.unwrap_or(Bytes(0))))
        };
        match &self.place {
            Some(Place::File(path)) => {
                of_existing(path, "file").map(|(path, size)| Target::File { path, size })
            }
            Some(Place::Device(path)) => {
                of_existing(path, "device").map(|(path, size)| Target::Device { path, size })
            }
            Some(Place::Dir(dir)) => Ok(self.files_in(dir.clone())),
            None => Ok(self.files_in(PathBuf::from("."))),
        }
    }

    fn files_in(&self, dir: PathBuf) -> Target {
        Target::Files {
            dir,
            prefix: self.prefix.clone().unwrap_or_else(|| PREFIX.to_string()),
            count: self.files.unwrap_or(1),
            size: self.size.unwrap_or(Bytes(1 << 30)),
            keep: self.keep.unwrap_or(false),
        }
    }

    fn access(&self) -> Result<Access, SpecError> {
        match (self.access, self.distribution) {
            (Some(Access::Sequential), Some(distribution)) => {
                Err(SpecError::new(format!("the distribution {distribution} needs random access"))
                    .hint("state random access, or leave out the distribution"))
            }
            (_, Some(distribution)) => Ok(Access::Random(distribution)),
            (Some(access), None) => Ok(access),
            (None, None) => Ok(Access::Random(Distribution::Uniform)),
        }
    }

    fn sync(&self) -> SyncPolicy {
        let default = SyncPolicy::default();
        SyncPolicy {
            every: self.sync_every.unwrap_or(default.every),
            mode: self.sync_mode.unwrap_or(default.mode),
            at_end: self.sync_at_end.unwrap_or(default.at_end),
        }
    }

    fn rate(&self) -> Result<Option<Rate>, SpecError> {
        match (self.rate_iops, self.arrival) {
            (Some(0.0), _) | (None, None) => Ok(None),
            (Some(iops), arrival) => Ok(Some(Rate { iops, arrival: arrival.unwrap_or(Arrival::Constant) })),
            (None, Some(arrival)) => Err(SpecError::new(format!("{arrival} arrivals need a rate"))
                .hint("state the operations per second, or leave out the arrival")),
        }
    }
}
