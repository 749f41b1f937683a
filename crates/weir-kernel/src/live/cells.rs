//! From the programs' cells (`bpf/cells.h`) to a [`StageTable`].

use std::collections::BTreeMap;

use weir_blocktrace::{ClassSet, Flags, Key, SizeClass, Stage, StageTable};
use weir_core::stats::Distribution;
use weir_core::target::DeviceNumber;

use super::buckets::{BUCKETS, bounds};
use super::control::{device, words};

/// Words of a cell before its stages, and of a stage's sums; the buckets of all stages follow the sums of all stages.
const HEAD_WORDS: usize = 6;
const SUM_WORDS: usize = 3;

/// Bytes of a cell of so many stages.
pub fn cell_bytes(stages: usize) -> usize {
    8 * (HEAD_WORDS + stages * (SUM_WORDS + BUCKETS))
}

/// Cells of all CPUs, added up by what they hold.
pub struct Cells {
    stages: &'static [Stage],
    sums: BTreeMap<Key, Sum>,
}

struct Sum {
    ios: u64,
    bytes: u64,
    errors: u64,
    for_others: u64,
    stages: Vec<StageSum>,
}

#[derive(Clone)]
struct StageSum {
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
    buckets: Vec<u64>,
}

impl Cells {
    /// `stages` in the order of the cells.
    pub fn new(stages: &'static [Stage]) -> Cells {
        Cells { stages, sums: BTreeMap::new() }
    }

    /// Adds the cell that a map's value holds; one that is still being made holds nothing yet.
    pub fn add(&mut self, value: &[u8]) {
        let words: Vec<u64> = words(value).collect();
        if value.len() != cell_bytes(self.stages.len()) || words[0] == 0 {
            return;
        }
        let (kind, size) = (words[1] as u32, (words[1] >> 32) as u32);
        let (kind, size) = if cfg!(target_endian = "big") { (size, kind) } else { (kind, size) };
        let key = Key { device: device(words[0]), classes: classes(kind), size: SizeClass(size as u8) };
        let sum = self.sums.entry(key).or_insert_with(|| Sum::new(self.stages.len()));
        sum.ios += words[2];
        sum.bytes += words[3];
        sum.errors += words[4];
        sum.for_others += words[5];
        let (sums, buckets) = words[HEAD_WORDS..].split_at(SUM_WORDS * self.stages.len());
        let stages =
            sum.stages.iter_mut().zip(sums.chunks_exact(SUM_WORDS)).zip(buckets.chunks_exact(BUCKETS));
        stages.for_each(|((stage, sums), buckets)| stage.add(sums, buckets));
    }

    /// I/Os in all cells.
    pub fn ios(&self) -> u64 {
        self.sums.values().map(|sum| sum.ios).sum()
    }

    /// The same by device.
    pub fn ios_by_device(&self) -> BTreeMap<DeviceNumber, u64> {
        self.by_device(|sum| sum.ios)
    }

    /// How many of them were not looked at, and counted by one that was drawn.
    pub fn for_others_by_device(&self) -> BTreeMap<DeviceNumber, u64> {
        self.by_device(|sum| sum.for_others)
    }

    fn by_device(&self, count: impl Fn(&Sum) -> u64) -> BTreeMap<DeviceNumber, u64> {
        let mut counts = BTreeMap::new();
        for (key, sum) in &self.sums {
            *counts.entry(key.device).or_default() += count(sum);
        }
        counts
    }

    /// The table; count, sum, minimum and maximum are exact but for I/Os that were not looked at, quantiles within 3.1 %.
    pub fn table(&self) -> StageTable {
        let mut table = StageTable::default();
        for (key, sum) in &self.sums {
            let cell = table.cell_mut(*key);
            (cell.ios, cell.bytes, cell.errors) = (sum.ios, sum.bytes, sum.errors);
            for (stage, sum) in self.stages.iter().zip(&sum.stages) {
                sum.fill(cell.stage_mut(*stage));
            }
        }
        table
    }
}

impl Sum {
    fn new(stages: usize) -> Sum {
        let empty = StageSum { sum_ns: 0, min_ns: u64::MAX, max_ns: 0, buckets: vec![0; BUCKETS] };
        Sum { ios: 0, bytes: 0, errors: 0, for_others: 0, stages: vec![empty; stages] }
    }
}

impl StageSum {
    fn add(&mut self, sums: &[u64], buckets: &[u64]) {
        self.sum_ns += u128::from(sums[0]);
        self.min_ns = self.min_ns.min(sums[1]);
        self.max_ns = self.max_ns.max(sums[2]);
        self.buckets.iter_mut().zip(buckets).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// A bucket's durations stand at the same place at every call, whatever the largest is: `since` finds by it what was there before.
    fn fill(&self, distribution: &mut Distribution) {
        for (bucket, &count) in self.buckets.iter().enumerate() {
            let (low_ns, high_ns) = bounds(bucket as u32);
            // The last one is open.
            distribution.add_bucket(low_ns, if high_ns == u64::MAX { 2 * low_ns } else { high_ns }, count);
        }
        if !distribution.is_empty() {
            distribution.set_exact(self.sum_ns, self.min_ns, self.max_ns);
        }
    }
}

/// The classes of a kind in `bpf/request.h`.
fn classes(kind: u32) -> ClassSet {
    const META: u32 = 8;
    let (flags, bytes) = match kind % META {
        0 => (Flags::READ.0, 1),
        1 => (Flags::WRITE.0, 1),
        2 => (Flags::WRITE.0 | Flags::SYNC.0, 1),
        3 => (Flags::WRITE.0 | Flags::DISCARD.0, 1),
        4 => (Flags::FLUSH.0, 0),
        _ => (Flags::PASSTHROUGH.0, 1),
    };
    let metadata = if kind & META == 0 { 0 } else { Flags::METADATA.0 };
    ClassSet::of(Flags(flags | metadata), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_blocktrace::Class;

    const STAGES: &[Stage] = &[Stage::D2C];

    fn cell(ios: u64, bucket: usize, ns: u64) -> Vec<u8> {
        let mut words = vec![0_u64; cell_bytes(1) / 8];
        let kind_and_size = if cfg!(target_endian = "big") { 2 << 32 | 12 } else { 12 << 32 | 2 };
        words[..6].copy_from_slice(&[7 << 32 | 3, kind_and_size, ios, ios * 4096, 1, 3]);
        words[6..9].copy_from_slice(&[ns * ios, ns, ns]);
        words[9 + bucket] = ios;
        words.into_iter().flat_map(u64::to_ne_bytes).collect()
    }

    fn table(cells: &[Vec<u8>]) -> StageTable {
        let mut sums = Cells::new(STAGES);
        cells.iter().for_each(|cell| sums.add(cell));
        sums.table()
    }

    /// A new maximum in a bucket that was counted in before, and one in the last, which is open.
    #[test]
    fn an_interval_with_a_new_maximum_counts_its_own() {
        const LAST: usize = BUCKETS - 1;
        let last_ns = bounds(LAST as u32).0;
        for (bucket, before_ns, after_ns) in [(64, 513, 527), (LAST, last_ns + 1, 10 * last_ns)] {
            let before = table(&[cell(1000, bucket, before_ns)]);
            let after = table(&[cell(1000, bucket, before_ns), cell(1001, bucket, after_ns)]);
            let interval =
                after.since(&before).of_class(DeviceNumber { major: 7, minor: 3 }, Class::SyncWrite);
            let d2c = interval.stage(Stage::D2C);
            assert_eq!((interval.ios, d2c.count(), d2c.max_ns()), (1001, 1001, after_ns));
            let [median_ns] = d2c.quantiles([0.5]);
            assert!(median_ns >= bounds(bucket as u32).0 && median_ns <= after_ns, "{median_ns}");
        }
    }

    #[test]
    fn cells_of_two_cpus_add_up() {
        let mut cells = Cells::new(STAGES);
        cells.add(&cell(10, 32, 257));
        cells.add(&cell(30, 64, 513));
        cells.add(&vec![0; cell_bytes(1)]);
        assert_eq!(cells.ios(), 40);
        assert_eq!(cells.for_others_by_device().into_values().collect::<Vec<_>>(), [6]);
        let found = cells.table().of_class(DeviceNumber { major: 7, minor: 3 }, Class::SyncWrite);
        let d2c = found.stage(Stage::D2C);
        assert_eq!((found.ios, found.bytes, found.errors), (40, 40 * 4096, 2));
        assert_eq!((d2c.count(), d2c.sum_ns(), d2c.min_ns(), d2c.max_ns()), (40, 17_960, 257, 513));
    }
}
