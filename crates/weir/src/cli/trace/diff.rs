//! What can be typed after `weir trace diff`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;

const EXAMPLES: &str = "\
A and B are recordings as `weir trace read` takes them, or what it or `weir trace live --json` saved as JSON. I/Os are \
compared within kinds and sizes that both have, weighted to a common mix. B/A is a ratio of times: 2 is twice as long.

Examples:
  weir trace diff cache-on/ cache-off/
      is it the hardware? D2C tells
  weir trace diff none.json mq-deadline.json
      what does the scheduler cost?
  weir trace diff here/sda peer/sda --margin 3%
      is this server as fast as its peer?
  weir trace diff both both --device sda,sdb
      two devices of one recording

docs/reference/trace-diff.md says how the comparison is made.";

/// Arguments of `weir trace diff`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The recording to compare with (A)
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The recording in question (B)
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Device of A and, after a comma, of B where it is another: by number or name [default: one that both have, else the busiest of each]
    #[arg(long, short, value_name = "A[,B]")]
    pub device: Option<String>,
    /// Largest difference that counts as the same
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    pub margin: Share,
    /// How
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Seed of the resamples: the same seed gives the same intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Compare the part before a damaged place of a file
    #[arg(long)]
    pub keep_going: bool,
}

/// The shapes of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// A report for people
    #[default]
    Text,
    /// JSON
    Json,
}

/// A share, typed in percent or as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, unit) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 100.0));
        let share = digits.trim().parse::<f64>().ok().map(|value| value / unit);
        share
            .filter(|share| (0.0..1.0).contains(share) && *share > 0.0)
            .map(Share)
            .ok_or_else(|| format!("expected a share above 0 and below 1 such as 5% or 0.05, got `{text}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_as_typed() {
        for (text, expected) in [
            ("3%", Some(0.03)),
            ("0.1", Some(0.1)),
            ("2.5 %", Some(0.025)),
            ("0", None),
            ("200%", None),
            ("x", None),
        ] {
            assert_eq!(text.parse::<Share>().ok().map(|share| share.0), expected, "{text}");
        }
    }
}
