//! `weir guard install`: the guard as a service of systemd.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::cli::guard::install::Args;
use crate::daemon::install::{SHARE, check_program, device, passing};
use crate::daemon::manifest::{Piece, Root};
use crate::failure::{Lacking, Outcome, Usage};
use crate::guard::install::unit::NAME;
use crate::guard::install::{LIST, next_steps, packaged_config, pieces};
use crate::inputs;
use crate::machine::root_or;
use crate::output::print;

/// Runs the command.
pub fn run(args: Args, _command: &[String]) -> anyhow::Result<Outcome> {
    if args.run.print_config {
        let what = "--print-config prints settings, and install writes them".to_string();
        return Err(Usage { what, hint: Some("--dry-run shows what would be written".to_string()) }.into());
    }
    let mut settings = inputs::guard::named(&args.run)?;
    for typed in &mut settings.devices {
        *typed = device(typed).context("cannot tell which folder this is")?;
    }
    let log = settings.log.as_deref().map(std::path::absolute).transpose();
    settings.log = log.context("cannot tell where --log leads")?;
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    let share = match &args.to {
        Some(folder) => std::path::absolute(folder).context("cannot tell where --to leads")?,
        None => PathBuf::from(SHARE),
    };
    let pieces = pieces(&settings, &program, &share);
    if args.root.is_none()
        && let Some(why) = passing(&program)
    {
        say!("weir: {why}");
    }
    if args.dry_run {
        print(&pieces.iter().map(Piece::shown).collect::<String>())?;
        say!("nothing was written; without --dry-run this would be");
        return Ok(Outcome::Done);
    }
    if args.root.is_none() {
        root_or("installing a service", "--dry-run shows the files, --root FOLDER writes them elsewhere")?;
        check_program(&program)?;
    }
    let root = Root::open(args.root.as_deref(), LIST)?;
    root.install(&pieces, &[packaged_config()])?;
    let wrote = |piece: &Piece| format!("wrote {}\n", root.under(&piece.path).display());
    print(&pieces.iter().map(wrote).collect::<String>())?;
    if args.now {
        for words in [&["daemon-reload"][..], &["enable", NAME], &["restart", NAME]] {
            systemctl(words)?;
            print(&format!("done  systemctl {}\n", words.join(" ")))?;
        }
    }
    print(&next_steps(&settings, args.now))?;
    Ok(Outcome::Done)
}

/// Has systemd do something.
///
/// # Errors
/// When there is no systemd, or it cannot.
pub fn systemctl(words: &[&str]) -> anyhow::Result<()> {
    let lacking = |why: String| Lacking {
        what: format!("systemctl {}: {why}", words.join(" ")),
        hint: Some("the files are as said; without systemd, `weir guard run` guards as well".to_string()),
    };
    let done = Command::new("systemctl").args(words).output().map_err(|error| lacking(error.to_string()))?;
    if done.status.success() {
        return Ok(());
    }
    Err(lacking(String::from_utf8_lossy(&done.stderr).trim().to_string()).into())
}

/// Whether systemd runs this machine (sd_booted(3)).
pub fn is_booted() -> bool {
    Path::new("/run/systemd/system").is_dir()
}
