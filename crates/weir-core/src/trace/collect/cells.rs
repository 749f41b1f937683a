//! Stage distributions and parts of a device's pieces, gathered in batches.
//!
//! Pieces wait as bare [`Times`] until a batch is full or a block of time ends; then one stage after the other is
//! counted, so that each distribution's memory is fetched once a batch and not once a piece. G2D* of pieces that were
//! not inserted is their G2D: it is added only in the end.

use super::waiting::{List, Waiting};
use crate::stats::Durations;
use crate::target::DeviceNumber;
use crate::trace::analysis::{Block, CellKey, Device, Parts, StageSketch};
use crate::trace::class::ClassSet;
use crate::trace::grid::{Fold, Grid};
use crate::trace::life::{Piece, Times};
use crate::trace::stage::{Moment, Stage};
use crate::trace::table::{Cell, Key, SizeClass, StageTable};

/// Pieces of one kind and with the same moments that wait: 12 KiB of times.
const BATCH: usize = 256;
/// Blocks of time kept for resampling.
pub const BLOCKS_MAX: usize = 64;
/// Every set of classes × every size.
const PLACES: usize = 256 * 33;
const NONE: u16 = u16::MAX;

/// All kinds of I/O of one device.
#[derive(Debug)]
pub struct Cells {
    place: Box<[u16]>,
    open: Vec<Open>,
    block: usize,
    block_end_ns: u64,
    blocks: Grid<Block>,
}

#[derive(Debug)]
struct Open {
    key: CellKey,
    cell: Box<Cell>,
    parts: Parts,
    waiting: Waiting,
    /// The Q of one in this block is known.
    has_whole: bool,
}

impl Cells {
    pub fn new() -> Cells {
        Cells {
            place: vec![NONE; PLACES].into(),
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
        let size = SizeClass::of(piece.bytes);
        let place = classes.0 as usize * 33 + size.0 as usize;
        let mut at = self.place[place];
        if at == NONE {
            at = self.open(CellKey { classes, size });
            self.place[place] = at;
        }
        let open = &mut self.open[at as usize];
        open.cell.ios += 1;
        open.cell.bytes += u64::from(piece.bytes);
        open.cell.errors += u64::from(piece.error != 0);
        open.has_whole |= known & 1 << Moment::Queue as u8 != 0;
        if let Some(list) = open.waiting.push(&piece.times, known, BATCH) {
            let block = self.blocks.slices.get_mut(self.block);
            count(list, &mut open.cell, &mut open.parts, open.has_whole, block.map(|b| b.cell_mut(open.key)));
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, mut other: Cells) {
        self.flush();
        other.flush();
        for theirs in other.open {
            let place = theirs.key.classes.0 as usize * 33 + theirs.key.size.0 as usize;
            if self.place[place] == NONE {
                self.place[place] = self.open(theirs.key);
            }
            let mine = &mut self.open[self.place[place] as usize];
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

    fn open(&mut self, key: CellKey) -> u16 {
        let waiting = Waiting::default();
        self.open.push(Open {
            key,
            cell: Box::default(),
            parts: Parts::default(),
            waiting,
            has_whole: false,
        });
        (self.open.len() - 1) as u16
    }

    #[cold]
    fn next_block(&mut self, end_ns: u64) {
        self.flush();
        self.block = self.blocks.index(end_ns, BLOCKS_MAX);
        self.block_end_ns = self.blocks.end_ns(self.block);
    }

    fn flush(&mut self) {
        for open in &mut self.open {
            open.flush(self.blocks.slices.get_mut(self.block));
        }
    }
}

impl Open {
    fn flush(&mut self, mut block: Option<&mut Block>) {
        for list in self.waiting.lists() {
            let sketches = block.as_mut().map(|block| block.cell_mut(self.key));
            count(list, &mut self.cell, &mut self.parts, self.has_whole, sketches);
        }
        self.has_whole = false;
    }
}

fn count(
    list: &mut List,
    cell: &mut Cell,
    parts: &mut Parts,
    has_whole: bool,
    sketches: Option<&mut [StageSketch; Stage::COUNT]>,
) {
    let mut unkept = Default::default();
    let sketches = sketches.unwrap_or(&mut unkept);
    list.count(parts, |stage, durations| {
        cell.stage_mut(stage).record_known(durations);
        // What blocks serve compares Q2C, and G2C only for want of it.
        if stage != Stage::G2C || !has_whole {
            sketches[stage as usize].record_known(durations);
        }
    });
}

impl StageSketch {
    fn record_known(&mut self, durations: &Durations<'_>) {
        self.counts.record_all(durations.values_ns);
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
