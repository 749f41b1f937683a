//! Who must not be held by the limit of a cgroup that bulk writers are in.

use std::collections::{HashMap, HashSet};

use weir_control::Life;
use weir_host::{Host, IoCgroup};

use super::exec;

/// Processes that are to be protected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exempt {
    /// Those that are known.
    pub processes: HashSet<u32>,
    /// There may be others: more processes sync than can be followed.
    pub are_not_all: bool,
}

/// Of a cgroup's bulk bytes an account has written at least one in so many, if it is one of its bulk writers.
const PART: u64 = 4;

/// Somebody in a cgroup whom no limit of its bulk writers may hold, by name and with the reason: the protected, the guard itself,
/// and processes of other accounts than theirs. Where it has too many groups to look through, or processes are not known, anybody may be.
pub fn shared_with(host: &Host, group: &IoCgroup, exempt: &Exempt, accounts: &[u32]) -> Option<String> {
    if exempt.are_not_all {
        return Some("processes that sync, which are more than can be followed".to_string());
    }
    let Some(inside) = host.processes_in(group) else {
        return Some("more groups than can be looked into".to_string());
    };
    // sshd, login and su of a session are root's, and serve it alone.
    let is_session = session_of(group.path()).is_some_and(|account| accounts.contains(&account));
    let is_known = |account: u32| accounts.contains(&account) || (is_session && account == 0);
    let is_exempt = |pid: &u32| exempt.processes.contains(pid) || *pid == std::process::id();
    inside.iter().find_map(|pid| {
        let why = match is_exempt(pid) {
            true => "which is protected".to_string(),
            false => format!("of account {}", host.account_of(*pid).filter(|account| !is_known(*account))?),
        };
        Some(format!("{} ({pid}), {why}", host.name_of(*pid).unwrap_or("a process".to_string())))
    })
}

/// The account of a process; none where it has ended, or may be another's by now: who runs a set-user-id program after writing would
/// have written as root.
pub fn account_of(host: &Host, life: Life) -> Option<u32> {
    host.asked_of(life, |pid| host.sole_account_of(pid)).flatten()
}

/// The accounts of a cgroup's bulk writers, by the account and the bytes of each. One that wrote a few bytes beside them is none.
pub fn accounts_of(writers: impl Iterator<Item = (Option<u32>, u64)>) -> Vec<u32> {
    let mut bytes: HashMap<u32, u64> = HashMap::new();
    for (account, written) in writers {
        account.into_iter().for_each(|account| *bytes.entry(account).or_default() += written);
    }
    let all: u64 = bytes.values().sum();
    bytes.retain(|_, bytes| *bytes >= (all / PART).max(1));
    bytes.into_keys().collect()
}

/// Whether somebody may sit before it: a shell in a log-in session, or in a terminal that the user's manager started, is in one cgroup
/// with what it runs. `weir guard exec` has one of its own.
pub fn may_be_typed_in(path: &str) -> bool {
    let unit = path.rsplit('/').next().unwrap_or_default();
    path.starts_with("/user.slice/") && !unit.starts_with(exec::PREFIX)
}

/// Whose log-in session a cgroup is, or lies in: systemd-logind makes them below the account's slice.
fn session_of(path: &str) -> Option<u32> {
    let mut parts = path.strip_prefix("/user.slice/user-")?.split('/');
    let account = parts.next()?.strip_suffix(".slice")?.parse().ok()?;
    let unit = parts.next()?;
    (unit.starts_with("session-") && unit.ends_with(".scope")).then_some(account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_types_in_a_service_nor_in_a_scope_of_weirs() {
        for (path, expected) in [
            ("/user.slice/user-1000.slice/session-3.scope", true),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope", true),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/weir-exec-77.scope", false),
            ("/system.slice/cron.service", false),
            ("/weir-exec-77", false),
        ] {
            assert_eq!(may_be_typed_in(path), expected, "{path}");
        }
    }

    #[test]
    fn a_session_is_the_log_in_manager_s() {
        for (path, expected) in [
            ("/user.slice/user-1000.slice/session-3.scope", Some(1000)),
            ("/user.slice/user-1000.slice/session-3.scope/inner", Some(1000)),
            ("/user.slice/user-1000.slice/user@1000.service/session-3.scope", None),
            ("/system.slice/docker-4f2a.scope", None),
            ("/system.slice/cron.service", None),
            ("/", None),
        ] {
            assert_eq!(session_of(path), expected, "{path}");
        }
    }
}
