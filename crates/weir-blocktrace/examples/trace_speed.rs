//! What each step of reading a blktrace recording costs, in nanoseconds of CPU per event: the best of several rounds,
//! from memory. Prints a checksum of the analysis, which no change of speed may change.
//!
//!     trace_speed FOLDER [ROUNDS]
#![allow(clippy::disallowed_methods, reason = "a tool that reads files and clocks; the library does neither")]

use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::path::PathBuf;

use weir_blocktrace::decode::{Batch, Decoder};
use weir_blocktrace::merge::{Sorted, Source, Turn, merge_sorted};
use weir_blocktrace::read::{Taker, read};
use weir_blocktrace::{Bio, Collector, Event, Limits, Matcher, Piece, Request, Sink};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(folder) = arguments.first() else {
        eprintln!("trace_speed FOLDER [ROUNDS]");
        std::process::exit(2);
    };
    let rounds = arguments.get(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let files = paths.iter().map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    let mut events = Vec::new();
    merged(&files, |event| events.push(*event));
    let step = |name: &str, work: &mut dyn FnMut()| {
        let of_round = |_| {
            let start_ns = cpu_ns();
            work();
            cpu_ns() - start_ns
        };
        let best_ns = (0..rounds).map(of_round).min().unwrap_or(0);
        println!("{name:24} {:7.1} ns/event", best_ns as f64 / events.len().max(1) as f64);
    };
    step("decode and merge", &mut || merged(&files, |event| _ = black_box(event)));
    step("match", &mut || {
        let mut count = Count::default();
        let mut matcher = Matcher::new(Limits::default());
        events.iter().for_each(|event| matcher.event(event, &mut count));
        black_box((matcher.finish(&mut count), count.0));
    });
    let mut analysis = None;
    step("match and collect", &mut || {
        let mut collector = Collector::new();
        let mut matcher = Matcher::new(Limits::default());
        events.iter().for_each(|event| matcher.event(event, &mut collector));
        let unmatched = matcher.finish(&mut collector);
        analysis = Some(collector.finish(unmatched));
    });
    step("all at once", &mut || {
        let mut collector = Collector::new();
        let mut sources = sorted(&files);
        let sources = sources.iter_mut().map(|source| source as &mut dyn Source).collect();
        let unmatched = read(sources, Taker::Statistics(&mut collector), &mut || true).unmatched;
        analysis = Some(collector.finish(unmatched));
    });
    let json = serde_json::to_string(&analysis)?;
    let mut hasher = DefaultHasher::new();
    json.hash(&mut hasher);
    println!("{} events, analysis {:016x}", events.len(), hasher.finish());
    if let Some(path) = arguments.get(2) {
        std::fs::write(path, json)?;
    }
    Ok(())
}

/// What this thread has run for, ns: the first figure of Linux's schedstat. Time in which others had the CPU is not in it.
fn cpu_ns() -> u64 {
    // The figure is brought up to date when the scheduler is called.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Counts and touches what comes, so that the matcher's own work is what remains.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn piece(&mut self, piece: &Piece) {
        self.0 += u64::from(black_box(piece).bytes);
    }

    fn request(&mut self, request: &Request) {
        self.0 += u64::from(black_box(request).bytes);
    }

    fn bio(&mut self, bio: &Bio) {
        self.0 += u64::from(black_box(bio).bytes);
    }

    fn event(&mut self, event: &Event) {
        self.0 += u64::from(event.bytes);
    }
}

/// A file in memory, a piece at a time.
struct File<'a> {
    decoder: Decoder,
    rest: &'a [u8],
}

impl Source for File<'_> {
    fn refill(&mut self, batch: &mut Batch) -> bool {
        let some = &self.rest[..self.rest.len().min(1 << 17)];
        let used = self.decoder.decode(some, batch).unwrap_or(0);
        self.rest = &self.rest[used..];
        used > 0
    }
}

fn sorted(files: &[Vec<u8>]) -> Vec<Sorted<File<'_>>> {
    let decoders = files.iter().map(|bytes| (Decoder::new("", bytes), bytes));
    decoders.filter_map(|(decoder, rest)| Some(Sorted::new(File { decoder: decoder.ok()?, rest }))).collect()
}

fn merged(files: &[Vec<u8>], mut take: impl FnMut(&Event)) {
    merge_sorted(sorted(files), |turn| {
        if let Turn::Event(event) = turn {
            take(event);
        }
        true
    });
}
