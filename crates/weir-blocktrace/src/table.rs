//! The table that recordings and live sources fill: stage distributions by device, class and size.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::class::{Class, ClassSet};
use super::stage::Stage;
use weir_core::stats::Distribution;
use weir_core::target::DeviceNumber;

/// log2 of the length rounded up: 12 holds lengths over 2 KiB up to 4 KiB; 0 is no data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SizeClass(pub u8);

impl SizeClass {
    /// Of a length.
    #[inline]
    pub fn of(bytes: u32) -> SizeClass {
        SizeClass(bytes.checked_next_power_of_two().map_or(32, u32::trailing_zeros) as u8)
    }

    /// The largest length in it, bytes.
    pub fn bytes_max(self) -> u64 {
        if self.0 == 0 { 0 } else { 1 << self.0 }
    }
}

/// What a cell holds the distributions of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// Device.
    pub device: DeviceNumber,
    /// The exact set of classes; [`StageTable::of_class`] adds up over sets.
    pub classes: ClassSet,
    /// Length of the piece.
    pub size: SizeClass,
}

/// Distributions of all stages of one kind of I/O.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    stages: [Distribution; Stage::COUNT],
    /// I/Os counted, with or without any stage known.
    pub ios: u64,
    /// Data moved, bytes.
    pub bytes: u64,
    /// I/Os that ended with an error.
    pub errors: u64,
}

impl Cell {
    /// A stage's distribution.
    pub fn stage(&self, stage: Stage) -> &Distribution {
        &self.stages[stage as usize]
    }

    /// The same, to add to.
    #[inline]
    pub fn stage_mut(&mut self, stage: Stage) -> &mut Distribution {
        &mut self.stages[stage as usize]
    }

    /// What was counted since an earlier state of this cell.
    pub fn since(&self, earlier: &Cell) -> Cell {
        let stages = std::array::from_fn(|stage| self.stages[stage].since(&earlier.stages[stage]));
        Cell {
            stages,
            ios: self.ios.saturating_sub(earlier.ios),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            errors: self.errors.saturating_sub(earlier.errors),
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Cell) {
        for (mine, theirs) in self.stages.iter_mut().zip(&other.stages) {
            mine.merge(theirs);
        }
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.errors += other.errors;
    }
}

/// Cells by device, class set and size.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<(Key, Cell)>", into = "Vec<(Key, Cell)>")]
pub struct StageTable {
    cells: BTreeMap<Key, Cell>,
}

impl From<Vec<(Key, Cell)>> for StageTable {
    fn from(cells: Vec<(Key, Cell)>) -> Self {
        StageTable { cells: cells.into_iter().collect() }
    }
}

impl From<StageTable> for Vec<(Key, Cell)> {
    fn from(table: StageTable) -> Self {
        table.cells.into_iter().collect()
    }
}

impl StageTable {
    /// The cell of `key`, made if it is not there.
    pub fn cell_mut(&mut self, key: Key) -> &mut Cell {
        self.cells.entry(key).or_default()
    }

    /// All cells.
    pub fn cells(&self) -> impl Iterator<Item = (&Key, &Cell)> {
        self.cells.iter()
    }

    /// Devices with any I/O, in order.
    pub fn devices(&self) -> Vec<DeviceNumber> {
        let mut devices: Vec<_> = self.cells.keys().map(|key| key.device).collect();
        devices.dedup();
        devices
    }

    /// All of `class` on `device`, over all sizes.
    pub fn of_class(&self, device: DeviceNumber, class: Class) -> Cell {
        self.sum(|key| key.device == device && key.classes.has(class))
    }

    /// Sum of the cells whose key is taken.
    pub fn sum(&self, takes: impl Fn(&Key) -> bool) -> Cell {
        let mut sum = Cell::default();
        self.cells.iter().filter(|(key, _)| takes(key)).for_each(|(_, cell)| sum.merge(cell));
        sum
    }

    /// What was counted since an earlier state of this table; cells in which nothing was are left out.
    pub fn since(&self, earlier: &StageTable) -> StageTable {
        let none = Cell::default();
        let difference = |(key, cell): (&Key, &Cell)| {
            let cell = cell.since(earlier.cells.get(key).unwrap_or(&none));
            (cell.ios > 0).then_some((*key, cell))
        };
        StageTable { cells: self.cells.iter().filter_map(difference).collect() }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &StageTable) {
        for (key, cell) in &other.cells {
            self.cell_mut(*key).merge(cell);
        }
    }
}
