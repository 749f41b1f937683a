//! Private limits of bulk writers' cgroups in a course: the first choice, beside which no other limit has to hold them.

use weir_control::Effect;

use super::super::eyes::Seen;
use super::super::private::Judged;
use super::super::throttle::Time;
use super::Course;

impl Course {
    /// Looks at the bulk writers' cgroups of every device. Where they are held, the device's other limit is as it was found.
    pub(super) fn look_at_privates(&mut self, seen: &[Option<Seen>], time: Time, at_ms: u64) {
        for (post, seen) in seen.iter().enumerate() {
            let Some(privates) = &mut self.privates else { return };
            let Some(seen) = seen.as_ref().filter(|_| self.posts[post].is_there) else { continue };
            let (kept, need) = self.posts[post].judged(time.now_ns, privates.judged_from(post));
            let judged = Judged { kept, need, oldest_ns: self.posts[post].oldest_ns() };
            let protected = || self.eyes.protected();
            let said = privates.look(post, seen, time, judged, &protected);
            let covers = privates.covers(post);
            if covers && self.cgroup_of(post).is_some() {
                self.go_home(post, at_ms, "its cgroup has private limits now");
            }
            self.posts[post].set_aside(covers);
            said.into_iter().for_each(|what| self.tell_of(post, at_ms, Effect::Remark { what }));
        }
    }

    /// The device is gone, or what was seen spans a sleep.
    pub(super) fn forget_privates(&mut self, post: usize, at_ms: u64) {
        let Some(privates) = &mut self.privates else { return };
        let said = privates.forget(post);
        self.posts[post].set_aside(false);
        said.into_iter().for_each(|what| self.tell_of(post, at_ms, Effect::Remark { what }));
    }
}
