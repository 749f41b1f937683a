//! The operations that a job means, in their one order: same seed, same sequence, however many threads take from it.

use crate::workload::distribution::Sampler;
use crate::workload::op::{Op, OpKind, OpSource, Then};
use crate::workload::permute::Permutation;
use crate::workload::rng::Rng;
use crate::workload::schedule::Schedule;
use crate::workload::spec::{Access, BlockSize, Job};
use crate::workload::validate::SpecError;

/// Most operations that one thread takes at once.
const BATCH: usize = 64;

/// What a job finds: the size of each of its files (one for a single file or a device), in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Size of each file in bytes, in the order of the paths.
    pub file_bytes: Vec<u64>,
}

/// The stream of one job.
#[derive(Debug, Clone)]
pub struct JobStream {
    map: FileMap,
    order: Order,
    sizes: Sizes,
    mix: Mix,
    commits: Commits,
    schedule: Schedule,
    /// Source of offsets and sizes.
    rng: Rng,
    remaining: u64,
    batch: usize,
}

/// Where blocks lie: `slots` of `align` bytes in each file, after `base`.
#[derive(Debug, Clone)]
struct FileMap {
    base: u64,
    align: u64,
    /// The usable bytes of each file, after `base`, as much as whole slots fill.
    usable: Vec<u64>,
    /// First slot of each file, and the number of all slots.
    first_slot: Vec<u64>,
    total_slots: u64,
    /// Where all files have as many slots: that number, and 2^64 / it rounded up, to divide by multiplying.
    equal: Option<(u64, u64)>,
}

/// Which slot is next.
#[derive(Debug, Clone)]
enum Order {
    Sequential { file: usize, at: u64 },
    Random { sampler: Sampler, scatter: Option<Permutation> },
}

/// How long the next operation is.
#[derive(Debug, Clone)]
enum Sizes {
    Fixed(u32),
    /// Length and the upper end of its share of the unit interval.
    Split(Vec<(u32, f64)>),
}

/// Whether the next operation reads.
#[derive(Debug, Clone)]
enum Mix {
    Only(OpKind),
    /// Error diffusion: `phase` grows by the share of reads (in 2^-64) and an overflow is a read, so that any
    /// stretch of k operations holds the share of reads to within one.
    Spread {
        phase: u64,
        step: u64,
    },
}

/// Which write is followed by a sync.
#[derive(Debug, Clone)]
struct Commits {
    every: u64,
    until_next: u64,
    then: Then,
}

impl JobStream {
    /// The stream of a job over files of these sizes. Fails where a block does not fit into a file.
    pub fn new(job: &Job, layout: &Layout) -> Result<JobStream, SpecError> {
        crate::workload::validate::job(job)?;
        let map = FileMap::new(job, layout)?;
        let order = match job.access {
            Access::Sequential => Order::Sequential { file: 0, at: 0 },
            Access::Random(distribution) => {
                let sampler = Sampler::new(distribution, map.total_slots);
                let scatter = sampler.scatters().then(|| Permutation::new(map.total_slots, job.seed));
                Order::Random { sampler, scatter }
            }
        };
        Ok(JobStream {
            map,
            order,
            sizes: Sizes::new(&job.block),
            mix: Mix::new(job.read_percent, job.seed),
            commits: Commits::new(job),
            schedule: Schedule::new(job.rate, job.seed),
            rng: Rng::new(job.seed, 0x6f66_6673),
            remaining: if job.operations == 0 { u64::MAX } else { job.operations },
            batch: batch_of(job),
        })
    }

    /// Where the next `len` bytes are: file and offset.
    #[inline]
    fn place(&mut self, len: u32) -> (u32, u64) {
        let slot = match &mut self.order {
            Order::Sequential { file, at } => return self.map.advance(file, at, u64::from(len)),
            Order::Random { sampler: Sampler::Uniform { n }, .. } => self.rng.below(*n),
            Order::Random { sampler, scatter } => {
                let rank = sampler.sample(&mut self.rng);
                scatter.as_ref().map_or(rank, |permutation| permutation.apply(rank))
            }
        };
        self.map.locate(slot, u64::from(len))
    }

    #[inline]
    fn next(&mut self) -> Op {
        let len = self.sizes.next(&mut self.rng);
        let (file, offset) = self.place(len);
        let kind = self.mix.next();
        let then = if kind == OpKind::Write { self.commits.next() } else { Then::Nothing };
        Op { kind, then, file, len, offset, at_ns: self.schedule.next_ns() }
    }
}

impl OpSource for JobStream {
    fn fill(&mut self, out: &mut Vec<Op>, n: usize) {
        let n = self.remaining.min(n as u64);
        self.remaining -= n;
        out.extend((0..n as usize).map(|_| self.next()));
    }

    fn batch(&self) -> usize {
        self.batch
    }
}

/// How many operations one thread may take at once. Sequential threads and syncs of earlier writes keep the order
/// only if they take one at a time, and an operation of an open loop must not wait behind its thread's others. Where
/// the number of operations is limited, no thread may take a notable share of its part at once.
fn batch_of(job: &Job) -> usize {
    let several = job.threads > 1;
    let ordered = matches!(job.access, Access::Sequential) || job.sync.every > 1;
    if job.rate.is_some() || (several && ordered) {
        return 1;
    }
    if several && job.operations > 0 {
        let share = job.operations / (64 * u64::from(job.threads));
        return share.clamp(1, BATCH as u64) as usize;
    }
    BATCH
}

impl FileMap {
    fn new(job: &Job, layout: &Layout) -> Result<FileMap, SpecError> {
        let (align, largest, base) = (job.block.smallest(), job.block.largest(), job.offset.0);
        let mut map =
            FileMap { base, align, usable: vec![], first_slot: vec![], total_slots: 0, equal: None };
        for &bytes in &layout.file_bytes {
            let slots = bytes.saturating_sub(base) / align;
            if slots * align < largest {
                return Err(SpecError::block_beyond_file(largest, bytes, base));
            }
            map.first_slot.push(map.total_slots);
            map.usable.push(slots * align);
            map.total_slots += slots;
        }
        if map.usable.is_empty() {
            return Err(SpecError::new("the job has no file").hint("give it at least one file"));
        }
        let per_file = map.total_slots / map.usable.len() as u64;
        let all_equal = map.usable.iter().all(|&usable| usable == per_file * align);
        map.equal = (all_equal && per_file > 1).then(|| (per_file, u64::MAX / per_file + 1));
        Ok(map)
    }

    /// The file that holds a slot.
    #[inline]
    fn file_of(&self, slot: u64) -> usize {
        if self.first_slot.len() == 1 {
            return 0;
        }
        match self.equal {
            Some((per_file, reciprocal)) => {
                // The rounded reciprocal gives the quotient or one more.
                let quotient = ((u128::from(slot) * u128::from(reciprocal)) >> 64) as u64;
                (quotient - u64::from(quotient * per_file > slot)) as usize
            }
            None => self.first_slot.partition_point(|&first| first <= slot) - 1,
        }
    }

    /// File and offset of a slot; an operation that would reach beyond the end of its file moves back to fit.
    #[inline]
    fn locate(&self, slot: u64, len: u64) -> (u32, u64) {
        let file = self.file_of(slot);
        let at = (slot - self.first_slot[file]) * self.align;
        let usable = self.usable[file];
        let at = if at + len > usable { (usable - len) / self.align * self.align } else { at };
        (file as u32, self.base + at)
    }

    /// Moves the cursor of a sequential stream past the next `len` bytes and returns where they begin.
    #[inline]
    fn advance(&self, file: &mut usize, at: &mut u64, len: u64) -> (u32, u64) {
        if *at + len > self.usable[*file] {
            *at = 0;
            *file = if *file + 1 == self.usable.len() { 0 } else { *file + 1 };
        }
        let begin = (*file as u32, self.base + *at);
        *at += len;
        // Sizes of a split need not be multiples of the smallest.
        if !(*at).is_multiple_of(self.align) {
            *at = at.next_multiple_of(self.align);
        }
        begin
    }
}

impl Sizes {
    fn new(block: &BlockSize) -> Sizes {
        match block {
            BlockSize::Fixed(size) => Sizes::Fixed(size.0 as u32),
            BlockSize::Split(sizes) => {
                let sum: f64 = sizes.iter().map(|(_, weight)| weight).sum();
                let mut upper = 0.0;
                let share = |(size, weight): &(crate::units::Bytes, f64)| {
                    upper += weight / sum;
                    (size.0 as u32, upper)
                };
                Sizes::Split(sizes.iter().map(share).collect())
            }
        }
    }

    #[inline]
    fn next(&self, rng: &mut Rng) -> u32 {
        match self {
            Sizes::Fixed(len) => *len,
            Sizes::Split(sizes) => {
                let u = rng.unit();
                let last = sizes.len() - 1;
                // The last share ends at 1 only up to rounding.
                sizes[sizes.iter().position(|&(_, upper)| u < upper).unwrap_or(last)].0
            }
        }
    }
}

impl Mix {
    fn new(read_percent: f64, seed: u64) -> Mix {
        if read_percent >= 100.0 {
            Mix::Only(OpKind::Read)
        } else if read_percent <= 0.0 {
            Mix::Only(OpKind::Write)
        } else {
            let step = (read_percent / 100.0 * 2f64.powi(64)) as u64;
            Mix::Spread { phase: Rng::new(seed, 0x6d69_7865).next_u64(), step }
        }
    }

    #[inline]
    fn next(&mut self) -> OpKind {
        match self {
            Mix::Only(kind) => *kind,
            Mix::Spread { phase, step } => {
                let (next, reads) = phase.overflowing_add(*step);
                *phase = next;
                if reads { OpKind::Read } else { OpKind::Write }
            }
        }
    }
}

impl Commits {
    fn new(job: &Job) -> Commits {
        let every = job.sync.every;
        let until_next = if every == 0 { u64::MAX } else { every };
        Commits { every, until_next, then: Then::Commit(job.sync.mode) }
    }

    #[inline]
    fn next(&mut self) -> Then {
        self.until_next -= 1;
        if self.until_next > 0 {
            return Then::Nothing;
        }
        self.until_next = self.every;
        self.then
    }
}

#[cfg(test)]
mod tests;
