//! The limits of cgroups in a course: taken in hand in place of a device's limit of dirty pages, and let go of again.

use weir_control::Effect;
use weir_host::knob::{KnobError, Lever};

use super::super::eyes::Seen;
use super::super::group::Group;
use super::super::throttle::{Choose, Switch, Time};
use super::Course;

/// Takes a cgroup's limit in hand for the device of this index.
pub type TakeCgroup = Box<dyn FnMut(Lever, usize) -> Result<Group, KnobError>>;

/// How cgroups are throttled.
pub struct Cgroups {
    /// Says which, and when.
    pub choose: Box<dyn Choose>,
    /// Does it.
    pub take: TakeCgroup,
}

impl Course {
    /// Limits of dirty pages come first, and stay where they are.
    pub(super) fn first_of_cgroups(&self) -> usize {
        self.homes.iter().max().map_or(0, |home| home + 1)
    }

    /// Where the limit of the device's cgroup is, if that is the one that is turned.
    pub(super) fn cgroup_of(&self, post: usize) -> Option<usize> {
        let of_cgroups = self.groups.iter().enumerate().skip(self.first_of_cgroups());
        of_cgroups.into_iter().find(|(_, group)| group.posts.contains(&post)).map(|(at, _)| at)
    }

    /// Whether another limit is to be turned for a device.
    pub(super) fn choose_limits(&mut self, seen: &mut [Option<Seen>], time: Time, at_ms: u64) {
        for (post, seen) in seen.iter_mut().enumerate() {
            let here = self.cgroup_of(post).unwrap_or(self.homes[post]);
            let Some(seen) =
                seen.as_mut().filter(|_| self.posts[post].is_there && !self.posts[post].is_aside)
            else {
                continue;
            };
            let Some(Cgroups { choose, .. }) = &mut self.cgroups else { return };
            let protected = || self.eyes.protected();
            match choose.look(post, seen, self.groups[here].limits, time, &protected) {
                Some(Switch::Cgroup { lever, why }) => self.turn_cgroup(post, lever, &why, at_ms),
                Some(Switch::Back { why }) => self.go_home(post, at_ms, &why),
                Some(Switch::Not { why }) => {
                    let what = format!("bulk writers go past the page cache, but {why}");
                    self.tell_of(post, at_ms, Effect::Remark { what });
                }
                None => {}
            }
        }
    }

    /// Takes the limit of a cgroup in hand, and lets go of that of dirty pages.
    fn turn_cgroup(&mut self, post: usize, lever: Lever, why: &str, at_ms: u64) {
        let Some(Cgroups { choose, take }) = &mut self.cgroups else { return };
        let verb = if self.about.shadow { "would turn" } else { "turns" };
        let what = match take(lever.clone(), post) {
            Ok(group) => {
                self.groups[self.homes[post]].posts.retain(|at| *at != post);
                self.groups.push(group);
                self.posts[post].change_lever(true);
                format!("{verb} {lever}: {why}")
            }
            Err(error) => {
                let what = format!("{lever} cannot be set: {error}");
                choose.is_refused(post, &what);
                what
            }
        };
        self.tell_of(post, at_ms, Effect::Remark { what });
    }

    /// Lets go of the limit of a cgroup, and takes that of dirty pages in hand again.
    pub(super) fn go_home(&mut self, post: usize, at_ms: u64, why: &str) {
        let Some(at) = self.cgroup_of(post) else { return };
        let ended = self.groups.remove(at).end();
        let home = &mut self.groups[self.homes[post]];
        home.posts.push(post);
        self.posts[post].change_lever(false);
        if let Some(Cgroups { choose, .. }) = &mut self.cgroups {
            choose.is_back(post);
        }
        let verb = if self.about.shadow { "would turn" } else { "turns" };
        let mut what = vec![format!("{verb} {} again: {why}", home.lever)];
        match ended {
            Ok(sentences) => what.extend(sentences),
            Err(error) => what.push(error.to_string()),
        }
        self.tell_of(post, at_ms, Effect::Remark { what: what.join("; ") });
    }

    /// A cgroup goes with the last of its processes, and its limit with it. One that somebody else turns is left to them,
    /// and not the device with it: whoever the cgroup is given to may be the one who floods.
    pub(super) fn leave_cgroups_that_are_not_held(&mut self, at_ms: u64) {
        const CHANGED_BY_OTHERS: &str = "another program changed the cgroup's limit";
        let of_cgroups = self.groups.iter().skip(self.first_of_cgroups());
        let not_held = of_cgroups.filter_map(|group| match group {
            Group { down: Some(_), .. } => Some((group.posts.clone(), CHANGED_BY_OTHERS)),
            group => (!group.is_there()).then(|| (group.posts.clone(), "the cgroup is gone")),
        });
        for (posts, why) in not_held.collect::<Vec<_>>() {
            for post in posts {
                if why == CHANGED_BY_OTHERS
                    && let Some(Cgroups { choose, .. }) = &mut self.cgroups
                {
                    choose.is_refused(post, why);
                }
                self.go_home(post, at_ms, why);
            }
        }
    }
}
