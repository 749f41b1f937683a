//! A file of sysctl.d.

use super::{Keeper, Kept, Persisted, header};

/// The file, read at every boot without further ado.
pub fn file(kept: &[Kept]) -> Persisted {
    let mut text = header(Keeper::Sysctl, kept);
    for Kept { setting, .. } in kept {
        text.push_str(&format!("{} = {}\n", setting.written_name(), setting.written_value()));
    }
    Persisted {
        path: Keeper::Sysctl.path().to_string(),
        text,
        link: None,
        then: Vec::new(),
        then_undo: Vec::new(),
        left_out: Vec::new(),
        notes: Vec::new(),
    }
}
