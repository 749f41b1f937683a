//! What can be typed after `weir top`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use weir_core::units::Nanos;

const EXAMPLES: &str = "\
Examples:
  weir top
      devices, classes of I/O, processes and slow syncs; ? helps, q ends
  weir top /var/lib/mysql --slow 50ms
      the device under a folder, and syncs of 50 ms or longer
  weir top --at 03:00
      how it was at three, out of the archive of `weir recorder run`
  weir top --once --size 200x60 > frame.txt
      one frame as text
  weir top --source diskstats --no-syncs
      without privileges: what the kernel's counters say

docs/reference/top.md describes the screen and its keys.";

/// Arguments of `weir top`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Devices, or any paths: the devices their I/O passes [default: every device that does any I/O]
    #[arg(value_name = "PATH|DEVICE")]
    pub devices: Vec<String>,
    /// Time between samples
    #[arg(long, short, value_name = "TIME", default_value = "1s")]
    pub interval: Nanos,
    /// List syncs that take this long or longer
    #[arg(long, value_name = "TIME", default_value = "10ms")]
    pub slow: Nanos,
    /// How far back the screen can step
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub keep: Nanos,
    /// Start at this time, as the recorder's archive has it: 03:00, a date with a time, or a length such as 2h for so long ago
    #[arg(long, visible_alias = "since", value_name = "TIME")]
    pub at: Option<String>,
    /// The recorder's archive, into which the screen steps back [default: the one of `weir recorder`]
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Print one frame as text, after one interval; with --at, the one of then
    #[arg(long)]
    pub once: bool,
    /// Columns and rows of the frame of --once [default: the terminal's, or 100x40]
    #[arg(long, value_name = "COLUMNSxROWS", requires = "once")]
    pub size: Option<Size>,
    /// Source of the devices' figures
    #[arg(long, value_name = "SOURCE", default_value = "auto")]
    pub source: Choice,
    /// Do not follow syncs: costs less
    #[arg(long)]
    pub no_syncs: bool,
}

/// A source, or the best there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Choice {
    /// The first of the others that can be used here
    Auto,
    /// Programs in the kernel; needs privileges
    Bpf,
    /// The kernel's counters; needs nothing
    Diskstats,
}

/// Columns and rows of a screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u16, pub u16);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let number = |text: &str| text.parse::<u16>().ok().filter(|number| (1..=1000).contains(number));
        let both =
            text.split_once('x').and_then(|(columns, rows)| Some(Size(number(columns)?, number(rows)?)));
        both.ok_or_else(|| format!("expected COLUMNSxROWS such as 80x24, up to 1000x1000, got `{text}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_typed() {
        for (text, expected) in
            [("80x24", Some(Size(80, 24))), ("80", None), ("0x24", None), ("80x99999", None), ("axb", None)]
        {
            assert_eq!(text.parse::<Size>().ok(), expected, "{text}");
        }
    }
}
