//! A TuneD profile on top of the active one.

use super::{Keeper, Kept, Persisted, device_of, header, name_notes};
use crate::{Scope, catalog};

/// The profile that weir writes.
const PROFILE: &str = "weir";
/// What the line begins with that names the one beneath it.
const INCLUDE: &str = "include=";

/// The profile that weir's is to include: the active one. Where that is weir's, the one that the text of its file includes
/// already.
pub fn base(active: Option<String>, text: Option<&str>) -> Option<String> {
    active.filter(|active| active.trim() != PROFILE).or_else(|| included(text?))
}

/// The profile that a text includes, as TuneD's own file names several.
pub fn included(text: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(INCLUDE)).map(|names| names.replace(',', " "))
}

/// The profile. TuneD's plug-in for sysfs writes its lines in their order.
pub fn file(kept: &[Kept], active: Option<&str>) -> Persisted {
    let names: Vec<&str> = active.unwrap_or_default().split_whitespace().collect();
    // An image chose them, and they stand in a command to copy.
    let is_plain =
        names.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)));
    let base = Some(&names).filter(|names| is_plain && !names.is_empty() && names[..] != [PROFILE]);
    let mut text = header(Keeper::Tuned, kept);
    text.push_str("[main]\nsummary=Settings by weir\n");
    if let Some(base) = base {
        text.push_str(&format!("{INCLUDE}{}\n", base.join(",")));
    }
    section(&mut text, "sysctl", kept, |kept| {
        (kept.setting.knob.scope == Scope::Machine).then(|| kept.setting.written_name())
    });
    section(&mut text, "sysfs", kept, |kept| {
        device_of(&kept.setting.knob)?;
        catalog::path(&kept.setting.knob)
    });
    let mut notes = name_notes(kept);
    notes.push(
        "TuneD applies /etc/sysctl.d again after its profile unless reapply_sysctl=0 in tuned-main.conf: what stands \
         there wins"
            .to_string(),
    );
    if !is_plain {
        notes.push(
            "the active profile is left out: its name has characters that a shell may act on".to_string(),
        );
    }
    let back =
        base.map_or("tuned-adm off".to_string(), |base| format!("tuned-adm profile {}", base.join(" ")));
    Persisted {
        path: Keeper::Tuned.path().to_string(),
        text,
        link: None,
        then: vec![format!("tuned-adm profile {PROFILE}")],
        then_undo: vec![back],
        left_out: Vec::new(),
        notes,
    }
}

/// A section with a line for each setting that has a name in it.
fn section(out: &mut String, title: &str, kept: &[Kept], name: impl Fn(&Kept) -> Option<String>) {
    let line = |kept: &Kept| Some(format!("{}={}\n", name(kept)?, kept.setting.written_value()));
    let lines: String = kept.iter().filter_map(line).collect();
    if !lines.is_empty() {
        out.push_str(&format!("\n[{title}]\n{lines}"));
    }
}
