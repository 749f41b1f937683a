//! What two recordings have in common, and their stages weighted as if both had had the same mix of I/Os.

use std::collections::BTreeMap;

use super::Side;
use crate::analysis::{CellKey, StageSketch};
use crate::{Cell, Class, Stage};
use weir_core::stats::bootstrap::{self, RatioInterval, ratio_unpaired};
use weir_core::stats::quantile::needed;

/// I/Os of one kind and size that each recording must have for the two to be compared.
const IOS_MIN: u64 = 20;

/// The kinds and sizes of a class that both recordings have.
pub(super) struct Mix<'a> {
    cells: Vec<Common<'a>>,
    /// I/Os of the class, of A and of B.
    pub ios: [u64; 2],
    /// Those of them whose kind and size both have.
    pub ios_common: [u64; 2],
}

struct Common<'a> {
    key: CellKey,
    sides: [&'a Cell; 2],
}

/// A figure of both sides and their ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ratio {
    pub ns: [f64; 2],
    pub interval: Option<RatioInterval>,
}

impl<'a> Mix<'a> {
    pub(super) fn of(sides: [&'a Side<'a>; 2], class: Class) -> Mix<'a> {
        let [a, b] = sides.map(|side| cells_of(side, class));
        let cells = a.iter().filter_map(|(key, of_a)| {
            let sides = [*of_a, *b.get(key)?];
            sides.iter().all(|cell| cell.ios >= IOS_MIN).then_some(Common { key: *key, sides })
        });
        let cells: Vec<Common<'_>> = cells.collect();
        let ios = [&a, &b].map(|side| side.values().map(|cell| cell.ios).sum());
        let ios_common = [0, 1].map(|side| cells.iter().map(|cell| cell.sides[side].ios).sum());
        Mix { cells, ios, ios_common }
    }

    /// Whether the two are of the same I/Os.
    pub(super) fn has_same_cells(&self, other: &Mix<'_>) -> bool {
        let keys = |mix: &Mix<'_>| mix.cells.iter().map(|cell| cell.key).collect::<Vec<_>>();
        (self.ios, self.ios_common) == (other.ios, other.ios_common) && keys(self) == keys(other)
    }

    /// How often a stage occurs on each side, in the cells of the mix.
    pub(super) fn counts(&self, stage: Stage) -> [u64; 2] {
        [0, 1].map(|side| self.cells.iter().map(|cell| cell.sides[side].stage(stage).count()).sum())
    }

    /// A stage over the common mix; nothing where no cell has it on both sides.
    pub(super) fn stage(&self, stage: Stage) -> Option<Weighted<'_>> {
        let counts = |cell: &Common<'_>| cell.sides.map(|side| side.stage(stage).count());
        let cells: Vec<&Common<'_>> =
            self.cells.iter().filter(|cell| counts(cell).iter().all(|&n| n >= IOS_MIN)).collect();
        let totals = [0, 1].map(|side| cells.iter().map(|cell| counts(cell)[side]).sum::<u64>() as f64);
        // Each side's own share of the kind, averaged: neither recording is the measure of the other.
        let weight = |cell: &&Common<'_>| {
            let [a, b] = counts(cell);
            (a as f64 / totals[0] + b as f64 / totals[1]) / 2.0
        };
        let weights = cells.iter().map(weight).collect();
        let samples = [0, 1].map(|side| cells.iter().map(|cell| counts(cell)[side]).sum());
        (!cells.is_empty()).then_some(Weighted { stage, cells, weights, samples })
    }
}

fn cells_of<'a>(side: &'a Side<'_>, class: Class) -> BTreeMap<CellKey, &'a Cell> {
    let cells = side.analysis.table.cells();
    let of_class = cells.filter(|(key, _)| key.device == side.device.device && key.classes.has(class));
    of_class.map(|(key, cell)| (CellKey { classes: key.classes, size: key.size }, cell)).collect()
}

/// A stage over the kinds both have, each with its weight in the common mix.
pub(super) struct Weighted<'a> {
    stage: Stage,
    cells: Vec<&'a Common<'a>>,
    weights: Vec<f64>,
    pub samples: [u64; 2],
}

impl Weighted<'_> {
    pub(super) fn mean(&self, sides: [&Side<'_>; 2], seed: u64) -> Ratio {
        let ns = [0, 1].map(|side| {
            let cells = self.cells.iter().zip(&self.weights);
            cells.map(|(cell, weight)| weight * cell.sides[side].stage(self.stage).mean_ns()).sum()
        });
        let [a, b] = sides.map(|side| Sums::of(self, side));
        Ratio { ns, interval: interval(ns, [&a, &b], seed) }
    }

    /// A quantile of the weighted mixture; nothing where too few I/Os are expected beyond it.
    pub(super) fn quantile(&self, sides: [&Side<'_>; 2], quantile: f64, seed: u64) -> Option<Ratio> {
        if self.samples.iter().any(|&n| n < needed(quantile)) {
            return None;
        }
        let ns = [0, 1].map(|side| self.quantile_of(side, quantile));
        let [a, b] = sides.map(|side| Steps::of(self, side, quantile));
        Some(Ratio { ns, interval: interval(ns, [&a, &b], seed) })
    }

    fn quantile_of(&self, side: usize, quantile: f64) -> f64 {
        let mut steps: Vec<(u64, f64)> = Vec::new();
        for (cell, weight) in self.cells.iter().zip(&self.weights) {
            let distribution = cell.sides[side].stage(self.stage);
            let each = weight / distribution.count() as f64;
            let buckets = distribution.buckets().into_iter();
            steps.extend(buckets.map(|(low, high, n)| (low + (high - low) / 2, n as f64 * each)));
        }
        steps.sort_unstable_by_key(|(ns, _)| *ns);
        let mut passed = 0.0;
        for (ns, share) in &steps {
            passed += share;
            if passed > quantile {
                return *ns as f64;
            }
        }
        steps.last().map_or(0.0, |(ns, _)| *ns as f64)
    }

    /// What of this stage is in each block of time of a side, cell by cell; blocks without any are left out.
    fn blocks<'b>(&self, side: &'b Side<'_>) -> Vec<Vec<Option<&'b StageSketch>>> {
        let blocks = side.device.blocks.slices.iter().map(|block| {
            let sketch = |cell: &&Common<'_>| {
                let found = block.cells.iter().find(|(key, _)| *key == cell.key);
                found
                    .map(|(_, stages)| &stages[self.stage as usize])
                    .filter(|sketch| !sketch.counts.is_empty())
            };
            self.cells.iter().map(sketch).collect::<Vec<_>>()
        });
        blocks.filter(|block| block.iter().any(Option::is_some)).collect()
    }
}

/// The interval of the resamples, around the ratio of the exact figures: blocks keep less exact ones.
fn interval(ns: [f64; 2], sides: [&dyn Resample; 2], seed: u64) -> Option<RatioInterval> {
    let of = |side: &dyn Resample| (side.series(), side.blocks());
    let [(series_a, _), (series_b, _)] = sides.map(of);
    let (statistic_a, statistic_b) =
        (|chosen: &[usize]| sides[0].statistic(chosen), |chosen: &[usize]| sides[1].statistic(chosen));
    let side_a = bootstrap::Side { series: &series_a, statistic: &statistic_a };
    let side_b = bootstrap::Side { series: &series_b, statistic: &statistic_b };
    let resampled = ratio_unpaired(&side_a, &side_b, seed)?;
    let ratio = ns[1] / ns[0];
    (ratio.is_finite() && ratio > 0.0).then(|| RatioInterval {
        ratio,
        low: ratio * resampled.low / resampled.ratio,
        high: ratio * resampled.high / resampled.ratio,
    })
}

/// A figure that can be had of any choice of blocks.
trait Resample {
    fn blocks(&self) -> usize;
    fn statistic(&self, chosen: &[usize]) -> Option<f64>;

    /// The figure of each block alone.
    fn series(&self) -> Vec<f64> {
        (0..self.blocks()).map(|block| self.statistic(&[block]).unwrap_or_default()).collect()
    }
}

/// Sums and counts by block and cell.
struct Sums {
    weights: Vec<f64>,
    blocks: Vec<Vec<(f64, f64)>>,
}

impl Sums {
    fn of(weighted: &Weighted<'_>, side: &Side<'_>) -> Sums {
        let of_cell = |sketch: Option<&StageSketch>| {
            sketch.map_or((0.0, 0.0), |sketch| (sketch.sum_ns as f64, sketch.counts.count() as f64))
        };
        let blocks = weighted.blocks(side).into_iter().map(|block| block.into_iter().map(of_cell).collect());
        Sums { weights: weighted.weights.clone(), blocks: blocks.collect() }
    }
}

impl Resample for Sums {
    fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The weighted mean over the cells that the chosen blocks have.
    fn statistic(&self, chosen: &[usize]) -> Option<f64> {
        let (mut mean, mut weight_seen) = (0.0, 0.0);
        for (cell, weight) in self.weights.iter().enumerate() {
            let (mut sum, mut count) = (0.0, 0.0);
            for &block in chosen {
                let (more, n) = self.blocks[block][cell];
                sum += more;
                count += n;
            }
            if count > 0.0 {
                mean += weight * sum / count;
                weight_seen += weight;
            }
        }
        (weight_seen > 0.0).then(|| mean / weight_seen)
    }
}

/// The weighted mixture in each block, cumulated over buckets, so that a quantile of many is a search.
struct Steps {
    quantile: f64,
    /// Lowest and highest value of each bucket, ns.
    bounds: Vec<(u64, u64)>,
    /// By bucket, by block: what lies in this bucket and those below.
    cumulated: Vec<Vec<f64>>,
}

impl Steps {
    fn of(weighted: &Weighted<'_>, side: &Side<'_>, quantile: f64) -> Steps {
        let blocks = weighted.blocks(side);
        let mut totals = vec![0_u64; weighted.cells.len()];
        let mut bounds = BTreeMap::new();
        for block in &blocks {
            for (total, sketch) in totals.iter_mut().zip(block) {
                let Some(sketch) = sketch else { continue };
                *total += sketch.counts.count();
                bounds.extend(sketch.counts.buckets().map(|(low, high, _)| (low, high)));
            }
        }
        let places: BTreeMap<u64, usize> =
            bounds.keys().enumerate().map(|(place, low)| (*low, place)).collect();
        let cumulate = |block: Vec<Option<&StageSketch>>| {
            let mut row = vec![0.0; places.len()];
            for (cell, sketch) in block.iter().enumerate() {
                let each = weighted.weights[cell] / totals[cell].max(1) as f64;
                for (low, _, n) in sketch.iter().flat_map(|sketch| sketch.counts.buckets()) {
                    row[places[&low]] += n as f64 * each;
                }
            }
            let mut sum = 0.0;
            row.iter_mut().for_each(|share| {
                sum += *share;
                *share = sum;
            });
            row
        };
        let by_block: Vec<Vec<f64>> = blocks.into_iter().map(cumulate).collect();
        let of_bucket = |bucket: usize| by_block.iter().map(|block| block[bucket]).collect();
        let cumulated = (0..places.len()).map(of_bucket).collect();
        Steps { quantile, bounds: bounds.into_iter().collect(), cumulated }
    }

    fn below(&self, chosen: &[usize], bucket: usize) -> f64 {
        let (of_bucket, mut sum) = (&self.cumulated[bucket], 0.0);
        for &block in chosen {
            sum += of_bucket[block];
        }
        sum
    }
}

impl Resample for Steps {
    fn blocks(&self) -> usize {
        self.cumulated.first().map_or(0, Vec::len)
    }

    fn statistic(&self, chosen: &[usize]) -> Option<f64> {
        let last = self.bounds.len().checked_sub(1)?;
        let wanted = self.quantile * self.below(chosen, last);
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = (low + high) / 2;
            if self.below(chosen, middle) > wanted {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let before = low.checked_sub(1).map_or(0.0, |bucket| self.below(chosen, bucket));
        let inside = self.below(chosen, low) - before;
        let part = if inside > 0.0 { ((wanted - before) / inside).clamp(0.0, 1.0) } else { 0.5 };
        let (low_ns, high_ns) = self.bounds[low];
        // Values of 0 have no ratio; nothing in the kernel takes less than a nanosecond.
        Some((low_ns as f64 + part * (high_ns - low_ns) as f64).max(1.0))
    }
}
