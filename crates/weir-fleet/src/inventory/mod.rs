//! Which hosts are meant, and how each is reached. A name becomes an argument of ssh and the name of a folder, so only
//! plain names pass.

mod ansible;
mod list;
mod ssh_config;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use weir_cli::failure::usage;
use weir_core::glob::matches;

/// More hosts than this in one run are a mistake in a range.
pub const HOSTS_MAX: usize = 4096;

/// The longest inventory that is read.
const LONGEST_BYTES: u64 = 64 << 20;

/// A host, and how ssh reaches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// What people call it: in tables, and as the name of its folder.
    pub name: String,
    /// What ssh is given.
    pub address: String,
    /// The port, where ssh's own configuration is not to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The account, where ssh's own configuration is not to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// Where hosts come from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// What was typed: names, ranges, patterns, or `@FILE`.
    pub hosts: Vec<String>,
    /// An Ansible inventory, in whose groups and names the patterns are looked up.
    pub inventory: Option<PathBuf>,
    /// The ssh configuration whose `Host` entries patterns match.
    pub ssh_config: Option<PathBuf>,
}

/// The hosts that are meant, each once, in the order they were named.
pub fn hosts(sources: &Sources) -> anyhow::Result<Vec<Host>> {
    let mut words = Vec::new();
    for typed in &sources.hosts {
        match typed.strip_prefix('@') {
            Some(file) => words.extend(list::lines(&read(Path::new(file))?)),
            None => words.extend(list::words(typed)),
        }
    }
    let all = match &sources.inventory {
        Some(file) => ansible::hosts(&read(file)?, &words).map_err(|why| {
            usage(
                format!("{}: {why}", file.display()),
                "docs/reference/fleet.md says what of an inventory is read",
            )
        })?,
        None => without_inventory(&words, sources.ssh_config.as_deref())?,
    };
    let all = each_once(all)?;
    if all.is_empty() {
        return Err(usage(
            "no host is named",
            "--hosts takes names, ranges, patterns or @FILE; --inventory FILE an Ansible inventory",
        ));
    }
    for host in &all {
        check(host).map_err(|why| usage(why, ""))?;
    }
    Ok(all)
}

/// Each host once. Two that are called alike would have one folder and one row.
fn each_once(all: Vec<Host>) -> anyhow::Result<Vec<Host>> {
    let mut seen: BTreeMap<String, Host> = BTreeMap::new();
    let mut once = Vec::new();
    for host in all {
        match seen.get(&host.name) {
            None => {
                seen.insert(host.name.clone(), host.clone());
                once.push(host);
            }
            Some(other) if *other == host => {}
            Some(other) => {
                let what = format!("two hosts are called {}: {} and {}", host.name, said(other), said(&host));
                return Err(usage(
                    what,
                    "give each a name of its own: a Host entry of the ssh configuration, or ansible_host in an inventory",
                ));
            }
        }
    }
    Ok(once)
}

/// A host as it is typed.
fn said(host: &Host) -> String {
    let user = host.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    match host.port {
        Some(port) if host.address.contains(':') => format!("{user}[{}]:{port}", host.address),
        Some(port) => format!("{user}{}:{port}", host.address),
        None => format!("{user}{}", host.address),
    }
}

fn without_inventory(words: &[String], config: Option<&Path>) -> anyhow::Result<Vec<Host>> {
    let mut all = Vec::new();
    let mut known = None;
    for word in words {
        if word.contains(['*', '?']) {
            let known: &Vec<String> = known.get_or_insert_with(|| ssh_config::names(config));
            let before = all.len();
            all.extend(known.iter().filter(|name| matches(word, name)).map(|name| plain(name)));
            if all.len() == before {
                let what = format!("no Host of the ssh configuration matches `{word}`");
                return Err(usage(
                    what,
                    "patterns match names that stand in the configuration, not those of a name server",
                ));
            }
        } else {
            for one in list::expanded(word).map_err(|why| usage(why, ""))? {
                all.push(
                    list::host(&one)
                        .map_err(|why| usage(why, "expected NAME, USER@NAME, NAME:PORT or [ADDRESS]:PORT"))?,
                );
            }
        }
        too_many(all.len()).map_err(|why| usage(why, ""))?;
    }
    Ok(all)
}

fn too_many(count: usize) -> Result<(), String> {
    if count > HOSTS_MAX { Err(format!("more than {HOSTS_MAX} hosts")) } else { Ok(()) }
}

/// A host of which nothing but its name is known.
fn plain(name: &str) -> Host {
    Host { name: name.to_string(), address: name.to_string(), port: None, user: None }
}

fn fits(text: &str, first: &str, more: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let begins = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric() || first.contains(c));
    begins && text.len() <= 253 && text.chars().all(|c| word(c) || more.contains(c))
}

/// Whether a folder can have the name.
pub fn check_name(name: &str) -> Result<(), String> {
    if fits(name, ":_", ":") { Ok(()) } else { Err(format!("`{name}` is not the name of a host")) }
}

/// Whether ssh takes each part for what it is, and a folder can have the name.
fn check(host: &Host) -> Result<(), String> {
    check_name(&host.name)?;
    if !fits(&host.address, ":_", ":%") {
        return Err(format!("host {}: `{}` is not an address", host.name, host.address));
    }
    match host.user.as_deref().filter(|user| !fits(user, "_", "@")) {
        Some(user) => Err(format!("host {}: `{user}` is not an account", host.name)),
        None => Ok(()),
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LONGEST_BYTES).read_to_string(&mut text));
    read.map_err(|error| usage(format!("cannot read {}: {error}", path.display()), ""))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(words: &[&str]) -> anyhow::Result<Vec<Host>> {
        hosts(&Sources { hosts: words.iter().map(|word| word.to_string()).collect(), ..Sources::default() })
    }

    #[test]
    fn names_that_ssh_would_take_for_options_are_refused() {
        for bad in [
            "-oProxyCommand=reboot",
            "..",
            "a/b",
            "root@-x",
            "a\u{1b}b",
            "db1:99999",
            "",
            ",",
            "db[1:9999]",
            "x@y@-z",
        ] {
            assert!(named(&[bad]).is_err(), "{bad}");
        }
        let good = named(&["root@db1:2222,db[08:10]", "[fe80::1%eth0]:22", "db09"]).unwrap();
        let names: Vec<&str> = good.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["db1", "db08", "db09", "db10", "fe80::1"]);
        assert_eq!((good[0].user.as_deref(), good[0].port), (Some("root"), Some(2222)));
        assert_eq!((good[4].address.as_str(), good[4].port), ("fe80::1%eth0", Some(22)));
    }

    #[test]
    fn no_host_is_dropped_because_another_is_called_so() {
        for two in ["127.0.0.1:2201,127.0.0.1:2202", "[fe80::1%eth0],[fe80::1%eth1]", "ada@db1,db1"] {
            let error = named(&[two]).unwrap_err().to_string();
            assert!(error.starts_with("two hosts are called "), "{two}: {error}");
        }
        assert_eq!(
            named(&["ada@db1:22", "db[1:2]", "ada@db1:22,db2"]).map_err(|e| e.to_string()).err().as_deref(),
            Some("two hosts are called db1: ada@db1:22 and db1")
        );
        assert_eq!(named(&["db[1:3]", "db2,db[3:4]"]).unwrap().len(), 4);
    }

    #[test]
    fn a_file_has_one_host_or_several_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts");
        std::fs::write(&file, "# ours\ndb1, db2 # both\n\nadmin@db3\n").unwrap();
        let all = named(&[&format!("@{}", file.display())]).unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!(all[2].user.as_deref(), Some("admin"));
        assert!(named(&["@/nowhere/at/all"]).is_err());
    }
}
