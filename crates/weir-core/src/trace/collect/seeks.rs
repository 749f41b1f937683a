//! Distances between successive I/Os.

use crate::trace::analysis::Seeks;

/// Keeps [`Seeks`] up to date.
#[derive(Debug, Default)]
pub struct SeekMeter {
    end_sector: Option<u64>,
    out: Seeks,
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
            self.out.count += 1;
            if distance == 0 {
                self.out.sequential += 1;
            } else {
                self.out.sum_sectors += u128::from(distance);
                self.out.sectors.record(distance);
            }
        }
        self.end_sector = Some(sector.saturating_add(u64::from(bytes.div_ceil(512))));
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &SeekMeter) {
        self.out.merge(&other.out);
    }

    /// The figures.
    pub fn finish(self) -> Seeks {
        self.out
    }
}
