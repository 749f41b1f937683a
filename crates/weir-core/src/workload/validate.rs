//! Combinations that make no sense, each with a sentence that says why and a hint.

use crate::units::{Bytes, SECTOR_BYTES};
use crate::workload::spec::{
    Access, BlockSize, Data, Distribution, EngineKind, Job, OpenSync, Rate, SyncMode, Target,
};
/// The length of one operation is kept in 32 bits; the kernel itself ends a transfer at 2 GiB - 4 KiB.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// A job that cannot be run as it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SpecError {
    /// The mistake, as a sentence without a full stop.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

impl SpecError {
    /// A mistake without advice.
    pub fn new(what: impl Into<String>) -> Self {
        SpecError { what: what.into(), hint: None }
    }

    /// The same mistake with advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A block that does not fit into a file.
    pub fn block_beyond_file(block: u64, file: u64, skipped: u64) -> Self {
        let skipped =
            if skipped > 0 { format!(" after its first {}", exact(skipped)) } else { String::new() };
        SpecError::new(format!(
            "a block of {} does not fit into a file of {}{skipped}",
            exact(block),
            exact(file)
        ))
        .hint("take a smaller block, fewer files or a larger size")
    }
}

/// A size that is never rounded: `16 KiB`, but `4095 bytes`.
fn exact(bytes: u64) -> String {
    let rounded = Bytes(bytes).to_string();
    if rounded.contains('.') { format!("{bytes} bytes") } else { rounded }
}

/// Looks at everything that can be judged without touching the target; the first mistake found is returned.
pub fn job(job: &Job) -> Result<(), SpecError> {
    numbers(job)?;
    blocks(job)?;
    distribution(job)?;
    engine(job)?;
    durability(job)?;
    verification(job)
}

/// Looks at jobs that run in one go: those that share files must agree about them.
pub fn together(jobs: &[Job]) -> Result<(), SpecError> {
    for (index, job) in jobs.iter().enumerate() {
        for earlier in jobs[..index].iter().filter(|earlier| shares_target(earlier, job)) {
            let (name, other) = (&job.name, &earlier.name);
            fail_if(
                job.target != earlier.target,
                || {
                    format!(
                        "the jobs `{other}` and `{name}` use the same files with different numbers or sizes"
                    )
                },
                "give each a prefix of its own, or the same files, size and keep",
            )?;
            fail_if(
                job.verify || earlier.verify,
                || {
                    format!(
                        "the jobs `{other}` and `{name}` share files, and verify cannot distinguish their \
                         writes"
                    )
                },
                "give each a prefix or file of its own, or leave out verify",
            )?;
        }
    }
    Ok(())
}

fn shares_target(a: &Job, b: &Job) -> bool {
    match (&a.target, &b.target) {
        (Target::Files { dir, prefix, .. }, Target::Files { dir: other_dir, prefix: other_prefix, .. }) => {
            (dir, prefix) == (other_dir, other_prefix)
        }
        (Target::Null { .. }, _) => false,
        // Parts of one file or device may differ in size; only verify cares.
        (a, b) => a == b,
    }
}

/// A rate that cannot be kept by any machine.
pub fn check_rate(rate: Rate) -> Result<(), SpecError> {
    fail_if(
        !within(rate.iops, 1e-6, 1e9),
        || format!("a rate of {} per second is not possible", rate.iops),
        "a rate is above 0 and at most 1e9; leave it out for a closed loop",
    )
}

/// `Err` where `wrong`: the sentence, and what may help.
pub fn fail_if(wrong: bool, what: impl FnOnce() -> String, hint: &str) -> Result<(), SpecError> {
    if wrong { Err(SpecError::new(what()).hint(hint)) } else { Ok(()) }
}

/// IORING_MAX_ENTRIES of the kernel (io_uring/io_uring.h).
const DEPTH_MAX: u32 = 32_768;
/// Each has a buffer and a place in the counters.
const IN_FLIGHT_MAX: u32 = 1 << 20;

/// Whether `value` is a number in `low..=high` (NaN is not).
fn within(value: f64, low: f64, high: f64) -> bool {
    (low..=high).contains(&value)
}

fn numbers(job: &Job) -> Result<(), SpecError> {
    fail_if(job.threads == 0, || "0 threads issue nothing".into(), "use at least one thread")?;
    fail_if(job.depth == 0, || "a depth of 0 keeps nothing in flight".into(), "use a depth of at least 1")?;
    fail_if(
        job.depth > DEPTH_MAX || job.threads.saturating_mul(job.depth) > IN_FLIGHT_MAX,
        || format!("{} operations in flight on {} threads are too many", job.depth, job.threads),
        "a depth of at most 32768, and a million operations in flight in all; io_uring takes no more",
    )?;
    let percent = job.read_percent;
    fail_if(
        !within(percent, 0.0, 100.0),
        || format!("a share of {percent} % reads is not possible"),
        "read-percent runs from 0 (writes only) to 100 (reads only)",
    )?;
    job.rate.map_or(Ok(()), check_rate)?;
    if let Data::Compressible(percent) = job.data {
        fail_if(
            !within(percent, 0.0, 100.0),
            || format!("data cannot be compressible to {percent} %"),
            "compressible takes 0 (not at all) to 100 (entirely)",
        )?;
    }
    Ok(())
}

fn blocks(job: &Job) -> Result<(), SpecError> {
    if let BlockSize::Split(sizes) = &job.block {
        fail_if(
            sizes.is_empty() || sizes.iter().any(|&(_, weight)| !within(weight, f64::MIN_POSITIVE, 1e12)),
            || "every size of a block split needs a weight above 0".into(),
            "for example 4k:60,16k:30,64k:10",
        )?;
    }
    let (smallest, largest) = (job.block.smallest(), job.block.largest());
    fail_if(smallest == 0, || "a block of 0 bytes moves nothing".into(), "for example --block 4k")?;
    fail_if(
        largest > BLOCK_BYTES_MAX,
        || format!("a block of {} is more than one system call moves", Bytes(largest)),
        "blocks go up to 1G",
    )?;
    fail_if(
        !job.offset.0.is_multiple_of(smallest),
        || format!("an offset of {} is not a multiple of the block of {}", job.offset, Bytes(smallest)),
        "start at a multiple of the smallest block",
    )?;
    let direct_odd = job.direct && all_sizes(&job.block).any(|size| !size.is_multiple_of(SECTOR_BYTES));
    fail_if(
        direct_odd,
        || "O_DIRECT moves whole sectors of 512 bytes, and a block is not a multiple of that".into(),
        "take a multiple of 512 (most devices: of 4096), or direct=false",
    )?;
    let size = target_size(&job.target);
    if size > 0 && size.saturating_sub(job.offset.0) / smallest * smallest < largest {
        return Err(SpecError::block_beyond_file(largest, size, job.offset.0));
    }
    if let Target::Files { prefix, count, size, .. } = &job.target {
        fail_if(
            prefix.is_empty() || prefix.contains(['/', '\0']),
            || format!("`{prefix}` cannot begin the name of a file"),
            "the folder is stated with dir; the prefix has no slash",
        )?;
        fail_if(*count == 0, || "0 files hold nothing".into(), "use at least one file")?;
        fail_if(size.0 == 0, || "files of 0 bytes hold nothing".into(), "for example --size 1G")?;
    }
    Ok(())
}

fn all_sizes(block: &BlockSize) -> impl Iterator<Item = u64> + '_ {
    let (fixed, split) = match block {
        BlockSize::Fixed(size) => (Some(size.0), &[][..]),
        BlockSize::Split(sizes) => (None, sizes.as_slice()),
    };
    fixed.into_iter().chain(split.iter().map(|(size, _)| size.0))
}

/// Bytes in each file as far as the job says; 0: all there is.
fn target_size(target: &Target) -> u64 {
    match target {
        Target::Files { size, .. }
        | Target::File { size, .. }
        | Target::Device { size, .. }
        | Target::Null { size } => size.0,
    }
}

fn distribution(job: &Job) -> Result<(), SpecError> {
    match job.access {
        Access::Random(distribution) => check_distribution(distribution),
        _ => Ok(()),
    }
}

/// Parameters that a distribution cannot have.
pub fn check_distribution(distribution: Distribution) -> Result<(), SpecError> {
    let open_unit = |value: f64| value > 0.0 && value < 1.0;
    match distribution {
        Distribution::Uniform => Ok(()),
        Distribution::Zipf(theta) => fail_if(
            !within(theta, 1e-6, 50.0),
            || format!("zipf cannot have an exponent of {theta}"),
            "the exponent is above 0 and at most 50, for example zipf:1.2",
        ),
        Distribution::Pareto(h) => fail_if(
            !open_unit(h),
            || format!("pareto cannot have a share of {h}"),
            "the share is between 0 and 1: pareto:0.2 gives a fifth of the blocks four fifths of the accesses",
        ),
        Distribution::Gaussian(deviation) => fail_if(
            !within(deviation, 1e-9, 1.0),
            || format!("gaussian cannot have a deviation of {deviation}"),
            "the standard deviation is a share of the range, above 0 and at most 1, for example gaussian:0.1",
        ),
        Distribution::Hot { blocks, accesses } => fail_if(
            !open_unit(blocks) || !within(accesses, 0.0, 1.0),
            || format!("hot cannot give {accesses} of the accesses to {blocks} of the blocks"),
            "both are shares between 0 and 1, for example hot:0.1:0.9",
        ),
    }
}

fn engine(job: &Job) -> Result<(), SpecError> {
    let (engine, name) = (job.engine, job.engine.name());
    let queues = engine.is_async() || engine == EngineKind::Null;
    fail_if(
        job.depth > 1 && !queues,
        || format!("a depth of {} has no effect with {name}, which waits for each operation", job.depth),
        "use the engine io_uring or libaio, or more threads",
    )?;
    fail_if(
        job.iopoll && engine != EngineKind::IoUring,
        || format!("iopoll is a mode of io_uring; the engine is {name}"),
        "add the engine io_uring, or leave out iopoll",
    )?;
    fail_if(
        job.iopoll && !job.direct,
        || "iopoll needs O_DIRECT: buffered I/O has no device queue to poll".into(),
        "add direct, or leave out iopoll",
    )?;
    fail_if(
        job.iopoll && job.sync.every > 0 && job.sync.mode != SyncMode::RwfDsync,
        || "iopoll: the kernel takes no fsync through a polled ring".into(),
        "take the sync mode rwf-dsync, or leave out iopoll",
    )?;
    fail_if(
        job.direct && engine == EngineKind::Mmap,
        || "mmap goes through the page cache and cannot be direct".into(),
        "take another engine, or direct=false",
    )?;
    let null_target = matches!(job.target, Target::Null { .. });
    fail_if(
        null_target != (engine == EngineKind::Null),
        || format!("the null engine and the null target belong together; the engine is {name}"),
        "use both or neither",
    )
}

fn durability(job: &Job) -> Result<(), SpecError> {
    let syncs = job.sync.every > 0;
    fail_if(
        syncs && !job.writes(),
        || "a job that only reads has nothing to sync".into(),
        "leave out the sync policy, or let it write (read-percent below 100)",
    )?;
    fail_if(
        job.open_sync != OpenSync::None && !job.writes(),
        || "O_SYNC and O_DSYNC have no effect on a job that only reads".into(),
        "leave out open-sync, or let it write (read-percent below 100)",
    )?;
    fail_if(
        syncs && job.sync.mode == SyncMode::RwfDsync && job.engine == EngineKind::Mmap,
        || "RWF_DSYNC is a flag of a write call, and mmap makes none".into(),
        "with mmap use the sync mode fsync or fdatasync (both are msync there)",
    )?;
    fail_if(
        syncs && job.sync.mode == SyncMode::SyncFileRange && job.engine == EngineKind::Mmap,
        || "a mapping has no sync_file_range, and msync without waiting writes nothing".into(),
        "with mmap use the sync mode fsync or fdatasync (both are msync there)",
    )?;
    fail_if(
        job.open_sync != OpenSync::None && job.engine == EngineKind::Mmap,
        || "O_SYNC and O_DSYNC have no effect on a mapping".into(),
        "with mmap use a sync policy: it calls msync",
    )
}

fn verification(job: &Job) -> Result<(), SpecError> {
    if !job.verify {
        return Ok(());
    }
    fail_if(
        matches!(job.block, BlockSize::Split(_)),
        || "verify checks whole blocks, and a split writes blocks over each other in part".into(),
        "use one block size with verify",
    )?;
    fail_if(
        job.block.smallest() < SECTOR_BYTES,
        || "verify needs space in each block for its header and trailer".into(),
        "use a block of at least 512 bytes with verify",
    )?;
    fail_if(
        job.engine == EngineKind::Null,
        || "the null engine keeps nothing that could be verified".into(),
        "leave out verify",
    )?;
    fail_if(
        job.data == Data::Zero,
        || "verify writes a header into every block, so the data cannot be zero".into(),
        "leave out the data pattern, or leave out verify",
    )?;
    fail_if(
        !job.writes(),
        || "verify checks what its own run has written, and this job writes nothing".into(),
        "let the job write (read-percent below 100), or leave out verify",
    )
}

#[cfg(test)]
mod tests;
