//! What can be typed after `weir trace read`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use weir_blocktrace::Class;
use weir_core::units::{Bytes, Nanos};

const EXAMPLES: &str = "\
FILE is a file of blktrace (NAME.blktrace.CPU), a name as blktrace knows it (sda: all its CPUs), a folder of such files, \
a dump of blkparse -d, a stream of ftrace's blk tracer in bin mode, a recording of `weir trace record`, or - for \
standard input; packed by gzip or zstd or not.

Examples:
  weir trace read sda
      where the I/Os of sda.blktrace.0, .1 … spent their time
  weir trace read recordings/ --html page.html
      the same with plots
  weir trace read sda --from 2s --to 5s --process mysqld
  weir trace read sda --size 4k..16k --class sync_write --format json
  weir trace read sda --per-request csv --out requests.csv
  weir trace read sda --from 2s --to 3s --perfetto sda.pftrace
      that second as tracks, for ui.perfetto.dev
  weir trace read sda --btt
      for people and scripts used to btt
  blktrace -d /dev/sda -o - -w 10 | weir trace read -

docs/reference/trace.md defines the stages and their units.";

/// Arguments of `weir trace read`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Recordings
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Which I/Os.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// In which form.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Report the part before a damaged place of a file
    #[arg(long)]
    pub keep_going: bool,
}

/// Which I/Os count.
#[derive(Debug, Default, Clone, clap::Args)]
#[command(next_help_heading = "Which I/Os")]
pub struct FilterArgs {
    /// Those that began at this time or later, after the recording's first event: 2s
    #[arg(long, value_name = "TIME")]
    pub from: Option<Nanos>,
    /// Those that began before this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<Nanos>,
    /// Of this device: 8:0, or its name; may be given again
    #[arg(long, short, value_name = "DEVICE")]
    pub device: Vec<String>,
    /// Sent by this process or thread: its id or name. Recordings of blktrace and ftrace name threads alone; may be given again
    #[arg(long, value_name = "PROCESS")]
    pub process: Vec<String>,
    /// Of this class: read, write, sync_write, metadata, discard, flush, passthrough; may be given again
    #[arg(long, value_name = "CLASS", value_parser = class)]
    pub class: Vec<Class>,
    /// Of this length: 4k, or a range 4k..64k, both ends included
    #[arg(long, value_name = "SIZE")]
    pub size: Option<SizeRange>,
    /// That begin at a sector (512 bytes) of this range: 2048..4096, both ends included
    #[arg(long, value_name = "RANGE")]
    pub sector: Option<SectorRange>,
}

/// In which form results come.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Form of the analysis
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// The analysis in btt's sections
    #[arg(long, conflicts_with_all = ["format", "json"])]
    pub btt: bool,
    /// One row a request, to --out or instead of the analysis
    #[arg(long, value_enum, value_name = "FORM")]
    pub per_request: Option<PerRequest>,
    /// What a row of --per-request stands for
    #[arg(long, value_enum, default_value_t, value_name = "UNIT", requires = "per_request")]
    pub unit: RowUnit,
    /// Where the rows of --per-request go [default: standard output]
    #[arg(long, short, visible_alias = "output", value_name = "FILE", requires = "per_request")]
    pub out: Option<PathBuf>,
    /// Write a page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a trace for ui.perfetto.dev: each I/O with its stages, by device and by thread that syncs
    #[arg(long, value_name = "FILE")]
    pub perfetto: Option<PathBuf>,
}

/// Form of the analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// A report for people
    #[default]
    Text,
    /// Everything, as docs/reference/trace.md describes it
    Json,
    /// The stage table
    Csv,
}

/// Form of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PerRequest {
    /// Comma-separated, with a head
    Csv,
    /// A JSON object a line
    Jsonl,
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum RowUnit {
    /// A request, as the driver saw it
    #[default]
    Request,
    /// An I/O: a bio, or a part of it after splits; the unit of stages
    #[value(name = "io", alias = "piece")]
    Io,
    /// A bio on the topmost device, as its sender knows it
    Bio,
}

/// Lengths, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange(pub u64, pub u64);

/// Sectors, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectorRange(pub u64, pub u64);

impl FromStr for SizeRange {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = |text: &str| text.parse::<Bytes>().map(|b| b.0).map_err(|e| e.to_string());
        range(text, bytes).map(|(low, high)| SizeRange(low, high))
    }
}

impl FromStr for SectorRange {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let sector = |text: &str| {
            text.parse().map_err(|_| {
                format!(
                    "expected a sector's number, got \
            `{text}`"
                )
            })
        };
        range(text, sector).map(|(low, high)| SectorRange(low, high))
    }
}

/// `a`, `a..b`, `a..` or `..b`.
fn range(text: &str, parse: impl Fn(&str) -> Result<u64, String>) -> Result<(u64, u64), String> {
    let (low, high) = match text.split_once("..") {
        None => (parse(text)?, parse(text)?),
        Some((low, high)) => (
            if low.is_empty() { 0 } else { parse(low)? },
            if high.is_empty() { u64::MAX } else { parse(high)? },
        ),
    };
    if low > high { Err(format!("`{text}` ends before it begins")) } else { Ok((low, high)) }
}

fn class(text: &str) -> Result<Class, String> {
    let wanted = text.replace('-', "_");
    Class::ALL.into_iter().find(|class| class.name() == wanted).ok_or_else(|| {
        let names: Vec<&str> = Class::ALL.iter().map(|class| class.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_typed() {
        for (text, expected) in [
            ("4k", Some((4096, 4096))),
            ("4k..16k", Some((4096, 16384))),
            ("..1M", Some((0, 1 << 20))),
            ("1M..", Some((1 << 20, u64::MAX))),
            ("16k..4k", None),
            ("x..4k", None),
        ] {
            assert_eq!(text.parse::<SizeRange>().ok(), expected.map(|(a, b)| SizeRange(a, b)), "{text}");
        }
        assert_eq!("8..9".parse(), Ok(SectorRange(8, 9)));
        assert_eq!(class("sync-write"), Ok(Class::SyncWrite));
        assert!(class("sink").is_err());
    }
}
