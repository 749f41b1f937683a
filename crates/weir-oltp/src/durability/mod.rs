//! Whether a commit is on the disk when the server says so: what its settings promise, held against the syncs that were
//! seen. The one place where that is concluded; everything that speaks of it takes it from here.

mod evidence;
mod promise;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use evidence::{Evidence, Source, syncs_each};
pub use promise::{Promise, is_nosync, lost, writes_durably};

use super::OltpRecord;
use super::limits::{Load, Watched};
use evidence::Commits;
use weir_core::result::Record;
use weir_core::units::{Nanos, significant};

/// Flash takes longer to program a page: something else acknowledges a sync that is faster.
const FASTER_THAN_FLASH_NS: f64 = 40_000.0;

/// What is known of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Promised, and the syncs were seen.
    Seen,
    /// Promised, and nobody watched.
    BySettings,
    /// Promised, and the syncs that it takes did not happen.
    NotSeen,
    /// Not promised.
    NotPromised,
    /// The data lie in memory.
    InMemory,
    /// The run made none.
    NoCommits,
    /// The server's settings are not known.
    Unknown,
}

/// The conclusion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Durability {
    /// In a word.
    pub state: State,
    /// In a sentence.
    pub sentence: String,
    /// What to check where that is not as it should be; empty where it is.
    pub check: String,
    /// What was seen.
    pub evidence: Evidence,
}

/// The kind of a data directory's file system that is memory, as the conditions of a run have it.
pub fn memory_file_system(conditions: &Value) -> Option<&str> {
    file_system(conditions).filter(|kind| ["tmpfs", "ramfs"].contains(kind))
}

fn file_system(conditions: &Value) -> Option<&str> {
    conditions.pointer("/target/file_system/kind")?.as_str()
}

impl Durability {
    /// From a record.
    pub fn of(record: &Record, raw: &OltpRecord) -> Durability {
        let load = Load::of(raw);
        let watched = raw.seen().unwrap_or_default();
        let variables = &raw.server.variables;
        // A file of an overlay is synced by way of another, which the kernel's programs do not follow.
        let sees_files = file_system(&record.conditions).is_none_or(|kind| kind != "overlay");
        let evidence = Evidence::of(&Commits::of(raw, &load), &watched, variables, sees_files);
        let memory = memory_file_system(&record.conditions).or(watched
            .device
            .as_ref()
            .filter(|device| device.is_memory)
            .map(|device| device.name.as_str()));
        conclude(&Promise::of_all(&raw.server), memory, evidence, &watched)
    }
}

fn conclude(promise: &Promise, memory: Option<&str>, evidence: Evidence, watched: &Watched) -> Durability {
    let (state, sentence) = match (promise, memory, &evidence) {
        (Promise::Unknown, ..) => (State::Unknown, "the server's settings are not known".to_string()),
        (Promise::Broken(why), ..) => {
            (State::NotPromised, format!("commits are not durable: {}", why.join("; ")))
        }
        (Promise::Kept, Some(kind), _) => (
            State::InMemory,
            format!("the data are on {kind}, which is memory: commits end with the machine"),
        ),
        (Promise::Kept, None, Evidence::NoCommits) => (
            State::NoCommits,
            "this run committed no changes; the server's settings promise durable commits".to_string(),
        ),
        (Promise::Kept, None, Evidence::NotWatched { why }) => {
            (State::BySettings, format!("by the server's settings alone: its syncs were not watched ({why})"))
        }
        (Promise::Kept, None, Evidence::Enough { each, by }) => (
            State::Seen,
            format!("commits are durable: {} syncs a transaction {}", figure(*each), seen_by(*by, watched)),
        ),
        (Promise::Kept, None, Evidence::TooFew { each, least, by, server }) => {
            (State::NotSeen, not_seen(*each, *least, *by, *server))
        }
    };
    let check = match (state, &evidence) {
        (State::NotSeen, Evidence::TooFew { by, least, server, .. }) => {
            what_to_check(*by, asks_for_more(*least, *server))
        }
        (State::Seen, _) => too_fast(watched).unwrap_or_default(),
        _ => String::new(),
    };
    Durability { state, sentence, check, evidence }
}

/// Small figures keep their digits: what is not nothing does not read as nothing.
pub fn figure(each: f64) -> String {
    if each > 0.0 && each < 0.005 { "under 0.01".to_string() } else { significant(each) }
}

fn seen_by(by: Source, watched: &Watched) -> String {
    let device = watched.device.as_ref().map_or("the device", |device| device.name.as_str());
    match by {
        Source::Kernel => "were seen in the kernel".to_string(),
        Source::Device | Source::Server => {
            format!("by the server's count, and as many flushes of {device}")
        }
    }
}

fn not_seen(each: f64, least: f64, by: Source, server: Option<f64>) -> String {
    let who = match by {
        Source::Kernel => format!("the kernel saw {} syncs of the server", figure(each)),
        Source::Server => format!("the server itself counts {} syncs", figure(each)),
        Source::Device => format!("the device of the data took {} writes and flushes", figure(each)),
    };
    let also = match server {
        Some(count) if asks_for_more(least, server) => {
            format!(", though the server counts {}", figure(count))
        }
        _ => String::new(),
    };
    format!(
        "promised by the server's settings, and not seen: a transaction takes {} syncs at least, and {who} for each{also}",
        figure(least)
    )
}

/// Whether the server itself counts as many syncs as commits take, which then did not arrive.
fn asks_for_more(least: f64, server: Option<f64>) -> bool {
    server.is_some_and(|server| 2.0 * server >= least)
}

/// The likelier first. `asked`: the server counts syncs that did not arrive.
fn what_to_check(by: Source, asked: bool) -> String {
    let swallowed = "whether something between the server and the kernel drops its syncs (grep eatmydata \
                     /proc/PID/maps; LD_PRELOAD)";
    let log = "where its log lies (in memory, on a container's volume, on another device), and whether the server takes \
               that for persistent memory and maps it (MariaDB does where /dev/shm lies on the same file system as the \
               data)";
    match (by, asked) {
        (Source::Kernel, true) => format!("{swallowed}; {log}"),
        (Source::Kernel, _) | (Source::Device, _) => format!("{log}; {swallowed}"),
        (Source::Server, _) => log.to_string(),
    }
}

/// Syncs that were seen and cannot have reached flash.
fn too_fast(watched: &Watched) -> Option<String> {
    let syncs = watched.syncs.filter(|syncs| syncs.count > 0 && syncs.mean_ns < FASTER_THAN_FLASH_NS)?;
    Some(format!(
        "a sync takes {}, faster than flash is written: a cache below this kernel acknowledges it, a controller's or a \
         hypervisor's, and whether that outlives a loss of power is for its vendor or the host's settings to say",
        Nanos(syncs.mean_ns as u64)
    ))
}
