//! Stage distributions and parts of a device's pieces, gathered in batches.
//!
//! Pieces wait as bare [`Times`] until a batch is full or a block of time ends; then one stage after the other is
//! counted, so that each distribution's memory is fetched once a batch and not once a piece. G2D* of pieces that were
//! not inserted is their G2D: it is added only in the end.

use super::waiting::List;
use crate::analysis::{Block, CellKey, Device, Parts, StageSketch};
use crate::class::ClassSet;
use crate::grid::{Fold, Grid};
use crate::life::{Piece, Times};
use crate::stage::{Moment, Stage};
use crate::table::{Cell, Key, SizeClass, StageTable};
use weir_core::stats::{Distribution, Durations};
use weir_core::target::DeviceNumber;

/// Pieces of one kind and with the same moments that wait: 12 KiB of times.
const BATCH: usize = 256;
/// Blocks of time kept for resampling.
pub const BLOCKS_MAX: usize = 64;
/// Sizes distinguished, and sets of moments.
const SIZES: usize = 33;
const SETS: usize = 64;
/// Every set of classes × every size × every set of moments.
const PLACES: usize = 256 * SIZES * SETS;

/// All kinds of I/O of one device.
#[derive(Debug)]
pub struct Cells {
    /// Where those of one kind and with the same moments wait, counted from 1. 1 MiB, but few sets of classes can be:
    /// of all others nothing is ever touched.
    place: Box<[u16]>,
    alike: Vec<Alike>,
    open: Vec<Open>,
    block: usize,
    block_end_ns: u64,
    blocks: Grid<Block>,
}

/// Pieces of one kind and with the same moments that wait. What changes with every piece is side by side.
#[derive(Debug)]
struct Alike {
    list: List,
    bytes: u64,
    errors: u32,
    /// Their kind among those open.
    open: u16,
    /// Some were counted in this block already.
    was_counted: bool,
}

/// A kind.
#[derive(Debug)]
struct Open {
    key: CellKey,
    cell: Box<Cell>,
    parts: Parts,
    /// Where its pieces wait.
    alike: Vec<u16>,
}

impl Cells {
    pub fn new() -> Cells {
        Cells {
            place: vec![0; PLACES].into(),
            alike: Vec::new(),
            open: Vec::new(),
            block: 0,
            block_end_ns: 0,
            blocks: Grid::default(),
        }
    }

    /// Counts a piece that ended at `end_ns`.
    #[inline]
    pub fn piece(&mut self, piece: &Piece, classes: ClassSet, known: u8, end_ns: u64) {
        if end_ns >= self.block_end_ns {
            self.next_block(end_ns);
        }
        let key = CellKey { classes, size: SizeClass::of(piece.bytes) };
        let mut place = self.place[place_of(key, known)];
        if place == 0 {
            place = self.open(key, known);
        }
        let at = usize::from(place) - 1;
        let alike = &mut self.alike[at];
        alike.bytes += u64::from(piece.bytes);
        alike.errors += u32::from(piece.error != 0);
        if alike.list.push(&piece.times) >= BATCH {
            self.count(at);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, mut other: Cells) {
        self.flush();
        other.flush();
        for theirs in other.open {
            let at = self.open_of(theirs.key);
            let mine = &mut self.open[at];
            mine.cell.merge(&theirs.cell);
            mine.parts.merge(&theirs.parts);
        }
        self.blocks.merge(other.blocks, BLOCKS_MAX);
        self.block_end_ns = 0;
    }

    /// Everything into the table and the device.
    pub fn finish(mut self, number: DeviceNumber, table: &mut StageTable, device: &mut Device) {
        self.flush();
        for mut open in self.open {
            let not_inserted = std::mem::take(open.cell.stage_mut(Stage::G2D));
            open.cell.stage_mut(Stage::G2DAll).merge(&not_inserted);
            *open.cell.stage_mut(Stage::G2D) = not_inserted;
            let CellKey { classes, size } = open.key;
            table.cell_mut(Key { device: number, classes, size }).merge(&open.cell);
            device.parts.push((open.key, open.parts));
        }
        device.parts.sort_by_key(|(key, _)| *key);
        for (_, stages) in self.blocks.slices.iter_mut().flat_map(|block| &mut block.cells) {
            let not_inserted = stages[Stage::G2D as usize].clone();
            stages[Stage::G2DAll as usize].merge(&not_inserted);
        }
        device.blocks = self.blocks;
    }

    /// A place for pieces that know the moments `known`, counted from 1.
    #[cold]
    fn open(&mut self, key: CellKey, known: u8) -> u16 {
        let open = self.open_of(key);
        let at = self.alike.len() as u16;
        let list = List::new(known);
        self.alike.push(Alike { list, bytes: 0, errors: 0, open: open as u16, was_counted: false });
        self.open[open].alike.push(at);
        self.place[place_of(key, known)] = at + 1;
        at + 1
    }

    fn open_of(&mut self, key: CellKey) -> usize {
        self.open.iter().position(|open| open.key == key).unwrap_or_else(|| {
            let (cell, parts) = (Box::default(), Parts::default());
            self.open.push(Open { key, cell, parts, alike: Vec::new() });
            self.open.len() - 1
        })
    }

    #[cold]
    fn next_block(&mut self, end_ns: u64) {
        self.flush();
        self.block = self.blocks.index(end_ns, BLOCKS_MAX);
        self.block_end_ns = self.blocks.end_ns(self.block);
    }

    /// Counts those that wait at one place.
    #[inline(never)]
    fn count(&mut self, at: usize) {
        let open = &mut self.open[usize::from(self.alike[at].open)];
        let has_whole = open.has_whole(&self.alike);
        open.count(&mut self.alike[at], has_whole, self.blocks.slices.get_mut(self.block));
    }

    /// Counts all that wait; a block of time is over.
    fn flush(&mut self) {
        for open in &mut self.open {
            let has_whole = open.has_whole(&self.alike);
            for at in 0..open.alike.len() {
                let alike = &mut self.alike[usize::from(open.alike[at])];
                if !alike.list.is_empty() {
                    open.count(alike, has_whole, self.blocks.slices.get_mut(self.block));
                }
                alike.was_counted = false;
            }
        }
    }
}

impl Open {
    /// Whether the Q of one in this block is known.
    fn has_whole(&self, alike: &[Alike]) -> bool {
        let mut mine = self.alike.iter().map(|&at| &alike[usize::from(at)]);
        mine.any(|alike| alike.list.knows(Moment::Queue) && (alike.was_counted || !alike.list.is_empty()))
    }

    fn count(&mut self, alike: &mut Alike, has_whole: bool, block: Option<&mut Block>) {
        alike.was_counted = true;
        let Open { key, cell, parts, .. } = self;
        cell.ios += alike.list.len() as u64;
        cell.bytes += std::mem::take(&mut alike.bytes);
        cell.errors += u64::from(std::mem::take(&mut alike.errors));
        let mut unkept = Default::default();
        let sketches = block.map_or(&mut unkept, |block| block.cell_mut(*key));
        alike.list.count(parts, |stage, durations| {
            let distribution = cell.stage_mut(stage);
            // What blocks serve compares Q2C, and G2C only for want of it.
            if stage == Stage::G2C && has_whole {
                distribution.record_known(durations);
            } else {
                sketches[stage as usize].record_with(distribution, durations);
            }
        });
    }
}

#[inline]
fn place_of(key: CellKey, known: u8) -> usize {
    (usize::from(key.classes.0) * SIZES + usize::from(key.size.0)) * SETS + usize::from(known) % SETS
}

impl StageSketch {
    fn record_with(&mut self, distribution: &mut Distribution, durations: &Durations<'_>) {
        self.counts.record_with(distribution, durations);
        self.sum_ns = self.sum_ns.saturating_add(u64::try_from(durations.sum_ns).unwrap_or(u64::MAX));
    }

    fn merge(&mut self, other: &StageSketch) {
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.counts.merge(&other.counts);
    }
}

impl Block {
    /// The stages of one kind, made if they are not there.
    pub fn cell_mut(&mut self, key: CellKey) -> &mut [StageSketch; Stage::COUNT] {
        let at = self.cells.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
            self.cells.push((key, Default::default()));
            self.cells.len() - 1
        });
        &mut self.cells[at].1
    }
}

impl Fold for Block {
    fn fold(&mut self, other: &Block) {
        for (key, theirs) in &other.cells {
            for (mine, theirs) in self.cell_mut(*key).iter_mut().zip(theirs) {
                mine.merge(theirs);
            }
        }
    }
}

impl Parts {
    /// Adds a piece's life, each nanosecond of it once: a moment out of order counts as the one before it.
    pub fn add(&mut self, times: &Times) {
        let (Some(mut at_ns), Some(end_ns)) = (times.get(Moment::Queue), times.get(Moment::Complete)) else {
            return;
        };
        if end_ns < at_ns {
            return;
        }
        self.pieces += 1;
        let mut until = |moment| {
            let next_ns = times.get(moment)?.clamp(at_ns, end_ns);
            let ns = next_ns - at_ns;
            at_ns = next_ns;
            Some(ns)
        };
        let (mut got, mut waited) = (false, false);
        if let Some(ns) = until(Moment::GetRequest) {
            self.q2g_ns += ns;
            got = true;
        } else if let Some(ns) = until(Moment::Merge) {
            self.q2m_ns += ns;
            waited = true;
        }
        let inserted = if waited { None } else { until(Moment::Insert) };
        if let Some(ns) = inserted {
            *(if got { &mut self.g2i_ns } else { &mut self.elsewhere_ns }) += ns;
        }
        let issued = until(Moment::Issue);
        let before_issue = match (waited, inserted, got) {
            (true, ..) => &mut self.m2d_ns,
            (_, Some(_), _) => &mut self.i2d_ns,
            (_, _, true) => &mut self.g2d_ns,
            _ => &mut self.elsewhere_ns,
        };
        *before_issue += issued.unwrap_or(0);
        let rest_ns = until(Moment::Complete).unwrap_or(0);
        *(if issued.is_some() { &mut self.d2c_ns } else { &mut self.elsewhere_ns }) += rest_ns;
    }
}
