//! Limits that only bulk writers feel: memory.high and io.max of their cgroups, turned by the law of
//! [`weir_control::private`] wherever a cgroup is the bulk writers' alone.

mod held;
mod pair;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use weir_control::private::{Hold, Kept, Law, Need, Seen as SeenByLaw, State, Transition, Wish};
use weir_core::units::{Bytes, limit, megabytes_per_second};
use weir_host::Host;

use self::held::{Groups, Held, Rules};
use super::exempt::Exempt;
use super::sampler::{Seen, Time};
use super::writers::Writers;
use crate::guard::settings::Protected;

pub use pair::{TakePair, take_pair};

/// Cgroups are looked for so often, while bulk writers write, and one that is held for somebody protected who came into it.
const FIND_EVERY_NS: u64 = 300_000_000;
/// The reasons why writers are not held are told so often.
const TELL_EVERY_NS: u64 = 10_000_000_000;
/// Those who are not held may write this share of all: what they leave dirty is as nothing then.
const OTHERS: f64 = 0.1;
/// And so much in any case.
const OTHERS_BYTES: u64 = 4 << 20;

/// The end of the guard waits so long for all of them.
const PATIENCE: Duration = Duration::from_secs(5);

/// The private limits of all devices.
pub struct Privates {
    host: Host,
    take: TakePair,
    spare: Vec<Protected>,
    shadow: bool,
    keep: f64,
    devices: Vec<Device>,
}

#[derive(Default)]
struct Device {
    name: String,
    law: Law,
    groups: Groups,
    found_ns: u64,
    told_ns: u64,
    dirty_share: f64,
    /// Why a writer is not held, as it was said last.
    why_not: Vec<String>,
    hold: Hold,
}

/// What is known of a device at a sample.
pub struct Now<'a> {
    /// The sample.
    pub seen: &'a Seen,
    /// Its bulk writers in the last seconds.
    pub writers: &'a Writers,
    /// When.
    pub time: Time,
    /// Who must not be held.
    pub exempt: &'a dyn Fn() -> Exempt,
}

/// What the judge says of a device's syncs.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// What they keep since [`Privates::judged_from`].
    pub kept: Kept,
    /// Whether there are any.
    pub need: Need,
    /// Age of the oldest under way.
    pub oldest_ns: u64,
    /// Nothing like them was seen undisturbed, nor probed lately.
    pub wants_probe: bool,
}

impl Privates {
    /// Of devices of these names.
    pub fn new(
        host: &Host,
        take: TakePair,
        spare: &[Protected],
        shadow: bool,
        keep: f64,
        devices: &[&str],
    ) -> Self {
        // However a cgroup is named, it is compared by its path.
        let by_path = |who: &Protected| match who {
            Protected::Cgroup(named) => Protected::Cgroup(host.cgroup_path(named)),
            other => other.clone(),
        };
        let device = |name: &&str| Device { name: name.to_string(), ..Device::default() };
        let (spare, devices) = (spare.iter().map(by_path).collect(), devices.iter().map(device).collect());
        Privates { host: host.clone(), take, spare, shadow, keep, devices }
    }

    /// From when on a device's syncs are to be judged.
    pub fn judged_from(&self, at: usize) -> u64 {
        self.devices[at].law.judged_from()
    }

    /// What private limits do for a device.
    pub fn hold(&self, at: usize) -> Hold {
        self.devices[at].hold
    }

    /// A sample of a device: what is to be told.
    pub fn sample(&mut self, at: usize, now: &Now<'_>, judged: Judged) -> Vec<String> {
        let elsewhere = self.held_elsewhere(at);
        let (device, seen, time) = (&mut self.devices[at], now.seen, now.time);
        let would_hold = device.law.would_hold(judged.need, seen.sensor.silent_ns);
        let look = Look { host: &self.host, spare: &self.spare, elsewhere: &elsewhere, would_hold };
        let mut said = device.find(&look, &mut self.take, now);
        let groups = device.groups.sample(&seen.bulk.writers, seen.number, &self.host, time);
        let can_pace = device.groups.can_pace(time.now_ns);
        let can_quota = device.groups.can_quota(time.now_ns);
        device.hold.is_at_work = groups.iter().any(|group| group.is_at_work);
        let transition = device.law.step(&SeenByLaw {
            at_ns: time.now_ns,
            elapsed_ns: time.elapsed_ns,
            silent_ns: seen.sensor.silent_ns,
            need: judged.need,
            // Nobody sees the effect on syncs of a limit that is not in force.
            kept: if self.shadow { Kept::Unknown } else { judged.kept },
            keep: self.keep,
            oldest_ns: if self.shadow { 0 } else { judged.oldest_ns },
            delivered_bytes: seen.flow.written_bytes,
            is_direct: now.writers.watch.is_past_the_page_cache(),
            groups: &groups,
            can_pace,
            can_quota,
            wants_probe: judged.wants_probe,
        });
        device.hold.probed_from_ns = device.law.probed_from();
        device.groups.apply(device.law.wish(), &groups, device.dirty_share, time.now_ns);
        if let Some(transition) = transition {
            said.push(device.sentence(transition, judged.kept, self.shadow));
            said.extend(device.groups.blind().filter(|_| transition == Transition::Arm));
        }
        // Another device may need them.
        let is_over = transition.is_some() && !device.law.holds();
        if is_over || !device.law.would_hold(judged.need, seen.sensor.silent_ns) {
            device.groups.let_all_go();
        }
        said.extend(device.groups.ended(time.now_ns));
        said.extend(device.groups.left());
        device.judge_cover(&self.host, now.writers);
        said
    }

    /// The cgroups that other devices than this one have, with the device's name.
    fn held_elsewhere(&self, at: usize) -> HashMap<String, String> {
        let others = self.devices.iter().enumerate().filter(|(other, _)| *other != at);
        let of = |(_, device): (usize, &Device)| -> Vec<(String, String)> {
            device.groups.paths().map(|path| (path.to_string(), device.name.clone())).collect()
        };
        others.flat_map(of).collect()
    }

    /// What a device's bulk writers may have together.
    pub fn wish(&self, at: usize) -> Wish {
        let device = &self.devices[at];
        if device.groups.held.is_empty() { Wish::default() } else { device.law.wish() }
    }

    /// How many of their cgroups are held.
    pub fn held(&self, at: usize) -> u64 {
        let device = &self.devices[at];
        if device.law.holds() { device.groups.held.len() as u64 } else { 0 }
    }

    /// The limits in force, for who asks what is turned.
    pub fn actuator(&self, at: usize) -> Option<String> {
        let device = &self.devices[at];
        let actuators: Vec<String> =
            device.groups.held.iter().map(|held| held.actuator.to_string()).collect();
        (device.law.holds() && !actuators.is_empty()).then(|| actuators.join(", "))
    }

    /// How it stands to a device's bulk writers, and why some are not held.
    pub fn remarks(&self, at: usize) -> Vec<String> {
        let device = &self.devices[at];
        let standing = device.law.holds().then(|| device.standing(self.shadow));
        standing.into_iter().chain(device.groups.blind()).chain(device.why_not.iter().cloned()).collect()
    }

    /// Puts back everything; what was restored, and what could not be.
    pub fn end(&mut self) -> (Vec<String>, Vec<String>) {
        let (mut said, mut failed) = (Vec::new(), Vec::new());
        self.devices.iter_mut().for_each(|device| device.groups.let_all_go());
        let until = Instant::now() + PATIENCE;
        for device in &mut self.devices {
            let (more, not_back) = device.groups.end(until);
            said.extend(more);
            failed.extend(not_back);
            device.law.let_go();
        }
        (said, failed)
    }

    /// A device has another name.
    pub fn call(&mut self, at: usize, name: &str) {
        self.devices[at].name = name.to_string();
    }

    /// What was restored of a device that is gone since this was asked last: until then its cgroups are no other device's.
    pub fn left(&mut self, at: usize) -> Vec<String> {
        self.devices[at].groups.left()
    }

    /// The device is gone, or the machine slept: nothing is known any more.
    pub fn forget(&mut self, at: usize) -> Vec<String> {
        let device = &mut self.devices[at];
        device.groups.let_all_go();
        let (name, groups) = (std::mem::take(&mut device.name), std::mem::take(&mut device.groups));
        *device = Device { name, groups, ..Device::default() };
        self.left(at)
    }
}

/// What a search for cgroups goes by.
struct Look<'a> {
    host: &'a Host,
    spare: &'a [Protected],
    /// Cgroups that other devices have, with the device's name.
    elsewhere: &'a HashMap<String, String>,
    /// Whether one that is found would be held.
    would_hold: bool,
}

impl Device {
    /// Takes cgroups over, and lets go of those in which somebody protected is now.
    fn find(&mut self, look: &Look<'_>, take: &mut TakePair, now: &Now<'_>) -> Vec<String> {
        let (watch, now_ns, host) = (&now.writers.watch, now.time.now_ns, look.host);
        let floods = look.would_hold && watch.is_flooded_by_others(|_| false);
        if !floods {
            self.groups.forget_others();
        }
        let nothing_to_do = !floods && self.groups.held.is_empty();
        if nothing_to_do || now_ns < self.found_ns + FIND_EVERY_NS {
            return Vec::new();
        }
        self.found_ns = now_ns;
        self.dirty_share = host.dirty_share();
        let exempt = (now.exempt)();
        let rules = Rules { host, spare: look.spare, exempt: &exempt, elsewhere: look.elsewhere };
        let mut said: Vec<String> = self.groups.drop_shared(now_ns, &rules).into_iter().collect();
        if floods {
            let mut writers = watch.writers();
            if writers.is_empty() {
                // None of them counts alone.
                writers = watch.all_writers();
            }
            let why_not = self.groups.find(&writers, now.seen.number, now_ns, &rules, take);
            let is_news = why_not.iter().any(|why| !self.why_not.contains(why));
            // Names are the writers' choice, and may be new ones each time.
            if is_news && now_ns >= self.told_ns {
                self.told_ns = now_ns + TELL_EVERY_NS;
                let news = why_not.iter().filter(|why| !self.why_not.contains(why)).cloned();
                let hint = "`weir guard exec` starts a command in a cgroup of its own";
                said.extend(news.map(|why| format!("{why}; {hint}")));
            }
            self.why_not = why_not;
        } else {
            self.why_not.clear();
        }
        said
    }

    fn judge_cover(&mut self, host: &Host, writers: &Writers) {
        if self.groups.held.is_empty() {
            self.hold.covers = false;
            return;
        }
        let all = writers.watch.bulk_bytes();
        let others = all.saturating_sub(self.groups.held_bytes(&writers.watch.all_writers(), host));
        let is_little = others <= OTHERS_BYTES || (others as f64) < OTHERS * all as f64;
        self.hold.covers =
            self.law.holds() && !self.law.is_not_enough() && is_little && self.groups.are_counted();
    }

    fn sentence(&self, transition: Transition, kept: Kept, shadow: bool) -> String {
        let kept = kept.share().map(|share| format!(", {:.0} % of their rate", 100.0 * share));
        let kept = kept.filter(|_| {
            matches!(
                transition,
                Transition::Cut | Transition::Raise | Transition::Pace | Transition::PaceHurts
            )
        });
        let why = format!("{}{}", transition.why(), kept.unwrap_or_default());
        if self.law.holds() {
            return format!("{} ({transition}): {why}", self.standing(shadow));
        }
        format!("limits of bulk writers' cgroups are at the baseline ({transition}): {why}")
    }

    /// What they may have together, in words.
    fn standing(&self, shadow: bool) -> String {
        let wish = self.law.wish();
        // Nothing of another one is limited.
        let is_limited = |held: &&Held| !wish.is_of_processors_alone() || held.is_paced(wish);
        let held: Vec<&Held> = self.groups.held.iter().filter(is_limited).collect();
        let paced = || held.iter().copied().filter(|held| held.is_paced(wish));
        let way = if wish.by_quota { " by processor time" } else { "" };
        let pace = wish.pace.map(|pace| match pace {
            0 => format!("the least{way}"),
            pace => format!("{}{way}", megabytes_per_second(pace as f64)),
        });
        let (pace, of_some) = match paced().count() {
            0 => (None, None),
            all if all == held.len() => (pace, None),
            _ => (None, pace),
        };
        let budget = wish.budget_bytes.map(|bytes| format!("{} dirty", limit(Bytes(bytes))));
        let what: Vec<String> = pace.into_iter().chain(budget).collect();
        let of_some = of_some.map(|pace| format!(", {} to {pace}", paths(paced()))).unwrap_or_default();
        let high = held.iter().filter_map(|held| held.limits.high).max();
        let high = high.map(|bytes| format!("memory.high {}", limit(Bytes(bytes))));
        let quota = held.iter().filter_map(|held| held.limits.quota).max();
        // The kernel takes no less.
        let quota = quota.map(|us| format!("cpu.max {:.1} % of a processor", us.max(1000) as f64 / 10_000.0));
        let knobs: Vec<String> = high.into_iter().chain(quota).collect();
        let knobs = if knobs.is_empty() { String::new() } else { format!(" ({})", knobs.join(", ")) };
        let verb = match (shadow, self.law.state()) {
            (true, _) => "would be held to",
            (false, State::Loose) => "may have, while syncs pause,",
            _ if held.len() > 1 => "are held to",
            _ => "is held to",
        };
        if held.is_empty() {
            return "no cgroup that is left can be limited".to_string();
        }
        format!("{} {verb} {}{knobs}{of_some}", paths(held.iter().copied()), what.join(" and "))
    }
}

fn paths<'a>(held: impl Iterator<Item = &'a Held>) -> String {
    held.map(|held| held.group.path()).collect::<Vec<_>>().join(" and ")
}
