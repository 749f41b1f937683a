//! How reads, writes and commits share a device: where a mixed load saturates it, how latency grows on the way there, and
//! what a commit gets beside it, in tens of points where a grid takes hundreds. `weir doctor --map` runs them.
//!
//! [`sampler`] says which point comes next, [`mod@derive`] makes a map of the jobs that ran, [`cost`] fits the model, and
//! [`lines`] says it in the words of programs that want it, each with how sure it is.

pub mod cost;
pub mod derive;
pub mod lines;
#[cfg(any(test, feature = "samples"))]
pub mod made;
pub mod sampler;
pub mod sure;
#[cfg(test)]
mod tests;
pub mod title;

use serde::{Deserialize, Serialize};

use cost::CostModel;
use sure::HowSure;
use weir_core::result::record::JobRecord;
use weir_core::units::Bytes;

/// Size of the map's reads and writes: what iocost and Seastar count random operations in.
pub const BLOCK: u64 = 4 << 10;
/// Size of InnoDB's pages.
pub const PAGE: u64 = 16 << 10;
/// Size of a commit's write.
pub const COMMIT: u64 = 4 << 10;

/// What a job of a map is for. The share of writes and the rate are the job's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// As much as the device takes, with the job's share of writes.
    Edge,
    /// An edge once more, at the end.
    Again,
    /// At the job's rate.
    Inside,
    /// At the job's rate, with the job after it, which commits.
    Beside,
    /// One thread that commits; beside the job before it where that is [`Part::Beside`] or [`Part::Pages`].
    Commits,
    /// The same alone, at the end.
    CommitsAgain,
    /// Writes of pages, as many as the device takes.
    PagesEdge,
    /// Writes of pages at the job's rate, with the job after it, which commits.
    Pages,
    /// Large blocks in order.
    Bulk,
    /// Small blocks in order.
    InOrder,
}

/// That an examination was a map, and what it was to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MapNotes {
    /// Points of edge and inside at most.
    pub points_max: usize,
}

/// A map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadMap {
    /// Size of its reads and writes.
    pub block: Bytes,
    /// The edge, by ascending share of writes.
    pub edges: Vec<Point>,
    /// Points below it, by ascending share, then load.
    pub inside: Vec<Point>,
    /// Commits alone (load 0) and beside a mixed load.
    pub commits: Vec<Commits>,
    /// Commits beside writes of pages.
    pub pages: Pages,
    /// Operations in order; absent where not measured.
    pub in_order: InOrder,
    /// The fitted model; absent without both ends.
    pub model: Option<CostModel>,
    /// What changed between start and end.
    pub drift: Drift,
    /// Edges that the load generator's processors limited, by their share of writes: the device can do more.
    pub capped: Vec<f64>,
    /// Jobs that ran, the repeats included.
    pub points: usize,
    /// The model in other programs' words.
    pub lines: Vec<Line>,
}

/// One point: what was asked for, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Writes of all operations, 0 to 1.
    pub share: f64,
    /// Part of the edge's rate; 1 on it.
    pub load: f64,
    /// Reads a second.
    pub reads: f64,
    /// Writes a second.
    pub writes: f64,
    /// Operations behind the latencies.
    pub n: u64,
    /// Median latency of reads and writes together.
    pub p50_ns: Option<u64>,
    /// 99th percentile of both together; absent with fewer than 300.
    pub p99_ns: Option<u64>,
    /// 95th percentile of the reads.
    pub read_p95_ns: Option<u64>,
    /// 95th percentile of the writes.
    pub write_p95_ns: Option<u64>,
    /// Whether operations finished as fast as they came due, within a twentieth.
    pub kept: bool,
    /// How busy the busier of the load generator and the machine's processors was, 0 to 1.
    pub processors: f64,
    /// Id of the measurement.
    pub measurement: String,
}

/// Commits of one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Commits {
    /// Share of writes of the load beside them.
    pub share: f64,
    /// Part of the edge's rate that this load asked for; 0: they ran alone.
    pub load: f64,
    /// Reads a second beside them.
    pub reads: f64,
    /// Writes a second beside them.
    pub writes: f64,
    /// Commits a second.
    pub rate: f64,
    /// How many.
    pub n: u64,
    /// Median latency.
    pub p50_ns: Option<u64>,
    /// 99th percentile; absent with fewer than 300.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
    /// Id of the measurement.
    pub measurement: String,
}

impl Commits {
    /// The 99th percentile, or where too few commits finished for one, the longest; nothing where none did.
    pub fn tail_ns(&self) -> Option<u64> {
        self.p99_ns.or((self.n > 0).then_some(self.max_ns))
    }
}

/// Writes of pages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pages {
    /// Pages a second at most.
    pub edge: Option<f64>,
    /// Commits beside fewer, by ascending load.
    pub beside: Vec<Commits>,
}

/// Operations in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct InOrder {
    /// Bytes a second of large reads.
    pub read_bytes: Option<f64>,
    /// Bytes a second of large writes.
    pub write_bytes: Option<f64>,
    /// Small reads a second.
    pub reads: Option<f64>,
    /// Small writes a second.
    pub writes: Option<f64>,
}

/// How far the same step, repeated at the end, is off its first run: the largest of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Of the edge's rates.
    pub edge: Option<f64>,
    /// Of the commits' rate.
    pub commits: Option<f64>,
}

/// What is to be measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ask {
    /// As much as the device takes, with this share of writes.
    Edge {
        /// Writes of all operations, 0 to 1.
        share: f64,
    },
    /// This many a second.
    Inside {
        /// Writes of all operations, 0 to 1.
        share: f64,
        /// Part of the edge's rate, 0 to 1.
        load: f64,
        /// Reads a second.
        reads: f64,
        /// Writes a second.
        writes: f64,
    },
}

impl Ask {
    /// Writes of all operations, 0 to 1.
    pub fn share(&self) -> f64 {
        match self {
            Ask::Edge { share } | Ask::Inside { share, .. } => *share,
        }
    }
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// What was asked for.
    pub ask: Ask,
    /// Reads a second that finished.
    pub reads: f64,
    /// Writes a second that finished.
    pub writes: f64,
    /// 99th percentile of latency, of reads and writes together.
    pub p99_ns: f64,
}

/// What one program is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Stable: `iocost-model`, `iocost-qos`, `io-properties`, `innodb`.
    pub id: String,
    /// For people.
    pub title: String,
    /// Where it goes.
    pub goes_to: String,
    /// The lines as they are written there; absent where something for them was not measured.
    pub text: Option<String>,
    /// How sure.
    #[serde(flatten)]
    pub how_sure: HowSure,
}

/// Share of writes that a job asks for.
pub fn share(job: &JobRecord) -> f64 {
    1.0 - job.job.read_percent / 100.0
}
