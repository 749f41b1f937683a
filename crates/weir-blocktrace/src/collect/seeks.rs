//! Distances between successive I/Os.

use std::hint::select_unpredictable;

use super::batch::{Batched, Counts};
use crate::analysis::Seeks;

/// Places for candidates of the most frequent distance.
const CANDIDATES: usize = 256;

/// Keeps [`Seeks`] up to date.
#[derive(Debug, Default)]
pub struct SeekMeter {
    end_sector: Option<u64>,
    count: u64,
    sequential: u64,
    others: Batched<Distances>,
}

/// Distances other than 0.
#[derive(Debug)]
struct Distances {
    out: Seeks,
    /// Distance and count. Each place keeps the distance that has the majority of those that fall there (Boyer and
    /// Moore's vote), so the count is the least that there were.
    candidates: Box<[(u64, u64); CANDIDATES]>,
}

impl SeekMeter {
    /// The next I/O; without data it is no seek.
    #[inline]
    pub fn next(&mut self, sector: u64, bytes: u32) {
        if bytes == 0 {
            return;
        }
        if let Some(end_sector) = self.end_sector {
            let distance = sector.abs_diff(end_sector);
            self.count += 1;
            if distance == 0 {
                self.sequential += 1;
            } else {
                self.others.record(distance);
            }
        }
        self.end_sector = Some(sector.saturating_add(u64::from(bytes.div_ceil(512))));
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: SeekMeter) {
        self.count += other.count;
        self.sequential += other.sequential;
        self.others.merge(other.others);
    }

    /// The figures.
    pub fn finish(self) -> Seeks {
        Seeks { count: self.count, sequential: self.sequential, ..self.others.finish().seeks() }
    }
}

impl Default for Distances {
    fn default() -> Self {
        Distances { out: Seeks::default(), candidates: Box::new([(0, 0); CANDIDATES]) }
    }
}

impl Counts for Distances {
    fn record_all(&mut self, distances: &[u64]) {
        self.out.sectors.record_all(distances);
        for &distance in distances {
            self.out.sum_sectors += u128::from(distance);
            self.vote(distance);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.out.merge(&other.seeks());
    }
}

impl Distances {
    fn seeks(&self) -> Seeks {
        let best = self.candidates.iter().max_by_key(|(distance, n)| (*n, std::cmp::Reverse(*distance)));
        let own = Seeks { frequent: best.copied().filter(|(_, n)| *n > 0), ..Seeks::default() };
        let mut seeks = self.out.clone();
        seeks.merge(&own);
        seeks
    }

    #[inline]
    fn vote(&mut self, distance: u64) {
        // Fibonacci hashing (Knuth, The Art of Computer Programming, 6.4): 2^64 divided by the golden ratio.
        let place = distance.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        let (candidate, n) = &mut self.candidates[place as usize];
        // Without branches: random distances would mispredict each of them.
        let free = *n == 0;
        *candidate = select_unpredictable(free, distance, *candidate);
        *n = select_unpredictable(*candidate == distance, n.wrapping_add(1), n.wrapping_sub(1));
    }
}
