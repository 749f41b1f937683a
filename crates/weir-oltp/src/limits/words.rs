//! The sentences of a verdict.

use super::bounds::Bounds;
use super::diagnosis::Limit;
use super::evidence::Evidence;
use super::profile::{Part, Profile, percent};
use super::signs::{
    WORTH_NAMING, behind_others, client_queues, is_in_memory, is_satisfied, serve_unsummed, server_queues,
    serves_here, stalled,
};
use super::waits::Wait;
use crate::durability::{figure, syncs_each};
use crate::processors::Processors;
use weir_core::units::{Nanos, grouped, per_second, significant};

/// The end of a headline whose verdict a test contradicts.
pub(super) const TESTED_AGAINST: &str = "; what was tried speaks against it";

/// Shares below this are not worth a clause.
const WORTH_SAYING: f64 = 0.01;

/// `1.21` → `21 %`.
fn gain(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent >= 300.0 {
        format!("{} times the rate", significant(ratio))
    } else {
        format!("{percent:.0} % more")
    }
}

/// The verdict in a sentence.
pub(super) fn headline(evidence: &Evidence, limit: Limit, share: f64, bounds: &Bounds) -> String {
    let disk = disk_clause(evidence, bounds);
    match limit {
        Limit::CannotTell if evidence.load.transactions == 0 => {
            "cannot tell: no transaction finished".to_string()
        }
        Limit::CannotTell => {
            "cannot tell what limits this run: too little of it could be seen from here".to_string()
        }
        Limit::Nothing => format!(
            "limited by nothing: {} transactions a second were requested, and they ran when they were due",
            per_second(evidence.load.asked_per_second.unwrap_or_default())
        ),
        Limit::LoadGenerator if is_confined(evidence) => format!(
            "limited by the load generator: {} of the time is the client's own, which does not get to run; \
             this measures weir, not the server",
            percent(share)
        ),
        Limit::LoadGenerator => format!(
            "limited by the load generator: {}, each with one statement at a time, and {}; more connections would raise the \
             rate",
            connections(evidence),
            idle(evidence)
        ),
        Limit::OtherPrograms => {
            format!("limited by other programs: {}; measure again without them", held_by_others(evidence))
        }
        Limit::ServerCpu => {
            let whose = if queued_behind_others(evidence) { " behind other sessions" } else { "" };
            format!(
                "limited by CPU (server): {} of the time runs or waits for a processor{whose}{disk}",
                percent(share)
            )
        }
        Limit::ClientCpu => format!(
            "limited by CPU (client): {} of the time is weir's own; this measures the client, not the server",
            percent(share)
        ),
        Limit::CommitLatency if is_in_memory(evidence) => format!(
            "limited by commit latency: {} of the time waits for the log, though it lies in memory",
            percent(share)
        ),
        Limit::CommitLatency => format!(
            "limited by commit latency{}: {} of the time waits for the log{disk}",
            on_device(evidence),
            percent(share)
        ),
        Limit::Replicas => format!(
            "limited by replicas: {} of the time waits until a standby or replica has confirmed a commit; the network and \
             its disk decide, not the disk here",
            percent(share)
        ),
        Limit::ReadIo => {
            format!(
                "limited by read I/O{}: {} of the time waits for pages{disk}",
                on_device(evidence),
                percent(share)
            )
        }
        Limit::WriteBack => format!(
            "limited by write-back and checkpoints{}: {} of the time waits while pages are written{disk}",
            on_device(evidence),
            percent(share)
        ),
        Limit::Locks => {
            format!("limited by locks: {} of the time waits for rows that others hold{disk}", percent(share))
        }
        Limit::Latches => format!("limited by latches inside the server: {} of the time", percent(share)),
    }
}

/// Processors that nobody used.
fn idle(evidence: &Evidence) -> String {
    Processors::watched(&evidence.watched).map_or("processors are idle".to_string(), |all| {
        let idle = (f64::from(all.online) - all.busy).max(0.0);
        format!("{idle:.2} of {} processors are idle", all.online)
    })
}

/// Whether sessions wait for others than each other to leave a processor: the share of the limit leaves that out.
fn queued_behind_others(evidence: &Evidence) -> bool {
    behind_others(evidence) * server_queues(evidence, &Profile::of(evidence)) >= WORTH_SAYING
}

fn held_by_others(evidence: &Evidence) -> String {
    let (all, profile) = (Processors::watched(&evidence.watched).unwrap_or_default(), Profile::of(evidence));
    let held = format!("they use {:.2} of {} processors", all.rest, all.online);
    let queued = profile.share(Part::ServerQueues) + profile.share(Part::ClientQueues);
    if queued >= WORTH_SAYING {
        return format!("{held}, and {} of the time waits for a processor", percent(queued));
    }
    format!("{held} and leave none idle, and {}, waiting for little else", connections(evidence))
}

fn connections(evidence: &Evidence) -> String {
    match evidence.load.sessions {
        1 => "the one connection is always busy".to_string(),
        n => format!("the {n} connections are always busy"),
    }
}

/// Whether the client waits for its turn on a processor.
fn is_confined(evidence: &Evidence) -> bool {
    client_queues(evidence, &Profile::of(evidence)) >= WORTH_NAMING
}

fn on_device(evidence: &Evidence) -> String {
    match &evidence.watched.device {
        Some(device) if !device.is_memory && !device.name.is_empty() => {
            format!(" on the device {}", device.name)
        }
        _ => String::new(),
    }
}

fn disk_clause(evidence: &Evidence, bounds: &Bounds) -> String {
    match bounds.faster_disk {
        _ if is_in_memory(evidence) => "; the data lie in memory, no disk can help".to_string(),
        Some(ratio) if ratio < 1.005 => "; a faster disk gives nothing".to_string(),
        Some(ratio) => format!("; a faster disk gives at most {}", gain(ratio)),
        None => String::new(),
    }
}

/// What a verdict stands on.
pub(super) fn evidence(evidence: &Evidence, profile: &Profile, limit: Limit) -> Vec<String> {
    let about_limit = match limit {
        Limit::ServerCpu | Limit::ClientCpu | Limit::LoadGenerator | Limit::OtherPrograms => {
            vec![processors, work, commits]
        }
        Limit::CommitLatency => vec![commits, syncs, device, processors],
        Limit::Replicas => vec![replicas, commits, processors],
        Limit::ReadIo => vec![reads, device, processors],
        Limit::WriteBack => vec![pages, device, commits, processors],
        Limit::Locks => vec![locks, commits, processors],
        Limit::Latches => vec![events, processors],
        Limit::Nothing => vec![open_loop, processors],
        Limit::CannotTell => vec![processors, commits],
    };
    let open = (limit != Limit::Nothing).then_some(open_loop as Sentence);
    // A session that was woken and waits for a processor still has the name of what it waited for before.
    let on_processors =
        matches!(limit, Limit::ServerCpu | Limit::ClientCpu | Limit::OtherPrograms | Limit::Latches);
    let sampled = (profile.samples > 0 && !on_processors).then_some(events as Sentence);
    let rules = about_limit.into_iter().chain(open).chain(sampled);
    rules.filter_map(|rule| rule(evidence, profile)).collect()
}

type Sentence = fn(&Evidence, &Profile) -> Option<String>;

fn processors(evidence: &Evidence, profile: &Profile) -> Option<String> {
    let watched = &evidence.watched;
    let mut text = Processors::watched(watched)?.words();
    if serve_unsummed(evidence) {
        text += " (on this machine; what servers use of them is in the rest)";
    } else if !serves_here(evidence) {
        text += " (on this machine, where the server was not seen)";
    }
    let queued = profile.share(Part::ServerQueues);
    if watched.session_tasks.is_some() {
        text += &format!(
            "; sessions run for {} of their time and wait for a processor for {}",
            percent(profile.share(Part::ServerRuns)),
            percent(queued)
        );
    }
    Some(text)
}

fn work(evidence: &Evidence, _: &Profile) -> Option<String> {
    let all = Processors::watched(&evidence.watched)?;
    let each = |processors: f64| Nanos(Processors::each_ns(processors, &evidence.load).round() as u64);
    let mut text = format!("a transaction costs the client {} of processor time", each(all.client));
    if let Some(server) = all.server {
        text += &format!(" and the server {}", each(server));
    }
    Some(text)
}

fn commits(evidence: &Evidence, profile: &Profile) -> Option<String> {
    let load = &evidence.load;
    if load.is_read_only {
        return None;
    }
    let mut text =
        format!("commits wait for the log for {} of the time", percent(profile.share(Part::Commit)));
    if load.commit_ns > 0 {
        let share = percent(load.commit_share());
        text += &format!("; by the client's clock COMMIT takes {share} of a transaction");
    }
    if let Some(each) = syncs_each(load, &evidence.watched) {
        text += &format!("; {} syncs a transaction", figure(each));
    }
    Some(text)
}

fn replicas(_: &Evidence, profile: &Profile) -> Option<String> {
    let share = percent(profile.share(Part::Replica));
    Some(format!("commits wait for a standby or replica for {share} of the time"))
}

fn syncs(evidence: &Evidence, _: &Profile) -> Option<String> {
    let syncs = evidence.watched.syncs.filter(|syncs| syncs.count > 0)?;
    let times = (Nanos(syncs.mean_ns as u64), Nanos(syncs.p99_ns));
    let elapsed_ns = evidence.watched.elapsed_ns;
    let each = evidence.load.transactions as f64 / syncs.total(elapsed_ns);
    let seen = match syncs.share(elapsed_ns) {
        share if share < 0.99 => format!(" (watched for {} of the time)", percent(share)),
        _ => String::new(),
    };
    Some(format!(
        "{} syncs of the server{seen} took {} on average, p99 {}; {} transactions share one",
        grouped(syncs.count),
        times.0,
        times.1,
        significant(each)
    ))
}

fn device(evidence: &Evidence, _: &Profile) -> Option<String> {
    let device = evidence.watched.device.as_ref()?;
    if device.is_memory {
        return Some("the data lie in memory".to_string());
    }
    let one = |rate: f64, ns: f64, what: &str| {
        (rate >= 0.5).then(|| format!("{} {what}/s of {}", per_second(rate), Nanos(ns as u64)))
    };
    let parts = [
        one(device.reads_per_second, device.read_ns, "reads"),
        one(device.writes_per_second, device.write_ns, "writes"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let parts = if parts.is_empty() { "no I/O".to_string() } else { parts.join(", ") };
    let mut text = format!("{}: {parts}, {} of the time in use", device.name, percent(device.util));
    if let Some((before, inside)) = device.stages {
        let (before, inside) = (Nanos(before as u64), Nanos(inside as u64));
        text += &format!("; a request waits {before} in the kernel and {inside} in the device");
    }
    Some(text)
}

fn reads(evidence: &Evidence, profile: &Profile) -> Option<String> {
    let mut text = format!("reads wait for {} of the time", percent(profile.share(Part::Read)));
    if let Some(pages) = evidence.watched.counters.and_then(|counters| counters.page_reads) {
        let each = significant(evidence.load.per_transaction(pages));
        text += &format!("; the server read {each} pages a transaction that its memory did not hold");
    }
    Some(text)
}

fn pages(evidence: &Evidence, profile: &Profile) -> Option<String> {
    let counters = evidence.watched.counters?;
    let mut parts = Vec::new();
    if let Some(pages) = counters.page_writes {
        parts.push(format!(
            "{} data pages written a transaction",
            significant(evidence.load.per_transaction(pages))
        ));
    }
    let mut count = |count: Option<u64>, what: &str| {
        parts.extend(count.filter(|n| *n > 0).map(|n| format!("{} {what}", grouped(n))));
    };
    count(counters.forced_checkpoints, "checkpoints forced by the size of the log");
    count(counters.free_page_waits, "waits for a free page");
    count(counters.log_waits, "waits for space in the log");
    if let Some(full) = counters.log_full.filter(|share| *share > 0.0) {
        parts.push(format!("the log was full in {} of the samples", percent(full)));
    }
    if let Some(images) = counters.log_page_images.filter(|images| *images > 0) {
        parts.push(format!(
            "{} whole pages put into the log a transaction",
            significant(evidence.load.per_transaction(images))
        ));
    }
    if let Some(age) = counters.checkpoint_age {
        parts.push(format!("the checkpoint was up to {} of the log old", percent(age)));
    }
    let waits = profile.share(Part::WriteBack) + profile.share(Part::Commit) + stalled(evidence, profile);
    let waits = percent(waits);
    Some(format!("{waits} of the time waits for writes; {}", parts.join(", ")))
}

fn locks(evidence: &Evidence, profile: &Profile) -> Option<String> {
    let mut text = format!("sessions wait for rows for {} of their time", percent(profile.share(Part::Lock)));
    let counters = evidence.watched.counters.unwrap_or_default();
    if let Some(waits) = counters.lock_waits.filter(|waits| *waits > 0) {
        text += &format!("; {} waits a transaction", significant(evidence.load.per_transaction(waits)));
    }
    if let Some(deadlocks) = counters.deadlocks.filter(|count| *count > 0) {
        text += &format!("; {} deadlocks", grouped(deadlocks));
    }
    Some(text)
}

fn events(evidence: &Evidence, profile: &Profile) -> Option<String> {
    let sessions = evidence.watched.sessions.as_ref()?;
    let mut all: Vec<_> = sessions.events.iter().filter(|(name, _)| !name.is_empty()).collect();
    all.sort_by(|a, b| b.1.cmp(a.1));
    let share = |count: u64| percent(count as f64 / profile.samples.max(1) as f64);
    let most: Vec<String> = all.iter().take(4).map(|(name, n)| format!("{name} {}", share(**n))).collect();
    (!most.is_empty()).then(|| {
        format!("in {} samples of sessions the server said: {}", grouped(profile.samples), most.join(", "))
    })
}

fn open_loop(evidence: &Evidence, _: &Profile) -> Option<String> {
    let load = &evidence.load;
    let asked = load.asked_per_second?;
    let mut text =
        format!("{} of {} transactions a second", per_second(load.per_second()), per_second(asked));
    text += &format!(", {} late", percent(load.late));
    if !is_satisfied(evidence) {
        text += &format!(", {} not even started at the end", percent(load.not_started));
    }
    Some(text)
}

/// The session at the root of a queue for rows.
pub(super) fn chain(root: Wait, share: f64, waiting: f64) -> String {
    let behind = match root {
        Wait::Commit => {
            "the holder waits for its commit: the queue is rooted in slow commits, and a faster one shortens it"
        }
        Wait::Replica => "the holder waits for a replica to confirm its commit: the queue is rooted in that",
        Wait::Client => "the holder waits for its client's next statement: shorter transactions shorten it",
        Wait::Cpu => "the holder runs or waits for a processor",
        Wait::Read => "the holder waits for a page: the queue is rooted in reads",
        Wait::WriteBack => "the holder waits for write-back",
        _ => "the holder waits for something else in the server",
    };
    format!(
        "{} of the time is spent in queues for rows; at the root of {} of them {behind}",
        percent(waiting),
        percent(share)
    )
}
