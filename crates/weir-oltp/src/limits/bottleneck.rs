//! From evidence to a verdict.
//!
//! Every limit is weighed by the share of the sessions' time that it accounts for. Sleeping is a limit of its own kind;
//! time on a processor and in its queue is the processor's only where processors are short, or else it is what the work
//! takes; and a queue behind other programs is theirs. If nothing is short and nobody waits, too few sessions ask.
//!
//! Shares alone name the limit. Bounds and tests are other evidence of the same run: where one of them speaks against the
//! verdict, the verdict is less sure.

use super::bounds::Bounds;
use super::diagnosis::{Candidate, Confidence, Diagnosis, Limit};
use super::elasticity::held;
use super::evidence::Evidence;
use super::profile::{Part, Profile};
use super::signs::{
    SATURATED, WORTH_NAMING, are_short, behind_others, busy_share, client_queues, commits_by_clock,
    holds_up_writers, is_in_memory, is_satisfied, pages_fill_device, serve_unsummed, server_queues,
    serves_here, stalled, stalled_latches,
};
use super::tested::Tested;
use super::traps::traps;
use super::waits::Wait;
use super::words;
use crate::processors::Processors;

/// A side that runs for this share of the time is what the time goes for.
const MOSTLY: f64 = 0.5;
/// Others hold processors that are used up from this share of them on.
const OTHERS_HOLD: f64 = 0.05;
/// Leads by which a verdict is sure, and fairly sure.
const FAR_AHEAD: f64 = 0.25;
const AHEAD: f64 = 0.1;

/// What limits the run.
pub fn judge(evidence: &Evidence) -> Diagnosis {
    let profile = Profile::of(evidence);
    let candidates = candidates(evidence, &profile);
    let (limit, share) = name(evidence, &profile, &candidates);
    let bounds = Bounds::of(evidence, &profile);
    let mut verdict = Diagnosis {
        limit,
        share,
        confidence: confidence(evidence, &profile, limit, &candidates),
        headline: words::headline(evidence, limit, share, &bounds),
        evidence: words::evidence(evidence, &profile, limit),
        chain: chain(evidence, &profile, limit),
        tested: Vec::new(),
        traps: traps(evidence, &profile),
        unseen: evidence.watched.unseen.clone(),
        bounds,
        candidates,
        profile,
    };
    // A record may hold tests of another version's verdict.
    let again = |tested: &Tested| held(tested.change, tested.pairs, tested.ratio, &verdict);
    verdict.tested = evidence.watched.tested.iter().map(again).collect();
    if verdict.tested.iter().any(|tested| tested.confirms == Some(false)) {
        verdict.confidence = Confidence::Low;
        verdict.headline += words::TESTED_AGAINST;
    } else if is_outbid(limit, &bounds) {
        verdict.confidence = verdict.confidence.min(Confidence::Medium);
    }
    verdict
}

/// Whether a change to another resource than the one named could give more.
fn is_outbid(limit: Limit, bounds: &Bounds) -> bool {
    let (storage, processors) = (bounds.faster_disk, bounds.more_cpu);
    let (own, other) = match limit {
        Limit::CommitLatency | Limit::ReadIo | Limit::WriteBack => (storage, processors),
        Limit::ServerCpu | Limit::OtherPrograms => (processors, storage),
        _ => (None, None),
    };
    own.zip(other).is_some_and(|(own, other)| own < other)
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
    !serve_unsummed(evidence) && all.is_some_and(|all| all.rest >= OTHERS_HOLD * f64::from(all.online))
}

/// Work, and waking up for it.
fn is_plain_work(part: Part) -> bool {
    use Part::{Between, ClientQueues, ClientRuns, ServerQueues, ServerRuns};
    matches!(part, ServerRuns | ClientRuns | Between | ServerQueues | ClientQueues)
}

fn candidates(evidence: &Evidence, profile: &Profile) -> Vec<Candidate> {
    let share = |part| profile.share(part);
    let (queues, others) = (server_queues(evidence, profile), behind_others(evidence));
    // Running is the processors' only where they are short, and not for others.
    let is_short = are_short(evidence, SATURATED) && others < MOSTLY;
    let running = |part| if is_short { share(part) } else { 0.0 };
    let server_works = running(Part::ServerRuns) + queues * (1.0 - others);
    let server = if serves_here(evidence) { server_works } else { 0.0 };
    // A client that runs for most of the time limits it, whatever else could run meanwhile.
    let client_runs = share(Part::ClientRuns);
    let client_works = if client_runs >= MOSTLY { client_runs } else { running(Part::ClientRuns) };
    // Where servers have a part of the processors that nobody knows, a client that waits for one may wait for them.
    let is_its_own = client_runs >= MOSTLY || confinement(evidence, profile) == (true, true);
    let whole = client_works + client_queues(evidence, profile);
    let client = if serve_unsummed(evidence) && !is_its_own { 0.0 } else { whole };
    let beside = if is_short { client_beside_server(evidence, client, server) } else { 0.0 };
    let client_limit = client_limit(evidence, profile);
    let kept = if client_limit == Limit::OtherPrograms { client } else { 0.0 };
    let (commit, write_back) = (share(Part::Commit), share(Part::WriteBack) + stalled(evidence, profile));
    let mut all = vec![
        Candidate { limit: Limit::ServerCpu, share: server + beside },
        Candidate { limit: client_limit, share: client - kept },
        Candidate { limit: Limit::OtherPrograms, share: kept + queues * others },
        Candidate { limit: Limit::Replicas, share: share(Part::Replica) },
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

/// Where processors are short and the server uses most of them, the client's part of them is the same shortage.
fn client_beside_server(evidence: &Evidence, client: f64, server: f64) -> f64 {
    let cpu = &evidence.watched.cpu;
    let same = server > client && cpu.server_ns.is_some_and(|ns| ns > cpu.client_ns);
    if same { client } else { 0.0 }
}

/// A client that is kept from running is no measure of a server; one that runs all the time is the work's own cost. Where it
/// may use a part of the processors alone and starves there, it limits the run, whoever uses the others: the server may
/// have them busy and still wait for it.
fn client_limit(evidence: &Evidence, profile: &Profile) -> Limit {
    match confinement(evidence, profile) {
        (true, true) => Limit::LoadGenerator,
        (false, false) => Limit::ClientCpu,
        _ if others_hold(evidence) => Limit::OtherPrograms,
        _ => Limit::LoadGenerator,
    }
}

/// Whether the client may use a part of the processors alone, and whether it waits for one for longer than it runs.
fn confinement(evidence: &Evidence, profile: &Profile) -> (bool, bool) {
    let watched = &evidence.watched;
    let confined = watched.client_processors > 0 && watched.client_processors < watched.processors;
    (confined, profile.share(Part::ClientQueues) > profile.share(Part::ClientRuns))
}

fn confidence(evidence: &Evidence, profile: &Profile, limit: Limit, candidates: &[Candidate]) -> Confidence {
    match limit {
        Limit::CannotTell => return Confidence::Low,
        Limit::Nothing => return Confidence::High,
        _ => {}
    }
    let share = |nth: usize| candidates.get(nth).map_or(0.0, |candidate| candidate.share);
    let by_default = matches!(limit, Limit::LoadGenerator | Limit::OtherPrograms);
    // Nobody saw whether the processors of a server elsewhere are short: they may limit it, too.
    let unseen = if serves_here(evidence) { 0.0 } else { profile.share(Part::ServerRuns) };
    let next = share(1).max(unseen);
    let lead = if by_default && share(0) < WORTH_NAMING { WORTH_NAMING - share(0) } else { share(0) - next };
    // Twice the standard error of a share from so many samples, at its widest.
    let blur = if profile.samples > 0 { 1.0 / (profile.samples as f64).sqrt() } else { 0.0 };
    let lead = lead - blur;
    let sources = sources(evidence, profile, limit);
    if lead >= FAR_AHEAD && sources >= 2 {
        Confidence::High
    } else if lead >= AHEAD && sources >= 1 {
        Confidence::Medium
    } else {
        Confidence::Low
    }
}

/// How many sources that do not depend on each other speak for a limit.
fn sources(evidence: &Evidence, profile: &Profile, limit: Limit) -> usize {
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
            let by_client = commits_by_clock(evidence, profile) > 0.25;
            vec![sampled(Wait::Commit), by_client, watched.syncs.is_some_and(|syncs| syncs.count > 0)]
        }
        Limit::Replicas => vec![sampled(Wait::Replica), load.commit_share() > 0.25],
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
