//! Who sets a knob at boot: the configuration files of sysctl, udev, tmpfiles.d, TuneD, systemd and the kernel's
//! command line, each as its program reads it. weir-host hands over the texts.

mod cmdline;
mod sysctl;
mod systemd;
mod tmpfiles;
mod tuned;
mod udev;

use crate::catalog;
use crate::{KnobName, Owner, Scope};

/// Folders of `*.conf` files for sysctl, the one whose files win first.
pub const SYSCTL_DIRS: [&str; 5] =
    ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d"];
/// Folders of `*.rules` files for udev, likewise.
pub const UDEV_DIRS: [&str; 5] = [
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
];
/// Folders of `*.conf` files for systemd-tmpfiles, likewise.
pub const TMPFILES_DIRS: [&str; 4] =
    ["/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"];
/// Folders with a folder for each TuneD profile, which holds its `tuned.conf`; likewise.
pub const TUNED_DIRS: [&str; 4] =
    ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
/// Folder of the units that a machine's owner wrote.
pub const UNIT_DIR: &str = "/etc/systemd/system";

/// A configuration file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its whole path.
    pub path: String,
    /// What is in it; bytes that are no UTF-8 may have been replaced.
    pub text: String,
}

/// All configuration that may set a knob, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// `*.conf` of [`SYSCTL_DIRS`], and `/etc/sysctl.conf`.
    pub sysctl: Vec<File>,
    /// `*.rules` of [`UDEV_DIRS`].
    pub udev: Vec<File>,
    /// `*.conf` of [`TMPFILES_DIRS`].
    pub tmpfiles: Vec<File>,
    /// Every `tuned.conf` of [`TUNED_DIRS`].
    pub tuned: Vec<File>,
    /// `/etc/tuned/active_profile`, where TuneD runs.
    pub tuned_active: String,
    /// `*.service` of [`UNIT_DIR`].
    pub units: Vec<File>,
    /// `/proc/cmdline`.
    pub cmdline: String,
}

impl Configuration {
    /// Who sets a knob, the last word first. `attribute` reads a file of the knob's device, such as
    /// `queue/rotational`: udev's rules ask for them. What else a rule asks of a device besides its name is not
    /// judged: the condition is told with the place.
    pub fn owners(&self, knob: &KnobName, attribute: &dyn Fn(&str) -> Option<String>) -> Vec<Owner> {
        let Some(file) = catalog::path(knob) else { return Vec::new() };
        let Some(spec) = catalog::spec(knob) else { return Vec::new() };
        let pair = matches!(spec.kind, catalog::Kind::DirtyPair);
        let files = if pair { vec![format!("{file}_bytes"), format!("{file}_ratio")] } else { vec![file] };
        // The last to run comes first: services, TuneD, tmpfiles, udev's rules at the start of a device, sysctl
        // early at boot, and the kernel's command line before everything.
        let mut owners = systemd::owners(&self.units, knob, &files);
        let sysctl = sysctl::owners(&self.sysctl, &files);
        let tuned = tuned::owners(&self.tuned, &self.tuned_active, knob, &files);
        // TuneD applies /etc and /run again after its profile (reapply_sysctl), but not what distributions ship.
        let is_active = !self.tuned_active.trim().is_empty();
        let (again, once): (Vec<Owner>, Vec<Owner>) = sysctl.into_iter().partition(|owner| {
            is_active && ["/etc/", "/run/"].iter().any(|folder| owner.place.starts_with(folder))
        });
        owners.extend(again);
        owners.extend(tuned);
        owners.extend(once);
        owners.extend(tmpfiles::owners(&self.tmpfiles, &files));
        if let Scope::Device(device) = &knob.scope {
            owners.extend(udev::owners(&self.udev, device, &files[0], attribute));
        }
        owners.extend(cmdline::owners(&self.cmdline, &files));
        owners
    }
}

/// The files that count, in the order they are read: of several with one name the one in the folder that wins,
/// all by name. A file outside the folders comes last.
fn in_order<'a>(files: &'a [File], dirs: &[&str]) -> Vec<&'a File> {
    let rank = |file: &File| {
        let dir = file.path.rsplit_once('/').map_or("", |(dir, _)| dir);
        dirs.iter().position(|known| *known == dir).unwrap_or(dirs.len())
    };
    let mut sorted: Vec<&File> = files.iter().collect();
    sorted.sort_by_key(|file| (rank(file) == dirs.len(), name_of(&file.path), rank(file)));
    sorted.dedup_by(|later, earlier| {
        name_of(&later.path) == name_of(&earlier.path) && rank(later) < dirs.len()
    });
    sorted
}

/// A value as the pair's one knob has it: alone, it would not say whether it counts bytes or percent.
fn pair_value(name: &str, value: &str) -> String {
    let unit = ["bytes", "ratio"].into_iter().find(|unit| {
        name.strip_suffix(unit)
            .is_some_and(|rest| rest.ends_with("dirty_") || rest.ends_with("dirty_background_"))
    });
    unit.map_or_else(|| value.to_string(), |unit| format!("{unit}={value}"))
}

/// The last part of a path.
fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
