//! One limit of the whole machine for several devices.

use std::collections::BTreeMap;

use super::{Action, Decision, Limits, Mood};
use crate::target::DeviceNumber;

/// Makes one limit of the decisions of several guards: the tightest that any of them needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arbiter {
    /// What each device that is being held wants, in bytes.
    wanted: BTreeMap<DeviceNumber, u64>,
}

impl Arbiter {
    /// Nobody wants anything.
    pub fn new() -> Arbiter {
        Arbiter::default()
    }

    /// Takes in the decision of a device's guard, which saw these limits; says what to do with the one limit, and
    /// `Action::Keep` where nothing changes.
    pub fn decide(&mut self, device: DeviceNumber, decision: &Decision, limits: Limits) -> Action {
        match (decision.action, decision.mood) {
            (Action::Set { bytes }, _) => {
                self.wanted.insert(device, bytes);
            }
            (Action::Release, _) | (Action::Keep, Mood::Released) => {
                self.wanted.remove(&device);
            }
            (Action::Keep, Mood::Holding) => {}
        }
        self.action(decision.action == Action::Release, limits)
    }

    /// Forgets a device that is gone; says what to do with the one limit.
    pub fn forget(&mut self, device: DeviceNumber, limits: Limits) -> Action {
        let held = self.wanted.remove(&device).is_some();
        self.action(held, limits)
    }

    fn action(&self, released: bool, limits: Limits) -> Action {
        match self.wanted.values().min() {
            Some(&bytes) if bytes == limits.now_bytes => Action::Keep,
            Some(&bytes) => Action::Set { bytes },
            None if released => Action::Release,
            None => Action::Keep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Branch, Inputs};

    fn decision(action: Action, mood: Mood) -> Decision {
        Decision { at_ns: 0, action, branch: Branch::Steady, inputs: Inputs::default(), mood }
    }

    #[test]
    fn the_tightest_need_holds_and_the_last_to_release_releases() {
        let mut arbiter = Arbiter::new();
        let (a, b) = (DeviceNumber { major: 8, minor: 0 }, DeviceNumber { major: 8, minor: 16 });
        let set = |bytes| (Action::Set { bytes }, Mood::Holding);
        let keep = (Action::Keep, Mood::Holding);
        let release = (Action::Release, Mood::Released);
        let idle = (Action::Keep, Mood::Released);
        // (device, its decision, limit in force, what is to be done)
        let cases = [
            (a, idle, 100, Action::Keep),
            (a, set(20), 100, Action::Set { bytes: 20 }),
            (b, set(30), 20, Action::Keep),
            (b, set(5), 20, Action::Set { bytes: 5 }),
            (a, keep, 5, Action::Keep),
            (a, set(40), 5, Action::Keep),
            (b, release, 5, Action::Set { bytes: 40 }),
            (b, idle, 40, Action::Keep),
            (a, release, 40, Action::Release),
            (a, idle, 100, Action::Keep),
        ];
        for (i, (device, (action, mood), now_bytes, expected)) in cases.into_iter().enumerate() {
            let limits = Limits { now_bytes, saved_bytes: 100, floor_bytes: 2 };
            assert_eq!(arbiter.decide(device, &decision(action, mood), limits), expected, "case {i}");
        }
        let limits = Limits { now_bytes: 7, saved_bytes: 100, floor_bytes: 2 };
        arbiter.decide(a, &decision(Action::Set { bytes: 7 }, Mood::Holding), limits);
        assert_eq!(arbiter.forget(a, limits), Action::Release);
    }
}
