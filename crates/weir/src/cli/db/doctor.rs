//! `weir db doctor`.

use weir_core::units::Nanos;

use super::connect::ConnectArgs;

/// Options of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Reads variables, counters and the waits of sessions; writes and changes nothing. To see all sessions it needs \
PROCESS (MySQL, MariaDB) or pg_monitor (PostgreSQL); the report names the missing parts. A run costs the server a few short \
statements ten times a second.

Examples:
  weir db doctor
  weir db doctor mysql://monitor@db1 --duration 5m
  weir db doctor --postgres --format json")]
pub struct Args {
    /// The server, as --server names it [default: the only one that has its socket here]
    #[arg(value_name = "SERVER", conflicts_with_all = ["server", "mysql", "postgres"])]
    pub named: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// How long to watch it; it should be at work meanwhile
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub duration: Nanos,
    /// How to print the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// How to print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A report to read and paste.
    Text,
    /// Everything, the raw counters included, as JSON of schema weir.db-doctor/1.
    Json,
}
