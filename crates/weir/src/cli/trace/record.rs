//! What can be typed after `weir trace record`.

use std::path::PathBuf;

use clap::ValueEnum;
use weir_core::units::{Bytes, Nanos};

const EXAMPLES: &str = "\
Examples:
  weir trace record
      every device, until Ctrl-C, to weir-DATE-TIME.weirtrace
  weir trace record sda --duration 30s --out a.weirtrace
  weir trace read a.weirtrace
  weir trace record -- sysbench oltp_read_write run
      while a command runs; its exit code is the command's
  weir trace record sda --blktrace --out a
      a.blktrace.0, a.blktrace.1, … for blkparse and btt
  weir trace record --events requests
      less to record: no bios, so no Q, no merges, no sender";

/// Arguments of `weir trace record`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Devices, or any paths: the devices their I/O passes [default: every device]
    #[arg(value_name = "PATH|DEVICE")]
    pub devices: Vec<String>,
    /// The same. Repeatable
    #[arg(long, short, value_name = "PATH|DEVICE")]
    pub device: Vec<String>,
    /// The recording; with --blktrace what comes before `.blktrace.CPU`
    #[arg(long, short, visible_alias = "output", value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// End after this long [default: until Ctrl-C, or the end of COMMAND]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// End before the recording grows past this
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub size_max: Bytes,
    /// Buffer of each CPU between kernel and recorder, a power of two; events that find it full are dropped and counted
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    pub ring_bytes: Bytes,
    /// Files of blktrace's format (version 7), one a CPU
    #[arg(long)]
    pub blktrace: bool,
    /// Source of the events
    #[arg(long, value_name = "SOURCE", default_value = "auto")]
    pub source: Choice,
    /// Which events: each event costs time
    #[arg(long, value_name = "EVENTS", default_value = "bios")]
    pub events: Events,
    /// Record while this command runs
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// A source, or the best there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// The first that can be used: bpf, ftrace, relay; with --blktrace relay, ftrace, bpf
    Auto,
    /// Programs in the kernel: bios and requests with their identity, at the least cost
    Bpf,
    /// The kernel's tracer blk, in its binary mode
    Ftrace,
    /// blktrace's relay; kernels in lockdown keep its files shut
    Relay,
}

/// Which events are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Events {
    /// Requests from G, as the request remembers it, to C: no Q, no merges, no sender
    Requests,
    /// Bios and requests: from Q to C, splits, remaps and merges, with senders
    Bios,
    /// The same, and plugs
    All,
}
