//! Models of a device with a bulk writer's cgroup beside committing threads.

use super::super::{Group, Kept, Law, Memory, Need, Seen, Transition, Work, are_at_work, followed, needed};

pub const LOOK_NS: u64 = 100_000_000;
pub const KEEP: f64 = 0.93;
const MB: f64 = 1e6;
const DIRTY_SHARE: f64 = 0.2;
/// Of the share that a tenth of a second shows: commits come in lumps, and one in ten of a second's is noise.
const NOISE: f64 = 0.16;
/// As `Parameters`: how sure a share has to be, and over how many looks at most.
const CONFIDENCE: f64 = 1.28;
const WINDOW: usize = 50;

/// What commits keep, by what bulk writers may do: so many bytes dirty, or so many a second besides.
pub type Answer = fn(&Plant, f64, Option<f64>) -> f64;

/// A device, a cgroup that floods it, and what commits make of that.
pub struct Plant {
    pub law: Law,
    /// Of the device, in bytes a second.
    pub rate: f64,
    /// Of commits undisturbed, in bytes a second.
    pub own: f64,
    pub answer: Answer,
    pub group: Group,
    work: Work,
    pub is_direct: bool,
    pub can_pace: bool,
    pub can_quota: bool,
    pub wants_probe: bool,
    /// Its pages count for another cgroup.
    pub escapes: bool,
    pub need: Need,
    pub is_writing: bool,
    /// Of the pages that count for another cgroup, what is dirty.
    pub elsewhere: f64,
    /// Its cgroup is gone.
    pub is_gone: bool,
    /// Syncs are seen, so that what they keep is known.
    pub is_judged: bool,
    /// Age of the oldest sync under way.
    pub oldest_ns: u64,
    pub high: Option<u64>,
    pub now_ns: u64,
    /// What commits lose whatever bulk writers do, and until when.
    pub lost_elsewhere: (f64, u64),
    /// Dirty at the flood's beginning, beyond what a bound allows.
    pub backlog: f64,
    random: u64,
    /// Shares kept since the law judges.
    judged: Vec<f64>,
    /// Of the last looks: kept, bulk bytes a second.
    pub done: Vec<(f64, f64)>,
    pub said: Vec<Transition>,
}

impl Plant {
    pub fn new(rate_mb: f64, own_mb: f64, answer: Answer) -> Plant {
        let memory = Memory { current: 3 << 20, anon: 1 << 20, kernel: 2 << 20, ..Memory::default() };
        Plant {
            law: Law::default(),
            rate: rate_mb * MB,
            own: own_mb * MB,
            answer,
            group: Group { memory, ..Group::default() },
            work: Work::default(),
            is_direct: false,
            can_pace: true,
            can_quota: false,
            wants_probe: false,
            escapes: false,
            elsewhere: 0.0,
            need: Need::Here,
            is_writing: true,
            is_gone: false,
            is_judged: true,
            oldest_ns: 0,
            high: None,
            now_ns: 0,
            lost_elsewhere: (0.0, 0),
            backlog: 0.0,
            random: 1,
            judged: Vec::new(),
            done: Vec::new(),
            said: Vec::new(),
        }
    }

    pub fn run(&mut self, seconds: u64) -> &mut Plant {
        (0..10 * seconds).for_each(|_| self.look());
        self
    }

    /// A tenth of a second: the cgroup fills what it may, the device writes, commits keep their share.
    pub fn look(&mut self) {
        self.now_ns += LOOK_NS;
        let pace = self.law.wish().pace.map(|pace| pace as f64);
        let held = self.group.memory.held();
        let bound = self.high.map_or(2000.0 * MB, |high| {
            assert!(high > held, "memory.high {high} is not above what is held, {held}");
            DIRTY_SHARE * (high - held) as f64
        });
        let mut kept = if self.is_writing { (self.answer)(self, bound.max(self.backlog), pace) } else { 1.0 };
        // More than is written by the next look.
        if self.elsewhere > self.rate / 10.0 {
            kept = 0.0;
        }
        let lost = if self.now_ns < self.lost_elsewhere.1 { self.lost_elsewhere.0 } else { 0.0 };
        let kept = kept * (1.0 - lost);
        let mut left = self.rate - self.own * kept;
        if self.is_direct && !self.is_writing {
            left = 0.0;
        }
        let mut bulk = if self.is_writing { left.min(pace.unwrap_or(f64::INFINITY)) } else { 0.0 };
        if self.escapes && self.can_quota {
            bulk = left.min(10.0 * self.elsewhere);
            self.elsewhere -= bulk / 10.0;
        }
        let dirty = if self.is_writing && !self.is_direct { bound.min(600.0 * MB) } else { 0.0 };
        self.backlog = (self.backlog - bulk / 10.0).max(0.0);
        let dirty = dirty.max(self.backlog);
        let memory = &mut self.group.memory;
        // A device that takes less than the pace lets the backlog grow to its bound; one that takes more empties it.
        memory.file_dirty =
            if pace.is_some_and(|pace| pace < 0.95 * left) { dirty / 4.0 } else { dirty } as u64;
        memory.file = memory.file_dirty * 4;
        memory.current = held + memory.file;
        self.group.sent_bytes = (bulk / 10.0) as u64;
        if self.escapes && self.can_quota {
            self.group.sent_bytes = self.give_to_another_cgroup() as u64;
        }
        let counted = if self.escapes { 0 } else { self.group.sent_bytes };
        self.group.written_bytes = self.can_pace.then_some(counted);
        self.work.push(LOOK_NS, &self.group);
        self.group.is_at_work = are_at_work(&[&self.work], self.law.wish().pace)[0];
        self.done.push((kept, bulk));
        self.step(kept, (bulk + self.own * kept) / 10.0);
    }

    /// At memory's speed, unless processor time is limited, into a file of 400 MB. What the device does not take stays dirty.
    fn give_to_another_cgroup(&mut self) -> f64 {
        let wish = self.law.wish();
        let pace = wish.pace.filter(|_| wish.by_quota).map_or(1000.0 * MB, |pace| pace as f64);
        let sent = if self.is_writing { pace / 10.0 } else { 0.0 };
        self.elsewhere = (self.elsewhere + sent).min(400.0 * MB);
        sent
    }

    /// For so many looks: what it gave before, the device writes, and no commit ends.
    pub fn waits_in_a_write(&mut self, looks: u32) {
        for _ in 0..looks {
            self.now_ns += LOOK_NS;
            (self.group.sent_bytes, self.group.written_bytes) = (0, Some(0));
            self.step(0.0, self.rate / 10.0);
            self.group.before_bytes = 0;
        }
    }

    fn step(&mut self, kept: f64, delivered: f64) {
        if self.now_ns > self.law.judged_from() {
            let noise = NOISE * self.normal();
            self.judged.push((kept * (1.0 + noise)).max(0.0));
        } else {
            self.judged.clear();
        }
        let groups = [self.group];
        let seen = Seen {
            at_ns: self.now_ns,
            elapsed_ns: LOOK_NS,
            silent_ns: 0,
            need: self.need,
            kept: if self.is_judged { self.judge() } else { Kept::Unknown },
            keep: KEEP,
            oldest_ns: self.oldest_ns,
            delivered_bytes: delivered as u64,
            is_direct: self.is_direct,
            groups: if self.is_gone { &[] } else { &groups },
            can_pace: self.can_pace,
            can_quota: self.can_quota,
            wants_probe: self.wants_probe,
        };
        if let Some(transition) = self.law.step(&seen) {
            self.said.push(transition);
            self.judged.clear();
        }
        let budget = self.law.wish().budget_bytes;
        let memory = &self.group.memory;
        self.high = budget.map(|budget| followed(self.high, needed(memory, budget, DIRTY_SHARE), None));
    }

    /// As `law/judge.rs`: sure of a share by its samples, or by a whole window.
    fn judge(&self) -> Kept {
        let lately = &self.judged[self.judged.len().saturating_sub(WINDOW)..];
        if lately.len() < 5 {
            return Kept::Unknown;
        }
        let kept = lately.iter().sum::<f64>() / lately.len() as f64;
        let margin = CONFIDENCE * kept * NOISE / (lately.len() as f64).sqrt();
        if kept - margin.min(0.5 * (1.0 - KEEP)) >= KEEP {
            Kept::Good(kept)
        } else if kept + margin < KEEP || (lately.len() == WINDOW && kept < KEEP) {
            Kept::Bad(kept)
        } else {
            Kept::Close(kept)
        }
    }

    /// About a normal number: twelve even ones, less six.
    fn normal(&mut self) -> f64 {
        let mut even = || {
            self.random =
                self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.random >> 40) as f64 / (1u64 << 24) as f64
        };
        (0..12).map(|_| even()).sum::<f64>() - 6.0
    }

    /// What commits kept and what bulk writers got of the left-over in the last so many seconds.
    pub fn last(&self, seconds: usize) -> (f64, f64) {
        let last = &self.done[self.done.len() - 10 * seconds..];
        let mean = |of: fn(&(f64, f64)) -> f64| last.iter().map(of).sum::<f64>() / last.len() as f64;
        (mean(|look| look.0), mean(|look| look.1) / (self.rate - self.own))
    }
}

/// A line through points, level beyond its ends.
fn line(points: &[(f64, f64)], at: f64) -> f64 {
    let after = points.iter().position(|point| point.0 >= at).unwrap_or(points.len());
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (None, Some(first)) => first.1,
        (Some(last), None) => last.1,
        (Some(low), Some(high)) => low.1 + (high.1 - low.1) * (at - low.0) / (high.0 - low.0),
        (None, None) => 1.0,
    }
}

/// Commits wait for what is in the device's queue: bounded, for as much of the backlog as fits; paced, as an M/D/1 queue of requests.
pub fn queue(plant: &Plant, dirty: f64, pace: Option<f64>) -> f64 {
    let idle = 5e-3;
    let request = MB / 32.0 / plant.rate;
    let busy = pace.map(|pace| (pace + plant.own) / plant.rate).filter(|busy| *busy < 0.99);
    let waits = match busy {
        Some(busy) => request * busy * busy / (2.0 * (1.0 - busy)),
        None => 0.3 * dirty / plant.rate,
    };
    idle / (idle + waits)
}

/// The same in a journal whose commit waits for the group's own pages, the longer the slower they are let through.
pub fn ordered(plant: &Plant, dirty: f64, pace: Option<f64>) -> f64 {
    match pace {
        Some(pace) => 5e-3 / (5e-3 + 0.5 * dirty / pace),
        None => queue(plant, dirty, None),
    }
}

/// As measured in a guest of Linux 6.1 on a device of 400 write IOPS and 40 MB/s: share of idle commits by dirty bytes (a fifth of
/// memory.high) and by io.max with memory.high at 48 MB. Those of xfs at 16 MB were not measured and are taken as at 32.
macro_rules! measured {
    ($name:ident, $bounded:expr, $paced:expr) => {
        pub fn $name(_: &Plant, dirty: f64, pace: Option<f64>) -> f64 {
            match pace {
                Some(pace) => line(&$paced, pace / MB),
                None => line(&$bounded, dirty / MB),
            }
        }
    };
}
measured!(ext4_1, [(3.2, 1.0), (6.4, 1.0), (200.0, 0.003)], [(30.0, 0.95), (36.0, 0.93), (40.0, 0.9)]);
measured!(ext4_8, [(3.2, 0.958), (6.4, 0.749), (200.0, 0.005)], [(30.0, 1.0), (36.0, 0.93), (40.0, 0.75)]);
measured!(xfs_1, [(6.4, 0.718), (200.0, 0.003)], [(20.0, 1.0), (30.0, 1.0), (40.0, 0.718)]);
measured!(xfs_8, [(6.4, 0.865), (200.0, 0.014)], [(20.0, 0.98), (30.0, 0.952), (40.0, 0.865)]);
