//! `weir package-files`: what packages and `make install` hold beside the program, so that no script has a copy that ages.

use std::path::Path;

use anyhow::Context;
use weir_cli::packaged::{self, Args, File};

use crate::daemon::manifest::Piece;
use crate::failure::Outcome;
use crate::output::print_exact;
use crate::{cli, guard, manual, recorder};

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let files = files(&args.prefix).context("cannot make the files of a package")?;
    print_exact(&packaged::text("weir", args.file.as_deref(), &files)?)?;
    Ok(Outcome::Done)
}

fn files(prefix: &Path) -> std::io::Result<Vec<File>> {
    let (program, share) = (prefix.join("bin/weir"), prefix.join("share/weir"));
    let services = guard::install::packaged(&program, &share);
    let services = services.into_iter().chain(recorder::install::packaged(&program, &share));
    let mut files: Vec<File> = services.map(|Piece { path, text }| File { path, text }).collect();
    files.extend(packaged::files("weir", prefix, manual::pages::pages(cli::command())?)?);
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_pages_completions_and_services() {
        let files = files(Path::new("/usr")).unwrap();
        let text = |path: &str| {
            let file = files.iter().find(|file| file.path == Path::new(path));
            &file.unwrap_or_else(|| panic!("no {path}")).text
        };
        assert!(text("/usr/share/man/man1/weir-guard-run.1").contains(".TH \"weir\\-guard\\-run\" 1"));
        assert!(text("/usr/share/man/man7/weir.7").contains(".SH FILES"));
        assert!(text("/usr/share/bash-completion/completions/weir").contains("WEIR_COMPLETE"));
        let unit = text("/usr/lib/systemd/system/weir-guard.service");
        assert!(
            unit.contains("\nExecStart=/usr/bin/weir guard run --config /etc/weir/guard.toml\n"),
            "{unit}"
        );
        assert!(!unit.contains("Written by"), "{unit}");
        assert!(
            text("/usr/lib/systemd/system/weir-recorder.service").contains("=/usr/bin/weir recorder run\n")
        );
        // Nobody who only starts the service has his limits changed.
        assert!(text("/etc/weir/guard.toml").contains("shadow = true\n"));
    }

    #[test]
    fn every_command_has_a_page_and_hidden_ones_have_none() {
        let pages = manual::pages::pages(cli::command()).unwrap();
        let named = |name: &str| pages.iter().find(|page| page.name == name);
        for name in [
            "weir.1",
            "weir.7",
            "weir-doctor.1",
            "weir-db-run.1",
            "weir-guard-install.1",
            "weir-knobs-apply.1",
        ] {
            let page = named(name).unwrap_or_else(|| panic!("no {name}"));
            assert!(page.text.starts_with(".TH \"weir"), "{name}: {}", page.text);
            assert!(page.text.contains("\n.SH SEE ALSO\n"), "{name}: {}", page.text);
        }
        // weir-fleet brings its own.
        let other = |name: &str| ["help", "package", "fleet"].iter().any(|word| name.contains(word));
        assert!(pages.iter().all(|page| !other(&page.name)));
        let doctor = &named("weir-doctor.1").unwrap().text;
        assert!(doctor.contains("\\-\\-quick"), "{doctor}");
        let overview = &named("weir.7").unwrap().text;
        for part in [".SH EXIT STATUS\n", ".SH FILES\n", ".SH ENVIRONMENT\n", "\\fBweir\\-doctor\\fR(1)"] {
            assert!(overview.contains(part), "no {part}");
        }
    }
}
