//! fio's job files, as far as weir takes them. Each key that is not taken is named with its section, and so is each
//! place where weir means something else by the same word.

mod build;
mod values;

use crate::workload::spec::{Job, Target};
use crate::workload::validate;

/// What a fio job file comes to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Imported {
    /// The jobs that can be run.
    pub jobs: Vec<Job>,
    /// Keys and whole jobs that are not taken, each with its section and, for a job, the reason.
    pub unsupported: Vec<String>,
    /// Where weir does something else than fio would.
    pub notes: Vec<String>,
}

/// A section, with what the [global] sections before it say.
#[derive(Debug, Clone)]
struct Section {
    name: String,
    settings: Vec<(String, String)>,
}

impl Section {
    /// The setting that counts: the last one.
    fn last(&self, keys: &[&str]) -> Option<(&str, &str)> {
        let found = self.settings.iter().rev().find(|(key, _)| keys.contains(&key.as_str()));
        found.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Its value.
    fn get(&self, keys: &[&str]) -> Option<&str> {
        self.last(keys).map(|(_, value)| value)
    }
}

/// Reads a fio job file. Nothing is an error: what cannot be taken is listed.
pub fn import(text: &str) -> Imported {
    let mut imported = Imported::default();
    for section in sections(text, &mut imported.unsupported) {
        build::job(&section, &mut imported);
    }
    unique_names(&mut imported.jobs);
    if let Err(error) = validate::together(&imported.jobs) {
        imported.unsupported.push(format!("the file as a whole: {error}"));
        imported.jobs.clear();
    }
    imported
}

/// Splits the INI text; [global] settings go into the sections after it.
fn sections(text: &str, unsupported: &mut Vec<String>) -> Vec<Section> {
    let mut global: Vec<(String, String)> = Vec::new();
    let mut sections: Vec<Section> = Vec::new();
    let mut in_global = true;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            in_global = name.trim().eq_ignore_ascii_case("global");
            if !in_global {
                sections.push(Section { name: name.trim().to_string(), settings: global.clone() });
            }
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "1"));
        let key = key.trim().to_ascii_lowercase();
        let value = without_comment(value).to_string();
        let where_to =
            if in_global { Some(&mut global) } else { sections.last_mut().map(|s| &mut s.settings) };
        if line.starts_with("include ") {
            unsupported.push(format!("`{line}`: other files are not read"));
        } else if let Some(settings) = where_to {
            settings.push((key, value));
        }
    }
    sections
}

/// The value without a comment after it.
fn without_comment(value: &str) -> &str {
    let end = [" ;", " #", "\t;", "\t#"].iter().filter_map(|mark| value.find(mark)).min();
    value[..end.unwrap_or(value.len())].trim()
}

/// fio admits sections of the same name, each with files of its own.
fn unique_names(jobs: &mut [Job]) {
    for index in 1..jobs.len() {
        let (earlier, rest) = jobs.split_at_mut(index);
        let job = &mut rest[0];
        let mut number = 1;
        let base = job.name.clone();
        while earlier.iter().any(|other| other.name == job.name) {
            number += 1;
            job.name = format!("{base}-{number}");
        }
        if let Target::Files { prefix, .. } = &mut job.target {
            *prefix = build::prefix(&job.name);
        }
    }
}

#[cfg(test)]
mod tests;
