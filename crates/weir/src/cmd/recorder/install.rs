//! `weir recorder install` and `uninstall`: the recorder as a service of systemd.

use std::io;
use std::path::PathBuf;

use anyhow::Context;

use crate::cli::recorder::{InstallArgs, UninstallArgs};
use crate::cmd::guard::install::{is_booted, systemctl};
use crate::daemon::install::{SHARE, check_program, device, passing};
use crate::daemon::manifest::{Piece, Root};
use crate::failure::{Outcome, Usage};
use crate::inputs::recorder::settings as settings_of;
use crate::machine::root_or;
use crate::output::print;
use crate::recorder::install::{LIST, NAME, pieces};

/// `weir recorder install`.
pub fn install(args: &InstallArgs, command: &[String]) -> anyhow::Result<Outcome> {
    let settings = settings_of(&args.run)?;
    let program = std::env::current_exe().context("cannot tell where this program lies")?;
    if let Some(dir) = &args.run.dir {
        let what =
            format!("--dir {}: the service keeps its archive in /var/lib/weir/recorder", dir.display());
        let hint = "leave --dir out, or mount another disk there".to_string();
        return Err(Usage { what, hint: Some(hint) }.into());
    }
    let share = match &args.to {
        Some(folder) => std::path::absolute(folder).context("cannot tell where --to leads")?,
        None => PathBuf::from(SHARE),
    };
    let options = options(command).context("cannot tell which folder this is")?;
    let pieces = pieces(&settings, &program, &options, &share);
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
    root.install(&pieces, &[])?;
    let mut said: String =
        pieces.iter().map(|piece| format!("wrote {}\n", root.under(&piece.path).display())).collect();
    if args.now {
        for words in [&["daemon-reload"][..], &["enable", NAME], &["restart", NAME]] {
            systemctl(words)?;
            said.push_str(&format!("done  systemctl {}\n", words.join(" ")));
        }
    } else {
        said.push_str("start it, now and at every boot:\n  systemctl daemon-reload && systemctl enable --now weir-recorder\n");
    }
    said.push_str("look back:\n  weir recorder show --since 1h\n");
    print(&said)?;
    Ok(Outcome::Done)
}

/// What was typed for the run, as the service has to be told it.
fn options(command: &[String]) -> io::Result<Vec<String>> {
    let devices =
        |typed: &str| typed.split(',').map(device).collect::<io::Result<Vec<_>>>().map(|all| all.join(","));
    let mut typed = command.iter().skip_while(|word| *word != "install").skip(1);
    let mut options = Vec::new();
    while let Some(word) = typed.next() {
        match word.as_str() {
            "--dry-run" | "--now" => {}
            "--root" | "--to" => _ = typed.next(),
            word if word.starts_with("--root=") || word.starts_with("--to=") => {}
            "--devices" => {
                options.push(word.clone());
                options.extend(typed.next().map(|typed| devices(typed)).transpose()?);
            }
            word => options.push(match word.strip_prefix("--devices=") {
                Some(typed) => format!("--devices={}", devices(typed)?),
                None => word.to_string(),
            }),
        }
    }
    Ok(options)
}

/// `weir recorder uninstall`.
pub fn uninstall(args: &UninstallArgs) -> anyhow::Result<Outcome> {
    let root = Root::open(args.root.as_deref(), LIST)?;
    if args.root.is_none() {
        root_or("removing a service", "--root FOLDER removes what was installed there")?;
    }
    let Some(manifest) = root.installed()? else {
        print("no recorder is installed: nothing to remove\n")?;
        return Ok(Outcome::Done);
    };
    let runs_here = args.root.is_none() && is_booted();
    if runs_here {
        systemctl(&["disable", "--now", NAME])?;
    }
    let mut said = root.uninstall(&manifest)?.to_string();
    if runs_here {
        systemctl(&["daemon-reload"])?;
    }
    said.push_str("the archive stays\n");
    print(&said)?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_runs_with_what_was_typed_for_it() {
        let typed = "weir recorder install --interval 5s --now --root /image --to=/x --max-age=3d --dry-run";
        let typed: Vec<String> = typed.split(' ').map(String::from).collect();
        assert_eq!(options(&typed).unwrap(), ["--interval", "5s", "--max-age=3d"]);
    }
}
