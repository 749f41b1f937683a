//! A service of systemd that runs once at boot.

use super::{Keeper, Kept, Persisted, device_of, header, name_notes};
use crate::Setting;

/// The unit.
pub const PATH: &str = "/etc/systemd/system/weir-knobs.service";
/// What `systemctl enable` makes.
pub const LINK: &str = "/etc/systemd/system/multi-user.target.wants/weir-knobs.service";

/// The unit: its start writes the settings, its stop those of before.
pub fn file(kept: &[Kept]) -> Persisted {
    let mut devices: Vec<&str> = kept.iter().filter_map(|kept| device_of(&kept.setting.knob)).collect();
    devices.dedup();
    let devices: Vec<String> =
        devices.into_iter().map(|name| format!(" dev-{}.device", escaped(name))).collect();
    let devices = devices.concat();
    let mut text = header(Keeper::Systemd, kept);
    text.push_str("[Unit]\nDescription=Settings by weir\n");
    if !devices.is_empty() {
        text.push_str(&format!("Wants={}\n", devices.trim_start()));
    }
    text.push_str(&format!(
        "After=systemd-sysctl.service tuned.service{devices}\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
    ));
    for Kept { setting, .. } in kept {
        text.extend(command("ExecStart", setting));
    }
    for Kept { setting, before } in kept {
        let before = before.as_ref().map(|value| Setting::new(setting.knob.clone(), value.clone()));
        text.extend(before.and_then(|before| command("ExecStop", &before)));
    }
    text.push_str("\n[Install]\nWantedBy=multi-user.target\n");
    Persisted {
        path: PATH.to_string(),
        text,
        link: Keeper::Systemd.link(),
        then: vec!["systemctl daemon-reload".to_string()],
        then_undo: vec!["systemctl daemon-reload".to_string()],
        left_out: Vec::new(),
        notes: name_notes(kept),
    }
}

fn command(key: &str, setting: &Setting) -> Option<String> {
    let file = setting.file()?;
    // systemd takes a percent sign for a specifier and a dollar for a variable.
    let line = format!("echo {} > {file}", setting.written_value()).replace('%', "%%").replace('$', "$$");
    // The minus: after a command that fails, for a disk that is gone, systemd leaves out all that follow.
    Some(format!("{key}=-/bin/sh -c '{line}'\n"))
}

/// A device's name as a unit's: a minus would stand for a slash.
fn escaped(name: &str) -> String {
    name.replace('-', "\\x2d").replace('!', "-")
}
