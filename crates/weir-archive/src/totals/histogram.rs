//! Durations by a few classes, as Prometheus has them.

/// Classes, without the last one that holds all longer durations.
const CLASSES: usize = 21;

/// The greatest duration of each class, ns: powers of two from 33 µs to 34 s. Every bucket of the archive lies in one class, so
/// that counts are exact.
pub const BOUNDS_NS: [u64; CLASSES] = bounds();

const fn bounds() -> [u64; CLASSES] {
    let mut bounds = [0; CLASSES];
    let mut at = 0;
    while at < CLASSES {
        bounds[at] = 1 << (15 + at);
        at += 1;
    }
    bounds
}

/// How many took how long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; CLASSES],
    longer: u64,
    sum_ns: u64,
}

impl Histogram {
    /// Counts what is in a bucket of the archive.
    pub fn count(&mut self, bucket_low_ns: i64, count: u64) {
        let low_ns = u64::try_from(bucket_low_ns).unwrap_or(0);
        // A bucket holds its lowest value and not that of the next one.
        let class = BOUNDS_NS.partition_point(|bound_ns| *bound_ns <= low_ns);
        match self.counts.get_mut(class) {
            Some(known) => *known += count,
            None => self.longer += count,
        }
    }

    /// Adds time that they took.
    pub fn lasted(&mut self, ns: u64) {
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Adds another one.
    pub fn add(&mut self, more: &Histogram) {
        self.counts.iter_mut().zip(more.counts).for_each(|(count, more)| *count += more);
        self.longer += more.longer;
        self.lasted(more.sum_ns);
    }

    /// For each bound, ns, how many took no longer.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let sums = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        BOUNDS_NS.into_iter().zip(sums)
    }

    /// How many.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum::<u64>() + self.longer
    }

    /// How long together, ns.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }
}
