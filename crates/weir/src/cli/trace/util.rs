//! What can be typed after `weir trace util`.

use clap::ValueEnum;
use weir_core::units::Nanos;

const EXAMPLES: &str = "\
Examples:
  weir trace util sda
      ten seconds of sda, against the newest curve stored for it
  weir trace util /var/lib/mysql --duration 1m
      the device under a folder
  weir trace util nvme0n1 --against last
      against the last run in the store";

/// Arguments of `weir trace util`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A device, or any path: the device its I/O passes
    #[arg(value_name = "PATH|DEVICE")]
    pub device: String,
    /// How long to watch
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub duration: Nanos,
    /// A run of `weir doctor` or `weir bench` with a depth curve [default: the newest for this device]
    #[arg(long, value_name = "RUN")]
    pub against: Option<String>,
    /// Form of the answer
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
}

/// Form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text, at most 100 columns wide
    Text,
    /// JSON
    Json,
}
