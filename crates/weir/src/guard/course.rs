//! The loop: look, decide, turn, tell; ten times a second, until somebody ends it.

mod cgroups;
mod privates;

use std::time::Duration;

use jiff::Zoned;
use weir_control::{
    DeviceHistory, DeviceState, Effect, History, Noted, Parameters, Sample, Second, SensorSource, Standing,
    State, state,
};

use super::cost::Meter;
use super::eyes::{Eyes, Seen};
use super::group::Group;
use super::history::Pages;
use super::listen::Board;
use super::notify::Manager;
use super::post::{Law, Post};
use super::private::Privates;
use super::tell::{Teller, status_line};
use super::throttle::Time;
use crate::clock::Moment;

pub use cgroups::Cgroups;

/// Looks a second.
const LOOKS: u64 = 10;
/// Asleep for longer than this, the machine slept; less is a difference between two clocks.
const SLEPT_NS: u64 = 1_000_000_000;
/// Decisions that a state has.
const DECISIONS: usize = 20;

/// Makes a law for a device of which nothing is known.
pub type MakeLaw = Box<dyn Fn() -> Box<dyn Law>>;

/// What stays the same.
pub struct About {
    /// When it began, RFC 3339 with offset.
    pub since: String,
    /// It only says what it would do.
    pub shadow: bool,
    /// What is to be held, and how.
    pub parameters: Parameters,
    /// Whose syncs, in words.
    pub protect: String,
}

/// Devices under guard.
pub struct Course {
    about: About,
    posts: Vec<Post>,
    /// Limits of dirty pages, as the course began, then those of cgroups: each device is under one of all.
    groups: Vec<Group>,
    /// By device, which limit of dirty pages is turned where no cgroup's is.
    homes: Vec<usize>,
    cgroups: Option<Cgroups>,
    privates: Option<Privates>,
    eyes: Box<dyn Eyes>,
    make_law: MakeLaw,
    teller: Teller,
    pages: Option<Pages>,
    board: Board,
    manager: Manager,
    meter: Meter,
    began: Moment,
    /// When the record of the history began, since the guard did.
    chapter_ms: u64,
    last: Moment,
    looks: u64,
    decisions: Vec<Noted>,
}

/// What a course is made of.
pub struct Parts {
    /// What stays the same.
    pub about: About,
    /// The devices.
    pub posts: Vec<Post>,
    /// Their limits of dirty pages.
    pub groups: Vec<Group>,
    /// How cgroups are throttled, where that is allowed.
    pub cgroups: Option<Cgroups>,
    /// The private limits of bulk writers' cgroups, where those may be turned.
    pub privates: Option<Privates>,
    /// What looks.
    pub eyes: Box<dyn Eyes>,
    /// Makes laws.
    pub make_law: MakeLaw,
    /// What tells.
    pub teller: Teller,
    /// Whether a history is kept.
    pub history: bool,
    /// Where the state is shown.
    pub board: Board,
    /// Who started it.
    pub manager: Manager,
}

impl Course {
    /// Begins: one look, which counts for nothing, and a first state.
    pub fn begin(parts: Parts) -> Course {
        let now = Moment::now();
        let Parts {
            about,
            posts,
            groups,
            cgroups,
            privates,
            mut eyes,
            make_law,
            teller,
            history,
            board,
            manager,
        } = parts;
        eyes.look(now);
        let pages = history.then(|| Pages::new(posts.len()));
        let of_post = |at| groups.iter().position(|group| group.posts.contains(&at)).unwrap_or(0);
        let homes = (0..posts.len()).map(of_post).collect();
        Course {
            about,
            posts,
            groups,
            homes,
            cgroups,
            privates,
            eyes,
            make_law,
            teller,
            pages,
            board,
            manager,
            meter: Meter::new(),
            began: now,
            chapter_ms: 0,
            last: now,
            looks: 0,
            decisions: Vec::new(),
        }
    }

    /// Looks until told to end. `rearm`: asked at each look, whether to guard again what was stood down from.
    pub fn run(&mut self, mut goes_on: impl FnMut(Moment) -> bool, mut rearm: impl FnMut() -> bool) {
        let look_ns = self.about.parameters.look_ns.max(1);
        let mut next_ns = self.last.awake_ns + look_ns;
        loop {
            let now = Moment::now();
            if now.awake_ns < next_ns {
                std::thread::sleep(Duration::from_nanos(next_ns - now.awake_ns));
            }
            let now = Moment::now();
            if !goes_on(now) {
                return;
            }
            if rearm() {
                self.rearm(self.at_ms(now));
            }
            self.look(now);
            if self.looks == LOOKS {
                self.manager.ready();
            }
            // A look that was missed is not made up for.
            let late_ns = Moment::now().awake_ns.saturating_sub(next_ns);
            next_ns += look_ns * (1 + late_ns / look_ns);
        }
    }

    /// In milliseconds since the guard began, sleep included.
    fn at_ms(&self, now: Moment) -> u64 {
        now.boot_ns.saturating_sub(self.began.boot_ns) / 1_000_000
    }

    /// One look, and all that follows from it.
    pub fn look(&mut self, now: Moment) {
        let (before, at_ms) = (std::mem::replace(&mut self.last, now), self.at_ms(now));
        let elapsed_ns = now.awake_ns.saturating_sub(before.awake_ns);
        let mut seen = self.eyes.look(now);
        let slept_ns = now.slept_since(before);
        if slept_ns > SLEPT_NS {
            self.woke(at_ms, slept_ns / 1_000_000);
            return;
        }
        if elapsed_ns > self.about.parameters.look_ns * 3 / 2 {
            self.meter.late();
        }
        self.looks += 1;
        for group in &mut self.groups {
            group.look();
        }
        self.notice_who_is_there(&seen, at_ms);
        let time = Time { now_ns: now.awake_ns, elapsed_ns };
        self.look_at_privates(&seen, time, at_ms);
        self.choose_limits(&mut seen, time, at_ms);
        for at in 0..self.groups.len() {
            self.guard(at, &mut seen, now, elapsed_ns, at_ms);
        }
        self.leave_cgroups_that_are_not_held(at_ms);
        self.manager.beat();
        if self.looks.is_multiple_of(LOOKS) {
            self.end_second(now, at_ms);
        }
    }

    /// What was looked at spans the sleep: it counts for nothing, and what the laws have in their windows is void; what they learned is not.
    fn woke(&mut self, at_ms: u64, ms: u64) {
        for at in 0..self.posts.len() {
            self.forget_privates(at, at_ms);
            self.posts[at].wake((self.make_law)());
        }
        self.tell(Noted { at_ms, device: String::new(), decision: None, effect: Effect::Slept { ms } });
    }

    /// Devices that went, and those that came back.
    fn notice_who_is_there(&mut self, seen: &[Option<Seen>], at_ms: u64) {
        for (at, seen) in seen.iter().enumerate() {
            if seen.is_none() && self.cgroup_of(at).is_some() {
                self.go_home(at, at_ms, "the device is gone");
            }
            let was_there = self.posts[at].is_there;
            let alone = self.groups.iter().position(|group| group.of_device && group.posts.contains(&at));
            match seen {
                None if was_there => {
                    self.forget_privates(at, at_ms);
                    (self.posts[at].is_there, self.posts[at].wish) = (false, None);
                    if let Some(group) = alone {
                        self.groups[group].let_go();
                    }
                    self.tell_of(at, at_ms, Effect::Gone);
                }
                Some(seen) if !was_there && self.looks.is_multiple_of(LOOKS) => {
                    // Its own limit is another file now, which may not be there yet.
                    let taken = alone.map_or(Ok(true), |group| self.groups[group].take_again());
                    if let Err(error) = taken {
                        let why = error.to_string();
                        if self.posts[at].not_taken.as_ref() != Some(&why) {
                            self.posts[at].not_taken = Some(why.clone());
                            self.tell_of(at, at_ms, Effect::Refused { why });
                        }
                        continue;
                    }
                    self.posts[at].begin_anew(seen.number, (self.make_law)());
                    self.tell_of(at, at_ms, Effect::Back);
                }
                _ => {}
            }
        }
    }

    /// Asks the laws of those who share a limit, and leads it. What was seen of them is taken: each has one limit.
    fn guard(&mut self, at: usize, seen: &mut [Option<Seen>], now: Moment, elapsed_ns: u64, at_ms: u64) {
        let group = &mut self.groups[at];
        for &post in &group.posts {
            let post_seen = seen[post].take().filter(|_| self.posts[post].is_there);
            if let Some(seen) = post_seen {
                let sample = Sample {
                    device: seen.number,
                    at_ns: now.awake_ns,
                    elapsed_ns,
                    sensor: seen.sensor,
                    syncs: seen.syncs,
                    bulk: seen.bulk,
                    flow: seen.flow,
                    limits: group.limits,
                };
                self.posts[post].look(sample);
            }
        }
        let members = group.posts.clone();
        let wishes = members.iter().filter_map(|post| self.posts[*post].wish);
        let effect = group.lead(wishes, now.awake_ns).or_else(|| group.beat());
        let is_of_cgroup = at >= self.first_of_cgroups();
        let effect = effect.filter(|effect| !is_of_cgroup || *effect != Effect::Gone);
        if effect == Some(Effect::Gone) {
            // Whatever has its name now is another device.
            members.iter().for_each(|post| self.posts[*post].is_there = false);
        }
        // The one that is held closest is the one it was done for.
        let cause = members
            .iter()
            .copied()
            .filter(|post| self.posts[*post].is_there || effect == Some(Effect::Gone))
            .min_by_key(|post| self.posts[*post].wish.unwrap_or(u64::MAX));
        for post in members {
            let is_cause = Some(post) == cause;
            let effect = effect.clone().filter(|_| is_cause).unwrap_or(Effect::None);
            self.count(post, &effect);
            match self.posts[post].told(at_ms, effect) {
                Some(Some(noted)) => self.tell(noted),
                Some(None) => self.leave_out(),
                None => {}
            }
        }
    }

    fn count(&mut self, post: usize, effect: &Effect) {
        let totals = &mut self.posts[post].totals;
        match effect {
            Effect::Refused { .. } => totals.refused += 1,
            Effect::StoodDown { .. } => totals.stood_down += 1,
            _ => {}
        }
    }

    /// Guards again what was stood down from.
    fn rearm(&mut self, at_ms: u64) {
        for at in 0..self.groups.len() {
            if self.groups[at].down.is_none() {
                continue;
            }
            let what = match self.groups[at].take_again() {
                Ok(_) => format!("guards again with {}", self.groups[at].lever),
                Err(error) => format!("still yields: {error}"),
            };
            for post in self.groups[at].posts.clone() {
                let number = self.posts[post].number;
                self.posts[post].begin_anew(number, (self.make_law)());
                self.tell_of(post, at_ms, Effect::Remark { what: what.clone() });
            }
        }
    }

    fn tell_of(&mut self, post: usize, at_ms: u64, effect: Effect) {
        let device = self.posts[post].name.clone();
        self.tell(Noted { at_ms, device, decision: None, effect });
    }

    fn tell(&mut self, noted: Noted) {
        self.teller.noted(&noted);
        if let Some(pages) = &mut self.pages {
            pages.noted(&Noted { at_ms: noted.at_ms.saturating_sub(self.chapter_ms), ..noted.clone() });
        }
        if self.decisions.len() == DECISIONS {
            self.decisions.remove(0);
        }
        self.decisions.push(noted);
    }

    fn leave_out(&mut self) {
        self.teller.leave_out();
        if let Some(pages) = &mut self.pages {
            pages.left_out();
        }
    }

    fn end_second(&mut self, now: Moment, at_ms: u64) {
        for group in &self.groups {
            let limit_bytes =
                if self.about.shadow { group.limits.saved_bytes } else { group.limits.now_bytes };
            for &at in &group.posts {
                let post = &mut self.posts[at];
                let Some(second) = post.end_second(at_ms, limit_bytes).filter(|_| post.is_there) else {
                    continue;
                };
                if let Some(pages) = &mut self.pages {
                    let at_ms = at_ms.saturating_sub(self.chapter_ms);
                    pages.second(at, Second { at_ms, ..second });
                }
            }
        }
        if self.looks.is_multiple_of(60 * LOOKS) {
            let minutes: Vec<_> = self.posts.iter_mut().map(Post::end_minute).collect();
            minutes.iter().for_each(|minute| self.teller.minute(minute));
        }
        if self.looks == LOOKS {
            // Now it is known where latencies come from.
            self.begin_chapter();
        }
        let in_chapter_ms = at_ms - self.chapter_ms;
        if let Some(pages) = &mut self.pages {
            if let Some(lines) = pages.due(in_chapter_ms) {
                self.teller.history(lines);
            }
            if pages.is_full(in_chapter_ms) {
                self.teller.history(pages.take(in_chapter_ms));
                self.chapter_ms = at_ms;
                self.pages = Some(Pages::new(self.posts.len()));
                self.begin_chapter();
            }
        }
        let state = self.state(now, at_ms);
        self.manager.status(|| status_line(&state));
        self.board.publish(state);
    }

    fn begin_chapter(&mut self) {
        if self.pages.is_some() {
            let history = self.history();
            self.teller.begin_history(&history);
        }
    }

    /// What a history begins with.
    fn history(&self) -> History {
        let of_group = |group: &Group| {
            let device = |at: &usize| DeviceHistory {
                name: self.posts[*at].name.clone(),
                number: self.posts[*at].number,
                lever: group.lever.clone(),
                sensor: self.posts[*at].sensor().unwrap_or(SensorSource::Diskstats),
                saved_bytes: group.limits.saved_bytes,
                floor_bytes: group.limits.floor_bytes,
                seconds: Vec::new(),
            };
            group.posts.iter().map(|at| (*at, device(at))).collect::<Vec<_>>()
        };
        let mut devices: Vec<(usize, DeviceHistory)> = self.groups.iter().flat_map(of_group).collect();
        devices.sort_by_key(|(at, _)| *at);
        History {
            shadow: self.about.shadow,
            target: self.about.parameters.target,
            protect: self.about.protect.clone(),
            devices: devices.into_iter().map(|(_, device)| device).collect(),
            ..History::new()
        }
    }

    fn state(&mut self, now: Moment, at_ms: u64) -> State {
        let mut devices: Vec<(usize, DeviceState)> = Vec::new();
        for group in &self.groups {
            let standing = match &group.down {
                Some(why) => Standing::StoodDown { why: why.clone() },
                None if self.about.shadow => Standing::Shadow,
                None => Standing::Guarding,
            };
            let state = |at: &usize| {
                let private = self.privates.as_ref().and_then(|privates| privates.lever(*at));
                let lever = private.as_ref().unwrap_or(&group.lever);
                Some((*at, self.posts[*at].state(standing.clone(), lever, &group.limits)?))
            };
            devices.extend(group.posts.iter().filter_map(state));
        }
        devices.sort_by_key(|(at, _)| *at);
        State {
            schema: state::SCHEMA.to_string(),
            weir_version: env!("CARGO_PKG_VERSION").to_string(),
            pid: std::process::id(),
            since: self.about.since.clone(),
            at: rfc3339(),
            at_ms,
            shadow: self.about.shadow,
            target: self.about.parameters.target,
            protect: self.about.protect.clone(),
            devices: devices.into_iter().map(|(_, device)| device).collect(),
            decisions: self.decisions.clone(),
            cost: self.meter.read(now.awake_ns),
            remarks: self.remarks(),
        }
    }

    fn remarks(&self) -> Vec<String> {
        let why_not = |(at, post): (usize, &Post)| {
            let why = self.cgroups.as_ref()?.choose.why_not(at)?;
            Some(format!("{}: bulk writers go past the page cache, but {why}", post.name))
        };
        let of_private = |(at, post): (usize, &Post)| -> Vec<String> {
            let remarks = self.privates.iter().flat_map(|privates| privates.remarks(at));
            remarks.map(|remark| format!("{}: {remark}", post.name)).collect()
        };
        let posts = || self.posts.iter().enumerate();
        let remarks = self.eyes.remarks().into_iter().chain(posts().filter_map(why_not));
        remarks.chain(posts().flat_map(of_private)).collect()
    }

    /// Puts back what was found, then tells the rest. The last state, and what could not be put back.
    pub fn end(mut self) -> (State, Vec<String>) {
        self.manager.stopping();
        let mut failed = Vec::new();
        for group in &mut self.groups {
            match group.end() {
                Ok(sentences) => sentences.iter().for_each(|sentence| self.teller.remark(sentence)),
                Err(error) => failed.push(error.to_string()),
            }
        }
        if let Some((said, not_back)) = self.privates.as_mut().map(Privates::end) {
            said.iter().for_each(|sentence| self.teller.remark(sentence));
            failed.extend(not_back);
        }
        let now = Moment::now();
        let at_ms = self.at_ms(now);
        if let Some(mut pages) = self.pages.take() {
            self.teller.history(pages.take(at_ms.saturating_sub(self.chapter_ms)));
        }
        let state = self.state(now, at_ms);
        self.teller.end();
        (state, failed)
    }
}

/// Now, with offset.
pub fn rfc3339() -> String {
    Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

#[cfg(test)]
mod tests;
