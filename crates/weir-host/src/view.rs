//! Paths as a process sees them: this one, or one with another root or other mounts (a container, a chroot), which is
//! reached by `/proc/PID/root/…`.
//!
//! A path is opened, and what is asked afterwards is asked of the descriptor: which mount it lies on says the kernel, by
//! the mount's id. Links beneath another process's root lead nowhere else than they lead that process: whoever made
//! them may not lead weir to another file system than the one he sees.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use weir_core::target::DeviceNumber;

use crate::error::HostError;
use crate::host::Host;
use crate::mounts::{self, Mount};
use crate::tree::Tree;

/// A path that exists, opened only to be asked about.
#[derive(Debug)]
pub(crate) struct Opened {
    /// As it can be named here: without links, but for the one that leads to another process's root.
    pub path: PathBuf,
    /// Whether it is the path itself, not a folder above it.
    pub is_whole: bool,
    file: File,
    view: View,
}

/// Whose root and mounts a path goes through.
#[derive(Debug, Clone, PartialEq, Eq)]
enum View {
    Own,
    /// Of the process in this folder of /proc.
    Of(String),
}

impl Opened {
    /// Opens the path, or the nearest folder above it that exists.
    pub fn nearest(path: &Path) -> Result<Opened, HostError> {
        let absolute = std::path::absolute(path).map_err(|error| HostError::io(path, error))?;
        match foreign(&absolute) {
            None => Opened::own(&absolute),
            Some((process, within)) => Opened::of(&process, &within),
        }
    }

    fn own(path: &Path) -> Result<Opened, HostError> {
        let (file, is_whole) = nearest(path, Path::to_path_buf, |candidate| open(candidate, 0))?;
        Ok(Opened { path: place(&file)?, is_whole, file, view: View::Own })
    }

    fn of(process: &str, within: &Path) -> Result<Opened, HostError> {
        let root = PathBuf::from(format!("/proc/{process}/root"));
        let top = open(&root, libc::O_DIRECTORY).map_err(|error| HostError::io(&root, error))?;
        let as_named = |theirs: &Path| root.join(theirs.strip_prefix("/").unwrap_or(theirs));
        let (file, is_whole) = nearest(within, as_named, |candidate| open_beneath(&top, candidate))?;
        // Links are resolved here once: whoever goes this path again would follow them from another root.
        let found = place(&file)?;
        let below = found.strip_prefix(place(&top)?).map_err(|_| HostError::NoMount(as_named(within)))?;
        Ok(Opened { path: as_named(below), is_whole, file, view: View::Of(process.to_string()) })
    }

    /// What stat says of it.
    pub fn metadata(&self) -> Result<Metadata, HostError> {
        self.file.metadata().map_err(|error| HostError::io(&self.path, error))
    }

    /// The mount it lies on, its place as it can be named here, out of the mounts that its process and this one see.
    pub fn mount(&self, tree: &Tree, own: &[Mount]) -> Result<Mount, HostError> {
        let id = self.mount_id(tree)?;
        // A process that changed its root sees no mount above it, and shares ours.
        if let Some(mount) = own.iter().find(|mount| mount.id == id) {
            return Ok(mount.clone());
        }
        let View::Of(process) = &self.view else { return Err(HostError::NoMount(self.path.clone())) };
        let theirs = mounts::of_process(tree, process, id)?;
        let mut mount = theirs.ok_or_else(|| HostError::NoMount(self.path.clone()))?;
        let place = mount.mount_point.trim_end_matches('/');
        mount.mount_point = format!("/proc/{process}/root{place}");
        Ok(mount)
    }

    fn mount_id(&self, tree: &Tree) -> Result<u64, HostError> {
        mount_id(tree, &self.file)
    }
}

/// The number of the mount that an open file lies on.
fn mount_id(tree: &Tree, file: &File) -> Result<u64, HostError> {
    let info = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
    tree.parsed(&info, |text| {
        let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
        id.ok_or_else(|| crate::error::BadLine::new(1, "mnt_id", text.trim()))
    })
}

impl Host {
    /// The path without links, as it can be named here; through `/proc/PID/root` the links are those of that process.
    ///
    /// # Errors
    /// When it does not exist or may not be looked for.
    pub fn resolved(&self, path: &Path) -> Result<PathBuf, HostError> {
        let opened = Opened::nearest(path)?;
        let absent = || HostError::io(path, io::Error::from_raw_os_error(libc::ENOENT));
        opened.is_whole.then_some(opened.path).ok_or_else(absent)
    }

    /// The device of the file system that holds a path.
    pub(crate) fn file_system_device_of(&self, path: &Path) -> Option<DeviceNumber> {
        let mount = Opened::nearest(path).ok()?.mount(&self.tree, &self.mounts().ok()?);
        Some(mount.ok()?.number)
    }

    /// The device of the file system that a process works on. Only the kernel is asked: a file system of another account's (FUSE) need
    /// not answer, and a link of /proc leads to its folder without a question to it.
    pub(crate) fn device_worked_on(&self, process: u32) -> Option<DeviceNumber> {
        let folder = open(&self.tree.real(&format!("/proc/{process}/cwd")), 0).ok()?;
        let id = mount_id(&self.tree, &folder).ok()?;
        Some(mounts::of_process(&self.tree, &process.to_string(), id).ok()??.number)
    }

    /// The folder a process works in, as it can be named here: through its root where its mounts are not ours.
    pub(crate) fn working_folder(&self, process: u32) -> Option<PathBuf> {
        let own = |name: &str| self.tree.link(&format!("/proc/{process}/{name}"));
        let folder = own("cwd")?;
        if own("ns/mnt") == self.tree.link("/proc/self/ns/mnt") {
            return Some(folder);
        }
        let below = folder.strip_prefix(own("root")?).ok()?.to_path_buf();
        Some(PathBuf::from(format!("/proc/{process}/root")).join(below))
    }
}

/// `/proc/PID/root/…` as the process's folder in /proc and the rest, which is its own path.
fn foreign(path: &Path) -> Option<(String, PathBuf)> {
    let mut parts = path.components();
    let mut next = || match parts.next()? {
        Component::Normal(part) => part.to_str().map(str::to_string),
        _ => None,
    };
    // The first is the root itself.
    if next().is_some() || next()? != "proc" {
        return None;
    }
    let process = next().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))?;
    if next()? != "root" {
        return None;
    }
    Some((process, Path::new("/").join(parts.as_path())))
}

/// The process whose view a path through `/proc/PID/root` goes by.
pub(crate) fn process_of(path: &Path) -> Option<u32> {
    foreign(path)?.0.parse().ok()
}

/// What `open` brings of the path, or of the nearest folder above it that exists; errors name it as `as_named`.
fn nearest(
    path: &Path,
    as_named: impl Fn(&Path) -> PathBuf,
    open: impl Fn(&Path) -> io::Result<File>,
) -> Result<(File, bool), HostError> {
    let mut candidate = path;
    loop {
        match open(candidate) {
            Ok(file) => return Ok((file, candidate == path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match candidate.parent() {
                Some(parent) => candidate = parent,
                None => return Err(HostError::io(&as_named(path), error)),
            },
            Err(error) => return Err(HostError::io(&as_named(candidate), error)),
        }
    }
}

/// Where an open file lies, in the kernel's words: below the root of this process, or of the mounts it belongs to.
fn place(file: &File) -> Result<PathBuf, HostError> {
    let link = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    std::fs::read_link(&link).map_err(|error| HostError::io(&link, error))
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_PATH | flags).open(path)
}

/// Opens a path as a process sees it whose root this is.
fn open_beneath(root: &File, path: &Path) -> io::Result<File> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let opened = rustix::fs::openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)?;
    Ok(File::from(opened))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_root_of_a_process_is_another_view() {
        for (path, expected) in [
            ("/proc/42/root/var/lib/mysql", Some(("42", "/var/lib/mysql"))),
            ("/proc/42/root", Some(("42", "/"))),
            ("/proc/42/root/", Some(("42", "/"))),
            ("/proc/42/rootless", None),
            ("/proc/42/cwd", None),
            ("/proc/self/root/x", None),
            ("/srv/proc/42/root", None),
            ("/", None),
        ] {
            let expected = expected.map(|(process, within)| (process.to_string(), PathBuf::from(within)));
            assert_eq!(foreign(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn what_is_not_there_stands_for_the_folder_above() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&real, real.join("link")).unwrap();
        for path in ["not/there/yet", "link", "link/not"] {
            assert_eq!(Opened::nearest(&real.join(path)).unwrap().path, real, "{path}");
        }
        let own = format!("/proc/{}/root{}", std::process::id(), real.display());
        let opened = Opened::nearest(&Path::new(&own).join("not")).unwrap();
        assert_eq!(opened.path, Path::new(&own));
        let tree = Tree::new(Path::new("/"));
        let mounts = tree.parsed("/proc/self/mountinfo", mounts::parse).unwrap();
        let [one, other] =
            [Opened::nearest(&real).unwrap(), opened].map(|o| o.mount(&tree, &mounts).unwrap());
        assert_eq!(one, other);
        // A link beneath a root that leads out of it leads back into it.
        let top = open(&real, libc::O_DIRECTORY).unwrap();
        std::fs::create_dir(real.join("etc")).unwrap();
        std::os::unix::fs::symlink("/../../etc", real.join("out")).unwrap();
        let led = open_beneath(&top, Path::new("/out")).unwrap().metadata().unwrap();
        use std::os::unix::fs::MetadataExt;
        assert_eq!(led.ino(), real.join("etc").metadata().unwrap().ino());
    }
}
