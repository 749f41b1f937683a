//! What can be typed after `weir tune`.

use std::path::PathBuf;

use weir_core::units::Nanos;

use super::bench::JobArgs;

const EXAMPLES: &str = "\
Examples:
  weir tune sweep vm.dirty_bytes --dir /data
      commits against bulk writing, and their balance
  weir tune sweep @/nr_requests --grid 32,64,256 --dir /data \\
      --rw randread --depth 64
  weir tune ladder --dir /data
      one change after another: dsync, direct, asynchronous, depth, …
  weir tune ladder block=4k block=16k vm.swappiness=0,drop-caches --dir /data
  weir tune ab @/scheduler=none @/scheduler=mq-deadline --dir /data
  weir tune ab job:threads=1 job:threads=4 --dir .
      two ways to run; needs no root
  weir tune race --knobs vm.dirty,@/nr_requests --flood dd --dir /data \\
      --goal 'max bulk with p99 <= 10ms'
  weir tune sweep vm.swappiness --grid 1,60 \\
      --command 'pgbench -T {seconds} db' --metric 'tps=tps = ([0-9.]+)'
  weir tune sweep mysql:root@/run/mysqld/mysqld.sock/innodb_flush_neighbors \\
      --grid 0,1 --db 'write_only --mysql'
  weir tune ab db:threads=4 db:threads=16 --db 'read_write --postgres'
  weir tune resume
      continues the last interrupted experiment

The workload is that of weir bench's flags, of a job file (--job), of a sysbench fileio command line (--fileio), of \
`weir db run` (--db), or a command of your own (--command). A database's variables are knobs \
like others. Without any: random writes of 16 KiB, each followed by fsync, from 10 threads; for a ladder 60 % reads \
and 40 % writes of 16 KiB over two files, each write followed by fdatasync, from 2 threads.
`@` stands for the target's device. weir restores every setting after every trial, and in every case at the end.";

/// Arguments of `weir tune`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which experiment.
    #[command(subcommand)]
    pub command: Command,
}

/// The experiments.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// One knob over a grid of values, on two axes: the workload's rate and the bulk writer's
    Sweep(Box<SweepArgs>),
    /// One change after another, each against the step before
    Ladder(Box<LadderArgs>),
    /// Two settings, jobs or commands, in pairs
    Ab(Box<AbArgs>),
    /// A search over several knobs, confirmed on fresh data
    Race(Box<RaceArgs>),
    /// Continue an interrupted experiment
    Resume(ResumeArgs),
}

/// `weir tune sweep`.
#[derive(Debug, clap::Args)]
pub struct SweepArgs {
    /// The knob: vm.dirty_bytes, sda/nr_requests, @/scheduler
    #[arg(value_name = "KNOB")]
    pub knob: String,
    /// Values to try, beside the baseline [default: from the device's measured rate, or the knob's range]
    #[arg(long, value_name = "VALUE,…", value_delimiter = ',')]
    pub grid: Vec<String>,
    /// What all experiments share.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `weir tune ladder`.
#[derive(Debug, clap::Args)]
pub struct LadderArgs {
    /// Steps: KEY=VALUE[,KEY=VALUE…] of the job or of knobs, or drop-caches; each is added to those before
    /// [default: from dsync over direct and asynchronous I/O to swappiness and block size]
    #[arg(value_name = "STEP")]
    pub steps: Vec<String>,
    /// What all experiments share.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `weir tune ab`.
#[derive(Debug, clap::Args)]
pub struct AbArgs {
    /// One way: KNOB=VALUE,… or job:KEY=VALUE, or `found` for the baseline
    #[arg(value_name = "A", required_unless_present = "a_command")]
    pub a: Option<String>,
    /// The other way
    #[arg(value_name = "B", required_unless_present = "b_command")]
    pub b: Option<String>,
    /// A command instead, whose figures --metric finds
    #[arg(long, value_name = "CMD", requires = "b_command", conflicts_with_all = ["a", "b"], allow_hyphen_values = true)]
    pub a_command: Option<String>,
    /// The command it is compared with
    #[arg(long, value_name = "CMD", requires = "a_command", allow_hyphen_values = true)]
    pub b_command: Option<String>,
    /// What all experiments share.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `weir tune race`.
#[derive(Debug, clap::Args)]
pub struct RaceArgs {
    /// Knobs to search over: vm.dirty, @/nr_requests, …
    #[arg(value_name = "KNOB", required_unless_present = "knobs")]
    pub positional: Vec<String>,
    /// The same as a list
    #[arg(long, value_name = "KNOB,…", value_delimiter = ',')]
    pub knobs: Vec<String>,
    /// A candidate of your own, KNOB=VALUE,… Repeatable
    #[arg(long, value_name = "SETTINGS")]
    pub candidate: Vec<String>,
    /// What all experiments share.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `weir tune resume`.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// The experiment, as `weir results` names it [default: the last interrupted one]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Allow writes to this block device again: everything on it is lost. Repeatable
    #[arg(long, value_name = "DEVICE")]
    pub i_know_this_destroys: Vec<PathBuf>,
    /// Form of the results on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// What all experiments share.
#[derive(Debug, Default, clap::Args)]
pub struct CommonArgs {
    /// Take the workload from a job file (.toml) with one job
    #[arg(long, value_name = "FILE")]
    pub job: Option<PathBuf>,
    /// Take the workload from a sysbench fileio command line
    #[arg(long, value_name = "COMMAND LINE", conflicts_with = "job", allow_hyphen_values = true)]
    pub fileio: Option<String>,
    /// Take a database's transactions for the workload, as `weir db run` has them: 'read_write --mysql --threads 8'
    #[arg(long, value_name = "COMMAND LINE", conflicts_with_all = ["job", "fileio"], allow_hyphen_values = true)]
    pub db: Option<String>,
    /// Measure a command of your own instead; {seconds} stands for the time it is to measure
    #[arg(long, value_name = "CMD", conflicts_with_all = ["job", "fileio", "db"])]
    pub command: Option<String>,
    /// A figure of the command: a name, and a regular expression whose first group is the number. Repeatable
    #[arg(long, value_name = "NAME=REGEX")]
    pub metric: Vec<String>,
    /// Trials of each arm [default: 3]
    #[arg(long, value_name = "N")]
    pub repeats: Option<u32>,
    /// Pairs of trials that a comparison of two stands on [default: 10]
    #[arg(long, value_name = "N")]
    pub pairs: Option<u32>,
    /// Time for everything, waits included
    #[arg(long, value_name = "TIME", default_value = "40m")]
    pub budget: Nanos,
    /// The goal, and bounds on other figures: 'max rate', 'min p99', 'max bulk with p99 <= 10ms'
    #[arg(long, value_name = "GOAL")]
    pub goal: Option<String>,
    /// Longest time for the bulk writer to fill memory before measuring begins: it ends when the kernel begins
    /// to throttle writers [default: 12s]
    #[arg(long, value_name = "TIME")]
    pub build_up: Option<Nanos>,
    /// Longest wait for a clean start between trials
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub washout: Nanos,
    /// Print the trials, their order and their time, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Change machine-wide knobs even while other processes write much; it throttles them too
    #[arg(long)]
    pub even_if_busy: bool,
    /// Do not watch the stages of the device's requests
    #[arg(long)]
    pub no_trace: bool,
    /// Form of the results on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// The job, as `weir bench` takes it.
    #[command(flatten)]
    pub workload: JobArgs,
}

/// Form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// A report for people
    #[default]
    Text,
    /// The finding as JSON
    Json,
    /// The raw record as JSON: every trial
    Record,
}
