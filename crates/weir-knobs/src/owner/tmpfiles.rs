//! tmpfiles.d lines that write into `/sys` or `/proc`.

use weir_core::glob;

use super::{File, TMPFILES_DIRS, in_order};
use crate::Owner;

/// Who writes one of the files, the last first.
pub fn owners(files: &[File], knob_files: &[String]) -> Vec<Owner> {
    let mut owners = Vec::new();
    for file in in_order(files, &TMPFILES_DIRS) {
        for (index, line) in file.text.lines().enumerate() {
            let Some((path, value)) = parse(line) else { continue };
            if knob_files.iter().any(|file| glob::matches(path, file)) {
                let place = format!("{}:{}", file.path, index + 1);
                owners.push(Owner { kind: "tmpfiles.d".to_string(), place, value });
            }
        }
    }
    owners.reverse();
    owners
}

/// Path and argument of a line `w PATH MODE USER GROUP AGE ARGUMENT`.
fn parse(line: &str) -> Option<(&str, String)> {
    let mut words = line.split_whitespace();
    let kind = words.next()?;
    let writes = kind.starts_with('w') && kind[1..].chars().all(|modifier| "+!-=~^$?".contains(modifier));
    let path = words.next().filter(|_| writes)?;
    let argument: Vec<&str> = words.skip(4).collect();
    Some((path.trim_matches('"'), argument.join(" ")))
}
