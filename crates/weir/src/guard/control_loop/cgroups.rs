//! The limits of cgroups in a control loop: taken over in place of a device's limit of dirty pages, and let go of again.

use weir_control::Effect;
use weir_host::knob::Actuator;

use super::super::group::Group;
use super::super::sampler::{Seen, Time};
use super::super::throttle::{Choose, Switch};
use super::ControlLoop;
use super::shares::TakeAlone;

/// How cgroups are throttled.
pub struct Cgroups {
    /// Says which, and when.
    pub choose: Box<dyn Choose>,
    /// Does it.
    pub take: TakeAlone,
}

impl ControlLoop {
    /// Where the limit of the device's cgroup is, if that is the one that is turned.
    pub(super) fn cgroup_of(&self, device: usize) -> Option<usize> {
        let of_cgroups = self.groups.iter().enumerate().skip(self.first_of_cgroups);
        of_cgroups.into_iter().find(|(_, group)| group.devices.contains(&device)).map(|(at, _)| at)
    }

    /// Whether another limit is to be turned for a device.
    pub(super) fn choose_limits(&mut self, seen: &mut [Option<Seen>], time: Time, at_ms: u64) {
        for (device, seen) in seen.iter_mut().enumerate() {
            let here = self.cgroup_of(device).unwrap_or(self.homes[device]);
            let Some(seen) =
                seen.as_mut().filter(|_| self.devices[device].is_there && !self.devices[device].hold.covers)
            else {
                continue;
            };
            let Some(Cgroups { choose, .. }) = &mut self.cgroups else { return };
            let exempt = || self.sampler.exempt();
            match choose.sample(device, seen, &self.writers[device], self.groups[here].limits, time, &exempt)
            {
                Some(Switch::Cgroup { actuator, why }) => self.turn_cgroup(device, actuator, &why, at_ms),
                Some(Switch::Back { why }) => self.go_home(device, at_ms, &why),
                Some(Switch::Not { why }) => {
                    let what = format!("bulk writers go past the page cache, but {why}");
                    self.report_of(device, at_ms, Effect::Remark { what });
                }
                None => {}
            }
        }
    }

    /// Takes the limit of a cgroup over, and lets go of that of dirty pages.
    fn turn_cgroup(&mut self, device: usize, actuator: Actuator, why: &str, at_ms: u64) {
        let Some(Cgroups { choose, take }) = &mut self.cgroups else { return };
        let verb = self.about.turns();
        let what = match take(actuator.clone(), device) {
            Ok(group) => {
                self.groups[self.homes[device]].devices.retain(|at| *at != device);
                self.groups.push(group);
                self.devices[device].change_actuator(true);
                format!("{verb} {actuator}: {why}")
            }
            Err(error) => {
                let what = format!("{actuator} cannot be set: {error}");
                choose.is_refused(device, &what);
                what
            }
        };
        self.report_of(device, at_ms, Effect::Remark { what });
    }

    /// Lets go of the limit of a cgroup, and takes that of dirty pages over again.
    pub(super) fn go_home(&mut self, device: usize, at_ms: u64, why: &str) {
        let Some(at) = self.cgroup_of(device) else { return };
        let ended = self.groups.remove(at).end();
        let home = &mut self.groups[self.homes[device]];
        home.devices.push(device);
        self.devices[device].change_actuator(false);
        if let Some(Cgroups { choose, .. }) = &mut self.cgroups {
            choose.is_back(device);
        }
        let verb = self.about.turns();
        let mut what = vec![format!("{verb} {} again: {why}", home.actuator)];
        match ended {
            Ok(sentences) => what.extend(sentences),
            Err(error) => what.push(error.to_string()),
        }
        self.report_of(device, at_ms, Effect::Remark { what: what.join("; ") });
    }

    /// A cgroup goes with the last of its processes, and its limit with it. One that somebody else turns is left to them,
    /// and not the device with it: whoever the cgroup is given to may be the one who floods.
    pub(super) fn leave_cgroups_that_are_not_held(&mut self, at_ms: u64) {
        const CHANGED_BY_OTHERS: &str = "another program changed the cgroup's limit";
        let of_cgroups = self.groups.iter().skip(self.first_of_cgroups);
        let not_held = of_cgroups.filter_map(|group| match group {
            Group { down: Some(_), .. } => Some((group.devices.clone(), CHANGED_BY_OTHERS)),
            group => (!group.is_there()).then(|| (group.devices.clone(), "the cgroup is gone")),
        });
        for (devices, why) in not_held.collect::<Vec<_>>() {
            for device in devices {
                if why == CHANGED_BY_OTHERS
                    && let Some(Cgroups { choose, .. }) = &mut self.cgroups
                {
                    choose.is_refused(device, why);
                }
                self.go_home(device, at_ms, why);
            }
        }
    }
}
