//! `weir-fleet package-files`: what its package holds beside the program.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use weir_cli::manual;
use weir_cli::packaged::{self, Args, File};

use crate::cli::Cli;
use crate::run::print;

/// The program's own name, by which its pages and completions are called.
const NAME: &str = "weir-fleet";

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<u8> {
    let files = files(&args.prefix).context("cannot make the files of a package")?;
    print(&packaged::text(NAME, args.file.as_deref(), &files)?)?;
    Ok(0)
}

fn files(prefix: &Path) -> std::io::Result<Vec<File>> {
    packaged::files(NAME, prefix, manual::pages(Cli::command().name(NAME))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page() {
        let files = files(Path::new("/usr")).unwrap();
        let page = |name: &str| {
            let path = Path::new("/usr/share/man/man1").join(name);
            &files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("no {name}")).text
        };
        let whole = page("weir-fleet.1");
        assert!(whole.starts_with(".TH \"weir\\-fleet\" 1"), "{whole}");
        assert!(whole.contains("\\fBweir\\-fleet\\-show\\fR(1)"), "{whole}");
        assert!(page("weir-fleet-run.1").contains("\\-\\-canary"));
        assert!(page("weir-fleet-show-slow.1").contains("weir fleet show slow"));
        assert!(!files.iter().any(|file| file.path.to_string_lossy().contains("package")));
    }
}
