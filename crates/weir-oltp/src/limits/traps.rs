//! What misleads people who read such runs, said where it applies.

use serde::{Deserialize, Serialize};

use super::bounds::{Bounds, SYNCS_FEW, storage_share, touches_of_disk};
use super::evidence::Evidence;
use super::profile::{Part, Profile, percent};
use super::signs::{busy_share, client_queues, is_in_memory, pages_fill_device, server_queues, stalled};
use crate::processors::Processors;

/// A trap, with its sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trap {
    /// Stable key.
    pub key: String,
    /// What misleads, and what to do.
    pub text: String,
}

/// Processors this little busy while sessions hand work to and fro are woken up for every statement.
const IDLE_BELOW: f64 = 0.75;
/// Share of the time that passes between client and server from which wake-ups matter.
const BETWEEN_ABOVE: f64 = 0.25;
/// A faster disk that gives less than this gives nothing.
const HARDLY_FASTER: f64 = 0.1;
/// Processors are busy from here on.
const BUSY: f64 = 0.85;

/// All traps that apply; those that need no watching are warnings of the result.
pub(super) fn traps(evidence: &Evidence, profile: &Profile) -> Vec<Trap> {
    let rules = [
        idle_wake_ups,
        never_touches_the_disk,
        saturated_with_commits,
        busy_is_not_bound,
        others_take_much,
        clocks_disagree,
        reads_from_the_page_cache,
    ];
    rules.iter().filter_map(|rule| rule(evidence, profile)).collect()
}

fn trap(key: &str, text: String) -> Option<Trap> {
    Some(Trap { key: key.to_string(), text })
}

fn idle_wake_ups(evidence: &Evidence, profile: &Profile) -> Option<Trap> {
    let busy = busy_share(evidence)?;
    // A thread that waits for an idle processor waits for it to wake up.
    let queues = profile.share(Part::ServerQueues) + profile.share(Part::ClientQueues);
    let turns = server_queues(evidence, profile) + client_queues(evidence, profile);
    let between = profile.share(Part::Between) + queues - turns;
    if busy >= IDLE_BELOW || between < BETWEEN_ABOVE {
        return None;
    }
    trap(
        "idle-wake-ups",
        format!(
            "{} of the time passes in handing work between client and server while processors are only {} busy: waking idle processors \
             is part of every statement. Compare with everything pinned to one processor before comparing anything else",
            percent(between),
            percent(busy)
        ),
    )
}

fn never_touches_the_disk(evidence: &Evidence, profile: &Profile) -> Option<Trap> {
    if is_in_memory(evidence) {
        return trap(
            "data-in-memory",
            "the server's data lie in memory (tmpfs): no disk takes part, and comparing disks with this run says nothing"
                .to_string(),
        );
    }
    if pages_fill_device(evidence) || stalled(evidence, profile) > 0.0 {
        return None;
    }
    let (syncs, reads) = touches_of_disk(evidence)?;
    let per_transaction = (syncs + reads) / evidence.load.transactions.max(1) as f64;
    let faster = Bounds::of(evidence, profile).faster_disk.is_none_or(|ratio| ratio < 1.0 + HARDLY_FASTER);
    (per_transaction < SYNCS_FEW && faster && !evidence.load.is_read_only).then_some(())?;
    trap(
        "never-touches-the-disk",
        format!(
            "{syncs:.0} syncs and {reads:.0} reads in {} transactions: this configuration does not wait for the disk, so any disk will do",
            evidence.load.transactions
        ),
    )
}

fn saturated_with_commits(evidence: &Evidence, profile: &Profile) -> Option<Trap> {
    let (busy, storage) = (busy_share(evidence)?, storage_share(evidence, profile));
    let commits = profile.share(Part::Commit);
    (busy >= BUSY && commits > 0.03 && storage < on_processors(profile)).then_some(())?;
    trap(
        "saturation-hides-commits",
        format!(
            "processors are {} busy, but commits still sleep ({} of the time), and sleeping itself costs processor time: \
             a faster device gives more than its share of the time suggests",
            percent(busy),
            percent(commits)
        ),
    )
}

fn busy_is_not_bound(evidence: &Evidence, profile: &Profile) -> Option<Trap> {
    let busy = busy_share(evidence)?;
    let storage = storage_share(evidence, profile);
    (busy >= BUSY && storage >= on_processors(profile)).then_some(())?;
    trap(
        "busy-is-not-bound",
        format!(
            "processors are {} busy, and still {} of the time waits for storage: the processor time of a transaction falls \
             when fewer processors have to be woken, so that more of them would help less than it seems",
            percent(busy),
            percent(storage)
        ),
    )
}

/// What sessions spend on processors and in their queue.
fn on_processors(profile: &Profile) -> f64 {
    profile.share(Part::ServerRuns) + profile.share(Part::ServerQueues)
}

fn others_take_much(evidence: &Evidence, _: &Profile) -> Option<Trap> {
    let all = Processors::watched(&evidence.watched).filter(|all| all.server.is_some())?;
    let share = all.rest / all.busy.max(f64::MIN_POSITIVE);
    (share > 0.2 && all.busy_share() > 0.5).then_some(())?;
    trap(
        "others-on-the-processors",
        format!(
            "{} of the processor time used was neither the server's nor the client's: other programs, or the kernel's own \
             work for them",
            percent(share)
        ),
    )
}

fn clocks_disagree(evidence: &Evidence, _: &Profile) -> Option<Trap> {
    trap("clocks-disagree", Processors::watched(&evidence.watched)?.disagreement()?)
}

fn reads_from_the_page_cache(evidence: &Evidence, _: &Profile) -> Option<Trap> {
    let watched = &evidence.watched;
    let pages = watched.counters.and_then(|counters| counters.page_reads)?;
    let device = watched.device.as_ref()?;
    let reads = device.reads_per_second * watched.elapsed_ns as f64 / 1e9;
    (evidence.load.per_transaction(pages) > 0.1 && reads < 0.1 * pages as f64).then_some(())?;
    trap(
        "reads-from-the-page-cache",
        format!(
            "the server read {pages} pages, the device only {}: the rest came from the kernel's page cache, and costs \
             processor time instead",
            reads as u64
        ),
    )
}
