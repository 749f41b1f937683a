//! What would help at most, by arithmetic alone.
//!
//! In a closed loop of N sessions the rate is N over the time a transaction takes. Taking away a share `s` of that time
//! makes at most 1 / (1 − s) of the rate, and a machine whose processors are busy for a share `u` gives at most 1 / u of
//! it at the same cost of a transaction (Denning and Buzen 1978, the utilisation law). The cost does not stay the same,
//! though: a commit that sleeps costs switches and wake-ups that one in memory does not.

use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::profile::{Part, Profile};
use super::signs::{commits_by_clock, is_in_memory, stalled, stalled_latches};
use super::waits::Wait;
use crate::durability::syncs_each;

/// Processor time that a sleeping commit may cost beyond one that does not sleep, per transaction. Measured on two
/// processors of a virtual machine at eight threads, data on disk against data in memory: MariaDB 10.11 0.17 ms,
/// PostgreSQL 15 0.30 ms. A bound takes more than the larger one.
const COMMIT_COST_NS: f64 = 350_000.0;
/// Queues for rows that take less than this are not worth a bound.
const LOCKS_MATTER: f64 = 0.01;
/// At most so much of a transaction's processor time is taken for the cost of sleeping.
const COMMIT_COST_MAX: f64 = 0.75;

/// Most of the rate that a change could give, as ratios to the rate measured: 1.21 is 21 % more. `None` where the time
/// could not be divided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Storage that answers at once.
    pub faster_disk: Option<f64>,
    /// Share of the sessions' time in transactions that waits for storage, queues for rows behind commits included.
    pub storage_share: Option<f64>,
    /// Processors without queues: as many as there are threads that want one.
    pub more_cpu: Option<f64>,
    /// No two sessions on the same row.
    pub no_locks: Option<f64>,
}

impl Bounds {
    /// From the shares, the machine's load and what a commit may cost.
    pub fn of(evidence: &Evidence, profile: &Profile) -> Bounds {
        if profile.parts.is_empty() {
            return Bounds::default();
        }
        let without = |share: f64| 1.0 / (1.0 - share).max(1e-3);
        let storage = storage_share(evidence, profile);
        let committing = if is_in_memory(evidence) { 0.0 } else { commits_by_clock(evidence, profile) };
        let by_time = without((storage + maybe_storage(evidence, profile)).max(committing));
        let by_cpu = own_share(evidence).map_or(f64::INFINITY, |busy| 1.0 / busy.clamp(0.01, 1.0));
        let saved = saved_by_not_sleeping(evidence, storage);
        let knows_waits = profile.samples > 0 || profile.share(Part::Unknown) < 0.5;
        let queues = profile.share(Part::ServerQueues) + profile.share(Part::ClientQueues);
        Bounds {
            faster_disk: knows_waits.then(|| (by_time.min(by_cpu) / (1.0 - saved)).max(1.0)),
            storage_share: knows_waits.then_some(storage),
            more_cpu: evidence.watched.session_tasks.map(|_| without(queues)),
            no_locks: (profile.share(Part::Lock) > LOCKS_MATTER)
                .then(|| without(profile.share(Part::Lock)).min(by_cpu.max(1.0))),
        }
    }
}

impl Bounds {
    /// Each bound there is, with the change's name, as a gain: 0.21 is 21 % more.
    pub fn gains(&self) -> Vec<(&'static str, f64)> {
        let all = [
            ("storage that answers at once", self.faster_disk),
            ("processors without queues", self.more_cpu),
            ("no two sessions on one row", self.no_locks),
        ];
        all.into_iter().filter_map(|(change, ratio)| Some((change, ratio? - 1.0))).collect()
    }
}

/// Share of the machine's processor time that the transactions themselves cost; `None` of a server whose processors nobody
/// saw. The rest of what is busy is no part of a bound: what the kernel does for the device goes away with it, and others
/// may stop.
fn own_share(evidence: &Evidence) -> Option<f64> {
    let watched = &evidence.watched;
    let server = watched.cpu.server_ns?;
    let whole = (f64::from(watched.processors) * watched.elapsed_ns as f64).max(1.0);
    (watched.processors > 0).then(|| ((server + watched.cpu.client_ns) as f64 / whole).min(1.0))
}

/// What may have waited for storage, too, and nobody could see: a bound counts it, except where there is no device. Who
/// sleeps on a latch may sleep behind one who writes, and who has slept for storage waits for a processor afterwards.
fn maybe_storage(evidence: &Evidence, profile: &Profile) -> f64 {
    if is_in_memory(evidence) {
        return 0.0;
    }
    let latches = profile.share(Part::Latch) - stalled_latches(evidence, profile);
    let latches = if evidence.load.is_read_only { 0.0 } else { latches };
    let roots = evidence.watched.sessions.as_ref().map_or(1.0, |sessions| {
        [Wait::Latch, Wait::Other].into_iter().map(|wait| sessions.root_share(wait)).sum()
    });
    let woken = profile.share(Part::ServerQueues) * woken_by_storage(evidence);
    profile.share(Part::Unknown) + latches + profile.share(Part::Lock) * roots + woken
}

/// Of the times that a session is woken, the share that follows a wait for storage: each page that was read, and each
/// transaction's commit, beside each statement of the client.
fn woken_by_storage(evidence: &Evidence) -> f64 {
    let (load, counters) = (&evidence.load, evidence.watched.counters.unwrap_or_default());
    let commits = if load.is_read_only { 0 } else { load.transactions };
    let storage = (commits + counters.page_reads.unwrap_or(0)) as f64;
    storage / (storage + load.statements.max(load.transactions) as f64).max(1.0)
}

/// What waits for storage, with those who wait for a row whose holder waits for storage.
pub(super) fn storage_share(evidence: &Evidence, profile: &Profile) -> f64 {
    if is_in_memory(evidence) {
        return 0.0;
    }
    let rooted = evidence.watched.sessions.as_ref().map_or(0.0, |sessions| {
        [Wait::Commit, Wait::Read, Wait::WriteBack].into_iter().map(|wait| sessions.root_share(wait)).sum()
    });
    (profile.sum(Part::is_storage) + stalled(evidence, profile) + profile.share(Part::Lock) * rooted).min(1.0)
}

/// Fewer syncs and reads a transaction than this: the device is as good as never waited for.
pub(super) const SYNCS_FEW: f64 = 0.01;

/// Syncs and reads of the device, where both are known.
pub(super) fn touches_of_disk(evidence: &Evidence) -> Option<(f64, f64)> {
    let (load, watched) = (&evidence.load, &evidence.watched);
    let device = watched.device.as_ref()?;
    let syncs = syncs_each(load, watched)? * load.transactions.max(1) as f64;
    Some((syncs, device.reads_per_second * watched.elapsed_ns as f64 / 1e9))
}

/// Share of a transaction's processor time that goes away with sleeping, at most.
fn saved_by_not_sleeping(evidence: &Evidence, storage: f64) -> f64 {
    let cpu = &evidence.watched.cpu;
    let used = cpu.server_ns.unwrap_or(0) + cpu.client_ns;
    // A session that never waits for a device does not sleep for it.
    let touches = touches_of_disk(evidence).map(|(syncs, reads)| syncs + reads);
    let never = touches.is_some_and(|touches| touches < SYNCS_FEW * evidence.load.transactions as f64);
    if storage <= 0.01 || used == 0 || never {
        return 0.0;
    }
    let per_transaction = evidence.load.per_transaction(used).max(1.0);
    (COMMIT_COST_NS / per_transaction).min(COMMIT_COST_MAX)
}
