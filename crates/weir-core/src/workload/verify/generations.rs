//! Which generation of each block is complete and which is in flight.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::workload::stream::Layout;
use crate::workload::verify::{BlockId, Expected};

/// The generations of all blocks of a job, shared by its threads: 4 bytes per block.
#[derive(Debug)]
pub struct GenerationMap {
    run_id: u64,
    block_bytes: u64,
    first_block: Vec<usize>,
    /// Twice the completed generation, plus 1 while the next one is in flight.
    states: Vec<AtomicU32>,
    earlier_whole: bool,
}

/// What was known when a read was issued.
#[derive(Debug, Clone, Copy)]
pub struct ReadTicket {
    id: BlockId,
    state: u32,
}

impl GenerationMap {
    /// A map over files of these sizes in blocks of `block_bytes`, for [`Expected::earlier_whole`].
    pub fn new(run_id: u64, layout: &Layout, block_bytes: u64, earlier_whole: bool) -> GenerationMap {
        let mut blocks = 0;
        let mut first_block = Vec::with_capacity(layout.file_bytes.len());
        for bytes in &layout.file_bytes {
            first_block.push(blocks);
            blocks += (bytes / block_bytes) as usize;
        }
        let states = (0..blocks).map(|_| AtomicU32::new(0)).collect();
        GenerationMap { run_id, block_bytes, first_block, states, earlier_whole }
    }

    /// The block of a file at an offset in bytes, as blocks are sealed and checked.
    pub fn id(&self, file: u32, offset: u64) -> BlockId {
        BlockId { run_id: self.run_id, file, offset }
    }

    fn state(&self, file: u32, offset: u64) -> &AtomicU32 {
        &self.states[self.first_block[file as usize] + (offset / self.block_bytes) as usize]
    }

    /// The generation to seal the next write with; `None` while another write of the block is in flight: two at once
    /// could reach the device in either order.
    pub fn begin_write(&self, file: u32, offset: u64) -> Option<u64> {
        let state = self.state(file, offset);
        let before = state.load(Ordering::Acquire);
        if before % 2 == 1 {
            return None;
        }
        state.compare_exchange(before, before + 1, Ordering::AcqRel, Ordering::Acquire).ok()?;
        Some(u64::from(before / 2) + 1)
    }

    /// The write that [`GenerationMap::begin_write`] admitted has completed. A failed write is not ended: what its
    /// block holds is unknown from then on.
    pub fn end_write(&self, file: u32, offset: u64) {
        self.state(file, offset).fetch_add(1, Ordering::AcqRel);
    }

    /// To be called before a read is issued.
    pub fn begin_read(&self, file: u32, offset: u64) -> ReadTicket {
        let state = self.state(file, offset).load(Ordering::Acquire);
        ReadTicket { id: self.id(file, offset), state }
    }

    /// To be called when the read has completed: what it may have found.
    pub fn end_read(&self, ticket: ReadTicket) -> Expected {
        let state = self.state(ticket.id.file, ticket.id.offset).load(Ordering::Acquire);
        Expected {
            id: ticket.id,
            lowest: u64::from(ticket.state / 2),
            highest: u64::from(state.div_ceil(2)),
            overlapped: state != ticket.state || state % 2 == 1,
            earlier_whole: self.earlier_whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(map: &GenerationMap, ticket: ReadTicket) -> (u64, u64, bool) {
        let expected = map.end_read(ticket);
        (expected.lowest, expected.highest, expected.overlapped)
    }

    #[test]
    fn reads_may_find_what_was_complete_or_in_flight() {
        let layout = Layout { file_bytes: vec![8192, 4096 * 3] };
        let map = GenerationMap::new(7, &layout, 4096, false);
        let idle = map.begin_read(1, 8192);
        assert_eq!(range(&map, idle), (0, 0, false));
        assert_eq!(map.begin_write(1, 8192), Some(1));
        assert_eq!(map.begin_write(1, 8192), None, "one write of a block at a time");
        assert_eq!(map.begin_write(1, 4096), Some(1), "other blocks are free");
        let during = map.begin_read(1, 8192);
        assert_eq!(range(&map, idle), (0, 1, true));
        map.end_write(1, 8192);
        assert_eq!(range(&map, during), (0, 1, true));
        assert_eq!(map.begin_write(1, 8192), Some(2));
        map.end_write(1, 8192);
        assert_eq!(range(&map, during), (0, 2, true));
        let after = map.begin_read(1, 8192);
        assert_eq!(range(&map, after), (2, 2, false));
    }
}
