//! Private limits of bulk writers' cgroups in a control loop: the first choice, beside which no other limit has to hold them.

use weir_control::Effect;
use weir_control::private::Hold;

use super::super::private::Now;
use super::super::sampler::{Seen, Time};
use super::ControlLoop;

impl ControlLoop {
    /// Looks at the bulk writers' cgroups of every device. Where they are held, the device's other limit is at its baseline.
    pub(super) fn sample_privates(&mut self, seen: &[Option<Seen>], time: Time, at_ms: u64) {
        for (device, seen) in seen.iter().enumerate() {
            let Some(privates) = &mut self.privates else { return };
            let Some(seen) = seen.as_ref().filter(|_| self.devices[device].is_there) else {
                let said = privates.left(device);
                said.into_iter().for_each(|what| self.report_of(device, at_ms, Effect::Remark { what }));
                continue;
            };
            let judged = self.devices[device].judged(time.now_ns, privates.judged_from(device));
            let exempt = || self.sampler.exempt();
            let now = Now { seen, writers: &self.writers[device], time, exempt: &exempt };
            let said = privates.sample(device, &now, judged);
            let (by, holds) = (privates.hold(device), privates.held(device) > 0);
            if by.covers && self.cgroup_of(device).is_some() {
                self.go_home(device, at_ms, "its cgroup has private limits now");
            }
            self.set_aside(device, by, at_ms);
            self.lead_exact(device, holds, time.now_ns, at_ms);
            said.into_iter().for_each(|what| self.report_of(device, at_ms, Effect::Remark { what }));
        }
    }

    /// Where private limits hold all bulk writers, nothing is asked of the device's other limit.
    pub(super) fn set_aside(&mut self, device: usize, by: Hold, at_ms: u64) {
        if self.devices[device].set_aside(by) {
            let actuator = &self.groups[self.homes[device]].actuator;
            let verb = if self.about.shadow { "would let" } else { "lets" };
            let what = format!("{verb} go of {actuator}: the cgroups of bulk writers are held");
            self.report_of(device, at_ms, Effect::Remark { what });
        }
    }

    /// The device is gone, or what was seen spans a sleep.
    pub(super) fn forget_privates(&mut self, device: usize, at_ms: u64) {
        let Some(privates) = &mut self.privates else { return };
        let said = privates.forget(device);
        self.devices[device].set_aside(Hold::default());
        self.lead_exact(device, false, 0, at_ms);
        said.into_iter().for_each(|what| self.report_of(device, at_ms, Effect::Remark { what }));
    }
}
