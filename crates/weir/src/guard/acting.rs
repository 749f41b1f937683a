//! Whether a guard acts beside what another command measures: its limits are part of the figures.

use std::fmt;

use weir_control::{Standing, State};

use super::socket;

/// A guard that sets limits, in words: "a guard acted on sda (process 17)".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acting {
    process: u32,
    devices: Vec<String>,
}

/// The guard that acts on this machine; `None` where none does, or this account may not ask it.
pub fn acting() -> Option<Acting> {
    Acting::of(&socket::ask().ok()?)
}

impl Acting {
    fn of(state: &State) -> Option<Acting> {
        let guarded = state.devices.iter().filter(|device| device.standing == Standing::Guarding);
        let devices: Vec<String> = guarded.map(|device| device.name.clone()).collect();
        (!state.shadow && !devices.is_empty()).then_some(Acting { process: state.pid, devices })
    }
}

impl fmt::Display for Acting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a guard acted on {} (process {})", self.devices.join(", "), self.process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::testing;

    #[test]
    fn a_shadow_and_devices_that_were_yielded_are_no_acting() {
        let yielded = Standing::StoodDown { why: "vm.dirty_bytes was changed".to_string() };
        for (shadow, standings, expected) in [
            (
                false,
                vec![Standing::Guarding, Standing::Guarding],
                Some("a guard acted on sda, sdb (process 1)"),
            ),
            (false, vec![yielded.clone(), Standing::Guarding], Some("a guard acted on sdb (process 1)")),
            (false, vec![yielded, Standing::Gone], None),
            (false, Vec::new(), None),
            (true, vec![Standing::Shadow], None),
        ] {
            let devices = ["sda", "sdb"].iter().zip(&standings);
            let devices = devices.map(|(name, standing)| testing::device(name, standing.clone())).collect();
            let state = State { shadow, devices, ..testing::state() };
            let said = Acting::of(&state).map(|acting| acting.to_string());
            assert_eq!(said.as_deref(), expected, "{standings:?}");
        }
    }
}
