//! The owners of knobs: weir itself, by its journal, and the configuration that may set them at boot.

use weir_core::target::TargetFacts;
use weir_knobs::owner::{Configuration, File, SYSCTL_DIRS, TMPFILES_DIRS, TUNED_DIRS, UDEV_DIRS, UNIT_DIR};
use weir_knobs::plan::between;
use weir_knobs::{Became, KnobName, Owner, Reading, Scope, Value};

use super::journal::Journal;
use super::order;
use super::read::{names, read};
use super::rollback::{self, Listed, Until};
use crate::error::HostError;
use crate::host::Host;
use crate::tree::Tree;

/// Every file that may set a knob at boot; what this user may not read is left out.
pub fn configuration(host: &Host) -> Configuration {
    let tree = &host.tree;
    let mut sysctl = files(tree, &SYSCTL_DIRS, ".conf");
    sysctl.extend(file(tree, "/etc/sysctl.conf".to_string()));
    Configuration {
        sysctl,
        udev: files(tree, &UDEV_DIRS, ".rules"),
        tmpfiles: files(tree, &TMPFILES_DIRS, ".conf"),
        tuned: profiles(tree),
        tuned_active: tree.line("/etc/tuned/active_profile").unwrap_or_default(),
        units: files(tree, &[UNIT_DIR], ".service"),
        cmdline: tree.line("/proc/cmdline").unwrap_or_default(),
    }
}

fn files(tree: &Tree, folders: &[&str], ending: &str) -> Vec<File> {
    let paths = folders.iter().flat_map(|folder| {
        let names = tree.names(folder).into_iter().filter(|name| name.ends_with(ending));
        names.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    });
    paths.filter_map(|path| file(tree, path)).collect()
}

/// A folder of TuneD's has one for each profile.
fn profiles(tree: &Tree) -> Vec<File> {
    let paths = TUNED_DIRS.iter().flat_map(|folder| {
        tree.names(folder).into_iter().map(move |profile| format!("{folder}/{profile}/tuned.conf"))
    });
    paths.filter_map(|path| file(tree, path)).collect()
}

fn file(tree: &Tree, path: String) -> Option<File> {
    let text = tree.text(&path).ok()?;
    Some(File { path, text })
}

/// Every knob there is, with its owners: the machine's, those of the target's devices (without a target: of all
/// whole devices in use), of its bdi, and of the cgroups this process is in. What a kernel, device or cgroup does
/// not have is left out.
pub fn readings(host: &Host, target: Option<&TargetFacts>) -> Vec<Reading> {
    let owners = Owners::of(host);
    let names = names(&host.tree, target);
    names.iter().filter_map(|knob| read(host, knob).ok()).map(|reading| owners.named(host, reading)).collect()
}

/// A knob now, with its owners.
///
/// # Errors
/// As [`read`].
pub fn read_with_owners(host: &Host, knob: &KnobName) -> Result<Reading, HostError> {
    read(host, knob).map(|reading| Owners::of(host).named(host, reading))
}

/// Everything that may own a knob: weir, by what it has in use, and files that are read at boot.
struct Owners {
    in_hand: Vec<Listed>,
    configuration: Configuration,
}

impl Owners {
    fn of(host: &Host) -> Owners {
        let in_hand = if host.live { rollback::entries(&Journal::of_root()).0 } else { Vec::new() };
        Owners { in_hand, configuration: configuration(host) }
    }

    fn named(&self, host: &Host, reading: Reading) -> Reading {
        let attribute = |name: &str| match &reading.knob.scope {
            Scope::Device(device) => host.tree.line(&format!("/sys/block/{device}/{name}")),
            _ => None,
        };
        let weir = self.in_hand.iter().filter_map(|listed| weir_as_owner(host, listed, &reading.knob));
        let owners = weir.chain(self.configuration.owners(&reading.knob, &attribute)).collect();
        Reading { owners, ..reading }
    }
}

/// weir itself, where a change of it is in force. A knob has one name in the journal, and its value the scale of that.
fn weir_as_owner(host: &Host, listed: &Listed, knob: &KnobName) -> Option<Owner> {
    let as_shown = |changed: &KnobName, value: &Value| order::shown_by(host, knob, changed, value);
    let (changed, _, new) =
        listed.changes.iter().find(|(changed, old, _)| as_shown(changed, old).is_some())?;
    let shown = |value: &Value| as_shown(changed, value).unwrap_or_else(|| value.clone());
    let kind = if listed.by_guard { Owner::GUARD } else { "weir" };
    (listed.until != Until::Void).then(|| Owner {
        kind: kind.to_string(),
        place: listed.file.display().to_string(),
        value: match new {
            Became::Value(value) => shown(value).to_string(),
            Became::Reset => String::new(),
            Became::Governed { least, most } => between(&shown(least), &shown(most)),
        },
    })
}

/// What a knob was before the oldest of these changes of it, else what it is. `listed` has the newest first.
pub fn before(host: &Host, listed: &[Listed], knob: &KnobName) -> Option<Value> {
    let mut changes = listed.iter().rev().flat_map(|entry| &entry.changes);
    let old = changes.find_map(|(changed, old, _)| order::shown_by(host, knob, changed, old));
    old.or_else(|| read(host, knob).ok()?.value)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_knobs::Setting;

    use super::*;
    use crate::knob::testing::Machine;
    use crate::knob::{Hold, entries, plan};

    /// The journal has them in parts per million, of a dirty limit of 4096000 bytes.
    #[test]
    fn a_bdis_limit_has_its_owner_and_its_old_value_by_every_name() {
        let machine = Machine::new();
        let settings: [Setting; 1] = ["loop0/bdi/max_ratio=50".parse().unwrap()];
        let plan = plan(&machine.host, &settings, false).unwrap();
        drop(machine.journal.apply(&machine.host, &plan, Hold::Kept, Duration::ZERO).unwrap());
        // The kernel would show it so.
        for (file, now) in [("max_ratio", "50"), ("max_bytes", "2048000"), ("max_ratio_fine", "500000")] {
            machine.set(&format!("/sys/class/bdi/7:0/{file}"), now);
        }
        // This machine's boot is not that of the made-up one.
        let (mut listed, _) = entries(&machine.journal);
        listed.iter_mut().for_each(|entry| entry.until = Until::Rollback);
        for (knob, was, value) in [
            ("loop0/bdi/max_ratio", 100, Some("50")),
            ("loop0/bdi/max_bytes", 4_096_000, Some("2048000")),
            ("loop0/bdi/max_ratio_fine", 1_000_000, Some("500000")),
            ("loop0/bdi/min_ratio", 0, None),
        ] {
            let knob: KnobName = knob.parse().unwrap();
            assert_eq!(before(&machine.host, &listed, &knob), Some(Value::Number(was)), "{knob}");
            let owner = weir_as_owner(&machine.host, &listed[0], &knob);
            assert_eq!(owner.map(|owner| owner.value).as_deref(), value, "{knob}");
        }
    }
}
