//! What can be typed after `weir trace`.

pub mod diff;
#[cfg(feature = "trace")]
pub mod fsync;
#[cfg(feature = "trace")]
pub mod live;
pub mod read;
#[cfg(feature = "trace")]
pub mod record;
pub mod util;

use clap::Subcommand;

/// Arguments of `weir trace`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands under `weir trace`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Stages of the I/Os in recordings of blktrace, ftrace or weir
    Read(read::Args),
    #[cfg(feature = "trace")]
    /// Stages of the I/Os of this machine, live
    Live(live::Args),
    #[cfg(feature = "trace")]
    /// Record the block layer's events to a file that `weir trace read` takes
    Record(record::Args),
    #[cfg(feature = "trace")]
    /// What syncs wait for, and the processes behind it
    Fsync(fsync::Args),
    /// Compare two recordings, stage by stage
    Diff(diff::Args),
    /// Is a device with a high %util saturated?
    Util(util::Args),
}
