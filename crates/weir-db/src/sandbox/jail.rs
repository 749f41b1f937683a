//! What a server sees: namespaces of its own for mounts, processes and shared memory, which the kernel takes down with the
//! server's first process, however that ends. It sees no process but its own.
//!
//! A server of this machine sees the machine's files, but for memory files of its own and for its folders, which are put in
//! its reach where root's are closed. A server out of a tree sees the tree, read-only, its folders under the paths they have
//! outside, a few devices, and nothing else. Nothing is written to the tree.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change,
    move_mount, open_tree, unmount,
};

use super::account::Account;
use super::tree::Tree;

/// Where memory files lie (shm_open(3)).
const SHARED_MEMORY: &str = "/dev/shm";
/// Folders of a tree that its servers do not see: they get their own, or need none.
const NOT_OF_A_TREE: [&str; 13] =
    ["boot", "dev", "home", "lost+found", "media", "mnt", "proc", "root", "run", "srv", "sys", "tmp", "var"];
/// What may lie there, in a quarter of the machine's memory.
const MEMORY: &CStr = c"mode=1777,size=25%,nr_inodes=64k";
/// Devices that programs take for granted.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];
/// And links among them.
const DEVICE_LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
/// A mount of what lies somewhere and below.
const CLONE: OpenTreeFlags =
    OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC).union(OpenTreeFlags::AT_RECURSIVE);
/// `MOUNT_ATTR_RDONLY`, `MOUNT_ATTR_NOSUID` and `MOUNT_ATTR_NODEV` of linux/mount.h.
const READ_ONLY: u64 = 1;
const NO_SUID: u64 = 2;
const NO_DEVICES: u64 = 4;
/// How the folders of a server are mounted.
const OWN: u64 = NO_SUID | NO_DEVICES;
/// How what it only reads is.
const GIVEN: u64 = OWN | READ_ONLY;

/// A folder that a server has to reach, held open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folder<'a> {
    /// Its path, without links in it.
    pub path: &'a Path,
    /// Itself.
    pub fd: BorrowedFd<'a>,
}

/// Mounts to be made between fork and exec: everything is allocated and opened before.
#[derive(Debug, Default)]
pub(super) struct Jail {
    steps: Vec<Step>,
    /// What makes a plain user able to mount: a user namespace with the lines of its uid and gid maps.
    user: Option<[CString; 2]>,
}

#[derive(Debug)]
enum Step {
    /// An empty file system in memory.
    Memory { at: CString, options: &'static CStr },
    /// The processes of this namespace.
    Processes(CString),
    /// A folder; one that is there stays as it is.
    Folder { at: Place, mode: u32 },
    /// A file with these contents.
    File { at: Place, contents: Vec<u8> },
    /// A symbolic link.
    Link { at: Place, to: CString },
    /// Something that is open, with what is mounted below it.
    Bind { from: Source, at: CString, attributes: u64 },
    /// From here on this is `/`, and nothing else is there.
    Root(CString),
}

/// Where something is made: in a folder that is reached without following a link. The owner of a folder on the way may put
/// one there at any moment.
#[derive(Debug)]
struct Place {
    above: CString,
    name: CString,
}

#[derive(Debug)]
enum Source {
    /// What is open, to be found again at this path: a namespace binds only what is reached through its own mounts.
    Open { held: OwnedFd, path: CString },
    /// It, found and ready to be put somewhere.
    Found(OwnedFd),
    /// What a step before made.
    Made(CString),
}

impl Jail {
    /// The machine, for an account that cannot pass to all of these folders.
    pub fn of_machine(tree: &Tree, account: &Account, folders: &[Folder<'_>]) -> io::Result<Jail> {
        let mut jail = Jail { user: account.maps()?, ..Jail::default() };
        let mut covers: BTreeSet<PathBuf> = BTreeSet::new();
        // Some systems have a link there.
        let memory = fs::canonicalize(SHARED_MEMORY).ok().filter(|found| found.is_dir());
        covers.extend(memory.clone());
        covers.extend(folders.iter().filter_map(|folder| account.closed_above(folder.path)));
        for cover in &covers {
            let options = if memory.as_ref() == Some(cover) { MEMORY } else { c"mode=755,size=1m" };
            // One below another that is covered has to be made first.
            if let Some(above) = covers.iter().find(|above| *above != cover && cover.starts_with(above)) {
                jail.folders(Path::new("/"), above, cover)?;
            }
            jail.steps.push(Step::Memory { at: text(cover)?, options });
        }
        for folder in folders {
            if let Some(cover) = covers.iter().find(|cover| folder.path.starts_with(cover)) {
                jail.folders(Path::new("/"), cover, folder.path)?;
                jail.bind(folder.fd.try_clone_to_owned()?, folder.path, folder.path, OWN)?;
            }
        }
        if let Some(memory) = memory.filter(|_| account.is_other()) {
            let known =
                ["/etc/passwd", "/etc/group"].map(|path| weir_fs::read_lossily(path).unwrap_or_default());
            jail.accounts(&memory, tree, account, known)?;
        }
        jail.steps.push(Step::Processes(c"/proc".to_owned()));
        Ok(jail)
    }

    /// A tree with these folders.
    ///
    /// # Errors
    /// Where a folder lies in one of the tree's, or something cannot be opened.
    pub fn of_tree(tree: &Tree, account: &Account, folders: &[Folder<'_>]) -> io::Result<Jail> {
        let mut jail = Jail { user: account.maps()?, ..Jail::default() };
        let root = tree.path();
        jail.steps.push(Step::Memory { at: text(root)?, options: c"mode=755,size=64m,nr_inodes=64k" });
        let taken: BTreeSet<&OsStr> = folders.iter().filter_map(|folder| first(folder.path)).collect();
        for name in tree.entries()? {
            if NOT_OF_A_TREE.iter().any(|other| name == *other) {
                continue;
            }
            let at = root.join(&name);
            match tree.entry(&name)? {
                (FileType::Directory | FileType::Symlink, _) if taken.contains(name.as_os_str()) => {
                    let why =
                        format!("a folder of the server lies in /{}, which the tree has too", name.display());
                    return Err(io::Error::other(why));
                }
                (FileType::Symlink, link) => {
                    let to = rustix::fs::readlinkat(&link, c"", Vec::new())?;
                    jail.steps.push(Step::Link { at: Place::of(&at)?, to });
                }
                (FileType::Directory, folder) => {
                    jail.steps.push(Step::Folder { at: Place::of(&at)?, mode: 0o755 });
                    jail.bind(folder, &at, &at, GIVEN)?;
                }
                _ => {}
            }
        }
        jail.system(root)?;
        jail.accounts(root, tree, account, ["root:x:0:0::/:/\n".into(), "root:x:0:\n".into()])?;
        for folder in folders {
            let at = beneath(root, folder.path);
            jail.folders(Path::new("/"), root, &at)?;
            jail.bind(folder.fd.try_clone_to_owned()?, folder.path, &at, OWN)?;
        }
        jail.steps.push(Step::Root(text(root)?));
        Ok(jail)
    }

    /// `/proc`, `/sys`, `/dev` and `/tmp`.
    fn system(&mut self, root: &Path) -> io::Result<()> {
        let [processes, system] = ["proc", "sys"].map(|name| root.join(name));
        self.steps.push(Step::Folder { at: Place::of(&processes)?, mode: 0o755 });
        self.steps.push(Step::Processes(text(&processes)?));
        self.steps.push(Step::Folder { at: Place::of(&system)?, mode: 0o755 });
        self.bind(open(Path::new("/sys"))?, Path::new("/sys"), &system, GIVEN)?;
        self.steps.push(Step::Folder { at: Place::of(&root.join("dev"))?, mode: 0o755 });
        for name in DEVICES {
            let at = root.join("dev").join(name);
            self.steps.push(Step::File { at: Place::of(&at)?, contents: Vec::new() });
            let from = Path::new("/dev").join(name);
            self.bind(open(&from)?, &from, &at, NO_SUID)?;
        }
        for (name, to) in DEVICE_LINKS {
            self.steps
                .push(Step::Link { at: Place::of(&root.join("dev").join(name))?, to: text(Path::new(to))? });
        }
        let memory = beneath(root, Path::new(SHARED_MEMORY));
        self.steps.push(Step::Folder { at: Place::of(&memory)?, mode: 0o1777 });
        self.steps.push(Step::Memory { at: text(&memory)?, options: MEMORY });
        self.steps.push(Step::Folder { at: Place::of(&root.join("tmp"))?, mode: 0o1777 });
        Ok(())
    }

    /// The account has a name there, which PostgreSQL insists on, whatever others call its number. The files are made in
    /// `scratch`, which is the server's own.
    fn accounts(
        &mut self,
        scratch: &Path,
        tree: &Tree,
        account: &Account,
        others: [String; 2],
    ) -> io::Result<()> {
        let (uid, gid) = account.ids();
        let lines = [format!("weir:x:{uid}:{gid}::/:/\n"), format!("weir:x:{gid}:\n")];
        for ((name, others), line) in ["passwd", "group"].into_iter().zip(others).zip(lines) {
            let lies = Path::new("/etc").join(name);
            let Some(lies) = tree.real(&lies).filter(|_| tree.is_file(&lies)) else { continue };
            let beside = scratch.join(format!(".{name}"));
            let gap = if others.is_empty() || others.ends_with('\n') { "" } else { "\n" };
            let contents = format!("{others}{gap}{line}").into_bytes();
            self.steps.push(Step::File { at: Place::of(&beside)?, contents });
            let (from, at) = (Source::Made(text(&beside)?), text(&beneath(tree.path(), &lies))?);
            self.steps.push(Step::Bind { from, at, attributes: GIVEN });
        }
        Ok(())
    }

    /// The folders between `above` and `path`, and `path`.
    fn folders(&mut self, root: &Path, above: &Path, path: &Path) -> io::Result<()> {
        let mut at = root.join(above);
        for part in path.strip_prefix(above).unwrap_or(path).components() {
            at.push(part);
            self.steps.push(Step::Folder { at: Place::of(&at)?, mode: 0o755 });
        }
        Ok(())
    }

    /// Puts what is open, and lies at `from`, to `at`.
    fn bind(&mut self, held: OwnedFd, from: &Path, at: &Path, attributes: u64) -> io::Result<()> {
        let from = Source::Open { held, path: text(from)? };
        self.steps.push(Step::Bind { from, at: text(at)?, attributes });
        Ok(())
    }

    /// The namespaces that the process is to be made in (`CLONE_NEW…`).
    pub fn spaces(&self) -> libc::c_int {
        let own = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC;
        match (self.steps.is_empty(), &self.user) {
            (true, _) => 0,
            (false, None) => own,
            (false, Some(_)) => own | libc::CLONE_NEWUSER,
        }
    }

    /// Makes it around this process, which is in these namespaces. Only system calls: this runs between fork and exec.
    pub fn enter(&mut self) -> io::Result<()> {
        if self.steps.is_empty() {
            return Ok(());
        }
        if let Some([uid, gid]) = &self.user {
            // Groups have to be given up before the map of one group may be written (user_namespaces(7)).
            write(CWD, c"/proc/self/setgroups", b"deny", OFlags::empty())?;
            write(CWD, c"/proc/self/uid_map", uid.as_bytes(), OFlags::empty())?;
            write(CWD, c"/proc/self/gid_map", gid.as_bytes(), OFlags::empty())?;
        }
        // Modes are those of the steps: to change one later, by a path, would follow what others put there.
        rustix::process::umask(Mode::empty());
        // Nothing that is mounted from here on is seen outside; what goes away outside goes away here.
        mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
        // Before something is mounted over it.
        self.steps.iter_mut().try_for_each(Step::find)?;
        self.steps.iter().try_for_each(Step::perform)
    }
}

impl Step {
    /// Finds what is to be bound, and sees that it is what was opened.
    fn find(&mut self) -> io::Result<()> {
        let Step::Bind { from, .. } = self else { return Ok(()) };
        let Source::Open { held, path } = from else { return Ok(()) };
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::open(path.as_c_str(), flags, Mode::empty())?;
        let (there, wanted) = (rustix::fs::fstat(&found)?, rustix::fs::fstat(&*held)?);
        if (there.st_dev, there.st_ino) != (wanted.st_dev, wanted.st_ino) {
            return Err(rustix::io::Errno::STALE.into());
        }
        *from = Source::Found(open_tree(&found, c"", CLONE | OpenTreeFlags::AT_EMPTY_PATH)?);
        Ok(())
    }

    fn perform(&self) -> io::Result<()> {
        match self {
            Step::Memory { at, options } => {
                let flags = MountFlags::NOSUID | MountFlags::NODEV;
                mount(c"weir", at.as_c_str(), c"tmpfs", flags, *options)?;
            }
            Step::Processes(at) => {
                let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
                mount(c"proc", at.as_c_str(), c"proc", flags, None)?;
            }
            Step::Folder { at, mode } => {
                let made = rustix::fs::mkdirat(at.folder()?, at.name.as_c_str(), Mode::from_raw_mode(*mode));
                match made {
                    Err(rustix::io::Errno::EXIST) => {}
                    made => made?,
                }
            }
            Step::File { at, contents } => {
                write(at.folder()?.as_fd(), &at.name, contents, OFlags::CREATE | OFlags::EXCL)?
            }
            Step::Link { at, to } => rustix::fs::symlinkat(to.as_c_str(), at.folder()?, at.name.as_c_str())?,
            Step::Bind { from, at, attributes } => bind(from, at, *attributes)?,
            Step::Root(root) => make_root(root)?,
        }
        Ok(())
    }
}

impl Place {
    fn of(path: &Path) -> io::Result<Place> {
        let name = path.file_name().unwrap_or_default();
        Ok(Place { above: text(path.parent().unwrap_or(Path::new("/")))?, name: text(Path::new(name))? })
    }

    fn folder(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = self.above.as_c_str();
        Ok(rustix::fs::openat2(CWD, above, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
    }
}

fn bind(from: &Source, at: &CStr, attributes: u64) -> io::Result<()> {
    let made;
    let tree = match from {
        Source::Found(tree) => tree,
        Source::Made(path) => {
            made = open_tree(CWD, path.as_c_str(), CLONE)?;
            &made
        }
        Source::Open { .. } => return Err(rustix::io::Errno::INVAL.into()),
    };
    // struct mount_attr of linux/mount.h: set, clear, propagation, user namespace.
    let wanted: [u64; 4] = [attributes, 0, 0, 0];
    // SAFETY: the kernel reads the path's one byte and one structure of the size that is named.
    let status = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            wanted.as_ptr(),
            size_of_val(&wanted),
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(move_mount(tree, c"", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Changes the root, and lets go of everything that was there (pivot_root(2), "pivot_root(".", ".")").
fn make_root(root: &CStr) -> io::Result<()> {
    rustix::process::chdir(root)?;
    match rustix::process::pivot_root(c".", c".") {
        Ok(()) => unmount(c".", UnmountFlags::DETACH)?,
        // This process is in a chroot itself, or on an initial ram disk.
        Err(rustix::io::Errno::INVAL) => rustix::process::chroot(c".")?,
        Err(error) => return Err(error.into()),
    }
    Ok(rustix::process::chdir(c"/")?)
}

fn write(folder: BorrowedFd<'_>, path: &CStr, bytes: &[u8], flags: OFlags) -> io::Result<()> {
    let flags = flags | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, path, flags, Mode::from_raw_mode(0o644))?;
    // All of them are smaller than what one call takes.
    if !bytes.is_empty() {
        rustix::io::write(&file, bytes)?;
    }
    Ok(())
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

/// An absolute path below another root.
fn beneath(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// The folder of `/` that a path begins with.
fn first(path: &Path) -> Option<&OsStr> {
    path.components().find_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_made_where_a_link_leads() {
        let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let real = here.path().canonicalize().unwrap();
        symlink(elsewhere.path(), real.join("swapped")).unwrap();
        for (folder, is_made) in ["", "swapped"].into_iter().zip([true, false]) {
            let at = |name: &str| Place::of(&real.join(folder).join(name)).unwrap();
            for step in [
                Step::Folder { at: at("folder"), mode: 0o755 },
                Step::File { at: at("file"), contents: b"x".to_vec() },
                Step::Link { at: at("link"), to: c"/home/attacker/library.so".to_owned() },
            ] {
                assert_eq!(step.perform().is_ok(), is_made, "{step:?}");
            }
        }
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
        assert_eq!(fs::read_dir(&real).unwrap().count(), 4);
    }

    #[test]
    fn a_trees_link_is_no_way_to_a_servers_folder() {
        let here = tempfile::tempdir().unwrap();
        for name in ["usr", "etc"] {
            fs::create_dir(here.path().join(name)).unwrap();
        }
        symlink("/etc", here.path().join("apart")).unwrap();
        let tree = Tree::open(here.path()).unwrap();
        let fd = fs::File::open("/").unwrap();
        let folder = Folder { path: Path::new("/apart/sandbox"), fd: fd.as_fd() };
        let why = Jail::of_tree(&tree, &Account::unused().unwrap(), &[folder]).unwrap_err().to_string();
        assert!(why.contains("lies in /apart, which the tree has too"), "{why}");
    }
}
