//! The kernel's command line.

use super::sysctl::proc_path;
use crate::Owner;

/// Words of the command line that set one of the files, the last first.
pub fn owners(cmdline: &str, knob_files: &[String]) -> Vec<Owner> {
    let words = cmdline.split_whitespace().rev().filter_map(|word| word.split_once('='));
    words
        .filter(|(key, _)| {
            let file = match *key {
                "transparent_hugepage" => "/sys/kernel/mm/transparent_hugepage/enabled".to_string(),
                "hugepages" => proc_path("vm.nr_hugepages"),
                key => match key.strip_prefix("sysctl.") {
                    Some(name) => proc_path(name),
                    None => return false,
                },
            };
            knob_files.contains(&file)
        })
        .map(|(key, value)| Owner {
            kind: "kernel command line".to_string(),
            place: key.to_string(),
            value: value.to_string(),
        })
        .collect()
}
