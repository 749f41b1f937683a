//! Processes in a root or a namespace of their own, as servers in containers and chroots are: which one is meant by a
//! number that is its own, and what its paths lead to.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use crate::host::Host;

/// A place as another process sees it.
pub(crate) struct Seen {
    /// Its path there, or here where the same place is to be seen here.
    pub path: PathBuf,
    /// Whether it is a path here.
    pub here: bool,
    /// Owner, device and so on.
    pub data: Metadata,
}

impl Host {
    /// A path by which this process reaches the folder that another one calls `reported`: the same path where both see the
    /// same, else one through `/proc/PID/root`.
    ///
    /// # Errors
    /// When there is no such folder, or this user may not look there: of processes of other users only root may.
    pub fn folder_of(&self, process: u32, reported: &Path) -> io::Result<PathBuf> {
        let folder = open_in(process, reported)?;
        let data = folder.metadata()?;
        if !data.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        if is_same(&data, reported) {
            return Ok(reported.to_path_buf());
        }
        let inside = reported.strip_prefix("/").unwrap_or(reported);
        Ok(PathBuf::from(format!("/proc/{process}/root")).join(inside))
    }

    /// Processes of one of these names with a thread that bears this number where it runs.
    pub fn numbered(&self, names: &[&str], number: u32) -> Vec<u32> {
        let is_named =
            |process: &u32| self.name_of(*process).is_some_and(|name| names.contains(&name.as_str()));
        let has_it = |process: &u32| {
            let threads = self.threads_of(*process);
            threads.iter().any(|thread| self.own_number(*process, *thread) == Some(number))
        };
        let processes = self.tree.names("/proc").into_iter().filter_map(|name| name.parse::<u32>().ok());
        processes.filter(is_named).filter(has_it).collect()
    }

    /// A thread's number in the innermost of its namespaces, which is what it knows itself by.
    fn own_number(&self, process: u32, thread: u32) -> Option<u32> {
        let status = self.tree.text(&format!("/proc/{process}/task/{thread}/status")).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        numbers.split_whitespace().last()?.parse().ok()
    }
}

/// Which process's view a path through `/proc/PID/root` means, and the path in it.
pub(crate) fn through(path: &Path) -> Option<(u32, PathBuf)> {
    let mut parts = path.strip_prefix("/proc").ok()?.components();
    let Component::Normal(process) = parts.next()? else { return None };
    let process = process.to_str()?.parse().ok()?;
    let rest = parts.as_path().strip_prefix("root").ok()?;
    Some((process, Path::new("/").join(rest)))
}

/// Looks at a place as a process sees it: links are followed in its root and do not lead out of it.
pub(crate) fn look(process: u32, path: &Path) -> io::Result<Seen> {
    let opened = open_in(process, path)?;
    let data = opened.metadata()?;
    // The kernel's own word for where it is, from this process's root where it is below that.
    let real = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))?;
    if is_same(&data, &real) {
        return Ok(Seen { path: real, here: true, data });
    }
    let path = if real.is_absolute() { real } else { path.to_path_buf() };
    Ok(Seen { path, here: false, data })
}

fn open_in(process: u32, path: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, format!("/proc/{process}/root"), flags, Mode::empty())?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(rustix::fs::openat2(&root, path, flags, Mode::empty(), resolve)?))
}

fn is_same(data: &Metadata, path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|other| (other.dev(), other.ino()) == (data.dev(), data.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_through_a_process_name_it() {
        for (path, expected) in [
            ("/proc/4711/root/var/lib/mysql", Some((4711, "/var/lib/mysql"))),
            ("/proc/1/root", Some((1, "/"))),
            ("/proc/self/root/x", None),
            ("/proc/1/rootless", None),
            ("/proc/1/cwd/x", None),
            ("/var/lib/mysql", None),
        ] {
            let expected = expected.map(|(process, inside): (u32, &str)| (process, PathBuf::from(inside)));
            assert_eq!(through(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_thread_is_found_by_the_number_it_knows_itself_by() {
        let tree = tempfile::tempdir().unwrap();
        let thread = |process: u32, name: &str, thread: u32, numbers: &str| {
            let folder = tree.path().join(format!("proc/{process}/task/{thread}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("status"), format!("Name:\tx\nNSpid:\t{numbers}\n")).unwrap();
            fs::write(tree.path().join(format!("proc/{process}/comm")), format!("{name}\n")).unwrap();
        };
        thread(100, "mysqld", 100, "100");
        thread(100, "mysqld", 28, "28");
        thread(200, "mysqld", 200, "200\t1");
        thread(200, "mysqld", 228, "228\t28");
        thread(300, "bash", 300, "300\t28");
        let host = Host::at(tree.path());
        for (number, expected) in [(28, &[100, 200][..]), (1, &[200]), (228, &[]), (100, &[100])] {
            let mut found = host.numbered(&["mysqld"], number);
            found.sort_unstable();
            assert_eq!(found, expected, "{number}");
        }
    }

    #[test]
    fn a_folder_of_a_process_with_this_root_keeps_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::process::id();
        assert_eq!(Host::live().folder_of(own, folder.path()).unwrap(), folder.path());
        assert!(Host::live().folder_of(own, &folder.path().join("missing")).is_err());
        let seen = look(own, folder.path()).unwrap();
        assert!(seen.here && seen.path == folder.path().canonicalize().unwrap());
    }
}
