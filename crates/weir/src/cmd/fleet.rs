//! `weir fleet`: another program, which takes weir's place. It has what talks to many hosts, so that weir itself, which is copied to
//! them, stays small.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_fs::lasting_chain;

use crate::failure::{Lacking, Outcome};

/// The program.
const NAME: &str = "weir-fleet";

/// Becomes that program.
pub fn run(arguments: &[OsString]) -> anyhow::Result<Outcome> {
    let beside = env::current_exe().ok().and_then(|own| own.parent().map(Path::to_path_buf));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = beside.into_iter().chain(env::split_paths(&path));
    let program = found(folders)?;
    let error = Command::new(&program).args(arguments).exec();
    Err(Lacking { what: format!("cannot run {}: {error}", program.display()), hint: None }.into())
}

/// The first of that name that root or the caller alone can have put there. Another account's is not run: weir may be root.
fn found(folders: impl Iterator<Item = PathBuf>) -> anyhow::Result<PathBuf> {
    let mut refused = None;
    // A relative folder of PATH is wherever the caller happens to stand.
    for folder in folders.filter(|folder| folder.is_absolute()) {
        let program = folder.join(NAME);
        if !program.is_file() {
            continue;
        }
        match lasting_chain(&program) {
            Ok(program) => return Ok(program),
            Err(why) => refused = refused.or(Some(format!("{}: {why}", program.display()))),
        }
    }
    Err(match refused {
        Some(why) => Lacking {
            what: format!("{NAME} is not run: {why}"),
            hint: Some("install it where only root or you can write".to_string()),
        },
        None => Lacking {
            what: format!("{NAME} is not installed: it is neither beside weir nor in PATH"),
            hint: Some(
                "install the package weir-fleet; from source, `make install` installs both".to_string(),
            ),
        },
    }
    .into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_a_program_that_nobody_else_can_change_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let (open, good) = (folder.path().join("open"), folder.path().join("good"));
        for place in [&open, &good] {
            fs::create_dir(place).unwrap();
            fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
            fs::write(place.join(NAME), "").unwrap();
            fs::set_permissions(place.join(NAME), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let found = |places: &[&Path]| found(places.iter().map(|place| place.to_path_buf()));
        assert_eq!(found(&[&open, &good]).unwrap(), good.canonicalize().unwrap().join(NAME));
        assert!(found(&[&open]).unwrap_err().to_string().contains("other accounts may write"));
        assert!(found(&[Path::new("."), folder.path()]).unwrap_err().to_string().contains("not installed"));
    }
}
