//! From evidence to a verdict.
//!
//! Every limit is weighed by the share of the sessions' time that it accounts for. Sleeping is a limit of its own kind;
//! time on a processor and in its queue is the processor's only where processors are short, or else it is what the work
//! takes. What remains when nothing is short and nobody waits is that too few sessions ask.

use super::bounds::{Bounds, busy_share, is_in_memory, pressing_others, pressing_share};
use super::diagnosis::{Candidate, Confidence, Diagnosis, Limit};
use super::profile::{Part, Profile};
use super::traps::traps;
use super::waits::Wait;
use super::watched::Evidence;
use super::words;
use crate::processors::Processors;

/// Processors are short from here on. The remaining share is what two processors cannot use of each other's time.
const SATURATED: f64 = 0.85;
/// A wait that accounts for less is not what limits a run.
pub(super) const WORTH_NAMING: f64 = 0.25;
/// A side that runs for this share of the time is what the time goes for.
const MOSTLY: f64 = 0.5;
/// An open loop is satisfied with at most this share of its transactions late or not started.
const LATE_AT_MOST: f64 = 0.02;
/// ... and at least this share of the rate asked for.
const RATE_AT_LEAST: f64 = 0.97;
/// Others hold processors that are used up from this share of them on.
const OTHERS_HOLD: f64 = 0.05;
/// Leads by which a verdict is sure, and fairly sure.
const FAR_AHEAD: f64 = 0.25;
const AHEAD: f64 = 0.1;
/// Writes of data pages are the device's main work from here on, by their share of all its writes or of their bytes.
const PAGES_DOMINATE: f64 = 0.5;
/// A device is busy from here on. What works in parallel is used for far less than all of the time when it can take no
/// more; what is throttled above its queue shows in those that wait for it alone (pressure).
const DEVICE_BUSY: f64 = 0.2;
/// The log was full at so many of the looks: writing goes on as fast as pages are written.
const MOSTLY_FULL: f64 = 0.5;
/// Waits for a free page are what a transaction waits for from here on, by their number in one.
const PAGE_WAITS: f64 = 0.05;
/// Checkpoints forced by the size of the log come too often from here on: PostgreSQL's own `checkpoint_warning`.
const CHECKPOINTS_APART_NS: u64 = 30_000_000_000;
/// The page that PostgreSQL puts into its log.
const PAGE_IMAGE_BYTES: u64 = 8192;
/// Below this share of busy processors, who waits for one waits for it to wake up, not for its turn: the scheduler's
/// clock counts both as waiting.
const QUEUES_FROM: f64 = 0.6;

/// What limits the run.
pub fn judge(evidence: &Evidence) -> Diagnosis {
    let profile = Profile::of(evidence);
    let candidates = candidates(evidence, &profile);
    let (limit, share) = name(evidence, &profile, &candidates);
    let confidence = confidence(evidence, &profile, limit, &candidates);
    let bounds = Bounds::of(evidence, &profile);
    Diagnosis {
        limit,
        share,
        confidence,
        headline: words::headline(evidence, limit, share, &bounds),
        evidence: words::evidence(evidence, &profile, limit),
        chain: chain(evidence, &profile, limit),
        tested: evidence.watched.tested.clone(),
        traps: traps(evidence, &profile),
        unseen: evidence.watched.unseen.clone(),
        bounds,
        candidates,
        profile,
    }
}

fn name(evidence: &Evidence, profile: &Profile, candidates: &[Candidate]) -> (Limit, f64) {
    let known = 1.0 - profile.share(Part::Unknown);
    match candidates.first() {
        _ if evidence.load.transactions == 0 => (Limit::CannotTell, 0.0),
        _ if is_satisfied(evidence) => (Limit::Nothing, 0.0),
        Some(first) if first.share >= WORTH_NAMING => (first.limit, first.share),
        // Half of the time unseen could be anything.
        _ if known < 0.5 || busy_share(evidence).is_none() => (Limit::CannotTell, 0.0),
        _ => (nobody_waits(evidence, profile), profile.sum(is_plain_work)),
    }
}

/// What limits sessions that wait for nothing but each other's answers: that there are so few of them, unless no processor
/// is left for more.
fn nobody_waits(evidence: &Evidence, profile: &Profile) -> Limit {
    let server = profile.share(Part::ServerRuns) + profile.share(Part::ServerQueues);
    let client = profile.share(Part::ClientRuns) + profile.share(Part::ClientQueues);
    match busy_share(evidence) {
        Some(busy) if busy < SATURATED => Limit::LoadGenerator,
        _ if others_hold(evidence) => Limit::OtherPrograms,
        _ if client > server => Limit::ClientCpu,
        _ => Limit::ServerCpu,
    }
}

/// Whether the processors are used up and others have a good part of them, of whatever priority.
fn others_hold(evidence: &Evidence) -> bool {
    let all = Processors::watched(&evidence.watched).filter(|all| all.busy_share() >= SATURATED);
    all.is_some_and(|all| all.rest >= OTHERS_HOLD * f64::from(all.online))
}

/// Whether an open loop's transactions ran when they were due.
pub(super) fn is_satisfied(evidence: &Evidence) -> bool {
    let load = &evidence.load;
    load.asked_per_second.is_some_and(|asked| {
        load.late.max(load.not_started) <= LATE_AT_MOST && load.per_second() >= RATE_AT_LEAST * asked
    })
}

/// Work, and waking up for it.
fn is_plain_work(part: Part) -> bool {
    use Part::{Between, ClientQueues, ClientRuns, ServerQueues, ServerRuns};
    matches!(part, ServerRuns | ClientRuns | Between | ServerQueues | ClientQueues)
}

fn candidates(evidence: &Evidence, profile: &Profile) -> Vec<Candidate> {
    let share = |part| profile.share(part);
    let is_short = are_short(evidence, SATURATED);
    // Running is the processors' only where they are short.
    let running = |part| if is_short { share(part) } else { 0.0 };
    let server = running(Part::ServerRuns) + server_queues(evidence, profile);
    // A client that runs for most of the time limits it, whatever else could run meanwhile.
    let client_runs = share(Part::ClientRuns);
    let client_works = if client_runs >= MOSTLY { client_runs } else { running(Part::ClientRuns) };
    let client = client_works + client_queues(evidence, profile);
    let (commit, write_back) = (share(Part::Commit), share(Part::WriteBack) + stalled(evidence, profile));
    let mut all = vec![
        Candidate { limit: Limit::ServerCpu, share: server + client_beside_server(evidence, client, server) },
        Candidate { limit: client_limit(evidence, profile), share: client },
        Candidate { limit: Limit::ReadIo, share: share(Part::Read) },
        Candidate { limit: Limit::Locks, share: share(Part::Lock) },
        Candidate { limit: Limit::Latches, share: share(Part::Latch) - stalled_latches(evidence, profile) },
    ];
    if pages_fill_device(evidence) {
        // Commits are slow because pages are in their way.
        all.push(Candidate { limit: Limit::WriteBack, share: commit + write_back });
    } else {
        all.push(Candidate { limit: Limit::CommitLatency, share: commit });
        all.push(Candidate { limit: Limit::WriteBack, share: write_back });
    }
    if is_in_memory(evidence) {
        all.retain(|c| !matches!(c.limit, Limit::ReadIo | Limit::WriteBack));
    }
    all.retain(|candidate| candidate.share > 0.0);
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

/// Whether processors are used for at least such a share, and what others leave of them is less than the transactions
/// could use: a session uses one at a time, its own or the client's.
fn are_short(evidence: &Evidence, from: f64) -> bool {
    let at_once = evidence.load.busy_ns as f64 / evidence.load.elapsed_ns.max(1) as f64;
    let is_enough = at_once + pressing_others(evidence) <= f64::from(evidence.watched.processors);
    !is_enough && pressing_share(evidence).is_some_and(|busy| busy >= from)
}

/// Whether waiting for a processor is waiting for a turn, for somebody who may use so many of them.
fn is_queue(evidence: &Evidence, may_use: u32) -> bool {
    let confined = may_use > 0 && may_use < evidence.watched.processors;
    confined || busy_share(evidence).is_none() || are_short(evidence, QUEUES_FROM)
}

/// The server's wait for its turn on a processor.
pub(super) fn server_queues(evidence: &Evidence, profile: &Profile) -> f64 {
    let queues = is_queue(evidence, evidence.watched.server_processors);
    if queues { profile.share(Part::ServerQueues) - stalled_queues(evidence, profile) } else { 0.0 }
}

/// The client's.
pub(super) fn client_queues(evidence: &Evidence, profile: &Profile) -> f64 {
    let queues = is_queue(evidence, evidence.watched.client_processors);
    if queues { profile.share(Part::ClientQueues) } else { 0.0 }
}

/// Where processors are short and the server uses most of them, the client's part of them is the same shortage.
fn client_beside_server(evidence: &Evidence, client: f64, server: f64) -> f64 {
    let cpu = &evidence.watched.cpu;
    let same = server > client && cpu.server_ns.is_some_and(|ns| ns > cpu.client_ns);
    if same && are_short(evidence, SATURATED) { client } else { 0.0 }
}

/// A client that is kept from running is no measure of a server; one that runs all the time is the work's own cost. Where it
/// may use a part of the processors alone and starves there, it limits the run, whoever uses the others: the server may
/// have them busy and still wait for it.
fn client_limit(evidence: &Evidence, profile: &Profile) -> Limit {
    let watched = &evidence.watched;
    let confined = watched.client_processors > 0 && watched.client_processors < watched.processors;
    let starved = profile.share(Part::ClientQueues) > profile.share(Part::ClientRuns);
    match (confined, starved) {
        (true, true) => Limit::LoadGenerator,
        (false, false) => Limit::ClientCpu,
        _ if others_hold(evidence) => Limit::OtherPrograms,
        _ => Limit::LoadGenerator,
    }
}

/// Whether data pages cannot be written later: the log or the pool has no room for more changes, or checkpoints follow
/// each other because the log is small.
fn is_pressed(evidence: &Evidence) -> bool {
    let counters = evidence.watched.counters.unwrap_or_default();
    let forced = counters.forced_checkpoints.unwrap_or(0);
    holds_up_writers(evidence) || forced.saturating_mul(CHECKPOINTS_APART_NS) >= evidence.watched.elapsed_ns
}

/// Whether InnoDB mostly lets sessions that change something wait until its page cleaner has made room.
fn holds_up_writers(evidence: &Evidence) -> bool {
    held_up_share(evidence) >= MOSTLY_FULL
}

/// Share of the time in which it does. They sleep on a futex, whatever the device looks like meanwhile.
fn held_up_share(evidence: &Evidence) -> f64 {
    let counters = evidence.watched.counters.unwrap_or_default();
    let writes_pages = counters.page_writes.is_some_and(|pages| pages > 0);
    if evidence.load.is_read_only || is_in_memory(evidence) || !writes_pages {
        return 0.0;
    }
    let Some(full) = counters.log_full else { return 0.0 };
    let waits = evidence.load.per_transaction(counters.free_page_waits.unwrap_or(0));
    if waits >= PAGE_WAITS { 1.0 } else { full }
}

/// Whether data pages that have to be written at once are what the device does, so that commits wait behind them.
pub(super) fn pages_fill_device(evidence: &Evidence) -> bool {
    let watched = &evidence.watched;
    let (Some(counters), Some(device)) = (watched.counters, watched.device.as_ref()) else { return false };
    let rate = |count: u64| count as f64 * 1e9 / watched.elapsed_ns.max(1) as f64;
    let pages = counters.page_writes.unwrap_or(0);
    let by_number = rate(pages) >= PAGES_DOMINATE * device.writes_per_second.max(1.0);
    // Without checkpoints the log would hold no images of pages: where it is made of them, its own writes are theirs.
    let of_page_size = |count: u64| count.saturating_mul(PAGE_IMAGE_BYTES);
    let images = of_page_size(counters.log_page_images.unwrap_or(0));
    let log_of_images =
        images as f64 >= PAGES_DOMINATE * counters.log_bytes.map_or(f64::INFINITY, |n| n as f64);
    let bytes = rate(of_page_size(pages) + images);
    let by_bytes = log_of_images && bytes >= PAGES_DOMINATE * device.write_bytes_per_second.max(1.0);
    is_pressed(evidence) && (by_number || by_bytes) && is_busy(evidence) && !device.is_memory
}

/// Whether the device has work for a good part of the time, or somebody waits for it.
fn is_busy(evidence: &Evidence) -> bool {
    let watched = &evidence.watched;
    let util = watched.device.as_ref().map(|device| device.util);
    [util, watched.pressure_io].into_iter().flatten().any(|share| share >= DEVICE_BUSY)
}

/// Time on other threads of the server, and in queues for a processor, that is waiting for pages to be written: whenever the
/// page cleaner has made some room, all that wait are woken, and most find none and sleep again. It counts for the share of
/// the time in which there was no room.
pub(super) fn stalled(evidence: &Evidence, profile: &Profile) -> f64 {
    stalled_latches(evidence, profile) + stalled_queues(evidence, profile)
}

/// The part of it on latches.
pub(super) fn stalled_latches(evidence: &Evidence, profile: &Profile) -> f64 {
    held_up_share(evidence) * profile.share(Part::Latch)
}

/// Where processors are short the page cleaner itself may wait for one.
fn stalled_queues(evidence: &Evidence, profile: &Profile) -> f64 {
    let is_short = are_short(evidence, SATURATED);
    if is_short { 0.0 } else { held_up_share(evidence) * profile.share(Part::ServerQueues) }
}

fn confidence(evidence: &Evidence, profile: &Profile, limit: Limit, candidates: &[Candidate]) -> Confidence {
    match limit {
        Limit::CannotTell => return Confidence::Low,
        Limit::Nothing => return Confidence::High,
        _ => {}
    }
    let share = |nth: usize| candidates.get(nth).map_or(0.0, |candidate| candidate.share);
    let by_default = matches!(limit, Limit::LoadGenerator | Limit::OtherPrograms);
    let lead =
        if by_default && share(0) < WORTH_NAMING { WORTH_NAMING - share(0) } else { share(0) - share(1) };
    // Twice the standard error of a share from so many samples, at its widest.
    let blur = if profile.samples > 0 { 1.0 / (profile.samples as f64).sqrt() } else { 0.0 };
    let lead = lead - blur;
    let sources = sources(evidence, limit);
    if lead >= FAR_AHEAD && sources >= 2 {
        Confidence::High
    } else if lead >= AHEAD && sources >= 1 {
        Confidence::Medium
    } else {
        Confidence::Low
    }
}

/// How many sources that do not depend on each other speak for a limit.
fn sources(evidence: &Evidence, limit: Limit) -> usize {
    let (watched, load) = (&evidence.watched, &evidence.load);
    let sampled = |wait: Wait| watched.sessions.as_ref().is_some_and(|s| s.share(wait) > 0.1);
    let tasks = watched.session_tasks.is_some();
    let counted = |count: Option<u64>| count.is_some_and(|count| load.per_transaction(count) > 0.01);
    let counters = watched.counters.unwrap_or_default();
    let answers = match limit {
        Limit::ServerCpu => {
            let pressed = watched.pressure_cpu.is_some_and(|share| share > 0.3);
            vec![tasks, pressed, are_short(evidence, SATURATED)]
        }
        Limit::ClientCpu | Limit::LoadGenerator | Limit::OtherPrograms => {
            vec![watched.client_tasks.is_some(), tasks || sampled(Wait::Client)]
        }
        Limit::CommitLatency => {
            let by_client = load.commit_ns as f64 > 0.25 * load.transaction_ns as f64;
            vec![sampled(Wait::Commit), by_client, watched.syncs.is_some_and(|syncs| syncs.count > 0)]
        }
        Limit::ReadIo => {
            let device = watched.device.as_ref().is_some_and(|device| device.reads_per_second > 1.0);
            vec![sampled(Wait::Read), counted(counters.page_reads), device]
        }
        Limit::WriteBack => {
            vec![holds_up_writers(evidence), pages_fill_device(evidence), sampled(Wait::WriteBack)]
        }
        Limit::Locks => vec![sampled(Wait::Lock), counted(counters.lock_waits), tasks],
        Limit::Latches => vec![sampled(Wait::Latch), tasks],
        Limit::Nothing | Limit::CannotTell => Vec::new(),
    };
    answers.into_iter().filter(|speaks| *speaks).count()
}

/// What stands behind the limit.
fn chain(evidence: &Evidence, profile: &Profile, limit: Limit) -> Option<String> {
    let sessions = evidence.watched.sessions.as_ref()?;
    let (root, share) = sessions
        .roots
        .keys()
        .map(|wait| (*wait, sessions.root_share(*wait)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let waiting = profile.share(Part::Lock);
    (limit == Limit::Locks || waiting >= 0.1).then(|| words::chain(root, share, waiting))
}
