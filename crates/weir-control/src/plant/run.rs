//! A plant under a law, for as long as a script takes.

use crate::{Action, Branch, Decision, Guard, Sample};
use weir_core::stats::Histogram;

use super::engine::Plant;
use super::event::Script;
use super::history::{History, Move, Second};
use super::spec::PlantSpec;

/// Between two looks, in nanoseconds.
const LOOK_NS: u64 = 100_000_000;
const LOOKS_A_SECOND: u64 = 10;

/// What turns the limit.
#[derive(Debug, Clone)]
pub enum Law {
    /// Nothing: it stays at the baseline.
    AsFound,
    /// This many bytes from the start.
    Static(u64),
    /// The guard.
    Guard(Box<Guard>),
}

impl Law {
    /// The limit from now on, and the decision behind it where there was one.
    fn look(&mut self, sample: &Sample) -> (u64, Option<Decision>) {
        match self {
            Law::AsFound => (sample.limits.saved_bytes, None),
            Law::Static(bytes) => (*bytes, None),
            Law::Guard(guard) => {
                let decision = guard.step(sample);
                let bytes = match decision.action {
                    Action::Keep => sample.limits.now_bytes,
                    Action::Set { bytes } => bytes,
                    Action::Release => sample.limits.saved_bytes,
                };
                (bytes, Some(decision))
            }
        }
    }
}

/// Runs a script. The law looks ten times a second, after the events that are due.
pub fn simulate(spec: &PlantSpec, script: &Script, mut law: Law, seed: u64) -> History {
    let mut plant = Plant::new(spec.clone(), seed);
    let mut history = History::default();
    let mut events = script.events.iter().peekable();
    let mut limit = match law {
        Law::Static(bytes) => bytes,
        Law::AsFound | Law::Guard(_) => spec.cache.saved_bytes,
    };
    let mut durations = Histogram::new();
    let mut before = plant.totals();
    let (mut backlog, mut accepted) = (0, 0.0);
    for look in 1..=script.length_ns / LOOK_NS {
        let end = look * LOOK_NS;
        while let Some(event) = events.next_if(|event| event.at_ns < end) {
            plant.step(limit, event.at_ns.saturating_sub(plant.now_ns()));
            plant.apply(event.event);
        }
        plant.step(limit, end - plant.now_ns());
        durations.merge(plant.commits());
        backlog = backlog.max(plant.backlog_bytes());
        accepted += plant.rates().0 / LOOKS_A_SECOND as f64;
        let (bytes, decision) = law.look(&plant.sample());
        if bytes != limit {
            let branch = decision.map_or(Branch::Steady, |decision| decision.branch);
            history.moves.push(Move { at_ns: end, bytes, branch });
            limit = bytes;
        }
        if look % LOOKS_A_SECOND == 0 {
            let totals = plant.totals();
            history.seconds.push(Second {
                at_ns: end,
                commits: totals.commits - before.commits,
                durations: std::mem::take(&mut durations),
                oldest_ns: plant.oldest_commit_ns(),
                bulk_bytes: totals.bulk_written - before.bulk_written,
                bytes: totals.written - before.written,
                requests: totals.requests - before.requests,
                accepted_bytes: std::mem::take(&mut accepted),
                wanted_bytes: plant.wanted_bytes_per_second(),
                backlog_bytes: std::mem::take(&mut backlog),
                limit_bytes: limit,
                threads: plant.spec().syncs.threads,
                writers: plant.spec().bulk.writers,
            });
            before = totals;
        }
    }
    history
}
