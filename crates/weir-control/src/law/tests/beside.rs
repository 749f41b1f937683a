//! Both laws on the simulated plant, as in the guard's loop: private limits hold a direct writer, and the other law is set aside.

use crate::plant::{Event, Plant, PlantSpec};
use crate::private::{Group, Hold, Law, Seen, Transition, Work, are_at_work};
use crate::{Action, Guard, Parameters, Sample};

const LOOK_NS: u64 = 100_000_000;
/// What the direct writer has under way at most, in bytes: no bound of dirty pages holds it.
const QUEUE_BYTES: u64 = 64_000_000;

/// A machine under a guard.
struct Machine {
    plant: Plant,
    guard: Guard,
    law: Law,
    work: Work,
    said: Vec<Transition>,
}

impl Machine {
    fn new(threads: u32) -> Machine {
        let mut spec = PlantSpec::device_a();
        (spec.syncs.threads, spec.syncs.direct, spec.bulk.writers) = (threads, true, 0);
        // More threads do more: a request takes its time, and as many as come pass at once.
        (spec.device.latency_ns, spec.device.requests_per_second) = (2_000_000, 20_000.0);
        // What the writer has it sends at once.
        (spec.cache.saved_bytes, spec.cache.background) = (QUEUE_BYTES, 0.0);
        Machine {
            plant: Plant::new(spec, 7),
            guard: Guard::new(Parameters::default()),
            law: Law::default(),
            work: Work::default(),
            said: Vec::new(),
        }
    }

    /// Commits and bytes of the bulk writer, both a second.
    fn run(&mut self, seconds: u64) -> (f64, f64) {
        let before = self.plant.totals();
        (0..10 * seconds).for_each(|_| self.look());
        let now = self.plant.totals();
        let rate = |before: u64, now: u64| (now - before) as f64 / seconds as f64;
        (rate(before.commits, now.commits), rate(before.bulk_written, now.bulk_written))
    }

    fn look(&mut self) {
        self.plant.step(QUEUE_BYTES, LOOK_NS);
        let mut sample = self.plant.sample();
        // What goes past the page cache is not dirty, and nobody is throttled for it.
        (sample.bulk.held_back, sample.bulk.held_back_ns) = (0, 0);
        (sample.flow.dirty_bytes, sample.flow.writeback_bytes) = (0, 0);
        let by = self.hold(&sample);
        self.guard.set_aside(by);
        let pace = self.law.wish().pace.map_or(0.0, |pace| pace as f64);
        self.plant.apply(Event::Wanted(pace));
        let decision = self.guard.step(&sample);
        assert!(!by.covers || decision.action == Action::Keep, "{decision:?}");
    }

    /// The law of private limits takes a look.
    fn hold(&mut self, sample: &Sample) -> Hold {
        let (at_ns, sent_bytes) = (sample.at_ns, sample.bulk.dirtied_bytes);
        let mut group = Group { sent_bytes, written_bytes: Some(sent_bytes), ..Group::default() };
        self.work.push(LOOK_NS, &group);
        group.is_at_work = are_at_work(&[&self.work], self.law.wish().pace)[0];
        let (kept, need) = self.guard.judged(at_ns, self.law.judged_from());
        let said = self.law.step(&Seen {
            at_ns,
            elapsed_ns: LOOK_NS,
            silent_ns: 0,
            need,
            kept,
            keep: Parameters::default().target.keep,
            oldest_ns: sample.syncs.oldest_ns,
            delivered_bytes: sample.flow.written_bytes,
            is_direct: true,
            groups: &[group],
            can_pace: true,
            can_quota: false,
            wants_probe: self.guard.wants_probe(at_ns),
        });
        self.said.extend(said);
        Hold {
            covers: self.law.holds(),
            is_at_work: group.is_at_work,
            probed_from_ns: self.law.probed_from(),
        }
    }

    fn probes(&self) -> usize {
        self.said.iter().filter(|said| **said == Transition::Probe).count()
    }
}

/// Commits a second without a flood.
fn undisturbed(threads: u32) -> f64 {
    Machine::new(threads).run(20).0
}

#[test]
fn a_guard_that_starts_during_a_flood_learns_by_probes_what_syncs_do_undisturbed() {
    let mut machine = Machine::new(1);
    machine.plant.apply(Event::Flood(1));
    machine.run(30);
    let (commits, bulk) = machine.run(90);
    let (kept, said) = (commits / undisturbed(1), &machine.said);
    assert!(kept > 0.85 && bulk > 0.4 * 251e6, "{kept:.3} {bulk:.0} {said:?}");
    assert!((1..=3).contains(&machine.probes()), "{said:?}");
}

#[test]
fn more_threads_than_were_seen_undisturbed_are_not_taken_for_undisturbed() {
    let mut machine = Machine::new(1);
    machine.run(20);
    machine.plant.apply(Event::Threads(10));
    machine.plant.apply(Event::Flood(1));
    machine.run(30);
    let (commits, bulk) = machine.run(90);
    let (kept, said) = (commits / undisturbed(10), &machine.said);
    assert!(kept > 0.85 && bulk > 0.3 * 251e6, "{kept:.3} {bulk:.0} {said:?}");
}

#[test]
fn what_was_seen_undisturbed_is_not_probed() {
    let mut machine = Machine::new(10);
    machine.run(20);
    machine.plant.apply(Event::Flood(1));
    machine.run(90);
    assert_eq!(machine.probes(), 0, "{:?}", machine.said);
    assert!(machine.law.holds());
}
