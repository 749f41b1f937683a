//! What can be typed after `weir trace fsync`.

use std::path::PathBuf;

use weir_core::units::Nanos;

const EXAMPLES: &str = "\
Examples:
  weir trace fsync --comm mysqld
      ten seconds of a server's syncs: their waits, and who causes them
  weir trace fsync --pid 4242 --slow 100ms
      each sync of 100 ms or longer as well, as it returns
  weir trace fsync --duration 1m --interval 5s
      all processes, a table every five seconds and one of the whole
  weir trace fsync -- sysbench fileio … run
      syncs of a command and what it starts; exits with the command's code
  weir trace fsync --comm mysqld --folded syncs.folded --perfetto syncs.pftrace
      for a flame graph, and as tracks for ui.perfetto.dev
  weir trace fsync --json | jq .all.culprits

docs/reference/trace-fsync.md describes the output; docs/explanation/fsync-time.md how time is divided, and how sure that is.";

/// Arguments of `weir trace fsync`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only syncs of this process
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Only syncs of threads with this name (15 characters at most, as in /proc/PID/comm)
    #[arg(long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Only syncs of this group of cgroup v2 and the groups below it
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,
    /// How long [default: 10s; with a command, until it ends]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Report so often, and on the whole at the end
    #[arg(long, value_name = "TIME")]
    pub interval: Option<Nanos>,
    /// JSON instead of text: with --interval one object a line, the whole as the last
    #[arg(long)]
    pub json: bool,
    /// Show each sync that takes this long or longer
    #[arg(long, value_name = "TIME")]
    pub slow: Option<Nanos>,
    /// Write the time of syncs as folded stacks (process;part;cause;culprit), for flamegraph.pl and speedscope
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// Write a trace for ui.perfetto.dev: each sync with its waits, and arrows to the requests it waited for
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
    /// Waits at least this long always have their stack taken, shorter ones with probability length/TIME, but all
    /// of the first eight of one sync of a thread in 100ms
    #[arg(long, value_name = "TIME", default_value = "1ms", hide_short_help = true)]
    pub stack_every: Nanos,
    /// Run a command and follow its syncs; its standard output goes to standard error
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["pid", "comm", "cgroup"])]
    pub command: Vec<String>,
}
