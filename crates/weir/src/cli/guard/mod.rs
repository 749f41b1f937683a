//! What can be typed after `weir guard`.

pub mod exec;
pub mod install;
pub mod run;
pub mod simulate;
pub mod status;
pub mod uninstall;
pub mod watch;

use clap::Subcommand;

/// Arguments of `weir guard`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands under `weir guard`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Guard devices until a signal ends it
    Run(run::Args),
    /// Run a copy, dump or backup in a cgroup of its own, so that a guard holds it alone
    Exec(exec::Args),
    /// Say what a running guard does
    Status(status::Args),
    /// Watch a running guard: latency, limit, who is bulk, and what it decides
    Watch(watch::Args),
    /// Try the law on a simulated machine
    Simulate(simulate::Args),
    /// Set up the guard as a service of systemd: unit, configuration, Grafana dashboard
    Install(Box<install::Args>),
    /// Remove the service, and put every limit back
    Uninstall(uninstall::Args),
}
