//! Limits that only bulk writers feel: memory.high and io.max of their cgroups, turned by the law of
//! [`weir_control::private`] wherever a cgroup is the bulk writers' alone.

mod held;
mod pair;
#[cfg(test)]
mod tests;

use std::time::Duration;

use weir_control::private::{Kept, Law, Need, Seen as SeenByLaw, State, Transition};
use weir_core::units::{Bytes, limit, megabytes_per_second};
use weir_host::Host;
use weir_host::knob::Lever;

use self::held::{Groups, Rules, SOON};
use super::sampler::Seen;
use super::throttle::Time;
use super::writers::Writers;
use crate::guard::settings::Protected;

pub use pair::{TakePair, take_pair};

/// Cgroups are looked for so often, while bulk writers write ...
const FIND_EVERY_NS: u64 = 300_000_000;
/// ... and it is looked so often whether somebody protected has come into one that is held.
const SHARED_EVERY_NS: u64 = 1_000_000_000;
/// So long at most the end of the guard waits for limits to be restored. What is left then the guardians restore.
const AT_THE_END: Duration = Duration::from_secs(5);
/// Why writers are not held is told so often.
const TELL_EVERY_NS: u64 = 10_000_000_000;
/// Those who are not held may write this share of all: what they leave dirty is as nothing then.
const OTHERS: f64 = 0.1;
/// And so much in any case.
const OTHERS_BYTES: u64 = 4 << 20;

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
    writers: Writers,
    law: Law,
    groups: Groups,
    found_ns: u64,
    shared_ns: u64,
    told_ns: u64,
    dirty_share: f64,
    /// Why a writer is not held, as it was said last.
    why_not: Vec<String>,
    covers: bool,
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
}

impl Privates {
    /// Of so many devices.
    pub fn new(
        host: &Host,
        take: TakePair,
        spare: &[Protected],
        shadow: bool,
        keep: f64,
        devices: usize,
    ) -> Self {
        let devices = (0..devices).map(|_| Device::default()).collect();
        Privates { host: host.clone(), take, spare: spare.to_vec(), shadow, keep, devices }
    }

    /// From when on a device's syncs are to be judged.
    pub fn judged_from(&self, at: usize) -> u64 {
        self.devices[at].law.judged_from()
    }

    /// Whether the bulk writers of a device are held, so that no other limit has to be.
    pub fn covers(&self, at: usize) -> bool {
        self.devices[at].covers
    }

    /// a sample of a device: what is to be told.
    pub fn sample(
        &mut self,
        at: usize,
        seen: &Seen,
        time: Time,
        judged: Judged,
        protected: &dyn Fn() -> Vec<u32>,
    ) -> Vec<String> {
        let device = &mut self.devices[at];
        device.writers.push(&self.host, seen, time.elapsed_ns);
        let mut said = device.find(&self.host, &self.spare, &mut self.take, seen, time.now_ns, protected);
        let groups = device.groups.sample(&seen.bulk.writers, &self.host);
        let can_pace = !device.groups.held.is_empty()
            && device
                .groups
                .held
                .iter()
                .all(|held| matches!(&held.lever, Lever::Private { pace: Some(_), .. }));
        let transition = device.law.step(&SeenByLaw {
            at_ns: time.now_ns,
            elapsed_ns: time.elapsed_ns,
            silent_ns: seen.sensor.silent_ns,
            need: judged.need,
            // What a limit would do to syncs that is not in force nobody sees.
            kept: if self.shadow { Kept::Unknown } else { judged.kept },
            keep: self.keep,
            oldest_ns: if self.shadow { 0 } else { judged.oldest_ns },
            delivered_bytes: seen.flow.written_bytes,
            is_direct: device.writers.watch.is_past_the_page_cache(),
            groups: &groups,
            can_pace,
        });
        device.groups.apply(device.law.wish(), &groups, device.dirty_share);
        if let Some(transition) = transition {
            said.push(device.sentence(transition, judged.kept, self.shadow));
        }
        if !device.law.holds() && matches!(transition, Some(Transition::Ended | Transition::Unneeded)) {
            let (more, failed) = device.groups.let_all_go(SOON);
            said.extend(more.into_iter().chain(failed));
        }
        said.extend(device.groups.ended(time.now_ns));
        device.judge_cover(&self.host);
        said
    }

    /// The limits in force, for who asks what is turned.
    pub fn lever(&self, at: usize) -> Option<String> {
        let device = &self.devices[at];
        let levers: Vec<String> = device.groups.held.iter().map(|held| held.lever.to_string()).collect();
        device.law.holds().then(|| levers.join(", "))
    }

    /// How it stands to a device's bulk writers, and why some are not held.
    pub fn remarks(&self, at: usize) -> Vec<String> {
        let device = &self.devices[at];
        let standing = device.law.holds().then(|| device.standing(self.shadow));
        standing.into_iter().chain(device.why_not.iter().cloned()).collect()
    }

    /// Puts back everything; what was put back, and what could not be.
    pub fn end(&mut self) -> (Vec<String>, Vec<String>) {
        let (mut said, mut failed) = (Vec::new(), Vec::new());
        for device in &mut self.devices {
            let (more, not_back) = device.groups.let_all_go(AT_THE_END);
            said.extend(more);
            failed.extend(not_back);
            device.law.let_go();
        }
        (said, failed)
    }

    /// The device is gone, or the machine slept: nothing is known any more.
    pub fn forget(&mut self, at: usize) -> Vec<String> {
        let (said, failed) = self.devices[at].groups.let_all_go(SOON);
        self.devices[at] = Device::default();
        said.into_iter().chain(failed).collect()
    }
}

impl Device {
    /// Takes cgroups over, and lets go of those in which somebody protected is now.
    fn find(
        &mut self,
        host: &Host,
        spare: &[Protected],
        take: &mut TakePair,
        seen: &Seen,
        now_ns: u64,
        protected: &dyn Fn() -> Vec<u32>,
    ) -> Vec<String> {
        let floods = self.writers.watch.is_flooded_by_others(|_| false);
        let nothing_to_do = !floods && self.groups.held.is_empty();
        if nothing_to_do || now_ns < self.found_ns + FIND_EVERY_NS {
            return Vec::new();
        }
        self.found_ns = now_ns;
        self.writers.ask_again();
        self.dirty_share = host.dirty_share();
        let protected = protected();
        let rules = Rules { host, spare, protected: &protected };
        let mut said = Vec::new();
        if now_ns >= self.shared_ns + SHARED_EVERY_NS {
            self.shared_ns = now_ns;
            said = self.groups.drop_shared(now_ns, &rules);
        }
        if floods {
            let mut writers = self.writers.watch.writers();
            if writers.is_empty() {
                // None of them counts alone.
                writers = self.writers.watch.all_writers();
            }
            let why_not = self.groups.find(&writers, seen.number, now_ns, &rules, take);
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

    fn judge_cover(&mut self, host: &Host) {
        if self.groups.held.is_empty() {
            self.covers = false;
            return;
        }
        let (others, all) = self.groups.not_held(&self.writers.watch.all_writers(), host);
        let is_little = others <= OTHERS_BYTES || (others as f64) < OTHERS * all as f64;
        self.covers =
            self.law.holds() && !self.law.is_not_enough() && !self.groups.held.is_empty() && is_little;
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
        format!("limits of bulk writers' cgroups are as they were found ({transition}): {why}")
    }

    /// What they may have, in words.
    fn standing(&self, shadow: bool) -> String {
        let paths: Vec<&str> = self.groups.held.iter().map(|held| held.group.path()).collect();
        let wish = self.law.wish();
        let budget = wish.budget_bytes.map(|bytes| format!("{} dirty", limit(Bytes(bytes))));
        let pace = wish.pace.map(|pace| megabytes_per_second(pace as f64));
        let what: Vec<String> = pace.into_iter().chain(budget).collect();
        let high = self.groups.held.iter().filter_map(|held| held.limits.high).max();
        let high = high.map(|bytes| format!(" (memory.high {})", limit(Bytes(bytes)))).unwrap_or_default();
        let verb = match (shadow, self.law.state()) {
            (true, _) => "would be held to",
            (false, State::Loose) => "may have, while syncs pause,",
            _ => "is held to",
        };
        format!("{} {verb} {}{high}", paths.join(" and "), what.join(" and "))
    }
}
