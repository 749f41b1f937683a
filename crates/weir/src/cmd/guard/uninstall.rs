//! `weir guard uninstall`: the service and its files go, the limits go back.

use super::install::{is_booted, systemctl};
use crate::cli::guard::uninstall::Args;
use crate::daemon::manifest::Root;
use crate::failure::Outcome;
use crate::guard::install::LIST;
use crate::guard::install::unit::NAME;
use crate::machine::root_or;
use crate::output::print;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    let root = Root::open(args.root.as_deref(), LIST)?;
    if args.root.is_none() {
        root_or("removing a service", "--root FOLDER removes what was installed there")?;
    }
    let Some(manifest) = root.installed()? else {
        print("no guard is installed: nothing to remove\n")?;
        return Ok(Outcome::Done);
    };
    let runs_here = args.root.is_none() && is_booted();
    let mut said = String::new();
    if runs_here {
        // Stopped first: its end leads the limits back, with the files still there that say how.
        systemctl(&["disable", "--now", NAME])?;
        said.push_str(&format!("done  systemctl disable --now {NAME}\n"));
    }
    said.push_str(&root.uninstall(&manifest)?.to_string());
    if runs_here {
        systemctl(&["daemon-reload"])?;
    }
    print(&said)?;
    Ok(Outcome::Done)
}
