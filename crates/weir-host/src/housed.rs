//! Servers in a root or a namespace of their own, as in containers and chroots: which process is meant by a number that
//! is its own, and where the folder is that it names.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::HostError;
use crate::host::Host;
use crate::view::Opened;

impl Host {
    /// A path by which this process reaches the folder that another one calls `reported`: the same path where both see the
    /// same, else one through `/proc/PID/root`.
    ///
    /// # Errors
    /// When there is no such folder, or this user may not look there: of processes of other users only root may.
    pub fn folder_of(&self, process: u32, reported: &Path) -> Result<PathBuf, HostError> {
        let inside = reported.strip_prefix("/").unwrap_or(reported);
        let theirs = PathBuf::from(format!("/proc/{process}/root")).join(inside);
        let opened = Opened::nearest(&theirs)?;
        let data = opened.metadata()?;
        let wrong = |error: i32| HostError::io(&theirs, std::io::Error::from_raw_os_error(error));
        if !opened.is_whole {
            return Err(wrong(libc::ENOENT));
        }
        if !data.is_dir() {
            return Err(wrong(libc::ENOTDIR));
        }
        let here = std::fs::metadata(reported);
        let is_same = here.is_ok_and(|own| (own.dev(), own.ino()) == (data.dev(), data.ino()));
        Ok(if is_same { reported.to_path_buf() } else { opened.path })
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
    }
}
