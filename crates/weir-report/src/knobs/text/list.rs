//! Every knob in a few lines, grouped by what it belongs to.

use super::{EDGE, found, owner, scheduler, takes};
use crate::layout::labelled_at;
use crate::narrow::columns;
use crate::table::rows_of_words;
use weir_core::target::FileSystem;
use weir_knobs::{KnobName, Reading, Risk, Scope, ScopeKind, catalog};

/// Narrowest column of values, so that those of several groups stand beneath each other.
const HEADER: [&str; 4] = ["knob", "value", "takes", "set by"];

/// The list; the mount options of a file system, which weir only shows, at its end.
pub fn list(readings: &[Reading], file_system: Option<&FileSystem>) -> String {
    let mut out = String::new();
    let mut groups: Vec<(String, Vec<&Reading>)> = Vec::new();
    for reading in readings {
        let title = title(&reading.knob);
        match groups.iter_mut().find(|(known, _)| *known == title) {
            Some((_, group)) => group.push(reading),
            None => groups.push((title, vec![reading])),
        }
    }
    for (title, group) in &groups {
        out.push_str(&format!("{title}\n"));
        append(&mut out, group, readings);
        out.push('\n');
    }
    if let Some(file_system) = file_system {
        mount(&mut out, file_system);
    }
    out
}

/// What a knob belongs to, in words.
fn title(knob: &KnobName) -> String {
    let is_bdi = catalog::spec(knob).is_some_and(|spec| spec.scope == ScopeKind::Bdi);
    match &knob.scope {
        Scope::Machine => "this machine".to_string(),
        Scope::Device(device) if is_bdi => format!("{device}: its share of the dirty limits"),
        Scope::Device(device) => format!("{device}: queue and scheduler"),
        Scope::Bdi(bdi) => format!("bdi {bdi}: its share of the dirty limits"),
        Scope::Cgroup(path) => format!("cgroup {path}"),
        Scope::Server(server) => server.to_string(),
    }
}

/// A group: a row a knob, with its meaning and its owners beneath.
fn append(out: &mut String, group: &[&Reading], readings: &[Reading]) {
    let rows: Vec<Vec<String>> = [HEADER.map(str::to_string).to_vec()]
        .into_iter()
        .chain(group.iter().map(|reading| row(reading, readings)))
        .map(|mut row| {
            row[0].insert_str(0, "  ");
            row
        })
        .collect();
    let mut rows = rows_of_words(&rows, columns()).into_iter();
    out.push_str(&rows.next().unwrap_or_default());
    for (row, reading) in rows.zip(group) {
        out.push_str(&row);
        for text in explanations(reading) {
            labelled_at(out, "", EDGE, &text);
        }
    }
}

fn row(reading: &Reading, readings: &[Reading]) -> Vec<String> {
    let name = reading.knob.to_string();
    let Some(spec) = catalog::spec(&reading.knob) else { return vec![name] };
    let scheduler = scheduler(&reading.knob, readings);
    let owner = reading.owners.first().map_or("nobody", |owner| owner.kind.as_str());
    vec![name, found(spec, reading), takes(spec, Some(reading), scheduler.as_deref()), owner.to_string()]
}

/// Meaning, default, who sets it and what is wrong with it.
fn explanations(reading: &Reading) -> Vec<String> {
    let Some(spec) = catalog::spec(&reading.knob) else { return Vec::new() };
    let mut texts = vec![format!("{} Default: {}.", spec.meaning, spec.default)];
    texts.extend(reading.owners.iter().take(1).map(|first| format!("Set by {}.", owner(first))));
    texts.extend(reading.unreadable.iter().map(|why| format!("It cannot be read: {why}.")));
    if !reading.writable {
        texts.push("Read-only on this machine.".to_string());
    }
    match spec.risk {
        Risk::Durability(why) => texts.push(format!("DATA AT RISK: {why}.")),
        Risk::Shown(why) => texts.push(format!("Shown only: {why}.")),
        _ => {}
    }
    texts
}

fn mount(out: &mut String, file_system: &FileSystem) {
    out.push_str("mount options (shown only; /etc/fstab or a mount unit sets them)\n");
    let said =
        format!("{} at {}: {}", file_system.kind, file_system.mount_point, file_system.options.join(", "));
    labelled_at(out, "", 2, &said);
}
