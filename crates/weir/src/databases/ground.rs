//! The place of an experiment with a database: a server that was named, or a throw-away one with its tables.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_core::stop::Stop;
use weir_core::units::Bytes;
use weir_db::Server;
use weir_db::sandbox::{Flavour, Sandbox, SandboxSpec};
use weir_experiment::Transactions;
use weir_fs::Dir;
use weir_oltp::OltpSpec;

use super::progress::Loading;
use super::sandbox::{mention_account, start};
use super::{Named, Premises, admit, own};
use crate::failure::Lacking;
use crate::servers::{self, Logins};

/// Where an experiment is made. A throw-away server goes away with it.
pub struct Ground {
    /// The transactions, ready to run.
    pub transactions: Transactions,
    /// Where the data lie, if that is seen from this machine; empty where it is not.
    pub place: PathBuf,
    /// The first server.
    pub server: Server,
    /// How trials log in.
    pub logins: Logins,
    /// The throw-away server.
    pub sandbox: Option<Sandbox>,
    /// Its place, where that was made for it: the last to go.
    pub made: Option<MadeFolder>,
}

/// A folder that was not there before an experiment, and goes away with it unless somebody has put something into it.
pub struct MadeFolder {
    above: Dir,
    name: OsString,
    /// As long as it is open, no other folder has its inode.
    _made: Dir,
    id: (u64, u64),
}

impl MadeFolder {
    /// Makes the folder where it is missing, and none above it; `None`: it was there.
    pub fn at(path: &Path) -> anyhow::Result<Option<MadeFolder>> {
        let (false, Some(name)) = (path.exists(), path.file_name()) else { return Ok(None) };
        let make = || {
            let above = Dir::open(path.parent().unwrap_or(Path::new("")))?;
            let made = above.make_dir(name, 0o755)?;
            let id = made.metadata().map(|found| (found.dev(), found.ino()))?;
            Ok(MadeFolder { above, name: name.to_os_string(), _made: made, id })
        };
        make().map(Some).map_err(|error: io::Error| {
            let what = format!("cannot make {}: {error}", path.display());
            Lacking { what, hint: Some("give an existing folder with --dir".to_string()) }.into()
        })
    }
}

impl MadeFolder {
    /// Its device and inode: who may rename in the folder above may put another in its place.
    pub fn id(&self) -> (u64, u64) {
        self.id
    }
}

impl Drop for MadeFolder {
    fn drop(&mut self) {
        let _ = self.above.remove_dir(&self.name);
    }
}

impl Ground {
    /// The server that was named, entered and admitted; `any_maker`: its tables may be others' than weir's.
    ///
    /// # Errors
    /// When it cannot be reached, or must not be written to.
    pub fn named(named: Named, spec: OltpSpec, any_maker: bool) -> anyhow::Result<Ground> {
        let mut premises = Premises::enter(named)?;
        admit(&mut premises, &spec, any_maker)?;
        let transactions = Transactions { spec, server: servers::name(&premises.login.servers) };
        let place = premises.data_here().unwrap_or_else(|refused| {
            say!("weir: {}", refused.what);
            None
        });
        let place = place.unwrap_or_default();
        let logins = Logins::of(&premises.login.servers);
        Ok(Ground {
            transactions,
            place,
            server: premises.server()?.clone(),
            logins,
            sandbox: None,
            made: None,
        })
    }

    /// A throw-away server, made and filled.
    ///
    /// # Errors
    /// When it cannot be started, or its tables cannot be filled.
    pub fn made(
        sandbox: &SandboxSpec,
        spec: &OltpSpec,
        place: PathBuf,
        stop: &Stop,
    ) -> anyhow::Result<Ground> {
        Ok(Ground::of_sandbox(filled(sandbox, spec, stop)?, spec, place))
    }

    /// A throw-away server that runs, as the place.
    pub fn of_sandbox(sandbox: Sandbox, spec: &OltpSpec, place: PathBuf) -> Ground {
        let server = own::server_of(&sandbox);
        let name = servers::name(std::slice::from_ref(&server));
        let transactions = Transactions { spec: spec.clone(), server: name };
        let (logins, sandbox) = (Logins::default(), Some(sandbox));
        Ground { transactions, place, server, logins, sandbox, made: None }
    }
}

/// The server's own folder in it: nobody can have made one of that name.
pub fn name_of(flavour: Flavour) -> anyhow::Result<String> {
    Ok(format!("weir-{}-{}", flavour.word(), weir_fs::unguessable()?))
}

/// A throw-away server with the tables of a workload.
pub fn filled(sandbox: &SandboxSpec, spec: &OltpSpec, stop: &Stop) -> anyhow::Result<Sandbox> {
    say!("weir: starts a {} of its own in {}", sandbox.flavour, sandbox.dir.display());
    let running = start(sandbox, stop)?;
    mention_account(&running);
    let loading = Loading::of(spec, "filling");
    let filled = own::fill(&running, spec, &|event| loading.event(event), stop);
    loading.end();
    filled.map(|()| running)
}

/// The room a copy in memory takes, and what stays free beside it.
pub fn refuse_without_room(dir: &Path, bytes: u64) -> anyhow::Result<()> {
    let Ok(space) = weir_host::Host::live().free_space(dir) else { return Ok(()) };
    let needed = bytes + bytes / 4 + (64 << 20);
    if space.free_bytes >= needed {
        return Ok(());
    }
    let what = format!(
        "not enough free space in {}: {} are free, {} are needed",
        dir.display(),
        Bytes(space.free_bytes),
        Bytes(needed)
    );
    let hint = Some("fewer --tables or a smaller --table-size, or another folder".to_string());
    Err(Lacking { what, hint }.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_that_was_missing_is_made_and_goes_unless_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(MadeFolder::at(folder.path()).unwrap().is_none());
        for (name, used) in [("new", false), ("used", true)] {
            let made = MadeFolder::at(&at(name)).unwrap();
            assert!(at(name).is_dir() && MadeFolder::at(&at(name)).unwrap().is_none());
            if used {
                fs::write(at(name).join("file"), "").unwrap();
            }
            drop(made);
            assert_eq!(at(name).exists(), used, "{name}");
        }
        let error = MadeFolder::at(&at("no/such")).err().unwrap();
        assert!(error.to_string().contains("no/such"), "{error}");
    }
}
