//! udev rules.

use super::{Keeper, Kept, Persisted, device_of, header, name_notes};
use crate::catalog;

/// One rule a setting: udev keeps the order of rules, not always that of the parts of one.
pub fn file(kept: &[Kept]) -> Persisted {
    let mut text = header(Keeper::Udev, kept);
    for Kept { setting, .. } in kept {
        let (Some(device), Some(path)) = (device_of(&setting.knob), catalog::path(&setting.knob)) else {
            continue;
        };
        let attribute = path.strip_prefix(&format!("/sys/block/{device}/")).unwrap_or_default();
        text.push_str(&format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{device}\", ATTR{{{attribute}}}=\"{}\"\n",
            setting.written_value()
        ));
    }
    Persisted {
        path: Keeper::Udev.path().to_string(),
        text,
        link: None,
        then: vec!["udevadm control --reload".to_string()],
        then_undo: vec!["udevadm control --reload".to_string()],
        left_out: Vec::new(),
        notes: name_notes(kept),
    }
}
