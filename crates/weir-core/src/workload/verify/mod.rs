//! Blocks that say what they are, so that a read finds lost, torn and misplaced writes.
//!
//! Layout of a sealed block of `len` bytes, integers little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | magic `weirblk1` |
//! | 8..16 | run id |
//! | 16..20 | index of the file |
//! | 20..24 | `len` |
//! | 24..32 | offset in the file |
//! | 32..40 | generation: how many-th write of this block |
//! | 40..len-24 | data |
//! | len-24..len-16 | run id again |
//! | len-16..len-8 | generation again |
//! | len-8..len | XXH64 of all before it |

mod generations;

pub use generations::{GenerationMap, ReadTicket};
use twox_hash::XxHash64;

const MAGIC: [u8; 8] = *b"weirblk1";
const TRAILER_BYTES: usize = 24;

/// The least size of a block that can be sealed.
pub const SEALED_BYTES_MIN: usize = 512;

/// Which block it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockId {
    /// The run that wrote it.
    pub run_id: u64,
    /// Index of its file.
    pub file: u32,
    /// Offset in the file in bytes.
    pub offset: u64,
}

/// What a read may find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// The block that was asked for.
    pub id: BlockId,
    /// The generation that was complete when the read was issued; 0: perhaps never written in this run.
    pub lowest: u64,
    /// The latest generation that was issued when the read completed.
    pub highest: u64,
    /// A write of the block was in flight during the read, so that it may hold parts of both.
    pub overlapped: bool,
    /// Earlier runs wrote this file from its beginning, and whole: the blocks that they sealed can be judged.
    pub earlier_whole: bool,
}

/// What is wrong with a block that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// Its parts do not belong together.
    #[error("torn or corrupt block: its checksum fails (generation {head} at its head, {tail} at its tail)")]
    Torn {
        /// Generation in the header.
        head: u64,
        /// Generation in the trailer.
        tail: u64,
    },
    /// An earlier write than the last completed one (or a later one than was ever issued).
    #[error("stale block: generation {found}, where {lowest} to {highest} were expected")]
    Stale {
        /// Generation found.
        found: u64,
        /// Lowest that would be right.
        lowest: u64,
        /// Highest that would be right.
        highest: u64,
    },
    /// A whole block of another place.
    #[error("misplaced block: it belongs to file {file}, offset {offset}")]
    Misplaced {
        /// The file it was written to.
        file: u32,
        /// The offset it was written to.
        offset: u64,
    },
    /// The same of a block that an earlier run wrote: nothing tells damage from what a run with other blocks has written since.
    #[error(
        "torn or corrupt block of an earlier run, or one that a run with other blocks has overwritten in part: its checksum fails"
    )]
    Earlier,
    /// Nothing that this run has written.
    #[error("unwritten block: nothing of this run is in it")]
    Unwritten,
}

/// Turns the buffer into a sealed block; its data between header and trailer stays as it is. The buffer must have
/// at least [`SEALED_BYTES_MIN`] bytes.
pub fn seal(block: &mut [u8], id: BlockId, generation: u64) {
    let length = block.len() as u32;
    block[0..8].copy_from_slice(&MAGIC);
    block[8..16].copy_from_slice(&id.run_id.to_le_bytes());
    block[16..20].copy_from_slice(&id.file.to_le_bytes());
    block[20..24].copy_from_slice(&length.to_le_bytes());
    block[24..32].copy_from_slice(&id.offset.to_le_bytes());
    block[32..40].copy_from_slice(&generation.to_le_bytes());
    let trailer = block.len() - TRAILER_BYTES;
    block[trailer..trailer + 8].copy_from_slice(&id.run_id.to_le_bytes());
    block[trailer + 8..trailer + 16].copy_from_slice(&generation.to_le_bytes());
    let checksum = XxHash64::oneshot(0, &block[..trailer + 16]);
    block[trailer + 16..].copy_from_slice(&checksum.to_le_bytes());
}

/// Looks at a whole block that was read.
pub fn check(block: &[u8], expected: &Expected) -> Result<(), Finding> {
    let trailer = block.len() - TRAILER_BYTES;
    let run_id = expected.id.run_id;
    let head_is_ours = block[0..8] == MAGIC && word(block, 8) == run_id;
    let tail_is_ours = word(block, trailer) == run_id;
    if !head_is_ours && !tail_is_ours {
        return if expected.lowest == 0 { check_earlier(block, expected) } else { Err(Finding::Unwritten) };
    }
    if XxHash64::oneshot(0, &block[..trailer + 16]) != word(block, trailer + 16) || !head_is_ours {
        let torn = Finding::Torn { head: word(block, 32), tail: word(block, trailer + 8) };
        return if expected.overlapped { Ok(()) } else { Err(torn) };
    }
    let (file, offset, found) = (word(block, 16) as u32, word(block, 24), word(block, 32));
    if (file, offset) != (expected.id.file, expected.id.offset) {
        return Err(Finding::Misplaced { file, offset });
    }
    if (expected.lowest..=expected.highest).contains(&found) {
        return Ok(());
    }
    Err(Finding::Stale { found, lowest: expected.lowest, highest: expected.highest })
}

/// Whether a block of this very length was sealed here, by this run or an earlier one.
pub fn is_sealed(block: &[u8]) -> bool {
    block[0..8] == MAGIC && word(block, 16) >> 32 == block.len() as u64
}

/// A block that an earlier run has sealed: its checksum and offset must be right. Which generation was its last is
/// not known, nor which number its file had then. Anything that is not sealed passes.
fn check_earlier(block: &[u8], expected: &Expected) -> Result<(), Finding> {
    if !expected.earlier_whole || !is_sealed(block) || expected.overlapped {
        return Ok(());
    }
    let trailer = block.len() - TRAILER_BYTES;
    if XxHash64::oneshot(0, &block[..trailer + 16]) != word(block, trailer + 16) {
        return Err(Finding::Earlier);
    }
    let (file, offset) = (word(block, 16) as u32, word(block, 24));
    if offset == expected.id.offset { Ok(()) } else { Err(Finding::Misplaced { file, offset }) }
}

/// The little-endian 64-bit word at a byte position.
fn word(block: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workload::data::fill_random;
    use crate::workload::rng::Rng;

    const ID: BlockId = BlockId { run_id: 0xfeed, file: 3, offset: 81920 };

    /// Blocks on disks were sealed by it.
    #[test]
    fn the_checksum_is_xxh64_with_seed_0() {
        for (text, hash) in [("", 0xef46_db37_51d8_e999), ("abc", 0x44bc_2cf5_ad77_0999)] {
            assert_eq!(XxHash64::oneshot(0, text.as_bytes()), hash, "{text}");
        }
    }

    fn sealed(length: usize, id: BlockId, generation: u64) -> Vec<u8> {
        let mut block = vec![0; length];
        fill_random(&mut block, &mut Rng::new(generation, 9));
        seal(&mut block, id, generation);
        block
    }

    fn expected(lowest: u64, highest: u64) -> Expected {
        Expected { id: ID, lowest, highest, overlapped: false, earlier_whole: true }
    }

    #[test]
    fn findings_are_told_apart() {
        let block = sealed(4096, ID, 5);
        assert_eq!(check(&block, &expected(5, 5)), Ok(()));
        assert_eq!(check(&block, &expected(4, 6)), Ok(()));
        assert_eq!(check(&block, &expected(6, 7)), Err(Finding::Stale { found: 5, lowest: 6, highest: 7 }));
        let elsewhere = sealed(4096, BlockId { offset: 4096, ..ID }, 5);
        assert_eq!(check(&elsewhere, &expected(5, 5)), Err(Finding::Misplaced { file: 3, offset: 4096 }));
        let earlier_run = sealed(4096, BlockId { run_id: 1, ..ID }, 5);
        for foreign in [earlier_run, vec![0; 4096]] {
            assert_eq!(check(&foreign, &expected(1, 1)), Err(Finding::Unwritten));
            assert_eq!(check(&foreign, &expected(0, 1)), Ok(()));
        }
    }

    #[test]
    fn blocks_of_an_earlier_run_are_checked_as_far_as_they_can_be() {
        let mut block = sealed(4096, BlockId { run_id: 1, file: 9, offset: ID.offset }, 5);
        assert!(is_sealed(&block) && !is_sealed(&block[..2048]) && !is_sealed(&[0; 4096]));
        assert_eq!(check(&block, &expected(0, 0)), Ok(()));
        block[1000] ^= 1;
        assert_eq!(check(&block, &expected(0, 0)), Err(Finding::Earlier));
        assert_eq!(check(&block, &Expected { overlapped: true, ..expected(0, 1) }), Ok(()));
        assert_eq!(check(&block, &expected(1, 1)), Err(Finding::Unwritten));
        let elsewhere = sealed(4096, BlockId { run_id: 1, file: 3, offset: 4096 }, 5);
        assert_eq!(check(&elsewhere, &expected(0, 0)), Err(Finding::Misplaced { file: 3, offset: 4096 }));
        let anything = Expected { earlier_whole: false, ..expected(0, 0) };
        assert_eq!((check(&block, &anything), check(&elsewhere, &anything)), (Ok(()), Ok(())));
    }

    proptest! {
        #[test]
        fn every_torn_sector_is_found(sectors in 2usize..32, cut in 1usize..31, new_first: bool) {
            let cut = 512 * (1 + cut % (sectors - 1));
            let (old, new) = (sealed(512 * sectors, ID, 8), sealed(512 * sectors, ID, 9));
            let (first, second) = if new_first { (&new, &old) } else { (&old, &new) };
            let block = [&first[..cut], &second[cut..]].concat();
            let (head, tail) = if new_first { (9, 8) } else { (8, 9) };
            prop_assert_eq!(check(&block, &expected(8, 9)), Err(Finding::Torn { head, tail }));
            let overlapped = Expected { overlapped: true, ..expected(8, 9) };
            prop_assert_eq!(check(&block, &overlapped), Ok(()));
        }

        #[test]
        fn every_flipped_bit_is_found(position in 0usize..4096, bit in 0u8..8) {
            let mut block = sealed(4096, ID, 5);
            block[position] ^= 1 << bit;
            prop_assert!(check(&block, &expected(5, 5)).is_err());
        }
    }
}
