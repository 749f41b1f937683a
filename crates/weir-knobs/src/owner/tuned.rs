//! The active TuneD profile, with those it includes.

use weir_core::glob;

use super::{File, TUNED_DIRS, pair_value, sysctl};
use crate::{KnobName, Owner, Scope};

/// More than any chain of profiles is deep; an include that leads back to itself ends here.
const DEPTH_MAX: usize = 16;

/// Who sets the knob in the active profile, the last word first: a profile beats what it includes.
pub fn owners(files: &[File], active: &str, knob: &KnobName, knob_files: &[String]) -> Vec<Owner> {
    let mut owners = Vec::new();
    for profile in active.split_whitespace() {
        collect(files, profile, knob, knob_files, DEPTH_MAX, &mut owners);
    }
    owners.reverse();
    owners
}

/// Adds what a profile sets after what its includes set.
fn collect(
    files: &[File],
    profile: &str,
    knob: &KnobName,
    knob_files: &[String],
    depth: usize,
    owners: &mut Vec<Owner>,
) {
    let paths = TUNED_DIRS.iter().map(|dir| format!("{dir}/{profile}/tuned.conf"));
    let file = paths.filter_map(|path| files.iter().find(|file| file.path == path)).next();
    let (Some(file), Some(depth)) = (file, depth.checked_sub(1)) else { return };
    let sections = sections(&file.text);
    let main = sections.iter().filter(|section| section.name == "main");
    for (_, key, value) in main.flat_map(|section| &section.entries) {
        if *key == "include" {
            for included in value.split([',', ';']).map(str::trim).filter(|name| !name.is_empty()) {
                collect(files, included, knob, knob_files, depth, owners);
            }
        }
    }
    for section in &sections {
        for (line, key, value) in &section.entries {
            if section.sets(key, knob, knob_files) {
                let place = format!("{}:{line}", file.path);
                owners.push(Owner { kind: "TuneD".to_string(), place, value: pair_value(key, value) });
            }
        }
    }
}

/// A section of a profile: the entries of one plug-in.
struct Section<'a> {
    name: &'a str,
    /// Line, key, value.
    entries: Vec<(usize, &'a str, &'a str)>,
}

fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.push(Section { name: name.trim(), entries: Vec::new() });
        } else if let (Some(section), Some((key, value))) = (sections.last_mut(), line.split_once('=')) {
            section.entries.push((index + 1, key.trim(), value.trim()));
        }
    }
    sections
}

impl Section<'_> {
    fn entry(&self, wanted: &str) -> Option<&str> {
        self.entries.iter().find(|(_, key, _)| *key == wanted).map(|(_, _, value)| *value)
    }

    /// Whether an entry of this section sets the knob.
    fn sets(&self, key: &str, knob: &KnobName, knob_files: &[String]) -> bool {
        let is = |path: &str| knob_files.iter().any(|file| file == path);
        match self.entry("type").unwrap_or(self.name) {
            "sysctl" => is(&sysctl::proc_path(key)),
            "sysfs" => knob_files.iter().any(|file| glob::matches(key, file)),
            "vm" if matches!(key, "transparent_hugepages" | "transparent_hugepage") => {
                knob.setting == "transparent_hugepage"
            }
            "vm" => is(&format!("/proc/sys/vm/{key}")),
            "disk" => self.disk_sets(key, knob),
            _ => false,
        }
    }

    fn disk_sets(&self, key: &str, knob: &KnobName) -> bool {
        let Scope::Device(device) = &knob.scope else { return false };
        let setting = match key {
            "elevator" => "scheduler",
            "readahead" => "read_ahead_kb",
            _ => return false,
        };
        setting == knob.setting && self.entry("devices").is_none_or(|devices| names(devices, device))
    }
}

/// Whether a list such as `sd*, !sdb` names a device; one of exceptions only names all others.
fn names(list: &str, device: &str) -> bool {
    let (excepted, named): (Vec<&str>, Vec<&str>) = list
        .split([',', ' '])
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .partition(|word| word.starts_with('!'));
    let excluded = excepted.iter().any(|pattern| glob::matches(&pattern[1..], device));
    !excluded && (named.is_empty() || named.iter().any(|pattern| glob::matches(pattern, device)))
}
