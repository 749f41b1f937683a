//! From the tables of a live source to the same [`Analysis`] that a recording gives, so that reports and comparisons
//! take either. What needs single events (seeks, merges, plugs, depths) stays empty.

use std::collections::BTreeMap;

use super::analysis::{Analysis, Block, CellKey, Device, Direction};
use super::class::Class;
use super::collect::BLOCKS_MAX;
use super::extent::Extent;
use super::grid::Grid;
use super::stage::Stage;
use super::table::{Key, StageTable};
use weir_core::target::DeviceNumber;

/// Blocks of time, for intervals of confidence, as intervals come in; their number is bounded.
#[derive(Debug, Default)]
pub struct Intervals {
    blocks: BTreeMap<DeviceNumber, Grid<Block>>,
}

impl Intervals {
    /// Takes in what was counted in the interval that ended at `at_ns`.
    pub fn push(&mut self, at_ns: u64, table: &StageTable) {
        for (key, cell) in table.cells() {
            let grid = self.blocks.entry(key.device).or_default();
            let at = grid.index(at_ns, BLOCKS_MAX);
            let Some(block) = grid.slices.get_mut(at) else { continue };
            let sketches = block.cell_mut(CellKey { classes: key.classes, size: key.size });
            for stage in Stage::ALL {
                let (distribution, sketch) = (cell.stage(stage), &mut sketches[stage as usize]);
                for (low_ns, high_ns, n) in distribution.buckets() {
                    sketch.counts.add(low_ns + (high_ns - low_ns) / 2, u32::try_from(n).unwrap_or(u32::MAX));
                }
                let sum_ns = u64::try_from(distribution.sum_ns()).unwrap_or(u64::MAX);
                sketch.sum_ns = sketch.sum_ns.saturating_add(sum_ns);
            }
        }
    }

    /// The whole time, which began at 0 and ended at `end_ns`, with the names of devices where they are known.
    pub fn finish(
        mut self,
        end_ns: u64,
        table: StageTable,
        names: &BTreeMap<DeviceNumber, String>,
    ) -> Analysis {
        let devices = table.devices().into_iter().map(|number| {
            let blocks = self.blocks.remove(&number).unwrap_or_default();
            device(number, names.get(&number).cloned(), end_ns, blocks, &table)
        });
        let (devices, extent) = (devices.collect(), whole(end_ns));
        Analysis { start_ns: 0, end_ns, extent, devices, table, ..Analysis::default() }
    }
}

fn whole(end_ns: u64) -> Extent {
    Extent { begun_ns: Some(0), ended_ns: Some(end_ns) }
}

fn device(
    number: DeviceNumber,
    name: Option<String>,
    end_ns: u64,
    blocks: Grid<Block>,
    table: &StageTable,
) -> Device {
    let ios = table.sum(|key: &Key| key.device == number).ios;
    let extent = whole(end_ns);
    let mut device = Device {
        device: number,
        name,
        end_ns,
        extent,
        pieces: ios,
        requests: ios,
        blocks,
        ..Device::default()
    };
    for (class, direction) in [
        (Class::Read, Direction::Read),
        (Class::Write, Direction::Write),
        (Class::Discard, Direction::Discard),
        (Class::Flush, Direction::Other),
    ] {
        let cell = table.of_class(number, class);
        let traffic = &mut device.traffic[direction as usize];
        (traffic.requests, traffic.bytes) = (cell.ios, cell.bytes);
    }
    device
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClassSet, Flags, SizeClass};

    #[test]
    fn intervals_add_up_to_the_table() {
        let number = DeviceNumber { major: 8, minor: 0 };
        let classes = ClassSet::of(Flags::READ, 4096);
        let key = Key { device: number, classes, size: SizeClass::of(4096) };
        let (mut intervals, mut whole) = (Intervals::default(), StageTable::default());
        for second in 1..=100_u64 {
            let mut table = StageTable::default();
            let cell = table.cell_mut(key);
            for n in 0..50 {
                cell.stage_mut(Stage::D2C).record(second * 1000 + n);
                cell.ios += 1;
            }
            intervals.push(second * 1_000_000_000, &table);
            whole.merge(&table);
        }
        let names = BTreeMap::from([(number, "sda".to_string())]);
        let analysis = intervals.finish(100_000_000_000, whole, &names);
        let device = analysis.device(number).unwrap();
        assert_eq!((device.requests, device.name.as_deref()), (5000, Some("sda")));
        assert!(device.blocks.slices.len() <= BLOCKS_MAX && device.blocks.slices.len() > BLOCKS_MAX / 4);
        let sketches = device.blocks.slices.iter().flat_map(|block| &block.cells);
        let (count, sum_ns) = sketches.fold((0, 0), |(count, sum_ns), (_, stages)| {
            let sketch = &stages[Stage::D2C as usize];
            (count + sketch.counts.count(), sum_ns + u128::from(sketch.sum_ns))
        });
        assert_eq!(
            (count, sum_ns),
            (5000, analysis.table.of_class(number, Class::All).stage(Stage::D2C).sum_ns())
        );
    }
}
