//! sysctl.d, as systemd-sysctl and `sysctl --system` read it.

use weir_core::glob;

use super::{File, SYSCTL_DIRS, in_order, pair_value};
use crate::Owner;

/// One line that sets something.
struct Line<'a> {
    /// The file under `/proc/sys`, with wildcards perhaps.
    path: String,
    /// `None` where the line only takes the path out of wildcards.
    value: Option<&'a str>,
    place: String,
}

/// Who sets one of the files, the last word first. A name beats a wildcard, wherever it stands.
pub fn owners(files: &[File], knob_files: &[String]) -> Vec<Owner> {
    let lines: Vec<Line<'_>> = in_order(files, &SYSCTL_DIRS).into_iter().flat_map(lines).collect();
    let exact: Vec<&Line<'_>> = lines.iter().filter(|line| knob_files.contains(&line.path)).collect();
    let by_name = exact.iter().rev().filter(|line| line.value.is_some());
    let named = |path: &String| exact.iter().any(|line| line.path == *path);
    let free: Vec<&String> = knob_files.iter().filter(|path| !named(path)).collect();
    let by_wildcard = lines.iter().rev().filter(|line| {
        line.path.contains(['*', '?', '[']) && free.iter().any(|path| glob::matches(&line.path, path))
    });
    by_name.copied().chain(by_wildcard).filter_map(owner).collect()
}

fn owner(line: &Line<'_>) -> Option<Owner> {
    let value = pair_value(&line.path, line.value?);
    Some(Owner { kind: "sysctl.d".to_string(), place: line.place.clone(), value })
}

fn lines(file: &File) -> Vec<Line<'_>> {
    let numbered = file.text.lines().enumerate();
    numbered.filter_map(|(index, line)| parse(line, format!("{}:{}", file.path, index + 1))).collect()
}

fn parse(line: &str, place: String) -> Option<Line<'_>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return None;
    }
    // A minus lets errors pass; without a value it takes the name out of wildcards.
    let (tolerant, line) = line.strip_prefix('-').map_or((false, line), |rest| (true, rest));
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name, Some(value.trim())),
        None if tolerant => (line, None),
        None => return None,
    };
    Some(Line { path: proc_path(name.trim()), value, place })
}

/// `vm.dirty_bytes`, `vm/dirty_bytes` → its file. Where a dot comes first, dots part and slashes stand for dots.
pub fn proc_path(name: &str) -> String {
    let dots_part = name.find(['.', '/']).is_some_and(|at| name[at..].starts_with('.'));
    let swapped = |letter: char| match letter {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    let name = name.strip_prefix("/proc/sys/").unwrap_or(name);
    let path: String = if dots_part { name.chars().map(swapped).collect() } else { name.to_string() };
    format!("/proc/sys/{path}")
}
