//! After a verified run that wrote: every block it wrote is read once more, through the device where that works,
//! so that what is checked is what was stored and not what the page cache remembers.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use weir_core::result::record::VerifyRecord;

use super::job::RunningJob;
use crate::content::judge;
use crate::stop::Stop;
use crate::sys::arena::Arena;
use crate::sys::file;

/// Most bytes that one read asks for.
const READ_BYTES: u64 = 1 << 20;

/// How long who asks to stop is kept waiting: a run without an end is ended that way, and checked then.
const AFTER_STOP: Duration = Duration::from_secs(10);

/// Reads back all blocks that the job has written and adds what they show to `found`. `false`: not all of them, for
/// somebody wants to stop. An error of reading ends it.
pub fn read_back(job: &RunningJob, stop: &Stop, found: &mut VerifyRecord) -> Result<bool, String> {
    let Some(generations) = &job.generations else { return Ok(true) };
    let block_bytes = job.shared.job.block.smallest();
    let most = (READ_BYTES / block_bytes).max(1) * block_bytes;
    let mut patience = None;
    let mut arena = Arena::new(1, most as usize).map_err(|e| format!("no buffer to read back: {e}"))?;
    for (index, (place, bytes)) in job.shared.places.iter().zip(&job.shared.file_bytes).enumerate() {
        let failed = |e: std::io::Error| format!("reading back {}: {e}", place.path().display());
        let opened = file::open_to_read_back(place, block_bytes).map_err(failed)?;
        let expected_at = |offset| generations.end_read(generations.begin_read(index as u32, offset));
        let is_written = |offset| expected_at(offset).lowest > 0;
        let end = bytes / block_bytes * block_bytes;
        let mut at = 0;
        while at < end {
            if stop.requested().is_some()
                && Instant::now() > *patience.get_or_insert_with(|| Instant::now() + AFTER_STOP)
            {
                return Ok(false);
            }
            let blocks = |from: u64| (from..end).step_by(block_bytes as usize);
            let Some(first) = blocks(at).find(|offset| is_written(*offset)) else { break };
            let count =
                blocks(first).take_while(|offset| is_written(*offset) && offset - first < most).count();
            let read = arena.slice_mut(0, count * block_bytes as usize);
            opened.read_exact_at(read, first).map_err(failed)?;
            for (block, offset) in read.chunks_exact(block_bytes as usize).zip(blocks(first)) {
                judge(found, block, &expected_at(offset));
            }
            at = first + count as u64 * block_bytes;
        }
    }
    Ok(true)
}
