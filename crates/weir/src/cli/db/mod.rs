//! What can be typed after `weir db`.

pub mod connect;
pub mod disk_vs_ram;
pub mod doctor;
pub mod experiment;
pub mod explain;
pub mod flood;
pub mod io_capacity;
pub mod sandbox;
pub mod scale;
pub mod workload;

use clap::Subcommand;

/// Runs transactions on MySQL, MariaDB and PostgreSQL and finds their limit.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make the tables of a workload and fill them
    Prepare(workload::PrepareArgs),
    /// Run transactions and report their limit
    Run(Box<workload::RunArgs>),
    /// Read the tables into the server's memory
    Warmup(workload::WarmupArgs),
    /// Remove the tables of a workload
    Cleanup(workload::CleanupArgs),
    /// What limits a running server? Changes nothing
    Doctor(doctor::Args),
    /// What limits a throw-away server under transactions? Verified by changes, one after another
    Explain(Box<explain::Args>),
    /// Rates over numbers of connections, a fitted law, and the peak
    Scale(Box<scale::Args>),
    /// Would a faster disk help? A throw-away server on the disk and on a RAM disk, same data
    DiskVsRam(Box<disk_vs_ram::Args>),
    /// What should innodb_io_capacity be? Measured on a live server, and restored
    IoCapacity(Box<io_capacity::Args>),
    /// Commits beside a bulk copy, with and without the guard
    Flood(Box<flood::Args>),
    /// A throw-away server on a Unix socket
    Sandbox(sandbox::Args),
}
