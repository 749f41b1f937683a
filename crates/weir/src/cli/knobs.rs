//! What can be typed after `weir knobs`.

use std::path::PathBuf;

use clap::{Subcommand, ValueHint};
use weir_core::units::Nanos;
use weir_knobs::persist::Keeper;
use weir_knobs::{KnobName, Setting};

/// Arguments of `weir knobs`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A knob has the name of its file: vm.dirty_bytes, vm.swappiness, sda/scheduler, sda/nr_requests, \
sda/iosched/fifo_batch, sda/bdi/max_ratio, cgroup:/db.slice/memory.high, cgroup:/db.slice/io.max/8:0/wbps.
`weir knobs list` names them all. Changes need root, but for variables of database servers; \
list, show and plans do not.

Examples:
  weir knobs list /var/lib/mysql
  weir knobs show vm.dirty
  weir knobs apply vm.dirty_bytes=15MB vm.dirty_background_bytes=7MB \\
      --confirm-within 5m
  weir knobs confirm
  weir knobs rollback
  weir knobs apply sda/scheduler=none sda/nr_requests=64 \\
      --persist udev --write")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do with knobs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show every knob of the machine and of the storage under a path: value, range, owner, meaning
    List {
        /// The path, or a block device
        #[arg(value_name = "PATH|DEVICE", default_value = ".", value_hint = ValueHint::AnyPath)]
        path: PathBuf,
        /// Show the knobs of every device in use, not only of those under the path
        #[arg(long, conflicts_with = "path")]
        all: bool,
        /// As JSON of schema weir.knobs/1
        #[arg(long)]
        json: bool,
    },
    /// Show everything about one knob: range, default, traps, risk, owner
    Show {
        /// Which one
        #[arg(value_name = "KNOB", value_hint = ValueHint::Other)]
        name: String,
        /// As JSON of schema weir.knobs/1
        #[arg(long)]
        json: bool,
    },
    /// Set knobs in one transaction: checked, journaled, written in order, read back; all of them or none
    Apply(Apply),
    /// Keep changes that wait for confirmation: all of them, also those of others
    Confirm {
        /// Only what this process changed; `weir knobs journal` names it
        #[arg(long, value_name = "PID")]
        of: Option<u32>,
    },
    /// Restore what weir has changed, from the journal; values that other programs changed since stay
    Rollback {
        /// All changes, not only the newest
        #[arg(long)]
        all: bool,
        /// Only changes of processes that ended without restoring them; changes that are kept or in use stay
        #[arg(long, conflicts_with_all = ["all", "persist"])]
        stale: bool,
        /// Remove the file that `apply --persist --write` wrote, instead
        #[arg(long, value_name = "KEEPER", conflicts_with = "all")]
        persist: Option<Keeper>,
        /// With --persist: a folder to take for /, such as that of an image
        #[arg(long, value_name = "DIR", requires = "persist", value_hint = ValueHint::DirPath)]
        root: Option<PathBuf>,
    },
    /// Show changes in force, and settings kept for the next boot
    Journal,
}

/// Arguments of `weir knobs apply`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --confirm-within a change stays until `weir knobs rollback`, or the next boot. With it, weir restores the old values after that time, even if the terminal or the network is gone, unless `weir knobs confirm` keeps the change. On a terminal weir waits: Enter keeps the change, Ctrl-C restores at once."
)]
pub struct Apply {
    /// What to set; sizes may have units
    #[arg(value_name = "KNOB=VALUE", required = true, value_hint = ValueHint::Other)]
    pub settings: Vec<Setting>,
    /// Restore it after this time unless it is confirmed
    #[arg(long, value_name = "TIME", value_parser = positive)]
    pub confirm_within: Option<Nanos>,
    /// Check and show the plan; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How long to wait where another weir uses one of the knobs
    #[arg(long, value_name = "TIME", default_value = "0s")]
    pub wait: Nanos,
    /// Set this knob although a power failure may lose data; once for each such knob
    #[arg(long = "i-accept-data-loss-risk", value_name = "KNOB", value_hint = ValueHint::Other)]
    pub accept: Vec<KnobName>,
    /// Show the file that sets this at the next boot (sysctl.d, udev, tuned or systemd); nothing is changed now
    #[arg(long, value_name = "KEEPER", conflicts_with_all = ["confirm_within", "dry_run", "wait"])]
    pub persist: Option<Keeper>,
    /// With --persist: write the file, after what it keeps already
    #[arg(long, requires = "persist")]
    pub write: bool,
    /// With --persist: a folder to take for /, such as that of an image
    #[arg(long, value_name = "DIR", requires = "persist", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// Print a shell script that does the same, and its undo; nothing is changed
    #[arg(long, conflicts_with_all = ["persist", "confirm_within", "dry_run", "wait"])]
    pub print: bool,
    /// The plan as JSON
    #[arg(long, requires = "dry_run")]
    pub json: bool,
}

/// A time that is not zero.
fn positive(text: &str) -> Result<Nanos, String> {
    let time: Nanos = text.parse().map_err(|error: weir_core::units::ParseUnitError| error.to_string())?;
    if time.0 == 0 { Err("must be more than 0".to_string()) } else { Ok(time) }
}
