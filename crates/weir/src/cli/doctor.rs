//! What can be typed after `weir doctor`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use weir_core::units::{Bytes, Nanos};
use weir_verdict::notes::Bar;
use weir_verdict::products::Product;

/// Arguments of `weir doctor`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Works in one folder .weir-doctor-… that it makes under PATH and removes at the end. As root and on a \
    quiet machine it also tries a lower vm.dirty_bytes beside a bulk writer for some seconds, and restores the value."
)]
pub struct Args {
    /// A folder on the storage to examine
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// Run what this product writes instead, and exit 1 where the storage is below its bar; the report names the source of
    /// each bar. Needs no root; leaves out the bulk writer and every trial
    #[arg(long = "for", value_name = "PRODUCT", conflicts_with_all = ["no_flood", "no_knobs", "even_if_busy"],
        value_parser = PossibleValuesParser::new(Product::ALL.map(Product::name)).try_map(|name| name.parse::<Product>()))]
    pub product: Option<Product>,
    /// Write at full speed until the rate falls, at most this long (30s to 6h), idle a little and write again: how long a
    /// burst lasts, what it falls to, what refills it, and who limits it. Spends the credit of a volume and wears flash;
    /// leaves out everything else
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "5m",
        conflicts_with_all = ["product", "quick", "thorough", "duration", "no_flood", "no_knobs", "no_trace",
            "even_if_busy", "require", "junit"])]
    pub sustained: Option<Nanos>,
    /// Map how reads, writes and commits share the storage, in at most three minutes (--quick: one): the edge, latency on the
    /// way there, and a cost model as lines for iocost, Seastar's io_properties.yaml and InnoDB, each with how sure it is.
    /// Leaves out everything else
    #[arg(long, conflicts_with_all = ["product", "sustained", "thorough", "duration", "no_flood", "no_knobs", "no_trace",
        "even_if_busy", "require", "junit"])]
    pub map: bool,
    /// Take half a minute instead of three
    #[arg(long, conflicts_with_all = ["thorough", "duration"])]
    pub quick: bool,
    /// Take ten minutes: more depths, longer steps, several dirty limits
    #[arg(long, conflicts_with = "duration")]
    pub thorough: bool,
    /// Take at most about this long (20s to 1h)
    #[arg(long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Size of the test file [default: what the time allows, at most 2 GiB; 8 GiB with --thorough]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Leave out the bulk writer, and with it the trial of dirty limits
    #[arg(long)]
    pub no_flood: bool,
    /// Change no kernel setting, not even for the trial
    #[arg(long)]
    pub no_knobs: bool,
    /// Do not watch the stages of the I/O (as root, weir's programs in the kernel do so beside the measuring)
    #[arg(long)]
    pub no_trace: bool,
    /// Try a lower dirty limit although other processes write; it throttles them for those seconds
    #[arg(long, conflicts_with_all = ["no_knobs", "no_flood"])]
    pub even_if_busy: bool,
    /// Exit 1 unless this holds; may be repeated. One of commit-p99=5ms, commit-iops=N, read-iops=N, write-iops=N,
    /// read-rate=BYTES, write-rate=BYTES, flood=PERCENT (of the idle commits). Of these --for measures write-rate alone
    #[arg(long, value_name = "BAR")]
    pub require: Vec<Bar>,
    /// What stdout carries
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Where the HTML report goes [default: beside the record in the store]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the bars to this file as JUnit XML, one test case each: those of --for and of --require
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// What stdout carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A summary to read and paste.
    Text,
    /// Everything, as JSON of schema weir.doctor/1.
    Json,
}
