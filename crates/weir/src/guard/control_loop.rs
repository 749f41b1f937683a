//! The loop: sample, decide, set, report; ten times a second, until somebody ends it.

mod cgroups;
mod exact;
mod privates;
mod shares;

use std::time::Duration;

use weir_control::{
    DeviceHistory, DeviceState, Effect, History, Noted, Parameters, Sample, Second, SensorSource, Standing,
    State, state,
};

use super::cost::Meter;
use super::device::{GuardedDevice, Law};
use super::group::{Group, WHOLE};
use super::history::Pages;
use super::private::Privates;
use super::reporter::{Reporter, status_line};
use super::sampler::{Sampler, Seen, Time};
use super::second::Limit;
use super::writers::Writers;
use crate::clock::{Moment, rfc3339};
use crate::daemon::Board;
use crate::daemon::notify::Manager;

use self::exact::Exact;

pub use cgroups::Cgroups;
pub use shares::{Shares, TakeAlone};

/// Samples a second.
const SAMPLES_PER_SECOND: u64 = 10;
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

impl About {
    /// What it does with a limit, in a word or two.
    fn turns(&self) -> &'static str {
        if self.shadow { "would turn" } else { "turns" }
    }
}

/// Devices under guard.
pub struct ControlLoop {
    about: About,
    devices: Vec<GuardedDevice>,
    /// Limits of dirty pages, then those of cgroups: each device is under one of all.
    groups: Vec<Group>,
    /// How many are of dirty pages.
    first_of_cgroups: usize,
    /// By device, which limit of dirty pages is turned where no cgroup's is.
    homes: Vec<usize>,
    cgroups: Option<Cgroups>,
    privates: Option<Privates>,
    shares: Shares,
    exact: Vec<Exact>,
    /// The bulk writers of each device.
    writers: Vec<Writers>,
    sampler: Box<dyn Sampler>,
    make_law: MakeLaw,
    reporter: Reporter,
    pages: Option<Pages>,
    board: Board<State>,
    manager: Manager,
    meter: Meter,
    began: Moment,
    /// When the record of the history began, since the guard did.
    chapter_ms: u64,
    last: Moment,
    samples: u64,
    decisions: Vec<Noted>,
}

/// What a control loop is made of.
pub struct Parts {
    /// What stays the same.
    pub about: About,
    /// The devices.
    pub devices: Vec<GuardedDevice>,
    /// Their limits of dirty pages.
    pub groups: Vec<Group>,
    /// How cgroups are throttled, where that is allowed.
    pub cgroups: Option<Cgroups>,
    /// The private limits of bulk writers' cgroups, where those may be turned.
    pub privates: Option<Privates>,
    /// How the devices' own shares are found and taken.
    pub shares: Shares,
    /// The bulk writers of each device.
    pub writers: Vec<Writers>,
    /// What samples.
    pub sampler: Box<dyn Sampler>,
    /// Makes laws.
    pub make_law: MakeLaw,
    /// What tells.
    pub reporter: Reporter,
    /// Whether a history is kept.
    pub history: bool,
    /// Where the state is shown.
    pub board: Board<State>,
    /// Who started it.
    pub manager: Manager,
}

impl ControlLoop {
    /// Begins: one sample, which counts for nothing, and a first state.
    pub fn begin(parts: Parts) -> ControlLoop {
        let now = Moment::now();
        let Parts {
            about,
            devices,
            groups,
            cgroups,
            privates,
            shares,
            writers,
            mut sampler,
            make_law,
            reporter,
            history,
            board,
            manager,
        } = parts;
        sampler.sample(now);
        let pages = history.then(|| Pages::new(devices.len()));
        let of_device_index = |at| groups.iter().position(|group| group.devices.contains(&at)).unwrap_or(0);
        let homes = (0..devices.len()).map(of_device_index).collect();
        let exact = devices.iter().map(|_| Exact::default()).collect();
        ControlLoop {
            about,
            devices,
            first_of_cgroups: groups.len(),
            groups,
            homes,
            cgroups,
            privates,
            shares,
            exact,
            writers,
            sampler,
            make_law,
            reporter,
            pages,
            board,
            manager,
            meter: Meter::new(),
            began: now,
            chapter_ms: 0,
            last: now,
            samples: 0,
            decisions: Vec::new(),
        }
    }

    /// Looks until told to end. `rearm`: asked at each sample, whether to guard again a device whose limit it had yielded.
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
            self.sample(now);
            if self.samples == SAMPLES_PER_SECOND {
                self.manager.ready();
            }
            // A sample that was missed is not made up for.
            let late_ns = Moment::now().awake_ns.saturating_sub(next_ns);
            next_ns += look_ns * (1 + late_ns / look_ns);
        }
    }

    /// In milliseconds since the guard began, sleep included.
    fn at_ms(&self, now: Moment) -> u64 {
        now.boot_ns.saturating_sub(self.began.boot_ns) / 1_000_000
    }

    /// One sample, and all that follows from it.
    pub fn sample(&mut self, now: Moment) {
        let (before, at_ms) = (std::mem::replace(&mut self.last, now), self.at_ms(now));
        let elapsed_ns = now.awake_ns.saturating_sub(before.awake_ns);
        let mut seen = self.sampler.sample(now);
        let slept_ns = now.slept_since(before);
        if slept_ns > SLEPT_NS {
            self.woke(at_ms, slept_ns / 1_000_000);
            return;
        }
        if elapsed_ns > self.about.parameters.look_ns * 3 / 2 {
            self.meter.late();
        }
        self.samples += 1;
        for group in &mut self.groups {
            group.sample();
        }
        self.notice_who_is_there(&seen, at_ms);
        let time = Time { now_ns: now.awake_ns, elapsed_ns };
        for (writers, seen) in self.writers.iter_mut().zip(&seen) {
            match seen {
                Some(seen) => writers.push(seen, time),
                None => writers.forget(),
            }
        }
        self.sample_privates(&seen, time, at_ms);
        self.choose_limits(&mut seen, time, at_ms);
        self.disturb_neighbours(now.awake_ns, at_ms);
        let mut at = 0;
        // A device that goes takes the group of its cgroup with it, which is a later one.
        while at < self.groups.len() {
            self.guard(at, &mut seen, now, elapsed_ns, at_ms);
            at += 1;
        }
        self.leave_cgroups_that_are_not_held(at_ms);
        self.manager.beat();
        if self.samples.is_multiple_of(SAMPLES_PER_SECOND) {
            self.end_second(now, at_ms);
        }
    }

    /// What was looked at spans the sleep: it counts for nothing, and what the laws have in their windows is void.
    fn woke(&mut self, at_ms: u64, ms: u64) {
        for at in 0..self.devices.len() {
            self.forget_privates(at, at_ms);
            self.writers[at].forget();
            let number = self.devices[at].number;
            self.devices[at].begin_anew(number, (self.make_law)());
        }
        self.report(
            None,
            Noted { at_ms, device: String::new(), decision: None, effect: Effect::Slept { ms } },
        );
    }

    /// Devices that went, and those that came back.
    fn notice_who_is_there(&mut self, seen: &[Option<Seen>], at_ms: u64) {
        for (at, seen) in seen.iter().enumerate() {
            let was_there = self.devices[at].is_there;
            // With another share it is gone for a while, and taken over as it is then.
            let is_another = was_there && self.sampler.is_remounted(at) && self.has_another_share(at);
            let seen = seen.as_ref().filter(|_| !is_another);
            if seen.is_none() && self.cgroup_of(at).is_some() {
                self.go_home(at, at_ms, "the device is gone");
            }
            match seen {
                None if was_there => {
                    self.forget_privates(at, at_ms);
                    (self.devices[at].is_there, self.devices[at].wish) = (false, None);
                    self.let_go_of_share(at);
                    self.report_of(at, at_ms, Effect::Gone);
                }
                Some(seen) if !was_there && self.samples.is_multiple_of(SAMPLES_PER_SECOND) => {
                    let name = self.sampler.name(at);
                    // Its own limit is another file now, which may not be there yet.
                    match self.take_again(at, &name, seen.number) {
                        Err(why) if self.devices[at].not_taken.as_ref() == Some(&why) => {}
                        Err(why) => {
                            self.devices[at].not_taken = Some(why.clone());
                            self.report_of(at, at_ms, Effect::Refused { why });
                        }
                        Ok(turns) => {
                            self.devices[at].begin_anew(seen.number, (self.make_law)());
                            self.call(at, &name, at_ms);
                            self.report_of(at, at_ms, Effect::Back);
                            turns
                                .into_iter()
                                .for_each(|what| self.report_of(at, at_ms, Effect::Remark { what }));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// A device that is back may have another name, or be another one.
    fn call(&mut self, at: usize, name: &str, at_ms: u64) {
        if self.devices[at].name == name {
            return;
        }
        let what = format!("{name} is guarded in its place");
        self.report_of(at, at_ms, Effect::Remark { what });
        self.devices[at].call(name);
        self.privates.iter_mut().for_each(|privates| privates.call(at, name));
    }

    /// A flood disturbs the syncs of every device on the same disk: what those do meanwhile is not what they do undisturbed.
    fn disturb_neighbours(&mut self, now_ns: u64, at_ms: u64) {
        let floods: Vec<bool> = self.devices.iter().map(|device| device.floods_others(now_ns)).collect();
        for at in 0..self.devices.len() {
            let flooded = self.sampler.neighbours(at).iter().copied().find(|other| floods[*other]);
            if self.devices[at].disturb(flooded.is_some(), now_ns)
                && let Some(other) = flooded
            {
                let writers = self.writers[other].watch.writers();
                let who = writers.first().map_or("somebody", |writer| writer.comm.as_str());
                let name = &self.devices[other].name;
                let what = format!("it stands on the same disk as {name}, which {who} floods");
                self.report_of(at, at_ms, Effect::Remark { what });
            }
        }
    }

    /// Asks the laws of those who share a limit, and leads it. Takes what was seen of them: each has one limit.
    fn guard(&mut self, at: usize, seen: &mut [Option<Seen>], now: Moment, elapsed_ns: u64, at_ms: u64) {
        let group = &mut self.groups[at];
        for &device in &group.devices {
            let post_seen = seen[device].take().filter(|_| self.devices[device].is_there);
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
                self.devices[device].sample(sample);
            }
        }
        let members = group.devices.clone();
        let whole = self.devices.iter().zip(&self.homes).any(|(device, home)| *home == at && device.is_exact);
        let wishes = members.iter().filter_map(|device| self.devices[*device].wish);
        let wishes = wishes.chain(whole.then_some(WHOLE));
        let effect = group.lead(wishes, now.awake_ns).or_else(|| group.beat(now.awake_ns));
        let is_of_cgroup = at >= self.first_of_cgroups;
        let effect = effect.filter(|effect| !is_of_cgroup || *effect != Effect::Gone);
        if members.is_empty() {
            return self.tell_those_away(at, effect, at_ms);
        }
        if effect == Some(Effect::Gone) {
            members.iter().for_each(|device| self.is_gone(*device, at_ms));
        }
        // The one that is held closest is the one it was done for.
        let cause = members
            .iter()
            .copied()
            .filter(|device| self.devices[*device].is_there || effect == Some(Effect::Gone))
            .min_by_key(|device| self.devices[*device].wish.unwrap_or(u64::MAX));
        for device in members {
            let is_cause = Some(device) == cause;
            let effect = effect.clone().filter(|_| is_cause).unwrap_or(Effect::None);
            self.count(device, &effect);
            match self.devices[device].told(at_ms, effect) {
                Some(Some(noted)) => self.report(Some(device), noted),
                Some(None) => self.leave_out(),
                None => {}
            }
        }
    }

    /// What came of a limit whose devices all have a cgroup's turned instead.
    fn tell_those_away(&mut self, home: usize, effect: Option<Effect>, at_ms: u64) {
        let Some(effect @ (Effect::Refused { .. } | Effect::StoodDown { .. } | Effect::Gone)) = effect else {
            return;
        };
        let those = self.homes.iter().enumerate().filter(|(_, of)| **of == home).map(|(device, _)| device);
        for device in those.collect::<Vec<_>>() {
            if effect == Effect::Gone {
                self.go_home(device, at_ms, "the device is gone");
                self.is_gone(device, at_ms);
            }
            self.count(device, &effect);
            self.report_of(device, at_ms, effect.clone());
        }
    }

    /// Whatever has its name now is another device.
    fn is_gone(&mut self, device: usize, at_ms: u64) {
        self.forget_privates(device, at_ms);
        self.devices[device].is_there = false;
    }

    fn count(&mut self, device: usize, effect: &Effect) {
        let totals = &mut self.devices[device].totals;
        match effect {
            Effect::Refused { .. } => totals.refused += 1,
            Effect::StoodDown { .. } => totals.stood_down += 1,
            _ => {}
        }
    }

    /// Guards again a device whose limit it had yielded.
    fn rearm(&mut self, at_ms: u64) {
        for at in 0..self.groups.len() {
            if self.groups[at].down.is_none() {
                continue;
            }
            let what = match self.groups[at].take_again() {
                Ok(_) => format!("guards again with {}", self.groups[at].actuator),
                Err(error) => format!("still yields: {error}"),
            };
            for device in self.groups[at].devices.clone() {
                let number = self.devices[device].number;
                self.devices[device].begin_anew(number, (self.make_law)());
                self.report_of(device, at_ms, Effect::Remark { what: what.clone() });
            }
        }
    }

    fn report_of(&mut self, device: usize, at_ms: u64, effect: Effect) {
        let name = self.devices[device].name.clone();
        self.report(Some(device), Noted { at_ms, device: name, decision: None, effect });
    }

    /// Of a device, or of the guard itself.
    fn report(&mut self, of: Option<usize>, noted: Noted) {
        self.reporter.noted(&noted);
        if let Some(pages) = &mut self.pages {
            let at_ms = noted.at_ms.saturating_sub(self.chapter_ms);
            let device = of.map_or(String::new(), |of| self.devices[of].in_history.clone());
            pages.noted(&Noted { at_ms, device, ..noted.clone() });
        }
        if self.decisions.len() == DECISIONS {
            self.decisions.remove(0);
        }
        self.decisions.push(noted);
    }

    fn leave_out(&mut self) {
        self.reporter.leave_out();
        if let Some(pages) = &mut self.pages {
            pages.left_out();
        }
    }

    fn end_second(&mut self, now: Moment, at_ms: u64) {
        let first_of_cgroups = self.first_of_cgroups;
        for (at, group) in self.groups.iter().enumerate() {
            let limit = Limit {
                bytes: if self.about.shadow { group.limits.saved_bytes } else { group.limits.now_bytes },
                of_cgroup: at >= first_of_cgroups,
                in_force: group.down.is_none() && !self.about.shadow,
            };
            for &at in &group.devices {
                let device = &mut self.devices[at];
                let private = self.privates.as_ref().map(|privates| privates.wish(at)).unwrap_or_default();
                let ended = device.end_second(at_ms, &limit, private, self.about.shadow);
                let Some(second) = ended.filter(|_| device.is_there) else { continue };
                if let Some(pages) = &mut self.pages {
                    let at_ms = at_ms.saturating_sub(self.chapter_ms);
                    pages.second(at, Second { at_ms, ..second });
                }
            }
        }
        if self.samples.is_multiple_of(60 * SAMPLES_PER_SECOND) {
            let minutes: Vec<_> = self.devices.iter_mut().map(GuardedDevice::end_minute).collect();
            minutes.iter().for_each(|minute| self.reporter.minute(minute));
        }
        if self.samples == SAMPLES_PER_SECOND {
            // Now it is known where latencies come from.
            self.begin_chapter();
        }
        let in_chapter_ms = at_ms - self.chapter_ms;
        if let Some(pages) = &mut self.pages {
            if let Some(lines) = pages.due(in_chapter_ms) {
                self.reporter.history(lines);
            }
            if pages.is_full(in_chapter_ms) {
                self.reporter.history(pages.take(in_chapter_ms));
                self.chapter_ms = at_ms;
                self.pages = Some(Pages::new(self.devices.len()));
                self.devices.iter_mut().for_each(|device| device.in_history.clone_from(&device.name));
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
            self.reporter.begin_history(&history);
        }
    }

    /// What a history begins with.
    fn history(&self) -> History {
        // A cgroup's limit comes and goes; each of its seconds says so.
        let device = |(device, home): (&GuardedDevice, &usize)| {
            let group = &self.groups[*home];
            DeviceHistory {
                name: device.in_history.clone(),
                number: device.number,
                actuator: group.actuator.clone(),
                sensor: device.sensor().unwrap_or(SensorSource::Diskstats),
                saved_bytes: group.limits.saved_bytes,
                floor_bytes: group.limits.floor_bytes,
                seconds: Vec::new(),
            }
        };
        History {
            shadow: self.about.shadow,
            target: self.about.parameters.target,
            protect: self.about.protect.clone(),
            devices: self.devices.iter().zip(&self.homes).map(device).collect(),
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
                let state = self.devices[*at].state(standing.clone(), &group.actuator, &group.limits)?;
                let private_actuator = self.privates.as_ref().and_then(|privates| privates.actuator(*at));
                let private_cgroups = self.privates.as_ref().map_or(0, |privates| privates.held(*at));
                Some((*at, DeviceState { private_cgroups, private_actuator, ..state }))
            };
            devices.extend(group.devices.iter().filter_map(state));
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
        let why_not = |(at, device): (usize, &GuardedDevice)| {
            let why = self.cgroups.as_ref()?.choose.why_not(at)?;
            Some(format!("{}: bulk writers go past the page cache, but {why}", device.name))
        };
        let of_private = |(at, device): (usize, &GuardedDevice)| -> Vec<String> {
            let remarks = self.privates.iter().flat_map(|privates| privates.remarks(at));
            remarks.map(|remark| format!("{}: {remark}", device.name)).collect()
        };
        let devices = || self.devices.iter().enumerate();
        let remarks = self.sampler.remarks().into_iter().chain(devices().filter_map(why_not));
        remarks.chain(devices().flat_map(of_private)).collect()
    }

    /// Restores the baseline, then tells the rest. The last state, and what could not be restored.
    pub fn end(mut self) -> (State, Vec<String>) {
        self.manager.stopping();
        let mut failed = Vec::new();
        for group in self.groups.iter_mut().chain(self.exact.iter_mut().filter_map(Exact::taken)) {
            match group.end() {
                Ok(sentences) => sentences.iter().for_each(|sentence| self.reporter.remark(sentence)),
                Err(error) => failed.push(error.to_string()),
            }
        }
        if let Some((said, not_back)) = self.privates.as_mut().map(Privates::end) {
            said.iter().for_each(|sentence| self.reporter.remark(sentence));
            failed.extend(not_back);
        }
        let now = Moment::now();
        let at_ms = self.at_ms(now);
        if let Some(mut pages) = self.pages.take() {
            self.reporter.history(pages.take(at_ms.saturating_sub(self.chapter_ms)));
        }
        let state = self.state(now, at_ms);
        self.reporter.end();
        (state, failed)
    }
}

#[cfg(test)]
mod tests;
