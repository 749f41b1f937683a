//! The operations of a fileio run, in sysbench's order.
//!
//! One stream feeds all threads, so the sequence depends on the seed alone. sysbench counts reads and writes when they
//! finish, which turns `rndrw` in asynchronous mode into long stretches of either; here they count when issued, and
//! the ratio holds at every depth.

use super::args::Settings;
use super::fileio::{Fileio, TestMode};
use weir_core::stats::random::Random;
use weir_core::workload::op::{Op, OpKind, OpSource, Then};

/// The stream of one run.
pub struct Stream {
    fileio: Fileio,
    mode: TestMode,
    /// Events left; `None`: no limit.
    left: Option<u64>,
    batch: usize,
    random: Random,
    /// Where the next sequential request starts: file and offset.
    cursor: (u32, u64),
    /// Requests that were no syncs.
    requests: u64,
    reads: u64,
    writes: u64,
    /// Written to since the last full round of syncs.
    dirty: bool,
    /// The file whose turn it is in a round of syncs.
    sync_next: u32,
    /// Mean distance of arrivals in ns; `None`: closed loop.
    arrivals_ns: Option<f64>,
    /// When the next operation of an open loop is due.
    due_ns: f64,
}

/// Operations a thread may take at once where their order does not matter.
const BATCH: usize = 32;

impl Stream {
    /// The stream of `settings` with a seed; `settings.fileio.test_mode` must be there, as it is for `run`.
    pub fn new(settings: &Settings, seed: u64) -> Stream {
        let events = settings.general.events;
        let rate = settings.general.rate;
        Stream {
            fileio: settings.fileio.clone(),
            mode: settings.fileio.test_mode.unwrap_or(TestMode::RandomRead),
            left: (events > 0).then_some(events),
            batch: batch_of(settings),
            random: Random::new(seed),
            cursor: (0, 0),
            requests: 0,
            reads: 0,
            writes: 0,
            dirty: false,
            sync_next: 0,
            arrivals_ns: (rate > 0).then(|| 1e9 / f64::from(rate)),
            due_ns: 0.0,
        }
    }

    /// When the next operation is meant to start: independent arrivals, so exponential distances.
    fn due(&mut self) -> u64 {
        let Some(mean_ns) = self.arrivals_ns else { return 0 };
        self.due_ns -= mean_ns * (1.0 - unit(&mut self.random)).ln();
        self.due_ns as u64
    }

    fn next_op(&mut self) -> Op {
        if let Some(sync) = self.periodic_sync() {
            return sync;
        }
        let write = self.is_write();
        let (file, offset, len) = if self.mode.is_sequential() { self.sequential() } else { self.random() };
        self.requests += 1;
        self.dirty |= write;
        *(if write { &mut self.writes } else { &mut self.reads }) += 1;
        let then =
            if write && self.fileio.fsync.all { Then::Commit(self.fileio.fsync.mode) } else { Then::Nothing };
        let kind = if write { OpKind::Write } else { OpKind::Read };
        Op { kind, then, file, len, offset, at_ns: 0 }
    }

    /// After every so many requests each file in turn, if anything was written since the last such round.
    fn periodic_sync(&mut self) -> Option<Op> {
        let fsync = self.fileio.fsync;
        if fsync.frequency == 0 || !self.dirty || !self.requests.is_multiple_of(fsync.frequency) {
            return None;
        }
        let file = self.sync_next;
        self.sync_next = (file + 1) % self.fileio.files;
        self.dirty = self.sync_next != 0;
        let kind = OpKind::Sync(fsync.mode);
        Some(Op { kind, then: Then::Nothing, file, len: 0, offset: 0, at_ns: 0 })
    }

    fn is_write(&self) -> bool {
        match self.mode {
            TestMode::SequentialWrite | TestMode::SequentialRewrite | TestMode::RandomWrite => true,
            TestMode::SequentialRead | TestMode::RandomRead => false,
            TestMode::RandomMixed => {
                let ratio = (self.reads + 1) as f64 / (self.writes + 1) as f64;
                ratio >= f64::from(self.fileio.rw_ratio)
            }
        }
    }

    fn sequential(&mut self) -> (u32, u64, u32) {
        let (file, offset) = self.cursor;
        let len = self.fileio.request_size.min(self.fileio.file_size - offset);
        self.cursor = match offset + len {
            end if end == self.fileio.file_size => ((file + 1) % self.fileio.files, 0),
            end => (file, end),
        };
        (file, offset, len as u32)
    }

    /// Uniform over all files laid end to end, aligned down to a block of that whole.
    fn random(&mut self) -> (u32, u64, u32) {
        let fileio = &self.fileio;
        // Past 2^53 bytes the product may round up to the total itself.
        let position =
            ((unit(&mut self.random) * fileio.total_size() as f64) as u64).min(fileio.total_size() - 1);
        let position = position - position % fileio.block_size;
        let (file, offset) = (position / fileio.file_size, position % fileio.file_size);
        (file as u32, offset, fileio.block_size.min(fileio.file_size - offset) as u32)
    }
}

impl OpSource for Stream {
    fn fill(&mut self, out: &mut Vec<Op>, n: usize) {
        let n = self.left.map_or(n, |left| n.min(usize::try_from(left).unwrap_or(n)));
        if let Some(left) = &mut self.left {
            *left -= n as u64;
        }
        out.reserve(n);
        for _ in 0..n {
            let at_ns = self.due();
            let op = self.next_op();
            out.push(Op { at_ns, ..op });
        }
    }

    fn batch(&self) -> usize {
        self.batch
    }
}

/// How many operations a thread may take at once. Where their number is limited, no thread may take a notable share of its part.
fn batch_of(settings: &Settings) -> usize {
    let (general, fileio) = (&settings.general, &settings.fileio);
    let mode = fileio.test_mode.unwrap_or(TestMode::RandomRead);
    let ordered = mode.is_sequential() || mode == TestMode::RandomMixed;
    let syncs = fileio.fsync.frequency > 0 && !mode.reads_only();
    if ordered || syncs || general.rate > 0 {
        return 1;
    }
    match general.events / (64 * u64::from(general.threads)) {
        _ if general.events == 0 => BATCH,
        share => share.clamp(1, BATCH as u64) as usize,
    }
}

/// In [0, 1).
fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Request, parse};
    use crate::log::{Kept, Log};

    /// The operations of a command line, written `R file offset len`, `W …`, `C …` (commit) and `S file`.
    fn operations(options: &str, n: usize) -> Vec<String> {
        let words: Vec<String> =
            options.split_whitespace().chain(["fileio", "run"]).map(str::to_string).collect();
        let mut kept = Kept::default();
        let request = parse(&words, &|_| Err(String::new()), &mut Log::new(&mut kept));
        let Ok(Request::Run(settings)) = request else { panic!("{options}: {}{}", kept.out, kept.err) };
        let mut ops = Vec::new();
        Stream::new(&settings, 1).fill(&mut ops, n);
        ops.iter().map(shown).collect()
    }

    fn shown(op: &Op) -> String {
        let letter = match (op.kind, op.then) {
            (OpKind::Sync(_), _) => return format!("S {}", op.file),
            (OpKind::Read, _) => 'R',
            (OpKind::Write, Then::Nothing) => 'W',
            (OpKind::Write, Then::Commit(_)) => 'C',
        };
        format!("{letter} {} {} {}", op.file, op.offset, op.len)
    }

    fn letters(options: &str, n: usize) -> String {
        operations(options, n).iter().map(|text| text.chars().next().unwrap()).collect()
    }

    const SMALL: &str = "--file-num=2 --file-total-size=80K --file-block-size=16K";

    #[test]
    fn sequential_modes_go_through_all_files_and_wrap() {
        let seqrd = operations(&format!("{SMALL} --file-test-mode=seqrd"), 7);
        // 40 KiB a file: two whole blocks and half of one.
        assert_eq!(
            seqrd,
            [
                "R 0 0 16384",
                "R 0 16384 16384",
                "R 0 32768 8192",
                "R 1 0 16384",
                "R 1 16384 16384",
                "R 1 32768 8192",
                "R 0 0 16384",
            ]
        );
        let merged = operations(&format!("{SMALL} --file-merged-requests=2 --file-test-mode=seqrd"), 3);
        assert_eq!(merged, ["R 0 0 32768", "R 0 32768 8192", "R 1 0 32768"]);
    }

    #[test]
    fn syncs_come_in_rounds_of_all_files() {
        let freq = |extra: &str, n| letters(&format!("{SMALL} --file-test-mode=seqrewr {extra}"), n);
        assert_eq!(freq("--file-fsync-freq=3", 12), "WWWSSWWWSSWW");
        assert_eq!(freq("--file-fsync-freq=0", 6), "WWWWWW");
        assert_eq!(freq("--file-fsync-all=on --file-fsync-freq=1", 4), "CCCC");
        assert_eq!(letters(&format!("{SMALL} --file-test-mode=rndrd --file-fsync-freq=1"), 4), "RRRR");
    }

    #[test]
    fn the_ratio_holds_from_the_first_operation() {
        let mix = |ratio: &str| {
            letters(
                &format!("{SMALL} --file-test-mode=rndrw --file-fsync-freq=0 --file-rw-ratio={ratio}"),
                10,
            )
        };
        assert_eq!(mix("1.5"), "RWRWRRWRWR");
        assert_eq!(mix("0"), "WWWWWWWWWW");
        assert_eq!(mix("1"), "WRWRWRWRWR");
        assert_eq!(mix("4"), "RRRWRRRRWR");
        // Syncs of a mixed run come between its requests and change nothing about their order.
        assert_eq!(letters(&format!("{SMALL} --file-test-mode=rndrw --file-fsync-freq=2"), 9), "RWSSRWSSR");
    }

    #[test]
    fn random_offsets_are_aligned_seeded_and_cover_all_files() {
        let options = "--file-num=3 --file-total-size=1M --file-block-size=4K --file-test-mode=rndrd";
        let some = operations(options, 4000);
        assert_eq!(some, operations(options, 4000));
        let file_size = (1 << 20) / 3;
        for text in &some {
            let numbers: Vec<u64> = text[2..].split(' ').map(|t| t.parse().unwrap()).collect();
            let (file, offset, len) = (numbers[0], numbers[1], numbers[2]);
            assert!(file < 3 && offset + len <= file_size && len > 0, "{text}");
            assert_eq!((file * file_size + offset) % 4096, 0, "{text}");
        }
        let distinct: std::collections::BTreeSet<&String> = some.iter().collect();
        assert!(distinct.len() > 250, "{} of 256 blocks", distinct.len());
    }

    /// Of 64 threads all must have something to do.
    #[test]
    fn a_thread_takes_no_notable_share_of_few_events() {
        let batch = |options: &str| {
            let words = format!("{options} --file-test-mode=rndrd fileio run");
            let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
            let mut kept = Kept::default();
            let request = parse(&words, &|_| Err(String::new()), &mut Log::new(&mut kept));
            let Ok(Request::Run(settings)) = request else { panic!("{options}: {}", kept.out) };
            Stream::new(&settings, 1).batch()
        };
        assert_eq!(["--events=1000 --threads=64", "--events=10000 --threads=128"].map(batch), [1, 1]);
        assert_eq!(["--events=1000000 --threads=4", "--events=0 --threads=64"].map(batch), [BATCH, BATCH]);
        assert_eq!(batch("--events=0 --threads=4 --rate=100"), 1);
    }

    #[test]
    fn events_end_the_stream_and_a_rate_spaces_it() {
        let words: Vec<String> = "--events=500 --rate=1000 --file-num=1 --file-test-mode=rndrd fileio run"
            .split(' ')
            .map(str::to_string)
            .collect();
        let mut kept = Kept::default();
        let Ok(Request::Run(settings)) = parse(&words, &|_| Err(String::new()), &mut Log::new(&mut kept))
        else {
            panic!("{}", kept.out)
        };
        let mut stream = Stream::new(&settings, 7);
        let mut ops = Vec::new();
        stream.fill(&mut ops, 499);
        stream.fill(&mut ops, 499);
        assert_eq!(ops.len(), 500);
        assert!(ops.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
        let seconds = ops[499].at_ns as f64 / 1e9;
        assert!((0.4..0.6).contains(&seconds), "500 events at 1000/s take {seconds} s");
    }
}
