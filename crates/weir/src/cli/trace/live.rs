//! What can be typed after `weir trace live`.

use std::path::PathBuf;

use clap::ValueEnum;
use weir_core::units::Nanos;

const EXAMPLES: &str = "\
Examples:
  weir trace live
      every device with I/O, refreshed each second; q ends
  weir trace live sda --slow 10ms
      one device, and each request of 10 ms or longer with its stages
  weir trace live /var/lib/mysql --duration 1m
      the device under a folder; a summary of the minute at the end
  weir trace live --json --duration 10s > b.json
      one JSON object a second, then a summary
  weir trace live --source diskstats
      without privileges: iostat's figures, rightly computed";

/// Arguments of `weir trace live`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Devices, or any paths: the devices their I/O passes [default: every device that does any I/O]
    #[arg(value_name = "PATH|DEVICE")]
    pub devices: Vec<String>,
    /// The same. Repeatable
    #[arg(long, short, value_name = "PATH|DEVICE")]
    pub device: Vec<String>,
    /// Time between refreshes
    #[arg(long, short, value_name = "TIME", default_value = "1s")]
    pub interval: Nanos,
    /// End after this long [default: until q or Ctrl-C]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// One JSON object an interval, one a line, and the whole time as the last
    #[arg(long)]
    pub json: bool,
    /// Only I/O of this process; uses the hooks of --detail. Repeatable
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Only I/O of processes of this cgroup (v2) and those below it; uses the hooks of --detail
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// Show each request that takes this long or longer, with all its stages
    #[arg(long, value_name = "TIME")]
    pub slow: Option<Nanos>,
    /// Follow every bio from its Q: merges, the scheduler's insertion and senders too, at a higher cost
    #[arg(long)]
    pub detail: bool,
    /// Source of the figures
    #[arg(long, value_name = "SOURCE", default_value = "auto")]
    pub source: Choice,
}

/// A source, or the best there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// The first of the others that can be used here
    Auto,
    /// Programs in the kernel; needs privileges
    Bpf,
    /// Events of the kernel's tracer, matched by weir; needs root
    Tracefs,
    /// The kernel's counters; needs nothing
    Diskstats,
}
