//! Where the sessions' time went: shares that add up to one.

use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::waits::Wait;
use super::watched::TaskTimes;

/// A place where a transaction's time can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The server works on it.
    ServerRuns,
    /// The server is ready to, and waits for a processor.
    ServerQueues,
    /// The client works.
    ClientRuns,
    /// The client is ready to, and waits for a processor.
    ClientQueues,
    /// Between the two: wake-ups, the network, and what the client does that could not be seen.
    Between,
    /// The commit's write and sync, or the group's leader that makes them.
    Commit,
    /// A standby or replica that has to confirm the commit.
    Replica,
    /// Pages from the file.
    Read,
    /// Room in memory or log.
    WriteBack,
    /// Rows that others hold.
    Lock,
    /// Latches inside the server.
    Latch,
    /// Could not be told.
    Unknown,
}

/// Shares of the sessions' time in transactions, 0 to 1; they add up to one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// By place, largest first; places without time are left out.
    pub parts: Vec<(Part, f64)>,
    /// Samples of sessions behind the waits; 0 where sessions were not looked at.
    pub samples: u64,
    /// Share of the sessions' time outside of transactions (open loop), of all their time.
    pub paused: f64,
}

impl Part {
    /// The words in reports.
    pub fn name(self) -> &'static str {
        match self {
            Part::ServerRuns => "server on a processor",
            Part::ServerQueues => "server waits for a processor",
            Part::ClientRuns => "client on a processor",
            Part::ClientQueues => "client waits for a processor",
            Part::Between => "between server and client",
            Part::Commit => "commit waits for the log",
            Part::Replica => "commit waits for a replica",
            Part::Read => "reads of pages",
            Part::WriteBack => "waits for write-back",
            Part::Lock => "row locks",
            Part::Latch => "latches in the server",
            Part::Unknown => "not seen",
        }
    }

    /// Whether a faster device under the server would shorten it.
    pub fn is_storage(self) -> bool {
        matches!(self, Part::Commit | Part::Read | Part::WriteBack)
    }
}

/// Shares of all the sessions' time before pauses are taken out, and what is left to be given away.
struct Split {
    parts: Vec<(Part, f64)>,
    left: f64,
}

impl Split {
    /// Gives a part what it asks for, and no more than is left.
    fn give(&mut self, part: Part, share: f64) {
        let share = share.clamp(0.0, self.left);
        self.left -= share;
        if share > 0.0 {
            self.parts.push((part, share));
        }
    }
}

impl Profile {
    /// Shares from tasks, samples and the client's own clock, as far as each is there.
    pub fn of(evidence: &Evidence) -> Profile {
        let load = &evidence.load;
        let all_ns = (u64::from(load.sessions) * load.elapsed_ns).max(1) as f64;
        let busy = (load.busy_ns as f64 / all_ns).clamp(0.0, 1.0);
        if busy <= 0.0 {
            return Profile { paused: 1.0, ..Profile::default() };
        }
        let mut split = Split { parts: Vec::new(), left: busy };
        let samples = server_side(evidence, &mut split);
        client_side(evidence, &mut split, all_ns);
        // What neither side accounts for passes between them, but only where both could be seen.
        let both = evidence.watched.client_tasks.is_some() && samples.is_some();
        let rest = if both { Part::Between } else { Part::Unknown };
        split.give(rest, split.left);
        let mut parts: Vec<(Part, f64)> = split.parts.into_iter().map(|(part, s)| (part, s / busy)).collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        Profile { parts, samples: samples.unwrap_or(0), paused: 1.0 - busy }
    }

    /// The share of a place.
    pub fn share(&self, part: Part) -> f64 {
        self.parts.iter().find(|(p, _)| *p == part).map_or(0.0, |(_, share)| *share)
    }

    /// The shares of several places together.
    pub fn sum(&self, takes: impl Fn(Part) -> bool) -> f64 {
        self.parts.iter().filter(|(part, _)| takes(*part)).map(|(_, share)| share).sum()
    }
}

/// What the server's sessions do while it is their turn; returns how many samples tell their waits apart, `None` where
/// neither threads nor sessions could be seen.
fn server_side(evidence: &Evidence, split: &mut Split) -> Option<u64> {
    let watched = &evidence.watched;
    let sessions = watched.sessions.as_ref().filter(|sessions| sessions.samples() > 0);
    let tasks = watched.session_tasks.filter(|tasks| tasks.total_ns > 0);
    let Some(sessions) = sessions else {
        let tasks = tasks?;
        processors(split, &tasks);
        committing(evidence, split);
        // What else they sleep for nobody says.
        return None;
    };
    // Samples have their own share of sessions that run; the kernel's clocks know it better.
    let off = match tasks {
        Some(tasks) => {
            processors(split, &tasks);
            tasks.off_ns() as f64 / tasks.total_ns as f64
        }
        None => {
            split.give(Part::ServerRuns, sessions.share(Wait::Cpu));
            1.0 - sessions.share(Wait::Cpu)
        }
    };
    let asleep = 1.0 - sessions.share(Wait::Cpu);
    let scale = if asleep > 0.0 { off / asleep } else { 0.0 };
    for (wait, part) in [
        (Wait::Commit, Part::Commit),
        (Wait::Replica, Part::Replica),
        (Wait::Read, Part::Read),
        (Wait::WriteBack, Part::WriteBack),
        (Wait::Lock, Part::Lock),
        (Wait::Latch, Part::Latch),
        (Wait::Other, Part::Unknown),
    ] {
        split.give(part, sessions.share(wait) * scale);
    }
    Some(sessions.samples())
}

fn processors(split: &mut Split, tasks: &TaskTimes) {
    let share = |ns: u64| ns as f64 / tasks.total_ns.max(1) as f64;
    split.give(Part::ServerRuns, share(tasks.on_ns));
    split.give(Part::ServerQueues, share(tasks.queued_ns));
}

/// Without a look at the sessions the client's clock still knows how long COMMIT took; what of that is work, not
/// waiting, is small.
fn committing(evidence: &Evidence, split: &mut Split) {
    let load = &evidence.load;
    let busy = load.busy_ns as f64 / (u64::from(load.sessions) * load.elapsed_ns).max(1) as f64;
    split.give(Part::Commit, busy * load.commit_share());
}

fn client_side(evidence: &Evidence, split: &mut Split, all_ns: f64) {
    if let Some(tasks) = evidence.watched.client_tasks {
        split.give(Part::ClientRuns, tasks.on_ns as f64 / all_ns);
        split.give(Part::ClientQueues, tasks.queued_ns as f64 / all_ns);
    } else if evidence.load.sessions > 0 {
        split.give(Part::ClientRuns, evidence.watched.cpu.client_ns as f64 / all_ns);
    }
}

/// A share as a percentage, with a decimal only where it is small.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 1.0 { "under 1 %".to_string() } else { format!("{percent:.0} %") }
}
