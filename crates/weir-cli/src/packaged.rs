//! `package-files` of both programs: what packages and `make install` hold beside a program, so that no script has a copy that ages.

use std::io;
use std::path::{Path, PathBuf};

use clap_complete::Shell;

use crate::completion;
use crate::failure::Lacking;
use crate::manual::Page;

/// What can be typed after `package-files`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The file to print, as the list names it
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The folder that bin is in
    #[arg(long, value_name = "DIR", default_value = "/usr")]
    pub prefix: PathBuf,
}

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path on the machine.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
}

/// Completions and manual pages of a program.
///
/// # Errors
/// None in practice: the scripts are written into memory.
pub fn files(program: &str, prefix: &Path, pages: Vec<Page>) -> io::Result<Vec<File>> {
    let completion = |(shell, path): (Shell, String)| {
        Ok(File { path: prefix.join("share").join(path), text: completion::script(program, shell)? })
    };
    let mut files = completions(program).into_iter().map(completion).collect::<io::Result<Vec<File>>>()?;
    files.extend(pages.into_iter().map(|page| {
        let section = page.name.rsplit('.').next().unwrap_or_default();
        File { path: prefix.join(format!("share/man/man{section}")).join(&page.name), text: page.text }
    }));
    Ok(files)
}

/// Where shells look for completions, below a prefix's share; Debian's zsh looks elsewhere.
fn completions(program: &str) -> [(Shell, String); 3] {
    [
        (Shell::Bash, format!("bash-completion/completions/{program}")),
        (Shell::Zsh, format!("zsh/site-functions/_{program}")),
        (Shell::Fish, format!("fish/vendor_completions.d/{program}.fish")),
    ]
}

/// The names of the files, or the text of the one that was asked for.
///
/// # Errors
/// Where no file is called so.
pub fn text(program: &str, file: Option<&Path>, files: &[File]) -> anyhow::Result<String> {
    let Some(named) = file else {
        return Ok(files.iter().map(|file| format!("{}\n", file.path.display())).collect());
    };
    let found = files.iter().find(|file| file.path == *named).ok_or_else(|| Lacking {
        what: format!("no such file of a package: {}", named.display()),
        hint: Some(format!("run `{program} package-files` to see the names")),
    })?;
    Ok(found.text.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_printed_by_its_name() {
        let page = Page { name: "x-y.1".into(), text: "page".into() };
        let files = files("x", Path::new("/usr"), vec![page]).unwrap();
        let listed = text("x", None, &files).unwrap();
        assert!(listed.starts_with("/usr/share/bash-completion/completions/x\n"), "{listed}");
        assert_eq!(text("x", Some(Path::new("/usr/share/man/man1/x-y.1")), &files).unwrap(), "page");
        assert!(text("x", Some(Path::new("/etc/passwd")), &files).is_err());
    }
}
