//! What is written, and what is checked of what was read. One per thread; generations are the job's.

use std::io;
use std::sync::Arc;

use weir_core::result::record::VerifyRecord;
use weir_core::stats::random::mix64;
use weir_core::workload::data;
use weir_core::workload::rng::Rng;
use weir_core::workload::spec::{Data, Target};
use weir_core::workload::stream::Layout;
use weir_core::workload::verify::{self, Expected, Finding, GenerationMap, ReadTicket};
use weir_core::workload::{Job, Op, OpKind};

use crate::sys::arena::Arena;
use crate::sys::clock::now_ns;

/// Findings of a thread that are kept in words.
const EXAMPLES_MAX: usize = 8;

/// Generations of all blocks of a job; absent unless blocks are verified.
pub type Generations = Option<Arc<GenerationMap>>;

/// The content of one thread's buffers.
pub struct Content {
    data: Data,
    rng: Rng,
    unique: u64,
    check: Option<Check>,
}

/// What a verifying thread keeps.
struct Check {
    generations: Arc<GenerationMap>,
    tickets: Vec<Option<ReadTicket>>,
    found: VerifyRecord,
}

impl Content {
    /// What the threads of a job share.
    pub fn shared(job: &Job, file_bytes: &[u64]) -> Generations {
        let layout = Layout { file_bytes: file_bytes.to_vec() };
        let run_id = mix64(now_ns() ^ u64::from(std::process::id()) << 40);
        // A file or device that others named may have been written from another beginning, and by runs that were killed.
        let own = matches!(job.target, Target::Files { .. });
        job.verify.then(|| Arc::new(GenerationMap::new(run_id, &layout, job.block.smallest(), own)))
    }

    /// The content of one thread, which no other thread, job or run writes: the seed is that of offsets alone.
    ///
    /// # Errors
    /// When the kernel gives no random bytes.
    pub fn new(job: &Job, depth: u32, generations: Generations) -> io::Result<Content> {
        let own = weir_fs::random()?;
        let tickets = vec![None; depth as usize];
        Ok(Content {
            data: job.data,
            rng: Rng::new(own, 0x6461_7461),
            unique: own,
            check: generations.map(|generations| Check {
                generations,
                tickets,
                found: VerifyRecord::default(),
            }),
        })
    }

    /// Fills all buffers before the start.
    pub fn fill(&mut self, arena: &mut Arena, depth: u32, block: usize) {
        for slot in 0..depth {
            data::prepare(arena.slice_mut(slot, block), self.data, &mut self.rng);
        }
    }

    /// Makes an operation's buffer ready. `false`: another write of this very block is in flight, and which of the
    /// two would last could not be told afterwards.
    #[inline(always)]
    pub fn before(&mut self, op: &Op, arena: &mut Arena, slot: u32) -> bool {
        if op.kind == OpKind::Write {
            self.unique = self.unique.wrapping_add(1);
            data::refresh(arena.slice_mut(slot, op.len as usize), self.data, self.unique);
        }
        match &mut self.check {
            None => true,
            Some(check) => check.before(op, arena, slot),
        }
    }

    /// Checks what was read; notes what was written.
    #[inline(always)]
    pub fn after(&mut self, op: &Op, arena: &mut Arena, slot: u32) {
        if let Some(check) = &mut self.check {
            check.after(op, arena, slot);
        }
    }

    /// What was found.
    pub fn verify_record(self) -> VerifyRecord {
        self.check.map(|check| check.found).unwrap_or_default()
    }
}

impl Check {
    fn before(&mut self, op: &Op, arena: &mut Arena, slot: u32) -> bool {
        match op.kind {
            OpKind::Read => {
                self.tickets[slot as usize] = Some(self.generations.begin_read(op.file, op.offset))
            }
            OpKind::Write => {
                let Some(generation) = self.generations.begin_write(op.file, op.offset) else {
                    self.found.skipped += 1;
                    return false;
                };
                let id = self.generations.id(op.file, op.offset);
                verify::seal(arena.slice_mut(slot, op.len as usize), id, generation);
            }
            OpKind::Sync(_) => {}
        }
        true
    }

    fn after(&mut self, op: &Op, arena: &mut Arena, slot: u32) {
        match op.kind {
            OpKind::Read => {
                if let Some(ticket) = self.tickets[slot as usize].take() {
                    let expected = self.generations.end_read(ticket);
                    judge(&mut self.found, arena.slice_mut(slot, op.len as usize), &expected);
                }
            }
            OpKind::Write => self.generations.end_write(op.file, op.offset),
            OpKind::Sync(_) => {}
        }
    }
}

/// Checks one block and counts what it shows.
pub fn judge(found: &mut VerifyRecord, block: &[u8], expected: &Expected) {
    let verdict = verify::check(block, expected);
    let is_earlier = expected.earlier_whole && verify::is_sealed(block);
    if expected.lowest == 0 && verdict.is_ok() && !is_earlier {
        found.unwritten += 1;
        return;
    }
    found.checked += 1;
    let Err(finding) = verdict else { return };
    match finding {
        // Where a completed write left nothing of itself, an older content is what came back.
        Finding::Stale { .. } | Finding::Unwritten => found.stale += 1,
        Finding::Torn { .. } | Finding::Earlier => found.torn += 1,
        Finding::Misplaced { .. } => found.misplaced += 1,
    }
    if found.examples.len() < EXAMPLES_MAX {
        found.examples.push(format!("file {}, offset {}: {finding}", expected.id.file, expected.id.offset));
    }
}
