//! Lives into a table of stages, and the slow ones among them.

use std::collections::{HashSet, VecDeque};

use weir_blocktrace::{
    Bio, ClassSet, Event, Key, Moment, Piece, Request, Sink, SizeClass, SlowIo, Stage, StageTable,
};

/// Slow I/Os kept between two calls.
const SLOW_MAX: usize = 4096;

/// What becomes of pieces.
pub struct Stages {
    /// Everything that has ended.
    pub table: StageTable,
    /// Slow ones that were not fetched yet; senders' names are left to others.
    pub slow: VecDeque<SlowIo>,
    /// Slow ones that found no room.
    pub slow_lost: u64,
    /// Threads whose I/O counts, where not all do.
    pub threads: HashSet<u32>,
    only_threads: bool,
    started_ns: u64,
    slow_ns: Option<u64>,
}

impl Stages {
    /// Nothing seen yet.
    pub fn new(started_ns: u64, slow_ns: Option<u64>, only_threads: bool) -> Stages {
        Stages {
            table: StageTable::default(),
            slow: VecDeque::new(),
            slow_lost: 0,
            threads: HashSet::new(),
            only_threads,
            started_ns,
            slow_ns,
        }
    }

    fn keep_if_slow(&mut self, piece: &Piece) {
        let Some(limit_ns) = self.slow_ns else { return };
        let longest =
            [Stage::Q2C, Stage::G2C, Stage::D2C].into_iter().find_map(|stage| piece.times.stage(stage));
        if longest.is_none_or(|ns| ns < limit_ns) {
            return;
        }
        if self.slow.len() >= SLOW_MAX {
            self.slow_lost += 1;
            return;
        }
        let end_ns = piece.times.get(Moment::Complete).unwrap_or(self.started_ns);
        let at_ns = end_ns.saturating_sub(self.started_ns);
        self.slow.push_back(SlowIo { at_ns, piece: *piece, sender: String::new() });
    }
}

impl Sink for Stages {
    fn piece(&mut self, piece: &Piece) {
        if self.only_threads && !self.threads.contains(&piece.pid) {
            return;
        }
        let classes = ClassSet::of(piece.flags, piece.bytes);
        let key = Key { device: piece.device, classes, size: SizeClass::of(piece.bytes) };
        let cell = self.table.cell_mut(key);
        cell.ios += 1;
        cell.bytes += u64::from(piece.bytes);
        cell.errors += u64::from(piece.error != 0);
        for stage in Stage::ALL {
            if let Some(ns) = piece.times.stage(stage) {
                cell.stage_mut(stage).record(ns);
            }
        }
        self.keep_if_slow(piece);
    }

    fn request(&mut self, _request: &Request) {}

    fn bio(&mut self, _bio: &Bio) {}

    fn event(&mut self, _event: &Event) {}
}
