//! Bounds of dirty pages that hold: while cgroups of a device are held, its own share is counted strictly (`strict_limit`).
//!
//! What a cgroup has dirty the kernel knows as of up to some seconds ago, and lets it have all of its memory.high dirty meanwhile.
//! What the cgroup has dirty on one device is counted at once, and `strict_limit` has the kernel go by that.

use weir_control::Effect;

use super::super::device::GuardedDevice;
use super::super::group::{Group, WHOLE};
use super::ControlLoop;

/// How it stands with a device's share.
#[derive(Default)]
pub(super) enum Exact {
    /// Nobody is held.
    #[default]
    Unneeded,
    /// It is the guard's.
    Taken(Group),
    /// It could not be taken, or was taken away, while the same cgroups have been held.
    Not,
}

impl Exact {
    /// The share, while it is the guard's.
    pub fn taken(&mut self) -> Option<&mut Group> {
        match self {
            Exact::Taken(group) => Some(group),
            Exact::Unneeded | Exact::Not => None,
        }
    }
}

impl ControlLoop {
    /// Takes the share over as cgroups come to be held, and gives it back after the last of them.
    pub(super) fn lead_exact(&mut self, device: usize, holds: bool, now_ns: u64, at_ms: u64) {
        if self.groups[self.homes[device]].of_device {
            self.devices[device].is_exact = holds;
            return;
        }
        if matches!(self.exact[device], Exact::Unneeded) && holds {
            let GuardedDevice { name, number, .. } = &self.devices[device];
            let (exact, what) = match self.shares.take_over(device, name, *number) {
                Ok(group) => {
                    let verb = self.about.turns();
                    let what = format!("{verb} {}: the bounds of cgroups hold with it", group.actuator);
                    (Exact::Taken(group), what)
                }
                Err(why) => (Exact::Not, format!("cgroups may have more dirty than they are held to: {why}")),
            };
            self.exact[device] = exact;
            self.report_of(device, at_ms, Effect::Remark { what });
        }
        let said = match &mut self.exact[device] {
            Exact::Taken(group) if holds => {
                match group.lead(std::iter::once(WHOLE), now_ns).or_else(|| group.beat(now_ns)) {
                    Some(Effect::StoodDown { why } | Effect::Refused { why }) => {
                        let what = format!("{} is left alone: {why}", group.actuator);
                        self.exact[device] = Exact::Not;
                        Some(what)
                    }
                    // What has its name next is taken anew.
                    Some(Effect::Gone) => {
                        self.exact[device] = Exact::Unneeded;
                        None
                    }
                    _ => None,
                }
            }
            Exact::Taken(group) => {
                let what = match group.end() {
                    Ok(sentences) => sentences.join("; "),
                    Err(error) => error.to_string(),
                };
                self.exact[device] = Exact::Unneeded;
                Some(what).filter(|what| !what.is_empty())
            }
            Exact::Not if !holds => {
                self.exact[device] = Exact::Unneeded;
                None
            }
            Exact::Not | Exact::Unneeded => None,
        };
        if let Some(what) = said {
            self.report_of(device, at_ms, Effect::Remark { what });
        }
    }
}
