//! The configuration of this machine that may set knobs at boot, gathered for weir-core to judge.

use weir_knobs::owner::{Configuration, File, SYSCTL_DIRS, TMPFILES_DIRS, TUNED_DIRS, UDEV_DIRS, UNIT_DIR};

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
