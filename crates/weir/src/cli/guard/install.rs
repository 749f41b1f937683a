//! What can be typed after `weir guard install`.

use std::path::PathBuf;

use clap::ValueHint;

use super::run;

/// Arguments of `weir guard install`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The options, laid over --config where that is named, become /etc/weir/guard.toml, which the service reads; \
after a change there, run `systemctl restart weir-guard`. `weir guard uninstall` removes these files, except those that were changed since.

Examples:
  weir guard install --shadow --protect mariadb.service
  weir guard install /var/lib/mysql --metrics 127.0.0.1:9750 --dry-run
  weir guard install --now")]
// The group's name would be that of the run's.
#[group(skip)]
pub struct Args {
    /// What the guard is to do.
    #[command(flatten)]
    pub run: run::Args,
    /// Show the files; write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Start the service at once, and at every boot
    #[arg(long, conflicts_with_all = ["dry_run", "root"])]
    pub now: bool,
    /// The folder for the Grafana dashboard
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub to: Option<PathBuf>,
    /// A folder to take for /, such as that of an image
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
}
