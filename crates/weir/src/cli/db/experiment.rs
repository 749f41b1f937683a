//! What all experiments with databases share.

use std::path::PathBuf;

use weir_core::units::{Bytes, Nanos};
use weir_db::sandbox::Flavour;
use weir_experiment::Goal;
use weir_oltp::Script;

use super::connect::ConnectArgs;
use super::workload::WorkloadArgs;
use crate::cli::bench::word;
use crate::cli::tune::Format;

/// What all experiments with databases share.
#[derive(Debug, Default, clap::Args)]
pub struct ExperimentArgs {
    /// What a transaction does, as `weir db run` has it
    #[arg(value_name = "SCRIPT", value_parser = word::<Script>)]
    pub script: Option<Script>,
    /// The server it runs on.
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// The throw-away server it runs on instead.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
    /// What runs.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// How it is tried.
    #[command(flatten)]
    pub trials: TrialArgs,
}

/// A server of weir's own for the time of an experiment.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Throw-away server")]
pub struct SandboxArgs {
    /// Start a server of its own for the experiment, with tables made for it, and remove both: mysql, mariadb, postgres
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["server", "mysql", "postgres", "host", "socket"])]
    pub sandbox: Option<Flavour>,
    /// Where its data lie [default: here]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// A tree with a server that is not installed, as `weir db sandbox` has it
    #[arg(long, value_name = "TREE")]
    pub root: Option<PathBuf>,
    /// A variable of it, NAME=VALUE. Repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Its buffer pool [default: 128M]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<Bytes>,
}

/// How often and how long.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Trials")]
pub struct TrialArgs {
    /// Trials of each way [default: 3; pairs: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeats: Option<u32>,
    /// Time for everything, waits included [default: 40m]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// The goal: 'max rate', 'min p99', 'max rate with p99 <= 50ms'
    #[arg(long, value_name = "GOAL")]
    pub goal: Option<Goal>,
    /// Longest wait for a clean start between trials [default: 30s]
    #[arg(long, value_name = "TIME")]
    pub washout: Option<Nanos>,
    /// Print the trials, their order and their time, and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not watch the stages of the device's requests
    #[arg(long)]
    pub no_trace: bool,
    /// Form of the results on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}
