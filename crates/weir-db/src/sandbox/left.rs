//! What becomes of sandboxes whose weir has ended without doing away with them: by their minder, or by `clean` where that was
//! killed too.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::SandboxError;
use super::identity::Identity;
use super::layout::Layout;
use super::process;
use super::registry::{Left, Listed, Marker, forget};

/// A server may take so long to end in order.
const PATIENCE: Duration = Duration::from_secs(10);

/// What became of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Nothing of it is left.
    Removed,
    /// Its data were to stay, and do.
    Kept,
}

/// Ends what a killed weir left, and removes it but for data that are kept. Of what cannot be removed the marker stays.
///
/// # Errors
/// When it is in use, its server does not end, or something cannot be reached or removed.
pub fn clean(listed: &Listed) -> Result<Fate, SandboxError> {
    let left = Left::take(&listed.run).map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => SandboxError::InUse(listed.dir.clone()),
        _ => SandboxError::io("open", &listed.run)(error),
    })?;
    // Also where its folder is out of reach.
    end_server(&left.marker.identity, &left.marker.dir)?;
    let fate = match folder_of(&left.marker)? {
        None => Fate::Removed,
        Some(layout) => match layout.take() {
            // Another weir has taken up the data meanwhile.
            Err(SandboxError::InUse(_)) => Fate::Kept,
            taken => {
                let (_lock, identity) = taken?;
                settle(&layout, identity, Some(&left.marker.identity))?
            }
        },
    };
    left.remove().map(|()| fate)
}

/// The same of a folder, of which nothing may be written down any more: the machine has crashed.
///
/// # Errors
/// As [`clean`], and when no sandbox lies there.
pub fn clean_folder(dir: &Path) -> Result<Fate, SandboxError> {
    let layout = match Layout::open(dir) {
        Err(SandboxError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(SandboxError::NoSandbox(dir.to_path_buf()));
        }
        opened => opened?,
    };
    match layout.identity() {
        Ok(None) | Err(SandboxError::NotEmpty(_)) => return Err(SandboxError::NoSandbox(dir.to_path_buf())),
        found => found?,
    };
    let (_lock, identity) = layout.take()?;
    let id = layout.id().map_err(SandboxError::io("read", dir))?;
    let fate = settle(&layout, identity, None)?;
    forget(layout.path(), id);
    Ok(fate)
}

/// The end of a sandbox for its minder, which stands in its folder, has its locks and has ended its server. The data go also where
/// somebody has removed the folder for the socket.
pub(super) fn end_here(run: &Path, dir: &Path) -> Result<Fate, SandboxError> {
    let left = Left::open(run);
    let copy = left.as_ref().ok().map(|left| &left.marker.identity);
    let layout = Layout::open(dir)?;
    let fate = settle(&layout, layout.identity()?, copy)?;
    match left {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(fate),
        left => left.map_err(SandboxError::io("open", run))?.remove().map(|()| fate),
    }
}

/// The caller has taken the folder. What it says of itself goes last: where that is gone, nothing is left but the folder.
fn settle(layout: &Layout, found: Option<Identity>, copy: Option<&Identity>) -> Result<Fate, SandboxError> {
    let Some(identity) = found else {
        let (made, above) = copy.map_or((false, None), |copy| (copy.made_dir, copy.above_id));
        return layout
            .forget(made, above)
            .map_err(SandboxError::io("remove", layout.path()))
            .map(|()| Fate::Removed);
    };
    end_server(&identity, layout.path())?;
    Ok(if layout.finish(&identity)? { Fate::Removed } else { Fate::Kept })
}

fn end_server(identity: &Identity, dir: &Path) -> Result<(), SandboxError> {
    match &identity.server {
        Some(server) if !process::end_stranger(server, Signal::QUIT, PATIENCE) => {
            Err(SandboxError::Survives { dir: dir.to_path_buf(), pid: server.pid })
        }
        _ => Ok(()),
    }
}

/// The folder that a marker leads to; `None` where it is gone.
fn folder_of(marker: &Marker) -> Result<Option<Layout>, SandboxError> {
    let dir = &marker.dir;
    match Layout::open(dir) {
        Ok(layout) if layout.path() == dir && layout.id().is_ok_and(|id| id == marker.folder) => {
            Ok(Some(layout))
        }
        Ok(_) => Err(SandboxError::Replaced(dir.clone())),
        Err(SandboxError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            let mut above = dir.ancestors().filter_map(|above| fs::metadata(above).ok());
            match above.next().is_some_and(|above| above.dev() == marker.folder.0) {
                true => Ok(None),
                false => {
                    Err(SandboxError::io("find", dir)(io::Error::other("its file system is not mounted")))
                }
            }
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::identity::SCHEMA;

    /// As systemd removes what lies in a service's folder below /run.
    #[test]
    fn data_go_though_the_folder_for_the_socket_is_gone() {
        for (keep, fate) in [(false, Fate::Removed), (true, Fate::Kept)] {
            let here = tempfile::tempdir().unwrap();
            let (dir, run) = (here.path().join("d"), here.path().join("run/1-00000000"));
            let layout = Layout::make_or_open(&dir, None).unwrap();
            let identity = Identity {
                schema: SCHEMA.to_string(),
                flavour: crate::sandbox::Flavour::Postgres,
                version: String::new(),
                initialised: true,
                keep,
                made_dir: true,
                above_id: None,
                accounts: Vec::new(),
                server: None,
            };
            layout.write_identity(&identity).unwrap();
            fs::create_dir(dir.join("data")).unwrap();
            fs::write(dir.join("data/rows"), "copied").unwrap();
            assert_eq!(end_here(&run, &dir).unwrap(), fate);
            assert_eq!((dir.exists(), dir.join("data/rows").exists()), (keep, keep));
        }
    }
}
