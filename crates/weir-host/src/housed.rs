//! Servers in a root or a namespace of their own, as in containers and chroots: which process is meant by a number that
//! is its own, and where the folder is that it names.

use std::collections::HashMap;
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

/// The threads of a server, by the numbers that it knows them by.
#[derive(Debug, Clone)]
pub struct Numbers {
    process: u32,
    /// It is in a namespace of its own.
    is_apart: bool,
    known: HashMap<u32, u32>,
    /// Whether its threads were listed since the last look began.
    are_fresh: bool,
}

impl Numbers {
    /// Those of the server with this first process.
    pub fn of(host: &Host, process: u32) -> Numbers {
        let is_apart = host.own_number(process, process).is_some_and(|own| own != process);
        Numbers { process, is_apart, known: HashMap::new(), are_fresh: false }
    }

    /// A look begins: its threads are listed once at most until the next.
    pub fn begin(&mut self) {
        self.are_fresh = false;
    }

    /// The kernel's number for one of its threads.
    pub fn find(&mut self, host: &Host, own: u32) -> Option<u32> {
        if !self.is_apart {
            return Some(own);
        }
        if !self.known.contains_key(&own) && !std::mem::replace(&mut self.are_fresh, true) {
            self.known.clear();
            for process in host.family_of(self.process) {
                let threads = host.threads_of(process).into_iter();
                let numbers = threads.filter_map(|thread| Some((host.own_number(process, thread)?, thread)));
                self.known.extend(numbers);
            }
        }
        self.known.get(&own).copied()
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
            let stat = format!("{process} ({name}) S {}\n", if process == 201 { 200 } else { 1 });
            fs::write(tree.path().join(format!("proc/{process}/stat")), stat).unwrap();
        };
        thread(100, "mysqld", 100, "100");
        thread(100, "mysqld", 28, "28");
        thread(200, "mysqld", 200, "200\t1");
        thread(200, "mysqld", 228, "228\t28");
        thread(201, "mysqld", 201, "201\t30");
        thread(300, "bash", 300, "300\t28");
        let host = Host::at(tree.path());
        for (number, expected) in [(28, &[100, 200][..]), (1, &[200]), (228, &[]), (100, &[100])] {
            let mut found = host.numbered(&["mysqld"], number);
            found.sort_unstable();
            assert_eq!(found, expected, "{number}");
        }
        let (mut apart, mut along) = (Numbers::of(&host, 200), Numbers::of(&host, 100));
        for (number, expected) in [(1, Some(200)), (28, Some(228)), (30, Some(201)), (31, None), (100, None)]
        {
            assert_eq!(apart.find(&host, number), expected, "{number}");
            assert_eq!(along.find(&host, number), Some(number));
        }
        thread(200, "mysqld", 231, "231\t31");
        assert_eq!(apart.find(&host, 31), None, "it was listed in this look");
        apart.begin();
        assert_eq!(apart.find(&host, 31), Some(231));
    }

    #[test]
    fn a_folder_of_a_process_with_this_root_keeps_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::process::id();
        assert_eq!(Host::live().folder_of(own, folder.path()).unwrap(), folder.path());
        assert!(Host::live().folder_of(own, &folder.path().join("missing")).is_err());
    }
}
