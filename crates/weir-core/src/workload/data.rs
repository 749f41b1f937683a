//! What is written. Zeros and repeated blocks flatter devices and file systems that compress, deduplicate or
//! provision thinly, so by default every sector of every write is new and incompressible, in this run and beside earlier ones.

use crate::stats::random::mix64;
use crate::workload::rng::Rng;
use crate::workload::spec::Data;

/// The unit in which devices deduplicate at the finest, and in which compressible data repeats.
const SECTOR_BYTES: usize = 512;
/// Bytes at the beginning of each sector that change with every write.
const STAMP_BYTES: usize = 8;

/// Fills a buffer once, before the first write from it.
pub fn prepare(buffer: &mut [u8], data: Data, rng: &mut Rng) {
    match data {
        Data::Random => fill_random(buffer, rng),
        Data::Zero => buffer.fill(0),
        Data::Compressible(percent) => fill_compressible(buffer, percent, rng),
    }
}

/// Makes a prepared buffer differ from every earlier write. `unique` must not repeat, for example the number of
/// the write counted from a random one. Costs a few ns per 4 KiB.
#[inline]
pub fn refresh(buffer: &mut [u8], data: Data, unique: u64) {
    if data != Data::Zero {
        stamp(buffer, unique);
    }
}

/// Random bytes throughout.
pub fn fill_random(buffer: &mut [u8], rng: &mut Rng) {
    for chunk in buffer.chunks_mut(8) {
        let bytes = rng.next_u64().to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

/// In each sector, random bytes and then `percent` of zeros; the bytes of the stamp count as random.
fn fill_compressible(buffer: &mut [u8], percent: f64, rng: &mut Rng) {
    for sector in buffer.chunks_mut(SECTOR_BYTES) {
        let random = (sector.len() as f64 * (1.0 - percent / 100.0)).round() as usize;
        let (head, tail) = sector.split_at_mut(random.min(sector.len()));
        fill_random(head, rng);
        tail.fill(0);
    }
}

/// Writes a value of its own into the beginning of every sector: distinct for each `unique` and each sector.
#[inline]
pub fn stamp(buffer: &mut [u8], unique: u64) {
    // An odd step keeps the values of one buffer apart; the mix keeps those of neighbouring writes apart.
    let mut value = mix64(unique);
    for sector in buffer.chunks_mut(SECTOR_BYTES) {
        value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let length = sector.len().min(STAMP_BYTES);
        sector[..length].copy_from_slice(&value.to_le_bytes()[..length]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// Shannon entropy of the bytes, in bits per byte.
    fn entropy(buffer: &[u8]) -> f64 {
        let mut counts = [0f64; 256];
        buffer.iter().for_each(|&byte| counts[byte as usize] += 1.0);
        let length = buffer.len() as f64;
        counts
            .iter()
            .filter(|&&count| count > 0.0)
            .map(|count| -count / length * (count / length).log2())
            .sum()
    }

    #[test]
    fn no_sector_is_written_twice() {
        for data in [Data::Random, Data::Compressible(60.0), Data::Compressible(100.0)] {
            let mut buffer = vec![0; 4096];
            prepare(&mut buffer, data, &mut Rng::new(1, 1));
            let mut seen = HashSet::new();
            for unique in 0..2000 {
                refresh(&mut buffer, data, unique);
                for sector in buffer.chunks(512) {
                    assert!(seen.insert(sector.to_vec()), "{data:?}: write {unique} repeats a sector");
                }
            }
        }
    }

    #[test]
    fn data_is_as_compressible_as_asked() {
        for (data, zeros) in [
            (Data::Random, 0.0),
            (Data::Zero, 1.0),
            (Data::Compressible(0.0), 0.0),
            (Data::Compressible(30.0), 0.3),
            (Data::Compressible(75.0), 0.75),
            (Data::Compressible(100.0), 1.0 - 8.0 / 512.0),
        ] {
            let mut buffer = vec![1; 1 << 16];
            prepare(&mut buffer, data, &mut Rng::new(1, 2));
            refresh(&mut buffer, data, 5);
            // Zeros that are part of runs, as a compressor sees them.
            let in_runs = buffer.chunk_by(|a, b| a == b).filter(|run| run[0] == 0 && run.len() > 4);
            let share = in_runs.map(<[u8]>::len).sum::<usize>() as f64 / buffer.len() as f64;
            assert!((share - zeros).abs() < 0.01, "{data:?}: {share} zeros, not {zeros}");
        }
        let mut buffer = vec![0; 1 << 16];
        prepare(&mut buffer, Data::Random, &mut Rng::new(1, 3));
        assert!(entropy(&buffer) > 7.99, "{}", entropy(&buffer));
    }
}
