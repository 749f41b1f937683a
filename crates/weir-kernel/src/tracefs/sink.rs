//! Lives into a table of stages, and the slow ones among them.

use std::collections::{HashSet, VecDeque};

use weir_blocktrace::{
    Bio, Class, ClassSet, Event, Key, Moment, Piece, Request, Sink, SizeClass, SlowIo, Stage, StageTable,
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

/// The device's own flush, D and C alone. It may serve several senders, and writes with FUA too: its D2C counts, but not
/// as an I/O (as in `bpf/stages.bpf.c`). Each flush that was sent is an I/O of its own, from Q or G to C.
fn is_device_flush(piece: &Piece, classes: ClassSet) -> bool {
    let was_sent = [Moment::Queue, Moment::GetRequest].iter().any(|at| piece.times.get(*at).is_some());
    classes.has(Class::Flush) && !was_sent
}

impl Sink for Stages {
    fn piece(&mut self, piece: &Piece) {
        let classes = ClassSet::of(piece.flags, piece.bytes);
        // Without a Q the thread is the one that issued it, whoever sent it.
        let is_theirs = || piece.times.get(Moment::Queue).is_some() && self.threads.contains(&piece.pid);
        if self.only_threads && !is_theirs() {
            return;
        }
        let key = Key { device: piece.device, classes, size: SizeClass::of(piece.bytes) };
        let cell = self.table.cell_mut(key);
        if is_device_flush(piece, classes) {
            if let Some(ns) = piece.times.stage(Stage::D2C) {
                cell.stage_mut(Stage::D2C).record(ns);
            }
            return;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_blocktrace::{Flags, Kind, Times};
    use weir_core::target::DeviceNumber;

    const DEVICE: DeviceNumber = DeviceNumber { major: 7, minor: 0 };

    fn piece(flags: Flags, pid: u32, moments: &[(Moment, u64)]) -> Piece {
        let mut times = Times::default();
        moments.iter().for_each(|(moment, time_ns)| times.set(*moment, *time_ns));
        Piece {
            device: DEVICE,
            flags,
            sector: 0,
            bytes: 0,
            request_bytes: 0,
            pid,
            cgroup: 0,
            kind: Kind::Whole,
            times,
            error: 0,
            requeues: 0,
            data_done_ns: None,
        }
    }

    /// Two senders' flushes, one of which began when nobody looked, and the command that serves both.
    #[test]
    fn flushes_count_where_they_are_sent_and_their_command_in_the_device() {
        use Moment::{Complete, GetRequest, Issue, Queue};
        let sent = Flags(Flags::WRITE.0 | Flags::SYNC.0 | Flags::FLUSH.0);
        let pieces = [
            piece(Flags(Flags::READ.0 | Flags::FLUSH.0), 1, &[(Issue, 30), (Complete, 80)]),
            piece(sent, 1, &[(Queue, 10), (GetRequest, 20), (Complete, 90)]),
            piece(sent, 2, &[(GetRequest, 25), (Complete, 95)]),
        ];
        for (threads, ios, commands) in [(vec![], 2, 1), (vec![1], 1, 0)] {
            let mut stages = Stages::new(0, Some(1), !threads.is_empty());
            stages.threads.extend(&threads);
            pieces.iter().for_each(|piece| stages.piece(piece));
            let flush = stages.table.of_class(DEVICE, Class::Flush);
            assert_eq!((flush.ios, flush.stage(Stage::D2C).count()), (ios, commands), "{threads:?}");
            assert_eq!(
                (flush.stage(Stage::Q2C).max_ns(), stages.slow.len() as u64),
                (80, ios),
                "{threads:?}"
            );
        }
    }
}
