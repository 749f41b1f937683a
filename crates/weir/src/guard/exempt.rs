//! Who must not be held by the limit of a cgroup that bulk writers are in.

use weir_host::{Host, IoCgroup};

/// Processes that are to be protected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exempt {
    /// Those that are known.
    pub processes: Vec<u32>,
    /// There may be others: more processes sync than can be followed.
    pub are_not_all: bool,
}

/// Somebody in a cgroup whom no limit of its bulk writers may hold, by name: the protected, the guard itself, and processes of
/// other accounts than theirs. Where it has too many groups to look through, or processes are not known, anybody may be.
pub fn shared_with(host: &Host, group: &IoCgroup, exempt: &Exempt, accounts: &[u32]) -> Option<String> {
    if exempt.are_not_all {
        return Some("processes that sync, which are more than can be followed".to_string());
    }
    let Some(inside) = host.processes_in(group) else {
        return Some("more groups than can be looked into".to_string());
    };
    let is_exempt = |pid: &u32| exempt.processes.contains(pid) || *pid == std::process::id();
    let is_stranger = |pid: &u32| host.account_of(*pid).is_some_and(|account| !accounts.contains(&account));
    let found = inside.iter().find(|pid| is_exempt(pid)).or_else(|| {
        let is_for_one = is_scope(group.path());
        inside.iter().find(|pid| !is_for_one && is_stranger(pid))
    })?;
    Some(host.name_of(*found).unwrap_or(format!("process {found}")))
}

/// The accounts of bulk writers, and root's: its processes are in the cgroups of all (`sshd`, `cron`).
pub fn accounts_of(host: &Host, writers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut accounts: Vec<u32> = writers.filter_map(|pid| host.account_of(pid)).collect();
    accounts.push(0);
    accounts.sort_unstable();
    accounts.dedup();
    accounts
}

/// Whether a cgroup is, or lies in, a scope of the system's manager (systemd.scope(5)): it is made for one session, one
/// container. What a service starts may be of any account: jobs of cron, programs of a web server.
fn is_scope(path: &str) -> bool {
    let unit = path.split('/').find(|part| !part.is_empty() && !part.ends_with(".slice"));
    unit.is_some_and(|unit| unit.ends_with(".scope"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_the_units_own_and_not_a_name_below_a_service() {
        for (path, expected) in [
            ("/user.slice/user-1000.slice/session-3.scope", true),
            ("/system.slice/docker-4f2a.scope/inner", true),
            ("/system.slice/cron.service", false),
            ("/system.slice/cron.service/mine.scope", false),
            ("/kubepods.slice/pod7", false),
            ("/", false),
        ] {
            assert_eq!(is_scope(path), expected, "{path}");
        }
    }
}
