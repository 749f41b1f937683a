//! A sandbox's folder and what lies in it. It may stand among folders of other accounts, and the server's account owns
//! what the server writes: everything is reached from the folder's descriptor.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, SeekFrom, flock};
use weir_fs::{Access, Dir};

use super::SandboxError;
use super::account::Account;
use super::identity::{Identity, SCHEMA};

const IDENTITY: &str = "weir-sandbox.json";
const DATA: &str = "data";
const TEMPORARY: &str = "tmp";
const LOG: &str = "server.log";
const LOCK: &str = "lock";

/// Such files are small.
const IDENTITY_MOST: u64 = 64 << 10;
/// Folders of a data directory are nested so deep at most.
const DEPTH_MOST: u32 = 32;

/// The paths in a sandbox's folder, as a server is told them.
#[derive(Debug, Clone)]
pub(super) struct Paths(PathBuf);

impl Paths {
    pub fn below(dir: &Path) -> Paths {
        Paths(dir.to_path_buf())
    }

    pub fn data(&self) -> PathBuf {
        self.0.join(DATA)
    }

    pub fn temporary(&self) -> PathBuf {
        self.0.join(TEMPORARY)
    }

    pub fn log(&self) -> PathBuf {
        self.0.join(LOG)
    }
}

/// A sandbox's folder.
#[derive(Debug)]
pub(super) struct Layout {
    dir: Dir,
    /// Its path without links.
    path: PathBuf,
    is_made: bool,
}

impl Layout {
    /// Makes the folder, or opens one that is there, which nobody but root and this user may write to. `above_id`: the only folder
    /// in which it may lie.
    pub fn make_or_open(path: &Path, above_id: Option<(u64, u64)>) -> Result<Layout, SandboxError> {
        let io = |action| SandboxError::io(action, path);
        let (Some(name), Some(above)) = (path.file_name(), path.parent()) else { return Layout::open(path) };
        let parent = Dir::open(above).map_err(io("create"))?;
        if above_id.is_some_and(|made| !id_of(&parent).is_ok_and(|found| found == made)) {
            return Err(io("create")(io::Error::other(
                "somebody has replaced the folder that was made for it",
            )));
        }
        real_path(&parent).and_then(|_| fits_a_line(Path::new(name))).map_err(io("use"))?;
        match parent.make_dir(name, 0o755) {
            Ok(dir) => Layout::of(dir, true).map_err(io("find")),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if parent.check_trusted().is_ok() {
                    return Layout::open(path);
                }
                // A link there may be anybody's.
                let dir = parent.subdir(name).map_err(io("open"))?;
                dir.check_trusted().map_err(io("use"))?;
                Layout::of(dir, false).map_err(io("find"))
            }
            Err(error) => Err(io("create")(error)),
        }
    }

    /// Opens one that is there.
    pub fn open(path: &Path) -> Result<Layout, SandboxError> {
        let dir = Dir::open(path).map_err(SandboxError::io("open", path))?;
        dir.check_trusted().map_err(SandboxError::io("use", path))?;
        Layout::of(dir, false).map_err(SandboxError::io("find", path))
    }

    fn of(dir: Dir, is_made: bool) -> io::Result<Layout> {
        let path = real_path(&dir)?;
        Ok(Layout { dir, path, is_made })
    }

    /// Whether no other account decides where the path of the folder leads: servers reach their data by it.
    pub fn check_above(&self) -> Result<(), SandboxError> {
        let above = self.path.parent().unwrap_or(&self.path);
        weir_fs::owned_chain(above).map_err(SandboxError::io("use", &self.path))
    }

    /// The folder.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Its path without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its device and inode.
    pub fn id(&self) -> io::Result<(u64, u64)> {
        id_of(&self.dir)
    }

    /// Whether it was made for this sandbox.
    pub fn is_made(&self) -> bool {
        self.is_made
    }

    pub fn paths(&self) -> Paths {
        Paths::below(&self.path)
    }

    /// Takes the folder, and reads what it says of itself; `None`: it is empty. The kernel lets go of the lock when the last
    /// process that has it ends. Nothing is written to a folder that holds something else, not even a lock.
    pub fn take(&self) -> Result<(File, Option<Identity>), SandboxError> {
        self.identity()?;
        let lock = take_lock(&self.dir).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => SandboxError::InUse(self.path.clone()),
            _ => SandboxError::io("lock", &self.path)(error),
        })?;
        Ok((lock, self.identity()?))
    }

    /// What it says of itself; `None`: there is nothing in it but a lock, or what a killed weir was about to write.
    pub fn identity(&self) -> Result<Option<Identity>, SandboxError> {
        let read = || match self.dir.read_trusted(IDENTITY, IDENTITY_MOST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read,
        };
        let text = read().map_err(SandboxError::io("read", &self.path.join(IDENTITY)))?;
        let identity: Option<Identity> = weir_core::json::parse(&String::from_utf8_lossy(&text)).ok();
        if let Some(identity) = identity.filter(|identity| identity.schema == SCHEMA) {
            return Ok(Some(identity));
        }
        let is_empty = || self.dir.names()?.try_fold(true, |all, name| Ok(all && is_no_content(&name?)));
        match is_empty().map_err(SandboxError::io("read", &self.path))? {
            true => Ok(None),
            false => Err(SandboxError::NotEmpty(self.path.clone())),
        }
    }

    pub fn write_identity(&self, identity: &Identity) -> Result<(), SandboxError> {
        let text = serde_json::to_string_pretty(identity).unwrap_or_default();
        let path = self.path.join(IDENTITY);
        self.dir.replace(IDENTITY, 0o644, text.as_bytes()).map_err(SandboxError::io("write", &path))
    }

    /// The log, to write at its end.
    pub fn open_log(&self) -> io::Result<File> {
        self.dir.open_or_create(LOG, Access::Append, 0o644)
    }

    /// The log, to read.
    pub fn read_log(&self) -> io::Result<File> {
        self.dir.open_file(LOG, Access::Read)
    }

    /// Makes the folders that the server writes to, and hands them over.
    pub fn make_folders(&self, account: Account) -> Result<(), SandboxError> {
        for name in [DATA, TEMPORARY] {
            let path = self.path.join(name);
            let made = match self.dir.make_dir(name, 0o700) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.dir.subdir(name),
                made => made,
            };
            let folder = made.map_err(SandboxError::io("create", &path))?;
            account.give(rustix::fd::AsFd::as_fd(&folder)).map_err(SandboxError::io("hand over", &path))?;
        }
        Ok(())
    }

    /// The folders that the server writes to. The sandbox's own may be closed to its account.
    pub fn folders(&self) -> Result<Vec<(PathBuf, Dir)>, SandboxError> {
        let open = |name: &str| {
            let path = self.path.join(name);
            let folder = self.dir.subdir(name).map_err(SandboxError::io("open", &path))?;
            Ok((path, folder))
        };
        [DATA, TEMPORARY].into_iter().map(open).collect()
    }

    /// Whose the data are that were kept: those that the folder names, and the owner of the data directory.
    pub fn owners(&self, identity: &Identity) -> Result<Vec<u32>, SandboxError> {
        let mut owners = identity.accounts.clone();
        for (path, folder) in self.folders()? {
            let owner = folder.metadata().map_err(SandboxError::io("read", &path))?.uid();
            owners.extend((!owners.contains(&owner)).then_some(owner));
        }
        Ok(owners)
    }

    /// Sees that all data belong to these accounts, and hands them over where another one is named.
    pub fn hand_over(&self, owners: &[u32], to: Option<Account>) -> Result<(), SandboxError> {
        let hand = |(path, folder): &(PathBuf, Dir)| {
            hand_over(folder, owners, to, DEPTH_MOST).map_err(SandboxError::io("hand over", path))
        };
        self.folders()?.iter().try_for_each(hand)
    }

    /// Copies the data directory of another sandbox, modes and holes included. Links are left out.
    pub fn copy_data(
        &self,
        from: &Layout,
        account: Account,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), SandboxError> {
        let path = self.path.join(DATA);
        let io = || SandboxError::io("copy to", &path);
        let from = from.dir.subdir(DATA).map_err(io())?;
        let to = self.dir.subdir(DATA).map_err(io())?;
        let copying = Copying { owners: [from.metadata().map_err(io())?.uid()], account, stopped };
        if copying.copy(&from, &to, DEPTH_MOST).map_err(io())? { Ok(()) } else { Err(SandboxError::Stopped) }
    }

    /// Does away with a sandbox whose server has ended: its data go, unless they are kept, and all that weir has put into the folder; so
    /// does the folder itself where it was made for that. What says whose they are goes after the data. Whether all is gone.
    pub fn finish(&self, identity: &Identity) -> Result<bool, SandboxError> {
        if identity.is_kept() {
            return Ok(false);
        }
        let removed = [DATA, TEMPORARY, LOG].map(|name| {
            remove(&self.dir, OsStr::new(name), &identity.accounts)
                .map_err(SandboxError::io("remove", &self.path.join(name)))
        });
        removed.into_iter().collect::<Result<(), _>>()?;
        self.forget(identity.made_dir, identity.above_id)
            .map_err(SandboxError::io("remove", &self.path))
            .map(|()| true)
    }

    /// Removes what weir itself wrote into the folder, and the folder where it was made for a sandbox; then the one above that was
    /// made for it, too, and no other that is there now.
    pub fn forget(&self, made: bool, above_id: Option<(u64, u64)>) -> io::Result<()> {
        absent_is_done(self.dir.remove_file(IDENTITY))?;
        for name in self.dir.names()?.flatten().filter(|name| is_no_content(name)) {
            absent_is_done(self.dir.remove_file(name))?;
        }
        let path = fs::read_link(descriptor(&self.dir))?;
        let above = path.parent().and_then(|above| Dir::open(above).ok());
        let above = above.filter(|above| above_id.is_some() && id_of(above).ok() == above_id);
        if made {
            remove_empty(&self.dir)?;
        }
        above.filter(|_| made).map_or(Ok(()), |above| remove_empty(&above))
    }

    /// Removes the folder that was made, where it has not been taken.
    pub fn unmake(&self) {
        if self.is_made {
            let _ = remove_empty(&self.dir);
        }
    }
}

/// Removes a folder, wherever it lies by now. What somebody else put into it stays with it.
fn remove_empty(dir: &Dir) -> io::Result<()> {
    let path = fs::read_link(descriptor(dir))?;
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let parent = Dir::open(above)?;
    // An account that may rename in there can put another empty folder in its place; no more than that is lost.
    match parent.subdir(name).and_then(|there| Ok(id_of(&there)? == id_of(dir)?)) {
        Ok(true) => match parent.remove_dir(name) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => absent_is_done(removed),
        },
        _ => Ok(()),
    }
}

/// Takes the lock in a folder without waiting.
pub(super) fn take_lock(dir: &Dir) -> io::Result<File> {
    let file = dir.open_or_create(LOCK, Access::ReadWrite, 0o600)?;
    weir_fs::lock(&file)?;
    // Its last holder may have removed it.
    if file.metadata()?.nlink() == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(file) }
}

/// Whether somebody has it. Others may ask at the same time.
pub(super) fn is_locked(dir: &Dir) -> bool {
    match dir.open_trusted_file(LOCK, Access::Read) {
        Ok(file) => flock(file, FlockOperation::NonBlockingLockShared).is_err(),
        // It is made before all else, so its removal has begun.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// A lock, which alone is a sandbox that is being made, or one that never was; or what a weir that was killed left of an identity.
fn is_no_content(name: &OsStr) -> bool {
    is_lock_or_draft(name, IDENTITY)
}

/// A lock, or what a weir that was killed left of a file `of` that it was about to write.
pub(super) fn is_lock_or_draft(name: &OsStr, of: &str) -> bool {
    let is_draft = |name: &str| name.starts_with(&format!(".{of}.")) && name.ends_with(".tmp");
    name.to_str().is_some_and(|name| name == LOCK || is_draft(name))
}

/// Removes a file, or a folder with all that is in it but folders of other accounts: the server may have let others write
/// there.
fn remove(dir: &Dir, name: &OsStr, accounts: &[u32]) -> io::Result<()> {
    match dir.subdir_here(name) {
        Ok(folder) => {
            folder.remove_contents_of(&[accounts, &[folder.metadata()?.uid()]].concat())?;
            dir.remove_dir(name)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) => absent_is_done(dir.remove_file(name)),
    }
}

fn id_of(dir: &Dir) -> io::Result<(u64, u64)> {
    dir.metadata().map(|found| (found.dev(), found.ino()))
}

/// Leads to the folder itself.
fn descriptor(dir: &Dir) -> String {
    format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd())
}

/// Without links.
fn real_path(dir: &Dir) -> io::Result<PathBuf> {
    let path = fs::read_link(descriptor(dir))?;
    fits_a_line(&path).map(|()| path)
}

/// The path stands in the server's configuration file: whoever named a folder above it must not write lines of that.
fn fits_a_line(path: &Path) -> io::Result<()> {
    let has_odd = path.to_string_lossy().contains(|c: char| c.is_control() || c == '"');
    let why = "a path with control characters or quotes does not fit a server's configuration file";
    if has_odd { Err(io::Error::new(io::ErrorKind::InvalidInput, why)) } else { Ok(()) }
}

fn absent_is_done(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Data on their way to another sandbox.
struct Copying<'a> {
    /// Whose they are.
    owners: [u32; 1],
    /// Whose the copies are to be.
    account: Account,
    stopped: &'a dyn Fn() -> bool,
}

impl Copying<'_> {
    /// `false` where somebody asked to stop.
    fn copy(&self, from: &Dir, to: &Dir, depth: u32) -> io::Result<bool> {
        close(from, &self.owners, depth)?;
        self.account.give(to.as_fd())?;
        for name in from.names()? {
            let name = name?;
            if (self.stopped)() {
                return Ok(false);
            }
            if let Ok(inner) = from.subdir(&name) {
                if !self.copy(&inner, &to.make_dir(&name, 0o700)?, depth - 1)? {
                    return Ok(false);
                }
            } else if let Ok(mut source) = from.open_file(&name, Access::Read) {
                check_owner(&source, &self.owners, &from.path().join(&name))?;
                let mut target = to.create_new(&name, 0o600)?;
                self.account.give(target.as_fd())?;
                copy_file(&mut source, &mut target)?;
                let mode = source.metadata()?.mode() & 0o777;
                target.set_permissions(fs::Permissions::from_mode(mode))?;
            }
        }
        Ok(true)
    }
}

/// Closes a folder of data to all but its account, which has no process any more, so that nobody can change what is in it.
fn close(folder: &Dir, owners: &[u32], depth: u32) -> io::Result<()> {
    if depth == 0 {
        return Err(io::Error::other(format!("{} is too deep", folder.path().display())));
    }
    let found = folder.metadata()?.uid();
    if !owners.contains(&found) {
        return Err(not_of_the_data(folder.path(), found));
    }
    folder.chmod(0o700)
}

/// The server may have let others write among its data; what they put there is not its own, nor is a file that has another
/// name elsewhere.
fn check_owner(file: &File, owners: &[u32], path: &Path) -> io::Result<()> {
    let found = file.metadata()?;
    if !owners.contains(&found.uid()) {
        return Err(not_of_the_data(path, found.uid()));
    }
    if found.nlink() != 1 {
        return Err(io::Error::other(format!("{} has another name elsewhere", path.display())));
    }
    Ok(())
}

fn not_of_the_data(path: &Path, owner: u32) -> io::Error {
    let why = format!("{} belongs to account {owner}, not to the server that made the data", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

/// Copies what a file holds between its holes.
fn copy_file(source: &mut File, target: &mut File) -> io::Result<()> {
    target.set_len(source.metadata()?.len())?;
    let mut end = 0;
    loop {
        let begin = match rustix::fs::seek(&*source, SeekFrom::Data(end)) {
            Ok(begin) => begin,
            Err(rustix::io::Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        end = rustix::fs::seek(&*source, SeekFrom::Hole(begin))?;
        source.seek(io::SeekFrom::Start(begin))?;
        target.seek(io::SeekFrom::Start(begin))?;
        io::copy(&mut (&*source).take(end - begin), target)?;
    }
}

/// Closes a folder and what is in it to all but its accounts, and hands it over where an account is named. A link that a process of the account made meanwhile shows in the descriptor.
fn hand_over(folder: &Dir, owners: &[u32], to: Option<Account>, depth: u32) -> io::Result<()> {
    close(folder, owners, depth)?;
    let give = |fd: BorrowedFd<'_>| to.map_or(Ok(()), |account| account.give(fd));
    for name in folder.names()? {
        let name = name?;
        if let Ok(inner) = folder.subdir(&name) {
            hand_over(&inner, owners, to, depth - 1)?;
        } else if let Ok(file) = folder.open_file(&name, Access::Read) {
            check_owner(&file, owners, &folder.path().join(&name))?;
            give(file.as_fd())?;
        }
    }
    give(folder.as_fd())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::super::Flavour;
    use super::*;
    use crate::as_root::root_or_say;

    /// Numbers that no process has.
    const ACCOUNTS: [u32; 2] = [2_013_000_007, 2_013_000_008];

    fn identity(accounts: &[u32]) -> Identity {
        Identity {
            schema: SCHEMA.to_string(),
            flavour: Flavour::Mariadb,
            version: String::new(),
            initialised: true,
            keep: false,
            made_dir: true,
            above_id: None,
            accounts: accounts.to_vec(),
            server: None,
        }
    }

    /// The owner of a folder above has put another one in its place.
    #[test]
    fn the_folder_itself_is_removed_wherever_it_lies_by_now() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("here")).unwrap();
        fs::create_dir_all(at("victim/one/data")).unwrap();
        let layout = Layout::make_or_open(&at("here/one"), None).unwrap();
        layout.take().unwrap();
        layout.write_identity(&identity(&[])).unwrap();
        fs::create_dir(at("here/one/data")).unwrap();
        fs::rename(at("here"), at("moved")).unwrap();
        symlink(at("victim"), at("here")).unwrap();
        assert!(layout.finish(&identity(&[])).unwrap());
        assert_eq!([at("moved/one").exists(), at("victim/one/data").exists()], [false, true]);
    }

    #[test]
    fn a_folder_above_that_was_made_goes_once_it_is_empty() {
        for (made_above, used) in [(true, false), (true, true), (false, false)] {
            let folder = tempfile::tempdir().unwrap();
            let above = folder.path().join("new");
            fs::create_dir(&above).unwrap();
            let above_id = made_above.then(|| id_of(&Dir::open(&above).unwrap()).unwrap());
            let layout = Layout::make_or_open(&above.join("server"), above_id).unwrap();
            let identity = Identity { above_id, ..identity(&[]) };
            layout.write_identity(&identity).unwrap();
            if used {
                fs::write(above.join("mine"), "").unwrap();
            }
            assert!(layout.finish(&identity).unwrap());
            assert_eq!([above.exists(), above.join("server").exists()], [used || !made_above, false]);
        }
    }

    /// The owner of the folder in which it was made puts a link to an empty folder in its place, before and after.
    #[test]
    fn a_folder_in_the_place_of_the_made_one_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        ["new", "victim"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
        let above_id = Some(id_of(&Dir::open(&at("new")).unwrap()).unwrap());
        let exchange = || {
            fs::rename(at("new"), at("moved")).unwrap();
            symlink(at("victim"), at("new")).unwrap();
        };
        exchange();
        let refused = Layout::make_or_open(&at("new/server"), above_id).unwrap_err().to_string();
        assert!(refused.contains("replaced"), "{refused}");
        assert_eq!(fs::read_dir(at("victim")).unwrap().count(), 0);
        fs::remove_file(at("new")).unwrap();
        fs::rename(at("moved"), at("new")).unwrap();

        let layout = Layout::make_or_open(&at("new/server"), above_id).unwrap();
        fs::rename(at("new/server"), at("victim/server")).unwrap();
        assert!(layout.finish(&Identity { above_id, ..identity(&[]) }).unwrap());
        assert!(at("victim").is_dir() && !at("victim/server").exists());
    }

    #[test]
    fn a_folder_that_holds_something_else_gets_nothing_of_weirs() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("mine"), "").unwrap();
        let layout = Layout::open(folder.path()).unwrap();
        assert!(matches!(layout.take(), Err(SandboxError::NotEmpty(_))));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::remove_file(folder.path().join("mine")).unwrap();
        // What is left of a weir that was killed as it wrote down the first word of a sandbox.
        fs::write(folder.path().join(".weir-sandbox.json.1.00.tmp"), "{").unwrap();
        let (_lock, found) = layout.take().unwrap();
        assert_eq!(found, None);
        assert!(matches!(layout.take(), Err(SandboxError::InUse(_))));
        layout.forget(false, None).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn root_data_of_which_not_all_can_be_handed_over_stay_with_whom_they_are() {
        if !root_or_say("root_data_of_which_not_all_can_be_handed_over_stay_with_whom_they_are") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        for name in ["data/sub", "tmp"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for name in ["a", "b", "sub/c"] {
            fs::write(data.join(name), "").unwrap();
        }
        let all = ["data", "tmp", "data/a", "data/b", "data/sub", "data/sub/c"];
        let give = |names: &[&str], to: u32| {
            names.iter().for_each(|name| chown(folder.path().join(name), Some(to), Some(to)).unwrap());
        };
        let owners = || all.map(|name| fs::metadata(folder.path().join(name)).unwrap().uid());
        give(&all, ACCOUNTS[0]);
        let layout = Layout::open(folder.path()).unwrap();
        let known = layout.owners(&identity(&[])).unwrap();
        assert_eq!(known, ACCOUNTS[..1]);
        let other_name = folder.path().join("other name");
        fs::hard_link(data.join("b"), &other_name).unwrap();
        let why = layout.hand_over(&known, None).unwrap_err().to_string();
        assert!(why.contains("has another name elsewhere"), "{why}");
        fs::remove_file(&other_name).unwrap();

        // A hand-over that was cut short: some of them have their new owner already.
        give(&["data/a", "data/sub"], ACCOUNTS[1]);
        assert!(layout.hand_over(&known, None).is_err());
        let known = layout.owners(&identity(&ACCOUNTS[1..])).unwrap();
        layout.hand_over(&known, None).unwrap();
        assert_eq!(
            owners().iter().filter(|owner| **owner == ACCOUNTS[0]).count(),
            4,
            "a look gave them away"
        );
        let account = Account::unused().unwrap();
        layout.hand_over(&known, Some(account)).unwrap();
        assert_eq!(owners(), [account.ids().0; 6]);

        // What belongs to two of them goes as a whole, and what says so goes last.
        give(&["data/a", "data/sub"], ACCOUNTS[1]);
        layout.write_identity(&identity(&[])).unwrap();
        assert!(layout.finish(&identity(&[])).is_err());
        assert!(layout.identity().unwrap().is_some() && data.exists());
        layout.finish(&identity(&ACCOUNTS[1..])).unwrap();
        assert!(!folder.path().exists());
        fs::create_dir(folder.path()).unwrap();
    }
}
