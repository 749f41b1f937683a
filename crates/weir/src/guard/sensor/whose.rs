//! Processes of those that are to be protected, where the kernel's programs are given a list.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::guard::settings::Protected;

/// A process as /proc tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    pid: u32,
    parent: u32,
    comm: String,
}

/// Everybody's processes who is named by name or number, at this moment; those in cgroups are found by `in_groups`. Those of names
/// come last, which anybody may take.
pub fn processes(protect: &[Protected], in_groups: impl Fn(&Protected) -> Vec<u32>) -> Vec<u32> {
    let (numbers, names): (Vec<Protected>, Vec<Protected>) = protect
        .iter()
        .filter(|who| matches!(who, Protected::Comm(_) | Protected::Pid(_)))
        .cloned()
        .partition(|who| matches!(who, Protected::Pid(_)));
    let is_by_task = !numbers.is_empty() || !names.is_empty();
    let tasks = if is_by_task { tasks(Path::new("/proc")) } else { Vec::new() };
    let by_group = protect.iter().flat_map(in_groups);
    let all = by_group.chain(chosen(&numbers, &tasks)).chain(chosen(&names, &tasks));
    let mut seen = HashSet::new();
    all.filter(|pid| seen.insert(*pid)).collect()
}

/// When those began who are named by number, in ticks since boot: one that has ended leaves its number to others.
pub fn began(protect: &[Protected]) -> Vec<Option<u64>> {
    let stat = |pid: &u32| weir_fs::read_lossily(format!("/proc/{pid}/stat")).ok();
    let of = |protected: &Protected| match protected {
        // Field 22 of proc_pid_stat(5), counted from the name on, which may hold spaces and parentheses.
        Protected::Pid(pid) => stat(pid)?.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok(),
        _ => None,
    };
    protect.iter().map(of).collect()
}

/// Where a cgroup lies: as it was named, or below where cgroup v2 is mounted.
pub fn group(named: &str, mounts: &str) -> Option<PathBuf> {
    let as_named = Path::new(named);
    if as_named.join("cgroup.procs").exists() {
        return Some(as_named.to_path_buf());
    }
    let mut roots = mounts.lines().filter_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [_, place, "cgroup2", ..] => Some(PathBuf::from(place)),
        _ => None,
    });
    roots.find_map(|root| {
        let path = root.join(named.trim_start_matches('/'));
        path.join("cgroup.procs").exists().then_some(path)
    })
}

fn chosen(protect: &[Protected], tasks: &[Task]) -> Vec<u32> {
    const GENERATIONS: usize = 8;
    let parents: HashMap<u32, u32> = tasks.iter().map(|task| (task.pid, task.parent)).collect();
    let descends = |pid: u32, from: u32| {
        let line = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
        line.take(GENERATIONS).any(|ancestor| ancestor == from)
    };
    let is_chosen = |task: &&Task| {
        protect.iter().any(|protected| match protected {
            // The kernel keeps 15 bytes of a name.
            Protected::Comm(name) => name.bytes().take(15).eq(task.comm.bytes()),
            Protected::Pid(pid) => descends(task.pid, *pid),
            _ => false,
        })
    };
    tasks.iter().filter(is_chosen).map(|task| task.pid).collect()
}

fn tasks(proc: &Path) -> Vec<Task> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let numbered = entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    numbered.filter_map(|entry| task(&weir_fs::read_lossily(entry.path().join("stat")).ok()?)).collect()
}

/// A line of /proc/PID/stat; a name may hold spaces and parentheses.
fn task(line: &str) -> Option<Task> {
    let (pid, rest) = line.split_once(" (")?;
    let (comm, rest) = rest.rsplit_once(") ")?;
    let parent = rest.split(' ').nth(1)?.parse().ok()?;
    Some(Task { pid: pid.parse().ok()?, parent, comm: comm.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_descendants_are_found() {
        let lines = [
            "1 (init) S 0 1 1",
            "10 (mysqld_safe_long) S 1 1 1",
            "11 (mariadbd) S 10 1 1",
            "12 (a (b) c) S 11 1 1",
            "20 (mariadbd) S 1 1 1",
        ];
        let tasks: Vec<Task> = lines.iter().filter_map(|line| task(line)).collect();
        assert_eq!(tasks.len(), lines.len());
        let cases = [
            (vec![Protected::Comm("mariadbd".to_string())], vec![11, 20]),
            (vec![Protected::Pid(11)], vec![11, 12]),
            (vec![Protected::Comm("a (b) c".to_string()), Protected::Pid(20)], vec![12, 20]),
            (vec![Protected::Comm("maria".to_string())], vec![]),
        ];
        for (protect, expected) in cases {
            assert_eq!(chosen(&protect, &tasks), expected, "{protect:?}");
        }
        assert_eq!(task("nonsense"), None);
    }

    #[test]
    fn a_number_is_nobodys_once_its_process_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let named = [Protected::Pid(child.id()), Protected::All, Protected::Pid(std::process::id())];
        let before = began(&named);
        assert!(before[0].is_some() && before[1].is_none() && before[2].is_some());
        assert_eq!(began(&named), before);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(began(&named), [None, None, before[2]]);
    }

    #[test]
    fn groups_are_found_as_named_or_below_the_mount() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("db.slice/my.service");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("cgroup.procs"), "").unwrap();
        let mounts = format!("cgroup2 {} cgroup2 rw 0 0\n", root.path().display());
        for named in ["/db.slice/my.service", "db.slice/my.service", &folder.to_string_lossy()] {
            assert_eq!(group(named, &mounts), Some(folder.clone()), "{named}");
        }
        assert_eq!(group("/db.slice/other.service", &mounts), None);
    }
}
