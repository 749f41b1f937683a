//! Everything about one knob.

use super::{found, owner, takes};
use crate::layout::labelled_at;
use weir_knobs::{Kind, Reading, Risk, ScopeKind, Spec, catalog};

/// Width of the labels.
const LABEL: usize = 10;

/// A knob as this machine has it; `scheduler` is the one in force on its device.
pub fn one(reading: &Reading, scheduler: Option<&str>) -> String {
    let Some(spec) = catalog::spec(&reading.knob) else { return format!("{}\n", reading.knob) };
    let mut out = format!("{} = {}\n", reading.knob, found(spec, reading));
    let mut lines = about(spec, &takes(spec, Some(reading), scheduler));
    lines.insert(1, ("file", reading.path.clone()));
    lines.extend(reading.unreadable.iter().map(|why| ("unread", why.clone())));
    if !reading.writable {
        lines.push(("unwritten", "read-only on this machine".to_string()));
    }
    lines.extend(owners(reading));
    lines.push(("change", how_to_change(spec, reading)));
    append(&mut out, &lines);
    out
}

/// A knob of the catalog that was named without the device it belongs to, or that this machine does not have.
pub fn known(spec: &Spec) -> String {
    let mut out = format!("{}\n", spec.pattern());
    let mut lines = about(spec, &takes(spec, None, None));
    lines.insert(1, ("file", spec.path.replace("{}", placeholder(spec))));
    append(&mut out, &lines);
    out
}

fn placeholder(spec: &Spec) -> &'static str {
    match spec.scope {
        ScopeKind::Cgroup => "/PATH",
        ScopeKind::Bdi => "BDI",
        _ => "DEV",
    }
}

fn append(out: &mut String, lines: &[(&'static str, String)]) {
    for (label, text) in lines.iter().filter(|(_, text)| !text.is_empty()) {
        labelled_at(out, label, LABEL, text);
    }
}

/// What the catalog says.
fn about(spec: &Spec, takes: &str) -> Vec<(&'static str, String)> {
    let risk = match spec.risk {
        Risk::None => String::new(),
        Risk::Careful(why) | Risk::Inexact(why) => format!("{why}."),
        Risk::Durability(why) => format!("DATA AT RISK: {why}."),
        Risk::Shown(why) => format!("shown only: {why}."),
    };
    let own = spec.scheduler.map(|scheduler| format!("it is there while {scheduler} is the scheduler"));
    let since = spec.since.map(|since| format!("Linux {since}"));
    vec![
        ("meaning", spec.meaning.to_string()),
        ("takes", takes.to_string()),
        ("default", spec.default.to_string()),
        ("beware", spec.trap.to_string()),
        ("risk", risk),
        ("resets", resets(spec)),
        ("belongs", own.unwrap_or_default()),
        ("since", since.unwrap_or_default()),
    ]
}

fn resets(spec: &Spec) -> String {
    let (own, others): (Vec<&str>, Vec<&str>) =
        spec.resets.iter().partition(|setting| setting.starts_with("iosched/"));
    let mut resets: Vec<String> = others.into_iter().map(str::to_string).collect();
    // A scheduler's settings by the dozen say less than their folder.
    if own.len() > 3 {
        resets.push("everything under iosched/".to_string());
    } else {
        resets.extend(own.into_iter().map(str::to_string));
    }
    resets.join(", ")
}

fn owners(reading: &Reading) -> Vec<(&'static str, String)> {
    if reading.owners.is_empty() {
        return vec![(
            "set by",
            "nobody: no file of sysctl, udev, TuneD, tmpfiles or systemd names it".to_string(),
        )];
    }
    let mut label = "set by";
    let mut lines = Vec::new();
    for (index, said) in reading.owners.iter().enumerate() {
        let overruled = if index > 0 { " (overruled)" } else { "" };
        lines.push((label, format!("{}{overruled}", owner(said))));
        label = "";
    }
    lines
}

fn how_to_change(spec: &Spec, reading: &Reading) -> String {
    let knob = &reading.knob;
    match (spec.risk, spec.kind) {
        (Risk::Shown(_), _) => "weir does not change it".to_string(),
        (Risk::Durability(_), _) => {
            format!("weir knobs apply '{knob}=VALUE' --i-accept-data-loss-risk {knob}")
        }
        (_, Kind::DirtyPair) => {
            format!("weir knobs apply {knob}_bytes=BYTES --confirm-within 5m  (or {knob}_ratio=PERCENT)")
        }
        (_, Kind::Action) => format!("weir knobs apply {knob}=3"),
        _ => format!("weir knobs apply {knob}=VALUE --confirm-within 5m"),
    }
}
