//! What can be typed after `weir recorder`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};
use weir_core::units::{Bytes, Nanos};

use crate::daemon::MetricsAt;

/// Arguments of `weir recorder`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands under `weir recorder`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record until a signal ends it
    Run(RunArgs),
    /// Say what was not as usual in some time, since when, and why
    Show(ShowArgs),
    /// Have the running recorder keep what happened in the last seconds
    Snap(SnapArgs),
    /// List what the archive holds
    List(ListArgs),
    /// Write rows of a table as CSV or Parquet
    Export(ExportArgs),
    /// Set up the recorder as a service of systemd
    Install(Box<InstallArgs>),
    /// Remove the service; the archive stays
    Uninstall(UninstallArgs),
}

const RUN: &str = "\
It records stages of requests and what syncs wait for, where the kernel takes weir's programs (root), and counters of devices, memory, pressure and processes elsewhere; it says what it cannot see. SIGTERM and SIGINT end it and close the segment.

Examples:
  weir recorder run
  weir recorder run --interval 1s --dir /srv/archive --max-age 30d
  weir recorder run --metrics 127.0.0.1:9751";

/// Arguments of `weir recorder run`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = RUN)]
pub struct RunArgs {
    /// The archive's folder [default: /var/lib/weir/recorder, without root ~/.local/state/weir/recorder]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Length of an interval
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub interval: Nanos,
    /// Devices, or paths on them, separated by commas [default: all]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',', value_hint = ValueHint::AnyPath)]
    pub devices: Vec<String>,
    /// Syncs that take this long or longer are kept one by one, with what they waited for
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub slow: Nanos,
    /// The oldest segments go while the archive holds more; snapshots do not count
    #[arg(long, value_name = "SIZE", default_value = "2g")]
    pub max_bytes: Bytes,
    /// Segments older than this go
    #[arg(long, value_name = "TIME", default_value = "14d")]
    pub max_age: Nanos,
    /// A segment is closed, and readable by other programs, after this long
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub segment: Nanos,
    /// A device with I/O in flight that completes nothing for this long stands still: an event, and a snapshot
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub stall: Nanos,
    /// Answer GET /metrics in OpenMetrics there: 127.0.0.1:9751, or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<MetricsAt>,
    /// Let --metrics listen on an address that others can reach; nobody is asked who he is
    #[arg(long, requires = "metrics")]
    pub metrics_for_others: bool,
    /// End after this long [default: until a signal]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
}

const SHOW: &str = "\
A time is HH:MM or HH:MM:SS (the last one that has passed), YYYY-MM-DD HH:MM, RFC 3339, or a length such as 2h: so long ago. What is normal is learned from the hours before --since.

Examples:
  weir recorder show --since 03:00 --until 03:30
  weir recorder show --since 2h --unit mariadb
  weir recorder show --since '2026-11-25 03:00' --device sda --json
  weir recorder show --since 03:00 --until 04:00 --html night.html";

/// Arguments of `weir recorder show`.
#[derive(Debug, clap::Args)]
#[command(after_help = SHOW)]
pub struct ShowArgs {
    /// From then on
    #[arg(long, value_name = "TIME", default_value = "1h")]
    pub since: String,
    /// Until then [default: now]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only this device, by the kernel's name
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Only syncs of this systemd unit, or of processes of this name
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// Learn what is normal from so much time before
    #[arg(long, value_name = "TIME", default_value = "6h")]
    pub before: Nanos,
    /// The archive's folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// Also write a page with the course of syncs, devices and processes; replaces only a page of weir's
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir recorder snap`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file holds the last completions of requests that the recorder has seen while syncs were under way, syncs that have not returned, and what devices did second by second. Its path is printed.

Examples:
  weir recorder snap
  less \"$(weir recorder snap --last 30s)\"")]
pub struct SnapArgs {
    /// So much of what lies behind, at most 60s
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub last: Nanos,
    /// The archive's folder, in which the recorder listens
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir recorder list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// The archive's folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
    /// JSON instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `weir recorder export`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The columns are described in docs/reference/recorder.md. Other programs can also read the archive's own Parquet files.

Examples:
  weir recorder export counters --since 1d > counters.csv
  weir recorder export stages --since 3h --parquet --to stages.parquet")]
pub struct ExportArgs {
    /// stages, syncs, waits, behind, processes, counters or events
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// From then on
    #[arg(long, value_name = "TIME", default_value = "24h")]
    pub since: String,
    /// Until then [default: now]
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// As CSV, which is the default
    #[arg(long, conflicts_with = "parquet")]
    pub csv: bool,
    /// As one Parquet file
    #[arg(long)]
    pub parquet: bool,
    /// Write to this file [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,
    /// The archive's folder
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// Arguments of `weir recorder install`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct InstallArgs {
    /// What the recorder is to do.
    #[command(flatten)]
    pub run: RunArgs,
    /// Write the Grafana dashboard and the alerts for Prometheus into this folder [default: /usr/local/share/weir]
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub to: Option<PathBuf>,
    /// Show the files; write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Start the service at once, and at every boot
    #[arg(long, conflicts_with_all = ["dry_run", "root"])]
    pub now: bool,
    /// A folder to take for /, such as that of an image
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
}

/// Arguments of `weir recorder uninstall`.
#[derive(Debug, clap::Args)]
pub struct UninstallArgs {
    /// The folder used in place of / at the install
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
}
