//! One device under guard: its law, what it asks for, and what is told of it.

use weir_control::private::{Hold, Kept, Need, Wish};
use weir_control::{
    Decision, DeviceState, Effect, Guard, Limits, Noted, Sample, Second, SensorSource, Standing, Totals,
    Writer,
};
use weir_core::target::DeviceNumber;

use super::log::{Minute, News, wish};
use super::private::Judged;
use super::second::{Gather, Limit};

/// That another device on the same disk is flooded is told again after so long without.
const DISTURBED_NS: u64 = 60_000_000_000;

/// What decides.
pub trait Law {
    /// What to do now.
    fn step(&mut self, sample: &Sample) -> Decision;

    /// Another limit is turned from now on: of a cgroup, or of dirty pages.
    fn change_actuator(&mut self, of_cgroup: bool);

    /// What private limits do from now on.
    fn set_aside(&mut self, _by: Hold) {}

    /// Whether the device is known to be flooded, which disturbs others on the same disk.
    fn floods_others(&self, _at_ns: u64) -> bool {
        false
    }

    /// Another device on the same disk is flooded, or is no longer.
    fn disturb(&mut self, _is_disturbed: bool) {}

    /// What syncs keep since a moment, and whether there are any to protect.
    fn judged(&self, _at_ns: u64, _since_ns: u64) -> (Kept, Need) {
        (Kept::Unknown, Need::Nobody)
    }

    /// Whether private limits are to make a probe, to learn what syncs do undisturbed.
    fn wants_probe(&self, _at_ns: u64) -> bool {
        false
    }
}

impl Law for Guard {
    fn step(&mut self, sample: &Sample) -> Decision {
        Guard::step(self, sample)
    }

    fn change_actuator(&mut self, of_cgroup: bool) {
        Guard::change_lever(self, of_cgroup);
    }

    fn set_aside(&mut self, by: Hold) {
        Guard::set_aside(self, by);
    }

    fn floods_others(&self, at_ns: u64) -> bool {
        Guard::floods_others(self, at_ns)
    }

    fn disturb(&mut self, is_disturbed: bool) {
        Guard::disturb(self, is_disturbed);
    }

    fn judged(&self, at_ns: u64, since_ns: u64) -> (Kept, Need) {
        Guard::judged(self, at_ns, since_ns)
    }

    fn wants_probe(&self, at_ns: u64) -> bool {
        Guard::wants_probe(self, at_ns)
    }
}

/// A device under guard.
pub struct GuardedDevice {
    /// The kernel's name.
    pub name: String,
    /// Its name when the record of the history began, by which its decisions are found there.
    pub in_history: String,
    /// Its number now.
    pub number: DeviceNumber,
    /// Whether it was there at the last sample.
    pub is_there: bool,
    /// The limit that its law asks for; `None`: the baseline.
    pub wish: Option<u64>,
    /// What private limits do for it. While those hold its bulk writers, nothing is asked of the others.
    pub hold: Hold,
    /// The limit that is turned is a cgroup's.
    of_cgroup: bool,
    /// Cgroups of its bulk writers are held: its share is to be counted strictly, whatever else is asked of that.
    pub is_exact: bool,
    /// Why its limit could not be taken over when it came back.
    pub not_taken: Option<String>,
    /// When it was told last that another device on the same disk is flooded.
    disturbed_ns: Option<u64>,
    /// Sums.
    pub totals: Totals,
    law: Box<dyn Law>,
    news: News,
    gather: Gather,
    last: Option<(Sample, Decision)>,
    second: Second,
    writers: Vec<Writer>,
    minute: Minute,
}

impl GuardedDevice {
    /// Of a device about which nothing is known yet.
    pub fn new(name: &str, number: DeviceNumber, law: Box<dyn Law>) -> GuardedDevice {
        GuardedDevice {
            name: name.to_string(),
            in_history: name.to_string(),
            number,
            is_there: true,
            wish: None,
            hold: Hold::default(),
            of_cgroup: false,
            is_exact: false,
            not_taken: None,
            disturbed_ns: None,
            totals: Totals::default(),
            law,
            news: News::default(),
            gather: Gather::default(),
            last: None,
            second: Second::default(),
            writers: Vec::new(),
            minute: Minute { device: name.to_string(), ..Minute::default() },
        }
    }

    /// Another device is guarded in its place, or it has another name.
    pub fn call(&mut self, name: &str) {
        (self.name, self.minute.device) = (name.to_string(), name.to_string());
    }

    /// It is another device now, or one that was away: what was learned is void, what holds its bulk writers is as it was.
    pub fn begin_anew(&mut self, number: DeviceNumber, law: Box<dyn Law>) {
        (self.number, self.law, self.is_there, self.wish) = (number, law, true, None);
        self.law.change_actuator(self.of_cgroup);
        self.law.set_aside(self.hold);
        self.gather = Gather::default();
        self.not_taken = None;
    }

    /// Another limit is turned from now on, of a cgroup or of dirty pages: nothing is asked of it yet.
    pub fn change_actuator(&mut self, of_cgroup: bool) {
        (self.of_cgroup, self.wish) = (of_cgroup, None);
        self.law.change_actuator(of_cgroup);
    }

    /// What private limits do for it from now on; whether they take the place of one that was asked for.
    pub fn set_aside(&mut self, by: Hold) -> bool {
        let before = if by.covers != self.hold.covers { self.wish.take() } else { None };
        self.hold = by;
        self.law.set_aside(by);
        before.is_some()
    }

    /// Whether it is known to be flooded, which disturbs others on the same disk.
    pub fn floods_others(&self, at_ns: u64) -> bool {
        self.is_there && self.law.floods_others(at_ns)
    }

    /// Whether another device on the same disk is flooded; whether that is news.
    pub fn disturb(&mut self, is_disturbed: bool, at_ns: u64) -> bool {
        self.law.disturb(is_disturbed);
        let is_news = is_disturbed && self.disturbed_ns.is_none_or(|told_ns| at_ns >= told_ns + DISTURBED_NS);
        if is_disturbed {
            self.disturbed_ns = Some(at_ns);
        }
        is_news
    }

    /// What private limits go by: what is known of its syncs as of the last sample, and what they keep since a moment.
    pub fn judged(&self, at_ns: u64, since_ns: u64) -> Judged {
        let (kept, need) = self.law.judged(at_ns, since_ns);
        let oldest_ns = self.last.as_ref().map_or(0, |(sample, _)| sample.syncs.oldest_ns);
        Judged { kept, need, oldest_ns, wants_probe: self.law.wants_probe(at_ns) }
    }

    /// Takes in a sample and asks the law.
    pub fn sample(&mut self, sample: Sample) -> &Decision {
        self.gather.sample(&sample);
        let decision = self.law.step(&sample);
        self.wish = wish(&decision, self.wish).filter(|_| !self.hold.covers);
        &self.last.insert((sample, decision)).1
    }

    /// Where its latencies come from, as far as it was looked at.
    pub fn sensor(&self) -> Option<SensorSource> {
        self.last.as_ref().map(|(sample, _)| sample.sensor.source)
    }

    /// What came of the newest decision, as a line if it is news. `None` within `Some`: it is, but there is no room.
    pub fn told(&mut self, at_ms: u64, effect: Effect) -> Option<Option<Noted>> {
        let (sample, decision) = self.last.as_ref()?;
        let is_news = self.news.is_news(decision, &effect);
        // What others did is no matter of the law's, and what is done while it is set aside no decision of its own.
        let own = !matches!(effect, Effect::StoodDown { .. } | Effect::Gone);
        if own && self.hold.covers {
            return None;
        }
        if let Effect::Written { bytes } | Effect::Shadow { bytes } = effect {
            self.totals.count(decision.branch, bytes > sample.limits.now_bytes);
            self.minute.changes += 1;
        }
        if !is_news {
            return None;
        }
        let decision_told = own.then(|| decision.clone());
        let noted = Noted { at_ms, device: self.name.clone(), decision: decision_told, effect };
        Some(self.news.has_room(decision.at_ns).then_some(noted))
    }

    /// Ends a second, with the limit as it is; `private` limits hold besides, unless this is a `shadow`.
    pub fn end_second(&mut self, at_ms: u64, limit: &Limit, private: Wish, shadow: bool) -> Option<Second> {
        let (sample, decision) = self.last.as_ref()?;
        let ended = self.gather.end(at_ms, sample, limit, decision, &mut self.totals);
        (self.second, self.writers) = ended;
        (self.second.private_dirty_bytes, self.second.private_pace) = (private.budget_bytes, private.pace);
        self.second.holding |= private.limits() && !shadow;
        self.minute.add(&self.second);
        Some(self.second)
    }

    /// What the last minute was.
    pub fn end_minute(&mut self) -> Minute {
        let next = Minute { device: self.name.clone(), ..Minute::default() };
        std::mem::replace(&mut self.minute, next)
    }

    /// As it is now.
    pub fn state(&self, standing: Standing, actuator: &str, limits: &Limits) -> Option<DeviceState> {
        let (sample, decision) = self.last.as_ref()?;
        Some(DeviceState {
            name: self.name.clone(),
            number: self.number,
            standing: if self.is_there { standing } else { Standing::Gone },
            sensor: sample.sensor,
            actuator: actuator.to_string(),
            saved_bytes: limits.saved_bytes,
            floor_bytes: limits.floor_bytes,
            second: self.second,
            private_cgroups: 0,
            private_actuator: None,
            decision: decision.clone(),
            writers: self.writers.clone(),
            totals: self.totals.clone(),
        })
    }
}
