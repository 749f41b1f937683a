//! What can be typed after `weir guard simulate`.

use std::str::FromStr;

use clap::ValueEnum;
use weir_control::plant::FloodKind;
use weir_core::units::Bytes;

/// Arguments of `weir guard simulate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The machine: a (3000 writes/s, 251 MB/s), b (1500, 200), c (20,000, 1 GB/s), d (a, whose rate steps), or a file
    /// that describes another one in TOML
    #[arg(value_name = "a|b|c|d|FILE", default_value = "a")]
    pub machine: String,
    /// The same
    #[arg(long, value_name = "a|b|c|d|FILE", conflicts_with = "machine")]
    pub device: Option<String>,
    /// What happens: phases at one and at ten threads (gauntlet), one flood at ten threads (flood), or a file in TOML
    #[arg(long, value_name = "gauntlet|flood|FILE", default_value = "gauntlet", conflicts_with = "random")]
    pub script: String,
    /// Machines and events at random instead, from this seed on, an hour each
    #[arg(long, value_name = "SEED", conflicts_with_all = ["machine", "device", "flood", "direct", "seconds"])]
    pub random: Option<u64>,
    /// Hours at random
    #[arg(long, value_name = "N", default_value_t = 1, requires = "random")]
    pub hours: u64,
    /// A limit of dirty bytes to compare, several times: a size, default (the baseline) or guard [default: all of default,
    /// 15MB, 4MB, guard]
    #[arg(long, value_name = "SIZE|default|guard")]
    pub limit: Vec<LimitArg>,
    /// How bulk writers write
    #[arg(long, value_enum)]
    pub flood: Option<FloodArg>,
    /// Sync threads go past the page cache
    #[arg(long)]
    pub direct: bool,
    /// Seconds of each phase
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(6..=3600))]
    pub seconds: u64,
    /// Seed of everything that is random in the machine
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Form of the result
    #[arg(long, value_enum, default_value_t)]
    pub format: FormatArg,
}

/// A limit to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitArg {
    /// Baseline.
    AsFound,
    /// This many bytes.
    Static(u64),
    /// Set by the guard.
    Guard,
}

impl FromStr for LimitArg {
    type Err = String;
    fn from_str(text: &str) -> Result<LimitArg, String> {
        match text {
            "default" => Ok(LimitArg::AsFound),
            "guard" => Ok(LimitArg::Guard),
            size => match size.parse::<Bytes>() {
                Ok(Bytes(bytes)) if bytes >= 8192 => Ok(LimitArg::Static(bytes)),
                Ok(_) => Err("the kernel takes no limit below 8192 bytes".to_string()),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

/// How bulk writers write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FloodArg {
    /// To a new file
    Fresh,
    /// Over a file in the page cache
    Rewriting,
}

impl From<FloodArg> for FloodKind {
    fn from(flood: FloodArg) -> FloodKind {
        match flood {
            FloodArg::Fresh => FloodKind::Fresh,
            FloodArg::Rewriting => FloodKind::Rewriting,
        }
    }
}

/// Form of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum FormatArg {
    /// A table
    #[default]
    Text,
    /// The same as JSON
    Json,
}
