//! The cgroups of a device's bulk writers: which are held, and what is seen of each.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use weir_control::private::{Group, Refusal, Wish, Work, are_at_work, followed, may_hold, needed};
use weir_control::{Life, Writer};
use weir_core::target::DeviceNumber;
use weir_host::knob::{Actuator, KnobError, PrivateLimits};
use weir_host::{CgroupSight, CgroupWrites, Host, IoCgroup};

use super::pair::{End, Pair, Restored, TakePair};
use crate::guard::exempt::{Exempt, account_of, accounts_of, may_be_typed_in, shared_with};
use crate::guard::sampler::Time;
use crate::guard::settings::Protected;

/// One that others set is left to them for so long; one whose limits were reset is taken again after the shorter time.
const SPARED_NS: u64 = 600_000_000_000;
const AGAIN_NS: u64 = 5_000_000_000;
/// Cgroups of one device that are held or being restored at the same time. Another account may have any number of them that write,
/// and each that is held takes a thread and a guardian process.
const HELD_MOST: usize = 8;
/// Cgroups that are left alone for what became of them, at most: until there are fewer, no other one is taken.
const SPARED_MOST: usize = 256;
/// Cgroups that are searched at a time: each may have a thousand below it. It bounds also those that are remembered as refused.
const LOOKED_MOST: usize = 2;
/// Writers whose cgroup is asked for in one sample. Bytes that others write count as not held.
const WRITERS_MOST: usize = 64;
/// One that wrote lately has a part of what all may have; one that did not for the longer time is let go of.
const WRITES_NS: u64 = 3_000_000_000;
const IDLE_NS: u64 = 30_000_000_000;
/// So often it is asked whether one that is held writes to other devices alone.
const ELSEWHERE_NS: u64 = IDLE_NS / 3;

/// A yield is that of two seconds: with the least quota a process writes once a second. It is forgotten to a half in a quarter of a minute.
const YIELD_SAMPLES: usize = 20;
const YIELD_KEPT: f64 = 0.995;

/// So much has to be counted for a cgroup before that says anything.
const COUNTED_BYTES: u64 = 4 << 20;

/// A cgroup whose limits are held by the guard.
pub struct Held {
    /// It.
    pub group: IoCgroup,
    /// Its limits, in words.
    pub actuator: Actuator,
    /// As asked for last.
    pub limits: PrivateLimits,
    /// Whose processes it may hold.
    accounts: Vec<u32>,
    /// Nobody tells whether it waits for memory.
    is_blind: bool,
    sight: CgroupSight,
    work: Work,
    yields: Yield,
    /// Given to write(2) in the seconds before it was held, until that is told.
    before_bytes: u64,
    /// When it was at work last, or was taken.
    wrote_ns: u64,
    /// When it was last seen to write to this device, and what it had written then.
    here: (u64, Option<CgroupWrites>),
    proof: Proof,
    pair: Box<dyn Pair>,
}

/// Whether what a cgroup's processes write counts for it. Until it does, the other limits stay: pages of a file that others have in
/// memory count for those, and a second without any limit fills memory with them.
#[derive(Default)]
struct Proof {
    /// Given to write(2), and written to the device, since it is held.
    sent_bytes: u64,
    written_bytes: u64,
    is_given: bool,
}

/// How many bytes a cgroup's processes give to write(2) in a microsecond of processor time. The most of late: what they do besides, and
/// what other limits cost them, says nothing of what a limit of processor time lets through.
#[derive(Default)]
struct Yield {
    /// Bytes and microseconds, a sample each.
    samples: VecDeque<(u64, u64)>,
    bytes_per_us: f64,
    is_counted: bool,
}

impl Yield {
    fn push(&mut self, group: &Group) {
        self.is_counted = group.cpu_us.is_some();
        self.samples.push_back((group.sent_bytes, group.cpu_us.unwrap_or(0)));
        if self.samples.len() <= YIELD_SAMPLES {
            return;
        }
        self.samples.pop_front();
        let (bytes, us) = self.samples.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        self.bytes_per_us = (YIELD_KEPT * self.bytes_per_us).max(bytes as f64 / us.max(1) as f64);
    }

    /// Microseconds a second in which it gives so many bytes a second; the least there is while that is not known.
    fn quota(&self, pace: u64) -> u64 {
        if self.bytes_per_us > 0.0 { (pace as f64 / self.bytes_per_us) as u64 } else { 0 }
    }
}

impl Proof {
    fn push(&mut self, group: &Group) {
        self.sent_bytes += group.sent_bytes;
        // Where nothing counts what it writes, nothing speaks against it.
        self.written_bytes += group.counted_bytes();
        let counted = self.written_bytes + group.memory.backlog();
        self.is_given |= counted > COUNTED_BYTES && counted >= self.sent_bytes / 3;
    }
}

impl Held {
    /// Whether it has a part of what all may have.
    fn writes(&self, now_ns: u64) -> bool {
        now_ns < self.wrote_ns + WRITES_NS
    }

    /// Whether it has written nothing in bulk for long, or to other devices alone, one of which may need it.
    fn is_idle(&mut self, host: &Host, number: DeviceNumber, asked: Wish, now_ns: u64) -> bool {
        if now_ns >= self.wrote_ns + IDLE_NS {
            return true;
        }
        // Pages that count for others are written to this device in the name of those.
        if asked.is_of_processors_alone() {
            return false;
        }
        let (seen_ns, before) = &self.here;
        if now_ns < seen_ns + ELSEWHERE_NS {
            return false;
        }
        let now = self.group.written(host);
        let both = now.as_ref().zip(before.as_ref());
        let has_left = both.is_some_and(|(now, before)| now.has_left(number, before));
        self.here = (now_ns, now);
        has_left
    }

    /// Whether its processor time can be limited, for a pace of bytes.
    pub fn has_quota(&self) -> bool {
        matches!(self.actuator, Actuator::Private { quota: Some(_), .. }) && self.yields.is_counted
    }

    /// Whether the pace of such a wish reaches it.
    pub fn is_paced(&self, wish: Wish) -> bool {
        if wish.by_quota { self.has_quota() } else { self.has_pace() }
    }

    /// Whether its writes can be paced.
    pub fn has_pace(&self) -> bool {
        matches!(self.actuator, Actuator::Private { pace: Some(_), .. })
    }
}

/// The cgroups of one device.
#[derive(Default)]
pub struct Groups {
    /// Those that are held.
    pub held: Vec<Held>,
    /// What all of them may have, as asked for last.
    asked: Wish,
    /// Those whose limits are being restored, by path.
    leaving: Vec<(String, Box<dyn Pair>)>,
    /// Those that are not, until when, by path.
    spared: HashMap<String, u64>,
    /// Those that may not be held, by path: until when that is believed, and why.
    refused: HashMap<String, (u64, String)>,
    /// The next that is searched for a protected process.
    next: usize,
    /// Where a process is, as of the last search; one that has ended, where it was.
    homes: HashMap<Life, Option<Home>>,
    /// What the cgroups of bulk writers that are not held had written at the last search, by path; and when they were seen to write to this
    /// device.
    others: HashMap<String, (Option<CgroupWrites>, Option<u64>)>,
}

/// Where a writer is.
#[derive(Debug, Clone)]
struct Home {
    group: IoCgroup,
    /// Its account, if it is one's alone.
    account: Option<u32>,
}

/// What decides whose cgroup may be held.
pub struct Rules<'a> {
    /// The machine.
    pub host: &'a Host,
    /// Whose are left alone.
    pub spare: &'a [Protected],
    /// Who must not be held.
    pub exempt: &'a Exempt,
    /// Cgroups that this guard holds for other devices, with the device's name.
    pub elsewhere: &'a HashMap<String, String>,
}

impl Groups {
    /// Takes the cgroups of these writers over that may be held. Sentences of those that may not, each with its writer.
    pub fn find(
        &mut self,
        writers: &[Writer],
        number: DeviceNumber,
        now_ns: u64,
        rules: &Rules<'_>,
        take: &mut TakePair,
    ) -> Vec<String> {
        self.spared.retain(|_, until_ns| now_ns < *until_ns);
        self.refused.retain(|_, (until_ns, _)| now_ns < *until_ns);
        let asked = writers.iter().take(WRITERS_MOST);
        let homes = asked.map(|writer| (writer.life(), home_of(rules.host, writer.life()))).collect();
        let before = std::mem::replace(&mut self.homes, homes);
        let mut ended = HashSet::new();
        for (life, home) in self.homes.iter_mut().filter(|(_, home)| home.is_none()) {
            // It wrote where it was.
            *home = before.get(life).cloned().flatten();
            ended.insert(*life);
        }
        let mut others = std::mem::take(&mut self.others);
        let (mut refused, mut looked) = (Vec::new(), 0);
        for writer in writers {
            let Some(Some(Home { group, .. })) = self.homes.get(&writer.life()).cloned() else { continue };
            let is_known = self.held.iter().any(|held| held.group == group)
                || self.leaving.iter().any(|(path, _)| path == group.path());
            if is_known || self.spared.contains_key(group.path()) {
                continue;
            }
            // One copy may follow another, and the next be in its first write for as long as the device takes.
            let is_left = || rules.host.processes_in(&group).is_none_or(|inside| inside.is_empty());
            if ended.contains(&writer.life()) && is_left() {
                continue;
            }
            let (_, here_ns) = self.others.entry(group.path().to_string()).or_insert_with(|| {
                let written = group.written(rules.host);
                let Some((before, here_ns)) = others.remove(group.path()) else { return (written, None) };
                let both = written.as_ref().zip(before.as_ref());
                // Where nothing is known, nothing speaks against it.
                let is_elsewhere = both.is_some_and(|(now, before)| now.is_elsewhere(number, before));
                (written, if is_elsewhere { here_ns } else { Some(now_ns) })
            });
            // A bulk writer counts for every device on which it has a file open.
            if here_ns.is_none_or(|here_ns| now_ns >= here_ns + WRITES_NS) {
                continue;
            }
            let why = match self.refused.get(group.path()) {
                Some((_, why)) => why.clone(),
                None if rules.elsewhere.contains_key(group.path()) => {
                    let device = &rules.elsewhere[group.path()];
                    format!("the cgroup of {} is held for {device}", writer.comm)
                }
                None if self.is_full() => {
                    format!("no more than {HELD_MOST} cgroups of bulk writers are held at a time")
                }
                None if looked == LOOKED_MOST => continue,
                None => {
                    looked += 1;
                    let taken = self.take(&group, writers, (number, now_ns), rules, take);
                    let Err(why) = taken else { continue };
                    let why = format!("{} cannot be held alone: {why}", writer.comm);
                    self.refused.insert(group.path().to_string(), (now_ns + AGAIN_NS, why.clone()));
                    why
                }
            };
            if !refused.contains(&why) {
                refused.push(why);
            }
        }
        refused
    }

    /// Nobody floods: what was written until the next flood says nothing of that.
    pub fn forget_others(&mut self) {
        self.others.clear();
    }

    /// Whether no other one is taken.
    fn is_full(&self) -> bool {
        self.held.len() + self.leaving.len() >= HELD_MOST || self.spared.len() >= SPARED_MOST
    }

    fn take(
        &mut self,
        group: &IoCgroup,
        writers: &[Writer],
        (number, now_ns): (DeviceNumber, u64),
        rules: &Rules<'_>,
        take: &mut TakePair,
    ) -> Result<(), String> {
        let here =
            || writers.iter().filter_map(|writer| Some((home_in(&self.homes, writer, group)?, writer.bytes)));
        let accounts = accounts_of(here().map(|(home, bytes)| (home.account, bytes)));
        let mut candidate = group.candidate(rules.host);
        candidate.is_spared = rules.spare.iter().any(|who| is_meant(who, group.path()));
        if !candidate.is_root {
            candidate.shared_with = shared_with(rules.host, group, rules.exempt, &accounts);
        }
        may_hold(&candidate).map_err(|why: Refusal| why.to_string())?;
        if accounts.is_empty() {
            // Whose they were nobody knows any more: the next one would be a stranger. It is asked again soon.
            return Ok(());
        }
        let high = group.high().ok_or("its cgroup's name cannot be journaled")?;
        let pace = candidate.has_pace.then(|| group.write_limit(number)).flatten();
        let has_quota = candidate.has_quota && !may_be_typed_in(group.path());
        let quota = has_quota.then(|| group.quota()).flatten();
        let actuator = Actuator::Private { high, pace, quota };
        let before_bytes = here().map(|(_, bytes)| bytes).sum();
        let pair = take(&actuator).map_err(|error| match error {
            KnobError::Held { knob, pid, .. } if pid == std::process::id() => {
                format!("this guard already uses {knob}")
            }
            error => error.to_string(),
        })?;
        let written = group.written(rules.host);
        let mut sight = group.sight(rules.host, number);
        // The first look counts for nothing.
        let _ = sight.look();
        let (group, limits) = (group.clone(), PrivateLimits::default());
        self.held.push(Held {
            group,
            actuator,
            limits,
            accounts,
            is_blind: !candidate.has_pressure,
            sight,
            work: Work::default(),
            yields: Yield::default(),
            before_bytes,
            wrote_ns: now_ns,
            here: (now_ns, written),
            proof: Proof::default(),
            pair,
        });
        Ok(())
    }

    /// Looks into one of them in turn, and lets go of it if somebody is in it now who must not be held; says who.
    pub fn drop_shared(&mut self, now_ns: u64, rules: &Rules<'_>) -> Option<String> {
        let at = self.next.checked_rem(self.held.len())?;
        self.next = at + 1;
        let Held { group, accounts, .. } = &self.held[at];
        let other = shared_with(rules.host, group, rules.exempt, accounts)?;
        let path = self.let_go(at);
        let said = format!("{other}, is in the cgroup {path} now");
        self.spared.insert(path, now_ns + AGAIN_NS);
        Some(said)
    }

    /// What each does, with what these writers gave to write(2). Those that are gone are let go of, and those that write no more in bulk, or
    /// to other devices: another account may have any number of them.
    pub fn sample(
        &mut self,
        writers: &[Writer],
        number: DeviceNumber,
        host: &Host,
        Time { now_ns, elapsed_ns }: Time,
    ) -> Vec<Group> {
        if !self.held.is_empty() {
            self.ask_homes(writers, host);
        }
        let mut seen = VecDeque::new();
        for at in (0..self.held.len()).rev() {
            let held = &mut self.held[at];
            let Ok(mut group) = held.sight.look() else {
                self.let_go(at);
                continue;
            };
            group.high = held.limits.high;
            let homes = &self.homes;
            let here = writers.iter().filter(|writer| home_in(homes, writer, &held.group).is_some());
            group.sent_bytes = here.map(|writer| writer.bytes).sum();
            held.proof.push(&group);
            held.yields.push(&group);
            group.before_bytes = std::mem::take(&mut held.before_bytes);
            held.work.push(elapsed_ns, &group);
            seen.push_front(group);
        }
        let works: Vec<&Work> = self.held.iter().map(|held| &held.work).collect();
        let at_work = are_at_work(&works, self.asked.pace);
        for at in (0..self.held.len()).rev() {
            let held = &mut self.held[at];
            seen[at].is_at_work = at_work[at];
            if at_work[at] {
                held.wrote_ns = now_ns;
            }
            if held.is_idle(host, number, self.asked, now_ns) {
                self.let_go(at);
                seen.remove(at);
            }
        }
        seen.into()
    }

    /// Asks for the cgroups of writers who are not known yet, as many as there is time for.
    fn ask_homes(&mut self, writers: &[Writer], host: &Host) {
        let unknown = writers.iter().filter(|writer| !self.homes.contains_key(&writer.life()));
        let asked: Vec<Life> = unknown.take(WRITERS_MOST).map(Writer::life).collect();
        self.homes.extend(asked.into_iter().map(|life| (life, home_of(host, life))));
    }

    /// What those of these writers wrote, in bytes, whom a held cgroup has, or had while they lived. The cgroups of others are
    /// forgotten.
    pub fn held_bytes(&mut self, writers: &[Writer], host: &Host) -> u64 {
        if self.homes.len() > writers.len() + WRITERS_MOST {
            let lives: HashSet<Life> = writers.iter().map(Writer::life).collect();
            self.homes.retain(|life, _| lives.contains(life));
        }
        self.ask_homes(writers, host);
        let is_held = |life: Life| match self.homes.get(&life) {
            Some(Some(home)) => self.held.iter().any(|held| held.group == home.group),
            // It has ended unasked, or lies where no cgroup can be held.
            Some(None) | None => false,
        };
        writers.iter().filter(|writer| is_held(writer.life())).map(|writer| writer.bytes).sum()
    }

    /// Asks for the limits that a wish comes to.
    pub fn apply(&mut self, wish: Wish, seen: &[Group], dirty_share: f64, now_ns: u64) {
        self.asked = wish;
        let writing = || self.held.iter().filter(|held| held.writes(now_ns));
        let part = wish.part(writing().count(), writing().filter(|held| held.is_paced(wish)).count());
        for (held, group) in self.held.iter_mut().zip(seen) {
            let needed =
                part.budget_bytes.map(|budget| needed(&group.memory, budget, dirty_share) + part.room_bytes);
            let high = needed.map(|needed| followed(held.limits.high, needed, None));
            let pace = part.pace.filter(|_| held.is_paced(wish));
            held.limits = match wish.by_quota {
                true => PrivateLimits { high, pace: None, quota: pace.map(|pace| held.yields.quota(pace)) },
                false => PrivateLimits { high, pace, quota: None },
            };
            held.pair.set(held.limits);
        }
    }

    /// Of those that are held: that it is not seen whether they wait for memory.
    pub fn blind(&self) -> Option<String> {
        let blind = self.held.iter().filter(|held| held.is_blind).map(|held| held.group.path());
        let paths: Vec<&str> = blind.collect();
        let why = "the kernel tells no pressure (Linux tells it when started with psi=1)";
        (!paths.is_empty())
            .then(|| format!("that {} waits for memory would not be seen: {why}", paths.join(" or ")))
    }

    /// Of how many processes it knows the cgroup.
    #[cfg(test)]
    pub fn homes_len(&self) -> usize {
        self.homes.len()
    }

    /// Whether what they write has been seen to count for them, but for those that have written little.
    pub fn are_counted(&self) -> bool {
        if self.asked.by_quota {
            // Whether that counts for them or not.
            return self.held.iter().all(Held::has_quota);
        }
        let proofs = || self.held.iter().map(|held| &held.proof);
        proofs().any(|proof| proof.is_given)
            && proofs().all(|proof| proof.is_given || proof.sent_bytes <= COUNTED_BYTES)
    }

    /// Whether all that write can be paced.
    pub fn can_pace(&self, now_ns: u64) -> bool {
        self.all_that_write(now_ns, Held::has_pace)
    }

    /// Whether the processor time of all that write can be limited.
    pub fn can_quota(&self, now_ns: u64) -> bool {
        self.all_that_write(now_ns, Held::has_quota)
    }

    fn all_that_write(&self, now_ns: u64, are: fn(&Held) -> bool) -> bool {
        let mut writing = self.held.iter().filter(|held| held.writes(now_ns)).peekable();
        writing.peek().is_some() && writing.all(are)
    }

    /// Those that ended by themselves: sentences of it, and whether the limits of one were turned by somebody else.
    pub fn ended(&mut self, now_ns: u64) -> Vec<String> {
        let mut said = Vec::new();
        for at in (0..self.held.len()).rev() {
            let Some(end) = self.held[at].pair.ended() else { continue };
            let path = self.held[at].group.path().to_string();
            let wait_ns = match end {
                End::Gone => 0,
                End::Reset => {
                    said.push(format!("the limits of the cgroup {path} were reset: taken again in 5 s"));
                    AGAIN_NS
                }
                End::Lost(why) => {
                    said.push(format!("the limits of the cgroup {path} are left alone: {why}"));
                    SPARED_NS
                }
            };
            self.let_go(at);
            self.spared.insert(path, now_ns + wait_ns);
        }
        said
    }

    /// Its limits are restored from now on; returns its path.
    fn let_go(&mut self, at: usize) -> String {
        let Held { group, mut pair, .. } = self.held.remove(at);
        pair.release();
        self.leaving.push((group.path().to_string(), pair));
        group.path().to_string()
    }

    /// Of those that are held or being restored.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let held = self.held.iter().map(|held| held.group.path());
        held.chain(self.leaving.iter().map(|(path, _)| path.as_str()))
    }

    /// Lets go of all. [`Groups::left`] tells what was restored.
    pub fn let_all_go(&mut self) {
        while !self.held.is_empty() {
            self.let_go(0);
        }
    }

    /// What was restored since this was asked last.
    pub fn left(&mut self) -> Vec<String> {
        let (mut still, mut said) = (Vec::new(), Vec::new());
        for (path, mut pair) in self.leaving.drain(..) {
            match pair.released(Duration::ZERO) {
                Some(restored) => said.extend(sentences(restored)),
                None => still.push((path, pair)),
            }
        }
        self.leaving = still;
        said
    }

    /// Waits until those that were let go of are restored, no longer than until then; what was restored, and what was not.
    pub fn end(&mut self, until: Instant) -> (Vec<String>, Vec<String>) {
        let (mut said, mut failed) = (Vec::new(), Vec::new());
        for (path, mut pair) in self.leaving.drain(..) {
            match pair.released(until.saturating_duration_since(Instant::now())) {
                Some(Ok(sentences)) => said.extend(sentences),
                Some(Err(error)) => failed.push(error.to_string()),
                None => {
                    said.push(format!("the limits of the cgroup {path} are restored by the guardian process"))
                }
            }
        }
        (said, failed)
    }
}

/// Where a writer is, if that is this cgroup.
fn home_in<'a>(
    homes: &'a HashMap<Life, Option<Home>>,
    writer: &Writer,
    group: &IoCgroup,
) -> Option<&'a Home> {
    homes.get(&writer.life())?.as_ref().filter(|home| home.group == *group)
}

fn home_of(host: &Host, life: Life) -> Option<Home> {
    let group = host.asked_of(life, |pid| host.own_cgroup_of(pid)).flatten()?;
    Some(Home { group, account: account_of(host, life) })
}

fn sentences(restored: Restored) -> Vec<String> {
    restored.unwrap_or_else(|error| vec![error.to_string()])
}

/// Whether somebody means this cgroup: a unit by its name, a path of the hierarchy with all below it.
fn is_meant(who: &Protected, path: &str) -> bool {
    match who {
        Protected::All => true,
        Protected::Unit(name) => is_system_unit(name, path),
        Protected::Cgroup(named) => {
            path.strip_prefix(named).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        Protected::Comm(_) | Protected::Pid(_) => false,
    }
}

/// Whether a cgroup is that of a unit of the system's manager, or in it. systemd keeps its units in slices and nowhere else
/// (systemd.slice(5)). Below a service or a scope others name their cgroups as they like, and one called like a spared unit is not it.
fn is_system_unit(name: &str, path: &str) -> bool {
    let parts = path.split('/').filter(|part| !part.is_empty());
    let mut is_below_a_unit = false;
    for part in parts {
        if is_below_a_unit {
            return false;
        }
        if part == name {
            return true;
        }
        is_below_a_unit = !part.ends_with(".slice");
    }
    false
}
