//! The plant itself: who acts next, and what is seen of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Bulk, DeviceFlow, Limits, Sample, Sensor, SensorSource, Syncs, Writer as Named};
use weir_core::stats::Histogram;
use weir_core::stats::random::Random;
use weir_core::target::DeviceNumber;

use super::bulk::{Flusher, Held, PERIODIC_NS, Writer};
use super::cache::{Cache, ESTIMATE_NS};
use super::device::Device;
use super::event::Event;
use super::queue::{Owner, Queue, Request};
use super::spec::PlantSpec;
use super::syncs::{Ended, Thread};

/// Who acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Agent {
    /// A sync thread, on its own account.
    Sync(u32),
    /// A bulk writer.
    Writer(u32),
    /// Write-back.
    Flusher,
    /// The queue gives out what waits.
    Queue,
    /// A request ended.
    Done(Request),
    /// The kernel looks at its rates.
    Estimate,
    /// The kernel looks for old pages.
    Periodic,
}

/// What happened since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Commits that ended.
    pub commits: u64,
    /// Bytes that bulk writers made dirty.
    pub bulk_dirtied: u64,
    /// Bytes of theirs that reached the device.
    pub bulk_written: u64,
    /// Bytes that reached the device, of all.
    pub written: u64,
    /// Requests that ended.
    pub requests: u64,
}

/// A machine with one device, its time, and everybody on it.
#[derive(Debug, Clone)]
pub struct Plant {
    pub(super) spec: PlantSpec,
    pub(super) random: Random,
    pub(super) now: u64,
    pub(super) cache: Cache,
    pub(super) device: Device,
    pub(super) threads: Vec<Thread>,
    pub(super) writers: Vec<Writer>,
    pub(super) flusher: Flusher,
    pub(super) ended: Ended,
    pub(super) held: Held,
    pub(super) totals: Totals,
    queue: Queue,
    queue_timer: Option<u64>,
    agenda: BinaryHeap<Reverse<(u64, u64, Agent)>>,
    turn: u64,
    silent_since: Option<u64>,
    sampled_at: u64,
    sampled: Totals,
}

impl Plant {
    /// A machine on which everybody of the specification starts now, at the baseline limit.
    pub fn new(spec: PlantSpec, seed: u64) -> Plant {
        let mut random = Random::new(seed);
        let device = Device::new(spec.device.clone(), &mut random);
        let accepted = match spec.device.bytes_per_second {
            rate if rate > 0.0 => rate,
            _ => spec.device.line_bytes_per_second,
        };
        let (threads, writers) = (spec.syncs.threads, spec.bulk.writers);
        let mut plant = Plant {
            cache: Cache::new(spec.cache.clone(), accepted),
            queue: Queue::new(spec.device.slice_ns),
            spec,
            random,
            now: 0,
            device,
            threads: Vec::new(),
            writers: Vec::new(),
            flusher: Flusher::default(),
            ended: Ended::default(),
            held: Held::default(),
            totals: Totals::default(),
            queue_timer: None,
            agenda: BinaryHeap::new(),
            turn: 0,
            silent_since: None,
            sampled_at: 0,
            sampled: Totals::default(),
        };
        plant.follow_rates();
        plant.at(ESTIMATE_NS, Agent::Estimate);
        plant.at(PERIODIC_NS, Agent::Periodic);
        plant.set_threads(threads);
        plant.set_writers(writers);
        plant
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        self.now
    }

    /// What it is made of, as events left it.
    pub fn spec(&self) -> &PlantSpec {
        &self.spec
    }

    /// What happened since the start.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Dirty bytes and those under way.
    pub fn backlog_bytes(&self) -> u64 {
        self.cache.total()
    }

    /// Durations of commits that ended since the sample before, from the begin of their write.
    pub fn commits(&self) -> &Histogram {
        &self.ended.commits
    }

    /// Age in nanoseconds of the oldest commit under way; 0 without one.
    pub fn oldest_commit_ns(&self) -> u64 {
        let began = self.threads.iter().filter_map(Thread::committing_since).min();
        began.map_or(0, |began| self.now - began)
    }

    /// Bytes and requests a second that the device accepts now.
    pub fn rates(&self) -> (f64, f64) {
        self.device.rates(self.now)
    }

    /// Bytes a second that bulk writers want to write; infinite where they write all they can.
    pub fn wanted_bytes_per_second(&self) -> f64 {
        match self.spec.bulk.wanted_bytes_per_second {
            wanted if wanted > 0.0 => wanted * f64::from(self.spec.bulk.writers),
            _ => f64::INFINITY,
        }
    }

    /// Lets `dt_ns` pass with this limit of dirty pages.
    pub fn step(&mut self, limit_bytes: u64, dt_ns: u64) {
        self.cache.set_limit(limit_bytes);
        self.kick_flusher();
        let until = self.now + dt_ns;
        while let Some(&Reverse((at, _, agent))) = self.agenda.peek() {
            if at > until {
                break;
            }
            self.agenda.pop();
            self.now = at;
            self.act(agent);
        }
        self.now = until;
    }

    /// Lets something happen now.
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::Threads(threads) => self.set_threads(threads),
            Event::Direct(direct) => self.spec.syncs.direct = direct,
            Event::Think(ns) => self.spec.syncs.think_ns = ns,
            Event::Flood(writers) => self.set_writers(writers),
            Event::Kind(kind) => self.spec.bulk.kind = kind,
            Event::Wanted(rate) => self.spec.bulk.wanted_bytes_per_second = rate,
            Event::Checkpoint(protected) => self.spec.bulk.protected = protected,
            Event::Rate(factor) => {
                self.device.set_rate(factor, factor);
                self.follow_rates();
                self.drain();
            }
            Event::Bandwidth(factor) => {
                self.device.set_rate(factor, 1.0);
                self.follow_rates();
                self.drain();
            }
            Event::Latency(factor) => self.device.set_latency(factor),
            Event::Stall(ns) => self.device.stall(self.now + ns),
            Event::Silence(silent) => {
                self.silent_since = silent.then(|| self.silent_since.unwrap_or(self.now))
            }
        }
    }

    /// What a guard sees, since the sample before.
    pub fn sample(&mut self) -> Sample {
        let ended = std::mem::take(&mut self.ended);
        let held = std::mem::take(&mut self.held);
        let began = self.totals;
        let silent_ns = self.silent_since.map_or(0, |since| self.now - since);
        let syncs = if self.silent_since.is_some() { Syncs::default() } else { self.syncs(&ended) };
        let protected = self.spec.bulk.protected;
        let bulk_dirtied: u64 = self.writers.iter().map(|writer| writer.bytes).sum();
        let (of_others, of_protected) = if protected { (0, bulk_dirtied) } else { (bulk_dirtied, 0) };
        let name = |(i, writer): (usize, &mut Writer)| {
            let bytes = std::mem::take(&mut writer.bytes);
            // Of the protected no more is told than how much it is.
            (bytes > 0 && !protected).then(|| Named {
                pid: 1000 + i as u32,
                comm: "dd".to_owned(),
                bytes,
                start_ns: 0,
            })
        };
        let writers = self.writers.iter_mut().enumerate().filter_map(name);
        let sample = Sample {
            device: DeviceNumber { major: 7, minor: 0 },
            at_ns: self.now,
            elapsed_ns: self.now - self.sampled_at,
            sensor: Sensor { source: SensorSource::Syscalls, silent_ns, lost: 0 },
            syncs,
            bulk: Bulk {
                held_back_ns: held.ns,
                held_back: held.times,
                writers: writers.collect(),
                dirtied_bytes: of_others,
                protected_bytes: ended.dirtied + of_protected,
                unlocated_bytes: 0,
            },
            flow: DeviceFlow {
                written_bytes: began.written - self.sampled.written,
                writes: began.requests - self.sampled.requests,
                dirty_bytes: self.cache.bulk_dirty + self.cache.sync_dirty,
                writeback_bytes: self.cache.writeback,
            },
            limits: Limits {
                now_bytes: self.cache.limit(),
                saved_bytes: self.spec.cache.saved_bytes,
                floor_bytes: self.spec.cache.floor_bytes,
            },
        };
        (self.sampled_at, self.sampled) = (self.now, began);
        sample
    }

    fn syncs(&self, ended: &Ended) -> Syncs {
        let under_way = || self.threads.iter().filter_map(Thread::syncing_since);
        Syncs {
            ended: ended.syncs.clone(),
            under_way: under_way().count() as u32,
            threads: if ended.syncs.count() > 0 { self.spec.syncs.threads } else { 0 },
            oldest_ns: under_way().min().map_or(0, |since| self.now - since),
            held_back_ns: ended.held_ns,
            held_back: ended.held,
        }
    }

    pub(super) fn at(&mut self, ns: u64, agent: Agent) {
        self.turn += 1;
        self.agenda.push(Reverse((ns, self.turn, agent)));
    }

    /// A request goes to the queue, and at once to the device if it may.
    pub(super) fn submit(&mut self, request: Request) {
        self.queue.push(request);
        self.drain();
    }

    fn act(&mut self, agent: Agent) {
        match agent {
            Agent::Sync(i) => self.sync_acts(i),
            Agent::Writer(i) => self.writer_acts(i),
            Agent::Flusher => self.flusher_acts(),
            Agent::Queue => {
                self.queue_timer = None;
                self.drain();
            }
            Agent::Done(request) => self.done(request),
            Agent::Estimate => {
                self.cache.estimate_idle(self.now);
                self.follow_rates();
                self.at(self.now + ESTIMATE_NS, Agent::Estimate);
            }
            Agent::Periodic => {
                self.flush_expired();
                self.at(self.now + PERIODIC_NS, Agent::Periodic);
            }
        }
    }

    fn drain(&mut self) {
        while let Some(request) = self.queue.pop(self.now) {
            let crowd = if self.bulk_at_work() { self.spec.syncs.threads } else { 0 };
            let ends = self.device.serve(request.bytes, self.now, crowd, &mut self.random);
            self.at(ends, Agent::Done(request));
        }
        if let Some(ready) = self.queue.ready_ns(self.now)
            && self.queue_timer.is_none_or(|timer| ready < timer)
        {
            self.queue_timer = Some(ready);
            self.at(ready, Agent::Queue);
        }
    }

    fn done(&mut self, request: Request) {
        self.device.under_way -= 1;
        self.totals.requests += 1;
        self.totals.written += request.bytes;
        self.cache.cleaned(request.pages);
        if self.flusher.blocked {
            self.flusher.blocked = false;
            self.at(self.now, Agent::Flusher);
        }
        match request.owner {
            Owner::Bulk => self.totals.bulk_written += request.bytes,
            Owner::Sync(i) => self.sync_acts(i),
        }
    }

    fn follow_rates(&mut self) {
        if self.spec.device.slice_ns > 0 {
            let (bytes, requests) = self.device.rates(self.now);
            self.queue.set_rates(bytes, requests);
        }
    }
}
