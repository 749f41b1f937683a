//! A device's own share of what may be dirty: that of the bdi that has its pages, which changes with the file systems that are mounted.

use weir_core::target::DeviceNumber;
use weir_host::knob::{Actuator, KnobError};

use super::super::device::GuardedDevice;
use super::super::group::Group;
use super::ControlLoop;
use super::exact::Exact;

/// Which actuator is the share of the device of this name and number by now; or why none is.
pub type FindShare = Box<dyn Fn(&str, DeviceNumber) -> Result<Actuator, String>>;

/// Takes an actuator over for the device of this index alone.
pub type TakeAlone = Box<dyn FnMut(Actuator, usize) -> Result<Group, KnobError>>;

/// How shares are found and taken.
pub struct Shares {
    /// Says which it is.
    pub find: FindShare,
    /// Takes it.
    pub take: TakeAlone,
}

impl Shares {
    /// Takes the share over of the device that has this index, the kernel's name and number; or says why not.
    pub fn take_over(&mut self, at: usize, name: &str, number: DeviceNumber) -> Result<Group, String> {
        let actuator = (self.find)(name, number)?;
        (self.take)(actuator, at).map_err(|error| error.to_string())
    }
}

impl ControlLoop {
    /// Whether another bdi has a device's pages than the one whose share is the guard's. Where several have them, that one stays.
    pub(super) fn has_another_share(&self, at: usize) -> bool {
        let home = &self.groups[self.homes[at]];
        let share = match &self.exact[at] {
            _ if home.of_device => home,
            Exact::Taken(share) => share,
            Exact::Unneeded | Exact::Not => return false,
        };
        let GuardedDevice { name, number, .. } = &self.devices[at];
        (self.shares.find)(name, *number).is_ok_and(|now| now.to_string() != share.actuator)
    }

    /// A device's own limit goes with it, and with the last of those that have the same.
    pub(super) fn let_go_of_share(&mut self, at: usize) {
        let home = &mut self.groups[self.homes[at]];
        let is_last = home.devices.iter().all(|device| *device == at || !self.devices[*device].is_there);
        if home.of_device && is_last {
            home.let_go();
        }
    }

    /// Takes a device's own limit over anew: under the same name it may be another bdi's by now, which is said.
    pub(super) fn take_again(
        &mut self,
        at: usize,
        name: &str,
        number: DeviceNumber,
    ) -> Result<Option<String>, String> {
        let before = self.homes[at];
        if !self.groups[before].of_device {
            return Ok(None);
        }
        let share = match (self.shares.find)(name, number) {
            Ok(share) => share,
            // Where several bdis have its pages, it is that of before.
            Err(why) if self.devices[at].name == name => {
                return self.groups[before].take_again().map(|_| None).map_err(|_| why);
            }
            Err(why) => return Err(why),
        };
        let (was, is) = (self.groups[before].actuator.clone(), share.to_string());
        // A file system over several devices has one bdi, which another of them may have taken.
        let homes = &self.groups[..self.first_of_cgroups];
        let home = match homes.iter().position(|home| home.is_there() && home.actuator == is) {
            Some(home) => home,
            None => {
                let group = (self.shares.take)(share, at).map_err(|error| error.to_string())?;
                self.place(at, group)
            }
        };
        let homes = &mut self.groups[..self.first_of_cgroups];
        homes.iter_mut().for_each(|home| home.devices.retain(|device| *device != at));
        homes[home].devices.push(at);
        self.homes[at] = home;
        Ok((was != is).then(|| format!("{} {is} now", self.about.turns())))
    }

    /// Puts a limit where its device had one, unless other devices have that, too. Those of cgroups stay behind all others.
    fn place(&mut self, at: usize, group: Group) -> usize {
        let mut places = 0..self.first_of_cgroups;
        let is_free = |place: &usize| {
            let mut homes = self.homes.iter().enumerate();
            homes.all(|(device, home)| device == at || home != place)
        };
        let place = places.find(is_free).unwrap_or(self.first_of_cgroups);
        if place < self.first_of_cgroups {
            self.groups[place] = group;
        } else {
            self.groups.insert(place, group);
            self.first_of_cgroups += 1;
        }
        place
    }
}
