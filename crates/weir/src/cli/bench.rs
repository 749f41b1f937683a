//! What can be typed after `weir bench`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use weir_core::units::{Bytes, Nanos};
use weir_core::workload::SpecError;
use weir_core::workload::spec::{Arrival, BlockSize, Data, Distribution, EngineKind, OpenSync, SyncMode};
use weir_core::workload::text::Direction;

use crate::output::Format;

const EXAMPLES: &str = "\
Examples:
  weir bench /var/lib/data
      4 KiB random reads, one at a time, for 10 s
  weir bench --dir . --rw randread --block 16k --depth 32 --threads 4
  weir bench --dir . --rw write --block 4k --sync-every 1 --operations 10000
      commits, as a redo log makes them
  weir bench --dir . --rw randwrite --block 16k --depth 16 --flood dd
      beside a bulk writer
  weir bench --dir . --rw randrw --read-percent 70 --rate 1000 --arrival poisson
      open loop: stalls show
  weir bench --replay last-night.weirtrace --dir /srv/test
      the recorded I/Os, each at its time; see docs/reference/replay.md
  weir bench --replay sda --device /dev/vdb --i-know-this-destroys /dev/vdb
      the same on a whole device, which it overwrites
  weir bench jobs.toml --format json
      several jobs; see docs/reference/jobfile.md
  weir bench --from-fio old.fio --print-job
      a fio job file as one of weir's

Sizes: 4096, 16k, 2G (powers of 1024), 15MB (powers of 1000). Times: 100ns, 50us, 10ms, 30s, 5m, 1h.
Results go to stdout, progress to stderr. Files that weir makes are removed at the end unless --keep.";

/// Arguments of `weir bench`. With a job file, the flags that describe a job apply to every job in it.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A job file (.toml), or what to measure: a folder, a file or a block device
    #[arg(value_name = "JOBFILE|PATH")]
    pub path: Option<PathBuf>,
    /// Take the jobs from a fio job file; stderr names the options that weir does not take
    #[arg(long, value_name = "FILE", conflicts_with = "path")]
    pub from_fio: Option<PathBuf>,
    /// The job.
    #[command(flatten)]
    pub job: JobArgs,
    /// A recording instead.
    #[command(flatten)]
    pub replay: ReplayArgs,
    /// Besides.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What describes a job.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct JobArgs {
    /// Where.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Which operations.
    #[command(flatten)]
    pub pattern: PatternArgs,
    /// How they reach the kernel.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Durability.
    #[command(flatten)]
    pub sync: SyncArgs,
    /// How long and how fast.
    #[command(flatten)]
    pub course: CourseArgs,
}

/// A recording that is played instead of operations made up.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "A recording instead")]
pub struct ReplayArgs {
    /// Play the I/Os of a recording, as `weir trace read` takes it, each at its time
    #[arg(long, value_name = "RECORDING", conflicts_with_all = [
        "from_fio", "print_job", "files", "rw", "read_percent", "block", "block_split", "distribution", "verify", "threads",
        "open_sync", "sync_every", "sync_mode", "operations", "warmup", "ramp", "rate", "arrival", "late_after", "iopoll",
    ])]
    pub replay: Option<PathBuf>,
    /// The recorded device, by name or number, where there are several
    #[arg(long, value_name = "NAME", requires = "replay")]
    pub replay_device: Option<String>,
    /// Play this many times as fast as recorded [default: 1]
    #[arg(long, value_name = "FACTOR", requires = "replay")]
    pub speed: Option<f64>,
    /// How offsets come into a smaller target [default: recorded where they fit, else wrap]
    #[arg(long, value_enum, value_name = "HOW", requires = "replay")]
    pub space: Option<SpaceArg>,
    /// Play what was sent at this time after the recording's first event or later
    #[arg(long, value_name = "TIME", requires = "replay")]
    pub from: Option<Nanos>,
    /// Play what was sent before this time
    #[arg(long, value_name = "TIME", requires = "replay")]
    pub to: Option<Nanos>,
    /// Shorten longer times without I/O to this [default: 60s]
    #[arg(long, value_name = "TIME", requires = "replay")]
    pub gap_max: Option<Nanos>,
    /// Play the part before a damaged place of a file
    #[arg(long, requires = "replay")]
    pub keep_going: bool,
}

/// How offsets of a recording come into a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpaceArg {
    /// As they are; refused where the target is too small
    Recorded,
    /// What lies behind the end begins again at the start: neighbours stay neighbours
    Wrap,
    /// In proportion to the sizes: sequential I/Os overlap
    Scale,
}

/// Where the I/O goes.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Where")]
pub struct PlaceArgs {
    /// Folder in which weir makes its files [default: .]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "device"])]
    pub dir: Option<PathBuf>,
    /// An existing file instead; never truncated, written only by a workload that writes
    #[arg(long, value_name = "FILE", conflicts_with = "device")]
    pub file: Option<PathBuf>,
    /// A block device instead
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<PathBuf>,
    /// First part of the names of the files that weir makes: PREFIX.0, PREFIX.1, … [default: weir-bench]
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// How many files weir makes [default: 1]
    #[arg(long, value_name = "N")]
    pub files: Option<u32>,
    /// Size of each file [default: 1G]; of a file or device: how much of it to use [default: all]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Bytes left untouched at the beginning of each file or device [default: 0]
    #[arg(long, value_name = "SIZE")]
    pub offset: Option<Bytes>,
    /// Leave the files in place, and use those that are there
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub keep: Option<bool>,
    /// Allow writes to this block device: everything on it is lost. Repeatable
    #[arg(long, value_name = "DEVICE")]
    pub i_know_this_destroys: Vec<PathBuf>,
}

/// Which operations are issued.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Which operations")]
pub struct PatternArgs {
    /// read, write, rw (sequential) or randread, randwrite, randrw [default: randread]
    #[arg(long, value_name = "MODE", value_parser = word::<Direction>)]
    pub rw: Option<Direction>,
    /// Share of reads, 0 to 100 % [default: 100; with rw and randrw 50]
    #[arg(long, value_name = "PERCENT")]
    pub read_percent: Option<f64>,
    /// Bytes per operation [default: 4k]
    #[arg(long, visible_alias = "bs", value_name = "SIZE", conflicts_with = "block_split")]
    pub block: Option<Bytes>,
    /// Several sizes with weights, such as 4k:60,16k:40
    #[arg(long, value_name = "SIZE:WEIGHT,…", value_parser = word::<BlockSize>)]
    pub block_split: Option<BlockSize>,
    /// Which blocks are popular: uniform, zipf:THETA, pareto:H, gaussian:DEVIATION or hot:BLOCKS:ACCESSES
    /// [default: uniform]
    #[arg(long, value_name = "DIST", value_parser = word::<Distribution>)]
    pub distribution: Option<Distribution>,
    /// What is written: random, zero or compressible:PERCENT [default: random]
    #[arg(long, value_name = "PATTERN", value_parser = word::<Data>)]
    pub data: Option<Data>,
    /// Write place, generation and checksum into every block and check them on every read
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub verify: Option<bool>,
    /// Seed of every random choice but of the data: the same seed gives the same operations [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// How operations reach the kernel.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "How")]
pub struct EngineArgs {
    /// psync, libaio, io_uring, mmap or null [default: psync; io_uring where --depth is above 1]
    #[arg(long, value_name = "ENGINE", value_parser = word::<EngineKind>)]
    pub engine: Option<EngineKind>,
    /// Operations in flight per thread (libaio, io_uring) [default: 1]
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Threads [default: 1]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// O_DIRECT, past the page cache [default: true; false with mmap and null]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub direct: Option<bool>,
    /// Take the files out of the page cache before the start [default: true without O_DIRECT]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub invalidate: Option<bool>,
    /// io_uring polls for completions (needs O_DIRECT and a device with poll queues)
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub iopoll: Option<bool>,
}

/// When written data is made durable.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Durability")]
pub struct SyncArgs {
    /// Sync the file after every N-th write; write and sync together are one commit. 0: never [default: 0]
    #[arg(long, value_name = "N")]
    pub sync_every: Option<u64>,
    /// fsync, fdatasync, rwf-dsync or sync-file-range (which is not durable) [default: fdatasync]
    #[arg(long, value_name = "MODE", value_parser = word::<SyncMode>)]
    pub sync_mode: Option<SyncMode>,
    /// Sync every file once at the end, apart from throughput [default: true]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true, hide_possible_values = true, value_name = "BOOL")]
    pub sync_at_end: Option<bool>,
    /// Open the files with O_SYNC or O_DSYNC: none, sync or dsync [default: none]
    #[arg(long, value_name = "FLAG", value_parser = word::<OpenSync>)]
    pub open_sync: Option<OpenSync>,
}

/// How long and how fast.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "How long and how fast")]
pub struct CourseArgs {
    /// Stop after this time, counted after warm-up; 0: no limit [default: 10s; none with --operations]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Stop after this many operations; 0: no limit [default: 0]
    #[arg(long, value_name = "N")]
    pub operations: Option<u64>,
    /// Leading time that is run but not counted [default: 0]
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<Nanos>,
    /// Threads start spread over this time [default: 0]
    #[arg(long, value_name = "TIME")]
    pub ramp: Option<Nanos>,
    /// Open loop: start this many operations per second over all threads, even if earlier ones have not ended;
    /// 0: closed loop [default: 0]
    #[arg(long, value_name = "IOPS")]
    pub rate: Option<f64>,
    /// Open loop: constant or poisson distances between starts [default: constant]
    #[arg(long, value_name = "ARRIVAL", value_parser = word::<Arrival>)]
    pub arrival: Option<Arrival>,
    /// Open loop: later than this after its intended start, an operation is late [default: 10ms]
    #[arg(long, value_name = "TIME")]
    pub late_after: Option<Nanos>,
    /// Run a bulk buffered writer beside the workload: dd, cp or dd:size=4G,bs=1M,rate=200M,writers=2. Repeatable
    /// [default size: more than may be dirty, where there is space]
    #[arg(long, value_name = "SPEC")]
    pub flood: Vec<String>,
}

/// What comes out.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Name of the job in reports
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Form of the results on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Print the jobs as a job file with every default written out, and run nothing
    #[arg(long)]
    pub print_job: bool,
}

/// Parses a word of a job; its hint goes into clap's message.
pub fn word<T: FromStr<Err = SpecError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|SpecError { what, hint }| match hint {
        Some(hint) => format!("{what}\n\n  tip: {hint}"),
        None => what,
    })
}
