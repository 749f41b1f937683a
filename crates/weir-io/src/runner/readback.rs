//! After a verified run that wrote: every block it wrote is read once more, through the device where that works,
//! so that what is checked is what was stored and not what the page cache remembers.

use std::os::unix::fs::FileExt;

use weir_core::result::record::VerifyRecord;

use super::job::RunningJob;
use crate::content::judge;
use crate::sys::arena::Arena;
use crate::sys::file;

/// Reads back all blocks that the job has written and adds what they show to `found`. An error of reading ends it.
pub fn read_back(job: &RunningJob, found: &mut VerifyRecord) -> Result<(), String> {
    let Some(generations) = &job.generations else { return Ok(()) };
    let block_bytes = job.shared.job.block.smallest();
    let mut arena =
        Arena::new(1, block_bytes as usize).map_err(|e| format!("no buffer to read back: {e}"))?;
    for (index, (place, bytes)) in job.shared.places.iter().zip(&job.shared.file_bytes).enumerate() {
        let failed = |e: std::io::Error| format!("reading back {}: {e}", place.path().display());
        let opened = file::open_to_read_back(place, block_bytes).map_err(failed)?;
        for offset in (0..bytes / block_bytes).map(|block| block * block_bytes) {
            let ticket = generations.begin_read(index as u32, offset);
            let expected = generations.end_read(ticket);
            if expected.lowest == 0 {
                continue;
            }
            let buffer = arena.slice_mut(0, block_bytes as usize);
            opened.read_exact_at(buffer, offset).map_err(failed)?;
            judge(found, buffer, &expected);
        }
    }
    Ok(())
}
