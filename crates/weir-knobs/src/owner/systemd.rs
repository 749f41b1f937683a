//! systemd: services of this machine that write a knob's file, and the units whose cgroups it makes.

use super::File;
use crate::{KnobName, Owner, Scope};

/// Services with a command that names one of the files; for a cgroup, its unit.
pub fn owners(units: &[File], knob: &KnobName, knob_files: &[String]) -> Vec<Owner> {
    if let Scope::Cgroup(path) = &knob.scope {
        return unit_of(path).into_iter().collect();
    }
    let mut owners = Vec::new();
    for unit in units {
        for (index, line) in unit.text.lines().enumerate() {
            let Some(command) = line.trim().strip_prefix("ExecStart") else { continue };
            if names_file(command, knob_files) {
                let place = format!("{}:{}", unit.path, index + 1);
                let value = written(command).unwrap_or_default().to_string();
                owners.push(Owner { kind: "systemd".to_string(), place, value });
            }
        }
    }
    owners
}

/// Whether a command names one of the files, not only a longer one that begins alike; or a sysctl by its name.
fn names_file(command: &str, knob_files: &[String]) -> bool {
    let sysctls = knob_files
        .iter()
        .filter_map(|file| file.strip_prefix("/proc/sys/"))
        .map(|name| format!("{}=", name.replace('/', ".")));
    let ends =
        |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || "_./".contains(next));
    let files = knob_files
        .iter()
        .any(|file| command.match_indices(file.as_str()).any(|(at, _)| ends(&command[at + file.len()..])));
    files || sysctls.into_iter().any(|name| command.contains(&name))
}

/// The word that `echo VALUE >` writes.
fn written(command: &str) -> Option<&str> {
    let (_, rest) = command.split_once("echo ")?;
    rest.split_whitespace().next().map(|word| word.trim_matches(['"', '\'']))
}

/// The unit that has a cgroup: systemd writes its limits again whenever the unit is started or reloaded.
fn unit_of(cgroup: &str) -> Option<Owner> {
    const UNITS: [&str; 3] = [".slice", ".service", ".scope"];
    let unit = cgroup.rsplit('/').next().filter(|name| UNITS.iter().any(|kind| name.ends_with(kind)))?;
    Some(Owner { kind: "systemd".to_string(), place: unit.to_string(), value: String::new() })
}
