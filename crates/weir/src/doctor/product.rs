//! A product's steps: its files, its transactions as a stream of operations, and what runs beside them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use weir_core::result::record::{Class, JobRecord};
use weir_core::stats::Histogram;
use weir_core::units::{Bytes, Nanos};
use weir_core::workload::rng::Rng;
use weir_core::workload::spec::{Arrival, BlockSize, OpenSync, Rate, SyncMode, SyncPolicy, Target};
use weir_core::workload::stream::Layout;
use weir_core::workload::{Job, JobStream, Op, OpKind, OpSource, Then};
use weir_io::place::Place;
use weir_io::runner::JobPlan;
use weir_io::{IoError, files};
use weir_verdict::notes::StepKind;
use weir_verdict::products::{BESIDE, Ground, Load, Open, Order, Product, Step, Transaction};

use super::examine::Examination;
use super::jobs;
use super::plan::What;

const TICK_NS: u64 = 250_000_000;

/// Runs all steps of a product, each for so long. What cannot be run is noted as skipped.
pub fn run(exam: &mut Examination<'_>, product: Product, step_ns: u64) -> Result<(), IoError> {
    for step in product.steps() {
        if exam.stopped() {
            break;
        }
        exam.progress.next(step.title);
        if let Err(error) = run_step(exam, step, step_ns) {
            exam.skip(step.id, &error.to_string());
        }
    }
    Ok(())
}

/// One step, what runs beside it included, on files that are gone afterwards.
fn run_step(exam: &mut Examination<'_>, step: &Step, step_ns: u64) -> Result<(), IoError> {
    let clock = Clock::default();
    let beside_id = format!("{}{BESIDE}", step.id);
    let mut plans = vec![plan(exam, step.id, &step.load, None, Some(&clock), step_ns)?];
    let mut notes = vec![(step.id, StepKind::Product)];
    if let Some(beside) = &step.beside {
        plans.push(plan(exam, &beside_id, &beside.load, beside.per_second, None, step_ns)?);
        notes.push((&beside_id, StepKind::Product));
    }
    let before = exam.jobs.len();
    exam.measure_plans(&notes, plans, None, TICK_NS)?;
    if let (Load::Transactions(transaction), Some(record)) = (&step.load, exam.jobs.get_mut(before))
        && !transaction.is_single()
    {
        whole(record, transaction, &clock);
    }
    Ok(())
}

/// Commits of a record become transactions: each holds several writes and syncs. The last may not have ended: its time
/// until then counts where it is the longest, as that of a stall.
fn whole(record: &mut JobRecord, transaction: &Transaction, clock: &Clock) {
    let Times { mut latency, before_ns } =
        std::mem::take(&mut *clock.0.lock().unwrap_or_else(|e| e.into_inner()));
    let rest_ns = u128::from(record.elapsed_ns + before_ns).saturating_sub(latency.sum());
    if latency.max().is_some_and(|longest| rest_ns > u128::from(longest)) {
        latency.record(rest_ns as u64);
    }
    record.classes.entry(Class::Commit).or_default().latency = latency;
    let counts = record.intervals.iter_mut().filter_map(|interval| interval.classes.get_mut(&Class::Commit));
    in_transactions(counts.map(|class| &mut class.count), u64::from(transaction.commits()).max(1));
}

/// Counts of commits become counts of transactions, each where its last commit is: what an interval has begun is another's to end.
fn in_transactions<'a>(counts: impl Iterator<Item = &'a mut u64>, commits: u64) {
    let mut begun = 0;
    for count in counts {
        begun += *count;
        *count = begun / commits;
        begun %= commits;
    }
}

fn plan(
    exam: &Examination<'_>,
    id: &str,
    load: &Load,
    per_second: Option<u32>,
    clock: Option<&Clock>,
    step_ns: u64,
) -> Result<JobPlan, IoError> {
    match load {
        Load::BulkRead => bulk_read(exam, id, step_ns),
        Load::Transactions(transaction) => {
            let places = places(exam, id, transaction)?;
            let bytes: Vec<u64> = transaction
                .files
                .iter()
                .map(|ground| if *ground == Ground::Written { exam.file_size.0 } else { ground.bytes() })
                .collect();
            let job = job(id, places[0].path(), bytes[0], transaction, per_second, step_ns);
            let mut source = Stream::new(*transaction, bytes, per_second);
            // One transaction is timed by itself; of a single write the runner's own times are as good.
            source.clock = clock.filter(|_| !transaction.is_single()).cloned();
            source.warmup = Duration::from_nanos(job.warmup.0);
            Ok(JobPlan { job, source: Box::new(source), places })
        }
    }
}

fn bulk_read(exam: &Examination<'_>, id: &str, step_ns: u64) -> Result<JobPlan, IoError> {
    let (_, _, job) =
        jobs::of_step(&What::BulkRead, exam.file.path(), exam.file_size, exam.engine(), step_ns);
    let job = Job { name: id.to_string(), ..job };
    let layout = Layout { file_bytes: vec![exam.file_size.0] };
    let source = JobStream::new(&job, &layout).map_err(|e| IoError::usage(e.to_string()))?;
    Ok(JobPlan { job, source: Box::new(source), places: vec![exam.file.clone()] })
}

/// The files of a transaction. Those of its own have no name any more: they end with the step, whatever ends it.
fn places(exam: &Examination<'_>, id: &str, transaction: &Transaction) -> Result<Vec<Place>, IoError> {
    let make = |(index, ground): (usize, &Ground)| {
        if *ground == Ground::Written {
            return Ok(exam.file.clone());
        }
        let name = format!("{id}-{index}");
        let path = exam.folder.path().join(&name);
        let failed = |error| IoError::io("cannot create", &path, error);
        let file = exam.folder.create_new(&name, 0o600).map_err(failed)?;
        exam.folder.remove_file(&name).map_err(failed)?;
        let place = Place::of(file, &path);
        if let Ground::Allocated(bytes) = ground {
            files::allocate(&place, *bytes)?;
        }
        Ok(place)
    };
    transaction.files.iter().enumerate().map(make).collect()
}

fn job(
    id: &str,
    file: &std::path::Path,
    bytes: u64,
    transaction: &Transaction,
    per_second: Option<u32>,
    step_ns: u64,
) -> Job {
    let base = jobs::on(file, Bytes(bytes), step_ns);
    let (smallest, largest) = transaction.sizes();
    let [smallest, largest] = [smallest, largest].map(|size| Bytes(u64::from(size)));
    let block = if smallest == largest {
        BlockSize::Fixed(largest)
    } else {
        BlockSize::Split(vec![(smallest, 1.0), (largest, 1.0)])
    };
    let mode = transaction.writes.iter().find_map(|write| write.sync);
    Job {
        name: id.to_string(),
        target: Target::File { path: file.to_path_buf(), size: Bytes(bytes) },
        read_percent: 0.0,
        block,
        direct: transaction.open.is_direct(),
        open_sync: match transaction.open {
            Open::Plain | Open::Direct => OpenSync::None,
            Open::Dsync | Open::DirectDsync => OpenSync::Dsync,
            Open::Sync | Open::DirectSync => OpenSync::Sync,
        },
        sync: SyncPolicy {
            every: u64::from(mode.is_some()),
            mode: mode.unwrap_or(SyncMode::Fdatasync),
            at_end: false,
        },
        rate: per_second.map(|rate| Rate {
            iops: f64::from(rate * transaction.operations()),
            arrival: Arrival::Constant,
        }),
        late_after: Nanos::from_secs(1),
        ..base
    }
}

/// What the stream of a step times, for the step to read when it has ended.
#[derive(Clone, Default)]
struct Clock(Arc<Mutex<Times>>);

/// Times of transactions that ended behind the warm-up.
#[derive(Default)]
struct Times {
    /// From the first operation's beginning to the last one's end.
    latency: Histogram,
    /// The part of the first one that lies in the warm-up.
    before_ns: u64,
}

/// Transactions as operations, one after another. The runner asks for the next operation when the one before has ended.
struct Stream {
    transaction: Transaction,
    bytes: Vec<u64>,
    cursors: Vec<u64>,
    /// Write of the transaction, how many times it was issued, and the transaction's number.
    write: usize,
    times: u32,
    number: u64,
    gap_ns: u64,
    rng: Rng,
    clock: Option<Clock>,
    warmup: Duration,
    first: Option<Instant>,
    began: Option<Instant>,
}

impl Stream {
    fn new(transaction: Transaction, bytes: Vec<u64>, per_second: Option<u32>) -> Stream {
        Stream {
            transaction,
            cursors: vec![0; bytes.len()],
            bytes,
            write: 0,
            times: 0,
            number: 0,
            gap_ns: per_second.map_or(0, |rate| 1_000_000_000 / u64::from(rate.max(1))),
            rng: Rng::new(1, 0x7072_6f64),
            clock: None,
            warmup: Duration::ZERO,
            first: None,
            began: None,
        }
    }

    /// A transaction begins, and the one before has ended.
    fn tell_time(&mut self) {
        let Some(clock) = &self.clock else { return };
        let now = Instant::now();
        let first = *self.first.get_or_insert(now);
        let counted_from = first + self.warmup;
        if let Some(began) = self.began.replace(now)
            && now >= counted_from
            && let Ok(mut times) = clock.0.lock()
        {
            // All but the first begin behind the warm-up.
            times.before_ns += counted_from.duration_since(began).as_nanos() as u64;
            times.latency.record(now.duration_since(began).as_nanos() as u64);
        }
    }

    fn next(&mut self) -> Op {
        if self.write == 0 && self.times == 0 {
            self.tell_time();
        }
        let write = self.transaction.writes[self.write];
        let turn = (self.number as usize).wrapping_add(self.times as usize) % write.sizes.len();
        let len = write.sizes[turn];
        let offset = self.place(write.file, write.order, u64::from(len));
        let begins_block = write.ahead > 0 && offset.is_multiple_of(u64::from(write.ahead));
        let len = if begins_block { write.ahead } else { len };
        let at_ns = self.number * self.gap_ns;
        self.times += 1;
        let last = self.times >= write.times;
        if last {
            (self.write, self.times) = (self.write + 1, 0);
        }
        if self.write == self.transaction.writes.len() {
            (self.write, self.number) = (0, self.number + 1);
        }
        let then = write.sync.filter(|_| last).map_or(Then::Nothing, Then::Commit);
        Op { kind: OpKind::Write, then, file: write.file as u32, len, offset, at_ns }
    }

    fn place(&mut self, file: usize, order: Order, len: u64) -> u64 {
        let bytes = self.bytes[file];
        match order {
            Order::Start => 0,
            Order::Random => self.rng.below((bytes / len).max(1)) * len,
            Order::Append => {
                let cursor = &mut self.cursors[file];
                if *cursor + len > bytes {
                    *cursor = 0;
                }
                let offset = *cursor;
                *cursor += len;
                offset
            }
        }
    }
}

impl OpSource for Stream {
    fn fill(&mut self, out: &mut Vec<Op>, n: usize) {
        out.extend((0..n).map(|_| self.next()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(product: Product, step: usize) -> Stream {
        let Load::Transactions(transaction) = product.steps()[step].load else { panic!("no transactions") };
        let bytes = transaction.files.iter().map(|ground| ground.bytes().max(1 << 20)).collect();
        Stream::new(transaction, bytes, None)
    }

    fn take(stream: &mut Stream, n: usize) -> Vec<Op> {
        let mut ops = Vec::new();
        stream.fill(&mut ops, n);
        ops
    }

    /// A transaction of InnoDB syncs both logs, in order, and appends to each.
    #[test]
    fn writes_come_in_order_each_to_its_file() {
        let mut stream = stream(Product::Mysql, 1);
        let ops = take(&mut stream, 6);
        let seen: Vec<_> = ops.iter().map(|op| (op.file, op.len, op.offset)).collect();
        assert_eq!(
            seen,
            [(0, 8192, 0), (1, 500, 0), (0, 1024, 512), (1, 900, 500), (0, 2048, 1536), (1, 1700, 1400)]
        );
        assert!(ops.iter().all(|op| op.then == Then::Commit(SyncMode::Fdatasync)));
    }

    /// InnoDB's redo log: each page is written whole before a part of it is, so that none is read.
    #[test]
    fn a_log_that_is_used_again_is_written_ahead() {
        let mut stream = stream(Product::Mysql, 0);
        let mut whole = 0;
        for op in take(&mut stream, 1000) {
            let end = op.offset + u64::from(op.len);
            let begins = op.offset.is_multiple_of(8192);
            assert!(if begins { op.len == 8192 } else { end <= whole }, "{op:?}");
            whole = if begins { end } else { whole };
        }
    }

    #[test]
    fn only_the_last_of_several_writes_is_synced_and_a_full_file_is_begun_anew() {
        let mut stream = stream(Product::Mysql, 2);
        let ops = take(&mut stream, 32);
        let synced: Vec<usize> = (0..32).filter(|i| ops[*i].then != Then::Nothing).collect();
        assert_eq!(synced, [15, 31]);
        assert!(ops.iter().all(|op| op.offset % (16 << 10) == 0 && op.offset + u64::from(op.len) <= 1 << 20));
        let mut wal = self::stream(Product::Sqlite, 0);
        let ends = take(&mut wal, 2000).iter().map(|op| op.offset + u64::from(op.len)).max();
        assert!(ends.is_some_and(|end| end <= 4 << 20 && end > 4_000_000), "{ends:?}");
    }

    #[test]
    fn no_transaction_is_lost_between_intervals() {
        for (counts, commits, expected) in [
            (&[7, 7, 7, 7][..], 2, &[3, 4, 3, 4][..]),
            (&[1, 0, 1, 1, 1], 2, &[0, 0, 1, 0, 1]),
            (&[5, 6], 1, &[5, 6]),
        ] {
            let mut found = counts.to_vec();
            in_transactions(found.iter_mut(), commits);
            assert_eq!(found, expected, "{counts:?}");
        }
    }

    #[test]
    fn transactions_are_timed_as_a_whole_and_scheduled_together() {
        let mut stream = stream(Product::Etcd, 1);
        let clock = Clock::default();
        stream.clock = Some(clock.clone());
        stream.gap_ns = 100;
        let ops = take(&mut stream, 12);
        assert_eq!(
            ops.iter().map(|op| op.at_ns).collect::<Vec<_>>(),
            [0, 0, 0, 0, 0, 100, 100, 100, 100, 100, 200, 200]
        );
        assert_eq!(clock.0.lock().unwrap().latency.count(), 2);
        stream.warmup = Duration::from_secs(3600);
        take(&mut stream, 10);
        assert_eq!(clock.0.lock().unwrap().latency.count(), 2, "what warms up does not count");
        let begun = Instant::now().checked_sub(Duration::from_secs(20)).unwrap();
        (stream.first, stream.began, stream.warmup) = (Some(begun), Some(begun), Duration::from_secs(10));
        take(&mut stream, 4);
        assert_eq!(
            clock.0.lock().unwrap().latency.count(),
            3,
            "what ends behind the warm-up counts, as in any run"
        );
        assert_eq!(clock.0.lock().unwrap().before_ns, 10_000_000_000);
    }

    /// Three transactions of 2 s, of which the first began 1.5 s before counting, leave 1.5 s less than the elapsed time says.
    #[test]
    fn a_last_transaction_that_stalls_counts_with_its_time() {
        let transaction = stream(Product::Etcd, 1).transaction;
        let seconds = |s: f64| (s * 1e9) as u64;
        for (ended, elapsed, before, expected) in [
            (3, 4.5 + 1.9, 1.5, vec![2.0; 3]),
            (3, 4.5 + 3.0, 1.5, vec![2.0, 2.0, 2.0, 3.0]),
            (3, 6.0 + 3.0, 0.0, vec![2.0, 2.0, 2.0, 3.0]),
            (0, 6.0, 0.0, vec![]),
        ] {
            let mut times = Times { before_ns: seconds(before), ..Times::default() };
            times.latency.record_many(seconds(2.0), ended);
            let clock = Clock(Arc::new(Mutex::new(times)));
            let mut record = JobRecord { elapsed_ns: seconds(elapsed), ..JobRecord::default() };
            whole(&mut record, &transaction, &clock);
            let found = &record.classes[&Class::Commit].latency;
            let longest = expected.last().map(|s| seconds(*s));
            assert_eq!((found.count(), found.max()), (expected.len() as u64, longest), "{elapsed}");
        }
    }
}
