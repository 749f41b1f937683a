//! Time in a bounded number of slices: their width doubles as the recording grows.

use serde::{Deserialize, Serialize};

/// Width of the slices of a short recording, ns. Slices start at multiples of their width.
const WIDTH_NS_MIN: u64 = 1_000_000;

/// What a slice must be able to do: take in the slice after it.
pub trait Fold: Default {
    /// Adds all of `other`.
    fn fold(&mut self, other: &Self);
}

/// Slices of equal width, without gaps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grid<T> {
    /// Width of a slice, ns: a power of two times 1 ms.
    pub width_ns: u64,
    /// Start of the first slice, ns of the recording's clock: a multiple of the width.
    pub start_ns: u64,
    /// From the first to the last.
    pub slices: Vec<T>,
}

impl<T> Default for Grid<T> {
    fn default() -> Self {
        Grid { width_ns: WIDTH_NS_MIN, start_ns: 0, slices: Vec::new() }
    }
}

impl<T: Fold> Grid<T> {
    /// Index of the slice that `time_ns` is in, made if it is not there; at most `slices_max` are kept (a power of
    /// two helps nobody; two is the least).
    pub fn index(&mut self, time_ns: u64, slices_max: usize) -> usize {
        if self.slices.is_empty() {
            self.start_ns = time_ns - time_ns % self.width_ns;
            self.slices.push(T::default());
        }
        if time_ns < self.start_ns {
            self.extend_back(time_ns, slices_max);
        }
        while (time_ns - self.start_ns) / self.width_ns >= slices_max as u64 {
            self.halve();
        }
        let index = ((time_ns - self.start_ns) / self.width_ns) as usize;
        if index >= self.slices.len() {
            self.slices.resize_with(index + 1, T::default);
        }
        index
    }

    /// Where a slice ends, ns.
    pub fn end_ns(&self, index: usize) -> u64 {
        self.start_ns.saturating_add(self.width_ns.saturating_mul(index as u64 + 1))
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: Grid<T>, slices_max: usize) {
        let mut other = other;
        if other.slices.is_empty() {
            return;
        }
        if self.slices.is_empty() {
            *self = other;
            return;
        }
        let last_ns = other.end_ns(other.slices.len() - 1) - 1;
        self.index(other.start_ns, slices_max);
        self.index(last_ns, slices_max);
        while self.width_ns < other.width_ns {
            self.halve();
        }
        while other.width_ns < self.width_ns {
            other.halve();
        }
        // The other's first slice may begin before this grid does once both have the same width.
        self.index(other.start_ns, slices_max);
        while other.width_ns < self.width_ns {
            other.halve();
        }
        let offset = ((other.start_ns - self.start_ns) / self.width_ns) as usize;
        if self.slices.len() < offset + other.slices.len() {
            self.slices.resize_with(offset + other.slices.len(), T::default);
        }
        for (mine, theirs) in self.slices[offset..].iter_mut().zip(&other.slices) {
            mine.fold(theirs);
        }
    }

    /// Doubles the width.
    fn halve(&mut self) {
        let wide_ns = self.width_ns.saturating_mul(2);
        let odd = !self.start_ns.is_multiple_of(wide_ns);
        let mut slices = std::mem::take(&mut self.slices).into_iter();
        let mut wide = Vec::with_capacity(slices.len() / 2 + 1);
        if odd {
            wide.extend(slices.next());
            self.start_ns -= self.width_ns;
        }
        while let Some(mut slice) = slices.next() {
            if let Some(next) = slices.next() {
                slice.fold(&next);
            }
            wide.push(slice);
        }
        self.width_ns = wide_ns;
        self.slices = wide;
    }

    /// Makes room for a time before the first slice.
    fn extend_back(&mut self, time_ns: u64, slices_max: usize) {
        let end_ns = self.end_ns(self.slices.len() - 1);
        while (end_ns - time_ns) / self.width_ns + 2 > slices_max as u64 && self.width_ns < 1 << 62 {
            self.halve();
        }
        let first_ns = time_ns - time_ns % self.width_ns;
        if first_ns < self.start_ns {
            let more = ((self.start_ns - first_ns) / self.width_ns) as usize;
            self.slices.splice(0..0, std::iter::repeat_with(T::default).take(more));
            self.start_ns = first_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Fold for u64 {
        fn fold(&mut self, other: &u64) {
            *self += other;
        }
    }

    fn of(times_ns: &[u64]) -> Grid<u64> {
        let mut grid = Grid::default();
        for &time_ns in times_ns {
            let index = grid.index(time_ns, 16);
            grid.slices[index] += 1;
        }
        grid
    }

    proptest! {
        #[test]
        fn nothing_is_lost_however_times_jump(times in prop::collection::vec((0_u32..64, any::<u64>()), 1..80), cut in 0_usize..80) {
            let times: Vec<u64> = times.into_iter().map(|(shift, t)| t >> shift).collect();
            let grid = of(&times);
            prop_assert!(grid.slices.len() <= 16);
            prop_assert_eq!(grid.slices.iter().sum::<u64>(), times.len() as u64);
            for (at, &n) in grid.slices.iter().enumerate() {
                let start_ns = grid.start_ns + at as u64 * grid.width_ns;
                let inside = times.iter().filter(|&&t| t >= start_ns && t - start_ns < grid.width_ns).count();
                prop_assert_eq!(inside as u64, n);
            }
            let (a, b) = times.split_at(cut.min(times.len()));
            let mut merged = of(a);
            merged.merge(of(b), 16);
            prop_assert!(merged.slices.len() <= 17, "{}", merged.slices.len());
            prop_assert_eq!(merged.slices.iter().sum::<u64>(), times.len() as u64);
        }
    }
}
